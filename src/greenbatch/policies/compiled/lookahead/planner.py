"""What the look-ahead planner is made of: the weights of a model, its memory, and scratch tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.engine.power.protocol import BROWN, Weights
from greenbatch.engine.records import Floats, shared
from greenbatch.policies.compiled.lookahead.arrivals import WIDTHS
from greenbatch.policies.compiled.lookahead.forecast import BINS, ROWS
from greenbatch.policies.compiled.lookahead.weights import INPUTS, NODE_NUMBERS, NODE_WEIGHTS, PRICES

(START_S, END_S, PROCESSORS, HOLDS, ARRIVED, RUNNING, HALF_HOUR) = LAST = range(7)
"""Fields of `Lookahead.last`: the reservation, which has 0 processors if there is none, and whether it holds more;
and, at the last decision, the number of jobs submitted, the number of running jobs and the half-hour."""


@shared("weights", "progress")
class Lookahead(NamedTuple):
    """Weights of a model, and what the planner remembers; planned starts of jobs are those last found cheaper."""

    weights: Floats
    """Shape (WEIGHTS,), or (NODE_WEIGHTS,) if it chooses nodes."""
    progress: Floats
    """Baseline schedule without delayed jobs, see `lookahead.baseline`, shape (rows, 4)."""
    memory: Floats
    """Statistics of arrivals, see `lookahead.arrivals`."""
    last: Floats
    """The last decision, shape (7,)."""
    grid: Floats
    """Scratch: the half-hours ahead, shape (ROWS, BINS)."""
    inputs: Floats
    """Scratch: inputs of the heads."""
    prices: Floats
    """Scratch: the weights as changed by the heads."""
    unit: float
    """Factor of all powers, see `weights.unit_of_power`."""
    fill: float
    """Largest brown share of the energy of a job that fills idle processors, see `plan`; 0 for no filling."""
    joule: Weights
    """What a joule weighs."""


def new_lookahead(
    weights: Floats, progress: Floats, processors: int, unit: float, fill: float = 0.0, joule: Weights = BROWN
) -> Lookahead:
    """The planner before its first decision, for a machine with some processors and a unit of power."""
    memory, last = np.zeros(WIDTHS + processors + 1), np.zeros(len(LAST))
    last[HALF_HOUR] = -np.inf
    chooses = weights.shape[0] == NODE_WEIGHTS
    prices = np.zeros(PRICES + (len(NODE_NUMBERS) if chooses else 0))
    grid, inputs = np.zeros((ROWS, BINS)), np.zeros(len(INPUTS))
    return Lookahead(weights, progress, memory, last, grid, inputs, prices, unit, fill, joule)
