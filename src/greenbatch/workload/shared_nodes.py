"""The part of its nodes' energy that belongs to a job which shared them.

Slurm books the energy of whole nodes on every job that runs there: "in case of node sharing between jobs the reported
consumed energy per job will not reflect the real energy consumed by the jobs" (``man slurm.conf``,
AcctGatherEnergyType). Added up, the energy of a shared node is counted once for each of its jobs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

COARSE = 1.05
"""Ratio up to which two energies may differ because sensors are read seldom."""
LEAST_PROCESSOR_W = 1.0
"""A node draws more for each of its busy processors, its idle power included. [W]"""
FEW = 0.1
"""Share of contradicting pairs up to which energies are taken as those of nodes."""


def are_of_nodes(
    nodes_of: Sequence[Sequence[str]], start_s: Floats, run_s: Floats, processors: Floats, energy_j: Floats,
    parts: Floats,
) -> bool:  # fmt: skip
    """Whether measured energies can be those of whole nodes; some sites record those of the jobs themselves.

    A node uses no more in a part of a time than in all of it. So of two jobs on one node of which one ran within the
    other's time, the inner one cannot have more energy, if it is the node's. Energies of jobs contradict that wherever
    the inner job is the larger one. Only jobs on a single node are looked at, each beside the next one that started.
    And energies are those of jobs if splitting them would leave most jobs that shared nodes with less than
    `LEAST_PROCESSOR_W` per processor.

    Args:
        nodes_of: names of the nodes of each job.
        start_s: starts of the jobs. [s]
        run_s: run times. [s]
        processors: processors of the jobs.
        energy_j: measured energies, NaN if none. [J]
        parts: their parts, as of `parts_of_nodes`.
    """
    shared = np.isfinite(energy_j) & (parts < 1)
    if shared.any() and np.median((energy_j * parts / run_s / processors)[shared]) < LEAST_PROCESSOR_W:
        return False
    alone = np.array([len(names) == 1 for names in nodes_of], dtype=bool) & np.isfinite(energy_j) & np.isfinite(start_s)
    jobs = np.flatnonzero(alone)
    _, node = np.unique([nodes_of[job][0] for job in jobs.tolist()], return_inverse=True)
    end_s = (start_s + run_s)[jobs]
    order = np.lexsort((-energy_j[jobs], -end_s, start_s[jobs], node))
    outer, inner = order[:-1], order[1:]
    nested = (node[outer] == node[inner]) & (end_s[inner] <= end_s[outer])
    same = nested & (start_s[jobs][outer] == start_s[jobs][inner]) & (end_s[outer] == end_s[inner])
    outer_j, inner_j = energy_j[jobs][outer], energy_j[jobs][inner]
    contradicts = (nested & (inner_j > COARSE * outer_j)) | (same & (outer_j > COARSE * inner_j))
    return bool(np.count_nonzero(contradicts) <= FEW * np.count_nonzero(nested))


def parts_of_nodes(
    nodes_of: Sequence[Sequence[str]], start_s: Floats, run_s: Floats, processors: Floats
) -> Floats:  # fmt: skip
    """Part of the energy of its nodes that each job is given, 0 to 1, shape (n,); exactly 1 if it was alone on them.

    At every instant the power of a node is split among the jobs on it by their processors there; a job's processors are
    spread evenly over its nodes, and its power is constant. Of equal jobs that run together each gets an equal part, so
    the parts add up to the energy of the node. What no job of the dump uses is part of what those on the node get.

    Args:
        nodes_of: names of the nodes of each job; none if unknown.
        start_s: starts of the jobs, NaN if they never ran. [s]
        run_s: run times so far. [s]
        processors: processors of the jobs.
    """
    counts = np.array([len(names) for names in nodes_of], dtype=np.int64)
    ran = (counts > 0) & np.isfinite(start_s) & (run_s > 0) & (processors > 0)
    parts = np.ones(len(counts))
    jobs = np.repeat(np.flatnonzero(ran), counts[ran])
    if not jobs.size:
        return parts
    number: dict[str, int] = {}
    holders = np.flatnonzero(ran).tolist()
    node = np.array([number.setdefault(name, len(number)) for job in holders for name in nodes_of[job]])
    held = processors[jobs] / counts[jobs]
    times_s = np.concatenate((start_s[jobs], start_s[jobs] + run_s[jobs]))
    order = np.lexsort((times_s, np.concatenate((node, node))))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    begins = np.concatenate((np.ones(len(jobs)), -np.ones(len(jobs))))[order]
    running = np.cumsum(begins)
    busy = np.cumsum(begins * np.concatenate((held, held))[order])
    length_s = np.append(np.diff(times_s[order]), 0.0) * (running > 0)  # 0 from the last end on a node to the next node
    together_s = _since_start(length_s * (running > 1))
    per_processor_s = _since_start(np.divide(length_s, busy, out=np.zeros(len(busy)), where=running > 0))
    first, last = place[: len(jobs)], place[len(jobs) :]
    shared = (together_s[last] - together_s[first]) > 0
    part = np.where(shared, held * (per_processor_s[last] - per_processor_s[first]) / run_s[jobs], 1.0)
    parts[ran] = np.add.reduceat(part, np.flatnonzero(np.diff(jobs, prepend=-1))) / counts[ran]
    return np.where(np.bincount(jobs, weights=shared, minlength=len(parts)) > 0, np.minimum(parts, 1.0), 1.0)


def _since_start(lengths_s: Floats) -> Floats:
    """Sum of the lengths before each event."""
    return np.cumsum(lengths_s) - lengths_s
