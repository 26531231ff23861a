"""What suspending costs and loses, and what is powered: worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from by_files import outcome, scenario
from greenbatch.cluster import Capacity, Cluster
from greenbatch.energy import Grid, Site
from greenbatch.engine.pools import Pools
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Decision, Start, View
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.schedulers import scheduler, with_outages
from greenbatch.schedulers.during_outages import SUFFIX
from greenbatch.workload import Outage, Workload

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
    ("machine", "told"),
    [
        ("", ""),
        ("gpus = 0", ""),
        ('[cluster.capacity]\nkind = "power"\nfull_power_per_unit_w = 100', "; what will be powered follows from it"),
        (
            '[cluster.capacity]\nkind = "series"\nfractions = [0.5, 1]',
            "; what will be powered is stated, and known as it comes",
        ),
    ],
)
def test_a_note_says_whether_what_is_powered_is_forecast(tmp_path: Path, machine: str, told: str) -> None:
    jobs = f"{JOB.splitlines()[0]} power_w\n{JOB.splitlines()[1]} 100"
    assert np.isfinite(scenario(tmp_path, jobs, SITE % (machine, "perfect")).workload.power_w).all()
    site = scenario(tmp_path, jobs, SITE % (machine, "persistence")).site
    assert site is not None
    assert [note.what for note in site.notes if note.what.startswith("schedulers are told")] == [
        f"schedulers are told a forecast, energies are those of what comes: yesterday's power{told}"
    ]


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


def powered_jobs(**columns: Any) -> Workload:
    rows = len(columns["submit_s"])
    return Workload.from_columns("by hand", {"gpus": [0] * rows, "value": [1] * rows, "qos": [1] * rows, **columns})


def dips(until_s: float) -> Cluster:
    """Four processors, none of them powered from 10 s to a time."""
    levels = Capacity(time_s=np.array([0, 10, until_s]), processors=np.array([4, 0, 4]), gpus=np.zeros(3))
    return Cluster.of_units(4, powered=levels)


def sunny(renewable_w: list[float], limit_w: float, *, repeat: bool = True) -> Site:
    """Slots of 10 s."""
    grid = Grid(import_price=np.zeros(len(renewable_w)), import_limit_w=limit_w, over_limit="hold")
    return Site(name="sunny", step_s=10.0, sources_w={"solar": np.array(renewable_w)}, grid=grid, repeat=repeat)


SUSPENDS = Rules(pools=Pools(suspends="power"))


def test_a_job_that_is_suspended_alone_waits_for_the_sun() -> None:
    """Power for it comes at 40 s; no other job arrives or ends, and its capacity has been there since 25 s."""
    one = powered_jobs(submit_s=[0], run_time_s=[15], processors=[4], power_w=[100.0])
    run = simulate(one, dips(25.0), sunny([100.0, 100, 0, 0], 50.0), SUSPENDS, scheduler("fcfs+easy"))
    assert run.stays is not None
    assert run.stays.span_start_s.tolist() == [0, 40]
    assert run.end_s.tolist() == [45]


@pytest.mark.parametrize(
    "outage", [Outage(begin_s=30.0, end_s=60.0), Outage(begin_s=18.0, end_s=60.0, processors=1, of=4)]
)
def test_a_job_that_is_suspended_alone_waits_for_the_end_of_an_outage(outage: Outage) -> None:
    """At 27 s, when the power is back, 5 s of work are left: too long before the first, and no start in the other."""
    one = powered_jobs(submit_s=[0], run_time_s=[15], processors=[4])
    kept = with_outages({"fcfs+easy": scheduler("fcfs+easy")}, (outage,))[f"fcfs+easy{SUFFIX}"]
    run = simulate(one, dips(27.0), None, SUSPENDS, kept)
    assert run.stays is not None
    assert run.stays.span_start_s.tolist() == [0, 60]
    assert run.end_s.tolist() == [65]


@pytest.mark.parametrize(("dark_s", "site"), [(1e9, None), (25.0, sunny([100.0] * 2 + [0.0] * 8, 50.0, repeat=False))])
def test_a_job_that_never_resumes_is_no_success(dark_s: float, site: Site | None) -> None:
    """Its processors never come back, or no sun shines for the rest of the series."""
    one = powered_jobs(submit_s=[0], run_time_s=[15], processors=[4], power_w=[100.0])
    levels = Capacity(time_s=np.array([0, 10]), processors=np.array([4, 0]), gpus=np.zeros(2))
    machine = dips(dark_s) if site else Cluster.of_units(4, powered=levels)
    with pytest.raises(GreenbatchError, match=r"is too small for job 1 from 10 s on|the schedule needs 100"):
        simulate(one, machine, site, SUSPENDS, scheduler("fcfs+easy"))


def test_a_swap_asks_whether_the_limit_allows_the_job_of_more_value() -> None:
    """The second job is worth more and needs 90 W: too much beside the first one and in its place without the sun."""
    jobs = powered_jobs(
        submit_s=[0, 5], run_time_s=[10, 10], processors=[4, 4], power_w=[40.0, 90.0], value=[1, 9]
    )  # fmt: skip
    rules = Rules(pools=Pools(suspends="swap"))
    always = Cluster.of_units(4)
    dark = simulate(jobs, always, sunny([0.0, 0.0, 50.0], 50.0), rules, scheduler("fcfs+none"))
    assert dark.stays is not None
    assert dark.stays.suspensions.tolist() == [0, 0]
    assert dark.start_s.tolist() == [0, 20]
    bright = simulate(jobs, always, sunny([50.0], 50.0), rules, scheduler("fcfs+none"))
    assert bright.start_s.tolist() == [0, 5]
    assert bright.end_s.tolist() == [20, 15]


def test_what_is_killed_has_ended(tmp_path: Path) -> None:
    """Two of three jobs run longer than they ask for; the last one is left at the end of the run."""
    jobs = f"{JOB.splitlines()[0]}\n1 0 100 50 4 0 1 1\n2 0 40 40 4 0 1 1\n3 0 100 50 4 0 1 1"
    run = outcome(tmp_path, jobs, "[cluster]\nprocessors = 4\ngpus = 0\n[rules.pools]\nend_s = 120\n")
    assert run.killed == 1


def test_predictors_learn_the_whole_run_time_of_a_suspended_job() -> None:
    """It asks for 60 s and runs for 20, of which it has done 10 when it is suspended: the next is to run 20 s, too."""
    jobs = powered_jobs(
        submit_s=[0, 50], run_time_s=[20, 30], requested_time_s=[60, 60], processors=[4, 4], user=[1, 1]
    )  # fmt: skip
    rules = Rules(pools=Pools(suspends="power", suspend_s=2, resume_s=3), predictor="last-two")
    seen: list[float] = []

    class Looks:
        def decide(self, view: View) -> Decision:
            seen.append(float(view.queue.predicted.expected_time_s[0]))
            return Start(0)

    simulate(jobs, dips(20.0), None, rules, scheduler(Looks()))
    assert seen == [60.0, 20.0]


def test_the_capacity_from_power_is_known_for_longer_than_the_jobs_ask_for(tmp_path: Path) -> None:
    """One job of 1,000 hours, submitted at 0: the days and nights of its site go on until it ends."""
    header = JOB.splitlines()[0]
    jobs = f"{header} power_w\n1 0 3600000 3600000 4 0 1 1 100"
    described = """
[cluster]
processors = 4
[cluster.capacity]
kind = "power"
full_power_per_unit_w = 5000.0
[rules.pools]
suspends = "power"
[site]
kind = "synthetic"
"""
    run = outcome(tmp_path, jobs, described)
    assert run.stays is not None
    lasts_s = run.end_s[0]
    levels = run.cluster.capacity_levels
    assert levels.time_s[-1] > lasts_s
    assert lasts_s < levels.until_s


def test_an_intermittent_capacity_lasts_as_long_as_the_last_episode(tmp_path: Path) -> None:
    jobs = f"{JOB}\n2 500 20 20 4 0 9 1"
    made = scenario(tmp_path, jobs, """
[cluster]
processors = 4
gpus = 0
[cluster.capacity]
kind = "intermittent"
level = 0.5
[rules.pools]
episode_s = 300
""")  # fmt: skip
    assert made.cluster.capacity_levels.time_s[-1] > 780


@pytest.mark.parametrize(("run_s", "refused"), [(30, False), (31, True)])
def test_a_run_ends_before_its_capacity_is_no_longer_known(run_s: int, refused: bool) -> None:
    levels = Capacity(time_s=np.zeros(1), processors=np.array([4]), gpus=np.zeros(1), until_s=30.0)
    one, machine = powered_jobs(submit_s=[0], run_time_s=[run_s], processors=[4]), Cluster.of_units(4, powered=levels)
    if not refused:
        assert simulate(one, machine, None, SUSPENDS, scheduler("fcfs+easy")).end_s.tolist() == [30]
        return
    with pytest.raises(InputError, match=r"cluster.capacity: is known until 30 s only, and jobs are left then"):
        simulate(one, machine, None, SUSPENDS, scheduler("fcfs+easy"))
