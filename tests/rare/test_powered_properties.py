"""What holds of every run on a machine whose capacity follows the power, whatever the capacity and the rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.cluster import Capacity, Cluster
from greenbatch.engine.outcome import STATES, Outcome, Stays
from greenbatch.engine.pools import Pools
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

FINISHED, REJECTED = STATES.index("finished"), STATES.index("rejected")
SIZE, GPUS = 6, 4


@st.composite
def workloads(draw: Any, *, gpus: int = GPUS) -> Workload:
    count = draw(st.integers(1, 14))

    def column(values: Any) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    run_s = column(st.integers(1, 9))
    return Workload.from_columns(
        "random",
        {
            "submit_s": sorted(column(st.integers(0, 12))), "run_time_s": run_s,
            "requested_time_s": [each + extra for each, extra in zip(run_s, column(st.integers(0, 3)), strict=True)],
            "processors": column(st.integers(1, SIZE)), "gpus": column(st.integers(0, gpus)),
            "qos": column(st.sampled_from([0.2, 0.5, 0.9, 1.0])), "value": column(st.integers(0, 9)),
            "power_w": column(st.integers(0, 5)),
        },
    )  # fmt: skip


@st.composite
def capacities(draw: Any) -> Capacity:
    """Some levels, of which the last is all of the machine, so that every job can end."""
    steps = draw(st.lists(st.tuples(st.integers(1, 6), st.integers(0, SIZE), st.integers(0, GPUS)), max_size=9))
    times = np.cumsum([0, *(step for step, _, _ in steps)])
    processors, gpus = [p for _, p, _ in steps] + [SIZE], [g for _, _, g in steps] + [GPUS]
    return Capacity(time_s=times, processors=np.array(processors), gpus=np.array(gpus))


POOLS = st.builds(
    Pools,
    ready=st.integers(0, 3), waiting=st.integers(0, 4), suspended=st.integers(0, 2),
    admission=st.sampled_from(["fifo", "qos"]), actions_per_tick=st.integers(0, 3),
    horizon_s=st.sampled_from([0.0, 3.0]),
    suspends=st.sampled_from(["never", "power", "swap"]), suspend_s=st.sampled_from([0.0, 1.0]),
    victim=st.sampled_from(["lowest-value", "latest-due", "shortest-remaining", "longest-remaining", "latest-start"]),
)  # fmt: skip
SCHEDULERS = (
    "qos+none", "hvf+first-fit", "fcfs+easy", "sjf+none", "wfp3+first-fit", "packer", "f1+easy-green-order",
)  # fmt: skip


def run(workload: Workload, capacity: Capacity, pools: Pools, name: str) -> Outcome:
    cluster = Cluster.of_units(SIZE, GPUS, powered=capacity, idle_power_w=10.0)
    rules = Rules(event_rule="per_instant", ties="completion_first", pools=pools)
    return simulate(workload, cluster, None, rules, scheduler(name))


def in_use(outcome: Outcome, time_s: float) -> tuple[int, int]:
    stays, jobs = outcome.stays, outcome.workload
    assert stays is not None
    active = (stays.span_start_s <= time_s) & ~(stays.span_end_s <= time_s)
    rows = stays.span_job[active]
    return int(jobs.processors[rows].sum()), int(jobs.gpus[rows].sum())


def worked_s(stays: Stays, job: int, cost_s: float, step: float = 0.0) -> set[float]:
    """What a job does in all its spans, each of which but the first begins with the cost of the suspension before it.

    So does the first if it was suspended before at the instant of its start, which leaves no span. With a step, each
    span but the last keeps whole steps of its work only.
    """
    lengths = (stays.span_end_s - stays.span_start_s)[stays.span_job == job]
    found = set()
    for first_s in (0.0, cost_s) if stays.suspensions[job] >= len(lengths) else (0.0,):
        work = np.maximum(lengths - [first_s, *[cost_s] * (len(lengths) - 1)][: len(lengths)], 0.0)
        kept = work[:-1] if not step else np.floor(work[:-1] / step) * step
        found.add(float(kept.sum() + work[-1:].sum()))
    return found


@given(workload=workloads(), capacity=capacities(), pools=POOLS, name=st.sampled_from(SCHEDULERS))
@settings(max_examples=100, deadline=None)
def test_capacity_is_kept_and_work_conserved(workload: Workload, capacity: Capacity, pools: Pools, name: str) -> None:
    outcome = run(workload, capacity, pools, name)
    stays = outcome.stays
    assert stays is not None
    for time_s in np.unique(np.concatenate([stays.span_start_s, capacity.time_s])):
        row = np.searchsorted(capacity.time_s, time_s, side="right") - 1
        processors, gpus = in_use(outcome, time_s)
        assert processors <= capacity.processors[row]
        assert gpus <= capacity.gpus[row]
    finished = stays.state == FINISHED
    for job in range(len(workload)):
        assert workload.run_time_s[job] * finished[job] in worked_s(stays, job, pools.suspend_s)  # whole numbers: exact
    assert set(stays.state) <= {FINISHED, REJECTED}
    assert np.all(np.isfinite(outcome.end_s) == finished)
    assert np.all(outcome.start_s[finished] >= workload.submit_s[finished])
    if not pools.waiting:
        assert finished.all()
    if pools.suspends == "never" and not pools.horizon_s:
        assert not stays.suspensions.any()


@given(
    workload=workloads(), capacity=capacities(), step=st.sampled_from([0.0, 1.0, 2.0, 100.0]),
    cost_s=st.sampled_from([(0.0, 0.0), (1.0, 0.0), (1.0, 2.0)]),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_only_work_since_the_last_checkpoint_is_lost(
    workload: Workload, capacity: Capacity, step: float, cost_s: tuple[float, float]
) -> None:  # fmt: skip
    """What suspending and resuming takes is no work, and is taken once for each suspension."""
    loses = {0.0: "nothing", 100.0: "all"}.get(step, "checkpoint")
    checkpoint_s = step if loses == "checkpoint" else 0.0
    costs = {"suspend_s": cost_s[0], "resume_s": cost_s[1]}
    pools = Pools(suspends="power", loses=loses, checkpoint_s=checkpoint_s, **costs)
    outcome = run(workload, capacity, pools, "fcfs+first-fit")
    stays = outcome.stays
    assert stays is not None
    for job in range(len(workload)):
        assert workload.run_time_s[job] in worked_s(stays, job, sum(cost_s), step)


@given(
    workload=workloads(gpus=0), limits=st.booleans(),
    name=st.sampled_from(["fcfs+none", "sjf+easy", "fcfs+easy", "f1+none", "wfp3+easy", "sjf+first-fit",
                          "f1+easy-green-order"]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_full_capacity_is_the_ordinary_pool(workload: Workload, limits: bool, name: str) -> None:
    pools = Pools(ready=len(workload), horizon_s=5.0) if limits else None
    rules = Rules(event_rule="per_instant", ties="completion_first")
    ordinary = simulate(workload, Cluster.pooled(SIZE, idle_power_per_machine_w=10.0), None, rules, scheduler(name))
    powered = Rules(event_rule="per_instant", ties="completion_first", pools=pools)
    cluster = Cluster.of_units(SIZE, GPUS, idle_power_w=10.0)
    ours = simulate(workload, cluster, None, powered, scheduler(name))
    for column in ("start_s", "end_s", "promised_start_s", "profile_time_s", "profile_load_w"):
        assert np.array_equal(getattr(ours, column), getattr(ordinary, column), equal_nan=True), column


@given(workload=workloads(), capacity=capacities())
@settings(max_examples=60, deadline=None)
def test_easy_never_delays_a_reservation(workload: Workload, capacity: Capacity) -> None:
    exact = workload.with_columns(requested_time_s=workload.run_time_s)
    outcome = run(exact, capacity, Pools(), "fcfs+easy")
    promised = np.isfinite(outcome.promised_start_s)
    assert np.all(outcome.start_s[promised] <= outcome.promised_start_s[promised])


@given(workload=workloads(), capacity=capacities(), pools=POOLS)
@settings(max_examples=40, deadline=None)
def test_every_rejection_is_of_a_full_pool_or_a_large_request(
    workload: Workload, capacity: Capacity, pools: Pools
) -> None:
    limited = Pools(ready=1, waiting=2, largest_request=SIZE - 1, longest_request_s=8.0, suspends=pools.suspends)
    outcome = run(workload, capacity, limited, "qos+none")
    stays = outcome.stays
    assert stays is not None
    too_large = (np.maximum(workload.processors, workload.gpus) > SIZE - 1) | (workload.requested_time_s > 8.0)
    assert np.all(stays.state[too_large] == REJECTED)
    for job in np.flatnonzero((stays.state == REJECTED) & ~too_large):
        arrived = workload.submit_s <= workload.submit_s[job]
        begun = np.nan_to_num(outcome.start_s, nan=np.inf) < workload.submit_s[job]
        waiting = arrived & ~begun & (stays.state != REJECTED)
        assert waiting.sum() >= 2


def test_failures_lose_work_since_the_checkpoint_at_the_stated_rate() -> None:
    jobs, year_s = 400, 366 * 86_400.0
    workload = Workload.from_columns(
        "long", {"submit_s": np.zeros(jobs), "run_time_s": np.full(jobs, 1000.0), "processors": np.full(jobs, SIZE),
                 "gpus": np.zeros(jobs), "power_w": np.zeros(jobs)},
    )  # fmt: skip
    rate = year_s / (SIZE * 5_000.0)  # one failure in 5,000 s
    made = []
    for seed in (1, 2):
        given_pools = Pools(loses="checkpoint", checkpoint_s=100.0, failures_per_processor_year=rate, failure_seed=seed)
        outcome = run(workload, Capacity.constant(SIZE, GPUS), given_pools, "fcfs+none")
        stays = outcome.stays
        assert stays is not None
        lengths = stays.span_end_s - stays.span_start_s
        lost = lengths[np.append(np.diff(stays.span_job) == 0, False)] % 100.0
        assert outcome.end_s.max() == pytest.approx(jobs * 1000.0 + lost.sum())
        expected = outcome.end_s.max() / 5_000.0  # every failure hits, because the machine is always full
        assert abs(stays.suspensions.sum() - expected) < 4 * np.sqrt(expected)
        made.append(outcome.end_s.max())
    assert made[0] != made[1]


def test_a_mix_of_resources_is_not_confused() -> None:
    """GPUs alone can keep a job from starting, and their loss alone suspends it."""
    workload = Workload.from_columns(
        "two", {"submit_s": [0, 0], "run_time_s": [4, 4], "processors": [1, 1], "gpus": [3, 2], "value": [5, 1],
                "qos": [1, 1], "power_w": [0, 0]},
    )  # fmt: skip
    capacity = Capacity(time_s=np.array([0, 5, 7]), processors=np.array([6, 6, 6]), gpus=np.array([4, 1, 4]))
    outcome = run(workload, capacity, Pools(suspends="power"), "fcfs+first-fit")
    assert outcome.start_s.tolist() == [0, 4]
    assert outcome.end_s.tolist() == [4, 10]
    assert outcome.stays is not None
    assert outcome.stays.suspensions.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["qos+none", "fcfs+first-fit"])
def test_power_that_is_off_draws_nothing(name: str) -> None:
    workload = Workload.from_columns(
        "one", {"submit_s": [0], "run_time_s": [4], "processors": [2], "gpus": [0], "value": [1], "qos": [1],
                "power_w": [100]},
    )  # fmt: skip
    capacity = Capacity(time_s=np.array([0, 2]), processors=np.array([6, 2]), gpus=np.array([4, 1]))
    outcome = run(workload, capacity, Pools(), name)
    assert outcome.profile_time_s.tolist() == [0, 2, 4]
    assert outcome.profile_load_w.tolist() == [110.0, 103.0, 3.0]
