"""Sizes of clusters and numbers of jobs that cannot be simulated are refused in one line."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from greenbatch.cluster import Cluster, DvfsLevel
from greenbatch.energy import Site
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

JOBS: dict[str, Any] = {"submit_s": [0.0], "run_time_s": [5.0], "processors": [1], "power_w": [1.0]}


@pytest.mark.parametrize("processors", [0, -1, 1.5, float("nan"), "4", True])
def test_processors_are_a_whole_number(processors: Any) -> None:
    with pytest.raises(InputError, match=r"cluster.processors: is .*give a whole number, 1 or more"):
        Cluster.pooled(processors)


def test_a_cluster_of_too_many_processors_is_refused() -> None:
    """They are numbers of four bytes in the engine's tables."""
    assert Cluster.pooled(2**31 - 1).processors == 2**31 - 1
    with pytest.raises(InputError, match=r"cluster.processors: is 2,147,483,648 \(at most 2,147,483,647\)"):
        Cluster.pooled(2**31)
    jobs = Workload.from_columns("wide", {**JOBS, "processors": [2**31]})
    with pytest.raises(InputError, match="job 1 needs 2147483648 processors"):
        simulate(jobs, Cluster.pooled(2**31 - 1), None, Rules(), scheduler("fcfs+easy"))


def test_a_job_that_spans_too_many_slots_is_refused() -> None:
    site = Site(name="s", step_s=1e-3, sources_w={"all": np.ones(2)}, repeat=True)
    jobs = Workload.from_columns("long", {**JOBS, "requested_time_s": [1e9]})
    with pytest.raises(InputError, match=r"site.step_s: is 0.001 s, and the longest job requests 1e.09 s"):
        simulate(jobs, Cluster.pooled(2), site, Rules(), scheduler("fcfs+green"))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("submit_s", "later", "submit_s: holds values that are no numbers"),
        ("processors", "two", "processors: holds values that are no numbers"),
        ("submit_s", 1e18, r"submit_s: job 1 has 1e\+18 \(give 0 to 1e\+11 s\)"),
        ("run_time_s", 1e18, r"run_time_s: job 1 has 1e\+18 \(give 0.001 to 1e\+11 s\)"),
        ("power_w", 1e308, r"power_w: job 1 has 1e\+308 \(give at most 1e\+15 W\)"),
    ],
)
def test_values_of_jobs(column: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Workload.from_columns("jobs", {**JOBS, column: [value]})


@pytest.mark.parametrize("given", [{"contention": "repaired"}, {"dvfs": (DvfsLevel(speed=0.5, power=0.3),)}])
def test_what_is_for_nodes_is_refused_on_a_pool(given: dict[str, Any]) -> None:
    """It would have no effect, without a word."""
    with pytest.raises(InputError, match=r"is for nodes, and the cluster is a pool"):
        replace(Cluster.pooled(4), **given)
