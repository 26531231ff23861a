"""``greenbatch reproduce``: published tables beside ours."""

from __future__ import annotations

import json as encoder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.cli.flags import Switch, items, whole
from greenbatch.cli.progress import progress_line

if TYPE_CHECKING:
    from collections.abc import Sequence


def reproduce(
    protocol: str,
    *,
    json: Switch = False,
    traces: str | None = None,
    starts: str | None = None,
    sigma: float | None = None,
    out: Path | None = None,
    force: Switch = False,
) -> None:
    """Compute the tables of a paper, cell by cell beside the published figures.

    Parameters
    ----------
    protocol
        gas-marl or rlscheduler.
    json
        Print the cells as JSON instead of a table.
    traces
        Only these traces of the paper, separated by commas.
    starts
        Other windows than the paper's: first jobs, separated by commas.
    sigma
        Another threshold of brown energy than the paper's 50000. [J]
    out
        Folder for cells.json, report.html and provenance.json; nothing is written without it.
    force
        Replace an earlier result in the folder.
    """
    from greenbatch.cli.output import result_folder
    from greenbatch.experiments.reproduce import reproduce as run

    given = None if starts is None else [whole(text, "--starts", 0) for text in items(starts, "--starts")]
    names = None if traces is None else items(traces, "--traces")

    def cells() -> list[dict[str, Any]]:
        with progress_line() as show:
            return run(protocol, traces=names, starts=given, sigma=sigma, progress=show)

    if out is None:
        made = cells()
    else:
        with result_folder(out, force=force) as folder:
            made = cells()
            write_cells(protocol, made, folder, {"traces": names, "starts": given, "sigma": sigma})
    if json:
        print(encoder.dumps(made, indent=2, allow_nan=False))
    else:
        print_cells(made)


def write_cells(protocol: str, cells: Sequence[dict[str, Any]], folder: Path, settings: dict[str, Any]) -> None:
    """Write cells.json, report.html and provenance.json."""
    from greenbatch.cli.app import COMMAND
    from greenbatch.cli.output import write_record
    from greenbatch.experiments.report import write_reproduction
    from greenbatch.experiments.reproduce import PROTOCOLS
    from greenbatch.provenance import provenance
    from greenbatch.scenarios import load_scenario

    wanted = settings["traces"] or PROTOCOLS[protocol].traces
    scenarios = {trace: load_scenario(PROTOCOLS[protocol].traces[trace]) for trace in wanted}
    record = provenance(
        scenario={trace: scenario.resolved for trace, scenario in scenarios.items()},
        inputs={file: digest for scenario in scenarios.values() for file, digest in scenario.inputs.items()},
        notes=list(dict.fromkeys(note for scenario in scenarios.values() for note in scenario.notes)),
        settings={"protocol": protocol, **settings},
        command=COMMAND.get(),
    )
    text = encoder.dumps(list(cells), indent=2, allow_nan=False) + "\n"
    (folder / "cells.json").write_text(text, encoding="utf-8")
    write_reproduction(
        folder / "report.html", title=PROTOCOLS[protocol].title, command=" ".join(COMMAND.get()), cells=cells,
        provenance=record,
    )  # fmt: skip
    write_record(folder, record)


def print_cells(cells: Sequence[dict[str, Any]]) -> None:
    """The cells as a table, the reasons below it, and how many came out as published."""
    from collections import Counter

    from rich.console import Console

    from greenbatch.experiments.tables import MAIN, reproduction_table, to_rich

    console = Console()
    short = {column.metric: column.short for column in MAIN}
    # In a terminal remarks and long names would be folded into columns of a few characters.
    shown = [
        {**cell, "reason": "", "metric": short.get(cell["metric"], cell["metric"].partition("_")[0])} for cell in cells
    ]
    console.print(to_rich(reproduction_table(shown)))
    told: dict[str, list[str]] = {}
    for cell in cells:
        if cell["reason"]:
            told.setdefault(cell["reason"], []).append(f"{cell['scheduler']}+{cell['backfill']}")
    for reason, names in told.items():
        console.print(f"{', '.join(dict.fromkeys(names))}: {reason}", markup=False, highlight=False, style="dim")
    verdicts = Counter(cell["verdict"] for cell in cells)
    console.print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()), highlight=False)
