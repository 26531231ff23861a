"""The engine against a second implementation: nodes x levels of what is powered x suspension, job by job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from powered_nodes_plain import PoweredMachine
from test_plain_nodes import SCORES, cluster_of, job_lists, node_lists, workload_of

from greenbatch.cluster import Capacity
from greenbatch.engine.pools import Pools
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.schedulers import scheduler

pytestmark = pytest.mark.plain


@st.composite
def level_lists(draw: Any, processors: int, gpus: int) -> list[tuple[float, int, int]]:
    """Some levels, of which the last is all of the machine."""
    steps = draw(st.lists(st.tuples(st.integers(1, 20), st.integers(0, processors), st.integers(0, gpus)), max_size=6))
    times = np.cumsum([0, *(step for step, *_ in steps)]).tolist()
    return list(zip(map(float, times), [*(p for _, p, _ in steps), processors], [*(g for *_, g in steps), gpus],
                    strict=True))  # fmt: skip


@pytest.mark.parametrize("backfill", ["none", "easy", "first-fit"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_schedules_on_nodes_that_are_powered_in_part(backfill: str, data: st.DataObject) -> None:
    nodes = [node._replace(speed=1.0) for node in data.draw(node_lists())]
    jobs = [job._replace(exclusive=False) for job in data.draw(job_lists(nodes))]
    policy, cost_s = data.draw(st.sampled_from(sorted(SCORES))), data.draw(st.sampled_from([0.0, 2.0]))
    levels = data.draw(level_lists(sum(n.processors for n in nodes), sum(n.gpus for n in nodes)))
    time_s, processors, gpus = map(np.array, zip(*levels, strict=True))
    cluster = cluster_of(nodes)
    powered = Capacity(time_s=time_s, processors=processors, gpus=gpus)
    pools = Pools(suspends="power", victim="latest-start", suspend_s=cost_s / 2, resume_s=cost_s / 2)
    rules = Rules(event_rule="per_instant", ties="completion_first", pools=pools)
    machine = type(cluster).of_nodes(cluster.groups, powered=powered)
    outcome = simulate(workload_of(jobs), machine, None, rules, scheduler(f"{policy}+{backfill}+first"))
    plain = PoweredMachine(
        jobs, nodes, SCORES[policy], backfill, "first", per_instant=True, completion_first=True, levels=levels,
        cost_s=cost_s,
    )  # fmt: skip
    plain.run()
    assert outcome.stays is not None
    assert outcome.placements is not None
    wanted = sorted(each for each in plain.spans if each[1] != each[2])
    found = zip(*(each.tolist() for each in outcome.spans), strict=True)
    assert [*found] == [span[:3] for span in wanted]
    at = outcome.placements
    placed = list(zip(at.span.tolist(), at.node.tolist(), at.processors.tolist(), strict=True))
    assert placed == [(k, part.node, part.processors) for k, span in enumerate(wanted) for part in span[3]]
    assert outcome.stays.suspensions.tolist() == [plain.times[j] for j in range(len(jobs))]
    first = [plain.first_reservation_s.get(j, np.nan) for j in range(len(jobs))]
    np.testing.assert_array_equal(outcome.promised_start_s, first)
