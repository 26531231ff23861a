"""``greenbatch reproduce rare``: rules and shipped models, and with ``--train`` agents, on jobs with value."""

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

OF_OTHERS = ("goals", "backfills", "windows", "eta")
"""Flags of other studies."""


def reproduce_rules(
    *, traces: str | None, starts: Sequence[int] | None, sigma: float | None, workers: int | None, out: Path | None,
    json: bool, force: bool,
) -> None:  # fmt: skip
    """Play the rows that need no training.

    Args:
        traces: names of settings or figures, separated by commas; the usual ones if None.
        starts: numbers of the draws, instead of the settings' own.
        sigma: a flag of other studies.
        workers: number of processes; results do not depend on it.
        out: folder of the results; nothing is written without it.
        json: print the rows as JSON instead of tables.
        force: replace earlier results.

    Raises:
        InputError: there is no such setting, or ``sigma`` is given.
        DataMissing: a file is not on this machine.
    """
    if sigma is not None:
        raise InputError("does not apply to rare", field="--sigma", fix="leave it out")
    _test(_selection(TrainingFlags(traces=traces)), None, out, json=json, force=force, starts=starts, workers=workers)


def reproduce_agents(
    flags: TrainingFlags, *, out: Path | None, trained: Path | None, json: bool, force: bool
) -> None:  # fmt: skip
    """Train missing agents unless ``trained`` is given, and play all rows.

    Agents are trained where jobs are drawn by a generator; on real traces the shipped model stands for them.

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
    from greenbatch.experiments.papers.rare import SETTINGS, STUDY, training_changes
    from greenbatch.experiments.papers.studies import cells_of, trained_part

    refuse(flags, OF_OTHERS, "rare")
    which = _selection(flags)
    place, target = folders_of(out, trained)
    cells = [cell for cell in cells_of(STUDY, which) if not SETTINGS[cell.trace].trace]
    if trained is None:
        train_cells(STUDY, cells, place, flags, training_changes)
    else:
        check_trained(cells, place)
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
    from greenbatch.experiments.papers.rare import SETTINGS, STUDY, USUAL_PRESETS, selected
    from greenbatch.experiments.papers.rare_results import KIND
    from greenbatch.experiments.papers.studies import select
    from greenbatch.scenarios.scenario import datasets_of

    which = select(
        STUDY, traces=selected(listed(flags.traces, "--traces")),
        presets=listed(flags.presets, "--presets") or USUAL_PRESETS, windows=KIND, seeds=seeds_of(flags, "0,1,2"),
    )  # fmt: skip
    given = [SETTINGS[name].overrides.get("workload.dataset") for name in which.traces]
    need([*(f for name in which.traces for f in datasets_of(STUDY.traces[name])), *(str(f) for f in given if f)])
    return which


def _test(
    which: Selection, place: Path | None, target: Path | None, *, json: bool, force: bool,
    starts: Sequence[int] | None = None, workers: int | None = None,
) -> None:  # fmt: skip
    from greenbatch.experiments.papers import rare_report as report
    from greenbatch.experiments.papers.rare_results import rare_results

    test_and_tell(
        lambda progress: rare_results(which, place, draws=starts, workers=workers, progress=progress),
        report, report.write_rare, target=target, force=force, json=json,
    )  # fmt: skip
