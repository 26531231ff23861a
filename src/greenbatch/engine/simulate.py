"""Simulate a scheduler on jobs, a machine and a power supply."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.program import Program, Scheduler, check, outcome_of, prepare
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import INTERRUPTED
from greenbatch.engine.unheld import unheld_table
from greenbatch.errors import InputError
from greenbatch.workload import Workload

__all__ = ["Program", "Scheduler", "simulate"]

_PATIENCE_S = 2.0
"""How long to wait for an interrupted simulation to stop. [s]"""


def simulate(workload: Workload, cluster: Cluster, site: Site | None, rules: Rules, scheduler: Scheduler) -> Outcome:
    """Simulate a scheduler on a window of jobs, from an empty machine to the end of the last job.

    Args:
        workload: the jobs.
        cluster: the machines.
        site: the power supply; None for a cluster without power accounting.
        rules: how the batch system reacts.
        scheduler: the scheduler, e.g. ``policies.scheduler("f2+green")``.

    Returns:
        The schedule and the power profile. The same input always gives the same bytes.

    Raises:
        InputError: the parts do not fit together.
        SupplyExhausted: the clock left a power series that does not repeat.
    """
    from greenbatch.engine.session import Session, run_policy

    program = scheduler.program(workload)
    if (policy := scheduler.policy()) is not None:
        return run_policy(Session(workload, cluster, site, rules, program), policy)
    return _run(workload, cluster, site, rules, program)


def unheld_schedule(workload: Workload, cluster: Cluster, rules: Rules, program: Program) -> NDArray[np.float64]:
    """Baseline schedule for the lag of the look-ahead planner, see `engine.unheld`: shape (2n, 4).

    Args:
        workload: the jobs, n.
        cluster: the machines.
        rules: how the batch system reacts.
        program: the baseline, a rule that never delays jobs.

    Raises:
        InputError: the parts do not fit together.
    """
    planned = workload.with_columns(run_time_s=workload.requested_time_s * cluster.speed)  # requests do not shrink
    outcome = _run(planned, cluster, None, rules, program)
    return unheld_table(outcome.start_s, outcome.end_s, workload.processors)


def _run(workload: Workload, cluster: Cluster, site: Site | None, rules: Rules, program: Program) -> Outcome:
    from greenbatch.engine.loop import part
    from greenbatch.engine.priced import compiled_priced
    from greenbatch.engine.session import run_plain_rule

    state = prepare(workload, cluster, site, rules, program)
    if program.score is not None and not program.fixed and program.compiled is None:
        run_plain_rule(state, program)
    else:
        entry = "conservative" if program.backfill == "conservative" else program.discipline
        try:
            if program.numbers is not None and program.unheld is not None:
                unheld = unheld_schedule(workload, cluster, rules, program.unheld)
                _to_the_end(compiled_priced(), state, program.numbers, unheld)
            else:
                _to_the_end(part(entry), state, program.compiled or part("no-rule"))
        except Exception as error:
            if program.compiled is None:
                raise
            problem = f"{type(error).__name__}: {error}"  # only a compiled rule can raise here, not the engine
            raise InputError(problem, field=program.name, fix="fix the rule") from error
    check(state, program.name, site)
    return outcome_of(state, program.name, workload, cluster, site, rules)


def _to_the_end(run: Callable[..., Any], state: Any, *decider: Any) -> None:
    """Run compiled code to its end in a separate thread, so that the main thread can handle signals.

    Ctrl-C stops the engine at its next event.
    """
    if threading.current_thread() is not threading.main_thread():
        run(state, *decider)
        return
    failed: list[BaseException] = []

    def work() -> None:
        try:
            run(state, *decider)
        except BaseException as error:  # noqa: BLE001  (raised again in the main thread)
            failed.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        worker.join()
    except BaseException:
        state.clock.status = INTERRUPTED
        worker.join(_PATIENCE_S)
        raise
    if failed:
        raise failed[0]
