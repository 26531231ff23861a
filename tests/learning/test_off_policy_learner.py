"""The off-policy learner on a small decision process whose values are known, and its parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from small_env import RICH, Observation, observation
from torch import nn

from greenbatch.datasets.tables import Tables
from greenbatch.errors import InputError
from greenbatch.learning.networks.observations import as_batch
from greenbatch.learning.networks.rare import SIZES, Encoder
from greenbatch.learning.networks.slots import unpacked
from greenbatch.learning.offpolicy.agent import dense, make_agent, mask_of, of_rows
from greenbatch.learning.offpolicy.behavior import Exploring, Recorded, play_loads
from greenbatch.learning.offpolicy.buffer import Replay
from greenbatch.learning.offpolicy.critics import COMBINED, PopArt, follow
from greenbatch.learning.offpolicy.learner import FIGURES, Learner, Rates, Sample
from greenbatch.learning.offpolicy.tables import batch_of
from greenbatch.presets.off_policy import OffPolicy
from greenbatch.presets.shapes import Shapes, seen_by

SHAPES = Shapes(queue=("now", "later", "trap"), queue_rows=3, empty=(0.0,) * 3, state=("start", "poor", "rich"))
GAMMA = 0.9


class Patience:
    """Two decisions: ``now`` pays 1 and then nothing, ``later`` pays nothing and then 3; ``trap`` is never allowed.

    Q(start, now) = 1, Q(start, later) = 3 gamma; afterwards 0 or 3 whatever is chosen.
    """

    def __init__(self, environments: int) -> None:
        self.environments = environments
        self.values, self.now_s = np.zeros((environments, 1)), np.zeros(environments)
        self._states = np.zeros(0, np.int64)

    def reset(self, starts: Sequence[int]) -> Observation:
        self.values[:] = 0.0
        self._states = np.zeros(len(starts), np.int64)
        return self._show(len(starts))

    def step(self, actions: np.ndarray) -> tuple[Observation, np.ndarray, np.ndarray]:
        rows, states = actions[:, 0], self._states
        assert (rows < 2).all(), "a masked row was chosen"
        began = bool((states == 0).all())
        rewards = np.where(states == 0, rows == 0, 3.0 * (states == 2)).astype(np.float64)
        self.values[: len(rewards), 0] += rewards
        self._states = 1 + rows
        return self._show(len(rows) if began else 0), rewards, np.full(len(rows), not began)

    def _show(self, count: int) -> Observation:
        return Observation(
            environment=np.arange(count), queue=np.tile(np.eye(3, dtype=np.float32), (count, 1)),
            queue_offsets=3 * np.arange(count + 1), selectable=np.tile([True, True, False], count),
            running=np.zeros((0, 0), np.float32), running_offsets=np.zeros(count + 1, np.int64),
            supply=np.zeros((count, 0, 0), np.float32), slot=np.zeros(count, np.int64),
            state=np.eye(3, dtype=np.float32)[self._states[:count]], delays=np.ones((count, 1), np.bool_),
            image=np.zeros((count, 2, 0, 0), np.uint8),
        )  # fmt: skip


def trained(loss: str, steps: int = 120, *, network: str = "context", **settings: Any) -> tuple[Learner, Tables]:
    """A learner of the transitions of 64 random episodes."""
    tables, replay = Tables(SHAPES, 10), Replay(Tables(SHAPES, 10).fields, 1000)
    random = torch.Generator().manual_seed(0)
    for played in play_loads(Patience(16), range(64), tables, Exploring(None, 1.0, random)):
        replay.add(
            played.seen, played.actions, played.rewards, played.offsets,
            discounts=np.full(len(played.actions), GAMMA), n_step=settings.get("n_step", 1),
        )  # fmt: skip
    made = OffPolicy(loss=loss, tau=0.1, encoder_tau=0.1, batch=64, temperature_lr=0.0, **settings)
    learner = Learner(make_agent({"kind": network}, SHAPES, made.critics, 0), made, Rates(3e-3, 3e-3))
    draws = np.random.default_rng(0)
    for _ in range(steps):
        places = replay.draw(made.batch, draws)
        done = map(torch.from_numpy, replay.outcomes(places))
        seen, following = (batch_of(replay.seen(at)) for at in (places, replay.following(places)))
        figures = learner.step(Sample(seen, *done, following))
        assert torch.isfinite(figures).all()
        assert len(figures) == len(FIGURES)
    return learner, tables


def at_start(learner: Learner, tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """Values, in the unit of rewards, and probabilities of the two rows allowed in the first decision."""
    batch = batch_of(tables.arrays(Patience(1).reset([0])))
    with torch.no_grad():
        features = learner._features(batch)
        values = COMBINED[learner.settings.combine](
            torch.stack([dense(rows, batch) for rows in learner.agent.critics(features, batch)])
        )
        log_pi = learner._log_pi(features, batch)
        return learner._restored(values)[0, :2].numpy(), log_pi.exp()[0].numpy()


def test_the_actor_waits_while_only_the_critics_learn() -> None:
    """At first probabilities are those of untrained networks, while values are learned; then it learns as well."""
    untrained, tables = trained("binary", 0)
    before, pi = at_start(untrained, tables)
    held, _ = trained("binary", 10, critic_steps=10)
    values, same = at_start(held, tables)
    assert same.tobytes() == pi.tobytes()
    assert np.abs(values - before).max() > 0.1
    _, moved = at_start(trained("binary", 11, critic_steps=10)[0], tables)
    assert moved.tobytes() != pi.tobytes()
    warm, _ = trained("binary", 15, warm_up_steps=5, critic_steps=10)
    copied, _ = trained("binary", 5, warm_up_steps=5)
    assert at_start(warm, tables)[1].tobytes() == at_start(copied, tables)[1].tobytes()


def worth(learner: Learner, tables: Tables) -> float:
    """Mean discounted return of the policy from exact probabilities."""
    _, pi = at_start(learner, tables)
    return float(pi[0] + pi[1] * 3 * GAMMA)


@pytest.mark.parametrize(("loss", "critics", "n_step", "popart", "network"), [
    ("binary", 1, 1, True, "rare"), ("binary", 2, 2, False, "context"), ("exponential", 2, 1, True, "context"),
    ("soft", 2, 1, True, "rare"),
])  # fmt: skip
def test_it_learns_to_wait_for_the_larger_reward(loss, critics, n_step, popart, network):
    """The untrained masked agent is worth about 1.85; always ``later`` is worth 2.7."""
    settings = {"temperature": 0.02, "beta": 0.3, "popart": popart, "n_step": n_step, "critics": critics}
    untrained = worth(*trained(loss, 0, network=network, **settings))
    assert untrained == pytest.approx(1.85, abs=0.4)
    learner, tables = trained(loss, network=network, popart_rate=0.01, **settings)
    values, pi = at_start(learner, tables)
    assert pi[2] == 0.0
    assert worth(learner, tables) > untrained + 0.6
    np.testing.assert_allclose(values, [1.0, 2.7], atol=0.25)


def test_cloning_learns_what_the_data_do_without_critics():
    learner, tables = trained("clone", 100)
    _, pi = at_start(learner, tables)
    assert abs(pi[0] - 0.5) < 0.15
    assert all(
        torch.equal(ours, theirs)
        for ours, theirs in zip(learner.agent.critics.parameters(), learner.agent.targets.parameters(), strict=True)
    )


def test_warming_up_clones_whatever_the_loss():
    warmed, _ = trained("soft", 10, warm_up_steps=10, critics=2)
    cloned, _ = trained("clone", 10, critics=2)
    for ours, theirs in zip(warmed.actor.parameters(), cloned.actor.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_critics_may_learn_while_the_actor_warms_up():
    warmed, _ = trained("soft", 10, warm_up_steps=10, warm_up_critics=True, critics=2)
    cloned, _ = trained("clone", 10, critics=2)
    learned, _ = trained("soft", 10, critics=2)
    for ours, theirs in zip(warmed.actor.parameters(), cloned.actor.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)
    begun = list(cloned.agent.critics.parameters())  # they have not learned
    assert any(
        not torch.equal(ours, theirs) for ours, theirs in zip(warmed.agent.critics.parameters(), begun, strict=True)
    )
    assert any(
        not torch.equal(ours, theirs)  # their targets are of the cloned policy, without entropy
        for ours, theirs in zip(warmed.agent.critics.parameters(), learned.agent.critics.parameters(), strict=True)
    )


def test_the_encoder_follows_the_critics_alone():
    """The loss of the actor has no gradient in the shared encoder (RARE, Algorithm 6, line 7)."""
    agent = make_agent({"kind": "rare"}, SHAPES, 1, 0)
    learner = Learner(agent, OffPolicy(loss="binary"), Rates())
    batch = as_batch(Patience(4).reset(range(4)))
    features = learner._features(batch)
    assert features is not None
    learner._log_pi(features.detach(), batch)[:, 0].mean().backward()
    assert agent.encoder is not None
    assert all(parameter.grad is None for parameter in agent.encoder.parameters())
    own = {id(each) for each in learner.actor_optimizer.parameters}
    assert not own & {id(each) for each in agent.encoder.parameters()}


def test_popart_preserves_outputs_and_has_the_moments_of_the_targets():
    popart, layers = PopArt(0.05), [nn.Linear(4, 3), nn.Linear(4, 3)]
    inputs, random = torch.randn(8, 4, generator=torch.Generator().manual_seed(0)), np.random.default_rng(0)
    mean = square = weight = 0.0
    for step in range(40):
        targets = torch.from_numpy(random.normal(3.0 * step, 1.0 + step, size=64))
        before = [popart.restored(layer(inputs)) for layer in layers]
        popart.update(targets, layers)
        # a running mean that is corrected for its start: weights 0.95^k, divided by their sum
        mean, square, weight = (
            0.95 * old + 0.05 * new
            for old, new in ((mean, targets.mean()), (square, targets.square().mean()), (weight, 1.0))
        )
        assert float(popart.mean) == pytest.approx(float(mean / weight))
        assert float(popart.deviation) ** 2 == pytest.approx(float(square / weight - (mean / weight) ** 2))
        if step:
            for layer, old in zip(layers, before, strict=True):
                torch.testing.assert_close(popart.restored(layer(inputs)), old, rtol=1e-4, atol=1e-3)
    normalized = popart.normalized(targets)
    torch.testing.assert_close(popart.restored(normalized), targets)


def test_targets_move_a_part_of_the_way():
    source, target = nn.Linear(2, 2), nn.Linear(2, 2)
    expected = [0.9 * theirs + 0.1 * ours
                for ours, theirs in zip(source.parameters(), target.parameters(), strict=True)]  # fmt: skip
    follow(target, source, 0.1)
    for value, wanted in zip(target.parameters(), expected, strict=True):
        torch.testing.assert_close(value, wanted)


def test_critics_are_different_networks_and_combine_by_name():
    agent = make_agent({"kind": "context", "skip": {"now": 5.0}}, SHAPES, 3, 0)
    batch = as_batch(Patience(2).reset(range(2)))
    with torch.no_grad():
        values = torch.stack([dense(rows, batch) for rows in agent.critics(None, batch)])
    assert len({tuple(each.flatten().tolist()) for each in values}) == 3
    torch.testing.assert_close(COMBINED["min"](values), values.min(0).values)
    torch.testing.assert_close(COMBINED["mean"](values), values.mean(0))
    assert not any("skip" in name for name, _ in agent.critics.named_parameters())


def test_dense_tables_hold_the_rows_of_every_decision():
    batch = as_batch(observation(RICH, 7, 3))
    rows = torch.arange(float(batch.queue.shape[0])) + 1
    table, mask = dense(rows, batch), mask_of(batch)
    offsets = batch.queue_offsets.tolist()
    for number, (low, high) in enumerate(pairwise(offsets)):
        assert table[number, : high - low].tolist() == rows[low:high].tolist()
        assert mask[number, : high - low].tolist() == batch.selectable[low:high].tolist()
        assert not table[number, high - low :].any()
        assert not mask[number, high - low :].any()


def test_delays_are_refused():
    with pytest.raises(InputError, match="off-policy training has values of rows alone"):
        make_agent({"kind": "context"}, RICH, 1, 0)


def test_a_record_of_actions_fills_the_same_arrays():
    tables, random = Tables(SHAPES, 10), torch.Generator().manual_seed(3)
    first = list(play_loads(Patience(4), range(10), tables, Exploring(None, 1.0, random)))
    asked = np.concatenate([each.asked for each in first])
    again = list(play_loads(Patience(4), range(10), tables, Recorded(asked)))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.actions, other.actions)
        np.testing.assert_array_equal(one.rewards, other.rewards)
        for name, value in one.seen.items():
            np.testing.assert_array_equal(value, other.seen[name])


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_a_share_of_the_actions_is_random_among_those_allowed(epsilon):
    """An actor that always takes the first of two rows: the second is taken with probability epsilon / 2."""
    agent = make_agent({"kind": "context", "skip": {"now": 100.0}}, SHAPES, 1, 0)
    batch = as_batch(Patience(4000).reset(range(4000)))
    rows = Exploring(agent.actor, epsilon, torch.Generator().manual_seed(0))(batch, np.arange(4000))
    assert set(rows.tolist()) <= {0, 1}
    assert float((rows == 1).float().mean()) == pytest.approx(epsilon / 2, abs=0.03)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("image", [(2, 48, 20), None])
@pytest.mark.parametrize("jobs", [45, 0])
def test_encoders_read_images_vectors_or_both(size, image, jobs):
    if image is None and not jobs:
        with pytest.raises(InputError, match="sees neither an image nor jobs"):
            seen_by(Shapes(queue=(), queue_rows=5, empty=()), "both")
        return
    encoder = Encoder(SIZES[size], image, jobs)
    channels, ticks, units = image or (2, 0, 0)
    flags = np.random.default_rng(0).random((3, channels, ticks, units)) < 0.5
    packed = torch.from_numpy(np.packbits(flags, axis=-1))
    vectors = torch.rand(3, jobs)
    features = encoder(packed, vectors)
    assert features.shape == (3, 128)
    if image is not None:
        assert torch.equal(unpacked(packed, units), torch.from_numpy(flags).float())
        layers = [each for each in encoder.modules() if isinstance(each, nn.Conv2d)]
        assert [each.out_channels for each in layers] == [32] * (1 + SIZES[size].extra)
        assert {(each.kernel_size, each.stride) for each in layers} == {((4, 4), (2, 2))}
        changed = packed.clone()
        changed[0, 0, 0, 0] ^= 128
        assert not torch.equal(encoder(changed, vectors)[0], features[0])
    with pytest.raises(InputError, match="take a smaller size"):
        Encoder(SIZES[size], (1, 3, 3), jobs)


def test_rows_keep_their_slots_whatever_is_missing():
    """Waiting has the last slot of RARE's network, however many jobs are visible."""
    shapes = Shapes(queue=("size",), queue_rows=4, empty=(0.0,), extras=1)
    agent = make_agent({"kind": "rare"}, shapes, 1, 0)
    seen = observation(Shapes(queue=("size",), queue_rows=4, empty=(0.0,)), 2, 0)._replace(
        queue=np.array([[1.0], [2.0], [0.0], [5.0], [0.0]], np.float32), queue_offsets=np.array([0, 3, 5]),
        selectable=np.ones(5, np.bool_),
    )  # fmt: skip
    batch = as_batch(seen)
    features = agent.actor.features(batch)
    outputs, rows = agent.actor.head(features), of_rows(agent.actor, features, batch)
    expected = torch.stack([outputs[0, 0], outputs[0, 1], outputs[0, 3], outputs[1, 0], outputs[1, 3]])
    torch.testing.assert_close(rows, expected)
    assert agent.actor.slots.jobs(batch).tolist() == [[1.0, 2.0, 0.0], [5.0, 0.0, 0.0]]
