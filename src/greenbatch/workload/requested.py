"""Requested times, for all readers: what stands for those that are not stated, and a count of jobs that run longer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from greenbatch.display import span_text
from greenbatch.workload.ledger import Ledger

Floats = NDArray[np.float64]

NO_LIMIT_S = 10 * 365 * 86_400.0
"""Longer limits of batch systems stand for none: Slurm's INFINITE is 2^32 - 1 minutes. [s]"""


def known_limits(limit_s: Floats) -> Floats:
    """Limits of a batch system with NaN for those that are not > 0, and infinity for those that stand for none. [s]"""
    return np.where(limit_s > NO_LIMIT_S, np.inf, np.where(limit_s > 0, limit_s, np.nan))


def requested_times(
    stated_s: Floats, run_s: Floats, lines: NDArray[np.int64], ledger: Ledger, *, unknown: str = "missing",
    most_s: Floats | None = None,
) -> Floats:  # fmt: skip
    """The requested times of jobs, shape (n,). [s], > 0

    A job without a limit of its own (Slurm's UNLIMITED and Partition_Limit) is taken to have requested the longest time
    that its partition allows, else the longest that any job of the file states, at least its run time. Where no time is
    stated, the run time is taken: then schedulers know it, which a warning says.

    Args:
        stated_s: as stated by the source; NaN if unknown, infinite if the job has no limit of its own. [s]
        run_s: run times, > 0. [s]
        lines: file line of each job.
        ledger: takes the notes.
        unknown: what NaN means in this format, for the note.
        most_s: longest time that the partition of each job allows; NaN or infinite if unknown. [s]
    """
    requested_s = stated_s.copy()
    unlimited = np.isposinf(stated_s)
    longest_s = float(stated_s[~unlimited & ~np.isnan(stated_s)].max(initial=0.0))
    allowed_s = np.full(len(stated_s), np.nan) if most_s is None else np.where(most_s <= NO_LIMIT_S, most_s, np.nan)
    by_partition = unlimited & np.isfinite(allowed_s)
    by_trace = unlimited & ~by_partition & (longest_s > 0)
    for which, limit_s, of in (
        (by_partition, allowed_s, "MaxTime of its partition"),
        (by_trace, np.full(len(stated_s), longest_s), f"longest limit of the trace, {span_text(longest_s)},"),
    ):
        requested_s[which] = np.fmax(limit_s, run_s)[which]
        ledger.fact(f"no time limit of its own, {of} taken as requested", lines[which], level="change")
        ledger.fact("run time over the limit taken as requested, run time used", lines[which & (run_s > limit_s)],
                    level="warning")  # fmt: skip
    blank = np.isnan(stated_s) | (unlimited & ~by_partition & ~by_trace)
    ledger.fact(f"requested time {unknown}, run time used", lines[blank], level="warning")
    requested_s[blank] = run_s[blank]
    ledger.fact("run time over the requested time (whole trace)", lines[run_s > requested_s])
    return requested_s
