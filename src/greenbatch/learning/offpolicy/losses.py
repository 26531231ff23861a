"""Losses of a discrete actor-critic over dense tables of actions, as plain functions.

All tables have shape (A, n): A decisions, n actions, of which ``mask`` names those that may be chosen. Expectations
over actions are exact sums, not samples. Values of other actions must be finite; they have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from greenbatch.learning.networks.segments import NEVER


def log_policy(logits: Tensor, mask: Tensor) -> Tensor:
    """Log-probabilities of the actions; about ``NEVER`` for those that may not be chosen."""
    return torch.log_softmax(logits.masked_fill(~mask, NEVER), 1)


def expected(values: Tensor, log_pi: Tensor) -> Tensor:
    """Mean of the values under the policy: (A,)."""
    return (log_pi.exp() * values).sum(1)


def entropy(log_pi: Tensor) -> Tensor:
    """Entropy of the policy, (A,) [nat]."""
    return -expected(log_pi, log_pi)


def advantages(values: Tensor, log_pi: Tensor, actions: Tensor) -> Tensor:
    """A(s, a) = Q(s, a) - sum over b of pi(b | s) Q(s, b), of chosen actions int64 (A,): (A,).

    RARE, Algorithm 6, line 5, whose mean over samples is exact here.
    """
    return of(values, actions) - expected(values, log_pi)


def of(table: Tensor, actions: Tensor) -> Tensor:
    """Entries of the chosen actions: (A,)."""
    return table.gather(1, actions.unsqueeze(1)).squeeze(1)


Weight = Callable[[Tensor, float, float], Tensor]
"""Weights of actions from their advantages, beta and the largest weight."""

WEIGHTS: Mapping[str, Weight] = {
    "clone": lambda advantage, _beta, _largest: torch.ones_like(advantage),
    "binary": lambda advantage, _beta, _largest: (advantage > 0).to(advantage.dtype),
    "exponential": lambda advantage, beta, largest: (advantage / beta).exp().clamp(max=largest),
}
"""Filters of copied actions by the name of the loss: behavior cloning; 1[A > 0], CRR (Wang et al. 2020) and RARE's
Algorithm 6, line 6; exp(A / beta), AWAC (Nair et al. 2020) and CRR."""


def copying(log_pi: Tensor, actions: Tensor, weights: Tensor) -> Tensor:
    """Mean of -w log pi(a | s): copies actions by weight. RARE's Algorithm 9, line 3, lacks the minus sign."""
    return -(weights * of(log_pi, actions)).mean()


def soft(log_pi: Tensor, values: Tensor, temperature: Tensor | float) -> Tensor:
    """Mean of sum over a of pi(a | s) (alpha log pi(a | s) - Q(s, a)): discrete SAC (Christodoulou 2019, eq. 12)."""
    return (log_pi.exp() * (temperature * log_pi - values)).sum(1).mean()


def entropy_aim(mask: Tensor, share: float) -> Tensor:
    """A share of the entropy of a uniform choice among the actions allowed, (A,) [nat]."""
    return share * mask.sum(1).clamp(min=1).log()


def temperature_loss(log_temperature: Tensor, log_pi: Tensor, aim: Tensor) -> Tensor:
    """Its gradient raises the temperature where the entropy is below the aim (Haarnoja et al. 2018, eq. 18)."""
    return (log_temperature * (entropy(log_pi) - aim).detach()).mean()


def soft_value(values: Tensor, log_pi: Tensor, temperature: Tensor | float = 0.0) -> Tensor:
    """V(s) = sum over a of pi(a | s) (Q(s, a) - alpha log pi(a | s)), (A,): discrete SAC (Christodoulou 2019, eq. 10).

    With a temperature of 0 it is the mean of Q, as in RARE's Algorithm 6, line 4.
    """
    return expected(values, log_pi) + temperature * entropy(log_pi)


def squared_errors(values: Tensor, actions: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error of several critics, (k, A, n), at the chosen actions; targets are (A,)."""
    chosen = values.gather(2, actions.expand(values.shape[0], -1).unsqueeze(2)).squeeze(2)
    return (chosen - targets).square().mean()
