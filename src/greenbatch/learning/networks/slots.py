"""What networks with fixed slots see: the jobs of a queue side by side, and the image of resources.

Jobs fill the slots from the first one on; actions after the jobs, such as waiting, have the last slots. Such a network
fits one number of visible jobs only.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from greenbatch.engine.image import CHANNELS
from greenbatch.errors import InputError
from greenbatch.learning.networks.observations import Batch
from greenbatch.presets.shapes import Shapes

Sees = Literal["both", "image", "jobs"]
"""The resource ``image``, vectors of ``jobs`` and of the system, or ``both``."""


class Seen(NamedTuple):
    """Sizes of what a network sees."""

    image: tuple[int, int, int] | None
    """Channels, ticks and units of the image; None without one."""
    jobs: int
    """Numbers of the vectors of all jobs and of the system together; 0 without them."""


def seen_by(shapes: Shapes, sees: str) -> Seen:
    """What a network with the option ``sees`` reads of a preset's tables.

    Raises:
        InputError: there is no such option, or nothing to see.
    """
    if sees not in get_args(Sees):
        raise InputError(f"is {sees!r}", field="network.sees", fix="one of " + ", ".join(get_args(Sees)))
    ticks, units = shapes.image
    if not ticks and sees == "image":
        raise InputError("there is no image to see", field="network.sees", fix="set observation.image.ticks")
    jobs = (shapes.queue_rows - shapes.extras) * len(shapes.queue) + len(shapes.state)
    seen = Seen((len(CHANNELS), ticks, units) if ticks and sees != "jobs" else None, jobs if sees != "image" else 0)
    if seen.image is None and not seen.jobs:
        raise InputError("sees neither an image nor jobs", field="network.kind", fix="name columns of the queue")
    return seen


class Slots(nn.Module):
    """Fixed slots of the rows of a queue."""

    def __init__(self, shapes: Shapes) -> None:
        super().__init__()
        self.slots, self.extras, self.columns = shapes.queue_rows, shapes.extras, len(shapes.queue)

    def places(self, batch: Batch) -> Tensor:
        """Slot of every row in a table of decisions x slots, int64 (Q,)."""
        if "slots" not in batch.shared:
            owner, offsets = batch.queue_owner, batch.queue_offsets
            row = torch.arange(batch.queue.shape[0], device=owner.device) - offsets[owner]
            if self.extras:
                jobs = (offsets[1:] - offsets[:-1] - self.extras)[owner]
                row = torch.where(row < jobs, row, row - jobs + self.slots - self.extras)
            batch.shared["slots"] = owner * self.slots + row
        places: Tensor = batch.shared["slots"]
        return places

    def jobs(self, batch: Batch) -> Tensor:
        """Vectors of the jobs and of the system, side by side: (A, slots of jobs x columns + state)."""
        count = batch.queue_offsets.shape[0] - 1
        table = batch.queue.new_zeros(count * self.slots, self.columns)
        table[self.places(batch)] = batch.queue
        jobs = table.reshape(count, self.slots, self.columns)[:, : self.slots - self.extras]
        return torch.cat([jobs.reshape(count, -1), batch.state], dim=1)

    def rows(self, scores: Tensor, batch: Batch) -> Tensor:
        """Numbers of the slots (A, slots) as those of the rows (Q,)."""
        return scores.reshape(-1)[self.places(batch)]


def unpacked(image: Tensor, units: int) -> Tensor:
    """Packed images, uint8 (..., bytes), as numbers 0 and 1, float32 (..., units); see `engine.image`."""
    bits = torch.arange(7, -1, -1, dtype=torch.uint8, device=image.device)
    return (image.unsqueeze(-1) >> bits).bitwise_and_(1).flatten(-2)[..., :units].float()
