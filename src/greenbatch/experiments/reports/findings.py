"""What a comparison found, in sentences computed from its figures: who is best at what, by how much, at what price."""

# ruff: noqa: RUF001 - typographic signs are meant for the reader.

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from greenbatch.experiments.reports.answer import finishing
from greenbatch.experiments.reports.columns import MAIN, VALUED, WITHOUT_SUPPLY, Column, fitted, main_columns
from greenbatch.experiments.reports.rivals import (
    ROUNDING,
    alike,
    best_of,
    doubt,
    leaders,
    means_of,
    rivals,
    tells_apart,
)
from greenbatch.experiments.reports.tables import idle_words
from greenbatch.experiments.running.frames import schedulers
from greenbatch.experiments.running.statistics import Difference, differences, intervals
from greenbatch.metrics import METRICS

if TYPE_CHECKING:
    import polars

    from greenbatch.engine.outcome import Outcome

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
COLUMNS = {column.metric: column for column in (*VALUED, *MAIN, *WITHOUT_SUPPLY)}
"""Metric -> how it is shown."""
BROWN = "horizon_brown_kwh"
VALUE = "total_job_value"
WON = (VALUE, "avg_bounded_slowdown", "avg_wait_s", "renewable_utilization", BROWN, "horizon_cost", "horizon_carbon_kg",
       "energy_kwh", "edp_js", "makespan_ratio")  # fmt: skip
"""Figures that a scheduler may win and pay for, those of them that the main table has."""
_SPENT = {
    "horizon_cost": "cost", "horizon_carbon_kg": "carbon", "energy_kwh": "energy", "edp_js": "energy-delay product",
}  # fmt: skip
"""Figures of what is paid for, and of energy without a supply -> their names in a sentence."""
PRICES = {"avg_wait_s": "mean wait", "avg_bounded_slowdown": "bounded slowdown", "makespan_ratio": "makespan"}
"""What a winner may cost -> its name in a sentence."""
NOTABLE = 1.05
"""Ratio to the baseline above which a price is named."""
LARGE = 1.5
"""Ratio to the baseline above which a price is large."""


def summary_lines(
    frame: polars.DataFrame, outcomes: Mapping[str, Outcome], baseline: str, currency: str = ""
) -> list[str]:  # fmt: skip
    """Summary in sentences computed from the numbers: the findings first, then the setting."""
    names, windows = schedulers(frame), frame["window"].n_unique()
    example = next(iter(outcomes.values()))
    powered = bool(means_of(frame, "renewable_utilization"))
    power = f" and the renewable supply of {example.site.name}" if powered and example.site else ""
    count = _number(len(names), "scheduler")
    jobs = f"{len(example.workload):,} jobs"
    setting = (
        f"{count[0].upper()}{count[1:]} ran the same {jobs if windows < 2 else _windows(windows, jobs)} "
        f"on {example.cluster.processors:,} processors{power}."
    )
    dates = [f"{'The' if windows < 2 else 'The first'} window's jobs were submitted {_dates(example)}."]
    known = example.workload.unix_start_s is not None and len(example.workload) > 0
    frame = finishing(rivals(frame, baseline), baseline)
    return [
        *value_lines(frame, baseline), *_service_lines(frame, baseline),
        *_power_lines(frame, baseline, idle_words(example.cluster)), *_spent_lines(frame, baseline, currency),
        *supply_lines(frame, baseline),
        setting, *(dates if known else ()),
    ]  # fmt: skip


def headlines(
    frame: polars.DataFrame, baseline: str, currency: str = "", *, idle: str = "idle power included"
) -> list[str]:  # fmt: skip
    """The sentences of the summary to end a table with: highest value; lowest slowdown; least brown energy, with its
    reservation; least cost and carbon; without a supply least energy; how large the supply is.
    """
    frame = finishing(rivals(frame, baseline), baseline)
    service, power = _service_lines(frame, baseline)[:1], _brown_lines(frame, baseline, idle)
    spent = _spent_lines(frame, baseline, currency)
    return [*value_lines(frame, baseline), *service, *power, *spent, *supply_lines(frame, baseline)]


def supply_lines(frame: polars.DataFrame, baseline: str) -> list[str]:
    """How much sun and wind there is beside what is used, without which no saving can be compared with another."""
    used, covered = (
        means_of(frame, f"horizon_{share}").get(baseline, 0.0) for share in ("self_consumption", "autarky")
    )
    if not (used > 0 and covered > 0):
        return []
    return [
        f"Over the horizon, the site's own sources make {covered / used:.2f} times the energy used; under {baseline}, "
        f"{1 - covered:.0%} of it comes from the grid, and savings are of that part."
    ]


def poor_bargains(frame: polars.DataFrame, baseline: str, currency: str = "") -> list[str]:
    """One line for every winner with a gain that is small or within noise and a large price in wait or slowdown."""
    lines, frame = [], finishing(rivals(frame, baseline), baseline)
    for column in _won(frame, currency):
        metric = column.metric
        if metric == "makespan_ratio" or len(leaders(frame, metric, baseline)) != 1:
            continue
        best = best_of(frame, column.metric, baseline)
        got = differences(frame, metric, baseline).get(best)
        costs = {cost: ratio for cost, ratio in _costs(frame, best, baseline).items() if cost != "makespan_ratio"}
        if got is None or not doubt(got) or max(costs.values(), default=0.0) < LARGE:
            continue
        title = f"{'lowest' if METRICS[metric].better == 'lower' else 'highest'} {column.header.lower()}"
        price = _price(frame, best, baseline)
        lines.append(f"{best} has the {title}, but the gain over {baseline} is {doubt(got)} and comes{price}.")
    return lines


def _column(frame: polars.DataFrame, metric: str) -> Column:
    return fitted(COLUMNS[metric], frame)


def _won(frame: polars.DataFrame, currency: str = "") -> list[Column]:
    """The columns of `WON` that the main table has."""
    columns = {column.metric: column for column in main_columns(frame, currency)}
    return [columns[metric] for metric in WON if metric in columns]


def _shown(column: Column, value: float) -> str:
    unit = {"": "", "%": "%", "×": "×"}.get(column.unit, f" {column.unit}")
    return column.number(value) + unit


def _comment(column: Column, got: Difference, baseline: str) -> str:
    """How the best scheduler compares to the baseline, in words."""
    d = got.difference
    if not d.count:
        return ""
    if column.unit == "%":
        size = f"{column.number(abs(d.mean))} points {'above' if d.mean > 0 else 'below'} {baseline}"
    elif math.isfinite(got.relative):
        percent = f"{abs(got.relative):.{0 if abs(got.relative) >= 0.01 else 1}%}"
        size = f"{percent} {'above' if d.mean > 0 else 'below'} {baseline}"
    else:
        size = f"{column.number(d.mean, signed=True)} to {baseline}"
    wins = f", better in {got.better} of {d.count} windows" if d.count > 1 else ""
    unsure = doubt(got)
    return f"{size}{wins}" + (f" ({unsure})" if unsure else "")


def _to_baseline(frame: polars.DataFrame, column: Column, name: str, baseline: str) -> str:
    return _comment(column, differences(frame, column.metric, baseline)[name], baseline)


def _costs(frame: polars.DataFrame, name: str, baseline: str) -> dict[str, float]:
    """Metric of `PRICES` -> ratio to the baseline's mean, where that is defined."""
    found = {}
    for metric in PRICES:
        means = means_of(frame, metric)
        if name in means and means.get(baseline, 0.0) > 0:
            found[metric] = means[name] / means[baseline]
    return found


def _price(frame: polars.DataFrame, name: str, baseline: str, but: str = "") -> str:
    """What a winner costs compared to the baseline, as the end of a sentence; empty if nothing is known.

    Args:
        frame: tidy results.
        name: the winner.
        baseline: what it is compared with.
        but: a metric stated elsewhere, left out here.
    """
    costs = {metric: ratio for metric, ratio in _costs(frame, name, baseline).items() if metric != but}
    if not costs or name == baseline:
        return ""
    named = [f"{_times(ratio)} the {PRICES[metric]}" for metric, ratio in costs.items() if ratio > NOTABLE]
    if named:
        return f" at {listed(named)}"
    higher = [PRICES[metric] for metric, ratio in costs.items() if ratio > 1.0 + ROUNDING]
    return f" at {'a barely' if higher else 'no'} higher {listed(higher or [PRICES[metric] for metric in costs], 'or')}"


def _times(ratio: float) -> str:
    return f"{ratio:,.{2 if ratio < 2 else 1}f} times"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Words as a list in a sentence: ``a, b and c``."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def value_lines(frame: polars.DataFrame, baseline: str) -> list[str]:
    """The scheduler whose finished jobs are worth most, if jobs have values."""
    column, values = _column(frame, VALUE), means_of(frame, VALUE)
    if not values:
        return []
    best = best_of(frame, VALUE, baseline)
    worth = column.number(values[best])
    if tie := _tie(frame, column, "highest value of finished jobs", baseline):
        return [tie]
    if best == baseline:
        return [f"Under no scheduler are the finished jobs worth more than under {baseline}, {worth}."]
    return [f"{best} has the highest value of finished jobs, {worth}, {_to_baseline(frame, column, best, baseline)}."]


def _service_lines(frame: polars.DataFrame, baseline: str) -> list[str]:
    """The schedulers with the lowest slowdown, with its mean wait, and with the shortest mean wait."""
    slow, wait = _column(frame, "avg_bounded_slowdown"), _column(frame, "avg_wait_s")
    slowdowns, waits = means_of(frame, slow.metric), means_of(frame, wait.metric)
    if not slowdowns:
        return []
    best, lines = best_of(frame, slow.metric, baseline), []
    if tie := _tie(frame, slow, "lowest mean bounded slowdown", baseline):
        return [tie]
    if best == baseline:
        lead = f"No scheduler has a lower mean bounded slowdown than {baseline}, {slow.number(slowdowns[best])}"
    else:
        stretch = _costs(frame, best, baseline).get("makespan_ratio", 1.0)
        lead = (
            f"{best} has the lowest mean bounded slowdown, {slow.number(slowdowns[best])}, "
            f"{_to_baseline(frame, slow, best, baseline)}"
            f"{f', at {_times(stretch)} the makespan' if stretch > NOTABLE else ''}"
        )
    if best in waits:
        patient = best_of(frame, wait.metric, baseline)
        whose = f"jobs under {baseline}" if best == baseline else "its jobs"
        lead += f"{', while' if waits[best] > NOTABLE * waits.get(baseline, math.inf) else ';'} {whose} wait "
        lead += f"{_shown(wait, waits[best])} on average"
        if best != baseline:
            lead += _beside(waits[best], waits.get(baseline, math.nan), baseline)
        if wait.number(waits[patient]) == wait.number(waits[best]):
            lead += (
                ", the shortest mean wait" if alike(waits[patient], waits[best]) else ", about the shortest mean wait"
            )
        else:
            told = "" if patient == baseline else f", {_to_baseline(frame, wait, patient, baseline)},"
            price = _price(frame, patient, baseline, but="avg_wait_s")
            lines.append(f"{patient} has the shortest mean wait, {_shown(wait, waits[patient])}{told}{price}.")
    return [f"{lead}.", *lines]


def _beside(value: float, other: float, baseline: str) -> str:
    """A figure relative to the baseline's, in words; empty if undefined."""
    if not other > 0:
        return ""
    ratio = value / other
    if abs(ratio - 1) < NOTABLE - 1:
        return f", about as long as {baseline}'s"
    return f", {f'{ratio:,.1f} times' if ratio > 1 else f'{1 - ratio:.0%} less than'} {baseline}'s"


def _tie(frame: polars.DataFrame, column: Column, what: str, baseline: str) -> str:
    """The sentence where several have the best figure; empty if one has. Ties have no winner."""
    first = leaders(frame, column.metric, baseline)
    means = means_of(frame, column.metric)
    if not first:
        return f"All schedulers have the same {what.partition(' ')[2]}, {_shown(column, next(iter(means.values())))}."
    if len(first) < 2:
        return ""
    gain = _to_baseline(frame, column, first[0], baseline)
    return f"{listed(first)} tie for the {what}, {_shown(column, means[first[0]])}{f', {gain}' if gain else ''}."


def _power_lines(frame: polars.DataFrame, baseline: str, idle: str) -> list[str]:
    """The largest renewable share and the least brown energy, each with what it costs; none without power."""
    share = _column(frame, "renewable_utilization")
    green, brown = means_of(frame, share.metric), _brown_lines(frame, baseline, idle)
    if not tells_apart(frame, share.metric):
        return brown
    if tie := _tie(frame, share, "largest renewable share", baseline):
        return [tie, *brown]
    greenest = best_of(frame, share.metric, baseline)
    gain = f", {_to_baseline(frame, share, greenest, baseline)}," if greenest != baseline else ""
    price = _price(frame, greenest, baseline)
    line = f"{greenest} uses the largest renewable share, {_shown(share, green[greenest])}{gain}{price}."
    return [line.replace(",.", "."), *brown]


def _brown_lines(frame: polars.DataFrame, baseline: str, idle: str) -> list[str]:
    """The least brown energy with what it costs, and its reservation; none without power."""
    energy = _column(frame, BROWN)
    brown, lines = means_of(frame, BROWN), []
    if not brown or not means_of(frame, "renewable_utilization"):
        return []
    least = best_of(frame, energy.metric, baseline)
    span = f"Over the same span of time, {idle}, "
    if tie := _tie(frame, energy, "lowest brown energy", baseline):
        lines.append(f"{span}{tie[0].lower() if tie.startswith('All ') else tie[0]}{tie[1:]}")
    elif least == baseline:
        lines.append(f"{span}no scheduler draws less brown energy than {baseline}, {_shown(energy, brown[least])}.")
    else:
        lines.append(
            f"{span}{least} draws the least brown energy: "
            f"{_shown(energy, brown[least])}, {_to_baseline(frame, energy, least, baseline)},"
            f"{_price(frame, least, baseline)}."
        )
    lines += filter(None, [_understated(frame, least).strip()])
    return [line.replace(",.", ".") for line in lines]


def _understated(frame: polars.DataFrame, name: str) -> str:
    """A sentence to add to a figure over the horizon of a scheduler that leaves some work; empty if it leaves none."""
    left = intervals(frame, "horizon_unfinished_share")[name].mean > 0
    return " That is understated: some of its work is unfinished when the span ends." if left else ""


def _spent_lines(frame: polars.DataFrame, baseline: str, currency: str = "") -> list[str]:
    """The lowest cost and carbon, or without a supply the least energy, each with what it costs otherwise."""
    lines = []
    for column in _won(frame, currency):
        if column.metric not in _SPENT or not (means := means_of(frame, column.metric)):
            continue
        best, what = best_of(frame, column.metric, baseline), _SPENT[column.metric]
        value = _shown(column, means[best])
        if tie := _tie(frame, column, f"lowest {what}", baseline):
            lines.append(tie)
        elif best == baseline:
            lines.append(f"No scheduler has a lower {what} than {baseline}, {value}.")
        else:
            gain, price = _to_baseline(frame, column, best, baseline), _price(frame, best, baseline)
            lines.append(f"{best} has the lowest {what}, {value}, {gain},{price}.{_understated(frame, best)}")
    return lines


def _dates(outcome: Outcome) -> str:
    """First and last submission as calendar dates of the site, UTC if its time zone is unknown."""
    jobs = outcome.workload
    zone = ZoneInfo(jobs.time_zone) if jobs.time_zone else UTC
    ends = (float(jobs.submit_s.min()), float(jobs.submit_s.max()))
    first, last = (datetime.fromtimestamp((jobs.unix_start_s or 0.0) + end, zone).date().isoformat() for end in ends)
    return f"on {first}" if first == last else f"from {first} to {last}"


def _windows(count: int, jobs: str) -> str:
    return f"{_number(count, 'window')} of {jobs} each"


def _number(count: int, noun: str) -> str:
    figure = _WORDS[count] if count < len(_WORDS) else f"{count:,}"
    return f"{figure} {noun}" + ("" if count == 1 else "s")
