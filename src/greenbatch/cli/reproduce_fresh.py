"""``greenbatch reproduce gas-marl --train --windows fresh``: train on generated jobs, test on the paper's windows."""

from __future__ import annotations

import json as encoder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.cli.progress import progress_line
from greenbatch.cli.reproduce_trained import TrainingFlags, folders_of, listed, seeds_of, train_cells
from greenbatch.errors import InputError

if TYPE_CHECKING:
    from greenbatch.experiments.papers.study_results import Result

PROTOCOL, WINDOWS = "gas-marl", "fresh"
OF_OTHERS = ("goals", "backfills", "eta")
"""Flags of other windows."""


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
    from greenbatch.experiments.papers.studies import known_names, state_of
    from greenbatch.experiments.reports.result_folder import result_folder

    for name in OF_OTHERS:
        if getattr(flags, name) is not None:
            raise InputError(f"does not apply to --windows {WINDOWS}", field=f"--{name}", fix="leave it out")
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

    def tested() -> list[Result]:
        with progress_line() as show:
            return fresh_results(place, traces=traces, seeds=seeds, progress=show)

    if target is None:
        made = tested()
    else:
        with result_folder(target, force=force or trained is None) as folder:
            made = tested()
            write_results(FRESH, made, folder, COMMAND.get())
    rows = [row for result in made for row in result.rows]
    if json:
        print(encoder.dumps(rows, indent=2, allow_nan=False))
    else:
        print_tables(rows)
        if target is not None:
            print(f"written to {target}")


def print_tables(rows: list[dict[str, Any]]) -> None:
    """Print the tables."""
    from rich.console import Console

    from greenbatch.experiments.papers.fresh_tables import fresh_tables
    from greenbatch.experiments.reports.terminal import TerminalTable

    console = Console()
    for table in fresh_tables(rows):
        console.print(TerminalTable(table))
    for line in not_trained(rows):
        print(line)


def not_trained(rows: list[dict[str, Any]]) -> list[str]:
    """What is missing from the tables, a line per trace and training."""
    agents = [(row["trace"], row["agent"]) for row in rows if row["agent"] and row["agent"]["not_trained"]]
    lines = [
        f"{trace}, agent of {agent['trained_on']}: not trained for seed {', '.join(map(str, agent['not_trained']))}."
        for trace, agent in agents
    ]
    return list(dict.fromkeys(lines))
