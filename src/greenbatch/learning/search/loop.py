"""The loop of an evolutionary search, with the folder and guarantees of a training: files are written atomically, and
the result is the same bytes however often the search is interrupted.

Subclasses evaluate candidates: the weights of a look-ahead planner (`learning.search.planner`) or of a ranking
(`learning.search.ranking`). All candidates of a generation play the same windows and decide as the model will; windows
are drawn for each generation or fixed. All random numbers come from (seed, generation).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.learning.runs import windows
from greenbatch.learning.runs.checkpoint import FIX, STATE, load_checkpoint
from greenbatch.learning.runs.counters import Counters
from greenbatch.learning.runs.folder import CHECKPOINT, LOG, RunFolder
from greenbatch.learning.runs.log import Log
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.runs.records import training_record
from greenbatch.learning.search.evolution import Evolution
from greenbatch.models.model import MODEL, save_model
from greenbatch.models.onnx_builder import Weights
from greenbatch.presets.training import Search
from greenbatch.workers import Workers, pool

TAKEN = frozenset({"epochs", "windows", "jobs", "keep", "validation", "search", "seed", "threads"})
"""Keys of ``[training]`` that a search uses."""
Record = dict[str, Any]
Watch = Callable[[Record], None]
"""Called with the figures of each generation, as in the log."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Candidate(NamedTuple):
    """A candidate and what it plays, as it is sent to other processes."""

    place: int
    """Its place in the generation."""
    numbers: tuple[float, ...]
    windows: tuple[int, ...]
    """First job of each window, or number of each draw."""
    more: tuple[Any, ...] = ()
    """What else a window depends on, by kind of search."""


class Searching(ABC):
    """A search. The constructor validates the plan; `open` then starts or resumes it in a folder."""

    workers: Workers = 1
    """Where candidates are evaluated; the result does not depend on it."""
    _each: Callable[[Iterable[Candidate]], Iterable[tuple[Candidate, Floats]]]

    def __init__(self, plan: Plan, begin: Floats, *, stages: int = 1) -> None:
        """Validate the plan and prepare the first generation.

        Args:
            plan: the plan of the search.
            begin: center of the first generation, shape (n,).
            stages: number of models, found one after another; each starts from the result of the previous one.
        """
        self.plan, self.stages = plan, stages
        self.settings, self.search = plan.settings, search_settings(plan)
        if others := sorted(set(plan.preset.training) - TAKEN):
            problem = f"has no effect on a search, which uses {', '.join(sorted(TAKEN))}"
            raise InputError(problem, field=f"training.{others[0]}", fix="leave it out")
        if plan.minutes is None and self.settings.epochs % stages:
            problem = f"is {self.settings.epochs}, and {stages} models share the generations"
            raise InputError(problem, field="training.epochs", fix=f"give a multiple of {stages}")
        self.counters = Counters()
        self.evolution = self._fresh(begin)
        self.found: dict[str, Floats] = {}
        """Name -> weights of the stages begun so far."""
        self.starts = windows.training_starts(plan.scenario, self.settings.jobs, plan.windows)

    def open(self, home: RunFolder, watch: Watch) -> None:
        """Start in a folder, or resume from its last checkpoint.

        Args:
            home: the folder.
            watch: called after each generation.
        """
        self.home, self.watch = home, watch
        if (home.folder / CHECKPOINT / STATE).exists():
            self._restore()
        self.log = Log(home.folder / LOG, self.counters.log_bytes)
        self._clock = time.perf_counter() - self.counters.elapsed_s

    @abstractmethod
    def tried(self, stage: int, starts: Ints, random: np.random.Generator) -> tuple[Floats, Record]:
        """Sample a generation and evaluate it: objectives to minimize, shape (population,), and figures for the log."""

    @abstractmethod
    def evaluated(self, candidate: Candidate) -> Floats:
        """The figures of a candidate, in any process."""

    def played(self, candidates: Sequence[Candidate]) -> list[Floats]:
        """The figures of the candidates of a generation, in their order."""
        found = dict(self._each(candidates))
        return [found[candidate] for candidate in candidates]

    @abstractmethod
    def center(self, stage: int) -> dict[str, Floats]:
        """The current result of a stage: name in the checkpoint -> weights."""

    @abstractmethod
    def weights(self) -> Weights:
        """The weights of the model found so far."""

    def compared(self) -> Record:
        """The ``validation`` entry of ``model.json``; empty if candidates are not validated."""
        return {}

    def run(self) -> None:
        """Run the remaining generations and write the model: the center of the last generation of each stage."""
        with pool(self.evaluated, Elsewhere(type(self), self.plan), self.workers) as self._each:
            self._run()
        self.write_model()

    def _run(self) -> None:
        counters, stage = self.counters, self._stage()
        while stage < self.stages and not counters.done:
            record = self._generation(stage)
            counters.epoch += 1
            counters.elapsed_s = time.perf_counter() - self._clock
            self.found |= self.center(stage)
            following = self._stage()
            if following != stage:
                self.evolution = self._fresh(self.evolution.mean)
            stage = following
            self._save(record)
        if not counters.done:
            counters.done = True
            self._save({"done": True})

    def write_model(self) -> None:
        """Write the model found so far."""
        kept = "best" if self.counters.best_epoch >= 0 else "last"
        record = training_record(self.plan, self.counters, kept=kept, averaged=False)
        whole = {**record, "validation": self.compared()}
        save_model(self.home.folder / MODEL, self.weights(), self.plan.preset, whole, scenario=self.plan.scenario)

    @property
    def progress(self) -> float:
        """Fraction of the search that is done, in [0, 1]."""
        minutes = self.plan.minutes
        done = (
            self.counters.epoch / self.settings.epochs if minutes is None else self.counters.elapsed_s / (60 * minutes)
        )
        return min(done, 1.0)

    def _stage(self) -> int:
        """The stage of the next generation, or ``stages`` at the end; each has an equal share, but at least one."""
        if self.plan.minutes is None:
            return self.counters.epoch * self.stages // self.settings.epochs
        return min(int(self.progress * self.stages), len(self.found))

    def _fresh(self, mean: Floats) -> Evolution:
        return Evolution(mean.copy(), self.search.sigma, self.search.population, diagonal=self.search.diagonal)

    def _generation(self, stage: int) -> Record:
        """Evaluate the candidates of one generation on the same windows, and update the distribution."""
        epoch, made = self.counters.epoch, self.settings
        random = np.random.default_rng(windows.random_seed(made.seed, epoch, "actions"))
        if self.search.fixed_windows:
            starts = windows.spread(self.starts, made.windows)
        else:
            starts = windows.draw(self.starts, made.windows, made.seed, epoch)
        begun = time.perf_counter()
        values, record = self.tried(stage, starts, random)
        self.evolution.tell(values)
        jobs = len(values) * len(starts) * made.jobs
        self.counters.decisions += jobs
        rate = jobs / (time.perf_counter() - begun)
        return {"epoch": epoch + 1, **record, "sigma": self.evolution.sigma, "jobs_per_s": round(rate, 1)}

    def _save(self, record: Record) -> None:
        counters = self.counters
        record = {"epoch": counters.epoch, **record, "elapsed_s": round(counters.elapsed_s, 3)}
        record["progress"] = self.progress
        self.log.append(record)
        counters.log_bytes = self.log.length
        evolution = self.evolution
        tensors = {
            "mean": evolution.mean, "covariance": evolution.covariance, "path_sigma": evolution.path_sigma,
            "path_covariance": evolution.path_covariance,
            "steps": np.array([evolution.sigma, evolution.generation]),
            **{f"found/{name}": numbers for name, numbers in self.found.items()},
        }  # fmt: skip
        name = f"epoch-{counters.epoch:06}" + ("-done" if counters.done else "")
        self.home.save(name, tensors, counters.as_dict())
        self.watch(record)

    def _restore(self) -> None:
        place = self.home.folder / CHECKPOINT
        saved = load_checkpoint(place)
        self.counters = Counters.read(saved.state, place / STATE, FIX)
        try:
            if saved.tensors["mean"].shape != self.evolution.mean.shape:
                raise ValueError("the number of weights differs")
            sigma, generation = saved.tensors["steps"].tolist()
            self.evolution = Evolution(
                saved.tensors["mean"], sigma, self.search.population, saved.tensors["covariance"],
                saved.tensors["path_sigma"], saved.tensors["path_covariance"], int(generation), self.search.diagonal,
            )  # fmt: skip
        except (KeyError, TypeError, ValueError):
            raise InputError("contains a different search", file=place / STATE, fix=FIX) from None
        self.found = {
            key.removeprefix("found/"): value for key, value in saved.tensors.items() if key.startswith("found/")
        }


@dataclass
class Elsewhere:
    """Evaluates candidates in another process, which prepares the search with the first of them."""

    kind: Callable[[Plan], Searching]
    plan: Plan
    _searching: Searching | None = field(default=None, init=False)

    def __call__(self, candidate: Candidate) -> Floats:
        """The figures of a candidate."""
        if self._searching is None:
            self._searching = self.kind(replace(self.plan, threads=1))
        return self._searching.evaluated(candidate)


def search_settings(plan: Plan) -> Search:
    """The search settings of a plan.

    Raises:
        InputError: it has none, or asks for a device other than the CPU.
    """
    made = plan.settings.search
    if made is None:
        kind = plan.preset.network.get("kind")
        raise InputError("is missing", field="training.search", fix=f"a network of kind {kind} is found by a search")
    if plan.device != "cpu":
        raise InputError(f"is {plan.device}", field="--device", fix="a search runs on the cpu")
    return made
