"""Tables: what is shown, how numbers read, what is marked and warned about, and three formats."""

# ruff: noqa: RUF001 - typographic dashes, minus and multiplication signs are what is tested.

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import polars
import pytest
from example_windows import example, one_window

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.errors import InputError
from greenbatch.experiments.papers.cells import reproduction_tables
from greenbatch.experiments.reports.cautions import (
    cautions,
    mismatch_notes,
    overlap_notes,
    recorded_wait_notes,
    slow_node_notes,
)
from greenbatch.experiments.reports.columns import Column, main_columns, terminal_columns
from greenbatch.experiments.reports.tables import (
    Table,
    class_table,
    comparison_table,
    difference_table,
    to_latex,
    to_markdown,
    write,
)
from greenbatch.experiments.running.frames import tidy
from greenbatch.scenarios import load_scenario


def warning_lines(frame: polars.DataFrame, baseline: str, cluster: Cluster | None = None) -> list[str]:
    """Warnings that follow from the figures, as text."""
    return [str(note) for note in cautions(frame, baseline, cluster)]


@pytest.fixture(scope="module")
def frame() -> polars.DataFrame:
    return example(windows=5)[0]


def values(**metrics: float) -> dict[str, float]:
    return {"avg_bounded_slowdown": 2.0, "renewable_utilization": 0.5, "makespan_ratio": 1.0,
            "horizon_brown_kwh": 100.0} | metrics  # fmt: skip


def cells(table: Table, row: str) -> dict[str, object]:
    found = dict(table.rows)[row]
    return dict(zip((header for header, _, _ in table.columns), found, strict=True))


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        (Column("x", "X", digits=2), 3.14159, "3.14"),
        (Column("x", "X", "%", 100.0, 1), 0.6543, "65.4"),
        (Column("x", "X", "h", 1 / 3600, 2), 5400.0, "1.50"),
        (Column("x", "X", digits=4, style="significant"), 57.4321, "57.43"),
        (Column("x", "X", digits=4, style="significant"), 19753.52, "19,754"),
        (Column("x", "X", digits=4, style="significant"), 0.0012345, "0.001234"),
        (Column("x", "X", digits=4, style="significant"), 0.0, "0.0000"),
        (Column("x", "X", digits=1), -0.04, "0.0"),
        (Column("x", "X", digits=1), -2.0, "−2.0"),
        (Column("x", "X", style="count"), 193.0, "193"),
        (Column("x", "X", style="count"), 0.25, "0.2"),
        (Column("x", "X"), math.nan, "–"),
        (Column("x", "X"), math.inf, "–"),
    ],
)
def test_numbers_read_well(column: Column, value: float, text: str) -> None:
    assert column.number(value) == text


def test_signed_numbers() -> None:
    assert Column("x", "X").number(1.0, signed=True) == "+1.0"
    assert Column("x", "X").number(0.0, signed=True) == "0.0"


def test_renewable_utilization_is_shown_with_slowdown_makespan_and_horizon(frame: polars.DataFrame) -> None:
    for columns in (main_columns(frame), terminal_columns(frame)):
        metrics = [column.metric for column in columns]
        assert metrics[:4] == [
            "avg_bounded_slowdown", "renewable_utilization", "horizon_brown_kwh", "makespan_ratio"
        ]  # fmt: skip
    shown = comparison_table(frame)
    assert [unit for _, unit, _ in shown.columns] == ["", "%", "kWh", "×", "h", "h", "h", "%"]
    assert "Longest wait" in [header for header, _, _ in shown.columns]
    assert "Longest wait" in [column.header for column in terminal_columns(frame)]


def test_means_intervals_and_the_best_value_by_hand() -> None:
    frame = tidy(
        [
            ("a", {"fcfs+none": values(), "f2+easy": values(avg_bounded_slowdown=1.0, renewable_utilization=0.4)}),
            ("b", {"fcfs+none": values(avg_bounded_slowdown=4.0), "f2+easy": values(renewable_utilization=0.4)}),
        ]
    )
    two = comparison_table(frame)
    assert cells(two, "fcfs+none")["Bounded slowdown"].text == "3.000"
    assert cells(two, "fcfs+none")["Bounded slowdown"].interval == "[2.000, 4.000]"
    assert not any(cell.mark for _, row in two.rows for cell in row), "two windows mark nothing"
    assert "2 windows are too few for an interval" in two.notes[0]
    assert two.legend == ""
    again = [frame.with_columns(window=polars.lit(f"{k}") + polars.col("window")) for k in range(3)]
    frame = polars.concat(again)
    table = comparison_table(frame)
    assert cells(table, "f2+easy")["Bounded slowdown"].mark == "best"
    assert cells(table, "fcfs+none")["Renewable utilization"].mark == "best"
    assert cells(table, "fcfs+none")["Renewable utilization"].interval == "", "equal windows need no interval"
    assert "The same for all: Brown energy over the horizon" in " ".join(table.lines)
    assert table.lines[0] == "Mean of 6 windows [95% bootstrap interval]. Bold: best of the column."
    one = comparison_table(frame.filter(polars.col("window") == "0a"))
    assert one.notes[0].startswith("One window")


def test_undefined_columns_disappear_and_undefined_cells_are_a_dash() -> None:
    frame = tidy(
        [
            (
                "a",
                {
                    "fcfs+none": {"avg_bounded_slowdown": 2.0, "renewable_utilization": math.nan, "avg_wait_s": 60.0},
                    "f2+easy": {"avg_bounded_slowdown": 2.5, "renewable_utilization": math.nan, "avg_wait_s": math.nan},
                },
            )
        ]
    )
    table = comparison_table(frame)
    assert [header for header, _, _ in table.columns] == ["Bounded slowdown", "Mean wait"]
    assert cells(table, "f2+easy")["Mean wait"].text == "–"
    assert warning_lines(frame, "fcfs+none") == []


def test_differences_are_paired_counted_and_marked(frame: polars.DataFrame) -> None:
    table = difference_table(frame, "fcfs+none")
    assert [name for name, _ in table.rows] == ["hold-2h+none", "patient+none"]
    patient = cells(table, "patient+none")
    assert patient["Bounded slowdown"].mark == "good"
    assert patient["Bounded slowdown"].remark == "5 of 5"
    assert patient["Bounded slowdown"].text.startswith("−")
    assert patient["Makespan over baseline"].mark == "bad"
    assert patient["Makespan over baseline"].remark == "0 of 5"
    assert ("Renewable utilization", "points", "Renewable") in table.columns
    with pytest.raises(InputError, match="not among the schedulers"):
        difference_table(frame, "sjf+none")


def test_few_windows_mark_no_difference(frame: polars.DataFrame) -> None:
    few = frame.filter(polars.col("window").is_in(["0", "1000", "2000", "3000"]))
    table = difference_table(few, "fcfs+none")
    assert cells(table, "patient+none")["Bounded slowdown"].interval
    assert not any(cell.mark for _, row in table.rows for cell in row)
    notes = " ".join(table.lines)
    assert "4 windows are too few for an interval" in notes
    assert "excludes zero" not in notes
    assert "excludes zero" in " ".join(difference_table(frame, "fcfs+none").lines)


def test_overlapping_windows_are_noted() -> None:
    starts = (0, 100, 753)
    assert [str(note) for note in overlap_notes(starts, 1024, 1935)] == [
        "3 windows of 1,024 jobs out of 1,935: any two share at least 271 jobs, so intervals are too narrow."
    ]
    (some,) = map(str, overlap_notes((500, 0, 600), 200, 1000))
    assert "together they hold 500 different jobs instead of 600" in some
    assert overlap_notes((0, 200, 400), 200, 600) == overlap_notes((7,), 5, 20) == []


def test_recorded_waits_are_shown_beside_the_simulated_ones() -> None:
    outcome = one_window()["fcfs+none"]
    assert recorded_wait_notes(outcome) == [], "nothing is recorded"
    recorded = np.full(len(outcome.workload), np.nan)
    recorded[:100] = 3600.0
    waits = (outcome.start_s - outcome.workload.submit_s)[:100]
    known = replace(outcome, workload=outcome.workload.with_columns(recorded_wait_s=recorded))
    (line,) = map(str, recorded_wait_notes(known))
    assert "recorded for 100 of 150 jobs: 1.00 h on average, 95th percentile 1.0 h" in line
    assert f"fcfs+none for the same jobs: {waits.mean() / 3600:.2f} h on average" in line


@pytest.mark.parametrize(("factor", "warned"), [(None, False), (1.0, False), (50.0, True), (0.0001, True)])
def test_waits_unlike_the_recorded_ones_are_warned_about(factor: float | None, warned: bool) -> None:
    outcome = one_window()["fcfs+none"]
    mean_s = (outcome.start_s - outcome.workload.submit_s).mean()
    recorded_s = np.full(len(outcome.workload), np.nan if factor is None else factor * mean_s)
    notes = mismatch_notes(replace(outcome, workload=outcome.workload.with_columns(recorded_wait_s=recorded_s)))
    assert bool(notes) == warned
    assert all("neither hours nor ranking are reliable" in note.what and note.level == "warning" for note in notes)
    assert mismatch_notes(None) == []


def test_slowdown_by_class_shows_who_pays(frame: polars.DataFrame) -> None:
    table = class_table(frame)
    assert [header for header, _, _ in table.columns][:4] == ["< 5 min", "5 min – 1 h", "1 – 4 h", "> 4 h"]
    assert re.search(r"^Jobs per window: < 5 min: \d+; 5 min – 1 h: \d+; 1 – 4 h: \d+; > 4 h: \d+\.$", table.notes[1])
    patient, plain = cells(table, "patient+none"), cells(table, "fcfs+none")
    assert float(patient["< 5 min"].text) < float(plain["< 5 min"].text.replace(",", ""))
    assert float(patient["> 4 h"].text) > float(plain["> 4 h"].text)


@pytest.mark.parametrize(
    ("gain", "ratio", "brown", "warned"),
    [(0.1, 1.2, 60.0, "40% less"), (0.1, 1.2, 130.0, "30% more"), (0.1, 1.05, 60.0, ""), (-0.1, 3.0, 60.0, "")],
)
def test_a_gain_by_stretching_is_warned_about(gain: float, ratio: float, brown: float, warned: str) -> None:
    green = values(renewable_utilization=0.5 + gain, makespan_ratio=ratio, horizon_brown_kwh=brown)
    frame = tidy([(window, {"fcfs+easy": values(), "green": green}) for window in "ab"])
    lines = warning_lines(frame, "fcfs+easy")
    assert len(lines) == bool(warned)
    for line in lines:
        assert "\n" not in line
        for part in ("green", "to 1.20 times that of fcfs+easy", warned, "scenario's horizon"):
            assert part in line


def test_all_stretched_schedules_share_one_warning() -> None:
    def green(ratio: float, brown: float) -> dict[str, float]:
        return values(renewable_utilization=0.6, makespan_ratio=ratio, horizon_brown_kwh=brown)

    table = {"fcfs+easy": values(), "a": green(1.12, 93.0), "b": green(1.65, 36.0), "c": green(1.2, 60.0),
             "d": green(1.3, 60.0)}  # fmt: skip
    assert warning_lines(tidy([(window, table) for window in "xy"]), "fcfs+easy") == [
        "a, b and 2 others stretch the makespan to 1.12 to 1.65 times that of fcfs+easy; that alone raises the "
        "renewable share. Over the scenario's horizon they draw 7 to 64% less brown energy."
    ]


def test_a_gain_that_is_noise_is_not_warned_about() -> None:
    gains = {"a": 0.1, "b": -0.099}
    frame = tidy([
        (window, {"fcfs+easy": values(), "green": values(renewable_utilization=0.5 + gain, makespan_ratio=1.2)})
        for window, gain in gains.items()
    ])  # fmt: skip
    assert warning_lines(frame, "fcfs+easy") == []


WITH_SLOW_NODES = tuple(
    NodeGroup(name=name, count=1, processors=256, speed=speed, static_power_w=0.0)
    for name, speed in (("a", 1.0), ("slow", 0.7))
)


def test_the_scheduler_with_most_killed_jobs_is_named() -> None:
    def warned(shares: dict[str, float], cluster: Cluster | None = None) -> list[str]:
        table = {name: values(killed=100 * share, jobs=100.0) for name, share in shares.items()}
        return warning_lines(tidy([("a", table)]), "fcfs+easy", cluster)

    assert warned({"fcfs+easy": 0.2, "green": 0.22}) == []
    (line,) = warned({"fcfs+easy": 0.26, "green": 0.3})
    assert line.startswith(
        "30% of the jobs are killed at their requested time under green, so waits, slowdowns and energ"
    )
    assert "compared" not in line
    assert warned({"fcfs+easy": 0.0, "green": 0.1}, Cluster.of_nodes(WITH_SLOW_NODES)) == [
        "10% of the jobs are killed at their requested time under green and 0% under fcfs+easy, so waits, slowdowns "
        "and energies are those of shorter jobs and cannot be compared; nodes of group slow run at speed 0.7, and "
        'requested times do not grow with them; request more, or set rules.overrun = "extend".'
    ]


def test_slow_nodes_that_would_kill_many_jobs_are_named() -> None:
    scenario = load_scenario("default", overrides={"workload.generator.jobs": 60})
    scenario = replace(scenario, cluster=Cluster.of_nodes(WITH_SLOW_NODES))
    jobs = scenario.workload
    exact = replace(scenario, workload=jobs.with_columns(requested_time_s=jobs.run_time_s))
    (line,) = map(str, slow_node_notes(exact))
    assert line.startswith("100% of the jobs would be killed at their requested time on the slowest nodes but not at")
    assert "nodes of group slow run at speed 0.7" in line
    assert slow_node_notes(replace(exact, rules=replace(exact.rules, overrun="extend"))) == []
    assert slow_node_notes(replace(exact, workload=jobs.with_columns(requested_time_s=2 * jobs.run_time_s))) == []
    assert slow_node_notes(replace(exact, cluster=Cluster.of_nodes(WITH_SLOW_NODES[:1]))) == []


def test_reproduction_cells_keep_the_papers_digits_and_reasons() -> None:
    base = {"table": "Table 3", "trace": "Cirne", "backfill": "green", "scheduler": "f2", "metric": "avg_wait_s"}
    tables = reproduction_tables(
        [
            {**base, "published": 57.4, "ours": 57.36, "digits": 1, "verdict": "equal"},
            {**base, "table": "beside Table 3", "published": None, "ours": 3.2, "digits": 3,
             "verdict": "not in the paper", "reason": "our own"},
        ]
    )  # fmt: skip
    assert [t.title for t in tables] == ["Table 3, Cirne: wait (mean)", "Beside Table 3, Cirne: wait (mean)"]
    (name, first), (_, second) = tables[0].rows[0], tables[1].rows[0]
    assert name == "f2+green"
    assert [cell.text for cell in first] == ["57.4", "57.4", "equal"]
    assert [cell.text for cell in second] == ["–", "3.200", "not in the paper"]
    assert second[-1].remark == "our own"
    assert first[-1].mark == "best"


def test_unfinished_work_at_the_horizon_is_noted() -> None:
    left = {"horizon_s": 86_400.0, "horizon_unfinished_jobs": 0.0, "horizon_unfinished_share": 0.0}
    some = left | {"horizon_unfinished_jobs": 3.0, "horizon_unfinished_share": 0.2}
    frame = tidy([("a", {"fcfs+easy": values(**left), "late": values(**some)}),
                  ("b", {"fcfs+easy": values(**left), "late": values(**left)})])  # fmt: skip
    notes = comparison_table(frame).notes
    assert any("horizon, 1.0 days on average" in note for note in notes)
    told = [note for note in notes if "undone" in note]
    assert told == [
        "late leaves work undone at the horizon in 1 of 2 windows, 10.0% of all work: its energy over the horizon is "
        "understated."
    ]
    assert not [note for note in class_table(frame).notes if "horizon" in note]


def test_markdown_is_one_row_a_scheduler_with_units(frame: polars.DataFrame) -> None:
    lines = to_markdown(comparison_table(frame)).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 2 + 3
    assert len({line.count("|") for line in rows}) == 1
    assert "Renewable utilization [%]" in rows[0]
    assert "Mean wait [h]" in rows[0]
    assert "**" in rows[2] + rows[3] + rows[4]
    odd = Table("a|b", (("x*y", "", "x"),), (("n|m", ()),))
    assert "n\\|m" in to_markdown(odd)


def test_latex_escapes_and_balances(frame: polars.DataFrame) -> None:
    text = to_latex(difference_table(frame, "fcfs+none"))
    assert text.count("{") == text.count("}")
    assert text.isascii()
    assert r"\begin{tabular}{lrrrrrrrr}" in text
    assert "50_%" not in to_latex(Table("50_%", (), ()))
    assert r"50\_\%" in to_latex(Table("50_%", (), ()))
    assert write(comparison_table(frame), "latex").startswith(r"\begin{table}")
    with pytest.raises(InputError, match="unknown table format"):
        write(comparison_table(frame), "word")


# ---------------------------------------------------------------- columns


HOURS = Column("x", "X", "h", 1 / 3600, 2, small=("s", 1.0))


@pytest.mark.parametrize(
    ("values", "unit", "text"),
    [
        ([12.5, 359.0], "s", "12.50"),
        ([12.5, 361.0], "h", "0.00"),
        ([12.5, -361.0], "h", "0.00"),
        ([12.5, math.nan], "s", "12.50"),
        ([], "h", "0.00"),
    ],
)
def test_small_values_are_shown_in_a_small_unit(values: list[float], unit: str, text: str) -> None:
    column = HOURS.fitted(values)
    assert (column.unit, column.number(12.5)) == (unit, text)
    assert column.fitted(values) == column


def test_without_a_supply_the_table_has_energy_and_energy_delay_product() -> None:
    run = {"avg_bounded_slowdown": 1.0, "energy_kwh": 0.0523, "edp_js": 2.7e7, "makespan_ratio": 1.0, "avg_wait_s": 4.5}
    table = comparison_table(tidy([("a", {"fcfs+none": run, "sjf+none": {key: 0.5 * run[key] for key in run}})]))
    headers = [(header, unit) for header, unit, _ in table.columns]
    assert headers == [
        ("Bounded slowdown", ""), ("Energy", "Wh"), ("Energy-delay product", "MJ s"), ("Makespan over baseline", "×"),
        ("Mean wait", "s"),
    ]  # fmt: skip
    assert [cell.text for cell in dict(table.rows)["fcfs+none"]] == ["1.000", "52.30", "27.00", "1.000", "4.50"]
    supplied = tidy([("a", {"fcfs+none": run | {"renewable_utilization": 0.5, "horizon_brown_kwh": 30.0}})])
    assert "Energy" not in [header for header, _, _ in comparison_table(supplied).columns]
    change = difference_table(tidy([("a", {"fcfs+none": run, "sjf+none": run | {"energy_kwh": 0.05}})]), "fcfs+none")
    assert (change.columns[0][1], change.rows[0][1][0].text) == ("Wh", "−2.300")
