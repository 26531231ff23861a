"""An agent's environment on a machine whose capacity follows the power, written a second time without the engine.

Tick by tick, with lists; every submission, run time and change of capacity is at a tick, every run time as requested.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from greenbatch.scenarios import Scenario


class Job(NamedTuple):
    number: int
    enter: int
    length: int
    cpu: int
    gpu: int
    qos: float
    value: float

    @property
    def due(self) -> float:
        return self.enter + self.length / self.qos


@dataclass
class PlainEnv:
    """One episode from the first submission on."""

    jobs: list[Job]
    levels: list[tuple[int, int]]
    """Powered processors and GPUs in each tick; the last holds forever."""
    size: tuple[int, int]
    pools: Any
    end: int
    now: int = 0
    actions: int = 0
    queue: list[Job] = field(default_factory=list)
    """Ready jobs, then those that wait until they are ready."""
    ready: list[Job] = field(default_factory=list)
    running: dict[Job, int] = field(default_factory=dict)
    """Job -> end."""
    begun: dict[Job, int] = field(default_factory=dict)
    """Job -> begin of its present span."""
    first: dict[Job, int] = field(default_factory=dict)
    suspended: dict[Job, int] = field(default_factory=dict)
    """Job -> ticks that it has left."""
    finished: dict[Job, int] = field(default_factory=dict)
    rejected: list[Job] = field(default_factory=list)
    suspensions: int = 0
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(
        ("ready_ticks", "pooled_ticks", "suspended_ticks", "late_running_ticks", "running_value",
         "progress_value"), 0.0))  # fmt: skip

    def level(self, tick: int) -> tuple[int, int]:
        return self.levels[min(tick, len(self.levels) - 1)]

    def used(self, tick: int) -> tuple[int, int]:
        """In use at a tick if nothing more starts."""
        here = [job for job, end in self.running.items() if end > tick]
        return sum(job.cpu for job in here), sum(job.gpu for job in here)

    def free(self, tick: int) -> tuple[int, int]:
        return tuple(np.subtract(self.level(tick), self.used(tick)).tolist())  # type: ignore[return-value]

    def fits(self, job: Job, left: int) -> bool:
        """Now, and under suspends = never for as long as it runs and the capacity is known."""
        known = min(left, int(self.pools.horizon_s) or left)
        ticks = range(self.now, self.now + known) if self.pools.suspends == "never" else [self.now]
        return all(job.cpu <= self.free(tick)[0] and job.gpu <= self.free(tick)[1] for tick in ticks)

    def may_suspend(self) -> bool:
        return self.pools.suspends == "swap" and bool(self.running) and len(self.suspended) < self.pools.suspended

    def suspend(self, of: list[Job]) -> None:
        job = min(of, key=lambda each: (each.value, -self.first[each], -each.number))
        self.suspended[job] = self.running.pop(job) - self.now
        self.suspensions += 1

    def refill(self) -> None:
        while len(self.ready) < self.pools.ready and len(self.ready) < len(self.queue):
            waiting = [job for job in self.queue if job not in self.ready]
            best = max(waiting, key=lambda job: job.qos) if self.pools.admission == "qos" else waiting[0]
            self.ready.append(best)

    def open_tick(self) -> None:
        """What happens at the beginning of a tick."""
        self.actions = 0
        for job, end in sorted(self.running.items(), key=lambda item: item[1]):
            if end <= self.now:
                del self.running[job]
                self.finished[job] = end
        if self.now >= self.end:
            return
        for job in [job for job in self.jobs if job.enter == self.now]:
            too_large = max(job.cpu, job.gpu) > self.pools.largest_request
            if too_large or len(self.queue) - len(self.ready) >= self.pools.waiting:
                self.rejected.append(job)
            else:
                self.queue.append(job)
                self.refill()
        while min(self.free(self.now)) < 0:
            self.suspend(list(self.running))
        for job, left in list(self.suspended.items()):
            if self.fits(job, left):
                del self.suspended[job]
                self.running[job], self.begun[job] = self.now + left, self.now

    def close_tick(self) -> None:
        """Count the tick, and move to the next."""
        pooled, late = (
            len(self.queue) - len(self.ready),
            {job: min(max(self.now + 1 - job.due, 0.0), 1.0) for job in self.running},
        )
        self.sums["ready_ticks"] += len(self.ready)
        self.sums["pooled_ticks"] += pooled
        self.sums["suspended_ticks"] += len(self.suspended)
        self.sums["late_running_ticks"] += sum(late.values())
        self.sums["running_value"] += sum(job.value / job.length * (1 - late[job]) for job in self.running)
        self.sums["progress_value"] += sum(job.value / job.length for job in self.running)
        self.now += 1
        self.open_tick()

    def to_decision(self) -> bool:
        """Go on until a job waits; False at the end."""
        while self.now < self.end and not self.queue:
            self.close_tick()
        return self.now < self.end

    def step(self, action: int | str) -> bool:
        """A slot of the ready pool, ``suspend`` or ``wait``; False at the end."""
        acted = False
        if isinstance(action, int) and self.fits(self.ready[action], self.ready[action].length):
            job = self.ready.pop(action)
            self.queue.remove(job)
            self.running[job] = self.now + job.length
            self.begun[job] = self.first[job] = self.now
            self.refill()
            acted = True
        elif action == "suspend" and self.may_suspend():
            earlier = [job for job in self.running if self.begun[job] < self.now]
            self.suspend(earlier or list(self.running))
            acted = True
        self.actions += acted
        if not acted or self.actions >= self.pools.actions_per_tick:
            self.close_tick()
        return self.to_decision()

    def terms(self) -> dict[str, float]:
        """Every term of rewards and costs."""
        present = [*self.queue, *self.running, *self.suspended]
        ends = {**self.finished, **dict.fromkeys(present, self.now)}
        late = {job: max(end - job.due, 0.0) for job, end in ends.items()}
        pools = ("ready_ticks", "pooled_ticks", "suspended_ticks", "late_running_ticks")
        accrued = self.sums["ready_ticks"] + self.sums["pooled_ticks"] + sum(late.values()) + self.suspensions
        return {
            **self.sums,
            "finished_value": sum(job.value for job in self.finished),
            "timely_value": sum(job.value for job, end in self.finished.items() if end <= job.due),
            "late_value": sum(job.value / job.length * ticks for job, ticks in late.items()),
            "late_jobs": sum(ticks > 0 for ticks in late.values()), "late_ticks": sum(late.values()),
            "suspensions": self.suspensions, "waiting_or_late_ticks": sum(self.sums[name] for name in pools),
            "accrued_cost": accrued,
        }  # fmt: skip

    def image(self, ticks: int) -> Any:
        """Shape (2, ticks, processors + GPUs)."""
        drawn = np.zeros((2, ticks, sum(self.size)), np.uint8)
        known = int(self.pools.horizon_s) or ticks
        for t in range(ticks):
            powered = self.level(self.now + min(t, known))
            for begin, size, used, on in zip(
                (0, self.size[0]), self.size, self.used(self.now + t), powered, strict=True
            ):
                drawn[0, t, begin : begin + min(used, size)] = 1
                drawn[1, t, begin + on : begin + size] = 1
        return drawn


def plain_env(scenario: Scenario, episode: int = 0, start: int = 0, count: int | None = None) -> PlainEnv:
    """The environment of a window of a scenario."""
    work, known = scenario.window(start, count) if count else scenario.workload, scenario.cluster.capacity_levels  # type: ignore[attr-defined]
    columns = (work.submit_s, work.run_time_s, work.processors, work.gpus, work.qos, work.value)
    jobs = [
        Job(k, int(enter), int(length), int(cpu), int(gpu), float(qos), float(value))
        for k, (enter, length, cpu, gpu, qos, value) in enumerate(zip(*columns, strict=True))
    ]
    last = int(known.time_s[-1])
    row = np.searchsorted(known.time_s, np.arange(last + 1), side="right") - 1
    levels = list(zip(known.processors[row].tolist(), known.gpus[row].tolist(), strict=True))
    first, pools = min(job.enter for job in jobs), scenario.rules.pools
    assert pools is not None
    size = scenario.cluster.processors, scenario.cluster.gpus  # type: ignore[attr-defined]
    made = PlainEnv(jobs, levels, size, pools, first + episode if episode else int(pools.end_s), now=first)
    made.open_tick()
    made.to_decision()
    return made
