"""Conservative backfilling: every job gets a reservation at submission, and no reservation is moved later.

Source: Mu'alem & Feitelson 2001. When a job ends before its requested time, the plan is compressed: in order of the
policy's score, each waiting job gives up its reservation and takes the earliest slot, which is never later than the old
one. If jobs do not exceed their requests (``overrun = "kill"``), no job starts later than first promised.

On nodes a reservation is one of nodes: the first ones, in the fixed order of the placement, that have room for as long
as requested beside the other reservations. A job that is due takes, in the order of the placement then, nodes that are
free until its requested end beside the reservations of all others; those that it reserved are among them. Where what
is powered varies, a timeline of that stands beside the plan of the nodes, and a start is one for which both have room.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.backfill import leaves_room, take_from_head
from greenbatch.engine.capacity.admission import is_admitted
from greenbatch.engine.capacity.units import is_fixed, units_of
from greenbatch.engine.codes import BY_RULE
from greenbatch.engine.decide import Rule, decide, fill_scores
from greenbatch.engine.limits import can_start
from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.machine.power_states import longest_boot_s
from greenbatch.engine.program import CompiledPolicy
from greenbatch.engine.queue import rank_queue
from greenbatch.engine.records import Ints, Job
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, start_now, wait_until
from greenbatch.engine.timeline import (
    earliest_s,
    forget_past,
    occupy,
    promise,
    reserve,
    timeline_of_running,
)
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.policies.compiled.foreseen import is_limited
from greenbatch.policies.compiled.node_plan import (
    ConservativeOnNodes,
    choose_nodes,
    fits_beside_plan,
    forget_past_steps,
    hold,
    lay_out,
    moved,
    node_plan,
    nodes_from_s,
    occupy_shares,
)
from greenbatch.workload import Workload


class Conservative(NamedTuple):
    """Reservations are the planned starts of the waiting jobs; ``scratch.timeline`` is kept between decisions."""

    rule: Rule
    """Order of compression, if scores change."""


@compiled_small
def lasts_s(s: State, job: Job) -> float:
    """For how long a reservation lasts: as requested, and its nodes may have to boot first. [s]"""
    return float(job.requested_s + longest_boot_s(s.machine))


@compiled
def _hold_units(s: State, count: int, number: int, sign: int) -> int:
    """Take a reservation from the timeline (-1), or give it back (1); return the new number of rows."""
    job = s.jobs[number]
    if not job.planned_s < np.inf:  # or NaN
        return count
    processors, gpus = units_of(s.capacity, number, whole(job.processors))
    from_s = max(job.planned_s, s.clock.now_s)
    return occupy(s.scratch.timeline, count, from_s, from_s + lasts_s(s, job), -sign * processors, -sign * gpus)


@compiled
def _timeline_of_all(s: State) -> int:
    """Reset the timeline to the running jobs and all reservations; return its number of rows."""
    count = timeline_of_running(s, True)
    for i in range(s.clock.first, s.clock.last):
        count = _hold_units(s, count, whole(s.queue.job[i]), -1)
    return count


@compiled_small
def _room_from_s(s: State, count: int, number: int, from_s: float) -> float:
    """Earliest time, not before another, from which the timeline has room for a job. [s]"""
    job = s.jobs[number]
    processors, gpus = units_of(s.capacity, number, whole(job.processors))
    return earliest_s(s.scratch.timeline, count, from_s, processors, gpus, lasts_s(s, job))


@compiled
def _plan(s: State, count: int, number: int) -> int:
    """Reserve the earliest slot for a job that has none; return the new number of rows."""
    s.jobs[number].planned_s = _room_from_s(s, count, number, s.clock.now_s)
    return _hold_units(s, count, number, -1)


@compiled
def _compress(s: State) -> int:
    """Move reservations earlier, never later, in order of score; return the number of rows of the new timeline."""
    count = _timeline_of_all(s)
    for k in range(rank_queue(s.queue, s.clock, s.scratch.ranked)):
        number = whole(s.scratch.ranked[k].job)
        if not np.isnan(s.jobs[number].planned_s):
            count = _plan(s, _hold_units(s, count, number, 1), number)
    return count


@compiled
def start_due(s: State) -> float:
    """Start the jobs whose reservations are due, in order of submission; return the next reservation. [s]"""
    c, i, next_s, head, limited = s.clock, s.clock.first, np.inf, -1, is_limited(s)
    while i < c.last:
        number = whole(s.queue.job[i])
        job = s.jobs[number]
        if job.planned_s <= c.now_s and _may_start(s, number, head):
            first = c.first
            apply(s, start_now(i))
            i += c.first - first  # 1 if the jobs before it have moved
        else:
            if job.planned_s > c.now_s:
                next_s = min(next_s, job.planned_s)
            elif job.planned_s <= c.now_s and head < 0 and limited:
                head = _hold(s, number)
            i += 1
    return float(next_s)


@compiled_small
def _hold(s: State, number: int) -> int:
    """Reserve what a job that is due lacks, such as power under a limit; later ones must leave it that."""
    reserve(s, number)
    return number


@compiled_small
def _may_start(s: State, number: int, head: int) -> bool:
    """Whether a job that is due can start, beside one that was due before and cannot; -1 for none."""
    processors = whole(s.jobs[number].processors)
    if not can_start(s, number, processors):
        return False
    if head < 0 or s.clock.now_s + lasts_s(s, s.jobs[number]) <= s.clock.shadow_s:
        return True
    if not leaves_room(s, number, processors, head):
        return False
    take_from_head(s, number, processors)
    return True


@compiled_small
def is_out_of_date(s: State) -> bool:
    """Whether a job has ended at another time than requested or runs past its end, or what is powered varies."""
    c = s.clock
    overruns = c.running > 0 and s.expected[c.expected_first].end_s < c.now_s
    return bool(c.early or overruns) or not is_fixed(s.capacity)


@compiled_small
def first_without_plan(s: State) -> int:
    """Queue position of the first job that has come since the last decision."""
    i = s.clock.last
    while i > s.clock.first and np.isnan(s.jobs[s.queue.job[i - 1]].planned_s):
        i -= 1
    return whole(i)


@compiled_small
def _first_to_plan(s: State) -> int:
    """Queue position from which jobs may lack a reservation."""
    return first_without_plan(s) if is_fixed(s.capacity) else whole(s.clock.first)


@compiled_small
def _lacks_plan(s: State, number: int) -> bool:
    """Whether a waiting job is to be given a reservation: it has none, and is ready."""
    return bool(np.isnan(s.jobs[number].planned_s) and is_admitted(s.capacity, number))


@compiled_small
def _wait_for_next(s: State, next_s: float) -> None:
    """Wait for the next reservation [s], unless jobs have become ready, because others have started, that have none."""
    for i in range(_first_to_plan(s), s.clock.last):
        if _lacks_plan(s, whole(s.queue.job[i])):
            return
    apply(s, wait_until(next_s))


@decide.register(Conservative)
def start_reserved(decider: Conservative, s: State) -> None:
    """Reserve for new jobs, compress after ends at other times than requested, and start the jobs that are due."""
    plan_by_counts(s, decider.rule)


@compiled_small
def plan_by_counts(s: State, rule: Rule) -> None:
    """Make a decision where the number of free processors says whether jobs fit."""
    c, timeline = s.clock, s.scratch.timeline
    if is_out_of_date(s):
        if s.rules.ranking == BY_RULE:
            fill_scores(s, rule)
        count = _compress(s)
    elif c.slots == 0:
        count = _timeline_of_all(s)
    else:
        count = forget_past(timeline, c.slots, c.now_s)
    c.early = 0
    for k in range(_first_to_plan(s), c.last):
        number = whole(s.queue.job[k])
        if not _lacks_plan(s, number):
            continue
        count = _plan(s, count, number)
        if s.jobs[number].planned_s < np.inf:
            promise(s, number, s.jobs[number].planned_s)
    c.slots = count
    _wait_for_next(s, start_due(s))


@decide.register(ConservativeOnNodes)
def start_reserved_on_nodes(decider: ConservativeOnNodes, s: State) -> None:
    """As on a pool if jobs just take processors; otherwise every reservation is one of nodes."""
    nodes: Any = s.machine
    if nodes.counts.is_plain:
        plan_by_counts(s, decider.rule)
    else:
        _plan_on_nodes(decider, s, nodes)


@compiled
def _plan_on_nodes(plan: ConservativeOnNodes, s: State, machine: Nodes) -> None:
    c = s.clock
    plan.totals.boot_s = longest_boot_s(machine)
    if is_out_of_date(s):
        if s.rules.ranking == BY_RULE:
            fill_scores(s, plan.rule)
        _lay_out_all(plan, s, machine)
        for k in range(rank_queue(s.queue, c, s.scratch.ranked)):
            number = whole(s.scratch.ranked[k].job)
            if not np.isnan(s.jobs[number].planned_s):
                _keep(plan, s, number, 1)
                _reserve(plan, s, machine, number)
    elif plan.totals.used == 0 or first_without_plan(s) == c.first:  # no reservation stands: what boots take is known
        _lay_out_all(plan, s, machine)
    else:
        forget_past_steps(plan, c.now_s)
    c.early = 0
    for i in range(_first_to_plan(s), c.last):
        number = whole(s.queue.job[i])
        if not _lacks_plan(s, number):
            continue
        _reserve(plan, s, machine, number)
        if s.jobs[number].planned_s < np.inf:
            promise(s, number, s.jobs[number].planned_s)
    _wait_for_next(s, _start_due_on_nodes(plan, s, machine))


@compiled
def _lay_out_all(plan: ConservativeOnNodes, s: State, machine: Nodes) -> None:
    """Reset the plan to the running jobs and all reservations; beside it, what will be powered is a timeline."""
    lay_out(plan, machine, s.expected, s.clock)
    s.clock.slots = 1 if is_fixed(s.capacity) else timeline_of_running(s, False)  # plans of nodes know no outages
    for i in range(s.clock.first, s.clock.last):
        number = whole(s.queue.job[i])
        if not np.isnan(s.jobs[number].planned_s):
            if plan.reserved_nodes[number] == 0:  # it has reserved processors of any nodes, as all jobs seen until now
                choose_nodes(plan, machine, number, s.jobs[number])
            _keep(plan, s, number, -1)


@compiled_small
def _keep(plan: ConservativeOnNodes, s: State, number: int, sign: int) -> None:
    """Take a reservation from the plan and from what will be powered (-1), or give it back (1)."""
    hold(plan, number, s.jobs[number], s.clock.now_s, sign)
    if not is_fixed(s.capacity):
        s.clock.slots = _hold_units(s, whole(s.clock.slots), number, sign)


@compiled
def _reserve(plan: ConservativeOnNodes, s: State, machine: Nodes, number: int) -> None:
    """Reserve the earliest start at which nodes have room, within what will be powered, as long as requested."""
    job = s.jobs[number]
    job.planned_s = nodes_from_s(plan, machine, number, job, s.clock.now_s)
    if not is_fixed(s.capacity):
        from_s = -np.inf
        while from_s < job.planned_s:
            from_s = job.planned_s
            powered_s = _room_from_s(s, whole(s.clock.slots), number, from_s)
            job.planned_s = nodes_from_s(plan, machine, number, job, powered_s) if powered_s > from_s else from_s
    choose_nodes(plan, machine, number, job)
    _keep(plan, s, number, -1)


@compiled
def _start_due_on_nodes(plan: ConservativeOnNodes, s: State, machine: Nodes) -> float:
    """`start_due` on nodes: a job takes those that the placement prefers, beside the reservations of all others. [s]"""
    c, i, next_s, head, limited = s.clock, s.clock.first, np.inf, -1, is_limited(s)
    machine.counts.is_planned = 1
    while i < c.last:
        number = whole(s.queue.job[i])
        job = s.jobs[number]
        first, until_s = c.first, c.now_s + lasts_s(s, job)
        is_due = job.planned_s <= c.now_s
        if is_due:
            hold(plan, number, job, c.now_s, 1)
            if fits_beside_plan(plan, machine, number, c.now_s, until_s) and _may_start(s, number, head):
                apply(s, start_now(i))
                occupy_shares(plan, machine, number, c.now_s, until_s)
                i += c.first - first  # 1 if the jobs before it have moved
                continue
            hold(plan, number, job, c.now_s, -1)
            if head < 0 and limited:
                machine.counts.is_planned = 0
                head = _hold(s, number)
                machine.counts.is_planned = 1
        elif job.planned_s > c.now_s:
            next_s = min(next_s, job.planned_s)
        i += 1
    machine.counts.is_planned = 0  # a suspended job resumes wherever there is room
    return float(next_s)


def _begin(workload: Workload, cluster: Cluster, _: Rules) -> Conservative | ConservativeOnNodes:
    from greenbatch.engine.entry_points import no_rule

    rule = no_rule()  # the program's rule takes its place
    return node_plan(rule, workload, cluster) if cluster.on_nodes else Conservative(rule)


def _of_rows(decider: Any, workload: Workload, cluster: Cluster, before: Ints) -> Any:
    """A plan for the jobs of a view, with the reservations of those that had one at the view before."""
    return decider if isinstance(decider, Conservative) else moved(decider, workload, cluster, before)


CONSERVATIVE = CompiledPolicy(name="conservative", begin=_begin, of_rows=_of_rows)
