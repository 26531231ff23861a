"""The policy for whole logs: what it holds, what it never delays, and what it saves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.accounts import books
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

HOUR_S = 3600.0
CLUSTER = Cluster.pooled(16, processors_per_machine=16, idle_power_per_machine_w=0.0)


def site(power_w: list[float]) -> Site:
    return Site(name="t", step_s=HOUR_S, sources_w={"sun": np.array(power_w)}, repeat=True)


NIGHT_AND_DAY = site([0.0] * 12 + [2000.0] * 12)


def jobs_of(*rows: tuple[float, float, int], watts: float = 100.0, over: float = 1.0) -> Workload:
    """Submission [h], run time [h] and processors of each job."""
    submit_h, run_h, processors = (np.array(column) for column in zip(*rows, strict=True))
    return Workload.from_columns("jobs", {
        "submit_s": submit_h * HOUR_S, "run_time_s": run_h * HOUR_S, "requested_time_s": run_h * HOUR_S * over,
        "processors": processors.astype(np.int64), "power_w": watts * processors,
    })  # fmt: skip


def run(name: str, jobs: Workload, power: Site, **rules: Any) -> Outcome:
    return simulate(jobs, CLUSTER, power, Rules(**rules), scheduler(name))


EXACT = "foresee:learned=0:reserve=0:backlog=0"


@pytest.mark.plain
def test_a_long_job_waits_for_the_sun_and_a_short_one_does_not() -> None:
    """By hand. Three hours of 100 W save 1.08 MJ at noon. Twelve hours of waiting cost 12 h x (7,289 J / 3 h + 14.8 W)
    x price: with a price of 0.5 it is 0.34 MJ, with 2 it is 1.35 MJ. A job of one minute costs 2.6 MJ to hold."""
    long, short = jobs_of((0.0, 3.0, 1)), jobs_of((0.0, 1 / 60, 1))
    assert run(f"{EXACT}:price=0.5", long, NIGHT_AND_DAY).start_s.tolist() == [12 * HOUR_S]
    assert run(f"{EXACT}:price=2", long, NIGHT_AND_DAY).start_s.tolist() == [0.0]
    assert run(f"{EXACT}:price=0.5", short, NIGHT_AND_DAY).start_s.tolist() == [0.0]
    assert run(f"{EXACT}:price=0.5:holds=0", long, NIGHT_AND_DAY).start_s.tolist() == [0.0]


@pytest.mark.plain
def test_a_job_is_never_held_beyond_the_limit() -> None:
    long = jobs_of((0.0, 3.0, 1))
    for limit_h in (1, 5, 11):
        assert run(f"{EXACT}:price=0.1:limit={limit_h * 3600}", long, NIGHT_AND_DAY).start_s[0] <= limit_h * HOUR_S
    assert run(f"{EXACT}:price=0.1:limit={13 * 3600}", long, NIGHT_AND_DAY).start_s[0] == 12 * HOUR_S


@pytest.mark.plain
def test_power_that_is_almost_green_starts_a_job() -> None:
    """From 10 h on, 98 W of 100 W are green for two hours; then all are."""
    power = site([0.0] * 10 + [98.0] * 2 + [2000.0] * 12)
    held = jobs_of((10.0, 1.0, 1))
    assert run(f"{EXACT}:price=0.001:filler=0", held, power).start_s.tolist() == [12 * HOUR_S]
    assert run(f"{EXACT}:price=0.001:filler=0.03", held, power).start_s.tolist() == [10 * HOUR_S]


@pytest.mark.plain
def test_a_held_job_reserves_nothing_and_a_blocked_one_is_respected() -> None:
    """All are at the limit, so the order is that of submission; one narrow job ends before the reservation."""
    always = site([1e6])
    jobs = jobs_of((0.0, 2.0, 12), (0.1, 4.0, 16), (0.2, 1.0, 4), (0.2, 3.0, 4))
    started = run(f"{EXACT}:wide=0:aging=0:limit=0", jobs, always).start_s / HOUR_S
    assert started.tolist() == pytest.approx([0.0, 2.0, 0.2, 6.0])


@pytest.mark.plain
def test_the_limit_grows_with_the_backlog_and_only_the_oldest_job_over_it_is_first() -> None:
    """Three hours of the whole machine keep a wide job waiting. With a limit of 0 the first wide job goes first and the
    order serves the others, shortest first; with a backlog that lifts the limit, the wide jobs are last."""
    always = site([1e6])
    jobs = jobs_of((0.0, 1.0, 16), (0.1, 3.0, 16), (0.2, 2.0, 16), (0.3, 0.5, 4))
    promised = run(f"{EXACT}:wide=0:aging=0:limit=0", jobs, always).start_s / HOUR_S
    assert promised.tolist() == pytest.approx([0.0, 1.0, 4.0, 6.0])
    lifted = run(f"{EXACT}:wide=0:aging=0:limit=0".replace("backlog=0", "backlog=8"), jobs, always).start_s / HOUR_S
    assert lifted.tolist() == pytest.approx([0.0, 3.5, 1.5, 1.0])


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_without_renewable_power_nothing_is_held(data: st.DataObject) -> None:
    """Starts are those of the order without holding, and also under so much power that nothing is ever brown."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    count = 40
    rows = zip(np.cumsum(rng.exponential(0.5, count)), rng.choice([0.01, 0.3, 2.0, 9.0], count),
               rng.integers(1, 17, count), strict=True)  # fmt: skip
    jobs = jobs_of(*rows, over=data.draw(st.sampled_from([1.0, 3.0])))
    power = site([data.draw(st.sampled_from([0.0, 1e7]))])
    for learned in (0, 1):
        held, plain = (run(f"foresee:price=0.01:learned={learned}:holds={k}", jobs, power).start_s for k in (1, 0))
        np.testing.assert_array_equal(held, plain)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), price=st.sampled_from([0.01, 0.5, 3.0]))
def test_schedules_are_valid(seed: int, price: float) -> None:
    rng = np.random.default_rng(seed)
    count = 60
    jobs = jobs_of(*zip(np.cumsum(rng.exponential(0.7, count)), rng.choice([0.02, 0.5, 3.0, 6.0], count),
                        rng.integers(1, 9, count), strict=True), over=2.0)  # fmt: skip
    outcome = run(f"foresee:price={price}", jobs, NIGHT_AND_DAY)
    assert (outcome.start_s >= jobs.submit_s).all()
    for instant in outcome.start_s:
        running = (outcome.start_s <= instant) & (instant < outcome.end_s)
        assert jobs.processors[running].sum() <= CLUSTER.processors


def test_a_lower_price_saves_more_brown_energy() -> None:
    rng = np.random.default_rng(7)
    jobs = jobs_of(*zip(np.cumsum(rng.exponential(1.5, 300)), rng.choice([0.02, 0.5, 3.0], 300),
                        rng.integers(1, 5, 300), strict=True), over=3.0)  # fmt: skip
    end_s = float(jobs.submit_s.max()) + 10 * 24 * HOUR_S
    brown = [books(run(f"foresee:{how}", jobs, NIGHT_AND_DAY), 0.0, end_s).grid_j
             for how in ("price=0.1", "price=1", "price=10", "holds=0")]  # fmt: skip
    assert brown == sorted(brown)
    assert brown[0] < 0.7 * brown[-1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("foresee:price=-1", "price is -1"),
        ("foresee:price=nan", "price"),
        ("foresee:reserve=2", "reserve is 2"),
        ("foresee:tick=0", "tick is 0"),
        ("foresee:holds=0.5", "holds is 0.5"),
        ("foresee+easy", "foresee"),
        ("foresee:prize=1", "price"),
    ],
)
def test_bad_parameters_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        scheduler(name)
    assert "\n" not in str(refused.value)


def test_it_needs_a_power_supply() -> None:
    with pytest.raises(InputError, match="needs a power supply"):
        simulate(jobs_of((0.0, 1.0, 1)), CLUSTER, None, Rules(), scheduler("foresee"))
