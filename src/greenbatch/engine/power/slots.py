"""Supply slots in compiled code; the arithmetic is that of `energy.slots`."""

from __future__ import annotations

from greenbatch.energy import slots as plain
from greenbatch.engine.records import Slots
from greenbatch.machine_code.compile import compiled_small

edge_s = compiled_small(plain.edge_s)
interval_at = compiled_small(plain.interval_at)


@compiled_small
def slot_at(slots: Slots, time_s: float) -> int:
    """Number of the slot that covers a time, not wrapped."""
    return int(interval_at(time_s, slots.origin_s, slots.step_s))


@compiled_small
def slot_start_s(slots: Slots, slot: float) -> float:
    """Start of a slot. [s]"""
    return edge_s(slot, slots.origin_s, slots.step_s)


@compiled_small
def covering(slots: Slots, time_s: float) -> tuple[int, float]:
    """The slot that covers a time, and its end, which is after the time. [s]"""
    slot = interval_at(time_s, slots.origin_s, slots.step_s)
    return int(slot), edge_s(slot + 1.0, slots.origin_s, slots.step_s)


@compiled_small
def next_edge_s(time_s: float, origin_s: float, step_s: float) -> float:
    """The first edge of a grid after a time. [s]"""
    return edge_s(interval_at(time_s, origin_s, step_s) + 1.0, origin_s, step_s)


@compiled_small
def is_inside(slots: Slots, slot: int) -> bool:
    """Whether the series covers a slot: always, if it repeats."""
    return slots.repeats != 0 or 0 <= slot < slots.count


@compiled_small
def slots_ahead(slots: Slots, slot: int, current: int) -> int:
    """How many slots after the current one, which is inside the series, the forecast shows a slot.

    Later slots repeat the window of the forecast.
    """
    window = slots.forecast if slots.repeats else min(slots.forecast, slots.count - current)
    ahead = slot - current
    return ahead % window if ahead >= window else max(ahead, 0)


@compiled_small
def shown_slot(slots: Slots, slot: int, current: int) -> int:
    """The slot of the series that the forecast shows for a slot, seen from the current one; see `slots_ahead`."""
    shown = current + slots_ahead(slots, slot, current)
    if shown < 0 or shown >= slots.count:  # a division is slow and rarely required
        shown %= slots.count
    return shown
