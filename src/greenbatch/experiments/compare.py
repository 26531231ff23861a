"""Schedulers side by side: the same windows of one scenario for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from greenbatch.errors import InputError

if TYPE_CHECKING:
    import polars

    from greenbatch.engine.outcome import Outcome
    from greenbatch.engine.program import Scheduler
    from greenbatch.policies import Decider
    from greenbatch.scenarios import Scenario

Progress = Callable[[str, int, int], None]
"""Called with (what is being simulated, how many are done, how many there are)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All metrics of all schedulers on all windows, and the outcomes of one example window."""

    scenario: Scenario
    schedulers: tuple[str, ...]
    baseline: str
    starts: tuple[int, ...]
    """First jobs of the windows that were finished."""
    jobs: int
    frame: polars.DataFrame
    """Tidy: window, scheduler, metric, value."""
    example: dict[str, Outcome]
    """Outcomes of the first window."""


def choose_windows(
    scenario: Scenario,
    *,
    starts: Sequence[int] | None = None,
    windows: int | None = None,
    jobs: int | None = None,
    seed: int | None = None,
) -> tuple[tuple[int, ...], int]:
    """First jobs of the windows and their length: as given, else random if asked for, else the scenario's.

    Raises:
        InputError: a window reaches beyond the trace, or is named twice.
    """
    own = scenario.evaluation
    length = own.jobs if jobs is None else jobs
    if starts is None and windows is None and seed is None:
        starts = own.starts
    if starts is None:
        count = own.windows if windows is None else windows
        return scenario.random_starts(count, length, own.seed if seed is None else seed), length
    for start in starts:
        scenario.window(start, length)
        if list(starts).count(start) > 1:
            raise InputError(f"names window {start} twice", field="starts", fix="name each window once")
    return tuple(starts), length


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
) -> Comparison:
    """Simulate every scheduler on every window.

    Args:
        scenario: the question.
        schedulers: names, each ``policy+backfill``, rules, policies; or a scheduler for each name of your own.
        starts: first job of each window.
        jobs: length of the windows.
        baseline: the scheduler that the others are compared with, one of ``schedulers``.
        progress: told before every simulation.
        keep_finished: when the user interrupts, return the windows that are finished, if there is one.

    Raises:
        InputError: an unknown scheduler or two of one name, a baseline that is not compared, a window beyond the trace.
        KeyboardInterrupt: interrupted, and nothing was finished or it was not to be kept.
    """
    from greenbatch.experiments.tables import tidy
    from greenbatch.policies import scheduler_table

    if not starts or not schedulers:
        raise InputError("needs at least one window and one scheduler", field="compare")
    deciders = scheduler_table(schedulers)
    if baseline not in deciders:
        fix = "choose one of " + ", ".join(deciders)
        raise InputError(f"{baseline!r} is not among the schedulers", field="--baseline", fix=fix)
    for start in starts:
        scenario.window(start, jobs)
    results: list[tuple[str, dict[str, dict[str, float]]]] = []
    example: dict[str, Outcome] = {}
    runs = len(starts) * len(deciders)
    try:
        for window, start in enumerate(starts):

            def show(name: str, run: int, window: int = window, start: int = start) -> None:
                if progress is not None:
                    progress(f"{name} on jobs {start} to {start + jobs - 1}", window * len(deciders) + run, runs)

            outcomes, metrics = _window(scenario, deciders, start, jobs, baseline, show)
            results.append((str(start), metrics))
            example = example or outcomes
    except KeyboardInterrupt:
        if not (keep_finished and results):
            raise
    return Comparison(
        scenario=scenario, schedulers=tuple(deciders), baseline=baseline, starts=tuple(starts[: len(results)]),
        jobs=jobs, frame=tidy(results), example=example,
    )  # fmt: skip


def _window(
    scenario: Scenario, deciders: Mapping[str, Scheduler], start: int, jobs: int, baseline: str,
    show: Callable[[str, int], None],
) -> tuple[dict[str, Outcome], dict[str, dict[str, float]]]:  # fmt: skip
    from greenbatch.engine.simulate import simulate
    from greenbatch.metrics import Cut, evaluate_window, horizon_of

    workload, outcomes = scenario.window(start, jobs), {}
    for run, (name, decider) in enumerate(deciders.items()):
        show(name, run)
        outcomes[name] = simulate(workload, scenario.cluster, scenario.site, scenario.rules, decider)
    cut = Cut(**cast(Any, scenario.evaluation.cut))
    horizon = horizon_of(workload, scenario.cluster, scenario.site, scenario.rules, scenario.evaluation.horizon)
    return outcomes, evaluate_window(outcomes, baseline=baseline, cut=cut, horizon=horizon)
