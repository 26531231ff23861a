"""An epoch's decisions in loads: single decisions, or for networks with a memory whole trajectories."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from greenbatch.learning.networks import segments


class Load(NamedTuple):
    """Some of an epoch's decisions."""

    decisions: Tensor
    """int64 (M,)."""
    sequences: Tensor | None
    """int64 (S + 1,): where whole trajectories begin among them; None for single decisions."""


def loads(
    queued: Tensor, size: int, offsets: Tensor | None = None, generator: torch.Generator | None = None
) -> list[Load]:  # fmt: skip
    """All decisions in loads, each sorted by descending length of queues or trajectories.

    The order within a load does not affect means, but neighbors of similar length need less padding.

    Args:
        queued: number of queue rows of every decision, int64 (N,), on the CPU.
        size: decisions of a load, >= 0; 0: all. A trajectory belongs to the load in which it begins, whole.
        offsets: where the trajectories begin, int64 (W + 1,); None for single decisions.
        generator: shuffles decisions or trajectories; without one, longer ones come first.
    """
    lengths = torch.ones_like(queued) if offsets is None else offsets.diff()
    key = queued if offsets is None else lengths
    if generator is None:
        order = torch.argsort(key, descending=True, stable=True)
    else:
        order = torch.randperm(key.shape[0], generator=generator)
    order = order[lengths[order] > 0]
    begins = torch.cumsum(lengths[order], 0) - lengths[order]
    counts = torch.unique_consecutive(begins // (size or queued.shape[0]), return_counts=True)[1]
    found = []
    for part in torch.split(order, counts.tolist()):
        ranked = part[torch.argsort(key[part], descending=True, stable=True)]
        found.append(Load(ranked, None) if offsets is None else Load(*segments.rows_of(offsets, ranked)))
    return found
