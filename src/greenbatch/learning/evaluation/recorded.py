"""Recorded decisions for networks: a model's policy on all of them, and the transitions of fitted Q evaluation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from greenbatch.datasets import Dataset
from greenbatch.errors import InputError
from greenbatch.learning.discounts import discounts, since_start
from greenbatch.learning.evaluation.fitted import SETTINGS
from greenbatch.learning.networks import build
from greenbatch.learning.networks.layers import Actor
from greenbatch.learning.networks.observations import Batch
from greenbatch.learning.offpolicy.learner import Policy, Sample
from greenbatch.learning.offpolicy.losses import of
from greenbatch.learning.offpolicy.tables import batch_of
from greenbatch.models.model import FIX, Model
from greenbatch.presets.shapes import shapes_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOAD = 4096
"""Decisions that a policy is applied to at a time."""


class Decided(NamedTuple):
    """What a policy does in N recorded decisions."""

    actions: Ints
    """Its most probable rows, shape (N,)."""
    log_recorded: Floats
    """Log-probabilities of the recorded rows, shape (N,)."""


def actor_of(model: Model) -> Actor:
    """The network of a model, with its weights.

    Raises:
        InputError: the model is no network or remembers earlier decisions, or its weights do not fit the network.
    """
    preset = model.preset
    if preset.is_planner or preset.is_policy:
        problem = f"is a model of {preset.name}: a planner or policy rather than a network"
        raise InputError(
            problem, file=model.folder, fix="give a model with a network; greenbatch compare simulates any"
        )
    actor, _ = build(preset.network, shapes_of(preset), 0)
    if actor.memory:
        problem = f"{preset.network['kind']} remembers earlier decisions, and recorded ones are evaluated one by one"
        raise InputError(problem, file=model.folder, fix="use greenbatch compare, which simulates the model")
    try:
        actor.load_state_dict({name: torch.from_numpy(value) for name, value in model.weights.items()})
    except RuntimeError:
        raise InputError("has weights that do not fit its network", file=model.folder, fix=FIX) from None
    return actor.requires_grad_(False)


def observed(dataset: Dataset, places: Ints | slice) -> Batch:
    """Observations of some decisions."""
    return batch_of({name: values[places] for name, values in dataset.observations.items()})


@torch.no_grad()
def decided(policy: Policy, dataset: Dataset) -> Decided:
    """Apply a policy to all decisions of a dataset."""
    rows, logs = [], []
    for first in range(0, len(dataset), LOAD):
        part = slice(first, first + LOAD)
        table = policy(observed(dataset, part))
        rows.append(table.argmax(1))
        logs.append(of(table, torch.from_numpy(dataset.actions[part])))
    return Decided(torch.cat(rows).numpy(), torch.cat(logs).double().numpy())


class Transitions:
    """Draws transitions of one reward each from a dataset; the end of an episode is worth nothing more.

    Half of them are drawn uniformly, the others by how much their rewards count at the beginning of their episodes
    (``gamma^t``): what is estimated is the value there, and first decisions are few in long episodes.
    """

    def __init__(
        self, dataset: Dataset, gamma: float, batch: int = SETTINGS.batch, *, gamma_s: float = 0.0
    ) -> None:  # fmt: skip
        """Prepare to draw.

        Args:
            dataset: the decisions.
            gamma: discount, 0 to 1.
            batch: transitions of a step.
            gamma_s: time over which it applies once; 0: from each decision to the next. [s]
        """
        self.dataset, self.batch = dataset, batch
        told = dataset.time_s, dataset.offsets, gamma, gamma_s
        self._discounts = discounts(*told)
        self._goes_on = ~(dataset.terminals | dataset.timeouts)
        counts = since_start(*told)
        self._upto = np.cumsum(0.5 / len(dataset) + 0.5 * counts / counts.sum())

    def __call__(self, random: np.random.Generator) -> Sample:
        """The transitions of a step, drawn with replacement."""
        drawn = np.searchsorted(self._upto, random.random(self.batch), side="right")
        places = np.minimum(drawn, len(self.dataset) - 1)
        goes_on = self._goes_on[places]
        actions, rewards = self.dataset.actions[places], self.dataset.rewards[places].astype(np.float32)
        to_next = (self._discounts[places] * goes_on).astype(np.float32)
        told = [torch.from_numpy(part) for part in (actions, rewards, to_next)]
        seen, following = observed(self.dataset, places), observed(self.dataset, places + goes_on)
        return Sample(seen, told[0], told[1], told[2], following)
