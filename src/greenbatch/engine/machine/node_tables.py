"""Tables of a machine whose jobs are placed on nodes; `idle_nodes` and `demands` make them."""

from __future__ import annotations

from typing import NamedTuple

from greenbatch.cluster.node_group import MemoryContention
from greenbatch.engine.records import Floats, Int32, Int32s, MachineTotals, Ranked, Table, per_job
from greenbatch.machine_code.compile import compiled_small

KB_PER_MB = 1000.0
MB_PER_GB = 1000.0
ON, OFF, BOOTING, STOPPING = range(4)
"""What a node does."""
UNLIMITED_MB = 1e12
"""Memory of a node that never limits jobs; finite, so that what is in use can be told."""
ANY = 2**31 - 1
"""No limit to the processors that a job takes on a node."""
MEMORY_STEP_MB = 2.0**-10
"""Memory is counted in whole steps of this, so that sums are exact: taken and returned, it is all there again."""
CONTENTIONS = {"none": 0, "irmasim-v1": 1, "repaired": 2}
V1 = CONTENTIONS["irmasim-v1"]


class Node(MemoryContention):
    """Facts of one node, its constants of contention among them, and what runs on it."""

    memory_mb: float
    speed: float
    static_w: float
    idle_w: float
    processor_w: float
    gpu_w: float
    gflops: float
    """Peak of one processor; if unknown, in proportion to its speed. [Gflop/s]"""
    bandwidth: float
    """Requested memory bandwidth of all tasks on it. [MB/s]"""
    partitions: int
    """Bit mask."""
    free_memory_mb: float
    left_memory_mb: float
    key: float
    """Its key under a placement whose keys never change."""
    boot_s: float
    boot_w: float
    stop_s: float
    stop_w: float
    min_on_s: float
    on_since_s: float
    on_s: float
    """For how long it was on before, boots and shutdowns excluded, if nodes boot on demand."""
    switching_j: float
    """Energy of its boots and shutdowns so far."""
    dark: float
    """The part of its idle power that it does not draw, see `power_states.dim`; only where nodes boot on demand."""
    dark_s: float
    """The sum of that over time, until `NodeTotals.dimmed_s`."""
    switch_s: float
    """When its boot or shutdown ends, or its shutdown begins; infinite if nothing is due."""
    free: Int32
    """Free processors."""
    left: Int32
    """Processors that the reservation of a blocked job leaves to jobs that outlive its begin; so for GPUs, memory."""
    free_gpus: Int32
    left_gpus: Int32
    processors: Int32
    gpus: Int32
    jobs: Int32
    """Shares of jobs on it."""
    drawing: Int32
    """Shares of jobs that have begun to run."""
    phase: Int32
    """ON, OFF, BOOTING or STOPPING."""
    boots_again: Int32
    """1 if it boots once it is down, because a job is placed on it."""
    first: Int32
    """Its first share, -1 for none."""
    first_core: Int32
    """Row of ``cores`` of its first processor."""


class Demand:
    """What one job asks of nodes: some chunks, each of which is on one node."""

    work_s: float
    """Its run time at speed 1."""
    requested_s: float
    memory_mb: float
    """Memory of a chunk."""
    volume_mb: float
    """Data that each processor moves from and to memory."""
    energy_j: float
    """Energy that each processor is expected to use."""
    power_w: float
    """Its own power, 0 if unknown."""
    begin_s: float
    """When it begins to run, once it is placed; NaN before."""
    pace: float
    """Speed of its processors at its DVFS level, relative to the highest."""
    draw: float
    """Power of its processors at its DVFS level, relative to the highest."""
    partitions: int
    """Bit mask of the nodes that it can use."""
    chunks: Int32
    """Nodes, or processors if it may take those of any nodes."""
    processors: Int32
    """Processors of the largest chunk."""
    larger: Int32
    """Number of chunks with that many processors; the others have one fewer."""
    gpus: Int32
    """GPUs of each chunk."""
    is_spread: Int32
    """1 if each chunk is on a node of its own."""
    exclusive: Int32
    component: Int32
    """Jobs of different components can never use the same node."""
    dvfs_level: Int32
    """0 for the highest."""
    is_booting: Int32
    """1 while its nodes boot."""
    is_modelled: Int32
    """1 if its power is that of its processors and GPUs, because its own is unknown."""
    first: Int32
    """Its first share, -1 for none."""


class Placement:
    """Where a part of a job started, for the schedule."""

    job: Int32
    node: Int32
    processors: Int32
    gpus: Int32


class Share(Placement):
    """The part of a running job on one node."""

    memory_mb: float
    work_s: float
    """Work that remains, at the speed at which run times were measured."""
    rate: float
    """Work done per second."""
    slowdown: float
    """Speed relative to that of the share alone on its node."""
    bandwidth: float
    """Memory bandwidth that each of its processors asks for at full speed. [MB/s]"""
    since_s: float
    """Until when the work has been brought up to date."""
    taken: Int32
    """Processors that nobody else can use: all of the node if it is used exclusively; the others work."""
    of_job: Int32
    """The next share of the job, -1 for none; the next unused one in the list of unused shares."""
    of_node: Int32
    """The next share on the node, -1 for none."""


class NodeTotals:
    """Facts and counts of the machine as a whole."""

    placement: int
    """How nodes are ordered for a job, see `machine.placement`."""
    is_plain: int
    """1 if jobs ask for processors of any nodes only, so that the number of free ones says whether they fit."""
    is_uniform: int
    """1 if all jobs can use all nodes."""
    contention: int
    ops_per_s: float
    """Operations per second of a processor of speed 1, which IRMaSim counts."""
    summed_s: float
    """IRMaSim's clock, which is the sum of its steps and so differs from ours by rounding; NaN before the first."""
    step_s: float
    """Its step to the next event."""
    step_to_s: float
    """When that is by our clock."""
    first_unused: int
    """First unused share."""
    placed: int
    """Rows of the record of placements."""
    touched: int
    """Nodes whose jobs may have changed rates."""
    held_back: int
    """Bit mask of components with a blocked job."""
    components: int
    """Bit mask of all components."""
    seed: int
    """Of random placements."""
    draws: int
    """Random placements so far."""
    killed: int
    """Jobs that were killed before their work was done."""
    kill: int
    is_listed: int
    """1 if jobs take nodes in the order of a list: keys never change, or the list is sorted now and then (IRMaSim)."""
    keeps_list: int
    """1 if a node that was full goes to the end of the list once it has room (IRMaSim)."""
    is_planned: int
    """1 if every job has a reservation, so that a job takes only what is left by those of the others."""
    always_on: int
    on_demand: int
    """1 if nodes are switched off when nothing runs on them."""
    next_switch_s: float
    longest_boot_s: float
    wanted: int
    """Number of nodes that the next job takes before others."""
    off_w: float
    """Idle power that empty nodes do not draw because not all is powered, see `power_states.dim`."""
    dimmed_s: float
    """Since when."""


class Listed:
    """Row k of several lists."""

    order: Int32
    """The k-th node in the order in which jobs take them, if ``counts.is_listed``."""
    touched: Int32
    """The k-th node whose jobs may have changed rates."""
    wanted: Int32
    """The k-th node that the next job takes before others."""
    wanted_most: Int32
    """Processors that it takes there at most."""
    at_least: Int32
    """Number of nodes with at least k free processors."""


@per_job("demands")
class Nodes(NamedTuple):
    """Nodes that jobs are placed on."""

    totals: MachineTotals
    counts: NodeTotals
    nodes: Table[Node]
    demands: Table[Demand]
    """Shape (n,)."""
    shares: Table[Share]
    placed: Table[Placement]
    """Record of placements, read whenever it is full; ``counts.placed`` rows are valid."""
    lists: Table[Listed]
    """Shape (max(nodes, processors of the largest + 1),)."""
    ranked: Table[Ranked]
    """Candidates of a placement, shape (2 x nodes,)."""
    pairs: Floats
    """Raw features of a job and each node, see `engine.observe.pair_features`, shape (PAIR_ROWS, nodes)."""
    cores: Int32s
    """Share that runs on each processor of the cluster, -1 for none; empty unless contention is that of IRMaSim."""


@compiled_small
def part_w(node: Node, demand: Demand, processors: int) -> float:
    """Power of the processors and GPUs that a job of modelled power uses on a node. [W]"""
    return processors * node.processor_w * demand.draw + demand.gpus * node.gpu_w


@compiled_small
def most_of_node_w(node: Node, hosts: bool) -> float:
    """The most that a node may draw by itself, with jobs or without, until it is off or another job starts. [W]"""
    rests_w = max(node.idle_w, node.stop_w)
    if not hosts:
        return float((rests_w, 0.0, max(node.boot_w, rests_w), node.stop_w)[node.phase])
    busy_w = max(node.static_w, rests_w)
    return float(busy_w if node.phase == ON else max(busy_w, node.boot_w))


@compiled_small
def waking_w(node: Node) -> float:
    """What a node draws more as soon as something runs on it: its static power, less its idle power if it is on. [W]"""
    return node.static_w - (node.idle_w if node.phase == ON else 0.0)
