"""Simulate a scheduler on jobs, a machine and a power supply."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.program import Program, Scheduler, check, outcome_of, prepare
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import INTERRUPTED
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
        scheduler: the scheduler, e.g. ``schedulers.scheduler("f2+green")``.

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
    return run_program(workload, cluster, site, rules, program)


def run_program(workload: Workload, cluster: Cluster, site: Site | None, rules: Rules, program: Program) -> Outcome:
    """Simulate a program of the engine, without a policy in Python.

    Raises:
        InputError: the parts do not fit together.
        SupplyExhausted: the clock left a power series that does not repeat.
    """
    from greenbatch.engine.entry_points import compiled_pass, part
    from greenbatch.engine.session import run_plain_rule

    state = prepare(workload, cluster, site, rules, program)
    own = program.decider
    if own is not None:
        inputs = own.inputs(workload, cluster, rules)
        _to_the_end(compiled_pass(own.name, own.run, own.types, allocates=own.allocates), state, *inputs)
    elif program.score is not None and not program.fixed and program.compiled is None:
        run_plain_rule(state, program)
    else:
        entry = "conservative" if program.backfill == "conservative" else "priority"
        try:
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
    try:
        worker.start()
        worker.join()
    except BaseException:
        state.clock.status = INTERRUPTED
        if worker.is_alive():
            worker.join(_PATIENCE_S)
        raise
    if failed:
        raise failed[0]
