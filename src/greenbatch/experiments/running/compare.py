"""Compare schedulers on the same windows of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from greenbatch.arguments import whole_number
from greenbatch.display import draws_text
from greenbatch.errors import InputError, Interrupted
from greenbatch.workers import Workers, checked, choose, several, spread, where

if TYPE_CHECKING:
    import polars

    from greenbatch.cluster import Cluster
    from greenbatch.engine.outcome import Outcome
    from greenbatch.engine.program import Scheduler
    from greenbatch.metrics import Parts
    from greenbatch.scenarios import Scenario
    from greenbatch.schedulers import Decider
    from greenbatch.workload import Workload

Progress = Callable[[str, int, int], None]
"""Called with (what is being simulated, number done, total)."""

Metrics = dict[str, dict[str, float]]
"""Scheduler -> metric -> value, of one window."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Comparison:
    """All metrics of all schedulers on all windows, and the outcomes of one example window."""

    scenario: Scenario
    """The scenario that the windows are taken from."""
    deciders: Mapping[str, Scheduler]
    """The schedulers by name."""
    baseline: str
    """Name of the scheduler that the others are compared with."""
    starts: tuple[int, ...]
    """First jobs of the finished windows, or numbers of the draws."""
    jobs: int
    """Jobs per window; 0 for draws of the generator."""
    frame: polars.DataFrame
    """Tidy: window, scheduler, metric, value."""
    breakdown: polars.DataFrame
    """Figures of partitions, accounts, users (`metrics.breakdown`): window, scheduler, by, part, metric, value."""
    example: Mapping[str, Outcome]
    """Outcomes of the first window."""
    rules: Mapping[str, str] = field(default_factory=dict)
    """Source text of the user's own rules and policies, if known."""
    warnings: tuple[str, ...] = ()
    """Warnings about the trained models, to be read before the figures."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Schedulers whose figures need a mark -> the mark, see `model_warnings.marks`."""
    interrupted: bool = False
    """Whether the user interrupted it: windows, or schedulers of the only window, can be missing."""

    @property
    def schedulers(self) -> tuple[str, ...]:
        """Names of the schedulers."""
        return tuple(self.deciders)

    @property
    def currency(self) -> str:
        """Name of the currency of the site's prices, such as ``EUR``; empty if there are none."""
        site = self.scenario.site
        return "" if site is None or site.grid is None else site.grid.currency

    @property
    def title(self) -> str:
        """Scenario, windows and baseline in one line, as above a table."""
        total, count = len(self.scenario.workload), len(self.starts)
        if not self.jobs:
            return f"{self.scenario.name}: {draws_text(count)}; makespan relative to {self.baseline}"
        most = "at most " if self.scenario.has_episodes else ""
        part = f"{self.jobs:,} of {total:,}" if most or self.jobs < total else f"all {total:,}"
        windows = f"{most}{part} jobs" if count == 1 else f"{count} windows of {most}{self.jobs:,} jobs"
        return f"{self.scenario.name}: {windows}; makespan relative to {self.baseline}"


def choose_windows(
    scenario: Scenario,
    *,
    starts: Iterable[int] | None = None,
    windows: int | None = None,
    jobs: int | None = None,
    seed: int | None = None,
    whole: bool = False,
) -> tuple[tuple[int, ...], int]:
    """First jobs of the windows and their length: as given, random, or the scenario's.

    Raises:
        InputError: a window reaches beyond the trace or is given twice, there is none, or an argument is not a whole
            number.
    """
    own, total = scenario.evaluation, len(scenario.workload)
    if whole:
        return (0,), total
    length = own.jobs if jobs is None else whole_number(jobs, "jobs", lowest=1)
    if length > total:
        fix = f"give --jobs {total} or fewer; --whole (in Python: starts=[0], jobs={total}) is the whole trace"
        raise InputError(f"windows of {length:,} jobs, but {scenario.name} has {total:,}", field="windows", fix=fix)
    if starts is None and windows is None and seed is None:
        starts = own.starts
    if starts is None and not length:
        first = 0 if seed is None else whole_number(seed, "seed", lowest=0)
        return tuple(range(first, first + (len(own.starts or ()) if windows is None else windows))), 0
    if starts is None:
        count = own.windows if windows is None else windows
        return scenario.random_starts(count, length, own.seed if seed is None else seed), length
    try:
        chosen = [whole_number(start, "starts", lowest=0) for start in starts]
    except TypeError:
        raise InputError(f"is {starts!r:.60}", field="starts", fix="give a list, such as [0, 1000]") from None
    for start in chosen:
        if length:
            scenario.window(start, length)
        if chosen.count(start) > 1:
            raise InputError(f"names window {start} twice", field="starts", fix="name each window once")
    return tuple(chosen), length


def choose_schedulers(
    scenario: Scenario, given: str | None, baseline: str | None = None,
    defaults: Callable[[Scenario], Sequence[str]] | None = None,
) -> tuple[tuple[str, ...], str]:  # fmt: skip
    """Names of the schedulers, and of the one that the others are compared with.

    Args:
        scenario: the scenario, which states schedulers and a baseline.
        given: names separated by commas, instead of the scenario's.
        baseline: instead of the scenario's.
        defaults: names the schedulers of a scenario if none are given; the first is the baseline if it is compared.
    """
    from greenbatch.schedulers import split_schedulers

    usual = scenario.evaluation.schedulers if defaults is None else tuple(defaults(scenario))
    names = usual if given is None else tuple(split_schedulers(given))
    if baseline is None and defaults is not None and usual[0] in names:
        baseline = usual[0]
    return names, choose_baseline(scenario, names, baseline)


def choose_baseline(scenario: Scenario, schedulers: Sequence[str], baseline: str | None) -> str:
    """The scheduler that the others are compared with: as given, else the scenario's, else the first."""
    own = scenario.evaluation.baseline
    return baseline or (own if own in schedulers else schedulers[0])


def compare(
    scenario: Scenario,
    schedulers: Iterable[Decider] | Mapping[str, Decider],
    starts: Sequence[int],
    jobs: int,
    baseline: str,
    progress: Progress | None = None,
    *,
    keep_finished: bool = False,
    keep_schedulers: bool = False,
    finished: Mapping[int, Metrics] | None = None,
    workers: Workers | None = None,
) -> Comparison:
    """Simulate every scheduler on every window.

    Args:
        scenario: the question.
        schedulers: names, each ``policy+backfill``, rules, policies; or a scheduler for each name of your own.
        starts: first job of each window.
        jobs: length of the windows.
        baseline: the scheduler that the others are compared with, one of ``schedulers``.
        progress: called before every simulation; with several processes, after every window.
        keep_finished: if the user interrupts, return the finished windows, if there are any.
        keep_schedulers: if the user interrupts the only window, return it with the schedulers that are finished, if the
            baseline and another one are.
        finished: first job -> metrics of windows that need no simulation. The first window is always simulated, because
            its outcomes are the example.
        workers: number of processes that simulate windows, or a Ray cluster; by default one process per processor if
            the work is long. The results do not depend on it. What a rule or policy prints or collects stays in its
            process.

    Raises:
        InputError: an unknown scheduler, none, two of one name, a baseline that is not among them, or a window beyond
            the trace.
        KeyboardInterrupt: interrupted, and nothing is finished that is to be kept.
    """
    from greenbatch.experiments.running.frames import breakdown, tidy
    from greenbatch.experiments.running.model_warnings import marks, model_warnings
    from greenbatch.metrics import parts_of
    from greenbatch.scenarios.regenerate import question
    from greenbatch.schedulers import scheduler_table, source_texts

    if not starts:
        raise InputError("requires at least one window", field="starts", fix="give the first job of each window")
    workers = checked(workers)
    deciders = scheduler_table(schedulers)
    if baseline not in deciders:
        fix = "choose one of " + ", ".join(deciders)
        raise InputError(f"{baseline!r} is not among the schedulers", field="--baseline", fix=fix)
    for start in starts if jobs else ():
        scenario.window(start, jobs)
    metrics = {start: found for start, found in (finished or {}).items() if start in starts[1:]}
    runs = len(starts) * len(deciders)
    told = model_warnings(deciders, scenario, starts, jobs)  # first: an interruption of it costs no window

    parts = parts_of(scenario.workload, scenario.cluster, by_month=jobs == len(scenario.workload))

    def tell(what: str, run: int = 0) -> None:
        if progress is not None:
            progress(what, len(metrics) * len(deciders) + run, runs)

    outcomes: dict[str, Outcome] = {}  # of the window in hand

    def here(start: int) -> tuple[dict[str, Outcome], Metrics]:
        span = f"jobs {start} to {start + jobs - 1}" if jobs else f"draw {start}"
        whole = start == starts[0] != starts[-1]  # the first of several compiles the engine, and runs alone
        outcomes.clear()
        found = _window(
            scenario, deciders, jobs, baseline, parts, start,
            lambda name, run: tell(f"{name} on {span}", 0 if whole else run), outcomes,
        )  # fmt: skip
        return dict(outcomes), found

    begun, interrupted = perf_counter(), False
    try:
        example, metrics[starts[0]] = here(starts[0])
        left = [start for start in starts if start not in metrics]
        chosen = choose(workers, (perf_counter() - begun) * len(left))
        there = partial(_metrics, scenario, deciders, jobs, baseline, parts)
        with closing(spread(left, lambda start: here(start)[1], there, chosen)) as found:
            for start, result in found:
                metrics[start] = result
                if several(chosen):
                    tell(f"windows {where(chosen)}")
    except KeyboardInterrupt:
        interrupted = True
        if keep_schedulers and outcomes and not metrics and len(starts) == 1:
            deciders = _simulated(deciders, outcomes, baseline)
            tell("interrupted, evaluating what is finished; Ctrl-C again ends at once", len(deciders))
            asked = question(scenario, starts[0], jobs)
            example, metrics[starts[0]] = outcomes, _evaluated(scenario, *asked, outcomes, baseline, parts)
        elif not (keep_finished and starts[0] in metrics):
            raise
    done = tuple(start for start in starts if start in metrics)
    used = deciders, scenario, done, jobs
    results = [(str(start), metrics[start]) for start in done]
    return Comparison(
        scenario=scenario, deciders=deciders, baseline=baseline, starts=done, jobs=jobs,
        frame=tidy(results), breakdown=breakdown(results), example=example, rules=source_texts(deciders),
        warnings=tuple(model_warnings(*used) if interrupted else told), marks=marks(*used), interrupted=interrupted,
    )  # fmt: skip


def _simulated(
    deciders: Mapping[str, Scheduler], outcomes: Mapping[str, Outcome], baseline: str
) -> dict[str, Scheduler]:  # fmt: skip
    """The schedulers of an interrupted window that can be compared.

    Raises:
        Interrupted: they are fewer than two, or the baseline is not among them.
    """
    if not {baseline} < outcomes.keys():
        told = f"{len(outcomes)} of {len(deciders)} schedulers {'is' if len(outcomes) == 1 else 'are'} finished"
        raise Interrupted(f"{told}, nothing is kept; repeat the command") from None
    return {name: decider for name, decider in deciders.items() if name in outcomes}


def _metrics(
    scenario: Scenario, deciders: Mapping[str, Scheduler], jobs: int, baseline: str, parts: Parts, start: int
) -> Metrics:  # fmt: skip
    return _window(scenario, deciders, jobs, baseline, parts, start, lambda *_: None, {})


def _window(
    scenario: Scenario, deciders: Mapping[str, Scheduler], jobs: int, baseline: str, parts: Parts, start: int,
    show: Callable[[str, int], None], outcomes: dict[str, Outcome],
) -> Metrics:  # fmt: skip
    """The metrics of a window; ``outcomes`` receives the outcome of each scheduler once that is simulated."""
    from greenbatch.engine.simulate import simulate
    from greenbatch.scenarios.regenerate import question

    workload, cluster = question(scenario, start, jobs)
    for run, (name, decider) in enumerate(deciders.items()):
        show(name, run)
        outcomes[name] = simulate(workload, cluster, scenario.site, scenario.rules, decider)
    return _evaluated(scenario, workload, cluster, outcomes, baseline, parts)


def _evaluated(
    scenario: Scenario, workload: Workload, cluster: Cluster, outcomes: Mapping[str, Outcome], baseline: str,
    parts: Parts,
) -> Metrics:  # fmt: skip
    from greenbatch.metrics import Cut, evaluate_window, horizon_of

    own = scenario.evaluation
    cut = Cut(**cast(Any, own.cut))
    horizon = horizon_of(workload, cluster, scenario.site, scenario.rules, own.horizon, cover_record=own.cover_record)
    return evaluate_window(outcomes, baseline=baseline, cut=cut, horizon=horizon, parts=parts)
