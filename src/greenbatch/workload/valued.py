"""Jobs with value and quality of service: a generator, and real traces made into such jobs on a small machine.

Source: RARE (dissertation), §4.4 and Eq. 3.2. The text leaves out laws that a simulation requires: those are stated
where they are used. Times are whole ticks.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import whole_number
from greenbatch.errors import InputError, did_you_mean
from greenbatch.notes import Note
from greenbatch.workload.synthetic import check_arguments
from greenbatch.workload.table import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Arrivals = Literal["work", "jobs"]
"""What the load counts, see `rare`."""
Part = Literal["all", "training", "test"]
"""Which jobs of a trace are kept, see `on_pool`."""

SHORT, LONG = (1, 10), (10, 30)
"""Shortest and longest run time of short and of long jobs, both included. [ticks]"""
SHORT_SHARE = 0.7
MEAN_TICKS = SHORT_SHARE * sum(SHORT) / 2 + (1 - SHORT_SHARE) * sum(LONG) / 2
"""Mean run time: 9.85 ticks."""
HIGH_QOS, LOW_QOS = (0.6, 1.0), (0.1, 0.6)
HIGH_SHARE = 0.6
PRICE = 0.5
"""p in Eq. 3.2, for processors and GPUs alike (Table B.1)."""
TRAINING_SHARE = 0.8
SLIGHT = 1e-12
"""Stands for a spread of sizes where all are equal."""


def rare(
    ticks: int,
    seed: int,
    *,
    processors: int = 10,
    load: float = 1.0,
    arrivals: Arrivals = "work",
    largest_request: int = 0,
    tick_s: float = 1.0,
    gap_factor: float = 1.0,
) -> Workload:
    """Jobs of RARE's generator on a machine of as many GPUs as processors.

    The number of jobs that arrive in a tick has a Poisson distribution. 70 % of the jobs run for 1 to 10 ticks, the
    others for 10 to 30; processors and GPUs are drawn independently from 1 to the largest request; 60 % have a QoS of
    0.6 to 1, the others of 0.1 to 0.6; all uniform. Value: `values`. Requested times are exact. The same arguments
    give the same bytes with the same version of NumPy.

    Args:
        ticks: ticks in which jobs arrive, >= 1.
        seed: seed of the random numbers, >= 0.
        processors: processors of the machine, and as many GPUs, >= 1.
        load: ``arrivals = "work"``: offered processor time over that of the machine; ``"jobs"``: jobs per tick. > 0.
        arrivals: what the load counts.
        largest_request: most processors, and most GPUs, of a job; 0 for half of the machine.
        tick_s: length of a tick. [s]
        gap_factor: divides the load.

    Raises:
        InputError: an argument is out of range, or no job arrives.
    """
    ticks = whole_number(ticks, "ticks", lowest=1)
    check_arguments(1, seed, processors, gap_factor)
    _check_choice(arrivals, Arrivals, "arrivals")
    _check_positive(load, "load")
    _check_positive(tick_s, "tick_s")
    largest = _largest(largest_request, processors)
    per_tick = load / gap_factor
    if arrivals == "work":
        per_tick *= processors / (MEAN_TICKS * (largest + 1) / 2)
    when, lengths, sizes, services = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(4))
    tick = np.repeat(np.arange(ticks), when.poisson(per_tick, ticks))
    n = len(tick)
    if not n:
        raise InputError("no job arrives", field="load", fix="give a higher load, more ticks or another seed")
    is_short = lengths.random(n) < SHORT_SHARE
    length = np.where(is_short, *(lengths.integers(low, high + 1, n) for low, high in (SHORT, LONG)))
    cpus, gpus = sizes.integers(1, largest + 1, (2, n))
    qos = draw_qos(n, services)
    return Workload.from_columns(
        f"rare-{processors}",
        {
            "submit_s": tick * tick_s, "run_time_s": length * tick_s, "processors": cpus, "gpus": gpus,
            "qos": qos, "value": values(cpus, gpus, length, qos),
        },
        machine_processors=processors,
    )  # fmt: skip


def draw_qos(n: int, random: np.random.Generator) -> Floats:
    """Quality of service of n jobs, 4 digits, shape (n,): 60 % uniform in 0.6 to 1, the rest in 0.1 to 0.6 (§4.4.2)."""
    is_high = random.random(n) < HIGH_SHARE
    drawn: Floats = np.where(is_high, *(random.uniform(low, high, n) for low, high in (HIGH_QOS, LOW_QOS)))
    return np.round(drawn, 4)


def values(processors: Ints, gpus: Ints, ticks: Floats | Ints, qos: Floats) -> Floats:
    """Value of finished jobs, ``(processors + GPUs) p x ticks x QoS``, p = 0.5, shape (n,) (Eq. 3.2, Table B.1)."""
    return np.round((processors + gpus) * PRICE * ticks * qos, 6)


def on_pool(
    workload: Workload,
    seed: int,
    *,
    processors: int,
    load: float = 1.0,
    largest_request: int = 0,
    tick_s: float = 3600.0,
    longest_ticks: int = 30,
    part: Part = "all",
    jobs: int = 0,
) -> Workload:
    """A real trace as jobs with value and QoS on a small machine of processors and GPUs.

    RARE (§4.4.2, §6.6.1) states that requests are scaled down, that GPUs and QoS are invented, that the load is set and
    that 80 % of the jobs are for training, but no law. Here:

    * processors: by the logarithm of the request, rounded: 1 for the smallest request of the trace, the largest request
      of the small machine for the largest one, because sizes of real jobs are spread over orders of magnitude;
    * run time: rounded up to whole ticks, at most the longest; the request is exact;
    * GPUs: uniform from 1 to the largest request; QoS and value as in `rare`, from the new processors and ticks;
    * arrivals: every gap times one factor, so that the processor time or the GPU time offered between the first and the
      last submission, whichever is more, is the load times that of the machine; rounded down to a tick, the first at 0;
    * parts: the first 80 % of the jobs by submission are for training, the others for the test.

    Args:
        workload: the trace.
        seed: seed of the GPUs and the QoS, >= 0.
        processors: processors of the small machine, and as many GPUs.
        load: offered processor or GPU time over that of the machine, > 0.
        largest_request: most processors, and most GPUs, of a job; 0 for half of the machine.
        tick_s: length of a tick. [s]
        longest_ticks: longest run time, >= 1. [ticks]
        part: which jobs are kept.
        jobs: how many of them, the first ones; 0 for all.

    Raises:
        InputError: an argument is out of range, or too few jobs are left.
    """
    check_arguments(1, seed, processors, 1.0)
    _check_positive(load, "load")
    _check_positive(tick_s, "tick_s")
    _check_choice(part, Part, "part")
    longest = whole_number(longest_ticks, "longest_ticks", lowest=1)
    largest = _largest(largest_request, processors)
    order = np.argsort(workload.submit_s, kind="stable")
    gpus, services = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
    drawn, qos = gpus.integers(1, largest + 1, len(order)), draw_qos(len(order), services)
    kept = order[_part(len(order), part)][: whole_number(jobs, "jobs", lowest=0) or None]
    of, gpus_of, qos = workload.take(kept), drawn[kept], qos[kept]
    if len(of) < 2 or of.submit_s[0] == of.submit_s[-1]:
        raise InputError("leaves no two jobs that are submitted at different times", field="part", fix="give more jobs")
    least = workload.processors.min(initial=np.iinfo(np.int64).max)
    decades = np.log(workload.processors / least)
    share = decades[kept] / max(float(decades.max(initial=0.0)), SLIGHT)
    cpus = np.rint(1 + (largest - 1) * share).astype(np.int64)
    ticks = np.clip(np.ceil(of.run_time_s / tick_s), 1, longest)
    span_ticks = max(float(cpus @ ticks), float(gpus_of @ ticks)) / (load * processors)
    since_s = of.submit_s - of.submit_s[0]
    submit_s = np.floor(since_s * (span_ticks / since_s[-1])) * tick_s
    longer = int(np.count_nonzero(of.run_time_s > longest * tick_s))
    share = (longer / len(of), "jobs")
    notes = [Note(f"run time cut to {longest} ticks", longer, level="change", shares=(share,))] if longer else []
    notes.append(Note(f"GPUs, QoS and value invented (seed {seed})", len(of), level="change", shares=((1.0, "jobs"),)))
    return Workload.from_columns(
        of.name,
        {
            "submit_s": submit_s, "run_time_s": ticks * tick_s, "processors": cpus, "gpus": gpus_of, "qos": qos,
            "value": values(cpus, gpus_of, ticks, qos), "user": of.user, "group": of.group, "status": of.status,
        },
        machine_processors=processors, names={k: v for k, v in of.names.items() if k in ("user", "group")},
        notes=(*workload.notes, *notes), sources=workload.sources,
    )  # fmt: skip


def _part(n: int, part: Part) -> slice:
    first = int(TRAINING_SHARE * n)
    return {"all": slice(0, n), "training": slice(0, first), "test": slice(first, n)}[part]


def _largest(given: int, processors: int) -> int:
    largest = whole_number(given, "largest_request", lowest=0) or max(processors // 2, 1)
    if largest > processors:
        fix = f"the machine has {processors} of each kind; 0 is half of them"
        raise InputError(f"is {largest}", field="largest_request", fix=fix)
    return largest


def _check_positive(value: float, field: str) -> None:
    if not 0 < value < np.inf:
        raise InputError(f"is {value}", field=field, fix="give a number > 0")


def _check_choice(value: str, kind: object, field: str) -> None:
    if value not in (choices := get_args(kind)):
        fix = did_you_mean(str(value), choices, otherwise="use " + " or ".join(choices))
        raise InputError(f"is {value!r}", field=field, fix=fix)
