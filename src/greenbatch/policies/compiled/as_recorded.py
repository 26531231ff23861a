"""Every job starts when the trace says that it did: reality beside the schedulers that are compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.decide import decide
from greenbatch.engine.program import CompiledPolicy
from greenbatch.engine.records import Floats
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, wait_until
from greenbatch.policies.compiled.conservative import start_due
from greenbatch.workload import Workload


class AsRecorded(NamedTuple):
    """The recorded waits."""

    wait_s: Floats
    """Recorded wait of each job of the workload, 0 if there is none, shape (n,). [s]"""


@decide.register(AsRecorded)
def start_as_recorded(decider: AsRecorded, s: State) -> None:
    """Start the jobs whose recorded start has come, in order of submission; those that do not fit, once they do."""
    i = s.clock.last
    while i > s.clock.first and np.isnan(s.jobs[s.queue.job[i - 1]].planned_s):
        i -= 1
    for k in range(i, s.clock.last):
        number = s.queue.job[k]
        s.jobs[number].planned_s = s.jobs[number].submit_s + decider.wait_s[number]
    apply(s, wait_until(start_due(s)))


def _begin(workload: Workload, _: Cluster, __: Rules) -> AsRecorded:
    return AsRecorded(np.nan_to_num(workload.recorded_wait_s))


AS_RECORDED = CompiledPolicy(name="as-recorded", begin=_begin)
