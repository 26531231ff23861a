"""``greenbatch reproduce cost-aware``: rules and searches, and with ``--train`` agents, under prices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.cli.reproduce_results import test_and_tell
from greenbatch.cli.reproduce_trained import (
    TrainingFlags,
    check_trained,
    folders_of,
    listed,
    refuse,
    seeds_of,
    train_cells,
)
from greenbatch.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenbatch.experiments.papers.studies import Selection

OF_OTHERS = ("goals", "windows", "eta")
"""Flags of other studies."""


def reproduce_rules(
    *, traces: str | None, starts: Sequence[int] | None, sigma: float | None, workers: int | None, out: Path | None,
    json: bool, force: bool,
) -> None:  # fmt: skip
    """Compute the rows that need no training.

    Args:
        traces: names of traces, separated by commas; all if None.
        starts: first jobs of the test windows, instead of the scenarios' own.
        sigma: a flag of other studies.
        workers: number of processes; results do not depend on it.
        out: folder of the results; nothing is written without it.
        json: print the rows as JSON instead of tables.
        force: replace earlier results.

    Raises:
        InputError: there is no such trace, a window reaches beyond it, or ``sigma`` is given.
        DataMissing: a file is not on this machine.
    """
    if sigma is not None:
        raise InputError("does not apply to cost-aware", field="--sigma", fix="leave it out")
    which = _selection(TrainingFlags(traces=traces))
    _test(which, None, out, json=json, force=force, starts=starts, workers=workers)


def reproduce_agents(
    flags: TrainingFlags, *, out: Path | None, trained: Path | None, json: bool, force: bool
) -> None:  # fmt: skip
    """Train missing agents unless ``trained`` is given, and test all rows.

    Args:
        flags: the flags of the command line.
        out: folder of the trainings, or of the results if ``trained`` is given.
        trained: folder of finished trainings.
        json: print the rows as JSON instead of tables.
        force: replace earlier results.

    Raises:
        InputError: a flag is invalid, torch is missing, or a folder contains a different training.
        Interrupted: stopped by the user; the same command resumes.
    """
    from greenbatch.experiments.papers.cost_aware import LESSONS, STUDY
    from greenbatch.experiments.papers.studies import cells_of, trained_part

    refuse(flags, OF_OTHERS, "cost-aware")
    which = _selection(flags)
    place, target = folders_of(out, trained)
    if trained is None:
        train_cells(LESSONS, cells_of(STUDY, which), place, flags)
    else:
        check_trained(cells_of(STUDY, which), place)
        if flags.traces is flags.presets is None:
            which = trained_part(STUDY, which, place)
    _test(which, place, target, json=json, force=force or trained is None)


def _selection(flags: TrainingFlags) -> Selection:
    """What the flags select, once its files are found.

    Raises:
        InputError: a name is unknown.
        DataMissing: a file is not on this machine.
    """
    from greenbatch.data_catalog import need
    from greenbatch.experiments.papers.cost_aware import STUDY
    from greenbatch.experiments.papers.cost_aware_results import KIND
    from greenbatch.experiments.papers.studies import select
    from greenbatch.scenarios.scenario import datasets_of

    which = select(
        STUDY, traces=listed(flags.traces, "--traces"), presets=listed(flags.presets, "--presets"),
        backfills=listed(flags.backfills, "--backfills"), windows=KIND, seeds=seeds_of(flags, "0,1,2"),
    )  # fmt: skip
    need(file for trace in which.traces for file in datasets_of(STUDY.traces[trace]))
    return which


def _test(
    which: Selection, place: Path | None, target: Path | None, *, json: bool, force: bool,
    starts: Sequence[int] | None = None, workers: int | None = None,
) -> None:  # fmt: skip
    from greenbatch.experiments.papers import cost_aware_report as report
    from greenbatch.experiments.papers.cost_aware_results import cost_aware_results

    test_and_tell(
        lambda progress: cost_aware_results(which, place, starts=starts, workers=workers, progress=progress),
        report, report.write_cost_aware, target=target, force=force, json=json,
    )  # fmt: skip
