"""Schedules on nodes equal those of an independent, slow simulator on random small machines and workloads."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from nodes_plain import FIXED, KEYS, UNLIMITED_KB, Job, Machine, Node

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

SCORES = {
    "fcfs": lambda job, now_s: job.submit_s,
    "sjf": lambda job, now_s: job.requested_s,
    "largest": lambda job, now_s: -job.processors,
    "wfp3": lambda job, now_s: -(((now_s - job.submit_s) / job.requested_s) ** 3) * job.processors,
}
PLACEMENTS = (*FIXED, *KEYS)
PARTITIONS = ((), ("a",), ("b",), ("c",), ("a", "b"))
MEMORY_KB = (0, 0, 100_100, 333_333, 500_000)


@st.composite
def node_lists(draw: st.DrawFn) -> list[Node]:
    """One to six nodes, some of them alike."""
    kinds = [
        Node(
            draw(st.integers(1, 6)),
            draw(st.sampled_from([0, 0, 1, 2, 4])),
            draw(st.sampled_from([UNLIMITED_KB, 1_000_000, 2_000_000, 1_501_500])),
            draw(st.sampled_from([1.0, 1.0, 0.5, 1.25, 3.0])),
            frozenset(draw(st.sampled_from(PARTITIONS))),
            float(draw(st.integers(1, 9))),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    return [draw(st.sampled_from(kinds)) for _ in range(draw(st.integers(1, 6)))]


@st.composite
def job_lists(draw: st.DrawFn, nodes: list[Node]) -> list[Job]:
    """Up to 25 jobs, each of which fits on the idle nodes; in some workloads, they only ask for processors."""
    jobs, only_processors = [], draw(st.sampled_from([False, False, False, True]))
    names = sorted({name for node in nodes for name in node.partitions})
    names = [*names, ""] if draw(st.booleans()) or not names else names
    exact = draw(st.booleans())
    for _ in range(draw(st.integers(1, 25))):
        name = "" if only_processors else draw(st.sampled_from(names))
        usable = [node for node in nodes if not name or not node.partitions or name in node.partitions]
        run = draw(st.integers(1, 12))
        asked = Job(
            draw(st.integers(0, 40)), run, run if exact else draw(st.integers(1, 15)), 1, partition=name
        )  # fmt: skip
        kind = "any" if only_processors else draw(st.sampled_from(["any", "any", "nodes", "nodes", "gpus"]))
        memory_kb = 0 if only_processors else draw(st.sampled_from(MEMORY_KB))
        exclusive = not only_processors and draw(st.integers(0, 5)) == 0
        like = draw(st.sampled_from(usable))
        if memory_kb > like.memory_kb:
            memory_kb = 0
        most = min(like.processors, like.memory_kb // memory_kb) if memory_kb else like.processors
        same = sum(
            node.processors >= like.processors and node.gpus >= like.gpus and node.memory_kb >= like.memory_kb
            for node in usable
        )
        if kind == "any":
            room = sum(
                min(node.processors, node.memory_kb // memory_kb) if memory_kb else node.processors for node in usable
            )
            asked = asked._replace(processors=draw(st.integers(1, room)))
        elif kind == "nodes" or like.gpus == 0:
            number = draw(st.integers(1, same))
            processors = draw(st.integers(number, most * number))
            asked = asked._replace(processors=processors, nodes=number, gpus=draw(st.integers(0, like.gpus * number)))
        else:  # GPUs without nodes: as few nodes as have enough of them
            gpus = draw(st.integers(1, like.gpus * same))
            number = -(-gpus // max(node.gpus for node in nodes))
            asked = asked._replace(processors=draw(st.integers(number, most * number)), gpus=gpus)
            if min(number, asked.processors) > same or -(-gpus // number) > like.gpus:
                asked = asked._replace(gpus=0, processors=1)
        jobs.append(asked._replace(memory_kb=memory_kb, exclusive=exclusive))
    return jobs


def group_of(name: str, node: Node) -> NodeGroup:
    return NodeGroup(
        name=name,
        count=1,
        processors=node.processors,
        gpus=node.gpus,
        memory_gb=math.inf if node.memory_kb == UNLIMITED_KB else node.memory_kb / 1e6,
        speed=node.speed,
        partitions=tuple(sorted(node.partitions)),
        static_power_w=node.full_w,
    )


def cluster_of(nodes: list[Node]) -> Cluster:
    return Cluster.of_nodes(tuple(group_of(f"n{k}", node) for k, node in enumerate(nodes)))


def workload_of(jobs: list[Job]) -> Workload:
    names = sorted({job.partition for job in jobs} - {""})
    columns: dict[str, Any] = {
        "submit_s": [job.submit_s for job in jobs],
        "run_time_s": [job.run_s for job in jobs],
        "requested_time_s": [job.requested_s for job in jobs],
        "processors": [job.processors for job in jobs],
        "nodes": [job.nodes or -1 for job in jobs],
        "gpus": [job.gpus for job in jobs],
        "requested_memory_kb": [float(job.memory_kb) for job in jobs],
        "exclusive": [int(job.exclusive) for job in jobs],
        "partition": [names.index(job.partition) if job.partition else -1 for job in jobs],
    }
    made = Workload.from_columns("random", {name: np.array(values) for name, values in columns.items()})
    return replace(made, names={"partition": dict(enumerate(names))})


def check(outcome: Outcome, machine: Machine) -> None:
    """The same starts, ends, first reservations and nodes, job by job."""
    machine.run()
    count = len(machine.jobs)
    np.testing.assert_array_equal(outcome.start_s, [machine.start_s[j] for j in range(count)])
    np.testing.assert_array_equal(outcome.end_s, [machine.end_s(j) for j in range(count)])
    first = [machine.first_reservation_s.get(j, math.nan) for j in range(count)]
    np.testing.assert_array_equal(outcome.promised_start_s, first)
    placed = outcome.placements
    assert placed is not None
    ours = np.column_stack([placed.job, placed.node, placed.processors]).tolist()
    assert ours == [[j, part.node, part.processors] for j in range(count) for part in machine.parts[j]]


@pytest.mark.parametrize("backfill", ["none", "easy", "first-fit", "conservative"])
@settings(max_examples=35, deadline=None)
@given(data=st.data())
def test_schedules_on_nodes(backfill: str, data: st.DataObject) -> None:
    nodes = data.draw(node_lists())
    jobs = data.draw(job_lists(nodes))
    policy, placement = data.draw(st.sampled_from(sorted(SCORES))), data.draw(st.sampled_from(PLACEMENTS))
    rules: dict[str, Any] = {
        "event_rule": data.draw(st.sampled_from(["per_event", "per_instant"])),
        "overrun": data.draw(st.sampled_from(["kill", "extend"])),
        "ties": data.draw(st.sampled_from(["arrival_first", "completion_first"])),
    }
    made = scheduler(f"{policy}+{backfill}+{placement}")
    outcome = simulate(workload_of(jobs), cluster_of(nodes), None, Rules(**rules), made)
    check(
        outcome,
        Machine(
            jobs, nodes, SCORES[policy], backfill, placement, per_instant=rules["event_rule"] == "per_instant",
            kill=rules["overrun"] == "kill", completion_first=rules["ties"] == "completion_first",
        ),
    )  # fmt: skip


@pytest.mark.parametrize("backfill", ["none", "easy", "first-fit"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_sticky_schedules_on_nodes(backfill: str, data: st.DataObject) -> None:
    """Distinct submissions and no partitions: jobs of one instant follow a quirk of the published simulators."""
    nodes = [node._replace(partitions=frozenset()) for node in data.draw(node_lists())]
    jobs = [job._replace(submit_s=job.submit_s + k / 32) for k, job in enumerate(data.draw(job_lists(nodes)))]
    policies = set(SCORES) - ({"wfp3"} if backfill == "first-fit" else set())
    policy, placement = data.draw(st.sampled_from(sorted(policies))), data.draw(st.sampled_from(PLACEMENTS))
    kill, event_rule = data.draw(st.booleans()), data.draw(st.sampled_from(["per_event", "per_instant"]))
    rules = Rules(commitment="sticky", event_rule=event_rule, overrun="kill" if kill else "extend")
    outcome = simulate(
        workload_of(jobs), cluster_of(nodes), None, rules, scheduler(f"{policy}+{backfill}+{placement}")
    )  # fmt: skip
    check(
        outcome,
        Machine(
            jobs, nodes, SCORES[policy], backfill, placement, per_instant=event_rule == "per_instant", kill=kill,
            sticky=True,
        ),
    )  # fmt: skip
