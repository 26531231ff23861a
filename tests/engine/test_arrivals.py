"""What a planner remembers of arrivals, against a plain implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from greenbatch.cluster import Cluster
from greenbatch.engine.queue import enqueue
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import new_state
from greenbatch.policies.compiled.lookahead import arrivals
from greenbatch.workload import Workload

HOUR_S = 3600.0
PROCESSORS = 12


def state_of(submit_s: list[float], requested_s: float = 60.0) -> Any:
    """A machine of 12 processors to which jobs of two processors come."""
    columns = {
        "submit_s": submit_s,
        "run_time_s": [requested_s] * len(submit_s),
        "requested_time_s": [requested_s] * len(submit_s),
        "processors": [2] * len(submit_s),
    }
    jobs = Workload.from_columns("x", {name: np.array(column) for name, column in columns.items()})
    return new_state(jobs, Cluster.pooled(PROCESSORS), None, Rules(), {})


def remembered(state: Any, now_s: float, tau_s: float = 2 * HOUR_S) -> Any:
    """The memory of all jobs that have come."""
    memory = np.zeros(arrivals.WIDTHS + PROCESSORS + 1)
    come = np.flatnonzero(state.jobs["submit_s"] <= now_s)
    state.clock.first = state.clock.last = 0
    for job in come:
        enqueue(state.queue, state.clock, state.jobs[job], int(job))
    state.clock.now_s, state.clock.arrived = state.jobs["submit_s"][0], len(come)
    arrivals.begin_memory(state, memory)
    state.clock.now_s = now_s
    arrivals.remember(state, memory, tau_s)
    return memory


RUNNING = st.lists(st.tuples(st.integers(1, 4), st.floats(0.0, 9000.0)), max_size=4)


def wait_s(width: int, free: int, running: list[tuple[int, float]]) -> float:
    """How long a job that came now would wait, if nothing else starts."""
    ends = [0.0, *sorted(end for _, end in running)]
    enough = (end for end in ends if free + sum(n for n, stop in running if stop <= end) >= width)
    return next(enough, ends[-1])


@settings(max_examples=45, deadline=None)
@given(running=RUNNING, processors=st.integers(1, 6), run_s=st.floats(1.0, 12_000.0))
def test_what_a_start_makes_short_jobs_wait(running: list[tuple[int, float]], processors: int, run_s: float) -> None:
    """The squared wait of a job of every width with and without the start."""
    free = PROCESSORS - sum(n for n, _ in running)
    assume(processors <= free)
    state = state_of([0.0] * 5)
    memory = remembered(state, 1000.0)
    state.machine.totals.free, state.clock.running, state.clock.expected_first = free, len(running), 1
    for k, (n, end_s) in enumerate(sorted(running, key=lambda job: job[1])):
        state.expected[1 + k].processors, state.expected[1 + k].end_s = n, 1000.0 + end_s
    with_it = [*running, (processors, run_s)]
    widths = range(1, PROCESSORS + 1)
    harm = [wait_s(w, free - processors, with_it) ** 2 - wait_s(w, free, running) ** 2 for w in widths]
    counts = memory[arrivals.WIDTHS + 1 :]
    expected = float(np.dot(counts, harm) / memory[arrivals.SHORTS])
    found = arrivals.made_to_wait_s2(state, memory, processors, run_s)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_the_time_of_day_changes_the_expected_rate() -> None:
    """Jobs come from ten to twelve every day. Before ten more are to be expected than of late, after twelve fewer."""
    busy = [day * 24 * HOUR_S + 10 * HOUR_S + 240.0 * k for day in range(5) for k in range(30)]
    state = state_of([8 * HOUR_S, *busy])
    factor = {}
    for hour in (5.0, 9.9, 10.5, 12.5):
        now_s = 3 * 24 * HOUR_S + hour * HOUR_S
        memory = remembered(state, now_s)
        rate = arrivals.rate_ahead_per_s(state, memory, 2 * HOUR_S, 1.5 * HOUR_S)
        factor[hour] = rate * 2 * HOUR_S / memory[arrivals.RATE]
    assert factor[9.9] == pytest.approx(arrivals.LARGEST_CHANGE)
    assert factor[10.5] > 1.0 > factor[12.5]
    assert factor[5.0] == pytest.approx(1.0, abs=0.25)  # nobody has ever come before eight


def test_usual_arrivals_of_an_hour_are_counted_by_days_seen() -> None:
    """By hand: two jobs between ten and eleven on both days; a day without times of day counts once more."""
    state = state_of([8 * HOUR_S, *[24 * HOUR_S * day + 10 * HOUR_S + 600.0 * k for day in (0, 1) for k in range(2)]])
    memory = remembered(state, 56 * HOUR_S)
    always = (5 + 1.0) / (56 - 8 + 1.0)
    other = always / (2 + 1)
    assert memory[arrivals.HOURS : arrivals.HOURS + 24].tolist() == [0.0] * 8 + [1.0, 0.0, 4.0] + [0.0] * 13
    rate = arrivals.rate_ahead_per_s(state, memory, 2 * HOUR_S, 2 * HOUR_S)
    hour_8, hour_10 = (1 + always) / (2 + 1), (4 + always) / (2 + 1)
    change = (hour_8 + other + hour_10) / (hour_8 + other + other)  # eight to ten against six to eight
    assert change < arrivals.LARGEST_CHANGE
    assert rate == pytest.approx(memory[arrivals.RATE] / (2 * HOUR_S) * change)
