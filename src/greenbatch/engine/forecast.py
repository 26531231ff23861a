"""The forecast of renewable power left for a job: the surplus over running jobs, and the remaining brown energy.

Source: GAS-MARL §4.3 (the brown energy of a candidate of Green-Backfilling is estimated from the projected power of
the running jobs and the renewable forecast).
"""

from __future__ import annotations

from greenbatch.engine.power.protocol import Weights, forecast_w, weigh
from greenbatch.engine.power.slots import covering, slot_at
from greenbatch.engine.records import Surplus, Table
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, compiled_small

ROUNDING_J = 1e-6
"""Brown energies closer than this to the threshold count as equal to it, whatever the order of summation. [J]"""


@compiled_small
def expected_from(s: State, time_s: float, k: int, load_w: float) -> tuple[int, float, int, float]:
    """What is expected from a time on, if running jobs end as requested: the first job that still runs, in the order of
    requested ends, and the load [W]; the slot of the supply, and until when all this is so [s].

    Args:
        s: the state.
        time_s: the time. [s]
        k: the first job that runs at an earlier time.
        load_w: the load then. [W]
    """
    stop = s.clock.expected_first + s.clock.running
    while k < stop and s.expected[k].end_s <= time_s:
        load_w -= s.expected[k].power_w
        k += 1
    slot, end_s = covering(s.power.slots, time_s)
    if k < stop and s.expected[k].end_s < end_s:
        end_s = s.expected[k].end_s
    return k, load_w, slot, end_s


@compiled
def project_surplus(s: State, from_s: float, until_s: float, weights: Weights) -> None:
    """Fill ``scratch.surplus`` with the forecast surplus over base power and running jobs, from one time to another.

    Running jobs are expected to end at their requested ends; queued jobs are not counted. Adjacent segments without
    surplus are merged if energy from the grid weighs the same in both.
    """
    c, segments = s.clock, s.scratch.surplus
    current, k, load_w = slot_at(s.power.slots, c.now_s), c.expected_first, s.machine.totals.load_w
    time_s, count = from_s, 0
    while time_s < until_s:
        k, load_w, slot, end_s = expected_from(s, time_s, k, load_w)
        end_s = min(end_s, until_s)
        surplus_w = max(0.0, forecast_w(s.power, c, slot, current) - load_w)
        grid, own = weigh(s.power, c, slot, current, weights)
        if count > 0 and surplus_w == 0.0 and segments[count - 1].surplus_w == 0.0 and segments[count - 1].grid == grid:
            segments[count - 1].length_s += end_s - time_s
        else:
            segment = segments[count]
            segment.start_s, segment.length_s, segment.surplus_w = time_s, end_s - time_s, surplus_w
            segment.grid, segment.own = grid, own
            count += 1
        time_s = end_s
    c.segments = count


@compiled_small
def weighed_w(segment: Surplus, power_w: float) -> float:
    """What a constant power weighs per second: what exceeds the surplus comes from the grid. [W]"""
    if power_w > segment.surplus_w:
        return (power_w - segment.surplus_w) * segment.grid + segment.surplus_w * segment.own
    return power_w * segment.own


@compiled
def is_below_threshold(
    segments: Table[Surplus], count: int, power_w: float, duration_s: float, threshold_j: float, only_rises: bool
) -> bool:  # fmt: skip
    """Whether a job that starts now would cost strictly less extra energy, as it is weighed, than the threshold.

    Args:
        segments: the surplus, which must cover at least ``duration_s`` from now.
        count: number of segments.
        power_w: power of the job. [W]
        duration_s: its requested time. [s]
        threshold_j: the threshold. [J]
        only_rises: no energy weighs less than 0, as with negative prices.
    """
    total_j, left_s, stop_j = 0.0, duration_s, threshold_j - ROUNDING_J
    for i in range(count):
        segment = segments[i]
        seconds = min(segment.length_s, left_s)
        total_j += weighed_w(segment, power_w) * seconds
        if only_rises and total_j >= stop_j:
            return False
        left_s -= seconds
        if left_s <= 0.0:
            break
    return bool(total_j < stop_j)
