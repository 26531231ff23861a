"""A state as a view and a view as a state are one codec: the view of the state of a view is that view."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from cases import workload
from digests import CLUSTER, SITE, random_decision, random_jobs
from kinds import MACHINES

from greenbatch.cluster import Cluster
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.views.codec import state_of, view_of
from greenbatch.engine.views.decode_nodes import MachineOfViews
from greenbatch.engine.views.interface import View
from greenbatch.engine.views.session import Session

ELSEWHERE = {"cause", "cluster", "partitions", "supply"}
"""What is of the event, the configuration or the forecast, not of the state."""


def closed(view: View, machines: MachineOfViews | None) -> View:
    """The view of the state of a view."""
    state = state_of(view, machine=None if machines is None else machines(view))
    return view_of(state, np.concatenate([view.job_id, view.running.job_id]), view.supply)


def same(one: Any, other: Any, name: str) -> None:
    """Equal to the last bit, but for the requested times of running jobs: a view shows their begins and ends."""
    if hasattr(one, "_fields"):
        for each in one._fields:
            same(getattr(one, each), getattr(other, each), f"{name}.{each}")
    elif name == "running.expected_time_s":
        np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=name)
    else:
        np.testing.assert_array_equal(one, other, name)


@pytest.mark.parametrize("predictor", ["requested", "last-two", "like-jobs"])
@pytest.mark.parametrize("cluster", [CLUSTER, MACHINES["nodes"]], ids=["pool", "nodes"])
def test_the_view_of_the_state_of_a_view_is_that_view(cluster: Cluster, predictor: str) -> None:
    random, seen = np.random.default_rng(4), 0
    jobs = workload(random_jobs(3)).with_columns(user=np.arange(40) % 3)
    session = Session(jobs, cluster, SITE, Rules(predictor=predictor), Program(name="x", backfill="easy"))
    machines = MachineOfViews(cluster) if cluster.on_nodes else None
    while (view := session.view()) is not None:
        again = closed(view, machines)
        for field in fields(View):
            if field.name not in ELSEWHERE:
                same(getattr(view, field.name), getattr(again, field.name), field.name)
        seen += len(view.running.job_id) > 1 and len(view.job_id) > 1
        session.apply(random_decision(view, random))
    assert seen > 10
