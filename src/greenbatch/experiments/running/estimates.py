"""What recorded decisions say about a model that did not make them, and by simulation whether that is so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.datasets import Dataset, check_agent, check_fits, play, recording
from greenbatch.datasets.recording import RECORDED
from greenbatch.engine.program import beside
from greenbatch.errors import InputError
from greenbatch.learning.discounts import discounts, since_start
from greenbatch.learning.evaluation import Agreement, Estimate, agreement, per_episode

if TYPE_CHECKING:
    from greenbatch.engine.program import Scheduler
    from greenbatch.learning.evaluation.fitted import Fitted
    from greenbatch.models.model import Model
    from greenbatch.scenarios import Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Tell = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

MODEL = "the model"
"""Name of the model among the schedulers that are simulated."""
CLOSE = 0.1
"""Largest distance of a good estimate from the simulated value, relative to it."""
LOW = 0.5
"""Agreement, or explained share of the variance, below which an estimate has little to rest on."""


class Value(NamedTuple):
    """What episodes are worth, in the unit of the rewards; means over them."""

    discounted: float
    """Sum of the discounted rewards."""
    total: float
    """Sum of the rewards."""
    episodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Recorded decisions of a scheduler, or of all, beside what the model would have done."""

    agreement: Agreement | None
    """None if no decision has a choice."""
    at_random: float | None
    """Expected agreement, with a choice, of an agent that chooses uniformly among the valid actions. [-], 0 to 1"""
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """A model on a dataset."""

    model: str
    """Its folder."""
    dataset: str
    """Its folder."""
    scenario: str
    sampled: bool
    """Whether actions are drawn from the policy; otherwise the most probable one is taken."""
    behavior: str
    """Folder of the model whose probabilities importance sampling divides by; empty: the record is deterministic."""
    gamma: float
    """Discount."""
    gamma_s: float
    """Time over which it applies once; 0: from each decision to the next. [s]"""
    to_next: float
    """Mean discount from a decision to the next."""
    steps: int
    """Gradient steps of fitted Q evaluation."""
    seed: int
    schedulers: Mapping[str, Recorded]
    """By name; those without decisions are left out."""
    whole: Recorded
    """All decisions."""
    importance: Estimate | None
    """Weighted importance sampling per episode; None if the policy gives no episode any probability."""
    without_importance: str
    """Why there is none."""
    fitted: Fitted
    """Fitted Q evaluation; its gap is that to the simulated value."""
    simulated: Mapping[str, Value] | None
    """Value of each scheduler on all windows of the dataset; None unless simulated."""
    simulated_model: Value | None
    """The same of the model."""
    paced: bool
    """Whether the record has starts of a log that the agent cannot delay, as it has no row for waiting: in a simulation
    its jobs start as soon as they fit."""

    @property
    def distance(self) -> float | None:
        """Fitted Q evaluation relative to the simulated value, minus 1; None unless simulated, or if that is 0."""
        if self.simulated_model is None or not self.simulated_model.discounted:
            return None
        return (self.fitted.estimate.value - self.simulated_model.discounted) / abs(self.simulated_model.discounted)


def estimates(
    model: Model, dataset: Dataset, *, behavior: Model | None = None, sampled: bool = False,
    scenario: Scenario | None = None, gamma: float | None = None, steps: int | None = None, seed: int = 0,
    threads: int = 1, tell: Tell | None = None,
) -> Estimates:  # fmt: skip
    """Estimate the value of a model's policy from recorded decisions; requires torch.

    Args:
        model: a network that observes and does the same as the dataset's agent; what it was rewarded for plays no part.
        dataset: the decisions, with their rewards.
        behavior: a model of what the record did, such as one trained by behavior cloning on it.
        sampled: draw actions from the policy; by default the most probable one is taken.
        scenario: where to simulate the model and the recorded schedulers on the dataset's windows; None: do not.
        gamma: discount of a decision, 0 to 1; by default that of the model's training, over time if it is one.
        steps: gradient steps, >= 1; by default `fitted.usual_steps`.
        seed: seed of critics, samples, intervals and sampled actions.
        threads: threads.
        tell: called with how far it is.

    Raises:
        InputError: torch is missing, a model is no network without memory or does not fit the dataset, the dataset
            does not fit the scenario or has no decision with a choice, or an argument is out of range.
    """
    from greenbatch.learning.trainers import need_torch

    need_torch("estimating a policy from decisions")
    import torch

    from greenbatch.learning.evaluation.fitted import SETTINGS, fitted_q, usual_steps
    from greenbatch.learning.evaluation.policies import greedy, stochastic
    from greenbatch.learning.evaluation.recorded import Transitions, actor_of, decided, observed
    from greenbatch.learning.offpolicy.agent import make_agent
    from greenbatch.learning.training.advantages import rewards_to_go
    from greenbatch.learning.training.device import prepared
    from greenbatch.presets.shapes import shapes_of
    from greenbatch.schedulers import scheduler_table

    for each in (model, behavior):
        if each is not None:
            check_agent(dataset, each.preset, ("observation", "action"))
    if scenario is not None:
        check_fits(dataset, scenario, dataset.preset)
    trained = model.record.training.settings
    discount, period_s = (trained.gamma, trained.gamma_s) if gamma is None else (gamma, 0.0)
    if not 0 <= discount <= 1:
        raise InputError(f"is {discount:g}", field="gamma", fix="give a number from 0 to 1")
    longest = int(np.diff(dataset.offsets).max())
    to_next = discounts(dataset.time_s, dataset.offsets, discount, period_s)
    since = since_start(dataset.time_s, dataset.offsets, discount, period_s)
    usual = float(to_next.mean())
    count = usual_steps(usual, longest) if steps is None else steps
    say = tell or _silent
    with prepared(threads, torch.device("cpu")):
        policy = (stochastic if sampled else greedy)(actor_of(model))
        agent = make_agent(model.preset.network, shapes_of(model.preset), SETTINGS.critics, seed)
        done = decided(policy, dataset)
        acted = None if behavior is None else decided(stochastic(actor_of(behavior)), dataset).log_recorded
        whole = _recorded(dataset, done.actions, np.ones(len(dataset), np.bool_), since)
        if whole.agreement is None:
            problem = f"has no choice in any of {len(dataset):,} decisions"
            raise InputError(problem, file=dataset.folder, fix="record windows in which several jobs wait")
        weighted, problem = _importance(done.log_recorded, acted, dataset, since, seed)
        played, own = None, None
        if scenario is not None:
            deciders: dict[str, Scheduler] = scheduler_table(list(_names(dataset)))
            deciders[MODEL] = _own(model, dataset, sampled, seed)
            played = {
                name: _simulated(dataset, scenario, name, each, (discount, period_s), threads, say)
                for name, each in deciders.items()
            }
            own = played.pop(MODEL)
        fitted = fitted_q(
            policy, agent, Transitions(dataset, discount, gamma_s=period_s),
            observed(dataset, dataset.offsets[:-1]), steps=count, seed=seed,
            returns=None if own is None else [own.discounted],
            start=rewards_to_go(dataset.rewards, dataset.offsets, to_next),
            tell=lambda taken: say("steps of fitted Q evaluation", taken, count),
        )  # fmt: skip
    return Estimates(
        model=str(model.folder), dataset=str(dataset.folder), scenario=dataset.record.scenario, sampled=sampled,
        behavior="" if behavior is None else str(behavior.folder), gamma=discount, gamma_s=period_s,
        to_next=usual, steps=count, seed=seed,
        schedulers={name: _recorded(dataset, done.actions, dataset.schedulers == number, since)
                    for name, number in _names(dataset).items()},
        whole=whole, importance=weighted, without_importance=problem, fitted=fitted, simulated=played,
        simulated_model=own, paced=RECORDED in _names(dataset) and not dataset.preset.action.wait,
    )  # fmt: skip


def _silent(what: str, done: int, total: int) -> None:
    del what, done, total


def _names(dataset: Dataset) -> dict[str, int]:
    """The schedulers that have decisions -> their numbers."""
    return {each.name: number for number, each in enumerate(dataset.record.schedulers) if each.decisions}


def _recorded(dataset: Dataset, actions: Ints, own: Bools, since: Floats) -> Recorded:
    """The decisions ``own`` (N,), which are whole episodes, beside the policy's actions."""
    valid = dataset.masks[own].sum(1)
    contested = valid >= 2
    found = agreement(actions[own], dataset.actions[own], valid) if contested.any() else None
    lengths = np.add.reduceat(own.astype(np.int64), dataset.offsets[:-1])
    offsets = np.concatenate(([0], np.cumsum(lengths[lengths > 0])))
    return Recorded(
        agreement=found, at_random=float((1.0 / valid[contested]).mean()) if contested.any() else None,
        value=_value(dataset.rewards[own], offsets, np.ones(len(offsets) - 1, np.int64), since[own]),
    )  # fmt: skip


def _value(rewards: Floats, offsets: Ints, times: Ints, since: Floats) -> Value:
    """Mean over episodes, each of which counts some times; ``since``: discounts from their beginnings."""
    sums = (np.add.reduceat(each, offsets[:-1]) for each in (rewards * since, rewards))
    discounted, total = (float(np.average(each, weights=times)) for each in sums)
    return Value(discounted, total, int(times.sum()))


def _importance(
    log_policy: Floats, log_behavior: Floats | None, dataset: Dataset, since: Floats, seed: int
) -> tuple[Estimate | None, str]:
    """The estimate, or why there is none."""
    from greenbatch.learning.evaluation.importance import NoEpisode

    try:
        found = per_episode(
            log_policy, dataset.rewards * since, dataset.offsets, gamma=1.0, log_behavior=log_behavior, seed=seed
        )
    except NoEpisode as error:
        return None, error.problem
    return found, ""


def _own(model: Model, dataset: Dataset, sampled: bool, seed: int) -> Scheduler:
    """The model as a scheduler that acts as the dataset's agent."""
    from greenbatch.models.scheduler import model_scheduler

    options = {"sample": 1.0, "seed": float(seed)} if sampled else {}
    backfill, placement = beside(dataset.preset.backfill)
    return model_scheduler(MODEL, model, options, backfill, {}, placement)


def _simulated(
    dataset: Dataset,
    scenario: Scenario,
    name: str,
    decider: Scheduler,
    discount: tuple[float, float],
    threads: int,
    tell: Tell,
) -> Value:
    """The value of a scheduler on the windows of a dataset; those without any decision are left out."""
    record = dataset.record
    starts, times = np.unique(record.starts, return_counts=True)
    agent = dataset.preset.model_copy(update={"training": {}})  # the record has the length of the windows
    planned = recording(
        scenario, agent, {name: decider}, starts=starts, jobs=record.jobs, episode_s=record.episode_s,
        threads=threads,
    )  # fmt: skip
    played = [
        (each.rewards, np.diff(each.offsets), since_start(each.time_s, each.offsets, *discount))
        for each in play(planned, lambda done: tell(f"windows under {name}", done, len(starts)))
    ]
    rewards, lengths, since = (np.concatenate(each) for each in zip(*played, strict=True))
    offsets = np.concatenate(([0], np.cumsum(lengths[lengths > 0])))
    return _value(rewards, offsets, times[lengths > 0], since)
