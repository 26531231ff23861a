"""``greenbatch compare``: schedulers side by side on the same windows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.cli.flags import Natural, Positive, Switch, items, whole
from greenbatch.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenbatch.scenarios import Scenario


def compare(
    *,
    out: Path,
    scenario: str = "default",
    schedulers: str | None = None,
    baseline: str | None = None,
    windows: Positive = None,
    jobs: Positive = None,
    seed: Natural = None,
    starts: str | None = None,
    trace: str | None = None,
    processors: Positive = None,
    strict: Switch = False,
    force: Switch = False,
) -> None:
    """Compare schedulers on the same windows: table in the terminal, Markdown, LaTeX, Parquet and report.html.

    Parameters
    ----------
    out
        Folder for the results; refused if it exists and is not empty.
    scenario
        A shipped scenario (greenbatch scenario list) or a TOML file.
    schedulers
        Names separated by commas, each policy+backfill; the scenario's own if not given.
    baseline
        Scheduler that the others are compared to; the first one if not given.
    windows
        Number of random windows, instead of the scenario's windows.
    jobs
        Jobs of a window.
    seed
        Seed of random windows and random schedulers.
    starts
        First jobs of the windows, separated by commas, instead of random ones.
    trace
        Jobs to use instead of the scenario's: a file, or a name in greenbatch data list.
    processors
        Machine size, instead of the scenario's.
    strict
        Refuse what would otherwise be repaired or dropped while the trace is read.
    force
        Replace an earlier result in the folder.
    """
    if starts is not None and (windows is not None or seed is not None):
        problem = "are random windows, --starts are given ones"
        raise InputError(problem, field="--windows and --seed", fix="give one or the other")
    names = None if schedulers is None else items(schedulers, "--schedulers")
    given = None if starts is None else [whole(text, "--starts", 0) for text in items(starts, "--starts")]
    run_comparison(
        out, scenario, schedulers=names, baseline=baseline, windows=windows, jobs=jobs, seed=seed, starts=given,
        trace=trace, processors=processors, strict=strict, force=force,
    )  # fmt: skip


def run_comparison(
    out: Path,
    scenario: str,
    *,
    schedulers: Sequence[str] | None = None,
    baseline: str | None = None,
    windows: int | None = None,
    jobs: int | None = None,
    seed: int | None = None,
    starts: Sequence[int] | None = None,
    trace: str | None = None,
    processors: int | None = None,
    strict: bool = False,
    force: bool = False,
) -> None:
    """Compare, write the results and print the table; what is not given is taken from the scenario."""
    from greenbatch.cli.output import result_folder, write_record
    from greenbatch.scenarios import load_scenario

    with result_folder(out, force=force) as folder:
        question = load_scenario(scenario, trace=trace, processors=processors, strict=strict)
        names = tuple(schedulers or question.evaluation.schedulers)
        base = baseline or (question.evaluation.baseline if question.evaluation.baseline in names else names[0])
        length = jobs or question.evaluation.jobs
        first = choose_starts(question, starts=starts, windows=windows, jobs=length, seed=seed)
        raise NotImplementedError


def choose_starts(
    scenario: Scenario, *, starts: Sequence[int] | None, windows: int | None, jobs: int, seed: int | None
) -> tuple[int, ...]:
    """First jobs of the windows: as given, else random if asked for, else the scenario's.

    Raises:
        InputError: a window reaches beyond the trace.
    """
    own = scenario.evaluation
    if starts is None and windows is None and seed is None and own.starts is not None:
        starts = own.starts
    if starts is None:
        return scenario.random_starts(windows or own.windows, jobs, own.seed if seed is None else seed)
    for start in starts:
        scenario.window(start, jobs)
    return tuple(starts)
