"""The published genetic algorithm: the authors' schedules job by job, and a plan that is also an engine's."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.engine.outcome import Outcome
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.driver import ViewDriver
from greenbatch.engine.views.imagined import Imagination
from greenbatch.engine.views.interface import Decision, View
from greenbatch.engine.views.session import Session, run_policy
from greenbatch.errors import InputError
from greenbatch.experiments.papers.protocols import GA_ETA
from greenbatch.metrics import evaluate
from greenbatch.policies.plans import Plans, Weights, in_order
from greenbatch.policies.published_genetic import PublishedGenetic, published_genetic
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

sys.path.append(str(Path(__file__).parents[1] / "engine"))
from golden import BACKFILLS, Find, Schedule, golden_schedule, scenario
from small_windows import CLUSTER, site_of, windows

ETA = {"lublin_256": GA_ETA["Lublin-256"], "Cirne": GA_ETA["Cirne"], "Jann": GA_ETA["Jann"],
       "Jann_scaled": GA_ETA["Jann"]}  # fmt: skip


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class Watched:
    """The policy, which notes when it searches, and among how many jobs."""

    def __init__(self, policy: PublishedGenetic) -> None:
        self.policy, self.searches = policy, list[tuple[float, int]]()

    def decide(self, view: View) -> Decision:
        before = self.policy.evaluations
        decision = self.policy.decide(view)
        if self.policy.evaluations > before:
            self.searches.append((view.now_s, len(view.job_id)))
        return decision


def run(trace: str, start: int, jobs: int, backfill: str, stream: Random, find: Find) -> tuple[Outcome, Watched]:
    """The policy on a window, with random numbers that go on."""
    question = scenario(trace, find)
    window, name = question.window(start, jobs), f"ga-published:eta={ETA[trace]}+{BACKFILLS[backfill]}"
    program = scheduler(name).program(window)
    given = window, question.cluster, question.site, question.rules
    policy = Watched(published_genetic(stream, ETA[trace], program, window, question.site))
    return run_policy(Session(*given, program), policy), policy


def assert_same(outcome: Outcome, golden: Schedule, name: str) -> None:
    np.testing.assert_array_equal(outcome.workload.job_id, golden.job_id, err_msg=name)
    np.testing.assert_array_equal(outcome.start_s, golden.start_s, err_msg=name)
    np.testing.assert_array_equal(outcome.end_s, golden.end_s, err_msg=name)


def test_schedules_of_the_authors_come_out_job_by_job(greenbatch_reference: Find, greenbatch_data: Find) -> None:
    batches: dict[str, list[tuple[float, int]]] = {}
    for row in table(greenbatch_reference("ga/authors-batches.csv")):
        batches.setdefault(row["file"], []).append((float(row["time"]), int(row["queue"])))
    rows = table(greenbatch_reference("ga/authors-runs.csv"))
    assert {row["file"] for row in rows} == {file.name for file in greenbatch_reference("ga/schedules").iterdir()}
    assert len(rows) == 32
    for row in rows:
        if int(row["seed"]) > (row["trace"] == "lublin_256") or (row["trace"], row["start"]) == ("Cirne", "7000"):
            continue  # one other seed on one trace, and no second start where plans are many
        assert float(row["eta"]) == ETA[row["trace"]]
        stream, name = Random(int(row["seed"])), row["file"]  # noqa: S311
        outcome, policy = run(
            row["trace"], int(row["start"]), int(row["n"]), row["backfill"], stream, greenbatch_data
        )  # fmt: skip
        assert policy.searches == batches.get(name, []), name
        assert_same(outcome, golden_schedule(greenbatch_reference(f"ga/schedules/{name}")), name)
        assert policy.policy.evaluations == int(row["fitness_evals"])
        metrics = evaluate(outcome)
        assert metrics["avg_bounded_slowdown"] == pytest.approx(float(row["avg_bsld"]), rel=1e-12)
        assert metrics["renewable_utilization"] == pytest.approx(float(row["re_util"]), rel=1e-12)


IN_TURN = ("Jann_scaled", "none")
"""One trace without a backfilling; two starts with one are in tests/experiments/test_reproduce.py."""


def test_two_starts_in_turn_come_out_job_by_job(greenbatch_reference: Find, greenbatch_data: Find) -> None:
    """One stream of random numbers goes through the starts of a trace and a backfilling, in their order."""
    rows = table(greenbatch_reference("ga/ten-starts.csv"))
    two, stream = [row for row in rows if (row["trace"], row["backfill"]) == IN_TURN][:2], Random(0)  # noqa: S311
    assert len({row["start"] for row in two}) == 2
    for row in two:
        outcome, _ = run(row["trace"], int(row["start"]), int(row["n"]), row["backfill"], stream, greenbatch_data)
        assert_same(outcome, golden_schedule(greenbatch_reference(f"ga/ten/{row['file']}")), row["file"])


# ---------------------------------------------------------------- plans


def first_view(jobs: Workload, site: Any, program: Program, at: int) -> View:
    """A view with several waiting jobs, if there is any, of first come, first served."""
    session, views = Session(jobs, CLUSTER, site, Rules(commitment="sticky"), program), []
    fcfs = scheduler("fcfs").program(jobs)
    driver = ViewDriver(fcfs, None, CLUSTER, Rules(commitment="sticky"))
    while (view := session.view()) is not None:
        views.append(view)
        session.apply(driver.decide(view))
    several = [view for view in views if len(view.job_id) > 1] or views
    return several[at % len(several)]


@settings(max_examples=15, deadline=None)
@given(window=windows(), at=st.integers(0, 100), seed=st.integers(0, 1000))
def test_without_backfilling_a_plan_is_that_of_the_engine(window: Any, at: int, seed: int) -> None:
    """With weather that repeats every day, beyond the forecast, both see the same power."""
    jobs, site = window[0], site_of(window[1].renewable_w[:24])
    program = scheduler("ga-published+none").program(jobs)
    view = first_view(jobs, site, program, at)
    count, eta = len(view.job_id), 0.01
    order = np.random.default_rng(seed).permutation(count).tolist()
    rules = Rules(commitment="sticky")
    policy = published_genetic(Random(0), eta, program, jobs, site)  # noqa: S311
    imagination = Imagination(in_order(program), CLUSTER, rules)
    plans = Plans(view, imagination, Weights(1.0, eta * count / len(jobs)))
    (fitness,) = policy._fitness(policy._batch_of(view), [order])
    assert fitness == pytest.approx(plans.value(order), rel=1e-9)


# ---------------------------------------------------------------- what it refuses


def test_what_it_cannot_do_is_refused_in_one_line() -> None:
    jobs = Workload.from_columns("one", {"submit_s": [0.0], "run_time_s": [60.0], "processors": [1], "power_w": [9.0]})
    site: Any = site_of(np.ones(48))
    refused: list[tuple[str, Callable[[], Any]]] = [
        ("does not know easy backfilling",
         lambda: simulate(jobs, CLUSTER, site, Rules(), scheduler("ga-published+easy"))),
        ("ga-published.none needs a power supply",
         lambda: simulate(jobs, CLUSTER, None, Rules(), scheduler("ga-published"))),
        ("ga-published.none: needs the power to come and the number of jobs",
         lambda: ViewDriver(scheduler("ga-published").program(jobs), None, CLUSTER, Rules())),
        ("does not know a cap on the power of the cluster .use ga",
         lambda: simulate(jobs, CLUSTER, site, Rules(power_cap_w=900.0), scheduler("ga-published"))),
    ]  # fmt: skip
    for said, ask in refused:
        with pytest.raises(InputError, match=said):
            ask()
