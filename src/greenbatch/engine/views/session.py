"""A simulation driven from Python: view, decide, apply, with the engine's own functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine import codes
from greenbatch.engine.entry_points import step, with_decider
from greenbatch.engine.failures import check, refuse_command, waits_forever
from greenbatch.engine.log import Readings, drain, drained, new_readings
from greenbatch.engine.machine.dvfs import set_level
from greenbatch.engine.machine.node_tables import ANY
from greenbatch.engine.observe.stacked import fork
from greenbatch.engine.outcome import Outcome, outcome_of
from greenbatch.engine.power.costs import costs_of
from greenbatch.engine.power.protocol import is_commanded
from greenbatch.engine.prepare import prepare
from greenbatch.engine.program import Program, with_scores_of_now
from greenbatch.engine.records import Clock
from greenbatch.engine.rules import Rules
from greenbatch.engine.scores import queue_now, scores_of
from greenbatch.engine.settings import A_YEAR_S
from greenbatch.engine.state import State
from greenbatch.engine.step import Action
from greenbatch.engine.views.codec import view_of
from greenbatch.engine.views.interface import Charge, Decision, Policy, Start, Supply, Suspend, View, Wait
from greenbatch.errors import InputError
from greenbatch.workload import Workload


class Session:
    """One simulation, stepped from Python.

    Example::

        session = Session(workload, cluster, site, rules, Program(name="mine", backfill="easy"))
        while (view := session.view()) is not None:
            session.apply(Start(row=0))
        outcome = session.outcome()
    """

    def __init__(self, workload: Workload, cluster: Cluster, site: Site | None, rules: Rules, program: Program) -> None:
        """Begin a simulation.

        Raises:
            InputError: the parts do not fit together.
        """
        program = with_scores_of_now(program, workload, rules)
        self.workload, self.cluster, self.site, self.rules, self.program = workload, cluster, site, rules, program
        self.state = prepare(workload, cluster, site, rules, program, observed=True)
        self._readings = new_readings(len(workload), cluster.first_power_w)
        self._costs = None if site is None or site.grid is None else costs_of(site)
        self._advance = step("advance", self.state)
        self._unchanged, self._seen = 0, (-1, -1, -1)
        self._changed_s, self._woken = -np.inf, False

    def view(self) -> View | None:
        """Advance to the next decision; None when all jobs have ended.

        Raises:
            SupplyExhausted: the clock left a power series that does not repeat.
            GreenbatchError: many decisions of the policy in a row had no effect: no job arrived, started or ended.
        """
        if not self.advance():
            return None
        c = self.state.clock
        seen = (int(c.arrived), int(c.last - c.first), int(c.running))
        self._unchanged, self._seen = (self._unchanged + 1 if seen == self._seen else 0), seen
        if self._unchanged == 0 or c.commanding:
            self._unchanged, self._changed_s = 0, float(c.now_s)
        asked_for = self._woken and c.now_s - self._changed_s <= A_YEAR_S
        if self._unchanged > self.state.rules.patience and not asked_for:
            raise waits_forever(self.state, self.program.name, self.workload, self.cluster)
        jobs, supply = self.workload, self._supply(float(c.now_s))
        return view_of(self.state, jobs.job_id, supply, self.cluster, jobs.names.get("partition"))

    def advance(self) -> bool:
        """Advance to the next decision; False when all jobs have ended.

        Raises:
            SupplyExhausted: the clock left a power series that does not repeat.
        """
        while not self._advance(self.state):
            if self.state.clock.status != codes.LOG_FULL:
                check(self.state, self.program.name, self.site, self.workload, self.cluster)
                return False
            self.state = drained(self.state, self._readings)
        return True

    def _supply(self, now_s: float) -> Supply:
        site = self.site
        if site is None:
            return Supply(np.zeros(0), np.zeros(0), np.zeros(0))
        ahead = Supply(*site.forecast(now_s), site.origin_s, site.step_s)
        if site.held_limit_w < np.inf:
            ahead = ahead._replace(load_limit_w=site.forecast(now_s, site.held_limit_w)[2])
        if self._costs is None:
            return ahead
        rows = (site.slot(now_s) + np.arange(len(ahead.start_s))) % site.slots
        return ahead._replace(costs=self._costs.at(rows))

    def apply(self, decision: Decision) -> None:
        """Carry out a decision.

        Raises:
            InputError: it is not a decision, the row is not in the queue, a delay is negative or over a year, the
                cluster has no such DVFS level, the job cannot be started on a chosen node, or there is no storage that
                the scheduler commands.
        """
        now_s = float(self.state.clock.now_s)
        carry_out(self.state, self.cluster, self.program, decision, self.workload.job_id, site=self.site)
        if isinstance(decision, Wait):
            self._woken = bool(now_s < decision.until_s < np.inf)

    def outcome(self) -> Outcome:
        """The outcome of the finished simulation."""
        check(self.state, self.program.name, self.site, self.workload, self.cluster)
        drain(self.state, self._readings)
        given = self.workload, self.cluster, self.site, self.rules
        return outcome_of(self.state, self._readings, self.program.name, *given)

    def fork(self) -> Session:
        """An independent copy of the simulation as it is now: both continue without affecting each other."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.state, made._readings = fork(self.state), fork(self._readings)
        return made


def carry_out(
    state: State, cluster: Cluster, program: Program, decision: Decision, job_id: Any, *, site: Site | None = None,
    storage: str = "site.storage",
) -> None:  # fmt: skip
    """Carry out a decision of a policy object, if it is one.

    Args:
        state: the state.
        cluster: the machines.
        program: the program of the scheduler.
        decision: the decision.
        job_id: number of each job, shape (n,).
        site: the power supply, for messages.
        storage: where storage is described, for messages.

    Raises:
        InputError: see `Session.apply`.
    """
    action, name = action_of(decision, state.clock, program.name), program.name
    if isinstance(decision, Charge) and not is_commanded(state.power):
        refuse_command(name, site, field=storage)
    if isinstance(decision, Start) and decision.dvfs_level is not None:
        set_level(state, cluster, decision.dvfs_level, action.position, field=name)
    if isinstance(decision, Start) and decision.nodes:
        _prefer_nodes(state, len(cluster.node_names), decision, action.position, job_id, name)
    step("apply", state)(state, *action)


def _prefer_nodes(state: State, count: int, decision: Start, position: int, job_id: Any, field: str) -> None:
    """Let the job of a decision, at a position of the queue, take the chosen ones of some nodes first.

    Raises:
        InputError: a node does not exist, is named twice or has no room for the job, the start is delayed, or there is
            not one number of processors, at least 1, for each node.
    """
    most = decision.processors or (ANY,) * len(decision.nodes)
    if decision.delay != codes.NO_DELAY:
        raise InputError("chooses nodes for a delayed start", field=field, fix="choose them when the job starts")
    if len(most) != len(decision.nodes) or not all(1 <= each <= ANY for each in most):
        problem = f"chose {most!r} processors on {len(decision.nodes)} nodes"
        raise InputError(problem, field=field, fix="give one number >= 1 per node, or leave processors out")
    if len(set(decision.nodes)) < len(decision.nodes):
        raise InputError(f"chose nodes {decision.nodes!r}", field=field, fix="name each node once")
    prefer = step("prefer", state)
    for node, processors in zip(decision.nodes, most, strict=True):
        if not 0 <= node < count:
            fix = f"give rows of View.nodes, 0 to {count - 1}" if count else "use a cluster with [[cluster.groups]]"
            raise InputError(f"chose node {node!r} of {count}", field=field, fix=fix)
        if not prefer(state, position, int(node), int(processors)):
            job = job_id[state.queue.job[position]]
            problem = f"chose node {node} for job {job}, which has no room for a part of it or not the energy budget"
            raise InputError(problem, field=field, fix="choose a node with enough free processors, GPUs and memory")


def action_of(decision: Any, clock: Clock, name: str) -> Action:
    """The engine's action for a decision of a policy object.

    Args:
        decision: what the policy returned.
        clock: the clock at the decision.
        name: name of the scheduler, for messages.

    Raises:
        InputError: it is not a decision, the row is not in the queue, nodes or processors are not whole numbers, a
            delay is negative or over a year, a wait ends before now, or a power is not finite.
    """
    if isinstance(decision, Wait):
        if not (_is_number(decision.until_s) and decision.until_s >= clock.now_s):
            problem = f"waits until {decision.until_s!r}, but it is {clock.now_s:g} s"
            raise InputError(problem, field=name, fix="give a later time, or none")
        return Action(codes.WAIT, 0, codes.NO_DELAY, float(decision.until_s))
    if isinstance(decision, Charge):
        if not (_is_number(decision.power_w) and np.isfinite(decision.power_w)):
            problem = f"commands storage to take {decision.power_w!r} W"
            raise InputError(problem, field=name, fix="give a finite number, < 0 to discharge")
        return Action(codes.COMMAND, 0, codes.NO_DELAY, float(decision.power_w))
    if isinstance(decision, Suspend):
        return Action(codes.SUSPEND_JOB, 0, codes.NO_DELAY, 0.0)
    if not isinstance(decision, Start):
        fix = "return Start(row), Wait(), Suspend() or Charge(power_w)"
        raise InputError(f"returned {decision!r}", field=name, fix=fix)
    return _start_of(decision, clock, name)


def _start_of(decision: Start, clock: Clock, name: str) -> Action:
    """The action of a start."""
    if not isinstance(decision.row, int | np.integer):
        raise InputError(f"chose row {decision.row!r}", field=name, fix="give a whole number")
    waiting = clock.last - clock.first
    if not 0 <= decision.row < waiting:
        raise InputError(f"chose row {decision.row} of a queue of {waiting}", field=name)
    for what, numbers in (("nodes", decision.nodes), ("processors", decision.processors)):
        if not (isinstance(numbers, tuple | list) and all(map(_is_whole, numbers))):
            raise InputError(f"chose {what} {numbers!r}", field=name, fix="give a tuple of whole numbers")
    if decision.processors and not decision.nodes:
        raise InputError("chose processors without nodes", field=name, fix="give nodes too, or leave processors out")
    if decision.delay not in (codes.NO_DELAY, codes.DELAY_RELEASES, codes.DELAY_FOR):
        fix = "use Start, Start.after_releases or Start.after_seconds"
        raise InputError(f"chose a delay of kind {decision.delay!r}", field=name, fix=fix)
    amount = decision.amount
    if not _is_number(amount) or (decision.delay != codes.NO_DELAY and not 0 <= amount <= A_YEAR_S):
        fix = f"it must be >= 0 and at most {A_YEAR_S:g}"
        raise InputError(f"chose a delay of {amount!r}", field=name, fix=fix)
    return Action(codes.START_JOB, int(clock.first + decision.row), int(decision.delay), float(amount))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)


def run_policy(session: Session, policy: Policy) -> Outcome:
    """Run a session to the end with a policy.

    Where capacity follows the power, a learned policy acts on the state itself, without a view in between.
    """
    act = getattr(policy, "act", None)
    if act is not None and session.cluster.powered is not None:
        while session.advance():
            act(session.state)
        return session.outcome()
    while (view := session.view()) is not None:
        session.apply(policy.decide(view))
    return session.outcome()


def run_plain_rule(state: State, program: Program, decider: Any, readings: Readings) -> State:
    """Simulate with a rule that cannot be compiled: the engine's loop around the rule in Python.

    Returns:
        The state at the end, which may have a larger log.

    Raises:
        InputError: the rule does not score every job.
    """
    state.rules.ranking = codes.BY_SCORE
    advance, decide = step("advance", state), with_decider("decide", state, decider)
    while True:
        while advance(state):
            c = state.clock
            state.queue.score[c.first : c.last] = scores_of(program, queue_now(state), float(c.now_s))
            c.settled = 0
            decide(state, decider)
            c.settled = 0
        if state.clock.status != codes.LOG_FULL:
            drain(state, readings)
            return state
        state = drained(state, readings)


def run_learning(
    state: State, learn: Callable[..., Any], decider: Any, readings: Readings, given: tuple[Workload, Cluster, Rules]
) -> State:
    """Simulate a planner of a window whose submissions depend on what it decides: it learns of jobs that are submitted.

    Args:
        state: the state before the first event.
        learn: see `CompiledPolicy.learn`.
        decider: the planner, which has learned of no job yet.
        readings: output; what the log says.
        given: jobs, machine and rules.

    Returns:
        The state at the end, which may have a larger log.
    """
    (workload, cluster, rules), jobs, learned = given, cast(Any, state.jobs), 0
    advance, decide = step("advance", state), with_decider("decide", state, decider)
    while True:
        while advance(state):
            known = np.flatnonzero(jobs["submit_s"] <= state.clock.now_s)
            if known.size > learned:
                so_far = workload.take(known).with_columns(submit_s=jobs["submit_s"][known])
                learned, decider = known.size, learn(decider, so_far, cluster, replace(rules, dependencies="ignore"))
            decide(state, decider)
        if state.clock.status != codes.LOG_FULL:
            drain(state, readings)
            return state
        state = drained(state, readings)
