"""A batch system that starts jobs as it is told and does nothing else, to drive schedulers from views."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.program import Program, charges_by_rank
from greenbatch.engine.rules import Rules
from greenbatch.engine.views.driver import ViewDriver
from greenbatch.engine.views.session import Session
from greenbatch.workload import Workload

WHEN_TO_ASK = ("per_instant", "completion_first")
"""Settings of a scheduler that say after which events it is asked."""


def driver_of(scheduler: Any, jobs: Workload, cluster: Cluster, rules: Rules) -> ViewDriver:
    """A new driver of a scheduler."""
    return ViewDriver(scheduler.program(jobs), scheduler.policy(), cluster, rules)


def run_from_views(
    scheduler: Any, jobs: Workload, cluster: Cluster, site: Site | None, rules: Rules, *,
    restart: Callable[[int], bool] = lambda _: False, memory: Path | None = None,
) -> Outcome:  # fmt: skip
    """Simulate a batch system that asks a scheduler for one decision at a time.

    Args:
        scheduler: the scheduler.
        jobs: the jobs.
        cluster: the machines.
        site: the supply.
        rules: how the scheduler reacts; the batch system itself only starts jobs, and asks after the events that the
            scheduler wants to be asked after.
        restart: before which decisions the driver is thrown away, and made again from its saved memory.
        memory: where it is saved.
    """
    plain = replace(rules, commitment="reconsider", tick_s=0.0)
    program = scheduler.program(jobs)
    wanted = {key: value for key, value in (program.settings or {}).items() if key in WHEN_TO_ASK}
    charges = program.charges or charges_by_rank(program)
    closed = program.outages if cluster.powered is not None else ()  # it does not resume jobs into an outage
    told: Any = {"predictor": program.predictor, "charges": charges, "outages": closed}
    system = Program(name="batch system", settings=wanted, **told)
    session = Session(jobs, cluster, site, plain, system)
    driver, number = driver_of(scheduler, jobs, cluster, rules), 0
    while (view := session.view()) is not None:
        if memory is not None and number > 0 and restart(number):
            driver.save(memory)
            driver = driver_of(scheduler, jobs, cluster, rules)
            driver.load(memory)
        session.apply(driver.decide(view))
        number += 1
    return session.outcome()
