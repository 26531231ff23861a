"""When a larger battery, more panels or any other size has paid for itself: the payback of a sweep."""

# ruff: noqa: RUF001 - typographic signs are meant for the reader.

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from greenbatch.errors import InputError
from greenbatch.experiments.reports.answer import COST
from greenbatch.experiments.reports.columns import Column
from greenbatch.experiments.reports.rivals import means_of
from greenbatch.experiments.reports.tables import Cell, Table

if TYPE_CHECKING:
    from greenbatch.experiments.running.compare import Comparison
    from greenbatch.experiments.running.sweep import Setting, Sweep
    from greenbatch.scenarios import Scenario

YEAR_S = 365.25 * 86_400.0
SAVED = Column(COST, "Saving", digits=4, style="significant")


def check_payback(chosen: Setting, scenario: Scenario) -> None:
    """Refuse a payback without sizes or without prices.

    Raises:
        InputError: fewer than two values, one that is no number, or a site that states no prices.
    """
    if not chosen.numeric or len(chosen.values) < 2:
        problem, fix = f"requires at least two sizes of {chosen.key}", "give numbers, the present size first"
        raise InputError(problem, field="--unit-cost", fix=fix)
    if scenario.site is None or scenario.site.grid is None or not scenario.site.grid.has_money:
        raise InputError("requires prices", field="--unit-cost", fix="state [site.grid] price")


def payback_table(made: Sweep, unit_cost: float) -> Table:
    """Yearly saving and payback of each size beside the first one, under every scheduler.

    The record stands for the whole year: energy is scaled by time, the demand charge by calendar months. The investment
    is ``unit_cost`` per unit more than the first size. Interest, ageing and maintenance are not counted.
    """
    first, *later = made.comparisons
    currency = made.first.currency
    rows = []
    for text in later:
        more = made.setting.values[text] - made.setting.values[first]
        cells = []
        for name in made.schedulers:
            saved = _yearly(made, first, name) - _yearly(made, text, name)
            years = unit_cost * more / saved if saved != 0 else float("inf")
            paid = f"{years:,.1f} years" if more > 0 < saved else "never" if more > 0 else "–"
            cells.append(Cell(SAVED.number(saved), remark=paid))
        rows.append((f"{text}", tuple(cells)))
    note = (
        f"Against {made.setting.key} = {first}; one unit more costs {unit_cost:g} {currency}. Below each saving: years "
        "until it has paid for the investment, without interest, ageing and maintenance. The record stands for the "
        "whole year, whatever its season."
    )
    columns = tuple((name, f"{currency}/year", name) for name in made.schedulers)
    return Table("Yearly saving and payback", columns, tuple(rows), made.setting.key, notes=(note,))


def _yearly(made: Sweep, text: str, name: str) -> float:
    """What a size costs in a year like the record."""
    frame = made.comparisons[text].frame
    cost, charge, span_s = (means_of(frame, metric)[name] for metric in (COST, "horizon_demand_charge", "horizon_s"))
    return (cost - charge) * YEAR_S / span_s + charge * 12 / _months(made.comparisons[text], span_s)


def _months(comparison: Comparison, span_s: float) -> int:
    """Calendar months of the tariff that the horizon touches."""
    outcome = comparison.example[comparison.baseline]
    site = outcome.site
    if site is None or site.grid is None:
        return 1
    begin_s = float(outcome.workload.submit_s.min()) - site.origin_s
    slots = np.arange(np.floor(begin_s / site.step_s), np.ceil((begin_s + span_s) / site.step_s)).astype(np.int64)
    return len(np.unique(site.month_at(slots)))
