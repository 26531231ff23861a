"""DVFS levels: slower, longer, less power; of all jobs by the rules, of one job by a policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from test_node_machine import jobs_for, node_clusters

from greenbatch.cli import main
from greenbatch.cluster import Cluster, DvfsLevel, NodeGroup
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import run_program, simulate
from greenbatch.engine.views.driver import ViewDriver
from greenbatch.engine.views.interface import Queue, Start, View
from greenbatch.engine.views.session import Session
from greenbatch.errors import InputError
from greenbatch.metrics.energy_use import energy_use
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

NODES = Cluster.of_nodes(
    (NodeGroup(name="n", count=2, processors=4, static_power_w=100.0, idle_fraction=0.5, power_per_processor_w=10.0),),
    dvfs=(DvfsLevel(speed=0.5, power=0.3),),
)
JOBS = Workload.from_columns(
    "hand", {"submit_s": [0.0, 0.0], "run_time_s": [10.0, 10.0], "processors": [4, 4], "power_w": [np.nan, 7.0]}
)


def test_by_hand() -> None:
    """At half the speed and 30% of the power, both jobs run for 20 s, and none is killed at its request of 10 s."""
    outcome = simulate(JOBS, NODES, None, Rules(dvfs_level=1), scheduler("fcfs+easy"))
    assert outcome.end_s.tolist() == [20, 20]
    assert outcome.killed == 0
    assert outcome.dvfs_level is not None
    assert outcome.dvfs_level.tolist() == [1, 1]
    assert energy_use(outcome).job_j.tolist() == pytest.approx([20 * (100 + 0.3 * 40), 20 * (100 + 0.3 * 7)])
    assert outcome.profile_load_w[0] == pytest.approx(200 + 0.3 * 47)


class SecondSlowly:
    """Starts job 2 at the lower level."""

    name = "second-slowly"

    def decide(self, view: View) -> Start:
        return Start(0, dvfs_level=1 if view.job_id[0] == 2 else None)


def test_a_policy_chooses_the_level_of_a_job_when_it_starts_it() -> None:
    outcome = simulate(JOBS, NODES, None, Rules(), scheduler(SecondSlowly))
    assert outcome.end_s.tolist() == [10, 20]
    assert outcome.dvfs_level is not None
    assert outcome.dvfs_level.tolist() == [0, 1]


def test_a_job_that_has_to_wait_keeps_its_level_and_a_reservation_allows_for_it() -> None:
    """The second job needs both nodes: it starts after the first, runs for 20 s, and the third fits before it."""
    columns = {"submit_s": [0, 0, 1], "run_time_s": [10, 10, 9], "processors": [4, 8, 4], "power_w": [1, 1, 1]}
    jobs = Workload.from_columns("hand", {name: np.array(values, float) for name, values in columns.items()})
    outcome = simulate(jobs, NODES, None, Rules(), scheduler(SecondSlowly, backfill="easy"))
    assert outcome.start_s.tolist() == [0, 10, 1]
    assert outcome.end_s.tolist() == [10, 30, 10]


@settings(max_examples=15, deadline=None)
@given(data=st.data(), name=st.sampled_from(["fcfs+easy", "fcfs+conservative", "sjf+none+spread"]))
def test_a_level_is_a_slower_machine_with_longer_requests(data: st.DataObject, name: str) -> None:
    """The schedule is that of the same cluster with all times twice as long."""
    cluster = data.draw(node_clusters(speeds=(0.5, 1.0), partitions=data.draw(st.booleans())))
    jobs = data.draw(jobs_for(cluster))
    longer = jobs.with_columns(run_time_s=2 * jobs.run_time_s, requested_time_s=2 * jobs.requested_time_s)
    rule, level = scheduler(name), DvfsLevel(speed=0.5, power=1.0)
    slow = simulate(jobs, replace(cluster, dvfs=(level,)), None, Rules(dvfs_level=1), rule)
    other = simulate(longer, cluster, None, Rules(), rule)
    assert slow.start_s.tolist() == other.start_s.tolist()
    assert slow.end_s.tolist() == pytest.approx(other.end_s.tolist())
    assert slow.killed == other.killed


def test_a_lower_level_keeps_a_power_cap_that_the_highest_breaks() -> None:
    """Idle, the nodes draw 100 W; the first job adds 50 W and 40 W at the highest level, or 50 W and 12 W."""
    first = JOBS.take(slice(0, 1))
    with pytest.raises(InputError, match="power_cap_w"):
        simulate(first, NODES, None, Rules(power_cap_w=170.0), scheduler("fcfs+easy"))
    outcome = simulate(first, NODES, None, Rules(power_cap_w=170.0, dvfs_level=1), scheduler("fcfs+easy"))
    assert outcome.profile_load_w.max() == pytest.approx(162)


def test_fixed_scores_see_the_requested_times_at_the_level() -> None:
    def near(queue: Queue) -> Any:
        return np.abs(queue.requested_time_s - 15)

    columns = {"submit_s": [0.0, 1.0, 1.0], "run_time_s": [9.0, 10.0, 12.0], "processors": [8, 8, 8]}
    jobs = Workload.from_columns("hand", columns)
    programs = [Program(name="near", score=near, fixed=fixed) for fixed in (True, False)]
    starts = [run_program(jobs, NODES, None, Rules(dvfs_level=1), program).start_s for program in programs]
    assert starts[0].tolist() == starts[1].tolist() == [0, 18, 38]


@pytest.mark.parametrize("cluster", [Cluster.pooled(8), NODES])
def test_a_level_that_the_cluster_lacks_is_refused(cluster: Cluster) -> None:
    with pytest.raises(InputError, match="no DVFS level"):
        simulate(JOBS.with_columns(power_w=np.ones(2)), cluster, None, Rules(dvfs_level=2), scheduler("fcfs+easy"))


def test_a_driver_of_views_refuses_levels_instead_of_ignoring_them() -> None:
    jobs = JOBS.take(slice(1, 2))
    decider = scheduler(SecondSlowly)
    driver = ViewDriver(decider.program(jobs), decider.policy(), NODES, Rules())
    view = Session(jobs, NODES, None, Rules(), Program(name="system")).view()
    assert view is not None
    with pytest.raises(InputError, match="chooses a DVFS level, which a ViewDriver cannot pass on"):
        driver.decide(view)


@pytest.mark.parametrize(
    "values", [{"speed": 0.0, "power": 0.5}, {"speed": 1.1, "power": 0.5}, {"speed": 0.5, "power": -1}]
)
def test_levels_out_of_range_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"cluster\.dvfs"):
        DvfsLevel(**values)


def test_in_a_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text("submit_s,run_time_s,processors\n0,10,4\n")
    text = """name = "slow"
[workload]
file = "jobs.csv"
[workload.power]
kind = "none"
[[cluster.groups]]
name = "n"
count = 2
processors = 4
static_power_w = 100
[[cluster.dvfs]]
speed = 0.5
power = 0.4
[rules]
dvfs_level = 1
"""
    Path("slow.toml").write_text(text)
    assert main(["simulate", "--scenario", "slow.toml", "--scheduler", "fcfs+easy", "--out", "out"]) == 0
    names, job = (line.split(",") for line in Path("out/schedule.csv").read_text().splitlines())
    assert (job[3], names[-1], job[-1]) == ("20", "dvfs_level", "1")
    Path("slow.toml").write_text(text.replace("dvfs_level = 1", "dvfs_level = 2"))
    capsys.readouterr()
    assert main(["simulate", "--scenario", "slow.toml", "--scheduler", "fcfs+easy", "--out", "out2"]) == 2
    assert "rules.dvfs_level: there is no DVFS level 2 (the cluster has levels 0 to 1)" in capsys.readouterr().err
