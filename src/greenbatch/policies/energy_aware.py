"""Rules of InEPS for machines with nodes: which job, on which node, by estimates of time and energy.

Sources: López, Stafford & Bosque, "Intelligent energy pairing scheduler (InEPS) for heterogeneous HPC clusters", 2025,
§4 and Eq. 1; and the energy heuristic of its simulator, which tries every waiting job and puts jobs first that have
waited for a minute.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.program import Program
from greenbatch.engine.settings import word
from greenbatch.engine.views.interface import Queue
from greenbatch.policies.registry import compile_once, planner, rule
from greenbatch.workload import Workload

Scores = NDArray[np.float64]

PATIENCE_S = 60.0
"""Jobs that have waited for so long go first. [s]"""


@rule("low-mem", fixed=True)
def low_mem(queue: Queue) -> Scores:
    """Least requested memory of a processor first (InEPS, Table 2); ties by submission."""
    return np.nan_to_num(queue.attributes.requested_memory_kb)


@rule("low-mem-ops", fixed=True)
def low_mem_ops(queue: Queue) -> Scores:
    """Lowest memory volume of a processor first (InEPS, Table 2); ties by submission."""
    return np.nan_to_num(queue.attributes.memory_volume_mb)


# The keys of a job: the size of what it asks for, so that the lowest (or highest) goes first, and one below all others
# once it has waited for a minute. They are strictly monotonic in the size.


def _lowest_energy(queue: Queue) -> Scores:
    size = np.nan_to_num(queue.attributes.requested_energy_j) * queue.processors
    return np.where(queue.wait_s >= PATIENCE_S, -1.0 / (1.0 + size), size)


def _highest_energy(queue: Queue) -> Scores:
    size = np.nan_to_num(queue.attributes.requested_energy_j) * queue.processors
    return np.where(queue.wait_s >= PATIENCE_S, -2.0, 0.0) + 1.0 / (1.0 + size)


def _lowest_edp(queue: Queue) -> Scores:
    size = np.nan_to_num(queue.attributes.requested_energy_j) * queue.requested_time_s * queue.processors
    return np.where(queue.wait_s >= PATIENCE_S, -1.0 / (1.0 + size), size)


def _highest_edp(queue: Queue) -> Scores:
    size = np.nan_to_num(queue.attributes.requested_energy_j) * queue.requested_time_s * queue.processors
    return np.where(queue.wait_s >= PATIENCE_S, -2.0, 0.0) + 1.0 / (1.0 + size)


def _lowest_time_tasks(queue: Queue) -> Scores:
    size = queue.requested_time_s * queue.processors
    return np.where(queue.wait_s >= PATIENCE_S, -1.0 / (1.0 + size), size)


def _highest_time_tasks(queue: Queue) -> Scores:
    size = queue.requested_time_s * queue.processors
    return np.where(queue.wait_s >= PATIENCE_S, -2.0, 0.0) + 1.0 / (1.0 + size)


METRICS = ("energy", "edp", "timetasks")
ENDS = ("lowest", "highest")
ORDERS = (
    (_lowest_energy, _highest_energy), (_lowest_edp, _highest_edp), (_lowest_time_tasks, _highest_time_tasks),
)  # fmt: skip
"""Order of the jobs, by metric and end."""
NODES = (("low-energy", "high-energy"), ("low-edp", "high-edp"), ("low-energy", "high-energy"))
"""Placement, by metric and end; without an estimate of its own, ``timetasks`` places by energy."""


@planner(
    "eq1", metric=word("what jobs and nodes are ordered by", *METRICS), jobs=word("which jobs go first", *ENDS),
    nodes=word("which nodes go first", *ENDS),
)  # fmt: skip
def eq1(_: Workload, *, metric: float, jobs: float, nodes: float) -> Program:
    """List scheduling by the estimated energy, or energy x time, of a job on a node (InEPS, Eq. 1)."""
    order = ORDERS[int(metric)][int(jobs)]
    return Program(
        name="eq1", score=order, fixed=False, compiled=compile_once(order), backfill="first-fit",
        placement=NODES[int(metric)][int(nodes)],
    )  # fmt: skip


@planner("minimal")
def minimal(_: Workload) -> Program:
    """First come, first served on the first free processors of any nodes, whatever nodes a job asks for (IRMaSim)."""
    return Program(name="minimal", score=_by_submission, spans=True)


def _by_submission(queue: Queue) -> Scores:
    return queue.submit_s
