"""What a planner remembers of arrivals: how often jobs come, their work, and how many processors short ones need."""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.compile import compiled

SHORT_ARRIVAL_S = 300.0
"""Arrivals that request less count as short. [s]"""
PRIOR, PRIOR_SHORT, PRIOR_WIDTH = 8.0, 4.0, 0.12
"""Before anything has been seen: so many arrivals, so many of them short, their processors distributed exponentially
about this share of the machine. A few real arrivals outweigh it."""
(RATE, RATE_AT, SEEN, ALL, SHORTS, WORK, LATEST, ROW, WIDTHS) = range(9)
"""What is remembered: arrivals within the memory, fading, and as of when; arrivals counted, all in all, short ones;
their work [processor-seconds], and when the job that can end last can end [s]; how far a table of the past was read
(`engine.unheld`); from ``WIDTHS`` on, how many short ones needed 0, 1, 2, ... processors."""


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
        memory[WORK] += job.requested_s * job.processors
        memory[LATEST] = max(memory[LATEST], job.submit_s + job.requested_s)
        if job.requested_s < SHORT_ARRIVAL_S:
            memory[SHORTS] += 1.0
            memory[WIDTHS + job.processors] += 1.0
    memory[SEEN] = c.arrived
    memory[RATE] *= np.exp(-(c.now_s - memory[RATE_AT]) / tau_s)
    memory[RATE_AT] = c.now_s


@compiled
def wider(s: Any, memory: Any, low: int, high: int) -> float:
    """Share of short jobs that need more than ``low`` processors and at most ``high``."""
    count = 0.0
    for x in range(max(low, 0) + 1, min(high, s.set.processors) + 1):
        count += memory[WIDTHS + x]
    return float(count / memory[SHORTS])
