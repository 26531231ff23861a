"""The cost of starting a job now: brown energy and prices of processors, and the harm to future short jobs."""

from __future__ import annotations

import numpy as np

from greenbatch.engine.records import Floats, Job
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled
from greenbatch.policies.compiled.lookahead.arrivals import ALL, SHORTS, made_to_wait_s2, rate_ahead_per_s
from greenbatch.policies.compiled.lookahead.forecast import BIN_S, cost_between, is_room
from greenbatch.policies.compiled.lookahead.weights import BLOCK_PRICE, GREEN_PRICE, MEMORY, READINESS

SHORT_RUN_S = 20.0
"""Run time of a typical short job, which converts its wait to a slowdown. [s]"""


@compiled
def block_cost(s: State, prices: Floats, memory: Floats, job: Job, run_s: float, quiet: float) -> float:
    """Price of the slowdown that starting a long job now is expected to cause for future short jobs. [J]"""
    shorts_per_s = rate_ahead_per_s(s, memory, prices[MEMORY] * 3600.0, run_s)
    shorts_per_s *= memory[SHORTS] / memory[ALL]
    harm = shorts_per_s * made_to_wait_s2(s, memory, job.processors, run_s) / 2.0 / SHORT_RUN_S
    return float(prices[BLOCK_PRICE] * harm * (1.0 - quiet))


@compiled
def cost_of_now(
    s: State, prices: Floats, grid: Floats, job: Job, power_w: float, run_s: float, covered: int
) -> float:  # fmt: skip
    """Cost of starting a job now, without its effect on future short jobs. [J]"""
    end = (s.clock.now_s + run_s) / BIN_S - np.floor(s.clock.now_s / BIN_S)
    k = int(end)
    rest_s = run_s if k == 0 else (end - k) * BIN_S
    cost_j = cost_between(s, grid, power_w, job.processors * prices[GREEN_PRICE], 0, k, rest_s, covered)
    return float(cost_j - prices[READINESS] * job.processors * run_s)


@compiled
def is_green(
    s: State, grid: Floats, need: int, power_w: float, run_s: float, brown_share: float, count: int
) -> bool:  # fmt: skip
    """Whether a job that starts now takes at most a share of its energy from the grid, and finds room until its end.

    Args:
        s: the state.
        grid: the table.
        need: processors that must be free while it runs.
        power_w: power of the job. [W]
        run_s: how long it runs. [s]
        brown_share: largest share of brown energy, from 0 to 1, times what a joule from the grid usually weighs.
        count: number of half-hours in the table.
    """
    off_s = s.clock.now_s - np.floor(s.clock.now_s / BIN_S) * BIN_S
    if not is_room(grid, 0, int((off_s + run_s - 1e-6) / BIN_S), count, need):
        return False
    k = int((off_s + run_s) / BIN_S)
    rest_s = run_s if k == 0 else off_s + run_s - k * BIN_S
    return bool(cost_between(s, grid, power_w, 0.0, 0, k, rest_s, count) <= brown_share * power_w * run_s)
