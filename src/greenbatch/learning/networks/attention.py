"""Networks whose rows attend to learned summaries (seeds) of their decision; invariant to the order of the queue.

The seeds attend to all rows of the queue, and each row attends to the seeds' answers, so the cost is linear in the rows
(induced set attention, Lee et al., "Set Transformer", ICML 2019, section 3.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from greenbatch.learning.networks import segments
from greenbatch.learning.networks.layers import Actor, Critic, Stack, affine
from greenbatch.learning.networks.observations import Batch
from greenbatch.presets.shapes import Shapes


@dataclass(frozen=True)
class AttentionOptions:
    """Keys of ``[network]`` for ``kind = "attention"``."""

    width: int = 32
    """Hidden units per layer over rows."""
    seeds: int = 8
    """Number of learned summaries of a decision."""


class _Attention(nn.Module):
    """Learned seeds attend to all rows of a decision (queue, running, supply), each table encoded to ``width``."""

    def __init__(self, shapes: Shapes, options: AttentionOptions) -> None:
        super().__init__()
        self.shapes, self.width, self.seeds = shapes, options.width, options.seeds
        self.encode_queue = Stack(len(shapes.queue) + len(shapes.state), self.width, self.width, last=True)
        self.key = nn.Linear(self.width, self.seeds)
        self.read = nn.Linear(self.width, self.width)
        others = len(shapes.state) + shapes.forecast * len(shapes.supply)
        if shapes.running:
            self.encode_running = Stack(len(shapes.running), self.width, last=True)
            others += self.width
        self.globals = Stack(max(others, 1), self.width, last=True)

    def answers(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Encoded rows (Q, width) and the seeds' answers (A, seeds, width), including the other tables."""
        rows = torch.cat([batch.queue, batch.state.index_select(0, batch.queue_owner)], dim=1)
        encoded: Tensor = self.encode_queue(rows)
        scores = affine(encoded, self.key.weight, self.key.bias) / math.sqrt(self.width)
        top = segments.segment_max(scores.detach(), batch.queue_offsets)
        weights = (scores - top[batch.queue_owner]).exp()
        weights = weights / segments.segment_sum(weights, batch.queue_offsets)[batch.queue_owner]
        read = weights.unsqueeze(2) * affine(encoded, self.read.weight, self.read.bias).unsqueeze(1)
        return encoded, segments.segment_sum(read, batch.queue_offsets) + self._others(batch).unsqueeze(1)

    def _others(self, batch: Batch) -> Tensor:
        parts = [batch.state]
        if self.shapes.running:
            parts.append(segments.segment_mean(self.encode_running(batch.running), batch.running_offsets))
        if self.shapes.forecast:
            parts.append(batch.supply[batch.supply_row].flatten(1))
        others = torch.cat(parts, dim=1)
        if not others.shape[1]:
            others = others.new_ones(len(others), 1)
        result: Tensor = self.globals(others)
        return result


class AttentionActor(_Attention, Actor):
    """Each row attends to the seeds' answers; its score is computed from both."""

    def __init__(self, shapes: Shapes, options: AttentionOptions) -> None:
        super().__init__(shapes, options)
        self.query = nn.Linear(self.width, self.width)
        self.score = Stack(2 * self.width, self.width, 1)
        if shapes.delays > 1:
            self.delay = Stack(2 * self.width, self.width, shapes.delays)

    def encode(self, batch: Batch) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Row logits (Q,); rows with what they attended to (Q, 2 width)."""
        encoded, answers = self.answers(batch)
        mine = answers.index_select(0, batch.queue_owner)
        match = (mine * affine(encoded, self.query.weight, self.query.bias).unsqueeze(1)).sum(2) / math.sqrt(self.width)
        read = (torch.softmax(match, 1).unsqueeze(2) * mine).sum(1)
        both = torch.cat([encoded, read], dim=1)
        return self.score(both).squeeze(1), (both,)

    def delay_logits(self, batch: Batch, encoded: tuple[Tensor, ...], chosen: Tensor) -> Tensor | None:
        """(A, D), or None if the preset has no delays."""
        del batch
        if self.shapes.delays == 1:
            return None
        result: Tensor = self.delay(encoded[0][chosen])
        return result


class AttentionCritic(_Attention, Critic):
    """Value computed from the mean of the seeds' answers."""

    def __init__(self, shapes: Shapes, options: AttentionOptions) -> None:
        super().__init__(shapes, options)
        self.value = Stack(self.width, self.width, 1)

    def forward(self, batch: Batch) -> Tensor:
        """(A,)."""
        result: Tensor = self.value(self.answers(batch)[1].mean(1)).squeeze(1)
        return result
