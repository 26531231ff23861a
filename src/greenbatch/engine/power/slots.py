"""The only arithmetic of supply slots, and of any other grid of equal intervals.

Intervals are half-open, ``[origin_s + k * step_s, origin_s + (k + 1) * step_s)``. With a step that is no whole number,
the quotient can be rounded below the interval that begins exactly at a time; `covering` and `next_edge_s` correct that.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.compile import compiled_small
from greenbatch.engine.records import Slots


@compiled_small
def slot_at(slots: Slots, time_s: float) -> int:
    """Number of the slot that covers a time, not wrapped."""
    return int(np.floor((time_s - slots.origin_s) / slots.step_s))


@compiled_small
def slot_start_s(slots: Slots, slot: float) -> float:
    """Start of a slot. [s]"""
    return slots.origin_s + slot * slots.step_s


@compiled_small
def covering(slots: Slots, time_s: float) -> tuple[int, float]:
    """The slot that covers a time, and its end, which is after the time. [s]"""
    slot = int(np.floor((time_s - slots.origin_s) / slots.step_s))
    end_s = slots.origin_s + (slot + 1.0) * slots.step_s
    if end_s <= time_s:
        slot += 1
        end_s = slots.origin_s + (slot + 1.0) * slots.step_s
    return slot, end_s


@compiled_small
def next_edge_s(time_s: float, origin_s: float, step_s: float) -> float:
    """The first edge of a grid after a time. [s]"""
    interval = np.floor((time_s - origin_s) / step_s)
    edge_s = origin_s + (interval + 1.0) * step_s
    return float(edge_s) if edge_s > time_s else float(origin_s + (interval + 2.0) * step_s)
