"""Actor and critics of a preset over the same observation.

Networks over rows (``kernel``, ``context``, ...) are used as they are: the scores of one are the actor's logits, those
of others, with weights of their own, are values. Actor and critics of ``rare`` share an encoder.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from greenbatch.errors import InputError
from greenbatch.learning.networks import build
from greenbatch.learning.networks.layers import Actor, Stack
from greenbatch.learning.networks.observations import Batch
from greenbatch.learning.networks.rare import RareActor
from greenbatch.presets.shapes import Shapes


class Critics(nn.Module):
    """Values of the rows by several networks."""

    def __init__(self, networks: list[Actor]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, features: Tensor | None, batch: Batch) -> list[Tensor]:
        """One value per row, (Q,), by each network."""
        return [of_rows(network, features, batch) for network in self.networks]

    @property
    def last(self) -> list[nn.Linear]:
        """The layer of each network that the values come from."""
        return [_last(network) for network in self.networks]


class Agent(NamedTuple):
    """Networks of an off-policy training, and the copies that targets are computed with."""

    actor: Actor
    critics: Critics
    targets: Critics
    encoder: nn.Module | None
    """Shared by actor and critics; part of ``actor``."""
    target_encoder: nn.Module | None


def make_agent(spec: Mapping[str, Any], shapes: Shapes, critics: int, seed: int) -> Agent:
    """Networks of a preset's ``[network]`` table, initialized from ``seed``.

    Raises:
        InputError: the network is unknown, cannot read the tables or has a memory, or the preset chooses delays.
    """
    if shapes.delays > 1:
        problem = "are several, and an off-policy training has values of rows alone"
        raise InputError(problem, field="action.delays", fix='list {kind = "none"} alone')
    actor, _ = build(spec, shapes, seed)
    if actor.memory:
        problem = f"{spec['kind']} remembers earlier decisions, and a replay buffer holds single ones"
        raise InputError(problem, field="network.kind", fix="leave out training.off_policy to train it by PPO")
    own = {key: value for key, value in spec.items() if key not in {"skip", "zero_last"}}  # of policies alone
    networks = [build(own, shapes, seed + 1 + number)[0] for number in range(critics)]
    encoder = actor.encoder if isinstance(actor, RareActor) else None
    for network in networks:
        if isinstance(network, RareActor):
            del network.encoder
    values = Critics(networks)
    return Agent(actor, values, _frozen(values), encoder, None if encoder is None else _frozen(encoder))


def of_rows(network: nn.Module, features: Tensor | None, batch: Batch) -> Tensor:
    """Scores of the rows, (Q,), from the features of a shared encoder if there is one."""
    if isinstance(network, RareActor) and features is not None:
        return network.of_features(features, batch)
    scores: Tensor = network(batch)
    return scores


def dense(rows: Tensor, batch: Batch) -> Tensor:
    """One number per row, (Q,), as a table of decisions x rows, (A, most rows); 0 elsewhere."""
    count, width = batch.queue_offsets.shape[0] - 1, widest(batch)
    return rows.new_zeros(count * width).index_copy(0, _places(batch, width), rows).reshape(count, width)


def mask_of(batch: Batch) -> Tensor:
    """Which rows may be chosen, bool (A, most rows)."""
    count, width = batch.queue_offsets.shape[0] - 1, widest(batch)
    mask = torch.zeros(count * width, dtype=torch.bool, device=batch.selectable.device)
    mask[_places(batch, width)] = batch.selectable
    return mask.reshape(count, width)


def widest(batch: Batch) -> int:
    """Most rows of a decision."""
    if "widest" not in batch.shared:
        batch.shared["widest"] = int((batch.queue_offsets[1:] - batch.queue_offsets[:-1]).max())
    return int(batch.shared["widest"])


def _places(batch: Batch, width: int) -> Tensor:
    if "places" not in batch.shared:
        row = torch.arange(batch.queue.shape[0], device=batch.queue.device) - batch.queue_offsets[batch.queue_owner]
        batch.shared["places"] = batch.queue_owner * width + row
    places: Tensor = batch.shared["places"]
    return places


def _frozen(module: Any) -> Any:
    return copy.deepcopy(module).requires_grad_(False)


def _last(network: nn.Module) -> nn.Linear:
    """The last layer of a network that scores rows."""
    for name in ("score", "rows", "head"):
        stack = getattr(network, name, None)
        if isinstance(stack, Stack):
            return stack.layers[-1]
    raise TypeError(f"{type(network).__name__} has no last layer by name")
