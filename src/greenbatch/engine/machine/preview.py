"""What would happen if a job started now: its power on its nodes, and how long it would run. Nothing is taken."""

from __future__ import annotations

from greenbatch.engine.machine.node_tables import Nodes, part_w
from greenbatch.engine.machine.nodes import place
from greenbatch.machine_code.compile import compiled, whole
from greenbatch.machine_code.variants import variant


@variant(Nodes, otherwise=lambda machine, job, requested_s: requested_s)
def expected_run_s(machine: Nodes, job: int, requested_s: float) -> float:
    """Expected run time of a job that fits now, from its requested time and the speed of what it would take. [s]

    The requested time at the speed of the slowest node that the job would take, without contention.
    """
    return requested_s / place(machine, job, 0.0, False, True).speed


@variant(Nodes, otherwise=lambda machine, job, processors, power_w, outlives: power_w)
def rise_w(machine: Nodes, job: int, processors: int, power_w: float, outlives: bool) -> float:
    """What a job that fits would add to the load if it started now. [W]

    The power of the job, and the static power of nodes on which nothing runs.

    Args:
        machine: the machine.
        job: row of the job.
        processors: its processors.
        power_w: its power, 0 if unknown. [W]
        outlives: see `take`.
    """
    return place(machine, job, 0.0, outlives and machine.counts.is_plain == 0, True).rise_w


@variant(Nodes, otherwise=lambda machine, job: (0.0, 0.0))
def boots_of(machine: Nodes, job: int) -> tuple[float, float]:
    """What has to boot before a job that fits can run: energy [J] and time [s], 0 if its nodes are on.

    A node that shuts down now has to do so first; it is expected to take the whole time of a shutdown.
    """
    if machine.counts.on_demand == 0:
        return (0.0, 0.0)
    tried = place(machine, job, 0.0, False, True)
    return (tried.boots_j, tried.boots_s)


@variant(Nodes, otherwise=lambda machine, job, power_w: power_w)
def running_w(machine: Nodes, job: int, power_w: float) -> float:
    """Power of a running job, without what its nodes draw anyway. [W]

    Its own power, or that of its processors and GPUs.
    """
    demand = machine.demands[job]
    return _running_w(machine, job) if demand.is_modelled else power_w * demand.draw


@compiled
def _running_w(machine: Nodes, job: int) -> float:
    demand, drawn_w = machine.demands[job], 0.0
    row = whole(demand.first)
    while row >= 0:
        share = machine.shares[row]
        node = machine.nodes[share.node]
        drawn_w += part_w(node, demand, share.processors)
        row = whole(share.of_job)
    return float(drawn_w)
