"""The answer of ``greenbatch whatif`` in plain words: what other schedulers cost, emit and let wait."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from greenbatch.experiments.reports.answer import (
    BROWN,
    CARBON,
    COST,
    UNFINISHED,
    WAIT,
    column_of,
    finishing,
    unfinished_baseline,
    unfinished_note,
)
from greenbatch.experiments.reports.cautions import late_starts, unknown_starts
from greenbatch.experiments.reports.notes import left_out_words, why_left_out
from greenbatch.experiments.reports.outages import stamp
from greenbatch.experiments.reports.rivals import alike, best_of, means_of, rivals
from greenbatch.experiments.reports.tables import is_record
from greenbatch.experiments.running.model_warnings import NOT_CAUSAL
from greenbatch.experiments.running.statistics import FEW_WINDOWS, paired_difference
from greenbatch.metrics import METRICS, measure
from greenbatch.metrics.horizon import Horizon
from greenbatch.metrics.months import LATER, MONTH
from greenbatch.schedulers.during_outages import SUFFIX

if TYPE_CHECKING:
    import polars

    from greenbatch.experiments.running.compare import Comparison

_MONTHLY = {COST: "month_cost", CARBON: "month_carbon_kg", BROWN: "month_brown_kwh"}
"""Figure over the horizon -> that of a month."""
_WORDS = {COST: ("cost", ""), CARBON: ("emit", "CO₂"), BROWN: ("draw", "from the grid"), WAIT: ("wait", "")}
"""Figure -> what jobs do, and what follows the amount."""


def plain_words(comparison: Comparison) -> list[str]:
    """What the baseline costs, emits and lets wait, and the best scheduler for the first of these; then the others.

    Returns:
        Paragraphs, the first for the top of a report, the last on the time that the figures cover.

    Months are pairs: each change says in how many of them there is a saving, and, over at least `FEW_WINDOWS`, whether
    it is within noise. Schedulers that are not causal, and those that leave much work undone, are left out.
    """
    baseline, marks = comparison.baseline, comparison.marks
    causal = [name for name in comparison.schedulers if marks.get(name) != NOT_CAUSAL or name == baseline]
    every = comparison.frame.filter(comparison.frame["scheduler"].is_in(causal))
    frame = finishing(rivals(every, baseline), baseline)
    known = [metric for metric in _WORDS if math.isfinite(means_of(frame, metric).get(baseline, math.nan))]
    said = [f"{_verb(comparison, each)} {_amount(comparison, each, means_of(frame, each)[baseline])}" for each in known]
    jobs = f"{comparison.jobs:,} job{'s' * (comparison.jobs != 1)}"
    missing = left_out_words(comparison.scenario.workload)
    lead = f"{missing} Under {baseline}, {jobs} {_listed(said)} on average.".strip()
    if why := unfinished_baseline(every, baseline):
        return [f"{lead} {why}", *kept_words(comparison), *covered_words(comparison)]
    best, *others = _offers(comparison, frame, known)
    further = " ".join(filter(None, (*others, unfinished_note(every, baseline))))
    return [f"{lead} {best}", *([further] if further else []), *kept_words(comparison), *covered_words(comparison)]


def kept_words(comparison: Comparison) -> list[str]:
    """A sentence where the answer is not about all jobs of the file, and one where the record could not be kept."""
    jobs = comparison.scenario.workload
    told = list(filter(None, [why_left_out(jobs)]))
    for outcome in filter(lambda each: is_record(each.scheduler), comparison.example.values()):
        late_s, unknown = late_starts(outcome), unknown_starts(outcome)
        parts = [f"{late_s.size:,} start {_long(late_s.mean())} later than recorded on average"] if late_s.size else []
        parts += [f"{unknown:,} have no recorded start"] if unknown else []
        if parts:
            told.append(f"as-recorded does not keep the record: of {len(jobs):,} jobs, {_listed(parts)}.")
    return [" ".join(told)] if told else []


def covered_words(comparison: Comparison) -> list[str]:
    """A sentence on the time that the bill covers, and what of the baseline's falls after its last job; at most one."""
    name = comparison.baseline
    outcome, length_s = comparison.example.get(name), means_of(comparison.frame, "horizon_s").get(name)
    if outcome is None or length_s is None:
        return []
    run, jobs = measure(outcome), outcome.workload
    begin_s, end_s = run.first_submit_s, run.first_submit_s + length_s
    metric = next((each for each in (COST, BROWN) if name in means_of(comparison.frame, each)), "")
    covers = "The bill covers" if metric == COST else "These figures cover"
    covered = f"{covers} {_long(length_s)}, from the first submission, {stamp(begin_s, jobs)}, to {stamp(end_s, jobs)}"
    if not metric or run.last_end_s >= end_s:
        return [f"{covered}."]
    whole = means_of(comparison.frame, metric)[name]
    until = Horizon(start_s=begin_s, end_s=run.last_end_s, reference_makespan_s=run.last_end_s - begin_s)
    late = whole - METRICS[metric].function(run, until)
    column = column_of(metric, comparison.frame, comparison.currency)
    share = f" ({late / whole:.1%})" if whole > 0 else ""
    what = "bill" if metric == COST else "energy from the grid"
    return [
        f"{covered}. Under {name} the last job ends {_long(end_s - run.last_end_s)} before that: "
        f"{column.number(late)} {column.unit}{share} of its {what} come later, when nothing runs."
    ]


def _offers(comparison: Comparison, frame: polars.DataFrame, known: list[str]) -> Iterator[str]:
    """A sentence for the best scheduler of each figure; one that is best for several is told once."""
    baseline, told = comparison.baseline, set[str]()
    for metric in known:
        means = means_of(frame, metric)
        best = best_of(frame, metric, baseline)
        gain = means[baseline] - means[best]
        if best == baseline or best in told or _alike(comparison, metric, gain):
            continue
        told.add(best)
        they, changes = "it" if comparison.jobs == 1 else "they", [_change(comparison, frame, x, best) for x in known]
        said = f"Under {best}, {they} {_listed(changes)} on average."
        yield " ".join([said, *_during_outages(comparison, known, best)])
    if not told:
        yield "No other scheduler improves any of these figures."


def _during_outages(comparison: Comparison, known: list[str], name: str) -> list[str]:
    """What is left of a scheduler's offer with the outages of the record, if it was simulated with them."""
    during, frame = name + SUFFIX, comparison.frame
    if during not in comparison.schedulers:
        return []
    left = means_of(frame, "horizon_unfinished_share").get(during, 0.0)
    lead, work = "With the outages that the record shows,", f"{left:.1%} of the work unfinished when the horizon ends"
    if left > UNFINISHED:
        return [f"{lead} it leaves {work}, so that its figures are too low to compare with."]
    they, changes = "it" if comparison.jobs == 1 else "they", [_change(comparison, frame, x, during) for x in known]
    return [f"{lead} {they} {_listed(changes)}{f', with {work}' if left else ''}."]


def _change(comparison: Comparison, frame: polars.DataFrame, metric: str, name: str) -> str:
    """Such as "cost 12 EUR less (3.4%; less in 10 of 12 months)"."""
    means, verb = means_of(frame, metric), _verb(comparison, metric)
    base, change = means[comparison.baseline], means[name] - means[comparison.baseline]
    if _alike(comparison, metric, change):
        return " ".join(filter(None, (verb, "the same", _WORDS[metric][1])))
    told = [f"{abs(change / base):.1%}"] if base > 0 and metric != WAIT else []
    told += _trust(comparison, metric, name)
    share = f" ({'; '.join(told)})" if told else ""
    way = "less" if change <= 0 else "longer" if metric == WAIT else "more"
    return f"{verb} {_amount(comparison, metric, abs(change), way)}{share}"


def _alike(comparison: Comparison, metric: str, change: float) -> bool:
    """Whether a change is shown as 0, or is that of rounding."""
    column = column_of(metric, comparison.frame, comparison.currency)
    level = means_of(comparison.frame, metric)[comparison.baseline]
    return alike(level + change, level) or not any(c in "123456789" for c in column.number(abs(change)))


def _verb(comparison: Comparison, metric: str) -> str:
    return _WORDS[metric][0] + "s" * (comparison.jobs == 1)


def _trust(comparison: Comparison, metric: str, name: str) -> list[str]:
    """In how many months, and whether the monthly differences are within noise."""
    import polars

    if metric not in _MONTHLY:
        return []

    rows = comparison.breakdown.filter(by=MONTH, metric=_MONTHLY[metric]).filter(polars.col("part") != LATER)
    wide = rows.pivot(on="scheduler", index="part", values="value").fill_nan(None).drop_nulls()
    if len(wide) < 2:
        return []
    got = paired_difference(wide[name].to_list(), wide[comparison.baseline].to_list())
    unit = "years" if len(wide["part"][0]) == len("2025") else "months"
    noise = ", within noise" if len(wide) >= FEW_WINDOWS and not got.clear else ""
    return [f"less in {got.better} of {len(wide)} {unit}{noise}"]


def _amount(comparison: Comparison, metric: str, value: float, way: str = "") -> str:
    column = column_of(metric, comparison.frame, comparison.currency)
    return " ".join(filter(None, (column.number(value), column.unit, way, _WORDS[metric][1])))


def _long(time_s: float) -> str:
    """A length of time in hours or, from two days on, in days."""
    return f"{time_s / 86_400:,.1f} days" if time_s >= 2 * 86_400 else f"{time_s / 3600:,.1f} h"


def _listed(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
