"""The weights of the look-ahead planner, and how the state of the system changes them.

A model has one weight for each of `NUMBERS`, and for the first seven a linear head over `INPUTS`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.observe.features import DAY_S, queued_work_s, running_work_s
from greenbatch.engine.records import Floats
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled
from greenbatch.policies.compiled.lookahead.arrivals import FIRST_S, LATEST, RATE, ROW, WORK
from greenbatch.policies.compiled.lookahead.baseline import PACE, TIME, baseline_end_s
from greenbatch.policies.compiled.lookahead.forecast import mean_green
from greenbatch.workload import Workload


class Number(NamedTuple):
    """A weight of a model."""

    meaning: str
    initial: float
    """Initial value of the search."""
    step: float
    """Initial step of the search."""
    lowest: float
    highest: float


(GREEN_PRICE, IDLE_PRICE, READINESS, RESERVE, ORDER_TIME, ORDER_PROCESSORS, ORDER_DENSITY) = range(7)
NUMBERS: dict[str, Number] = {
    "green_price": Number("price of a processor in a fully green hour [W]", 10, 5, 0, 45),
    "idle_price": Number("price of holding a processor idle [W]", 2, 1, 0, 40),
    "readiness": Number("discount on starting now [W per processor]", 1, 1, -8, 15),
    "reserve": Number("share of the cluster that long jobs leave free", 0.12, 0.04, 0, 0.6),
    "order_time": Number("exponent of the requested time in the order of long jobs", 2.5, 0.7, -3, 5),
    "order_processors": Number("exponent of the processors in the order of long jobs", 0, 0.7, -3, 4),
    "order_density": Number("exponent of the power per processor in the order of long jobs", -2.5, 1, -6, 6),
    "order_wait": Number("exponent of the slowdown so far in the order of long jobs, downward", 0, 0.4, -2, 4),
    "hold_price": Number("logarithm (base 10) of the price of waiting as long as the job runs [J]", 5, 0.7, 2, 8),
    "block_price": Number("logarithm (base 10) of the price of slowdown of future short jobs [J]", 4.2, 0.4, -3, 7),
    "horizon": Number("how far ahead start times are compared [h]", 40, 5, 4, 72),
    "short": Number("requested time up to which a job goes first and may use the reserve [s]", 1300, 500, 200, 8000),
    "reserve_ratio": Number("requested time over `short` from which the whole reserve is left free", 2, 1.5, 1.01, 20),
    "green_level": Number("surplus per processor at which an hour is fully green [W]", 46, 8, 3, 90),
    "green_hours": Number("hours ahead over which the current greenness is averaged [h]", 4, 1.5, 0.5, 20),
    "quiet": Number("hours without an arrival after which no more short jobs are expected [h]", 4, 1.5, 0.5, 24),
    "memory": Number("hours over which the rate of arrivals is remembered [h]", 3, 1.2, 0.3, 24),
    "lag": Number("lag up to which delaying jobs costs nothing extra; 2.5 or more for no limit", 1.4, 0.07, 1, 3),
    "lag_price": Number("discount on starting now per unit of lag above that [W per processor]", 100, 40, 0, 1000),
}  # fmt: skip
"""The weights of a model, in order; the first seven have heads."""
(ORDER_WAIT, HOLD_PRICE, BLOCK_PRICE, HORIZON, SHORT, RESERVE_RATIO, GREEN_LEVEL, GREEN_HOURS, QUIET, MEMORY) = range(
    7, 17
)
(LAG, LAG_PRICE) = range(17, 19)

NODE_NUMBERS: dict[str, Number] = {
    "haste": Number("price of the time for which a job keeps a processor [W], with a head", 0, 3, -30, 60),
    "waking": Number("weight of the power of a node that wakes for a job in the order of the nodes", 1, 0.5, -1, 4),
    "crowding": Number("price of the free share of a node in the order of the nodes [W]", 0, 2, -30, 30),
}
"""Further weights of a model that chooses nodes; they follow those of other models, and then the head of ``haste``."""

HEADS = 7
"""Number of weights that the state of the system changes."""
HEAD_SCALE = (1.0, 1.0, 5.0, 0.2, 2.0, 2.0, 2.0)
"""Size of one unit of a head: in the logarithm for prices, in the value itself for the other weights."""
LARGEST_WEIGHT = 3.0
"""Largest absolute weight of a head."""
HEAD_WEIGHT = Number("weight of an input in a head", 0, 0.25, -LARGEST_WEIGHT, LARGEST_WEIGHT)
HEAD_LIMIT = 2.0
"""A head is clipped to this many units."""

INPUTS: tuple[str, ...] = (
    "green_now", "green_day", "green_later", "quiet", "queued_work", "free", "running_work", "longest", "sine",
    "cosine", "arrivals", "lag",
)  # fmt: skip
"""Inputs of the heads, each scaled to about -1 to 1: greenness of the next hours, the next day and its second half;
time since the last arrival; queued work, free processors, running work; the longest waiting job relative to the queued
work; the time of day; the rate of arrivals; and the `lag`."""

DAY_BEFORE_S = 86_400.0
"""The lag counts from this long before the first arrival, so that the first hours have little effect. [s]"""

USUAL_W = 27.5
"""Mean power per processor of the jobs for which the prices were found (GAS-MARL, Eq. 16: 5 to 50 W). [W]"""

PRICES = len(NUMBERS)
LAG_INPUT = len(INPUTS) - 1
WEIGHTS = PRICES + HEADS * len(INPUTS)
"""Number of weights of a model: `NUMBERS`, then one row per head."""
(HASTE, WAKING, CROWDING) = range(PRICES, PRICES + len(NODE_NUMBERS))
"""Places of `NODE_NUMBERS` in the prices; in the weights they begin at `WEIGHTS`."""
NODE_WEIGHTS = WEIGHTS + len(NODE_NUMBERS) + len(INPUTS)
"""Number of weights of a model that chooses nodes: `WEIGHTS`, `NODE_NUMBERS`, and the head of ``haste``."""
HASTE_SCALE = 5.0
"""Size of one unit of the head of ``haste``. [W]"""


def numbers_of_model(*, chooses_nodes: bool) -> dict[str, Number]:
    """Name of each weight of a model, in their order -> what it means and its range."""
    heads = {f"head weight {k}": HEAD_WEIGHT for k in range(HEADS * len(INPUTS))}
    haste = {f"head weight {HEADS * len(INPUTS) + k}": HEAD_WEIGHT for k in range(len(INPUTS))}
    return {**NUMBERS, **heads, **(NODE_NUMBERS | haste if chooses_nodes else {})}


def unit_of_power(workload: Workload, cluster: Cluster) -> float:
    """Factor by which the planner multiplies all powers, so that its prices suit a machine that models its power.

    A processor of the machine, with its part of the node that wakes for it, then draws `USUAL_W` on average. 1 if any
    job states its power: prices are in W.
    """
    if not cluster.knows_power or not np.isnan(workload.power_w).all():
        return 1.0
    nodes_w = sum(g.count * (g.static_power_w - g.idle_power_w) for g in cluster.groups)
    processors_w = sum(g.count * g.processors * g.power_per_processor_w for g in cluster.groups)
    return float(USUAL_W * cluster.processors / (nodes_w + processors_w))


@compiled
def look(s: State, weights: Floats, memory: Floats, progress: Floats, grid: Floats, count: int, inputs: Floats) -> None:
    """Fill in the inputs of the heads, shape (len(INPUTS),); shifts and divisors only scale them to about -1 to 1."""
    c = s.clock
    longest_s = 0.0
    for i in range(c.first, c.last):
        longest_s = max(longest_s, s.queue.requested_s[i])
    queued_h, running_h = queued_work_s(s) / 3600.0, running_work_s(s) / 3600.0
    hour = (c.now_s - s.power.slots.origin_s) * (2.0 * np.pi / DAY_S)
    inputs[0] = mean_green(grid, 0, int(2.0 * weights[GREEN_HOURS]) + 1, count) * 2.0 - 1.0
    inputs[1] = mean_green(grid, 0, 48, count) * 2.0 - 1.0
    inputs[2] = mean_green(grid, 24, 48, count) * 2.0 - 1.0
    inputs[3] = np.log1p((c.now_s - c.arrived_s) / 3600.0) / 2.0 - 1.0
    inputs[4] = np.log(queued_h + 0.5) / 2.0 - 1.0
    inputs[5] = 2.0 * s.machine.totals.free / s.machine.totals.processors - 1.0
    inputs[6] = np.log1p(running_h) - 1.0
    inputs[7] = np.log(longest_s / 3600.0 / (queued_h + 1.0) + 0.01) / 2.0
    inputs[8], inputs[9] = np.sin(hour), np.cos(hour)
    inputs[10] = np.log1p(memory[RATE] / weights[MEMORY]) - 0.8
    inputs[LAG_INPUT] = 2.0 * lag(s, memory, progress, queued_h * 3600.0, running_h * 3600.0, longest_s) - 3.0


@compiled
def lag(s: State, memory: Floats, progress: Floats, queued_s: float, running_s: float, longest_s: float) -> float:
    """Time to finish all jobs if none is delayed from now on, relative to a baseline that never delays jobs.

    Both times count from `DAY_BEFORE_S` before the first arrival, and jobs run as long as requested. At most 2.5.

    Args:
        s: the state.
        memory: statistics of arrivals.
        progress: schedule of the baseline, see `lookahead.baseline`.
        queued_s: waiting work per processor. [s]
        running_s: running work per processor. [s]
        longest_s: longest waiting job. [s]
    """
    c = s.clock
    left_s = max((queued_s + running_s) / PACE, longest_s)
    if c.running > 0:
        left_s = max(left_s, s.expected[c.expected_first + c.running - 1].end_s - c.now_s)
    passed_s = c.now_s - memory[FIRST_S] + DAY_BEFORE_S
    row = int(memory[ROW])
    while row + 1 < progress.shape[0] and progress[row + 1, TIME] <= c.now_s:
        row += 1
    memory[ROW] = row
    processors = s.machine.totals.processors
    end_s = baseline_end_s(progress, row, c.now_s, memory[WORK], memory[LATEST], processors)
    return float(min((passed_s + left_s) / (passed_s + (end_s - c.now_s)), 2.5))


@compiled
def set_prices(weights: Floats, inputs: Floats, prices: Floats) -> None:
    """Fill in the weights as changed by the state of the system: shape (PRICES,), or longer if the model chooses nodes.

    ``hold_price`` and ``block_price``, which are logarithms in the model, are written in J.
    """
    for k in range(PRICES):
        prices[k] = weights[k]
    for head in range(HEADS):
        units = 0.0
        for i in range(inputs.shape[0]):
            units += weights[PRICES + head * inputs.shape[0] + i] * inputs[i]
        units = min(max(units, -HEAD_LIMIT), HEAD_LIMIT)
        if head <= IDLE_PRICE:
            prices[head] *= np.exp(units * HEAD_SCALE[head])
        else:
            prices[head] += units * HEAD_SCALE[head]
    beyond = (inputs[LAG_INPUT] + 3.0) / 2.0 - weights[LAG]
    prices[READINESS] += weights[LAG_PRICE] * max(beyond, 0.0)
    prices[HOLD_PRICE] = 10.0 ** weights[HOLD_PRICE]
    prices[BLOCK_PRICE] = 10.0 ** weights[BLOCK_PRICE]
    if prices.shape[0] > PRICES:
        units = 0.0
        for i in range(inputs.shape[0]):
            units += weights[NODE_WEIGHTS - inputs.shape[0] + i] * inputs[i]
        for k in range(PRICES, prices.shape[0]):
            prices[k] = weights[WEIGHTS + k - PRICES]
        prices[HASTE] += min(max(units, -HEAD_LIMIT), HEAD_LIMIT) * HASTE_SCALE
