"""Observations as arrays of fixed shapes, for replay buffers and files.

The resource image stays packed: an environment writes it as bits, and the network that reads it unpacks them.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.observe.image import CHANNELS, bytes_of
from greenbatch.presets.shapes import Shapes

Ints = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]


class Field(NamedTuple):
    """One array of an observation."""

    shape: tuple[int, ...]
    """Of one decision, without the axis of decisions."""
    dtype: type[np.generic]

    @property
    def stored(self) -> tuple[tuple[int, ...], type[np.generic]]:
        """Shape and type in the buffer: flags become bits."""
        if self.dtype is np.bool_:
            return (-(-prod(self.shape) // 8),), np.uint8
        return self.shape, self.dtype

    @property
    def bytes(self) -> int:
        """Memory of one decision. [byte]"""
        shape, dtype = self.stored
        return prod(shape) * np.dtype(dtype).itemsize


class Tables:
    """The tables of a preset's observation."""

    def __init__(self, shapes: Shapes, jobs: int) -> None:
        """Prepare the arrays.

        Args:
            shapes: the preset's tables.
            jobs: jobs per window, which bound the rows of both tables of jobs.
        """
        each = (shapes.queue_rows - shapes.extras) // max(shapes.each, 1)
        queue = min(each, jobs) * max(shapes.each, 1) + shapes.extras
        running = min(shapes.running_rows, jobs)
        ticks, units = shapes.image
        self.fields: dict[str, Field] = {
            "queue": Field((queue, len(shapes.queue)), np.float32), "queued": Field((), np.int32),
            "selectable": Field((queue,), np.bool_),
            "running": Field((running, len(shapes.running)), np.float32), "busy": Field((), np.int32),
            "supply": Field((shapes.forecast, len(shapes.supply)), np.float32), "slot": Field((), np.int64),
            "state": Field((len(shapes.state),), np.float32),
            "image": Field((len(CHANNELS), ticks, bytes_of(units)), np.uint8),
        }  # fmt: skip

    def arrays(self, seen: Any) -> Arrays:
        """Arrays of the A decisions of an observation, shape (A, ...), padded with zeros.

        Args:
            seen: an `envs.batch.Observation`, or an object with its fields.
        """
        count = len(seen.environment)
        queued, busy = np.diff(seen.queue_offsets), np.diff(seen.running_offsets)
        found: Arrays = {
            name: np.zeros((count, *field.shape), field.dtype) for name, field in self.fields.items() if field.shape
        }
        for name, each in (("queued", queued), ("busy", busy), ("slot", seen.slot)):
            found[name] = np.array(each, self.fields[name].dtype)
        inside = valid_rows(queued, found["queue"].shape[1])
        found["queue"][inside], found["selectable"][inside] = seen.queue, seen.selectable
        if found["running"].size:
            found["running"][valid_rows(busy, found["running"].shape[1])] = seen.running
        found["supply"][:], found["state"][:], found["image"][:] = seen.supply, seen.state, seen.image
        return found


def valid_rows(counts: Ints, rows: int) -> NDArray[np.bool_]:
    """Which rows of padded tables are valid, shape (M, rows)."""
    return np.asarray(np.arange(rows) < counts[:, None])
