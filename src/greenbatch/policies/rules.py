"""Priority rules: each is one function of the queue's columns; the lowest score goes first.

Scores use the scenario's clock: F1 to F4 depend on its origin. The logarithm of submission 0 is minus infinity, so that
job goes first.

Sources: F1-F4 after Carastan-Santos & de Camargo, "Obtaining dynamic scheduling policies with simulation and machine
learning", SC 2017; WFP3 and UNICEP after Tang et al., "Fault-aware, utility-based job scheduling on Blue Gene/P
systems", CLUSTER 2009; all as in RLScheduler (SC 2020), Table III.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.views.interface import Queue
from greenbatch.policies.registry import rule

Scores = NDArray[np.float64]


@rule("fcfs", fixed=True)
def fcfs(queue: Queue) -> Scores:
    """First come, first served."""
    return queue.submit_s


@rule("sjf", fixed=True)
def sjf(queue: Queue) -> Scores:
    """Shortest requested time first; ties by submission."""
    return queue.requested_time_s


@rule("smallest", fixed=True)
def smallest(queue: Queue) -> Scores:
    """Fewest processors first; ties by submission."""
    return queue.processors


@rule("largest", fixed=True)
def largest(queue: Queue) -> Scores:
    """Most processors first; ties by submission."""
    return -queue.processors


@rule("wfp3")
def wfp3(queue: Queue) -> Scores:
    """WFP3: -(wait / requested time)^3 x processors."""
    return -((queue.wait_s / queue.requested_time_s) ** 3) * queue.processors


@rule("unicep")
def unicep(queue: Queue) -> Scores:
    """UNICEP: -wait / (log2(max(processors, 2)) x requested time); the bound keeps serial jobs finite."""
    return -queue.wait_s / (np.log2(np.maximum(queue.processors, 2.0)) * queue.requested_time_s)


@rule("f1", fixed=True)
def f1(queue: Queue) -> Scores:
    """F1: log10(requested time) x processors + 870 log10(submission); a submission of 0 counts as 0.1 s."""
    submit_s = np.where(queue.submit_s > 0.0, queue.submit_s, 0.1)
    return np.log10(queue.requested_time_s) * queue.processors + 870.0 * np.log10(submit_s)


@rule("f2", fixed=True)
def f2(queue: Queue) -> Scores:
    """F2: sqrt(requested time) x processors + 25,600 log10(submission)."""
    return np.sqrt(queue.requested_time_s) * queue.processors + 25_600.0 * np.log10(queue.submit_s)


@rule("f3", fixed=True)
def f3(queue: Queue) -> Scores:
    """F3: requested time x processors + 6,860,000 log10(submission)."""
    return queue.requested_time_s * queue.processors + 6_860_000.0 * np.log10(queue.submit_s)


@rule("f4", fixed=True)
def f4(queue: Queue) -> Scores:
    """F4: requested time x sqrt(processors) + 530,000 log10(submission)."""
    return queue.requested_time_s * np.sqrt(queue.processors) + 530_000.0 * np.log10(queue.submit_s)


@rule("wfp3-published", fixed=True)
def wfp3_published(queue: Queue) -> Scores:
    """WFP3 as in RLScheduler's code: the "wait" is -(1 + submission), which reverses the rule."""
    return ((1.0 + queue.submit_s) / queue.requested_time_s) ** 3 * queue.processors


@rule("unicep-published", fixed=True)
def unicep_published(queue: Queue) -> Scores:
    """UNICEP as in RLScheduler's code: the "wait" is -(1 + submission), which reverses the rule."""
    return (1.0 + queue.submit_s - 1e-15) / (np.log2(queue.processors + 1e-15) * queue.requested_time_s)


@rule("unicep-unbounded")
def unicep_unbounded(queue: Queue) -> Scores:
    """UNICEP without the bound on serial jobs: -wait / (log2(processors) x requested time); serial jobs go first."""
    return -(queue.wait_s + 1e-15) / (np.log2(queue.processors + 1e-15) * queue.requested_time_s)


@rule("longest", fixed=True)
def longest(queue: Queue) -> Scores:
    """Longest requested time first; ties by submission."""
    return -queue.requested_time_s
