"""The tables of the study ``rare``: one per setting, and the published ranges beside ours.

All are made of rows (`study_results.Result.rows`). Differences are in percent of the value of another scheduler on the
same draw.
"""

# ruff: noqa: RUF001 - typographic dashes and minus signs are meant for the reader.

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from greenbatch.display import draws_text
from greenbatch.experiments.papers.rare import (
    BASE,
    BESIDE,
    HEURISTICS,
    NAME,
    RANDOM,
    READINGS,
    SETTINGS,
    SHIPPED,
    STUDY,
    UNTRAINED,
    VALUE,
    Reading,
)
from greenbatch.experiments.papers.reproduce import published
from greenbatch.experiments.papers.study_tables import COVERS, figure_cell
from greenbatch.experiments.reports.columns import Column
from greenbatch.experiments.reports.tables import Cell, Mark, Table
from greenbatch.experiments.running.statistics import FEW_WINDOWS, Interval, mean_interval

Row = Mapping[str, Any]
Floats = np.ndarray[Any, np.dtype[np.float64]]

WORTH = Column(VALUE, "Value of finished jobs", digits=4, style="significant", short="Value")
COLUMNS = (
    WORTH,
    Column("value_ratio", "Value ratio", "%", 100.0, 1, short="Ratio"),
    Column("completion_ratio", "Jobs completed", "%", 100.0, 1, short="Completed"),
    Column("utilization_available", "Powered machine used", "%", 100.0, 1, short="Used"),
    Column("on_time_value", "Value of jobs on time", digits=4, style="significant", short="On time"),
    Column("late_share", "Jobs late", "%", 100.0, 1, short="Late"),
    Column("suspensions", "Suspensions", digits=1, style="count"),
)
NARROW = (VALUE, "value_ratio", "completion_ratio", "utilization_available")
"""Metrics that fit a terminal."""
OVER = f"Over {BASE}"

READ = (
    "Value: of all jobs that finish within the run, late ones too; it is processors and GPUs times ticks times QoS "
    "times 0.5 (Eq. 3.2), so the value is weighted by QoS."
)
UNSTATED = (
    "All of ours is computed under our reading of what the paper leaves unstated (docs/scenarios.md), so none is "
    "expected to equal a published figure. Ours is the agent, or random actions, over the best of the named rules on "
    "the same draws [95% interval over draws, for trained agents also over seeds]. Verdict: met, the whole interval "
    "is at least the lower end of the published range (where only an upper end is published: at most that); missed, "
    "none of it is; else within noise."
)
DRAWS = {
    False: "{draws} of jobs, and of the power where it is intermittent.",
    True: "{draws} of GPUs and QoS, which no trace has; jobs, arrivals and weather are the same in all, so "
    "intervals say nothing about other weeks. Not ANL's trace nor GLEAMM's power, which are not at hand.",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """A published range, at one of our settings."""

    printed: Mapping[str, str]
    """The row of ``published/rare.csv``."""
    setting: str
    ours: str
    """The scheduler that stands for the paper's agent, or random actions."""
    rival: str
    """The best of the rules that the range is over."""
    over: Interval
    """Ours over the rival. [%]"""
    over_weakest: float
    """Ours over the weakest of these rules. [%]"""
    beside: Mapping[str, Interval]
    """Rows beside -> the same of them."""

    @property
    def reading(self) -> Reading:
        """Our reading of the range."""
        return READINGS[self.printed["claim"]]

    @property
    def ends(self) -> tuple[float, float]:
        """Ends of the published range, infinite where not stated. [%]"""
        return float(self.printed["low"] or -math.inf), float(self.printed["high"] or math.inf)

    @property
    def verdict(self) -> str:
        """``met``, ``within noise`` or ``missed``: see `UNSTATED`."""
        (low, high), at = self.ends, self.over
        if not math.isfinite(at.low):
            return "within noise"
        if math.isinf(low):
            return "met" if at.high <= high else "missed" if at.low > high else "within noise"
        return "met" if at.low >= low else "missed" if at.high < low else "within noise"


def values(rows: Sequence[Row], scheduler: str, metric: str = VALUE) -> Floats | None:
    """A metric of a row, shape (seeds, windows or draws), NaN where it was not played; None if it has none."""
    figure = next((row["figures"].get(metric) for row in rows if row["scheduler"] == scheduler), None)
    return None if not figure else np.array(figure["values"], dtype=np.float64)


def gain(rows: Sequence[Row], scheduler: str, rival: str, metric: str = VALUE) -> Interval | None:
    """Mean over draws, and seeds, of a metric of a scheduler over that of a rule on the same draw. [%]

    Args:
        rows: the rows of one setting.
        scheduler: name of a row.
        rival: name of a row without seeds.
        metric: the metric.
    """
    own, other = values(rows, scheduler, metric), values(rows, rival, metric)
    return None if own is None or other is None else mean_interval(100.0 * (own / other - 1.0))


# ---------------------------------------------------------------- settings


def setting_tables(rows: Sequence[Row], *, narrow: bool = False) -> list[Table]:
    """One table per setting.

    Args:
        rows: the rows of all settings.
        narrow: omit columns that do not fit a terminal.
    """
    names = dict.fromkeys(row["trace"] for row in rows)
    return [setting_table(name, [row for row in rows if row["trace"] == name], narrow=narrow) for name in names]


def setting_table(name: str, rows: Sequence[Row], *, narrow: bool = False) -> Table:
    """Rules, shipped models and agents at one setting."""
    shown = [column for column in COLUMNS if (not narrow or column.metric in NARROW) and _told(rows, column.metric)]
    lines: list[tuple[str, tuple[Cell, ...]]] = []
    for row in rows:
        first, *others = (figure_cell(column, row, wide=not narrow) for column in shown)
        lines.append((row["scheduler"], (first, _gain_cell(rows, row["scheduler"]), *others)))
    headers = [(column.header, column.unit, column.short or column.header) for column in shown]
    headers.insert(1, (OVER, "%", "Over QoS"))
    setting, count = SETTINGS[name], len(rows[0]["starts"])
    notes = [f"{DRAWS[setting.trace].format(draws=draws_text(count))} {COVERS}", READ]
    if few := int(np.isfinite(_values_of(rows, UNTRAINED)).all(axis=0).sum()):
        notes.append(f"{UNTRAINED}: the network of `rare` before training, on {few} of the draws.")
    legend = f"Bold: the interval of the gain excludes zero over at least {FEW_WINDOWS} draws."
    return Table(f"{name}: {setting.about}", tuple(headers), tuple(lines), notes=tuple(notes), legend=legend)


def _values_of(rows: Sequence[Row], scheduler: str) -> Floats:
    found = values(rows, scheduler)
    return np.full((1, 1), np.nan) if found is None else found


def _told(rows: Sequence[Row], metric: str) -> bool:
    """Whether a metric is known, and says something: suspensions only where there are some."""
    means = [row["figures"][metric]["mean"] for row in rows if metric in row["figures"]]
    return bool(means) and (metric != "suspensions" or any(means))


def _gain_cell(rows: Sequence[Row], scheduler: str) -> Cell:
    at = None if scheduler == BASE else gain(rows, scheduler, BASE)
    return Cell("–") if at is None else percent_cell(at, marked=True)


def percent_cell(at: Interval, *, marked: bool = False) -> Cell:
    """A difference in percent with its interval; ``marked``: bold or pale if that excludes zero."""
    mean, low, high = (f"{end:+.1f}".replace("-", "−") for end in (at.mean, at.low, at.high))
    mark: Mark = ""
    if marked and at.count >= FEW_WINDOWS and (at.low > 0 or at.high < 0):
        mark = "good" if at.mean > 0 else "bad"
    return Cell(mean, f"[{low}, {high}]" if at.low < at.high else "", mark=mark)


# ---------------------------------------------------------------- claims


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Every published range at every setting that it is about and that was played."""
    made = []
    for printed in published(NAME):
        for name in READINGS[printed["claim"]].settings:
            own = [row for row in rows if row["trace"] == name]
            if own:
                made.append(_claim(printed, name, own))
    return made


def _claim(printed: Mapping[str, str], name: str, rows: Sequence[Row]) -> Claim:
    named = HEURISTICS.values() if printed["over"] == "heuristics" else [HEURISTICS[w] for w in printed["over"].split()]
    by_value = sorted(named, key=lambda rule: float(_values_of(rows, rule).mean()))
    ours = RANDOM if printed["of"] == "random" else agent_of(rows)
    over = {other: gain(rows, other, by_value[-1]) for other in (ours, *BESIDE)}
    weakest = gain(rows, ours, by_value[0])
    nothing = Interval(math.nan, math.nan, math.nan, 0)
    beside = {other: over[other] or nothing for other in BESIDE}
    return Claim(printed, name, ours, by_value[-1], over[ours] or nothing, (weakest or nothing).mean, beside)


def agent_of(rows: Sequence[Row]) -> str:
    """The row that stands for the paper's agent at a setting: ours if it was trained there, else the shipped one."""
    ours = STUDY.agents[0].column
    return next((str(row["scheduler"]) for row in rows if row["column"] == ours and row["figures"]), SHIPPED)


def claim_table(rows: Sequence[Row], *, narrow: bool = False) -> Table:
    """The published ranges beside ours; a claim at several settings has several rows."""
    lines: list[tuple[str, tuple[Cell, ...]]] = []
    for claim in claims(rows):
        weakest = Cell("–" if math.isnan(claim.over_weakest) else f"{claim.over_weakest:+.1f}".replace("-", "−"))
        beside = tuple(percent_cell(claim.beside[other]) for other in BESIDE)
        verdict = Cell(claim.verdict, mark="best" if claim.verdict == "met" else "")
        ours = (Cell(range_text(claim)), Cell(claim.rival), percent_cell(claim.over), weakest)
        cells = (*ours, *beside, Cell(claim.reading.holds), verdict)
        lines.append((f"{_figure(claim)}: {claim.setting}", cells))
    headers = (
        ("Published", "%", "Published"), ("Best of the named rules", "", "Over"), ("Ours over it", "%", "Ours"),
        ("Ours over the weakest", "%", "Weakest"), *((f"{other} over it", "%", other) for other in BESIDE),
        ("Can it hold", "", "Can hold"), ("Verdict", "", "Verdict"),
    )  # fmt: skip
    kept = (0, 1, 2, 6, 7) if narrow else range(len(headers))
    shown = tuple((name, tuple(cells[k] for k in kept)) for name, cells in lines)
    stands = f"Ours: {' or '.join(dict.fromkeys(claim.ours for claim in claims(rows)))}."
    return Table(
        "The paper's claims, in percent of value", tuple(headers[k] for k in kept), shown, corner="Claim: setting",
        notes=(stands, UNSTATED), legend="Bold: met.",
    )  # fmt: skip


def _figure(claim: Claim) -> str:
    figure = claim.printed["figure"]
    return f"§{claim.printed['section']}" if figure == "none" else figure


def _place(claim: Claim) -> str:
    """Figure and section."""
    section = f"§{claim.printed['section']}"
    return section if claim.printed["figure"] == "none" else f"{claim.printed['figure']} ({section})"


def range_text(claim: Claim) -> str:
    """The published range as text, such as ``18 to 25``, ``≥ 0`` or ``14``."""
    low, high = claim.printed["low"], claim.printed["high"]
    if not low or not high:
        return f"≥ {low}" if low else f"≤ {high}"
    return low if low == high else f"{low} to {high}"


def sentence_lines(rows: Sequence[Row]) -> list[str]:
    """The sentence of each claim, and whether it can hold: one line per claim."""
    told = {claim.printed["claim"]: claim for claim in claims(rows)}
    return [
        f"{_place(claim)}, {claim.printed['where']}: “{claim.printed['sentence']}”. "
        f"Can it hold: {claim.reading.holds}; {claim.reading.reason}."
        for claim in told.values()
    ]


def findings(rows: Sequence[Row]) -> list[str]:
    """Per setting: what the agent gains over strict rules, and what of it remains beside backfilling."""
    made = []
    for name in dict.fromkeys(row["trace"] for row in rows):
        own = [row for row in rows if row["trace"] == name]
        ours = agent_of(own)
        over = {rival: gain(own, ours, rival) for rival in (BASE, *reversed(BESIDE))}
        parts = [f"{_text(at)} over {rival}" for rival, at in over.items() if at is not None]
        if len(parts) == len(over):
            made.append(f"{name}: {ours} has {', '.join(parts)}.")
    return made


def _text(at: Interval) -> str:
    cell = percent_cell(at)
    return f"{cell.text} % {cell.interval}".strip()
