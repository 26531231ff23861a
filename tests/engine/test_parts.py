"""A new kind of machine, of capacity and of supply: a class and a few functions each, and a registration.

No other file of the engine knows of them, and `simulate` runs with them as with any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from cases import ESTIMATES, job_lists, workload
from digests import random_jobs
from driven import run_from_views
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import Job

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.energy import Site
from greenbatch.engine.accounts import books
from greenbatch.engine.capacity.levels import next_level_s, stays_powered
from greenbatch.engine.capacity.varying import capacity_of
from greenbatch.engine.decide import decide
from greenbatch.engine.limits import can_start
from greenbatch.engine.machine.resources import fits, give, machine_of, next_change_s, take
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.power.balance import NO_RATES, NO_STORAGE, enter
from greenbatch.engine.power.build import slots_of
from greenbatch.engine.power.protocol import LEFT_THE_SERIES, flow, forecast_w, power_of
from greenbatch.engine.power.slots import covering, next_edge_s
from greenbatch.engine.prepare import prepare
from greenbatch.engine.program import CompiledPolicy, Program
from greenbatch.engine.records import Clock, Floats, Ledger, MachineTotals, Slots, record_of, shared
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import run_program, simulate
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, start_now
from greenbatch.engine.views.interface import Start
from greenbatch.engine.views.session import Session
from greenbatch.machine_code.compile import compiled_small, machine_code
from greenbatch.machine_code.kept import cache_folder
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
DAWN_S, DUSK_S = 6 * HOUR_S, 22 * HOUR_S


# ---------------------------------------------------------------- a machine: what would be machine/night_pool.py


class NightlyCluster(Cluster):
    """A cluster that starts no job wider than half of it from ten at night to six in the morning."""


class NightPool(NamedTuple):
    """Pooled processors, half of which rest at night."""

    totals: MachineTotals


@machine_of.register
def night_pool_of(cluster: NightlyCluster, workload: Workload) -> NightPool:
    processors, idle_w = cluster.processors, cluster.idle_power_w
    return NightPool(
        record_of(MachineTotals, processors=processors, free=processors, load_w=idle_w, base_power_w=idle_w)
    )  # fmt: skip


@compiled_small
def is_night(now_s: float) -> bool:
    hour_s = now_s % DAY_S
    return bool(hour_s < DAWN_S or hour_s >= DUSK_S)


@fits.register(NightPool)
def fits_night_pool(machine: NightPool, job: int, processors: int, now_s: float) -> bool:
    totals = machine.totals
    return processors <= totals.free and not (2 * processors > totals.processors and is_night(now_s))


@take.register(NightPool)
def take_from_night_pool(
    machine: NightPool, job: int, processors: int, power_w: float, now_s: float, outlives: bool
) -> float:  # fmt: skip
    machine.totals.free -= processors
    machine.totals.load_w += power_w
    return 1.0


@give.register(NightPool)
def give_to_night_pool(
    machine: NightPool, job: int, processors: int, power_w: float, now_s: float, is_last: bool
) -> None:  # fmt: skip
    totals = machine.totals
    totals.free += processors
    totals.load_w = totals.base_power_w if is_last else totals.load_w - power_w


@next_change_s.register(NightPool)
def dawn_s(machine: NightPool, now_s: float) -> float:
    return next_edge_s(now_s, DAWN_S, DAY_S)


# ---------------------------------------------------------------- a capacity: what would be capacity/curfew.py


class CurfewCluster(Cluster):
    """A cluster on which no job runs at ten in the evening if its request allows that, on a pool or on nodes."""


class Curfew(NamedTuple):
    """No job that requests less than a day starts if it could still run at ten."""

    begins_s: Floats
    """Time of the day, shape (1,). [s]"""


@capacity_of.register
def curfew_of(cluster: CurfewCluster, workload: Workload, totals: MachineTotals) -> Curfew:
    return Curfew(np.array([DUSK_S]))


@stays_powered.register(Curfew)
def ends_before_curfew(capacity: Curfew, s: State, job: int) -> bool:
    now_s, requested_s = s.clock.now_s, s.jobs[job].requested_s
    return bool(requested_s >= DAY_S or now_s + requested_s <= next_edge_s(now_s, capacity.begins_s[0], DAY_S))


@next_level_s.register(Curfew)
def next_curfew_s(capacity: Curfew, now_s: float) -> float:
    return float(next_edge_s(now_s, capacity.begins_s[0], DAY_S))


# ---------------------------------------------------------------- a supply: what would be power/tariffed.py


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TariffedSite(Site):
    """A site that pays a fixed price for energy from the grid."""

    price_per_kwh: float


@shared("supply_w")
class Tariffed(NamedTuple):
    """A repeating series of renewable power, and a tariff for the rest."""

    slots: Slots
    supply_w: Floats
    tariff: Floats
    """Price of grid energy, shape (1,). [1/J]"""


@power_of.register
def tariffed_by(site: TariffedSite) -> Tariffed:
    return Tariffed(slots_of(site), np.array(site.renewable_w), np.array([site.price_per_kwh / 3.6e6]))


@forecast_w.register(Tariffed)
def forecast_of_tariffed(power: Tariffed, clock: Clock, slot: int, current: int) -> float:
    slots = power.slots
    ahead = (slot - current) % min(slots.forecast, slots.count)
    return float(power.supply_w[(current + ahead) % slots.count])


@flow.register(Tariffed)
def flow_at_a_tariff(
    power: Tariffed, load_w: float, from_s: float, to_s: float, ledger: Ledger, rows: Floats, count: int
) -> int:  # fmt: skip
    slots, at_s, before, grid_j = power.slots, from_s, count, ledger.grid_j
    while at_s < to_s:
        slot, edge_s = covering(slots, at_s)
        if not slots.repeats and not 0 <= slot < slots.count:
            return LEFT_THE_SERIES
        next_s = min(to_s, edge_s)
        renewable_w = power.supply_w[slot % slots.count]
        count = enter(ledger, at_s, next_s, load_w, renewable_w, NO_STORAGE, NO_RATES, rows, count)
        at_s = next_s
    ledger.cost += (ledger.grid_j - grid_j) * power.tariff[0]
    return count - before


# ---------------------------------------------------------------- and they work

SCHEDULERS = ["fcfs+easy", "f2+green", "fcfs+conservative", "cheapest-start"]


def nightly(processors: int = 8) -> NightlyCluster:
    return NightlyCluster.pooled(processors, processors_per_machine=4, idle_power_per_machine_w=30.0)


def tariffed(power_w: list[float], price: float = 0.25, step_s: float = HOUR_S) -> TariffedSite:
    sources = {"sun": np.array(power_w)}
    return TariffedSite(name="t", step_s=step_s, sources_w=sources, repeat=True, price_per_kwh=price)


SUN = tariffed([0.0] * 6 + [100.0] * 6 + [400.0] * 6 + [50.0] * 6)


def run(name: str, jobs: Workload, cluster: Cluster, site: Site, **rules: Any) -> Outcome:
    return simulate(jobs, cluster, site, Rules(**rules), scheduler(name))


def is_dark(time_s: Any) -> Any:
    """Written without the machine."""
    return ((time_s // 60) % 1440 < 360) | ((time_s // 60) % 1440 >= 1320)


def check(outcome: Outcome) -> None:
    """What must hold of any schedule of such a machine."""
    jobs, start_s = outcome.workload, outcome.start_s
    assert (start_s >= jobs.submit_s).all()
    wide = 2 * jobs.processors > outcome.cluster.processors
    assert not (wide & is_dark(start_s)).any()
    for instant in start_s:
        running = (start_s <= instant) & (instant < outcome.end_s)
        assert jobs.processors[running].sum() <= outcome.cluster.processors


@pytest.mark.parametrize("name", SCHEDULERS)
def test_wide_jobs_start_by_day_and_narrow_ones_at_any_time(name: str) -> None:
    """Submitted at 23:00 and at 1:00 on an empty machine: the wide jobs start at six, one after the other.

    Reservations count processors only, so they let a wide job start at night: under EASY, jobs that fit beside it may
    go ahead, under Green-Backfilling only jobs that would end before it starts, of which there are none.
    """
    submit_s, minute_s = 23 * HOUR_S, 60.0
    narrow, wide = Job(submit_s, minute_s, minute_s, 3, 90.0), Job(submit_s, minute_s, minute_s, 5, 90.0)
    jobs = workload([narrow, wide, wide._replace(submit_s=25 * HOUR_S), narrow._replace(submit_s=26 * HOUR_S)])
    always = tariffed([10_000.0])  # nothing to wait for but the day
    outcome = run(name, jobs, nightly(), always)
    check(outcome)
    assert outcome.start_s[[1, 2]].tolist() == [DAY_S + DAWN_S, DAY_S + DAWN_S + minute_s]
    assert outcome.start_s[0] == submit_s
    assert (outcome.start_s[3] == 26 * HOUR_S) == (name != "f2+green")
    if name == "fcfs+easy":
        assert run(name, jobs, Cluster.pooled(8), always).start_s[1] == submit_s  # beside the first


@pytest.mark.parametrize("name", SCHEDULERS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_schedules_are_valid(name: str, data: st.DataObject) -> None:
    cluster = nightly(data.draw(st.integers(2, 9)))
    estimates = data.draw(st.sampled_from(ESTIMATES))
    jobs = workload(data.draw(job_lists(cluster.processors, estimates, unit_s=data.draw(st.sampled_from([60, 1800])))))
    rules = {"commitment": data.draw(st.sampled_from(["sticky", "reconsider"]))}
    check(run(name, jobs, cluster, SUN, **rules))


@pytest.mark.parametrize("name", ["fcfs+easy", "fcfs+easy-schedgym", "f2+green"])
def test_a_submission_at_dawn_does_not_hide_it(name: str) -> None:
    """The wide job starts at dawn, although nothing but the arrival at that instant is an event of its own."""
    jobs = workload([Job(3600.0, 600.0, 600.0, 8, 90.0), Job(DAWN_S, 600.0, 600.0, 8, 90.0)])
    assert run(name, jobs, nightly(), tariffed([10_000.0])).start_s.tolist() == [DAWN_S, DAWN_S + 600.0]


@pytest.mark.parametrize("name", ["fcfs+easy", "fcfs+easy-schedgym", "f2+green"])
def test_such_a_machine_is_also_driven_from_views(name: str) -> None:
    """The driver makes the machine from the cluster. A job is submitted at every dawn."""
    jobs = workload([Job(1800.0 * k, 4000.0, 5000.0, 1 + 3 * k % 8, 90.0) for k in range(20)])
    how, cluster = scheduler(name), nightly()
    started_s = run_from_views(how, jobs, cluster, SUN, Rules()).start_s
    assert started_s.tolist() == run(name, jobs, cluster, SUN).start_s.tolist()
    assert started_s.tolist() != run(name, jobs, Cluster.pooled(8), SUN).start_s.tolist()


@pytest.mark.parametrize("name", SCHEDULERS)
def test_cost_is_energy_from_the_grid_times_the_tariff(name: str) -> None:
    jobs = workload([Job(900.0 * k, 4000.0, 5000.0, 1 + k % 5, 70.0 + 13 * k) for k in range(20)])
    outcome = run(name, jobs, nightly(), SUN)
    found = books(outcome)
    assert found.grid_j > 0
    assert found.cost == pytest.approx(found.grid_j / 3.6e6 * 0.25, rel=1e-12)
    dearer = run(name, jobs, nightly(), tariffed(SUN.renewable_w.tolist(), 0.5))
    assert dearer.start_s.tolist() == outcome.start_s.tolist()
    assert books(dearer).cost == pytest.approx(2 * found.cost, rel=1e-12)
    free = Site(name="p", step_s=HOUR_S, sources_w=SUN.sources_w, repeat=True)
    assert books(replace(outcome, site=free)) == found._replace(cost=0.0)


def test_cost_is_counted_during_the_run_as_well() -> None:
    """By the same `flow`."""
    how, jobs = scheduler("fcfs+easy"), workload([Job(900.0 * k, 4000.0, 5000.0, 1 + k % 5, 300.0) for k in range(20)])
    session = Session(jobs, nightly(), SUN, Rules(), how.program(jobs))
    session.state.rules.accrue = 1
    while session.view() is not None:
        session.apply(Start(0))
    assert session.state.ledger.cost == pytest.approx(books(session.outcome()).cost, rel=1e-12)
    assert session.state.ledger.cost > 0


@pytest.mark.parametrize("on_nodes", [False, True])
@pytest.mark.parametrize("name", ["fcfs+easy", "f2+first-fit", "fcfs+none"])
def test_a_capacity_goes_with_any_machine(name: str, on_nodes: bool) -> None:
    """At ten in the evening nothing runs, and every job runs at last."""
    draw, jobs = np.random.default_rng(5), workload(random_jobs(5, 40))
    run_s = draw.uniform(600.0, 20 * HOUR_S, 40).round()
    submit_s = np.sort(draw.uniform(0.0, 3 * DAY_S, 40).round())
    jobs = jobs.with_columns(submit_s=submit_s, run_time_s=run_s, requested_time_s=run_s)
    groups = (NodeGroup(name="a", count=2, processors=4, static_power_w=0.0),)
    cluster = CurfewCluster.of_nodes(groups) if on_nodes else CurfewCluster.pooled(8)
    outcome = simulate(jobs, cluster, None, Rules(), scheduler(name))
    curfews_s = np.arange(DUSK_S, outcome.end_s.max(), DAY_S)
    runs = (outcome.start_s[:, None] < curfews_s) & (outcome.end_s[:, None] > curfews_s)
    assert np.isfinite(outcome.end_s).all()
    assert not runs.any()


@pytest.mark.compiled
def test_machine_code_for_parts_elsewhere_is_never_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would notice that this file has changed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jobs = workload([Job(0.0, 60.0, 60.0, 1, 90.0)])
    for kept, cluster, site in ((0, nightly(), SUN), (1, Cluster.pooled(8), None)):
        state = prepare(jobs, cluster, site, Rules(), scheduler("fcfs+easy").program(jobs))
        code = machine_code(can_start.py_func, numba.boolean(numba.typeof(state), numba.int64, numba.int64))
        assert not code(state, 0, 9), "it fits in neither machine"
        assert len(list(cache_folder().rglob("*.code"))) == kept


@pytest.mark.compiled
def test_a_class_may_be_defined_again_and_have_any_name() -> None:
    """As in a notebook, with the same fields; a class of the engine has the same name."""
    classes = [NamedTuple("State", [("x", int)]) for _ in range(2)]

    @decide.register(classes[0])
    def first(_: Any, s: Any) -> None:
        apply(s, start_now(s.clock.first))

    @decide.register(classes[1])
    def last(_: Any, s: Any) -> None:
        apply(s, start_now(s.clock.last - 1))

    jobs = workload([Job(0.0, length_s, length_s, 1, 1.0) for length_s in (10.0, 20.0, 30.0)])
    starts = []
    for made in classes:
        program = Program(name="own", decider=CompiledPolicy(name="own", begin=lambda *_, made=made: made(0)))
        starts.append(run_program(jobs, Cluster.pooled(1), None, Rules(), program).start_s.tolist())
    assert starts == [[0.0, 10.0, 30.0], [0.0, 40.0, 10.0]]
