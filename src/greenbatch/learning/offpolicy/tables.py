"""Packed observations as arrays of fixed shapes, for the buffer, and back as batches for networks.

The resource image stays packed: an environment writes it as bits, and the network that reads it unpacks them.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from greenbatch.engine.image import CHANNELS, bytes_of
from greenbatch.learning.networks.observations import Batch, Copy, Observed, as_batch
from greenbatch.learning.offpolicy.buffer import Arrays, Field
from greenbatch.presets.shapes import Shapes


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

    def arrays(self, seen: Observed) -> Arrays:
        """Arrays of an observation's A decisions, shape (A, ...), padded with zeros."""
        count = len(seen.environment)
        queued, busy = np.diff(seen.queue_offsets), np.diff(seen.running_offsets)
        found: Arrays = {
            name: np.zeros((count, *field.shape), field.dtype) for name, field in self.fields.items() if field.shape
        }
        found["queued"], found["busy"], found["slot"] = queued, busy, np.array(seen.slot)
        inside = _valid(queued, found["queue"].shape[1])
        found["queue"][inside], found["selectable"][inside] = seen.queue, seen.selectable
        if found["running"].size:
            found["running"][_valid(busy, found["running"].shape[1])] = seen.running
        found["supply"][:], found["state"][:], found["image"][:] = seen.supply, seen.state, seen.image
        return found

    def batch(self, found: Arrays, device: torch.device | str = "cpu") -> Batch:
        """The batch of a network of M decisions taken from the buffer."""
        queued, busy = found["queued"].astype(np.int64), found["busy"].astype(np.int64)
        inside, beside = _valid(queued, found["queue"].shape[1]), _valid(busy, found["running"].shape[1])
        count = len(queued)
        return as_batch(Copy(
            environment=np.arange(count), queue=found["queue"][inside], queue_offsets=_offsets(queued),
            selectable=found["selectable"][inside], running=found["running"][beside], running_offsets=_offsets(busy),
            supply=found["supply"], slot=found["slot"], state=found["state"],
            delays=np.ones((count, 1), np.bool_), image=found["image"],
        ), device)  # fmt: skip


def _valid(counts: NDArray[np.int64], rows: int) -> NDArray[np.bool_]:
    """Which rows of padded tables are valid, (M, rows)."""
    return np.asarray(np.arange(rows) < counts[:, None])


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts)))
