"""Policies that search for an order of the waiting jobs: the opponents of the papers' agents."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.settings import SEED, Parameter
from greenbatch.policies.registry import planner
from greenbatch.workload import Workload

if TYPE_CHECKING:
    from greenbatch.policies.order_planner import OrderPlanner, Search
    from greenbatch.policies.published_genetic import PublishedGenetic

ETA = Parameter(default=0.002, lowest=0.0, highest=1e6, meaning="price of one unit of mean bounded slowdown")
_PARAMETERS: dict[str, Any] = {
    "eta": ETA,
    "renewable": Parameter(default=1.0, lowest=0.0, highest=1e6, meaning="weight of renewable utilization"),
    "cost": Parameter(
        default=0.0, lowest=0.0, highest=1e6, meaning="price of the cost, relative to all load at the usual price"
    ),
    "carbon": Parameter(
        default=0.0, lowest=0.0, highest=1e6, meaning="price of the carbon, relative to all load at the usual intensity"
    ),
    "evaluations": Parameter(
        default=930.0, lowest=60.0, highest=1e6, whole=True, meaning="largest number of plans that a search simulates"
    ),
    "seed": SEED,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Published:
    """How the policy of `ga_published` is made."""

    eta: float
    seed: int
    stream: Random | None = None
    """Random numbers that go on from an earlier window; None to begin with the seed."""

    def __call__(
        self, program: Program, workload: Workload, _: Cluster, site: Site | None, __: Rules
    ) -> PublishedGenetic:
        """The policy for a window of jobs."""
        from greenbatch.policies.published_genetic import published_genetic

        stream = Random(self.seed) if self.stream is None else self.stream  # noqa: S311  (the published stream)
        return published_genetic(stream, self.eta, program, workload, site)


@planner("ga-published", eta=ETA, seed=SEED)
def ga_published(_: Workload, *, eta: float, seed: float) -> Program:
    """GAS-MARL's genetic algorithm as its authors coded it, with its defects, for reproducing Tables 3 and 4.

    All jobs that wait together are ordered once and started in that order, and jobs that arrive meanwhile wait for all
    of them. Its fitness is renewable utilization - ``eta`` x slowdown, by a plan with three errors and with power that
    no forecast knows, so it is *not causal*. Random numbers are Python's. It knows the backfillings ``none``,
    ``easy-schedgym`` and ``green``. Source: the code of GAS-MARL §5.3 (see docs/decisions).
    """
    settings = {"sticky": 1.0, "per_instant": 0.0, "tick_s": 0.0}  # its own rules of when to decide
    return Program(name="ga-published", row="ga-published", policy=Published(eta, int(seed)), settings=settings)


@planner("ga", **_PARAMETERS)
def ga(_: Workload, **parameters: float) -> Program:
    """Search for the best order of the waiting jobs with a genetic algorithm, whenever jobs have arrived.

    An order is simulated by the engine, with the scheduler's own backfilling, requested times and the forecast; the
    best one has the highest ``renewable`` x renewable utilization - ``eta`` x mean bounded slowdown - ``cost`` x cost -
    ``carbon`` x carbon of the plan, the last two relative to its load at the usual price and intensity. Only its first
    job starts before the next search. The first 256 waiting jobs are planned. Source: GAS-MARL §5.3 for the
    operators, this project for the rest (see docs/decisions).
    """
    from greenbatch.policies.genetic import genetic

    return _program("ga", genetic, **parameters)


@planner("aco", **_PARAMETERS)
def aco(_: Workload, **parameters: float) -> Program:
    """As ``ga``, but with an ant colony system.

    Ants prefer small, short and frugal jobs. Source: Dorigo & Gambardella 1997, this project for the rest (see
    docs/decisions).
    """
    from greenbatch.policies.ant_colony import ant_colony

    return _program("aco", ant_colony, **parameters)


def _program(
    name: str, search: Search, *, eta: float, renewable: float, cost: float, carbon: float, evaluations: float,
    seed: float,
) -> Program:  # fmt: skip
    def policy(program: Program, _: Workload, cluster: Cluster, __: Site | None, rules: Rules) -> OrderPlanner:
        from greenbatch.policies.order_planner import OrderPlanner
        from greenbatch.policies.plans import Weights

        weights = Weights(renewable, eta, cost, carbon)
        return OrderPlanner(search, weights, int(evaluations), int(seed), program, cluster, rules)

    return Program(name=name, row=name, policy=policy)
