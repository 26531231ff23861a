"""``greenbatch reproduce rare``: rules and shipped models, and with ``--train`` agents, on jobs with value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenbatch.cli.reproduce_own import OwnStudy
from greenbatch.cli.reproduce_trained import TrainingFlags, train_cells

if TYPE_CHECKING:
    from greenbatch.experiments.papers.studies import Cell, Selection


def own_study(flags: TrainingFlags) -> OwnStudy:
    """What is its own; no flag changes it.

    Agents are trained where jobs are drawn by a generator; on real traces the shipped model stands for them.
    """
    from greenbatch.experiments.papers import rare_report as report
    from greenbatch.experiments.papers.rare import SETTINGS, STUDY, USUAL_PRESETS, selected, training_changes
    from greenbatch.experiments.papers.rare_results import rare_results
    from greenbatch.experiments.papers.studies import cells_of

    def cells(which: Selection) -> list[Cell]:
        return [cell for cell in cells_of(STUDY, which) if not SETTINGS[cell.trace].trace]

    def files(which: Selection) -> list[str]:
        given = (SETTINGS[name].overrides.get("workload.dataset") for name in which.traces)
        return [str(file) for file in given if file]

    del flags
    return OwnStudy(
        study=STUDY, seeds="0,1,2", presets=USUAL_PRESETS, traces=selected, files=files, cells=cells,
        train=lambda which, place, given: train_cells(STUDY, cells(which), place, given, training_changes),
        results=lambda which, place, draws, workers, progress: rare_results(
            which, place, draws=draws, workers=workers, progress=progress
        ),
        report=report, write=report.write_rare,
    )  # fmt: skip
