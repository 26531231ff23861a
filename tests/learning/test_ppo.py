"""PPO's losses and updates against closed forms and against stable-baselines3 on the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_env import GAS, SmallEnv
from torch import Tensor, nn

from greenbatch.learning.networks import build
from greenbatch.learning.networks.layers import Actor, Critic
from greenbatch.learning.networks.observations import Batch, Decisions
from greenbatch.learning.training.advantages import gae, normalized
from greenbatch.learning.training.loads import loads
from greenbatch.learning.training.ppo import Learner, Report, UpdateSettings, likelihood, policy_loss
from greenbatch.learning.training.rollout import Trajectories, collect


def test_the_clipped_loss_is_flat_where_it_should_be() -> None:
    ratio = torch.tensor([1.5, 1.5, 0.5, 0.5, 1.1, 0.9], dtype=torch.float64)
    new = ratio.log().requires_grad_()
    advantages = torch.tensor([2.0, -2.0, 2.0, -2.0, 2.0, -2.0], dtype=torch.float64)
    losses = policy_loss(new, torch.zeros(6, dtype=torch.float64), advantages, 0.2)
    torch.testing.assert_close(losses, torch.tensor([-2.4, 3.0, -1.0, 1.6, -2.2, 1.8], dtype=torch.float64))
    losses.sum().backward()
    # d(-r A)/d(log r) = -r A where the clipped part does not win
    expected = torch.tensor([0.0, 3.0, -1.0, 0.0, -2.2, 1.8], dtype=torch.float64)
    torch.testing.assert_close(new.grad, expected)


def test_both_parts_enter_the_likelihood() -> None:
    """Two decisions by hand: rows' softmax over allowed rows, times the delays' softmax over allowed delays."""

    class Fixed(Actor):
        def encode(self, batch: Batch) -> tuple[Tensor, tuple[Tensor, ...]]:
            return torch.tensor([1.0, 2.0, 3.0, 0.5, 0.5]), ()

        def delay_logits(self, batch: Batch, encoded: tuple[Tensor, ...], chosen: Tensor) -> Tensor:
            assert chosen.tolist() == [2, 3]
            return torch.tensor([[0.0, 1.0, 5.0], [2.0, 2.0, 2.0]])

    decisions = Decisions(
        queue=torch.zeros(5, 1),
        queue_offsets=torch.tensor([0, 3, 5]),
        selectable=torch.tensor([True, False, True, True, True]),
        running=torch.zeros(0, 0),
        running_offsets=torch.zeros(3, dtype=torch.int64),
        first=torch.zeros(2, 0),
        hours=torch.zeros(0, 0),
        hour=torch.zeros(2, 0, dtype=torch.int64),
        state=torch.zeros(2, 0),
        delays=torch.tensor([[True, True, False], [True, True, True]]),
    )
    together, entropy = likelihood(Fixed(), decisions.batch(), torch.tensor([2, 0]), torch.tensor([1, 0]))
    row, delay = 1 / (1 + np.exp(-2.0)), 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(together, [np.log(row * delay), np.log(1 / 6)], rtol=1e-6)

    def binary(p: float) -> float:
        return -p * np.log(p) - (1 - p) * np.log(1 - p)

    np.testing.assert_allclose(entropy, [binary(row) + binary(delay), np.log(6)], rtol=1e-6)


class _LinearActor(Actor):
    """Two rows per decision, their logits linear in the state."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def encode(self, batch: Batch) -> tuple[Tensor, tuple[Tensor, ...]]:
        return self.layer(batch.state).flatten(), ()


class _LinearCritic(Critic):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, batch: Batch) -> Tensor:
        return self.layer(batch.state).squeeze(1)


def _two_rows(states: np.ndarray) -> Decisions:
    count = len(states)
    return Decisions(
        queue=torch.zeros(2 * count, 1),
        queue_offsets=2 * torch.arange(count + 1),
        selectable=torch.ones(2 * count, dtype=torch.bool),
        running=torch.zeros(0, 0),
        running_offsets=torch.zeros(count + 1, dtype=torch.int64),
        first=torch.zeros(count, 0),
        hours=torch.zeros(0, 0),
        hour=torch.zeros(count, 0, dtype=torch.int64),
        state=torch.from_numpy(states),
        delays=torch.ones(count, 1, dtype=torch.bool),
    )


def _like_sb3(passes: int, entropy: float) -> tuple[dict[str, float], dict[str, Tensor], Report, dict[str, Tensor]]:
    """One update of sb3's PPO and of ours: same weights, states, actions, advantages, targets; full batches."""
    import stable_baselines3 as sb3
    from gymnasium.spaces import Box, Discrete
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import Logger

    count, g = 128, np.random.default_rng(0)
    env = make_vec_env("CartPole-v1", n_envs=1)
    model = sb3.PPO(
        "MlpPolicy", env, n_steps=count, batch_size=count, n_epochs=passes, learning_rate=0.01, clip_range=0.2,
        ent_coef=entropy, vf_coef=1.0, max_grad_norm=1e9, normalize_advantage=False, seed=0, device="cpu",
        policy_kwargs={"net_arch": [], "optimizer_kwargs": {"eps": 1e-6}},
    )  # fmt: skip
    assert isinstance(model.action_space, Discrete)
    assert isinstance(model.observation_space, Box)
    model.set_logger(Logger(None, []))
    actor, critic = _LinearActor(), _LinearCritic()
    actor.layer.load_state_dict(model.policy.action_net.state_dict())
    critic.layer.load_state_dict(model.policy.value_net.state_dict())

    states = g.normal(size=(count, 4)).astype(np.float32)
    actions, rewards = g.integers(0, 2, count), g.normal(size=count)
    with torch.no_grad():
        values, scores, _ = model.policy.evaluate_actions(torch.from_numpy(states), torch.from_numpy(actions))
    old = scores + 0.3 * torch.from_numpy(g.normal(size=count).astype(np.float32))
    buffer = model.rollout_buffer
    buffer.reset()
    for t in range(count):
        buffer.add(states[[t]], actions[[t]], rewards[[t]], np.array([float(t == 0)]), values[t], old[t])
    buffer.compute_returns_and_advantage(torch.zeros(1), np.array([True]))
    advantages, targets = buffer.advantages[:, 0].copy(), buffer.returns[:, 0].copy()
    model.train()

    empty = np.zeros(count)
    played = Trajectories(
        _two_rows(states), np.array([0, count]), empty, torch.from_numpy(actions),
        torch.zeros(count, dtype=torch.int64), old, empty, empty, empty[:1], np.zeros((1, 1)), np.zeros((count, 0)),
    )  # fmt: skip
    settings = UpdateSettings(
        passes=passes, minibatch=0, clip=0.2, entropy=entropy, max_gradient_norm=None, actor_rate=0.01, critic_rate=0.01
    )
    report = Learner(actor, critic, settings).update(played, advantages, targets, torch.Generator())
    theirs = {**_named("actor", model.policy.action_net), **_named("critic", model.policy.value_net)}
    return (
        model.logger.name_to_value,
        theirs,
        report,
        {**_named("actor", actor.layer), **_named("critic", critic.layer)},
    )


def _named(part: str, layer: nn.Module) -> dict[str, Tensor]:
    return {f"{part}.{name}": value.detach() for name, value in layer.named_parameters()}


@pytest.mark.parametrize(("passes", "entropy"), [(1, 0.0), (6, 0.0), (6, 0.05)])
def test_an_update_is_that_of_stable_baselines3(passes: int, entropy: float) -> None:
    logged, theirs, report, mine = _like_sb3(passes, entropy)
    assert report.policy_loss == pytest.approx(logged["train/policy_gradient_loss"], rel=1e-4, abs=1e-6)
    assert report.value_loss == pytest.approx(logged["train/value_loss"], rel=1e-4)
    assert report.entropy == pytest.approx(-logged["train/entropy_loss"], rel=1e-5)
    assert report.clipped == pytest.approx(logged["train/clip_fraction"])
    assert report.clipped > 0
    for name, value in theirs.items():
        torch.testing.assert_close(mine[name], value, atol=2e-6, rtol=1e-5)


def _updated(settings: UpdateSettings, *, threads: int = 1, critic: bool = True) -> tuple[Report, dict[str, Tensor]]:
    nets = build({"kind": "gas-marl"}, GAS, 0)
    played = collect(SmallEnv(GAS, 20), range(20), *nets, torch.Generator().manual_seed(0))
    advantages = gae(played.rewards, played.values, played.offsets)
    learner = Learner(nets[0], nets[1] if critic else None, settings)
    targets = advantages + played.values if critic else None
    with _threads(threads):
        report = learner.update(played, normalized(advantages), targets, torch.Generator().manual_seed(1))
    return report, {f"{n}.{name}": value for n, net in enumerate(nets) for name, value in net.state_dict().items()}


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        assert torch.get_num_threads() == count
        torch.set_num_threads(before)


def _moved(weights: dict[str, Tensor], net: int) -> bool:
    first = [part.state_dict() for part in build({"kind": "gas-marl"}, GAS, 0)][net]
    return any(not value.equal(weights[f"{net}.{name}"]) for name, value in first.items())


def test_two_threads_and_one_learn_the_same_bytes() -> None:
    settings = UpdateSettings(passes=3, minibatch=16)
    (one, first), (two, second) = (_updated(settings, threads=threads) for threads in (1, 2))
    assert one == two
    assert all(first[name].equal(value) for name, value in second.items())


def test_the_actor_stops_at_its_divergence_and_the_critic_continues() -> None:
    free = UpdateSettings(passes=20, minibatch=0, actor_rate=0.01)
    stopped, weights = _updated(replace(free, target_kl=0.01))
    assert 1 < stopped.passes < 20
    assert stopped.kl > 0.015
    before, _ = _updated(replace(free, passes=stopped.passes - 1, critic_passes=20))
    assert before.kl <= 0.015
    whole, others = _updated(free)
    assert whole.passes == 20
    assert stopped.value_loss == whole.value_loss
    assert all(weights[name].equal(value) for name, value in others.items() if name.startswith("1."))


def test_passes_of_actor_and_critic_are_their_own() -> None:
    report, weights = _updated(UpdateSettings(passes=2, critic_passes=5, minibatch=0))
    assert (report.passes, report.minibatches) == (2, 5)
    _, alone = _updated(UpdateSettings(passes=2, minibatch=0), critic=False)
    assert all(weights[name].equal(value) for name, value in alone.items() if name.startswith("0."))
    assert not _moved(alone, 1)
    report, frozen = _updated(UpdateSettings(passes=0, critic_passes=2, minibatch=0))
    assert report.passes == 0
    assert not _moved(frozen, 0)
    assert _moved(frozen, 1)


def test_gradients_are_clipped_by_their_norm() -> None:
    """With plain gradients out of the way: Adam's first step does not depend on scale, its epsilon does."""
    settings = UpdateSettings(passes=1, minibatch=0, adam_epsilon=1.0, actor_rate=1.0, critic_rate=1.0)
    report, free = _updated(replace(settings, max_gradient_norm=None))
    same, unclipped = _updated(replace(settings, max_gradient_norm=report.gradient_norm * 1.01))
    assert same.gradient_norm == report.gradient_norm
    assert all(free[name].equal(value) for name, value in unclipped.items() if name.startswith("0."))
    small, clipped = _updated(replace(settings, max_gradient_norm=1e-6))
    assert small.gradient_norm == report.gradient_norm
    for number, net in enumerate(build({"kind": "gas-marl"}, GAS, 0)):  # the actor, the critic
        steps = [(clipped[f"{number}.{name}"] - value).square().sum() for name, value in net.state_dict().items()]
        assert float(sum(steps)) ** 0.5 == pytest.approx(1e-6, rel=0.1)


def test_an_entropy_bonus_raises_entropy() -> None:
    settings = UpdateSettings(passes=30, minibatch=0, actor_rate=0.003)
    entropies = []
    for weight in (0.0, 1.0):
        nets = build({"kind": "gas-marl"}, GAS, 0)
        played = collect(SmallEnv(GAS, 20), range(20), *nets, torch.Generator().manual_seed(0))
        learner = Learner(nets[0], None, replace(settings, entropy=weight))
        learner.update(played, normalized(played.rewards), None, torch.Generator())
        _, entropy = likelihood(nets[0], played.decisions.batch(), played.rows, played.delays)
        entropies.append(float(entropy.detach().mean()))
    assert entropies[1] > entropies[0] + 0.1


def test_minibatches_are_a_shuffle_with_long_queues_first() -> None:
    queued = torch.randint(1, 9, (53,), generator=torch.Generator().manual_seed(0))
    one, same, other = (
        [load.decisions for load in loads(queued, 10, generator=torch.Generator().manual_seed(seed))]
        for seed in (5, 5, 6)
    )
    assert [len(part) for part in one] == [10] * 5 + [3]
    assert torch.cat(one).sort().values.equal(torch.arange(53))
    assert torch.cat(one).equal(torch.cat(same))
    assert not torch.cat(one).equal(torch.cat(other))
    assert all((queued[part].diff() <= 0).all() for part in one)
    assert [len(load.decisions) for load in loads(queued, 0, generator=torch.Generator())] == [53]
    assert torch.cat([load.decisions for load in loads(queued, 20)]).equal(queued.argsort(descending=True, stable=True))
