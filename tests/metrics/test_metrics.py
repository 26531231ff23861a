"""Closed forms and properties of the metrics."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from by_hand import outcome_of
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.errors import InputError
from greenbatch.metrics import (
    CLASSES,
    METRICS,
    PER_JOB,
    Cut,
    bounded_slowdown,
    evaluate,
    evaluate_window,
    find,
    json_ready,
    measure,
    metric,
    slowdown,
    turnaround_s,
    wait_s,
)

FOUR = Cluster.pooled(4, processors_per_machine=4, idle_power_per_machine_w=100.0)

# Three jobs on four processors; power 300, 100, 200 W; idle 100 W.
#   job 1: submit 0,   start 0,    end 1000, 2 processors, user 7
#   job 2: submit 10,  start 20,   end 25,   1 processor,  user 8
#   job 3: submit 100, start 1000, end 3000, 4 processors, user 7
JOBS = {
    "submit_s": [0.0, 10.0, 100.0], "processors": [2, 1, 4], "power_w": [300.0, 100.0, 200.0], "user": [7, 8, 7]
}  # fmt: skip
START, END = [0.0, 20.0, 1000.0], [1000.0, 25.0, 3000.0]
SITE = Site(name="steps", step_s=1000.0, sources_w={"sun": np.array([150.0, 500.0, 50.0, 0.0, 1000.0])})


def three_jobs(**more: object) -> object:
    return outcome_of(JOBS, START, END, FOUR, SITE, decisions=2, killed=1, **more)


def test_per_job_metrics_by_hand() -> None:
    outcome = three_jobs()
    assert wait_s(outcome).tolist() == [0.0, 10.0, 900.0]
    assert turnaround_s(outcome).tolist() == [1000.0, 15.0, 2900.0]
    assert slowdown(outcome).tolist() == [1.0, 3.0, 1.45]
    # Job 2 ran 5 s, which the bound of 10 s lifts to (10 + 5) / 10.
    assert bounded_slowdown(outcome).tolist() == [1.0, 1.5, 1.45]
    assert bounded_slowdown(outcome_of({"submit_s": [0.0], "processors": [1]}, [1.0], [3.0], FOUR)).tolist() == [1.0]


def test_per_run_metrics_by_hand() -> None:
    got = evaluate(three_jobs())
    work = 1000 * 2 + 5 * 1 + 2000 * 4
    # Load: 400 W for 0..20, 500 W for 20..25, 400 W for 25..1000, 300 W for 1000..3000. Supply: 150, 500, 50 W.
    load_j = 400 * 995 + 500 * 5 + 300 * 2000
    used_j = 150 * 1000 + 300 * 1000 + 50 * 1000
    expected = {
        "avg_wait_s": 910 / 3, "median_wait_s": 10.0, "max_wait_s": 900.0, "p95_wait_s": 10 + 0.9 * 890,
        "p99_wait_s": 10 + 0.98 * 890, "avg_turnaround_s": 3915 / 3, "avg_slowdown": 5.45 / 3,
        "avg_bounded_slowdown": 3.95 / 3, "median_bounded_slowdown": 1.45, "max_bounded_slowdown": 1.5,
        "mean_user_bounded_slowdown": (1.225 + 1.5) / 2, "max_user_bounded_slowdown": 1.5,
        "mean_user_wait_s": (450 + 10) / 2, "max_user_wait_s": 450.0, "avg_bounded_slowdown_under_5min": 1.5,
        "avg_bounded_slowdown_5min_to_1h": 1.225, "avg_wait_s_5min_to_1h": 450.0, "jobs_under_5min": 1,
        "jobs_5min_to_1h": 2, "jobs_1h_to_4h": 0, "jobs_over_4h": 0, "makespan_s": 3000.0,
        "utilization": work / (3000 * 4), "utilization_to_last_start": work / (1000 * 4),
        "makespan_area_ratio": 3000 * 4 / work, "energy_kwh": load_j / 3.6e6,
        "renewable_used_kwh": used_j / 3.6e6, "brown_kwh": (load_j - used_j) / 3.6e6,
        "brown_energy_ratio": (load_j - used_j) / (300 * 1000 + 100 * 5 + 200 * 2000),
        "renewable_curtailed_kwh": 200 * 1000 / 3.6e6, "renewable_utilization": used_j / load_j, "peak_power_w": 500.0,
        "jobs": 3, "jobs_counted": 3, "killed": 1, "decisions": 2,
    }  # fmt: skip
    for name, value in expected.items():
        assert got[name] == pytest.approx(value, rel=1e-14), name
    assert math.isnan(got["avg_bounded_slowdown_1h_to_4h"])
    assert got["utilization_to_last_start"] > 1, "as published it may exceed 1"
    assert math.isnan(got["utilization_available"]), "no capacity is stated"


def test_no_energy_is_wholly_renewable():
    """As in the published code."""
    site = Site(name="s", step_s=3600.0, sources_w={"sun": np.array([0.0])}, repeat=True)
    jobs = {"submit_s": [0.0], "processors": [1], "power_w": [0.0]}
    idle = Cluster.pooled(8, idle_power_per_machine_w=0.0)
    got = evaluate(outcome_of(jobs, [0.0], [100.0], idle, site))
    assert (got["renewable_utilization"], got["energy_kwh"], got["brown_kwh"]) == (1.0, 0.0, 0.0)


def test_without_a_site_or_job_power_energy_is_undefined() -> None:
    power = (
        "energy_kwh", "renewable_used_kwh", "renewable_curtailed_kwh", "brown_kwh", "brown_energy_ratio",
        "renewable_utilization",
    )  # fmt: skip
    unpowered = {key: values for key, values in JOBS.items() if key != "power_w"}
    for outcome in (outcome_of(JOBS, START, END, FOUR), outcome_of(unpowered, START, END, FOUR, SITE)):
        got = evaluate(outcome)
        assert all(math.isnan(got[name]) for name in power)
        assert got["avg_wait_s"] == pytest.approx(910 / 3)
    assert evaluate(outcome_of(JOBS, START, END, FOUR))["peak_power_w"] == 500.0, "the load needs no site"
    assert json_ready(evaluate(outcome_of(unpowered, START, END, FOUR)))["energy_kwh"] is None


def test_unknown_users_are_left_out_of_fairness() -> None:
    nobody = evaluate(outcome_of({**JOBS, "user": [-1, -1, -1]}, START, END, FOUR))
    assert math.isnan(nobody["max_user_wait_s"])
    one = evaluate(outcome_of({**JOBS, "user": [-1, 8, -1]}, START, END, FOUR))
    assert one["max_user_wait_s"] == one["mean_user_wait_s"] == 10.0


def test_no_jobs_give_undefined_metrics_and_no_warning() -> None:
    got = evaluate(outcome_of({"submit_s": [], "processors": []}, [], [], FOUR))
    assert got["jobs"] == 0
    assert all(math.isnan(got[name]) for name in ("avg_wait_s", "makespan_s", "makespan_area_ratio", "energy_kwh"))


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        (Cut(), [True, True, True]),
        (Cut(first_jobs=1), [False, True, True]),
        (Cut(last_jobs=1), [True, True, False]),
        (Cut(first_jobs=1, last_jobs=1), [False, True, False]),
        (Cut(first_s=10.0), [False, True, True]),
        (Cut(first_s=10.5), [False, False, True]),
        (Cut(last_s=90.0), [True, True, False]),
        (Cut(last_s=90.5), [True, False, False]),
    ],
)
def test_warm_up_and_cool_down_cut_jobs_but_not_energy(cut: Cut, kept: list[bool]) -> None:
    outcome = three_jobs()
    assert measure(outcome, cut).jobs.tolist() == kept
    got, whole = evaluate(outcome, cut=cut), evaluate(outcome)
    assert got["avg_wait_s"] == pytest.approx(np.mean(np.array([0.0, 10.0, 900.0])[kept]))
    assert got["jobs_counted"] == sum(kept)
    for name in ("jobs", "energy_kwh", "makespan_s", "utilization", "renewable_utilization"):
        assert got[name] == whole[name]


def test_a_cut_follows_submission_not_job_id() -> None:
    outcome = outcome_of({"submit_s": [50.0, 0.0, 20.0], "processors": [1, 1, 1]}, [50, 0, 20], [60, 10, 30], FOUR)
    assert Cut(first_jobs=1).jobs(outcome).tolist() == [True, False, True]


@pytest.mark.parametrize("bad", [{"first_jobs": -1}, {"last_s": -0.1}, {"first_s": float("nan")}])
def test_a_negative_cut_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match="must be >= 0"):
        Cut(**bad)  # type: ignore[arg-type]


def test_a_cut_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="leaves none of 3 jobs"):
        evaluate(three_jobs(), cut=Cut(first_jobs=2, last_jobs=1))


def test_common_horizon_and_makespan_ratio_by_hand() -> None:
    # "late" holds job 3 until 4000, when a lot of sun shines: renewable utilization rises, the makespan doubles.
    late = outcome_of(JOBS, [0.0, 20.0, 4000.0], [1000.0, 25.0, 6000.0], FOUR, SITE_REPEATED)
    soon = outcome_of(JOBS, START, END, FOUR, SITE_REPEATED)
    got = evaluate_window({"soon": soon, "late": late}, baseline="soon")
    assert got["soon"]["makespan_ratio"] == 1.0
    assert got["late"]["makespan_ratio"] == 2.0
    # Over 0..6000 s supply is 150, 500, 50, 0, 1000, 150 W; idle load is 100 W.
    front = 250 * 995 + 350 * 5
    assert got["soon"]["common_horizon_brown_kwh"] * 3.6e6 == pytest.approx(front + 0 + 250e3 + 100e3 + 0 + 0)
    assert got["late"]["common_horizon_brown_kwh"] * 3.6e6 == pytest.approx(front + 0 + 50e3 + 100e3 + 0 + 150e3)
    energy = {name: values["common_horizon_energy_kwh"] for name, values in got.items()}
    assert energy["soon"] == pytest.approx(energy["late"], rel=1e-14), "same jobs, same horizon, same energy"
    for values in got.values():
        balance = values["common_horizon_brown_kwh"] + values["common_horizon_renewable_used_kwh"]
        assert balance == pytest.approx(values["common_horizon_energy_kwh"], rel=1e-14)


def test_delays_relative_to_the_baseline_by_hand() -> None:
    """Job 2 starts ten seconds earlier, job 3 a day and a second later; a delay of a day is within the limit."""
    soon = outcome_of(JOBS, START, END, FOUR, SITE_REPEATED)
    later = [START[0], START[1] - 10.0, START[2] + 86_401.0]
    late = outcome_of(JOBS, later, [END[0], END[1], END[2] + 86_401.0], FOUR, SITE_REPEATED)
    limit = outcome_of(JOBS, [*START[:2], START[2] + 86_400.0], [*END[:2], END[2] + 86_400.0], FOUR, SITE_REPEATED)
    got = evaluate_window({"soon": soon, "late": late, "limit": limit}, baseline="soon")
    assert {name: values["delayed_share"] for name, values in got.items()} == {"soon": 0, "late": 1 / 3, "limit": 0}
    assert {name: values["max_delay_s"] for name, values in got.items()} == {"soon": 0, "late": 86_401, "limit": 86_400}
    counted = evaluate_window({"soon": soon, "late": late}, baseline="soon", cut=Cut(last_jobs=1))["late"]
    assert (counted["delayed_share"], counted["max_delay_s"]) == (0, 0)


SITE_REPEATED = Site(name="steps", step_s=1000.0, sources_w=SITE.sources_w, repeat=True)


def test_stretching_a_schedule_raises_the_ratio_but_not_common_horizon_brown() -> None:
    # Supply of exactly the idle power: an idle hour is 100 % renewable and dilutes the ratio.
    site = Site(name="flat", step_s=100.0, sources_w={"wind": np.array([100.0])}, repeat=True)
    jobs = {"submit_s": [0.0, 0.0], "processors": [1, 1], "power_w": [500.0, 500.0]}
    packed = outcome_of(jobs, [0.0, 100.0], [100.0, 200.0], FOUR, site)
    spread = outcome_of(jobs, [0.0, 900.0], [100.0, 1000.0], FOUR, site)
    got = evaluate_window({"packed": packed, "spread": spread}, baseline="packed")
    assert got["spread"]["renewable_utilization"] > 2 * got["packed"]["renewable_utilization"]
    assert got["spread"]["common_horizon_brown_kwh"] == pytest.approx(got["packed"]["common_horizon_brown_kwh"])
    assert got["spread"]["makespan_ratio"] == 5.0


def test_a_window_needs_its_baseline_and_the_same_jobs() -> None:
    with pytest.raises(InputError, match="not among the schedulers"):
        evaluate_window({"a": three_jobs()}, baseline="b")
    other = outcome_of({**JOBS, "job_id": [1, 2, 9]}, START, END, FOUR, SITE)
    with pytest.raises(InputError, match="different jobs"):
        evaluate_window({"a": three_jobs(), "b": other}, baseline="a")


def test_json_holds_counts_as_integers_and_no_nan() -> None:
    ready = json_ready(evaluate(three_jobs()))
    assert ready["jobs"] == 3
    assert isinstance(ready["jobs"], int)
    assert isinstance(ready["decisions"], int)
    assert ready["avg_wait_s_over_4h"] is None


def test_every_metric_documents_unit_range_and_source() -> None:
    for m in METRICS.values():
        assert re.search(rf"\[{m.unit}\], (>=? \d|in [\[(]\d, \d\]|any sign)", m.doc), (
            f"{m.name} states no unit and range: {m.doc}"
        )
        assert "Source: " in m.doc or "Not in the papers" in m.doc, f"{m.name} states no source"
    for function in PER_JOB.values():
        assert "Source: " in (function.__doc__ or "")


def test_metrics_are_found_by_name_and_names_are_unique() -> None:
    assert find("avg_bounded_slowdown").better == "lower"
    assert find("renewable_utilization").better == "higher"
    with pytest.raises(InputError, match="did you mean avg_wait_s"):
        find("avg_wait")
    with pytest.raises(InputError, match="already exists"):
        metric("other", name="avg_wait_s")(lambda run: 0.0)


def test_a_user_can_register_a_metric() -> None:
    try:

        @metric("longest run", "s", "neither")
        def longest_run_s(run: object) -> float:
            return float((run.outcome.end_s - run.outcome.start_s).max())  # type: ignore[attr-defined]

        assert evaluate(three_jobs())["longest_run_s"] == 2000.0
    finally:
        METRICS.pop("longest_run_s", None)


job = st.tuples(
    st.integers(0, 10_000), st.integers(0, 50_000), st.integers(1, 20_000), st.integers(1, 64), st.integers(-1, 3)
)


@given(st.lists(job, min_size=1, max_size=30))
def test_metrics_keep_their_order_and_partition(jobs: list[tuple[int, int, int, int, int]]) -> None:
    submit, wait, run, processors, user = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    columns = {"submit_s": submit, "processors": processors, "user": user, "power_w": 10 * processors}
    site = Site(name="day", step_s=3600.0, sources_w={"sun": np.array([0.0, 400.0, 900.0, 50.0])}, repeat=True)
    cluster = Cluster.pooled(64)
    got = evaluate(outcome_of(columns, submit + wait, submit + wait + run, cluster, site))
    for quantity in PER_JOB:
        low, p95, p99, high = (got[f"{p}_{quantity}"] for p in ("median", "p95", "p99", "max"))
        assert low <= p95 <= p99 <= high
        assert got[f"avg_{quantity}"] <= high * (1 + 1e-12)
    assert 1.0 <= got["avg_bounded_slowdown"] <= got["avg_slowdown"] * (1 + 1e-12)
    assert sum(got[f"jobs_{name}"] for name in CLASSES) == len(jobs)
    total = sum(
        got[f"jobs_{name}"] * got[f"avg_bounded_slowdown_{name}"] for name in CLASSES if got[f"jobs_{name}"]
    )  # a mean of class means, weighted by their jobs, is the mean
    assert total / len(jobs) == pytest.approx(got["avg_bounded_slowdown"])
    if (user >= 0).any():
        assert got["mean_user_wait_s"] <= got["max_user_wait_s"] <= got["max_wait_s"]
    assert got["utilization"] <= got["utilization_to_last_start"] or math.isnan(got["utilization_to_last_start"])
    assert 0.0 <= got["renewable_utilization"] <= 1.0
    assert got["brown_kwh"] + got["renewable_used_kwh"] == pytest.approx(got["energy_kwh"], rel=1e-9)
    assert got["peak_power_w"] >= cluster.idle_power_w


def test_the_common_horizon_begins_with_the_first_submission() -> None:
    # The only job waits 1000 s; idle power of 100 W under 50 W of sun is brown meanwhile.
    site = Site(name="dim", step_s=1000.0, sources_w={"sun": np.array([50.0])}, repeat=True)
    held = outcome_of({"submit_s": [0.0], "processors": [1], "power_w": [0.0]}, [1000.0], [2000.0], FOUR, site)
    got = evaluate_window({"held": held}, baseline="held")["held"]
    assert got["common_horizon_brown_kwh"] * 3.6e6 == pytest.approx(2000 * 50)
    assert got["brown_kwh"] * 3.6e6 == pytest.approx(1000 * 50)


def test_run_time_classes_include_their_lower_bounds() -> None:
    run = np.array([299.0, 300.0, 3600.0, 14_400.0])
    waited = run * np.array([1.0, 2.0, 3.0, 4.0])
    jobs = {"submit_s": [0.0] * 4, "processors": [1] * 4}
    got = evaluate(outcome_of(jobs, waited, waited + run, FOUR))
    for k, name in enumerate(("under_5min", "5min_to_1h", "1h_to_4h", "over_4h")):
        assert got[f"avg_bounded_slowdown_{name}"] == pytest.approx(2.0 + k)


def test_what_is_no_outcome_is_refused_in_one_line():
    with pytest.raises(InputError, match="outcome: is None"):
        evaluate(None)
