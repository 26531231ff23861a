"""Tables of agents that are tested on orders: energy and energy-delay product beside the best fixed rule, and InEPS's.

A reduction is 100 (1 - value / baseline's value), as in the paper. [%]
"""

# ruff: noqa: RUF001 - typographic dashes are meant for the reader.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from greenbatch.experiments.papers.order_results import UNTRAINED, Contender, TrialResult
from greenbatch.experiments.papers.order_studies import OrderStudy
from greenbatch.experiments.papers.protocols import REDUCTIONS
from greenbatch.experiments.papers.reproduce import published
from greenbatch.experiments.papers.studies import Cell as Training
from greenbatch.experiments.reports.columns import Column
from greenbatch.experiments.reports.tables import Cell, Table
from greenbatch.experiments.running.statistics import Interval
from greenbatch.learning.several import model_record

SHOWN = (
    Column("energy_kwh", "Energy", "kWh", digits=4),
    Column("edp_js", "EDP", "MJ s", scale=1e-6, digits=1),
)
"""The figures, in units that fit orders of minutes."""
RATIO = Column("", "", digits=3)
PERCENT = Column("", "", digits=1)
NOT_TRAINED = "not trained"
COVERS = (
    "Rules: mean of the orders [95% interval over the orders, BCa bootstrap]. Agents: best action, mean of all seeds "
    "and orders [95% interval over both: bootstrap over the orders and Student's t over the seeds, combined in "
    "quadrature; with one seed, over the orders only]."
)
HINDSIGHT = (
    "Best fixed rule: of {count} combinations of job rule, backfilling and placement, the one with the lowest mean "
    "over these very orders. It is chosen in hindsight, in its favor. Ratios are means over the orders; bold: the "
    "whole interval lies below 1."
)
FIGURES = (
    ("Fig. 5", "energy_reduction", "random-random", ("Convergence", "Convergence as worded")),
    ("Fig. 6", "edp_reduction", "random-random", ("Convergence", "Convergence as worded")),
    ("Fig. 8", "energy_reduction", "first-high_gflops", ("Memory-intensive", "Memory-intensive as worded")),
    ("Fig. 8", "energy_reduction", "first-high_gflops", ("Computation-intensive", "Computation-intensive as worded")),
)
"""Figure of the paper, what it shows, the rule that reductions are from, and the tests: as published, as worded."""
RUNS = (("min", "least energy", np.max), ("avg", "mean", np.mean), ("max", "most energy", np.min))
"""Column of Table 7, its meaning, and the reduction of such a run: the least energy is the highest reduction."""


def all_tables(results: Sequence[TrialResult]) -> list[Table]:
    """All tables: one per test, energy models and EDP models, and those of the paper."""
    paper = [figure_table(results, *figure) for figure in FIGURES] + [table_7(results)]
    return [
        *(trial_table(result) for result in results),
        *(t for family in _families(results) if (t := cross_table(results, family)) is not None),
        *(table for table in paper if table is not None),
    ]


def covered(result: TrialResult) -> str:
    """What the agents of a test were trained, tuned and tested on."""
    trial, study = result.trial, result.study
    tuned = "; ".join(f"{family}: {text}" for family, text in study.tuned.items())
    about = f", {trial.about}" if trial.about else ""
    return (
        f"Trained on windows of {study.traces[trial.trained_on]}. Tuned: {tuned}. Tested on {len(result.orders)} "
        f"random orders of the jobs of {trial.scenario}{about}, which no agent was trained on."
    )


# ---------------------------------------------------------------- tests


def trial_table(result: TrialResult) -> Table:
    """Energy and energy-delay product of the best fixed rules, the paper's rules and the agents."""
    best: dict[str, list[str]] = {}
    for column in SHOWN:
        best.setdefault(result.best_rule(column.metric), []).append(column.header)
    rows = [(f"best fixed rule ({', '.join(of)}): {rule}", _row(result, rule)) for rule, of in best.items()]
    rows += [(rule, _row(result, rule)) for rule in result.paper_rules]
    rows += [(agent.name, _row(result, agent.name, agent)) for agent in result.agents]
    headers = [
        header for c in SHOWN for header in (
            (c.header, c.unit, c.header), (f"{c.header} / best fixed rule", "", f"{c.header} ratio"),
        )
    ]  # fmt: skip
    notes = (covered(result), HINDSIGHT.format(count=len(result.fixed)), COVERS)
    return Table(result.trial.name, (*headers, ("Seeds", "", "Seeds")), tuple(rows), notes=notes)


def _row(result: TrialResult, name: str, agent: Contender | None = None) -> tuple[Cell, ...]:
    seeds = "" if agent is None else str(len(agent.seeds))
    if agent is not None and agent.missing:
        seeds += f" of {len(agent.seeds) + len(agent.missing)}"
    if name not in result.figures:
        return (Cell(NOT_TRAINED), *[Cell("–")] * 3, Cell(seeds))
    cells = []
    for column in SHOWN:
        cells += [_cell(column, result.interval(name, column.metric)), _ratio(result, name, column.metric)]
    return (*cells, Cell(seeds))


def is_below(ratio: Interval) -> bool:
    """Whether a whole interval lies below 1."""
    return ratio.high < 1.0


def _ratio(result: TrialResult, name: str, metric: str) -> Cell:
    if name not in result.figures:
        return Cell(NOT_TRAINED)
    if name == result.best_rule(metric):
        return Cell("1")
    ratio = result.ratio(name, metric)
    below = is_below(ratio)
    return _cell(RATIO, ratio, remark="below 1" if below else "", bold=below)


def _cell(column: Column, at: Interval, *, remark: str = "", bold: bool = False) -> Cell:
    span = f"[{column.number(at.low)}, {column.number(at.high)}]" if at.low < at.high else ""
    return Cell(column.number(at.mean), span, remark, "best" if bold else "")


# ---------------------------------------------------------------- energy and EDP


def _families(results: Sequence[TrialResult]) -> list[str]:
    found = (agent.variant.family for result in results for agent in result.agents if agent.variant is not None)
    return list(dict.fromkeys(found))


def cross_table(results: Sequence[TrialResult], family: str) -> Table | None:
    """Models for energy and models for the energy-delay product, each by both; None without any."""
    names = [v.column for v in results[0].study.variants if v.family == family]
    rows = [
        (result.trial.name, tuple(_ratio(result, name, c.metric) for c in SHOWN for name in names))
        for result in results if any(name in result.figures for name in names)
    ]  # fmt: skip
    if not rows:
        return None
    headers = tuple((f"{c.header} of {name}", "", f"{c.header} of {name}") for c in SHOWN for name in names)
    notes = ("Ratios to the best fixed rule for energy, or for EDP, of each workload, as above.", COVERS)
    return Table(f"{family}: models for energy and for EDP", headers, tuple(rows), corner="Workload", notes=notes)


# ---------------------------------------------------------------- the paper's


def reduction(result: TrialResult, name: str, metric: str, baseline: str) -> Interval:
    """Mean reduction from a rule, order by order, with its interval. [%]"""
    ratio = result.ratio(name, metric, baseline)
    mean, low, high = (100.0 * (1.0 - end) for end in (ratio.mean, ratio.high, ratio.low))
    return Interval(mean, low, high, ratio.count)


def figure_table(
    results: Sequence[TrialResult], figure: str, shown: str, baseline: str, tests: tuple[str, ...]
) -> Table | None:
    """Reductions of a figure of the paper, as printed and ours; None if none of its workloads was tested."""
    found = {test: result for result in results for test in tests if result.trial.name == test}
    if not found:
        return None
    metric = REDUCTIONS[shown].metric
    printed = _printed(next(iter(found.values())).study.name, figure, tests[0], shown)
    names = dict.fromkeys(
        name for result in found.values() for name in (*result.paper_rules, *(a.name for a in result.agents))
    )
    rows = []
    for name in names:
        if name == baseline:
            continue
        cells = [Cell(printed.get(name, "–"))]
        for test in tests:
            there = test in found and name in found[test].figures
            cells.append(_cell(PERCENT, reduction(found[test], name, metric, baseline)) if there else Cell("–"))
        rows.append((name, tuple(cells)))
    headers = (
        ("published", "%", "published"), ("as published", "%", "as published"), ("as worded", "%", "as worded")
    )  # fmt: skip
    notes = (
        "Published: one order, bars not read. Ours: mean over the orders, reduction in each [95% interval as above].",
        covered(next(iter(found.values()))),
    )
    title = f"{figure}, {tests[0]}: {REDUCTIONS[shown].label.removesuffix(' [%]')} from {baseline}"
    return Table(title, headers, tuple(rows), notes=notes)


def table_7(results: Sequence[TrialResult]) -> Table | None:
    """Table 7: reductions of energy by single runs of the agents, from three rules; None if nothing was tested."""
    rows = []
    for result in results:
        if not result.trial.name.startswith(("Memory-intensive", "Computation-intensive")):
            continue
        printed = _printed(result.study.name, "Table 7", result.trial.name, "energy_reduction")
        if printed:
            texts = [printed[f"Energy InEPS from {rule}, {run}"] for rule in result.paper_rules for run, *_ in RUNS]
            rows.append((f"{result.trial.name}: published", tuple(map(Cell, texts))))
        for agent in (agent for agent in result.agents if agent.name in result.figures):
            cells = []
            for rule in result.paper_rules:
                value, base = (result.values(name, "energy_kwh") for name in (agent.name, rule))
                cells += [Cell(PERCENT.number(float(pick(100.0 * (1.0 - value / base))))) for _, _, pick in RUNS]
            rows.append((f"{result.trial.name}: {agent.name}", tuple(cells)))
    if not rows:
        return None
    rules = next(r.paper_rules for r in results if r.trial.name.startswith(("Memory", "Computation")))
    headers = tuple(
        (f"{rule}, {meaning}", "%", f"{rule.removeprefix('first-')} {run}")
        for rule in rules
        for run, meaning, _ in RUNS
    )
    notes = (
        "Published: 100 runs of one order with sampled actions. Ours: the runs of all seeds on all orders with the "
        "best action, each compared with the rule on the same order. Min: the run of the lowest energy, thus the "
        "highest reduction.",
    )
    return Table("Table 7: energy, reduction from three rules", headers, tuple(rows), notes=notes)


def _printed(study: str, table: str, trace: str, metric: str) -> dict[str, str]:
    """Scheduler -> figure as printed."""
    return {
        p["scheduler"]: p["value"] for p in published(study)
        if (p["table"], p["trace"], p["metric"]) == (table, trace, metric)
    }  # fmt: skip


# ---------------------------------------------------------------- trainings and remarks


def budget_table(study: OrderStudy, cells: Sequence[Training], place: Path) -> Table:
    """Budgets of the trainings."""
    rows = []
    for cell in cells:
        record = model_record(place / cell.folder)
        texts: Mapping[str, Any] = {} if record is None else {
            "Epochs": f"{record.training.epochs:,}", "Decisions": f"{record.training.decisions:,}",
            "Time": f"{record.training.minutes:.1f}", "Threads": f"{record.training.threads}",
        }  # fmt: skip
        shown = tuple(map(Cell, texts.values())) or (Cell(NOT_TRAINED), *[Cell("–")] * 3)
        rows.append((f"{study.variant(cell).column}, {study.traces[cell.trace]}, seed {cell.seed}", shown))
    columns = tuple(
        (name, "min" if name == "Time" else "", name) for name in ("Epochs", "Decisions", "Time", "Threads")
    )
    return Table("Trainings", columns, tuple(rows), corner="Training")


def answers(results: Sequence[TrialResult]) -> list[str]:
    """Whether each trained agent needs less than the best fixed rule, one line per test and agent."""
    lines = []
    for result in results:
        for agent in result.agents:
            if agent.variant is None or agent.name not in result.figures:
                continue
            metric = "energy_kwh" if agent.variant.goal.name == "energy" else "edp_js"
            ratio = result.ratio(agent.name, metric)
            word = "less than" if is_below(ratio) else "more than" if ratio.low > 1.0 else "within noise of"
            what = next(column.header for column in SHOWN if column.metric == metric)
            lines.append(
                f"{result.trial.name}: {agent.name} {word} the best fixed rule: {what} ratio "
                f"{RATIO.number(ratio.mean)} [{RATIO.number(ratio.low)}, {RATIO.number(ratio.high)}], "
                f"seeds {', '.join(map(str, agent.seeds))}; untrained "
                f"{RATIO.number(result.ratio(UNTRAINED, metric).mean)}."
            )
    return lines
