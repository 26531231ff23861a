"""The tables of the study ``cocorl``: whether the limit is kept, the settings, and the published ranges beside ours.

All are made of rows (`study_results.Result.rows`).
"""

# ruff: noqa: RUF001 - typographic dashes and minus signs are meant for the reader.

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from greenbatch.experiments.papers.cocorl import (
    AIM,
    BACKFILLED,
    COST,
    FREE,
    HEURISTICS,
    NAME,
    PACKER,
    SETTINGS,
    SHARE,
    STUDY,
    VALUE,
)
from greenbatch.experiments.papers.rare_tables import percent_cell, values
from greenbatch.experiments.papers.reproduce import published
from greenbatch.experiments.papers.study_results import interval_of
from greenbatch.experiments.papers.study_tables import COVERS, figure_cell
from greenbatch.experiments.reports.columns import Column
from greenbatch.experiments.reports.tables import Cell, Table
from greenbatch.experiments.running.statistics import Interval, mean_interval

Row = Mapping[str, Any]

RATIO = Column(VALUE, "Value ratio", "%", 100.0, 2, short="Value")
ACCRUED = Column(COST, "Accrued cost", digits=4, style="significant", short="Cost")
COLUMNS = (
    RATIO,
    ACCRUED,
    Column("completion_ratio", "Jobs completed", "%", 100.0, 1, short="Completed"),
    Column("utilization_available", "Powered machine used", "%", 100.0, 1, short="Used"),
    Column("late_share", "Jobs late", "%", 100.0, 1, short="Late"),
)
NARROW = (VALUE, COST, "completion_ratio")
"""Metrics that fit a terminal."""
SLACK = Column(COST, "Accrued cost less the limit", digits=3, style="significant")
OURS, UNLIMITED = "cocorl-plus", FREE
"""Presets of the agent with and without a limit."""

OF_LIMITS = (
    "Limit: 7/11 of what the agent without a constraint accrues on the same episodes (section 6.6.5: 7,000 of 11,000). "
    f"Trainings aim at {AIM:.0%} of 7/11 of what it accrues on validation episodes: no test episode plays a part. "
    "Costs of episodes differ far more than agents do, so cost and limit are compared on the same episodes. Kept: the "
    "upper end of the 95% interval of the mean cost less the limit, over seeds and episodes, is at most 0."
)
OF_RIVALS = (
    "Best rule within: the rule with backfilling of the highest value among those whose mean cost is at most the limit."
)
UNSTATED = (
    "All of ours is computed under our reading of what the chapter leaves unstated (docs/scenarios.md): other weather, "
    "or none, other GPUs and QoS. SDSC Blue Horizon stands in for ANL, whose log is not at hand. Ours is CoCoRL plus; "
    "over the best and the weakest of the named rules on the same episodes."
)


@dataclass(frozen=True, slots=True)
class Promise:
    """Whether an agent keeps its limit at a setting, and what it earns beside rules that keep it."""

    setting: str
    agent: str
    limit: float
    cost: Interval
    slack: Interval
    """Cost less the limit, both of the same episodes."""
    beyond: float
    """Share of episodes, over all seeds, whose cost is above the limit."""
    value: Interval
    unlimited: Interval
    """Value ratio of the agent without a constraint."""
    rival: str
    """The best rule with backfilling within the limit; empty if none is."""
    over: Interval
    """Value ratio less that of the rival on the same episodes."""

    @property
    def kept(self) -> bool:
        """Whether the upper end of the interval of the mean cost is at most the limit, on the same episodes."""
        return self.slack.high <= 0.0

    @property
    def text(self) -> str:
        """``yes``, ``in the mean`` where the interval reaches beyond the limit, or ``no``."""
        return "yes" if self.kept else "in the mean" if self.slack.mean <= 0.0 else "no"


def row_of(rows: Sequence[Row], preset: str) -> Row | None:
    """The row of an agent at a setting, if it was trained."""
    return next(
        (row for row in rows if row["agent"] and row["agent"]["preset"] == preset and row["agent"]["knob"] == ""
         and COST in row["figures"]), None,
    )  # fmt: skip


def promise(rows: Sequence[Row], preset: str = OURS) -> Promise | None:
    """How an agent keeps its limit; None without it or without the agent that the limit is set by.

    Args:
        rows: the rows of one setting.
        preset: the agent with a limit.
    """
    own, free = row_of(rows, preset), row_of(rows, UNLIMITED)
    if own is None or free is None:
        return None
    limit = SHARE * free["figures"][COST]["mean"]
    costs, theirs = np.asarray(values(rows, own["scheduler"], COST)), values(rows, free["scheduler"], COST)
    slack = mean_interval(costs - SHARE * np.asarray(theirs).mean(axis=0))
    within = [
        row for row in rows if row["scheduler"] in (*BACKFILLED, PACKER) and row["figures"][COST]["mean"] <= limit
    ]
    best = max(within, key=lambda row: row["figures"][VALUE]["mean"], default=None)
    over = Interval(math.nan, math.nan, math.nan, 0)
    if best is not None:
        ours, theirs = values(rows, own["scheduler"], VALUE), values(rows, best["scheduler"], VALUE)
        over = mean_interval(ours - theirs)  # type: ignore[operator]  # both rows have figures
    return Promise(
        setting=str(own["trace"]), agent=str(own["scheduler"]), limit=limit, cost=interval_of(own["figures"][COST]),
        slack=slack, beyond=float(np.mean(costs > limit)),
        value=interval_of(own["figures"][VALUE]), unlimited=interval_of(free["figures"][VALUE]),
        rival="" if best is None else str(best["scheduler"]), over=over,
    )  # fmt: skip


def by_setting(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Setting -> its rows."""
    return {name: [row for row in rows if row["trace"] == name] for name in dict.fromkeys(row["trace"] for row in rows)}


def promises(rows: Sequence[Row]) -> list[Promise]:
    """Of every setting and agent with a limit that was trained."""
    presets = [agent.preset for agent in STUDY.agents if agent.preset != FREE]
    found = [promise(own, preset) for own in by_setting(rows).values() for preset in presets]
    return [each for each in found if each is not None]


def promise_table(rows: Sequence[Row], *, narrow: bool = False) -> Table:
    """One row per setting: the limit, the cost, and the value beside that of rules within the limit."""
    lines: list[tuple[str, tuple[Cell, ...]]] = []
    for made in promises(rows):
        over = made.over
        points = Interval(100 * over.mean, 100 * over.low, 100 * over.high, over.count)
        cells = (
            Cell(ACCRUED.number(made.limit)),
            _cell(ACCRUED, made.cost),
            _cell(SLACK, made.slack, mark="good" if made.kept else "bad"),
            Cell(made.text),
            Cell(f"{100 * made.beyond:.0f}"),
            _cell(RATIO, made.value),
            _cell(RATIO, made.unlimited),
            Cell(made.rival or "none"),
            percent_cell(points, marked=True) if made.rival else Cell("–"),
        )
        lines.append((f"{SETTINGS[made.setting].about}: {made.agent}", cells))
    headers = (
        ("Limit", "", "Limit"), ("Accrued cost", "", "Cost"), ("Less the limit", "", "Less"),
        ("Kept", "", "Kept"),
        ("Episodes above it", "%", "Above"), ("Value ratio", "%", "Value"), ("Without a limit", "%", "Free"),
        ("Best rule within", "", "Best rule"), ("Value over it", "points", "Over"),
    )  # fmt: skip
    kept = (0, 1, 3, 4, 8) if narrow else range(len(headers))
    shown = tuple((name, tuple(cells[k] for k in kept)) for name, cells in lines)
    return Table(
        "Limits on the accrued cost", tuple(headers[k] for k in kept), shown, corner="Setting: agent",
        notes=(OF_LIMITS, OF_RIVALS, COVERS), legend="Bold: kept, or the interval of the difference excludes zero.",
    )  # fmt: skip


def _cell(column: Column, at: Interval, **mark: Any) -> Cell:
    span = f"[{column.number(at.low)}, {column.number(at.high)}]" if at.low < at.high else ""
    return Cell(column.number(at.mean), span, **mark)


def setting_tables(rows: Sequence[Row], *, narrow: bool = False) -> list[Table]:
    """One table per setting.

    Args:
        rows: the rows of all settings.
        narrow: omit columns that do not fit a terminal.
    """
    shown = [column for column in COLUMNS if not narrow or column.metric in NARROW]
    headers = tuple((column.header, column.unit, column.short or column.header) for column in shown)
    tables = []
    for name, own in by_setting(rows).items():
        lines = [
            (row["scheduler"], tuple(figure_cell(column, row, wide=not narrow) for column in shown)) for row in own
        ]
        note = f"{len(own[0]['starts'])} episodes of 200 ticks. {COVERS}"
        tables.append(Table(SETTINGS[name].about, headers, tuple(lines), notes=(note,)))
    return tables


# ---------------------------------------------------------------- claims


@dataclass(frozen=True, slots=True)
class Claim:
    """A published range, at one of our settings."""

    printed: Mapping[str, str]
    """The row of ``published/cocorl.csv``."""
    setting: str
    best: float
    """Ours over the best of the named rules, in the claim's unit."""
    weakest: float
    """Ours over the weakest."""


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Every published range at every load that was played with our agent."""
    found, settings = [], by_setting(rows)
    for printed in published(NAME):
        for load in printed["loads"].split():
            own = settings.get(f"{printed['workload']}-{load}", [])
            agent = row_of(own, OURS)
            if agent is not None:
                names = HEURISTICS if printed["over"] == "heuristics" else printed["over"].split()
                rules = [row for row in own if row["scheduler"] in [HEURISTICS[name] for name in names]]
                over = [_over(agent, rule, printed["metric"], printed["unit"]) for rule in rules]
                found.append(Claim(printed, str(agent["trace"]), min(over), max(over)))
    return found


def _over(agent: Row, rule: Row, metric: str, unit: str) -> float:
    ours, theirs = (row["figures"][metric]["mean"] for row in (agent, rule))
    if unit == "x":
        return float(theirs / ours) if ours else math.inf
    return 100.0 * float(ours - theirs if unit == "points" else ours / theirs - 1.0)


def claim_table(rows: Sequence[Row]) -> Table:
    """The published ranges beside ours; a claim at several loads has several rows."""
    lines = []
    for claim in claims(rows):
        printed = claim.printed
        unit = {"x": "times lower", "points": "points"}.get(printed["unit"], printed["unit"])
        low, high = printed["low"], printed["high"]
        cells = (
            Cell(low if low == high else f"{low} to {high}"), Cell(unit), Cell(printed["over"]),
            Cell(f"{claim.best:.1f}".replace("-", "−")), Cell(f"{claim.weakest:.1f}".replace("-", "−")),
        )  # fmt: skip
        lines.append((f"{printed['figure']}, {printed['metric']}: {SETTINGS[claim.setting].about}", cells))
    headers = (
        ("Published", "", "Published"), ("Unit", "", "Unit"), ("Over", "", "Over"),
        ("Ours over the best of them", "", "Best"), ("Ours over the weakest", "", "Weakest"),
    )  # fmt: skip
    return Table("The chapter's claims", headers, tuple(lines), corner="Claim: setting", notes=(UNSTATED,))


def findings(rows: Sequence[Row]) -> list[str]:
    """Per setting and agent: whether the limit is kept, at which value."""
    told = []
    for made in promises(rows):
        word = {"yes": "keeps", "in the mean": "keeps in the mean only", "no": "does not keep"}[made.text]
        more = f"{100 * made.over.mean:+.1f}".replace("-", "−")
        best = f"{more} points of value over {made.rival}, the best rule within"
        if not made.rival:
            best = "no rule with backfilling keeps it"
        limit, *cost = (ACCRUED.number(x) for x in (made.limit, made.cost.mean, made.cost.low, made.cost.high))
        told.append(
            f"{SETTINGS[made.setting].about}: {made.agent} {word} the limit of {limit}: it accrues "
            f"{cost[0]} [{cost[1]}, {cost[2]}], {100 * made.beyond:.0f} % of the episodes are above; {best}."
        )
    return told
