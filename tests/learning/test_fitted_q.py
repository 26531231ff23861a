"""Fitted Q evaluation on a decision process of known values, and fixed policies as tables."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from small_env import Observation
from tabular import ACTIONS, GAMMA, NEXT, PI, QUOTAS, REWARDS, START, STATES, UNIFORM, recorded, value_of, values_of

from greenbatch.errors import InputError
from greenbatch.learning.evaluation.fitted import SETTINGS, Fitted, fitted_q, usual_steps
from greenbatch.learning.evaluation.policies import certain, greedy, of_recorded, stochastic
from greenbatch.learning.networks.observations import Batch, as_batch
from greenbatch.learning.offpolicy.agent import make_agent
from greenbatch.learning.offpolicy.learner import Policy, Rates, Sample
from greenbatch.presets.shapes import Shapes

TRAP = ACTIONS
"""A row that may never be chosen."""
SHAPES = Shapes(
    queue=("a", "b", "c", "trap"), queue_rows=ACTIONS + 1, empty=(0.0,) * (ACTIONS + 1), state=tuple("vwxyz")
)


def seen(states: np.ndarray) -> Batch:
    """The decisions of some states: three rows, and one that is not allowed."""
    count, rows = len(states), ACTIONS + 1
    return as_batch(Observation(
        environment=np.arange(count), queue=np.tile(np.eye(rows, dtype=np.float32), (count, 1)),
        queue_offsets=rows * np.arange(count + 1), selectable=np.tile([True] * ACTIONS + [False], count),
        running=np.zeros((0, 0), np.float32), running_offsets=np.zeros(count + 1, np.int64),
        supply=np.zeros((count, 0, 0), np.float32), slot=np.zeros(count, np.int64),
        state=np.eye(STATES, dtype=np.float32)[states], delays=np.ones((count, 1), np.bool_),
        image=np.zeros((count, 2, 0, 0), np.uint8),
    ))  # fmt: skip


def transitions() -> tuple[np.ndarray, ...]:
    """States, actions, discounts and following states, as often as their probabilities say: no noise of sampling."""
    table = [
        (state, action, GAMMA, following)
        for state, action in np.ndindex(STATES, ACTIONS)
        for following in np.repeat(np.arange(STATES), QUOTAS[state, action])
    ]
    ends = [(state, action, 0.0, state) for state, action in np.ndindex(STATES, ACTIONS) for _ in range(4)]
    states, actions, discounts, following = map(np.array, zip(*table, *ends, strict=True))
    return states, actions, discounts.astype(np.float32), following


RECORD = transitions()


def sample(random: np.random.Generator) -> Sample:
    places = random.integers(len(RECORD[0]), size=256)
    states, actions, discounts, following = (part[places] for part in RECORD)
    rewards = REWARDS[states, actions].astype(np.float32)
    return Sample(seen(states), *map(torch.from_numpy, (actions, rewards, discounts)), seen(following))


def table_policy(policy: np.ndarray) -> Policy:
    """A policy by its table of probabilities."""
    logits = torch.from_numpy(np.log(np.maximum(np.pad(policy, ((0, 0), (0, 1))), 1e-300))).float()
    return lambda batch: logits[batch.state.argmax(1)].clamp(min=-1e9)


NETWORKS: dict[str, dict[str, Any]] = {
    "context": {"kind": "context", "width": 32, "context": 8}, "rare": {"kind": "rare", "hidden": 32},
}  # fmt: skip


FAST = Rates(critic=2e-3)


def evaluated(policy: Policy, *, kind: str = "context", steps: int = 200, **given: object) -> Fitted:
    """Its value over first observations in the proportions of `START`."""
    first = seen(np.repeat(np.arange(STATES), np.round(START * 10).astype(int)))
    agent = make_agent(NETWORKS[kind], SHAPES, SETTINGS.critics, 0)
    return fitted_q(policy, agent, sample, first, steps=steps, **given)  # type: ignore[arg-type]


BEST = np.eye(ACTIONS)[REWARDS.argmax(1)]
POLICIES = {"prefers": PI, "behavior": UNIFORM, "deterministic": BEST}


@cache
def played() -> np.ndarray:
    """Discounted returns of the behavior."""
    _, rewards, offsets = recorded(3_000, 0, UNIFORM)
    steps = np.arange(len(rewards)) - np.repeat(offsets[:-1], np.diff(offsets))
    return np.add.reduceat(rewards * GAMMA**steps, offsets[:-1])


@cache
def evaluated_once(name: str, kind: str) -> Fitted:
    """A policy; the behavior with its returns, and in larger steps."""
    more: dict[str, Any] = {"returns": played(), "rates": FAST} if name == "behavior" else {}
    return evaluated(table_policy(POLICIES[name]), kind=kind, **more)


@pytest.mark.parametrize(("name", "kind"), [("prefers", "rare"), ("behavior", "context"), ("deterministic", "rare")])
def test_it_finds_the_value_of_a_policy(name: str, kind: str) -> None:
    found = evaluated_once(name, kind)
    assert found.estimate.value == pytest.approx(value_of(POLICIES[name]), rel=0.02)
    assert found.estimate.low < found.estimate.value < found.estimate.high
    assert (found.estimate.episodes, found.estimate.effective, found.estimate.caution) == (10, 10.0, "")
    assert (found.gap is None) == (name != "behavior")


def test_the_values_are_apart() -> None:
    """Each is more than twice the tolerance from the others, so that a mix-up of policies fails."""
    values = sorted(map(value_of, POLICIES.values()))
    assert all(high / low > 1.05 for low, high in pairwise(values))
    assert NEXT.sum(2) == pytest.approx(0.8)


def test_diagnostics_tell_fitted_critics_from_untrained_ones() -> None:
    returns, fitted = played(), evaluated_once("behavior", "context")
    rough = evaluated(table_policy(UNIFORM), steps=1, returns=returns)
    assert fitted.gap is not None
    assert rough.gap is not None
    assert abs(fitted.gap) < 0.03 * returns.mean() < 0.3 * returns.mean() < abs(rough.gap)
    assert abs(fitted.drift) < 0.02 * fitted.estimate.value
    short = evaluated(table_policy(UNIFORM), steps=30, rates=FAST)
    assert short.drift > 0.03 * short.estimate.value
    assert short.estimate.caution.startswith("changed by")
    noise = residual_of_exact_values(UNIFORM)
    assert fitted.residual == pytest.approx(noise, rel=0.05)
    assert rough.explained < fitted.explained < 1.0


def test_values_that_begin_about_the_true_ones_need_fewer_steps() -> None:
    true = value_of(PI)
    near, far = (evaluated(table_policy(PI), steps=40, start=start) for start in ([true - 1, true + 1], None))
    assert abs(near.estimate.value - true) < 0.1 * true < abs(far.estimate.value - true)


def test_usual_steps_follow_the_discount_up_to_the_end_of_an_episode() -> None:
    settings = SETTINGS.model_copy(update={"tau": 0.05, "target_delay": 2})
    assert [usual_steps(gamma, 50, settings) for gamma in (0.9, 0.99, 1.0)] == [1200, 6000, 6000]
    assert usual_steps(0.99, 1000) == 3000


def residual_of_exact_values(policy: np.ndarray) -> float:
    """Root mean square of what the next state adds to Q: exact critics have it too."""
    states, actions, discounts, following = RECORD
    targets = REWARDS[states, actions] + discounts * values_of(policy)[following]
    exact = REWARDS + GAMMA * NEXT @ values_of(policy)
    return float(np.sqrt(np.mean((exact[states, actions] - targets) ** 2)))


def test_the_evaluated_actor_and_that_of_the_critics_stay_as_they_are() -> None:
    actor = make_agent({"kind": "rare"}, SHAPES, 1, 5).actor
    before = {name: value.clone() for name, value in actor.state_dict().items()}
    agent = make_agent({"kind": "rare"}, SHAPES, 2, 0)
    heads = {name: value.clone() for name, value in agent.actor.state_dict().items() if "encoder" not in name}
    fitted_q(stochastic(actor), agent, sample, seen(np.arange(STATES)), steps=5)
    assert all(torch.equal(value, before[name]) for name, value in actor.state_dict().items())
    assert all(torch.equal(value, agent.actor.state_dict()[name]) for name, value in heads.items())


def test_policies_are_tables_of_log_probabilities() -> None:
    actor, batch = make_agent({"kind": "context"}, SHAPES, 1, 5).actor, seen(np.arange(STATES))
    soft, hard = stochastic(actor)(batch), greedy(actor)(batch)
    assert soft.exp().sum(1).tolist() == pytest.approx([1.0] * STATES)
    assert soft[:, TRAP].exp().tolist() == [0.0] * STATES
    assert torch.equal(hard.argmax(1), soft.argmax(1))
    assert hard.exp().sum(1).tolist() == [1.0] * STATES
    rule = certain(lambda seen: torch.full((STATES,), 2))
    actions = torch.tensor([2, 2, 0, 1, 2])
    assert of_recorded(rule, batch, actions).exp().tolist() == [1.0, 1.0, 0.0, 0.0, 1.0]
    assert torch.equal(of_recorded(stochastic(actor), batch, actions), soft[range(STATES), actions])


@pytest.mark.parametrize(("given", "said"), [
    ({"steps": 0}, "steps: is 0 (give 1 or more)"),
    ({"settings": SETTINGS.model_copy(update={"loss": "clone"})}, "settings: have the loss clone and 0 steps of warm"),
    ({"settings": SETTINGS.model_copy(update={"loss": "soft"})}, "settings: have the loss soft and 0 steps of warm-up"),
    ({"settings": SETTINGS.model_copy(update={"warm_up_steps": 3})}, "settings: have the loss binary and 3 steps of w"),
    ({"returns": []}, "returns: are empty or not finite (give one number per recorded episode)"),
    ({"returns": [np.nan]}, "returns: are empty or not finite (give one number per recorded episode)"),
])  # fmt: skip
def test_what_cannot_be_evaluated_is_refused(given: dict, said: str) -> None:
    with pytest.raises(InputError) as refused:
        evaluated(table_policy(PI), **given)
    assert str(refused.value).startswith(said)


def test_no_episodes_and_diverging_critics_are_refused() -> None:
    agent = make_agent({"kind": "context"}, SHAPES, SETTINGS.critics, 0)
    with pytest.raises(InputError, match=r"first: has no episodes \(give the first observation of each"):
        fitted_q(table_policy(PI), agent, sample, seen(np.zeros(0, np.int64)), steps=1)
    for parameter in agent.critics.parameters():
        torch.nn.init.constant_(parameter, torch.nan)
    with pytest.raises(InputError, match="critics: are not finite: the critics diverged"):
        fitted_q(table_policy(PI), agent, sample, seen(np.arange(STATES)), steps=1)
