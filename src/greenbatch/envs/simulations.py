"""Windows of one scenario, stored side by side for compiled code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.program import Program, check, prepare
from greenbatch.engine.reward_terms import codes_of
from greenbatch.engine.reward_totals import TOTALS, USER
from greenbatch.engine.stacked import new_batch, row
from greenbatch.engine.state import allocate
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
            terms: reward terms to accumulate, see `engine.reward_terms`.

        Raises:
            InputError: the program does not fit the scenario.
        """
        self.scenario, self.program, self.jobs = scenario, program, jobs
        self.trace = prepare(scenario.window(), scenario.cluster, scenario.site, scenario.rules, program)
        users, rows = np.unique(self.trace.jobs.user, return_inverse=True)
        unknown = int(np.count_nonzero(users < 0))
        self._user_rows: Ints = np.maximum(rows - unknown, -1)
        by_user = len(users) - unknown if any("user" in term for term in terms) else 0
        self.terms: Ints = codes_of(terms)
        segments = jobs + len(self.trace.segments) - len(self.trace.jobs)
        self.batch = new_batch(allocate(jobs, segments, self.trace.supply_w), count, by_user, len(terms))

    def load(self, starts: Ints) -> None:
        """Copy windows into the first simulations, each with an empty machine at its first submission.

        Args:
            starts: 0-based index of the first job of each window, at most as many as there are simulations.

        Raises:
            InputError: a window reaches beyond the trace.
        """
        n, total, trace, batch = self.jobs, len(self.trace.jobs), self.trace, self.batch
        states = batch.states
        if starts.min() < 0 or starts.max() > total - n:
            wrong = starts.min() if starts.min() < 0 else starts.max()
            problem = f"is {wrong}, but a window of {n} jobs must lie within the {total} jobs of {self.scenario.name}"
            raise InputError(problem, field="start", fix=f"the largest start is {total - n}")
        some = slice(len(starts))
        rows = starts[:, None] + np.arange(n)
        states.jobs[some] = trace.jobs[rows]
        states.attributes[some] = trace.attributes[rows]
        submit_s = trace.jobs.submit_s[rows]
        states.arrivals[some] = np.argsort(submit_s, axis=1, kind="stable")
        batch.user_of[some] = self._user_rows[rows]
        states.set[some] = trace.set
        states.set.twins[some] = (np.diff(np.sort(submit_s, axis=1), axis=1) == 0).any(axis=1)
        states.clock[some] = trace.clock
        states.clock.now_s[some] = submit_s.min(axis=1)
        batch.users[some] = np.zeros(1, USER)
        totals = np.zeros(len(starts), TOTALS).view(np.recarray)
        totals.begin_s, totals.until_s, totals.users = submit_s.min(axis=1), np.nan, batch.users.shape[1]
        run_s = trace.jobs.run_s[rows]
        totals.jobs_j = np.sum(trace.jobs.power_w[rows] * run_s, axis=1)
        totals.window_work_s = np.sum(run_s * trace.jobs.processors[rows], axis=1) / trace.set.processors
        batch.totals[some] = totals
        batch.values[some] = 0.0

    def check(self, ended: Ints) -> None:
        """Raise the errors of simulations that have ended.

        Raises:
            SupplyExhausted: a simulation ran beyond a power series that does not repeat.
            GreenbatchError: jobs never started.
        """
        clock = self.batch.states.clock[ended]
        for b in ended[(clock["status"] != 0) | (clock["started"] < self.jobs)]:
            check(row(self.batch, int(b)), self.program.name, self.scenario.site)
