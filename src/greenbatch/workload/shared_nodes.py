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
    node = np.array([number.setdefault(name, len(number)) for job in np.flatnonzero(ran) for name in nodes_of[job]])
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
