"""Compare the papers' tables with ours, cell by cell.

A protocol maps traces to scenarios and columns to schedulers, and gives the reasons why figures may differ. Published
figures are data (``published/*.csv``, as printed), read only to compare them with ours; no computation uses them.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from greenbatch.data_catalog import need
from greenbatch.errors import InputError
from greenbatch.experiments.running.compare import Progress, compare
from greenbatch.scenarios.scenario import datasets_of

PUBLISHED = Path(__file__).with_name("published")

NOT_TRAINED = "a learned or searched scheduler: not computed unless trained, with --train --out FOLDER"
AS_WORDED = "the rule as it is worded; the published code departs from it"
OURS = "our own rule"
LEFT_OUT = "a plain rule that the paper left out"
WAIT_REVERSED = (
    "the published code takes -(1 + submission) for the wait, so the rule runs backward; see the corrected row"
)
LPTPN_WAITS = "the published code waits for one job in steps of a second; see the row as worded"
NO_SPARE = "the published EASY has no spare processors and a strict deadline"
TO_LAST_START = "the published utilization ends at the last start, not at the makespan"
VERDICTS: dict[str, str] = {
    "equal": "equal to the published figure in every printed digit",
    "better": "differs from the published figure, and is better",
    "worse": "differs from the published figure, and is worse",
    "not computed": "a published column that this protocol does not compute",
    "derived trace": "computed on a stand-in for the trace, so not comparable to the published figure",
    "not in the paper": "computed in addition; the paper has no such figure",
}
"""Verdict of a cell -> its meaning."""
DERIVED = "the trace is derived from a simulated schedule, not the archive's file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A scheduler that reproduces a column of the paper, or an additional one."""

    column: str
    """The paper's name, or ours."""
    policy: str
    backfills: tuple[str, ...]
    reason: str = ""
    """How the published code departs from its paper, or why there is no published figure."""
    published: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How a paper's tables are reproduced."""

    title: str
    traces: Mapping[str, str]
    """Trace as the paper names it -> scenario."""
    metrics: Mapping[str, str]
    """Table -> metric."""
    rows: tuple[Row, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Backfilling or metric -> how the published code departs from the paper."""


_ALL = ("none", "easy-schedgym", "green")
_TWO = ("none", "easy-schedgym")

PROTOCOLS: dict[str, Protocol] = {
    "gas-marl": Protocol(
        title="GAS-MARL, Tables 3 and 4",
        traces={"Lublin-256": "gas-marl/lublin-256", "Cirne": "gas-marl/cirne", "Jann": "gas-marl/jann"},
        metrics={"Table 3": "avg_bounded_slowdown", "Table 4": "renewable_utilization"},
        rows=(
            Row(column="FCFS", policy="fcfs", backfills=(*_ALL, "easy-green-order")),
            Row(column="F2", policy="f2", backfills=(*_ALL, "easy-green-order")),
            Row(column="LPTPN", policy="lptpn-published", backfills=("none",), reason=LPTPN_WAITS),
            Row(column="LPTPN as worded", policy="lptpn", backfills=("none",), reason=AS_WORDED, published=False),
            Row(column="FCFS, true EASY", policy="fcfs", backfills=("easy",), reason=NO_SPARE, published=False),
            Row(column="F2, true EASY", policy="f2", backfills=("easy",), reason=NO_SPARE, published=False),
            Row(column="cheapest-start", policy="cheapest-start", backfills=("none",), reason=OURS, published=False),
        ),
        reasons={"easy-schedgym": NO_SPARE},
    ),
    "rlscheduler": Protocol(
        title="RLScheduler, Tables V and VI",
        traces={
            "Lublin-1": "rlscheduler/lublin-1", "Lublin-2": "rlscheduler/lublin-2", "HPC2N": "rlscheduler/hpc2n",
            "SDSC-SP2": "rlscheduler/sdsc-sp2",
        },
        metrics={"Table V": "avg_bounded_slowdown", "Table VI": "utilization_to_last_start"},
        rows=(
            Row(column="FCFS", policy="fcfs", backfills=_TWO),
            Row(column="WFP3", policy="wfp3-published", backfills=_TWO, reason=WAIT_REVERSED),
            Row(column="UNICEP", policy="unicep-published", backfills=_TWO, reason=WAIT_REVERSED),
            Row(column="SJF", policy="sjf", backfills=_TWO),
            Row(column="F1", policy="f1", backfills=_TWO),
            Row(column="WFP3 corrected", policy="wfp3", backfills=_TWO, reason=AS_WORDED, published=False),
            Row(column="UNICEP corrected, log2(n)", policy="unicep-unbounded", backfills=_TWO, reason=AS_WORDED,
                published=False),
            Row(column="UNICEP corrected", policy="unicep", backfills=_TWO, reason=AS_WORDED, published=False),
            Row(column="SMALLEST", policy="smallest", backfills=_TWO, reason=LEFT_OUT, published=False),
            Row(column="F2", policy="f2", backfills=_TWO, reason=LEFT_OUT, published=False),
            Row(column="F3", policy="f3", backfills=_TWO, reason=LEFT_OUT, published=False),
            Row(column="F4", policy="f4", backfills=_TWO, reason=LEFT_OUT, published=False),
        ),
        reasons={"easy-schedgym": NO_SPARE, "utilization_to_last_start": TO_LAST_START},
    ),
}  # fmt: skip
"""All protocols by name."""


def compute(
    protocol: Protocol,
    *,
    traces: Sequence[str] | None = None,
    starts: Sequence[int] | None = None,
    sigma: float | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
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
    import polars as pl

    from greenbatch.metrics import find
    from greenbatch.scenarios import load_scenario

    figures = {}
    for trace in traces or protocol.traces:
        scenario = load_scenario(protocol.traces[trace])
        names = {(row, backfill): _spec(row.policy, backfill, sigma) for row in protocol.rows
                 for backfill in row.backfills if scenario.site is not None or backfill != "green"}  # fmt: skip
        specs = list(dict.fromkeys(names.values()))
        evaluation = scenario.evaluation
        windows = starts or evaluation.starts
        if not windows:
            raise InputError("has no windows", field=scenario.name, fix="give evaluation.starts")
        frame = compare(scenario, specs, windows, evaluation.jobs, specs[0], progress, workers=workers).frame
        means = frame.group_by("scheduler", "metric").agg(pl.col("value").mean())
        value = {(s, m): v for s, m, v in means.iter_rows() if v is not None}
        for (row, backfill), spec in names.items():
            for metric in protocol.metrics.values():
                figures[trace, row.column, backfill, find(metric).name] = value[spec, metric]
    return figures


def _spec(policy: str, backfill: str, sigma: float | None) -> str:
    changed = "" if sigma is None else f":sigma={sigma!r}"
    return f"{policy}{changed if policy.startswith('lptpn') else ''}+{backfill}{changed if backfill == 'green' else ''}"


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
    workers: int | None = None,
) -> list[dict[str, Any]]:
    """The cells of a paper's tables, published and computed.

    Each has table, trace, backfill, scheduler, metric, published, ours, digits, verdict and reason; the verdict is one
    of `VERDICTS`.

    Args:
        name: the protocol: ``gas-marl`` or ``rlscheduler``.
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
        raise InputError(f"no protocol is called {name!r}", field="PROTOCOL", fix="known: " + ", ".join(PROTOCOLS))
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
    rows = {row.column: row for row in protocol.rows if row.published}
    comparable = {trace: is_comparable(scenario) for trace, scenario in protocol.traces.items() if trace in traces}
    for printed in published(name):
        trace, column, metric = printed["trace"], printed["scheduler"], printed["metric"]
        if trace not in traces:
            continue
        value = ours.get((trace, column, printed["backfill"], metric))
        reasons = [rows[column].reason] if column in rows else [NOT_TRAINED]
        reasons += [protocol.reasons.get(printed["backfill"], ""), protocol.reasons.get(metric, "")]
        if not comparable[trace]:
            reasons.insert(0, DERIVED)
        made.append(_cell(printed["table"], trace, printed["backfill"], column, metric, printed["value"], value,
                          comparable[trace], "; ".join(filter(None, reasons))))  # fmt: skip
        seen.add((trace, column, printed["backfill"], metric))
    digits = {metric: 4 if "utilization" in metric else 3 for metric in protocol.metrics.values()}
    tables = {metric: table for table, metric in protocol.metrics.items()}
    reason = {row.column: row.reason for row in protocol.rows}
    order = list(protocol.metrics.values())
    for (trace, column, backfill, metric), value in sorted(ours.items(), key=lambda item: order.index(item[0][3])):
        if (trace, column, backfill, metric) not in seen:
            made.append({
                "table": f"beside {tables[metric]}", "trace": trace, "backfill": backfill, "scheduler": column,
                "metric": metric, "published": None, "ours": value, "digits": digits[metric],
                "verdict": "not in the paper", "reason": reason[column],
            })  # fmt: skip
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
            "is a learned or searched column, not computed here",
            "are learned or searched columns, not computed here",
        ),
        ("derived trace", "is of a derived trace, not comparable", "are of derived traces, not comparable"),
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


def _cell(
    table: str, trace: str, backfill: str, column: str, metric: str, printed: str, value: float | None,
    comparable: bool, reason: str,
) -> dict[str, Any]:  # fmt: skip
    from greenbatch.metrics import find

    digits = len(printed.partition(".")[2])
    if value is None:
        verdict = "not computed"
    elif not comparable:
        verdict = "derived trace"
    elif f"{value:.{digits}f}" == printed:
        verdict = "equal"
    else:
        verdict = "better" if (value > float(printed)) == (find(metric).better == "higher") else "worse"
    return {
        "table": table, "trace": trace, "backfill": backfill, "scheduler": column, "metric": metric,
        "published": float(printed), "ours": value, "digits": digits, "verdict": verdict, "reason": reason,
    }  # fmt: skip
