"""The tables of docs/results.md, which ``python docs/tables.py`` updates.

They come from docs/results/, which holds the ``rows.json`` that ``reproduce --train`` wrote for each paper. Intervals
are computed here from the values of every seed and window. Rows written before those were kept have an interval over
the seeds alone (Student's t), which is shown as ``± half its width *``.
"""

# ruff: noqa: RUF001 - typographic dashes and signs are meant for the reader.

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from greenbatch.experiments.papers.cost_aware_tables import findings, our_tables, rival_tables
from greenbatch.experiments.papers.fresh_tables import fresh_tables
from greenbatch.experiments.papers.headroom import row_headroom, stored_bounds
from greenbatch.experiments.papers.order_results import UNTRAINED
from greenbatch.experiments.papers.protocols import PROTOCOLS
from greenbatch.experiments.papers.studies import STUDIES
from greenbatch.experiments.papers.study_results import seeds_met
from greenbatch.experiments.papers.study_tables import COVERS
from greenbatch.experiments.reports.tables import write
from greenbatch.experiments.running.statistics import Interval, mean_interval, verdict
from greenbatch.learning.runs.windows import HELD_OUT_STARTS
from greenbatch.metrics import METRICS

Row = Mapping[str, Any]

RESULTS = Path(__file__).with_name("results")

COLUMNS = (
    ("Renewable utilization [%]", "renewable_utilization", 1, 100.0),
    ("Bounded slowdown", "avg_bounded_slowdown", 2, 1.0),
    ("Makespan [×]", "makespan_ratio", 3, 1.0),
    ("Brown energy [kWh]", "horizon_brown_kwh", 0, 1.0),
    ("Wait, p95 [h]", "p95_wait_s", 1, 1 / 3600),
    ("Slowdown < 5 min", "avg_bounded_slowdown_under_5min", 1, 1.0),
    ("to 1 h", "avg_bounded_slowdown_5min_to_1h", 1, 1.0),
    ("to 4 h", "avg_bounded_slowdown_1h_to_4h", 1, 1.0),
    ("> 4 h", "avg_bounded_slowdown_over_4h", 1, 1.0),
)
"""Header, metric, digits, factor."""
LEFT = "Bound at that makespan [%]", "Left [points]"
"""Headers of the columns that compare renewable utilization with what no schedule of the same makespan can beat."""
MET = "Met or missed: the whole interval is on that side of the goal; k of n seeds reach it on their own."
BROWN, UNFINISHED = "horizon_brown_kwh", "horizon_unfinished_share"
RULES = ("F2+easy-schedgym", "F2+green", "cheapest-start:psi=8+none", "cheapest-start:psi=2+none")
"""Plain rules shown next to the agents."""
AS_PUBLISHED = ("gas-marl", "maskable-ppo")
"""Agents that the paper has figures of."""

PUBLISHED_PAIR = {"Lublin-256": (0.8154, 31.738), "Cirne": (0.7545, 17.895), "Jann": (0.7424, 12.534)}
GOALS = (
    ("any, the published pair", "gas-marl", "", "published", PUBLISHED_PAIR),
    ("any, the published pair", "gas-marl-group", "", "held-out", PUBLISHED_PAIR),
    ("1.5", "gas-marl-plus", ":makespan_bound=1.5", "held-out",
     {"Lublin-256": (0.86, 7.0), "Cirne": (0.75, 5.0), "Jann": (0.81, 6.0)}),
    ("1.25", "gas-marl-plus", ":makespan_bound=1.25", "held-out",
     {"Lublin-256": (0.80, 12.0), "Cirne": (0.68, 8.0), "Jann": (0.76, 8.0)}),
)  # fmt: skip
"""Largest makespan, preset, knob, windows it was trained for; trace -> least utilization, largest slowdown."""


def interval(row: Row, metric: str) -> Interval:
    """Mean and interval of a figure: over seeds and windows, or over the seeds alone where no more was kept."""
    figure = row["figures"][metric]
    if "values" in figure:
        return mean_interval(np.array(figure["values"], dtype=np.float64))
    ends = (math.nan if figure[end] is None else figure[end] for end in ("low", "high"))
    return Interval(figure["mean"], *ends, 0)


def cell(row: Row, metric: str, digits: int, factor: float = 1.0) -> str:
    """A mean and its interval."""
    if not row["figures"].get(metric):
        return "–"
    at = interval(row, metric)
    mean, low, high = (f"{value * factor:,.{digits}f}" for value in (at.mean, at.low, at.high))
    if metric == BROWN and _unfinished(row):
        mean = f"≥ {mean}"
    if "values" not in row["figures"][metric]:
        half = (at.high - at.low) / 2 * factor
        return f"{mean} ± {half:,.{digits}f} \\*" if row["agent"] and math.isfinite(half) else mean
    return f"{mean} [{low}, {high}]" if at.low < at.high else mean


def judged(row: Row, metric: str, digits: int, factor: float, bound: float) -> str:
    """A figure, and whether it is as good as a bound: met or missed only where its whole interval is."""
    better = METRICS[metric].better
    word = verdict(interval(row, metric), bound, "higher" if better == "higher" else "lower")
    seeds = seeds_met(metric, row["figures"][metric], bound)
    return f"{cell(row, metric, digits, factor)} ({word}, {seeds} of {len(row['agent']['seeds'])} seeds)"


def goals(rows: Sequence[Row]) -> list[str]:
    """What was to be reached on the published windows, and what was."""
    lines = [
        "| Makespan at most [×] | Trace | Goal: utilization [%] | Goal: slowdown | Agent | Utilization [%] | "
        "Slowdown | Makespan [×] | Held out: utilization [%] | Held out: slowdown | Held out: makespan [×] |",
        "|:---|:---|---:|---:|:---|---:|---:|---:|---:|---:|---:|",
    ]
    for most, preset, knob, trained, each in GOALS:
        for trace, (least, slowest) in each.items():
            found = {
                row["windows"]: row for row in rows
                if row["trace"] == trace and row["agent"] and row["figures"]
                and (row["agent"]["preset"], row["agent"]["knob"]) == (preset, knob)
                and row["agent"]["trained_windows"] == trained
            }  # fmt: skip
            if "published" not in found:
                continue
            ours, away = found["published"], found.get("held-out")
            bounds = (least, slowest, float(most) if knob else None)
            texts = [
                cell(ours, *column) if bound is None else judged(ours, *column, bound)
                for (_, *column), bound in zip(COLUMNS[:3], bounds, strict=True)
            ]
            texts += [cell(away, *column) if away else "–" for _, *column in COLUMNS[:3]]
            lines.append(f"| {most} | {trace} | {100 * least:.2f} | {slowest:g} | {preset} | {' | '.join(texts)} |")
    return [*lines, "", MET, "", *notes(rows, brown=False)]


def notes(rows: Sequence[Row], *, brown: bool = True) -> list[str]:
    """What the intervals of a table are over."""
    kept = {"values" in figure for row in rows for figure in row["figures"].values() if row["agent"]}
    whole = [COVERS, ""]
    late = ["≥: work was left at the end of the horizon, so brown energy is understated.", ""]
    seeds = "\\* half the 95 % interval of Student's t over the seeds alone"
    part = [f"{seeds}{'; no brown energy over this horizon' if brown else ''}.", ""]
    late = late if brown and any(_unfinished(row) for row in rows) else []
    return [*(whole if True in kept else []), *late, *(part if False in kept else [])]


def _unfinished(row: Row) -> bool:
    return bool(row["figures"].get(UNFINISHED, {}).get("mean"))


def budget(row: Row) -> str:
    """How many seeds, and the epochs or generations of each."""
    if not row["agent"]:
        return ""
    trainings = row["agent"]["trainings"]
    epochs = sorted({training["epochs"] for training in trainings})
    return f"{len(trainings)} × {' to '.join(map(str, epochs))}"


def published(rows: Sequence[Row]) -> list[str]:
    """The paper's own pair for each of its agents."""
    lines = []
    for row in rows:
        if row["agent"] and row["agent"]["preset"] in AS_PUBLISHED and row["published"]:
            figures = row["published"]
            utilization = f"{100 * float(figures['renewable_utilization']['value']):.2f}"
            pair = f"{utilization} | {figures['avg_bounded_slowdown']['value']}"
            lines.append(
                f"| {row['scheduler']}, the paper's figures | | {pair} |" + " – |" * (len(COLUMNS) + len(LEFT) - 2)
            )
    return lines


def left(row: Row) -> str:
    """The bound on renewable utilization at the makespans of a scheduler, and what is missing from it, in percent."""
    scenario = PROTOCOLS["gas-marl"].traces.get(row["trace"], "")
    found = row_headroom(row, scenario, STUDIES["gas-marl"].baseline)
    return "– | –" if found is None else f"{100 * found.bound:.1f} | {100 * found.left:.1f}"


def bounds() -> str:
    """Mean bounds on renewable utilization by largest makespan, of the published and the held-out windows."""
    ratios = [ratio for ratio in next(iter(stored_bounds().values())).utilization if ratio in SHOWN]
    lines = [
        "| Trace | Windows | " + " | ".join(f"{ratio:g} ×" for ratio in ratios) + " |",
        "|:---|:---|" + "---:|" * len(ratios),
    ]
    for trace, name in PROTOCOLS["gas-marl"].traces.items():
        for kind in ("published", "held-out"):
            each = [window.utilization for (scenario, start, _), window in stored_bounds().items()
                    if scenario == name and (start in HELD_OUT_STARTS) == (kind == "held-out")]  # fmt: skip
            means = (100 * np.mean([window[ratio] for window in each]) for ratio in ratios)
            lines.append(f"| {trace} | {kind} | " + " | ".join(f"{mean:.1f}" for mean in means) + " |")
    return "\n".join(lines) + "\n"


SHOWN = (1.0, 1.1, 1.25, 1.5, 1.75, 2.0)
"""Makespans of the table of bounds."""


def renewable(rows: Sequence[Row]) -> list[str]:
    """One table per trace and kind of windows."""
    lines = []
    for trace in dict.fromkeys(row["trace"] for row in rows):
        for windows in ("published", "held-out"):
            home = [row for row in rows if row["trace"] == trace and row["windows"] == windows and row["figures"]]
            lines += [
                f"### {trace}, {windows} windows", "",
                "| Scheduler | Seeds × epochs | " + " | ".join((*(header for header, *_ in COLUMNS), *LEFT)) + " |",
                "|:---|---:|" + "---:|" * (len(COLUMNS) + len(LEFT)),
            ]  # fmt: skip
            if windows == "published":
                lines += published(home)
            for row in home:
                if row["agent"] or row["scheduler"] in RULES:
                    figures = " | ".join(cell(row, *column) for _, *column in COLUMNS)
                    lines.append(f"| {row['scheduler']} | {budget(row)} | {figures} | {left(row)} |")
            lines += ["", *notes(home)]
    return lines


def ranking(rows: Sequence[Row]) -> list[str]:
    """One table per trace: the best plain rule, the published figure and the agents."""
    metric = "avg_bounded_slowdown"
    lines = []
    for trace in dict.fromkeys(row["trace"] for row in rows):
        lines += [
            f"### {trace}", "",
            "| Backfilling | Windows | Best plain rule | RLScheduler, the paper's figures | Agent | Slowdown | "
            "Seeds × epochs |",
            "|:---|:---|---:|---:|:---|---:|---:|",
        ]  # fmt: skip
        for row in rows:
            agent = row["agent"]
            if row["trace"] != trace or not agent or not row["figures"] or agent["trained_on"] != trace:
                continue
            rivals = [
                (other["figures"][metric]["mean"], other["column"], other) for other in rows
                if not other["agent"] and metric in other["figures"]
                and all(other[key] == row[key] for key in ("trace", "windows", "backfill"))
            ]  # fmt: skip
            _, rule, best = min(rivals, key=itemgetter(0))
            told = row["published"].get(metric, {}).get("value", "–")
            windows = row["windows"] + ("" if agent["trained_windows"] == row["windows"] else ", trained held-out")
            figures = (
                f"{rule} {cell(best, metric, 2)} | {told} | {agent['preset']} | {cell(row, metric, 2)} | {budget(row)}"
            )
            lines.append(f"| {row['backfill']} | {windows} | {figures} |")
        lines += ["", *notes([row for row in rows if row["trace"] == trace], brown=False)]
    return lines


PAIR_METRICS = (("Energy", "energy_kwh", "kWh", 1.0), ("EDP", "edp_js", "MJ s", 1e-6))
"""Name of the goal, metric, unit, factor."""


def pairs(rows: Sequence[Row]) -> list[str]:
    """One table per goal: the best fixed rule, and the ratios of the agents to it."""
    lines = []
    for goal, metric, unit, factor in PAIR_METRICS:
        agents = {"untrained": UNTRAINED, "InEPS": f"{goal} InEPS", "InEPS plus": f"{goal} InEPS plus"}
        lines += [
            f"| Tested on | Best fixed rule | Its {goal if goal == 'EDP' else goal.lower()} [{unit}] | "
            + " | ".join(agents) + " |",
            "|:---|:---|---:|" + "---:|" * len(agents),
        ]  # fmt: skip
        for test in dict.fromkeys(row["test"] for row in rows):
            here = {row["scheduler"]: row for row in rows if row["test"] == test}
            rule = next(row["figures"][metric]["best_fixed_rule"] for row in here.values() if row["figures"])
            best = here[rule]["figures"][metric]["mean"] * factor
            told = " | ".join(_ratio(here.get(agent), metric) for agent in agents.values())
            lines.append(f"| {test} | `{rule}` | {best:.4g} | {told} |")
        lines.append("")
    seeds = {row["scheduler"]: len(row["seeds"]) for row in rows if row["seeds"]}
    count = len(rows[0]["orders"])
    several = ", ".join(f"{name} {number}" for name, number in seeds.items())
    told = f"Ratios to the best fixed rule: means over seeds and {count} orders [95% interval over both]."
    return [*lines, f"{told} Bold: the whole interval lies below 1. Seeds: {several}."]


def fresh(rows: Sequence[Row]) -> list[str]:
    """One table per makespan bound: agents trained on generated jobs, beside the shipped ones."""
    return [write(table, "markdown") for table in fresh_tables(rows)]


def cost_aware(rows: Sequence[Row]) -> list[str]:
    """What was found; figures and differences to FCFS with EASY of each trace; our agent against all others."""
    tables = (*our_tables(rows), *rival_tables(rows))
    return [*(f"- {line}" for line in findings(rows)), "", *(write(table, "markdown") for table in tables)]


def _ratio(row: Row | None, metric: str) -> str:
    if row is None or not row["figures"]:
        return "not trained"
    at = row["figures"][metric]
    text = f"{at['ratio']:.3f} [{at['ratio_low']:.3f}, {at['ratio_high']:.3f}]"
    return f"**{text}**" if at["ratio_high"] < 1.0 else text


def _from(name: str, made: Callable[[Sequence[Row]], list[str]]) -> str:
    rows = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return "\n".join(made(rows)).rstrip() + "\n"


RESULT_TABLES: dict[str, Callable[[], str]] = {
    "results-bounds": bounds,
    "results-goals": partial(_from, "gas-marl", goals),
    "results-fresh": partial(_from, "gas-marl-fresh", fresh),
    "results-gas-marl": partial(_from, "gas-marl", renewable),
    "results-cost-aware": partial(_from, "cost-aware", cost_aware),
    "results-rlscheduler": partial(_from, "rlscheduler", ranking),
    "results-ineps": partial(_from, "ineps", pairs),
}
"""Name -> the function that makes it."""
