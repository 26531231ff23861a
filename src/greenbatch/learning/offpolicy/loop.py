"""Off-policy training: fill the buffer once, then each epoch simulates windows, takes gradient steps, and saves.

A checkpoint does not contain the buffer but the actions that filled it: when a training resumes, the simulator repeats
their windows and writes the same transitions again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from greenbatch.datasets.dataset import Dataset, check_fits, read
from greenbatch.datasets.recording import RECORDED, Recording, recording
from greenbatch.datasets.tables import Tables
from greenbatch.errors import InputError
from greenbatch.learning.discounts import discounts
from greenbatch.learning.offpolicy.agent import make_agent
from greenbatch.learning.offpolicy.behavior import (
    Behavior,
    Exploring,
    Played,
    Recorded,
    dataset_load,
    play_loads,
    recorded_loads,
)
from greenbatch.learning.offpolicy.buffer import Replay, check_memory
from greenbatch.learning.offpolicy.learner import FIGURES, Learner, Rates, Sample
from greenbatch.learning.offpolicy.tables import batch_of
from greenbatch.learning.runs import windows
from greenbatch.learning.runs.checkpoint import FIX, STATE, Checkpoint
from greenbatch.learning.runs.folder import RunFolder
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.training.frame import Record, Setup, Tell, Training, Watch, run_training
from greenbatch.learning.training.state import State
from greenbatch.models.tensors import Tensors
from greenbatch.presets.off_policy import NEEDED, OffPolicy
from greenbatch.presets.shapes import shapes_of
from greenbatch.schedulers import scheduler

FILL = 0
"""Number of the windows that fill the buffer; epochs count from 1."""


class OffPolicySetup(Setup):
    """Networks, environments, windows and the buffer of a plan on this machine."""

    def __init__(self, plan: Plan, device: torch.device, tell: Tell | None = None) -> None:
        """Prepare the tables.

        Raises:
            InputError: a key has no effect.
        """
        super().__init__(plan, device, tell)
        if plan.settings.off_policy is None:
            raise InputError("is missing", field="training.off_policy", fix="add the table")
        self.own: OffPolicy = plan.settings.off_policy
        if others := sorted(set(plan.preset.training) - NEEDED):
            problem = f"has no effect on an off-policy training, which uses {', '.join(sorted(NEEDED))}"
            raise InputError(problem, field=f"training.{others[0]}", fix="leave it out")
        self.shapes = shapes_of(self.preset)
        self.tables = Tables(self.shapes, plan.settings.jobs)

    @cached_property
    def replay(self) -> Replay:
        """The buffer, empty at first; of a setup that trains nothing it takes no memory."""
        return Replay(self.tables.fields, self.own.buffer)

    def check(self) -> None:
        """As `Setup.check`; also that the buffer takes no more memory than it may, and what fills it can be had."""
        check_memory(self.tables.fields, self.own.buffer, self.own.memory_gb)
        if RECORDED in self.own.schedulers and not self.own.dataset:
            scheduler(RECORDED).program(self.plan.scenario.workload)  # refuses a trace without waits
        super().check()
        if self.own.dataset:
            self.dataset  # noqa: B018  (read once)
        elif self.own.schedulers:
            self.recording()

    @cached_property
    def learner(self) -> Learner:
        """Untrained networks and their optimizers."""
        made = self.settings
        seed = windows.random_seed(made.seed, 0, "weights")
        agent = make_agent(self.preset.network, self.shapes, self.own.critics, seed)
        for module in agent:
            if module is not None:
                module.to(self.device)
        return Learner(agent, self.own, Rates(made.actor_lr, made.critic_lr, made.adam_eps, made.grad_clip or None))

    def collect(self, number: int, behavior: Behavior) -> list[Played]:
        """Write the windows of a number, `FILL` or an epoch, into the buffer; returns them without observations."""
        made, found = self.settings, []
        for played in self._loads(number, behavior):
            discount = discounts(played.time_s, played.offsets, made.gamma, made.gamma_s)
            self.replay.add(
                played.seen, played.actions, played.rewards, played.offsets, discounts=discount, n_step=self.own.n_step
            )
            found.append(played._replace(seen={}))
            if self._tell is not None and number == FILL:
                done = sum(len(each.returns) for each in found)
                self._tell("windows that fill the buffer", done, max(self.own.fill_windows, done))
        return found

    def _loads(self, number: int, behavior: Behavior) -> Iterator[Played]:
        """Windows of a number: read, recorded or simulated, some at a time."""
        made, own = self.settings, self.own
        if number == FILL and own.dataset:
            yield dataset_load(self.dataset)
            del self.dataset  # the buffer has it now
        elif number == FILL and own.schedulers:
            yield from recorded_loads(self.recording(), self.tables)
        else:
            count = own.fill_windows if number == FILL else made.windows
            starts = windows.draw(self.training_starts(0.0), count, made.seed, number).tolist()
            yield from play_loads(self.training_environment(0.0), starts, self.tables, behavior, self.device)

    def recording(self) -> Recording:
        """The windows that fill the buffer, under their schedulers.

        Raises:
            InputError: there is no such scheduler, or its decisions cannot be those of the preset.
        """
        made, own, episode_s = self.settings, self.own, self.training_environment(0.0).episode_s
        return recording(
            self.plan.scenario, self.preset, own.schedulers, shares=own.shares or None, jobs=made.jobs,
            starts=windows.draw(self.training_starts(0.0), own.fill_windows, made.seed, FILL), episode_s=episode_s,
            threads=self.plan.threads,
        )  # fmt: skip

    @cached_property
    def dataset(self) -> Dataset:
        """The dataset that fills the buffer.

        Raises:
            InputError: it is damaged, of another scenario, of what the preset does not observe, or of other windows.
        """
        key, pools = "training.off_policy.dataset", self.plan.scenario.rules.pools
        if not Path(self.own.dataset).is_dir():
            fix = "give the --out of greenbatch record"
            raise InputError(f"{self.own.dataset} is not a folder", field=key, fix=fix)
        dataset = read(self.own.dataset)
        check_fits(dataset, self.plan.scenario, self.preset)
        own = {"jobs": self.settings.jobs, "episode_s": (pools and pools.episode_s) or self.settings.episode_s}
        for name, ours in own.items():
            if (theirs := getattr(dataset.record, name)) != ours:
                problem = f"has windows with {name} = {theirs}, the training {ours}"
                raise InputError(problem, file=dataset.folder, field=name, fix=f"set training.{name}={theirs}")
        if len(dataset) > self.own.buffer:
            problem = f"has {len(dataset):,} decisions, more than training.off_policy.buffer"
            fix = f"set training.off_policy.buffer={len(dataset)}"
            raise InputError(problem, file=dataset.folder, field=key, fix=fix)
        return dataset

    def behavior(self, number: int, decisions: int) -> Behavior:
        """Who acts in the windows of a number, after some decisions of the actor."""
        random = self.generator(number, "actions", self.device)
        if number == FILL:
            return Exploring(None, 1.0, random)
        return Exploring(self.learner.agent.actor, self.own.exploring(decisions), random)

    def learn(self, epoch: int) -> dict[str, float]:
        """Take the gradient steps of an epoch; returns the means of `FIGURES`."""
        random = np.random.default_rng(windows.random_seed(self.settings.seed, epoch, "minibatches"))
        figures = torch.zeros(len(FIGURES), dtype=torch.float64)
        for _ in range(self.own.steps):
            figures += self.learner.step(self.sample(random)).double().cpu()
        return dict(zip(FIGURES, (figures / self.own.steps).tolist(), strict=True))

    def sample(self, random: np.random.Generator) -> Sample:
        """Transitions of a gradient step."""
        replay = self.replay
        places = replay.draw(self.own.batch, random)
        done = replay.outcomes(places)
        actions, rewards, onward = (torch.from_numpy(part).to(self.device) for part in done)
        seen = batch_of(replay.seen(places), self.device)
        if self.learner.clones:  # what follows plays no part
            return Sample(seen, actions, rewards, onward, seen)
        return Sample(seen, actions, rewards, onward, batch_of(replay.seen(replay.following(places)), self.device))


class _State(State):
    """State of an off-policy training: also gradient steps, and the actions that filled the buffer."""

    def __init__(self, setup: OffPolicySetup) -> None:
        super().__init__(setup.learner)
        self.setup = setup
        self.numbers: list[int] = []
        """Numbers of the windows in the buffer, from the oldest on."""
        self.asked: list[windows.Ints] = []
        """Rows chosen in them, in the order in which they were asked for."""

    def remember(self, number: int, played: list[Played]) -> None:
        """Keep the actions of windows; forget those whose transitions have all been overwritten."""
        self.numbers.append(number)
        self.asked.append(np.concatenate([each.asked for each in played]))
        while sum(map(len, self.asked[1:])) >= self.setup.replay.capacity:
            del self.numbers[0], self.asked[0]

    def checkpoint(self) -> Checkpoint:
        """The whole state, ready to be saved."""
        saved = super().checkpoint()
        asked = np.concatenate([np.zeros(0, np.int64), *self.asked])
        beside: Tensors = {
            "replay/numbers": np.array(self.numbers, np.int64),
            "replay/lengths": np.array(list(map(len, self.asked)), np.int64),
            "replay/rows": asked.astype(np.min_scalar_type(int(asked.max(initial=0)))),
            "replay/total": np.array([self.setup.replay.total, self.setup.learner.taken], np.int64),
        }
        return saved._replace(tensors={**saved.tensors, **beside})

    def restore(self, saved: Checkpoint, folder: Path) -> None:
        """Restore the checkpoint of a folder; the buffer is filled again.

        Raises:
            InputError: it is damaged, or belongs to another training.
        """
        super().restore(saved, folder)
        replay = self.setup.replay
        try:
            total, taken = saved.tensors["replay/total"].tolist()
            lengths = saved.tensors["replay/lengths"].tolist()
            rows = np.split(saved.tensors["replay/rows"].astype(np.int64), np.cumsum(lengths)[:-1])
            self.numbers = saved.tensors["replay/numbers"].tolist()
            self.asked = rows if lengths else []
            self.setup.learner.taken = taken
            replay.total = total - sum(lengths)
            for number, asked in zip(self.numbers, self.asked, strict=True):
                self.setup.collect(number, Recorded(asked))
            if replay.total != total:
                raise ValueError("the windows have another number of decisions")
        except (KeyError, IndexError, TypeError, ValueError):
            problem = "does not contain the actions that filled this training's buffer"
            raise InputError(problem, file=folder / STATE, fix=FIX) from None


class OffPolicyTraining(Training):
    """An off-policy training in a folder, resumed from its last checkpoint."""

    setup: OffPolicySetup
    state: _State

    def make_state(self) -> _State:
        """The state at the beginning."""
        return _State(self.setup)

    def simulate_and_update(self) -> None:
        """Simulate, take gradient steps, possibly validate, and save."""
        counters, setup, own = self.state.counters, self.setup, self.setup.own
        epoch, begun = counters.epoch + 1, time.perf_counter()
        if counters.epoch == 0 and (own.fill_windows or own.dataset):
            self._collect(FILL, 0)
        record: Record = {"epoch": epoch}
        if own.simulates(epoch):
            epsilon = own.exploring(counters.decisions)
            played = self._collect(epoch, counters.decisions)
            decisions = sum(len(each.actions) for each in played)
            counters.decisions += decisions
            returns = np.concatenate([each.returns for each in played])
            terms = np.concatenate([each.terms for each in played]).mean(axis=0)
            record |= {
                "decisions": decisions, "decisions_per_s": round(decisions / (time.perf_counter() - begun), 1),
                "return": float(returns.mean()), "return_std": float(returns.std()), "epsilon": epsilon,
                **dict(zip(setup.preset.reward.terms, terms.tolist(), strict=True)),
            }  # fmt: skip
        begun = time.perf_counter()
        figures = setup.learn(epoch)
        seconds = time.perf_counter() - begun
        counters.epoch = epoch
        self.check_finite(list(figures.values()))
        record |= {"steps": setup.learner.taken, "steps_per_minute": round(60 * own.steps / seconds, 1)}
        record |= {"stored": len(setup.replay), **figures}
        if epoch % setup.settings.validation.every == 0:
            record |= self.validated()
        self.save(record)

    def _collect(self, number: int, decisions: int) -> list[Played]:
        played = self.setup.collect(number, self.setup.behavior(number, decisions))
        self.state.remember(number, played)
        return played


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
    """Train in a folder; an interrupted training resumes. Arguments and errors as for `training.loop.train`."""

    def begin(setup: OffPolicySetup, home: RunFolder, watch: Watch, tensorboard: bool) -> OffPolicyTraining:
        return OffPolicyTraining(setup, home, watch, tensorboard=tensorboard)

    return run_training(
        plan, folder, prepare=OffPolicySetup, begin=begin, watch=watch, tell=tell, started=started,
        tensorboard=tensorboard, replace_earlier=replace_earlier,
    )  # fmt: skip
