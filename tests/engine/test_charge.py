"""Storage that the scheduler commands: cases by hand, the same commands on every way, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from cases import Commander, job_lists, site, supplies, workload
from driven import driver_of, run_from_views
from hypothesis import given, settings
from plain import Job

from greenbatch.cluster import Cluster
from greenbatch.energy import Grid, Site, Storage
from greenbatch.engine.accounts import Books, books, power_segments
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Charge, Decision, Start, View, Wait
from greenbatch.engine.views.session import Session
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

HOUR_S, J_PER_KWH = 3600.0, 3.6e6
NO_IDLE = Cluster.pooled(1, idle_power_per_machine_w=0.0)
POOL = Cluster.pooled(8, processors_per_machine=4, idle_power_per_machine_w=40.0)


def battery(**changes: Any) -> Storage:
    """1 kWh, half of it usable, that takes 200 W and gives 100 W; 80 % on the way in and 50 % on the way out."""
    given: dict[str, Any] = {
        "capacity_kwh": 1.0, "charge_w": 200.0, "discharge_w": 100.0, "charge_efficiency": 0.8,
        "discharge_efficiency": 0.5, "lowest_charge": 0.25, "highest_charge": 0.75, "dispatch": "scheduler",
    }  # fmt: skip
    return Storage(**{**given, **changes})


def hourly(load_w: list[float]) -> Workload:
    """Jobs that follow each other, one per hour."""
    return workload([Job(HOUR_S * k, HOUR_S, HOUR_S, 1, w) for k, w in enumerate(load_w)])


def place(renewable_w: list[float], storage: Storage | None, price: list[float] | None = None, **more: Any) -> Site:
    """A site with slots of an hour."""
    grid = None if price is None else Grid(currency="EUR", import_price=np.array(price))
    sources_w = {"solar": np.array(renewable_w)}
    return Site(name="p", step_s=HOUR_S, sources_w=sources_w, storage=storage, grid=grid, **more)


def wh(energy_j: float) -> Any:
    return pytest.approx(energy_j / HOUR_S, rel=1e-9)


def test_commands_by_hand() -> None:
    """Hour 0 takes 200 W: 150 W of surplus and 50 W from the grid; hour 1 gives the 30 W that the load lacks, not 100;
    hour 2 rests; hour 3 has a surplus, so that nothing is given; hour 4 gives 50 Wh of the 100 inside in half an hour.
    """
    storage = battery()
    site_ = place([250.0, 50.0, 0.0, 200.0, 0.0], storage)
    how = scheduler(Commander([1e9, -100.0, 0.0, -100.0, -1e9]))
    outcome = simulate(hourly([100.0, 80.0, 90.0, 60.0, 120.0]), NO_IDLE, site_, Rules(), how)
    assert outcome.profile_command_w is not None
    assert outcome.profile_command_w.tolist()[:5] == [1e9, -100.0, 0.0, -100.0, -1e9]
    found, pieces = books(outcome), power_segments(outcome)
    assert wh(found.charged_j) == 200.0
    assert wh(found.charged_renewable_j) == 150.0
    assert pieces.stored_j[:4] == pytest.approx(np.array([160.0, 100.0, 100.0, 100.0]) * HOUR_S)
    assert pieces.end_s[4] == pytest.approx(4.5 * HOUR_S)
    assert wh(found.discharged_j) == 30.0 + 50.0
    assert wh(found.grid_j) == 50.0 + 0.0 + 90.0 + 0.0 + 120.0 - 50.0
    assert wh(found.curtailed_j) == 140.0


def test_money_and_views_by_hand() -> None:
    """1 h at -0.1 EUR/kWh and 0.2 kW for storage; then the load of 80 W comes out of storage."""
    site_ = place([0.0, 0.0], battery(), [-0.1, 0.4])
    policy = Commander([200.0, -100.0])
    session = Session(hourly([100.0, 80.0]), NO_IDLE, site_, Rules(), Program(name="p", charges=True))
    while (view := session.view()) is not None:
        session.apply(policy.decide(view))
    found = books(session.outcome())
    assert found.cost == pytest.approx(-0.1 * 0.3)
    seen = [view.storage for view in policy.seen]
    assert all(each is not None and each.usable_j == 0.5 * J_PER_KWH for each in seen)
    known = {(v.now_s, v.storage.command_w, round(v.storage.stored_j / HOUR_S, 6)) for v in policy.seen if v.storage}
    assert known == {
        (0.0, 0.0, 0.0), (0.0, 200.0, 0.0), (HOUR_S, 200.0, 160.0), (HOUR_S, -100.0, 160.0),
    }  # fmt: skip


def test_a_policy_is_asked_at_every_slot_and_while_no_job_waits() -> None:
    """One job of three hours and one that comes at 5 h: nothing waits in between."""
    policy = Commander([])
    jobs = workload([Job(0.0, 3 * HOUR_S, 3 * HOUR_S, 1, 10.0), Job(5 * HOUR_S, 60.0, 60.0, 1, 10.0)])
    site_ = place([0.0] * 12, battery())
    session = Session(jobs, NO_IDLE, site_, Rules(), Program(name="p", charges=True))
    while (view := session.view()) is not None:
        session.apply(policy.decide(view))
    asked = [(view.now_s / HOUR_S, view.cause) for view in policy.seen if not len(view.job_id)]
    assert asked == [
        (0.0, "arrival"), (1.0, "supply"), (2.0, "supply"), (3.0, "completion"), (4.0, "supply"), (5.0, "arrival"),
    ]  # fmt: skip


def test_rank_by_price_by_hand() -> None:
    """Of four slots, the cheapest has the rank 1/8 and the dearest 7/8; equal ones share their ranks."""
    price = [0.3, 0.1, 0.2, 0.4, 0.1, 0.1, 0.1, 0.1]
    site_ = place([0.0] * 8, battery(), price, forecast_horizon_s=4 * HOUR_S, repeat=True)
    outcome = simulate(hourly([50.0] * 8), NO_IDLE, site_, Rules(), scheduler("fcfs+charge:below=0.2:above=0.8"))
    # hour 0: 0.3 of (0.3, 0.1, 0.2, 0.4) 5/8; 1: (0.1, 0.2, 0.4, 0.1) 2/8; 2: (0.2, 0.4, 0.1, 0.1) 5/8; 3: 7/8
    # hour 4: flat, as is all of the sun; 5: (0.1, 0.1, 0.1, 0.3) 3/8; 6: (0.1, 0.1, 0.3, 0.1) 3/8; 7: 2/8
    assert outcome.profile_command_w is not None
    at = dict(zip((outcome.profile_time_s / HOUR_S).tolist(), outcome.profile_command_w.tolist(), strict=True))
    assert [at[float(k)] for k in range(8)] == [0.0, 0.0, 0.0, -100.0, 0.0, 0.0, 0.0, 0.0]
    often = simulate(hourly([50.0] * 8), NO_IDLE, site_, Rules(), scheduler("fcfs+charge:below=0.25:above=0.625"))
    assert often.profile_command_w is not None
    at = dict(zip((often.profile_time_s / HOUR_S).tolist(), often.profile_command_w.tolist(), strict=True))
    assert [at[float(k)] for k in range(8)] == [-100.0, 200.0, -100.0, -100.0, 0.0, 0.0, 0.0, 200.0]


def test_without_prices_only_surplus_is_taken() -> None:
    """The sunniest hour of four has a surplus of 70 W; the darkest gives."""
    site_ = place([0.0, 60.0, 150.0, 100.0], battery(), forecast_horizon_s=4 * HOUR_S, repeat=True)
    outcome = simulate(hourly([80.0] * 4), NO_IDLE, site_, Rules(), scheduler("fcfs+easy+charge:below=0.2:above=0.8"))
    assert outcome.profile_command_w is not None
    assert outcome.profile_command_w[:4].tolist() == [-100.0, 0.0, 70.0, 0.0]
    assert books(outcome).charged_renewable_j == books(outcome).charged_j == pytest.approx(70.0 * HOUR_S)


@st.composite
def stored_sites(draw: st.DrawFn, unit_s: float = 1.0) -> Site:
    """Sites whose storage the scheduler commands, some with prices."""
    found = site(draw(supplies(unit_s=unit_s)))
    storage = Storage(
        capacity_kwh=draw(st.sampled_from([300.0, 3000.0])) / J_PER_KWH, charge_w=77.7, discharge_w=60.0,
        self_discharge_per_day=draw(st.sampled_from([0.0, 0.9])), dispatch="scheduler",
    )  # fmt: skip
    prices = st.lists(st.sampled_from([0.3, 0.1, 0.0, -0.2]), min_size=found.slots, max_size=found.slots)
    carbon = draw(st.lists(st.sampled_from([50.0, 700.0]), min_size=found.slots, max_size=found.slots))
    grid = Grid(currency="EUR", import_price=np.array(draw(prices)), carbon_g_per_kwh=np.array(carbon))
    return replace(found, storage=storage, grid=draw(st.sampled_from([None, grid])))


@st.composite
def all_rules(draw: st.DrawFn) -> Rules:
    """Options of the batch system."""
    return Rules(
        commitment=draw(st.sampled_from(["sticky", "reconsider"])),
        event_rule=draw(st.sampled_from(["per_event", "per_instant"])),
        ties=draw(st.sampled_from(["arrival_first", "completion_first"])), tick_s=draw(st.sampled_from([0.0, 7.0])),
    )  # fmt: skip


def same_commands(one: Outcome, other: Outcome) -> None:
    """The same commands at the same instants, and so the same books."""
    assert one.profile_command_w is not None
    assert other.profile_command_w is not None
    for name in ("start_s", "profile_time_s", "profile_load_w", "profile_command_w"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


BASES = ("fcfs+easy", "wfp3+green:sigma=200", "foresee:horizon=60:tick=7:slowdown=900:limit=40")


@pytest.mark.parametrize("base", BASES)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_commands_by_rank_change_no_start_and_are_the_same_from_views(
    tmp_path_factory: Any, base: str, data: st.DataObject
) -> None:
    jobs, power = workload(data.draw(job_lists(POOL.processors))), data.draw(stored_sites())
    rules, bounds = data.draw(all_rules()), data.draw(st.sampled_from(["", ":below=0.5:above=0.6", ":carbon=0.5"]))
    bare = simulate(jobs, POOL, power, rules, scheduler(base))
    how = scheduler(f"{base}+charge{bounds}")
    outcome = simulate(jobs, POOL, power, rules, how)
    np.testing.assert_array_equal(outcome.start_s, bare.start_s)
    memory = tmp_path_factory.mktemp("memory") / "memory.npz"
    restart = data.draw(st.sampled_from([lambda _: False, lambda number: number % 3 == 0]))
    same_commands(run_from_views(how, jobs, POOL, power, rules, restart=restart, memory=memory), outcome)


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_policies_in_python_command_the_same_from_views_and_after_a_restart(
    tmp_path_factory: Any, data: st.DataObject
) -> None:
    jobs, power = workload(data.draw(job_lists(POOL.processors))), data.draw(stored_sites())
    how = scheduler(Commander(data.draw(st.lists(st.sampled_from([-50.0, 0.0, 20.0, 90.0]), max_size=30))))
    memory = tmp_path_factory.mktemp("memory") / "memory.npz"
    outcome = simulate(jobs, POOL, power, Rules(), how)
    for restart in (lambda _: False, lambda number: number % 3 == 0):
        same_commands(run_from_views(how, jobs, POOL, power, Rules(), restart=restart, memory=memory), outcome)


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_what_is_stored_during_a_run_is_what_the_account_says(data: st.DataObject) -> None:
    jobs, power = workload(data.draw(job_lists(POOL.processors))), data.draw(stored_sites())
    policy = Commander(data.draw(st.lists(st.sampled_from([-50.0, 0.0, 20.0, 90.0]), max_size=30)))
    session = Session(jobs, POOL, power, Rules(), Program(name="p", charges=True, backfill="easy"))
    while (view := session.view()) is not None:
        session.apply(policy.decide(view))
    outcome = session.outcome()
    found, ledger = books(outcome), session.state.ledger
    for name in Books._fields:
        assert getattr(ledger, name) == pytest.approx(getattr(found, name), rel=1e-9, abs=1e-6), name
    begin_s = outcome.profile_time_s[0]
    for view in policy.seen:
        if view.now_s > begin_s and view.storage is not None:
            stored_j = power_segments(outcome, begin_s, view.now_s).stored_j[-1]
            assert view.storage.stored_j == pytest.approx(stored_j, rel=1e-9, abs=1e-6)


def test_a_fork_keeps_the_command_and_goes_its_own_way() -> None:
    jobs, site_ = hourly([50.0] * 4), place([0.0] * 4, battery())
    session = Session(jobs, NO_IDLE, site_, Rules(), Program(name="p", charges=True))
    assert session.view() is not None
    session.apply(Charge(100.0))
    other = session.fork()
    first, second = (to_the_end(each, Commander(more)) for each, more in ((session, []), (other, [0.0])))
    assert wh(books(first).charged_j) == 400.0
    assert books(second).charged_j == 0.0


def to_the_end(session: Session, policy: Commander) -> Outcome:
    while (view := session.view()) is not None:
        session.apply(policy.decide(view))
    return session.outcome()


class Forever:
    """Commands storage without end."""

    charges = True

    def decide(self, view: View) -> Decision:
        del view
        return Charge(1.0)


class Sometimes:
    """Does not say that it commands storage; asked only while jobs wait."""

    def decide(self, view: View) -> Decision:
        wanted = 40.0 if view.now_s < HOUR_S else 0.0
        if view.storage is not None and view.storage.command_w != wanted:
            return Charge(wanted)
        return Start(0) if len(view.job_id) else Wait()


def test_a_policy_may_command_whenever_it_is_asked_for_a_job() -> None:
    outcome = simulate(hourly([50.0] * 3), NO_IDLE, place([0.0] * 3, battery()), Rules(), scheduler(Sometimes()))
    assert wh(books(outcome).charged_j) == 40.0
    bare = simulate(hourly([50.0] * 3), NO_IDLE, place([0.0] * 3, None), Rules(), scheduler(Sometimes()))
    assert bare.profile_command_w is None


GREEDY = battery(dispatch="greedy")
NEEDS = '(give storage with dispatch = "scheduler")'


@pytest.mark.parametrize(
    ("how", "storage", "message"),
    [
        ("fcfs+charge", None, "site.storage: is missing, and fcfs+none+charge commands storage"),
        ("fcfs+charge", GREEDY, f"site.storage: has dispatch = greedy, and fcfs+none+charge commands storage {NEEDS}"),
        (Forever(), GREEDY, f"site.storage: has dispatch = greedy, and Forever+none commands storage {NEEDS}"),
        (Forever(), None, "site.storage: is missing, and Forever+none commands storage"),
        (Commander([float("nan")]), battery(), "Commander+none: commands storage to take nan W (give a finite number"),
        (Commander(["much"]), battery(), "Commander+none: commands storage to take 'much' W (give a finite number"),  # type: ignore[list-item]
        (Forever(), battery(), "Forever+none commanded storage over 1000 times in a row at 0 s (after a Charge, start"),
    ],
)
def test_bad_commands_are_refused_in_one_line(how: Any, storage: Storage | None, message: str) -> None:
    with pytest.raises(GreenbatchError) as caught:
        simulate(hourly([50.0] * 3), NO_IDLE, place([0.0] * 3, storage), Rules(), scheduler(how))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fcfs+charge:below=0.8", "fcfs+charge:below=0.8: below is 0.8, above is 0.7 (give below < above)"),
        ("fcfs+charge:below=2", "fcfs+charge:below=2: below is 2 (give 0 to 1)"),
        ("fcfs+charge:when=2", "scheduler 'fcfs+charge:when=2': charge has no parameter 'when'"),
        ("fcfs+charge+easy", "scheduler 'fcfs+charge+easy': no policy is called 'fcfs+charge'"),
    ],
)
def test_bad_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        scheduler(name)
    assert str(caught.value).startswith(message)


def test_a_view_without_storage_is_refused() -> None:
    site_, how, jobs = place([0.0] * 3, battery()), scheduler("fcfs+charge"), hourly([50.0] * 3)
    view = Session(jobs, NO_IDLE, site_, Rules(), Program(name="p", charges=True)).view()
    assert view is not None
    with pytest.raises(InputError, match=r"view\.storage: is missing, and fcfs\+none\+charge commands storage"):
        driver_of(how, jobs, NO_IDLE, Rules()).decide(replace(view, storage=None))
    assert view.storage is not None
    bad = replace(view, storage=view.storage._replace(stored_j=-1.0))
    with pytest.raises(InputError, match=r"view\.storage\.stored_j: is -1"):
        driver_of(how, jobs, NO_IDLE, Rules()).decide(bad)


def test_names_of_every_kind_take_commands() -> None:
    for name in ("f2+green:sigma=2e+4+charge:below=1e-1", "cost-aware-plus@hpc2n:cost=0.6+charge", "rolling+charge"):
        made = scheduler(name)
        assert made.name.replace("+none", "") == name
        assert {"charge_below", "charge_above", "charge_carbon"} <= set(made.settings)
    assert scheduler("fcfs", backfill="easy+charge").name == "fcfs+easy+charge"
    mine = scheduler(Sometimes(), backfill="easy+charge:below=0.1")
    assert (mine.program(hourly([1.0])).settings or {})["charge_below"] == 0.1
