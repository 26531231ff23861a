"""InEPS's networks: SELU over every pair of a waiting job and a node (InEPS, sections 3.4.1 and 3.4.2).

Where the paper leaves it open:

* The first weights' "zero mean and unit variance" is read as LeCun's: variance 1 / fan-in and zero biases. With these,
  SELU keeps the variance of what passes through at 1, which makes a network self-normalizing (Klambauer et al. 2017,
  arXiv:1706.02515, section 3), as the paper says of its own. Code of these networks (github.com/Archiel19/IRMaSim)
  has variance 1, which grows in every layer.
* The actor's SELU is "between layers", so the logits have none. In that code they have one, which bounds them from
  below.
* The critic's one unit per row counts as a hidden layer, so it has a SELU; the value has none. So it is in that code.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from greenbatch.learning.networks.layers import Actor, Critic, Stack, over_slots
from greenbatch.learning.networks.observations import Batch
from greenbatch.presets.shapes import Shapes

_ACTOR = (16, 16, 8, 8, 4, 4, 1)
_CRITIC = (32, 16, 8, 4, 1)
"""Widths of the layers over a row."""
_VALUE = (128, 64, 32, 16, 8, 1)
"""Widths of the critic's layers over all slots."""


def _lecun(module: nn.Module) -> None:
    """Normal weights of variance 1 / fan-in and zero biases."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
            nn.init.zeros_(layer.bias)


class InepsActor(Actor):
    """k-16-16-8-8-4-4-1 over every row; 717 parameters for 10 columns."""

    def __init__(self, shapes: Shapes) -> None:
        super().__init__()
        self.rows = Stack(len(shapes.queue), *_ACTOR, activation=torch.selu)
        _lecun(self)

    def encode(self, batch: Batch) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Row logits (Q,)."""
        return self.rows(batch.queue).squeeze(1), ()


class InepsCritic(Critic):
    """k-32-16-8-4-1 over every slot, then slots-128-64-32-16-8-1, on packed rows.

    12,194 parameters for 10 columns, and 128 per slot.
    """

    empty_queue: Tensor

    def __init__(self, shapes: Shapes) -> None:
        super().__init__()
        self.rows = Stack(len(shapes.queue), *_CRITIC, last=True, activation=torch.selu)
        self.value = Stack(shapes.queue_rows, *_VALUE, activation=torch.selu)
        self.register_buffer("empty_queue", torch.tensor([shapes.empty]), persistent=False)
        _lecun(self)

    def forward(self, batch: Batch) -> Tensor:
        """(A,)."""
        return over_slots(self.rows(torch.cat([batch.queue, self.empty_queue])), batch, self.value)
