"""Placements: which of the nodes that can host a job it takes. The lowest key goes first, ties in order of the nodes.

Names and order keys of InEPS (Table 2) and of its published code, and the usual ones of batch systems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from greenbatch.engine.machine.node_tables import Demand, Node, Nodes, part_w
from greenbatch.machine_code.compile import compiled_small


class Order(NamedTuple):
    """A placement: the order in which a job takes nodes."""

    code: int
    meaning: str
    fixed: Callable[[Any], Any] | None = None
    """Keys of nodes that never change, from their table and names; None if they depend on what runs."""


# The first ones depend neither on the job nor on a draw.
(FIXED, BEST_FIT, WORST_FIT, PACK, SPREAD, HIGH_MEM, USED_MEM, HIGH_MEM_BW, RANDOM, LOW_ENERGY, HIGH_ENERGY,
 LOW_EDP, HIGH_EDP) = range(13)  # fmt: skip

PLACEMENTS: dict[str, Order] = {
    "first": Order(FIXED, "Nodes in the order of the cluster.", lambda n: np.zeros(len(n))),
    "first-by-name": Order(FIXED, "Nodes in the order of their names as text (``node10`` before ``node2``)."),
    "best-fit": Order(BEST_FIT, "Fewest free processors first."),
    "worst-fit": Order(WORST_FIT, "Most free processors first."),
    "pack": Order(PACK, "Largest share of busy processors first."),
    "spread": Order(SPREAD, "Fewest jobs on the node first."),
    "random": Order(RANDOM, "Nodes in random order, drawn for each job."),
    "fastest": Order(FIXED, "Highest speed first: earliest expected end of the job.", lambda n: -n["speed"]),
    "high-gflops": Order(FIXED, "Fastest processors first.", lambda n: -n["gflops"] - n["speed"] * 1e-9),
    "high-cores": Order(WORST_FIT, "Most idle processors first (InEPS, Table 2)."),
    "high-total-cores": Order(FIXED, "Most processors first, busy or not.", lambda n: -1.0 * n["processors"]),
    "low-cores": Order(BEST_FIT, "Fewest idle processors first."),
    "high-mem": Order(HIGH_MEM, "Most available memory first (InEPS, Table 2)."),
    "high-mem-published": Order(USED_MEM, "Most memory in use first, as in the code of InEPS: jobs are packed."),
    "high-mem-bw": Order(HIGH_MEM_BW, "Least requested memory bandwidth first (InEPS, Table 2)."),
    "low-power": Order(FIXED, "Lowest power with all processors busy first (InEPS, Table 2).",
                       lambda n: n["static_w"] + n["processors"] * n["processor_w"]),
    "low-energy": Order(LOW_ENERGY, "Lowest estimated energy of the job first (InEPS, Eq. 1)."),
    "high-energy": Order(HIGH_ENERGY, "Highest estimated energy of the job first (InEPS, Eq. 1)."),
    "low-edp": Order(LOW_EDP, "Lowest estimated energy x estimated run time of the job first."),
    "high-edp": Order(HIGH_EDP, "Highest estimated energy x estimated run time of the job first."),
}  # fmt: skip
"""Placement -> what it does."""


@compiled_small
def estimated_run_s(demand: Demand, node: Node) -> float:
    """Expected run time of a job on a node: its requested time at the speed of the node. [s]"""
    return demand.requested_s / node.speed


@compiled_small
def estimated_power_w(demand: Demand, node: Node) -> float:
    """Power of a job on a node now: its processors, and its part of the static power (InEPS, Eq. 1). [W]"""
    busy_w = part_w(node, demand, demand.processors)
    return busy_w + node.static_w / (node.jobs + 1)


@compiled_small
def drawn(seed: int, draw: int, node: int) -> float:
    """A number in [0, 1) that depends on nothing but its arguments (SplitMix64)."""
    z = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(draw) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(node) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 9007199254740992.0


@compiled_small
def key(machine: Nodes, node: int, demand: Demand) -> float:
    """The key of a node for a job, under the placement of the machine."""
    code, this = machine.counts.placement, machine.nodes[node]
    if code < RANDOM:
        free, memory_mb = float(this.free), this.free_memory_mb
        free_share, unused_mb = free / this.processors, memory_mb - this.memory_mb
        return (this.key, free, -free, free_share, float(this.jobs), -memory_mb, unused_mb, this.bandwidth)[code]
    if code == RANDOM:
        return drawn(machine.counts.seed, machine.counts.draws, node)
    run_s = estimated_run_s(demand, this)
    energy_j = run_s * estimated_power_w(demand, this)
    return (energy_j, -energy_j, energy_j * run_s, -energy_j * run_s)[code - LOW_ENERGY]


def span(machine: Nodes) -> None:
    """Let every job take processors of any nodes, whatever number of nodes it asks for."""
    demands: Any = machine.demands
    per_processor_mb = demands["memory_mb"] / demands["processors"]
    small = demands["chunks"] - demands["larger"]
    processors = np.where(demands["is_spread"], demands["chunks"] * demands["processors"] - small, demands["chunks"])
    demands["chunks"], demands["larger"], demands["processors"] = processors, processors, 1
    demands["is_spread"], demands["gpus"], demands["memory_mb"] = 0, 0, per_processor_mb


def arrange(machine: Nodes, names: tuple[str, ...], placement: str, seed: int, *, keeps_list: bool = False) -> None:
    """Set the placement of a machine.

    Args:
        machine: the nodes.
        names: name of each node.
        placement: a key of `PLACEMENTS`.
        seed: of random placements.
        keeps_list: keep the nodes in a list that is sorted after events only, as IRMaSim's backfilling does.
    """
    rule, counts = PLACEMENTS[placement], cast(Any, machine.counts)
    keys: Any = np.array(names) if placement == "first-by-name" else rule.fixed(machine.nodes) if rule.fixed else None
    ranks = np.zeros(len(names)) if keys is None else np.unique(keys, return_inverse=True)[1]
    machine.nodes["key"] = ranks
    machine.lists["order"][: len(names)] = np.argsort(ranks, kind="stable")
    counts.placement, counts.seed, counts.is_listed = rule.code, seed, rule.code == FIXED or keeps_list
    counts.keeps_list = keeps_list
