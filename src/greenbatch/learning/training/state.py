"""State of a training between two epochs: networks, optimizers, averages, the best actor so far, and counters.

All of it is saved in a checkpoint and restored exactly; random numbers have no state because they depend only on
(seed, epoch, purpose).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.learning.adam import Adam
from greenbatch.learning.networks.layers import Actor
from greenbatch.learning.runs.checkpoint import FIX, STATE, Checkpoint
from greenbatch.learning.runs.counters import Counters
from greenbatch.models.tensors import Tensors


class Learner(Protocol):
    """What a state needs of networks and optimizers."""

    @property
    def actor(self) -> Actor:
        """The actor, which becomes the model."""
        ...

    @property
    def modules(self) -> dict[str, torch.nn.Module]:
        """Networks by their names in a checkpoint, ``actor`` among them."""
        ...

    @property
    def optimizers(self) -> dict[str, Adam]:
        """Optimizers by their names in a checkpoint."""
        ...


class State:
    """State of a training between two epochs."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.counters = Counters()
        self.best: Tensors = {}
        """Weights of the best actor so far; empty before the first validation."""
        self.average: dict[str, NDArray[np.float64]] = {}
        """Mean of the actor's weights over the last part of the training."""

    def actor_weights(self) -> Tensors:
        """The actor's current weights."""
        return _arrays(self.learner.actor.state_dict())

    def add_to_average(self) -> None:
        """Add the actor's weights to the average."""
        self.counters.averaged += 1
        for name, value in self.actor_weights().items():
            old = self.average.get(name, np.zeros(value.shape))
            self.average[name] = old + (value.astype(np.float64) - old) / self.counters.averaged

    def averaged_weights(self) -> Tensors:
        """The average in single precision."""
        return {name: value.astype(np.float32) for name, value in self.average.items()}

    def offer(
        self, figure: float, terms: dict[str, float], weights: Tensors, *, excess: float = 0.0, averaged: bool = False
    ) -> bool:  # fmt: skip
        """Keep an actor that exceeds bounds by less than the best so far, or by as much and is strictly better."""
        counters = self.counters
        if counters.best_epoch >= 0 and not (-excess, figure) > (-counters.best_excess, counters.best_figure):
            counters.stale += 1
            return False
        counters.best_epoch, counters.best_figure, counters.best_terms = counters.epoch, figure, dict(terms)
        counters.best_averaged, counters.best_excess, counters.stale = averaged, excess, 0
        self.best = {name: value.copy() for name, value in weights.items()}
        return True

    def checkpoint(self) -> Checkpoint:
        """The whole state, ready to be saved."""
        learner = self.learner
        parts: dict[str, Tensors] = {
            **{name: _arrays(module.state_dict()) for name, module in learner.modules.items()},
            **{name: _moments(optimizer) for name, optimizer in learner.optimizers.items()},
            "best": self.best,
            "average": {name: np.asarray(value) for name, value in self.average.items()},
        }
        tensors = {f"{part}/{name}": value for part, group in parts.items() for name, value in group.items()}
        return Checkpoint(tensors, self.counters.as_dict())

    def restore(self, saved: Checkpoint, folder: Path) -> None:
        """Restore the checkpoint of a folder.

        Raises:
            InputError: it is damaged, or belongs to other networks.
        """
        self.counters = Counters.read(saved.state, folder / STATE, FIX)
        parts = parts_of(saved.tensors)
        learner = self.learner
        try:
            for name, module in learner.modules.items():
                module.load_state_dict(_tensors(parts[name]))
            for name, optimizer in learner.optimizers.items():
                _restore_moments(optimizer, parts.get(name, {}))
        except (KeyError, RuntimeError, TypeError, ValueError, IndexError):
            problem = "does not contain this training's networks"
            raise InputError(problem, file=folder / STATE, fix=FIX) from None
        shapes = {name: value.shape for name, value in self.actor_weights().items()}
        for part, there in (("best", self.counters.best_epoch >= 0), ("average", self.counters.averaged > 0)):
            if {name: value.shape for name, value in parts.get(part, {}).items()} != (shapes if there else {}):
                problem = f"does not match the weights in {part}"
                raise InputError(problem, file=folder / STATE, fix=FIX)
        self.best = parts.get("best", {})
        self.average = {name: value.astype(np.float64) for name, value in parts.get("average", {}).items()}


def parts_of(tensors: Tensors) -> dict[str, Tensors]:
    """Arrays of a checkpoint by part: those of ``part/name``."""
    parts: dict[str, Tensors] = {}
    for key, value in tensors.items():
        part, _, name = key.partition("/")
        parts.setdefault(part, {})[name] = value
    return parts


def _arrays(tensors: dict[str, Any]) -> Tensors:
    return {name: value.detach().cpu().numpy().copy() for name, value in tensors.items()}


def _tensors(arrays: Tensors) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(value.copy()) for name, value in arrays.items()}


def _moments(optimizer: Adam) -> Tensors:
    """State of an optimizer: ``number of parameter/name`` -> array."""
    return {
        f"{number}/{name}": value.cpu().numpy().copy()
        for number, each in optimizer.moments.items()
        for name, value in each.items()
    }


def _restore_moments(optimizer: Adam, arrays: Tensors) -> None:
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in arrays.items():
        number, _, name = key.partition("/")
        moments.setdefault(int(number), {})[name] = torch.from_numpy(value.copy())
    optimizer.restore(moments)
