"""``greenbatch reproduce offline``: rules, and with ``--train`` agents that learn from their decisions, or online."""

from __future__ import annotations

from greenbatch.cli.reproduce_own import OwnStudy
from greenbatch.cli.reproduce_trained import TrainingFlags, listed, train_cells


def own_study(flags: TrainingFlags) -> OwnStudy:
    """What is its own; ``--mixes`` selects the datasets that agents learn from.

    Raises:
        InputError: there is no such mix.
    """
    from greenbatch.experiments.papers import offline_report as report
    from greenbatch.experiments.papers.offline import USUAL_PRESETS, study_of, training_changes
    from greenbatch.experiments.papers.offline_results import offline_results
    from greenbatch.experiments.papers.studies import cells_of

    study = study_of(listed(flags.mixes, "--mixes"))
    return OwnStudy(
        study=study, seeds="0,1,2,3,4", presets=USUAL_PRESETS, flags=("mixes",),
        cells=lambda which: cells_of(study, which),
        train=lambda which, place, given: train_cells(study, cells_of(study, which), place, given, training_changes),
        results=lambda which, place, draws, workers, progress: offline_results(
            study, which, place, draws=draws, workers=workers, progress=progress
        ),
        report=report, write=report.write_offline,
    )  # fmt: skip
