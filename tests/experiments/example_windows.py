"""Small comparisons made without the engine: a brute-force FCFS, plain or holding jobs back for the sun."""

from __future__ import annotations

import heapq
from functools import cache

import numpy as np
import polars

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.experiments.running.frames import tidy
from greenbatch.metrics import Horizon, evaluate_window
from greenbatch.workload import Note, Workload

CLUSTER = Cluster.pooled(64)


def day_site(days: int = 30) -> Site:
    """A sunny site: half a sine by day, some wind that changes every six hours."""
    hour = np.arange(24 * days)
    sun = 6000.0 * np.maximum(0.0, np.sin((hour % 24 - 6) / 12 * np.pi))
    wind = 900.0 * np.random.default_rng(5).random(4 * days).repeat(6)
    return Site(name="sunny", step_s=3600.0, sources_w={"solar": sun, "wind": wind}, repeat=True, notes=("made up",))


def some_jobs(seed: int, count: int = 150) -> Workload:
    """Jobs of all run-time classes, about one every ten minutes."""
    rng = np.random.default_rng(seed)
    run = np.ceil(np.exp(rng.normal(7.0, 1.8, count))).clip(1, 50_000)
    processors = 2 ** rng.integers(0, 6, count)
    columns = {
        "submit_s": np.cumsum(rng.integers(0, 1500, count)).astype(float), "run_time_s": run, "processors": processors,
        "power_w": processors * rng.integers(5, 51, count), "user": rng.integers(0, 9, count),
    }  # fmt: skip
    return Workload.from_columns(f"jobs-{seed}", columns, notes=(Note("zero run time, dropped", 3, 17),))


def fcfs(workload: Workload, *, hold_s: float = 0.0, name: str = "fcfs+none", site: Site | None = None) -> Outcome:
    """First come, first served without backfilling; jobs over an hour are first held for ``hold_s``."""
    ready = workload.submit_s + np.where(workload.run_time_s > 3600, hold_s, 0.0)
    start = np.zeros(len(workload))
    running: list[tuple[float, int]] = []
    free, clock = CLUSTER.processors, 0.0
    for job in np.argsort(ready, kind="stable"):
        clock = max(clock, ready[job])
        while running and (running[0][0] <= clock or free < workload.processors[job]):
            end, processors = heapq.heappop(running)
            clock, free = max(clock, end), free + processors
        start[job] = clock
        free -= int(workload.processors[job])
        heapq.heappush(running, (clock + workload.run_time_s[job], int(workload.processors[job])))
    end = start + workload.run_time_s
    times = np.unique(np.concatenate([start, end]))
    step = np.zeros(len(times))
    np.add.at(step, np.searchsorted(times, start), workload.power_w)
    np.subtract.at(step, np.searchsorted(times, end), workload.power_w)
    return Outcome(
        scheduler=name, workload=workload, cluster=CLUSTER, site=site, rules=Rules(), start_s=start, end_s=end,
        promised_start_s=np.full(len(start), np.nan), profile_time_s=times,
        profile_load_w=CLUSTER.idle_power_w + np.cumsum(step), decisions=len(start), killed=0,
    )  # fmt: skip


def one_window(seed: int = 0, site: Site | None = None) -> dict[str, Outcome]:
    """Three schedulers on one window; ``patient+none`` stretches the schedule by 12 h."""
    jobs = some_jobs(seed)
    holds = {"fcfs+none": 0.0, "hold-2h+none": 7_200.0, "patient+none": 172_800.0}
    return {name: fcfs(jobs, hold_s=hold, name=name, site=site) for name, hold in holds.items()}


@cache
def example(windows: int = 5, *, power: bool = True) -> tuple[polars.DataFrame, dict[str, Outcome]]:
    """A tidy frame over several windows, and the outcomes of the first."""
    site = day_site() if power else None
    outcomes = [one_window(seed, site) for seed in range(windows)]
    frame = tidy((str(1000 * k), _evaluated(each)) for k, each in enumerate(outcomes))
    return frame, outcomes[0]


def _evaluated(outcomes: dict[str, Outcome]) -> dict[str, dict[str, float]]:
    """Metrics with a horizon of twice the makespan of plain FCFS, so that the engine is not needed."""
    plain = outcomes["fcfs+none"]
    first = float(plain.workload.submit_s.min())
    makespan_s = float(plain.end_s.max()) - first
    horizon = Horizon(start_s=first, end_s=first + 2 * makespan_s, reference_makespan_s=makespan_s)
    return evaluate_window(outcomes, baseline="fcfs+none", horizon=horizon)
