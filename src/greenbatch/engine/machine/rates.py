"""Contention for memory bandwidth: tasks of one node slow each other down.

``irmasim-v1`` is the model of IRMaSim, fitted to processors with four cores. It has a defect: one of its terms changes
sign at ``dc / dd`` tasks (about eight), so that from ten tasks on, contention disappears. ``repaired`` keeps that term
at its value for four tasks; its speed never rises with the number of tasks or with their demand. With it, a part of a
job that has done its work waits for the other parts, and asks for bandwidth until the job ends.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.machine.node_tables import ANY, V1, Node, Nodes, Share
from greenbatch.engine.records import Clock, Ending, Table
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.machine_code.variants import variant

FITTED_TASKS = 4
"""Number of tasks that the model was fitted to."""


@compiled_small
def _smooth_step(z: float) -> float:
    """1 below 0, 0 above 1, and smooth between."""
    if z < 0.0:
        return 1.0
    return 0.0 if z > 1.0 else 1.0 - (6.0 * z**5 - 15.0 * z**4 + 10.0 * z**3)


@compiled_small
def slowdown(node: Node, model: int, own: float, total: float, tasks: int) -> float:
    """Speed of a task relative to that of the task alone.

    Args:
        node: its node.
        model: a value of `CONTENTIONS`.
        own: memory bandwidth that the task asks for. [MB/s]
        total: memory bandwidth that all tasks of the node ask for. [MB/s]
        tasks: number of tasks of the node.
    """
    if total < node.c:
        return 1.0
    others = tasks - 1.0
    fitted = others if model == V1 else min(others, FITTED_TASKS - 1.0)
    width = node.dc - fitted * node.dd
    steep = _smooth_step((own - (node.da - others) * node.db) / width) if width != 0.0 else 0.0
    share = 0.6 * others / (1.0 + 0.6 * others)
    least = steep * share + 1.0 / (1.0 + 0.6 * others)
    if model == V1:
        speed = least if total > (least + node.b * node.c - 1.0) / node.b else 1.0 + node.b * (total - node.c)
        return float(np.round(speed * 1e9) / 1e9)
    return min(1.0, max(least, 1.0 + node.b * (total - node.c)))


@variant(Nodes, otherwise=False)
def run_times_vary(machine: Nodes) -> bool:
    """Whether the run time of a job depends on where and beside what it runs, so that it is known when the job ends.

    Nodes have speeds, tasks slow each other down, and nodes boot; a pool has nothing of that.
    """
    return True


@variant(Nodes)
def expect_ends(machine: Nodes, ending: Table[Ending], clock: Clock, arrival_s: float) -> None:
    """Compute the ends of running jobs before the next event, if they are not known; the next submission is given.

    IRMaSim computes ends anew before every event; otherwise they are known.
    """
    if machine.counts.contention == V1:
        _ends_by_operations(machine, ending, clock, arrival_s)


@compiled
def _ends_by_operations(machine: Nodes, ending: Table[Ending], clock: Clock, arrival_s: float) -> None:
    """Ends of running jobs; the time that is left until then, not the instant, says whether a submission is earlier.

    What is left until the next event is kept as it is, for the difference of two instants would round it. A job whose
    operations are done by rounding at the very instant of a submission is noticed at the next end only.
    """
    first, stop, unfinished = clock.ending_first, clock.ending_first + clock.running, 0
    counts = machine.counts
    until_arrival_s = arrival_s - counts.summed_s
    counts.step_s, counts.step_to_s = until_arrival_s, arrival_s
    for i in range(first, stop):
        left_s, row = -1.0, whole(machine.demands[ending[i].job].first)
        while row >= 0:
            share = machine.shares[row]
            if share.work_s > 0.0:
                operations = np.round(share.work_s * machine.counts.ops_per_s)
                left_s = max(left_s, operations / _ops_per_s(machine, share))
            row = whole(share.of_job)
        if left_s < 0.0:
            ending[i].end_s = -np.inf if ending[i].end_s <= clock.now_s else np.inf
        elif left_s == until_arrival_s:
            ending[i].end_s = arrival_s
        elif left_s < until_arrival_s:
            ending[i].end_s = min(counts.summed_s + left_s, np.nextafter(arrival_s, -np.inf))
        else:
            ending[i].end_s = max(counts.summed_s + left_s, np.nextafter(arrival_s, np.inf))
        if 0.0 < left_s < counts.step_s:
            counts.step_s, counts.step_to_s = left_s, max(clock.now_s, ending[i].end_s)
        unfinished += left_s > 0.0
    for i in range(first, stop):
        if ending[i].end_s == -np.inf or (ending[i].end_s == np.inf and unfinished == 0):
            ending[i].end_s = clock.now_s
        end_s = min(ending[i].end_s, ending[i].requested_end_s) if machine.counts.kill else ending[i].end_s
        _move(machine, ending, first, i + 1, i, end_s, True)  # those below are not in order yet


@variant(Nodes)
def advance_work(machine: Nodes, ending: Table[Ending], clock: Clock, from_s: float, is_end: bool) -> None:
    """Bring the running jobs up to date after the clock has moved.

    IRMaSim counts whole operations at every event; otherwise work is brought up to date when rates change.

    Args:
        machine: the machine.
        ending: running jobs by actual end.
        clock: the clock.
        from_s: where the clock was before. [s]
        is_end: a job ends now.
    """
    if machine.counts.contention == V1:
        _count_operations(machine, ending, clock, from_s, is_end)


@compiled
def _count_operations(machine: Nodes, ending: Table[Ending], clock: Clock, from_s: float, is_end: bool) -> None:
    """Let all running tasks do a whole number of operations."""
    counts = machine.counts
    length_s = counts.step_s if clock.now_s == counts.step_to_s else clock.now_s - from_s
    counts.summed_s = clock.now_s if np.isnan(counts.summed_s) else counts.summed_s + length_s
    ops_per_s, now_s = counts.ops_per_s, clock.now_s
    first, stop = clock.ending_first, clock.ending_first + clock.running
    for i in range(first, stop):
        is_done, row = True, whole(machine.demands[ending[i].job].first)
        while row >= 0:
            share = machine.shares[row]
            share.since_s = now_s
            if share.work_s > 0.0:
                operations = np.round(share.work_s * ops_per_s) - np.round(_ops_per_s(machine, share) * length_s)
                share.work_s = max(0.0, operations / ops_per_s)
                is_done = is_done and share.work_s == 0.0
            row = whole(share.of_job)
        if is_done:
            _move(machine, ending, first, i + 1, i, now_s if is_end else np.inf, True)


@compiled_small
def _ops_per_s(machine: Nodes, share: Share) -> float:
    node = machine.nodes[share.node]
    return float(node.gflops * 1e3 * 1e6 * share.slowdown * machine.demands[share.job].pace)


@compiled_small
def _first_node(machine: Nodes, job: int) -> int:
    return whole(machine.shares[machine.demands[job].first].node)


@compiled_small
def _move(machine: Nodes, ending: Table[Ending], first: int, stop: int, row: int, end_s: float, by_node: bool) -> None:
    """Give a row a new end, and move it in a table that is otherwise sorted by end; by node for equal ends, or not."""
    moved = ending[row]
    requested_end_s, job, processors = moved.requested_end_s, moved.job, moved.processors
    at, node = row, _first_node(machine, whole(job)) if by_node else ANY
    while at > first and (
        ending[at - 1].end_s > end_s
        or (by_node and ending[at - 1].end_s == end_s and _first_node(machine, whole(ending[at - 1].job)) > node)
    ):
        ending[at] = ending[at - 1]
        at -= 1
    while at + 1 < stop and ending[at + 1].end_s < end_s:
        ending[at] = ending[at + 1]
        at += 1
    put = ending[at]
    put.end_s, put.requested_end_s, put.job, put.processors = end_s, requested_end_s, job, processors


@variant(Nodes)
def update_ends(machine: Nodes, ending: Table[Ending], clock: Clock) -> None:
    """Move the ends of running jobs whose rates have changed by the last start or end.

    Without contention, rates never change.
    """
    if machine.counts.contention:
        _slow_down(machine, ending, clock)


@compiled
def _slow_down(machine: Nodes, ending: Table[Ending], clock: Clock) -> None:
    """Bring the work on the touched nodes up to date, and give their jobs new rates and ends."""
    now_s, model = clock.now_s, whole(machine.counts.contention)
    for k in range(machine.counts.touched):
        node = machine.nodes[machine.lists[k].touched]
        row = whole(node.first)
        while row >= 0:
            share = machine.shares[row]
            share.work_s = max(0.0, share.work_s - share.rate * max(0.0, now_s - share.since_s))
            share.since_s = max(share.since_s, now_s)
            row = whole(share.of_node)
        total, tasks = _by_core(machine, node) if model == V1 else _by_share(machine, node)
        node.bandwidth = total
        row = whole(node.first)
        while row >= 0:
            share = machine.shares[row]
            if share.work_s > 0.0 or model != V1:
                share.slowdown = slowdown(node, model, share.bandwidth, total, tasks)
                share.rate = node.speed * machine.demands[share.job].pace * share.slowdown
            row = whole(share.of_node)
    for k in range(machine.counts.touched):
        row = whole(machine.nodes[machine.lists[k].touched].first)
        while row >= 0:
            _move_end(machine, ending, clock, whole(machine.shares[row].job))
            row = whole(machine.shares[row].of_node)


@compiled_small
def _by_share(machine: Nodes, node: Node) -> tuple[float, int]:
    """Memory bandwidth that the tasks of a node ask for [MB/s], and their number."""
    total, tasks, row = 0.0, 0, whole(node.first)
    while row >= 0:
        share = machine.shares[row]
        if machine.demands[share.job].is_booting == 0:
            total += share.bandwidth * share.processors
            tasks += share.processors
        row = whole(share.of_node)
    return total, whole(tasks)


@compiled_small
def _by_core(machine: Nodes, node: Node) -> tuple[float, int]:
    """The same as IRMaSim adds it up: core by core, without tasks that are done.

    Nodes that ask for the same differ by rounding, and the placement ``high-mem-bw`` tells them apart by that.
    """
    total, tasks = 0.0, 0
    for core in range(node.first_core, node.first_core + node.processors):
        row = whole(machine.cores[core])
        if row >= 0 and machine.shares[row].work_s > 0.0:
            total += machine.shares[row].bandwidth
            tasks += 1
    return total, whole(tasks)


@compiled_small
def _move_end(machine: Nodes, ending: Table[Ending], clock: Clock, job: int) -> None:
    """Move the row of a running job to when its last part ends at the present rates."""
    first, stop = clock.ending_first, clock.ending_first + clock.running
    at, end_s, part = first, -np.inf, whole(machine.demands[job].first)
    while at < stop and ending[at].job != job:
        at += 1
    while part >= 0:
        share = machine.shares[part]
        end_s = max(end_s, share.since_s + share.work_s / share.rate)
        part = whole(share.of_job)
    if machine.counts.kill:
        end_s = min(end_s, ending[at].requested_end_s)
    _move(machine, ending, first, stop, at, end_s, False)
