"""``site-offline``: a log's own schedule is all that it learns from, and it ends up better than that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import greenbatch as gb
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.learning.runs.plan import make_plan
from greenbatch.learning.trainers import train_or_search
from greenbatch.metrics import bounded_slowdown, wait_s
from greenbatch.scenarios import Scenario
from greenbatch.schedulers import scheduler

LEARNED, TESTED = 3000, 600
"""Jobs of the log that it learns from; the others are tests."""
SMALL = {
    "observation.queue.rows": 24, "training.jobs": 300, "training.epochs": 1, "training.off_policy.steps": 100,
    "training.off_policy.batch": 128, "training.off_policy.fill_windows": 20, "training.off_policy.buffer": 20_000,
}  # fmt: skip


@pytest.fixture(scope="module")
def log() -> Scenario:
    """Jobs that a scheduler has started first come, first served, with backfilling."""
    made = gb.load_scenario("default", overrides={"workload.generator.jobs": LEARNED + TESTED})
    jobs = made.workload
    started = simulate(jobs, made.cluster, None, made.rules, scheduler("fcfs+easy"))
    return replace(made, workload=jobs.with_columns(recorded_wait_s=started.start_s - jobs.submit_s), site=None)


def test_it_learns_from_a_log_to_be_better_than_it(log: Scenario, tmp_path: Path) -> None:
    """A mean wait of about 0.75 times that of the log's rule; untrained, and after one step, it is no shorter."""
    history = replace(log, workload=log.workload.take(slice(0, LEARNED)))
    plan = make_plan("site-offline", history, overrides=SMALL, threads=1)
    train_or_search(plan, tmp_path / "run", watch=lambda _: None)
    jobs = log.window(LEARNED, TESTED)

    def figures(name: str) -> tuple[float, float]:
        found = simulate(jobs, log.cluster, None, log.rules, scheduler(name))
        return wait_s(found).mean(), bounded_slowdown(found).mean()

    ours, theirs = figures(f"site-offline@{tmp_path / 'run' / 'model'}+easy"), figures("fcfs+easy")
    assert ours[0] < 0.85 * theirs[0]
    assert ours[1] < theirs[1]


def test_a_log_without_waits_is_refused(tmp_path: Path) -> None:
    plan = make_plan("site-offline", gb.load_scenario("default"), overrides=SMALL, threads=1)
    with pytest.raises(InputError, match="records no waits"):
        train_or_search(plan, tmp_path / "run", watch=lambda _: None)
    assert not (tmp_path / "run").exists()
