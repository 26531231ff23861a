"""Networks with a memory: sequences, episode edges, gradients, training, and what only a memory can learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from off_policy import off_policy_plan
from small_env import Observation, SmallEnv
from tiny import resumed_as_whole, tiny_plan
from torch import Tensor

from greenbatch.errors import InputError
from greenbatch.learning.networks import build
from greenbatch.learning.networks.observations import Batch
from greenbatch.learning.networks.recurrent import Remembering
from greenbatch.learning.offpolicy.loop import train as train_off_policy
from greenbatch.learning.training.advantages import gae, normalized
from greenbatch.learning.training.loads import loads
from greenbatch.learning.training.loop import train
from greenbatch.learning.training.ppo import Learner, UpdateSettings, likelihood
from greenbatch.learning.training.rollout import Trajectories, collect, play
from greenbatch.presets.preset import preset
from greenbatch.presets.shapes import Shapes
from greenbatch.presets.training import read_training

SHAPES = Shapes(
    queue=("wait", "size", "fits"), queue_rows=9, empty=(0.0, 1.0, 0.0), state=("free", "load"), image=(3, 20)
)
UNITS = 12
SPEC = {"kind": "recurrent", "hidden": UNITS}
STARTS = list(range(17))


def nets_of(seed: int = 0, spec: dict[str, Any] | None = None) -> tuple[Any, Any]:
    """Actor and critic with large weights, so that what is remembered matters."""
    nets = build(SPEC if spec is None else spec, SHAPES, seed)
    with torch.no_grad():
        for net in nets:
            for name, parameter in net.named_parameters():
                if "lstm" in name:
                    parameter.mul_(4.0)
    return nets


def rollout(environments: int = 17, nets: tuple[Any, Any] | None = None) -> Trajectories:
    actor, critic = nets or nets_of()
    env = SmallEnv(SHAPES, environments)
    return collect(env, STARTS, actor, critic, torch.Generator().manual_seed(0))


def in_sequences(played: Trajectories, chosen: Sequence[int]) -> tuple[Batch, Tensor]:
    """Whole trajectories in an order, as a batch; and their decisions."""
    offsets = played.offsets
    parts = [torch.arange(offsets[k], offsets[k + 1]) for k in chosen]
    decisions = torch.cat(parts)
    sequences = torch.tensor([0, *np.cumsum([len(part) for part in parts])])
    return played.decisions.take(decisions, sequences), decisions


def one_by_one(body: Remembering, batch: Batch) -> tuple[Tensor, Tensor]:
    """Features and what is remembered by a plain LSTM, sequence by sequence and decision by decision."""
    hidden = body.hidden(body.prepare(batch)[0])
    assert batch.sequences is not None
    edges, features, memory = batch.sequences.tolist(), [], []
    for number, (begin, end) in enumerate(pairwise(edges)):
        known = None
        if batch.memory is not None:
            known = tuple(part.reshape(1, 1, -1) for part in batch.memory[number].chunk(2))
        for row in hidden[begin:end]:
            output, known = body.lstm(row.reshape(1, 1, -1), known)
            features.append(row + output[0, 0])
        memory.append(torch.cat([part.flatten() for part in known]))
    return torch.stack(features), torch.stack(memory)


def padded(body: Remembering, batch: Batch) -> Tensor:
    """Features by one LSTM over a padded table."""
    hidden, sequences = body.hidden(body.prepare(batch)[0]), batch.sequences
    lengths = sequences.diff()
    table = torch.nn.utils.rnn.pad_sequence(torch.split(hidden, lengths.tolist()))
    known = (None, None) if batch.memory is None else tuple(part.unsqueeze(0) for part in batch.memory.chunk(2, 1))
    output, _ = body.lstm(table, None if batch.memory is None else known)
    return hidden + torch.cat([output[:length, k] for k, length in enumerate(lengths.tolist())])


@settings(deadline=None, max_examples=30)
@given(some.lists(some.integers(0, 16), min_size=1, max_size=12), some.booleans())
def test_packed_sequences_are_padded_ones_and_their_gradients_those_of_a_plain_lstm(
    chosen: list[int], remembers: bool
) -> None:  # fmt: skip
    body = nets_of()[0].body.double()
    batch, _ = in_sequences(PLAYED, chosen)
    batch = replace(batch, queue=batch.queue.double(), state=batch.state.double())
    if remembers:
        noise = torch.Generator().manual_seed(0)
        batch = replace(batch, memory=torch.randn(len(chosen), 2 * UNITS, dtype=torch.float64, generator=noise))
    weights = torch.linspace(-1, 1, len(batch.state) * UNITS, dtype=torch.float64).reshape(-1, UNITS)
    results = []
    for compute in (body, lambda given: one_by_one(body, given)):
        body.zero_grad()
        known = None if batch.memory is None else batch.memory.clone().requires_grad_()
        features, memory = compute(replace(batch, memory=known))
        ((features * weights).sum() + memory.square().sum()).backward()
        gradients = [parameter.grad.clone() for parameter in body.parameters()]
        results.append([features, memory, *gradients, *([] if known is None else [known.grad])])
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(results[0][0], padded(body, batch))


PLAYED = rollout()


@pytest.mark.parametrize("environments", [17, 5])
def test_a_rollout_is_what_its_trajectories_say(environments: int) -> None:
    """Decisions one at a time with what is remembered, and later whole trajectories, have the same probabilities."""
    nets = nets_of()
    played = rollout(environments, nets)
    batch, _ = in_sequences(played, range(17))
    new, _ = likelihood(nets[0], batch, played.rows, played.delays)
    torch.testing.assert_close(new.detach(), played.log_probabilities, atol=1e-5, rtol=0)
    np.testing.assert_allclose(played.values, nets[1](batch).detach(), atol=1e-5)
    forgetful, _ = likelihood(nets[0], played.decisions.batch(), played.rows, played.delays)
    first = torch.from_numpy(played.offsets[:-1])
    torch.testing.assert_close(forgetful[first].detach(), played.log_probabilities[first], atol=1e-5, rtol=0)
    assert (forgetful - new).abs().max() > 1e-3


def test_arg_max_does_not_depend_on_how_many_are_played_at_once() -> None:
    actor, _ = nets_of()
    results = [play(SmallEnv(SHAPES, count), STARTS, actor)[0] for count in (1, 4, 17)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@settings(deadline=None, max_examples=30)
@given(some.permutations(range(17)), some.integers(1, 17))
def test_nothing_is_remembered_of_other_trajectories(order: list[int], kept: int) -> None:
    """Whatever others there are, and wherever it stands, a trajectory has the same probabilities and values."""
    actor, critic = NETS
    batch, decisions = in_sequences(PLAYED, order[:kept])
    new, _ = likelihood(actor, batch, PLAYED.rows[decisions], PLAYED.delays[decisions])
    torch.testing.assert_close(new.detach(), PLAYED.log_probabilities[decisions], atol=1e-5, rtol=0)
    np.testing.assert_allclose(critic(batch).detach(), PLAYED.values[decisions.numpy()], atol=1e-5)


NETS = nets_of()


def test_a_trajectory_goes_on_from_what_is_remembered() -> None:
    body = NETS[0].body
    whole, decisions = in_sequences(PLAYED, [2])
    features, end = body(whole)
    first, memory = body(PLAYED.decisions.take(decisions[:1], torch.tensor([0, 1])))
    rest = replace(PLAYED.decisions.take(decisions[1:], torch.tensor([0, len(decisions) - 1])), memory=memory)
    after, same_end = body(rest)
    torch.testing.assert_close(torch.cat([first, after]), features)
    torch.testing.assert_close(same_end, end)


@settings(deadline=None)
@given(some.lists(some.integers(0, 9), min_size=1, max_size=40), some.integers(0, 60), some.booleans())
def test_loads_are_whole_trajectories(lengths: list[int], size: int, shuffled: bool) -> None:
    offsets = torch.tensor([0, *np.cumsum(lengths)])
    queued = torch.ones(sum(lengths), dtype=torch.int64)
    made = loads(queued, size, offsets, torch.Generator().manual_seed(3) if shuffled else None)
    expected = {tuple(range(a, b)) for a, b in zip(offsets.tolist(), offsets[1:].tolist(), strict=False) if b > a}
    found = []
    for load in made:
        parts = torch.split(load.decisions, load.sequences.diff().tolist())
        assert (load.sequences.diff().diff() <= 0).all()
        found += [tuple(part.tolist()) for part in parts]
        assert not size or len(load.decisions) - len(parts[0]) < size + 9
    assert len(found) == len(expected)
    assert set(found) == expected
    if size == 0:
        assert len(made) == (sum(lengths) > 0)


class Recall:
    """The first state names a row; after three decisions without any hint, choosing that row pays 1."""

    LENGTH = 4
    SHAPES = Shapes(queue=("left", "right"), queue_rows=2, empty=(0.0, 0.0), state=("left", "right", "last"))

    def __init__(self, environments: int) -> None:
        self.environments = environments
        self.values, self.now_s = np.zeros((environments, 1)), np.zeros(environments)
        self._wanted = np.zeros(0, np.int64)
        self._step = 0

    def reset(self, starts: Sequence[int]) -> Observation:
        self.values[:] = 0.0
        self._wanted, self._step = np.asarray(starts) % 2, 0
        return self._show()

    def step(self, actions: np.ndarray) -> tuple[Observation, np.ndarray, np.ndarray]:
        self._step += 1
        ended = self._step == self.LENGTH
        rewards = (actions[:, 0] == self._wanted).astype(np.float64) * ended
        self.values[: len(rewards), 0] += rewards
        return self._show(), rewards, np.full(len(rewards), ended)

    def _show(self) -> Observation:
        count = len(self._wanted) if self._step < self.LENGTH else 0
        state = np.zeros((count, 3), np.float32)
        state[:, 2] = self._step == self.LENGTH - 1
        if self._step == 0:
            state[np.arange(count), self._wanted] = 1.0
        return Observation(
            environment=np.arange(count), queue=np.tile(np.eye(2, dtype=np.float32), (count, 1)),
            queue_offsets=2 * np.arange(count + 1), selectable=np.ones(2 * count, bool),
            running=np.zeros((0, 0), np.float32), running_offsets=np.zeros(count + 1, np.int64),
            supply=np.zeros((count, 0, 0), np.float32), slot=np.zeros(count, np.int64), state=state,
            delays=np.ones((count, 1), bool), image=np.zeros((count, 2, 0, 0), np.uint8),
        )  # fmt: skip


def learned(spec: dict[str, Any]) -> float:
    """Mean return of greedy play after a training by PPO."""
    actor, critic = build(spec, Recall.SHAPES, 0)
    learner = Learner(actor, critic, UpdateSettings(passes=4, minibatch=128, actor_rate=1e-2, critic_rate=1e-2))
    env, generator = Recall(64), torch.Generator().manual_seed(0)
    for _ in range(12):
        played = collect(env, range(64), actor, critic, generator)
        advantages = gae(played.rewards, played.values, played.offsets, 1.0, 0.95)
        learner.update(played, normalized(advantages), advantages + played.values, generator)
    return float(play(env, range(64), actor)[0].mean())


def test_only_a_memory_can_learn_what_has_to_be_remembered() -> None:
    assert learned({"kind": "recurrent", "hidden": 16}) == 1.0
    assert learned({"kind": "context", "width": 16}) <= 0.5


SMALL = {"network": {"kind": "recurrent", "hidden": 8}, "training.minibatch": 40}


def test_an_interrupted_training_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    plan = tiny_plan(tmp_path, overrides=SMALL)
    assert "actor/body.lstm.weight_hh_l0" in resumed_as_whole(plan, tmp_path, train)


def test_two_threads_learn_what_one_learns() -> None:
    """The critic is updated beside the actor and reads the same sequences."""
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        nets = nets_of()
        played = rollout(nets=nets)
        learner = Learner(*nets, UpdateSettings(passes=3, minibatch=15))
        learner.update(played, normalized(played.rewards), played.rewards, torch.Generator().manual_seed(0))
        found.append(torch.cat([parameter.flatten() for net in nets for parameter in net.parameters()]))
    torch.set_num_threads(1)
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=0)


def test_a_replay_buffer_cannot_hold_what_is_remembered(tmp_path: Path) -> None:
    plan = off_policy_plan(tmp_path, overrides={"network": SMALL["network"]})
    with pytest.raises(InputError, match="recurrent remembers earlier decisions") as caught:
        train_off_policy(plan, tmp_path / "run")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "shapes", "says"),
    [
        ({"sees": "all"}, SHAPES, "network.sees: is 'all' "),
        ({"sees": "image"}, replace(SHAPES, image=(0, 0)), "there is no image to see"),
        ({}, replace(SHAPES, delays=2), "recurrent chooses no delay"),
        ({}, replace(SHAPES, queue=(), state=(), image=(0, 0)), "sees neither an image nor jobs"),
        ({"hidden": 0}, SHAPES, "network.hidden: 0 does not fit"),
        ({"memory": 8}, SHAPES, "recurrent has no such key"),
    ],
)
def test_bad_networks_are_refused(spec: dict[str, Any], shapes: Shapes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        build({"kind": "recurrent", **spec}, shapes, 0)


def test_the_shipped_preset_has_the_published_numbers() -> None:
    """Table A.3, and what it sees is what RARE sees."""
    made, rare = preset("cocorl"), preset("rare")
    training = read_training(made.training)
    assert made.network == {"kind": "recurrent", "hidden": 512, "layers": 2}
    assert (training.clip, training.actor_lr, training.critic_lr) == (0.1, 1e-3, 1e-3)
    assert (training.gamma, training.gae_lambda, training.windows, training.episode_s) == (0.99, 0.93, 100, 200)
    assert training.off_policy is None
    limit, control = training.constraints["accrued_cost"], training.controller
    assert (limit.at_most, limit.factor) == (2000, 0.1)
    assert (control.proportional, control.integral, control.derivative) == (2, 1, 1)
    assert (control.smoothing, control.cost_smoothing, control.delay) == (0.95, 0.9, 15)
    assert (made.observation, made.action, made.reward) == (rare.observation, rare.action, rare.reward)
