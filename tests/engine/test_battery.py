"""Storage: the energy balance at random sites, its limits, and cases computed by hand for every rule of dispatch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from cases import Commander, clusters, job_lists, site, supplies, workload
from hypothesis import given, settings
from numpy.typing import NDArray
from plain import Job

from greenbatch.cluster import Cluster
from greenbatch.energy import Grid, Site, Storage
from greenbatch.engine.accounts import Books, Segments, books, power_segments
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Start
from greenbatch.engine.views.session import Session
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

REL = 1e-9
COMMANDS_W = (-1e9, -45.0, -1.0, 0.0, 1.0, 33.3, 1e9)
J_PER_KWH = 3.6e6


@st.composite
def batteries(draw: st.DrawFn) -> Storage:
    """Batteries for loads of some hundred watts over a minute, of every rule."""
    dispatch = draw(st.sampled_from(["greedy", "price-arbitrage", "peak-shaving", "scheduler", "scheduler"]))
    lowest = draw(st.sampled_from([0.0, 0.2]))
    return Storage(
        capacity_kwh=draw(st.sampled_from([0.0, 100.0, 1000.0, 4000.0, 1e9])) / J_PER_KWH,
        charge_w=draw(st.sampled_from([20.0, 77.7, 1e6])),
        discharge_w=draw(st.sampled_from([15.0, 60.0, 1e6])),
        charge_efficiency=draw(st.sampled_from([1.0, 0.9])),
        discharge_efficiency=draw(st.sampled_from([1.0, 0.8])),
        lowest_charge=lowest,
        highest_charge=draw(st.sampled_from([0.5, 1.0])),
        initial_charge=draw(st.sampled_from([None, lowest, 0.45])),
        self_discharge_per_day=draw(st.sampled_from([0.0, 0.5, 0.999])),
        dispatch=dispatch,
        limit_w=draw(st.sampled_from([0.0, 50.0, 200.0])) if dispatch == "peak-shaving" else None,
    )


@st.composite
def grids(draw: st.DrawFn, slots: int) -> Grid:
    """Prices and intensities per slot, negative prices too."""

    def series(*values: float) -> NDArray[np.float64]:
        return np.array(draw(st.lists(st.sampled_from(values), min_size=slots, max_size=slots)))

    return Grid(
        currency="EUR", import_price=series(0.3, 0.1, 0.0, -0.2), export_price=series(0.0, 0.08, 0.4, -0.1),
        source_price={"all": series(0.0, 0.05)}, source_g_per_kwh={"all": 40.0},
        carbon_g_per_kwh=series(0.0, 50.0, 700.0),
    )  # fmt: skip


class World(NamedTuple):
    """What is simulated."""

    jobs: Workload
    cluster: Cluster
    site: Site
    commands: list[float]
    """Commands to storage, if the scheduler gives them. [W]"""

    @property
    def scheduler(self) -> Any:
        is_commanded = self.site.storage is not None and self.site.storage.dispatch == "scheduler"
        return scheduler(Commander(self.commands), backfill="easy") if is_commanded else scheduler("fcfs+easy")

    def run(self) -> Outcome:
        return simulate(self.jobs, self.cluster, self.site, Rules(), self.scheduler)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A few jobs at a site with a battery, some with a PUE and a base load."""
    cluster = draw(clusters())
    jobs = workload(draw(job_lists(cluster.processors)))
    overhead = draw(st.sampled_from([{}, {"pue": 1.25, "base_load_w": 40.0}]))
    place = site(draw(supplies()))
    place = replace(place, storage=draw(batteries()), grid=draw(grids(place.slots)), **overhead)
    return World(jobs, cluster, place, draw(st.lists(st.sampled_from(COMMANDS_W), max_size=40)))


def left_j(storage: Storage, found: Books) -> float:
    """Energy in the battery without self-discharge."""
    into = found.charged_j * storage.charge_efficiency
    return storage.initial_j + into - found.discharged_j / storage.discharge_efficiency


@settings(max_examples=45, deadline=None)
@given(worlds())
def test_energy_balances_and_storage_keeps_its_limits(world: World) -> None:
    outcome, storage = world.run(), world.site.storage
    assert storage is not None
    found, pieces = books(outcome), power_segments(outcome)
    scale = 1.0 + found.load_j + found.renewable_j + found.charged_j
    received = found.renewable_j + found.grid_j + found.discharged_j
    assert received == pytest.approx(found.load_j + found.charged_j + found.curtailed_j, abs=REL * scale)
    assert found.charged_renewable_j <= found.charged_j + REL * scale
    assert found.discharged_renewable_j <= min(found.discharged_j, found.charged_renewable_j) + REL * scale
    assert min(pieces.import_w.min(initial=0.0), pieces.surplus_w.min(initial=0.0)) >= -REL * scale
    assert np.all((pieces.stored_j >= 0.0) & (pieces.stored_j <= storage.usable_j))
    last_j = pieces.stored_j[-1] if storage.usable_j > 0.0 else 0.0
    lost_j = left_j(storage, found) - last_j
    assert lost_j >= -REL * (scale + storage.usable_j)
    if storage.self_discharge_per_day == 0.0:
        assert lost_j == pytest.approx(0.0, abs=REL * (scale + storage.usable_j))
    bus_w = pieces.load_w - pieces.renewable_w - pieces.import_w + pieces.surplus_w  # what the battery gives
    assert bus_w.max(initial=0.0) <= storage.discharge_w * (1 + REL)
    assert -bus_w.min(initial=0.0) <= storage.charge_w * (1 + REL)


@settings(max_examples=45, deadline=None)
@given(worlds())
def test_money_and_carbon_follow_from_the_energy(world: World) -> None:
    """Recounted from the pieces; no more is sold than is generated or given, and none at a loss."""
    outcome, grid = world.run(), world.site.grid
    assert grid is not None
    found, p = books(outcome), power_segments(outcome)
    kwh = (p.end_s - p.start_s) / J_PER_KWH
    slot = np.array([world.site.slot((a + b) / 2) for a, b in zip(p.start_s, p.end_s, strict=True)], dtype=np.int64)
    bus_w = p.import_w - p.surplus_w + p.renewable_w - p.load_w
    taken_w = np.minimum(p.renewable_w, p.load_w + np.maximum(bus_w, 0.0))
    paid = p.import_w * grid.import_price[slot] + taken_w * grid.source_price["all"][slot]
    earned = p.surplus_w * np.maximum(grid.export_price[slot], 0.0)
    emitted = p.import_w * grid.carbon_g_per_kwh[slot] + taken_w * grid.source_g_per_kwh["all"]
    scale = float((p.load_w + p.renewable_w + np.abs(bus_w)) @ kwh)
    assert found.cost == pytest.approx(float((paid - earned) @ kwh), abs=REL * (1 + scale))
    assert found.carbon_g == pytest.approx(float(emitted @ kwh), abs=REL * (1 + 700 * scale))
    assert np.all(p.surplus_w <= p.renewable_w + np.maximum(-bus_w, 0.0) + 1e-6)


@settings(max_examples=25, deadline=None)
@given(worlds())
def test_energy_counted_during_the_run_equals_the_account_of_it(world: World) -> None:
    how = world.scheduler
    session = Session(world.jobs, world.cluster, world.site, Rules(), how.program(world.jobs))
    session.state.rules.accrue = 1
    policy = how.policy()
    while (view := session.view()) is not None:
        session.apply(Start(0) if policy is None else policy.decide(view))
    outcome, ledger = session.outcome(), session.state.ledger
    found = books(outcome)
    for name in Books._fields:
        assert getattr(ledger, name) == pytest.approx(getattr(found, name), rel=1e-9, abs=1e-6), name


@settings(max_examples=25, deadline=None)
@given(worlds())
def test_a_battery_of_no_capacity_changes_nothing(world: World) -> None:
    """Nor do prices change energies: a site without both has another kind of supply."""
    assert world.site.storage is not None
    without = world._replace(site=replace(world.site, storage=replace(world.site.storage, capacity_kwh=0.0))).run()
    empty = books(without, without.start_s.min())
    bare = books(world._replace(site=replace(world.site, storage=None, grid=None)).run())
    assert empty._replace(cost=0.0, carbon_g=0.0) == bare


def battery(dispatch: str, **changes: float) -> Storage:
    """1 kWh, half of it usable, that takes 200 W and gives 100 W; 80 % on the way in and 50 % on the way out."""
    return Storage(
        capacity_kwh=1.0, charge_w=200.0, discharge_w=100.0, charge_efficiency=0.8, discharge_efficiency=0.5,
        lowest_charge=0.25, highest_charge=0.75, dispatch=dispatch, **changes,
    )  # fmt: skip


HOUR_S = 3600.0


def account(storage: Storage, renewable_w: list[float], load_w: list[float]) -> tuple[Books, Segments]:
    """Books of a machine without idle power whose load is constant in each hour."""
    jobs = workload([Job(HOUR_S * k, HOUR_S, HOUR_S, 1, w) for k, w in enumerate(load_w)])
    sources_w = {"solar": np.array(renewable_w)}
    place = Site(name="p", step_s=HOUR_S, sources_w=sources_w, storage=storage)
    outcome = simulate(jobs, Cluster.pooled(1, idle_power_per_machine_w=0.0), place, Rules(), scheduler("fcfs+none"))
    assert outcome.start_s.tolist() == [HOUR_S * k for k in range(len(load_w))]
    return books(outcome), power_segments(outcome)


def wh(energy_j: float) -> float:
    return pytest.approx(energy_j / HOUR_S, rel=REL)


def test_greedy_by_hand() -> None:
    """Hour 0 stores 150 W, 120 Wh inside; hour 1 stores 200 W of 400 W; hour 2 gives 100 W, all it can, and 200 Wh
    inside; hour 3 takes what is left, 80 Wh, in 24 minutes."""
    found, pieces = account(battery("greedy"), [250.0, 500.0, 0.0, 0.0, 0.0], [100.0, 100.0, 150.0, 150.0, 80.0])
    assert wh(found.charged_j) == 350.0
    assert pieces.stored_j[0] == pytest.approx(120.0 * HOUR_S)
    assert pieces.stored_j[1] == pytest.approx(280.0 * HOUR_S)
    assert pieces.stored_j[2] == pytest.approx(80.0 * HOUR_S)
    assert pieces.end_s[3] == pytest.approx(3.4 * HOUR_S)
    assert wh(found.discharged_j) == 140.0
    assert wh(found.grid_j) == 50.0 + 150.0 - 40.0 + 80.0
    assert wh(found.curtailed_j) == 200.0
    assert wh(found.renewable_used_j) == 200.0 + 140.0


def test_peak_shaving_by_hand() -> None:
    """The limit is 120 W: hour 0 refills with 40 W, hour 1 needs 60 W of it, hour 2 is 30 W above what is left."""
    storage = battery("peak-shaving", limit_w=120.0)
    found, pieces = account(storage, [0.0, 0.0, 0.0], [80.0, 136.0, 200.0])
    assert wh(found.charged_j) == 40.0  # 32 Wh inside
    assert pieces.import_w.tolist() == pytest.approx([120.0, 120.0, 200.0])  # 16 W for an hour are all there is
    assert wh(found.discharged_j) == 16.0
    assert found.discharged_renewable_j == 0.0
    assert found.renewable_used_j == 0.0


def test_self_discharge_by_hand() -> None:
    """Half of what is above the lower limit is lost in a day; nothing else happens."""
    storage = battery("peak-shaving", limit_w=60.0, initial_charge=0.75, self_discharge_per_day=0.5)
    _, pieces = account(storage, [0.0] * 24, [60.0] * 24)
    assert pieces.stored_j[-1] == pytest.approx(0.25 * J_PER_KWH, rel=REL)
    assert pieces.stored_j[11] == pytest.approx(0.5 * J_PER_KWH * 0.5**0.5, rel=REL)


@pytest.mark.parametrize("surplus_w", [0.0, 1.0, 30.0])
def test_a_full_battery_stays_full_only_if_its_losses_are_replaced(surplus_w: float) -> None:
    """Half is lost in a day: 0.5 kWh lose 14.4 W, which takes 18 W to replace."""
    storage = battery("greedy", initial_charge=0.75, self_discharge_per_day=0.5)
    found, pieces = account(storage, [60.0 + surplus_w] * 24, [60.0] * 24)
    lost_w = 0.5 * np.log(2.0) / 24.0 * 1e3
    steady_kwh = 0.8 * surplus_w / lost_w * 0.5
    left_kwh = 0.5 if steady_kwh > 0.5 else steady_kwh + (0.5 - steady_kwh) * 0.5
    assert pieces.stored_j[-1] == pytest.approx(left_kwh * J_PER_KWH, rel=REL)
    assert wh(found.charged_j) == 24.0 * min(surplus_w, lost_w / 0.8)


@pytest.mark.parametrize("self_discharge", [1e-16, 1e-12, 1e-6])
@pytest.mark.parametrize("dispatch", ["greedy", "price-arbitrage"])
def test_hardly_any_self_discharge_is_like_none(self_discharge: float, dispatch: str) -> None:
    supply = [250.0, 500.0, 0.0, 0.0, 0.0], [100.0, 100.0, 150.0, 150.0, 80.0]
    found, _ = account(battery(dispatch, self_discharge_per_day=self_discharge), *supply)
    none, _ = account(battery(dispatch), *supply)
    assert found == pytest.approx(none, rel=1e-5, abs=1e-3)


def test_the_renewable_share_of_what_is_given_is_that_of_what_is_stored() -> None:
    """Half an hour's worth from the grid and as much from the sun: what comes out is half renewable."""
    storage = battery("peak-shaving", limit_w=100.0)
    found, _ = account(storage, [0.0, 200.0, 0.0], [50.0, 150.0, 130.0])
    assert wh(found.charged_j) == 50.0 + 150.0
    assert wh(found.charged_renewable_j) == 50.0
    assert wh(found.discharged_j) == 30.0
    assert wh(found.discharged_renewable_j) == 30.0 * 50.0 / 200.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capacity_kwh": -1.0}, "site.storage.capacity_kwh: is -1.0"),
        ({"capacity_kwh": float("nan")}, "site.storage.capacity_kwh: is nan"),
        ({"charge_w": 0.0}, "site.storage.charge_w: is 0.0"),
        ({"discharge_w": float("inf")}, "site.storage.discharge_w: is inf"),
        ({"charge_efficiency": 0.0}, "site.storage.charge_efficiency: is 0.0"),
        ({"discharge_efficiency": 1.1}, "site.storage.discharge_efficiency: is 1.1"),
        ({"lowest_charge": 0.9}, "site.storage.highest_charge: is 0.75 (it must exceed lowest_charge, 0.9)"),
        ({"initial_charge": 0.1}, "site.storage.initial_charge: is 0.1"),
        ({"self_discharge_per_day": 1.0}, "site.storage.self_discharge_per_day: is 1.0"),
        ({"dispatch": "clever"}, "site.storage.dispatch: is clever (use one of greedy"),
        ({"dispatch": "peak-shaving"}, "site.storage.limit_w: is missing"),
        ({"limit_w": 5.0}, "site.storage.limit_w: is 5.0"),
        ({"dispatch": "peak-shaving", "limit_w": -5.0}, "site.storage.limit_w: is -5.0"),
        ({"wear_per_kwh": -0.1}, "site.storage.wear_per_kwh: is -0.1"),
    ],
)
def test_a_bad_battery_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(battery("greedy"), **changes)
    assert str(caught.value).startswith(message)
