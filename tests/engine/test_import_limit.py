"""The limit of the grid connection: under ``hold``, no job starts that would lift imports above it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from cases import clusters, job_lists, supplies, workload
from cases import site as site_of
from driven import run_from_views
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import Job, Machine, Supply

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.energy import Grid, Site, Storage
from greenbatch.energy.forecasts import ForecastModel
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError, SupplyExhausted
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

POOL = Cluster.pooled(8, idle_power_per_machine_w=100.0)
NODES = Cluster.of_nodes((
    NodeGroup(name="a", count=2, processors=4, static_power_w=100.0, idle_fraction=0.5, power_per_processor_w=20.0),
    NodeGroup(name="b", count=1, processors=8, static_power_w=300.0, idle_fraction=0.5, power_per_processor_w=10.0),
))  # fmt: skip
ROUNDING = 1 + 1e-9


def jobs_of(**columns: object) -> Workload:
    return Workload.from_columns("jobs", columns)


def grid_of(limit_w: float, slots: int, over_limit: str = "hold") -> Grid:
    return Grid(import_price=np.zeros(slots), import_limit_w=limit_w, over_limit=over_limit)  # type: ignore[arg-type]


def sunny(renewable_w: list[float], limit_w: float, *, step_s: float = 10.0, **others: Any) -> Site:
    """A repeating series, forecast as a whole."""
    others = {"repeat": True, "forecast_horizon_s": len(renewable_w) * step_s, **others}
    grid = grid_of(limit_w, len(renewable_w), others.pop("over_limit", "hold"))
    return Site(name="site", step_s=step_s, sources_w={"solar": np.array(renewable_w)}, grid=grid, **others)


def run(jobs: Workload, cluster: Cluster, site: Site, name: str, **rules: object) -> Outcome:
    return simulate(jobs, cluster, site, Rules(**rules), scheduler(name))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------ by hand


def test_without_sun_the_limit_is_one_of_the_load() -> None:
    jobs = jobs_of(submit_s=[0, 1, 2], run_time_s=[10, 10, 3], processors=[1, 1, 1], power_w=[100.0, 150.0, 60.0])
    dark = sunny([0.0], 300.0)
    assert run(jobs, POOL, dark, "fcfs+none").start_s.tolist() == [0, 10, 20]
    assert run(jobs, POOL, dark, "fcfs+first-fit").start_s.tolist() == [0, 10, 2]
    easy = run(jobs, POOL, dark, "fcfs+easy")
    assert easy.start_s.tolist() == [0, 10, 2]  # 260 W until 5; job 1 from 10 on
    assert easy.promised_start_s[1] == 10
    assert run(jobs, POOL, sunny([0.0], 300.0, over_limit="count"), "fcfs+easy").start_s.tolist() == [0, 1, 2]


def test_a_candidate_that_outlives_the_reservation_leaves_the_power_of_the_head() -> None:
    jobs = jobs_of(submit_s=[0, 1, 2, 3], run_time_s=[10, 10, 50, 50], processors=[1] * 4,
                   power_w=[100.0, 150.0, 60.0, 40.0])  # fmt: skip
    # At 10, job 1 takes the machine to 250 W: 50 W are left, which is too little for job 2 and enough for job 3
    assert run(jobs, POOL, sunny([0.0], 300.0), "fcfs+easy").start_s.tolist() == [0, 10, 20, 3]


def test_a_job_waits_for_the_sun_that_lasts_as_long_as_it_asks() -> None:
    """100 W idle and 150 W of job 0 need 50 W of sun for 15 s: not the 10 s from 20 on, but those from 40 on."""
    jobs = jobs_of(submit_s=[0, 1, 2], run_time_s=[8, 30, 60], requested_time_s=[15, 30, 60], processors=[4, 1, 1],
                   power_w=[150.0, 20.0, 80.0])  # fmt: skip
    site = sunny([0.0, 0.0, 60.0, 0.0, 80.0, 90.0, 0.0, 0.0], 200.0)
    outcome = run(jobs, POOL, site, "fcfs+easy")
    # Job 1 ends at 31, before the reservation; job 2 would run beside job 0 with 130 W more than its slots allow
    assert outcome.start_s.tolist() == [40, 1, 48]
    assert outcome.promised_start_s[0] == 40
    assert run(jobs, POOL, site, "fcfs+none").start_s.tolist() == [40, 40, 48]


def test_a_job_that_outlasts_the_day_starts_in_the_first_slot_that_carries_it_and_runs_alone_in_the_dark() -> None:
    jobs = jobs_of(submit_s=[0, 1], run_time_s=[25, 5], processors=[1, 1], power_w=[150.0, 10.0])
    outcome = run(jobs, POOL, sunny([0.0, 0.0, 60.0, 0.0], 200.0), "fcfs+easy")
    assert outcome.start_s.tolist() == [20, 1]
    late = jobs_of(submit_s=[0, 21], run_time_s=[25, 5], processors=[1, 1], power_w=[150.0, 10.0])
    assert run(late, POOL, sunny([0.0, 0.0, 60.0, 0.0], 200.0), "fcfs+easy").start_s.tolist() == [20, 21]
    beside = jobs_of(submit_s=[0, 21], run_time_s=[25, 15], processors=[1, 1], power_w=[150.0, 10.0])
    assert run(beside, POOL, sunny([0.0, 0.0, 60.0, 0.0], 200.0), "fcfs+easy").start_s.tolist() == [20, 45]


def test_the_facility_draws_more_than_the_cluster() -> None:
    """A PUE of 2 and 50 W of base load: 450 W from the grid allow the cluster 200 W, and 100 W of sun 50 W more."""
    jobs = jobs_of(submit_s=[0], run_time_s=[5], processors=[1], power_w=[150.0])
    site = sunny([0.0, 0.0, 100.0], 450.0, pue=2.0, base_load_w=50.0)
    np.testing.assert_array_equal(site.load_limit_w(450.0), [200.0, 200.0, 250.0])
    assert run(jobs, POOL, site, "fcfs+easy").start_s.tolist() == [20]


def test_jobs_of_other_partitions_leave_the_power_of_a_blocked_job() -> None:
    nodes = Cluster.of_nodes(tuple(
        NodeGroup(name=name, count=1, processors=4, static_power_w=0.0, partitions=(name,)) for name in "ab"
    ))  # fmt: skip
    jobs = jobs_of(submit_s=[0, 1, 2, 12], run_time_s=[10, 10, 20, 20], processors=[1] * 4,
                   power_w=[100.0, 150.0, 60.0, 60.0], partition=[0, 0, 1, 1])  # fmt: skip
    jobs = replace(jobs, names={"partition": {0: "a", 1: "b"}})
    outcome = run(jobs, nodes, sunny([0.0], 200.0), "fcfs+easy")
    assert outcome.start_s.tolist() == [0, 10, 20, 20]


def test_the_reservation_is_behind_the_outages_and_within_the_limit() -> None:
    """Sun from 20 to 30 and from 60 to 70; an outage ends at 25, after which 5 s of sun are too few for 8 s."""
    from greenbatch.workload import Outage

    jobs = jobs_of(submit_s=[0], run_time_s=[8], processors=[1], power_w=[150.0])
    site, of = sunny([0.0, 0.0, 60.0, 0.0], 200.0), scheduler("fcfs+easy")

    class Closed:
        def program(self, jobs: Workload) -> Any:
            return replace(of.program(jobs), outages=(Outage(begin_s=15.0, end_s=25.0, processors=8, of=8),))

        def policy(self) -> None:
            return None

    outcome = simulate(jobs, POOL, site, Rules(), Closed())  # type: ignore[arg-type]
    assert outcome.start_s.tolist() == [60]
    assert outcome.promised_start_s[0] == 60


# ---------------------------------------------------------------------------------- against a plain-python reference


@dataclass
class Held(Machine):
    """The plain batch system with a limit, second by second."""

    limit_w: float = 0.0

    def carries(self, begin_s: float, seconds: float, added_w: float, alone_w: float = 0.0) -> bool:
        """Whether the forecast allows more power for some seconds; all but the first may be those of the job alone."""
        assert self.supply is not None
        for second in range(int(seconds)):
            time_s = begin_s + second
            allowed_w = self.limit_w + self.supply.forecast_w(self.now_s, time_s)
            load_w = self.idle_w + sum(self.jobs[r].power_w for r in self.running if self.requested_end_s(r) > time_s)
            if load_w + added_w > (max(allowed_w, alone_w) if second else allowed_w):
                return False
        return True

    def fits(self, j: int) -> bool:
        assert self.supply is not None
        job = self.jobs[j]
        load_w = self.idle_w + sum(self.jobs[r].power_w for r in self.running) + job.power_w
        if not super().fits(j) or load_w > self.limit_w + self.supply.forecast_w(self.now_s, self.now_s):
            return False
        is_due = self.first_reservation_s.get(j, np.inf) <= self.now_s
        alone_w = self.idle_w + job.power_w if is_due else 0.0
        return self.carries(self.now_s, job.requested_s, job.power_w, alone_w)

    def reservation(self, head: int) -> tuple[float, int]:
        assert self.supply is not None
        job, promised_s = self.jobs[head], self.first_reservation_s.get(head)
        shadow_s, spare = super().reservation(head)
        drained_s = max([shadow_s, *(self.requested_end_s(r) for r in self.running)])
        foreseen = min(self.supply.foreseen, len(self.supply.renewable_w))
        last_s = self.supply.begin_s(self.supply.slot(drained_s) + foreseen)
        has_missed = promised_s is not None and promised_s <= self.now_s

        def first(alone_w: float) -> float:
            times = range(int(shadow_s), int(last_s) + 1)
            return next((t for t in times if self.carries(t, job.requested_s, job.power_w, alone_w)), np.inf)

        found_s = np.inf if has_missed else first(0.0)
        if found_s == np.inf:
            found_s = min(first(self.idle_w + job.power_w), drained_s if has_missed else last_s)
        self.first_reservation_s[head] = found_s if promised_s is None else promised_s
        if found_s > shadow_s:  # what is free at the later instant
            ended = [r for r in self.running if self.requested_end_s(r) <= found_s]
            spare = self.free + sum(self.jobs[r].processors for r in ended) - job.processors
        return found_s, spare

    def fill(self, head: int, shadow_s: float, spare: int) -> None:
        if self.backfill != "easy":
            super().fill(head, shadow_s, spare)
            return
        first = self.jobs[head]
        for j in [j for j in self.waiting if j != head]:
            job, end_s = self.jobs[j], self.now_s + self.jobs[j].requested_s
            if not self.fits(j):
                continue
            if end_s <= shadow_s:
                self.start(j)
            elif job.processors <= spare and self.first_reservation_s[head] >= self.now_s:
                seconds = min(first.requested_s, end_s - shadow_s)
                if self.carries(shadow_s, seconds, first.power_w + job.power_w, self.idle_w + first.power_w):
                    self.start(j)
                    spare -= job.processors

    def wake_s(self) -> float:
        return self.next_supply_change_s() if self.waiting else np.inf


BACKFILLS = ("none", "easy", "easy-schedgym", "easy-green-order")
SCORES = {"fcfs": lambda job, now_s: job.submit_s, "sjf": lambda job, now_s: job.requested_s}


@st.composite
def held_cases(draw: st.DrawFn, *, ties: bool = True) -> tuple[list[Job], Cluster, Supply, float]:
    """Jobs that each can run alone in some slot."""
    cluster = draw(clusters())
    jobs, supply = draw(job_lists(cluster.processors, ties=ties)), draw(supplies())
    most_w = cluster.idle_power_w + max(job.power_w for job in jobs)
    limit_w = max(1.0, most_w - max(supply.renewable_w)) + draw(st.sampled_from([0, 0, 1, 5, 20, 60]))
    return jobs, cluster, supply, limit_w


def held_site(supply: Supply, limit_w: float, **others: Any) -> Site:
    made = site_of(supply)
    return replace(made, grid=grid_of(limit_w, made.slots), **others)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), rule=st.sampled_from(list(SCORES)), backfill=st.sampled_from(BACKFILLS), sticky=st.booleans())
def test_schedules_are_those_of_the_reference(data: Any, rule: str, backfill: str, sticky: bool) -> None:
    jobs, cluster, supply, limit_w = data.draw(held_cases(ties=not sticky))  # a sticky queue sorts its twins
    plain = Held(jobs, cluster.processors, SCORES[rule], backfill, sticky=sticky, idle_w=cluster.idle_power_w,
                 supply=supply, limit_w=limit_w)  # fmt: skip
    commitment = "sticky" if sticky else "reconsider"
    outcome = run(workload(jobs), cluster, held_site(supply, limit_w), f"{rule}+{backfill}", commitment=commitment)
    assert outcome.start_s.tolist() == plain.run()
    for j, promised_s in plain.first_reservation_s.items():
        assert outcome.promised_start_s[j] == promised_s


# ------------------------------------------------------------------------------------------------- on any site


def starts_are_within(outcome: Outcome, site: Site) -> bool:
    """Whether imports are within the limit at every instant at which a job starts, by what really comes."""
    grid = site.grid
    assert grid is not None
    last = np.searchsorted(outcome.profile_time_s, np.unique(outcome.start_s), side="right") - 1
    load_w = outcome.profile_load_w[last]
    slot = [site.slot(float(time_s)) for time_s in outcome.profile_time_s[last]]
    pue = np.broadcast_to(site.pue, site.slots)[slot]
    import_w = pue * load_w + site.base_load_w - site.renewable_w[slot]
    return bool((import_w <= grid.import_limit_w * ROUNDING + 1e-6).all())


FORECASTS = st.sampled_from([ForecastModel(), ForecastModel(sigma=0.5, seed=3), ForecastModel(bias=-0.4)])
NAMES = st.sampled_from(["fcfs+none", "fcfs+easy", "sjf+easy", "f2+first-fit", "fcfs+easy-schedgym", "fcfs+green"])
HOUR_S = 3600.0


@st.composite
def windows(draw: st.DrawFn, *, powered: bool = True) -> tuple[Workload, list[float], float]:
    """Jobs of some hours, the sun of a few days and the length of its slots."""
    n = draw(st.integers(1, 20))
    runs = draw(st.lists(st.integers(1, 40), min_size=n, max_size=n))
    factor = draw(st.sampled_from([1, 2]))
    power_w = draw(st.lists(st.integers(0, 200), min_size=n, max_size=n)) if powered else [np.nan] * n
    jobs = jobs_of(
        submit_s=HOUR_S * np.sort(draw(st.lists(st.integers(0, 30), min_size=n, max_size=n))),
        run_time_s=HOUR_S * np.array(runs), requested_time_s=factor * HOUR_S * np.array(runs), power_w=power_w,
        processors=draw(st.lists(st.integers(1, 8), min_size=n, max_size=n)),
    )  # fmt: skip
    step_s = draw(st.sampled_from([HOUR_S, 3 * HOUR_S]))
    sun = draw(st.lists(st.integers(0, 300), min_size=1, max_size=40))
    return jobs, [float(power) for power in sun], step_s


def window_site(
    sun: list[float], step_s: float, limit_w: float, model: ForecastModel, horizon: int, **others: Any
) -> Site:  # fmt: skip
    horizon_s = step_s * min(horizon, len(sun))
    return sunny(sun, limit_w, step_s=step_s, forecast_model=model, forecast_horizon_s=horizon_s, **others)


def bounds_s(jobs: Workload, site: Site) -> tuple[float, float]:
    """Longest request and period of the series."""
    return float(jobs.requested_time_s.max()), site.slots * site.step_s


@settings(max_examples=35, deadline=None)
@given(
    window=windows(), name=NAMES, model=FORECASTS, horizon=st.integers(1, 12), above_w=st.integers(0, 200),
    sticky=st.booleans(), overhead=st.booleans(),
)  # fmt: skip
def test_no_start_exceeds_the_limit_and_all_jobs_end(
    window: Any, name: str, model: ForecastModel, horizon: int, above_w: int, sticky: bool, overhead: bool
) -> None:
    jobs, sun, step_s = window
    pue, base_w = (1.25, 40.0) if overhead else (1.0, 0.0)
    limit_w = max(1.0, pue * (100 + jobs.power_w.max()) + base_w - max(sun)) + above_w
    site = window_site(sun, step_s, limit_w, model, horizon, pue=pue, base_load_w=base_w)
    outcome = run(jobs, POOL, site, name, commitment="sticky" if sticky else "reconsider")
    assert np.isfinite(outcome.end_s).all()
    assert starts_are_within(outcome, site)
    if name in ("fcfs+none", "fcfs+easy"):
        longest_s, period_s = bounds_s(jobs, site)
        promised = ~np.isnan(outcome.promised_start_s)
        late_s = outcome.start_s[promised] - outcome.promised_start_s[promised]
        assert (late_s <= longest_s + period_s).all()
        ahead_s = np.maximum.accumulate(outcome.start_s)  # in order of submission
        first_s = np.maximum(jobs.submit_s, np.append(-np.inf, ahead_s[:-1]))
        assert (outcome.start_s - first_s <= 2 * (longest_s + period_s) + step_s).all()


@settings(max_examples=15, deadline=None)
@given(window=windows(powered=False), name=NAMES, above_w=st.integers(0, 500))
def test_no_start_exceeds_the_limit_on_nodes(window: Any, name: str, above_w: int) -> None:
    jobs, sun, step_s = window
    site = window_site(sun, step_s, 690.0 - max(sun) + above_w, ForecastModel(), 12)
    outcome = run(jobs, NODES, site, name)
    assert starts_are_within(outcome, site)
    assert np.isfinite(outcome.end_s).all()


@settings(max_examples=15, deadline=None)
@given(window=windows(), name=NAMES, sticky=st.booleans())
def test_a_limit_that_is_never_reached_changes_nothing(window: Any, name: str, sticky: bool) -> None:
    jobs, sun, step_s = window
    rules = {"commitment": "sticky" if sticky else "reconsider"}
    model, limit_w = ForecastModel(), 100 + float(jobs.power_w.sum()) + 1
    starts = [
        run(jobs, POOL, window_site(sun, step_s, limit_w, model, 12, over_limit=over_limit), name, **rules).start_s
        for over_limit in ("count", "hold")
    ]
    np.testing.assert_array_equal(*starts)


@settings(max_examples=8, deadline=None)
@given(window=windows(), name=NAMES, above_w=st.integers(0, 200), sigma=st.sampled_from([0.0, 0.5]))
def test_a_scheduler_driven_from_views_holds_the_same_jobs(
    tmp_path_factory: pytest.TempPathFactory, window: Any, name: str, above_w: int, sigma: float
) -> None:
    """Also one that starts anew with its memory: first reservations are remembered."""
    jobs, sun, step_s = window
    site = window_site(sun, step_s, 100 + float(jobs.power_w.max()) + above_w, ForecastModel(sigma=sigma, seed=3), 12)
    how = {"restart": lambda k: k % 7 == 3, "memory": tmp_path_factory.mktemp("driven") / "memory.npz"}
    live = run_from_views(scheduler(name), jobs, POOL, site, Rules(), **how)
    np.testing.assert_array_equal(live.start_s, run(jobs, POOL, site, name).start_s)


@settings(max_examples=4, deadline=None)
@given(window=windows(), name=st.sampled_from(["foresee", "green-threshold"]), above_w=st.integers(0, 200))
def test_planners_that_ask_are_held_too(window: Any, name: str, above_w: int) -> None:
    jobs, sun, step_s = window
    limit_w = max(1.0, 100 + jobs.power_w.max() - max(sun)) + above_w
    site = window_site(sun, step_s, limit_w, ForecastModel(), 12)
    outcome = run(jobs, POOL, site, name)
    assert starts_are_within(outcome, site)
    assert np.isfinite(outcome.end_s).all()


# ------------------------------------------------------------------------------------------------------ refusals

ONE = jobs_of(submit_s=[0], run_time_s=[5], processors=[1], power_w=[250.0])


def test_a_job_that_no_slot_can_carry_is_refused() -> None:
    with pytest.raises(InputError) as told:
        run(ONE, POOL, sunny([0.0, 100.0], 200.0), "fcfs+easy")
    assert str(told.value) == (
        "site.grid.import_limit_w: is 200, with which the cluster may draw 300 W at most, but job 1 and idle nodes "
        'draw 350 W (raise the limit, drop the job, or use over_limit = "count")'
    )
    assert run(ONE, POOL, sunny([0.0, 150.0], 200.0), "fcfs+easy").start_s.tolist() == [10]


@pytest.mark.usefixtures("impatient")
def test_a_limit_below_what_the_nodes_of_a_job_add_is_told() -> None:
    """Idle, the node draws 50 W; the job would make it 110 W."""
    node = NodeGroup(name="n", count=1, processors=2, static_power_w=100.0, idle_fraction=0.5)
    jobs = jobs_of(submit_s=[0], run_time_s=[10], processors=[1], power_w=[10.0])
    with pytest.raises(InputError, match=r"site.grid.import_limit_w: leaves 1 jobs waiting forever"):
        run(jobs, Cluster.of_nodes((node,)), sunny([0.0], 75.0, step_s=HOUR_S), "fcfs+easy")


@pytest.mark.usefixtures("impatient")
def test_a_limit_and_a_cap_are_both_named_where_either_may_be_the_cause() -> None:
    """The limit of 150 W would do; the cap would not."""
    node = NodeGroup(name="n", count=1, processors=2, static_power_w=100.0, idle_fraction=0.5)
    jobs = jobs_of(submit_s=[0], run_time_s=[10], processors=[1], power_w=[10.0])
    told = r"rules.power_cap_w: leaves 1 .* too much \(raise it and site.grid.import_limit_w, or use a placement"
    with pytest.raises(InputError, match=told):
        run(jobs, Cluster.of_nodes((node,)), sunny([0.0], 150.0, step_s=HOUR_S), "fcfs+easy", power_cap_w=75.0)


def test_a_series_that_ends_while_a_job_waits_for_sun_is_an_error() -> None:
    late = jobs_of(submit_s=[25], run_time_s=[5], processors=[1], power_w=[250.0])
    with pytest.raises(SupplyExhausted):
        run(late, POOL, sunny([0.0, 150.0, 0.0, 0.0], 200.0, repeat=False), "fcfs+easy")


@pytest.mark.parametrize("name", ["fcfs+easy-irmasim", "ga-published"])
def test_what_does_not_know_the_limit_refuses_it(name: str) -> None:
    with pytest.raises(InputError, match=r"does not know a limit of the grid connection that holds jobs .use "):
        run(ONE, POOL, sunny([200.0], 200.0), name)


def test_a_battery_must_not_charge_above_the_limit() -> None:
    battery = Storage(capacity_kwh=1.0, charge_w=100.0, discharge_w=100.0)
    assert sunny([0.0], 200.0, storage=battery).held_limit_w == 200.0
    shaving = replace(battery, dispatch="peak-shaving", limit_w=200.0)
    assert sunny([0.0], 200.0, storage=shaving).held_limit_w == 200.0
    for storage in (replace(shaving, limit_w=201.0), replace(battery, dispatch="price-arbitrage")):
        with pytest.raises(InputError, match=r"site.grid.over_limit: is hold, but storage dispatched by"):
            sunny([0.0], 200.0, storage=storage)
        assert sunny([0.0], 200.0, storage=storage, over_limit="count").held_limit_w == np.inf


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match=r"grid.over_limit: is 'stop' .use count or hold"):
        grid_of(100.0, 1, "stop")
    with pytest.raises(InputError, match=r"grid.over_limit: is hold, but there is no limit"):
        grid_of(np.inf, 1)
