"""Per-job metrics: one value per job, in the order of the outcome's workload.

In all of them, the run time is the executed time ``end - start``, without the time for which a job was suspended. It is
shorter than in the trace for killed jobs, and for jobs that the end of the run cuts off: these do not count in the
figures over jobs. Values are NaN where a job has not started or not ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.outcome import Outcome
from greenbatch.metrics.energy_use import energy_use

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

BOUND_S = 10.0
"""Shortest run time that bounded slowdown divides by, tau in the papers. [s]"""

CLASSES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "under_5min": (0.0, 300.0),
        "5min_to_1h": (300.0, 3_600.0),
        "1h_to_4h": (3_600.0, 14_400.0),
        "over_4h": (14_400.0, np.inf),
    }
)
"""Run-time classes: name -> shortest (included) and longest (excluded) executed time. [s]"""


def run_s(outcome: Outcome) -> Floats:
    """Executed time, ``end - start`` without suspensions. [s], > 0; up to the end of the run, 0 if the job has not
    started; shape (n,).
    """
    return outcome.run_s


def wait_s(outcome: Outcome) -> Floats:
    """Waiting time, ``start - submit``. [s], >= 0, shape (n,).

    Source: RLScheduler (SC 2020), section II-A; the ``w`` of GAS-MARL Eq. 5.
    """
    return outcome.start_s - outcome.workload.submit_s


def turnaround_s(outcome: Outcome) -> Floats:
    """Time from submission to end, ``end - submit``. [s], > 0, shape (n,).

    Source: RLScheduler (SC 2020), section II-A.
    """
    return outcome.end_s - outcome.workload.submit_s


def slowdown(outcome: Outcome) -> Floats:
    """Turnaround over run time, ``(wait + run) / run``. [-], >= 1, shape (n,).

    Source: Feitelson et al., Theory and practice in parallel job scheduling (JSSPP 1997), section 3.
    """
    return turnaround_s(outcome) / run_s(outcome)


def bounded_slowdown(outcome: Outcome) -> Floats:
    """Slowdown, bounded for very short jobs: ``max(1, (wait + run) / max(run, 10 s))``. [-], >= 1, shape (n,).

    Source: GAS-MARL Eq. 5 with tau = 10 s (after Feitelson 2001).
    """
    return np.maximum(1.0, turnaround_s(outcome) / np.maximum(run_s(outcome), BOUND_S))


def energy_j(outcome: Outcome) -> Floats:
    """Energy that the job causes: its own power, or that of its processors and GPUs, and on nodes its part of their
    static power, which the jobs on a node share equally at each instant. [J], >= 0, shape (n,); NaN if unknown.

    ``integral of (dynamic power + sum over its nodes of static power / jobs on the node)``. Idle power belongs to no
    job. Source: InEPS (López et al. 2025) Eq. 1, with the jobs that are there instead of an estimate.
    """
    return energy_use(outcome).job_j


def edp_js(outcome: Outcome) -> Floats:
    """Energy-delay product of the job, ``energy * run``. [J s], >= 0, shape (n,); NaN if its power is unknown.

    Source: InEPS (López et al. 2025) section 3.3.3, with the energy and the run time of one job.
    """
    return energy_j(outcome) * run_s(outcome)


PER_JOB: Mapping[str, Callable[[Outcome], Floats]] = MappingProxyType(
    {
        "wait_s": wait_s,
        "turnaround_s": turnaround_s,
        "slowdown": slowdown,
        "bounded_slowdown": bounded_slowdown,
        "energy_j": energy_j,
        "edp_js": edp_js,
    }
)
"""Name -> per-job metric."""


def run_time_class(outcome: Outcome, name: str) -> Mask:
    """Mask of the jobs in a run-time class (a key of `CLASSES`), shape (n,)."""
    shortest_s, longest_s = CLASSES[name]
    run = run_s(outcome)
    return (run >= shortest_s) & (run < longest_s)
