"""Scores of the built-in rules against their formulas, written out with `math` for one job at a time."""

from __future__ import annotations

import math
from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from greenbatch.cluster import Cluster
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.state import attributes_of
from greenbatch.engine.views.interface import Attributes, Queue
from greenbatch.errors import InputError
from greenbatch.schedulers import entries, names, scheduler, scheduler_table, split_schedulers
from greenbatch.workload import Workload

# (submission, wait, requested time, processors, power) -> score, as the papers print them
FORMULAS: dict[str, Callable[[float, float, float, float, float], float]] = {
    "fcfs": lambda s, w, r, n, p: s,
    "sjf": lambda s, w, r, n, p: r,
    "smallest": lambda s, w, r, n, p: n,
    "largest": lambda s, w, r, n, p: -n,
    "wfp3": lambda s, w, r, n, p: -((w / r) ** 3) * n,
    "unicep": lambda s, w, r, n, p: -w / (math.log2(max(n, 2)) * r),
    "unicep-unbounded": lambda s, w, r, n, p: -w / (math.log2(n) * r) if n > 1 else -math.inf,
    "f1": lambda s, w, r, n, p: math.log10(r) * n + 870 * math.log10(s if s > 0 else 0.1),
    "f2": lambda s, w, r, n, p: math.sqrt(r) * n + 25_600 * math.log10(s),
    "f3": lambda s, w, r, n, p: r * n + 6_860_000 * math.log10(s),
    "f4": lambda s, w, r, n, p: r * math.sqrt(n) + 530_000 * math.log10(s),
    "wfp3-published": lambda s, w, r, n, p: ((1 + s) / r) ** 3 * n,
    "unicep-published": lambda s, w, r, n, p: (1 + s) / (math.log2(n + 1e-15) * r) if n > 1 else math.inf,
    "lptpn": lambda s, w, r, n, p: -p * r,
    "lptpn-published": lambda s, w, r, n, p: -p * r,
    "longest": lambda s, w, r, n, p: -r,
    "low-mem": lambda s, w, r, n, p: 0.0,
    "low-mem-ops": lambda s, w, r, n, p: 0.0,
    "eq1": lambda s, w, r, n, p: -1.0 if w >= 60 else 0.0,
    "minimal": lambda s, w, r, n, p: s,
    "qos": lambda s, w, r, n, p: 0.0,  # unknown to these jobs
    "hvf": lambda s, w, r, n, p: 0.0,
    "cheapest-start": lambda s, w, r, n, p: r * r * n,
}


def jobs_of(columns: list[tuple[float, float, int, float]]) -> Workload:
    submit_s, requested_s, processors, power_w = (np.array(column) for column in zip(*columns, strict=True))
    return Workload.from_columns(
        "jobs", {"submit_s": submit_s, "run_time_s": requested_s, "processors": processors, "power_w": power_w}
    )


def program(name: str, jobs: Workload | None = None) -> Program:
    return entries()[name].plan(jobs_of([(0.0, 1.0, 1, 0.0)]) if jobs is None else jobs, **entries()[name].defaults)


def scores(name: str, now_s: float, columns: list[tuple[float, float, int, float]]) -> list[float]:
    jobs = jobs_of(columns)
    queue = Queue(
        now_s, 3.0, 256.0, jobs.submit_s, now_s - jobs.submit_s, jobs.requested_time_s,
        jobs.processors.astype(np.float64), jobs.power_w, jobs.user.astype(np.float64),
        Attributes(*attributes_of(jobs).T.copy()),
    )  # fmt: skip
    score = program(name, jobs).score
    assert score is not None
    with np.errstate(divide="ignore"):
        return [float(x) for x in score(queue)]


def test_every_built_in_policy_is_tested_here() -> None:
    built_in = {name for name, entry in entries().items() if entry.built_in}
    others = {"random", "as-recorded", "slurm-multifactor", "min-min", "max-min", "foresee", "rolling", "ga", "aco",
              "ga-published", "green-threshold", "packer", "random-action"}  # fmt: skip
    assert built_in == {*FORMULAS, *others}
    assert set(names()) >= built_in
    assert all(entries()[name].summary for name in FORMULAS)


@pytest.mark.parametrize("name", FORMULAS)
@settings(max_examples=50, deadline=None)
@given(
    columns=st.lists(
        st.tuples(
            st.floats(1.0, 1e8), st.floats(1.0, 1e6), st.integers(1, 4096), st.floats(0.0, 1e6),
        ),
        min_size=1, max_size=10,
    ),
    later_s=st.floats(0.0, 1e6),
)  # fmt: skip
def test_scores_are_the_formulas(name: str, columns: list[tuple[float, float, int, float]], later_s: float) -> None:
    now_s = max(submit for submit, *_ in columns) + later_s
    for score, (s, r, n, p) in zip(scores(name, now_s, columns), columns, strict=True):
        expected = FORMULAS[name](s, now_s - s, r, n, p)
        if name.startswith("unicep-") and n == 1:  # divided by log2(1 + 1e-15): last (or first), whatever comes
            assert abs(score) >= (1e12 * s / r if name == "unicep-published" else 1e12 * (now_s - s) / r)
        else:
            assert score == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_submission_at_the_origin_of_the_clock() -> None:
    """log10(0): F1 takes 0.1 s instead (RLScheduler's code), the others put that job first."""
    job = [(0.0, 100.0, 4, 0.0)]
    assert scores("f1", 0.0, job) == [math.log10(100.0) * 4 - 870]
    for name in ("f2", "f3", "f4"):
        assert scores(name, 0.0, job) == [-math.inf]
    jobs = jobs_of([(0.0, 10.0, 1, 0.0), (0.0, 5.0, 2, 0.0), (1.0, 1.0, 2, 0.0)])
    outcome = simulate(jobs, Cluster.pooled(2), None, Rules(), scheduler("f2"))
    assert outcome.start_s.tolist() == [0.0, 10.0, 15.0]


def test_rules_that_see_the_clock_are_not_fixed() -> None:
    """A score counted once, at time 0, must not depend on the time."""
    columns = [(5.0, 100.0, 4, 7.0), (50.0, 10.0, 1, 3.0)]
    for name in FORMULAS:
        changes = scores(name, 60.0, columns) != scores(name, 600.0, columns)
        assert changes == (name in ("wfp3", "unicep", "unicep-unbounded", "eq1"))
        assert program(name).fixed == (not changes)
        assert (program(name).compiled is not None) == changes


def test_wfp3_lets_the_long_waiting_and_wide_go_first() -> None:
    """By hand, 1 processor wide machine of 4: at 10 s the scores are -(10/5)^3 x 1, -(8/8)^3 x 4 and -(4/2)^3 x 3."""
    jobs = jobs_of([(0.0, 10.0, 4, 0.0), (0.0, 5.0, 1, 0.0), (2.0, 8.0, 4, 0.0), (6.0, 2.0, 3, 0.0)])
    outcome = simulate(jobs, Cluster.pooled(4), None, Rules(event_rule="per_instant"), scheduler("wfp3+none"))
    assert outcome.start_s.tolist() == [0.0, 10.0, 15.0, 10.0]
    backward = simulate(jobs, Cluster.pooled(4), None, Rules(), scheduler("wfp3-published"))
    assert backward.start_s.tolist() != outcome.start_s.tolist()


def test_random_is_an_order_out_of_a_seed() -> None:
    jobs = jobs_of([(0.0, 10.0, 1, 0.0)] * 30)
    one, same, other = (
        simulate(jobs, Cluster.pooled(1), None, Rules(event_rule="per_instant"), scheduler(f"random:seed={seed}+none"))
        for seed in (1, 1, 2)
    )
    assert sorted(one.start_s) == [10.0 * k for k in range(30)]
    np.testing.assert_array_equal(one.start_s, same.start_s)
    assert (one.start_s != other.start_s).any()
    assert (one.start_s != np.arange(30) * 10.0).any()


@pytest.mark.parametrize(("options", "message"), [
    ({"tick_s": 1e-9}, "rules: tick_s is 1e-9 (give 0 for none, or 1 to 604800 s)"),
    ({"tick_s": math.nan}, "rules: tick_s is nan (give 0 for none, or 1 to 604800 s)"),
    ({"tick_s": "1"}, "rules.tick_s: is '1' (give a number)"),
    ({"overrun": "Kill"}, "rules.overrun: is 'Kill' (did you mean kill?)"),
    ({"ties": None}, "rules.ties: is None (use arrival_first or completion_first)"),
])  # fmt: skip
def test_options_of_the_batch_system_are_checked(options, message) -> None:
    with pytest.raises(InputError) as caught:
        Rules(**options)
    assert str(caught.value) == message


@pytest.mark.parametrize("names", ["fcfs,fcfs+none", "fcfs+none,fcfs", "f2+green,fcfs,f2+green"])
def test_a_scheduler_is_compared_once_however_it_is_written(names) -> None:
    same = r"fcfs(\+none)? and fcfs(\+none)? are the same|names f2\+green twice"
    with pytest.raises(InputError, match=same):
        scheduler_table(split_schedulers(names))


def test_a_model_without_a_folder_is_not_taken_for_a_policy() -> None:
    with pytest.raises(InputError, match="names no model") as caught:
        scheduler("gas-marl-plus@")
    assert "gas-marl-plus@FOLDER" in str(caught.value)
