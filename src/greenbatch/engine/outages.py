"""Outages: times in which no job may run, known in advance like reservations for maintenance.

A job starts only if it would end before the next outage by its requested time. The reservation of a blocked job is
moved behind the outages in its way, and leaves to others what is free at that later instant. If some processors stayed
in use during an outage, jobs may run into it, and only starts are forbidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.machine.competition import all_partitions_in
from greenbatch.engine.machine.power_states import longest_boot_s
from greenbatch.engine.records import ALL_PARTITIONS, Downtime, Table, table_of
from greenbatch.engine.state import State
from greenbatch.errors import InputError
from greenbatch.machine_code.compile import compiled, whole
from greenbatch.workload import Outage


def downtimes_of(outages: Sequence[Outage], cluster: Cluster) -> Table[Downtime]:
    """Outages as a table in order of their begin; without partitions, only those of the whole machine count.

    Raises:
        InputError: a time is not finite, an outage does not end after its begin, or names an unknown partition.
    """
    names = cluster.partitions if cluster.on_nodes else ()
    for each in outages:
        name, times = each.partition, f"from {each.begin_s:g} to {each.end_s:g} s"
        if not -np.inf < each.begin_s < each.end_s < np.inf:
            raise InputError(times, field="outages", fix="give finite times, the begin first")
        if name and names and name not in names:
            fix = "the cluster has " + ", ".join(names)
            raise InputError(f"of partition {name!r}, which the cluster does not have", field="outages", fix=fix)
    known = sorted((each for each in outages if not each.partition or names), key=attrgetter("begin_s"))
    table: Any = table_of(Downtime, len(known))
    for row, each in zip(table, known, strict=True):
        row.begin_s, row.end_s, row.only_starts = each.begin_s, each.end_s, each.processors < each.of
        row.partitions = 1 << names.index(each.partition) if each.partition else ALL_PARTITIONS
    return table  # type: ignore[no-any-return]


@compiled
def next_end_s(s: State) -> float:
    """When the next outage ends, infinite if there is none. [s]"""
    end_s = np.inf
    for k in range(s.downtimes.shape[0]):
        if s.downtimes[k].end_s > s.clock.now_s:
            end_s = min(end_s, s.downtimes[k].end_s)
    return float(end_s)


@compiled
def open_from_s(s: State, job: int, from_s: float) -> float:
    """Earliest instant from which a job can run for its requested time without an outage in its way. [s]"""
    length_s, moves = s.jobs[job].requested_s + longest_boot_s(s.machine), True
    while moves:
        moves = False
        for k in range(s.downtimes.shape[0]):
            downtime = s.downtimes[k]
            until_s = from_s if downtime.only_starts else from_s + length_s
            is_ahead = downtime.end_s > from_s and (downtime.begin_s <= from_s or downtime.begin_s < until_s)
            if is_ahead and all_partitions_in(s.machine, job, whole(downtime.partitions)):
                from_s, moves = downtime.end_s, True
    return float(from_s)
