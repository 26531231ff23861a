"""Figures of partitions, accounts and users, by hand and against the whole."""

from __future__ import annotations

import math

import numpy as np
import pytest

import site_dump
from greenbatch.cluster import Cluster
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.metrics import Cut, evaluate, evaluate_parts, measure, parts_of
from greenbatch.metrics.breakdown import nested, part_metric, split_part_metric
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload, read_sacct

COLUMNS = {
    "submit_s": [0, 0, 0, 10], "run_time_s": [100, 50, 10, 20], "processors": [4, 4, 2, 4],
    "power_w": [40.0, 80.0, 20.0, 10.0],
}  # fmt: skip
HAND = Workload.from_columns(
    "hand",
    {**COLUMNS, "partition": [1, 1, 2, -1], "user": [7, 7, 7, 7]},
    names={"partition": {1: "cpu", 2: "gpu: big"}},
)


def test_by_hand():
    outcome = simulate(HAND, Cluster.pooled(4), None, Rules(), scheduler("fcfs"))
    assert outcome.start_s.tolist() == [0, 100, 150, 160]
    parts = parts_of(HAND)
    assert parts == {"partition": {1: "cpu", 2: "gpu: big", -1: "unknown"}}, "one user divides nothing"
    values = nested(evaluate_parts(measure(outcome), parts))["partition"]
    assert values["cpu"] == {
        "jobs": 2, "avg_wait_s": 50, "p95_wait_s": 95, "avg_bounded_slowdown": 2.0, "processor_hours": 600 / 3600,
        "energy_kwh": 8000 / 3.6e6,
    }  # fmt: skip
    assert values["gpu: big"]["avg_wait_s"] == 150
    assert values["unknown"]["avg_bounded_slowdown"] == 170 / 20


def test_jobs_that_are_cut_do_not_count_and_an_empty_part_is_undefined():
    outcome = simulate(HAND, Cluster.pooled(4), None, Rules(), scheduler("fcfs"))
    values = nested(evaluate_parts(measure(outcome, Cut(first_jobs=3)), parts_of(HAND)))["partition"]
    assert values["cpu"]["jobs"] == 0
    assert math.isnan(values["cpu"]["avg_wait_s"])
    assert math.isnan(values["cpu"]["p95_wait_s"])
    assert values["unknown"]["jobs"] == 1


def test_unknown_power_is_not_zero_energy():
    jobs = HAND.with_columns(power_w=np.array([1.0, np.nan, 5.0, 5.0]))
    outcome = simulate(jobs, Cluster.pooled(4), None, Rules(), scheduler("fcfs"))
    values = nested(evaluate_parts(measure(outcome), parts_of(jobs)))["partition"]
    assert math.isnan(values["cpu"]["energy_kwh"])
    assert values["gpu: big"]["energy_kwh"] == 50 / 3.6e6


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Workload:
    path = tmp_path_factory.mktemp("site") / "dump.txt"
    path.write_text(site_dump.dump())
    return read_sacct(path, time_zone="UTC")


def test_the_parts_add_up_to_the_whole(site):
    outcome = simulate(site, Cluster.pooled(300), None, Rules(), scheduler("sjf+easy"))
    whole, parts = evaluate(outcome), nested(evaluate_parts(measure(outcome), parts_of(site)))
    assert list(parts) == ["partition", "account", "user"]
    assert set(parts["partition"]) == set(site_dump.PARTITIONS)
    for by in parts.values():
        assert sum(part["jobs"] for part in by.values()) == len(site)
        waits = sum(part["jobs"] * part["avg_wait_s"] for part in by.values())
        assert waits == pytest.approx(len(site) * whole["avg_wait_s"])
        hours = sum(part["processor_hours"] for part in by.values())
        assert hours == pytest.approx(float(site.processors @ site.run_time_s) / 3600)


def test_the_largest_parts_are_shown_and_the_others_added_up(site):
    users = parts_of(site, most=3)["user"]
    work = {user: float((site.processors * site.run_time_s)[site.user == user].sum()) for user in np.unique(site.user)}
    largest = sorted(work, key=lambda user: -work[user])
    assert [users[user] for user in largest[:3]] == [site.names["user"][user] for user in largest[:3]]
    assert {users[user] for user in largest[3:]} == {f"others ({len(largest) - 3})"}
    assert len(set(parts_of(site, most=len(largest) - 1)["user"].values())) == len(largest), "one other is itself"


def test_names_of_parts_may_contain_anything():
    for name in ("a", "a by b: c", "ä|ö\n", ""):
        assert split_part_metric(part_metric("jobs", "user", name)) == ("jobs", "user", name)
    assert split_part_metric("avg_wait_s") is None
