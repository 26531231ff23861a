"""Simulate a scheduler on jobs, a machine and a power supply."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.codes import INTERRUPTED, LOG_FULL
from greenbatch.engine.failures import check, rule_may_fail
from greenbatch.engine.log import Readings, drain, drained, new_readings
from greenbatch.engine.outcome import Outcome, outcome_of
from greenbatch.engine.prepare import prepare
from greenbatch.engine.program import Program, Scheduler, decider_of, with_scores_of_now
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
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
    from greenbatch.engine.views.session import Session, run_policy

    program, policy = scheduler.program(workload), scheduler.policy()
    make = (lambda *_: policy) if policy is not None else program.policy
    if make is None:
        return run_program(workload, cluster, site, rules, program)
    session = Session(workload, cluster, site, rules, program)  # first: it refuses what does not go together
    return run_policy(session, make(program, workload, cluster, site, rules))


def run_program(workload: Workload, cluster: Cluster, site: Site | None, rules: Rules, program: Program) -> Outcome:
    """Simulate a program of the engine, without a policy in Python.

    Raises:
        InputError: the parts do not fit together.
        SupplyExhausted: the clock left a power series that does not repeat.
    """
    state, readings = last_state(workload, cluster, site, rules, program)
    return outcome_of(state, readings, program.name, workload, cluster, site, rules)


def last_state(
    workload: Workload, cluster: Cluster, site: Site | None, rules: Rules, program: Program
) -> tuple[State, Readings]:
    """The state at the end of a program's simulation, and what happened.

    Raises:
        InputError: the parts do not fit together.
        SupplyExhausted: the clock left a power series that does not repeat.
    """
    from greenbatch.engine.entry_points import with_decider
    from greenbatch.engine.views.session import run_learning, run_plain_rule

    program = with_scores_of_now(program, workload, rules)
    state = prepare(workload, cluster, site, rules, program)
    decider = decider_of(program, workload, cluster, rules)
    readings = new_readings(len(workload), cluster.first_power_w)
    if len(state.feedback) and program.decider is not None and program.decider.learn is not None:
        state = run_learning(state, program.decider.learn, decider, readings, (workload, cluster, rules))
    elif program.score is not None and not program.fixed and program.compiled is None:
        state = run_plain_rule(state, program, decider, readings)
    else:
        with rule_may_fail(program):
            state = _to_the_end(with_decider("run", state, decider), state, decider, readings)
    check(state, program.name, site, workload, cluster)
    return state, readings


def _to_the_end(run: Callable[..., Any], state: State, decider: Any, readings: Readings) -> State:
    """Run compiled code to the end in a separate thread, so that the main thread can handle signals.

    Ctrl-C stops the engine at its next event.

    Args:
        run: the loop of the engine, left whenever the log is full.
        state: the state; the one returned may have a larger log.
        decider: who decides.
        readings: output; what the log says.
    """
    stop, done = threading.Event(), threading.Event()  # an interrupted Thread.join forgets that the thread runs
    latest = [state]
    failed: list[BaseException] = []

    def work() -> None:
        try:
            run(latest[0], decider)
            while latest[0].clock.status == LOG_FULL:
                latest[0] = drained(latest[0], readings)
                if stop.is_set():  # asked for while the log was read
                    break
                run(latest[0], decider)
            drain(latest[0], readings)
        except BaseException as error:  # noqa: BLE001  (raised again in the main thread)
            failed.append(error)
        finally:
            done.set()

    if threading.current_thread() is threading.main_thread():
        try:
            threading.Thread(target=work, daemon=True).start()
            done.wait()
        except BaseException:
            stop.set()
            state.clock.status = INTERRUPTED
            done.wait(_PATIENCE_S)
            raise
    else:
        work()
    if failed:
        raise failed[0]
    return latest[0]
