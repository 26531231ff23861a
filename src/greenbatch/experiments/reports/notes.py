"""Everything that is to be known about a comparison, as notes by consequence: data, windows, models and figures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from greenbatch.experiments.reports.cautions import (
    cautions,
    depth_notes,
    mismatch_notes,
    overlap_notes,
    record_notes,
    recorded_wait_notes,
)
from greenbatch.experiments.reports.outages import outage_notes
from greenbatch.experiments.reports.tables import few_notes, is_record
from greenbatch.notes import JOBS, Note, left_out_work, ordered, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from greenbatch.engine.outcome import Outcome
    from greenbatch.experiments.running.compare import Comparison
    from greenbatch.experiments.running.sweep import Sweep
    from greenbatch.workload import Workload

HEADLINE = 0.05
"""Share of the jobs or processor-hours left out from which the headline says so."""


def notes_of(comparison: Comparison) -> tuple[Note, ...]:
    """All notes of a comparison, by consequence; the terminal, the report, JSON and Python show these."""
    return ordered([*_of_figures(comparison), *_of_record(comparison), *comparison.scenario.notes])


def _of_figures(comparison: Comparison) -> list[Note]:
    """Notes on models, windows and figures."""
    starts, scenario = comparison.starts, comparison.scenario
    return [
        *comparison.warnings,
        *overlap_notes(starts, comparison.jobs, len(scenario.workload)),
        *(Note(line, level="fact") for line in few_notes(len(starts))),
        *cautions(comparison.frame, comparison.baseline, scenario.cluster, comparison.currency),
    ]


def _of_record(comparison: Comparison) -> list[Note]:
    """Notes that compare the record with what is simulated."""
    baseline, first = comparison.example.get(comparison.baseline), len(comparison.starts) > 1
    waits = recorded_wait_notes(baseline, first=first) if baseline and not is_record(baseline.scheduler) else []
    return [
        *mismatch_notes(_simulated(comparison)), *waits, *record_notes(comparison.example.values(), first=first),
        *depth_notes(comparison.example.values(), first=first),
        *outage_notes(comparison.scenario.workload),
    ]  # fmt: skip


def _simulated(comparison: Comparison) -> Outcome | None:
    """The outcome that shows whether the machine is like the recorded one: the baseline's, but never the record's."""
    rules = {name: each for name, each in comparison.example.items() if not is_record(each.scheduler)}
    return rules.get(comparison.baseline) or rules.get("fcfs+easy") or next(iter(rules.values()), None)


def notes_of_sweep(sweep: Sweep) -> tuple[Note, ...]:
    """All notes of a sweep, each once, with the values that it holds for if these are not all."""
    by_value = {text: ordered([*_of_figures(each), *each.scenario.notes]) for text, each in sweep.comparisons.items()}
    return ordered([*without_effect(sweep), *_of_record(sweep.first), *with_values(sweep.setting.key, by_value)])


def with_values(key: str, notes: Mapping[str, Sequence[Note]]) -> list[Note]:
    """Each note once, after the values that it holds for if these are not all.

    Args:
        key: the key.
        notes: text of a value -> its notes.
    """
    values: dict[Note, list[str]] = {}
    for text, each in notes.items():
        for note in each:
            values.setdefault(note, []).append(text)
    return [
        note if len(texts) == len(notes) else replace(note, what=f"{key} = {', '.join(texts)}: {note.what}")
        for note, texts in values.items()
    ]


def without_effect(sweep: Sweep) -> list[Note]:
    """A warning if all values give the same figures for every scheduler."""
    from greenbatch.experiments.reports.sweep_lines import FORECAST, forecasts

    first, *others = sweep.comparisons.values()
    if not others or not all(each.frame.equals(first.frame) for each in others):
        return []
    kinds = {str(model.kind) for model in forecasts(sweep).values()}
    because = (
        f" with {FORECAST}.kind = {kinds.pop()}" if sweep.setting.key.startswith(FORECAST) and len(kinds) == 1 else ""
    )
    what = f"{sweep.setting.key} has no effect{because}: all values give the same figures for every scheduler"
    return [Note(what, level="warning")]


def left_out_words(workload: Workload) -> str:
    """For a headline: how many jobs of the file are simulated, if more than `HEADLINE` of the jobs or work is not."""
    gone = _left_out(workload)
    total, work = len(workload) + sum(note.count for note in gone), left_out_work(gone)
    share = 1 - len(workload) / max(total, 1)
    if max(share, work) <= HEADLINE:
        return ""
    hours = f" and {percent(work)} of the processor-hours" if work else ""
    return (
        f"Only {len(workload):,} of the {total:,} jobs of the file are simulated: {percent(share)} of the jobs{hours} "
        "are left out."
    )


def why_left_out(workload: Workload) -> str:
    """How many jobs of the file are left out for what reason; empty if none are."""
    gone = _left_out(workload)
    total = len(workload) + sum(note.count for note in gone)
    why = ", ".join(f"{note.count:,} ({note.what.removesuffix(' dropped')})" for note in gone)
    return f"Left out of the {total:,} jobs of the file: {why}." if gone else ""


def _left_out(workload: Workload) -> list[Note]:
    return [note for note in workload.notes if note.about == JOBS]
