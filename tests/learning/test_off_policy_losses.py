"""Losses of the off-policy trainer: closed forms on tiny tables, and plain NumPy loops over decisions and actions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.learning.offpolicy import losses

LOG2 = math.log(2.0)


def tables(seed: int, decisions: int = 5, actions: int = 4) -> dict[str, torch.Tensor]:
    """Random logits, masks, values of two critics, and chosen actions that are allowed."""
    random = np.random.default_rng(seed)
    mask = random.random((decisions, actions)) < 0.6
    mask[np.arange(decisions), random.integers(actions, size=decisions)] = True
    chosen = np.array([random.choice(np.flatnonzero(row)) for row in mask])
    return {
        "logits": torch.from_numpy(random.normal(size=(decisions, actions))),
        "mask": torch.from_numpy(mask),
        "values": torch.from_numpy(random.normal(size=(2, decisions, actions))),
        "actions": torch.from_numpy(chosen),
        "rewards": torch.from_numpy(random.normal(size=decisions)),
        "discounts": torch.from_numpy(np.where(random.random(decisions) < 0.3, 0.0, 0.9)),
    }


class Plain:
    """The same quantities by loops over decisions and their allowed actions, in plain Python."""

    def __init__(self, made: dict[str, torch.Tensor]) -> None:
        self.values = made["values"].numpy()
        self.chosen = made["actions"].numpy()
        self.allowed = [np.flatnonzero(row) for row in made["mask"].numpy()]
        self.pi = []
        for row, allowed in zip(made["logits"].numpy(), self.allowed, strict=True):
            weights = {int(a): math.exp(row[a]) for a in allowed}
            self.pi.append({a: weight / sum(weights.values()) for a, weight in weights.items()})

    def lowest(self, i: int, a: int) -> float:
        return float(min(critic[i, a] for critic in self.values))

    def value(self, i: int, alpha: float = 0.0) -> float:
        return sum(p * (self.lowest(i, a) - alpha * math.log(p)) for a, p in self.pi[i].items())

    def advantage(self, i: int) -> float:
        return self.lowest(i, self.chosen[i]) - self.value(i)

    def copying(self, weight) -> float:
        count = len(self.pi)
        return -sum(weight(self.advantage(i)) * math.log(self.pi[i][self.chosen[i]]) for i in range(count)) / count

    def soft(self, alpha: float) -> float:
        count = len(self.pi)
        return sum(
            p * (alpha * math.log(p) - self.lowest(i, a)) for i in range(count) for a, p in self.pi[i].items()
        ) / count  # fmt: skip


FILTERS = {
    "clone": lambda advantage: 1.0,
    "binary": lambda advantage: float(advantage > 0),
    "exponential": lambda advantage: min(math.exp(advantage / 0.7), 1.5),
}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_every_loss_equals_loops_over_decisions_and_actions(seed):
    made = tables(seed)
    plain = Plain(made)
    log_pi = losses.log_policy(made["logits"], made["mask"])
    lowest = made["values"].amin(0)
    advantage = losses.advantages(lowest, log_pi, made["actions"])
    np.testing.assert_allclose(advantage, [plain.advantage(i) for i in range(5)], rtol=1e-12, atol=1e-12)
    for name, weight in FILTERS.items():
        weights = losses.WEIGHTS[name](advantage, 0.7, 1.5)
        loss = losses.copying(log_pi, made["actions"], weights)
        assert float(loss) == pytest.approx(plain.copying(weight), rel=1e-12, abs=1e-12)
    assert float(losses.soft(log_pi, lowest, 0.3)) == pytest.approx(plain.soft(0.3), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(
        losses.soft_value(lowest, log_pi, 0.3), [plain.value(i, 0.3) for i in range(5)], rtol=1e-12, atol=1e-12
    )
    errors = [(critic[i, a] - 0.25) ** 2 for critic in plain.values for i, a in enumerate(plain.chosen)]
    targets = torch.full((5,), 0.25, dtype=torch.float64)
    found = losses.squared_errors(made["values"], made["actions"], targets)
    assert float(found) == pytest.approx(np.mean(errors), rel=1e-12)


def one_state(values: list[float], logits: list[float], mask: list[bool] | None = None):
    """One decision: its values and log-policy."""
    allowed = torch.tensor([mask or [True] * len(values)])
    return torch.tensor([values]).double(), losses.log_policy(torch.tensor([logits]).double(), allowed)


def test_a_uniform_policy_over_two_actions_has_the_mean_as_its_value():
    values, log_pi = one_state([3.0, 1.0], [0.0, 0.0])
    assert float(losses.soft_value(values, log_pi)) == 2.0
    assert float(losses.soft_value(values, log_pi, 0.5)) == pytest.approx(2.0 + 0.5 * LOG2)
    assert float(losses.advantages(values, log_pi, torch.tensor([0]))) == 1.0
    assert float(losses.advantages(values, log_pi, torch.tensor([1]))) == -1.0


def test_actions_that_may_not_be_chosen_have_no_effect_whatever_their_value():
    values, log_pi = one_state([3.0, 1e6, 1.0], [0.0, 50.0, 0.0], [True, False, True])
    assert log_pi.exp().tolist() == [[0.5, 0.0, 0.5]]
    assert float(losses.soft_value(values, log_pi, 0.5)) == pytest.approx(2.0 + 0.5 * LOG2)
    assert float(losses.soft(log_pi, values, 0.5)) == pytest.approx(-2.0 - 0.5 * LOG2)
    assert float(losses.entropy_aim(torch.tensor([[True, False, True]]), 0.98)) == pytest.approx(0.98 * LOG2)


def test_the_minimum_of_the_soft_loss_is_the_boltzmann_policy():
    """pi proportional to exp(Q / alpha) minimizes it (Haarnoja et al. 2018); the minimum is -alpha log sum exp."""
    values, alpha = torch.tensor([[1.0, -0.5, 0.2, 7.0]]).double(), 0.4
    mask = torch.tensor([[True, True, True, False]])
    logits = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=200, tolerance_grad=1e-12, tolerance_change=1e-15,
                                  line_search_fn="strong_wolfe")  # fmt: skip

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = losses.soft(losses.log_policy(logits, mask), values, alpha)
        loss.backward()
        return loss

    optimizer.step(closure)
    best = torch.softmax(values[:, :3] / alpha, 1)
    np.testing.assert_allclose(losses.log_policy(logits, mask).exp()[:, :3].detach(), best, atol=1e-6)
    assert float(closure().detach()) == pytest.approx(
        -alpha * math.log(sum(math.exp(v / alpha) for v in (1.0, -0.5, 0.2)))
    )
    assert float(logits.grad[0, 3]) == 0.0


@pytest.mark.parametrize(("loss", "expected"), [
    ("clone", [1 / 3, 2 / 3]),  # shares of the data
    ("binary", [0.0, 1.0]),  # only the action above the mean of the policy
    ("exponential", [1 / (1 + 2 * math.exp(2.0)), 2 * math.exp(2.0) / (1 + 2 * math.exp(2.0))]),
])  # fmt: skip
def test_copying_ends_at_the_weighted_shares_of_the_data(loss, expected):
    """Action 1 is twice as frequent as action 0; Q(1) - Q(0) is 2, so the ratio of exp(A) is exp(2)."""
    actions, values = torch.tensor([0, 1, 1]), torch.tensor([[0.0, 2.0]] * 3).double()
    mask = torch.ones(3, 2, dtype=torch.bool)
    logits = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([logits], lr=4.0)
    for _ in range(100):
        log_pi = losses.log_policy(logits.expand(3, 2), mask)
        weights = losses.WEIGHTS[loss](losses.advantages(values, log_pi.detach(), actions), 1.0, 1e9)
        optimizer.zero_grad()
        losses.copying(log_pi, actions, weights).backward()
        optimizer.step()
    np.testing.assert_allclose(torch.softmax(logits[0], 0).detach(), expected, atol=5e-3)


def test_the_temperature_rises_while_the_entropy_is_below_the_aim():
    mask = torch.ones(1, 2, dtype=torch.bool)
    for logits, sign in (([5.0, 0.0], 1), ([0.0, 0.0], -1)):
        log_temperature = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
        log_pi = losses.log_policy(torch.tensor([logits]).double(), mask)
        losses.temperature_loss(log_temperature, log_pi, losses.entropy_aim(mask, 0.5)).backward()
        entropy = -sum(p * math.log(p) for p in np.exp(log_pi[0].numpy()))
        assert float(log_temperature.grad) == pytest.approx(entropy - 0.5 * LOG2)
        assert np.sign(-float(log_temperature.grad)) == sign
