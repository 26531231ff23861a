"""Training by PPO: each epoch draws windows, simulates them, updates the networks, possibly validates, and saves."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from greenbatch.errors import InputError
from greenbatch.learning.discounts import discounts
from greenbatch.learning.networks import build
from greenbatch.learning.networks.layers import Critics
from greenbatch.learning.runs import windows
from greenbatch.learning.runs.checkpoint import FIX, STATE, Checkpoint
from greenbatch.learning.runs.folder import RunFolder
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.training.advantages import gae, group_relative, normalized, rewards_to_go
from greenbatch.learning.training.frame import Record, Setup, Tell, Training, Validation, Watch, run_training
from greenbatch.learning.training.multipliers import Multipliers, lagrangian
from greenbatch.learning.training.ppo import Learner, Report, UpdateSettings
from greenbatch.learning.training.rollout import Floats, Trajectories, collect
from greenbatch.learning.training.state import State, parts_of
from greenbatch.presets.shapes import shapes_of

__all__ = ["Training", "TrainingSetup", "Validation", "train"]


class TrainingSetup(Setup):
    """Networks, environments and windows of a plan on this machine."""

    @cached_property
    def learner(self) -> Learner:
        """Untrained networks and their optimizers."""
        settings = self.settings
        seed = windows.random_seed(settings.seed, 0, "weights")
        shapes = shapes_of(self.preset)
        actor, critic = build(self.preset.network, shapes, seed)
        if settings.advantage != "gae":
            return Learner(actor.to(self.device), None, self.numbers(0.0))
        of_costs = [build(self.preset.network, shapes, seed + 1 + k)[1] for k in range(len(settings.constraints))]
        used = Critics([critic, *of_costs]) if of_costs else critic
        return Learner(actor.to(self.device), used.to(self.device), self.numbers(0.0))

    def numbers(self, progress: float) -> UpdateSettings:
        """Settings of an epoch's update."""
        made = self.settings
        return UpdateSettings(
            passes=made.passes, critic_passes=made.critic_passes, minibatch=made.minibatch, clip=made.clip,
            entropy=made.entropy_weight(progress), target_kl=made.target_kl or None,
            max_gradient_norm=made.grad_clip or None, actor_rate=made.actor_lr * made.actor_lr_factor(progress),
            critic_rate=made.critic_lr * made.lr_factor(progress), adam_epsilon=made.adam_eps,
        )  # fmt: skip

    def collect(self, epoch: int, progress: float) -> tuple[Trajectories, windows.Ints]:
        """Simulate an epoch's windows; also return the window number of every trajectory."""
        made = self.settings
        _, weights = made.stage(progress)
        starts = np.repeat(windows.draw(self.training_starts(progress), made.windows, made.seed, epoch), made.rollouts)
        env = self.training_environment(progress)
        terms = self.preset.reward.terms
        env.weights[:] = [weights.get(name, terms[name]) for name in env.terms]
        learner = self.learner
        random = self.generator(epoch, "actions", self.device)
        costs = [env.terms.index(name) for name in made.constraints]
        played = collect(env, starts.tolist(), learner.actor, learner.critic, random, self.device, costs)
        return played, np.repeat(np.arange(made.windows), made.rollouts)

    def aims(
        self, played: Trajectories, group: windows.Ints, multipliers: Multipliers
    ) -> tuple[Floats, Floats | None]:  # fmt: skip
        """Advantages that the policy ascends (N,), and targets of the critic, (N,) or with costs (N, 1 + K)."""
        made, offsets = self.settings, played.offsets
        gains = np.column_stack([played.rewards, played.costs * multipliers.scales]).T
        if made.advantage == "group":  # weighed first: where rollouts hardly differ in a cost, the reward decides
            weighed = lagrangian(list(gains), multipliers.values)
            compared = group_relative(weighed, offsets, group, dense=made.dense_groups)
            return normalized(compared) if made.normalize else compared, None
        values = played.values.reshape(-1, len(gains)).T
        gamma = discounts(played.time_s, offsets, made.gamma, made.gamma_s)
        advantages = [gae(*each, offsets, gamma, made.gae_lambda) for each in zip(gains, values, strict=True)]
        if made.critic_target == "returns":
            aims = [rewards_to_go(each, offsets, gamma) for each in gains]
        else:
            aims = [advantage + value for advantage, value in zip(advantages, values, strict=True)]
        if made.normalize:
            advantages = [normalized(each) for each in advantages]
        return lagrangian(advantages, multipliers.values), np.column_stack(aims) if len(multipliers) else aims[0]

    def learn(
        self, epoch: int, progress: float, played: Trajectories, group: windows.Ints, multipliers: Multipliers
    ) -> Report:  # fmt: skip
        """Update the networks from an epoch's trajectories, with costs weighed by their multipliers."""
        combined, targets = self.aims(played, group, multipliers)
        random = self.generator(epoch, "minibatches", torch.device("cpu"))
        return self.learner.update(played, combined, targets, random, self.numbers(progress))


class ConstrainedState(State):
    """State of a training by PPO: also the multipliers of its constraints."""

    def __init__(self, setup: TrainingSetup) -> None:
        super().__init__(setup.learner)
        self.multipliers = Multipliers(setup.settings.constraints, setup.settings.controller)

    def checkpoint(self) -> Checkpoint:
        """The whole state, ready to be saved."""
        saved = super().checkpoint()
        beside = {f"multipliers/{name}": value for name, value in self.multipliers.arrays().items()}
        return saved._replace(tensors={**saved.tensors, **beside}) if len(self.multipliers) else saved

    def restore(self, saved: Checkpoint, folder: Path) -> None:
        """Restore the checkpoint of a folder.

        Raises:
            InputError: it is damaged, or belongs to another training.
        """
        super().restore(saved, folder)
        try:
            if len(self.multipliers):
                self.multipliers.restore(parts_of(saved.tensors)["multipliers"])
        except (KeyError, IndexError, ValueError):
            problem = "does not contain the multipliers of this training's constraints"
            raise InputError(problem, file=folder / STATE, fix=FIX) from None


class PolicyTraining(Training):
    """A training in a folder, resumed from its last checkpoint."""

    setup: TrainingSetup
    state: ConstrainedState

    def make_state(self) -> ConstrainedState:
        """The state at the beginning."""
        return ConstrainedState(self.setup)

    def simulate_and_update(self) -> None:
        counters, settings, progress = self.state.counters, self.setup.settings, self.progress
        begun = time.perf_counter()
        played, group = self.setup.collect(counters.epoch, progress)
        promised = self._promised(played)
        report = self.setup.learn(counters.epoch, progress, played, group, self.state.multipliers)
        seconds = time.perf_counter() - begun
        counters.epoch += 1
        counters.decisions += len(played.rows)
        self.check_finite((report.policy_loss, report.value_loss, report.kl, report.gradient_norm))
        averaging = settings.swa
        if averaging.start < 1.0 and progress >= averaging.start and counters.epoch % averaging.every == 0:
            self.state.add_to_average()
        record = self._figures(played, report, progress, seconds) | promised
        if counters.epoch % settings.validation.every == 0:
            record |= self.validated()
        self.save(record)

    def _promised(self, played: Trajectories) -> Record:
        """Move the multipliers by an epoch's costs; for each: weight, episodes beyond its bound, mean over bound."""
        settings, multipliers = self.setup.settings, self.state.multipliers
        columns = [list(self.setup.preset.reward.terms).index(name) for name in multipliers.names]
        episodes = played.terms[:, columns]
        weights = multipliers.update(episodes.mean(axis=0)) if columns else ()
        record: Record = {}
        for name, weight, values in zip(multipliers.names, weights, episodes.T, strict=True):
            constraint = settings.constraints[name]
            beyond = float(np.mean([constraint.excess(value) > 0 for value in values.tolist()]))
            share = float(values.mean()) / (constraint.bound or 1.0)
            record |= {f"multiplier_{name}": float(weight), f"beyond_{name}": beyond, f"of_bound_{name}": share}
        return record

    def _figures(self, played: Trajectories, report: Report, progress: float, seconds: float) -> Record:
        setup, epoch = self.setup, self.state.counters.epoch
        jobs, _ = setup.settings.stage(progress)
        numbers = setup.numbers(progress)
        delays = np.bincount(played.delays.numpy(), minlength=len(setup.preset.action.delays))
        terms = dict(zip(setup.preset.reward.terms, played.terms.mean(axis=0).tolist(), strict=True))
        return {
            "epoch": epoch, "decisions": len(played.rows), "decisions_per_s": round(len(played.rows) / seconds, 1),
            "jobs": jobs, "return": float(played.returns.mean()), "return_std": float(played.returns.std()), **terms,
            "policy_loss": report.policy_loss, "value_loss": report.value_loss, "entropy": report.entropy,
            "kl": report.kl, "clipped": report.clipped, "gradient_norm": report.gradient_norm,
            "passes": report.passes, "actor_lr": numbers.actor_rate, "delays": delays.tolist(),
        }  # fmt: skip


def train(
    plan: Plan,
    folder: Path,
    *,
    watch: Watch | None = None,
    tell: Tell | None = None,
    started: Callable[[], None] | None = None,
    tensorboard: bool = False,
    replace_earlier: bool = False,
) -> State:
    """Train in a folder; an interrupted training resumes.

    Args:
        plan: the plan of the training.
        folder: absent, empty, or with a training of the same plan.
        watch: called with the figures of every epoch.
        tell: called during long tasks before the first epoch.
        started: called once all checks have passed.
        tensorboard: also write events for TensorBoard, if it is installed.
        replace_earlier: replace an earlier training in the folder, once this one can be resumed.

    Returns:
        The final state. The trained actor is in ``folder/model``.

    Raises:
        InputError: the plan is inconsistent or does not match the folder; nothing is written.
        GreenbatchError: the training diverged.
        KeyboardInterrupt: stopped by the user; finished epochs are saved and their model is written.
    """

    def begin(setup: TrainingSetup, home: RunFolder, watch: Watch, tensorboard: bool) -> PolicyTraining:
        return PolicyTraining(setup, home, watch, tensorboard=tensorboard)

    return run_training(
        plan, folder, prepare=TrainingSetup, begin=begin, watch=watch, tell=tell, started=started,
        tensorboard=tensorboard, replace_earlier=replace_earlier,
    )  # fmt: skip
