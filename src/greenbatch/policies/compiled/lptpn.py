"""LPTPN, which considers every waiting job and makes no reservations: as described, and as implemented by its authors.

Source: GAS-MARL §5.3 (3), after Kassab et al.: jobs in descending power x requested time; a job starts if it fits and
its estimated brown energy is below the threshold; if none can start and nothing runs, the first one starts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.compile import compiled
from greenbatch.engine.events import drain, next_event
from greenbatch.engine.forecast import is_below_threshold, project_surplus
from greenbatch.engine.program import Pass
from greenbatch.engine.queue import position_of, rank_queue, start
from greenbatch.engine.state import OK
from greenbatch.engine.step import advance


@compiled
def is_green(s: Any, job: int) -> bool:
    """Whether a job fits now and its estimated extra brown energy is below the threshold."""
    c, j = s.clock, s.jobs[job]
    if j.processors > c.free:
        return False
    project_surplus(s, c.now_s, c.now_s + j.requested_s)
    return bool(is_below_threshold(s, j.power_w, j.requested_s))


def run_lptpn(s: Any) -> None:
    """LPTPN as described in the paper: one pass over all jobs at every event and change of supply."""
    c = s.clock
    while advance(s):
        count, started = rank_queue(s), 0
        for k in range(count):
            if is_green(s, s.ranked[k].job):
                start(s, position_of(s, s.ranked[k].job))
                started += 1
        if started == 0 and c.running == 0:
            start(s, position_of(s, s.ranked[0].job))
            started = 1
        c.decisions += started
        c.blocked = 1


def run_lptpn_published(s: Any) -> None:
    """LPTPN as implemented in the authors' simulator.

    It differs from the paper in two ways. A pass skips the job after each one it starts, because the list changes
    during the iteration. And when a pass starts nothing, the simulator waits in steps of one second for *one* job, the
    last one considered (after an empty pass, one that already runs), instead of considering all jobs at the next event.
    """
    c = s.clock
    last = s.arrivals[0]
    next_event(s, np.inf)
    while c.status == OK:
        count, started = rank_queue(s), 0
        k = 0
        while k < count:
            last = s.ranked[k].job
            if is_green(s, last):
                start(s, position_of(s, last))
                started += 1
                k += 1  # the iteration skips the next one
            k += 1
        c.decisions += started
        if c.first == c.last:
            if c.arrived == s.arrivals.shape[0]:
                break
            while c.first == c.last:
                next_event(s, np.inf)
        if started > 0:
            continue
        if c.running == 0:
            rank_queue(s)
            start(s, position_of(s, s.ranked[0].job))
            c.decisions += 1
            continue
        while c.running > 0 and not is_green(s, last) and c.status == OK:
            wake_s = c.now_s + 1.0 if s.jobs[last].processors <= c.free else np.inf
            next_event(s, wake_s)
    drain(s)


LPTPN = Pass(name="lptpn", run=run_lptpn, wakes_at_supply_changes=True)
LPTPN_PUBLISHED = Pass(name="lptpn-published", run=run_lptpn_published)
