"""The state of a simulation at a view, with a future: how long jobs run, which ones come, and what power there will be.

A planner tries what it might do in forks of such states. Nothing here knows whether a future is true or imagined.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from greenbatch.engine.power.protocol import Power
from greenbatch.engine.prepare import rule_settings
from greenbatch.engine.program import Program
from greenbatch.engine.records import Floats, Ints
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State, set_rules
from greenbatch.engine.views.codec import state_of
from greenbatch.engine.views.interface import NOT_PREDICTED, View


class Arrivals(NamedTuple):
    """Jobs to come in order of submission, columns of shape (f,)."""

    submit_s: Floats
    """Not before now. [s]"""
    run_s: Floats
    """Run times, > 0. [s]"""
    requested_s: Floats
    """Requested times, > 0. [s]"""
    processors: Ints
    power_w: Floats
    """Power of each job as a whole. [W]"""


class Future(NamedTuple):
    """What happens after a view."""

    waiting_run_s: Floats
    """Run time of each waiting job, in the order of the view, shape (q,). [s]"""
    running_run_s: Floats
    """Run time of each running job since its start, shape (r,). [s]"""
    arrivals: Arrivals
    """The jobs to come."""
    power: Power
    """The renewable power to come."""


def imagined(view: View, future: Future, program: Program, rules: Rules) -> State:
    """The state of a simulation at a view, which runs on as a future says.

    Args:
        view: the view, of a pool.
        future: what happens after it.
        program: who decides; its settings.
        rules: how the batch system reacts.
    """
    coming, waiting = future.arrivals, len(view.job_id)
    more = len(coming.submit_s)
    state = state_of(_with_arrivals(view, coming), attributes=False)
    state = state._replace(power=future.power)
    set_rules(state, rules, rule_settings(program))
    jobs: Any = state.jobs
    jobs["run_s"] = np.concatenate([future.waiting_run_s, coming.run_s, future.running_run_s])
    end_s, ending, clock = view.running.start_s + future.running_run_s, cast(Any, state.ending), cast(Any, state.clock)
    order, running = np.argsort(end_s, kind="stable"), len(end_s)
    ending[:running] = ending[:running][order]
    ending["end_s"][:running] = np.maximum(end_s[order], view.now_s)
    clock["last"] = waiting
    rows = np.arange(waiting, waiting + more)
    return state._replace(arrivals=np.concatenate([np.zeros(view.submitted, np.int64), rows]))


def _with_arrivals(view: View, coming: Arrivals) -> View:
    """The view as if the jobs to come were waiting behind the others, so that the state has rows for them."""
    behind: dict[str, Any] = {
        "submit_s": coming.submit_s, "requested_time_s": coming.requested_s, "processors": coming.processors,
        "power_w": coming.power_w, "user": np.full(len(coming.submit_s), -1.0),
    }  # fmt: skip
    queue, running = view.queue, view.running._replace(expected_time_s=np.zeros(0))
    longer: dict[str, Any] = {name: np.concatenate([getattr(queue, name), more]) for name, more in behind.items()}
    return replace(view, queue=queue._replace(**longer, predicted=NOT_PREDICTED), running=running)
