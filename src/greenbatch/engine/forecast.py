"""Renewable power available to a job: the forecast, the surplus over running jobs, and the remaining brown energy.

Source: GAS-MARL §4.3 (the brown energy of a candidate of Green-Backfilling is estimated from the projected power of
the running jobs and the renewable forecast).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.compile import compiled, compiled_small
from greenbatch.engine.state import SUPPLY_EXHAUSTED


@compiled_small
def slot_at(s: Any, time_s: float) -> int:
    """Number of the supply slot that covers a time (not wrapped)."""
    return int(np.floor((time_s - s.set.supply_origin_s) / s.set.supply_step_s))


@compiled_small
def forecast_w(s: Any, slot: int, current: int) -> float:
    """Forecast power of a slot, as seen from the current slot. [W]

    True values for ``forecast_slots`` slots from the current one on; later slots repeat that window.
    """
    p = s.set
    window = p.forecast_slots
    if not p.supply_repeat:
        if current < 0 or current >= p.supply_slots:
            s.clock.status = SUPPLY_EXHAUSTED
            return 0.0
        window = min(window, p.supply_slots - current)
    ahead = slot - current
    if ahead >= window:
        ahead %= window
    shown = current + ahead
    if shown < 0 or shown >= p.supply_slots:  # a division is slow and rarely required
        shown %= p.supply_slots
    return float(s.supply_w[shown])


@compiled
def project_surplus(s: Any, from_s: float, until_s: float) -> None:
    """Fill ``segments`` with the forecast surplus over idle power and running jobs, from one time to another.

    Running jobs are expected to end at their requested ends; queued jobs are not counted. Adjacent segments without
    surplus are merged.
    """
    c = s.clock
    current = slot_at(s, c.now_s)
    load_w, k, stop = c.load_w, c.expected_first, c.expected_first + c.running
    time_s, count = from_s, 0
    while time_s < until_s:
        while k < stop and s.expected[k].end_s <= time_s:
            load_w -= s.expected[k].power_w
            k += 1
        slot = slot_at(s, time_s)
        end_s = s.set.supply_origin_s + (slot + 1.0) * s.set.supply_step_s
        if end_s <= time_s:  # a fractional step, rounded down
            slot += 1
            end_s = s.set.supply_origin_s + (slot + 1.0) * s.set.supply_step_s  # the very edge of that slot: no slivers
        if k < stop and s.expected[k].end_s < end_s:
            end_s = s.expected[k].end_s
        end_s = min(end_s, until_s)
        surplus_w = max(0.0, forecast_w(s, slot, current) - load_w)
        if count > 0 and surplus_w == 0.0 and s.segments[count - 1].surplus_w == 0.0:
            s.segments[count - 1].length_s += end_s - time_s
        else:
            segment = s.segments[count]
            segment.start_s, segment.length_s, segment.surplus_w = time_s, end_s - time_s, surplus_w
            count += 1
        time_s = end_s
    c.segments = count


ROUNDING_J = 1e-6
"""Brown energies closer than this to the threshold count as equal to it, whatever the order of summation. [J]"""


@compiled
def is_below_threshold(s: Any, power_w: float, duration_s: float) -> bool:
    """Whether a job that starts now would cost strictly less extra brown energy than the threshold.

    Args:
        s: the state; ``segments`` must cover at least ``duration_s`` from now.
        power_w: power of the job. [W]
        duration_s: its requested time. [s]
    """
    total_j, left_s, stop_j = 0.0, duration_s, s.set.threshold_j - ROUNDING_J
    for i in range(s.clock.segments):
        segment = s.segments[i]
        seconds = min(segment.length_s, left_s)
        if power_w > segment.surplus_w:
            total_j += (power_w - segment.surplus_w) * seconds
            if total_j >= stop_j:
                return False
        left_s -= seconds
        if left_s <= 0.0:
            break
    return bool(total_j < stop_j)
