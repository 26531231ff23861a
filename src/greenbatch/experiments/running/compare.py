"""Compare schedulers on the same windows of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING

from greenbatch.arguments import whole_number
from greenbatch.display import draws_text
from greenbatch.errors import InputError, Interrupted
from greenbatch.experiments.running.cells import Cell, Figures, Metrics, Progress, Question, play, windows_of
from greenbatch.notes import Note
from greenbatch.workers import Workers, checked

if TYPE_CHECKING:
    import polars

    from greenbatch.engine.outcome import Outcome
    from greenbatch.engine.program import Scheduler
    from greenbatch.scenarios import Scenario
    from greenbatch.schedulers import Decider

Keep = Callable[[Cell, Figures], None]
"""Called with each cell that was simulated, and its figures."""


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
    """Outcomes of the first window; empty in a sweep, but for its first value."""
    rules: Mapping[str, str] = field(default_factory=dict)
    """Source text of the user's own rules and policies, if known."""
    warnings: tuple[Note, ...] = ()
    """Warnings about the schedulers and about what is missing; `reports.notes.notes_of` has all notes."""
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
        fix = f"--whole (in Python: starts=[0], jobs={total}) is the whole trace; else give fewer jobs than {total}"
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
) -> tuple[tuple[str, ...], str, list[Note]]:  # fmt: skip
    """Names of the schedulers, of the one that the others are compared with, and a note on planners that are left out.

    Args:
        scenario: the scenario, which states schedulers and a baseline.
        given: names separated by commas, instead of the scenario's.
        baseline: instead of the scenario's.
        defaults: names the schedulers of a scenario if none are given; the first is the baseline if it is compared.
    """
    from greenbatch.scenarios.schema import PLANNING
    from greenbatch.schedulers import split_schedulers

    own = scenario.evaluation
    usual = own.schedulers if defaults is None else tuple(defaults(scenario))
    by_default = given is None and (defaults is not None or "schedulers" not in scenario.resolved["evaluation"])
    told = [_left_out(PLANNING, "was searched on pools of processors (name it with --schedulers to compare it)")]
    told = told if by_default and scenario.site is not None and not own.planners else []
    if by_default and (unable := [name for name in usual if not _holds(scenario, name)]):
        told.append(_left_out(unable, 'does not know the limit of imports (over_limit = "hold")'))
        usual = tuple(name for name in usual if name not in unable)
    names = usual if given is None else tuple(split_schedulers(given))
    if baseline is None and defaults is not None and usual[0] in names:
        baseline = usual[0]
    return names, choose_baseline(scenario, names, baseline), told


def _left_out(names: Sequence[str], why: str) -> Note:
    return Note(f"{', '.join(names)} is not compared: it {why}", level="change")


def _holds(scenario: Scenario, name: str) -> bool:
    """Whether a scheduler holds jobs for the limit of imports, if the site has one for which they are held."""
    if scenario.site is None or not isfinite(scenario.site.held_limit_w):
        return True
    from greenbatch.engine.capabilities import first_no, parts_of
    from greenbatch.schedulers import scheduler_table  # lets no file run that only the scenario names

    programs = (each.program(scenario.workload) for each in scheduler_table([name]).values())
    return all(first_no(parts_of(each), {"import_limit": True}, each.knows) is None for each in programs)


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
    finished: Mapping[Cell, Figures] | None = None,
    workers: Workers | None = None,
    keep: Keep = lambda *_: None,
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
        finished: figures of windows that need no simulation. The first window is always simulated, because its outcomes
            are the example.
        workers: number of processes that simulate windows, or a Ray cluster; by default one process per processor if
            the work is long. The results do not depend on it. What a rule or policy prints or collects stays in its
            process.
        keep: called with the figures of each window that was simulated.

    Raises:
        InputError: an unknown scheduler, none, two of one name, a baseline that is not among them, or a window beyond
            the trace.
        KeyboardInterrupt: interrupted, and nothing is finished that is to be kept.
    """
    question = question_of({"": scenario}, schedulers, starts, jobs, baseline)
    told = warnings_of(question, starts)  # first: an interruption of it costs no window
    cells = [Cell("", start) for start in starts]
    played = play(question, cells, progress, finished=finished, workers=checked(workers), keep=keep)
    if (stopped := played.interruption) is not None:
        if keep_schedulers and played.example and not played.figures and len(starts) == 1:
            deciders = _simulated(question.deciders, played.example, baseline)
            if progress is not None:
                progress(
                    "interrupted, evaluating what is finished; Ctrl-C again ends at once", len(deciders), len(deciders)
                )
            question = replace(question, deciders=deciders)
            played.figures[cells[0]] = Figures.of(question.metrics(cells[0], question.window(cells[0]), played.example))
        elif not (keep_finished and cells[0] in played.figures):
            raise stopped
    made = comparison_of(
        question, "", windows_of(played.figures, "", starts), told[""], interrupted=stopped is not None
    )
    return replace(made, example=played.example)


def question_of(
    scenarios: Mapping[str, Scenario], schedulers: Iterable[Decider] | Mapping[str, Decider], starts: Sequence[int],
    jobs: int, baseline: str,
) -> Question:  # fmt: skip
    """What is asked, checked.

    Raises:
        InputError: see `compare`, or a scheduler does not go with a scenario.
    """
    from greenbatch.engine.capabilities import refuse_run
    from greenbatch.schedulers import scheduler_table

    if not starts:
        raise InputError("requires at least one window", field="starts", fix="give the first job of each window")
    deciders = scheduler_table(schedulers)
    if baseline not in deciders:
        fix = "choose one of " + ", ".join(deciders)
        raise InputError(f"{baseline!r} is not among the schedulers", field="--baseline", fix=fix)
    for scenario in scenarios.values() if jobs else ():
        for start in starts:
            scenario.rows(start, jobs)
        for start in starts:
            window = scenario.window(start, jobs)
            for each in deciders.values():  # before any of them runs
                refuse_run(each.program(window), window, scenario.cluster, scenario.site, scenario.rules)
    return Question(scenarios=scenarios, deciders=deciders, jobs=jobs, baseline=baseline)


def warnings_of(question: Question, starts: Sequence[int]) -> dict[str, list[Note]]:
    """Text of each value -> warnings about the trained models."""
    from greenbatch.experiments.running.model_warnings import model_warnings

    return {
        text: model_warnings(question.deciders, scenario, starts, question.jobs)
        for text, scenario in question.scenarios.items()
    }


def comparison_of(
    question: Question, value: str, windows: Mapping[int, Metrics], told: Sequence[Note], *, interrupted: bool
) -> Comparison:  # fmt: skip
    """The comparison of a value, without an example.

    Args:
        question: what was asked.
        value: text of the value.
        windows: first job of each finished window -> its metrics.
        told: warnings about the trained models.
        interrupted: whether the user interrupted it; then the warnings are those about what is finished.
    """
    from greenbatch.experiments.running.frames import breakdown, tidy
    from greenbatch.experiments.running.model_warnings import marks, model_warnings
    from greenbatch.schedulers import source_texts

    deciders, scenario = question.deciders, question.scenarios[value]
    used = deciders, scenario, tuple(windows), question.jobs
    results = [(str(start), metrics) for start, metrics in windows.items()]
    return Comparison(
        scenario=scenario, deciders=deciders, baseline=question.baseline, starts=tuple(windows), jobs=question.jobs,
        frame=tidy(results), breakdown=breakdown(results), example={}, rules=source_texts(deciders),
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
