"""The resource image: which processors and GPUs are occupied, and which have no power, in the ticks ahead.

Row t of a channel is a tick: now, then the beginnings of the ticks that follow. Its columns are all processors, then
all GPUs. Occupied units are the first of their type, those without power the last; where more is in use than powered,
both are set. A unit is a bit, most significant first as in `numpy.packbits`, and every row begins with a new byte.

Source: RARE (dissertation), §3.2.1 and figure 3.3, whose image also has a color for every job.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.capacity.levels import ahead_now, ahead_to, look_ahead_s, powered_ahead
from greenbatch.engine.power.slots import next_edge_s
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, compiled_small

CHANNELS = ("occupied", "no power")
Bytes = NDArray[np.uint8]


def bytes_of(units: int) -> int:
    """Bytes of a row for a number of processors and GPUs."""
    return -(-units // 8)


def unpacked(image: Bytes, units: int) -> NDArray[np.uint8]:
    """Images with one number per unit, 0 or 1.

    Args:
        image: packed images, shape (..., channels, ticks, bytes).
        units: processors and GPUs of the machine.

    Returns:
        uint8, shape (..., channels, ticks, units).
    """
    return np.unpackbits(image, axis=-1, count=units)


@compiled_small
def _set_bits(image: Bytes, channel: int, tick: int, begin: int, end: int) -> None:
    """Set the bits of some units of a row; the others stay as they are."""
    if begin >= end:
        return
    first, last = begin >> 3, (end - 1) >> 3
    head, tail = 255 >> (begin & 7), 255 & (255 << (7 - ((end - 1) & 7)))
    if first == last:
        image[channel, tick, first] |= np.uint8(head & tail)
        return
    image[channel, tick, first] |= np.uint8(head)
    for k in range(first + 1, last):
        image[channel, tick, k] = np.uint8(255)
    image[channel, tick, last] |= np.uint8(tail)


@compiled
def draw(s: State, ticks: int, gpus: int, image: Bytes) -> None:
    """Draw the ticks ahead of a simulation.

    Args:
        s: the state.
        ticks: number of rows.
        gpus: all GPUs of the machine.
        image: output; uint8, shape (channels, ticks, bytes).
    """
    c, ahead, processors = s.clock, ahead_now(s.capacity, s), s.machine.totals.processors
    tick_s, _ = look_ahead_s(s.capacity)
    edge_s = next_edge_s(c.now_s, 0.0, tick_s)
    image[:] = np.uint8(0)
    for t in range(ticks):
        if t > 0:
            ahead = ahead_to(s.capacity, s, ahead, edge_s + (t - 1) * tick_s)
        powered, powered_gpus = powered_ahead(s.capacity, s.machine.totals, ahead)
        _set_bits(image, 0, t, 0, min(ahead[2], processors))
        _set_bits(image, 0, t, processors, processors + min(ahead[3], gpus))
        _set_bits(image, 1, t, powered, processors)
        _set_bits(image, 1, t, processors + powered_gpus, processors + gpus)
