"""Common parts of the networks: interfaces, stacks of linear layers, and flattening of packed rows onto slots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from greenbatch.learning.networks.linear_by_hand import filled, through
from greenbatch.learning.networks.observations import Batch

Activation = Callable[[Tensor], Tensor]
"""A function of every element."""


class Actor(nn.Module, ABC):
    """Scores of the queue's rows, and of the delays for a chosen row."""

    memory = 0
    """Numbers that it remembers of a simulation from decision to decision."""

    @abstractmethod
    def encode(self, batch: Batch) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Row logits (Q,), not masked, and intermediate results for ``delay_logits``.

        The last of these, with a memory, is what is remembered after each of the batch's sequences, (S, memory).
        """

    def forward(self, batch: Batch) -> Tensor:
        """Row logits (Q,), not masked."""
        return self.encode(batch)[0]

    def delay_logits(self, batch: Batch, encoded: tuple[Tensor, ...], chosen: Tensor) -> Tensor | None:
        """Logits of the delays (A, D), not masked, for the chosen packed rows int64 (A,); None without a delay head."""
        del batch, encoded, chosen
        return None

    def prepare(self, batch: Batch) -> None:
        """Compute in advance what does not depend on the weights."""

    def evaluate(self, batch: Batch, rows: Tensor) -> tuple[Tensor, Tensor | None]:
        """Logits of rows (Q,) and of delays (A, D) or None, for known chosen packed rows int64 (A,)."""
        logits, encoded = self.encode(batch)
        return logits, self.delay_logits(batch, encoded, rows)


class Critic(nn.Module, ABC):
    """Value of every decision."""

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """(A,)."""


class Critics(Critic):
    """Several critics side by side: values of the reward and of costs."""

    def __init__(self, critics: Sequence[Critic]) -> None:
        super().__init__()
        self.critics = nn.ModuleList(critics)

    def forward(self, batch: Batch) -> Tensor:
        """(A, number of critics)."""
        return torch.stack([critic(batch) for critic in self.critics], dim=1)


class Stack(nn.Module):
    """Linear layers with an activation in between; ``last``: also after the last one. Parameters: ``0.weight`` etc."""

    def __init__(self, *widths: int, last: bool = False, activation: Activation = torch.relu) -> None:
        super().__init__()
        self.layers = tuple(nn.Linear(a, b) for a, b in pairwise(widths))
        for number, layer in enumerate(self.layers):
            self.add_module(str(number), layer)
        self.last, self.activation = last, activation

    def forward(self, rows: Tensor) -> Tensor:
        """(..., first width) -> (..., last width)."""
        parameters = (each for layer in self.layers for each in (layer.weight, layer.bias))
        return affine(rows, *parameters, last=self.last, activation=self.activation)


def affine(rows: Tensor, *parameters: Tensor, last: bool = False, activation: Activation = torch.relu) -> Tensor:
    """Rows passed through linear layers with an activation in between.

    Args:
        rows: (..., in); with ReLU, many rows on a CPU use hand-written passes (`linear_by_hand.through`).
        parameters: weight (out, in) and bias (out,) of each layer in turn.
        last: whether the last layer has the activation as well.
        activation: the activation.
    """
    many_on_cpu = rows.dim() == 2 and rows.device.type == "cpu" and rows.dtype == torch.float32
    if many_on_cpu and activation is torch.relu:  # with SELU they are no faster than autograd
        return through(rows, parameters, last=last)
    count = rows.shape[0]
    if many_on_cpu:
        rows = filled(rows)
    for number in range(0, len(parameters), 2):
        rows = linear(rows, parameters[number], parameters[number + 1])
        if last or number + 2 < len(parameters):
            rows = activation(rows)
    return rows[:count]


def flattened(rows: Tensor, offsets: Tensor, owner: Tensor, empty: Tensor, weight: Tensor) -> Tensor:
    """A linear layer (no bias) over a padded, flattened table, from its packed rows.

    Args:
        rows: encoded valid rows (Q, c).
        offsets: int64 (A + 1,).
        owner: int64 (Q,), segment of every row.
        empty: encoding of a padded row (c,).
        weight: (out, slots * c).

    Returns:
        (A, out), as for the padded table: the result of empty slots plus the difference of each valid row to an empty
        one.
    """
    count, columns = offsets.shape[0] - 1, rows.shape[1]
    slots = weight.shape[1] // columns
    everywhere = weight.reshape(-1, slots, columns).sum(1) @ empty
    slot = torch.arange(rows.shape[0], device=rows.device) - offsets[owner]
    used = int((offsets[1:] - offsets[:-1]).max()) if rows.shape[0] else 0
    table = torch.zeros(count * used, columns, dtype=rows.dtype, device=rows.device)
    table = table.index_copy(0, owner * used + slot, rows - empty)
    return table.reshape(count, used * columns) @ weight[:, : used * columns].T + everywhere


def over_slots(scores: Tensor, batch: Batch, value: Stack) -> Tensor:
    """A stack that ends in one unit, over the padded table of one score per slot: (A,).

    Args:
        scores: of the valid rows and, as the last one, of an empty slot (Q + 1, 1).
        batch: the rows' decisions.
        value: its first layer reads as many numbers as there are slots.
    """
    first = value.layers[0]
    slots = flattened(scores[:-1], batch.queue_offsets, batch.queue_owner, scores[-1], first.weight)
    hidden = value.activation(slots + first.bias)
    for layer in value.layers[1:-1]:
        hidden = value.activation(layer(hidden))
    result: Tensor = value.layers[-1](hidden).squeeze(1)
    return result
