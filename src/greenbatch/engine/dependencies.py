"""Jobs that follow others: each is submitted a think time after the end of its preceding job.

Source: the Standard Workload Format, version 2.2 (Feitelson et al.), fields 17 and 18: the number of a previous job
without whose end a job cannot start, and the seconds between that end and its submission. So a user who waits for
results submits later where the scheduler is slow, and the load follows the schedule (Shmueli & Feitelson 2009).

The submission is simulated: the recorded one is replaced, and waits and slowdowns count from the simulated one. Without
a think time, a job is submitted as recorded, but not before that end. If the preceding job is not an earlier job of the
window, the recorded submission holds. A job that is rejected ends then, for those that follow it. One whose preceding
job has not ended by the end of a run is never submitted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.records import Feedback, Ints, Table, table_of
from greenbatch.engine.rules import Rules
from greenbatch.workload import Workload


def preceding_rows(workload: Workload) -> Ints:
    """Row of the job that each job follows, -1 if none: it must have a smaller number, shape (n,)."""
    n, job_id, preceding = len(workload), workload.job_id, workload.preceding_job
    at = np.searchsorted(job_id, preceding)
    row = np.minimum(at, max(n - 1, 0))
    is_known = (preceding > 0) & (at < np.arange(n)) & (job_id[row] == preceding)
    return np.where(is_known, row, -1)


def follow_others(workload: Workload, rules: Rules) -> int:
    """How many jobs have a submission that depends on the schedule."""
    return int(np.count_nonzero(preceding_rows(workload) >= 0)) if rules.dependencies == "obey" else 0


def obeyed_text(workload: Workload, rules: Rules) -> str:
    """For messages: that dependencies are obeyed, and how many jobs follow others; empty if none do."""
    count = follow_others(workload, rules)
    return f"obey, and {count:,} {'job follows another' if count == 1 else 'jobs follow others'}" if count else ""


def feedback_of(workload: Workload) -> Table[Feedback]:
    """Who follows whom, shape (n,)."""
    table: Any = table_of(Feedback, len(workload))
    before = preceding_rows(workload)
    table["first"] = table["next"] = -1
    thinks = np.isfinite(workload.think_time_s)
    table["think_s"] = np.where(thinks, workload.think_time_s, 0.0)
    table["earliest_s"] = np.where(thinks, -np.inf, workload.submit_s)
    for row in np.flatnonzero(before >= 0)[::-1]:
        table["next"][row] = table["first"][before[row]]
        table["first"][before[row]] = row
    return table  # type: ignore[no-any-return]
