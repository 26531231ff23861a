"""What every training of a network has: a setup that simulates and validates, and a loop that saves and resumes.

Subclasses say what an epoch does: `training.loop` (PPO) and `offpolicy.loop`. Weights depend only on the plan: every
random number comes from (seed, epoch, purpose), so an interrupted training resumes from its last checkpoint to the same
bytes (on a CPU, with the same machine, versions and number of threads, and limited by epochs rather than minutes).
"""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from greenbatch.envs.batch import BatchEnv
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.learning.networks import bytes_of, fitting
from greenbatch.learning.runs import windows
from greenbatch.learning.runs.checkpoint import STATE, load_checkpoint
from greenbatch.learning.runs.folder import CHECKPOINT, EVENTS, LOG, RunFolder, begun, check_same, open_run
from greenbatch.learning.runs.log import Log, Scalars
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.runs.records import training_record
from greenbatch.learning.training.device import device_of, prepared
from greenbatch.learning.training.rollout import play
from greenbatch.learning.training.state import Learner, State
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
    excess: float = 0.0
    """How far the means of constrained terms are beyond their bounds, relative to these: the largest."""


class Setup(ABC):
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
        size = bytes_of(self.learner.actor)
        if size > LARGEST_BYTES:
            problem = f"the actor has {size:,} bytes of weights, more than {LARGEST_BYTES:,}"
            fix = fitting(self.preset.network, shapes_of(self.preset), LARGEST_BYTES)
            raise InputError(problem, field="network", fix=fix)

    @property
    @abstractmethod
    def learner(self) -> Learner:
        """Networks and their optimizers, untrained at first."""

    def environment(self, jobs: int, count: int) -> BatchEnv:
        """An environment for ``count`` parallel windows of ``jobs`` jobs, cached."""
        if (jobs, count) not in self._environments:
            pools = self.plan.scenario.rules.pools
            whole = pools is not None and pools.episode_s  # the scenario's windows are episodes already
            self._environments[jobs, count] = BatchEnv(
                self.plan.scenario, self.preset, environments=count, jobs=jobs,
                episode_s=0.0 if whole else self.settings.episode_s, backfill=self.plan.backfill,
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
        means = dict(zip(env.terms, terms.mean(axis=0).tolist(), strict=True))
        bounds = self.settings.constraints.items()
        excess = max((constraint.excess(means[name]) for name, constraint in bounds), default=0.0)
        return Validation(float(np.mean(terms @ env.weights)), means, excess)

    def generator(self, epoch: int, purpose: str, device: torch.device) -> torch.Generator:
        """Random numbers of an epoch for a purpose, on a device."""
        return torch.Generator(device).manual_seed(windows.random_seed(self.settings.seed, epoch, purpose))


class Training(ABC):
    """A training in a folder, resumed from its last checkpoint."""

    def __init__(self, setup: Setup, home: RunFolder, watch: Watch, *, tensorboard: bool) -> None:
        self.setup, self.home, self.watch = setup, home, watch
        self.state = self.make_state()
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
            self.save({"epoch": 0, **self.validated()})
        while not counters.done:
            impatient = settings.patience and counters.stale >= settings.patience
            if self.progress >= 1.0 or impatient:
                self._finish()
            else:
                self.simulate_and_update()
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

    def make_state(self) -> State:
        """The state at the beginning."""
        return State(self.setup.learner)

    @abstractmethod
    def simulate_and_update(self) -> None:
        """Simulate, update, possibly validate, and save."""

    def _finish(self) -> None:
        """Run outstanding validations and mark the training as done."""
        counters = self.state.counters
        record: Record = {"epoch": counters.epoch}
        if counters.validated_epoch != counters.epoch:
            record |= self.validated()
        if counters.averaged and len(self.setup.validation_starts):
            weights = self.state.averaged_weights()
            result = self.setup.validate(weights)
            self.state.offer(result.figure, result.terms, weights, excess=result.excess, averaged=True)
            record |= {"validation_average": result.figure}
        counters.done = True
        self.save(record | {"done": True})

    def validated(self) -> Record:
        """Validate the current actor; return figures for the log."""
        counters = self.state.counters
        counters.validated_epoch = counters.epoch
        if not len(self.setup.validation_starts):
            return {}
        result = self.setup.validate()
        better = self.state.offer(result.figure, result.terms, self.state.actor_weights(), excess=result.excess)
        terms = {f"validation_{name}": value for name, value in result.terms.items()}
        return {"validation": result.figure, "best": counters.best_figure, "better": better, **terms}

    def save(self, record: Record) -> None:
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

    def check_finite(self, numbers: Sequence[float]) -> None:
        """Refuse losses or weights that are not finite."""
        weights = self.state.actor_weights().values()
        if not (np.isfinite(numbers).all() and all(np.isfinite(value).all() for value in weights)):
            epoch = self.state.counters.epoch
            raise GreenbatchError(
                f"the training diverged in epoch {epoch}: a loss or weight is not finite (set training.actor_lr or "
                "training.critic_lr lower; the last finite state is in the checkpoint)"
            )


def run_training(
    plan: Plan,
    folder: Path,
    *,
    prepare: Callable[[Plan, torch.device, Tell | None], Setup],
    begin: Callable[[Any, RunFolder, Watch, bool], Training],
    watch: Watch | None = None,
    tell: Tell | None = None,
    started: Callable[[], None] | None = None,
    tensorboard: bool = False,
    replace_earlier: bool = False,
) -> State:
    """Train in a folder, with the setup that ``prepare`` makes and the training that ``begin`` makes of it.

    The other arguments and the errors are those of `training.loop.train`.
    """
    device = device_of(plan.device)
    with prepared(plan.threads, device):
        if not replace_earlier and begun(folder):
            check_same(folder, plan)
        setup = prepare(plan, device, tell)
        setup.check()
        with open_run(folder, plan, replace_earlier=replace_earlier) as home:
            training = begin(setup, home, watch or (lambda _: None), tensorboard)
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


def write_model(folder: Path, setup: Setup, state: State) -> None:
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
