"""The order of jobs at Slurm sites."""

from __future__ import annotations

from typing import Any

from greenbatch.cluster.priority import PriorityWeights
from greenbatch.engine.program import Program
from greenbatch.engine.settings import A_YEAR_S, Parameter
from greenbatch.engine.views.interface import Queue
from greenbatch.policies.registry import Scores, planner
from greenbatch.workload import Workload

_DEFAULT = PriorityWeights()


def _weight(meaning: str) -> Parameter:
    return Parameter(default=0.0, lowest=0.0, highest=2.0**32 - 1, whole=True, meaning=f"weight of {meaning}")


_PARAMETERS: dict[str, Any] = {
    "age": _weight("the wait"),
    "fairshare": _weight("the fair share"),
    "size": _weight("the share of the machine's processors"),
    "partition": _weight("the partition"),
    "max_age": Parameter(
        default=_DEFAULT.max_age_s, lowest=1.0, highest=A_YEAR_S, unit="s",
        meaning="wait from which the age factor is 1",
    ),
    "half_life": Parameter(
        default=_DEFAULT.decay_half_life_s, lowest=1.0, highest=10 * A_YEAR_S, unit="s", zero=True,
        meaning="age at which past use counts half; 0: it never decays",
    ),
    "favor_small": Parameter(
        default=0.0, lowest=0.0, highest=1.0, whole=True, meaning="1: the size factor is that of small jobs"
    ),
}  # fmt: skip


def _of_the_decider(queue: Queue) -> Scores:
    """Stands for scores that change: the decider computes them."""
    return queue.wait_s


@planner("slurm-multifactor", **_PARAMETERS)
def slurm_multifactor(
    _: Workload, *, age: float, fairshare: float, size: float, partition: float, max_age: float, half_life: float,
    favor_small: float,
) -> Program:  # fmt: skip
    """Slurm's multifactor priority, highest first; ties by submission.

    Priority = the sum of weight x factor, rounded down: ``age`` (wait / ``max_age`` [s], at most 1), ``fairshare``
    (2^(-U/S), with equal shares S of all users and U the user's part of the processor-seconds used, halved every
    ``half_life`` [s]), ``size`` (processors / those of the machine; the rest of it with ``favor_small``) and
    ``partition`` (its PriorityJobFactor / the largest). If all weights are 0, those of a cluster read from
    ``slurm.conf`` are used; jobs of a higher PriorityTier always go first. QOS, accounts and nice values are not
    considered. Source: Slurm's documentation of priority/multifactor and of the classic fair share.
    """
    from greenbatch.engine.entry_points import no_rule
    from greenbatch.policies.compiled.multifactor import multifactor_policy

    weights = None
    if age or fairshare or size or partition:
        weights = PriorityWeights(
            age=int(age), fair_share=int(fairshare), job_size=int(size), partition=int(partition), max_age_s=max_age,
            decay_half_life_s=half_life, favor_small=bool(favor_small),
        )  # fmt: skip
    return Program(
        name="slurm-multifactor", decider=multifactor_policy(weights), score=_of_the_decider, fixed=False,
        compiled=no_rule(),
    )  # fmt: skip
