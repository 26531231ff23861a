"""The gymnasium environment: its contract, the published padding, and a trainer that is not ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from greenbatch.envs.single import SchedulingEnv
from greenbatch.errors import InputError
from greenbatch.presets.preset import check, preset
from greenbatch.scenarios import Scenario, load_scenario

Find = Callable[[str], Path]


@pytest.fixture(scope="module")
def small() -> Scenario:
    return load_scenario("default", overrides={"workload.generator.jobs": 300})


@pytest.mark.parametrize("preset", ["gas-marl", "maskable-ppo", "rlscheduler"])
def test_it_keeps_gymnasiums_contract(small: Scenario, preset: str) -> None:
    check_env(SchedulingEnv(small, preset, jobs=20), skip_render_check=True)


def test_padded_as_published(greenbatch_reference: Find, greenbatch_data: Find) -> None:
    greenbatch_data("swf/lublin_256.swf.gz")
    episode = np.load(greenbatch_reference("gas-marl/rl_episodes/lublin_256_green_300.npz"))
    env = SchedulingEnv("gas-marl/lublin-256", "gas-marl")
    seen, info = env.reset(options={"start": 300})
    assert info == {"start": 300}
    for theirs, action in zip(episode["obs_first40"], episode["actions"], strict=False):
        np.testing.assert_array_equal(seen, theirs)
        seen, _, ended, truncated, _ = env.step(action)
        assert not ended
        assert not truncated


def test_masks_say_what_may_be_chosen(small: Scenario) -> None:
    env = SchedulingEnv(small, "gas-marl", jobs=30)
    agent = np.random.default_rng(0)
    env.reset(seed=1)
    ended, steps = False, 0
    while not ended:
        masks = env.action_masks()
        assert masks.shape == (256 + 13,)
        row, delay = agent.choice(np.flatnonzero(masks[:256])), agent.choice(np.flatnonzero(masks[256:]))
        _, _, ended, _, info = env.step([row, delay])
        assert not info["masked"]
        steps += 1
    assert steps > 5
    assert set(info["terms"]) == {"renewable_utilization", "avg_bounded_slowdown"}
    with pytest.raises(InputError, match="there is no decision to make"):
        env.step([0, 0])


def test_a_masked_row_counts_as_the_first_that_is_not(small: Scenario) -> None:
    one, other = SchedulingEnv(small, "gas-marl", jobs=30), SchedulingEnv(small, "gas-marl", jobs=30)
    one.reset(options={"start": 3})
    other.reset(options={"start": 3})
    seen, reward, *_, info = one.step([255, 0])
    expected, expected_reward, *_ = other.step([0, 0])
    assert info["masked"]
    assert reward == expected_reward
    np.testing.assert_array_equal(seen, expected)
    with pytest.raises(InputError, match="row 256 of 256"):
        one.step([256, 0])
    for action in ([0.0, 0.0], [], [0, 0, 0], "ab", None):
        with pytest.raises(InputError, match=r"give 2 whole number\(s\)"):
            one.step(action)
    raw = preset("rlscheduler").model_dump()
    raw["observation"]["queue"]["empty"] = [0.0] * 99
    with pytest.raises(InputError, match="an empty row has 99 numbers"):
        SchedulingEnv(small, check(raw), jobs=30)
    with pytest.raises(InputError, match="starts: names no window"):
        SchedulingEnv(small, "gas-marl", jobs=30, starts=())


def test_the_same_seed_draws_the_same_windows(small: Scenario) -> None:
    env = SchedulingEnv(small, "rlscheduler", jobs=30, starts=(4, 5, 6, 7, 8, 9))
    drawn = [env.reset(seed=3)[1]["start"], *(env.reset()[1]["start"] for _ in range(10))]
    again = [env.reset(seed=3)[1]["start"], *(env.reset()[1]["start"] for _ in range(10))]
    assert drawn == again
    assert len(set(drawn)) > 1
    assert set(drawn) <= {4, 5, 6, 7, 8, 9}


def test_maskable_ppo_trains_on_it_unmodified(small: Scenario) -> None:
    """sb3-contrib's MaskablePPO, a few hundred steps; its weights move, and it never names a masked action."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries, not ours
        from sb3_contrib import MaskablePPO

        env = SchedulingEnv(small, "gas-marl", jobs=30)
        model = MaskablePPO("MlpPolicy", env, n_steps=128, batch_size=64, n_epochs=2, seed=0, device="cpu")
        before = [p.detach().clone() for p in model.policy.parameters()]
        model.learn(384)
    assert model.num_timesteps == 384
    assert any((p.detach() != q).any() for p, q in zip(model.policy.parameters(), before, strict=True))
    seen, _ = env.reset(seed=0)
    ended = False
    while not ended:
        action, _ = model.predict(seen, action_masks=env.action_masks(), deterministic=True)
        seen, _, ended, _, info = env.step(action)
        assert not info["masked"]
