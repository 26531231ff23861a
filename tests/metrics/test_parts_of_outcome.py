"""Figures of partitions, accounts and users, by hand and against the whole."""

from __future__ import annotations

import math

import numpy as np
import pytest

import site_dump
from greenbatch.cluster import Cluster, NodeGroup
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
    unpaid = {values[part].pop(name) for part in ("cpu", "gpu: big", "unknown") for name in ("cost", "carbon_kg")}
    assert all(map(math.isnan, unpaid)), "no site, no prices"
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


def test_energy_by_group_of_nodes_adds_up_and_that_of_its_jobs_includes_static_power() -> None:
    """Two jobs on a frugal node of 40 W at once, one on a thirsty one after 10 s of idling at half its 100 W."""
    groups = (
        NodeGroup(name="a", count=1, processors=4, static_power_w=40.0, power_per_processor_w=1.0, partitions=("a",)),
        NodeGroup(name="b", count=1, processors=4, static_power_w=100.0, idle_fraction=0.5, power_per_processor_w=2.0,
                  partitions=("b",)),
    )  # fmt: skip
    columns = {"submit_s": [0, 0, 10], "run_time_s": [20, 10, 10], "processors": [1, 3, 4], "partition": [0, 0, 1]}
    jobs = Workload.from_columns("hand", columns, names={"partition": {0: "a", 1: "b"}})
    run = measure(simulate(jobs, Cluster.of_nodes(groups), None, Rules(), scheduler("fcfs")))
    values = nested(evaluate_parts(run, parts_of(jobs, run.outcome.cluster)))["node group"]
    joules = {name: {m: value * 3.6e6 for m, value in each.items()} for name, each in values.items() if "jobs" in each}
    shown = {name: [round(each[f"{m}_energy_kwh"]) for m in ("node", "idle", "static", "dynamic")]
             for name, each in joules.items()}  # fmt: skip
    assert shown == {"a": [850, 0, 800, 50], "b": [1580, 500, 1000, 80]}
    assert [round(joules[name]["energy_kwh"]) for name in "ab"] == [850, 1080]
    metrics = evaluate(run.outcome)
    assert [metrics[f"{m}energy_kwh"] * 3.6e6 for m in ("", "jobs_", "idle_")] == pytest.approx([2430, 1930, 500])
    assert metrics["max_energy_j"] == pytest.approx(1080)
    assert metrics["max_edp_js"] == pytest.approx((10 * 20 + 10 * 40 + 20) * 20)
    assert metrics["median_edp_js"] == pytest.approx(1080 * 10)
