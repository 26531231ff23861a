"""Nodes that are switched off when nothing runs on them, and booted when a job is placed on them.

Eq. 1 of cost-aware GAS-MARL counts the idle power of the nodes that are on. A job is placed on nodes whether they are
on or not, and begins to run once all of them are up. A node whose last job has ended is shut down after its shortest
time on; if a job is placed on it meanwhile, it boots again as soon as it is down.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.machine.node_tables import BOOTING, OFF, ON, STOPPING, Node, Nodes, part_w
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.machine_code.variants import variant


@compiled_small
def draw(machine: Nodes, job: int, sign: int) -> None:
    """Add the power of a job that begins (``sign`` 1), or subtract that of one that ends (-1)."""
    demand, totals = machine.demands[job], machine.totals
    if demand.is_modelled == 0:
        totals.load_w += sign * demand.power_w * demand.draw
    row = whole(demand.first)
    while row >= 0:
        share = machine.shares[row]
        node = machine.nodes[share.node]
        if demand.is_modelled:
            totals.load_w += sign * part_w(node, demand, share.processors)
        before = whole(node.drawing)
        node.drawing += sign
        if before == 0 or node.drawing == 0:
            totals.load_w += sign * (node.static_w - node.idle_w)
        row = whole(share.of_job)


@compiled
def dim(machine: Nodes, now_s: float) -> None:
    """Deduct the idle power of processors that are not powered: from now on, until anything changes on a node.

    Nodes that are off count first: they draw nothing. The others are processors of empty nodes that are on, of all
    alike. If there are fewer of them, all empty nodes are off: a node of a job draws its whole power, and so does one
    that boots or shuts down.
    """
    counts, off, empty, empty_w = machine.counts, whole(machine.totals.off), 0, 0.0
    for number in range(machine.nodes.shape[0]):
        node = machine.nodes[number]
        if node.phase == OFF:
            off -= node.processors
        elif node.phase == ON and node.jobs == 0:
            empty += node.processors
            empty_w += node.idle_w
    dark = min(1.0, max(off, 0) / empty) if empty > 0 else 0.0
    machine.totals.load_w += counts.off_w - empty_w * dark
    counts.off_w = empty_w * dark
    if counts.on_demand:
        for number in range(machine.nodes.shape[0]):
            node = machine.nodes[number]
            node.dark_s += node.dark * (now_s - counts.dimmed_s)
            node.dark = dark if node.phase == ON and node.jobs == 0 else 0.0
        counts.dimmed_s = now_s


@compiled
def power_up(machine: Nodes, job: int, now_s: float) -> float:
    """Switch on the nodes of a job that has been placed; return when all of them are up. [s]"""
    row, up_s = whole(machine.demands[job].first), now_s
    while row >= 0:
        up_s = max(up_s, _switch_on(machine, whole(machine.shares[row].node), now_s))
        row = whole(machine.shares[row].of_job)
    row = whole(machine.demands[job].first)
    while row >= 0:
        machine.shares[row].since_s = up_s
        row = whole(machine.shares[row].of_job)
    return up_s


@compiled_small
def _switch_on(machine: Nodes, number: int, now_s: float) -> float:
    """Switch on a node of a job, or leave it on; return when it is up. [s]"""
    node = machine.nodes[number]
    if node.phase == STOPPING:
        node.boots_again = 1
        return float(node.switch_s + node.boot_s)
    if node.phase == ON and node.switch_s < np.inf:
        node.switch_s = np.inf
        _find_next_switch(machine)
    elif node.phase == OFF:
        _enter(machine, number, BOOTING if node.boot_s > 0.0 else ON, now_s)
        machine.totals.base_power_w += 0.0 if machine.counts.on_demand else node.idle_w
    return float(node.switch_s) if node.phase == BOOTING else now_s


@compiled_small
def powers_w(node: Node) -> tuple[float, float, float, float]:
    """What a node on which nothing runs draws while it is ON, OFF, BOOTING or STOPPING. [W]"""
    return (node.idle_w, 0.0, node.boot_w, node.stop_w)


@compiled_small
def _enter(machine: Nodes, number: int, phase: int, now_s: float) -> None:
    """Let a node be in another phase from now on; a boot or a shutdown ends by itself."""
    node, counts = machine.nodes[number], machine.counts
    power_w, length_s = powers_w(node)[phase], (0.0, 0.0, node.boot_s, node.stop_s)[phase]
    machine.totals.load_w += power_w - powers_w(node)[node.phase]
    node.switching_j += power_w * length_s
    node.phase, node.switch_s = phase, now_s + length_s if phase in (BOOTING, STOPPING) else np.inf
    counts.next_switch_s = min(counts.next_switch_s, node.switch_s)
    node.on_since_s = now_s if phase == ON else node.on_since_s


@compiled_small
def rest(machine: Nodes, number: int, now_s: float) -> None:
    """Note when a node is to be shut down that no job has any more.

    It goes on to boot if it does, and does not boot again if it shuts down.
    """
    node, counts = machine.nodes[number], machine.counts
    node.boots_again = 0
    if counts.on_demand and node.phase == ON:
        node.switch_s = max(now_s, node.on_since_s + node.min_on_s)
        counts.next_switch_s = min(counts.next_switch_s, node.switch_s)


@compiled
def idle_load_w(machine: Nodes) -> float:
    """Power of the machine while nothing runs. [W]"""
    counts = machine.counts
    if counts.on_demand == 0:
        return float(machine.totals.base_power_w - (0.0 if counts.always_on else counts.off_w))
    load_w = 0.0
    for number in range(machine.nodes.shape[0]):
        load_w += powers_w(machine.nodes[number])[machine.nodes[number].phase]
    return float(load_w - counts.off_w)


@compiled
def _find_next_switch(machine: Nodes) -> None:
    next_s = np.inf
    for number in range(machine.nodes.shape[0]):
        next_s = min(next_s, machine.nodes[number].switch_s)
    machine.counts.next_switch_s = next_s


@variant(Nodes, otherwise=lambda machine, job, now_s: now_s)
def begins_s(machine: Nodes, job: int, now_s: float) -> float:
    """When a job that is given its processors at ``now_s`` begins to run, also asked when it ends. [s]

    A job begins once all its nodes are up.
    """
    return float(machine.demands[job].begin_s)


@variant(Nodes, otherwise=0.0)
def longest_boot_s(machine: Nodes) -> float:
    """Longest time from the start of a job until it begins to run. [s]

    The slowest node may have to be shut down first.
    """
    return float(machine.counts.longest_boot_s)


@variant(Nodes, otherwise=np.inf)
def next_switch_s(machine: Nodes) -> float:
    """When a node is switched on or off by itself, infinite if never; the same jobs fit before and after. [s]

    The next end of a boot, or begin or end of a shutdown.
    """
    return float(machine.counts.next_switch_s)


@variant(Nodes, otherwise=0)
def most_switches(machine: Nodes) -> int:
    """Largest number of switches between two events of jobs.

    A node may finish a boot, begin and finish a shutdown, and boot again.
    """
    return 4 * machine.nodes.shape[0] if machine.counts.on_demand else 0


@variant(Nodes, otherwise=-1, inlined=False)
def switch(machine: Nodes, now_s: float) -> int:
    """Carry out the first switch that is due; return the number of the node."""
    number = 0
    while machine.nodes[number].switch_s > now_s:
        number += 1
    node, before = machine.nodes[number], machine.nodes[number].phase
    machine.counts.touched = 0
    if before == ON:
        node.on_s += now_s - node.on_since_s
        _enter(machine, number, STOPPING, now_s)
    elif before == STOPPING:
        _enter(machine, number, OFF, now_s)
        if node.boots_again:
            node.boots_again = 0
            _enter(machine, number, BOOTING, now_s)
    else:  # it has booted
        _enter(machine, number, ON, now_s)
        _begin_jobs(machine, number, now_s)
        if node.jobs == 0:  # its jobs have been suspended meanwhile
            rest(machine, number, now_s)
    _find_next_switch(machine)
    if machine.totals.off > 0:
        dim(machine, now_s)
    return number


@compiled
def _begin_jobs(machine: Nodes, number: int, now_s: float) -> None:
    """Let the jobs begin whose last node has come up."""
    row = whole(machine.nodes[number].first)
    while row >= 0:
        job = whole(machine.shares[row].job)
        demand = machine.demands[job]
        if demand.is_booting and demand.begin_s <= now_s:
            demand.is_booting = 0
            draw(machine, job, 1)
            _touch_nodes(machine, job)
        row = whole(machine.shares[row].of_node)


@compiled
def _touch_nodes(machine: Nodes, job: int) -> None:
    """Note, once each, that the jobs of the nodes of a job change rates, because it begins to use their memory."""
    counts, row = machine.counts, whole(machine.demands[job].first)
    while row >= 0 and counts.contention:
        k, number = 0, machine.shares[row].node
        while k < counts.touched and machine.lists[k].touched != number:
            k += 1
        machine.lists[k].touched = number
        counts.touched = max(counts.touched, k + 1)
        row = whole(machine.shares[row].of_job)
