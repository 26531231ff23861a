"""The power cap: no job starts that would lift the power of the cluster above it.

The cap is kept by the most that a start may add to the load (`machine.at_most`). Reservations take it into account by
requested ends and the power of the running jobs; the static power of nodes is counted as if they stayed in use, and
that of a node that the blocked job and a candidate share, for both.
"""

from __future__ import annotations

from greenbatch.engine.machine.at_most import adds_at_most_w, most_w
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, whole

ROUNDING = 1e-9
"""Part of the cap that rounding may add."""


@compiled
def is_within_cap(s: State, job: int, outlives: bool) -> bool:
    """Whether a job that fits can start without exceeding the cap, now and when the reservation begins."""
    if s.rules.power_cap_w == 0.0:
        return True
    of, slack_w = s.jobs[job], ROUNDING * s.rules.power_cap_w
    added_w = adds_at_most_w(s.machine, job, whole(of.processors), of.power_w, outlives)
    if outlives and added_w > s.clock.spare_w + slack_w:
        return False
    return bool(most_w(s.machine, s.expected, s.clock) + added_w <= s.rules.power_cap_w + slack_w)


@compiled
def take_from_spare(s: State, job: int) -> None:
    """Take the power of a job that outlives the reservation from what the head leaves; it is about to start."""
    of = s.jobs[job]
    s.clock.spare_w -= adds_at_most_w(s.machine, job, whole(of.processors), of.power_w, True)


@compiled
def reserve_power(s: State, job: int) -> None:
    """Move the reservation of a job to when enough running jobs have ended, and compute the power that it leaves."""
    c, of, load_w = s.clock, s.jobs[job], most_w(s.machine, s.expected, s.clock)
    if s.rules.power_cap_w == 0.0:
        return
    added_w = adds_at_most_w(s.machine, job, whole(of.processors), of.power_w, False)
    i, stop = c.expected_first, c.expected_first + c.running
    while i < stop and (s.expected[i].end_s <= c.shadow_s or load_w + added_w > s.rules.power_cap_w):
        c.shadow_s = max(c.shadow_s, s.expected[i].end_s)
        load_w -= s.expected[i].power_w
        i += 1
    c.spare_w = s.rules.power_cap_w - load_w - added_w
