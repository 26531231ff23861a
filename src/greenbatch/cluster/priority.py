"""What decides the order of jobs at a Slurm site: weights of the multifactor priority, and the partitions.

Keys, defaults and units: ``man slurm.conf`` (Slurm 24.05), and https://slurm.schedmd.com/priority_multifactor.html.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition of a Slurm cluster, as far as it concerns the order of jobs."""

    name: str
    """``PartitionName``."""
    default: bool = False
    """Whether jobs that name no partition belong to it."""
    max_time_s: float = inf
    """``MaxTime``, the longest time that a job may request; infinite if there is no limit. [s]"""
    tier: int = 1
    """``PriorityTier``: jobs of a partition of a higher tier are considered first. 0 to 65533"""
    job_factor: int = 1
    """``PriorityJobFactor``, divided by the largest of all partitions to give the partition factor. 0 to 65533"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityWeights:
    """Weights of Slurm's multifactor priority.

    A job's priority is the sum of weight x factor, each factor from 0 to 1: age (wait / ``max_age_s``, at most 1), fair
    share, size, partition and quality of service. With all weights 0 every job has the same priority, first come, first
    served.
    """

    age: int = 0
    """``PriorityWeightAge``, >= 0."""
    fair_share: int = 0
    """``PriorityWeightFairshare``, >= 0."""
    job_size: int = 0
    """``PriorityWeightJobSize``, >= 0."""
    partition: int = 0
    """``PriorityWeightPartition``, >= 0."""
    qos: int = 0
    """``PriorityWeightQOS``, >= 0."""
    max_age_s: float = 7 * 86_400.0
    """``PriorityMaxAge``: the wait at which the age factor reaches 1, > 0. [s]"""
    favor_small: bool = False
    """``PriorityFavorSmall``: small jobs get the large size factors."""
    decay_half_life_s: float = 7 * 86_400.0
    """``PriorityDecayHalfLife``: the age at which past use counts half in the fair share; 0: it never decays. [s]"""
    calc_period_s: float = 300.0
    """``PriorityCalcPeriod``: the time between two updates of the decayed use, > 0. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority:
    """How a Slurm site orders its jobs: its weights and its partitions."""

    weights: PriorityWeights = PriorityWeights()
    """Weights of the multifactor priority."""
    partitions: tuple[Partition, ...] = ()
    """The partitions, in the order of the file."""
