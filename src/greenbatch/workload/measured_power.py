"""Power of jobs without a measurement, estimated from those that have one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.notes import Note, shares_of
from greenbatch.workload.table import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST = 3
"""Measured jobs that a user or a size must have, so that others are estimated from them."""
FOLDS = 10
"""Parts of the cross-validation."""


def measured_power(workload: Workload) -> Workload:
    """Fill in missing job power from measured jobs, counted in notes together with its error.

    The estimate of a job is its processors x the energy per processor-second of measured jobs: those of its user, else
    those of about its size (equal floor of log2 of the processors), else all; a user or a size counts if it has at
    least `FEWEST`. Dividing total energy by total processor-seconds keeps the energy of the measured jobs and gives
    short jobs, whose energy is measured coarsely, little weight.

    The error is that of the measured jobs themselves, each estimated from the other nine tenths (`FOLDS`-fold
    cross-validation, drawn with a fixed seed): median and 95th percentile of |estimate - measured| / measured.

    Raises:
        InputError: fewer than two jobs have a measured power above 0.
    """
    known = np.isfinite(workload.power_w)
    measured = np.flatnonzero(known & (workload.power_w > 0))
    if measured.size < 2:
        raise InputError(
            f"{measured.size} of {len(workload)} jobs have a measured power", file=workload.name, field="kind",
            fix='at least 2 are needed; use kind = "per-processor"',
        )  # fmt: skip
    estimate_w, basis = _estimates(workload, known, ~known)
    power_w = workload.power_w.copy()
    power_w[~known] = estimate_w
    work_s = workload.run_time_s * workload.processors
    missing = np.flatnonzero(~known)
    notes = [
        Note(
            f"missing power filled in from measured jobs {what}", int(np.count_nonzero(basis == k)), about="power_w",
            level="change", shares=shares_of(missing[basis == k], work_s, np.ones(len(workload))),
        )
        for k, what in enumerate(_BASES)
    ]  # fmt: skip
    median, p95 = np.percentile(_relative_errors(workload, known, measured), (50, 95))
    what = f"error of power estimated from other jobs: median {median:.0%}, 95th percentile {p95:.0%}; measured jobs"
    notes.append(Note(what, int(measured.size), about="power_w", level="fact"))
    kept = tuple(note for note in notes if note.count) if (~known).any() else ()
    return replace(workload, power_w=power_w, notes=(*workload.notes, *kept))


_BASES = ("of the same user", "of about the same size", "of the whole trace")


def _estimates(workload: Workload, known: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> tuple[Floats, Ints]:
    """Power of the wanted jobs estimated from the known ones [W], and which of `_BASES` each comes from."""
    work_s = workload.run_time_s * workload.processors
    energy_j: Floats = np.where(known, workload.power_w * workload.run_time_s, 0.0)
    total_w = energy_j.sum() / work_s[known].sum()
    per_processor_w: Floats = np.full(len(workload), total_w)
    basis: Ints = np.full(len(workload), 2)
    of_size, of_user = (_size(workload), np.ones(len(workload), dtype=bool)), (workload.user, workload.user >= 0)
    for k, (group, named) in enumerate((of_size, of_user)):
        _, code = np.unique(group, return_inverse=True)
        jobs, joules, seconds = (
            np.bincount(code[known], weights[known], minlength=int(code.max()) + 1)[code]
            for weights in (np.ones(len(workload)), energy_j, work_s)
        )
        enough = (jobs >= FEWEST) & named
        per_processor_w[enough] = joules[enough] / seconds[enough]
        basis[enough] = 1 - k
    return (per_processor_w * workload.processors)[wanted], basis[wanted]


def _size(workload: Workload) -> Ints:
    return np.log2(workload.processors).astype(np.int64)


def _relative_errors(workload: Workload, known: NDArray[np.bool_], measured: Ints) -> Floats:
    """|estimate - measured| / measured of each measured job, estimated from the other folds."""
    shuffled = np.random.default_rng(0).permutation(measured)
    errors = []
    for fold in np.array_split(shuffled, min(FOLDS, measured.size)):
        left_out = np.zeros(len(workload), dtype=bool)
        left_out[fold] = True
        estimate_w, _ = _estimates(workload, known & ~left_out, left_out)
        errors.append(np.abs(estimate_w / workload.power_w[left_out] - 1.0))
    return np.concatenate(errors)
