"""Policies that use the forecast of the power supply, and the random policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from greenbatch.engine.program import Program
from greenbatch.engine.settings import A_YEAR_S, SEED, SETTINGS, WEIGHTS, Parameter
from greenbatch.engine.views.interface import Queue
from greenbatch.errors import InputError
from greenbatch.policies.registry import Scores, planner
from greenbatch.workload import Workload

_MOST_STARTS = 5_000
"""Largest number of start times that are compared for each job."""
_CHEAPEST_START: dict[str, Any] = {
    "hold": Parameter(
        default=5e4, lowest=0.0, highest=1e15, unit="J", meaning="price of one unit of a job's slowdown"
    ),
    "psi": Parameter(default=0.0, lowest=0.0, highest=1e15, unit="W", meaning="price of an idle processor"),
    "reserve": Parameter(
        default=0.2, lowest=0.0, highest=1.0, meaning="share of the machine that long jobs leave free"
    ),
    "short": Parameter(
        default=2000.0, lowest=0.0, highest=1e11, unit="s",
        meaning="requested time up to which a job may use the reserve",
    ),
    "horizon": Parameter(
        default=86_400.0, lowest=0.0, highest=A_YEAR_S, unit="s", meaning="how far ahead start times are compared"
    ),
    "tick": replace(
        SETTINGS["tick_s"], default=1800.0, zero=False, meaning="interval between the start times compared"
    ),
    **WEIGHTS,
}  # fmt: skip


def check_starts(horizon_s: float, tick_s: float, *, field: str) -> None:
    """Refuse to compare so many starts of each job that a decision takes seconds.

    Raises:
        InputError: there are over 5,000.
    """
    if horizon_s / tick_s > _MOST_STARTS:
        problem = f"compares horizon / tick = {horizon_s / tick_s:,.0f} starts of each job, more than {_MOST_STARTS:,}"
        raise InputError(problem, field=field, fix="give a longer tick or a shorter horizon")


def _power_time(queue: Queue) -> Scores:
    return -queue.power_w * queue.requested_time_s


def _area_time(queue: Queue) -> Scores:
    return queue.requested_time_s**2 * queue.processors


@planner("lptpn", sigma=SETTINGS["threshold_j"])
def lptpn(_: Workload, *, sigma: float) -> Program:
    """Largest Processing Time x Power Need first, as described in GAS-MARL §5.3 (after Kassab et al.).

    At every event and change of supply, jobs are tried in descending power x requested time and start if they fit and
    their estimated extra brown energy is below ``sigma`` [J]. If none can start and nothing runs, the first one starts.
    """
    from greenbatch.policies.compiled.lptpn import lptpn_policy

    return Program(name="lptpn", decider=lptpn_policy(sigma), score=_power_time)


@planner("lptpn-published", sigma=SETTINGS["threshold_j"])
def lptpn_published(_: Workload, *, sigma: float) -> Program:
    """LPTPN as implemented in the authors' simulator: it waits for one job in one-second steps."""
    from greenbatch.policies.compiled.lptpn import lptpn_published_policy

    settings = {"per_instant": 0.0, "tick_s": 0.0}  # its own rules of when to decide
    return Program(
        name="lptpn-published", decider=lptpn_published_policy(sigma), score=_power_time,
        settings=settings,
    )  # fmt: skip


@planner("cheapest-start", **_CHEAPEST_START)
def cheapest_start(
    _: Workload, *, hold: float, psi: float, reserve: float, short: float, horizon: float, tick: float,
    **weights: float,
) -> Program:  # fmt: skip
    """Start each waiting job in the cheapest half-hour of the forecast, with a reserve for short jobs.

    The cost of a start is its extra energy plus, per second of waiting, ``hold`` / max(requested time, 10 s) [J per
    slowdown] and ``psi`` x processors [W]; a higher ``psi`` shortens the makespan and uses less renewable energy. A
    joule from the grid weighs ``brown`` + ``cost`` x price / usual price + ``carbon`` x intensity / usual intensity,
    and one of the own surplus what it would earn if sold. Jobs longer than ``short`` [s] leave the share ``reserve`` of
    the machine free. Start times are compared every ``tick`` [s], up to ``horizon`` [s] ahead; more than 5,000 per job
    are refused. Jobs are tried in ascending requested time^2 x processors. Source: this project (see docs/decisions).
    """
    check_starts(horizon, tick, field="cheapest-start")
    from greenbatch.engine.power.protocol import Weights
    from greenbatch.policies.compiled.cheapest_start import CheapestStart, cheapest_start_policy

    decider = cheapest_start_policy(CheapestStart(hold, psi, reserve, short, horizon, Weights(**weights)), tick)
    return Program(
        name="cheapest-start", decider=decider, score=_area_time, settings={"tick_s": tick}
    )  # fmt: skip


@planner("random", row="rule", seed=SEED)
def random(workload: Workload, *, seed: float) -> Program:
    """A random order of the jobs, drawn with ``seed``."""
    order = np.random.default_rng(int(seed)).permutation(len(workload)).astype(np.float64)
    return Program(name="random", score=lambda _: order)
