"""DVFS levels: at a lower one, the processors of a job are slower and draw less power, and it may run for longer.

A job starts at the level of the rules, or at the one that a policy chooses with `interface.Start`. Its requested time
is that at the highest level; at a lower one it is longer in the same proportion as its run time.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from greenbatch.cluster import Cluster, DvfsLevel
from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.errors import InputError


def levels_of(cluster: Cluster) -> tuple[DvfsLevel, ...]:
    """All levels of a cluster, the highest first; a pool has no other."""
    return (DvfsLevel(speed=1.0, power=1.0), *cluster.dvfs)


def level_of(cluster: Cluster, level: int, *, field: str) -> DvfsLevel:
    """A level by its number.

    Args:
        cluster: the machine.
        level: number of the level, 0 for the highest.
        field: name of the option or scheduler that chose the level, for messages.

    Raises:
        InputError: the cluster has no such level.
    """
    levels = levels_of(cluster)
    if not (isinstance(level, int | np.integer) and 0 <= level < len(levels)):
        fix = f"the cluster has levels 0 to {len(levels) - 1}" if len(levels) > 1 else "describe them in cluster.dvfs"
        raise InputError(f"there is no DVFS level {level!r}", field=field, fix=fix)
    return levels[level]


def _slow_down(demands: Any, level: DvfsLevel, rows: Any = slice(None)) -> None:
    demands["pace"][rows], demands["draw"][rows] = level.speed, level.power


def run_at(state: State, cluster: Cluster, rules: Rules) -> None:
    """Let all jobs of a state made from a view run at the level of the rules: what they request is longer already."""
    if rules.dvfs_level and isinstance(state.machine, Nodes):
        _slow_down(cast(Any, state.machine.demands), levels_of(cluster)[rules.dvfs_level])


def set_level(state: State, cluster: Cluster, level: int, position: int | None = None, *, field: str) -> None:
    """Let a waiting job, or every job, start at a level.

    Args:
        state: the state.
        cluster: the machine.
        level: number of the level, 0 for the highest.
        position: position of the job in the queue; None for all jobs, before the first event.
        field: name of the option or scheduler that chose the level, for messages.

    Raises:
        InputError: the cluster has no such level.
    """
    chosen = level_of(cluster, level, field=field)
    if not isinstance(state.machine, Nodes):
        return
    rows: Any = slice(None) if position is None else int(state.queue.job[position])
    demands: Any = state.machine.demands
    longer = demands["pace"][rows] / chosen.speed
    demands["dvfs_level"][rows] = level
    _slow_down(demands, chosen, rows)
    jobs: Any = state.jobs
    powered = [state.capacity.jobs] if hasattr(state.capacity, "jobs") else []
    for table in (jobs, demands, *powered):
        table["requested_s"][rows] *= longer
    if position is not None:
        state.queue.requested_s[position] = jobs["requested_s"][rows]
