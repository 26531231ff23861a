"""A scheduler that looks at some of the waiting jobs: those that were submitted first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import clusters, job_lists, workload
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import Job

from greenbatch.cluster import Cluster
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.experiments.reports.cautions import depth_notes
from greenbatch.schedulers import scheduler

EVENT_RULES = ("per_event", "per_instant", "per_kind")
NAMES = ("fcfs+easy", "sjf+none", "wfp3+first-fit", "f2+conservative", "sjf+easy")


def run(jobs: list[Job], cluster: Cluster, name: str, **rules: Any) -> Outcome:
    return simulate(workload(jobs), cluster, None, Rules(**rules), scheduler(name))


def test_the_shortest_of_the_two_oldest_jobs_is_next() -> None:
    """One processor. Of jobs 1 to 4, which wait at 10, job 4 is the shortest; of the two oldest, job 2 is."""
    jobs = [
        Job(0, 10, 10, 1, 0.0),
        Job(1, 9, 9, 1, 0.0),
        Job(2, 7, 7, 1, 0.0),
        Job(3, 8, 8, 1, 0.0),
        Job(4, 1, 1, 1, 0.0),
    ]
    one = Cluster.pooled(1)
    assert run(jobs, one, "sjf+none").start_s.tolist() == [0, 26, 11, 18, 10]
    # At 17 job 3 has joined job 1; at 25 job 4 has
    cut = run(jobs, one, "sjf+none", backfill_depth=2)
    assert cut.start_s.tolist() == [0, 26, 10, 17, 25]
    (note,) = depth_notes([cut])
    assert "sjf+none looked at 2 of up to 4 waiting jobs, those submitted first (rules.backfill_depth)" in note.what
    assert note.level == "change"
    assert depth_notes([run(jobs, one, "sjf+none", backfill_depth=4)]) == []


@settings(max_examples=30, deadline=None)
@given(
    data=st.data(), name=st.sampled_from(NAMES), event_rule=st.sampled_from(["per_event", "per_instant", "per_kind"])
)
def test_a_depth_that_is_never_reached_changes_nothing(data: st.DataObject, name: str, event_rule: Any) -> None:
    cluster = data.draw(clusters())
    jobs = data.draw(job_lists(cluster.processors))
    all_of_them = run(jobs, cluster, name, event_rule=event_rule)
    deep = run(jobs, cluster, name, event_rule=event_rule, backfill_depth=len(jobs))
    for column in ("start_s", "end_s", "promised_start_s"):
        np.testing.assert_array_equal(getattr(deep, column), getattr(all_of_them, column))


@settings(max_examples=30, deadline=None)
@given(data=st.data(), name=st.sampled_from(NAMES))
def test_who_looks_at_one_job_starts_them_in_order(data: st.DataObject, name: str) -> None:
    cluster = data.draw(clusters())
    jobs = data.draw(job_lists(cluster.processors, ties=False))
    first_come = run(jobs, cluster, "fcfs+none")
    np.testing.assert_array_equal(run(jobs, cluster, name, backfill_depth=1).start_s, first_come.start_s)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), name=st.sampled_from(NAMES), depth=st.integers(1, 6))
def test_only_the_oldest_waiting_jobs_start(data: st.DataObject, name: str, depth: int) -> None:
    cluster = data.draw(clusters())
    jobs = data.draw(job_lists(cluster.processors, ties=False))
    outcome = run(jobs, cluster, name, backfill_depth=depth, event_rule="per_instant")
    submit_s, start_s = outcome.workload.submit_s, outcome.start_s
    for k in range(len(jobs)):
        older = (submit_s < submit_s[k]) & (start_s > start_s[k])
        assert older.sum() < depth


@pytest.mark.parametrize("depth", [-1, 1.5, "ten"])
def test_what_is_no_depth_is_refused(depth: Any) -> None:
    with pytest.raises(InputError, match=r"rules\.backfill_depth: is .* \(give a whole number >= 0\)"):
        Rules(backfill_depth=depth)
