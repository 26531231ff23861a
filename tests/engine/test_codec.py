"""A state as a view and a view as a state are one codec: the view of the state of a view is that view."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from cases import workload
from digests import CLUSTER, SITE, random_decision, random_jobs
from kinds import MACHINES

from greenbatch.cluster import Capacity, Cluster
from greenbatch.engine.machine.resources import machine_of
from greenbatch.engine.pools import Pools
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.views.codec import state_of, view_of
from greenbatch.engine.views.decode_capacity import capacity_of_view, jobs_of
from greenbatch.engine.views.decode_nodes import MachineOfViews
from greenbatch.engine.views.interface import Decision, Start, View, Wait
from greenbatch.engine.views.session import Session

ELSEWHERE = {"cause", "cluster", "partitions", "supply"}
"""What is of the event, the configuration or the forecast, not of the state."""


def closed(view: View, cluster: Cluster, rules: Rules, machines: MachineOfViews | None) -> View:
    """The view of the state of a view."""
    machine = machine_of(cluster, jobs_of(view)) if machines is None else machines(view)
    capacity = capacity_of_view(view, cluster, rules, machine.totals)
    state = state_of(view, machine=machine, capacity=capacity)
    suspended = [] if view.capacity is None else [view.capacity.suspended_job_id]
    return view_of(state, np.concatenate([view.job_id, *suspended, view.running.job_id]), view.supply)


def same(one: Any, other: Any, name: str) -> None:
    """Equal to the last bit, but for the requested times of running jobs: a view shows their begins and ends."""
    if hasattr(one, "_fields"):
        for each in one._fields:
            same(getattr(one, each), getattr(other, each), f"{name}.{each}")
    elif name == "running.expected_time_s":
        np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=name)
    else:
        np.testing.assert_array_equal(one, other, name)


def powered(cluster: Cluster) -> Cluster:
    """The same, of which not all is powered."""
    shares = np.array([1.0, 0.4, 0.0, 0.8, 0.5, 1.0] * 8)
    levels = Capacity.of_ticks(shares, 9.0, processors=cluster.processors, gpus=cluster.gpus)
    return replace(cluster, powered=levels)


GPUS = replace(CLUSTER, groups=tuple(replace(each, gpus=2) for each in CLUSTER.groups))
POOLS = Pools(suspends="power", ready=4, horizon_s=30.0, victim="latest-due", suspend_s=1.0)
CASES = {
    "pool": (CLUSTER, Rules(), 1), "nodes": (MACHINES["nodes"], Rules(), 1),
    "powered pool": (powered(GPUS), Rules(pools=POOLS), 2),
    "powered nodes": (powered(MACHINES["nodes"]), Rules(pools=POOLS), 2),
}  # fmt: skip


def any_ready(view: View, random: np.random.Generator) -> Decision:
    """Start any job that is ready, or wait for what runs."""
    if len(view.running.job_id) and random.random() < 0.3:
        return Wait()
    return Start(int(random.choice(np.flatnonzero(view.capacity.ready))))  # type: ignore[union-attr]


def check(name: str, predictor: str) -> None:
    """Every view of a run with random decisions is the view of its state."""
    cluster, rules, at_least = CASES[name]
    random, seen, suspended = np.random.default_rng(4), 0, 0
    jobs = workload(random_jobs(3)).with_columns(user=np.arange(40) % 3, qos=np.arange(1, 41) % 4 / 4 + 0.1)
    jobs = jobs.with_columns(value=np.arange(40) % 7 + 0.0, gpus=np.arange(40) % 2 * (not cluster.on_nodes))
    rules = replace(rules, predictor=predictor)
    session = Session(jobs, cluster, SITE, rules, Program(name="x", backfill="easy"))
    machines = MachineOfViews(cluster) if cluster.on_nodes else None
    while (view := session.view()) is not None:
        again = closed(view, cluster, rules, machines)
        for field in fields(View):
            if field.name not in ELSEWHERE:
                same(getattr(view, field.name), getattr(again, field.name), field.name)
        seen += len(view.running.job_id) >= at_least and len(view.job_id) > 1
        suspended += len(view.suspended.submit_s)
        session.apply(random_decision(view, random) if view.capacity is None else any_ready(view, random))
    assert seen >= 10
    assert (suspended > 5) == (cluster.powered is not None)


@pytest.mark.parametrize("predictor", ["requested", "last-two", "like-jobs"])
@pytest.mark.parametrize("name", ["pool", "nodes"])
def test_the_view_of_the_state_of_a_view_is_that_view(name: str, predictor: str) -> None:
    check(name, predictor)


@pytest.mark.parametrize("name", ["powered pool", "powered nodes"])
def test_also_where_not_all_is_powered(name: str) -> None:
    check(name, "requested")
