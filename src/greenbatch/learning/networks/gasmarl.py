"""GAS-MARL's networks on valid rows only (GAS-MARL, section 4.2.2; the published code's layers).

Encoders k -> 64 -> 128 per table (ReLU after both); job head 128-64-16-1 per row; delay head: all encoded rows and the
chosen raw row through Linear(8, 128) -> shared 128-32-8 (ReLU after both) -> flattened -> 64 -> ReLU -> delays. The
critic has its own encoders and the same squeeze, then 64-8-1. Padded rows are encoded once, as a constant, so the
function equals the published one up to rounding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from greenbatch.learning.networks import gasmarl_by_hand as by_hand
from greenbatch.learning.networks.layers import Actor, Critic, Stack, flattened
from greenbatch.learning.networks.observations import Batch
from greenbatch.presets.shapes import Shapes

_ENCODED, _SQUEEZED, _HIDDEN = 128, 8, 64


class _Tables(nn.Module):
    """Encoders of the three tables, the squeeze, and the flattened layer's packed form."""

    empty_queue: Tensor
    empty_running: Tensor

    def __init__(self, shapes: Shapes) -> None:
        super().__init__()
        self.shapes = shapes
        self._own: dict[str, dict[str, nn.Parameter]] = {}
        self.encode_queue = Stack(len(shapes.queue), 64, _ENCODED, last=True)
        self.encode_running = Stack(len(shapes.running), 64, _ENCODED, last=True)
        self.encode_supply = Stack(len(shapes.supply), 64, _ENCODED, last=True)
        self.register_buffer("empty_queue", torch.tensor([shapes.empty]), persistent=False)
        self.register_buffer("empty_running", torch.zeros(1, len(shapes.running)), persistent=False)

    def tables(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Encoded rows of the three tables; the queue's and the running table's end with the padded row."""
        return (
            self.encode_queue(torch.cat([batch.queue, self.empty_queue])),
            self.encode_running(torch.cat([batch.running, self.empty_running])),
            self.encode_supply(batch.supply),
        )

    def hidden(self, batch: Batch, squeezed: Tensor, layer: nn.Linear) -> Tensor:
        """The flattened layer (A, 64) from squeezed rows: queue and padding, running and padding, supply, chosen."""
        counts = [len(batch.queue), 1, len(batch.running), 1, len(batch.supply)]
        rest = len(squeezed) - sum(counts)
        queue, no_job, running, idle, supply, chosen = torch.split(squeezed, [*counts, rest])
        ends = [slots * _SQUEEZED for slots in (self.shapes.queue_rows, self.shapes.running_rows, self.shapes.forecast)]
        parts = torch.split(layer.weight, [*ends, layer.weight.shape[1] - sum(ends)], dim=1)
        result = flattened(queue, batch.queue_offsets, batch.queue_owner, no_job[0], parts[0])
        result = result + flattened(running, batch.running_offsets, batch.running_owner, idle[0], parts[1])
        result = result + supply[batch.supply_row].reshape(len(batch.supply_row), -1) @ parts[2].T + layer.bias
        return torch.relu(result + chosen @ parts[3].T if rest else result)

    def padded(self, batch: Batch) -> by_hand.Padded:
        """The batch's rows in the form of `gasmarl_by_hand`, computed once for actor and critic."""
        key = (self.shapes.queue_rows, self.shapes.running_rows)
        if key not in batch.shared:
            batch.shared[key] = by_hand.pad(batch, self.empty_queue, key)
        rows: by_hand.Padded = batch.shared[key]
        return rows

    def own(self, flat: str) -> dict[str, nn.Parameter]:
        """The parameters that `gasmarl_by_hand` reads: all except those after the flattened layer."""
        if flat not in self._own:
            head = flat.partition(".")[0] + "."
            named = self.named_parameters()
            self._own[flat] = {name: each for name, each in named if not name.startswith(head) or name.startswith(flat)}
        return self._own[flat]


class GasMarlActor(_Tables, Actor):
    """Job head and delay head; without the delay head if ``delays`` is 1 (the paper's MaskablePPO baseline)."""

    def __init__(self, shapes: Shapes) -> None:
        super().__init__(shapes)
        self.score = Stack(_ENCODED, 64, 16, 1)
        if shapes.delays == 1:
            del self.encode_running, self.encode_supply
            return
        rows = shapes.queue_rows + shapes.running_rows + shapes.forecast + 1
        self.chosen = nn.Linear(len(shapes.queue), _ENCODED)
        self.squeeze = Stack(_ENCODED, 32, _SQUEEZED, last=True)
        self.delay = Stack(rows * _SQUEEZED, _HIDDEN, shapes.delays)

    def encode(self, batch: Batch) -> tuple[Tensor, tuple[Any, ...]]:
        """Row logits (Q,) and the encoded tables."""
        if self.shapes.delays == 1:
            if not _by_hand(batch):
                return self.score(self.encode_queue(batch.queue)).squeeze(1), ()
            queue = self.padded(batch).queue
            return queue.packed(self.score(self.encode_queue(queue.rows)).squeeze(1)), ()
        if _by_hand(batch) and not torch.is_grad_enabled():
            work = by_hand.Pass(self.padded(batch), self.own("delay.0"), "delay.0")
            return work.scores(), (work,)
        encoded = self.tables(batch)
        return self.score(encoded[0][:-1]).squeeze(1), encoded

    def delay_logits(self, batch: Batch, encoded: tuple[Any, ...], chosen: Tensor) -> Tensor | None:
        """(A, D)."""
        if not encoded:
            return None
        if isinstance(encoded[0], by_hand.Pass):
            hidden = torch.relu(encoded[0].hidden(batch.queue[chosen]))
        else:
            squeezed = self.squeeze(torch.cat([*encoded, self.chosen(batch.queue[chosen])]))
            hidden = self.hidden(batch, squeezed, self.delay.layers[0])
        result: Tensor = self.delay.layers[1](hidden)
        return result

    def prepare(self, batch: Batch) -> None:
        """Pad the rows."""
        if _by_hand(batch):
            self.padded(batch)

    def evaluate(self, batch: Batch, rows: Tensor) -> tuple[Tensor, Tensor | None]:
        """Logits of both heads for known rows; on a CPU with hand-written passes."""
        if self.shapes.delays == 1 or not _by_hand(batch):
            return super().evaluate(batch, rows)
        scores, hidden = by_hand.run(self.padded(batch), batch.queue[rows], "delay.0", self.own("delay.0"), scored=True)
        result: Tensor = self.delay.layers[1](torch.relu(hidden))
        return scores, result


class GasMarlCritic(_Tables, Critic):
    """Value computed from all rows."""

    def __init__(self, shapes: Shapes) -> None:
        super().__init__(shapes)
        rows = shapes.queue_rows + shapes.running_rows + shapes.forecast
        self.squeeze = Stack(_ENCODED, 32, _SQUEEZED, last=True)
        self.value = Stack(rows * _SQUEEZED, _HIDDEN, 8, 1)

    def forward(self, batch: Batch) -> Tensor:
        """(A,)."""
        if _by_hand(batch):
            hidden = torch.relu(by_hand.run(self.padded(batch), None, "value.0", self.own("value.0"), scored=False)[1])
        else:
            hidden = self.hidden(batch, self.squeeze(torch.cat(self.tables(batch))), self.value.layers[0])
        result: Tensor = self.value.layers[2](torch.relu(self.value.layers[1](hidden))).squeeze(1)
        return result


def _by_hand(batch: Batch) -> bool:
    """Whether `gasmarl_by_hand` computes this batch (on a CPU, in float32); otherwise autograd does."""
    return batch.queue.device.type == "cpu" and batch.queue.dtype == torch.float32
