"""What suspending costs and loses, and what is powered: worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from by_files import outcome, scenario
from greenbatch.cluster import Capacity
from greenbatch.errors import InputError

pytestmark = pytest.mark.plain

JOB = "job_id submit_s run_time_s requested_time_s processors gpus value qos\n1 0 100 100 4 0 1 1"
FALLS = "time_s processors gpus\n0 4 0\n50 0 0\n60 4 0\n140 0 0\n150 4 0"
MACHINE = """
[cluster]
processors = 4
gpus = 0
[cluster.capacity]
kind = "series"
file = "capacity.csv"
[rules.pools]
suspends = "power"
suspend_s = 10
resume_s = 20
"""


@pytest.mark.parametrize(
    ("loses", "falls", "spans"),
    [
        # Suspended at 50 with 50 s to do, it takes 30 s from 60 on, and works from 90 to 140.
        ('loses = "nothing"', FALLS, [(0, 50), (60, 140)]),
        # At 50 all is lost; it works 50 s from 90 to 140, which is lost as well, and 100 s from 180 on.
        ('loses = "all"', FALLS, [(0, 50), (60, 140), (150, 280)]),
        ('loses = "checkpoint"\ncheckpoint_s = 1000', FALLS, [(0, 50), (60, 140), (150, 280)]),
        # 40 s are kept at 50, and 40 of the 50 s that it works from 90 on: 20 are left at 140.
        ('loses = "checkpoint"\ncheckpoint_s = 20', FALLS, [(0, 50), (60, 140), (150, 200)]),
        # It is suspended while it resumes: that is taken once more, and no work is lost.
        ('loses = "nothing"', FALLS.replace("140 0", "75 0").replace("150 4", "80 4"), [(0, 50), (60, 75), (80, 160)]),
        ('loses = "all"', FALLS.replace("140 0", "75 0").replace("150 4", "80 4"), [(0, 50), (60, 75), (80, 210)]),
    ],
)
def test_what_a_suspension_takes_is_taken_once(
    tmp_path: Path, loses: str, falls: str, spans: list[tuple[float, float]]
) -> None:  # fmt: skip
    run = outcome(tmp_path, JOB, MACHINE + loses, capacity=falls)
    assert run.stays is not None
    assert [*zip(run.stays.span_start_s.tolist(), run.stays.span_end_s.tolist(), strict=True)] == spans
    assert run.end_s.tolist() == [spans[-1][1]]


def test_a_share_of_the_machine_is_never_more_than_the_power_is_for(tmp_path: Path) -> None:
    """75 % of 10 units is 7 (RARE, Eq. 4.2), and products such as 0.29 * 100 are whole."""
    for share, units, powered in (
        (0.75, 10, 7),
        (0.9, 10, 9),
        (0.29, 100, 29),
        (0.999, 10, 9),
        (1.0, 3, 3),
        (0.05, 10, 0),
    ):
        found = Capacity.of_ticks([share], 1.0, processors=units, gpus=2 * units)
        assert found.processors.tolist() == [powered]
        assert found.gpus[0] <= share * 2 * units + 1e-9
    for kind in ('kind = "constant"\nfraction = 0.75', 'kind = "series"\nfractions = [0.75, 0.29]'):
        made = scenario(tmp_path, JOB, f"[cluster]\nprocessors = 10\ngpus = 4\n[cluster.capacity]\n{kind}\n")
        assert (made.cluster.capacity_levels.processors[0], made.cluster.capacity_levels.gpus[0]) == (7, 3)


SITE = """
[cluster]
processors = 4
%s
[site]
kind = "synthetic"
forecast = { kind = "%s" }
"""


@pytest.mark.parametrize(
    "machine", ["gpus = 0", '[cluster.capacity]\nkind = "power"\nfull_power_per_unit_w = 100\n', ""]
)  # fmt: skip
def test_forecast_errors_are_refused_where_nothing_would_come_of_them(tmp_path: Path, machine: str) -> None:
    jobs = f"{JOB.splitlines()[0]} power_w\n{JOB.splitlines()[1]} 100"
    assert np.isfinite(scenario(tmp_path, jobs, SITE % (machine, "perfect")).workload.power_w).all()
    if not machine:  # a plain pool
        assert scenario(tmp_path, jobs, SITE % (machine, "persistence")).site is not None
        return
    with pytest.raises(InputError) as refused:
        scenario(tmp_path, jobs, SITE % (machine, "persistence"))
    text = str(refused.value)
    assert "site.forecast: is persistence, and where capacity follows the power it is known as it comes" in text
    assert "leave site.forecast out" in text


@pytest.mark.parametrize(
    ("actions", "spans"),
    [(1, [(0, 100), (100, 120)]), (2, [(0, 10), (10, 30), (30, 121)]), (3, [(0, 10), (10, 30), (30, 121)])],
)
def test_a_swap_is_two_actions_of_one_tick(
    tmp_path: Path, actions: int, spans: list[tuple[float, float]]
) -> None:  # fmt: skip
    """With one, the suspended job would resume before the other starts, in every tick, and neither would end."""
    jobs = f"{JOB}\n2 10 20 20 4 0 9 1"
    pools = f'[rules.pools]\nsuspends = "swap"\nsuspend_s = 1\nactions_per_tick = {actions}\n'
    run = outcome(tmp_path, jobs, f"[cluster]\nprocessors = 4\ngpus = 0\n{pools}", "fcfs+none")
    assert run.stays is not None
    found = zip(run.stays.span_start_s.tolist(), run.stays.span_end_s.tolist(), strict=True)
    assert sorted(found) == spans
