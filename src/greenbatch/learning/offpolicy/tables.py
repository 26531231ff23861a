"""Observations of a replay buffer, which are arrays of fixed shapes, as batches for networks."""

from __future__ import annotations

import numpy as np
import torch

from greenbatch.datasets.tables import Arrays, Ints, valid_rows
from greenbatch.learning.networks.observations import Batch, Copy, as_batch


def batch_of(found: Arrays, device: torch.device | str = "cpu") -> Batch:
    """The batch of a network of M decisions taken from the buffer."""
    queued, busy = found["queued"].astype(np.int64), found["busy"].astype(np.int64)
    inside, beside = valid_rows(queued, found["queue"].shape[1]), valid_rows(busy, found["running"].shape[1])
    count = len(queued)
    return as_batch(Copy(
        environment=np.arange(count), queue=found["queue"][inside], queue_offsets=_offsets(queued),
        selectable=found["selectable"][inside], running=found["running"][beside], running_offsets=_offsets(busy),
        supply=found["supply"], slot=found["slot"], state=found["state"],
        delays=np.ones((count, 1), np.bool_), image=found["image"],
    ), device)  # fmt: skip


def _offsets(counts: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(counts)))
