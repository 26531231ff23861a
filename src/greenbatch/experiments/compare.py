"""Schedulers side by side: the same windows of one scenario for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from greenbatch.errors import InputError

if TYPE_CHECKING:
    import polars

    from greenbatch.engine.outcome import Outcome
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
    jobs: int
    frame: polars.DataFrame
    """Tidy: window, scheduler, metric, value."""
    example: dict[str, Outcome]
    """Outcomes of the first window."""


def compare(
    scenario: Scenario,
    schedulers: Sequence[str],
    starts: Sequence[int],
    jobs: int,
    baseline: str,
    progress: Progress | None = None,
) -> Comparison:
    """Simulate every scheduler on every window.

    Args:
        scenario: the question.
        schedulers: names, each ``policy+backfill``.
        starts: first job of each window.
        jobs: length of the windows.
        baseline: the scheduler that the others are compared with, one of ``schedulers``.
        progress: told before every simulation.

    Raises:
        InputError: an unknown scheduler, a baseline that is not compared, a window beyond the trace.
    """
    from greenbatch.engine.simulate import simulate
    from greenbatch.experiments.tables import tidy
    from greenbatch.metrics import Cut, evaluate_window
    from greenbatch.policies import scheduler

    if not starts or not schedulers:
        raise InputError("needs at least one window and one scheduler", field="compare")
    deciders = {name: scheduler(name) for name in schedulers}
    if baseline not in deciders:
        fix = "choose one of " + ", ".join(schedulers)
        raise InputError(f"{baseline!r} is not among the schedulers", field="--baseline", fix=fix)
    windows = {start: scenario.window(start, jobs) for start in starts}
    cut = Cut(**cast(Any, scenario.evaluation.cut))
    results, example, total = [], None, len(windows) * len(deciders)
    for window, (start, workload) in enumerate(windows.items()):
        outcomes: dict[str, Outcome] = {}
        for k, (name, decider) in enumerate(deciders.items()):
            if progress is not None:
                progress(f"{name} on jobs {start} to {start + jobs - 1}", window * len(deciders) + k, total)
            outcomes[name] = simulate(workload, scenario.cluster, scenario.site, scenario.rules, decider)
        results.append((str(start), evaluate_window(outcomes, baseline=baseline, cut=cut)))
        example = example or outcomes
    return Comparison(
        scenario=scenario, schedulers=tuple(schedulers), baseline=baseline, starts=tuple(windows), jobs=jobs,
        frame=tidy(results), example=example or {},
    )  # fmt: skip
