"""Fitted Q evaluation: the value of a fixed policy by repeated regression on recorded transitions.

The critics learn ``r + discount x E over a' of Q'(s', a')`` under the evaluated policy, with target networks that
follow: the steps are those of `offpolicy.learner.Learner` for a fixed policy. Source: Le, Voloshin & Yue (2019), "Batch
policy learning under constraints", Algorithm 3, whose regressions to the end are replaced by gradient steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike

from greenbatch.errors import InputError
from greenbatch.learning.evaluation.estimate import Estimate, Floats, estimate
from greenbatch.learning.networks.observations import Batch
from greenbatch.learning.offpolicy.agent import Agent
from greenbatch.learning.offpolicy.learner import Learner, Policy, Rates, Sample
from greenbatch.presets.off_policy import OffPolicy

SETTINGS = OffPolicy(critics=2, combine="mean", tau=0.1, encoder_tau=0.1, target_delay=1, popart_rate=0.01, batch=256)
"""Settings of critics that only evaluate: the lowest of several critics would be biased."""
RATES = Rates(critic=1e-3)
DRIFTING = 0.02
"""Change over the last tenth of the steps, relative to the estimate, above which it comes with a caution."""
TIMES = 3
"""Times that `usual_steps` has values grow to their size."""
CHECKED = 20
"""Samples that the residual is computed on."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The value of a policy by fitted Q evaluation, and what speaks for or against it."""

    estimate: Estimate
    """Mean of ``E over a of Q(s_0, a)`` over the episodes. The interval is that over first observations: it does not
    contain the error of the critics, and no policy is too far from the record for it."""
    residual: float
    """Root mean square of Q(s, a) minus its target, in the unit of the rewards."""
    explained: float
    """1 minus the squared residual over the variance of the targets: 1 if the critics fit, 0 if no better than a
    constant; may be negative."""
    drift: float
    """Change of the estimate over the last tenth of the steps. If it is far from 0, more steps are needed."""
    gap: float | None
    """Estimate minus the mean of the returns that were given, those of the policy itself; None without them."""


def fitted_q(
    policy: Policy, agent: Agent, sample: Callable[[np.random.Generator], Sample], first: Batch, *, steps: int,
    settings: OffPolicy = SETTINGS, rates: Rates = RATES, returns: ArrayLike | None = None,
    start: ArrayLike | None = None, seed: int = 0, tell: Callable[[int], None] | None = None,
) -> Fitted:  # fmt: skip
    """Estimate the mean discounted return of a policy.

    Args:
        policy: the evaluated policy; must not share weights with ``agent``.
        agent: untrained critics, from `offpolicy.agent.make_agent`; they are trained. Its actor's scores are not used.
        sample: draws the transitions of a step, with one reward each (``n_step`` of 1: sums of several are those of the
            behavior), such as `offpolicy.loop.OffPolicySetup.sample`. Discounts are in the transitions.
        first: first observations of the episodes.
        steps: gradient steps, >= 1, see `usual_steps`.
        settings: of critics, targets and PopArt; the loss of the actor plays no part.
        rates: learning rates and clipping.
        returns: discounted returns of recorded episodes if the evaluated policy recorded them, shape (episodes,), for
            ``gap``.
        start: values that those of the critics begin about, shape (n,), such as the discounted rewards to go of the
            record; without them, values begin about the mean reward. Has an effect with PopArt only.
        seed: seed of the samples and of the interval.
        tell: called with the number of steps so far.

    Raises:
        InputError: no steps, no episodes, a return that is not finite, settings that clone, or the critics diverged.
    """
    episodes = first.queue_offsets.shape[0] - 1
    recorded = None if returns is None else np.asarray(returns, np.float64)
    for field, is_bad, problem, fix in (
        ("steps", steps < 1, f"is {steps}", "give 1 or more"),
        ("first", episodes < 1, "has no episodes", "give the first observation of each"),
        ("settings", settings.loss in ("clone", "soft") or settings.warm_up_steps > 0,
         f"have the loss {settings.loss} and {settings.warm_up_steps} steps of warm-up",
         'give loss = "binary" and no warm-up: a fixed policy has no entropy to earn and nothing to copy'),
        ("returns", recorded is not None and not (recorded.size and np.isfinite(recorded).all()),
         "are empty or not finite", "give one number per recorded episode"),
    ):  # fmt: skip
        if is_bad:
            raise InputError(problem, field=field, fix=fix)
    random, learner = np.random.default_rng(seed), Learner(agent, settings, rates, policy=policy)
    if start is not None and learner.popart is not None:
        learner.popart.update(torch.as_tensor(np.asarray(start)), [])
    before = np.zeros(episodes)
    for step in range(steps):
        if step == int(0.9 * steps):
            before = _values(learner, first)
        learner.step(sample(random))
        if tell is not None:
            tell(step + 1)
    found = _values(learner, first)
    checked = [learner.residuals(sample(random)) for _ in range(CHECKED)]
    error, target = (torch.cat(part).double() for part in zip(*checked, strict=True))
    if not (np.isfinite(found).all() and torch.isfinite(error).all()):
        fix = "lower the learning rate of the critics, or turn PopArt on"
        raise InputError("are not finite: the critics diverged", field="critics", fix=fix)
    square, spread = float(error.square().mean()), float(target.var(unbiased=False))
    made = estimate(found[:, None], np.ones((episodes, 1)), seed=seed)
    drift = float(found.mean() - before.mean())
    if abs(drift) > DRIFTING * abs(made.value):
        made = replace(made, caution=f"changed by {drift:.3g} over the last tenth of the steps: give more of them")
    return Fitted(
        made, drift=drift, residual=square**0.5, explained=1.0 - square / spread if spread > 0 else float(square == 0),
        gap=None if recorded is None else made.value - float(recorded.mean()),
    )  # fmt: skip


def usual_steps(gamma: float, longest: int, settings: OffPolicy = SETTINGS) -> int:
    """Gradient steps after which values have grown to 95 % of their size.

    A target follows its critic over ``target_delay / tau`` steps, and hands on a value by one decision. Rewards count
    over ``1 / (1 - gamma)`` decisions, or to the end of an episode: values grow over the product, which is taken three
    times.

    Args:
        gamma: discount, 0 to 1.
        longest: decisions of the longest episode, >= 1.
        settings: of the targets.
    """
    horizon = min(1.0 / max(1.0 - gamma, 1e-9), float(longest))
    return math.ceil(round(TIMES * horizon * settings.target_delay / settings.tau, 6))


def _values(learner: Learner, first: Batch) -> Floats:
    return learner.state_values(first).double().cpu().numpy()
