"""Where the windows of training, validation and test may lie, and which are drawn.

Two ways, by name:

``published``
    As the papers' code: a training window of n jobs begins uniformly in [n, N - n - 1) of a trace of N jobs (GAS-MARL
    MARL.py, RLScheduler HPCSimPickJobs.py), so training and test windows overlap.
``held-out``
    Jobs 2000 to 4400 of the trace are test only: they are in no training and no validation window, and neither are
    the jobs of the validation windows in training windows.

Validation windows never share a job with a test window, be it one of the scenario's own evaluation or a held-out one.
All draws follow from (seed, epoch, purpose) alone, so that a resumed training needs no history of draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.scenarios import Scenario

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mode = Literal["published", "held-out"]
MODES: tuple[Mode, ...] = ("published", "held-out")

HELD_OUT = range(2000, 4401)
"""Jobs, 0-based in order of job id, that held-out training never sees."""
HELD_OUT_JOBS = 1024
"""Jobs of a held-out test window."""
HELD_OUT_STARTS = (2000, 2153, 2306, 2459, 2612, 2764, 2917, 3070, 3223, 3376)
"""First jobs of the ten held-out test windows: evenly spaced, all within `HELD_OUT`; neighbors overlap."""

PURPOSES = ("windows", "filter", "weights", "actions", "minibatches")
"""What random numbers are drawn for, each from a stream of its own."""


def random_seed(seed: int, epoch: int, purpose: str) -> int:
    """A seed in [0, 2^63) that depends on nothing but the run's seed, the epoch and the purpose (of `PURPOSES`)."""
    drawn = np.random.SeedSequence(seed, spawn_key=(epoch, PURPOSES.index(purpose))).generate_state(1, np.uint64)
    return int(drawn[0] >> np.uint64(1))


@dataclass(frozen=True, slots=True)
class Filtered:
    """The first phase of trajectory filtering: its windows, and what decided."""

    starts: Ints
    """Windows whose metric lies within the bounds."""
    low: float
    """Median of the sample."""
    high: float
    """Twice the mean of the sample."""
    samples: int


def training_starts(scenario: Scenario, jobs: int, mode: Mode, *, reserved: Ints | None = None) -> Ints:
    """First jobs at which a training window of ``jobs`` jobs may begin, ascending.

    Where the published range is empty, as the trace is shorter than two windows, it is every window of the trace.

    Args:
        scenario: the question.
        jobs: jobs of a window.
        mode: ``published`` or ``held-out``.
        reserved: further jobs, 0-based, that held-out training must not see: those of the validation.

    Raises:
        InputError: no window is left, or the trace has none of the jobs that are to be held out.
    """
    total = len(scenario.workload)
    possible = np.arange(max(total - jobs + 1, 0))
    if mode == "published":
        inner = np.arange(jobs, total - jobs - 1)
        starts = inner if len(inner) else possible
    elif total <= HELD_OUT.start:
        problem = f"{scenario.name} has {total} jobs, and held out are jobs {HELD_OUT.start} to {HELD_OUT.stop - 1}"
        raise InputError(problem, field="--windows", fix="give published, or a longer trace")
    else:
        starts = _clear(possible, jobs, _marked(total, np.array(HELD_OUT), reserved))
    if not len(starts):
        problem = f"no training window of {jobs} jobs is left of the {total} jobs of {scenario.name}"
        fix = f"set it to at most {total}" if mode == "published" else "set it lower, or give --windows published"
        raise InputError(problem, field="training.jobs", fix=fix)
    return starts


def validation_starts(scenario: Scenario, windows: int, jobs: int) -> Ints:
    """First jobs of the validation windows: spread evenly over where no test window lies, ascending.

    They are the same in both modes: clear of the scenario's evaluation windows and of the held-out jobs.

    Args:
        scenario: the question.
        windows: number of windows, different ones; they may overlap.
        jobs: jobs of a window.

    Raises:
        InputError: there are not so many such windows.
    """
    if windows == 0:
        return np.zeros(0, np.int64)
    total = len(scenario.workload)
    tests = _marked(total, np.array(HELD_OUT), evaluation_jobs(scenario))
    if tests.all():
        problem = f"the tests of {scenario.name} take all of its {total} jobs, none is left to validate on"
        fix = "set training.validation.windows=0 training.keep=last, or give a longer trace"
        raise InputError(problem, field="training.validation", fix=fix)
    starts = _clear(np.arange(max(total - jobs + 1, 0)), jobs, tests)
    if len(starts) < windows:
        problem = f"there are {len(starts)} validation windows of {jobs} jobs clear of the tests, not {windows}"
        fix = "set training.validation.jobs lower, or training.validation.windows=0 with training.keep=last"
        raise InputError(problem, field="training.validation", fix=fix)
    return spread(starts, windows)


def evaluation_jobs(scenario: Scenario) -> Ints:
    """0-based jobs that lie in a window of the scenario's own evaluation; none if the trace is too short for those."""
    own = scenario.evaluation
    starts = own.starts
    if starts is None:
        possible = len(scenario.workload) - own.jobs + 1
        starts = scenario.random_starts(own.windows, own.jobs, own.seed) if own.windows <= possible else ()
    return jobs_of(np.array(starts, np.int64), own.jobs)


def jobs_of(starts: Ints, jobs: int) -> Ints:
    """0-based jobs of windows, ascending, each once."""
    return np.unique((np.asarray(starts, np.int64)[:, None] + np.arange(jobs)).ravel())


def draw(starts: Ints, windows: int, seed: int, epoch: int) -> Ints:
    """First jobs of an epoch's training windows, drawn uniformly with replacement, in order of the draw."""
    random = np.random.default_rng(random_seed(seed, epoch, "windows"))
    return np.asarray(starts[random.integers(len(starts), size=windows)])


def spread(starts: Ints, windows: int) -> Ints:
    """So many of the first jobs, from the first to the last at even steps; the same twice where there are too few."""
    return np.asarray(starts[np.round(np.linspace(0, len(starts) - 1, windows)).astype(np.int64)])


def filtered(starts: Ints, samples: int, seed: int, metric: Callable[[Ints], Floats]) -> Filtered:
    """The windows of the first phase of trajectory filtering (RLScheduler, section IV-C).

    R = (median, 2 x mean) of the metric over a random sample; both bounds are outside R.

    Args:
        starts: where training windows may begin.
        samples: windows of the sample; all different ones if there are no more.
        seed: the run's seed.
        metric: figure of every window under the reference rule, for instance `sjf_metric`.

    Raises:
        InputError: no window of the sample lies within R.
    """
    random = np.random.default_rng(random_seed(seed, 0, "filter"))
    few = len(starts) <= samples
    sample = starts if few else np.sort(random.choice(starts, size=samples, replace=False))
    figures = metric(sample)
    low, high = float(np.median(figures)), 2 * float(np.mean(figures))
    kept = sample[(figures > low) & (figures < high)]
    if not len(kept):
        problem = f"no window of {len(sample)} has a figure between the median {low:.4g} and twice the mean {high:.4g}"
        raise InputError(problem, field="training.filter", fix='set training.filter.kind = "none"')
    return Filtered(kept, low, high, len(sample))


def sjf_metric(
    scenario: Scenario, jobs: int, backfill: str, metric: str, progress: Callable[[int, int], None] | None = None
) -> Callable[[Ints], Floats]:
    """The function that gives a metric of windows under shortest job first.

    Args:
        scenario: the question.
        jobs: jobs of a window.
        backfill: backfilling of SJF, the one that is trained with.
        metric: name of a metric of a run; where less is better, a window with a low figure is easy.
        progress: told (done, all).

    Raises:
        InputError: no such metric, or it is not one of a single run.
    """
    from greenbatch.engine.simulate import simulate
    from greenbatch.metrics import find, measure
    from greenbatch.policies import scheduler

    found = find(metric)
    if found.scope != "run":
        raise InputError(f"{metric} compares schedulers", field="training.filter.metric", fix="name another metric")
    rule = scheduler(f"sjf+{backfill}")

    def figures(starts: Ints) -> Floats:
        out = np.empty(len(starts))
        for k, start in enumerate(starts):
            outcome = simulate(scenario.window(int(start), jobs), scenario.cluster, scenario.site, scenario.rules, rule)
            out[k] = found.function(measure(outcome))
            if progress is not None:
                progress(k + 1, len(starts))
        return out

    return figures


def _marked(total: int, *groups: Ints | None) -> NDArray[np.bool_]:
    """Which of ``total`` jobs are in one of the groups, shape (total,)."""
    marked = np.zeros(total, np.bool_)
    for group in groups:
        if group is not None:
            marked[group[group < total]] = True
    return marked


def _clear(starts: Ints, jobs: int, marked: NDArray[np.bool_]) -> Ints:
    """Those of the starts whose window has no marked job."""
    before = np.concatenate(([0], np.cumsum(marked)))
    return np.asarray(starts[before[starts + jobs] == before[starts]])
