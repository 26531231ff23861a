"""Outages that the recorded starts show, as a table and as a line."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from greenbatch.experiments.reports.sections import Section
from greenbatch.experiments.reports.tables import Cell, Table, difference_table, is_record
from greenbatch.experiments.running.frames import schedulers
from greenbatch.notes import Note
from greenbatch.schedulers.during_outages import SUFFIX
from greenbatch.workload import Outage, Workload, outages

if TYPE_CHECKING:
    import polars

_APPLIED = f"A scheduler called “NAME{SUFFIX}” starts no job that would run into one as requested."
_NOT_APPLIED = "Schedulers are simulated without outages; the flag --outages also simulates each with them."
MOST = 20
"""Outages that are listed, the largest by processors x time."""


def outage_sections(workload: Workload, frame: polars.DataFrame, baseline: str, currency: str = "") -> list[Section]:
    """A section with the outages that a record shows, and what they change; none if it shows none.

    Args:
        workload: all jobs.
        frame: tidy frame of the comparison.
        baseline: scheduler that the others are compared with.
        currency: name of the currency of the site's prices.
    """
    found, during = outages(workload), outage_table(frame, baseline, currency)
    if not found:
        return []
    shown = sorted(found, key=lambda each: each.processors * (each.begin_s - each.end_s))[:MOST]
    rows = tuple((stamp(each.begin_s, workload), _cells(each, workload)) for each in sorted(shown, key=_begin_s))
    columns = (
        ("End", "", "End"), ("Length", "h", "Length"), ("Where", "", "Where"), ("Processors", "", "Processors"),
        ("Jobs waiting", "", "Jobs waiting"),
    )  # fmt: skip
    notes = [
        "Nothing runs, or nothing starts in a partition for hours, although jobs wait and the one that has waited "
        "longest would fit. Limits of users and accounts can look the same. "
        + (_APPLIED if any(name.endswith(SUFFIX) for name in schedulers(frame)) else _NOT_APPLIED)
    ]
    if len(found) > MOST:
        notes.append(f"The {MOST} largest of {len(found)}.")
    table = Table("Outages that the record shows", columns, rows, "Begin", notes=tuple(notes))
    return [Section("Outages in the record", "Times in which the machine, or a partition, was not used.", (),
                    (table, *([during] if during else [])), folded=True)]  # fmt: skip


def outage_table(frame: polars.DataFrame, baseline: str, currency: str = "") -> Table | None:
    """Differences to the baseline if all schedulers keep the outages free; None if they were simulated without.

    The record has the outages already, so it is a baseline as it is.
    """
    names = [name for name in schedulers(frame) if name.endswith(SUFFIX)]
    base = baseline if is_record(baseline) else baseline + SUFFIX
    compared = [base, *(name for name in names if name != base)]
    if base not in schedulers(frame) or len(compared) < 2:
        return None
    part = frame.filter(frame["scheduler"].is_in(compared))
    note = f"Without outages: the rows without “{SUFFIX.strip()}” in the table of differences."
    table = difference_table(part, base, notes=[note], currency=currency)
    return replace(table, title=f"Differences to {baseline}, all with the outages")


def outage_notes(workload: Workload) -> list[Note]:
    """A note if a record shows outages of the whole machine."""
    whole = [each for each in outages(workload) if each.processors == each.of and not each.partition]
    if not whole:
        return []
    hours = sum(each.end_s - each.begin_s for each in whole) / 3600
    many = f"{len(whole)} times, {hours:,.1f} h in all," if len(whole) > 1 else f"once, for {hours:,.1f} h,"
    what = f"the record shows that nothing ran {many} although jobs waited: the report lists such outages"
    return [Note(what, level="change")]


def _begin_s(outage: Outage) -> float:
    return outage.begin_s


def _cells(outage: Outage, workload: Workload) -> tuple[Cell, ...]:
    texts = (
        stamp(outage.end_s, workload), f"{(outage.end_s - outage.begin_s) / 3600:,.1f}",
        f"partition {outage.partition}" if outage.partition else "whole machine",
        f"{outage.processors:,} of {outage.of:,}", f"{outage.waiting:,}",
    )  # fmt: skip
    return tuple(map(Cell, texts))


def stamp(time_s: float, workload: Workload) -> str:
    """A time of the trace [s] on the site's calendar; in days on the trace's clock if that is unknown."""
    if workload.unix_start_s is None:
        return f"day {time_s / 86_400:,.2f}"
    zone = ZoneInfo(workload.time_zone) if workload.time_zone else UTC
    return datetime.fromtimestamp(workload.unix_start_s + time_s, zone).strftime("%Y-%m-%d %H:%M")
