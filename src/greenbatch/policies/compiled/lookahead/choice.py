"""The choice of nodes by the look-ahead planner: fast ones while power is in surplus, frugal ones otherwise.

A job may take any nodes, but runs at the speed of the slowest. So the sets that are compared are those of the most
frugal nodes among all that are at least as fast as one of them: one set per speed. Each is costed like a start now, by
the forecast surplus under its own power and run time, and by the delay of future short jobs, plus a price of the time
for which it keeps processors; the cheapest is the one that the planner compares with later half-hours. A pool, or a
model without numbers for it, has no choice: there, the placement of the scheduler decides.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.machine.node_choice import prefer_node
from greenbatch.engine.machine.node_tables import ANY, Demand, Node, Nodes, part_w, waking_w
from greenbatch.engine.machine.nodes import can_host, part_of
from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.ranked import sort_ranked
from greenbatch.engine.records import Floats
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, whole
from greenbatch.machine_code.variants import variant
from greenbatch.policies.compiled.foreseen import Foreseen
from greenbatch.policies.compiled.lookahead.costs import block_cost, cost_of_now
from greenbatch.policies.compiled.lookahead.planner import Lookahead
from greenbatch.policies.compiled.lookahead.weights import CROWDING, HASTE, PRICES, SHORT, WAKING

NOISE = 1e-9
"""A set of faster nodes must cost less by this share."""


@variant(default=True)
def chooses_nodes(machine: Machine, prices: Floats) -> bool:
    """Whether the planner chooses nodes: there are some, and the model has prices for them."""
    return False


@chooses_nodes.register(Nodes)
def has_prices(machine: Nodes, prices: Floats) -> bool:
    """The model has them."""
    return bool(prices.shape[0] > PRICES)


@variant(default=True)
def choose_nodes(
    machine: Machine, s: State, decider: Lookahead, number: int, outlives: bool, count: int, quiet: float
) -> Foreseen:
    """What is foreseen of a job that fits, on the nodes that are cheapest for it now.

    Args:
        machine: that of the state.
        s: the state.
        decider: the planner, with the prices of the pass; see `weights.NODE_NUMBERS` for those of nodes.
        number: row of the job.
        outlives: it may only take what the reservation leaves, which it can.
        count: half-hours in the table.
        quiet: how quiet it is, from 0 to 1.
    """
    return Foreseen(True, 0.0, 0.0, 0.0)


@choose_nodes.register(Nodes)
def choose_by_cost(
    machine: Nodes, s: State, decider: Lookahead, number: int, outlives: bool, count: int, quiet: float
) -> Foreseen:
    """The cheapest of one set per speed."""
    return _cheapest_set(machine, s, decider, number, outlives, count, quiet)


@variant(default=True)
def want_chosen(machine: Machine, prices: Floats, job: int, speed: float, outlives: bool, unit: float) -> None:
    """Let the next job, which starts now, take the nodes that `choose_nodes` found for it: of at least a speed."""
    return


@want_chosen.register(Nodes)
def want_frugal(machine: Nodes, prices: Floats, job: int, speed: float, outlives: bool, unit: float) -> None:
    """Before others, in the order of their keys."""
    _want_frugal(machine, prices, job, speed, outlives, unit)


@compiled
def _key(node: Node, demand: Demand, chunks: int, prices: Floats, unit: float) -> float:
    """Power that a job is expected to need on a node per processor and speed; the lowest goes first. [W]"""
    processors = whole(demand.processors) if demand.is_spread else min(chunks, whole(demand.chunks))
    power_w = part_w(node, demand, processors) if demand.is_modelled else 0.0
    if node.drawing == 0:
        power_w += prices[WAKING] * waking_w(node)
    per_work_w = power_w * unit / (processors * node.speed)
    return float(per_work_w + prices[CROWDING] * node.free / node.processors)


@compiled
def _rank(machine: Nodes, demand: Demand, prices: Floats, outlives: bool, unit: float) -> int:
    """Write the nodes that can host a part of a job to ``ranked``, in order; return their number."""
    ranked, count = machine.ranked, 0
    for number in range(machine.nodes.shape[0]):
        node = machine.nodes[number]
        chunks = can_host(node, demand, outlives)
        if chunks > 0:
            ranked[count].key, ranked[count].job = _key(node, demand, chunks, prices, unit), number
            count += 1
    sort_ranked(ranked, count)
    return count


@compiled
def _foresee_on(machine: Nodes, demand: Demand, count: int, speed: float, outlives: bool) -> tuple[float, float]:
    """What the first ranked nodes of at least a speed would draw more for a job [W], and the speed of the slowest.

    The speed is 0 if they have no room.
    """
    left, k, slowest = whole(demand.chunks), 0, np.inf
    added_w = 0.0 if demand.is_modelled else demand.power_w * demand.draw
    while left > 0 and k < count:
        node = machine.nodes[machine.ranked[k].job]
        k += 1
        if node.speed < speed:
            continue
        processors = part_of(demand, can_host(node, demand, outlives), left)
        left -= 1 if demand.is_spread else processors
        slowest = min(slowest, node.speed)
        if node.drawing == 0:
            added_w += waking_w(node)
        if demand.is_modelled:
            added_w += part_w(node, demand, processors)
    return float(added_w), float(slowest) if left == 0 else 0.0


@compiled
def _next_speed(machine: Nodes, count: int, above: float) -> float:
    """The lowest speed above another one of a ranked node, infinite if there is none."""
    speed = np.inf
    for k in range(count):
        node = machine.nodes[machine.ranked[k].job]
        if node.speed > above:
            speed = min(speed, node.speed)
    return float(speed)


@compiled
def _cheapest_set(
    machine: Nodes, s: State, decider: Lookahead, number: int, outlives: bool, count: int, quiet: float
) -> Foreseen:
    demand, job, prices, unit = machine.demands[number], s.jobs[number], decider.prices, decider.unit
    ranked = _rank(machine, demand, prices, outlives, unit)
    best, best_j, speed = Foreseen(True, 0.0, 0.0, 0.0), np.inf, _next_speed(machine, ranked, 0.0)
    while speed < np.inf:
        power_w, slowest = _foresee_on(machine, demand, ranked, speed, outlives)
        if slowest == 0.0:
            break
        run_s = job.requested_s / slowest
        run_s = min(run_s, job.requested_s) if s.rules.kill else run_s
        cost_j = cost_of_now(s, prices, decider.grid, job, power_w * unit, run_s, count)
        if job.requested_s > prices[SHORT]:
            cost_j += block_cost(s, prices, decider.memory, job, run_s, quiet)
        cost_j += prices[HASTE] * job.processors * run_s
        if best.speed == 0.0 or cost_j < best_j - NOISE * abs(best_j):
            best, best_j = Foreseen(True, power_w, run_s, slowest), cost_j
        speed = _next_speed(machine, ranked, slowest)
    return best


@compiled
def _want_frugal(machine: Nodes, prices: Floats, job: int, speed: float, outlives: bool, unit: float) -> None:
    demand = machine.demands[job]
    count = _rank(machine, demand, prices, outlives, unit)
    left, k = whole(demand.chunks), 0
    while left > 0 and k < count:
        number = whole(machine.ranked[k].job)
        k += 1
        node = machine.nodes[number]
        if node.speed >= speed:
            left -= 1 if demand.is_spread else part_of(demand, can_host(node, demand, outlives), left)
            prefer_node(machine, number, ANY)
