"""``greenbatch reproduce ineps --train``: train on one workload and test on orders of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.cli.reproduce_results import evaluate_and_tell
from greenbatch.cli.reproduce_trained import TrainingFlags, folders_of, listed, refuse_others, seeds_of, train_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenbatch.experiments.papers.order_results import TrialResult
    from greenbatch.experiments.papers.order_studies import OrderStudy


def reproduce_orders(
    study: OrderStudy, flags: TrainingFlags, *, out: Path | None, trained: Path | None, json: bool, force: bool,
    orders: Sequence[int] | None = None,
) -> None:  # fmt: skip
    """Train missing cells unless ``trained`` is given, test all, write the results and print the tables.

    Args:
        study: the paper.
        flags: the flags of the command line.
        out: folder of the trainings, or of the results if ``trained`` is given.
        trained: folder of finished trainings.
        json: print the rows as JSON instead of tables.
        force: replace earlier results.
        orders: seeds of the test orders, instead of the usual ones.

    Raises:
        InputError: a flag is invalid, torch is missing, or a folder contains a different training.
        Interrupted: stopped by the user; the same command resumes.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.experiments.papers.order_report import rows_of, write_orders
    from greenbatch.experiments.papers.order_results import evaluate_orders
    from greenbatch.experiments.papers.order_studies import order_cells, trained_cells
    from greenbatch.experiments.papers.orders import ORDERS
    from greenbatch.learning.trainers import need_torch

    refuse_others(flags, (), study.name)
    cells = order_cells(
        study, traces=listed(flags.traces, "--traces"), presets=listed(flags.presets, "--presets"),
        seeds=seeds_of(flags, "0,1,2,3,4"),
    )  # fmt: skip
    need_torch()  # also for the agent without training, beside any model
    place, target = folders_of(out, trained)
    if trained is None:
        train_cells(study, cells, place, flags)
    elif flags.traces is flags.presets is None:
        cells = trained_cells(cells, place)

    evaluate_and_tell(
        lambda progress: evaluate_orders(
            study, cells, place, orders=orders or ORDERS, progress=progress, workers=flags.workers
        ),
        write=lambda made, folder: write_orders(study, made, cells, place, folder, COMMAND.get()),
        rows=rows_of, show=print_tables, target=target, force=force or trained is None, json=json,
    )  # fmt: skip


def print_tables(made: Sequence[TrialResult]) -> None:
    """Print the tables, each note once, and whether agents need less than the best fixed rule."""
    from dataclasses import replace

    from rich.console import Console

    from greenbatch.experiments.papers.ineps_tables import all_tables, answers
    from greenbatch.experiments.reports.terminal import TerminalTable

    console, told = Console(), set[str]()
    for table in all_tables(made):
        console.print(TerminalTable(replace(table, notes=tuple(note for note in table.notes if note not in told))))
        told.update(table.notes)
    for line in answers(made):
        console.print(line, markup=False, highlight=False, style="dim")
