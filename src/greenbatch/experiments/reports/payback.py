"""When a larger battery, more panels or any other size has paid for itself: the payback of a sweep."""

# ruff: noqa: RUF001 - typographic signs are meant for the reader.

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from greenbatch.errors import InputError
from greenbatch.experiments.reports.answer import COST, unfinished_baseline
from greenbatch.experiments.reports.columns import Column
from greenbatch.experiments.reports.rivals import means_of
from greenbatch.experiments.reports.tables import Cell, Table
from greenbatch.scenarios.regenerate import question

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
    if not _has_money(scenario):
        raise InputError("requires prices", field="--unit-cost", fix="state [site.grid] price")


@dataclass(frozen=True, slots=True)
class Payback:
    """What a value of the swept key saves beside the first one, under one scheduler."""

    saving: float
    """Less cost in a year like the record, negative if it costs more. [currency/year]"""
    investment: float
    """What it costs more to build than the first value; NaN if that is not known. [currency]"""

    @property
    def years(self) -> float:
        """Until the savings reach the investment; infinite if they never do, NaN where nothing is invested. [years]"""
        if not self.investment > 0:
            return math.nan
        return self.investment / self.saving if self.saving > 0 else math.inf


def paybacks(made: Sweep, unit_cost: float | None = None) -> dict[str, dict[str, Payback]]:
    """Scheduler -> text of each value but the first -> its saving and payback.

    The record stands for the whole year: energy is scaled by time, the demand charge by calendar months. The investment
    is ``unit_cost`` per unit more than the first size. Interest, ageing and maintenance are not counted.

    Args:
        made: the comparisons of all values.
        unit_cost: what one more unit of the key costs; None if that is not known. [currency]
    """
    first, *later = made.comparisons
    yearly = {text: {name: _yearly(made, text, name) for name in made.schedulers} for text in made.comparisons}
    values = made.setting.values
    return {
        name: {
            text: Payback(
                yearly[first][name] - yearly[text][name],
                math.nan if unit_cost is None else unit_cost * (values[text] - values[first]),
            )
            for text in later
        }
        for name in made.schedulers
    }


def payback_tables(made: Sweep, unit_cost: float | None) -> list[Table]:
    """Yearly saving and payback of each size beside the first one, under every scheduler, see `paybacks`.

    None without a unit cost, or if only the first size is finished.
    """
    if unit_cost is None or len(made.comparisons) < 2:
        return []
    first, *later = made.comparisons
    found, currency = paybacks(made, unit_cost), made.first.currency
    rows = [
        (text, tuple(Cell(SAVED.number(found[name][text].saving), remark=_paid(found[name][text])) for name in found))
        for text in later
    ]
    note = (
        f"Against {made.setting.key} = {first}; one unit more costs {unit_cost:g} {currency}. Below each saving: years "
        "until it has paid for the investment, without interest, ageing and maintenance. The record stands for the "
        "whole year, whatever its season."
    )
    columns = tuple((name, f"{currency}/year", name) for name in made.schedulers)
    return [Table("Yearly saving and payback", columns, tuple(rows), made.setting.key, notes=(note,))]


def payback_words(made: Sweep, unit_cost: float | None = None) -> list[str]:
    """One paragraph: the value that saves most in a year and, with a unit cost, the one that has paid soonest.

    It is told under the baseline. Empty without prices, unless all windows are the whole record, and where values are
    not numbers: then a year of savings means nothing.
    """
    first, name = made.first, made.first.baseline
    if len(made.comparisons) < 2 or not made.setting.numeric or not _has_money(first.scenario):
        return []
    if first.starts != (0,) or first.jobs != len(first.scenario.workload):
        return []
    for each in made.comparisons.values():
        if why := unfinished_baseline(each.frame, name):
            return [why]
    found = paybacks(made, unit_cost)[name]
    best = max(found, key=lambda text: found[text].saving)
    key, (now, *_), lead = made.setting.key, made.comparisons, f"Under {name},"
    if not found[best].saving > 0 or not any(c in "123456789" for c in SAVED.number(found[best].saving)):
        never = "; none ever pays for itself" * (unit_cost is not None)
        return [f"{lead} no other value of {key} costs less than {now}{never}."]
    told = [f"{lead} {key} = {best} saves most against {now}: {_terms(found[best], first.currency)}."]
    paying = {text: each.years for text, each in found.items() if math.isfinite(each.years)}
    soonest = min(paying, key=lambda text: paying[text], default=best)
    if soonest != best:
        told.append(f"{soonest} is paid back soonest: {_terms(found[soonest], first.currency)}.")
    return [" ".join((*told, _like_the_record(made)))]


def payback_summary(made: Sweep, unit_cost: float) -> dict[str, Any]:
    """The payback ready for JSON.

    Returns:
        ``unit_cost``, ``currency``, ``against`` (the first value) and ``schedulers`` (name -> text of a value ->
        ``saving_per_year``, ``investment``, ``years``: null if it never pays or nothing is invested).
    """
    return {
        "unit_cost": unit_cost,
        "currency": made.first.currency,
        "against": next(iter(made.comparisons)),
        "schedulers": {
            name: {
                text: {
                    "saving_per_year": each.saving,
                    "investment": each.investment,
                    "years": each.years if math.isfinite(each.years) else None,
                }
                for text, each in by_value.items()
            }
            for name, by_value in paybacks(made, unit_cost).items()
        },
    }


def _paid(each: Payback) -> str:
    if math.isnan(each.years):
        return "–"
    return f"{each.years:,.1f} years" if math.isfinite(each.years) else "never"


def _terms(each: Payback, currency: str) -> str:
    """A saving, and what it takes: ``170 EUR a year for 240 EUR, paid back in 1.4 years``."""
    saving = f"{SAVED.number(each.saving)} {currency} a year"
    if math.isnan(each.years):
        return saving
    return f"{saving} for {SAVED.number(each.investment)} {currency}, paid back in {_paid(each)}"


def _like_the_record(made: Sweep) -> str:
    days = means_of(made.first.frame, "horizon_s")[made.first.baseline] / 86_400
    return f"That is, if the whole year is like the {days:,.{0 if days >= 100 else 1}f} days of the bill."


def _has_money(scenario: Scenario) -> bool:
    return scenario.site is not None and scenario.site.grid is not None and scenario.site.grid.has_money


def _yearly(made: Sweep, text: str, name: str) -> float:
    """What a size costs in a year like the record."""
    frame = made.comparisons[text].frame
    cost, charge, span_s = (means_of(frame, metric)[name] for metric in (COST, "horizon_demand_charge", "horizon_s"))
    return (cost - charge) * YEAR_S / span_s + charge * 12 / _months(made.comparisons[text], span_s)


def _months(comparison: Comparison, span_s: float) -> int:
    """Calendar months of the tariff that the horizon touches."""
    site = comparison.scenario.site
    if site is None or site.grid is None:
        return 1
    workload, _ = question(comparison.scenario, comparison.starts[0], comparison.jobs)
    begin_s = float(workload.submit_s.min()) - site.origin_s
    slots = np.arange(np.floor(begin_s / site.step_s), np.ceil((begin_s + span_s) / site.step_s)).astype(np.int64)
    return len(np.unique(site.month_at(slots)))
