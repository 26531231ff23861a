"""The policy that holds jobs by a threshold of brown energy, which loosens with their wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from greenbatch.engine.program import Program
from greenbatch.engine.settings import A_YEAR_S, SETTINGS, WEIGHTS, Parameter, word
from greenbatch.policies.registry import planner
from greenbatch.policies.rules import f2, fcfs, sjf
from greenbatch.workload import Workload

ORDERS = {"f2": f2, "fcfs": fcfs, "sjf": sjf}
"""Rules by which the jobs that are not held are ordered."""
_PARAMETERS: dict[str, Any] = {
    "share": Parameter(
        default=0.2, lowest=0.0, highest=1.0, meaning="share of brown energy up to which a job starts at submission"
    ),
    "slowdown": Parameter(
        default=1.0, lowest=0.0, highest=1e6, meaning="slowdown that holding may cause, beyond 1: the budget"
    ),
    "limit": Parameter(
        default=86_400.0, lowest=0.0, highest=A_YEAR_S, unit="s",
        meaning="wait after which no job is held; no bound on waits",
    ),
    "shape": Parameter(
        default=1.0, lowest=0.1, highest=10.0, meaning="exponent of the used part of the budget in the threshold"
    ),
    "tick": replace(SETTINGS["tick_s"], default=1800.0, zero=False, meaning="interval between two looks at all jobs"),
    "order": word("order of the jobs that are not held", *ORDERS),
    **WEIGHTS,
}  # fmt: skip


@planner("green-threshold", **_PARAMETERS)
def green_threshold(
    _: Workload, *, share: float, slowdown: float, limit: float, shape: float, tick: float, order: float,
    **weights: float,
) -> Program:  # fmt: skip
    """Hold a job while too much of its energy would be brown, by a threshold that loosens with its wait; with EASY.

    A job starts if at most a share of its energy over its requested time comes from the grid, by the forecast and the
    requested ends of running jobs. The share is ``share`` at submission and rises to 1, as the used part of its
    budget^``shape``; once the budget is used up, it is not held. The budget is a wait of ``slowdown`` x requested time
    (at least 10 s), at most ``limit`` [s]. ``brown``, ``cost`` and ``carbon`` weigh energy as for ``cheapest-start``.
    EASY backfilling runs over the jobs that are not held, in the order of the rule ``order``, at events, at changes of
    supply and every ``tick`` [s]. Source: this project.
    """
    from greenbatch.engine.power.protocol import Weights
    from greenbatch.policies.compiled.green_threshold import GreenThreshold, green_threshold_policy

    decider = GreenThreshold(share, slowdown, limit, shape, Weights(**weights))
    return Program(
        name="green-threshold", decider=green_threshold_policy(decider), score=list(ORDERS.values())[int(order)],
        fixed=True, backfill="easy", settings={"tick_s": tick},
    )  # fmt: skip
