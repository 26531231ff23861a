"""Training by PPO: each epoch draws windows, simulates them, updates the networks, possibly validates, and saves."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from greenbatch.learning.networks import build
from greenbatch.learning.runs import windows
from greenbatch.learning.runs.folder import RunFolder
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.training.advantages import gae, group_relative, normalized, rewards_to_go
from greenbatch.learning.training.frame import Record, Setup, Tell, Training, Validation, Watch, run_training
from greenbatch.learning.training.ppo import Learner, Report, UpdateSettings
from greenbatch.learning.training.rollout import Trajectories, collect
from greenbatch.learning.training.state import State
from greenbatch.presets.shapes import shapes_of

__all__ = ["Training", "TrainingSetup", "Validation", "train"]


class TrainingSetup(Setup):
    """Networks, environments and windows of a plan on this machine."""

    @cached_property
    def learner(self) -> Learner:
        """Untrained networks and their optimizers."""
        settings = self.settings
        seed = windows.random_seed(settings.seed, 0, "weights")
        actor, critic = build(self.preset.network, shapes_of(self.preset), seed)
        used = critic.to(self.device) if settings.advantage == "gae" else None
        return Learner(actor.to(self.device), used, self.numbers(0.0))

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
        played = collect(env, starts.tolist(), learner.actor, learner.critic, random, self.device)
        return played, np.repeat(np.arange(made.windows), made.rollouts)

    def learn(self, epoch: int, progress: float, played: Trajectories, group: windows.Ints) -> Report:
        """Update the networks from an epoch's trajectories."""
        made = self.settings
        if made.advantage == "group":
            advantages, targets = group_relative(played.rewards, played.offsets, group, dense=made.dense_groups), None
        else:
            advantages = gae(played.rewards, played.values, played.offsets, made.gamma, made.gae_lambda)
            returns = made.critic_target == "returns"
            to_go = rewards_to_go(played.rewards, played.offsets, made.gamma)
            targets = to_go if returns else advantages + played.values
        if made.normalize:
            advantages = normalized(advantages)
        random = self.generator(epoch, "minibatches", torch.device("cpu"))
        return self.learner.update(played, advantages, targets, random, self.numbers(progress))


class PolicyTraining(Training):
    """A training in a folder, resumed from its last checkpoint."""

    setup: TrainingSetup

    def simulate_and_update(self) -> None:
        counters, settings, progress = self.state.counters, self.setup.settings, self.progress
        begun = time.perf_counter()
        played, group = self.setup.collect(counters.epoch, progress)
        report = self.setup.learn(counters.epoch, progress, played, group)
        seconds = time.perf_counter() - begun
        counters.epoch += 1
        counters.decisions += len(played.rows)
        self.check_finite((report.policy_loss, report.value_loss, report.kl, report.gradient_norm))
        averaging = settings.swa
        if averaging.start < 1.0 and progress >= averaging.start and counters.epoch % averaging.every == 0:
            self.state.add_to_average()
        record = self._figures(played, report, progress, seconds)
        if counters.epoch % settings.validation.every == 0:
            record |= self.validated()
        self.save(record)

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
