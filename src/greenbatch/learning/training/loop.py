"""The training loop: each epoch draws windows, simulates them, updates the networks, possibly validates, and saves.

The weights depend only on the plan: every random number comes from (seed, epoch, purpose), so an interrupted training
resumes from its last checkpoint to the same bytes (on a CPU, with the same machine, versions and number of threads, and
limited by epochs rather than minutes).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from greenbatch.envs.batch import BatchEnv
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.learning.networks import build
from greenbatch.learning.runs import windows
from greenbatch.learning.runs.checkpoint import STATE, load_checkpoint
from greenbatch.learning.runs.folder import CHECKPOINT, EVENTS, LOG, RunFolder, begun, check_same, open_run
from greenbatch.learning.runs.log import Log, Scalars
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.runs.records import training_record
from greenbatch.learning.training.advantages import gae, group_relative, normalized, rewards_to_go
from greenbatch.learning.training.device import device_of, prepared
from greenbatch.learning.training.ppo import Learner, Report, UpdateSettings
from greenbatch.learning.training.rollout import Trajectories, collect, play
from greenbatch.learning.training.state import State
from greenbatch.models.model import LARGEST_BYTES, MODEL, save_model
from greenbatch.models.tensors import Tensors
from greenbatch.presets.preset import resolve
from greenbatch.presets.shapes import shapes_of

Record = dict[str, Any]
Watch = Callable[[Record], None]
"""Called with the figures of every epoch, as in the log."""
Tell = Callable[[str, int, int], None]
"""Called with (task, done, total) during long tasks."""


class Validation(NamedTuple):
    """Results of an actor on the validation windows, by arg-max."""

    figure: float
    """Mean reward of the preset over the windows."""
    terms: dict[str, float]
    """Mean of every reward term."""


class TrainingSetup:
    """Networks, environments and windows of a plan on this machine."""

    def __init__(self, plan: Plan, device: torch.device, tell: Tell | None = None) -> None:
        self.plan, self.settings, self.device = plan, plan.settings, device
        self.preset = resolve(plan.preset, plan.scenario)
        self._tell = tell
        self._environments: dict[tuple[int, int], BatchEnv] = {}
        self._starts: dict[tuple[int, bool], windows.Ints] = {}
        check = self.settings.validation
        self.validation_starts = windows.validation_starts(plan.scenario, check.windows, check.jobs)

    def check(self) -> None:
        """Build everything once, so that errors appear before the first epoch.

        Raises:
            InputError: there are no windows, a term, backfilling or network is unknown, or the actor is too large.
        """
        made = self.settings
        known = self.preset.reward.terms
        for number, stage in enumerate(made.curriculum):
            for name in set(stage.weights) - set(known):
                fix = "use one of " + ", ".join(known)
                raise InputError(f"the reward has no term {name!r}", field=f"training.curriculum.{number}", fix=fix)
        for progress in sorted({0.0, made.filter.share % 1.0, *(stage.start for stage in made.curriculum)}):
            self.training_starts(progress)
        self.training_environment(0.0)
        if len(self.validation_starts):
            self.environment(made.validation.jobs, len(self.validation_starts))
        size = 4 * sum(value.numel() for value in self.learner.actor.state_dict().values())
        if size > LARGEST_BYTES:
            problem = f"the actor has {size:,} bytes of weights, more than {LARGEST_BYTES:,}"
            raise InputError(problem, field="network", fix="take a smaller network")

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

    def environment(self, jobs: int, count: int) -> BatchEnv:
        """An environment for ``count`` parallel windows of ``jobs`` jobs, cached."""
        if (jobs, count) not in self._environments:
            self._environments[jobs, count] = BatchEnv(
                self.plan.scenario, self.preset, environments=count, jobs=jobs, backfill=self.plan.backfill,
                threads=self.plan.threads,
            )  # fmt: skip
        return self._environments[jobs, count]

    def training_environment(self, progress: float) -> BatchEnv:
        """The environment of an epoch."""
        made = self.settings
        rollouts = made.windows * made.rollouts
        return self.environment(made.stage(progress)[0], min(made.environments or rollouts, rollouts))

    def training_starts(self, progress: float) -> windows.Ints:
        """First jobs of all possible windows of an epoch."""
        made, plan = self.settings, self.plan
        jobs, _ = made.stage(progress)
        narrow = made.filter.kind == "median" and progress < made.filter.share
        if (jobs, narrow) not in self._starts:
            reserved = windows.jobs_of(self.validation_starts, made.validation.jobs)
            starts = windows.training_starts(plan.scenario, jobs, plan.windows, reserved=reserved)
            if narrow:
                tell = self._tell
                shown = None if tell is None else lambda done, all_: tell("windows under SJF", done, all_)
                metric = windows.sjf_metric(plan.scenario, jobs, plan.backfill, made.filter.metric, shown)
                starts = windows.filtered(starts, made.filter.samples, made.seed, metric).starts
            self._starts[jobs, narrow] = starts
        return self._starts[jobs, narrow]

    def collect(self, epoch: int, progress: float) -> tuple[Trajectories, windows.Ints]:
        """Simulate an epoch's windows; also return the window number of every trajectory."""
        made = self.settings
        _, weights = made.stage(progress)
        starts = np.repeat(windows.draw(self.training_starts(progress), made.windows, made.seed, epoch), made.rollouts)
        env = self.training_environment(progress)
        terms = self.preset.reward.terms
        env.weights[:] = [weights.get(name, terms[name]) for name in env.terms]
        learner = self.learner
        random = self._generator(epoch, "actions", self.device)
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
        random = self._generator(epoch, "minibatches", torch.device("cpu"))
        return self.learner.update(played, advantages, targets, random, self.numbers(progress))

    def validate(self, weights: Tensors | None = None) -> Validation:
        """Validate the actor, or one of the same kind with other weights."""
        actor = self.learner.actor
        if weights is not None:
            actor = copy.deepcopy(actor)
            actor.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
        starts = self.validation_starts.tolist()
        env = self.environment(self.settings.validation.jobs, len(starts))
        env.weights[:] = list(self.preset.reward.terms.values())
        _, terms = play(env, starts, actor, None, self.device)
        return Validation(
            float(np.mean(terms @ env.weights)), dict(zip(env.terms, terms.mean(axis=0).tolist(), strict=True))
        )

    def _generator(self, epoch: int, purpose: str, device: torch.device) -> torch.Generator:
        return torch.Generator(device).manual_seed(windows.random_seed(self.settings.seed, epoch, purpose))


class Training:
    """A training in a folder, resumed from its last checkpoint."""

    def __init__(self, setup: TrainingSetup, home: RunFolder, watch: Watch, *, tensorboard: bool) -> None:
        self.setup, self.home, self.watch = setup, home, watch
        self.state = State(setup.learner)
        self.restore()
        self.log = Log(home.folder / LOG, self.state.counters.log_bytes)
        self.scalars = Scalars()
        self._tensorboard = tensorboard
        self._clock = time.perf_counter() - self.state.counters.elapsed_s

    @property
    def progress(self) -> float:
        """Completed fraction of the training, in [0, 1]."""
        counters, minutes = self.state.counters, self.setup.plan.minutes
        if minutes is not None:
            return min(counters.elapsed_s / (60 * minutes), 1.0)
        return min(counters.epoch / self.setup.settings.epochs, 1.0)

    def run(self) -> None:
        """Run the remaining epochs and write the model."""
        counters, settings = self.state.counters, self.setup.settings
        if counters.epoch == 0 and counters.validated_epoch < 0:
            self._save({"epoch": 0, **self._validated()})
        while not counters.done:
            impatient = settings.patience and counters.stale >= settings.patience
            if self.progress >= 1.0 or impatient:
                self._finish()
            else:
                self._epoch()
        write_model(self.home.folder, self.setup, self.state)

    def restore(self) -> bool:
        """Go back to the last checkpoint; False if there is none."""
        saved = self.home.folder / CHECKPOINT
        if there := (saved / STATE).exists():
            self.state.restore(load_checkpoint(saved), saved)
        return there

    def close(self) -> None:
        """Close the files."""
        self.log.close()
        self.scalars.close()

    def _epoch(self) -> None:
        counters, settings, progress = self.state.counters, self.setup.settings, self.progress
        begun = time.perf_counter()
        played, group = self.setup.collect(counters.epoch, progress)
        report = self.setup.learn(counters.epoch, progress, played, group)
        seconds = time.perf_counter() - begun
        counters.epoch += 1
        counters.decisions += len(played.rows)
        self._check_finite(report)
        averaging = settings.swa
        if averaging.start < 1.0 and progress >= averaging.start and counters.epoch % averaging.every == 0:
            self.state.add_to_average()
        record = self._figures(played, report, progress, seconds)
        if counters.epoch % settings.validation.every == 0:
            record |= self._validated()
        self._save(record)

    def _finish(self) -> None:
        """Run outstanding validations and mark the training as done."""
        counters = self.state.counters
        record: Record = {"epoch": counters.epoch}
        if counters.validated_epoch != counters.epoch:
            record |= self._validated()
        if counters.averaged and len(self.setup.validation_starts):
            weights = self.state.averaged_weights()
            result = self.setup.validate(weights)
            self.state.offer(result.figure, result.terms, weights, averaged=True)
            record |= {"validation_average": result.figure}
        counters.done = True
        self._save(record | {"done": True})

    def _validated(self) -> Record:
        """Validate the current actor; return figures for the log."""
        counters = self.state.counters
        counters.validated_epoch = counters.epoch
        if not len(self.setup.validation_starts):
            return {}
        result = self.setup.validate()
        better = self.state.offer(result.figure, result.terms, self.state.actor_weights())
        terms = {f"validation_{name}": value for name, value in result.terms.items()}
        return {"validation": result.figure, "best": counters.best_figure, "better": better, **terms}

    def _save(self, record: Record) -> None:
        """Write one line of the log, then one checkpoint; a line without its checkpoint is cut off when resuming."""
        counters = self.state.counters
        counters.elapsed_s = time.perf_counter() - self._clock
        record = {**record, "elapsed_s": round(counters.elapsed_s, 3), "progress": self.progress}
        self.log.append(record)
        counters.log_bytes = self.log.length
        saved = self.state.checkpoint()
        name = f"epoch-{counters.epoch:06}" + ("-done" if counters.done else "")
        self.home.save(name, saved.tensors, saved.state)
        if self._tensorboard:
            self.scalars.open(self.home.folder / EVENTS)
        self.scalars.add(counters.epoch, record)
        self.watch(record)

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

    def _check_finite(self, report: Report) -> None:
        numbers = (report.policy_loss, report.value_loss, report.kl, report.gradient_norm)
        weights = self.state.actor_weights().values()
        if not (np.isfinite(numbers).all() and all(np.isfinite(value).all() for value in weights)):
            epoch = self.state.counters.epoch
            raise GreenbatchError(
                f"the training diverged in epoch {epoch}: a loss or weight is not finite (set training.actor_lr or "
                "training.critic_lr lower; the last finite state is in the checkpoint)"
            )


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
    device = device_of(plan.device)
    with prepared(plan.threads, device):
        if not replace_earlier and begun(folder):
            check_same(folder, plan)
        setup = TrainingSetup(plan, device, tell)
        setup.check()
        with open_run(folder, plan, replace_earlier=replace_earlier) as home:
            training = Training(setup, home, watch or (lambda _: None), tensorboard=tensorboard)
            if started is not None:
                started()
            try:
                training.run()
            except (KeyboardInterrupt, SystemExit):  # SystemExit: a termination signal
                if home.settled and training.restore():  # work since the checkpoint is discarded
                    write_model(folder, setup, training.state)
                raise
            finally:
                training.close()
        return training.state


def write_model(folder: Path, setup: TrainingSetup, state: State) -> None:
    """Write the current model of a training: the best actor on the validation windows, or the last one."""
    plan, settings, counters = setup.plan, setup.settings, state.counters
    best = settings.keep == "best" and bool(state.best)
    average = counters.best_averaged if best else bool(counters.averaged)
    weights = state.best if best else state.averaged_weights() if average else state.actor_weights()
    checked: Mapping[str, Any] = {"starts": setup.validation_starts.tolist(), "jobs": settings.validation.jobs}
    if best:
        checked = {**checked, "figure": counters.best_figure, "terms": counters.best_terms}
    record = training_record(plan, counters, kept="best" if best else "last", averaged=average)
    whole = {**record, "validation": checked}
    save_model(folder / MODEL, weights, plan.preset, whole, scenario=plan.scenario)
