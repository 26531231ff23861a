"""Parts of energy, cost and emissions: none is negative, they add up to the whole, and each is for what was drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import greenbatch as gb
from by_files import outcome
from greenbatch.cluster import Capacity, Cluster, NodeGroup
from greenbatch.energy import Grid, Site, Storage
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.pools import Pools
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.metrics import Cut, evaluate, evaluate_parts, horizon_of, measure, parts_of
from greenbatch.metrics.breakdown import AMOUNTS, UNCOUNTED, nested
from greenbatch.metrics.shares import SOLD
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

pytestmark = pytest.mark.plain

HOUR_S = 3600.0
UNIX_START_S = 1_738_353_600.0
"""20:00 on the last day of January 2025. [s]"""
WHOLE = {"energy_kwh": "horizon_energy_kwh", "cost": "horizon_cost", "carbon_kg": "horizon_carbon_kg"}
"""Figure of parts -> the whole over the horizon."""
MONTHS = {
    "month_energy_kwh": "horizon_energy_kwh",
    "month_cost": "horizon_cost",
    "month_carbon_kg": "horizon_carbon_kg",
}
NAMES = {"partition": {0: "cpu", 1: "gpu"}, "group": {0: "physics", 1: "idle", 2: "storage"}, "user": {0: "a", 1: "b"}}
"""An account has the name of a part that belongs to no job."""


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda value: round(value, 3))


@st.composite
def workloads(draw: st.DrawFn, *, power: bool = True) -> Workload:
    """Up to a dozen jobs of about an hour, some of them in the next month."""
    n = draw(st.integers(2, 12))

    def column(kind: st.SearchStrategy[float]) -> np.ndarray:
        return np.array(draw(st.lists(kind, min_size=n, max_size=n)))

    run_s = column(st.integers(1, 8000))
    columns = {
        "submit_s": column(st.sampled_from([0, 0, 100, 2000, 5000, 15_000, 25_000])), "run_time_s": run_s,
        "requested_time_s": np.maximum(run_s * draw(st.sampled_from([0.5, 1.0, 2.0])) // 1, 1.0),
        "processors": column(st.integers(1, 4)), "group": column(st.integers(0, 2)), "user": column(st.integers(0, 1)),
        "partition": column(st.integers(0, 1)),
    }  # fmt: skip
    if power:
        columns["power_w"] = column(st.integers(0, 500))
    jobs = Workload.from_columns("random", columns, names=NAMES)
    return replace(jobs, unix_start_s=UNIX_START_S, time_zone="UTC")


@st.composite
def nodes(draw: st.DrawFn) -> Cluster:
    """Two groups, whose nodes draw static power, idle, boot and shut down."""
    power_on = draw(st.sampled_from(["always", "first-use", "on-demand"]))
    groups = []
    for name in ("cpu", "gpu"):
        boot_s, stop_s = ((draw(st.sampled_from([0.0, 120.0])) if power_on == "on-demand" else 0.0) for _ in range(2))
        groups.append(
            NodeGroup(
                name=name, count=draw(st.integers(1, 2)), processors=4, static_power_w=draw(st.integers(0, 300)),
                idle_fraction=draw(st.sampled_from([0.0, 0.4, 1.0])), power_per_processor_w=draw(st.integers(1, 90)),
                boot_s=boot_s, boot_energy_j=150 * boot_s, shutdown_s=stop_s, shutdown_energy_j=60 * stop_s,
                min_on_s=draw(st.sampled_from([0.0, 900.0])),
            )
        )  # fmt: skip
    return Cluster.of_nodes(tuple(groups), power_on=power_on)


@st.composite
def sites(draw: st.DrawFn) -> Site:
    """A day that repeats: sun, PUE, base load, prices of any sign, carbon, a demand charge in a zone, and a battery."""
    slots = 24

    def series(low: float, high: float) -> np.ndarray:
        few = np.array(draw(st.lists(numbers(low, high), min_size=4, max_size=4)))
        return np.resize(few, slots)

    grid = Grid(
        currency="EUR", import_price=series(draw(st.sampled_from([0.0, -0.3])), 1.0),
        export_price=series(0.0, 0.2) * draw(st.integers(0, 1)), source_price={"sun": series(0.0, 0.1)},
        demand_charge=draw(st.sampled_from([0.0, 10.0])),
        time_zone=draw(st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata"])),
        carbon_g_per_kwh=draw(st.none() | st.just(series(0.0, 800.0))), source_g_per_kwh={"sun": 50.0},
        month=np.zeros(slots, np.int64),
    )  # fmt: skip
    dispatch = draw(st.sampled_from(["greedy", "price-arbitrage", "peak-shaving"]))
    storage = Storage(
        capacity_kwh=draw(numbers(0.1, 2.0)), charge_w=draw(st.integers(50, 900)),
        discharge_w=draw(st.integers(50, 900)),
        initial_charge=draw(st.sampled_from([None, 0.5])), self_discharge_per_day=draw(st.sampled_from([0.0, 0.1])),
        dispatch=dispatch, limit_w=draw(st.sampled_from([1.0, 400.0])) if dispatch == "peak-shaving" else None,
    )  # fmt: skip
    return Site(
        name="random", step_s=HOUR_S, repeat=True, sources_w={"sun": series(0.0, 900.0)}, grid=grid,
        pue=draw(st.sampled_from([1.0, 1.3]) | st.just(series(1.0, 2.0))), unix_start_s=UNIX_START_S,
        base_load_w=draw(st.sampled_from([0.0, 200.0])), storage=draw(st.none() | st.just(storage)),
    )  # fmt: skip


PLAIN = Rules()
POOL = Cluster.pooled(4, processors_per_machine=2, idle_power_per_machine_w=40.0)
POWERED = Cluster.of_units(
    4, 0, powered=Capacity(time_s=[0, 3000, 9000], processors=[4, 1, 4], gpus=[0, 0, 0]), idle_power_w=100.0,
)  # fmt: skip


def check(jobs: Workload, cluster: Cluster, site: Site, rules: Rules = PLAIN, cut: Cut | None = None) -> None:
    """Nothing is negative, and what parts use, cost and emit is that of the whole."""
    played = simulate(jobs, cluster, site, rules, scheduler("fcfs+easy"))
    horizon, run = horizon_of(jobs, cluster, site, rules), measure(played, cut)
    whole, divided = evaluate(played, horizon=horizon), parts_of(jobs, cluster, by_month=True)
    found = nested(evaluate_parts(run, divided, horizon))
    assert {*found} == {*divided}
    least = {
        each for each in AMOUNTS if each != "cost" or (site.grid is not None and site.grid.import_price.min() >= 0)
    }
    for by, of in found.items():
        for name, figures in of.items():
            assert all(figures.get(each, 0.0) >= 0 or name == SOLD for each in least if whole[WHOLE[each]] >= 0), name
        for metric, of_all in WHOLE.items():
            total = sum(figures.get(metric, 0.0) for figures in of.values())
            assert total == pytest.approx(whole[of_all], rel=1e-9, abs=1e-12, nan_ok=True), (by, metric)
    for metric in {*MONTHS} if "month" in found else ():
        months = [figures[metric] for figures in found["month"].values() if metric in figures]
        total = np.nan if np.isnan(months).all() else np.nansum(months)
        assert total == pytest.approx(whole[MONTHS[metric]], rel=1e-9, abs=1e-12, nan_ok=True), metric
    alone = nested(evaluate_parts(run, divided))
    for by, of in alone.items():
        for metric, of_all in {"energy_kwh": "energy_kwh", "cost": "energy_cost", "carbon_kg": "carbon_kg"}.items():
            total = sum(figures.get(metric, 0.0) for figures in of.values())
            assert total == pytest.approx(whole[of_all], rel=1e-9, abs=1e-12, nan_ok=True), (by, metric, "alone")


@settings(max_examples=15, deadline=None)
@given(jobs=workloads(), site=sites(), cut=st.sampled_from([None, Cut(first_jobs=1)]))
def test_parts_of_a_pool_are_the_whole(jobs: Workload, site: Site, cut: Cut | None) -> None:
    check(jobs, POOL, site, cut=cut)


@settings(max_examples=15, deadline=None)
@given(data=st.data(), cluster=nodes(), site=sites())
def test_parts_of_nodes_are_the_whole(data: st.DataObject, cluster: Cluster, site: Site) -> None:
    check(data.draw(workloads(power=data.draw(st.booleans()))), cluster, site)


@settings(max_examples=10, deadline=None)
@given(jobs=workloads(), site=sites(), loses=st.sampled_from(["nothing", "all"]))
def test_parts_of_a_machine_that_follows_the_power_are_the_whole(jobs: Workload, site: Site, loses: str) -> None:
    pools = Pools(suspends="power", loses=loses, suspend_s=10.0, resume_s=20.0, end_s=12 * HOUR_S)  # type: ignore[arg-type]
    check(jobs.with_columns(gpus=np.zeros(len(jobs), np.int64)), POWERED, site, Rules(pools=pools))


@settings(max_examples=15, deadline=None)
@given(jobs=workloads(), site=sites(), data=st.data())
def test_two_jobs_that_swap_accounts_swap_their_bills(jobs: Workload, site: Site, data: st.DataObject) -> None:
    """Each job has an account of its own."""
    n = len(jobs)
    own = replace(jobs, names={}).with_columns(group=np.arange(n))
    first, second = data.draw(st.permutations(range(n)))[:2]
    order = np.arange(n)
    order[[first, second]] = order[[second, first]]
    before, after = bills(own, site), bills(own.with_columns(group=order), site)
    assert after == {name: before[str(order[int(name)])] if name.isdigit() else before[name] for name in before}
    joules = [own.power_w * time_s for time_s in (own.run_time_s, np.minimum(own.run_time_s, own.requested_time_s))]
    if all(abs(each[first] - each[second]) > 1.0 for each in joules):
        assert before[str(first)] != before[str(second)], "who draws more pays for more"


def bills(jobs: Workload, site: Site) -> dict[str, list[float]]:
    """Energy, cost and emissions of each account."""
    run, parts = measure(simulate(jobs, POOL, site, Rules(), scheduler("fcfs+easy"))), parts_of(jobs, most=len(jobs))
    found = nested(evaluate_parts(run, parts))["account"]
    return {
        name: [0.0 if np.isnan(figures[each]) else figures[each] for each in AMOUNTS] for name, figures in found.items()
    }


def parts(outcome: Outcome, metric: str, by: str = "account") -> dict[str, float]:
    """A figure of all parts from the first start to the last end."""
    found = nested(evaluate_parts(measure(outcome), parts_of(outcome.workload, outcome.cluster)))[by]
    return {name: figures[metric] for name, figures in found.items()}


def test_the_base_load_is_not_paid_for_by_who_happens_to_run(tmp_path: Path) -> None:
    """Ten hours of 0.1 kW at 0.1, then one of 5 kW at 1.0; the site draws 1 kW all the time."""
    prices = "\n".join(f"{3600 * hour} 0 {1.0 if hour == 10 else 0.1}" for hour in range(24))
    run = outcome(
        tmp_path,
        """job_id submit_s run_time_s requested_time_s processors power_w group
        1 0 36000 36000 1 100 small
        2 36000 3600 3600 1 5000 large""",
        """
[workload]
file = "jobs.csv"
unix_start_s = 0
[cluster]
processors = 2
processors_per_machine = 2
idle_power_per_machine_w = 0
[site]
kind = "series"
base_load_w = 1000
[[site.sources]]
name = "sun"
kind = "power"
file = "series.csv"
columns = ["sun"]
unit = "W"
time_kind = "elapsed"
time_column = "t"
[site.grid]
time_zone = "UTC"
[site.grid.price]
kind = "series"
file = "series.csv"
columns = ["price"]
unit = "EUR/kWh"
time_kind = "elapsed"
time_column = "t"
""",
        series=f"t sun price\n{prices}",
    )
    assert parts(run, "energy_kwh") == pytest.approx({"small": 1, "large": 5, "idle": 0, "base load": 11})
    assert parts(run, "cost") == pytest.approx({"small": 0.1, "large": 5, "idle": 0, "base load": 10 * 0.1 + 1.0})
    assert sum(parts(run, "cost").values()) == pytest.approx(gb.evaluate(run)["energy_cost"])


GRID = Grid(currency="EUR", import_price=np.array([0.10, 0.50, 0.20]), carbon_g_per_kwh=np.array([100.0, 500.0, 200.0]))
"""Three hours of which the second is dear."""
DARK = Site(name="dark", step_s=HOUR_S, sources_w={"sun": np.zeros(3)}, grid=GRID)


def jobs_of(**columns: list[float]) -> Workload:
    return Workload.from_columns("by hand", columns, names={"group": {0: "a", 1: "b"}})


def test_each_joule_of_a_node_is_paid_for_by_those_who_run_then() -> None:
    """Job a runs for two hours, job b beside it in the dear one; of 300 W static power b owes half of that hour's."""
    group = NodeGroup(name="n", count=1, processors=4, static_power_w=300.0, idle_fraction=0.5,
                      power_per_processor_w=100.0)  # fmt: skip
    jobs = jobs_of(submit_s=[0, 3600], run_time_s=[7200, 3600], processors=[1, 2], group=[0, 1])
    run = simulate(jobs, Cluster.of_nodes((group,)), DARK, Rules(), scheduler("fcfs"))
    assert parts(run, "energy_kwh") == pytest.approx({"a": 0.4 + 0.25, "b": 0.35, "idle": 0})
    assert parts(run, "cost") == pytest.approx({"a": 0.4 * 0.1 + 0.25 * 0.5, "b": 0.35 * 0.5, "idle": 0})
    assert parts(run, "carbon_kg") == pytest.approx({"a": 0.04 + 0.125, "b": 0.175, "idle": 0})


def test_boots_idle_nodes_cooling_and_the_base_load_have_parts_of_their_own() -> None:
    """A node boots for an hour, runs, idles for a quarter of an hour, and shuts down for another."""
    group = NodeGroup(
        name="n", count=1, processors=4, static_power_w=300.0, idle_fraction=0.5, power_per_processor_w=100.0,
        boot_s=3600.0, boot_energy_j=3600 * 200.0, shutdown_s=900.0, shutdown_energy_j=900 * 40.0, min_on_s=4500.0,
    )  # fmt: skip
    site = replace(DARK, pue=np.array([1.5, 1.1, 1.2]), base_load_w=50.0)
    jobs = jobs_of(submit_s=[0, 0], run_time_s=[3600, 3600], processors=[1, 1], group=[0, 1])
    run = simulate(jobs, Cluster.of_nodes((group,), power_on="on-demand"), site, Rules(), scheduler("fcfs"))
    assert run.start_s.tolist() == [3600, 3600]
    energy = {
        "a": 0.25, "b": 0.25, "idle": 0.150 / 4, "boots": 0.2 + 0.01, "base load": 0.05 * 2.5,
        "cooling and losses": 0.5 * 0.2 + 0.1 * 0.5 + 0.2 * (0.150 + 0.04) / 4,
    }  # fmt: skip
    cost = {
        "a": 0.25 * 0.5, "b": 0.25 * 0.5, "idle": 0.15 / 4 * 0.2, "boots": 0.2 * 0.1 + 0.01 * 0.2,
        "base load": 0.05 * (0.1 + 0.5 + 0.1), "cooling and losses": 0.1 * 0.1 + 0.05 * 0.5 + 0.0095 * 0.2,
    }  # fmt: skip
    assert parts(run, "energy_kwh") == pytest.approx(energy)
    assert parts(run, "cost") == pytest.approx(cost)


def test_what_storage_is_charged_with_is_its_own_and_what_it_gives_is_free() -> None:
    """1 kW beside 2 kW of sun at 0.06: half is stored, and given in the dear hour, whose other half is imported."""
    storage = Storage(capacity_kwh=1.0, charge_w=1000.0, discharge_w=500.0, charge_efficiency=1.0,
                      discharge_efficiency=1.0, lowest_charge=0.0, highest_charge=1.0)  # fmt: skip
    sun_w = np.array([2000.0, 0.0, 0.0])
    grid = replace(GRID, source_price={"sun": np.full(3, 0.06)}, export_price=np.full(3, 0.01))
    site = replace(DARK, sources_w={"sun": sun_w}, grid=grid, storage=storage)
    jobs = jobs_of(submit_s=[0, 3600], run_time_s=[3600, 3600], processors=[1, 1], group=[0, 1],
                   power_w=[1000, 1000])  # fmt: skip
    cluster = Cluster.pooled(1, idle_power_per_machine_w=0.0)
    run = simulate(jobs, cluster, site, Rules(), scheduler("fcfs"))
    assert parts(run, "cost") == pytest.approx({"a": 0.06, "b": 0.5 * 0.5, "idle": 0, "storage": 0.06, "sold": 0})


def test_what_jobs_in_warm_up_cost_is_a_part() -> None:
    jobs = jobs_of(submit_s=[0, 0, 1], run_time_s=[3600, 3600, 3600], processors=[1, 1, 1], group=[0, 1, 1],
                   power_w=[1000, 2000, 4000])  # fmt: skip
    run = measure(simulate(jobs, Cluster.pooled(3, idle_power_per_machine_w=0.0), DARK, Rules(), scheduler("fcfs")),
                  Cut(first_jobs=1))  # fmt: skip
    found = nested(evaluate_parts(run, parts_of(jobs)))["account"]
    assert {name: round(figures["energy_kwh"], 9) for name, figures in found.items()} == {
        "b": 6, "a": 0, "idle": 0, UNCOUNTED: 1,
    }  # fmt: skip


OBEY = Rules(dependencies="obey")


def submitted_after(think_h: list[float]) -> Workload:
    """Jobs of 700, 70 and 7 W for an hour, of which the first begins in January; each later one follows it."""
    jobs = jobs_of(submit_s=[0, 30_000, 40_000], run_time_s=[3600] * 3, processors=[1] * 3, power_w=[700, 70, 7],
                   preceding_job=[-1, 1, 1], think_time_s=[np.nan, *(HOUR_S * h for h in think_h)])  # fmt: skip
    return replace(jobs, unix_start_s=UNIX_START_S, time_zone="UTC")


@pytest.mark.parametrize(
    ("think_h", "jobs"),
    [([1, 2], {"2025-01": 3, "2025-02": 0, "later": 0}), ([800, 1600], {"2025-01": 1, "2025-02": 0, "later": 2})],
    ids=["into one month", "beyond the record"],
)
def test_months_are_those_of_the_record_wherever_jobs_are_submitted_in_the_end(
    think_h: list[float], jobs: dict[str, int]
) -> None:
    """Jobs that follow others may leave the months of the record: all of them count, and the parts are the whole."""
    made, site = submitted_after(think_h), replace(DARK, repeat=True)
    check(made, POOL, site, OBEY)
    run = measure(simulate(made, POOL, site, OBEY, scheduler("fcfs+easy")))
    found = nested(evaluate_parts(run, parts_of(made, by_month=True)))["month"]
    assert {name: figures["jobs"] for name, figures in found.items() if "jobs" in figures} == jobs
