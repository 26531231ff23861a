"""IRMaSim's heuristics on jobs of one node each, core by core and in its order of rounding, as plain Python.

An independent statement of what our engine must do under ``irmasim-v1``, for workloads without golden results. It
gives all golden schedules of these heuristics to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, inf
from pathlib import Path
from typing import Any


@dataclass(eq=False)
class Job:
    """One job: every task does the same operations."""

    submit_s: float
    tasks: int
    operations: int
    profile: dict[str, float]
    node: Node | None = None
    start_s: float = inf
    end_s: float = inf
    left: int = 0
    """Operations that are left of each task; all tasks of a job are on one node, and so equally fast."""


@dataclass(eq=False)
class Node:
    """One node, which has one processor."""

    name: str
    kind: dict[str, float]
    cores: list[Job | None] = field(default_factory=list)
    bandwidth: float = 0.0
    """What its tasks asked for when one was last placed or taken away. [MB/s]"""
    speeds: dict[Job, float] = field(default_factory=dict)
    was_used: bool = False

    @property
    def ops_per_s(self) -> float:
        """Peak of a core."""
        return self.kind["clock_rate"] * self.kind["dpflops_per_cycle"] * 1e3 * 1e6

    def asked(self, job: Job | None) -> float:
        """Bandwidth that a task of a job asks for. [MB/s]"""
        if job is None or job.left <= 0:
            return 0.0
        return job.profile["mem_vol"] / (job.operations / self.ops_per_s)

    def idle(self) -> int:
        """Idle cores."""
        return self.cores.count(None)

    def update(self) -> None:
        """Recompute the speeds of its jobs."""
        self.bandwidth = 0.0
        for job in self.cores:
            self.bandwidth += self.asked(job)
        others = sum(job is not None and job.left > 0 for job in self.cores) - 1
        self.speeds = {job: round(self.speed(self.asked(job), others), 9) for job in self.cores if job is not None}

    def speed(self, own: float, others: int) -> float:
        """Relative speed of a task that asks for a bandwidth."""
        k = self.kind
        if self.bandwidth < k["c"]:
            return 1.0
        z = (own - (k["da"] - others) * k["db"]) / (k["dc"] - others * k["dd"])
        steep = 1.0 if z < 0 else 0.0 if z > 1 else 1.0 - z * z * z * (z * (z * 6 - 15) + 10)
        least = steep * (others * 0.6 / (1 + others * 0.6)) + 1 / (1 + others * 0.6)
        return (
            least if self.bandwidth > (least + k["b"] * k["c"] - 1) / k["b"] else k["b"] * (self.bandwidth - k["c"]) + 1
        )

    def power_w(self) -> float:
        """Power now; a node that has never been used draws none."""
        busy = len(self.cores) - self.idle()
        self.was_used |= busy > 0
        if busy:
            return self.kind["static_power"] + busy * self.kind["dynamic_power"]
        return self.was_used * self.kind["static_power"] * self.kind["min_power"]


JOBS: dict[str, Callable[[Job], float]] = {
    "first": lambda job: job.submit_s, "shortest": lambda job: job.profile["req_time"],
    "longest": lambda job: -job.profile["req_time"], "smallest": lambda job: job.tasks,
    "low_mem": lambda job: job.profile["mem"], "low_mem_ops": lambda job: job.profile["mem_vol"],
}  # fmt: skip
NODES: dict[str, Callable[[Node], Any]] = {
    "first": lambda node: node.name, "high_gflops": lambda node: -node.ops_per_s,
    "high_cores": lambda node: -node.idle(), "low_cores": lambda node: node.idle(),
    "high_mem": lambda node: -sum(job.profile["mem"] for job in node.cores if job),
    "high_mem_bw": lambda node: node.bandwidth,
    "low_power": lambda node: node.kind["static_power"] + len(node.cores) * node.kind["dynamic_power"],
}  # fmt: skip


def _read(inputs: Path, platform: str, workload: str) -> tuple[list[Node], list[Job]]:
    facts = json.loads((inputs / f"{platform}.json").read_text(encoding="utf-8"))
    asked = json.loads((inputs / f"{workload}.json").read_text(encoding="utf-8"))
    nodes: list[Node] = []
    (described,) = facts["platform"].values()
    for group in (group for cluster in described["clusters"] for group in cluster["nodes"]):
        kind = facts["processor"][facts["node"][group["type"]]["processors"][0]["type"]]
        nodes += [Node(f"node{len(nodes) + k}", kind, [None] * kind["cores"]) for k in range(group["number"])]
    profiles = asked["profiles"]
    return nodes, [
        Job(job["subtime"], job["res"], ceil(one["req_ops"] / one["ipc"]), one)
        for job in asked["jobs"]
        for one in [profiles[job["profile"]]]
    ]


def run(inputs: Path, platform: str, workload: str, job_rule: str, node_rule: str) -> tuple[float, list[Job]]:
    """Energy [J] and jobs of a run."""
    nodes, jobs = _read(inputs, platform, workload)
    future, waiting, running, now_s, energy_j = list(jobs), [], [], 0.0, 0.0

    def start() -> None:
        while waiting and (free := [node for node in nodes if node.idle() >= waiting[0].tasks]):
            job, node = waiting.pop(0), min(free, key=NODES[node_rule])
            job.node, job.start_s, job.left = node, now_s, job.operations
            for _ in range(job.tasks):
                node.cores[node.cores.index(None)] = job
            node.update()
            running.append(job)

    while future or running:
        ends = [job.left / (job.node.ops_per_s * job.node.speeds[job]) for job in running if job.left > 0]
        end_s, arrival_s = min(ends, default=inf), (future[0].submit_s if future else inf) - now_s
        step_s = min(end_s, arrival_s)
        energy_j += sum(node.power_w() for node in nodes) * step_s
        for job in running:
            job.left -= round(job.node.ops_per_s * job.node.speeds[job] * step_s)
        now_s += step_s
        if step_s == arrival_s:
            while future and future[0].submit_s <= now_s:
                waiting.append(future.pop(0))
            waiting.sort(key=JOBS[job_rule])
            start()
        if step_s == end_s:
            for job in [job for job in running if job.left <= 0]:
                running.remove(job)
                job.end_s = now_s
                job.node.cores = [None if other is job else other for other in job.node.cores]
                job.node.update()
            start()
    return energy_j, jobs
