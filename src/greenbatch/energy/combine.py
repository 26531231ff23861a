"""Combine sources with different steps, starts and calendars into one `Site` on a workload's clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from greenbatch.display import span_text
from greenbatch.energy.dates import dated, laid_out, whole_years_s
from greenbatch.energy.resample import SAME_S, mean_steps
from greenbatch.energy.samples import MOST_STEPS, check_choice
from greenbatch.energy.series import Series
from greenbatch.energy.site import Site
from greenbatch.energy.stamps import YEARS_S, show_date
from greenbatch.errors import InputError
from greenbatch.notes import Note

Floats = NDArray[np.float64]
Align = Literal["trace-start", "calendar"]
"""Where trace time 0 falls: at the first instant that all series cover, or at the workload's own date and hour."""

_DAY_S = 86_400.0
LEAST_SHARED = 0.1
"""Share of the shortest series that all must cover together if they repeat from the start of the trace."""
MOST_CUT = 0.01
"""Share of a series that may be cut off without a warning if what is left repeats."""
MIXED = 0.01
"""Part of a step by which a price may begin beside the steps of the site without a warning."""


def combine(
    name: str,
    sources: Mapping[str, Series],
    *,
    align: Align = "trace-start",
    unix_start_s: float | None = None,
    step_s: float | None = None,
    repeat: bool = False,
    forecast_horizon_s: float = 86_400.0,
    signals: Mapping[str, Series] | None = None,
    until_s: float | None = None,
) -> Site:
    """Put power series on common steps and on the clock of a workload.

    The energy of each source is preserved: coarser steps are split into equal parts, finer ones are averaged. Only the
    time span that all series cover is used; a note states what is cut off.

    Series that repeat on the calendar each keep their own dates. A date that one does not cover has the values of the
    same date of another year (29 February those of the 28th); if there is none, whole weeks are used again. A warning
    states the share of the jobs' hours. Series that repeat from the start of the trace start again together: they must
    cover at least a day together, unless one is shorter, and at least 10% of the shortest.

    Args:
        name: name of the site.
        sources: name ("solar", "wind", ...) -> power in W.
        align: ``"trace-start"`` maps trace time 0 to the first instant that all series cover, whatever the calendar;
            ``"calendar"`` uses the workload's Unix time or, for typical-year data, its month, day and hour in the
            data's standard time (29 February repeats 28 February; the year is repeated over four calendar years).
        unix_start_s: Unix time of trace time 0 (``Workload.unix_start_s``); required by ``"calendar"``. [s]
        step_s: step of the site; by default the shortest of the series. [s]
        repeat: see `Site`.
        forecast_horizon_s: see `Site`. [s]
        signals: additional series in the site's steps that are not sources of power.
        until_s: trace time of the last end of a job, if known; only for messages. [s]

    Raises:
        InputError: a source is not power, the calendars do not match, the series do not overlap enough, or the trace
            starts outside the time span that they cover.
    """
    check_choice(align, get_args(Align), field="site.align")
    for source, series in sources.items():
        series.needs("power_w", user=f"site source {source!r}")
    if not sources:
        raise InputError("requires at least one source", field="site.sources")
    every = {**sources, **(signals or {})}
    if len(every) != len(sources) + len(signals or {}):
        raise InputError("a signal has the name of a source", field="site.signals", fix="rename it")
    placed = _placed(every, align, unix_start_s, repeat=repeat, until_s=until_s)
    every, starts_s = placed.every, placed.starts_s
    first_s = max(starts_s.values())
    last_s = min(starts_s[key] + series.values.size * series.step_s for key, series in every.items())
    step = min(series.step_s for series in every.values()) if step_s is None else step_s
    if not 0 < step < np.inf:
        raise InputError(f"is {step}", field="site.step_s", fix="it must be > 0")
    if placed.beyond is None:
        _check_overlap(every, starts_s, last_s - first_s, step, repeat=repeat, trace_s=unix_start_s)
    if (last_s - first_s) / step > MOST_STEPS:
        raise InputError(f"gives more than {MOST_STEPS} slots", field="site.step_s", fix="give a longer step")
    if not repeat and unix_start_s is not None:
        _check_covered(every, starts_s, (first_s, last_s), unix_start_s, until_s)
    notes = [*(placed.beyond or []), *(note for series in every.values() for note in series.notes)]
    parts = {}
    ends_s = {key: starts_s[key] + series.length_s for key, series in every.items()}
    edges = {
        "start": _edge(every, max(starts_s, key=lambda key: starts_s[key]), "start"),
        "end": _edge(every, min(ends_s, key=lambda key: ends_s[key]), "end"),
    }
    for key, series in every.items():
        parts[key], note = _cut(series, starts_s[key], first_s, last_s, step)
        if placed.beyond is None:
            notes += _cut_off(key, series, starts_s[key], first_s, last_s, edges, repeat=repeat)
        if note:
            notes.append(Note(f"{key}: {note}", about=key, level="fact"))
        if signals and key in signals:
            notes += _mixed(key, series, first_s - starts_s[key], step)
    slots = min(part.size for part in parts.values())
    return Site(
        name=name,
        step_s=step,
        origin_s=first_s,
        unix_start_s=unix_start_s if align == "calendar" else _dated_zero_s(every, unix_start_s),
        repeat=repeat,
        stated=_stated(placed.common_s, (unix_start_s or 0.0) + first_s, step, slots),
        forecast_horizon_s=forecast_horizon_s,
        sources_w={key: parts[key][:slots] for key in sources},
        signals={key: parts[key][:slots] for key in signals or {}},
        notes=tuple(dict.fromkeys(notes)),
        inputs=_inputs(every),
    )


class _Placed(NamedTuple):
    """Series on the trace's clock."""

    every: dict[str, Series]
    starts_s: dict[str, float]
    """Trace time at which each begins. [s]"""
    common_s: tuple[float, float] | None = None
    """Unix time that all cover by themselves, on a calendar. [s]"""
    beyond: list[Note] | None = None
    """Notes on jobs at other dates; None if the series are not laid out over years."""


def _placed(
    every: Mapping[str, Series], align: Align, unix_start_s: float | None, *, repeat: bool, until_s: float | None
) -> _Placed:
    """The series on the trace's clock; on a calendar, if they repeat, over the years of the jobs."""
    if align == "trace-start":
        return _Placed(dict(every), _on_trace_clock(every))
    if unix_start_s is None:
        fix = 'set workload.time_zone of a dump, such as "UTC", or workload.unix_start_s, or use align = "trace-start"'
        raise InputError("the workload has no date, or its time zone is not known", field="site.align", fix=fix)
    if not YEARS_S[0] <= unix_start_s <= YEARS_S[1]:
        problem = f"the trace starts at {unix_start_s:.10g} s of Unix time"
        raise InputError(problem, field="site.align", fix="correct workload.unix_start_s or the trace's UnixStartTime")
    parts = {key: dated(series, unix_start_s) for key, series in every.items()}
    common_s = max(series.start_s for series in parts.values()), min(series.end_s for series in parts.values())
    beyond = None
    if repeat and any(series.clock == "unix" for series in every.values()):
        beyond = []
        jobs_s = (unix_start_s, unix_start_s + (until_s or 0.0))
        years_s = whole_years_s(parts, *jobs_s)
        for key, series in parts.items():
            parts[key], notes = laid_out(key, series, *years_s, jobs_s)
            beyond += notes
    return _Placed(parts, {key: series.start_s - unix_start_s for key, series in parts.items()}, common_s, beyond)


def _check_covered(
    every: Mapping[str, Series], starts_s: Mapping[str, float], covered_s: tuple[float, float], unix_start_s: float,
    until_s: float | None,
) -> None:  # fmt: skip
    """Refuse series that do not repeat and do not cover the start of the trace."""
    if covered_s[0] - SAME_S <= 0 < covered_s[1]:
        return
    named = {_edge_name(every, starts_s, last=last): None for last in (False, True)}
    covered = " to ".join(show_date(unix_start_s + edge_s) for edge_s in covered_s)
    ends = f"to {show_date(unix_start_s + until_s)}" if until_s is not None else "on"
    problem = f"{', '.join(named)} {'cover' if len(named) > 1 else 'covers'} {covered}, but the jobs run from "
    fix = "give series of that time, or set repeat = true: each series then repeats by its own dates"
    raise InputError(f"{problem}{show_date(unix_start_s)} {ends}", field="site.align", fix=fix)


def _edge(every: Mapping[str, Series], name: str, side: str) -> str:
    """Which series begins last or ends first, with the date if it has one."""
    series = every[name]
    at_s = series.end_s if side == "end" else series.start_s
    date = f" {show_date(at_s)}" if series.clock == "unix" else ""
    return f"{name} {side}s{date}"


def _edge_name(every: Mapping[str, Series], starts_s: Mapping[str, float], *, last: bool) -> str:
    """The series that begins last or ends first, with its file."""
    key = min(starts_s, key=lambda key: starts_s[key] + every[key].length_s if last else -starts_s[key])
    return f"{key} ({', '.join(every[key].inputs)})" if every[key].inputs else key


def _check_overlap(
    every: Mapping[str, Series], starts_s: Mapping[str, float], shared_s: float, step_s: float, *, repeat: bool,
    trace_s: float | None,
) -> None:  # fmt: skip
    """Refuse series that share no step, or, if they repeat, so little that it stands for nothing.

    What repeats must be at least a day, unless a series is shorter, and at least `LEAST_SHARED` of the shortest series.
    """
    shortest_s = min(series.length_s for series in every.values())
    too_little = shared_s < LEAST_SHARED * shortest_s or shared_s < _DAY_S <= shortest_s
    if shared_s >= step_s - SAME_S and not (repeat and too_little):
        return
    late = max(starts_s, key=lambda key: starts_s[key])
    early = min(starts_s, key=lambda key: starts_s[key] + every[key].length_s)
    at = f"; the trace starts {show_date(trace_s)}" if trace_s is not None else ""
    told = ", ".join(f"{name} {_covers(every[name])}" for name in dict.fromkeys((early, late)))
    shared = f"only {span_text(shared_s)}" if shared_s >= step_s - SAME_S else "less than one step"
    problem, fix = f"the series overlap by {shared}: {told}{at}", "choose series that cover the same time"
    raise InputError(problem, field="site.sources", fix=fix)


def _covers(series: Series) -> str:
    if series.clock != "unix":
        return f"covers {span_text(series.length_s)}"
    return f"covers {show_date(series.start_s)} to {show_date(series.end_s)}"


def _inputs(every: Mapping[str, Series]) -> dict[str, str]:
    """Digests of all files; a name shared by different files gets part of its digest appended."""
    digests: dict[str, str] = {}
    for series in every.values():
        for file, digest in series.inputs.items():
            digests[file if digests.get(file, digest) == digest else f"{file} ({digest[:8]})"] = digest
    return digests


def _on_trace_clock(every: Mapping[str, Series]) -> dict[str, float]:
    """Trace time at which each series begins; the latest beginning of each calendar is 0."""
    if len({"unix", "typical-year"} & {series.clock for series in every.values()}) == 2:
        fix = 'use align = "calendar", or series of one kind'
        raise InputError("dated and typical-year series have no common start", field="site.align", fix=fix)
    zeros: dict[bool, float] = {}
    for series in every.values():
        has_dates = series.clock != "elapsed"
        zeros[has_dates] = max(zeros.get(has_dates, -np.inf), series.start_s)
    return {key: series.start_s - zeros[series.clock != "elapsed"] for key, series in every.items()}


def _dated_zero_s(every: Mapping[str, Series], unix_start_s: float | None) -> float | None:
    """Unix time of trace time 0 on the calendar of the series, if it is mapped to their common start.

    A typical year is dated like 2001, which begins on a Monday; series without dates are dated like the workload.
    """
    starts_s = [series.start_s for series in every.values() if series.clock == "unix"]
    typical_s = [
        (datetime(2001, 1, 1) - datetime(1970, 1, 1)).total_seconds() - series.utc_offset_s + series.start_s
        for series in every.values()
        if series.clock == "typical-year"
    ]
    return max(starts_s or typical_s, default=unix_start_s)


def _stated(common_s: tuple[float, float] | None, first_s: float, step_s: float, slots: int) -> tuple[int, int] | None:
    """First and last slot + 1 of the dates that all series state, None if that is all or none."""
    if common_s is None:
        return None
    first, last = ((edge_s - first_s) / step_s for edge_s in common_s)
    stated = (max(int(np.ceil(first - 1e-9)), 0), min(int(np.floor(last + 1e-9)), slots))
    return stated if stated[0] < stated[1] and stated != (0, slots) else None


def _cut_off(
    key: str, series: Series, start_s: float, first_s: float, last_s: float, edges: Mapping[str, str], *, repeat: bool
) -> list[Note]:
    """Notes on what is cut off; ``edges`` says which series set the start and the end."""
    notes = []
    for side, lost_s in (("start", first_s - start_s), ("end", start_s + series.length_s - last_s)):
        if lost_s > SAME_S:
            what = f"{key}: {span_text(lost_s)} at the {side} cut off, not covered by all sources: {edges[side]}"
            share = lost_s / series.length_s
            lost = repeat and share > MOST_CUT  # else it is beyond the jobs, or they end with an error
            shares = ((share, "hours"),) if lost else ()
            notes.append(Note(what, about=key, level="warning" if lost else "fact", shares=shares))
    return notes


def _mixed(key: str, series: Series, lead_s: float, step_s: float) -> list[Note]:
    """A warning if the steps of a price begin within those of the site, whose values then are means of two."""
    late_s = round(lead_s % step_s)
    if min(late_s, step_s - late_s) <= MIXED * step_s or series.step_s < step_s:
        return []
    fix = math.gcd(late_s, round(step_s))
    what = (
        f"{key}: its steps begin {span_text(step_s - late_s)} after those of the site, so each value is a mean of two "
        f"(site.step_s = {fix} keeps them)"
    )
    return [Note(what, about=key, level="warning", shares=((1.0, "hours"),))]


def _cut(series: Series, start_s: float, first_s: float, last_s: float, step_s: float) -> tuple[Floats, str]:
    """Values in steps from ``first_s`` to ``last_s``, and in words what was changed."""
    lead, parts = (first_s - start_s) / series.step_s, series.step_s / step_s
    if abs(lead - round(lead)) < 1e-9 and abs(parts - round(parts)) < 1e-9:
        slots = int((last_s - first_s) / step_s + 1e-9)
        whole = np.repeat(series.values[round(lead) :], round(parts))[:slots]
    else:
        edges_s = np.clip(start_s + np.arange(series.values.size + 1) * series.step_s, first_s, last_s)
        inside = np.diff(edges_s) > SAME_S
        kept_s = np.append(edges_s[:-1][inside], last_s)
        whole = mean_steps(kept_s, series.values[inside], step_s=step_s)
    if series.step_s == step_s:
        return whole, ""
    return whole, f"steps of {series.step_s:.10g} s {'repeated' if parts > 1 else 'averaged'} to {step_s:.10g} s"
