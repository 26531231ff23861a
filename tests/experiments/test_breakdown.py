"""Who gains and who waits: figures, changes and marks of the tables by partition, on figures made by hand."""

# ruff: noqa: RUF001 - typographic signs are what is tested.

from __future__ import annotations

import polars
import pytest

from greenbatch.experiments.reports.breakdown import breakdown_sections, gains_table, kinds, means_frame, part_means
from greenbatch.experiments.reports.tables import Table, write
from greenbatch.experiments.running.frames import breakdown, tidy, with_breakdown
from greenbatch.metrics.breakdown import AMOUNTS, NODE_METRICS, PART_METRICS, part_metric
from greenbatch.metrics.shares import BASE_LOAD, IDLE

HOUR_S = 3600.0
FIGURES = (*PART_METRICS, *AMOUNTS)
WAITS_H = {"fcfs": {"cpu": 2.0, "gpu": 1.0, "debug": 0.0}, "sjf": {"cpu": 1.0, "gpu": 4.0, "debug": 0.5}}


def results(windows: int, spread_h: float = 0.0, **parts: float) -> list[tuple[str, dict[str, dict[str, float]]]]:
    """Windows whose waits differ: the waits of sjf by a spread that alternates."""
    found = []
    for window in range(windows):
        table: dict[str, dict[str, float]] = {}
        for scheduler, waits in WAITS_H.items():
            shift_h = spread_h * (-1) ** window if scheduler == "sjf" else 0.0
            values = {"avg_wait_s": 1.0}
            for name, wait_h in waits.items():
                figures = dict.fromkeys(FIGURES, 7.0) | parts | {"avg_wait_s": (wait_h + shift_h) * HOUR_S}
                values |= {part_metric(metric, "partition", name): value for metric, value in figures.items()}
            table[scheduler] = values
        found.append((str(window), table))
    return found


def rows(table: Table | None) -> dict[str, list[tuple[str, str, str]]]:
    assert table is not None
    return {name: [(cell.text, cell.remark, cell.mark) for cell in cells] for name, cells in table.rows}


def test_one_window_shows_changes_and_marks_nothing() -> None:
    table = gains_table(breakdown(results(1)), "fcfs")
    assert rows(table) == {
        "cpu": [("2.00", "", ""), ("1.00", "−50%", "")],
        "gpu": [("1.00", "", ""), ("4.00", "4.0×", "")],
        "debug": [("0.00", "", ""), ("0.50", "+0.50", "")],
    }
    assert table is not None
    assert [header for header, _, _ in table.columns] == ["fcfs", "sjf"]
    assert table.notes[1].endswith("sjf: shorter for cpu and longer for gpu and debug.")


@pytest.mark.parametrize(("windows", "spread_h", "marks"), [
    (4, 0.0, ["", "", ""]), (6, 0.01, ["good", "bad", "bad"]), (6, 3.0, ["", "bad", ""]),
])  # fmt: skip
def test_changes_are_marked_where_enough_windows_agree(windows: int, spread_h: float, marks: list[str]) -> None:
    found = rows(gains_table(breakdown(results(windows, spread_h)), "fcfs"))
    assert [cells[1][2] for cells in found.values()] == marks
    assert all(cells[0][2] == "" for cells in found.values())


def test_all_parts_and_none() -> None:
    table = gains_table(breakdown(results(1)), "sjf")
    assert table is not None
    assert "fcfs: shorter for gpu and debug and longer for cpu." in table.notes[1]
    same = [(window, {"a": values["fcfs"], "b": values["fcfs"]}) for window, values in results(1)]
    table = gains_table(breakdown(same), "a")
    assert table is not None
    assert table.notes[1].endswith("b: about the same for all.")
    assert gains_table(breakdown([("0", {"a": {"avg_wait_s": 1.0}})]), "a") is None


def test_the_sections_show_energy_by_scheduler_only_where_it_differs() -> None:
    (section,) = breakdown_sections(breakdown(results(1)), "fcfs")
    titles = [table.title for table in section.tables]
    assert titles == ["Work by partition", "Mean wait by partition", "Wait, 95th percentile by partition",
                      "Bounded slowdown by partition"]  # fmt: skip
    assert rows(section.tables[0])["gpu"] == [("7", "", ""), ("7", "", ""), *[("7.000", "", "")] * 3]
    other = results(1)
    other[0][1]["sjf"][part_metric("energy_kwh", "partition", "gpu")] = 8.0
    (section,) = breakdown_sections(breakdown(other), "fcfs")
    assert section.tables[-1].title == "Energy by partition"
    unknown = results(1, **dict.fromkeys(("energy_kwh", "cost", "carbon_kg"), float("nan")))
    (section,) = breakdown_sections(breakdown(unknown), "fcfs")
    assert [header for header, _, _ in section.tables[0].columns] == ["Jobs", "Processor-hours"]


def test_what_belongs_to_no_job_has_energy_cost_and_carbon_and_nothing_else() -> None:
    """The base load is there under both schedulers and in the first table only; waits have no such rows."""
    made = results(1)
    for name, idle_kwh in (("fcfs", 3.0), ("sjf", 5.0)):
        for part, value in ((IDLE, idle_kwh), (BASE_LOAD, 2.0)):
            made[0][1][name] |= {part_metric(metric, "partition", part): value for metric in AMOUNTS}
    (section,) = breakdown_sections(breakdown(made), "fcfs")
    work, wait, *_, energy = section.tables
    assert rows(work)["idle"] == [("–", "", ""), ("–", "", ""), *[("3.000", "", "")] * 3]
    assert [name for name, _ in work.rows] == ["cpu", "gpu", "debug", "idle", "base load"]
    assert [name for name, _ in wait.rows] == ["cpu", "gpu", "debug"]
    assert energy.title == "Carbon by partition"
    assert rows(energy)["idle"] == [("3.000", "", ""), ("5.000", "+67%", "")]


def test_means_over_windows_leave_out_undefined_values() -> None:
    made = results(2)
    made[1][1]["sjf"][part_metric("avg_wait_s", "partition", "gpu")] = float("nan")
    parts = breakdown(made)
    assert kinds(parts) == ["partition"]
    assert part_means(parts, "partition", "avg_wait_s")["gpu"] == {"fcfs": HOUR_S, "sjf": 4 * HOUR_S}
    sheet = means_frame(parts).filter((polars.col("part") == "gpu") & (polars.col("scheduler") == "sjf"))
    assert sheet["avg_wait_s"].to_list() == [4 * HOUR_S]
    assert sheet.columns == ["by", "part", "scheduler", *FIGURES]


def test_frames_of_metrics_and_of_parts_are_apart_and_come_together() -> None:
    made = results(2)
    frame, parts = tidy(made), breakdown(made)
    assert frame["metric"].unique().to_list() == ["avg_wait_s"]
    whole = with_breakdown(frame, parts)
    assert len(whole) == len(frame) + len(parts) == 4 + 2 * 2 * 3 * len(FIGURES)
    assert part_metric("avg_wait_s", "partition", "gpu") in whole["metric"]
    for form in ("markdown", "latex"):
        assert "4.0" in write(gains_table(parts, "fcfs"), form)


def test_waits_of_seconds_are_shown_in_seconds_and_none_at_all_if_nobody_waits() -> None:
    def table(scale: float) -> Table | None:
        rows = [
            (window, {s: {k: v * scale if "avg_wait_s" in k else v for k, v in m.items()}
                      for s, m in by.items()})
            for window, by in results(1)
        ]  # fmt: skip
        return gains_table(breakdown(rows), "fcfs")

    whole, small = table(1.0), table(1e-3)
    assert whole is not None
    assert small is not None
    assert {unit for _, unit, _ in whole.columns} == {"h"}
    assert {unit for _, unit, _ in small.columns} == {"s"}
    assert table(1e-9) is None


@pytest.mark.parametrize("unknown", [0.0, float("nan")])
def test_groups_of_nodes_show_their_idle_static_and_dynamic_energy(unknown: float) -> None:
    """Not where no power is known, and not of partitions, which own no nodes."""

    def found(**energies: float) -> list[Table]:
        values = {
            part_metric(metric, by, name): energies.get(metric, 7.0)
            for by in ("partition", "node group") for name in ("thin", "fat")
            for metric in (*FIGURES, *(NODE_METRICS if by == "node group" else ()))
        }  # fmt: skip
        more = {part_metric("node_energy_kwh", "node group", "fat"): 12.0}
        frame = breakdown([("0", {"fcfs": values, "sjf": values | (more if not energies else {})})])
        return [table for section in breakdown_sections(frame, "fcfs") for table in section.tables]

    tables = {table.title: table for table in found()}
    assert [header for header, _, _ in tables["Energy by node group"].columns] == [
        "Energy of the nodes", "Idle", "Static", "Dynamic",
    ]  # fmt: skip
    assert rows(tables["Energy of the nodes by node group"])["fat"][1] == ("12.00", "+71%", "")
    assert "Energy by partition" not in tables
    dark = found(**dict.fromkeys(NODE_METRICS, unknown))
    assert not any("Energy by" in table.title for table in dark)
