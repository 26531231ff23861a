"""CoCoRL's networks: layers of tanh units over what is seen, then an LSTM that remembers a simulation.

Source: dissertation, section 6.6 (hyperparameters of chapter 6): two hidden layers of 512 tanh units, an LSTM of 512.
As in its library (safe-rlpyt), the layers' output is added to that of the LSTM. There, actor and critic share all but
their last layers and also see the action and the reward before; here each has a network of its own, as all actors and
critics of a training by policy gradients.

The LSTM reads runs of consecutive decisions (`Batch.sequences`), step by step and only those that have not ended. One
decision of a simulation with what it remembers, and whole trajectories from nothing, are the same computation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from greenbatch.learning.networks import segments
from greenbatch.learning.networks.layers import Actor, Critic, Stack
from greenbatch.learning.networks.lstm_by_hand import through_lstm
from greenbatch.learning.networks.observations import Batch
from greenbatch.learning.networks.slots import Slots, unpacked
from greenbatch.presets.shapes import Sees, Shapes, seen_by


@dataclass(frozen=True)
class RecurrentOptions:
    """Keys of ``[network]`` for ``kind = "recurrent"``."""

    hidden: int = 512
    """Units of each hidden layer and of the LSTM."""
    layers: int = 2
    """Hidden layers."""
    sees: Sees = "both"
    """The resource ``image``, vectors of ``jobs`` and of the system, or ``both``."""


class Steps(NamedTuple):
    """Decisions of several sequences, step by step."""

    order: Tensor
    """int64 (A,): decisions; within a step those of longer sequences first."""
    sizes: list[int]
    """Decisions of each step."""
    longest_first: Tensor
    """int64 (S,): the sequences by descending length."""


def steps_of(sequences: Tensor) -> Steps:
    """The steps of sequences, none of them empty, from their offsets int64 (S + 1,)."""
    lengths, owner = sequences[1:] - sequences[:-1], segments.owners(sequences)
    longest_first = torch.argsort(lengths, descending=True, stable=True)
    rank = torch.argsort(longest_first)
    step = torch.arange(owner.shape[0], device=owner.device) - sequences[owner]
    order = torch.argsort(step * lengths.shape[0] + rank[owner])
    return Steps(order, torch.bincount(step).tolist(), longest_first)


class Remembering(nn.Module):
    """Features of every decision that depend on all earlier ones of its sequence."""

    def __init__(self, shapes: Shapes, options: RecurrentOptions) -> None:
        super().__init__()
        self.seen, self.slots = seen_by(shapes, options.sees), Slots(shapes)
        self.hidden = Stack(self.seen.width, *[options.hidden] * options.layers, last=True, activation=torch.tanh)
        self.lstm = nn.LSTM(options.hidden, options.hidden)

    def prepare(self, batch: Batch) -> tuple[Tensor, Steps]:
        """What does not depend on the weights: numbers that are seen (A, width), and the steps."""
        if "seen" not in batch.shared:
            parts = [self.slots.jobs(batch)] if self.seen.jobs else []
            if self.seen.image is not None:
                parts.insert(0, unpacked(batch.image, self.seen.image[2]).flatten(1))
            sequences = batch.sequences
            if sequences is None:
                sequences = torch.arange(batch.queue_offsets.shape[0], device=batch.queue_offsets.device)
            batch.shared["seen"] = torch.cat(parts, dim=1), steps_of(sequences)
        prepared: tuple[Tensor, Steps] = batch.shared["seen"]
        return prepared

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Features (A, units of the LSTM), and what is remembered after each sequence (S, twice as many)."""
        seen, steps = self.prepare(batch)
        hidden = self.hidden(seen)
        known = batch.memory
        if known is None:
            known = hidden.new_zeros(len(steps.longest_first), 2 * self.lstm.hidden_size)
        known = known[steps.longest_first]
        outputs, *after = through_lstm(self.lstm, hidden[steps.order], steps.sizes, *known.chunk(2, 1))
        back = torch.argsort(steps.order)
        return hidden + outputs[back], torch.cat(after, dim=1)[torch.argsort(steps.longest_first)]


class RecurrentActor(Actor):
    """Logits of the actions."""

    def __init__(self, shapes: Shapes, options: RecurrentOptions) -> None:
        super().__init__()
        self.body = Remembering(shapes, options)
        self.head = nn.Linear(options.hidden, shapes.queue_rows)
        self.memory = 2 * options.hidden

    def prepare(self, batch: Batch) -> None:
        """Unpack what is seen, and find the steps of the sequences."""
        self.body.prepare(batch)

    def encode(self, batch: Batch) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Row logits (Q,), and what is remembered (S, memory)."""
        features, memory = self.body(batch)
        return self.body.slots.rows(self.head(features), batch), (memory,)


class RecurrentCritic(Critic):
    """Value of every decision."""

    def __init__(self, shapes: Shapes, options: RecurrentOptions) -> None:
        super().__init__()
        self.body = Remembering(shapes, options)
        self.value = nn.Linear(options.hidden, 1)

    def forward(self, batch: Batch) -> Tensor:
        """(A,)."""
        value: Tensor = self.value(self.body(batch)[0]).squeeze(1)
        return value
