"""A scheduler that is driven from views where the capacity follows the power, with suspensions and few actions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import workload
from digests import CLUSTER, random_jobs
from driven import driver_of, run_from_views
from kinds import rare

from greenbatch.cluster import Capacity
from greenbatch.engine.pools import Pools
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import View
from greenbatch.engine.views.session import Session
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler


@pytest.mark.parametrize(
    "name", ["hvf+none", "random-action:seed=2", "packer", "sjf+first-fit", "random-action:of=fitting", "rare-plus@10"]
)
def test_the_same_starts_with_swaps_and_few_actions(name: str) -> None:
    """From views, the same jobs start, are suspended and end at the same times."""
    scenario = rare(10, 120, seed=5, level=0.7, suspends="swap", ready=5, actions_per_tick=2, suspend_s=1.0)
    rules = replace(scenario.rules, commitment="reconsider")
    how = scheduler(name)
    given = scenario.workload, scenario.cluster, scenario.site, rules
    wanted, found = simulate(*given, how), run_from_views(how, *given)
    np.testing.assert_array_equal(found.start_s, wanted.start_s)
    np.testing.assert_array_equal(found.end_s, wanted.end_s)
    assert found.stays is not None
    assert wanted.stays is not None
    np.testing.assert_array_equal(found.stays.suspensions, wanted.stays.suspensions)
    assert wanted.stays.suspensions.sum() > 0


@pytest.mark.parametrize("name", ["fcfs+easy", "fcfs+first-fit", "fcfs+conservative"])
def test_backfilling_starts_no_more_than_a_tick_allows(name: str) -> None:
    """Beside half of the machine and a blocked job there is room for four short ones; two starts a tick are allowed."""
    short = (0.0, 10.0, 10.0, 1, 5.0)
    jobs = workload([(0.0, 50.0, 50.0, 4, 5.0), (0.0, 5.0, 5.0, 8, 5.0), *[short] * 6])
    levels = Capacity.constant(CLUSTER.processors, 0)
    rules = Rules(event_rule="per_instant", pools=Pools(actions_per_tick=2, tick_s=3.0))
    found = simulate(jobs, replace(CLUSTER, powered=levels), None, rules, scheduler(name))
    np.testing.assert_array_equal(np.sort(found.start_s), [0, 0, 3, 3, 6, 10, 13, 50])


def powered_view() -> tuple[View, Any, Rules]:
    """A view with ready, waiting and running jobs, and its machine."""
    levels = Capacity(time_s=np.array([0.0, 40.0]), processors=np.array([8, 4]), gpus=np.zeros(2, np.int64))
    cluster, rules = replace(CLUSTER, powered=levels), Rules(pools=Pools(suspends="power", ready=2))
    session = Session(workload(random_jobs(3)), cluster, None, rules, Program(name="x", backfill="easy"))
    view = session.view()
    while view is not None and not (len(view.job_id) > 3 and len(view.running.job_id) > 1):
        session.apply(driver_of(scheduler("fcfs+easy"), session.workload, cluster, rules).decide(view))
        view = session.view()
    assert view is not None
    return view, cluster, rules


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (None, "is missing, and not all of the cluster is always powered"),
        ({"ready": np.ones(1, np.bool_)}, "has the shape"),
        ({"time_s": np.array([40.0, 0.0])}, "not in order"),
        ({"processors": np.array([9, 4])}, "give 0 to 8 processors"),
        ({"ready_job_id": np.array([77])}, "are not the jobs that are ready"),
        ({"suspended_job_id": np.array([77])}, "has the shape"),
    ],
    ids=str,
)
def test_a_capacity_that_cannot_be_is_refused(change: dict[str, Any] | None, problem: str) -> None:
    view, cluster, rules = powered_view()
    assert view.capacity is not None
    driver = driver_of(scheduler("fcfs+easy"), workload(random_jobs(3)), cluster, rules)
    with pytest.raises(InputError, match=problem):
        driver.decide(replace(view, capacity=None if change is None else view.capacity._replace(**change)))
