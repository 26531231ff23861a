"""The verbs for scripts and notebooks: simulate and compare a scenario by names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from greenbatch.experiments.compare import Comparison, choose_baseline, choose_windows
from greenbatch.experiments.compare import compare as run_all

if TYPE_CHECKING:
    from greenbatch.engine.outcome import Outcome
    from greenbatch.policies import Decider
    from greenbatch.scenarios import Scenario


def simulate(scenario: Scenario | str, scheduler: Decider, *, start: int = 0, jobs: int | None = None) -> Outcome:
    """Simulate a scheduler on a window of a scenario.

    Args:
        scenario: the question, or its name or file.
        scheduler: who decides: ``policy+backfill``, a rule function or a policy of your own, or what
            `greenbatch.scheduler` makes of one with a backfilling.
        start: 0-based index of the first job.
        jobs: number of jobs; all the rest if not given.

    Raises:
        InputError: an unknown name, something that can decide nothing, or a window beyond the trace.
    """
    from greenbatch.engine.simulate import simulate as run
    from greenbatch.policies import scheduler as scheduler_of
    from greenbatch.scenarios import load_scenario

    question = load_scenario(scenario) if isinstance(scenario, str) else scenario
    decider = scheduler_of(scheduler)
    return run(question.window(start, jobs), question.cluster, question.site, question.rules, decider)


def compare(
    scenario: Scenario | str,
    schedulers: Iterable[Decider] | Mapping[str, Decider] | Decider = (),
    *,
    starts: Sequence[int] | None = None,
    jobs: int | None = None,
    windows: int | None = None,
    seed: int | None = None,
    baseline: str | None = None,
    workers: int | None = None,
) -> Comparison:
    """Compare schedulers on the same windows; what is not given is taken from the scenario.

    Args:
        scenario: the question, or its name or file.
        schedulers: names, each ``policy+backfill``, and rule functions or policies of your own under theirs; a
            mapping gives names of your own.
        starts: first job of each window; else the scenario's windows.
        jobs: length of the windows.
        windows: number of random windows, instead of the scenario's own.
        seed: seed of random windows.
        baseline: the scheduler that the others are compared with; else the scenario's, or the first.
        workers: how many processes simulate windows; one for each processor if not given, unless the work is short.
            The results do not depend on it. To see what a rule or policy prints or collects, give 1.

    Raises:
        InputError: an unknown name or two of one name, something that can decide nothing, or a window beyond the
            trace.
    """
    from greenbatch.policies import scheduler_table
    from greenbatch.scenarios import load_scenario

    question = load_scenario(scenario) if isinstance(scenario, str) else scenario
    deciders = scheduler_table(schedulers or question.evaluation.schedulers)
    first, length = choose_windows(question, starts=starts, windows=windows, jobs=jobs, seed=seed)
    return run_all(
        question, deciders, first, length, choose_baseline(question, tuple(deciders), baseline), workers=workers
    )
