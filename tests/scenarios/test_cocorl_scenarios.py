"""Episodes: windows of equal length from an empty machine, for comparisons and trainings alike."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import greenbatch as gb
from greenbatch.display import windows_text
from greenbatch.engine.pools import Pools
from greenbatch.engine.simulate import simulate
from greenbatch.envs.batch import BatchEnv
from greenbatch.errors import InputError
from greenbatch.experiments.running.compare import choose_windows
from greenbatch.metrics import evaluate
from greenbatch.scenarios import load_scenario, shipped_names
from greenbatch.schedulers import scheduler

EPISODE_S = 180_000.0
COCORL = [name for name in shipped_names() if name.startswith("cocorl/")]
SMALL = {"workload.generator.ticks": 3000}
loaded = cache(load_scenario)


@pytest.mark.parametrize("name", COCORL)
def test_every_scenario_is_of_episodes(name: str) -> None:
    scenario = loaded(name)
    pools = scenario.rules.pools
    assert pools is not None
    assert (pools.episode_s, pools.tick_s, pools.end_s) == (EPISODE_S, 900.0, 0.0)
    starts, jobs = choose_windows(scenario)
    windows = [scenario.window(start, jobs) for start in starts]
    assert all(len(window) >= 1 and np.ptp(window.submit_s) < EPISODE_S for window in windows)
    assert min(len(window) for window in windows) < jobs  # the episode ends the window, not the number of jobs


@pytest.mark.parametrize("name", ["synthetic", "sdsc-sp2", "sdsc-blue", "hpc2n"])
def test_training_and_test_have_other_jobs(name: str) -> None:
    test, training = (loaded(f"cocorl/{name}{part}").workload for part in ("", "-training"))
    assert len(training) > 1.9 * len(test)
    head = min(50, len(test))
    assert not np.array_equal(test.run_time_s[:head], training.run_time_s[:head])


@pytest.mark.parametrize("rule", ["fcfs+first-fit", "qos+none", "packer"])
def test_a_run_is_that_of_the_same_jobs_until_the_end_of_the_episode(rule: str) -> None:
    scenario = load_scenario("cocorl/synthetic", overrides=SMALL)
    window = scenario.window(40, 120)
    begin_s = float(window.submit_s.min())
    episode = simulate(window, scenario.cluster, None, scenario.rules, scheduler(rule))
    until = load_scenario(
        "cocorl/synthetic",
        overrides={**SMALL, "rules.pools.episode_s": None, "rules.pools.end_s": begin_s + EPISODE_S},
    )
    same = simulate(until.window(40, len(window)), until.cluster, None, until.rules, scheduler(rule))
    np.testing.assert_array_equal(episode.end_s, same.end_s)
    assert np.isnan(episode.end_s).any()
    assert np.nanmax(episode.end_s) <= begin_s + EPISODE_S
    assert evaluate(episode) == pytest.approx(evaluate(same), nan_ok=True)


def test_an_environment_ends_when_a_comparison_does() -> None:
    scenario = load_scenario("cocorl/synthetic", overrides=SMALL)
    env = BatchEnv(scenario, "rare", environments=2, jobs=120)
    assert env.episode_s == EPISODE_S
    seen, terms = env.reset([40, 300]), None
    while len(seen.environment):  # the first job that fits, else wait: first come, first served with first-fit
        first = [
            int(np.argmax(seen.selectable[a:b]))
            for a, b in zip(seen.queue_offsets, seen.queue_offsets[1:], strict=False)
        ]
        seen, _, _ = env.step(np.array([[row, 0] for row in first]))
        terms = env.values.copy()
    assert terms is not None
    for number, start in enumerate((40, 300)):
        outcome = simulate(
            scenario.window(start, 120), scenario.cluster, None, scenario.rules, scheduler("fcfs+first-fit")
        )
        assert terms[number, 0] == pytest.approx(evaluate(outcome)["total_job_value"])


def test_a_run_has_one_end() -> None:
    with pytest.raises(InputError, match=r"rules.pools.episode_s: is 100, and end_s is 50 \(give one of them\)"):
        Pools(end_s=50.0, episode_s=100.0)


def test_an_episode_in_which_nothing_runs_has_a_report(tmp_path: Path) -> None:
    """Shorter than a tick: no job has started by its end."""
    brief = {**SMALL, "rules.pools.episode_s": None, "rules.pools.end_s": 1e-3}
    scenario = load_scenario("cocorl/synthetic", overrides=brief)
    comparison = gb.compare(scenario, ["fcfs+none"], starts=[500], jobs=20)
    assert "20 of 1," in comparison.title
    assert comparison.report(tmp_path / "report.html").exists()
    assert np.isnan(comparison.example["fcfs+none"].start_s).all()


def test_titles_say_that_an_episode_may_end_before_the_last_job() -> None:
    scenario = load_scenario("cocorl/synthetic", overrides=SMALL)
    total = len(scenario.workload)
    one, all_ = (gb.compare(scenario, ["fcfs+none"], starts=[0], jobs=jobs).title for jobs in (60, total))
    assert one.startswith("cocorl/synthetic: at most 60 of 1,")
    assert all_.startswith(f"cocorl/synthetic: at most {total:,} of {total:,} jobs;")
    assert windows_text(2, 60, at_most=True) == "2 windows of at most 60 jobs"
