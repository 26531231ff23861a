"""Test trained agents, write the results and print them: how every ``reproduce --train`` ends."""

from __future__ import annotations

import json as encoder
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from greenbatch.cli.progress import progress_line
from greenbatch.errors import visible

if TYPE_CHECKING:
    from greenbatch.experiments.reports.tables import Table
    from greenbatch.experiments.running.cells import Progress

Result = TypeVar("Result")


def evaluate_and_tell(
    test: Callable[[Progress], list[Result]], *, write: Callable[[list[Result], Path], None],
    rows: Callable[[list[Result]], list[dict[str, Any]]], show: Callable[[list[Result]], None],
    target: Path | None, force: bool, json: bool,
) -> None:  # fmt: skip
    """Test, write the results if a folder is given, and print them.

    Args:
        test: simulates, and tells its progress.
        write: writes the results into a folder.
        rows: the results as JSON.
        show: prints them as tables.
        target: folder of the results; None to write none.
        force: replace earlier results.
        json: print JSON instead of tables.
    """
    from greenbatch.experiments.reports.result_folder import result_folder

    def tested() -> list[Result]:
        with progress_line() as line:
            return test(line)

    if target is None:
        made = tested()
    else:
        with result_folder(target, force=force) as folder:
            made = tested()
            write(made, folder)
    if json:
        print(encoder.dumps(rows(made), indent=2, allow_nan=False))
        return
    show(made)
    if target is not None:
        print(f"written to {visible(str(target))}")


def test_and_tell(
    test: Callable[[Progress], list[Result]], report: Any, write: Callable[[list[Result], Path, Sequence[str]], None],
    *, target: Path | None, force: bool, json: bool,
) -> None:  # fmt: skip
    """`evaluate_and_tell` of a study whose report is a module with ``rows_of``, ``all_tables`` and ``all_lines``.

    Args:
        test: simulates, and tells its progress.
        report: the module.
        write: writes the results of a command line into a folder.
        target: folder of the results; None to write none.
        force: replace earlier results.
        json: print JSON instead of tables.
    """
    from greenbatch.cli.app import COMMAND

    evaluate_and_tell(
        test, write=lambda made, folder: write(made, folder, COMMAND.get()), rows=report.rows_of,
        show=lambda made: print_with_notes(report.all_tables(made, narrow=True), report.all_lines(made)),
        target=target, force=force, json=json,
    )  # fmt: skip


def print_with_notes(tables: Sequence[Table], lines: Sequence[str]) -> None:
    """Print tables, each note once, and lines behind them."""
    from dataclasses import replace

    from rich.console import Console

    from greenbatch.experiments.reports.terminal import TerminalTable

    console, told = Console(), set[str]()
    for table in tables:
        console.print(TerminalTable(replace(table, notes=tuple(note for note in table.notes if note not in told))))
        told.update(table.notes)
    for line in lines:
        console.print(line, markup=False, highlight=False, style="dim")
