"""The loop of a search for prices: generation after generation, in the same folder and with the same promises as a
training: whole at any moment, and the same bytes however often it is interrupted.

Every generation draws new windows and new weather (the same series, years later), the same for all its candidates. All
random numbers come from (seed, generation).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.learning import runs, windows
from greenbatch.learning.candidates import TERMS, Trial, initial_point, numbers_of, objective
from greenbatch.learning.checkpoint import STATE, load_checkpoint, save_checkpoint
from greenbatch.learning.counters import Counters
from greenbatch.learning.evolution import Evolution
from greenbatch.learning.log import Log
from greenbatch.learning.model import save_model, training_record
from greenbatch.learning.plan import Plan
from greenbatch.learning.settings import Search

Record = dict[str, Any]
Floats = NDArray[np.float64]

YEAR_S = 365 * 86_400
LINEAR = "linear"
"""Kind of network that is a ranking: `learning.ranking` searches for its weights."""


class Searching:
    """A search in a folder, from its last checkpoint on."""

    def __init__(self, plan: Plan, folder: Path, watch: Callable[[Record], None]) -> None:
        self.plan, self.folder, self.watch = plan, folder, watch
        self.settings = plan.settings
        self.search = search_of(plan)
        self.counters = Counters()
        self.evolution = self._fresh(initial_point())
        self.found: dict[str, Floats] = {}
        """Stretch -> numbers, of those that are done."""
        if (folder / runs.CHECKPOINT / STATE).exists():
            self._restore()
        self.starts = windows.training_starts(plan.scenario, self.settings.jobs, plan.windows)
        self.trial = Trial(plan.scenario, plan.preset, self.settings.jobs, self.settings.windows, plan.threads)
        self.log = Log(folder / runs.LOG, self.counters.log_bytes)
        self._clock = time.perf_counter() - self.counters.elapsed_s

    def run(self) -> None:
        """All generations that are left, and the model."""
        counters, models = self.counters, len(self.search.stretch)
        each = max(self.settings.epochs // models, 1)
        while counters.epoch < each * models and self._progress() < 1.0:
            at = counters.epoch // each
            record = self._generation(at)
            counters.epoch += 1
            self.found[f"stretch_{self.search.stretch[at]:g}"] = numbers_of(self.evolution.mean)
            if counters.epoch % each == 0:
                self.evolution = self._fresh(self.evolution.mean)
            self._save(record)
        counters.done = True
        self._save({"done": True})
        self.write_model()

    def _progress(self) -> float:
        minutes = self.plan.minutes
        return 0.0 if minutes is None else self.counters.elapsed_s / (60.0 * minutes)

    def _fresh(self, mean: Floats) -> Evolution:
        return Evolution(mean.copy(), self.search.sigma, self.search.population)

    def _generation(self, at: int) -> Record:
        """Try the candidates of one generation on the same windows, and move."""
        epoch, seed = self.counters.epoch, self.settings.seed
        random = np.random.default_rng(windows.random_seed(seed, epoch, "actions"))
        starts = windows.draw(self.starts, self.settings.windows, seed, epoch)
        shifts_s = random.integers(0, self.search.years, len(starts)) * YEAR_S
        begun = time.perf_counter()
        points = self.evolution.ask(random)
        found = np.array([self.trial(numbers_of(point), starts, shifts_s) for point in points])
        aim, slowdown = self.search.aim[at], self.search.slowdown[at]
        far = 1e-4 * np.maximum(np.abs(points) - 6.0, 0.0).sum(axis=1)
        values = np.array([objective(each, aim, slowdown) for each in found]) + far
        self.evolution.tell(values)
        jobs = found.shape[0] * found.shape[1] * self.settings.jobs
        self.counters.decisions += jobs
        best = found[int(np.nanargmin(values))] if not np.isnan(values).all() else found[0]
        terms = dict(zip(TERMS, np.nan_to_num(best.mean(axis=0)).tolist(), strict=True))
        return {
            "epoch": epoch + 1, "stretch": self.search.stretch[at], "return": float(-np.nanmean(values)), **terms,
            "sigma": self.evolution.sigma, "jobs_per_s": round(jobs / (time.perf_counter() - begun), 1),
        }  # fmt: skip

    def _save(self, record: Record) -> None:
        counters = self.counters
        counters.elapsed_s = time.perf_counter() - self._clock
        record = {"epoch": counters.epoch, **record, "elapsed_s": round(counters.elapsed_s, 3)}
        record["progress"] = max(min(self._progress(), 1.0), counters.epoch / max(self.settings.epochs, 1))
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
        save_checkpoint(self.folder / runs.CHECKPOINT, name, tensors, counters.as_dict())
        self.watch(record)

    def _restore(self) -> None:
        saved = load_checkpoint(self.folder / runs.CHECKPOINT)
        try:
            self.counters = Counters(**saved.state)
            sigma, generation = saved.tensors["steps"].tolist()
            self.evolution = Evolution(
                saved.tensors["mean"], sigma, self.search.population, saved.tensors["covariance"],
                saved.tensors["path_sigma"], saved.tensors["path_covariance"], int(generation),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError):
            fix = "train anew into another folder, or use --force"
            raise InputError("holds another search than this", field="checkpoint", fix=fix) from None
        self.found = {
            key.removeprefix("found/"): value for key, value in saved.tensors.items() if key.startswith("found/")
        }

    def write_model(self) -> None:
        """Write the numbers that were found so far."""
        weights = {name: numbers.astype(np.float32) for name, numbers in self.found.items()}
        record = training_record(self.plan, self.counters, kept="last", averaged=False)
        save_model(
            self.folder / runs.MODEL, weights, self.plan.preset, {**record, "validation": {}},
            scenario=self.plan.scenario,
        )  # fmt: skip


def search_of(plan: Plan) -> Search:
    """The search that a plan asks for.

    Raises:
        InputError: the plan is no search, or asks for what a search cannot do.
    """
    made = plan.settings.search
    if made is None:
        raise InputError("is missing", field="training.search", fix="a planner with prices is found by a search")
    if plan.scenario.site is None:
        problem = f"{plan.preset.name} needs a power supply, {plan.scenario.name} has none"
        raise InputError(problem, field="site", fix="use a scenario with a site")
    if plan.device != "cpu":
        raise InputError(f"is {plan.device}", field="--device", fix="a search runs on the cpu")
    return made


def search(plan: Plan, folder: Path, *, watch: Callable[[Record], None], anew: bool = False) -> Counters:
    """Search in a folder: begin, or go on where an earlier call was interrupted. See `training.train`."""
    kind: type[Searching] = Searching
    if plan.preset.network.get("kind") == LINEAR:
        from greenbatch.learning.ranking import Ranking, check

        kind = Ranking
        check(plan)
    else:
        search_of(plan)
    if not anew and (folder / runs.RUN).exists():
        runs.check_same(folder, plan)
    runs.begin(folder, plan, anew=anew)
    searching = kind(plan, folder, watch)
    try:
        searching.run()
    except (KeyboardInterrupt, SystemExit):
        if searching.found:
            searching.write_model()
        raise
    finally:
        searching.log.close()
    return searching.counters
