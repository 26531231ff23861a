"""A simulation driven from Python: view, decide, apply, with the engine's own functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.interface import Attributes, Decision, Nodes, Policy, Running, Start, Supply, View, Wait
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.program import START_ONE, Program, check, outcome_of, prepare, queue_now, scores_of
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import DELAY_FOR, DELAY_RELEASES, NO_DELAY
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.workload import Workload

LONGEST_DELAY_S = 366 * 86_400.0
"""Longest delay that a policy may choose. [s]"""
_PATIENCE = 10_000
"""Largest number of consecutive decisions without effect (or a full period of the power series, if that is more)."""


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
            InputError: the parts do not fit together, or backfilling is conservative, which has no decisions to step.
        """
        from greenbatch.engine.entry_points import part

        _refuse_conservative(program)
        self._advance, self._place = part("advance"), part("place")
        self.workload, self.cluster, self.site, self.rules, self.program = workload, cluster, site, rules, program
        self.state = prepare(workload, cluster, site, rules, program)
        self._patience = max(_PATIENCE, 0 if site is None else site.slots)
        self._unchanged, self._seen = 0, (-1, -1, -1)

    def view(self) -> View | None:
        """Advance to the next decision; None when all jobs have ended.

        Raises:
            SupplyExhausted: the clock left a power series that does not repeat.
            GreenbatchError: many decisions of the policy in a row had no effect: no job arrived, started or ended.
        """
        s = self.state
        if not self._advance(s):
            check(s, self.program.name, self.site)
            return None
        c = s.clock
        seen = (int(c.arrived), int(c.last - c.first), int(c.running))
        self._unchanged, self._seen = (self._unchanged + 1 if seen == self._seen else 0), seen
        if self._unchanged > self._patience:
            raise GreenbatchError(
                f"{self.program.name} left {seen[1]} jobs waiting forever: {self._patience} decisions changed nothing "
                f"({START_ONE})"
            )
        running = s.expected[c.expected_first : c.expected_first + c.running]
        ids, waiting = self.workload.job_id, s.queue[c.first : c.last].job
        return View(
            now_s=float(c.now_s), job_id=ids[waiting], queue=queue_now(s),
            attributes=Attributes(*np.ascontiguousarray(s.attributes[waiting].T)), running=Running(
                ids[running.job], s.jobs[running.job].start_s, running.end_s.copy(), running.processors.copy(),
                running.power_w.copy(),
            ),
            nodes=Nodes(
                np.array([self.cluster.processors]), np.array([int(c.free)]), np.array([self.cluster.idle_power_w])
            ),
            supply=self._supply(float(c.now_s)), load_w=float(c.load_w),
            last_submission_s=float(c.arrived_s),
        )  # fmt: skip

    def _supply(self, now_s: float) -> Supply:
        site = self.site
        if site is None:
            return Supply(np.zeros(0), np.zeros(0), np.zeros(0))
        return Supply(*site.forecast(now_s), site.origin_s, site.step_s)

    def apply(self, decision: Decision) -> None:
        """Carry out a decision.

        Raises:
            InputError: it is not a decision, the row is not in the queue, or a delay is negative or over a year.
        """
        s = self.state
        if isinstance(decision, Wait):
            s.clock.blocked, s.clock.settled = 1, 0
            return
        if not isinstance(decision, Start):
            raise InputError(f"returned {decision!r}", field=self.program.name, fix="return Start(row) or Wait()")
        if not isinstance(decision.row, int | np.integer):
            raise InputError(f"chose row {decision.row!r}", field=self.program.name, fix="give a whole number")
        if not 0 <= decision.row < s.clock.last - s.clock.first:
            raise InputError(
                f"chose row {decision.row} of a queue of {s.clock.last - s.clock.first}", field=self.program.name
            )
        if decision.delay not in (NO_DELAY, DELAY_RELEASES, DELAY_FOR):
            fix = "use Start, Start.after_releases or Start.after_seconds"
            raise InputError(f"chose a delay of kind {decision.delay!r}", field=self.program.name, fix=fix)
        if decision.delay != NO_DELAY and not 0 <= decision.amount <= LONGEST_DELAY_S:
            fix = f"it must be >= 0 and at most {LONGEST_DELAY_S:g}"
            raise InputError(f"chose a delay of {decision.amount}", field=self.program.name, fix=fix)
        self._place(s, int(s.clock.first + decision.row), decision.delay, float(decision.amount))
        s.clock.settled = 0

    def outcome(self) -> Outcome:
        """The outcome of the finished simulation."""
        check(self.state, self.program.name, self.site)
        return outcome_of(self.state, self.program.name, self.workload, self.cluster, self.site, self.rules)


def run_policy(session: Session, policy: Policy) -> Outcome:
    """Run a session to the end with a policy."""
    while (view := session.view()) is not None:
        session.apply(policy.decide(view))
    return session.outcome()


def _refuse_conservative(program: Program) -> None:
    if program.backfill == "conservative":
        raise InputError(
            "conservative backfilling does not support policies in plain Python", field=program.name,
            fix="use another backfilling, or a rule that Numba can compile",
        )  # fmt: skip


def run_plain_rule(state: Any, program: Program) -> None:
    """Simulate with a rule that cannot be compiled: the engine's loop around the rule in Python.

    Raises:
        InputError: the rule does not score every job, or backfilling is conservative.
    """
    from greenbatch.engine.entry_points import part

    _refuse_conservative(program)
    advance, place = part("advance"), part("place")
    while advance(state):
        c = state.clock
        scores = scores_of(program, queue_now(state), float(c.now_s))
        state.queue[c.first : c.last].score = scores
        place(state, int(c.first + np.argmin(scores)), NO_DELAY, 0.0)
