"""Slurm's multifactor priority: age, fair share, size and partition of each waiting job, weighted.

Sources: https://slurm.schedmd.com/priority_multifactor.html; fair share after
https://slurm.schedmd.com/classic_fair_share.html, F = 2^(-U/S), with equal shares S of all users seen so far. U is the
user's part of all processor-seconds used, each halved every ``decay_half_life_s`` of its age.

Usage is counted between decisions, by what a view shows: running jobs count until now. While jobs wait, a decision is
due at every event, so the usage is exact. Jobs that end while none waits count until the next decision, at most until
their requested ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.cluster.priority import Priority, PriorityWeights
from greenbatch.engine.decide import decide
from greenbatch.engine.limits import can_be_next
from greenbatch.engine.program import CompiledPolicy
from greenbatch.engine.records import Floats, Ints
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, start_now
from greenbatch.errors import InputError
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.workload import Workload

SLOTS = 16_384
"""Size of the table of users, a power of two; users beyond it share one slot."""
_MOST_RUNNING = 2**20
"""Running jobs that are remembered between two views; Slurm's own limit of jobs is below it."""
_EMPTY = -9
_ROUNDING = 1e-6
"""Priorities are whole numbers, as Slurm's; rounding errors below this do not lower one."""
_TIER = 2.0**33
"""Difference of the scores of two tiers, above the largest priority."""
_FAR = 60.0
"""Half-lives after which the unit of usage is reset, so that it stays finite."""

_AGE, _FAIR_SHARE, _SIZE, _MAX_AGE_S, _HALF_LIFE_S, _FAVOR_SMALL = range(6)
_LAST_S, _UNIT_S, _TOTAL, _USERS, _RUNNING, _JOBS_WAIT = range(6)


class Multifactor(NamedTuple):
    """Weights, and what is remembered from one decision to the next."""

    weights: Floats
    """Weights of age, fair share and size; longest age [s]; half-life [s]; 1 to favor small jobs. Shape (6,)"""
    partition: Floats
    """Weight x factor of the partition of each job of the workload, shape (n,); empty if all are 0."""
    tier: Floats
    """Rank of the tier of the partition of each job, shape (n,); empty if there is one tier."""
    user: Ints
    """User numbers by slot, shape (SLOTS,)."""
    usage: Floats
    """Processor-seconds used by each slot, shape (SLOTS,); the unit changes with time, so that past use counts less."""
    memory: Floats
    """Last decision [s]; when the unit of usage was 1 [s]; all usage; users; running jobs; whether jobs waited. (6,)"""
    running: Floats
    """Processors, requested end [s], slot, begin [s] and row of the jobs that ran after the last decision, or whose
    nodes booted then; shape (jobs at once, 5)."""


@compiled_small
def _slot(decider: Multifactor, user: int) -> int:
    """The slot of a user, who is entered if new."""
    slot = (user * 40_503 + 1) & (SLOTS - 1)
    while decider.user[slot] != user:
        if decider.user[slot] == _EMPTY:
            if decider.memory[_USERS] >= SLOTS // 2:
                return 0
            decider.user[slot] = user
            decider.memory[_USERS] += 1.0
            return int(slot)
        slot = (slot + 1) & (SLOTS - 1)
    return int(slot)


@compiled_small
def _use(decider: Multifactor, slot: int, processors: float, from_s: float, to_s: float) -> None:
    """Enter the use of processors over an interval."""
    if to_s <= from_s:
        return
    half_life_s, unit_s = decider.weights[_HALF_LIFE_S], decider.memory[_UNIT_S]
    amount = processors * (to_s - from_s)
    if half_life_s > 0.0:
        growth = 2.0 ** ((to_s - unit_s) / half_life_s) - 2.0 ** ((from_s - unit_s) / half_life_s)
        amount = processors * half_life_s / np.log(2.0) * growth
    decider.usage[slot] += amount
    decider.memory[_TOTAL] += amount


@compiled_small
def _is_remembered(decider: Multifactor, job: int, last_s: float) -> bool:
    """Whether a job was placed before the last decision, but its nodes booted then."""
    k, rows, running = 0, int(decider.memory[_RUNNING]), decider.running
    while k < rows and (running[k, 3] <= last_s or running[k, 4] != job):
        k += 1
    return k < rows


@compiled
def _account(decider: Multifactor, s: State) -> None:
    """Enter the use since the last decision."""
    c, memory, half_life_s = s.clock, decider.memory, decider.weights[_HALF_LIFE_S]
    if np.isnan(memory[_LAST_S]):
        memory[_LAST_S] = memory[_UNIT_S] = c.now_s
    last_s = memory[_LAST_S]
    if c.now_s <= last_s:
        return
    if half_life_s > 0.0 and c.now_s - memory[_UNIT_S] > _FAR * half_life_s:
        decay = 2.0 ** (-(c.now_s - memory[_UNIT_S]) / half_life_s)
        for slot in range(SLOTS):
            decider.usage[slot] *= decay
        memory[_TOTAL] *= decay
        memory[_UNIT_S] = c.now_s
    for k in range(int(memory[_RUNNING])):
        until_s = c.now_s if memory[_JOBS_WAIT] > 0.0 else min(c.now_s, decider.running[k, 1])
        _use(decider, int(decider.running[k, 2]), decider.running[k, 0], max(last_s, decider.running[k, 3]), until_s)
    for k in range(c.expected_first, c.expected_first + c.running):
        started = s.expected[k]
        if started.start_s > last_s and not _is_remembered(decider, whole(started.job), last_s):
            slot = _slot(decider, whole(s.jobs[started.job].user))
            _use(decider, slot, float(started.processors), started.start_s, c.now_s)
    memory[_LAST_S] = c.now_s


@compiled
def _remember(decider: Multifactor, s: State) -> None:
    """Keep the running jobs, for the account at the next decision."""
    c, rows = s.clock, 0
    for k in range(c.expected_first, c.expected_first + min(c.running, decider.running.shape[0])):
        job = s.expected[k]
        decider.running[rows, 0], decider.running[rows, 1] = job.processors, job.end_s
        decider.running[rows, 2] = _slot(decider, whole(s.jobs[job.job].user))
        decider.running[rows, 3], decider.running[rows, 4] = job.start_s, job.job
        rows += 1
    decider.memory[_RUNNING], decider.memory[_JOBS_WAIT] = rows, 1.0 if c.first < c.last else 0.0


@compiled
def _rank(decider: Multifactor, s: State) -> int:
    """Write the scores of the waiting jobs; return the queue position of the highest priority, first in a tie.

    A blocked job of partitions of its own holds back only jobs that compete with it.
    """
    c, weights, memory = s.clock, decider.weights, decider.memory
    for i in range(c.first, c.last):
        _slot(decider, whole(s.jobs[s.queue.job[i]].user))  # all users count, also those who have used nothing
    total = s.machine.totals.processors
    best = -1
    for i in range(c.first, c.last):
        number = s.queue.job[i]
        job = s.jobs[number]
        age = min(1.0, (c.now_s - job.submit_s) / weights[_MAX_AGE_S])
        size = job.processors / total
        if weights[_FAVOR_SMALL] > 0.0:
            size = 1.0 - size
        fair = 1.0
        if memory[_TOTAL] > 0.0:
            fair = 2.0 ** (-decider.usage[_slot(decider, whole(job.user))] / memory[_TOTAL] * memory[_USERS])
        priority = weights[_AGE] * age + weights[_FAIR_SHARE] * fair + weights[_SIZE] * size
        if decider.partition.shape[0] > 0:
            priority += decider.partition[number]
        priority = np.floor(priority + _ROUNDING)
        if decider.tier.shape[0] > 0:
            priority += _TIER * decider.tier[number]
        s.queue.score[i] = -priority
        if can_be_next(s, whole(number)) and (best < 0 or s.queue.score[i] < s.queue.score[best]):
            best = i
    return int(best)


@decide.register(Multifactor)
def start_highest_priority(decider: Multifactor, s: State) -> None:
    """Update usage and priorities, and start the job with the highest priority."""
    _account(decider, s)
    apply(s, start_now(_rank(decider, s)))
    _remember(decider, s)


def multifactor_policy(weights: PriorityWeights | None) -> CompiledPolicy:
    """Slurm's multifactor priority with some weights; None: those of the cluster, see `Cluster.priority`."""

    def of_partitions(workload: Workload, cluster: Cluster) -> tuple[Priority, Floats, Floats]:
        priority: Priority = getattr(cluster, "priority", None) or Priority()
        return priority, *_of_partitions(workload, priority, weights or priority.weights)

    def of_rows(decider: Multifactor, workload: Workload, cluster: Cluster, _: Ints) -> Multifactor:
        partition, tier = of_partitions(workload, cluster)[1:]
        return decider._replace(partition=partition, tier=tier)

    def begin(workload: Workload, cluster: Cluster, _: Rules) -> Multifactor:
        priority, partition, tier = of_partitions(workload, cluster)
        used = weights or priority.weights
        return Multifactor(
            np.array([used.age, used.fair_share, used.job_size, used.max_age_s, used.decay_half_life_s,
                      used.favor_small], dtype=np.float64),
            partition, tier, np.full(SLOTS, _EMPTY), np.zeros(SLOTS), np.array([np.nan, 0.0, 0.0, 0.0, 0.0, 0.0]),
            np.zeros((min(cluster.processors, len(workload) or _MOST_RUNNING), 5)),
        )  # fmt: skip

    return CompiledPolicy(name="slurm-multifactor", begin=begin, of_rows=of_rows)


def _of_partitions(workload: Workload, priority: Priority, weights: PriorityWeights) -> tuple[Floats, Floats]:
    """Weight x factor and rank of the tier of each job's partition; empty where all are equal."""
    nothing, known = np.zeros(0), priority.partitions
    tiers = sorted({each.tier for each in known})
    if not weights.partition and len(tiers) < 2:
        return nothing, nothing
    if not known:
        problem = "weights partitions, but the cluster states no priority of its partitions"
        raise InputError(problem, field="slurm-multifactor", fix="give the slurm.conf as the cluster")
    largest = max(1, *(each.job_factor for each in known))
    named = {each.name: each for each in known}
    default = next((each for each in known if each.default), None)
    numbers, row = np.unique(workload.partition, return_inverse=True)
    names = workload.names.get("partition", {})
    of = [named.get(names.get(number, "")) or default for number in numbers.tolist()]
    factor = np.array([0.0 if each is None else weights.partition * each.job_factor / largest for each in of])
    tier = np.array([0 if each is None else tiers.index(each.tier) for each in of], dtype=np.float64)
    return (factor[row] if weights.partition else nothing), (tier[row] if len(tiers) > 1 else nothing)
