"""What networks with fixed slots see: the jobs of a queue side by side, and the image of resources.

Jobs fill the slots from the first one on; actions after the jobs, such as waiting, have the last slots. Such a network
fits one number of visible jobs only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from greenbatch.learning.networks.observations import Batch
from greenbatch.presets.shapes import Shapes


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
    """Packed images, uint8 (..., bytes), as numbers 0 and 1, float32 (..., units); see `engine.observe.image`."""
    bits = torch.arange(7, -1, -1, dtype=torch.uint8, device=image.device)
    return (image.unsqueeze(-1) >> bits).bitwise_and_(1).flatten(-2)[..., :units].float()
