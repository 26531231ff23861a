"""``greenbatch reproduce`` of studies that are no protocols, because their papers' figures are of other data.

Each has a module with a function ``own_study``, which returns what is its own about it; this module does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.cli.reproduce_results import test_and_tell
from greenbatch.cli.reproduce_trained import TrainingFlags, check_trained, folders_of, listed, refuse_others, seeds_of
from greenbatch.errors import InputError
from greenbatch.workers import Workers

if TYPE_CHECKING:
    from greenbatch.experiments.papers.studies import Cell, Selection, Study
    from greenbatch.experiments.running.cells import Progress

Results = Callable[["Selection", Path | None, Sequence[int] | None, Workers | None, "Progress"], list[Any]]
"""Plays a selection: folder of the trainings or None, episodes or None for the usual ones, processes, progress."""


def _as_given(names: Sequence[str] | None) -> Sequence[str] | None:
    return names


def _no_files(which: Selection) -> Iterable[str]:
    del which
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnStudy:
    """What is a study's own."""

    study: Study
    seeds: str
    """Seeds by default."""
    presets: Sequence[str] | None
    """Presets by default; None for all."""
    cells: Callable[[Selection], list[Cell]]
    """What is trained of a selection."""
    train: Callable[[Selection, Path, TrainingFlags], None]
    """Trains what is missing of a selection in a folder."""
    results: Results
    report: Any
    """Module with ``rows_of``, ``all_tables`` and ``all_lines``."""
    write: Callable[[list[Any], Path, Sequence[str]], None]
    """Writes the results of a command line into a folder."""
    flags: tuple[str, ...] = ()
    """Flags of `reproduce_trained.OPTIONAL` that it has."""
    traces: Callable[[Sequence[str] | None], Sequence[str] | None] = _as_given
    """Names of settings, as given -> those of the study."""
    files: Callable[[Selection], Iterable[str]] = _no_files
    """Files that a selection needs beside those of its scenarios."""


def play_rules(
    own: OwnStudy, *, traces: str | None, starts: Sequence[int] | None, sigma: float | None, workers: Workers | None,
    out: Path | None, json: bool, force: bool,
) -> None:  # fmt: skip
    """Play the rows that need no training.

    Args:
        own: the study.
        traces: names of settings, separated by commas; the usual ones if None.
        starts: first jobs of the episodes or numbers of the draws, instead of the settings' own.
        sigma: a flag of other studies.
        workers: number of processes; results do not depend on it.
        out: folder of the results; nothing is written without it.
        json: print the rows as JSON instead of tables.
        force: replace earlier results.

    Raises:
        InputError: there is no such setting, a window reaches beyond it, or ``sigma`` is given.
        DataMissing: a file is not on this machine.
    """
    if sigma is not None:
        raise InputError(f"does not apply to {own.study.name}", field="--sigma", fix="leave it out")
    which = _selection(own, TrainingFlags(traces=traces))
    _test(own, which, None, out, json=json, force=force, starts=starts, workers=workers)


def play_agents(
    own: OwnStudy, flags: TrainingFlags, *, out: Path | None, trained: Path | None, json: bool, force: bool
) -> None:  # fmt: skip
    """Train missing agents unless ``trained`` is given, and play all rows.

    Args:
        own: the study.
        flags: the flags of the command line.
        out: folder of the trainings, or of the results if ``trained`` is given.
        trained: folder of finished trainings.
        json: print the rows as JSON instead of tables.
        force: replace earlier results.

    Raises:
        InputError: a flag is invalid, torch is missing, or a folder contains a different training.
        Interrupted: stopped by the user; the same command resumes.
    """
    from greenbatch.experiments.papers.studies import trained_part

    refuse_others(flags, own.flags, own.study.name)
    which = _selection(own, flags)
    place, target = folders_of(out, trained)
    if trained is None:
        own.train(which, place, flags)
    else:
        check_trained(own.cells(which), place)
        if flags.traces is flags.presets is None:
            which = trained_part(own.study, which, place)
    _test(own, which, place, target, json=json, force=force or trained is None, workers=flags.workers)


def _selection(own: OwnStudy, flags: TrainingFlags) -> Selection:
    """What the flags select, once its files are found.

    Raises:
        InputError: a name is unknown.
        DataMissing: a file is not on this machine.
    """
    from greenbatch.data_catalog import need
    from greenbatch.experiments.papers.studies import KIND, select
    from greenbatch.scenarios.scenario import datasets_of

    which = select(
        own.study, traces=own.traces(listed(flags.traces, "--traces")),
        presets=listed(flags.presets, "--presets") or own.presets, backfills=listed(flags.backfills, "--backfills"),
        windows=KIND, seeds=seeds_of(flags, own.seeds),
    )  # fmt: skip
    need([*(file for name in which.traces for file in datasets_of(own.study.traces[name])), *own.files(which)])
    return which


def _test(
    own: OwnStudy, which: Selection, place: Path | None, target: Path | None, *, json: bool, force: bool,
    starts: Sequence[int] | None = None, workers: Workers | None = None,
) -> None:  # fmt: skip
    test_and_tell(
        lambda progress: own.results(which, place, starts, workers, progress), own.report, own.write, target=target,
        force=force, json=json,
    )  # fmt: skip
