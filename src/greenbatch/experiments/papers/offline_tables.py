"""The tables of values of the study ``offline``: rules and agents by size, and what datasets are worth.

All are made of rows (`study_results.Result.rows`). Differences are in percent of the value of another scheduler on the
same draws.
"""

# ruff: noqa: RUF001 - typographic dashes and minus signs are meant for the reader.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from greenbatch.display import draws_text
from greenbatch.experiments.papers.cocorl import STRICT
from greenbatch.experiments.papers.cocorl_tables import by_setting
from greenbatch.experiments.papers.offline import LEARNERS, MIXES, RIVAL, SETTINGS, VALUE, Learner
from greenbatch.experiments.papers.offline_results import UNTRAINED
from greenbatch.experiments.papers.rare_tables import percent_cell
from greenbatch.experiments.papers.study_tables import COVERS, figure_cell
from greenbatch.experiments.reports.columns import Column
from greenbatch.experiments.reports.tables import Cell, Table
from greenbatch.experiments.running.statistics import FEW_WINDOWS, Interval, mean_interval, paired_difference

Row = Mapping[str, Any]
Floats = np.ndarray[Any, np.dtype[np.float64]]

WORTH = Column(VALUE, "Value of finished jobs", digits=4, style="significant", short="Value")
COLUMNS = (
    Column("value_ratio", "Value ratio", "%", 100.0, 1, short="Ratio"),
    Column("completion_ratio", "Jobs completed", "%", 100.0, 1, short="Completed"),
    Column("late_share", "Jobs late", "%", 100.0, 1, short="Late"),
)
"""Shown beside the value where there is room."""
PAIRED = (
    "Differences: on the same draws, in percent of the other's mean; intervals of the seeds of two agents are combined "
    "in quadrature."
)
OURS = (
    "Numbers of the presets bc, offline, offline-online and online are ours; “as published” are those of Table A.4 "
    "(rare-clone, rare-offline, rare-offline-online, rare-online). All is computed under our reading of what the text "
    "leaves open (docs/scenarios.md)."
)
OF_MIXES = (
    "Value: mean of the rules on the test draws, weighted by their shares; a training's own episodes are of the same "
    "generator. Best rule: the strict or backfilled rule of the highest value in the dataset."
)


def learner_of(row: Row) -> Learner | None:
    """Who the agent of a row is; None for rules and the untrained agent."""
    return LEARNERS.get(row["column"]) if row["agent"] else None


def row_of(rows: Sequence[Row], *, rule: str = "", learner: Learner | None = None) -> Row | None:
    """The row of a rule, or of the untrained agent by its name, or of a learner at a setting; None if not played."""
    found = (row for row in rows if (row["scheduler"] == rule if rule else learner_of(row) == learner))
    return next((row for row in found if VALUE in row["figures"]), None)


def values_of(row: Row) -> Floats:
    """The values of a row, shape (seeds, draws)."""
    return np.array(row["figures"][VALUE]["values"], np.float64)


def over(row: Row, other: Row) -> Interval:
    """The value of a row over that of another, both possibly with seeds. [%]"""
    theirs = values_of(other)
    made, unit = paired_difference(values_of(row), theirs, better="higher").difference, 100.0 / float(theirs.mean())
    return Interval(unit * made.mean, unit * made.low, unit * made.high, made.count)


def best_rule(rows: Sequence[Row], rules: Sequence[str]) -> Row:
    """The row of the highest value among some rules."""
    return max(
        (row for row in rows if row["scheduler"] in rules), key=lambda row: float(row["figures"][VALUE]["mean"])
    )  # fmt: skip


# ---------------------------------------------------------------- settings


def setting_tables(rows: Sequence[Row], *, narrow: bool = False) -> list[Table]:
    """One table per size: rules and agents, over the rival, and agents over the clone of their dataset."""
    return [_setting_table(name, own, narrow=narrow) for name, own in by_setting(rows).items()]


def _setting_table(name: str, rows: Sequence[Row], *, narrow: bool) -> Table:
    cloned = any(learner is not None and learner.method == "bc" for learner in map(learner_of, rows))
    beside = () if narrow else COLUMNS
    headers = [(WORTH.header, "", WORTH.short or ""), (f"Over {RIVAL}", "%", f"Over {RIVAL.partition('+')[0]}+ff")]
    headers += [("Over BC of its dataset", "%", "Over BC")] if cloned else []
    headers += [(column.header, column.unit, column.short or column.header) for column in beside]
    rival, lines = row_of(rows, rule=RIVAL), []
    for row in rows:
        cells = [figure_cell(WORTH, row, wide=not narrow), _over_cell(row, rival)]
        if cloned:
            cells.append(_over_cell(row, _clone_of(rows, learner_of(row))))
        cells += [figure_cell(column, row, wide=not narrow) for column in beside]
        lines.append((row["scheduler"], tuple(cells)))
    drawn = draws_text(len(rows[0]["starts"]))
    notes = [f"{drawn} of 2,000 ticks that no training has seen. {COVERS} {PAIRED}", OURS]
    if any(row["column"] == UNTRAINED for row in rows):
        notes.append(f"{UNTRAINED}: the network of `offline` before training, drawing among the jobs that fit.")
    legend = f"Bold: the interval of the difference excludes zero over at least {FEW_WINDOWS} draws."
    return Table(f"{name}: {SETTINGS[name].about}", tuple(headers), tuple(lines), notes=tuple(notes), legend=legend)


def _clone_of(rows: Sequence[Row], learner: Learner | None) -> Row | None:
    """The row of behavior cloning from the dataset of an agent."""
    if learner is None or not learner.mix:
        return None
    return row_of(rows, learner=Learner("bc", learner.mix, learner.published))


def _over_cell(row: Row, other: Row | None) -> Cell:
    if other is None or other is row or VALUE not in row["figures"]:
        return Cell("–")
    return percent_cell(over(row, other), marked=True)


# ---------------------------------------------------------------- datasets


def dataset_table(rows: Sequence[Row], mixes: Sequence[str]) -> Table:
    """What the episodes of each dataset are worth.

    Args:
        rows: the rows of all sizes.
        mixes: names of `offline.MIXES`.
    """
    lines = []
    for name, own in by_setting(rows).items():
        strict = best_rule(own, STRICT)
        for mix in mixes:
            shares, best = MIXES[mix].shares, best_rule(own, tuple(MIXES[mix].shares))
            value = mixed_value(own, shares)
            cells = (
                _worth(mean_interval(value)),
                Cell(str(best["scheduler"])),
                Cell(f"{100 * shares[best['scheduler']] / sum(shares.values()):.0f}"),
                *(
                    percent_cell(mean_interval(100 * (value - values_of(other)[0]) / values_of(other).mean()))
                    for other in (best, strict)
                ),
            )
            lines.append((f"{name}: {mix}", cells))
    headers = (
        (WORTH.header, "", "Value"), ("Best rule", "", "Best rule"), ("Episodes of the best rule", "%", "Share"),
        ("Value over its best rule", "%", "Over best"), ("Over the best strict rule", "%", "Over strict"),
    )  # fmt: skip
    return Table("Quality of the datasets", headers, tuple(lines), corner="Size: dataset", notes=(OF_MIXES,))


def mixed_value(rows: Sequence[Row], shares: Mapping[str, float]) -> Floats:
    """Mean value of rules weighted by their shares, shape (draws,)."""
    found = {row["scheduler"]: values_of(row)[0] for row in rows if row["scheduler"] in shares}
    mixed: Floats = np.average([found[rule] for rule in shares], axis=0, weights=list(shares.values()))
    return mixed


def _worth(at: Interval) -> Cell:
    span = f"[{WORTH.number(at.low)}, {WORTH.number(at.high)}]" if at.low < at.high else ""
    return Cell(WORTH.number(at.mean), span)
