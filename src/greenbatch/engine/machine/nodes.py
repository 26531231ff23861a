"""Nodes that jobs are placed on: what fits where, what a job takes, and what a blocked job leaves to others.

A job takes chunks, each of which is on one node: as many as it asks for nodes, or one per processor if it may take
those of any nodes. `Demand` says what a chunk is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.engine.machine.node_tables import (
    ANY,
    OFF,
    ON,
    V1,
    Demand,
    Node,
    Nodes,
    most_of_node_w,
    part_w,
    waking_w,
)
from greenbatch.engine.machine.placement import RANDOM, key
from greenbatch.engine.machine.power_states import dim, draw, idle_load_w, power_up, rest
from greenbatch.engine.machine.resources import fits, fits_beside, give, take
from greenbatch.engine.ranked import sort_ranked
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.machine_code.variants import variant


@compiled_small
def chunks_in(node: Node, demand: Demand, processors: int, gpus: int, memory_mb: float) -> int:
    """Number of chunks of a job that some of a node has room for."""
    if node.partitions & demand.partitions == 0 or (demand.exclusive and processors < node.processors):
        return 0
    if demand.is_spread:
        return 1 if processors >= demand.processors and gpus >= demand.gpus and memory_mb >= demand.memory_mb else 0
    if demand.memory_mb > 0.0:
        processors = min(processors, whole(int(memory_mb / demand.memory_mb)))
    return processors


@compiled_small
def hosts(node: Node, demand: Demand) -> int:
    """Number of chunks of a job that a node has room for now."""
    return chunks_in(node, demand, whole(node.free), whole(node.free_gpus), node.free_memory_mb)


@compiled_small
def hosts_later(node: Node, demand: Demand) -> int:
    """Number of chunks of a job that a node has room for beside the reservation."""
    return chunks_in(node, demand, whole(node.left), whole(node.left_gpus), node.left_memory_mb)


@compiled_small
def can_host(node: Node, demand: Demand, outlives: bool) -> int:
    """Number of chunks that a job may put on a node now, and keep there beside the reservation if it outlives that."""
    now = hosts(node, demand)
    return min(now, hosts_later(node, demand)) if outlives and now > 0 else now


@compiled
def _is_room(machine: Nodes, demand: Demand, outlives: bool) -> bool:
    found = 0
    for number in range(machine.nodes.shape[0]):
        found += can_host(machine.nodes[number], demand, outlives)
        if found >= demand.chunks:
            return True
    return False


@fits.register(Nodes)
def fits_on_nodes(machine: Nodes, job: int, processors: int, now_s: float) -> bool:
    """Enough nodes have room."""
    if processors > machine.totals.free:
        return False
    return bool(machine.counts.is_plain) or _fits(machine, job)


@compiled
def _fits(machine: Nodes, job: int) -> bool:
    """Whether enough nodes have room; counts decide where they can, so that a scan of the nodes is rare."""
    demand = machine.demands[job]
    if demand.is_spread and machine.lists[demand.processors].at_least < demand.chunks:
        return False
    is_simple = demand.exclusive == 0 and demand.memory_mb == 0.0 and demand.gpus == 0
    return bool((is_simple and machine.counts.is_uniform) or _is_room(machine, demand, False))


@fits_beside.register(Nodes)
def fits_beside_head(machine: Nodes, job: int, processors: int, spare: int) -> bool:
    """Enough nodes have room now, and will have when the reservation begins."""
    return processors <= spare if machine.counts.is_plain else _is_room(machine, machine.demands[job], True)


@compiled_small
def _resize(machine: Nodes, number: int, processors: int) -> None:
    """Change the free processors of a node."""
    node = machine.nodes[number]
    before = whole(node.free)
    after = before + processors
    for p in range(after + 1, before + 1):
        machine.lists[p].at_least -= 1
    for p in range(before + 1, after + 1):
        machine.lists[p].at_least += 1
    node.free = after
    machine.totals.free += processors


@compiled_small
def _taken(node: Node, demand: Demand, processors: int) -> tuple[int, int, float]:
    """Processors, GPUs and memory of a node that nobody else can use beside a part of a job: all if it is exclusive."""
    if demand.exclusive:
        return whole(node.processors), whole(node.gpus), node.memory_mb
    return processors, whole(demand.gpus), demand.memory_mb * (1 if demand.is_spread else processors)


@compiled_small
def leave(node: Node, demand: Demand, processors: int) -> None:
    """Take a part of a job from what the reservation leaves of a node."""
    taken, gpus, memory_mb = _taken(node, demand, processors)
    node.left -= taken
    node.left_gpus -= gpus
    node.left_memory_mb -= memory_mb


@compiled_small
def _put(machine: Nodes, job: int, number: int, processors: int, now_s: float) -> None:
    """Let a part of a job occupy a node."""
    demand, node, counts = machine.demands[job], machine.nodes[number], machine.counts
    taken, gpus, memory_mb = _taken(node, demand, processors)
    row = counts.first_unused
    share = machine.shares[row]
    counts.first_unused = share.of_job
    share.job, share.node, share.processors, share.taken, share.gpus = job, number, processors, taken, gpus
    speed = node.speed * demand.pace
    share.memory_mb, share.work_s, share.rate, share.since_s = memory_mb, demand.work_s, speed, now_s
    share.slowdown = 1.0
    share.bandwidth = _bandwidth(machine, demand, node)
    if counts.contention == V1:
        _occupy(machine, node, row)
    share.of_job, share.of_node = demand.first, node.first
    demand.first = node.first = row
    _resize(machine, number, -taken)
    node.free_gpus -= gpus
    machine.totals.free_gpus -= gpus
    node.free_memory_mb -= memory_mb
    node.jobs += 1
    _touch(machine, number)
    placed = machine.placed[counts.placed]
    placed.job, placed.node, placed.processors, placed.gpus = job, number, processors, demand.gpus
    counts.placed += 1


@compiled_small
def _bandwidth(machine: Nodes, demand: Demand, node: Node) -> float:
    """Memory bandwidth that each processor of a job asks for on a node; IRMaSim reckons by operations. [MB/s]"""
    if machine.counts.contention == V1:
        operations = np.round(demand.work_s * machine.counts.ops_per_s)
        return float(demand.volume_mb / (operations / (node.gflops * 1e3 * 1e6 * demand.pace)))
    if demand.volume_mb == 0.0 or demand.work_s <= 0.0:  # perhaps suspended when its work was done
        return 0.0
    return float(demand.volume_mb / (demand.work_s / (node.speed * demand.pace)))


@compiled_small
def _occupy(machine: Nodes, node: Node, row: int) -> None:
    """Let a share run on the first processors of its node on which nothing runs."""
    core, left = whole(node.first_core), whole(machine.shares[row].processors)
    while left > 0:
        if machine.cores[core] < 0:
            machine.cores[core] = row
            left -= 1
        core += 1


@compiled_small
def _vacate(machine: Nodes, node: Node, row: int) -> None:
    """Let a share no longer run on any processor."""
    for core in range(node.first_core, node.first_core + node.processors):
        if machine.cores[core] == row:
            machine.cores[core] = -1


@compiled_small
def _touch(machine: Nodes, number: int) -> None:
    """Note that the jobs of a node may have changed rates."""
    if machine.counts.contention:
        machine.lists[machine.counts.touched].touched = number
        machine.counts.touched += 1


@compiled_small
def part_of(demand: Demand, room: int, left: int) -> int:
    """Processors that the next part of a job takes on a node with room for some chunks.

    Args:
        demand: what the job asks for.
        room: chunks that the node has room for.
        left: chunks that have no place yet.
    """
    if demand.is_spread == 0:
        return min(room, left)
    done = demand.chunks - left
    return whole(demand.processors) if done < demand.larger else whole(demand.processors) - 1


@compiled
def _candidates(machine: Nodes, demand: Demand, outlives: bool) -> int:
    """Write the nodes that can host a part of a job to ``ranked``, in the order of a placement whose keys change."""
    machine.counts.draws += machine.counts.placement == RANDOM
    ranked, count, best = machine.ranked, 0, 0
    for number in range(machine.nodes.shape[0]):
        if can_host(machine.nodes[number], demand, outlives) > 0:
            ranked[count].key = key(machine, number, demand)
            ranked[count].job = number
            if ranked[count].key < ranked[best].key:
                best = count
            count += 1
    if demand.is_spread and demand.chunks == 1:
        ranked[0].job = ranked[best].job
        return 1
    sort_ranked(ranked, count)
    return count


@compiled_small
def _is_wanted(machine: Nodes, wanted: int, number: int) -> bool:
    """Whether a node is among the first ones that are wanted."""
    for k in range(wanted):  # noqa: SIM110  (any() would require reference counting)
        if machine.lists[k].wanted == number:
            return True
    return False


class Tried(NamedTuple):
    """What a job would find on its nodes, and change there."""

    speed: float
    """Of the slowest of its nodes; the only one that counts if the job is put there."""
    rise_w: float
    """What they would draw more. [W]"""
    most_w: float
    """By how much the most that they may draw would grow, see `machine.at_most`. [W]"""
    boots_j: float
    """Energy of their boots. [J]"""
    boots_s: float
    """How long these take. [s]"""


@compiled
def place(machine: Nodes, job: int, now_s: float, outlives: bool, is_tried: bool) -> Tried:
    """Put a job on nodes in the order of the placement, or only see which it would take.

    Args:
        machine: the machine.
        job: row of the job, which must fit.
        now_s: the clock. [s]
        outlives: it takes only what the reservation leaves.
        is_tried: nothing is taken.

    """
    demand, counts = machine.demands[job], machine.counts
    draws, wanted, is_listed = counts.draws, whole(counts.wanted), counts.is_listed
    count = machine.nodes.shape[0] if is_listed else _candidates(machine, demand, outlives)
    left, slowest, k = whole(demand.chunks), np.inf, -wanted
    added_w = 0.0 if demand.is_modelled else demand.power_w * demand.draw
    most_w, boots_j, boots_s = added_w, 0.0, 0.0
    while left > 0 and k < count:
        most = ANY
        if k < 0:
            number, most = whole(machine.lists[k + wanted].wanted), whole(machine.lists[k + wanted].wanted_most)
        else:
            number = whole(machine.lists[k].order) if is_listed else whole(machine.ranked[k].job)
        k += 1
        node = machine.nodes[number]
        chunks = min(most, can_host(node, demand, outlives))
        once = demand.is_spread or is_tried
        if chunks == 0 or (once and _is_wanted(machine, min(wanted, wanted + k - 1), number)):  # it has a part already
            continue
        processors = part_of(demand, chunks, left)
        left -= 1 if demand.is_spread else processors
        slowest = min(slowest, node.speed)
        if is_tried:
            added_w += waking_w(node) if node.drawing == 0 else 0.0
            if node.phase != ON:
                boots_s = max(boots_s, node.boot_s + (0.0 if node.phase == OFF else node.stop_s))
                boots_j += node.boot_w * node.boot_s
            drawn_w = part_w(node, demand, processors) if demand.is_modelled else 0.0
            added_w += drawn_w
            if counts.on_demand:
                most_w += drawn_w + (most_of_node_w(node, True) - most_of_node_w(node, node.jobs > 0))
            continue
        if outlives:
            leave(node, demand, processors)
        _put(machine, job, number, processors, now_s)
    counts.draws = draws if is_tried else counts.draws
    return Tried(float(slowest), float(added_w), float(most_w if counts.on_demand else added_w), boots_j, boots_s)


@take.register(Nodes)
def take_nodes(machine: Nodes, job: int, processors: int, power_w: float, now_s: float, outlives: bool) -> float:
    """Occupy nodes in the order of the placement."""
    machine.counts.touched = 0
    demand = machine.demands[job]
    beside = machine.counts.is_planned != 0 or (outlives and machine.counts.is_plain == 0)
    speed = place(machine, job, now_s, beside, False).speed
    machine.counts.wanted = 0
    demand.begin_s = now_s if machine.counts.always_on else power_up(machine, job, now_s)
    demand.is_booting = demand.begin_s > now_s
    if demand.is_booting == 0:
        draw(machine, job, 1)
    if machine.totals.off > 0:
        dim(machine, now_s)
    return speed * demand.pace


@give.register(Nodes)
def give_nodes(machine: Nodes, job: int, processors: int, power_w: float, now_s: float, is_last: bool) -> None:
    """Release the nodes of a job; an empty node or machine is reset, so that rounding does not add up."""
    demand = machine.demands[job]
    if demand.is_booting == 0:
        draw(machine, job, -1)
    demand.is_booting = 0
    _release(machine, job, now_s)
    if machine.totals.off > 0:
        dim(machine, now_s)
    if is_last:
        machine.totals.load_w = idle_load_w(machine)


@compiled
def _release(machine: Nodes, job: int, now_s: float) -> None:
    demand, counts = machine.demands[job], machine.counts
    counts.touched, unfinished, row = 0, False, whole(demand.first)
    while row >= 0:
        share = machine.shares[row]
        following, number = whole(share.of_job), whole(share.node)
        node = machine.nodes[number]
        unfinished |= share.work_s - share.rate * (now_s - share.since_s) > 1e-6 * demand.work_s
        _unlink(machine, number, row)
        if counts.contention == V1:
            _vacate(machine, node, row)
        if counts.keeps_list and node.free == 0:
            _move_to_end(machine, number)
        _resize(machine, number, whole(share.taken))
        node.free_gpus += share.gpus
        machine.totals.free_gpus += share.gpus
        node.free_memory_mb += share.memory_mb
        node.jobs -= 1
        if node.jobs == 0:
            node.free_memory_mb = node.memory_mb
            rest(machine, number, now_s)
        _touch(machine, number)
        share.of_job = counts.first_unused
        counts.first_unused = row
        row = following
    demand.first = -1
    counts.killed += unfinished


@variant(Nodes)
def lend(machine: Nodes, job: int, sign: int) -> None:
    """Count what a running job takes as free (``sign`` 1), or as taken again (-1); nothing else changes."""
    row = whole(machine.demands[job].first)
    while row >= 0:
        share = machine.shares[row]
        node = machine.nodes[share.node]
        _resize(machine, whole(share.node), sign * whole(share.taken))
        node.free_gpus += sign * share.gpus
        machine.totals.free_gpus += sign * share.gpus
        node.free_memory_mb += sign * share.memory_mb
        row = whole(share.of_job)


@compiled_small
def _unlink(machine: Nodes, number: int, row: int) -> None:
    """Remove a share from the list of its node."""
    node = machine.nodes[number]
    following = machine.shares[row].of_node
    if node.first == row:
        node.first = following
        return
    k = whole(node.first)
    while machine.shares[k].of_node != row:
        k = whole(machine.shares[k].of_node)
    machine.shares[k].of_node = following


@compiled
def _move_to_end(machine: Nodes, number: int) -> None:
    """Move a node to the end of the list of nodes."""
    lists, k, last = machine.lists, 0, machine.nodes.shape[0] - 1
    while lists[k].order != number:
        k += 1
    for i in range(k, last):
        lists[i].order = lists[i + 1].order
    lists[last].order = number


@variant(Nodes, otherwise=False)
def forget_placed(machine: Nodes) -> bool:
    """Empty the record of where jobs start; whether there is one, and each job remembers itself when it begins."""
    machine.counts.placed = 0
    return True


@variant(Nodes, otherwise=True)
def is_recorded(machine: Nodes) -> bool:
    """Whether there is room to record where the next jobs start.

    Every processor could start a part of a job before the record is read again.
    """
    return machine.counts.placed + machine.totals.processors <= machine.placed.shape[0]
