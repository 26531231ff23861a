"""The policy for whole logs: hold jobs for cheap power, by predicted run times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from greenbatch.engine.program import Program
from greenbatch.engine.settings import A_YEAR_S, SETTINGS, WEIGHTS, Parameter
from greenbatch.policies.green import check_starts
from greenbatch.policies.registry import planner
from greenbatch.workload import Workload


def _exponent(default: float, meaning: str) -> Parameter:
    return Parameter(default=default, lowest=0.0, highest=10.0, meaning=f"exponent of {meaning} in the order")


def _share(default: float, meaning: str) -> Parameter:
    return Parameter(default=default, lowest=0.0, highest=1.0, meaning=meaning)


def _choice(meaning: str) -> Parameter:
    return Parameter(default=1.0, lowest=0.0, highest=1.0, whole=True, meaning=meaning)


_PARAMETERS: dict[str, Any] = {
    "price": Parameter(
        default=0.7, lowest=0.0, highest=1e6, meaning="factor of both prices of waiting: higher holds less"
    ),
    "slowdown": Parameter(
        default=7289.0, lowest=0.0, highest=1e15, unit="J", meaning="price of one unit of a job's slowdown"
    ),
    "idle": Parameter(default=14.8, lowest=0.0, highest=1e15, unit="W", meaning="price of an idle processor"),
    "reserve": _share(0.0, "share of the machine that jobs which are not expected to be short leave free"),
    "filler": _share(0.02, "share of brown energy up to which a job is not held"),
    "horizon": Parameter(
        default=86_400.0, lowest=0.0, highest=A_YEAR_S, unit="s", meaning="how far ahead start times are compared"
    ),
    "limit": Parameter(
        default=14 * 86_400.0, lowest=0.0, highest=A_YEAR_S, unit="s",
        meaning="wait after which holding ends, and the job that has waited longest is first; no bound on waits",
    ),
    "backlog": Parameter(
        default=3.0, lowest=0.0, highest=1e6,
        meaning="the limit is at least so many times what the waiting jobs take on the whole machine",
    ),
    "tick": replace(
        SETTINGS["tick_s"], default=1800.0, zero=False, meaning="interval between the start times compared"
    ),
    "aging": _exponent(0.3, "1 + the wait in hours"),
    "density": _exponent(0.9, "the power per processor"),
    "wide": _exponent(1.0, "the share of the machine"),
    "holds": _choice("0: only the order, without holding"),
    "learned": _choice("0: requested times instead of learned predictions"),
    **WEIGHTS,
}  # fmt: skip


@planner("foresee", **_PARAMETERS)
def foresee(
    _: Workload, *, price: float, slowdown: float, idle: float, reserve: float, filler: float, horizon: float,
    limit: float, backlog: float, tick: float, aging: float, density: float, wide: float, holds: float, learned: float,
    **weights: float,
) -> Program:  # fmt: skip
    """Hold jobs for cheap power where that costs little slowdown, around EASY backfilling; for whole logs.

    Run times are predicted from the jobs that have ended (see `engine.prediction`). Every ``tick`` [s], a waiting job
    is held if a start within ``horizon`` [s] is cheaper than now: its brown energy by the forecast and the predicted
    ends of the running jobs, plus ``price`` x (``slowdown`` [J] x the expected slowdown of a second of waiting +
    ``idle`` [W] x processors) per second (``brown``, ``cost`` and ``carbon`` weigh energy as for ``cheapest-start``);
    unless its brown energy now is at most the share ``filler``. EASY backfilling, with requested times, runs over the
    jobs that are not held. The order is ascending predicted work / (price of slowdown x power per processor^``density``
    x (1 + wait / 1 h)^``aging``) x share of the machine^``wide``. After a wait of ``limit`` [s] holding ends, and the
    oldest of these jobs is first; that bounds no wait. With a backlog the limit is at least ``backlog`` times what the
    waiting jobs take on the whole machine, because no promise holds on an overloaded one. Jobs expected to run for over
    500 s to 5,000 s leave the share ``reserve`` of the machine free, until the limit; that helps short jobs where run
    times are known well. Where nothing waits, it holds all the same. Source: this project (see docs/decisions).
    """
    check_starts(horizon, tick, field="foresee")
    from greenbatch.engine.power.protocol import Weights
    from greenbatch.policies.compiled.foresee import Foresee, foresee_policy

    decider = Foresee(
        holds=bool(holds), slowdown_price_j=price * slowdown, idle_price_w=price * idle, reserve_share=reserve,
        horizon_s=horizon, limit_s=limit, backlog=backlog, aging=aging, density=density, wide=wide, filler=filler,
        weights=Weights(**weights),
    )  # fmt: skip
    return Program(
        name="foresee", decider=foresee_policy(decider, tick), backfill="easy",
        settings={"tick_s": tick}, predictor="learned" if learned else "requested",
    )  # fmt: skip
