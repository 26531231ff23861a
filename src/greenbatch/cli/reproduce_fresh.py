"""``greenbatch reproduce gas-marl --train --windows fresh``: train on generated jobs, test on the paper's windows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.cli.reproduce_results import evaluate_and_tell
from greenbatch.cli.reproduce_trained import (
    TrainingFlags,
    folders_of,
    listed,
    refuse_others,
    rows_of,
    seeds_of,
    train_cells,
)
from greenbatch.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenbatch.experiments.papers.study_results import Result

PROTOCOL, WINDOWS = "gas-marl", "fresh"


def reproduce_fresh(
    flags: TrainingFlags, *, out: Path | None, trained: Path | None, json: bool, force: bool
) -> None:  # fmt: skip
    """Train missing courses unless ``trained`` is given, test all, write the results and print the tables.

    Args:
        flags: the flags of the command line; ``traces`` names courses: test traces, or ``without-TRACE``.
        out: folder of the trainings, or of the results if ``trained`` is given.
        trained: folder of finished trainings.
        json: print the rows as JSON instead of tables.
        force: replace earlier results.

    Raises:
        InputError: a flag is invalid, or a folder contains a different training.
        Interrupted: stopped by the user; the same command resumes.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.experiments.papers.fresh import COURSES, FRESH, PRESET, Lessons, fresh_cells
    from greenbatch.experiments.papers.fresh_results import fresh_results
    from greenbatch.experiments.papers.outputs import write_results
    from greenbatch.experiments.papers.studies import known_names
    from greenbatch.learning.several import state_of

    refuse_others(flags, ("windows",), f"--windows {WINDOWS}")
    if (presets := listed(flags.presets, "--presets")) not in (None, [PRESET]):
        raise InputError(f"is {', '.join(presets or [])}", field="--presets", fix=f"leave it out, or give {PRESET}")
    place, target = folders_of(out, trained)
    seeds = seeds_of(flags, "0,1,2")
    courses = known_names(listed(flags.traces, "--traces"), tuple(COURSES), COURSES, "--traces")
    cells = fresh_cells(place, courses=courses, seeds=seeds)
    traces = [trace for trace in FRESH.traces if any(trace in COURSES[course].tests for course in courses)]
    if trained is not None and not any(state_of(place / cell.folder) == "finished" for cell in cells):
        fix = "give the --out folder of a reproduction with --train --windows fresh"
        raise InputError("contains no finished training of these traces and seeds", field="--trained", fix=fix)
    if trained is None:
        train_cells(Lessons(), cells, place, flags)

    evaluate_and_tell(
        lambda progress: fresh_results(place, traces=traces, seeds=seeds, progress=progress, workers=flags.workers),
        write=lambda made, folder: write_results(FRESH, made, folder, COMMAND.get()),
        rows=rows_of, show=print_tables, target=target, force=force or trained is None, json=json,
    )  # fmt: skip


def print_tables(made: Sequence[Result]) -> None:
    """Print the tables, and what is missing from them."""
    from rich.console import Console

    from greenbatch.experiments.papers.fresh_tables import fresh_tables
    from greenbatch.experiments.papers.study_tables import not_trained
    from greenbatch.experiments.reports.terminal import TerminalTable

    console = Console()
    for table in fresh_tables(rows_of(made)):
        console.print(TerminalTable(table))
    for line in [line for result in made if result.windows == "published" for line in not_trained(result)]:
        console.print(line, markup=False, highlight=False, style="dim")
