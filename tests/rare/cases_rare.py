"""Jobs and machines like those of RARE's synthetic workload, for tests and benchmarks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from greenbatch.cluster import Capacity, Cluster
from greenbatch.engine.pools import Pools
from greenbatch.engine.rules import Rules
from greenbatch.presets.preset import Preset, check, preset
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.workload import Workload

AGENT = Path(__file__).with_name("agent.toml")


def jobs(size: int, ticks: int, load: float, seed: int, largest: int) -> Workload:
    """Poisson arrivals (§4.4.1): 70 % of the jobs are short, requests up to ``largest``; load of the processors."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(load * size / ((largest + 1) / 2 * 9.85), ticks)
    enter = np.repeat(np.arange(ticks), counts)
    n = len(enter)
    short = rng.random(n) < 0.7
    length = np.where(short, rng.integers(1, 11, n), rng.integers(10, 31, n))
    cpu, gpu = rng.integers(1, largest + 1, n), rng.integers(1, largest + 1, n)
    qos = np.round(np.where(rng.random(n) < 0.6, rng.uniform(0.6, 1, n), rng.uniform(0.1, 0.6, n)), 4)
    columns = {
        "submit_s": enter, "run_time_s": length, "processors": cpu, "gpus": gpu, "qos": qos,
        "value": (cpu + gpu) * 0.5 * length * qos, "power_w": np.zeros(n),
    }  # fmt: skip
    return Workload.from_columns("synthetic", columns)


def rare(
    size: int = 10, ticks: int = 2000, *, load: float = 1.0, seed: int = 0, fixed: int = 0, level: float = 1.0,
    ready: int = 10, until_end: bool = True, **pools: Any,
) -> Scenario:  # fmt: skip
    """A scenario with as many processors as GPUs; in each tick, a share ``level`` is powered with that probability."""
    made = _base()
    levels = np.where(np.random.default_rng(seed + 1000).random(ticks + 64) < level, level, 1.0)
    capacity = Capacity.of_ticks(levels, 1.0, processors=size, gpus=size)
    largest = fixed or size // 2
    options: dict[str, Any] = {
        "ready": ready, "waiting": 144, "suspended": 144, "largest_request": largest, "longest_request_s": 30.0,
        "horizon_s": 48.0, "end_s": float(ticks) if until_end else 0.0, "actions_per_tick": ready + 2, **pools,
    }  # fmt: skip
    return replace(
        made, workload=jobs(size, ticks, load, seed, largest), site=None,
        cluster=Cluster.of_units(size, size, powered=capacity),
        rules=Rules(event_rule="per_instant", ties="completion_first", pools=Pools(**options)),
    )  # fmt: skip


@cache
def _base() -> Scenario:
    return load_scenario("default", overrides={"workload.generator.jobs": 10})


def agent(**changes: Any) -> Preset:
    """The preset of `AGENT` with some of its tables changed: ``reward={"terms": ...}``."""
    raw = preset(AGENT).model_dump()
    for place, values in changes.items():
        table = raw
        for key in place.split("__"):
            table = table[key]
        table.update(values)
    return check(raw)
