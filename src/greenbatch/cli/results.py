"""``greenbatch results``: the single runs of a comparison, also while it is running."""

from __future__ import annotations

import json as encoder
from pathlib import Path

from greenbatch.cli.flags import Positive, Switch, items
from greenbatch.cli.listing import say

ROWS = 40
"""Rows that a terminal shows by default."""


def results(
    folder: Path,
    /,
    *,
    where: str | None = None,
    columns: str | None = None,
    sort: str | None = None,
    rows: Positive = None,
    json: Switch = False,
) -> None:
    """Show the single runs of a comparison or a sweep, also while it is running.

    Parameters
    ----------
    folder
        The --out of greenbatch compare or whatif.
    where
        Condition on columns in SQL, such as "capacity_kwh >= 500 AND horizon_cost < 100".
    columns
        Metrics to show, separated by commas; by default the first of the main table, and those of --where.
    sort
        Column to sort by, from the lowest; with a minus sign (--sort=-horizon_cost), from the highest.
    rows
        Rows to show at most; 40 by default. --json always has all.
    json
        Print one JSON object per run instead of the table.
    """
    from rich.console import Console

    from greenbatch.experiments.reports.result_folder import RECORD
    from greenbatch.experiments.reports.runs import chosen, read_runs, runs_table
    from greenbatch.experiments.reports.terminal import TerminalTable

    runs = read_runs(folder)
    found = chosen(runs, where=where, columns=None if columns is None else items(columns, "--columns"), sort=sort)
    if json:
        for row in found.iter_rows(named=True):
            print(encoder.dumps(row, allow_nan=False))
        return
    Console().print(TerminalTable(runs_table(runs, found, rows or ROWS)))
    if runs.notes:
        count = f"{len(runs.notes)} note" + "s" * (len(runs.notes) > 1)
        say(f"{count} on the inputs, first: {runs.notes[0]} (see {RECORD})")
