"""Search parameters of any scheduler on the training windows of a scenario.

All candidates are simulated on the same windows, which share no job with the scenario's evaluation: those of trainings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.settings import plain
from greenbatch.errors import InputError, did_you_mean
from greenbatch.experiments.running.compare import compare
from greenbatch.scenarios.regenerate import OF_TRAININGS
from greenbatch.workers import Workers

if TYPE_CHECKING:
    import polars

    from greenbatch.presets.training import Mode
    from greenbatch.scenarios import Scenario

Floats = NDArray[np.float64]
Watch = Callable[[int, int, float], None]
"""Called with (generations done, all, lowest objective so far)."""
LOGARITHMIC = 10.0
"""A range of positive numbers whose ends differ by this factor is searched by the logarithm."""
DIGITS = 4
"""Significant digits of the numbers tried, so that a scheduler's name states them exactly."""
USUAL = ("horizon_cost", "horizon_carbon_kg", "horizon_brown_kwh", "avg_wait_s", "avg_bounded_slowdown")
"""Metrics that a message on an unknown one names."""
STEP = 0.25
"""First step of the search, as a share of each range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What is searched of a parameter."""

    name: str
    low: float
    high: float
    part: int = 0
    """Part of the scheduler's name that takes it: 0 for the policy, 1 for the backfilling."""

    def value(self, place: float) -> float:
        """The number at a place from 0 to 1, rounded."""
        if self.low > 0.0 and self.high / self.low >= LOGARITHMIC:
            found = self.low * (self.high / self.low) ** place
        else:
            found = self.low + (self.high - self.low) * place
        return float(f"{min(max(found, self.low), self.high):.{DIGITS}g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """The best candidate, and what it was chosen by."""

    scheduler: str
    """Its name, with the numbers found."""
    objective: float
    """Its objective on the windows of the search: *in-sample*."""
    untuned: float
    """The objective of the scheduler as given, on the same windows."""
    baseline: str
    """The scheduler that metrics are relative to; its objective is the sum of the weights."""
    starts: tuple[int, ...]
    """First jobs of the windows, or numbers of the draws."""
    jobs: int
    """Jobs per window; 0 for draws of the generator."""
    tried: int
    """Number of different candidates."""


def tune(
    scenario: Scenario, scheduler: str, ranges: tuple[Range, ...], objective: Mapping[str, float], *,
    baseline: str, windows: int = 8, jobs: int | None = None, generations: int = 10, population: int = 8, seed: int = 0,
    mode: Mode = "held-out", workers: Workers | None = 1, watch: Watch = lambda *_: None,
) -> Tuned:  # fmt: skip
    """Find the parameters with the lowest objective, by an evolution strategy (`learning.search.evolution`).

    The objective is the weighted sum of metrics, each a mean over the windows relative to the baseline's.

    Args:
        scenario: the scenario.
        scheduler: the scheduler's name, without the parameters that are searched.
        ranges: what is searched.
        objective: metric of a run -> weight; < 0 for metrics that should be high.
        baseline: what metrics are relative to.
        windows: number of windows, spread over those of a training; of draws that no comparison plays, where the
            scenario is evaluated on draws.
        jobs: jobs per window; by default as in the scenario's evaluation.
        generations: generations of the search.
        population: candidates of a generation.
        seed: seed of the search.
        mode: which jobs a training may see, see `learning.runs.windows`.
        workers: processes that simulate windows.
        watch: called after each generation.

    Raises:
        InputError: an unknown scheduler, parameter or metric, a range that the parameter does not have, a weight that
            is no number or of the wrong sign, a metric that is 0 for the baseline or unknown in the scenario, or more
            windows than there are.
    """
    from greenbatch.learning.runs.windows import spread, training_starts
    from greenbatch.learning.search.evolution import Evolution

    length = scenario.evaluation.jobs if jobs is None else jobs
    check_objective(objective)
    _check_ranges(scheduler, ranges)
    if length:
        possible = training_starts(scenario, length, mode)
        if windows > len(possible):
            problem = f"is {windows:,}, but there are {len(possible):,} training windows of {length:,} jobs"
            raise InputError(problem, field="--count", fix=f"give {len(possible)} or fewer")
        starts = tuple(spread(possible, windows).tolist())
    else:
        starts = tuple(range(OF_TRAININGS, OF_TRAININGS + windows))
    known: dict[str, float] = {}

    def values(names: list[str]) -> list[float]:
        new = [name for name in dict.fromkeys(names) if name not in known]
        if new:
            others = [] if baseline in new else [baseline]
            frame = compare(scenario, [*others, *new], starts, length, baseline, workers=workers).frame
            known.update(_objectives(frame, new, baseline, objective))
        return [known[name] for name in names]

    (untuned,) = values([scheduler])
    evolution = Evolution(np.full(len(ranges), 0.5), STEP, population)
    random = np.random.default_rng(seed)
    for generation in range(generations):
        places = evolution.ask(random)
        named = [_named(scheduler, ranges, np.clip(point, 0.0, 1.0)) for point in places]
        outside = np.abs(places - np.clip(places, 0.0, 1.0)).sum(axis=1)
        evolution.tell(np.array(values(named)) + outside)
        watch(generation + 1, generations, min(known.values()))
    best = min(known, key=lambda name: known[name])
    return Tuned(
        scheduler=best, objective=known[best], untuned=untuned, baseline=baseline, starts=starts, jobs=length,
        tried=len(known),
    )  # fmt: skip


def _check_ranges(scheduler: str, ranges: tuple[Range, ...]) -> None:
    """Refuse parameters that the scheduler does not take, and ends of ranges beyond what it takes.

    Raises:
        InputError: names the parameter as the user wrote it.
    """
    from greenbatch.schedulers import scheduler_table

    scheduler_table([scheduler])
    for each in ranges:
        for end in (0.0, 1.0):
            name = _named(scheduler, (each,), np.array([end]))
            try:
                scheduler_table([name])
            except InputError as error:
                place = f"{'+' * each.part}{each.name}={plain(each.low)}:{plain(each.high)}"
                raise InputError(f"{place}: {error.problem}", field="--search", fix=error.fix) from None


def check_objective(objective: Mapping[str, float]) -> None:
    """Refuse weights that search for nothing, or for the opposite.

    Raises:
        InputError: a weight is 0 or not finite, or > 0 for a metric that is better if higher.
    """
    from greenbatch.metrics import METRICS

    for metric, weight in objective.items():
        if weight == 0 or not np.isfinite(weight):
            fix = f"give a number other than 0, such as {metric}=1"
            raise InputError(f"the weight of {metric} is {weight:g}", field="--objective", fix=fix)
        if weight > 0 and metric in METRICS and METRICS[metric].better == "higher":
            problem = f"{metric} is better if higher, and objectives are made low"
            raise InputError(problem, field="--objective", fix=f"give {metric}=-{weight:g}")


def _objectives(
    frame: polars.DataFrame, names: list[str], baseline: str, objective: Mapping[str, float]
) -> dict[str, float]:  # fmt: skip
    """The objective of each scheduler."""
    table = frame.pivot(on="metric", index="scheduler", values="value", aggregate_function="mean")
    means = {row["scheduler"]: row for row in table.to_dicts()}
    for metric in objective:
        if metric not in means[baseline]:
            close = did_you_mean(metric, list(means[baseline]))
            fix = " ".join(filter(None, (close, f"often used: {', '.join(USUAL)}; docs/metrics.md lists all")))
            raise InputError(f"no metric is called {metric!r}", field="--objective", fix=fix)
        if (level := means[baseline][metric]) is None or np.isnan(level):
            problem = f"{metric} is not known for {baseline} in this scenario"
            fix = f"{_needs(metric)}, or choose another metric"
            raise InputError(problem, field="--objective", fix=fix)
        if not level > 0.0:  # relative to less than 0, better would be worse
            problem, fix = f"{metric} is {level} for {baseline}", "choose another metric or baseline"
            raise InputError(problem, field="--objective", fix=fix)

    def value(name: str) -> float:
        own, base = means[name], means[baseline]
        if any(own[each] is None for each in objective):
            return np.inf
        found = sum(weight * own[each] / base[each] for each, weight in objective.items())
        return float(found) if np.isfinite(found) else np.inf

    return {name: value(name) for name in names}


def _needs(metric: str) -> str:
    """What a scenario must state so that a metric is known."""
    from greenbatch.metrics import METRICS
    from greenbatch.metrics.money import MONEY

    if metric in METRICS and MONEY in METRICS[metric].unit:
        return "give the site prices ([site.grid.price])"
    if "carbon" in metric:
        return "give the site a carbon intensity ([site.grid.carbon])"
    return "give the scenario what it needs (docs/metrics.md)"


def _named(scheduler: str, ranges: tuple[Range, ...], places: Floats) -> str:
    """The scheduler's name with a number for each range."""
    policy, plus, backfill = scheduler.partition("+")
    if not plus and any(each.part for each in ranges):
        raise InputError(f"{scheduler} has no backfilling", field="--search", fix="leave out the + of the parameter")
    parts = [policy, backfill]
    for each, place in zip(ranges, places, strict=True):
        parts[each.part] += f":{each.name}={plain(each.value(float(place)))}"
    return plus.join(parts) if plus else parts[0]
