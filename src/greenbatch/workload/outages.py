"""Outages that a record shows: times in which nothing runs, or starts in a partition, although jobs wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from greenbatch.notes import left_out_work
from greenbatch.workload.table import Workload

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

SHORTEST_S = 1800.0
"""Shortest time without any running job that counts while jobs wait. [s]"""
SHORTEST_STOP_S = 4 * 3600.0
"""Shortest time without any start in a partition that counts while jobs wait that fit. [s]"""
UNUSED = 0.2
"""Smallest part of a partition's processors that is free meanwhile."""
LEFT_OUT = 0.01
"""Share of the recorded work that may be left out: such jobs ran, and their times look like outages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A time in which processors were not used although jobs waited."""

    begin_s: float
    """On the workload's clock. [s]"""
    end_s: float
    processors: int = 0
    """Processors that nobody used meanwhile, of those in `of`."""
    of: int = 0
    """The largest number of processors that was ever used at once."""
    partition: str = ""
    """Name of the partition; empty for the whole machine."""
    waiting: int = 0
    """Jobs that waited at some time of it."""


@dataclass(frozen=True, slots=True)
class _Use:
    """Recorded jobs, and what they used from each instant to the next."""

    submit_s: Floats
    start_s: Floats
    processors: NDArray[np.int64]
    user: NDArray[np.int64]
    time_s: Floats
    """Instants of submissions, starts and ends, ascending, shape (m,)."""
    used: NDArray[np.int64]
    """Processors used from each instant to the next, shape (m,)."""
    waiting: NDArray[np.int64]
    """Jobs waiting, shape (m,)."""

    @property
    def capacity(self) -> int:
        """Processors that the record shows to exist."""
        return int(self.used.max(initial=0))

    def waited(self, begin_s: float, end_s: float) -> Mask:
        """The jobs that waited at some time of an interval."""
        return (self.submit_s < end_s) & (self.start_s > begin_s) & (self.start_s > self.submit_s)


def outages(workload: Workload) -> list[Outage]:
    """Outages that the recorded starts show, in order of their begin; none without recorded starts.

    Two kinds are found. *The whole machine*: no job runs for at least `SHORTEST_S`, although jobs wait. *A part of a
    partition*: no job of the partition starts for at least `SHORTEST_STOP_S`, although jobs of several users wait, the
    one that has waited longest would fit, and at least `UNUSED` of the processors are free. Capacity is the largest
    number of processors ever used at once. Limits of users and accounts, which a record does not show, can look the
    same. So can jobs that ran and are left out, so none is found if these are more than `LEFT_OUT` of the work.
    """
    known = np.isfinite(workload.recorded_wait_s)
    if not known.any() or left_out_work(workload.notes) > LEFT_OUT:
        return []
    jobs = workload.take(known)
    whole = _use(jobs)
    found = [_outage(whole, *span) for span in _idle(whole)]
    partitions = np.unique(jobs.partition).tolist()
    for number in partitions:
        if number < 0 and len(partitions) > 1:
            continue  # jobs that name no partition can run in any of them
        name = workload.names.get("partition", {}).get(number, str(number)) if len(partitions) > 1 else ""
        use = whole if len(partitions) == 1 else _use(jobs.take(jobs.partition == number))
        stops = [_outage(use, *span, name) for span in _stops(use)]
        found += [each for each in stops if not any(_overlap_s(each, other) > 0 for other in found)]
    return sorted(found, key=lambda each: (each.begin_s, each.partition))


def _use(jobs: Workload) -> _Use:
    start_s = jobs.submit_s + jobs.recorded_wait_s
    end_s = start_s + jobs.run_time_s
    time_s = np.unique(np.concatenate([jobs.submit_s, start_s, end_s]))

    def change(at_s: Floats, amount: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(np.searchsorted(time_s, at_s), weights=amount, minlength=len(time_s)).astype(np.int64)

    one = np.ones(len(jobs), dtype=np.int64)
    return _Use(
        jobs.submit_s, start_s, jobs.processors, jobs.user, time_s,
        np.cumsum(change(start_s, jobs.processors) - change(end_s, jobs.processors)),
        np.cumsum(change(jobs.submit_s, one) - change(start_s, one)),
    )  # fmt: skip


def _idle(use: _Use) -> list[tuple[float, float]]:
    """Begin and end of the times in which nothing runs although jobs wait, if long enough. [s]"""
    edges = np.diff(np.concatenate([[0], (use.used == 0) & (use.waiting > 0), [0]]).astype(np.int8))
    first, after = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    spans = zip(use.time_s[first].tolist(), use.time_s[after].tolist(), strict=True)
    return [(begin_s, end_s) for begin_s, end_s in spans if end_s - begin_s >= SHORTEST_S]


def _stops(use: _Use) -> Iterator[tuple[float, float]]:
    """Begin and end of the times in which nothing starts although the job that has waited longest would fit. [s]"""
    starts_s = np.unique(use.start_s)
    for k in np.flatnonzero(np.diff(starts_s) >= SHORTEST_STOP_S).tolist():
        end_s = float(starts_s[k + 1])
        waited = np.flatnonzero(use.waited(float(starts_s[k]), end_s))
        if len(np.unique(use.user[waited])) < 2:
            continue
        head = waited[np.argmin(use.submit_s[waited])]
        need = max(int(use.processors[head]), int(np.ceil(UNUSED * use.capacity)))
        since_s = max(float(starts_s[k]), float(use.submit_s[head]))
        room = (use.time_s < end_s) & (use.capacity - use.used >= need)
        room &= np.append(use.time_s[1:], np.inf) > since_s
        begin_s = max(since_s, float(use.time_s[room].min(initial=np.inf)))  # nothing starts, so room only grows
        if end_s - begin_s >= SHORTEST_STOP_S:
            yield begin_s, end_s


def _overlap_s(one: Outage, other: Outage) -> float:
    return min(one.end_s, other.end_s) - max(one.begin_s, other.begin_s)


def _outage(use: _Use, begin_s: float, end_s: float, partition: str = "") -> Outage:
    during = (np.append(use.time_s[1:], np.inf) > begin_s) & (use.time_s < end_s)
    return Outage(
        begin_s=begin_s, end_s=end_s, processors=use.capacity - int(use.used[during].max()), of=use.capacity,
        partition=partition, waiting=int(use.waited(begin_s, end_s).sum()),
    )  # fmt: skip
