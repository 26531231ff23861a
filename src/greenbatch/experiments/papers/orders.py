"""Orders of a workload's jobs, and the energy of schedulers on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.experiments.running.cells import Progress
from greenbatch.workers import Workers, choose, spread

if TYPE_CHECKING:
    from greenbatch.engine.program import Scheduler
    from greenbatch.scenarios import Scenario
    from greenbatch.workload import Workload

Floats = NDArray[np.float64]

ORDERS = tuple(range(1000, 1020))
"""Seeds of the test orders."""
METRICS = ("energy_kwh", "edp_js")


def in_order(workload: Workload, seed: int) -> Workload:
    """The same jobs in random order at the same submission times.

    The random numbers are Philox's, those of `workload.profiles` PCG64's, so that an order never repeats one that was
    trained on for sharing its seed.

    Args:
        workload: jobs that do not depend on each other.
        seed: the same seed always gives the same order, and another one another.
    """
    drawn = np.random.Generator(np.random.Philox(seed)).permutation(len(workload))
    return workload.take(drawn).with_columns(job_id=workload.job_id, submit_s=workload.submit_s)


def play(
    scenario: Scenario,
    schedulers: Mapping[str, Scheduler],
    seeds: Sequence[int],
    *,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> dict[str, Floats]:
    """Simulate every scheduler on every order: name -> figures, shape (orders, `METRICS`).

    Args:
        scenario: jobs, machine and rules.
        schedulers: the schedulers by name.
        seeds: seeds of the orders, all different.
        workers: number of processes; by default one per processor if the work is long. The figures do not depend on it.
        progress: called after every order.
    """
    task = partial(_figures, scenario, schedulers)
    begun = perf_counter()
    found = {seeds[0]: task(seeds[0])}
    chosen = choose(workers, (perf_counter() - begun) * (len(seeds) - 1))
    for seed, figures in spread(seeds[1:], task, task, chosen):
        found[seed] = figures
        if progress is not None:
            progress(f"orders of {scenario.name}", len(found), len(seeds))
    return {name: np.array([found[seed][name] for seed in seeds]) for name in schedulers}


def _figures(scenario: Scenario, schedulers: Mapping[str, Scheduler], seed: int) -> dict[str, tuple[float, ...]]:
    """The `METRICS` of every scheduler on one order."""
    from greenbatch.engine.simulate import simulate
    from greenbatch.metrics import find
    from greenbatch.metrics.measured import Measured

    workload, computed = in_order(scenario.workload, seed), [find(name).function for name in METRICS]
    every = np.ones(len(workload), np.bool_)
    made = {}
    for name, scheduler in schedulers.items():
        outcome = simulate(workload, scenario.cluster, scenario.site, scenario.rules, scheduler)
        run = Measured(outcome=outcome, jobs=every)
        made[name] = tuple(compute(run) for compute in computed)
    return made
