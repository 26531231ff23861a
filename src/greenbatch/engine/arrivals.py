"""What a planner remembers of arrivals (how often and when jobs come, how wide short ones are), and what it expects."""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.compile import compiled

SHORT_ARRIVAL_S = 300.0
"""Arrivals that request less count as short. [s]"""
PRIOR, PRIOR_SHORT, PRIOR_WIDTH = 8.0, 4.0, 0.12
"""Before anything has been seen: so many arrivals, so many of them short, their processors distributed exponentially
about this share of the machine. A few real arrivals outweigh it."""
DAY_H = 24
LONGEST_AHEAD_S, LARGEST_CHANGE = 6 * 3600.0, 4.0
"""How far the time of day is looked ahead at [s], and the largest factor by which it changes the rate."""
USUAL_DAYS = 1.0
"""So many days of arrivals without a time of day count beside those that were seen."""
(RATE, RATE_AT, SEEN, ALL, SHORTS, WORK, LATEST, ROW, HOURS) = range(9)
WIDTHS = HOURS + DAY_H
"""What is remembered: arrivals within the memory, fading, and as of when; arrivals counted, all in all, short ones;
their work [processor-seconds], and when the job that can end last can end [s]; how far a table of the past was read
(`engine.unheld`); from ``HOURS`` on, arrivals by hour of the day; from ``WIDTHS`` on, how many short ones needed 0, 1,
2, ... processors."""


@compiled
def begin_memory(s: Any, memory: Any) -> None:
    """Forget everything but the prior; ``memory`` has shape (WIDTHS + processors + 1,)."""
    memory[:] = 0.0
    memory[RATE_AT] = s.clock.now_s
    memory[LATEST] = -np.inf
    memory[ALL], memory[SHORTS] = PRIOR, PRIOR_SHORT
    width = PRIOR_WIDTH * s.set.processors
    for x in range(1, s.set.processors + 1):
        memory[WIDTHS + x] = PRIOR_SHORT * (np.exp(-(x - 1) / width) - np.exp(-x / width))


@compiled
def remember(s: Any, memory: Any, tau_s: float) -> None:
    """Count the arrivals since the last call; the rate fades with the time constant ``tau_s``. [s]"""
    c = s.clock
    for k in range(int(memory[SEEN]), c.arrived):
        job = s.jobs[s.arrivals[k]]
        memory[RATE] = memory[RATE] * np.exp(-(job.submit_s - memory[RATE_AT]) / tau_s) + 1.0
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
def _usual(s: Any, memory: Any, first: int, last: int) -> float:
    """Arrivals an hour that are usual for the hours from ``first`` to ``last`` of the clock, by their time of day."""
    begin, now_h = int(s.jobs[s.arrivals[0]].submit_s // 3600.0), s.clock.now_s / 3600.0
    always = (memory[ALL] - PRIOR + 1.0) / (now_h - begin + 1.0)
    total = 0.0
    for hour in range(first, last + 1):
        days = (int(now_h) - begin - (hour - begin) % DAY_H + DAY_H - 1) // DAY_H  # seen whole
        seen = float(days) + (now_h - int(now_h) if (hour - int(now_h)) % DAY_H == 0 else 0.0)
        total += (memory[HOURS + hour % DAY_H] + USUAL_DAYS * always) / (seen + USUAL_DAYS)
    return float(total / (last - first + 1))


@compiled
def rate_ahead_per_s(s: Any, memory: Any, tau_s: float, ahead_s: float) -> float:
    """Arrivals to be expected: as of late, but more where the time of day that comes is busier, or fewer. [1/s]"""
    hour = int(s.clock.now_s // 3600.0)
    coming = _usual(s, memory, hour, hour + int(min(ahead_s, LONGEST_AHEAD_S) / 3600.0))
    passed = _usual(s, memory, hour - int(tau_s / 3600.0), hour)
    return float(memory[RATE] / tau_s * min(max(coming / passed, 1.0 / LARGEST_CHANGE), LARGEST_CHANGE))


@compiled
def made_to_wait_s2(s: Any, memory: Any, processors: int, run_s: float) -> float:
    """By how much a start now would raise the squared wait of a short job that came now and starts as soon as it fits.

    On the mean over how many processors short jobs need; running jobs end as expected, and nothing else starts. Half of
    it, times a rate of arrivals, is the wait of all that come until then. [s^2]

    Args:
        s: the state.
        memory: what is remembered.
        processors: free ones that the start would take.
        run_s: for how long.
    """
    c = s.clock
    stop = c.expected_first + c.running
    i, free, wait_s = c.expected_first, c.free, 0.0  # without the start: enough for the width is free, and when
    j, left, later_s = c.expected_first, c.free - processors, 0.0  # with it, as long as it runs
    total = 0.0
    for width in range(max(left, 0) + 1, s.set.processors + 1):
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
