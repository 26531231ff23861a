"""Training, validation and test windows: where they may start, and random draws from them.

There are two modes:

``published``
    Like the papers' code: training windows of n jobs start uniformly in [n, N - n - 1) of a trace of N jobs (GAS-MARL
    MARL.py, RLScheduler HPCSimPickJobs.py), so training and test windows overlap.
``held-out``
    Jobs 2000 to 4400 of the trace are only for tests: no training or validation window contains them, and no training
    window contains jobs of the validation windows.

Validation windows never share a job with a test window, neither of the scenario's own evaluation nor a held-out one.
All draws depend on (seed, epoch, purpose) only, so a resumed training does not need their history.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.datasets.dataset import read_record
from greenbatch.errors import InputError
from greenbatch.presets.training import HELD_OUT, Mode
from greenbatch.scenarios import Scenario, shipped_names

if TYPE_CHECKING:
    from greenbatch.presets.training import TrainingSettings

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
HELD_OUT_JOBS = 1024
"""Jobs of a held-out test window."""
HELD_OUT_STARTS = (2000, 2153, 2306, 2459, 2612, 2764, 2917, 3070, 3223, 3376)
"""First jobs of the ten held-out test windows: evenly spaced, all within `HELD_OUT`; neighbors overlap."""

PURPOSES = ("windows", "filter", "weights", "actions", "minibatches")
"""Purposes of random numbers; each has its own stream."""


def random_seed(seed: int, epoch: int, purpose: str) -> int:
    """A seed in [0, 2^63) that depends only on the run's seed, the epoch and the purpose (one of `PURPOSES`)."""
    drawn = np.random.SeedSequence(seed, spawn_key=(epoch, PURPOSES.index(purpose))).generate_state(1, np.uint64)
    return int(drawn[0] >> np.uint64(1))


@dataclass(frozen=True, slots=True)
class Filtered:
    """Windows of the first phase of trajectory filtering, and the bounds that selected them."""

    starts: Ints
    """Windows whose metric lies within the bounds."""
    low: float
    """Median of the sample."""
    high: float
    """Twice the mean of the sample."""
    samples: int


def training_starts(scenario: Scenario, jobs: int, mode: Mode, *, reserved: Ints | None = None) -> Ints:
    """First jobs of all possible training windows, ascending.

    If the trace is shorter than two windows, the published range is empty; then all windows of the trace are possible.

    Args:
        scenario: the scenario to train on.
        jobs: jobs per window.
        mode: ``published`` or ``held-out``.
        reserved: other jobs, 0-based, that held-out training must not see: those of the validation windows.

    Raises:
        InputError: no window is left, or the trace has none of the held-out jobs.
    """
    total = len(scenario.workload)
    possible = np.arange(max(total - jobs + 1, 0))
    if mode == "published":
        inner = np.arange(jobs, total - jobs - 1)
        starts = inner if len(inner) else possible
    elif total <= HELD_OUT.start:
        problem = f"{scenario.name} has {total} jobs; jobs {HELD_OUT.start} to {HELD_OUT.stop - 1} are held out"
        raise InputError(problem, field="--windows", fix="give published, or a longer trace")
    else:
        starts = _clear(possible, jobs, _marked(total, np.array(HELD_OUT), reserved))
    if not len(starts):
        problem = f"no training window of {jobs} jobs is left in the {total} jobs of {scenario.name}"
        fix = f"set it to at most {total}" if mode == "published" else "set it lower, or give --windows published"
        raise InputError(problem, field="training.jobs", fix=_made_for_training(scenario) + fix)
    return starts


def seen_jobs(scenario: Scenario, settings: TrainingSettings, mode: Mode) -> list[list[int]]:
    """Ranges of jobs (first, last), 0-based, for which a model of this training is *in-sample*.

    They cover every window that was or could have been drawn for training and, if they select the actor, the validation
    windows. A training from a recorded dataset has seen the windows of that and, if it simulates, others.

    Args:
        scenario: the scenario to train on.
        settings: the training settings.
        mode: ``published`` or ``held-out``.
    """
    check, search, total = settings.validation, settings.search, len(scenario.workload)
    chosen_on = (
        validation_starts(scenario, check.windows, check.jobs) if settings.keep == "best" or not search else None
    )
    reserved = None if chosen_on is None else jobs_of(chosen_on, check.jobs)
    seen = _marked(total, reserved if settings.keep == "best" else None)
    own, lengths = settings.off_policy, {settings.jobs, *(stage.jobs for stage in settings.curriculum if stage.jobs)}
    if own is not None and own.dataset:
        record = read_record(own.dataset)
        seen |= _marked(total, jobs_of(np.unique(record.starts), record.jobs))
        lengths = lengths if own.online else set()  # which has windows of its own
    for jobs in sorted(lengths):
        starts = training_starts(scenario, jobs, mode, reserved=reserved)
        if search is not None and search.fixed_windows:
            starts = spread(starts, settings.windows)
        steps = np.zeros(total + 1, np.int64)
        np.add.at(steps, starts, 1)
        np.add.at(steps, starts + jobs, -1)
        seen |= np.cumsum(steps)[:total] > 0
    edges = np.flatnonzero(np.diff(np.concatenate(([False], seen, [False])).astype(np.int8)))
    return [[int(first), int(last) - 1] for first, last in edges.reshape(-1, 2)]


def validation_starts(scenario: Scenario, windows: int, jobs: int) -> Ints:
    """First jobs of the validation windows, spread evenly over the possible ones, ascending.

    In both modes they share no job with the scenario's evaluation windows or the held-out jobs.

    Args:
        scenario: the scenario to train on.
        windows: number of different windows; they may overlap.
        jobs: jobs per window.

    Raises:
        InputError: there are not enough such windows.
    """
    if windows == 0:
        return np.zeros(0, np.int64)
    total = len(scenario.workload)
    tests = _marked(total, np.array(HELD_OUT), evaluation_jobs(scenario))
    if tests.all():
        problem = f"the test windows of {scenario.name} contain all of its {total} jobs, none is left for validation"
        fix = "set training.validation.windows=0 training.keep=last, or give a longer trace"
        raise InputError(problem, field="training.validation", fix=_made_for_training(scenario) + fix)
    starts = _clear(np.arange(max(total - jobs + 1, 0)), jobs, tests)
    if len(starts) < windows:
        problem = f"only {len(starts)} of {windows} validation windows of {jobs} jobs fit outside the test windows"
        fix = "set training.validation.jobs lower, or training.validation.windows=0 with training.keep=last"
        raise InputError(problem, field="training.validation", fix=_made_for_training(scenario) + fix)
    return spread(starts, windows)


def _made_for_training(scenario: Scenario) -> str:
    """The beginning of a fix: the shipped scenario of more such jobs for training, if there is one."""
    name = f"{scenario.name}-training"
    return f"train on {name}, or " if name in shipped_names() else ""


def evaluation_jobs(scenario: Scenario) -> Ints:
    """0-based jobs in the windows of the scenario's own evaluation; none if the trace is too short for them."""
    own = scenario.evaluation
    starts = own.starts
    if starts is None:
        possible = len(scenario.workload) - own.jobs + 1
        starts = scenario.random_starts(own.windows, own.jobs, own.seed) if own.windows <= possible else ()
    return jobs_of(np.array(starts, np.int64), own.jobs)


def jobs_of(starts: Ints, jobs: int) -> Ints:
    """0-based jobs of windows, ascending, without duplicates."""
    return np.unique((np.asarray(starts, np.int64)[:, None] + np.arange(jobs)).ravel())


def draw(starts: Ints, windows: int, seed: int, epoch: int) -> Ints:
    """First jobs of an epoch's training windows, drawn uniformly with replacement, in the order drawn."""
    random = np.random.default_rng(random_seed(seed, epoch, "windows"))
    return np.asarray(starts[random.integers(len(starts), size=windows)])


def spread(starts: Ints, windows: int) -> Ints:
    """``windows`` of the starts, evenly spaced from first to last; some repeat if there are too few."""
    return np.asarray(starts[np.round(np.linspace(0, len(starts) - 1, windows)).astype(np.int64)])


def filtered(starts: Ints, samples: int, seed: int, metric: Callable[[Ints], Floats]) -> Filtered:
    """The windows of the first phase of trajectory filtering (RLScheduler, section IV-C).

    R = (median, 2 x mean) of the metric over a random sample, both bounds exclusive.

    Args:
        starts: first jobs of all possible training windows.
        samples: size of the sample; all windows if there are fewer.
        seed: the run's seed.
        metric: metric of each window under the reference rule, for instance `sjf_metric`.

    Raises:
        InputError: no sampled window lies within R.
    """
    random = np.random.default_rng(random_seed(seed, 0, "filter"))
    few = len(starts) <= samples
    sample = starts if few else np.sort(random.choice(starts, size=samples, replace=False))
    figures = metric(sample)
    low, high = float(np.median(figures)), 2 * float(np.mean(figures))
    kept = sample[(figures > low) & (figures < high)]
    if not len(kept):
        problem = (
            f"none of {len(sample)} windows has a metric between the median {low:.4g} and twice the mean {high:.4g}"
        )
        raise InputError(problem, field="training.filter", fix='set training.filter.kind = "none"')
    return Filtered(kept, low, high, len(sample))


def sjf_metric(
    scenario: Scenario, jobs: int, backfill: str, metric: str, progress: Callable[[int, int], None] | None = None
) -> Callable[[Ints], Floats]:
    """A function that computes a metric of windows under shortest job first.

    Args:
        scenario: the scenario to train on.
        jobs: jobs per window.
        backfill: backfilling of SJF, as in training.
        metric: name of a metric of a run; if lower is better, windows with low values are easy.
        progress: called with (done, total).

    Raises:
        InputError: there is no such metric, or it compares schedulers.
    """
    from greenbatch.engine.simulate import simulate
    from greenbatch.metrics import find, measure
    from greenbatch.schedulers import scheduler_table

    chosen = find(metric)
    if chosen.scope != "run":
        raise InputError(f"{metric} compares schedulers", field="training.filter.metric", fix="name another metric")
    (rule,) = scheduler_table([f"sjf+{backfill}"]).values()

    def figures(starts: Ints) -> Floats:
        out = np.empty(len(starts))
        for k, start in enumerate(starts):
            outcome = simulate(scenario.window(int(start), jobs), scenario.cluster, scenario.site, scenario.rules, rule)
            out[k] = chosen.function(measure(outcome))
            if progress is not None:
                progress(k + 1, len(starts))
        return out

    return figures


def _marked(total: int, *groups: Ints | None) -> NDArray[np.bool_]:
    """Which of ``total`` jobs are in any of the groups, shape (total,)."""
    marked = np.zeros(total, np.bool_)
    for group in groups:
        if group is not None:
            marked[group[group < total]] = True
    return marked


def _clear(starts: Ints, jobs: int, marked: NDArray[np.bool_]) -> Ints:
    """Starts of the windows without marked jobs."""
    before = np.concatenate(([0], np.cumsum(marked)))
    return np.asarray(starts[before[starts + jobs] == before[starts]])
