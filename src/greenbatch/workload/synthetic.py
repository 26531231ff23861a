"""The workload model of Lublin & Feitelson: job sizes, run times and arrivals with a daily cycle.

Source: U. Lublin, D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid
jobs", J. Parallel Distrib. Comput. 63(11), 2003, pp. 1105-1122, and the authors' program m_lublin99.c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, log2
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.workload.table import Workload

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LublinType:
    """Parameters of one type of jobs; symbols as in m_lublin99.c. Gamma distributions are (shape, scale)."""

    serial: float
    """Share of jobs on one processor."""
    power_of_two: float
    """Share of all jobs whose size is rounded to a power of two (other sizes may be a power of two by chance)."""
    size_low: float
    size_medium: float
    size_high: float
    """ULOW, UMED, UHI: the log2 sizes are uniform in [low, medium] or [medium, high]."""
    size_low_share: float
    """UPROB: share of parallel jobs in [low, medium]."""
    run_short: tuple[float, float]
    run_long: tuple[float, float]
    """a1, b1 and a2, b2: two gamma distributions of ln(run time in s)."""
    run_short_share: tuple[float, float]
    """pa, pb: share of the first distribution = pa x size + pb, clipped to [0, 1]."""
    gap: tuple[float, float]
    """aarr, barr: gamma distribution of ln(gap in s), in rush hours."""
    cycle: tuple[float, float]
    """anum, bnum: gamma distribution that gives the daily cycle, in half-hours."""
    all_hours: float
    """ARAR: factor that turns aarr of rush hours into that of all hours."""
    queue: int
    """SWF field 15: 0 interactive (and combined), 1 batch."""


LUBLIN_TYPES: Mapping[str, LublinType] = MappingProxyType(
    {
        "combined": LublinType(
            serial=0.244, power_of_two=0.576, size_low=0.8, size_medium=4.5, size_high=7, size_low_share=0.86,
            run_short=(4.2, 0.94), run_long=(312, 0.03), run_short_share=(-0.0054, 0.78), gap=(10.2303, 0.4871),
            cycle=(8.1737, 3.9631), all_hours=1.0225, queue=0,
        ),
        "batch": LublinType(
            serial=0.2927, power_of_two=0.6686, size_low=1.2, size_medium=5, size_high=7, size_low_share=0.875,
            run_short=(6.57, 0.823), run_long=(639.1, 0.0156), run_short_share=(-0.003, 0.6986), gap=(6.0415, 0.8531),
            cycle=(6.1271, 5.2740), all_hours=1.0519, queue=1,
        ),
        "interactive": LublinType(
            serial=0.1541, power_of_two=0.625, size_low=1, size_medium=3, size_high=5.5, size_low_share=0.705,
            run_short=(3.8351, 0.6605), run_long=(7.073, 0.6856), run_short_share=(-0.0118, 0.9156),
            gap=(6.5510, 0.6621), cycle=(8.9186, 3.6680), all_hours=0.9797, queue=0,
        ),
    }
)  # fmt: skip
"""The defaults of m_lublin99.c, for a machine of 128 processors."""

LARGEST_LN_RUN = 12.0
"""ln(run time in s) is redrawn above this: 162,754 s."""
LARGEST_LN_GAP = 13.0
SLOT_S = 1800
SLOTS = 48
_CYCLE_START = 11
"""The gamma distribution of the daily cycle begins at this slot, counted from 1: 05:00."""


def lublin(
    jobs: int,
    seed: int,
    *,
    processors: int = 256,
    types: Mapping[str, LublinType] | None = None,
    gap_factor: float = 1.0,
) -> Workload:
    """Jobs from the model of Lublin & Feitelson 2003; time 0 is midnight, the first job arrives after the first gap.

    The requested time is the run time, because the model has no user estimates. With the same version of NumPy, the
    same arguments give the same bytes.

    Args:
        jobs: number of jobs, >= 1.
        seed: seed of the random numbers, >= 0.
        processors: machine size; sizes are set by `for_machine` unless ``types`` are given.
        types: job types, each an independent stream, e.g. ``for_machine(256, "batch", "interactive")``; by default
            the combined model.
        gap_factor: every gap is multiplied by this before the daily cycle is applied; 0.5 doubles the load.

    Raises:
        InputError: an argument is out of range.
    """
    check_arguments(jobs, seed, processors, gap_factor)
    chosen = for_machine(processors) if types is None else types
    if not chosen:
        raise InputError("no job type", field="types", fix=f"give some of {', '.join(LUBLIN_TYPES)}")
    streams = []
    for kind, seeds in zip(chosen.values(), np.random.SeedSequence(seed).spawn(len(chosen)), strict=True):
        arrivals, sizes, runs = map(np.random.default_rng, seeds.spawn(3))
        size = np.minimum(_sizes(sizes, jobs, kind), processors)
        submit_s = _submits(arrivals, jobs, kind, gap_factor)
        streams.append((submit_s, _run_times(runs, size, kind), size, np.full(jobs, kind.queue)))
    return merged(f"lublin-{processors}", streams, jobs, processors)


def for_machine(processors: int, *names: str) -> dict[str, LublinType]:
    """Job types for a machine: UHI = log2(processors) and UMED = UHI - 2.5, the rule of m_lublin99.c.

    Args:
        processors: machine size, >= 1.
        *names: some of ``combined``, ``batch``, ``interactive``; ``combined`` by default.

    Raises:
        InputError: there is no such job type.
    """
    high = log2(max(processors, 1))
    types = {}
    for name in names or ("combined",):
        if name not in LUBLIN_TYPES:
            raise InputError(f"{name!r} is not a job type", field="types", fix=f"use {', '.join(LUBLIN_TYPES)}")
        low = min(LUBLIN_TYPES[name].size_low, high)
        types[name] = replace(
            LUBLIN_TYPES[name], size_low=low, size_medium=max(high - 2.5, low), size_high=max(high, low)
        )
    return types


def daily_weights(kind: LublinType) -> Floats:
    """Relative arrival rate in each half-hour of the day from 00:00, shape (48,), mean 1."""
    shape, scale = kind.cycle
    slot = np.arange(_CYCLE_START, _CYCLE_START + SLOTS)
    nodes, node_weights = np.polynomial.legendre.leggauss(12)
    x = slot[:, np.newaxis] + nodes / 2
    # The normalization cancels, so integrating the density over each slot replaces a CDF.
    density = np.exp((shape - 1) * np.log(x / slot[0]) - (x - slot[0]) / scale)
    weights = np.empty(SLOTS)
    weights[(slot - 1) % SLOTS] = density @ node_weights
    weights /= weights.mean()
    return weights


def check_arguments(jobs: int, seed: int, processors: int, gap_factor: float) -> None:
    """Refuse arguments that no model accepts.

    Raises:
        InputError: naming the argument.
    """
    for field, value, lowest in (("jobs", jobs, 1), ("seed", seed, 0), ("processors", processors, 1)):
        if value < lowest:
            raise InputError(f"is {value}", field=field, fix=f"it must be >= {lowest}")
    if not (isfinite(gap_factor) and gap_factor > 0):
        raise InputError(f"is {gap_factor}", field="gap_factor", fix="give a number > 0; 0.5 doubles the load")


def merged(name: str, streams: Sequence[tuple[NDArray[Any], ...]], jobs: int, processors: int) -> Workload:
    """The first ``jobs`` jobs of several streams of (submit, run time, size, queue), in order of submission."""
    submit_s, run_s, size, queue = (np.concatenate(parts) for parts in zip(*streams, strict=True))
    order = np.argsort(submit_s, kind="stable")[:jobs]
    columns = {
        "submit_s": np.floor(submit_s[order]), "run_time_s": run_s[order], "processors": size[order],
        "queue": queue[order], "status": np.ones(jobs, dtype=np.int64),
    }  # fmt: skip
    return Workload.from_columns(name, columns, machine_processors=processors)


def _sizes(rng: np.random.Generator, n: int, kind: LublinType) -> NDArray[np.int64]:
    which, low, spread = rng.random((3, n))
    start = np.where(low < kind.size_low_share, kind.size_low, kind.size_medium)
    end = np.where(low < kind.size_low_share, kind.size_medium, kind.size_high)
    exponent = start + (end - start) * spread
    # One number decides both, so rounding adds to the sizes that are powers of two by chance.
    exponent = np.where(which <= kind.serial + kind.power_of_two, np.floor(exponent + 0.5), exponent)
    return np.where(which <= kind.serial, 1, np.floor(2**exponent + 0.5)).astype(np.int64)


def _run_times(rng: np.random.Generator, size: NDArray[np.int64], kind: LublinType) -> Floats:
    slope, intercept = kind.run_short_share
    short_share = np.clip(slope * size + intercept, 0, 1)
    ln_run = np.full(len(size), np.inf)
    while (redraw := np.flatnonzero(ln_run > LARGEST_LN_RUN)).size:
        short = rng.random(redraw.size) < short_share[redraw]
        shape, scale = (np.where(short, kind.run_short[k], kind.run_long[k]) for k in (0, 1))
        ln_run[redraw] = rng.standard_gamma(shape) * scale
    run_s: Floats = np.maximum(np.floor(np.exp(ln_run)), 1)
    return run_s


def _submits(rng: np.random.Generator, n: int, kind: LublinType, gap_factor: float) -> Floats:
    """Submit times [s]: gaps follow the daily weights, so that many jobs arrive in rush hours and few at night."""
    ln_gap = np.full(n, np.inf)
    while (redraw := np.flatnonzero(ln_gap > LARGEST_LN_GAP)).size:
        ln_gap[redraw] = rng.standard_gamma(kind.gap[0] * kind.all_hours, redraw.size) * kind.gap[1]
    points = np.cumsum(np.exp(ln_gap)) * gap_factor / SLOT_S
    within_day = np.concatenate(([0], np.cumsum(daily_weights(kind))))
    within_day[-1] = SLOTS  # rounding
    day, rest = np.divmod(points, SLOTS)
    submit_s: Floats = (day * SLOTS + np.interp(rest, within_day, np.arange(SLOTS + 1))) * SLOT_S
    return submit_s
