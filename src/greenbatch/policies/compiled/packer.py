"""Start the set of ready jobs that fit together and are worth most.

At each decision, all sets of ready jobs that fit now, and at every known change of capacity while they run, are
searched by branch and bound, and the first job of the best one starts. A job that cannot start by itself is in no set:
one that does not fit on the nodes now, or that a limit of power forbids. Sets are searched by free processors and GPUs;
what the first job leaves of nodes and of power is seen at the next decision. A job weighs

    size^``size`` x (``bias`` + QoS) x (1 + ``age`` x ticks waited) x length^``length``,

where its size is its processors and GPUs. ``balance`` is what a unit that one resource has free beyond the other costs,
as a fraction of the weight of an average unit.

Source: the headroom study of RARE's environment; its packer has a bias of 0.5 and an age of 0.02.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.capacity.expected import units_at
from greenbatch.engine.decide import decide
from greenbatch.engine.limits import can_start
from greenbatch.engine.program import CompiledPolicy
from greenbatch.engine.queue import position_of
from greenbatch.engine.records import Floats, Int32s
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, start_now, wait_until
from greenbatch.machine_code.compile import compiled, whole
from greenbatch.workload import Workload

MOST = 24
"""Largest number of ready jobs that are searched: those that weigh most."""
MOST_CUTS = 64
"""Largest number of changes of capacity that are looked at."""
MOST_NODES = 20_000
"""Sets after which the search stops and takes the best so far."""


class Packer(NamedTuple):
    """Parameters, and buffers of the search."""

    size: float
    bias: float
    age: float
    length: float
    balance: float
    job: Int32s
    """Candidates by weight, shape (MOST,)."""
    weight: Floats
    rest: Floats
    """Weight of this candidate and those after it, shape (MOST + 1,)."""
    stage: Int32s
    """For each candidate: 0 untried, 1 in the set, 2 left out, shape (MOST,)."""
    best: Int32s
    """Whether the best set holds the candidate, shape (MOST,)."""
    cut_s: Floats
    """Now, and later changes of capacity, shape (MOST_CUTS,)."""
    processors: Int32s
    """Free at each."""
    gpus: Int32s


@compiled
def _weigh(p: Packer, s: State) -> int:
    """Fill the candidates that fit by themselves, in descending weight; return their number."""
    capacity, c, count = s.capacity, s.clock, 0
    tick_s = capacity.counts.tick_s
    for k in range(capacity.counts.ready):
        job = whole(capacity.ready[k])
        own = capacity.jobs[job]
        if not can_start(s, job, whole(s.jobs[job].processors)):
            continue
        waited = (c.now_s - s.jobs[job].submit_s) / tick_s
        length = s.jobs[job].requested_s / tick_s
        weight = float(own.processors + own.gpus) ** p.size * (p.bias + own.qos) * (1.0 + p.age * waited)
        weight *= length**p.length
        i = count if count < MOST else MOST
        while i > 0 and p.weight[i - 1] < weight:
            if i < MOST:
                p.weight[i], p.job[i] = p.weight[i - 1], p.job[i - 1]
            i -= 1
        if i < MOST:
            p.weight[i], p.job[i] = weight, job
            count = min(count + 1, MOST)
    p.rest[count] = 0.0
    for i in range(count - 1, -1, -1):
        p.rest[i] = p.rest[i + 1] + p.weight[i]
    return count


@compiled
def _fill_cuts(p: Packer, s: State, longest_s: float) -> int:
    """Fill in what is free now, and at later changes of capacity beside the jobs that run; return their number."""
    capacity, c, totals = s.capacity, s.clock, s.machine.totals
    counts, levels = capacity.counts, capacity.levels
    p.cut_s[0], p.processors[0], p.gpus[0] = c.now_s, totals.free, totals.free_gpus
    count = 1
    if counts.suspends > 0:
        return count
    until_s = c.now_s + min(longest_s, counts.horizon_s)
    used, used_gpus = counts.powered - totals.free, counts.gpus - totals.free_gpus
    k, i, last = counts.level + 1, c.expected_first, c.expected_first + c.running
    while k < levels.shape[0] and levels[k].time_s < until_s and count < MOST_CUTS:
        while i < last and s.expected[i].end_s <= levels[k].time_s:
            ended = capacity.jobs[s.expected[i].job]
            used -= ended.processors
            used_gpus -= ended.gpus
            i += 1
        there, there_gpus = units_at(capacity, k)
        p.cut_s[count], p.processors[count], p.gpus[count] = levels[k].time_s, there - used, there_gpus - used_gpus
        count += 1
        k += 1
    return count


@compiled
def _take(p: Packer, s: State, job: int, cuts: int, sign: int) -> bool:
    """Take a job out of what is free (sign 1) or put it back (-1); False, and nothing taken, if it does not fit."""
    own = s.capacity.jobs[job]
    end_s = s.clock.now_s + min(s.jobs[job].requested_s, s.capacity.counts.horizon_s)
    for k in range(cuts):
        if p.cut_s[k] >= end_s:
            break
        if sign > 0 and (own.processors > p.processors[k] or own.gpus > p.gpus[k]):
            return False
    for k in range(cuts):
        if p.cut_s[k] >= end_s:
            break
        p.processors[k] -= sign * own.processors
        p.gpus[k] -= sign * own.gpus
    return True


@compiled
def _search(p: Packer, s: State, count: int, cuts: int) -> bool:
    """Find the set of the highest weight by depth-first search; whether it holds any job."""
    most, held, i, nodes = -np.inf, 0.0, 0, 0
    unit = p.balance * p.rest[0] / max(1.0, float(_units(p, s, count)))
    for k in range(count):
        p.stage[k] = 0
    while i >= 0:
        nodes += 1
        if i == count or held + p.rest[i] <= most or nodes > MOST_NODES:
            worth = held - unit * abs(p.processors[0] - p.gpus[0])
            if i == count and worth > most:
                most = worth
                for k in range(count):
                    p.best[k] = p.stage[k] == 1
            i -= 1
        elif p.stage[i] == 0 and nodes <= MOST_NODES and _take(p, s, whole(p.job[i]), cuts, 1):
            p.stage[i] = 1
            held += p.weight[i]
            i += 1
        elif p.stage[i] == 0:
            p.stage[i] = 2
            i += 1
        elif p.stage[i] == 1:
            _take(p, s, whole(p.job[i]), cuts, -1)
            held -= p.weight[i]
            p.stage[i] = 2
            i += 1
        else:
            p.stage[i] = 0
            i -= 1
    return bool(p.best[:count].any())


@compiled
def _units(p: Packer, s: State, count: int) -> int:
    units = 0
    for k in range(count):
        own = s.capacity.jobs[p.job[k]]
        units += own.processors + own.gpus
    return units


@decide.register(Packer)
def pack(decider: Packer, s: State) -> None:
    """Start a job of the best set, or wait."""
    count = _weigh(decider, s)
    longest_s = 0.0
    for k in range(count):
        longest_s = max(longest_s, s.jobs[decider.job[k]].requested_s)
    if count == 0 or not _search(decider, s, count, _fill_cuts(decider, s, longest_s)):
        apply(s, wait_until(np.inf))
        return
    k = 0
    while decider.best[k] != 1:
        k += 1
    apply(s, start_now(whole(position_of(s.queue, s.clock, whole(decider.job[k])))))


def packer_policy(size: float, bias: float, age: float, length: float, balance: float) -> CompiledPolicy:
    """The policy with its parameters."""

    def begin(_: Workload, __: Cluster, ___: Rules) -> Packer:
        jobs = (np.zeros(MOST, np.int32), np.zeros(MOST), np.zeros(MOST + 1), np.zeros(MOST, np.int32))
        free = np.zeros(MOST_CUTS), np.zeros(MOST_CUTS, np.int32), np.zeros(MOST_CUTS, np.int32)
        return Packer(size, bias, age, length, balance, *jobs, np.zeros(MOST, np.int32), *free)

    return CompiledPolicy(name="packer", begin=begin)
