"""Windows of one scenario, stored side by side for compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from greenbatch.engine.capacity.value import UNTIL
from greenbatch.engine.codes import BACKFILL
from greenbatch.engine.dependencies import preceding_rows
from greenbatch.engine.failures import check
from greenbatch.engine.machine.power_states import most_switches
from greenbatch.engine.observe.reward_terms import codes_of
from greenbatch.engine.observe.stacked import leaves, new_batch, of_jobs, row
from greenbatch.engine.prepare import prepare
from greenbatch.engine.program import Program
from greenbatch.engine.records import Bools, Floats, Ints, RewardTotals, UserTotals, table_of
from greenbatch.engine.state import allocate, log_rows
from greenbatch.errors import InputError
from greenbatch.scenarios import Scenario


def unnamed(records: Any) -> Any:
    """Records as bytes, which NumPy copies at once instead of field by field; other arrays as they are."""
    plain = np.asarray(records)
    return plain if plain.dtype.names is None else plain.view(np.dtype((np.void, plain.dtype.itemsize)))


class Simulations:
    """Arrays for several simulations of windows of equal length, and the trace that the windows are copied from."""

    def __init__(
        self, scenario: Scenario, program: Program, count: int, jobs: int, terms: Sequence[str], episode_s: float = 0.0
    ) -> None:  # fmt: skip
        """Allocate the arrays.

        Args:
            scenario: jobs, machine, power supply and rules.
            program: the engine program of the scheduler.
            count: number of simulations.
            jobs: jobs per window.
            terms: reward terms to accumulate, see `engine.observe.reward_terms`.
            episode_s: see `BatchEnv`.

        Raises:
            InputError: the program does not fit the scenario.
        """
        where = scenario.workload, scenario.cluster, scenario.site, scenario.rules
        self.scenario, self.program, self.jobs, self.episode_s = scenario, program, jobs, episode_s
        trace: Any = prepare(*where, program, observed=True)
        self.trace = trace
        self._follows_power = scenario.cluster.powered is not None
        if self._follows_power:
            trace.capacity.counts.counted = 1
        modelled = scenario.cluster.knows_power
        self.trace.rules.accrue = scenario.site is not None or modelled
        users, rows = np.unique(self.trace.jobs["user"], return_inverse=True)
        unknown = int(np.count_nonzero(users < 0))
        self._user_rows: Ints = np.maximum(rows - unknown, -1)
        by_user = len(users) - unknown if any("user" in term for term in terms) else 0
        self.terms: Ints = codes_of(terms)
        segments = jobs + len(self.trace.scratch.surplus) - len(self.trace.jobs)
        first = np.arange(jobs)
        parts = (
            of_jobs(trace.machine, first),
            trace.power,
            log_rows(2 * jobs + 8 if self._follows_power else jobs) + 2 * int(most_switches(trace.machine)),
            None,
            of_jobs(trace.predictor, first),
            trace.feedback[:jobs],
        )
        one = allocate(jobs, segments, *parts, capacity=of_jobs(trace.capacity, first))
        self._before = preceding_rows(scenario.workload) if len(trace.feedback) else np.full(len(trace.jobs), -1)
        self.batch: Any = new_batch(one, count, by_user, len(terms))
        self.batch_type = numba.typeof(self.batch)
        clock: Any = self.batch.states.clock
        self._clock = clock.view(np.ndarray)  # whose columns are found faster than those of records

    def load(self, starts: Ints, others: Ints | None = None) -> None:
        """Copy windows into the first simulations, each with an empty machine at its first submission.

        What predicts run times knows nothing then of the jobs before.

        Args:
            starts: 0-based index of the first job of each window, at most as many as there are simulations.
            others: rows of the trace whose jobs are submitted instead, at the same times, shape (windows, n).

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
        times = starts[:, None] + np.arange(n)
        rows = times if others is None else others
        unnamed(states.jobs)[some] = unnamed(trace.jobs)[rows]
        states.attributes[some] = trace.attributes[rows]
        recorded_s, follows = self.scenario.workload.submit_s[times], self._before[times] >= starts[:, None]
        submit_s = np.where(follows, np.inf, recorded_s)
        states.jobs["submit_s"][some] = submit_s
        states.arrivals[some] = np.argsort(np.where(follows, -np.inf, recorded_s), axis=1, kind="stable")
        batch.user_of[some] = self._user_rows[rows]
        idle = trace._replace(
            machine=of_jobs(trace.machine, rows), capacity=of_jobs(trace.capacity, rows),
            predictor=of_jobs(trace.predictor, rows),
        )  # fmt: skip
        for part in ("machine", "capacity", "power", "predictor", "rules", "clock", "ledger"):
            for (_, stacked), (_, one) in zip(leaves(getattr(states, part)), leaves(getattr(idle, part)), strict=True):
                unnamed(stacked)[some] = unnamed(one)
        if self._follows_power:
            self._load_pools(some, times, rows, follows)
        if len(trace.feedback):
            self._load_followers(some, times)
            states.clock.undated[some] = follows.sum(axis=1)
        twins = (np.diff(np.sort(recorded_s, axis=1), axis=1) == 0).any(axis=1)
        states.rules.twins[some] = twins | follows.any(axis=1)
        states.clock.now_s[some] = submit_s.min(axis=1)
        batch.users[some] = table_of(UserTotals, 1)
        totals = table_of(RewardTotals, len(starts))
        totals["begin_s"] = totals["seen_s"] = submit_s.min(axis=1)
        totals["users"] = batch.users.shape[1]
        run_s = trace.jobs["run_s"][rows]
        totals["jobs_j"] = np.sum(trace.jobs["power_w"][rows] * run_s, axis=1)
        totals["window_work_s"] = (
            np.sum(run_s * trace.jobs["processors"][rows], axis=1) / trace.machine.totals.processors
        )
        batch.totals[some] = totals
        batch.values[some] = 0.0

    def _load_followers(self, some: slice, times: Ints) -> None:
        """Set who follows whom within the windows; who follows a job before the window comes as recorded."""
        table, first = unnamed(self.trace.feedback)[times].view(self.trace.feedback.dtype), times[:, :1]
        for name in ("first", "next"):
            inside = (table[name] >= 0) & (table[name] <= times[:, -1:])
            table[name] = np.where(inside, table[name] - first, -1)
        unnamed(self.batch.states.feedback)[some] = unnamed(table)

    def _load_pools(self, some: slice, times: Ints, rows: Ints, follows: Bools) -> None:
        """Set what depends on when the jobs are submitted, as far as that is known."""
        capacity, submit_s = self.batch.states.capacity, self.scenario.workload.submit_s
        begin_s = submit_s[times].min(axis=1)
        counted_s = np.where(self._before >= 0, 0.0, submit_s)  # in when jobs of the trace are due
        capacity.jobs["due_s"][some] += np.where(follows, 0.0, submit_s[times]) - counted_s[rows]
        capacity.service[some, UNTIL] = begin_s
        if self.episode_s:
            capacity.counts["end_s"][some] = begin_s + self.episode_s

    def check(self, ended: Ints) -> None:
        """Raise the errors of simulations that have ended.

        Raises:
            SupplyExhausted: a simulation ran beyond a power series that does not repeat.
            GreenbatchError: jobs never started.
        """
        status, started = (self._clock[name][ended] for name in ("status", "started"))
        for b in ended[(status != 0) | (started < self.jobs)]:
            check(row(self.batch, int(b)), self.program.name, self.scenario.site)

    def starts_s(self) -> Floats:
        """Start of every job, on nodes once they have booted, NaN if it has not been given any, shape (B, n). [s]"""
        states = self.batch.states
        if self._follows_power:
            first_s: Floats = states.capacity.jobs["first_start_s"]
            return np.where(first_s < states.capacity.counts["end_s"][:, None], first_s, np.nan)
        if self.scenario.cluster.on_nodes:
            begin_s: Floats = states.machine.demands["begin_s"].copy()
            return begin_s
        valid = np.arange(states.log.shape[1]) < states.clock.logged[:, None]
        b, k = np.nonzero(valid & (states.log.kind <= BACKFILL))
        starts = np.full(states.jobs.shape, np.nan)
        starts[b, states.log.job[b, k]] = states.log.time_s[b, k]
        return starts
