"""Networks whose rows see one pooled summary of everything else; invariant to the order of the queue.

A row's score is computed from its encoding and one context vector of its decision (mean and maximum of all queue rows
and of all running rows, the supply table and the global state), optionally added to a weighted sum of named columns, so
that training starts from a rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from greenbatch.learning.networks import segments
from greenbatch.learning.networks.layers import Actor, Critic, Stack, affine
from greenbatch.learning.networks.observations import Batch
from greenbatch.presets.shapes import Shapes


@dataclass(frozen=True)
class ContextOptions:
    """Keys of ``[network]`` for ``kind = "context"``."""

    width: int = 64
    """Hidden units per layer over rows."""
    context: int = 32
    """Length of the context vector."""
    skip: Mapping[str, float] | None = None
    """Column of the queue -> initial weight of a term added to the score; the weights are trained as well."""
    zero_last: bool = False
    """Initialize the last layers with zeros: the initial policy is ``skip`` alone (uniform without it)."""


class _Pool(nn.Module):
    """Encoded queue rows and one context vector per decision.

    queue = relu(encode_queue.0 [row, state]); running likewise with encode_running.0; context = relu(context.0
    [mean queue, max queue, mean running, max running, flattened supply, state]).
    """

    def __init__(self, shapes: Shapes, width: int, context: int) -> None:
        super().__init__()
        self.shapes = shapes
        state = len(shapes.state)
        inputs = 2 * width + state + shapes.forecast * len(shapes.supply)
        self.encode_queue = Stack(len(shapes.queue) + state, width, width, last=True)
        if shapes.running:
            self.encode_running = Stack(len(shapes.running), width, last=True)
            inputs += 2 * width
        self.context = Stack(inputs, context, last=True)

    def pool(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Encoded rows (Q, width) and contexts (A, context)."""
        rows = batch.queue
        if self.shapes.state:
            rows = torch.cat([rows, batch.state.index_select(0, batch.queue_owner)], dim=1)
        encoded: Tensor = self.encode_queue(rows)
        parts = [
            segments.segment_mean(encoded, batch.queue_offsets, batch.queue_owner),
            segments.segment_max(encoded, batch.queue_offsets, owner=batch.queue_owner),
        ]
        if self.shapes.running:
            busy = self.encode_running(batch.running)
            parts += [
                segments.segment_mean(busy, batch.running_offsets, batch.running_owner),
                segments.segment_max(busy, batch.running_offsets, owner=batch.running_owner),
            ]
        if self.shapes.forecast:
            parts.append(batch.supply[batch.supply_row].flatten(1))
        return encoded, self.context(torch.cat([*parts, batch.state], dim=1))


class ContextActor(_Pool, Actor):
    """score = score.1 relu(score.0 [queue, context]) + skip . row; delay likewise from [chosen queue, context]."""

    def __init__(self, shapes: Shapes, options: ContextOptions) -> None:
        super().__init__(shapes, options.width, options.context)
        self.score = Stack(options.width + options.context, options.width, 1)
        last = [self.score.layers[-1]]
        if shapes.delays > 1:
            self.delay = Stack(options.width + options.context, options.width, shapes.delays)
            last.append(self.delay.layers[-1])
        if options.skip is not None:
            weights = [float(options.skip.get(name, 0.0)) for name in shapes.queue]
            self.skip = nn.Parameter(torch.tensor(weights))
        if options.zero_last:
            for layer in last:
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)

    def encode(self, batch: Batch) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Row logits (Q,); encoded rows and contexts."""
        encoded, context = self.pool(batch)
        (first, second), width = self.score.layers, encoded.shape[1]
        rows = affine(encoded, first.weight[:, :width], torch.zeros_like(first.bias))
        shared = torch.addmm(first.bias, context, first.weight[:, width:].T)
        hidden = torch.relu(rows + shared.index_select(0, batch.queue_owner))
        logits = affine(hidden, second.weight, second.bias).squeeze(1)
        if hasattr(self, "skip"):
            logits = logits + batch.queue @ self.skip
        return logits, (encoded, context)

    def delay_logits(self, batch: Batch, encoded: tuple[Tensor, ...], chosen: Tensor) -> Tensor | None:
        """(A, D), or None if the preset has no delays."""
        del batch
        if self.shapes.delays == 1:
            return None
        rows, context = encoded
        result: Tensor = self.delay(torch.cat([rows[chosen], context], dim=1))
        return result


class ContextCritic(_Pool, Critic):
    """value = value.1 relu(value.0 context)."""

    def __init__(self, shapes: Shapes, options: ContextOptions) -> None:
        super().__init__(shapes, options.width, 2 * options.context)
        self.value = Stack(2 * options.context, options.width, 1)

    def forward(self, batch: Batch) -> Tensor:
        """(A,)."""
        result: Tensor = self.value(self.pool(batch)[1]).squeeze(1)
        return result
