"""The log of a simulation, and its readings: the schedule and the power profile.

The engine appends to a buffer of fixed size (`Event`). When there may not be room for what the next event causes, the
loop returns to Python, which reads and empties the buffer (`drained`) and calls the loop again.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from greenbatch.engine.capacity.levels import most_moves
from greenbatch.engine.capacity.varying import Varying
from greenbatch.engine.codes import BACKFILL, BEGIN, CHARGE, END, OK, PROMISE, RESUME, START, SUSPEND, SWITCH
from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.machine.power_states import most_switches
from greenbatch.engine.power.protocol import is_commanded
from greenbatch.engine.records import Clock, Event, Floats, Ints, Table, table_of
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled_small, entry


@compiled_small
def note(log: Table[Event], clock: Clock, kind: int, job: int, value: float) -> None:
    """Append an entry to the log, at the present time."""
    event = log[clock.logged]
    event.time_s = clock.now_s
    event.value = value
    event.job = job
    event.kind = kind
    clock.logged += 1


@compiled_small
def is_full(log: Table[Event], clock: Clock, switches: int) -> bool:
    """Whether the log may not have room for the next event.

    All running jobs may end, all waiting ones start, and a number of nodes be switched.
    """
    return clock.logged + 3 * (clock.last - clock.first) + clock.running + switches + 8 > log.shape[0]


_MOVES = (START, BACKFILL, SUSPEND, RESUME, BEGIN, END)


class Columns(NamedTuple):
    """What compiled code reads from the log of n jobs."""

    start_s: Floats
    """Start of each job, NaN if it has not started, shape (n,). [s]"""
    end_s: Floats
    """End of each job, shape (n,). [s]"""
    promised_s: Floats
    """First reservation of each job, NaN if it never got one, shape (n,). [s]"""
    profile_time_s: Floats
    """Instants at which the load or the command to storage changes, shape (>= 2n,); ``counts[0]`` are valid. [s]"""
    profile_load_w: Floats
    """Load from each instant to the next, of the same shape. [W]"""
    profile_command_w: Floats
    """Command to storage from each instant to the next, of the same shape. [W]"""
    first_w: float
    """Load before the first instant. [W]"""
    order: Ints
    """Jobs in the order in which they started, shape (n,); ``counts[2]`` are valid."""
    counts: Ints
    """Instants of the profile, jobs that started because the policy chose them, and jobs that started."""


class Readings(NamedTuple):
    """What is read from the log, and from the machine's record of where jobs started."""

    columns: Columns
    placed: list[Any]
    """Tables of `machine.node_tables.Placement`; empty on a pool."""
    moves: list[Any]
    """Entries of the log that start, suspend, resume or end a job, where jobs can be suspended."""
    switched: list[Any]
    """Entries of the log that say when a node was switched."""


def new_readings(jobs: int, first_w: float) -> Readings:
    """Readings of an empty log.

    Args:
        jobs: number of jobs.
        first_w: load before anything happens. [W]
    """
    start_s, end_s, promised_s = (np.full(jobs, np.nan) for _ in range(3))
    time_s, load_w, command_w = (np.empty(2 * jobs) for _ in range(3))
    order, counts = np.zeros(jobs, np.int64), np.zeros(3, np.int64)
    columns = Columns(start_s, end_s, promised_s, time_s, load_w, command_w, float(first_w), order, counts)
    return Readings(columns, [], [], [])


def read(log: Table[Event], rows: int, into: Columns) -> None:
    """Read the first rows of a log; rows of later calls follow them."""
    steps, chosen, started = into.counts
    for k in range(rows):
        event = log[k]
        time_s, kind, job = event.time_s, event.kind, event.job
        if kind == PROMISE:
            into.promised_s[job] = event.value
        elif kind <= END or kind >= SWITCH:
            if kind == END:
                into.end_s[job] = time_s
            elif kind < END:
                into.start_s[job] = time_s
                into.order[started] = job
                started += 1
                chosen += kind == START
            if steps == 0 or into.profile_time_s[steps - 1] != time_s:
                into.profile_time_s[steps] = time_s
                into.profile_load_w[steps] = into.profile_load_w[steps - 1] if steps > 0 else into.first_w
                into.profile_command_w[steps] = into.profile_command_w[steps - 1] if steps > 0 else 0.0
                steps += 1
            if kind == CHARGE:
                into.profile_command_w[steps - 1] = event.value
            else:
                into.profile_load_w[steps - 1] = event.value
    into.counts[0], into.counts[1], into.counts[2] = steps, chosen, started


@cache
def _compiled_read() -> Any:
    example = table_of(Event, 1), np.int64(0), new_readings(1, 0.0).columns
    return entry("read-log", read, types.void(*(numba.typeof(each) for each in example)), told=False)


def drain(state: State, into: Readings) -> None:
    """Read and empty the log of a state."""
    read = into.columns
    rows = int(read.counts[0] + state.clock.logged)
    if rows > read.profile_time_s.shape[0] and (
        is_commanded(state.power) or most_moves(state.capacity, state.machine.totals) + most_switches(state.machine) > 0
    ):
        for column in (read.profile_time_s, read.profile_load_w, read.profile_command_w):
            column.resize(2 * rows, refcheck=False)
    if isinstance(state.capacity, Varying):
        moves: Any = state.log[: state.clock.logged]
        into.moves.append(moves[np.isin(moves["kind"], _MOVES)].copy())
    if isinstance(state.machine, Nodes):
        placed: Any = state.machine.placed
        into.placed.append(placed[: state.machine.counts.placed].copy())
        state.machine.counts.placed = 0
        if state.machine.counts.on_demand:
            entries: Any = state.log[: state.clock.logged]
            into.switched.append(entries[(entries["kind"] == SWITCH) & (entries["job"] >= 0)].copy())
    _compiled_read()(state.log, int(state.clock.logged), into.columns)
    state.clock.logged = 0


def drained(state: State, into: Readings) -> State:
    """Read and empty a full log; a state with a larger log if this one is too small for the queue."""
    drain(state, into)
    state.clock.status = OK
    switches = int(most_switches(state.machine) + most_moves(state.capacity, state.machine.totals))
    if is_full(state.log, state.clock, switches):
        jobs = int(state.clock.last - state.clock.first + state.clock.running)
        rows = 2 * switches + 2 * state.log.shape[0] + 8 * jobs
        return state._replace(log=table_of(Event, rows))
    return state
