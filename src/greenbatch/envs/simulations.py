"""Windows of one scenario, stored side by side for compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.batch import Batch
from greenbatch.engine.program import Program, check, prepare
from greenbatch.engine.state import State
from greenbatch.engine.tally import TALLY, TERMS, USER
from greenbatch.errors import InputError
from greenbatch.scenarios import Scenario

Ints = NDArray[np.int64]


class Simulations:
    """Arrays for several simulations of windows of equal length, and the trace that the windows are copied from."""

    def __init__(self, scenario: Scenario, program: Program, count: int, jobs: int, terms: Sequence[str]) -> None:
        """Allocate the arrays.

        Args:
            scenario: jobs, machine, power supply and rules.
            program: the engine program of the scheduler.
            count: number of simulations.
            jobs: jobs per window.
            terms: reward terms to accumulate (see ``engine.tally.TERMS``).

        Raises:
            InputError: the program does not fit the scenario.
        """
        self.scenario, self.program, self.jobs = scenario, program, jobs
        self.trace = prepare(scenario.window(), scenario.cluster, scenario.site, scenario.rules, program)
        users, rows = np.unique(self.trace.jobs.user, return_inverse=True)
        unknown = int(np.count_nonzero(users < 0))
        self._user_rows: Ints = np.maximum(rows - unknown, -1)
        by_user = len(users) - unknown if any("user" in term for term in terms) else 0
        self.terms: Ints = np.array([list(TERMS).index(term) for term in terms], np.int64)
        self.batch = _new_batch(self.trace, count, jobs, len(terms), by_user)

    def load(self, starts: Ints) -> None:
        """Copy windows into the first simulations, each with an empty machine at its first submission.

        Args:
            starts: 0-based index of the first job of each window, at most as many as there are simulations.

        Raises:
            InputError: a window reaches beyond the trace.
        """
        n, total, trace, batch = self.jobs, len(self.trace.jobs), self.trace, self.batch
        if starts.min() < 0 or starts.max() > total - n:
            wrong = starts.min() if starts.min() < 0 else starts.max()
            problem = f"is {wrong}, but a window of {n} jobs must lie within the {total} jobs of {self.scenario.name}"
            raise InputError(problem, field="start", fix=f"the largest start is {total - n}")
        some = slice(len(starts))
        rows = starts[:, None] + np.arange(n)
        batch.jobs[some] = trace.jobs[rows]
        batch.attributes[some] = trace.attributes[rows]
        submit_s = trace.jobs.submit_s[rows]
        batch.arrivals[some] = np.argsort(submit_s, axis=1, kind="stable")
        batch.user_of[some] = self._user_rows[rows]
        batch.set[some] = trace.set
        batch.set.twins[some] = (np.diff(np.sort(submit_s, axis=1), axis=1) == 0).any(axis=1)
        batch.clock[some] = trace.clock
        batch.clock.now_s[some] = submit_s.min(axis=1)
        batch.users[some] = np.zeros(1, USER)
        tally = np.zeros(len(starts), TALLY).view(np.recarray)
        tally.begin_s, tally.until_s, tally.users = submit_s.min(axis=1), np.nan, batch.users.shape[1]
        run_s = trace.jobs.run_s[rows]
        tally.jobs_j = np.sum(trace.jobs.power_w[rows] * run_s, axis=1)
        tally.window_work_s = np.sum(run_s * trace.jobs.processors[rows], axis=1) / trace.set.processors
        batch.tally[some] = tally
        batch.values[some] = 0.0

    def check(self, ended: Ints) -> None:
        """Raise the errors of simulations that have ended.

        Raises:
            SupplyExhausted: a simulation ran beyond a power series that does not repeat.
            GreenbatchError: jobs never started.
        """
        clock = self.batch.clock[ended]
        for b in ended[(clock["status"] != 0) | (clock["started"] < self.jobs)]:
            check(_row(self.batch, int(b)), self.program.name, self.scenario.site)


def _row(batch: Batch, b: int) -> State:
    shared = {"supply_w": batch.supply_w}
    return State(**{name: shared[name] if name in shared else getattr(batch, name)[b] for name in State._fields})


def _new_batch(trace: State, environments: int, jobs: int, terms: int, users: int) -> Batch:
    def copies(array: Any, rows: int) -> Any:
        return np.zeros((environments, rows), array.dtype).view(type(array))

    def one(record: Any) -> Any:
        return np.zeros(environments, record.dtype).view(np.recarray)

    breaks = jobs + len(trace.segments) - len(trace.jobs)
    return Batch(
        jobs=copies(trace.jobs, jobs), arrivals=copies(trace.arrivals, jobs), queue=copies(trace.queue, jobs + 1),
        running=copies(trace.running, jobs), expected=copies(trace.expected, jobs),
        profile=copies(trace.profile, 2 * jobs + 2), segments=copies(trace.segments, breaks),
        plan=copies(trace.plan, 1), ranked=copies(trace.ranked, 2 * jobs),
        columns=np.zeros((environments, len(trace.columns), jobs)), started=copies(trace.started, jobs),
        attributes=np.zeros((environments, jobs, trace.attributes.shape[1])), supply_w=trace.supply_w,
        set=one(trace.set), clock=one(trace.clock), tally=np.zeros(environments, TALLY).view(np.recarray),
        user_of=np.zeros((environments, jobs), np.int64), users=np.zeros((environments, users), USER).view(np.recarray),
        values=np.zeros((environments, terms)),
    )  # fmt: skip
