"""Agreement and importance sampling of recorded episodes, by hand and on a decision process of known values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tabular import PI, UNIFORM, recorded, value_of

from greenbatch.errors import InputError
from greenbatch.learning.evaluation import agreement, per_decision, per_episode
from greenbatch.learning.evaluation.estimate import FEW_EPISODES, estimate

ESTIMATORS = [per_episode, per_decision]


def test_agreement_by_hand() -> None:
    """Of five decisions three have a choice, in two of which the policy agrees."""
    found = agreement([0, 1, 2, 0, 0], [0, 1, 1, 0, 1], [1, 2, 3, 4, 1])
    assert found == (2 / 3, 3 / 5, 3, 5)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (([0], [0], [1]), "valid_actions: has no choice in any of 1 decisions (record a rollout in which several"),
        (([0], [0], [0]), "valid_actions: is 0 in decision 0 (give 1 or more"),
        (([0, 1], [0], [2]), "policy_actions, recorded_actions, valid_actions: have 2, 1 and 1 decisions"),
        (([0.5], [0], [2]), "policy_actions: has the shape (1,) and the type float64 (give one whole number"),
        (([], [], []), "policy_actions: has the shape (0,) and the type float64"),
    ],
)
def test_agreement_of_nothing_is_refused(arrays: tuple[list[int], ...], said: str) -> None:
    with pytest.raises(InputError) as refused:
        agreement(*arrays)
    assert str(refused.value).startswith(said)


def test_two_episodes_by_hand() -> None:
    """Ratios of the first: 2, 1/2; of the second: 1. Its weight stays 1 after its only decision."""
    log_policy, log_behavior = np.log([0.8, 0.2, 0.5]), np.log([0.4, 0.4, 0.5])
    rewards, offsets = [1.0, 10.0, 4.0], [0, 2, 3]
    given_ = {"gamma": 0.5, "log_behavior": log_behavior}
    assert per_episode(log_policy, rewards, offsets, **given_).value == pytest.approx((6 + 4) / 2)
    first, second = (2 * 1 + 1 * 4) / (2 + 1), 0.5 * (1 * 10 + 1 * 0) / (1 + 1)
    assert per_decision(log_policy, rewards, offsets, **given_).value == pytest.approx(first + second)
    assert per_decision(log_policy, rewards, offsets, **given_).effective == pytest.approx(9 / 5)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_of_a_rule_only_episodes_count_in_which_the_policy_agrees(estimator) -> None:
    rewards = np.arange(24.0)
    offsets, log_policy = np.arange(0, 25, 2), np.zeros(24)
    log_policy[[0, 5, 9]] = -np.inf, -1e9, -np.inf  # of the episodes 0, 2 and 4
    returns = (rewards[::2] + 0.9 * rewards[1::2])[[1, 3, *range(5, 12)]]
    found = estimator(log_policy, rewards, offsets, gamma=0.9)
    if estimator is per_episode:
        assert found.value == pytest.approx(returns.mean())
    else:  # the first decisions of the episodes 2 and 4 agree
        assert found.value == pytest.approx(rewards[2::2].mean() + 0.9 * rewards[1::2][[1, 3, *range(5, 12)]].mean())
    assert (found.episodes, found.effective) == (12, pytest.approx(9.0))
    assert found.caution.startswith("rests on 9.0 effective episodes of 12, fewer than 10")
    assert found.low < found.value < found.high


@pytest.mark.parametrize("estimator", ESTIMATORS)
@settings(max_examples=30, deadline=None)
@given(some.lists(some.integers(1, 6), min_size=1, max_size=20), some.floats(0, 1), some.integers(0, 999))
def test_the_behavior_itself_is_worth_its_mean_return(estimator, lengths, gamma, seed) -> None:
    random, offsets = np.random.default_rng(seed), np.concatenate(([0], np.cumsum(lengths)))
    rewards, log_pi = random.normal(size=offsets[-1]), np.log(random.uniform(0.01, 1, offsets[-1]))
    returns = [rewards[a:b] @ gamma ** np.arange(b - a) for a, b in pairwise(offsets)]
    found = estimator(log_pi, rewards, offsets, gamma=gamma, log_behavior=log_pi)
    assert found.value == pytest.approx(np.mean(returns), abs=1e-9)
    assert found.effective == pytest.approx(len(lengths))
    assert bool(found.caution) == (len(lengths) < FEW_EPISODES)
    assert found.low <= found.value + 1e-9
    assert found.high >= found.value - 1e-9


@settings(max_examples=30, deadline=None)
@given(some.lists(some.integers(1, 6), min_size=1, max_size=20), some.floats(0, 50), some.integers(0, 999))
def test_an_estimate_of_whole_episodes_is_between_their_returns(lengths, spread, seed) -> None:
    random, offsets = np.random.default_rng(seed), np.concatenate(([0], np.cumsum(lengths)))
    rewards, log_pi = random.normal(size=offsets[-1]), -spread * random.uniform(size=offsets[-1])
    returns = np.add.reduceat(rewards, offsets[:-1])
    found = per_episode(log_pi, rewards, offsets, gamma=1.0)
    assert returns.min() - 1e-9 <= found.low <= found.high <= returns.max() + 1e-9
    assert 1.0 - 1e-9 <= found.effective <= len(lengths) + 1e-9


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimates_approach_the_value_as_episodes_are_added(estimator) -> None:
    """Mean relative error and bias of several estimates."""
    errors, biases, cautious = [], [], []
    for episodes, count in ((4, 30), (40, 30), (20_000, 2)):
        made = [
            estimator(*recorded(episodes, seed, PI), seed=seed, resamples=100, **behavior(episodes, seed))
            for seed in range(count)
        ]
        wrong = np.array([each.value / value_of(PI) - 1 for each in made])
        errors.append(np.abs(wrong).mean())
        biases.append(abs(wrong.mean()))
        cautious.append(np.mean([bool(each.caution) for each in made]))
    assert errors[2] < 0.02 < errors[1] < errors[0]
    assert biases[2] < 0.02
    assert (cautious[0], cautious[2]) == (1.0, 0.0)
    assert made[0].mean_weight == pytest.approx(1.0, abs=0.05)
    assert abs(value_of(UNIFORM) / value_of(PI) - 1) > 0.1  # of the behavior


def behavior(episodes: int, seed: int) -> dict:
    _, rewards, _ = recorded(episodes, seed, PI)
    return {"gamma": 0.9, "log_behavior": np.full(len(rewards), np.log(1 / 3))}


def test_intervals_hold_the_value_about_as_often_as_they_say() -> None:
    made = [per_decision(*recorded(400, seed, PI), resamples=400, **behavior(400, seed)) for seed in range(60)]
    held = np.mean([each.low <= value_of(PI) <= each.high for each in made])
    assert 0.85 <= held <= 1.0
    assert np.std([each.value for each in made]) < np.std(
        [per_episode(*recorded(400, seed, PI), resamples=100, **behavior(400, seed)).value for seed in range(60)]
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_policy_that_seldom_does_what_a_rule_did_is_estimated_with_a_caution(estimator) -> None:
    """Twenty equal episodes of three decisions, in each of which the policy agrees with a probability of 1/4."""
    found = estimator(np.full(60, np.log(0.25)), np.ones(60), np.arange(0, 61, 3), gamma=1.0)
    assert (found.value, found.effective) == (pytest.approx(3.0), pytest.approx(20.0))
    assert found.mean_weight == pytest.approx(1 / 64)
    assert found.caution.startswith("episodes weigh 0.016 on average instead of 1: the record holds little of what")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_episode_is_worth_its_return_with_a_caution(estimator) -> None:
    found = estimator([-700.0, -700.0], [1.0, 2.0], [0, 2], gamma=0.5)
    assert (found.value, found.low, found.high, found.effective) == (2.0, 2.0, 2.0, 1.0)
    assert "1.0 effective episodes of 1," in found.caution


ONE = {"log_policy": [0.0, 0.0], "rewards": [1.0, 2.0], "offsets": [0, 1, 2], "gamma": 0.9}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"log_policy": [-np.inf, -1e9]}, "log_policy: gives none of the 2 episodes any probability (evaluate a sto"),
        ({"log_policy": [np.nan, 0.0]}, "log_policy: is nan in decision 0 (give logarithms of probabilities, <= 0)"),
        ({"log_policy": [0.0, 0.5]}, "log_policy: is 0.5 in decision 1 (give logarithms of probabilities, <= 0)"),
        ({"log_policy": [0.0]}, "log_policy: has the shape (1,) (give 2 numbers, one per decision)"),
        ({"log_behavior": [-np.inf, 0.0]}, "log_behavior: gives recorded decision 0 a probability of 0"),
        ({"rewards": [1.0, np.nan]}, "rewards: is nan in decision 1 (give finite numbers)"),
        ({"offsets": [0]}, "offsets: does not divide decisions into episodes"),
        ({"offsets": [0, 0, 2]}, "offsets: does not divide decisions into episodes"),
        ({"gamma": 1.5}, "gamma: is 1.5 (give a number from 0 to 1)"),
    ],
)
def test_unusable_records_are_refused(changes: dict, said: str) -> None:
    for estimator in ESTIMATORS:
        with pytest.raises(InputError) as refused:
            estimator(**(ONE | changes))
        assert str(refused.value).startswith(said)


def test_the_decision_from_which_on_no_episode_agrees_is_named() -> None:
    with pytest.raises(InputError, match="none of the 2 episodes from decision 2 on any probability"):
        per_decision([0.0, -np.inf, 0.0, -np.inf], [1.0] * 4, [0, 2, 4], gamma=1.0)


def test_resamples_that_lose_the_only_weight_are_left_out() -> None:
    weights, values = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 5.0], [7.0, 2.0]])
    found = estimate(values, weights)
    assert (found.value, found.low, found.high, found.effective) == (3.0, 3.0, 3.0, 1.0)
    for wrong in ({"confidence": 1.0}, {"resamples": 9}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            estimate(values, weights, **wrong)
