"""Follow schedules in a batched environment: what its agent would have seen and done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.capabilities import refuse
from greenbatch.engine.codes import NO_DELAY
from greenbatch.engine.observe import replay as engine
from greenbatch.engine.outcome import Outcome
from greenbatch.envs.batch import BatchEnv, Buffers, Observation
from greenbatch.errors import InputError
from greenbatch.presets.preset import kinds_of
from greenbatch.workload import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOAD = 1024
"""Decisions of a simulation that are observed in one compiled call."""


class Schedule(NamedTuple):
    """When the n jobs of a window start."""

    start_s: Floats
    """NaN for a job that does not, shape (n,). [s]"""
    order: Ints
    """Rows of the jobs that start, in the order in which they do, shape (m,)."""


class Followed(NamedTuple):
    """A schedule as decisions: N of them, from the beginning of a window to its end."""

    seen: tuple[Observation, ...]
    """What was seen, some decisions after others."""
    actions: Ints
    """Rows of the queue's table, shape (N,)."""
    time_s: Floats
    """Shape (N,). [s]"""
    rewards: Floats
    """Shape (N,)."""
    increments: Floats
    """Change of each reward term until the next decision, shape (N, t)."""
    values: Floats
    """Value of each reward term at the end, shape (t,)."""
    late: int
    """Jobs that start later than in the schedule, because they do not fit or are not seen before."""
    unseen: int
    """Those of them that were not among the rows when they were due."""
    left: int
    """Jobs of the schedule that have not started at the end."""
    held: int
    """Times that nothing started although the preset does not allow to wait; these are no decisions."""


def simulated(outcome: Outcome) -> Schedule:
    """The schedule of a simulation."""
    start_s, order = outcome.start_s, outcome.start_order
    return Schedule(start_s, np.argsort(start_s, kind="stable") if order is None else order)


def recorded(workload: Workload) -> Schedule:
    """The schedule that a trace records; jobs without a recorded wait start at their submission, if they can."""
    start_s = workload.submit_s + np.nan_to_num(workload.recorded_wait_s)
    return Schedule(start_s, np.argsort(start_s, kind="stable"))


def check_can_follow(env: BatchEnv) -> None:
    """Refuse presets and machines whose actions a schedule does not tell.

    Raises:
        InputError: the agent chooses nodes, nodes boot, jobs are suspended by policies, or are never started at once.
    """
    name, where = env.preset.name, env.scenario
    refuse(where.name, [("environment", "replay"), *kinds_of(env.preset)], {**where.features, "schedule": True})
    if env.layout.delays[0].kind != NO_DELAY:
        problem = f"of {name} do not begin with none, and recorded jobs start without a delay"
        raise InputError(problem, field="action.delays", fix='give {kind = "none"} first')


def follow(env: BatchEnv, starts: Sequence[int] | Ints, schedules: Sequence[Schedule]) -> list[Followed]:
    """Follow a schedule in each window, with an empty machine at its first submission.

    Args:
        env: the environment; its threads share the windows.
        starts: 0-based index of the first job of each window, at most ``env.environments``.
        schedules: the schedule of each.

    Raises:
        InputError: a window reaches beyond the trace, or schedules cannot be followed, see `check_can_follow`.
        GreenbatchError: jobs can never start.
    """
    check_can_follow(env)
    first = np.asarray(starts, np.int64)
    env.simulations.load(first)
    record = _record(schedules, env.jobs)
    step = engine.compiled_replay(env.simulations.batch_type)
    played = in_threads(lambda b: _played(env, step, b, record), len(first), env.threads)
    env.simulations.check(np.arange(len(first)))
    begun_s = env.starts_s
    return [_followed(env, b, record, begun_s[b], *played[b]) for b in range(len(first))]


Result = TypeVar("Result")


def in_threads(work: Callable[[int], Result], count: int, threads: int) -> list[Result]:
    """Results of ``work(0)`` to ``work(count - 1)``; once interrupted, no more of them are begun.

    The first compiles what is not compiled yet, and runs alone.
    """
    alone = count if threads == 1 else min(count, 1)
    found = [work(k) for k in range(alone)]
    if alone == count:
        return found
    with ThreadPoolExecutor(threads) as pool:
        try:
            return found + list(pool.map(work, range(alone, count)))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _record(schedules: Sequence[Schedule], jobs: int) -> engine.Record:
    shape = (len(schedules), jobs)
    start_s, order = np.full(shape, np.inf), np.zeros(shape, np.int64)
    for b, schedule in enumerate(schedules):
        known = np.isfinite(schedule.start_s)
        start_s[b, known] = schedule.start_s[known]
        begins = schedule.order[known[schedule.order]]
        order[b] = np.concatenate([begins, np.setdiff1d(np.arange(jobs), begins)])
    none = np.zeros(len(schedules), np.int64)
    return engine.Record(start_s, order, np.zeros(shape, np.bool_), np.zeros(shape, np.bool_), none, none.copy())


def joined(seen: Sequence[Observation]) -> Observation:
    """Observations of decisions after others as one."""

    def offsets(name: str) -> Ints:
        return np.concatenate([[0], *(np.diff(getattr(each, name)) for each in seen)]).cumsum()

    whole: dict[str, Any] = {
        name: offsets(name) if name.endswith("offsets") else np.concatenate([getattr(each, name) for each in seen])
        for name in Observation._fields
    }
    return Observation(**{**whole, "environment": np.arange(len(whole["state"]))})


def _copied(part: Any, count: int | None = None) -> Any:
    """A copy of a tuple of arrays, or of their first rows."""
    return type(part)(*(each[:count].copy() for each in part))


_Part = tuple[Observation, engine.Taken]


def _played(env: BatchEnv, step: Any, b: int, record: engine.Record) -> tuple[list[_Part], Floats]:
    """What is seen and done in one simulation, and the value of each reward term at its end."""
    buffers, taken = _buffers(env)
    parts: list[_Part] = []
    counts = np.array([0, 0, 0, 1])
    while counts[3]:
        step(env.simulations.batch, env.layout, b, record, buffers.seen, taken, counts)
        buffers.counts[:] = counts[:3]
        parts.append((_copied(buffers.observation()), _copied(taken, counts[0])))
    return parts, env.values[b].copy()


def _buffers(env: BatchEnv) -> tuple[Buffers, engine.Taken]:
    seen = env.preset.observation
    taken = engine.Taken(np.zeros(LOAD, np.int64), np.zeros(LOAD), np.zeros((LOAD, len(env.terms))))
    return Buffers(env.layout, LOAD, env.jobs, max(seen.queue.nodes, 1), seen.image.units), taken


def _followed(
    env: BatchEnv, b: int, record: engine.Record, begun_s: Floats, parts: list[_Part], values: Floats
) -> Followed:  # fmt: skip
    row, time_s, before = (np.concatenate(each) for each in zip(*(taken for _, taken in parts), strict=True))
    after = np.concatenate([before[1:], values[None]])[: len(before)]
    ended = np.arange(1, len(row) + 1) == len(row)
    planned_s, begun = record.start_s[b], record.begun[b]
    late = begun & (begun_s > planned_s)
    return Followed(
        seen=tuple(seen for seen, _ in parts), actions=row, time_s=time_s,
        rewards=env.rewards(before, after, ended), increments=after - before, values=values,
        late=int(late.sum()), unseen=int((late & record.unseen[b]).sum()),
        left=int(np.count_nonzero(~begun & np.isfinite(planned_s))), held=int(record.held[b]),
    )  # fmt: skip
