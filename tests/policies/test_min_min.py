"""Min-min and max-min: a case worked by hand, and the same schedules as a plain version on random nodes."""

from __future__ import annotations

from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from greenbatch import simulate
from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate as run
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

RULES = Rules(event_rule="per_instant", overrun="extend")


class Job(NamedTuple):
    submit_s: float
    run_s: float
    requested_s: float
    processors: int
    nodes: int
    """Number of nodes, each with an equal part; -1: any processors."""


def workload(jobs: list[Job]) -> Workload:
    columns = {
        "submit_s": [job.submit_s for job in jobs], "run_time_s": [job.run_s for job in jobs],
        "requested_time_s": [job.requested_s for job in jobs], "processors": [job.processors for job in jobs],
        "nodes": [job.nodes for job in jobs],
    }  # fmt: skip
    return Workload.from_columns("jobs", {name: np.array(values) for name, values in columns.items()})


def nodes(*kinds: tuple[int, float]) -> Cluster:
    """One node per (processors, speed)."""
    groups = [
        NodeGroup(name=f"g{k}", count=1, processors=processors, speed=speed, static_power_w=1.0)
        for k, (processors, speed) in enumerate(kinds)
    ]
    return Cluster.of_nodes(tuple(groups))


@pytest.mark.parametrize(
    ("policy", "starts", "places"),
    [
        # B ends first of all, at 1 on the fast node; of the others A ends first, at 4 on the slow one; C waits
        ("min-min", [0.0, 0.0, 1.0], [0, 1, 1]),
        # C ends last even on the fast node, at 3; of the others A; B waits for the fast node
        ("max-min", [0.0, 3.0, 0.0], [0, 1, 1]),
    ],
)
def test_three_jobs_on_a_slow_and_a_fast_node(policy: str, starts: list[float], places: list[int]) -> None:
    jobs = [Job(0, 4, 4, 1, 1), Job(0, 2, 2, 1, 1), Job(0, 6, 6, 1, 1)]
    outcome = run(workload(jobs), nodes((1, 1.0), (1, 2.0)), None, RULES, scheduler(policy))
    assert outcome.start_s.tolist() == starts
    assert outcome.placements is not None
    assert outcome.placements.node[np.argsort(outcome.placements.job)].tolist() == places


def plain(jobs: list[Job], kinds: list[tuple[int, float]], sign: int) -> list[tuple[float, float, tuple[int, ...]]]:
    """Start, end and nodes of every job, one pass per instant."""
    free = [processors for processors, _ in kinds]
    fastest = sorted(range(len(kinds)), key=lambda k: -kinds[k][1])
    done: dict[int, tuple[float, float, tuple[int, ...]]] = {}
    held: dict[int, dict[int, int]] = {}

    def would_take(job: Job) -> dict[int, int] | None:
        taken, left = {}, job.processors if job.nodes < 0 else job.nodes
        each = job.processors // max(job.nodes, 1)
        for k in fastest:
            count = min(free[k], left) if job.nodes < 0 else (1 if free[k] >= each and left else 0)
            if count:
                taken[k] = count if job.nodes < 0 else each
                left -= count
        return taken if left == 0 else None

    times = sorted({job.submit_s for job in jobs})
    while times:
        now_s = times.pop(0)
        for number in [number for number in held if done[number][1] == now_s]:
            for k, count in held.pop(number).items():
                free[k] += count
        while True:
            waiting = [n for n, job in enumerate(jobs) if n not in done and job.submit_s <= now_s]
            pairs = [(n, taken) for n in waiting if (taken := would_take(jobs[n])) is not None]
            if not pairs:
                break
            number, taken = min(
                pairs, key=lambda pair: (sign * jobs[pair[0]].requested_s / min(kinds[k][1] for k in pair[1]),
                                         jobs[pair[0]].submit_s, pair[0])
            )  # fmt: skip
            for k, count in taken.items():
                free[k] -= count
            end_s = now_s + jobs[number].run_s / min(kinds[k][1] for k in taken)
            done[number], held[number] = (now_s, end_s, tuple(sorted(taken))), taken
            times = sorted({*times, end_s})
    return [done[number] for number in range(len(jobs))]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Job], list[tuple[int, float]]]:
    kinds = draw(st.lists(st.tuples(st.integers(1, 4), st.sampled_from([0.5, 1.0, 2.0])), min_size=1, max_size=4))
    jobs = []
    for _ in range(draw(st.integers(1, 12))):
        count = draw(st.integers(1, len(kinds)))
        largest = sorted((processors for processors, _ in kinds), reverse=True)[count - 1]
        some = draw(st.booleans())
        processors = count * draw(st.integers(1, largest)) if some else draw(st.integers(1, sum(p for p, _ in kinds)))
        jobs.append(Job(draw(st.integers(0, 6)), draw(st.integers(1, 8)), draw(st.integers(1, 8)), processors,
                        count if some else -1))  # fmt: skip
    return jobs, kinds


@pytest.mark.parametrize(("policy", "sign"), [("min-min", 1), ("max-min", -1)])
@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_schedules_are_those_of_a_plain_version(
    policy: str, sign: int, case: tuple[list[Job], list[tuple[int, float]]]
) -> None:
    jobs, kinds = case
    outcome = run(workload(jobs), nodes(*kinds), None, RULES, scheduler(policy))
    expected = plain(jobs, kinds, sign)
    assert outcome.start_s.tolist() == [start_s for start_s, _, _ in expected]
    assert outcome.end_s.tolist() == [end_s for _, end_s, _ in expected]
    placed = outcome.placements
    assert placed is not None
    found = [tuple(sorted(placed.node[placed.job == number].tolist())) for number in range(len(jobs))]
    assert found == [places for _, _, places in expected]


@pytest.mark.plain
def test_on_a_pool_the_shortest_or_longest_job_that_fits_goes_first() -> None:
    jobs = workload([Job(0, 5, 5, 3, -1), Job(0, 2, 2, 1, -1), Job(0, 9, 9, 1, -1), Job(0, 3, 3, 2, -1)])
    pool = Cluster.pooled(3, processors_per_machine=4, idle_power_per_machine_w=0.0)
    for policy, same, starts in (
        ("min-min", "sjf+first-fit", [11.0, 0.0, 2.0, 0.0]), ("max-min", "longest+first-fit", [9.0, 3.0, 0.0, 0.0]),
    ):  # fmt: skip
        for name in (policy, same):
            assert run(jobs, pool, None, RULES, scheduler(name)).start_s.tolist() == starts, name


def test_min_min_chooses_jobs_and_nodes_itself() -> None:
    with pytest.raises(InputError, match="chooses the nodes itself"):
        scheduler("min-min+none+low-power")
    with pytest.raises(InputError, match="considers every job that could start itself"):
        scheduler("max-min+easy")


def test_the_scenarios_of_ineps_run_under_both() -> None:
    for policy in ("min-min", "max-min"):
        assert simulate("ineps/convergence-t0", policy).end_s.max() > 0
