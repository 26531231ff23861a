"""Which windows are played under which scheduler, and the decisions that this gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.pools import Pools
from greenbatch.engine.program import Scheduler
from greenbatch.engine.simulate import simulate
from greenbatch.envs.batch import BatchEnv, Observation, most_in
from greenbatch.envs.replay import Schedule, check_can_follow, follow, in_threads, joined, recorded, simulated
from greenbatch.errors import InputError
from greenbatch.presets.preset import Preset, preset
from greenbatch.presets.training import read_training
from greenbatch.scenarios import Scenario
from greenbatch.schedulers import scheduler_table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RECORDED = "as-recorded"
"""The scheduler whose starts are those of the trace."""
LOAD_JOBS, LOAD_WINDOWS = 16_384, 64
"""Largest number of jobs, and of windows, that are played together; what is recorded depends on them."""

CAREFUL = 0.8
"""Share of the missing decisions that is played at once, because windows do not all have as many as usual."""


class Played(NamedTuple):
    """The decisions of some windows: N of them, window after window, W in all."""

    seen: Observation
    """What was seen; `tables.Tables.arrays` gives arrays of fixed shapes."""
    actions: Ints
    """Rows of the queue's table, shape (N,)."""
    time_s: Floats
    """Shape (N,). [s]"""
    rewards: Floats
    """Shape (N,)."""
    increments: Floats
    """Change of each reward term until the next decision, shape (N, t)."""
    offsets: Ints
    """Where the decisions of each window begin, shape (W + 1,)."""
    values: Floats
    """Value of each reward term at the end of each window, shape (W, t)."""
    episode: Ints
    """Number of each window in the recording, shape (W,)."""
    start: Ints
    """First job of each window, shape (W,)."""
    scheduler: Ints
    """Number of the scheduler of each window, shape (W,)."""
    late: Ints
    """Jobs that start later than in the schedule, shape (W,); see `envs.replay.Followed` for these counts."""
    unseen: Ints
    """Those of them that were not among the rows when they were due, shape (W,)."""
    left: Ints
    """Jobs of the schedule that have not started at the end, shape (W,)."""
    held: Ints
    """Times that nothing started although the preset does not allow to wait, shape (W,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What is recorded; `play` does it."""

    env: BatchEnv
    """Scenario, preset, jobs per window and threads."""
    schedulers: dict[str, Scheduler]
    """Name -> scheduler."""
    shares: Floats
    """Share of the decisions of each, or of the windows without ``decisions``; the sum is 1."""
    decisions: int | None
    """Least number of decisions; None: every window of ``starts`` once."""
    starts: Ints
    """First jobs of the windows that are drawn from, or that are played."""
    seed: int
    """Seed of the draws."""


def recording(
    scenario: Scenario,
    preset_: Preset | str,
    schedulers: str | Sequence[str] | Mapping[str, Scheduler],
    *,
    shares: Sequence[float] | None = None,
    decisions: int | None = None,
    starts: Sequence[int] | Ints | Callable[[int], Ints] | None = None,
    jobs: int | None = None,
    episode_s: float | None = None,
    seed: int = 0,
    threads: int = 1,
) -> Recording:
    """Prepare a recording.

    Args:
        scenario: jobs, machine, power supply and rules.
        preset_: observations, actions and rewards; a preset or its name.
        schedulers: names, names separated by commas, or schedulers by name; ``as-recorded`` is what the trace says.
        shares: share of each, in any unit; by default equal ones.
        decisions: least number of decisions; by default all windows of ``starts`` are played once.
        starts: first jobs of the windows to draw from, or to play; or a function that gives those of all possible
            windows of a number of jobs. By default all of the trace are possible. Without ``decisions``, windows side
            by side are played of those that are possible.
        jobs: jobs per window; by default as the preset trains or, where ``episode_s`` or the scenario gives the length
            of windows, as many as any of that length has.
        episode_s: where capacity follows the power: length of a window; by default that of the scenario, or else as
            the preset trains. [s]
        seed: seed of the windows drawn.
        threads: threads that share the windows; the result does not depend on it.

    Raises:
        InputError: the parts do not fit together, or an argument is out of range.
    """
    table: dict[str, Scheduler] = dict(scheduler_table(schedulers))
    weights = np.ones(len(table)) if shares is None else np.asarray(shares, np.float64)
    if weights.shape != (len(table),) or not (np.isfinite(weights) & (weights > 0)).all():
        fix = f"give {len(table)} numbers above 0, one for each of {', '.join(table)}"
        raise InputError(f"is {', '.join(f'{each:g}' for each in weights)}", field="--mix", fix=fix)
    made = preset(preset_) if isinstance(preset_, str) else preset_
    if not made.observation.queue.columns:
        problem = f"{made.name} is found by search and observes no rows of jobs"
        raise InputError(problem, field="--preset", fix="give a preset with [observation.queue]")
    if RECORDED in table:
        table[RECORDED].program(scenario.workload)  # refuses a trace without waits
    usual, pools = read_training(made.training), scenario.rules.pools
    given_s = episode_s or (0.0 if pools is None else pools.episode_s)
    length_s = given_s or usual.episode_s
    if jobs is None:
        jobs = min(most_in(scenario.workload.submit_s, given_s) if given_s else usual.jobs, len(scenario.workload))
    count = min(max(LOAD_JOBS // max(jobs, 1), 1), LOAD_WINDOWS)
    env = BatchEnv(scenario, made, environments=count, jobs=jobs, episode_s=length_s, threads=threads)
    check_can_follow(env)
    if starts is None or callable(starts):
        possible = np.arange(len(scenario.workload) - jobs + 1) if starts is None else starts(jobs)
        chosen = side_by_side(possible, env) if decisions is None else possible
    else:
        chosen = np.asarray(starts, np.int64)
    if not len(chosen):
        raise InputError("names no window", field="starts", fix="give the first job of at least one")
    return Recording(
        env=env, schedulers=table, shares=weights / weights.sum(), decisions=decisions, starts=chosen, seed=seed
    )


def side_by_side(possible: Ints, env: BatchEnv) -> Ints:
    """Those of ascending windows that share no job or, if they last a given time, no time with the one before."""
    submit_s, found, after = env.scenario.workload.submit_s, [], 0
    while after < len(possible):
        start = int(possible[after])
        found.append(start)
        ends_s = submit_s[start] + env.episode_s
        following = int(np.searchsorted(submit_s, ends_s)) if env.episode_s else start + env.jobs
        after = int(np.searchsorted(possible, max(following, start + 1)))
    return np.array(found, np.int64)


Tell = Callable[[int], None]
"""Called with the number of decisions so far, or of windows without a number of decisions."""


def play(made: Recording, tell: Tell | None = None) -> Iterator[Played]:
    """Play windows under their schedulers, some at a time, until there are enough decisions or no windows are left.

    Shares are exact but for part of a window of each scheduler.

    Raises:
        InputError: a scheduler cannot be simulated on the scenario, or windows have no decisions.
    """
    random, most = np.random.default_rng(made.seed), made.env.environments
    drawn, target = made.decisions is not None, made.decisions or len(made.starts)
    had = episodes = np.zeros(len(made.shares))
    while had.sum() < target:
        usual = _usual(had, episodes, target) if drawn else np.ones(len(had))
        aim = target - (1 - CAREFUL) * (target - had.sum()) if drawn else target
        chosen = in_turn(made.shares, had, usual, most, aim)
        first = int(episodes.sum())
        picked = random.integers(len(made.starts), size=len(chosen)) if drawn else first + np.arange(len(chosen))
        played = _played(made, first, made.starts[picked], chosen)
        lengths = np.diff(played.offsets)
        if drawn and not lengths.any():
            raise InputError("windows have no decisions", field="--jobs", fix="give more jobs, or a longer time")
        had = had + np.bincount(chosen, lengths if drawn else None, len(had))
        episodes = episodes + np.bincount(chosen, minlength=len(had))
        yield played
        if tell is not None:
            tell(int(had.sum()))


def _usual(decisions: Floats, episodes: Floats, target: int) -> Floats:
    """Decisions of a window of each scheduler: the mean so far, or at first so many that each has one window."""
    overall = decisions.sum() / episodes.sum() if episodes.any() else target / len(episodes)
    return np.maximum(np.where(episodes > 0, decisions / np.maximum(episodes, 1), overall), 1.0)


def in_turn(shares: Floats, had: Floats, usual: Floats, most: int, target: float) -> Ints:
    """Schedulers of the next windows: each time the one that would be furthest below its share.

    Args:
        shares: share of each, the sum is 1.
        had: decisions, or windows, that each has had.
        usual: what a window adds.
        most: largest number of windows.
        target: what all should have together.
    """
    counted, chosen = had.copy(), np.zeros(most, np.int64)
    for k in range(most):
        if counted.sum() >= target:
            return chosen[:k]
        chosen[k] = np.argmax(shares * (counted.sum() + usual) - counted)
        counted[chosen[k]] += usual[chosen[k]]
    return chosen


def _played(made: Recording, first: int, starts: Ints, chosen: Ints) -> Played:
    env, deciders = made.env, list(made.schedulers.items())
    schedules = in_threads(lambda w: _schedule(env, deciders[chosen[w]], int(starts[w])), len(starts), env.threads)
    windows = follow(env, starts, schedules)

    def all_of(name: str) -> NDArray[np.float64]:
        return np.concatenate([getattr(each, name) for each in windows])

    def each_of(name: str) -> Ints:
        return np.array([getattr(each, name) for each in windows])

    return Played(
        seen=joined([part for each in windows for part in each.seen]), actions=all_of("actions").astype(np.int64),
        time_s=all_of("time_s"), rewards=all_of("rewards"), increments=all_of("increments"),
        offsets=np.concatenate([[0], np.cumsum([len(each.actions) for each in windows])]),
        values=np.stack([each.values for each in windows]), episode=first + np.arange(len(starts)), start=starts,
        scheduler=chosen, late=each_of("late"), unseen=each_of("unseen"), left=each_of("left"), held=each_of("held"),
    )  # fmt: skip


def _schedule(env: BatchEnv, named: tuple[str, Scheduler], start: int) -> Schedule:
    """What a scheduler does in a window, or what is recorded of it."""
    (name, decider), scenario, rules = named, env.scenario, env.scenario.rules
    window = scenario.workload.take(slice(start, start + env.jobs))
    if name == RECORDED:
        return recorded(window)
    if env.episode_s:
        rules = replace(rules, pools=replace(rules.pools or Pools(), end_s=0.0, episode_s=env.episode_s))
    return simulated(simulate(window, scenario.cluster, scenario.site, rules, decider))
