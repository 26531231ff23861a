"""Compare the papers' tables with ours, cell by cell.

`protocols` says how each paper is reproduced. Published figures are data (``published/*.csv``, as printed), read only
to compare them with ours; no computation uses them.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.data_catalog import need
from greenbatch.errors import InputError
from greenbatch.experiments.papers.cost_aware import NAME as COST_AWARE
from greenbatch.experiments.papers.headroom import UTILIZATION, headroom
from greenbatch.experiments.papers.in_turn import in_turn
from greenbatch.experiments.papers.protocols import PROTOCOLS, REDUCTIONS, Protocol
from greenbatch.experiments.papers.rare import NAME as RARE
from greenbatch.experiments.running.cells import Progress
from greenbatch.experiments.running.compare import compare
from greenbatch.experiments.running.frames import by_window
from greenbatch.scenarios.scenario import datasets_of
from greenbatch.workers import Workers

if TYPE_CHECKING:
    import polars

    from greenbatch.metrics import Metric
    from greenbatch.scenarios import Scenario

PUBLISHED = Path(__file__).with_name("published")

VERDICTS: dict[str, str] = {
    "equal": "equal to the published figure in every printed digit",
    "better": "differs from the published figure, and is better",
    "worse": "differs from the published figure, and is worse",
    "not computed": "a published column that this protocol does not compute",
    "derived trace": "computed on a stand-in for the trace, so not comparable to the published figure",
    "unstated inputs": "computed under our reading of what the paper leaves unstated, so not expected to be equal",
    "not in the paper": "computed in addition; the paper has no such figure",
}
"""Verdict of a cell -> its meaning."""
BOUND = "renewable_utilization_bound"
"""Key of a figure that is no metric: the bound on renewable utilization at the makespans of a scheduler."""
DERIVED = "the trace is derived from a simulated schedule, not the archive's file"


def compute(
    protocol: Protocol,
    *,
    traces: Sequence[str] | None = None,
    starts: Sequence[int] | None = None,
    sigma: float | None = None,
    progress: Progress | None = None,
    workers: Workers | None = None,
) -> dict[tuple[str, str, str, str], float]:
    """Our figures: (trace, column, backfill, metric) -> mean over the windows.

    Args:
        protocol: the protocol.
        traces: the traces; by default all of them.
        starts: first jobs of the windows; by default the paper's.
        sigma: threshold of brown energy, >= 0; by default 50 kJ. [J]
        progress: called before every simulation.
        workers: number of processes that simulate windows, >= 1, see `compare`.

    Raises:
        InputError: a scenario has no windows of its own and none are given, or a window extends beyond the trace.
    """
    from greenbatch.scenarios import load_scenario

    figures = {}
    for trace in traces or protocol.traces:
        scenario = load_scenario(protocol.traces[trace])
        specs = {(row.column, backfill): row.specs(backfill, sigma) for row in protocol.rows_on(trace)
                 for backfill in row.backfills if scenario.site is not None or backfill != "green"}  # fmt: skip
        metrics = {name: find_metric(name) for name in protocol.tables(trace)}
        turns = {row.column for row in protocol.rows_on(trace) if row.in_turn}
        frame = _compared(scenario, specs, turns, starts, progress, workers)
        values = _means(frame)
        base = next((several for (column, _), several in specs.items() if column == protocol.baselines.get(trace)), ())
        for (column, backfill), several in specs.items():
            for name, metric in metrics.items():
                value = _mean([values[spec, metric.name] for spec in several])
                if name not in REDUCTIONS:
                    figures[trace, column, backfill, name] = value
                elif several != base:
                    figures[trace, column, backfill, name] = 100.0 * (
                        1.0 - value / _mean([values[spec, metric.name] for spec in base])
                    )
            if UTILIZATION in metrics and (bound := _bound(scenario, several[0], frame)) is not None:
                figures[trace, column, backfill, BOUND] = bound
    return figures


def _compared(
    scenario: Scenario, specs: Mapping[tuple[str, str], Sequence[str]], turns: Collection[str],
    starts: Sequence[int] | None, progress: Progress | None, workers: Workers | None,
) -> polars.DataFrame:  # fmt: skip
    """All metrics of the schedulers on the windows; those of the columns ``turns`` take the windows in turn."""
    import polars as pl

    evaluation = scenario.evaluation
    windows = starts or evaluation.starts
    if not windows:
        raise InputError("has no windows", field=scenario.name, fix="give evaluation.starts")
    apart, later = (
        list(dict.fromkeys(spec for (column, _), several in specs.items() if (column in turns) == chosen
                           for spec in several))
        for chosen in (False, True)
    )  # fmt: skip
    frames = []
    if apart:
        frames.append(compare(scenario, apart, windows, evaluation.jobs, apart[0], progress, workers=workers).frame)
    if later:
        frames.append(in_turn(scenario, later, windows, progress, workers))
    return pl.concat(frames)


def _means(frame: polars.DataFrame) -> dict[tuple[str, str], float]:
    """(scheduler, metric) -> mean over the windows."""
    import polars as pl

    means = frame.group_by("scheduler", "metric").agg(pl.col("value").mean())
    return {(s, m): v for s, m, v in means.iter_rows() if v is not None}


def _bound(scenario: Scenario, spec: str, frame: polars.DataFrame) -> float | None:
    """Mean bound on renewable utilization at the makespans of a scheduler; None if the windows have none stored."""
    lengths_s, values = (by_window(frame, spec, metric) for metric in ("makespan_s", UTILIZATION))
    starts = [int(start) for start in lengths_s]
    left = headroom(scenario.name, starts, scenario.evaluation.jobs, [[*lengths_s.values()]], [[*values.values()]])
    return None if left is None else left.bound


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def find_metric(name: str) -> Metric:
    """The metric that a figure is of, or is a reduction of."""
    from greenbatch.metrics import find

    return find(REDUCTIONS[name].metric if name in REDUCTIONS else name)


def published(name: str) -> list[dict[str, str]]:
    """The figures of a paper, as printed: table, trace, backfill, scheduler, metric, value."""
    with (PUBLISHED / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def reproduce(
    name: str,
    *,
    traces: Sequence[str] | None = None,
    starts: Sequence[int] | None = None,
    sigma: float | None = None,
    progress: Progress | None = None,
    workers: Workers | None = None,
) -> list[dict[str, Any]]:
    """The cells of a paper's tables, published and computed.

    Each has table, trace, backfill, scheduler, metric, published, ours, digits, verdict and reason; the verdict is one
    of `VERDICTS`. Cells of renewable utilization have ``bound`` too, where it is known: no schedule of the same
    makespan has more.

    Args:
        name: the protocol: ``gas-marl``, ``rlscheduler`` or ``ineps``.
        traces: the traces, as the paper names them; by default all of them.
        starts: 0-based index of the first job of each window; by default the paper's.
        sigma: threshold of brown energy of LPTPN and Green-Backfilling, >= 0; by default 50 kJ. [J]
        progress: called before every simulation with what is simulated, the number done and the total.
        workers: number of processes that simulate windows, >= 1; by default one per processor if the work is long. The
            results do not depend on it.

    Raises:
        InputError: an unknown protocol or trace, a value out of range, or a window beyond the trace.
        DataMissing: a trace is not on this machine.
    """
    if name not in PROTOCOLS:
        fix = "known: " + ", ".join((*PROTOCOLS, COST_AWARE, RARE))
        raise InputError(f"no protocol is called {name!r}", field="PROTOCOL", fix=fix)
    protocol = PROTOCOLS[name]
    for trace in traces or ():
        if trace not in protocol.traces:
            fix = "known: " + ", ".join(protocol.traces)
            raise InputError(f"{name} has no trace {trace!r}", field="--traces", fix=fix)
    need(file for trace in traces or protocol.traces for file in datasets_of(protocol.traces[trace]))
    ours = compute(protocol, traces=traces, starts=starts, sigma=sigma, progress=progress, workers=workers)
    return cells(name, ours, traces or tuple(protocol.traces))


def cells(name: str, ours: Mapping[tuple[str, str, str, str], float], traces: Sequence[str]) -> list[dict[str, Any]]:
    """The cells of published figures and ours."""
    protocol, made, seen = PROTOCOLS[name], [], set()
    bounds = {key[:3]: value for key, value in ours.items() if key[3] == BOUND}
    ours = {key: value for key, value in ours.items() if key[3] != BOUND}
    rows = {(trace, row.column): row for trace in traces for row in protocol.rows_on(trace)}
    doubts = {trace: _doubt(protocol, trace) for trace in traces}
    for printed in published(name):
        trace, column, metric = printed["trace"], printed["scheduler"], printed["metric"]
        if trace not in traces:
            continue
        value = ours.get((trace, column, printed["backfill"], metric))
        reasons = [
            DERIVED if doubts[trace] == "derived trace" else "", printed.get("read", ""),
            rows[trace, column].reason if (trace, column) in rows else protocol.learned,
            protocol.reasons.get(printed["backfill"], ""), protocol.reasons.get(metric, ""),
        ]  # fmt: skip
        made.append(_cell(printed, value, doubts[trace], "; ".join(filter(None, reasons))))
        seen.add((trace, column, printed["backfill"], metric))
    tables = {trace: protocol.tables(trace) for trace in traces}
    order = list(protocol.metrics)
    for (trace, column, backfill, metric), value in sorted(
        ours.items(), key=lambda item: order.index(tables[item[0][0]][item[0][3]])
    ):
        if (trace, column, backfill, metric) not in seen:
            made.append({
                "table": f"beside {tables[trace][metric]}", "trace": trace, "backfill": backfill,
                "scheduler": column, "metric": metric, "published": None, "ours": value,
                "digits": 1 if metric in REDUCTIONS else 4 if "utilization" in metric else 3,
                "verdict": "not in the paper", "reason": rows[trace, column].reason,
            })  # fmt: skip
    for cell in made:
        bound = bounds.get((cell["trace"], cell["scheduler"], cell["backfill"]))
        if bound is not None and cell["metric"] == UTILIZATION:
            cell["bound"] = bound
    return made


def summary(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Number of cells per verdict, and the same as a sentence.

    Returns:
        ``computed`` (number of figures comparable to a published one), ``equal`` (of them), ``verdicts`` (verdict ->
        number of cells) and ``text``.
    """
    counts = {verdict: sum(cell["verdict"] == verdict for cell in cells) for verdict in VERDICTS}
    computed = counts["equal"] + counts["better"] + counts["worse"]
    was = "figure equals the published one" if computed == 1 else "figures equal the published ones"
    parts = [f"{counts['equal']} of {computed} computed {was} to every printed digit"] if computed else []
    for verdict, one, many in (
        (
            "not computed",
            "is a learned column, not computed here",
            "are learned columns, not computed here",
        ),
        ("derived trace", "is of a derived trace, not comparable", "are of derived traces, not comparable"),
        (
            "unstated inputs",
            "is compared under our reading of unstated inputs",
            "are compared under our reading of unstated inputs",
        ),
        ("not in the paper", "is not in the paper", "are not in the paper"),
    ):
        if counts[verdict]:
            parts.append(f"{counts[verdict]} {one if counts[verdict] == 1 else many}")
    text = "; ".join(parts) + "."
    return {"text": text, "computed": computed, "equal": counts["equal"], "verdicts": counts}


def is_comparable(scenario: str) -> bool:
    """Whether a scenario's results are comparable to published figures."""
    import tomllib

    from greenbatch.scenarios.scenario import scenario_path

    evaluation = tomllib.loads(scenario_path(scenario).read_text(encoding="utf-8")).get("evaluation", {})
    return bool(evaluation.get("comparable", True))


def _doubt(protocol: Protocol, trace: str) -> str:
    """The verdict on every figure of a trace that cannot be compared digit by digit; empty if they can."""
    if protocol.readings:
        return "unstated inputs"
    return "" if is_comparable(protocol.traces[trace]) else "derived trace"


def _cell(printed: Mapping[str, str], value: float | None, doubt: str, reason: str) -> dict[str, Any]:
    text = printed["value"]
    digits = len(text.partition(".")[2])
    if value is None:
        verdict = "not computed"
    elif doubt:
        verdict = doubt
    elif f"{value:.{digits}f}" == text:
        verdict = "equal"
    else:
        higher = find_metric(printed["metric"]).better == "higher"
        verdict = "better" if (value > float(text)) == higher else "worse"
    return {
        **{key: printed[key] for key in ("table", "trace", "backfill", "scheduler", "metric")},
        "published": float(text), "ours": value, "digits": digits, "verdict": verdict, "reason": reason,
    }  # fmt: skip


def name_of(cell: Mapping[str, Any]) -> str:
    """The scheduler of a cell, with its backfilling if it has one."""
    return "+".join(filter(None, (str(cell["scheduler"]), str(cell.get("backfill") or ""))))
