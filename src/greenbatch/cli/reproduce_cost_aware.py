"""``greenbatch reproduce cost-aware``: rules and searches, and with ``--train`` agents, under prices."""

from __future__ import annotations

from greenbatch.cli.reproduce_own import OwnStudy
from greenbatch.cli.reproduce_trained import TrainingFlags, train_cells


def own_study(flags: TrainingFlags) -> OwnStudy:
    """What is its own; no flag changes it."""
    from greenbatch.experiments.papers import cost_aware_report as report
    from greenbatch.experiments.papers.cost_aware import LESSONS, STUDY
    from greenbatch.experiments.papers.cost_aware_results import cost_aware_results
    from greenbatch.experiments.papers.studies import cells_of

    del flags
    return OwnStudy(
        study=STUDY, seeds="0,1,2", presets=None, flags=("backfills",), cells=lambda which: cells_of(STUDY, which),
        train=lambda which, place, given: train_cells(LESSONS, cells_of(STUDY, which), place, given),
        results=lambda which, place, starts, workers, progress: cost_aware_results(
            which, place, starts=starts, workers=workers, progress=progress
        ),
        report=report, write=report.write_cost_aware,
    )  # fmt: skip
