"""RLScheduler's networks: one small kernel over every waiting job (section IV-B and the published code)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from greenbatch.learning.networks.layers import Actor, Critic, Stack, over_slots
from greenbatch.learning.networks.observations import Batch
from greenbatch.presets.shapes import Shapes

_KERNEL = (32, 16, 8, 1)
"""Widths of the layers over a row."""


def _glorot(module: nn.Module) -> None:
    """Glorot-uniform weights and zero biases, the default of TensorFlow 1, which RLScheduler used."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)


class KernelActor(Actor):
    """RLScheduler's policy (section IV-B): k-32-16-8-1 over every row; 961 parameters for 8 columns."""

    def __init__(self, shapes: Shapes) -> None:
        super().__init__()
        self.rows = Stack(len(shapes.queue), *_KERNEL)
        _glorot(self)

    def encode(self, batch: Batch) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Row logits (Q,)."""
        return self.rows(batch.queue).squeeze(1), ()


class KernelCritic(Critic):
    """The same kernel over every slot, then slots-64-32-8-1, on packed rows; 11,570 parameters for 128 slots."""

    empty_queue: Tensor

    def __init__(self, shapes: Shapes) -> None:
        super().__init__()
        self.rows = Stack(len(shapes.queue), *_KERNEL)
        self.value = Stack(shapes.queue_rows, 64, 32, 8, 1)
        self.register_buffer("empty_queue", torch.tensor([shapes.empty]), persistent=False)
        _glorot(self)

    def forward(self, batch: Batch) -> Tensor:
        """(A,)."""
        return over_slots(self.rows(torch.cat([batch.queue, self.empty_queue])), batch, self.value)
