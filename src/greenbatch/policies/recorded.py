"""The policy that repeats what was recorded."""

from __future__ import annotations

import numpy as np

from greenbatch.engine.program import Program
from greenbatch.errors import InputError
from greenbatch.policies.registry import planner
from greenbatch.workload import Workload


@planner("as-recorded")
def as_recorded(workload: Workload) -> Program:
    """Every job starts at its recorded start, so that a comparison shows reality beside the schedulers.

    The recorded start is the submission plus the recorded wait. A job that does not fit then, because the cluster is
    smaller than the recorded schedule requires, starts as soon as it fits. So does a job without a recorded wait, from
    its submission on: nothing else is known about it. Reports count both.
    """
    if len(workload) and np.isnan(workload.recorded_wait_s).all():
        problem = f"the trace {workload.name} records no waits"
        raise InputError(problem, field="as-recorded", fix="use a trace with starts, such as an sacct dump")
    from greenbatch.policies.compiled.as_recorded import AS_RECORDED

    return Program(name="as-recorded", decider=AS_RECORDED)
