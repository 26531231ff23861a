"""Combine sources with different steps, starts and calendars into one `Site` on a workload's clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from greenbatch.display import span_text
from greenbatch.energy.resample import SAME_S, mean_steps
from greenbatch.energy.samples import MOST_STEPS, check_choice
from greenbatch.energy.series import Series
from greenbatch.energy.site import Site
from greenbatch.energy.stamps import show_date
from greenbatch.errors import InputError

Floats = NDArray[np.float64]
Align = Literal["trace-start", "calendar"]
"""Where trace time 0 falls: at the first instant that all series cover, or at the workload's own date and hour."""

_DAY_S = 86_400.0
_YEAR_DAYS = 365
LEAST_SHARED = 0.1
"""Share of the shortest series that all must cover together if they repeat."""
_YEAR_1900_S, _YEAR_2100_S = -2_208_988_800.0, 4_102_444_800.0


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
    time span that all series cover is used; a note states what is cut off. Series that repeat must cover at least a day
    together, unless one is shorter, and at least 10% of the shortest.

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
    starts_s = _on_trace_clock(every) if align == "trace-start" else None
    if starts_s is None:
        if unix_start_s is None:
            fix = 'give a trace with UnixStartTime (or set its start), or use align = "trace-start"'
            raise InputError("the workload has no date", field="site.align", fix=fix)
        if not _YEAR_1900_S <= unix_start_s <= _YEAR_2100_S:
            problem = f"the trace starts at {unix_start_s:.10g} s of Unix time"
            raise InputError(problem, field="site.align", fix="correct the trace's UnixStartTime")
        every = {key: _dated(series, unix_start_s) for key, series in every.items()}
        starts_s = {key: series.start_s - unix_start_s for key, series in every.items()}
    first_s = max(starts_s.values())
    last_s = min(starts_s[key] + series.values.size * series.step_s for key, series in every.items())
    step = min(series.step_s for series in every.values()) if step_s is None else step_s
    if not 0 < step < np.inf:
        raise InputError(f"is {step}", field="site.step_s", fix="it must be > 0")
    _check_overlap(every, starts_s, last_s - first_s, step, repeat=repeat, trace_s=unix_start_s)
    if (last_s - first_s) / step > MOST_STEPS:
        raise InputError(f"gives more than {MOST_STEPS} slots", field="site.step_s", fix="give a longer step")
    if not repeat and not first_s - SAME_S <= 0 < last_s and unix_start_s is not None:
        named = {_edge_name(every, starts_s, last=last): None for last in (False, True)}
        covered = " to ".join(show_date(unix_start_s + edge_s) for edge_s in (first_s, last_s))
        ends = f"to {show_date(unix_start_s + until_s)}" if until_s is not None else "on"
        raise InputError(
            f"{', '.join(named)} {'cover' if len(named) > 1 else 'covers'} {covered}, but the jobs run from "
            f"{show_date(unix_start_s)} {ends}",
            field="site.align",
            fix='give series of that time, or use align = "trace-start" or repeat = true',
        )
    notes = [note for series in every.values() for note in series.notes]
    parts = {}
    ends_s = {key: starts_s[key] + series.length_s for key, series in every.items()}
    edges = {
        "start": _edge(every, max(starts_s, key=lambda key: starts_s[key]), "start"),
        "end": _edge(every, min(ends_s, key=lambda key: ends_s[key]), "end"),
    }
    for key, series in every.items():
        parts[key], note = _cut(series, starts_s[key], first_s, last_s, step, edges)
        notes += [f"{key}: {words}" for words in note]
    slots = min(part.size for part in parts.values())
    return Site(
        name=name,
        step_s=step,
        origin_s=first_s,
        unix_start_s=unix_start_s if align == "calendar" else _dated_zero_s(every, unix_start_s),
        repeat=repeat,
        forecast_horizon_s=forecast_horizon_s,
        sources_w={key: parts[key][:slots] for key in sources},
        signals={key: parts[key][:slots] for key in signals or {}},
        notes=tuple(dict.fromkeys(notes)),
        inputs=_inputs(every),
    )


def _edge(every: Mapping[str, Series], name: str, side: str) -> str:
    """Which series begins last or ends first, with the date if it has one."""
    series = every[name]
    at_s = series.end_s if side == "end" else series.start_s
    dated = f" {show_date(at_s)}" if series.clock == "unix" else ""
    return f"{name} {side}s{dated}"


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
    raise InputError(
        f"the series overlap by {shared}: {told}{at}",
        field="site.sources",
        fix="choose series that cover the same time",
    )


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
        dated = series.clock != "elapsed"
        zeros[dated] = max(zeros.get(dated, -np.inf), series.start_s)
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


def _dated(series: Series, unix_start_s: float) -> Series:
    """The series in Unix time; a typical year is repeated over four calendar years, from the workload's year on."""
    if series.clock == "unix":
        return series
    if series.clock == "elapsed":
        fix = 'use align = "trace-start", or a series with dates'
        raise InputError("has no dates", field=series.name, fix=fix)
    a_day = round(_DAY_S / series.step_s)
    if abs(a_day * series.step_s - _DAY_S) > SAME_S or series.values.size != _YEAR_DAYS * a_day:
        fix = 'use align = "trace-start"'
        raise InputError("is not a year of 365 days with a whole number of steps per day", field=series.name, fix=fix)
    year = (datetime(1970, 1, 1) + timedelta(seconds=unix_start_s + series.utc_offset_s)).year
    days = (date(year, 1, 1) + timedelta(days=k) for k in range((date(year + 4, 1, 1) - date(year, 1, 1)).days))
    rows = [
        (date(2001, day.month, min(day.day, 28) if day.month == 2 else day.day) - date(2001, 1, 1)).days for day in days
    ]
    values = series.values.reshape(_YEAR_DAYS, a_day)[rows].ravel()
    start_s = (datetime(year, 1, 1) - datetime(1970, 1, 1)).total_seconds() - series.utc_offset_s + series.start_s
    note = f"{series.name}: typical year laid out over {year} to {year + 3}, 29 February as 28 February"
    return replace(series, clock="unix", values=values, start_s=start_s, notes=(*series.notes, note))


def _cut(
    series: Series, start_s: float, first_s: float, last_s: float, step_s: float, edges: Mapping[str, str]
) -> tuple[Floats, list[str]]:
    """Values in steps from ``first_s`` to ``last_s``, and notes on what was cut off or changed.

    ``edges`` says which series set the start and the end.
    """
    notes = []
    end_s = start_s + series.values.size * series.step_s
    for side, lost_s in (("start", first_s - start_s), ("end", end_s - last_s)):
        if lost_s > SAME_S:
            notes.append(f"{span_text(lost_s)} at the {side} cut off, not covered by all sources: {edges[side]}")
    lead, parts = (first_s - start_s) / series.step_s, series.step_s / step_s
    if abs(lead - round(lead)) < 1e-9 and abs(parts - round(parts)) < 1e-9:
        slots = int((last_s - first_s) / step_s + 1e-9)
        whole = np.repeat(series.values[round(lead) :], round(parts))[:slots]
    else:
        edges_s = np.clip(start_s + np.arange(series.values.size + 1) * series.step_s, first_s, last_s)
        inside = np.diff(edges_s) > SAME_S
        kept_s = np.append(edges_s[:-1][inside], last_s)
        whole = mean_steps(kept_s, series.values[inside], step_s=step_s)
    if series.step_s != step_s:
        notes.append(f"steps of {series.step_s:.10g} s {'repeated' if parts > 1 else 'averaged'} to {step_s:.10g} s")
    return whole, notes
