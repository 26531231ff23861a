"""Tables in terminals of any width: every header, number and name is there and whole."""

from __future__ import annotations

import io

import polars
import pytest
from example_windows import example
from rich.console import Console

from greenbatch.experiments.papers.cells import reproduction_tables
from greenbatch.experiments.reports.columns import DETAIL, MAIN
from greenbatch.experiments.reports.tables import (
    Cell,
    Table,
    class_table,
    comparison_table,
    difference_table,
)
from greenbatch.experiments.reports.terminal import TerminalTable

LONG = "gas-marl-plus@runs/a/model:makespan_bound=1.25+none"
WIDTHS = (60, 80, 100, 120)


def printed(table: Table, width: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width).print(TerminalTable(table))
    return stream.getvalue()


@pytest.fixture(scope="module")
def frame() -> polars.DataFrame:
    frame = example(windows=4)[0]
    return frame.with_columns(polars.col("scheduler").str.replace("hold-2h+none", LONG, literal=True))


def tables(frame: polars.DataFrame) -> dict[str, Table]:
    cells = [
        {"table": "Table V", "trace": trace, "backfill": "easy-schedgym", "scheduler": name, "metric": metric,
         "published": 7842.5, "ours": ours, "digits": 1, "verdict": verdict, "reason": "a reason of some words"}
        for trace in ("Lublin-1", "SDSC-SP2")
        for metric in ("avg_bounded_slowdown", "utilization_to_last_start")
        for name, ours, verdict in (("UNICEP corrected, log2(n)", 7842.47, "equal"), ("RL", None, "not in the paper"))
    ]  # fmt: skip
    wide = Table("Wide", tuple((f"Column number {k}", "kWh", f"Number {k}") for k in range(14)),
                 tuple((f"{name}-{k}", tuple(Cell(f"{1e4 + k * j:,.1f}", f"[{k}.0, {j}.25]", "5 of 10")
                                             for j in range(14))) for k, name in enumerate(("a", LONG))))  # fmt: skip
    return {
        "terminal": comparison_table(frame, columns=MAIN[:5]), "main": comparison_table(frame, columns=MAIN),
        "detail": comparison_table(frame, columns=DETAIL, show_intervals=False), "class": class_table(frame),
        "difference": difference_table(frame, "fcfs+none"), "wide": wide,
        **{f"reproduction {k}": table for k, table in enumerate(reproduction_tables(cells))},
    }  # fmt: skip


def test_bold_is_explained_only_where_it_is_seen() -> None:
    table = comparison_table(example(windows=5)[0])
    assert "Bold" not in printed(table, 100), "a file has no bold"
    stream = io.StringIO()
    Console(file=stream, width=100, force_terminal=True, color_system="standard").print(TerminalTable(table))
    assert "Bold: best of the column." in stream.getvalue()
    assert "Bold" not in "".join(comparison_table(example(windows=2)[0]).lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_header_number_and_name_is_whole(frame: polars.DataFrame, width: int) -> None:
    for kind, table in tables(frame).items():
        text = printed(table, width)
        lines, words = text.splitlines(), [word.strip("[],") for word in text.split()]
        assert max(map(len, lines)) <= width, kind
        assert "…" not in text, kind
        assert table.corner in text
        for _, unit, short in table.columns:
            assert all(word in text for word in short.split()), (kind, short)
            assert f"[{unit}]" in text or not unit, (kind, unit)
        for name, cells in table.rows:
            assert any(name in line for line in lines), (kind, name)
            for cell in cells:
                for part in (cell.text, cell.interval, cell.remark):
                    assert all(word.strip("[],") in words for word in part.split()), (kind, part)


def test_a_row_keeps_its_figures_in_the_order_of_the_columns(frame: polars.DataFrame) -> None:
    table = comparison_table(frame, columns=MAIN[:5])
    wide = printed(table, 200).splitlines()
    for name, cells in table.rows:
        (line,) = [line for line in wide if line.startswith(name)]
        assert line.split() == [name, *(cell.text for cell in cells)]
    narrow = printed(table, 60).splitlines()
    for name, cells in table.rows:
        assert narrow[narrow.index(name) + 1].split() == [cell.text for cell in cells]


def test_blocks_repeat_the_names(frame: polars.DataFrame) -> None:
    table = tables(frame)["wide"]
    lines = printed(table, 60).splitlines()
    blocks = sum(line.strip() == "Scheduler" for line in lines)
    assert blocks > 1
    for name, _ in table.rows:
        assert lines.count(name) == blocks


def test_the_table_in_a_narrow_terminal_has_the_mean_wait(frame: polars.DataFrame) -> None:
    lines = printed(comparison_table(frame, columns=MAIN[:5]), 60).splitlines()
    end = next(k for k, line in enumerate(lines) if line.strip("\N{BOX DRAWINGS LIGHT HORIZONTAL} ") == "" and line)
    assert [line.split()[-1] for line in lines[end - 3 : end]] == ["Mean", "wait", "[h]"]


def test_a_name_longer_than_the_terminal_breaks_at_its_own_signs() -> None:
    name = "cheapest-start:psi=0.3:horizon=24:tick=600+none"
    text = printed(Table("T", (("X", "", "X"),), ((name, (Cell("1"),)),)), 30)
    assert "cheapest-start:psi=0.3:\nhorizon=24:tick=600+none" in text
    assert max(map(len, text.splitlines())) <= 30
