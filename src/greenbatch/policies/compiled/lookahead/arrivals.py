"""Statistics of arrivals for the look-ahead planner: their rate, time of day and widths, and the expected rate."""

from __future__ import annotations

import numpy as np

from greenbatch.engine.records import Floats
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled

SHORT_ARRIVAL_S = 300.0
"""Jobs that request less time than this count as short. [s]"""
PRIOR, PRIOR_SHORT, PRIOR_WIDTH = 8.0, 4.0, 0.12
"""Prior: number of arrivals, number of short jobs among them, and mean of the exponential distribution of their
processors as a share of the machine. A few real arrivals outweigh it."""
DAY_H = 24
LONGEST_AHEAD_S, LARGEST_CHANGE = 6 * 3600.0, 4.0
"""How far ahead the time of day is taken into account [s], and the largest factor by which it changes the rate."""
USUAL_DAYS = 1.0
"""Weight, in days, of the mean rate of all hours against the rates observed by time of day."""
(RATE, RATE_AT, SEEN, ALL, SHORTS, WORK, LATEST, ROW, FIRST_S, HOURS) = range(10)
WIDTHS = HOURS + DAY_H
"""Layout of the memory: recent arrivals, with exponential decay, and the time of that value; arrivals read, all
arrivals, short ones; their work [processor-seconds], and the latest of their earliest possible ends [s]; the current
row of the baseline schedule (`lookahead.baseline`); the first submission [s]; from ``HOURS`` on, arrivals by hour of
the day; from ``WIDTHS`` on, short jobs by number of processors: 0, 1, 2, ..."""


@compiled
def begin_memory(s: State, memory: Floats) -> None:
    """Reset to the prior; ``memory`` has shape (WIDTHS + processors + 1,)."""
    memory[:] = 0.0
    memory[RATE_AT] = s.clock.now_s
    memory[LATEST] = -np.inf
    memory[FIRST_S] = s.jobs[s.queue.job[s.clock.first]].submit_s
    memory[ALL], memory[SHORTS] = PRIOR, PRIOR_SHORT
    width = PRIOR_WIDTH * s.machine.totals.processors
    for x in range(1, s.machine.totals.processors + 1):
        memory[WIDTHS + x] = PRIOR_SHORT * (np.exp(-(x - 1) / width) - np.exp(-x / width))


@compiled
def remember(s: State, memory: Floats, tau_s: float) -> None:
    """Count the arrivals since the last call; the rate decays with the time constant ``tau_s``. [s]

    All of them still wait, at the end of the queue.
    """
    c = s.clock
    for i in range(c.last - (c.arrived - int(memory[SEEN])), c.last):
        job = s.jobs[s.queue.job[i]]
        memory[RATE] = memory[RATE] * np.exp(-max(0.0, job.submit_s - memory[RATE_AT]) / tau_s) + 1.0
        memory[RATE_AT] = job.submit_s
        memory[ALL] += 1.0
        memory[HOURS + int(job.submit_s // 3600.0) % DAY_H] += 1.0
        memory[WORK] += job.requested_s * job.processors
        memory[LATEST] = max(memory[LATEST], job.submit_s + job.requested_s)
        if job.requested_s < SHORT_ARRIVAL_S:
            memory[SHORTS] += 1.0
            memory[WIDTHS + job.processors] += 1.0
    memory[SEEN] = c.arrived
    memory[RATE] *= np.exp(-(c.now_s - memory[RATE_AT]) / tau_s)
    memory[RATE_AT] = c.now_s


@compiled
def _usual(s: State, memory: Floats, first: int, last: int) -> float:
    """Usual number of arrivals per hour, for the hours ``first`` to ``last`` of the clock by their time of day."""
    begin, now_h = int(memory[FIRST_S] // 3600.0), s.clock.now_s / 3600.0
    always = (memory[ALL] - PRIOR + 1.0) / (now_h - begin + 1.0)
    total = 0.0
    for hour in range(first, last + 1):
        days = (int(now_h) - begin - (hour - begin) % DAY_H + DAY_H - 1) // DAY_H  # complete days observed
        seen = float(days) + (now_h - int(now_h) if (hour - int(now_h)) % DAY_H == 0 else 0.0)
        total += (memory[HOURS + hour % DAY_H] + USUAL_DAYS * always) / (seen + USUAL_DAYS)
    return float(total / (last - first + 1))


@compiled
def rate_ahead_per_s(s: State, memory: Floats, tau_s: float, ahead_s: float) -> float:
    """Expected rate of arrivals: the recent rate, scaled by how busy the coming hours of the day usually are. [1/s]"""
    hour = int(s.clock.now_s // 3600.0)
    coming = _usual(s, memory, hour, hour + int(min(ahead_s, LONGEST_AHEAD_S) / 3600.0))
    passed = _usual(s, memory, hour - int(tau_s / 3600.0), hour)
    return float(memory[RATE] / tau_s * min(max(coming / passed, 1.0 / LARGEST_CHANGE), LARGEST_CHANGE))


@compiled
def made_to_wait_s2(s: State, memory: Floats, processors: int, run_s: float) -> float:
    """Increase in the squared wait of a short job arriving now, if a start takes processors. [s^2]

    The mean over the number of processors that short jobs need. The short job starts as soon as it fits, running jobs
    end as expected, and nothing else starts. Half of it, times a rate of arrivals, is the total wait of short jobs that
    arrive until then.

    Args:
        s: the state.
        memory: statistics of arrivals.
        processors: free processors that the start would take.
        run_s: how long it would take them. [s]
    """
    c = s.clock
    stop = c.expected_first + c.running
    i, free, wait_s = c.expected_first, s.machine.totals.free, 0.0  # without the start: free processors, and the wait
    j, left, later_s = c.expected_first, s.machine.totals.free - processors, 0.0  # with the start, while it runs
    total = 0.0
    for width in range(max(left, 0) + 1, s.machine.totals.processors + 1):
        while free < width and i < stop:
            free += s.expected[i].processors
            wait_s = max(s.expected[i].end_s - c.now_s, 0.0)
            i += 1
        if wait_s >= run_s:
            break
        while left < width and j < stop:
            left += s.expected[j].processors
            later_s = max(s.expected[j].end_s - c.now_s, 0.0)
            j += 1
        with_it_s = run_s if left < width else min(later_s, run_s)
        total += memory[WIDTHS + width] * (max(with_it_s, wait_s) ** 2 - wait_s**2)
    return float(total / memory[SHORTS])
