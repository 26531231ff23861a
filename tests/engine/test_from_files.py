"""Schedules worked out by hand from a scenario of a few lines: nodes, reservations, boots and capacity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import greenbatch as gb
from by_files import outcome, scenario

NODES = """
[cluster]
[[cluster.groups]]
name = "plain"
count = 1
processors = 4
static_power_w = 10
[[cluster.groups]]
name = "gpu"
count = 1
processors = 4
gpus = 2
static_power_w = 10
"""


def test_the_reservation_counts_all_jobs_that_end_at_its_instant(tmp_path: Path) -> None:
    """Both nodes are free at 100 s, and job 3 takes the first: job 4 may run beside job 1 beyond that."""
    run = outcome(
        tmp_path,
        """job_id submit_s run_time_s requested_time_s processors nodes gpus
        1 0 100 100 2 1 1
        2 0 100 100 4 1 0
        3 1 50 50 4 1 0
        4 2 300 300 2 1 0""",
        NODES,
    )
    assert run.start_s.tolist() == [0, 0, 100, 2]
    assert run.promised_start_s[2] == 100


def test_a_node_that_is_reserved_for_a_job_alone_is_kept_free_of_others(tmp_path: Path) -> None:
    """Job 3 has the GPU node to itself from 100 s on: job 4 would outlive that there, job 5 would not."""
    run = outcome(
        tmp_path,
        """job_id submit_s run_time_s requested_time_s processors nodes gpus exclusive
        1 0 999 999 4 1 0 0
        2 0 100 100 1 1 1 0
        3 1 50 50 1 1 1 1
        4 2 300 300 1 1 0 0
        5 3 90 90 1 1 1 0""",
        NODES,
    )
    assert run.start_s.tolist() == [0, 0, 100, 150, 3]


def test_a_job_that_has_a_node_to_itself_has_its_gpus_as_well(tmp_path: Path) -> None:
    """A policy sees none of them free while it runs, and all of them afterwards."""
    made, seen = (
        scenario(
            tmp_path,
            """job_id submit_s run_time_s requested_time_s processors nodes gpus exclusive
        1 0 100 100 1 1 1 1
        2 10 100 100 1 1 1 0
        3 201 10 10 1 1 0 0""",
            NODES,
        ),
        {},
    )

    class Watch(gb.Policy):
        def decide(self, view: gb.View) -> gb.Start | gb.Wait:
            seen[view.now_s] = view.nodes.free_gpus.tolist()
            return gb.Start(0)

    run = gb.simulate(made, Watch())
    assert run.start_s.tolist() == [0, 100, 201]
    assert seen == {0: [0, 2], 10: [0, 0], 100: [0, 2], 201: [0, 2]}


def test_a_job_does_no_work_while_its_node_boots(tmp_path: Path) -> None:
    """The node is up at 60 s; of 100 s of work the request lets 50 s be done, so that the job is killed."""
    run = outcome(
        tmp_path,
        """job_id submit_s run_time_s requested_time_s processors
        1 0 100 50 4
        2 0 50 50 4""",
        """
[cluster]
power_on = "on-demand"
[[cluster.groups]]
name = "n"
count = 2
processors = 4
static_power_w = 100
power_per_processor_w = 10
boot_s = 60
boot_energy_j = 4800
[rules]
overrun = "kill"
""",
    )
    assert (run.start_s.tolist(), run.end_s.tolist()) == ([60, 60], [110, 110])
    assert gb.evaluate(run)["killed"] == 1


CAPACITY = """
[cluster]
processors = 4
gpus = 0
[cluster.capacity]
kind = "series"
file = "capacity.csv"
"""


@pytest.mark.parametrize(("rules", "promised_s"), [("", 40), ("suspends = 'power'", 10), ("horizon_s = 15", 10)])
def test_a_reservation_lasts_as_long_as_power_must_be_there(tmp_path: Path, rules: str, promised_s: float) -> None:
    """Job 2 fits from 10 s on, but 3 of 4 processors are off from 30 to 40 s: it may start before only if it can be
    suspended, or if nobody knows of that yet."""
    run = outcome(
        tmp_path,
        """job_id submit_s run_time_s requested_time_s processors gpus
        1 0 10 10 1 0
        2 1 25 25 4 0""",
        f"{CAPACITY}[rules.pools]\n{rules}\n",
        capacity="""time_s processors gpus
        0 4 0
        30 1 0
        40 4 0""",
    )
    assert run.promised_start_s[1] == promised_s
    assert run.start_s[0] == 0
    assert np.isfinite(run.end_s).all()
