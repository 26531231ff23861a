"""Planning with prices: schedules are valid, nothing of the future is used, prices do what their names say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import clusters, job_lists
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import Job

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.energy import Site
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.models.planner import baseline_rule
from greenbatch.policies.compiled.lookahead import forecast, weights
from greenbatch.policies.compiled.lookahead import plan as planner
from greenbatch.policies.compiled.lookahead.baseline import baseline_end_s, baseline_progress, progress_table
from greenbatch.scenarios import load_scenario
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

INITIAL = np.zeros(weights.WEIGHTS)
INITIAL[: weights.PRICES] = [number.initial for number in weights.NUMBERS.values()]
HOUR_S = 3600.0


class Planned:
    """A scheduler with given numbers."""

    def __init__(self, numbers: np.ndarray, fill: float = 0.0) -> None:
        self.numbers, self.fill = numbers, fill

    def program(self, workload: Workload) -> Program:
        decider = planner.lookahead_policy(self.numbers, baseline_rule(workload), self.fill)
        return Program(
            name="planned", decider=decider, settings={"tick_s": 1800.0, "sticky": 0.0}
        )  # fmt: skip

    def policy(self) -> None:
        return None


def numbers_with(**changes: float) -> np.ndarray:
    made = INITIAL.copy()
    for name, value in changes.items():
        made[list(weights.NUMBERS).index(name)] = value
    return made


def workload(jobs: list[Job]) -> Workload:
    columns = np.array([[j.submit_s, j.run_s, j.requested_s, j.processors, j.power_w] for j in jobs]).T
    names = ("submit_s", "run_time_s", "requested_time_s", "processors", "power_w")
    return Workload.from_columns("x", dict(zip(names, columns, strict=True)))


def site(power_w: list[float]) -> Site:
    return Site(name="s", step_s=HOUR_S, sources_w={"all": np.array(power_w)}, repeat=True)


def plan(
    jobs: Workload, cluster: Cluster, power: Site, numbers: np.ndarray = INITIAL, fill: float = 0.0
) -> Outcome:  # fmt: skip
    return simulate(jobs, cluster, power, Rules(), Planned(numbers, fill))


DAYS = st.lists(st.sampled_from([0.0, 100.0, 400.0, 900.0]), min_size=24, max_size=96)


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_schedules_are_valid_for_any_numbers(data: st.DataObject) -> None:
    """Nobody starts before submission, the machine is never over-committed, and every job starts."""
    cluster = data.draw(clusters())
    jobs = workload(data.draw(job_lists(cluster.processors, unit_s=600.0)))
    random = np.random.default_rng(data.draw(st.integers(0, 999)))
    numbers = INITIAL + random.normal(0, 0.5, weights.WEIGHTS) * data.draw(st.sampled_from([0.0, 1.0, 3.0]))
    for k, number in enumerate(weights.NUMBERS.values()):
        numbers[k] = np.clip(numbers[k], number.lowest, number.highest)
    outcome = plan(jobs, cluster, site(data.draw(DAYS)), numbers, data.draw(st.sampled_from([0.0, 0.02, 1.0])))
    assert (outcome.start_s >= jobs.submit_s).all()
    for instant in outcome.start_s:
        running = (outcome.start_s <= instant) & (instant < outcome.end_s)
        assert jobs.processors[running].sum() <= cluster.processors


@settings(max_examples=7, deadline=None)
@given(st.data())
def test_nothing_is_known_of_later_arrivals_and_later_weather(data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    jobs = workload(data.draw(job_lists(cluster.processors, unit_s=1200.0)))
    sky = data.draw(st.lists(st.sampled_from([0.0, 100.0, 400.0]), min_size=200, max_size=200))
    lagging = numbers_with(lag=1.0, lag_price=1000.0, idle_price=0.0, hold_price=2.0)
    lagging[weights.PRICES + weights.LAG_INPUT :: len(weights.INPUTS)] = 1.0
    numbers, fill = data.draw(st.sampled_from([INITIAL, lagging])), data.draw(st.sampled_from([0.0, 0.02, 1.0]))
    outcome = plan(jobs, cluster, site(sky), numbers, fill)
    cut = data.draw(st.integers(0, len(jobs) - 1))
    at_s = np.sort(jobs.submit_s)[cut]
    fewer = jobs.take(jobs.submit_s <= at_s)
    other = np.array(sky)
    other[int(at_s // HOUR_S) + 25 :] = 777.0
    again = plan(fewer, cluster, site(other.tolist()), numbers, fill)
    before = outcome.start_s[jobs.submit_s <= at_s]
    early = before <= at_s
    np.testing.assert_array_equal(again.start_s[early], before[early])


SUNNY = [0.0] * 6 + [1000.0] * 6 + [0.0] * 12


def test_a_long_job_waits_for_the_sun_and_a_short_one_does_not() -> None:
    cluster = Cluster.pooled(8, idle_power_per_machine_w=0.0)
    jobs = workload([Job(0.0, 4 * HOUR_S, 4 * HOUR_S, 4, 400.0), Job(0.0, 60.0, 60.0, 4, 400.0)])
    outcome = plan(jobs, cluster, site(SUNNY))
    assert outcome.start_s.tolist() == [6 * HOUR_S, 0.0]


@pytest.mark.parametrize(
    ("change", "start_s"),
    [({"idle_price": 40.0}, 0.0), ({"hold_price": 8.0}, 0.0), ({"readiness": 15.0, "idle_price": 20.0}, 0.0),
     ({"idle_price": 0.0}, 6 * HOUR_S)],
)  # fmt: skip
def test_prices_of_waiting_make_it_start(change: dict[str, float], start_s: float) -> None:
    cluster = Cluster.pooled(8, idle_power_per_machine_w=0.0)
    jobs = workload([Job(0.0, 4 * HOUR_S, 4 * HOUR_S, 8, 240.0)])
    numbers = numbers_with(block_price=-3.0, **change)
    assert plan(jobs, cluster, site(SUNNY), numbers).start_s.tolist() == [start_s]


FRUGAL = numbers_with(green_price=45.0, green_level=3.0, idle_price=0.0, hold_price=2.0, block_price=-3.0, reserve=0.0)
"""Processors are dear in the sun, so a frugal job would rather run at night."""
SUN = [900.0] * 6 + [0.0] * 18


@pytest.mark.parametrize(("fill", "start_s"), [(0.0, 6 * HOUR_S), (0.02, 0.0)])
def test_idle_processors_in_the_sun_take_a_job_that_would_be_cheaper_at_night(fill: float, start_s: float) -> None:
    cluster = Cluster.pooled(8, idle_power_per_machine_w=0.0)
    jobs = workload([Job(0.0, 2 * HOUR_S, 2 * HOUR_S, 4, 4.0)])
    assert plan(jobs, cluster, site(SUN), FRUGAL, fill).start_s.tolist() == [start_s]


@pytest.mark.parametrize(("share", "fills"), [(0.49, False), (0.51, True)])
def test_a_job_fills_only_up_to_its_share_of_brown_energy(share: float, fills: bool) -> None:
    """Four hours from the second hour before dusk are half brown."""
    cluster = Cluster.pooled(16, idle_power_per_machine_w=0.0)
    jobs = workload([Job(4 * HOUR_S, 4 * HOUR_S, 4 * HOUR_S, 4, 4.0)])
    (started_s,) = plan(jobs, cluster, site(SUN), FRUGAL, share).start_s
    assert (started_s == 4 * HOUR_S) == fills


def test_filling_respects_the_reservation() -> None:
    """A wide job is first in line for the whole machine at 3 h; a frugal one may run until then, but not longer.

    The frugal one would be cheaper in the night that begins at 6 h.
    """
    cluster = Cluster.pooled(8, idle_power_per_machine_w=0.0)
    numbers = FRUGAL.copy()
    numbers[list(weights.NUMBERS).index("order_density")] = -6.0
    busy = [Job(0.0, 3 * HOUR_S, 3 * HOUR_S, 4, 4e3), Job(0.0, 0.5 * HOUR_S, 0.5 * HOUR_S, 4, 4e3)]
    wide, sun = Job(60.0, 2 * HOUR_S, 2 * HOUR_S, 8, 8e3), [2e4] * 6 + [0.0] * 18
    for run_h, fill, start_h in ((2.0, 0.02, 0.5), (3.0, 0.02, 6.0), (2.0, 0.0, 6.0)):
        frugal = Job(120.0, run_h * HOUR_S, run_h * HOUR_S, 4, 4.0)
        outcome = plan(workload([*busy, wide, frugal]), cluster, site(sun), numbers, fill)
        assert outcome.start_s.tolist() == [0.0, 0.0, 3 * HOUR_S, start_h * HOUR_S]


@pytest.mark.parametrize(("price", "start_s"), [(-3.0, 0.0), (7.0, 18 * HOUR_S)])
def test_a_wide_job_makes_way_for_the_short_ones_that_are_to_come(price: float, start_s: float) -> None:
    """Short jobs come every ten minutes for eighteen hours; a price of blocking them keeps the wide job waiting."""
    cluster = Cluster.pooled(8, idle_power_per_machine_w=0.0)
    shorts = [Job(600.0 * k, 60.0, 60.0, 2, 1.0) for k in range(1, 108)]
    jobs = workload([Job(0.0, 60.0, 60.0, 2, 1.0), *shorts, Job(900.0, 8 * HOUR_S, 8 * HOUR_S, 8, 1.0)])
    numbers = numbers_with(block_price=price, reserve=0.0, hold_price=2.0, idle_price=0.1, quiet=1.0, memory=1.0)
    started_s = plan(jobs, cluster, site([1000.0] * 24), numbers).start_s[-1]
    assert (started_s >= start_s) if start_s else (started_s < HOUR_S)


def test_the_reserve_is_for_short_jobs() -> None:
    """Two long jobs fill the machine; with a reserve the second waits, and a short one goes straight through."""
    cluster = Cluster.pooled(10, idle_power_per_machine_w=0.0)
    long = 5 * HOUR_S
    jobs = workload([Job(0.0, long, long, 5, 10.0), Job(1.0, long, long, 5, 10.0), Job(600.0, 60.0, 60.0, 4, 10.0)])
    bright = site([1000.0] * 24)
    base = {"reserve_ratio": 1.01, "block_price": -3.0, "hold_price": 8.0}
    without = plan(jobs, cluster, bright, numbers_with(reserve=0.0, **base)).start_s
    assert without.tolist() == [0.0, 1.0, long]
    kept = plan(jobs, cluster, bright, numbers_with(reserve=0.4, **base)).start_s
    assert kept[2] == 600.0
    assert kept[1] >= long


def test_a_head_changes_a_price_with_the_state_of_the_system() -> None:
    """The price of idle processors rises with greenness: the same job waits at night, with the head it does not."""
    cluster = Cluster.pooled(8, idle_power_per_machine_w=0.0)
    jobs = workload([Job(0.0, 4 * HOUR_S, 4 * HOUR_S, 8, 240.0)])
    numbers = numbers_with(idle_price=3.0, block_price=-3.0)
    assert plan(jobs, cluster, site(SUNNY), numbers).start_s.tolist() == [6 * HOUR_S]
    head = numbers.copy()
    row = weights.PRICES + weights.IDLE_PRICE * len(weights.INPUTS)
    head[row + weights.INPUTS.index("green_now")] = -3.0  # it is dark: two units more, e^2 times the price
    assert plan(jobs, cluster, site(SUNNY), head).start_s.tolist() == [0.0]


def test_baseline_progress_by_hand() -> None:
    """By hand: 5 processors, 4 of which count for what is left; two jobs one after the other, later one alone."""
    starts, runs, wide = np.array([0.0, 8.0, 40.0]), np.array([8.0, 4.0, 30.0]), np.array([5, 5, 1])
    table = progress_table(starts * HOUR_S, (starts + runs) * HOUR_S, wide)
    assert (table / HOUR_S)[:, 1].tolist() == [0.0, 40.0, 40.0, 60.0, 60.0, 90.0]
    assert table[:, 2].tolist() == [5, 0, 5, 0, 1, 0]
    assert (table / HOUR_S)[:, 3].tolist() == [8.0, 8.0, 12.0, 12.0, 70.0, 70.0]
    known = {0.0: 40.0, 1.0: 60.0, 9.0: 60.0, 13.0: 60.0, 41.0: 90.0}  # at an hour: work of the jobs that came
    latest = {0.0: 8.0, 1.0: 8.0, 9.0: 8.0, 13.0: 8.0, 41.0: 70.0}
    ends = []
    for now, work in known.items():
        row = int(np.searchsorted(table[:, 0], now * HOUR_S, side="right")) - 1
        ends.append(baseline_end_s(table, row, now * HOUR_S, work * HOUR_S, latest[now] * HOUR_S, 5) / HOUR_S)
    assert ends == pytest.approx([10.0, 1 + 55 / 4, 9 + 15 / 4, 12.0, 70.0])


def test_requests_do_not_shrink_on_a_faster_machine() -> None:
    """Whatever its speed, the lag's reference does all requested work."""
    jobs = workload([Job(600.0 * k, 1800.0, 3600.0, 3, 100.0) for k in range(5)])
    for speed in (0.5, 1.0, 2.0):
        cluster = Cluster((NodeGroup(name="n", count=8, processors=1, static_power_w=0.0, speed=speed),))
        table = baseline_progress(jobs, cluster, Rules(), baseline_rule(jobs))
        assert table[-1, 1] == pytest.approx((jobs.requested_time_s * jobs.processors).sum())


def test_the_price_of_lag_bounds_the_makespan() -> None:
    """Long jobs and one hour of sun a day: with no price of lag they start one a day."""
    cluster = Cluster.pooled(8, idle_power_per_machine_w=0.0)
    jobs = workload([Job(3600.0 * k, 4 * HOUR_S, 4 * HOUR_S, 8, 400.0) for k in range(6)])
    ends = []
    for lag in (1.1, 1.5, 2.5):
        numbers = numbers_with(lag=lag, lag_price=1000.0, hold_price=2.0, idle_price=0.0, readiness=0.0)
        ends.append(float(plan(jobs, cluster, site([0.0] * 23 + [9000.0]), numbers).end_s.max()) / HOUR_S)
    assert ends == sorted(ends)
    assert ends[-1] > 2 * ends[0]


@pytest.fixture
def three_days_s(monkeypatch: pytest.MonkeyPatch) -> float:
    """No job is held for longer; thirty days of plans take long as plain Python."""
    longest_s = 3 * 86_400.0
    monkeypatch.setattr(planner, "LONGEST_HOLD_S", longest_s)
    return longest_s


def test_no_job_is_held_indefinitely(three_days_s: float) -> None:
    """Twelve days in the dark with every reason to wait: the job starts after three."""
    cluster = Cluster.pooled(8, idle_power_per_machine_w=0.0)
    jobs = workload([Job(0.0, HOUR_S, HOUR_S, 8, 240.0)])
    never = numbers_with(readiness=-8.0, idle_price=0.0, hold_price=2.0, lag_price=0.0)
    dark = Site(name="s", step_s=HOUR_S, sources_w={"all": np.zeros(300)}, repeat=False)
    start_s = plan(jobs, cluster, dark, never).start_s[0]
    assert three_days_s <= start_s <= three_days_s + 3600.0


def test_a_wide_job_is_not_overtaken_indefinitely(three_days_s: float) -> None:
    """Narrow jobs come before the ones before them end, so the whole machine is never free unless it is kept free."""
    cluster = Cluster.pooled(8, idle_power_per_machine_w=0.0)
    stream = [Job(5 * HOUR_S * k, 10 * HOUR_S, 10 * HOUR_S, 3, 10.0) for k in range(40)]
    jobs = workload([*stream, Job(6 * HOUR_S, 3 * HOUR_S, 3 * HOUR_S, 8, 800.0)])
    numbers = numbers_with(horizon=4.0, block_price=-3.0, idle_price=40.0, reserve=0.0)
    outcome = plan(jobs, cluster, site([0.0] * 24), numbers)
    waited_s = outcome.start_s[np.argmax(jobs.processors)] - 6 * HOUR_S
    assert waited_s <= three_days_s + 11 * HOUR_S


def test_an_arrival_at_the_instant_of_a_tick_does_not_take_its_place() -> None:
    """The sun comes at six, and so does another job: the one that waited for the sun starts at six all the same."""
    cluster = Cluster.pooled(8, idle_power_per_machine_w=0.0)
    held, other = Job(0.0, 4 * HOUR_S, 4 * HOUR_S, 4, 400.0), Job(6 * HOUR_S, 7 * HOUR_S, 7 * HOUR_S, 4, 1.0)
    second = Job(60.0, 4 * HOUR_S, 4 * HOUR_S, 4, 400.0)
    outcome = plan(workload([held, second, other]), cluster, site(SUNNY), numbers_with(reserve=0.0, block_price=-3.0))
    assert outcome.start_s[:2].tolist() == [6 * HOUR_S, 6 * HOUR_S]


def test_half_hours_beyond_the_table_cost_what_the_last_one_does() -> None:
    """In the dark every start of a job costs the same, however long it is: it is never put off to hide its end."""
    cluster = Cluster.pooled(8, idle_power_per_machine_w=0.0)
    long_s = (forecast.BINS + 100) * forecast.BIN_S
    numbers = numbers_with(block_price=-3.0, hold_price=2.0, idle_price=2.0, readiness=0.0)
    outcome = plan(workload([Job(0.0, long_s, long_s, 8, 400.0)]), cluster, site([0.0] * 24), numbers)
    assert outcome.start_s.tolist() == [0.0]


def test_the_machine_alone_decides_what_fits() -> None:
    """A job over its requested time still holds its processors."""
    cluster = Cluster.pooled(4, idle_power_per_machine_w=0.0)
    jobs = workload([Job(0.0, 5000.0, 1000.0, 4, 1.0), Job(10.0, 100.0, 100.0, 4, 1.0)])
    outcome = simulate(jobs, cluster, site([1000.0] * 24), replace(Rules(), overrun="extend"), Planned(INITIAL))
    assert outcome.start_s.tolist() == [0.0, 5000.0]


@pytest.mark.parametrize(("bound", "sum_s"), [(1.5, 1293080.0), (1.25, 1234401.0)])
def test_models_without_filling_decide_as_before_there_was_any(bound: float, sum_s: float) -> None:
    """Sums of start times as before filling was added."""
    question, made = load_scenario("default"), scheduler(f"gas-marl-plus@default:makespan_bound={bound}")
    outcome = simulate(question.window(0, 40), question.cluster, question.site, question.rules, made)
    assert outcome.start_s.sum() == sum_s
