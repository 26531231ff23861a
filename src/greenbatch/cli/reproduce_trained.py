"""``greenbatch reproduce --train``: train and evaluate a paper's learned columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from greenbatch.cli.flags import check_training_flags, items, whole
from greenbatch.cli.progress import progress_line
from greenbatch.cli.reproduce_results import evaluate_and_tell
from greenbatch.errors import InputError, Interrupted
from greenbatch.workers import Workers

if TYPE_CHECKING:
    from greenbatch.experiments.papers.studies import Cell, Selection, Study, Trains
    from greenbatch.experiments.papers.study_results import Result

RESULTS = "results"
OPTIONAL = ("goals", "backfills", "windows", "eta", "mixes")
"""Flags that only some studies have."""
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFlags:
    """The flags of ``--train`` and ``--trained`` as given on the command line."""

    traces: str | None = None
    seeds: str | None = None
    presets: str | None = None
    goals: str | None = None
    backfills: str | None = None
    windows: str | None = None
    eta: str | None = None
    mixes: str | None = None
    epochs: int | None = None
    minutes: float | None = None
    threads: int | None = None
    overrides: list[str] | None = None
    workers: Workers | None = None


def reproduce_trained(
    protocol: str, flags: TrainingFlags, *, out: Path | None, trained: Path | None, json: bool, force: bool
) -> None:
    """Train missing cells unless ``trained`` is given, evaluate all, write the results and print the tables.

    Raises:
        InputError: a flag is invalid, or a folder contains a different training.
        KeyboardInterrupt: stopped by the user; the same command resumes.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.experiments.papers.outputs import write_results
    from greenbatch.experiments.papers.studies import cells_of, study, trained_part
    from greenbatch.experiments.papers.study_results import results

    paper = study(protocol)
    refuse_others(flags, ("goals", "backfills", "windows", "eta"), protocol)
    which = _selection(paper, flags)
    place, target = folders_of(out, trained)
    if trained is None:
        train_cells(paper, cells_of(paper, which), place, flags)
    elif flags.traces is flags.presets is flags.windows is None:
        which = trained_part(paper, which, place)

    evaluate_and_tell(
        lambda progress: results(paper, which, place, progress=progress, workers=flags.workers),
        write=lambda made, folder: write_results(paper, made, folder, COMMAND.get()),
        rows=rows_of, show=print_results, target=target, force=force or trained is None, json=json,
    )  # fmt: skip


def rows_of(made: Sequence[Result]) -> list[dict[str, Any]]:
    """The rows of all results."""
    return [row for result in made for row in result.rows]


def folders_of(out: Path | None, trained: Path | None) -> tuple[Path, Path | None]:
    """Folder of the trainings, and folder of the results if they are to be written.

    Raises:
        InputError: neither is given, or there are no trainings.
    """
    if trained is None:
        if out is None:
            raise InputError("is not given", field="--out", fix="give the folder of the trainings")
        if out.exists() and not out.is_dir():
            raise InputError("is not a folder", file=out, field="--out", fix="give a folder for the trainings")
        return out, out / RESULTS
    if not trained.is_dir():
        raise InputError("is not a folder", file=trained, field="--trained", fix="give the --out of a --train")
    return trained, out


def check_trained(cells: Sequence[Cell], place: Path) -> None:
    """Refuse a folder without a finished training of what is selected.

    Raises:
        InputError: there is none.
    """
    from greenbatch.learning.several import state_of

    if not any(state_of(place / cell.folder) == "finished" for cell in cells):
        fix = "give the --out of a --train, or other --traces, --presets and --seeds"
        raise InputError("has no finished training of what is selected", file=place, field="--trained", fix=fix)


def _selection(paper: Study, flags: TrainingFlags) -> Selection:
    from greenbatch.experiments.papers.studies import select

    return select(
        paper, traces=listed(flags.traces, "--traces"), presets=listed(flags.presets, "--presets"),
        goals=listed(flags.goals, "--goals"), backfills=listed(flags.backfills, "--backfills"),
        windows="both" if flags.windows is None else flags.windows,
        seeds=seeds_of(flags, "0,1,2"),
        etas=_each(flags.eta, "--eta", _number),
    )  # fmt: skip


def listed(text: str | None, flag: str) -> list[str] | None:
    """The names of a flag; None if it is not given."""
    return None if text is None else items(text, flag)


def refuse_others(flags: TrainingFlags, own: Collection[str], study: str) -> None:
    """Refuse the flags of `OPTIONAL` that a study does not have.

    Args:
        flags: the flags of the command line.
        own: those that it has.
        study: its name.

    Raises:
        InputError: one of the others is given.
    """
    for name in OPTIONAL:
        if name not in own and getattr(flags, name) is not None:
            raise InputError(f"does not apply to {study}", field=f"--{name}", fix="leave it out")


def seeds_of(flags: TrainingFlags, default: str) -> list[int]:
    """The seeds of ``--seeds``, or the default ones."""
    given = default if flags.seeds is None else flags.seeds
    return _each(given, "--seeds", lambda text: whole(text, "--seeds", 0))


def _each(text: str | None, flag: str, read: Callable[[str], Value]) -> list[Value]:
    return [] if text is None else [read(part) for part in items(text, flag)]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{text[:40]!r} is not a number", field="--eta", fix="give a number, e.g. 0.002") from None


def train_cells(
    paper: Trains, cells: Sequence[Cell], place: Path, flags: TrainingFlags,
    changes: Callable[[Cell], Mapping[str, Any]] | None = None,
) -> None:  # fmt: skip
    """Train all unfinished cells, on scenarios with changes, see `train_missing`.

    Raises:
        InputError: a flag is invalid, torch is missing, or a folder contains a different training.
        Interrupted: stopped by the user; the same command resumes.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.experiments.papers.studies import Budget, train_missing
    from greenbatch.learning.runs.plan import parse_overrides
    from greenbatch.learning.trainers import need_torch
    from greenbatch.presets.preset import preset

    check_training_flags(flags.epochs, flags.minutes, resume=False, force=False)
    if any("search" not in preset(name).training for name in {cell.agent.preset for cell in cells}):
        need_torch()
    budget = Budget(
        epochs=flags.epochs, minutes=flags.minutes, threads=flags.threads,
        overrides=parse_overrides(flags.overrides), command=COMMAND.get(),
    )  # fmt: skip
    try:
        with progress_line() as show:
            train_missing(
                paper, cells, place, budget, progress=show, tell=_tell, changes=changes, workers=flags.workers
            )
    except KeyboardInterrupt:
        raise Interrupted(f"finished trainings are kept in {place}; repeat the same command to resume") from None


def _tell(line: str) -> None:
    import sys

    clear = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{clear}{line}", file=sys.stderr, flush=True)


def print_results(made: Sequence[Result]) -> None:
    """Print the tables, reduced to the width of a terminal, and the remarks on them."""
    from rich.console import Console

    from greenbatch.experiments.papers.study_report import all_lines, all_tables
    from greenbatch.experiments.reports.terminal import TerminalTable

    console = Console()
    for table in all_tables(made, narrow=True):
        console.print(TerminalTable(table))
    for line in all_lines(made):
        console.print(line, markup=False, highlight=False, style="dim")
