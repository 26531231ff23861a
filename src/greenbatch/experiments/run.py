"""`simulate` and `compare` for scripts and notebooks: scenarios and schedulers by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import warn

from greenbatch.experiments.compare import Comparison, choose_baseline, choose_windows
from greenbatch.experiments.compare import compare as run_all

if TYPE_CHECKING:
    from greenbatch.engine.outcome import Outcome
    from greenbatch.scenarios import Scenario
    from greenbatch.schedulers import Decider


def simulate(
    scenario: Scenario | str | Path, scheduler: Decider, *, start: int = 0, jobs: int | None = None
) -> Outcome:
    """Simulate a scheduler on a window of a scenario.

    Args:
        scenario: the scenario, or its name or file.
        scheduler: ``policy+backfill``, a rule function or policy of your own, or the result of
            `greenbatch.scheduler`, which adds a backfilling to one.
        start: 0-based index of the first job, after filtering, in order of job id.
        jobs: number of jobs, >= 1; by default all remaining ones.

    Raises:
        InputError: an unknown name, an object that is not a scheduler, a window beyond the trace, or another argument
            that cannot be used.
        SupplyExhausted: the simulation ran past the end of the power series, and the site does not repeat it.

    Warns:
        ModelWarning: the scheduler is a trained model, and its figures need a caveat.
    """
    from greenbatch.engine.simulate import simulate as run
    from greenbatch.experiments.model_warnings import ModelWarning, model_warnings
    from greenbatch.schedulers import scheduler_table

    question = _scenario(scenario)
    deciders = scheduler_table([scheduler])
    (decider,), window = deciders.values(), question.window(start, jobs)
    outcome = run(window, question.cluster, question.site, question.rules, decider)
    for line in model_warnings(deciders, question, [start], len(window)):
        warn(line, ModelWarning, stacklevel=2)
    return outcome


def compare(
    scenario: Scenario | str | Path,
    schedulers: Iterable[Decider] | Mapping[str, Decider] | Decider | None = None,
    *,
    starts: Iterable[int] | None = None,
    jobs: int | None = None,
    windows: int | None = None,
    seed: int | None = None,
    baseline: str | None = None,
    workers: int | None = None,
) -> Comparison:
    """Compare schedulers on the same windows. Defaults are taken from the scenario.

    Args:
        scenario: the scenario, or its name or file.
        schedulers: names, each ``policy+backfill``, and rule functions or policies of your own, which keep their names;
            a mapping gives other names. By default the scenario's.
        starts: 0-based index of the first job of each window; by default the scenario's windows.
        jobs: jobs per window, >= 1.
        windows: number of random windows, >= 1, instead of the scenario's own.
        seed: seed of random windows, >= 0.
        baseline: the scheduler that the others are compared with; by default the scenario's, or the first.
        workers: number of processes that simulate windows, >= 1; by default one per processor if the work is long. The
            results do not depend on it. Use 1 to see what a rule or policy prints or collects.

    Raises:
        InputError: an unknown name, no scheduler, two of one name, an object that is not a scheduler, a window beyond
            the trace, or another argument that cannot be used.
        SupplyExhausted: a simulation ran past the end of the power series, and the site does not repeat it.
        KeyboardInterrupt: interrupted with Ctrl-C; nothing is returned.
    """
    from greenbatch.schedulers import scheduler_table

    question = _scenario(scenario)
    deciders = scheduler_table(question.evaluation.schedulers if schedulers is None else schedulers)
    first, length = choose_windows(question, starts=starts, windows=windows, jobs=jobs, seed=seed)
    return run_all(
        question, deciders, first, length, choose_baseline(question, tuple(deciders), baseline), workers=workers
    )


def _scenario(given: Scenario | str | Path) -> Scenario:
    from greenbatch.scenarios import Scenario, load_scenario

    return given if isinstance(given, Scenario) else load_scenario(given)
