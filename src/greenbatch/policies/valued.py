"""Rules for jobs with value and quality of service.

Source: RARE (dissertation), §5.4.2, whose other rules are ``sjf`` and ``fcfs``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.program import Program
from greenbatch.engine.settings import SEED, Parameter, word
from greenbatch.engine.views.interface import Queue
from greenbatch.policies.registry import planner, rule
from greenbatch.workload import Workload

Scores = NDArray[np.float64]


@rule("qos", fixed=True)
def qos(queue: Queue) -> Scores:
    """Highest quality of service first; ties by submission."""
    return -np.nan_to_num(queue.attributes.qos)


@rule("hvf", fixed=True)
def hvf(queue: Queue) -> Scores:
    """Highest value first; ties by submission."""
    return -np.nan_to_num(queue.attributes.value)


_PACKER: dict[str, Any] = {
    "size": Parameter(default=1.0, lowest=0.0, highest=4.0, meaning="exponent of the processors and GPUs of a job"),
    "bias": Parameter(default=0.5, lowest=0.0, highest=10.0, meaning="added to the QoS of a job"),
    "age": Parameter(default=0.02, lowest=0.0, highest=10.0, meaning="weight of a tick of waiting"),
    "length": Parameter(default=0.0, lowest=-2.0, highest=2.0, meaning="exponent of the requested time in ticks"),
    "balance": Parameter(
        default=0.0, lowest=0.0, highest=10.0, meaning="cost of a unit that one resource has free beyond the other"
    ),
}


@planner("packer", **_PACKER)
def packer(_: Workload, **weights: float) -> Program:
    """Start the set of ready jobs that fit together and weigh most, for machines whose capacity follows the power.

    A job weighs (processors + GPUs)^``size`` x (``bias`` + QoS) x (1 + ``age`` x ticks waited) x length^``length``.
    Source: the headroom study of RARE's environment (this project).
    """
    from greenbatch.policies.compiled.packer import packer_policy

    return Program(name="packer", decider=packer_policy(**weights))


@planner(
    "random-action", seed=SEED,
    of=word("which actions are drawn from; fitting: ready jobs that can start", "all", "allowed", "fitting"),
)  # fmt: skip
def random_action(_: Workload, *, of: float, seed: float) -> Program:
    """Random actions at every tick, for machines whose capacity follows the power: an agent that has learned nothing.

    By default one of all slots of the ready pool, suspending and waiting, until one ends the tick.
    """
    from greenbatch.policies.compiled.random_action import random_policy

    return Program(name="random-action", decider=random_policy(int(of), int(seed)))
