"""Jobs of a few kinds in a given or random order, such as those of InEPS (López et al. 2025, Tables 4 and 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.workload.irmasim import REFERENCE_GFLOPS
from greenbatch.workload.table import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProfile:
    """A kind of jobs."""

    name: str
    """Name, without blanks, not a number."""
    processors: int
    """Processors, on one node, >= 1."""
    operations: float
    """Floating-point operations of each processor, > 0."""
    requested_time_s: float | None = None
    """Requested time, > 0; the run time on a processor of speed 1 by default. [s]"""
    memory_mb: float = 0.0
    """Memory of each processor, >= 0. [MB]"""
    memory_volume_mb: float = 0.0
    """Data that each processor moves from and to memory, for contention, >= 0. [MB]"""
    requested_energy_j: float = 0.0
    """Energy that the user expects each processor to use, >= 0. [J]"""


def profile_jobs(
    profiles: Sequence[JobProfile],
    order: str,
    *,
    jobs: int,
    gap_s: float = 0.0,
    shuffle_seed: int | None = None,
    reference_gflops: float = REFERENCE_GFLOPS,
    name: str = "profiles",
) -> Workload:
    """Jobs of the given profiles, submitted at equal intervals.

    Args:
        profiles: the kinds of jobs.
        order: names of profiles in the order of submission, separated by blanks; a number before a name repeats it
            (``10 A 10 B``); repeated from the beginning until all jobs are made.
        jobs: number of jobs, >= 1.
        gap_s: time between two submissions, rounded to microseconds, >= 0. [s]
        shuffle_seed: shuffles the jobs with this seed; None keeps the order.
        reference_gflops: peak of a processor of speed 1, > 0. [Gflop/s]
        name: name of the workload.

    Raises:
        InputError: a profile occurs twice, or the order names none or an unknown one.
    """
    names = [profile.name for profile in profiles]
    if twice := sorted({each for each in names if names.count(each) > 1}):
        raise InputError(f"profile {twice[0]!r} is listed twice", field="profiles", fix="name each once")
    sequence = _sequence(order, names, jobs)
    kinds = np.array([sequence[k % len(sequence)] for k in range(jobs)])
    if shuffle_seed is not None:
        np.random.default_rng(shuffle_seed).shuffle(kinds)
    run_s = np.array([ceil(profile.operations) / (reference_gflops * 1e9) for profile in profiles])
    asked_s = [profile.requested_time_s or run for profile, run in zip(profiles, run_s, strict=True)]

    def column(values: Sequence[float]) -> NDArray[np.float64]:
        taken: NDArray[np.float64] = np.asarray(values, dtype=np.float64)[kinds]
        return taken

    return Workload.from_columns(
        name,
        {
            "job_id": np.arange(jobs),
            "submit_s": np.round(np.arange(jobs) * gap_s, 6),
            "run_time_s": run_s[kinds],
            "requested_time_s": column(asked_s),
            "processors": column([profile.processors for profile in profiles]),
            "nodes": np.ones(jobs),
            "executable": kinds,
            "requested_memory_kb": column([profile.memory_mb * 1000.0 for profile in profiles]),
            "memory_volume_mb": column([profile.memory_volume_mb for profile in profiles]),
            "requested_energy_j": column([profile.requested_energy_j for profile in profiles]),
        },
        names={"executable": dict(enumerate(names))},
    )


def _sequence(order: str, names: Sequence[str], most: int) -> list[int]:
    """Numbers of profiles in the order of submission, at most as many as there are jobs."""
    sequence: list[int] = []
    repeat = 1
    for word in order.split():
        if word.isascii() and word.isdigit():
            repeat = min(int(word[:10]), most)
        elif word in names:
            sequence += [names.index(word)] * repeat
            repeat = 1
        else:
            fix = "use " + ", ".join(names)
            raise InputError(f"there is no profile {word!r:.40}", field="order", fix=fix)
    if not sequence:
        raise InputError("names no profile", field="order", fix="write names of profiles, such as 10 A 10 B")
    return sequence
