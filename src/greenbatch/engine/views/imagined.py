"""A view with a future as a state: a planner tries what it might do in forks of it.

A future says how long jobs run, which ones come, and what power there will be. Nothing here knows whether it is true or
imagined. On nodes, jobs do not slow each other down there, and what runs stays where it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.machine.dvfs import levels_of, run_at
from greenbatch.engine.machine.idle_nodes import alike
from greenbatch.engine.machine.node_tables import CONTENTIONS, Nodes, Placement
from greenbatch.engine.machine.resources import Machine, machine_of
from greenbatch.engine.outages import downtimes_of
from greenbatch.engine.power.protocol import Power
from greenbatch.engine.prepare import arrange_nodes, rule_settings
from greenbatch.engine.program import Program
from greenbatch.engine.records import Floats, Ints, table_of
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State, set_rules
from greenbatch.engine.views.codec import MOST_SPANS, state_of
from greenbatch.engine.views.decode_capacity import capacity_of_view, jobs_of
from greenbatch.engine.views.decode_nodes import NO_JOBS, MachineOfViews
from greenbatch.engine.views.interface import NOT_PREDICTED, Attributes, Capacity, View


class Arrivals(NamedTuple):
    """Jobs to come in order of submission, columns of shape (f,)."""

    submit_s: Floats
    """Not before now. [s]"""
    run_s: Floats
    """Run times, > 0, as in `Future`. [s]"""
    requested_s: Floats
    """Requested times, > 0. [s]"""
    processors: Ints
    power_w: Floats
    """Power of each job as a whole. [W]"""
    attributes: Attributes
    """What else they ask for; nodes need it."""


LONG_AFTER = 10.0
"""From when on all is powered in a plan, in longest requests of the jobs: a job that waits for it costs a plan much."""
_NONE = np.zeros(0)
NO_ARRIVALS = Arrivals(
    _NONE, _NONE, _NONE, np.zeros(0, np.int64), _NONE, Attributes(*[_NONE] * len(Attributes._fields))
)  # fmt: skip


class Future(NamedTuple):
    """What happens after a view."""

    waiting_run_s: Floats
    """Run time of each waiting job, on nodes at speed 1 and the level of the rules, in the order of the view. [s]"""
    running_run_s: Floats
    """Run time of each running job since its start, shape (r,). [s]"""
    arrivals: Arrivals
    """The jobs to come."""
    power: Power
    """The renewable power to come."""


class Imagination:
    """Makes states of simulations at views of one cluster, which run on as futures say."""

    def __init__(self, program: Program, cluster: Cluster, rules: Rules) -> None:
        """Prepare what does not change.

        Args:
            program: who decides; its settings.
            cluster: the machines.
            rules: how the batch system reacts.
        """
        self._program, self._cluster, self._rules = program, cluster, rules
        self._machines = MachineOfViews(cluster) if cluster.on_nodes else None
        self._downtimes = downtimes_of(program.outages, cluster)
        self._pace = levels_of(cluster)[rules.dvfs_level].speed

    def __call__(self, view: View, future: Future) -> State:
        """The state of a view that runs on as a future says."""
        coming, waiting = future.arrivals, len(view.job_id)
        longer = _with_arrivals(view, coming, self._cluster)
        run_s = np.concatenate([future.waiting_run_s, coming.run_s, view.suspended.requested_time_s])
        if self._machines is not None:
            starts = 1 if longer.capacity is None else MOST_SPANS
            machine: Machine = _without_contention(self._machines.with_room(longer), len(run_s), starts)
        else:
            machine = machine_of(self._cluster, NO_JOBS if longer.capacity is None else jobs_of(longer))
        capacity = capacity_of_view(longer, self._cluster, self._rules, machine.totals, waiting)
        state = state_of(longer, machine=machine, attributes=False, downtimes=self._downtimes, capacity=capacity)
        state = state._replace(power=future.power)
        set_rules(state, self._rules, rule_settings(self._program))
        arrange_nodes(state, self._cluster, self._program)
        run_at(state, self._cluster, self._rules)
        jobs: Any = state.jobs
        jobs["run_s"] = np.concatenate([run_s * self._pace, future.running_run_s])
        end_s, ending = view.running.start_s + future.running_run_s, cast(Any, state.ending)
        order, running, clock = np.argsort(end_s, kind="stable"), len(end_s), cast(Any, state.clock)
        ending[:running] = ending[:running][order]
        ending["end_s"][:running] = np.maximum(end_s[order], view.now_s)
        clock["last"] = waiting
        rows = np.arange(waiting, waiting + len(coming.submit_s))
        return state._replace(arrivals=np.concatenate([np.zeros(view.submitted, np.int64), rows]))


def _without_contention(machine: Nodes, coming: int, starts: int) -> Nodes:
    """A machine on which jobs do not slow each other down, with room to record where so many start, each so often."""
    nodes, demands = cast(Any, machine.nodes), cast(Any, machine.demands)[:coming]
    machine.counts.contention = CONTENTIONS["none"]
    machine.counts.is_plain, machine.counts.is_uniform = alike(nodes, demands)
    parts = np.minimum(demands["chunks"], len(nodes)).sum() + nodes["processors"].sum()
    return machine._replace(placed=table_of(Placement, int(parts) * starts))


def _in_the_end(capacity: Capacity, come: int, cluster: Cluster, until_s: float) -> Capacity:
    """A capacity that is all of the machine from a time on, so that every job starts.

    Args:
        capacity: what is known.
        come: jobs to come, none of which is ready.
        cluster: the machines.
        until_s: until when what is known holds. [s]
    """
    known = max(1, int(np.searchsorted(capacity.time_s, until_s)))
    return capacity._replace(
        ready=np.append(capacity.ready, np.zeros(come, np.bool_)),
        time_s=np.append(capacity.time_s[:known], until_s),
        processors=np.append(capacity.processors[:known], cluster.processors),
        gpus=np.append(capacity.gpus[:known], cluster.gpus),
    )  # fmt: skip


def _with_arrivals(view: View, coming: Arrivals, cluster: Cluster) -> View:
    """The view as if the jobs to come were waiting behind the others, so that the state has rows for them."""
    behind: dict[str, Any] = {
        "submit_s": coming.submit_s, "requested_time_s": coming.requested_s, "processors": coming.processors,
        "power_w": coming.power_w, "user": np.full(len(coming.submit_s), -1.0),
    }  # fmt: skip
    queue, running = view.queue, view.running._replace(expected_time_s=np.zeros(0))
    longer: dict[str, Any] = {name: np.concatenate([getattr(queue, name), more]) for name, more in behind.items()}
    attributes = Attributes(*map(np.concatenate, zip(queue.attributes, coming.attributes, strict=True)))
    queue = queue._replace(**longer, attributes=attributes, predicted=NOT_PREDICTED)
    job_id = np.concatenate([view.job_id, np.full(len(coming.submit_s), -1)])
    longest_s = float(np.maximum.reduce(longer["requested_time_s"], initial=0.0))
    until_s = view.now_s + LONG_AFTER * max(longest_s, 1.0)
    capacity = view.capacity and _in_the_end(view.capacity, len(coming.submit_s), cluster, until_s)
    return replace(view, job_id=job_id, queue=queue, running=running, capacity=capacity)
