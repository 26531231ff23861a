"""``greenbatch reproduce cocorl``: rules, and with ``--train`` agents with and without a limit on the accrued cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.cli.reproduce_own import OwnStudy
from greenbatch.cli.reproduce_trained import TrainingFlags, train_cells

if TYPE_CHECKING:
    from greenbatch.experiments.papers.studies import Selection


def own_study(flags: TrainingFlags) -> OwnStudy:
    """What is its own; no flag changes it."""
    from greenbatch.experiments.papers import cocorl_report as report
    from greenbatch.experiments.papers.cocorl import STUDY, USUAL_PRESETS
    from greenbatch.experiments.papers.cocorl_results import cocorl_results
    from greenbatch.experiments.papers.studies import cells_of

    del flags
    return OwnStudy(
        study=STUDY, seeds="0,1,2,3,4", presets=USUAL_PRESETS, cells=lambda which: cells_of(STUDY, which),
        train=_train,
        results=lambda which, place, starts, workers, progress: cocorl_results(
            which, place, starts=starts, workers=workers, progress=progress
        ),
        report=report, write=report.write_cocorl,
    )  # fmt: skip


def _train(which: Selection, place: Path, flags: TrainingFlags) -> None:
    """Agents without a constraint are trained first: what they accrue sets the limits of the others."""
    from greenbatch.experiments.papers.cocorl import FREE, STUDY, limited, training_changes
    from greenbatch.experiments.papers.cocorl_limits import limits_of
    from greenbatch.experiments.papers.studies import cells_of

    if FREE in which.presets:
        train_cells(STUDY, cells_of(STUDY, replace(which, presets=(FREE,))), place, flags, training_changes)
    if others := tuple(preset for preset in which.presets if preset != FREE):
        study = limited(limits_of(which, place))
        train_cells(study, cells_of(study, replace(which, presets=others)), place, flags, training_changes)
