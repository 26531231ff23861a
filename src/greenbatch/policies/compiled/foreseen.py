"""What a planner foresees of jobs: what they would draw, for how long they run, and which nodes it holds for one.

On a pool these are facts: the power of a job, its requested time, and the number of free processors. On nodes they
depend on where the job runs. A job that fits now is asked about on the nodes that it would take. For one that does not,
nobody knows which nodes it will get, so an average over the machine stands for them (`Usual`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.engine.capacity.units import is_fixed
from greenbatch.engine.limits import can_start, has_limit
from greenbatch.engine.machine.node_tables import Nodes, waking_w
from greenbatch.engine.machine.pool import Pool, machines_w
from greenbatch.engine.machine.preview import boots_of, expected_run_s, rise_w
from greenbatch.engine.machine.reservation import reserve_for
from greenbatch.engine.machine.resources import Machine, fits
from greenbatch.engine.records import Job
from greenbatch.engine.state import State
from greenbatch.engine.timeline import reserve
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.machine_code.variants import variant


class Usual(NamedTuple):
    """Averages over the processors of a machine."""

    processor_w: float
    """Power of a busy processor, for jobs whose own power is unknown. [W]"""
    node_w: float
    """What a node draws more while a job runs on it, per processor of the node. [W]"""
    speed: float
    """Work done per second."""


class Foreseen(NamedTuple):
    """A job that may start now."""

    fits: bool
    power_w: float
    """What it would add to the load; the energy of the boots of its nodes is spread over its run. [W]"""
    run_s: float
    """For how long it is expected to run, boots of its nodes included. [s]"""
    speed: float
    """Of the slowest nodes that are chosen for it; 0 if the placement of the machine decides."""


@variant(default=True)
def usual(machine: Machine) -> Usual:
    """What a job that does not fit now is expected to find; on a pool, what is known of the job is exact."""
    return Usual(0.0, 0.0, 1.0)


@usual.register(Pool)
def usual_of_pool(machine: Pool) -> Usual:
    """A part of the power of a machine for each processor."""
    totals = machine.totals
    return Usual(0.0, totals.machine_w / max(totals.machine_processors, 1), 1.0)


@usual.register(Nodes)
def usual_of_nodes(machine: Nodes) -> Usual:
    """Averages over all processors, busy or not; GPUs are not counted."""
    return _usual_of_nodes(machine)


@compiled
def _usual_of_nodes(machine: Nodes) -> Usual:
    processor_w, node_w, speed = 0.0, 0.0, 0.0
    for number in range(machine.nodes.shape[0]):
        node = machine.nodes[number]
        processor_w += node.processors * node.processor_w
        node_w += node.static_w - node.idle_w
        speed += node.processors * node.speed
    total = machine.totals.processors
    return Usual(processor_w / total, node_w / total, speed / total)


@variant(default=True)
def awake_w(machine: Machine) -> float:
    """What nodes draw beyond idle power because jobs run on them, without the power of these jobs. [W]"""
    return 0.0


@awake_w.register(Pool)
def machines_on_w(machine: Pool) -> float:
    """The power of the machines that are on as needed."""
    totals = machine.totals
    return float(-machines_w(totals, totals.free - totals.processors))


@awake_w.register(Nodes)
def awake_nodes_w(machine: Nodes) -> float:
    """The static power of the nodes with jobs, less their idle power."""
    return _awake_nodes_w(machine)


@compiled
def _awake_nodes_w(machine: Nodes) -> float:
    total_w = 0.0
    for number in range(machine.nodes.shape[0]):
        node = machine.nodes[number]
        if node.drawing > 0:
            total_w += waking_w(node)
    return total_w


@variant(default=True)
def running_until_s(machine: Machine, job: int, start_s: float, requested_end_s: float) -> float:
    """When a running job is expected to end. [s]"""
    return requested_end_s


@running_until_s.register(Nodes)
def running_at_the_slowest(machine: Nodes, job: int, start_s: float, requested_end_s: float) -> float:
    """After its requested time at the speed of its slowest node, without contention; at most then if it is killed."""
    end_s = start_s + (requested_end_s - start_s) / _slowest(machine, job)
    return min(end_s, requested_end_s) if machine.counts.kill else end_s


@compiled
def _slowest(machine: Nodes, job: int) -> float:
    speed, row = np.inf, whole(machine.demands[job].first)
    while row >= 0:
        speed = min(speed, machine.nodes[machine.shares[row].node].speed)
        row = whole(machine.shares[row].of_job)
    return float(speed)


@variant(Nodes, otherwise=True)
def _takes_any(machine: Nodes) -> bool:
    """Whether jobs take processors of any nodes, and nothing else."""
    return bool(machine.counts.is_plain)


@compiled_small
def is_limited(s: State) -> bool:
    """Whether power may keep jobs from starting that would fit."""
    return has_limit(s) or not is_fixed(s.capacity)


@compiled_small
def is_counted(s: State) -> bool:
    """Whether the number of free processors alone says whether a job can start, now and ahead."""
    return _takes_any(s.machine) and not is_limited(s)


@variant(default=True)
def keep_held(machine: Machine, outlives: bool) -> None:
    """Let the next job take only what the last reservation leaves, if it outlives the reservation's begin.

    A machine whose jobs are counted holds nothing.
    """
    return


@keep_held.register(Nodes)
def keep_held_nodes(machine: Nodes, outlives: bool) -> None:
    """The machine then takes only what is left of its nodes."""
    machine.counts.is_planned = 1 if outlives and machine.counts.is_plain == 0 else 0


@compiled_small
def own_processor_w(job: Job, averages: Usual) -> float:
    """Power per processor of a job, without what nodes add: its own, or that of a busy processor. [W]"""
    return job.power_w / job.processors if job.power_w > 0.0 else averages.processor_w


@compiled_small
def foresee(s: State, number: int, averages: Usual, outlives: bool, is_placed: bool) -> Foreseen:
    """What is foreseen of a waiting job, with a placement on the nodes as they are now if it fits.

    Args:
        s: the state.
        number: row of the job.
        averages: those of the machine, see `usual`.
        outlives: it may only take what the reservation of `hold_for` leaves.
        is_placed: the placement of the machine decides on the nodes; otherwise power and run time are left at 0.
    """
    job, boots_s = s.jobs[number], 0.0
    if fits(s.machine, whole(number), whole(job.processors), s.clock.now_s):
        power_w, run_s = 0.0, 0.0
        if is_placed:
            power_w = rise_w(s.machine, whole(number), whole(job.processors), job.power_w, outlives)
            run_s = expected_run_s(s.machine, whole(number), job.requested_s)
            boots_j, boots_s = boots_of(s.machine, whole(number))
            power_w += boots_j / run_s
        found = True
    else:
        power_w = job.power_w if job.power_w > 0.0 else job.processors * averages.processor_w
        power_w += job.processors * averages.node_w
        run_s = job.requested_s / averages.speed
        found = False
    return Foreseen(found, power_w, (min(run_s, job.requested_s) if s.rules.kill else run_s) + boots_s, 0.0)


@compiled_small
def may_be_started(s: State, number: int, here: Foreseen) -> bool:
    """Whether a job that was foreseen can start now, if free processors alone do not say it."""
    return here.fits and (is_counted(s) or can_start(s, number, whole(s.jobs[number].processors)))


@compiled_small
def hold_for(s: State, number: int) -> float:
    """Reserve for a job that cannot start now what it needs, from when it is there by requested ends; return when. [s]

    What this leaves of the machine stays valid until the next call or event, see `backfill.leaves_room`.
    """
    if s.rules.guarded or not is_fixed(s.capacity):
        reserve(s, number)
    else:
        reserve_for(s.machine, s.expected, s.clock, whole(number), whole(s.jobs[number].processors), s.clock.now_s)
    return float(s.clock.shadow_s)
