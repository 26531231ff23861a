"""Requested times, for all readers: the run time where none is stated, and a count of the jobs that run longer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from greenbatch.workload.ledger import Ledger

Floats = NDArray[np.float64]


def requested_times(
    stated_s: Floats, run_s: Floats, lines: NDArray[np.int64], ledger: Ledger, *, unknown: str = "missing"
) -> Floats:
    """The requested times of jobs, shape (n,). [s], > 0

    Args:
        stated_s: as stated by the source; NaN if unknown. [s]
        run_s: run times, > 0. [s]
        lines: file line of each job.
        ledger: takes the notes.
        unknown: what NaN means in this format, for the note.
    """
    blank = np.isnan(stated_s)
    ledger.fact(f"requested time {unknown}, run time used", lines[blank])
    requested_s = np.where(blank, run_s, stated_s)
    ledger.fact("run time over the requested time (whole trace)", lines[run_s > requested_s])
    return requested_s
