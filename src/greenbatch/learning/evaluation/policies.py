"""Fixed policies as tables of log-probabilities over rows, for `offpolicy.learner` and for importance sampling."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from greenbatch.learning.networks import segments
from greenbatch.learning.networks.layers import Actor
from greenbatch.learning.networks.observations import Batch
from greenbatch.learning.offpolicy.agent import dense, mask_of
from greenbatch.learning.offpolicy.learner import Policy
from greenbatch.learning.offpolicy.losses import log_policy, of


def stochastic(actor: Actor) -> Policy:
    """The policy of an actor."""
    return lambda batch: log_policy(dense(actor(batch), batch), mask_of(batch))


def greedy(actor: Actor) -> Policy:
    """The most probable action of an actor, the first of equal ones."""
    return certain(lambda batch: segments.arg_max(actor(batch), batch.queue_offsets, batch.selectable))


def certain(choose: Callable[[Batch], Tensor]) -> Policy:
    """A deterministic policy from what it chooses: rows int64 (A,), such as those of a rule."""

    def policy(batch: Batch) -> Tensor:
        mask = mask_of(batch)
        chosen = torch.zeros_like(mask).scatter_(1, choose(batch).unsqueeze(1), True)  # torch's value
        return torch.where(chosen, 0.0, segments.NEVER)

    return policy


@torch.no_grad()
def of_recorded(policy: Policy, batch: Batch, actions: Tensor) -> Tensor:
    """Log-probabilities of recorded rows int64 (A,): (A,)."""
    return of(policy(batch), actions)
