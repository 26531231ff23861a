"""Models after Cirne & Berman 2001 and Jann et al. 1997, fitted to traces made with the original models.

The original parameters and programs were not available: the structure follows the papers, and the numbers are fitted to
the traces Cirne.swf and Jann.swf that RLScheduler and GAS-MARL use. Call the jobs "Cirne-like" and "Jann-like".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from greenbatch.workload.synthetic import check_arguments, merged
from greenbatch.workload.table import Workload

Floats = NDArray[np.float64]

CIRNE_RATE = (
    110.39, 2007.7, 59.147, -5668.3, -736.12, 5882.0, 897.54, -2697.9, -373.46, 499.76, 36.183, -21.16, 11.002,
)  # fmt: skip
"""Polynomial of the arrival rate in u = (hour - 12) / 12, highest power first. [jobs/h]"""
CIRNE_KEPT = 0.8546
"""Share of the arrivals that become jobs; the others are most likely canceled jobs of the original model."""

JANN_PROCESSORS = 322


@dataclass(frozen=True, slots=True)
class HyperErlang:
    """Erlang distribution of order n, with scale first_s [s] with probability p, else with scale second_s [s]."""

    n: int
    p: float
    first_s: float
    second_s: float

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw times, shape (count,). [s]"""
        scale_s = np.where(rng.random(count) < self.p, self.first_s, self.second_s)
        return rng.standard_gamma(self.n, count) * scale_s


JANN_CLASSES: tuple[tuple[int, int, HyperErlang, HyperErlang], ...] = (
    (1, 1, HyperErlang(4, 0.456, 8085, 215.07), HyperErlang(1, 0.082, 6168.8, 490.63)),
    (2, 2, HyperErlang(7, 0.395, 6250.7, 4.986), HyperErlang(1, 0.190, 30764, 999.6)),
    (3, 4, HyperErlang(4, 0.258, 8967.1, 18.02), HyperErlang(1, 0.139, 19279, 860.4)),
    (5, 8, HyperErlang(1, 0.387, 13810, 17.93), HyperErlang(1, 0.258, 12543, 539.2)),
    (9, 16, HyperErlang(3, 0.299, 10548, 128.3), HyperErlang(1, 0.132, 13677, 1405)),
    (17, 32, HyperErlang(1, 0.342, 16049, 168.5), HyperErlang(1, 0.118, 24475, 2165)),
    (33, 64, HyperErlang(2, 0.281, 18078, 446.6), HyperErlang(1, 0.476, 17389, 215)),
    (65, 128, HyperErlang(4, 0.211, 13756, 39.3), HyperErlang(2, 0.593, 25140, 1764)),
    (129, 256, HyperErlang(3, 0.167, 422, 2.08), HyperErlang(1, 0.323, 218490, 3212)),
    (257, 322, HyperErlang(5, 0.107, 12112, 8.94), HyperErlang(1, 0.213, 534880, 41373)),
)
"""Smallest and largest size, run time and gap of each class. The last two are fitted to only 54 and 28 jobs."""


def cirne(
    jobs: int, seed: int, *, processors: int = 128, gap_factor: float = 1.0, user_estimates: bool = False
) -> Workload:
    """Cirne-like jobs: a fixed daily curve of arrivals, log-uniform sizes, run time = request x accuracy.

    Arrivals lie where the cumulative rate is a whole number, and a random seventh of them is left out; time 0 is
    midnight. Run times do not depend on sizes. Fitted to Cirne.swf; see the module.

    Args:
        jobs: number of jobs, >= 1.
        seed: seed of the random numbers, >= 0.
        processors: machine size; the fit is for 128.
        gap_factor: every gap is multiplied by this before the daily curve is applied; 0.5 doubles the load.
        user_estimates: request the time that the model draws first, instead of the run time. Only run times are
            fitted, so these estimates have not been validated.

    Raises:
        InputError: an argument is out of range.
    """
    check_arguments(jobs, seed, processors, gap_factor)
    kept, sizes, runs = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(3))
    places = np.cumsum(kept.geometric(CIRNE_KEPT, jobs)) * gap_factor
    largest = log2(processors)
    exponent = np.clip(sizes.uniform(-1.1, 6.6 + largest - 7, jobs), 0, largest) if processors > 1 else np.zeros(jobs)
    exponent = np.where(sizes.random(jobs) < 0.75, np.floor(exponent + 0.5), exponent)
    size = np.clip(np.floor(2**exponent + 0.5), 1, processors).astype(np.int64)
    requested_s = np.ceil(np.exp(runs.uniform(5, 12.12, jobs)))
    run_s = np.maximum(np.floor(requested_s * np.minimum(runs.standard_gamma(0.7, jobs) * 0.5, 1)), 1)
    workload = merged(f"cirne-{processors}", [(_cirne_time(places), run_s, size, np.full(jobs, -1))], jobs, processors)
    return workload.with_columns(requested_time_s=requested_s) if user_estimates else workload


def jann(jobs: int, seed: int, *, gap_factor: float = 1.0) -> Workload:
    """Jann-like jobs: ten independent size classes with hyper-Erlang gaps and run times, on 322 processors.

    Sizes are uniform within a class; there is no daily cycle. Fitted to Jann.swf; see the module.

    Args:
        jobs: number of jobs, >= 1.
        seed: seed of the random numbers, >= 0.
        gap_factor: every gap is multiplied by this; 0.5 doubles the load.

    Raises:
        InputError: an argument is out of range.
    """
    check_arguments(jobs, seed, JANN_PROCESSORS, gap_factor)
    seeds = np.random.SeedSequence(seed).spawn(len(JANN_CLASSES))
    generators = [tuple(map(np.random.default_rng, s.spawn(2))) for s in seeds]
    arrivals = [_arrivals(gap, rngs[0]) for (_, _, _, gap), rngs in zip(JANN_CLASSES, generators, strict=True)]
    horizon_s = jobs * 405.0
    times = [_until(stream, np.empty(0), horizon_s) for stream in arrivals]
    while sum(int((t <= horizon_s).sum()) for t in times) < jobs:
        horizon_s *= 1.1
        times = [_until(stream, t, horizon_s) for stream, t in zip(arrivals, times, strict=True)]
    streams = []
    for (smallest, largest, run, _), t, (_, rng) in zip(JANN_CLASSES, times, generators, strict=True):
        n = len(t)
        size = rng.integers(smallest, largest + 1, n)
        run_s = np.maximum(np.floor(run.draw(rng, n)), 1)
        streams.append((t * gap_factor, run_s, size, np.full(n, -1)))
    return merged("jann-322", streams, jobs, JANN_PROCESSORS)


def _arrivals(gap: HyperErlang, rng: np.random.Generator) -> Iterator[Floats]:
    """An endless stream of arrival times, 1000 at a time. [s]"""
    last_s = 0.0
    while True:
        times = last_s + np.cumsum(gap.draw(rng, 1000))
        last_s = float(times[-1])
        yield times


def _until(stream: Iterator[Floats], times: Floats, horizon_s: float) -> Floats:
    """``times``, continued from the stream until they pass the horizon."""
    parts = [times]
    while not (len(parts[-1]) and parts[-1][-1] > horizon_s):
        parts.append(next(stream))
    return np.concatenate(parts)


def _cirne_time(places: NDArray[np.floating]) -> Floats:
    """Seconds from midnight at which the cumulative arrival rate reaches the given values."""
    cumulative = np.polyint(np.array(CIRNE_RATE)) * 12
    hours = np.linspace(0, 24, 24 * 360 + 1)
    arrived = np.polyval(cumulative, (hours - 12) / 12)
    arrived -= arrived[0]
    day, rest = np.divmod(places, arrived[-1])
    return (day * 24 + np.interp(rest, arrived, hours)) * 3600
