"""The rolling-horizon planner by name; see `policies.rolling_horizon`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.settings import SEED, Parameter, word
from greenbatch.policies.registry import planner
from greenbatch.workload import Workload

if TYPE_CHECKING:
    from greenbatch.models.planner import PlannerScheduler
    from greenbatch.policies.rolling_horizon import RollingHorizon

MODELS = ("lublin-256", "cirne", "jann", "default")
"""Models of `gas-marl-plus`."""

_PARAMETERS: dict[str, Any] = {
    "knowledge": word("what is known of jobs and weather to come", "sampled", "perfect"),
    "model": word("model of gas-marl-plus whose settings are tried", *MODELS),
    "makespan_bound": Parameter(
        default=1.5, lowest=1.25, highest=1.5, meaning="target of that model for the makespan, relative to F2"
    ),
    "futures": Parameter(default=2.0, lowest=1.0, highest=64.0, whole=True, meaning="number of sampled futures"),
    "horizon": Parameter(
        default=48 * 3600.0, lowest=3600.0, highest=14 * 86_400.0, unit="s",
        meaning="how far settings are simulated; less if many jobs wait",
    ),
    "slowdown": Parameter(
        default=1e5, lowest=0.0, highest=1e15, unit="J", meaning="price of one unit of a job's slowdown"
    ),
    "idle": Parameter(
        default=8.0, lowest=0.0, highest=1e15, unit="W", meaning="price of a processor for the time of work left undone"
    ),
    "error": Parameter(
        default=0.2, lowest=0.0, highest=3.0, meaning="sampled weather: error of the forecast a day ahead"
    ),
    "seed": SEED,
}  # fmt: skip


def _tried(*, model: float, makespan_bound: float, **_: float) -> PlannerScheduler:
    """The planner whose settings are tried."""
    from greenbatch.models.find import find_model
    from greenbatch.models.planner import planner_scheduler

    name = MODELS[int(model)]
    found = find_model("gas-marl-plus", name)
    return planner_scheduler(f"gas-marl-plus@{name}", found, {"makespan_bound": makespan_bound}, "", 0, {})


def _knows_future(*, knowledge: float, **_: float) -> bool:
    return bool(knowledge)


@planner("rolling", inside=_tried, knows_future=_knows_future, **_PARAMETERS)
def rolling(
    _: Workload, *, knowledge: float, model: float, makespan_bound: float, futures: float, horizon: float,
    slowdown: float, idle: float, error: float, seed: float,
) -> Program:  # fmt: skip
    """Every half-hour, try settings of `gas-marl-plus` on simulated futures and follow the best one.

    With ``knowledge=sampled``, futures are drawn from the jobs seen so far and from the forecast, with ``error``.
    ``knowledge=perfect`` simulates the jobs and the weather that really come. It is *not causal*: no scheduler can know
    them, and it only shows what knowing would be worth. The price of a setting is brown energy, ``slowdown`` [J] per
    unit of slowdown, and ``idle`` [W] per processor for the time of work that is left at the ``horizon`` [s]. Source:
    this project (see docs/decisions).
    """
    base = _tried(model=model, makespan_bound=makespan_bound)
    is_perfect = bool(knowledge)
    count = 1 if is_perfect else int(futures)

    def policy(
        program: Program, workload: Workload, cluster: Cluster, site: Site | None, rules: Rules
    ) -> RollingHorizon:  # fmt: skip
        from greenbatch.policies.futures import Sampler, truth
        from greenbatch.policies.rolling_horizon import Plan, RollingHorizon, settings_of

        weights = settings_of(base.numbers)
        placed = replace(base, placement=program.placement, placement_seed=program.placement_seed)
        plan = Plan(placed.program(workload), weights, count, horizon, slowdown, idle)
        known = truth(workload, cluster, site, rules) if is_perfect else Sampler(error, int(seed))
        return RollingHorizon(plan, known, cluster, rules)

    parts = (("knowledge", "perfect"),) if is_perfect else ()
    return Program(name="rolling", row="rolling", policy=policy, parts=parts, settings={"sticky": 0.0, "tick_s": 0.0})
