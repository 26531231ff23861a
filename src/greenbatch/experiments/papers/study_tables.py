"""Tables and remarks on trained agents: their figures and the published ones, and their budgets."""

# ruff: noqa: RUF001 - typographic dashes and multiplication signs are meant for the reader.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from greenbatch.experiments.papers.headroom import COVERS as BOUND_COVERS
from greenbatch.experiments.papers.headroom import row_headroom
from greenbatch.experiments.papers.studies import Agent
from greenbatch.experiments.papers.study_results import UNCOMPARABLE, Result
from greenbatch.experiments.reports.columns import CLASS_COLUMNS, MAIN, Column
from greenbatch.experiments.reports.tables import Cell, Mark, Table, difference_table
from greenbatch.experiments.running.statistics import differences

AS_PRINTED = (
    Column("avg_bounded_slowdown", "Bounded slowdown", digits=2, short="Slowdown"),
    Column("renewable_utilization", "Renewable utilization", digits=4, short="Renewable"),
    Column("utilization_to_last_start", "Utilization to the last start", digits=3, short="Util. to start"),
    Column("max_user_bounded_slowdown", "Bounded slowdown of the worst user", digits=1, short="Worst user"),
    Column("avg_slowdown", "Slowdown", digits=2, short="Slowdown"),
    Column("avg_wait_s", "Wait", "s", digits=0, short="Wait"),
)
"""Figures of the papers' tables, in the papers' units."""
BESIDE = tuple(c for name in ("horizon_brown_kwh", "makespan_ratio", "p95_wait_s", "utilization")
               for c in MAIN if c.metric == name)  # fmt: skip
"""Columns that are always shown beside them."""
NOT_TRAINED = "not trained"
COVERS = (
    "Rules: mean of the windows [95% interval over the windows, BCa bootstrap]. Agents: best action, mean of all seeds "
    "and windows [95% interval over both: bootstrap over the windows and Student's t over the seeds, combined in "
    "quadrature; with one seed, over the windows only]."
)
"""Note on the intervals of a table."""


def tables_of(result: Result, *, narrow: bool = False) -> list[Table]:
    """All tables of a result: figures with the published ones, by run time, budgets, paired differences."""
    made = [figure_table(result, narrow=narrow), class_table(result, narrow=narrow), budget_table(result)]
    if not narrow and any(entry.cell is not None and entry.seeds for entry in result.entries):
        made.append(rival_table(result))
    return [table for table in made if table.rows and table.columns]


def _title(result: Result, what: str) -> str:
    return f"{result.trace}, {result.windows} windows: {what}"


def figure_table(result: Result, *, narrow: bool = False) -> Table:
    """The papers' figures, published and ours, with makespan and brown energy.

    Args:
        result: one trace and kind of windows.
        narrow: omit columns that do not fit a terminal.
    """
    own = [column for column in AS_PRINTED if any(column.metric in row["figures"] for row in _home(result))
           and any(column.metric in goal.metrics.values() for goal in _goals(result))]  # fmt: skip
    beside = [column for column in (BESIDE[:2] if narrow else BESIDE) if _known(result, column.metric)]
    printed = {column.metric for column in own if any(column.metric in row["published"] for row in result.rows)}
    headers: list[tuple[str, str, str]] = []
    for column in own:
        if column.metric in printed:
            headers.append((f"{column.header}, published", column.unit, "Paper"))
        headers.append((column.header, column.unit, column.short or column.header))
    headers += [(column.header, column.unit, column.short or column.header) for column in beside]
    scenario, baseline = result.study.traces[result.trace], result.study.baseline
    left = [row_headroom(row, scenario, baseline) for row in result.rows]
    bounded = any(each is not None for each in left)
    if bounded:
        headers += [] if narrow else [("Bound at its makespan", "", "Bound")]
        headers += [("Left to the bound", "", "Left")]
    rows = []
    for row, room in zip(result.rows, left, strict=True):
        cells: list[Cell] = []
        for column in own:
            published = row["published"].get(column.metric)
            if column.metric in printed:
                cells.append(Cell(published["value"] if published else "–"))
            mark: Mark = "best" if published and published["verdict"] == "met" else ""
            cells.append(figure_cell(column, row, mark=mark, wide=not narrow))
        cells += [figure_cell(column, row, wide=not narrow) for column in beside]
        if bounded:
            texts = ("–", "–") if room is None else (f"{room.bound:.4f}", f"{room.left:.4f}")
            cells += [Cell(text) for text in texts[1 if narrow else 0 :]]
        rows.append((_name(row), tuple(cells)))
    notes = [
        f"{len(result.starts)} windows of {result.jobs:,} jobs. {COVERS} Makespan relative to {result.study.baseline} "
        "in the same window; brown energy from the first submission over the scenario's horizon.",
    ]
    unfinished = {row["scheduler"]: row["figures"].get("horizon_unfinished_share", {}) for row in result.rows}
    late = [f"{name} {share['mean']:.1%}" for name, share in unfinished.items() if share and share["mean"] > 0]
    if late:
        notes.append(f"Brown energy is understated where work is unfinished at the horizon: {', '.join(late)}.")
    notes += [BOUND_COVERS] if bounded else []
    if result.windows == "published":
        notes.append("Bold: the whole interval of an agent is at least as good as the published figure.")
    paper = result.study.etas.get(result.trace)
    trained = {(row["column"], row["agent"]["eta"]) for row in _home(result) if row["agent"] and row["figures"]}
    notes += [
        f"{column}: penalty factor {eta:g}; the paper's is {paper:g}."
        for column, eta in sorted(trained, key=str)
        if eta not in {None, paper}
    ]
    what = "published and ours" if result.windows == "published" else "figures"
    return Table(_title(result, what), tuple(headers), tuple(rows), notes=tuple(notes))


def class_table(result: Result, *, narrow: bool = False) -> Table:
    """Waits, and bounded slowdown by run time of the job."""
    p95 = next(column for column in MAIN if column.metric == "p95_wait_s")
    classes = CLASS_COLUMNS[:4] if narrow else CLASS_COLUMNS
    shown = [column for column in (p95, *classes) if _known(result, column.metric)]
    rows = tuple(
        (_name(row), tuple(figure_cell(column, row, wide=not narrow) for column in shown))
        for row in result.rows
        if row["figures"]
    )
    headers = tuple((column.header, column.unit, column.short or column.header) for column in shown)
    return Table(_title(result, "waits, and bounded slowdown by run time"), headers, rows, notes=(COVERS,))


def budget_table(result: Result, main: Column | None = None) -> Table:
    """Budgets of the trainings, and a figure of each: by default that of the paper's first table."""
    main, rows = main or _main(result), []
    for row in _home(result):
        agent = row["agent"]
        if (
            agent is None
            or agent["trained_windows"] != result.windows
            or agent["trained_with"] != row["backfill"]
            or agent["knob"] != _first_knob(result, row)
        ):
            continue
        figures = {**dict.fromkeys(agent["not_trained"]), **{t["seed"]: t for t in agent["trainings"]}}
        rows += [
            (f"{row['scheduler']}, seed {seed}", _budget(row, main, seed, spent))
            for seed, spent in sorted(figures.items())
        ]
    headers = [("Epochs", ""), ("Decisions", ""), ("Time", "min"), ("Threads", ""), ("Kept", "")]
    columns = (*((header, unit, header) for header, unit in headers), (main.header, main.unit, main.short))
    return Table(_title(result, "training"), columns, tuple(rows), corner="Training")


def _budget(row: Mapping[str, Any], figure: Column, seed: int, spent: Mapping[str, Any] | None) -> tuple[Cell, ...]:
    if spent is None:
        return (Cell(NOT_TRAINED), *[Cell("–")] * 5)
    kept = "average of weights" if spent["averaged"] else f"epoch {spent['kept_epoch']}"
    value = row["figures"].get(figure.metric, {}).get("by_seed", {}).get(str(seed))
    texts = (
        f"{spent['epochs']:,}",
        f"{spent['decisions']:,}",
        f"{spent['minutes']:.{1 if spent['minutes'] >= 1 else 2}f}",
        f"{spent['threads']}",
        kept,
    )
    return (*map(Cell, texts), Cell("–" if value is None else figure.number(value)))


def rival_table(result: Result) -> Table:
    """Every scheduler compared with the rival, window by window; agents over all their seeds."""
    rival = next(entry.label for entry in result.entries if entry.rule == result.study.rival)
    table = difference_table(result.frame, rival, columns=MAIN)
    notes = (
        *table.notes,
        f"Differences: {COVERS[0].lower()}{COVERS[1:]} Wins: agents by the mean of their seeds.",
    )
    return Table(_title(result, f"difference to {rival}"), table.columns, table.rows, notes=notes, legend=table.legend)


def matrix_table(results: Sequence[Result], agent: Agent, backfill: str) -> Table | None:
    """An agent's models on other traces, with published figures in brackets; None with fewer than two traces."""
    traces = [result.trace for result in results if result.windows == "published" and result.study.across]
    rows = []
    for result in (result for result in results if result.windows == "published" and result.study.across):
        cells = []
        for trained_on in traces:
            row = next((row for row in result.rows if row["agent"] and row["backfill"] == backfill
                        and row["agent"]["trained_on"] == trained_on and row["agent"]["preset"] == agent.preset
                        and row["agent"]["trained_windows"] == result.windows
                        and row["agent"]["goal"] == result.study.goals[0].name), None)  # fmt: skip
            printed = None if row is None else row["published"].get("avg_bounded_slowdown")
            remark = f"published {printed['value']}" if printed else ""
            cell = Cell(NOT_TRAINED) if row is None else figure_cell(AS_PRINTED[0], row, wide=True)
            cells.append(Cell(cell.text, cell.interval, remark))
        rows.append((result.trace, tuple(cells)))
    if len(traces) < 2:
        return None
    columns = tuple((f"trained on {trace}", "", trace) for trace in traces)
    note = f"{COVERS} On another trace a model uses that trace's normalizers, as in the published code."
    return Table(f"Bounded slowdown of {agent.column}+{backfill} on other traces (Table VII)", columns, tuple(rows),
                 corner="Used on", notes=(note,))  # fmt: skip


# ---------------------------------------------------------------- lines


def remarks_of(result: Result) -> list[str]:
    """Remarks on a result: plain rules that beat agents, and seeds that are not trained."""
    return [*_rules_that_win(result), *not_trained(result)]


def answers_of(result: Result) -> list[str]:
    """Whether each agent meets the published figures, one line per agent; see `statistics.verdict`."""
    lines = []
    for row in _home(result):
        verdicts = {metric: p for metric, p in row["published"].items() if p["verdict"] in _ANSWERS}
        if row["agent"] is None or not verdicts:
            continue
        seeds = len(row["agent"]["seeds"])
        figures = ", ".join(
            f"{_column(metric).header.lower()} {_shown(_column(metric), row)} against {p['value']} "
            f"({p['verdict']}; {p['seeds_met']} of {seeds} seeds at least as good)" for metric, p in verdicts.items()
        )  # fmt: skip
        worst = max((p["verdict"] for p in verdicts.values()), key=list(_ANSWERS).index)
        lines.append(f"{result.trace}: {row['scheduler']} {_ANSWERS[worst]}: {figures}{_stretch(row)}.")
    return lines


_ANSWERS = {
    "met": "meets every published figure",
    "within noise": "is within noise of a published figure",
    "missed": "misses a published figure",
}
"""Worst verdict of an agent -> its description."""


def _stretch(row: Mapping[str, Any]) -> str:
    ratio = row["figures"].get("makespan_ratio")
    return f", with a makespan ratio of {ratio['mean']:.2f}" if ratio else ""


def _rules_that_win(result: Result) -> list[str]:
    """Plain rules with a lower bounded slowdown than our agent with the same backfilling, or the published agent."""
    metric, lines, compared = "avg_bounded_slowdown", [], set()
    for row in _home(result):
        agent, printed = row["agent"], row["published"].get(metric)
        if agent is None or metric not in row["figures"] or agent["goal"] not in {"bounded-slowdown", "renewable"}:
            continue
        rules = {r["scheduler"]: (r["figures"][metric]["mean"], r["column"]) for r in result.rows
                 if r["agent"] is None and r["backfill"] == row["backfill"] and metric in r["figures"]}  # fmt: skip
        against = differences(result.frame, metric, row["scheduler"])
        noise = {name for name in rules if not against[name].clear}
        bounds = {"ours": (row["figures"][metric]["mean"], noise)}
        if printed and printed["verdict"] not in UNCOMPARABLE and (row["backfill"], printed["value"]) not in compared:
            compared.add((row["backfill"], printed["value"]))  # several agents share a column of the paper
            bounds["the published figure"] = (float(printed["value"]), set())
        for whose, (bound, unclear) in bounds.items():
            won = sorted((value, column, name) for name, (value, column) in rules.items() if value < bound)
            listed = ", ".join(
                f"{column} {value:.2f}{' (within noise)' if name in unclear else ''}" for value, column, name in won
            )
            lines.append(
                f"{result.trace}, {result.windows} windows, {row['scheduler']}: plain rules with a lower mean "
                f"bounded slowdown than {whose} ({bound:.2f}): {listed or 'none'}."
            )
    return lines


def not_trained(result: Result) -> list[str]:
    """Agents of the trace that lack seeds, a line each."""
    return [
        f"{result.trace}, {result.windows} windows, {entry.label}: not trained for seed "
        f"{', '.join(map(str, entry.missing))}."
        for entry in result.entries if entry.missing and not entry.away
    ]  # fmt: skip


# ---------------------------------------------------------------- parts


def _home(result: Result) -> list[dict[str, Any]]:
    """Rows of rules and of agents trained on the same trace."""
    return [row for row in result.rows if row["agent"] is None or row["agent"]["trained_on"] == result.trace]


def _first_knob(result: Result, row: Mapping[str, Any]) -> str:
    return result.study.agent(row["agent"]["preset"]).knobs[0]


def _goals(result: Result) -> list[Any]:
    names = {row["agent"]["goal"] for row in result.rows if row["agent"]}
    return [goal for goal in result.study.goals if goal.name in names]


def _main(result: Result) -> Column:
    metric = next(iter((_goals(result) or result.study.goals)[0].metrics.values()))
    return _column(metric)


def _column(metric: str) -> Column:
    return next(column for column in AS_PRINTED if column.metric == metric)


def _known(result: Result, metric: str) -> bool:
    return any(metric in row["figures"] for row in result.rows)


def _name(row: Mapping[str, Any]) -> str:
    return str(row["scheduler"])


def _shown(column: Column, row: Mapping[str, Any]) -> str:
    cell = figure_cell(column, row, wide=True)
    return " ".join(filter(None, (cell.text, cell.interval)))


def figure_cell(column: Column, row: Mapping[str, Any], *, mark: Mark = "", wide: bool) -> Cell:
    """A figure of a row with its interval, and how many of its seeds are trained.

    Args:
        column: the metric.
        row: a row of a result.
        mark: how it is marked.
        wide: write the ends of the interval instead of half its width.
    """
    figure = row["figures"].get(column.metric)
    if figure is None:
        return Cell(NOT_TRAINED if row["agent"] and not row["agent"]["seeds"] else "–")
    low, high = figure["low"], figure["high"]
    count = len(row["agent"]["seeds"]) if row["agent"] else 0
    missing = len(row["agent"]["not_trained"]) if row["agent"] else 0
    span = ""
    if low is not None and high > low:
        half = f"± {column.number((high - low) / 2)}"
        span = f"[{column.number(low)}, {column.number(high)}]" if wide else half
    return Cell(column.number(figure["mean"]), span, f"{count} of {count + missing} seeds" if missing else "", mark)
