"""A batch of simulations that are stepped together; each waits for an agent's decisions."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.capabilities import refuse
from greenbatch.engine.observe import batch as engine
from greenbatch.engine.observe.image import CHANNELS
from greenbatch.envs.simulations import Simulations
from greenbatch.errors import InputError
from greenbatch.presets.layout import layout_of, program_of
from greenbatch.presets.preset import Preset, preset, resolve
from greenbatch.scenarios import Scenario

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Observation(NamedTuple):
    """Observations of the A simulations that wait for a decision: views of buffers that the next step overwrites.

    Tables are packed: valid rows only, simulation by simulation; the rows of simulation ``a`` are
    ``queue[queue_offsets[a] : queue_offsets[a + 1]]``.
    """

    environment: Ints
    """Numbers of the simulations, shape (A,)."""
    queue: Singles
    """Waiting jobs in order of submission, or ready ones in order of slots, or pairs with nodes, then the rows for
    suspending and for waiting, if these are actions; shape (Q, k), at least one row per simulation."""
    queue_offsets: Ints
    """Shape (A + 1,)."""
    selectable: Bools
    """Rows that may be chosen, shape (Q,)."""
    running: Singles
    """Running jobs in order of requested end, shape (R, k); R may be 0."""
    running_offsets: Ints
    """Shape (A + 1,)."""
    supply: Singles
    """Forecast slots or ticks ahead, shape (A, f, k)."""
    slot: Ints
    """Number of the first slot, shape (A,); row i > 0 depends on ``slot + i`` only. Of ticks ahead: 0."""
    state: Singles
    """The system as a whole, shape (A, k)."""
    delays: Bools
    """Delays that may be chosen, shape (A, d)."""
    image: NDArray[np.uint8] = np.zeros((0, len(CHANNELS), 0, 0), np.uint8)
    """Resource images, packed: shape (A, 2, ticks, bytes); `observe.image.unpacked` gives one number per unit."""


class BatchEnv:
    """B simulations of windows of one scenario: observations out, actions in.

    Example::

        env = BatchEnv(load_scenario("gas-marl/lublin-256"), "gas-marl", environments=100, jobs=256)
        seen = env.reset(starts)
        while len(seen.environment):
            seen, rewards, ended = env.step(actions)
    """

    def __init__(
        self,
        scenario: Scenario,
        preset_: Preset | str,
        *,
        environments: int,
        jobs: int = 0,
        episode_s: float = 0.0,
        backfill: str | None = None,
        threads: int = 1,
    ) -> None:
        """Allocate the buffers.

        Args:
            scenario: jobs, machine, power supply and rules.
            preset_: observations, actions and rewards; a preset or its name. It is resolved if necessary.
            environments: maximum number of parallel simulations, >= 1.
            jobs: jobs per window, >= 1; 0 with ``episode_s``: as many as any window of that length has.
            episode_s: where capacity follows the power: end of each simulation after its beginning; 0 for what the
                scenario's pools say. [s]
            backfill: backfilling, and after it a placement, as in ``easy+worst-fit``; by default the preset's.
            threads: threads that share the simulations, >= 1; the result does not depend on it.

        Raises:
            InputError: the preset does not fit the scenario, or an argument is out of range.
        """
        pools = scenario.rules.pools
        self.episode_s = _checked_episode(episode_s, scenario) or (0.0 if pools is None else pools.episode_s)
        if self.episode_s and not jobs:
            jobs = most_in(scenario.workload.submit_s, self.episode_s)
        for field, value in (("environments", environments), ("jobs", jobs), ("threads", threads)):
            if value < 1:
                raise InputError(f"is {value}", field=field, fix="it must be >= 1")
        if jobs > len(scenario.workload):
            problem = f"is {jobs}, but {scenario.name} has {len(scenario.workload)} jobs"
            raise InputError(problem, field="jobs", fix="give fewer jobs")
        self.preset = resolve(preset(preset_) if isinstance(preset_, str) else preset_, scenario)
        self.scenario, self.jobs, self.threads = scenario, jobs, threads
        self.program = program_of(self.preset, backfill)
        self.terms = tuple(self.preset.reward.terms)
        self.weights: Floats = np.array(list(self.preset.reward.terms.values()))
        """Weight of each term; may be changed between episodes."""
        self.layout = layout_of(self.preset)
        self.simulations = Simulations(scenario, self.program, environments, jobs, self.terms, self.episode_s)
        """Their states, and the trace that windows are copied from."""
        share = -(-environments // threads)
        seen = self.preset.observation
        each, units = max(seen.queue.nodes, 1), seen.image.units
        self._shares = [Buffers(self.layout, share, jobs, each, units) for _ in range(threads)]
        self._whole = Buffers(self.layout, environments, jobs, each, units) if threads > 1 else self._shares[0]
        self._now = self._whole.observation()
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    @cached_property
    def _step(self) -> Any:
        return engine.compiled_step(self.simulations.batch_type)

    @property
    def environments(self) -> int:
        """Maximum number of parallel simulations."""
        return int(self.simulations.batch.states.clock.shape[0])

    @property
    def values(self) -> Floats:
        """Current value of every reward term in every simulation (at its end: the episode's), shape (B, t).

        The columns are in the order of ``terms``; `engine.observe.reward_terms` has the metric of each.
        """
        values: Floats = self.simulations.batch.values
        return values

    @property
    def starts_s(self) -> Floats:
        """Start of every job of every simulation, on nodes once they have booted; NaN if it waits, shape (B, n). [s]"""
        return self.simulations.starts_s()

    @property
    def now_s(self) -> Floats:
        """Clock of every simulation, shape (B,). [s]"""
        now: Floats = self.simulations.batch.states.clock["now_s"]
        return now

    def reset(self, starts: Sequence[int] | Ints, others: Ints | None = None) -> Observation:
        """Start one simulation per window, with an empty machine at the window's first submission.

        Args:
            starts: 0-based index of the first job of each window, at most ``environments``.
            others: rows of the trace whose jobs are submitted instead, at the same times, shape (windows, jobs).

        Raises:
            InputError: too many windows, or one that reaches beyond the trace.
        """
        if not 1 <= len(starts) <= self.environments:
            fix = f"give 1 to {self.environments}"
            raise InputError(f"{len(starts)} windows for {self.environments} environments", field="starts", fix=fix)
        self.simulations.load(_whole_numbers(starts, "starts", 1), others)
        self._advance(np.arange(len(starts), dtype=np.int64), np.zeros((0, 2), np.int64))
        return self._now

    def step(self, actions: Ints) -> tuple[Observation, Floats, Bools]:
        """Apply one action in each simulation that waits for one.

        Args:
            actions: row and delay for each simulation of the last observation, shape (A, 2).

        Returns:
            The next observation (without simulations that have ended), and for each simulation of the last observation
            its reward, shape (A,), and whether it has ended, shape (A,).

        Raises:
            InputError: a row or delay does not exist, or no simulation waits for a decision.
            SupplyExhausted: a simulation ran beyond a power series that does not repeat.
        """
        actions = _whole_numbers(actions, "actions", 2)
        self._check(actions)
        active = self._now.environment.copy()
        before = self.simulations.batch.values[active]
        ended = self._advance(active, actions)
        return self._now, self.rewards(before, self.simulations.batch.values[active], ended), ended

    def rewards(self, before: Floats, after: Floats, ended: Bools) -> Floats:
        """Rewards of some decisions, shape (A,).

        Args:
            before: value of each reward term before the action, shape (A, t).
            after: the same at the next decision, or at the end.
            ended: whether that is the end, shape (A,).
        """
        if self.preset.reward.form == "dense":
            return self._weighted_sum(after - before)
        return np.where(ended, self._weighted_sum(after), 0.0)

    def _weighted_sum(self, values: Floats) -> Floats:
        """Weighted sum of the terms, term by term: the rounding of a matrix product depends on the number of rows."""
        total: Floats = np.zeros(len(values))
        for term, weight in enumerate(self.weights):
            total += values[:, term] * weight
        return total

    def _check(self, actions: Ints) -> None:
        count = len(self._now.environment)
        if not count:
            raise InputError("there is no decision to make", field="actions", fix="call reset first")
        if actions.shape != (count, 2):
            fix = f"give a row and a delay for each of the {count} simulations"
            raise InputError(f"have shape {actions.shape}", field="actions", fix=fix)
        row, delay, offsets = actions[:, 0], actions[:, 1], self._now.queue_offsets
        rows = offsets[1:] - offsets[:-1]
        bad = (row < 0) | (row >= rows) | (delay < 0) | (delay >= len(self.layout.delays))
        if bad.any():
            a = int(np.flatnonzero(bad)[0])
            problem = f"{tuple(actions[a].tolist())} in simulation {self._now.environment[a]}"
            fix = f"there are {rows[a]} rows and {len(self.layout.delays)} delays"
            raise InputError(problem, field="actions", fix=fix)

    def _advance(self, active: Ints, actions: Ints) -> Bools:
        """Step the active simulations, each thread a share of them; return which have ended."""
        count = len(active)
        shares = min(self.threads, count) if count else 0
        edges = [count * i // shares for i in range(shares + 1)] if shares else []
        work = [
            (self.simulations.batch, self.layout, active[low:high], actions[low:high], *share.buffers)
            for share, (low, high) in zip(self._shares, pairwise(edges), strict=False)
        ]
        if self._pool is None or shares < 2:
            for arguments in work:
                self._step(*arguments)
        else:
            for done in [self._pool.submit(self._step, *arguments) for arguments in work]:
                done.result()
        ended = [share.ended[: high - low] for share, (low, high) in zip(self._shares, pairwise(edges), strict=False)]
        self._now = self._shares[0].observation() if shares == 1 else self._whole.joined(self._shares[:shares])
        all_ended: Bools = np.concatenate(ended) if ended else np.zeros(0, np.bool_)
        self.simulations.check(active[all_ended])
        return all_ended


class Buffers:
    """Observation buffers of one thread's share of the simulations."""

    def __init__(self, layout: engine.Layout, environments: int, jobs: int, each: int, units: int) -> None:
        self.seen = engine.new_seen(layout, environments, jobs, jobs, each, units)
        self.environment: Ints = np.zeros(environments, np.int64)
        self.ended: Bools = np.zeros(environments, np.bool_)
        self.counts: Ints = np.zeros(3, np.int64)

    @property
    def buffers(self) -> tuple[Any, ...]:
        """Buffers that a step writes to."""
        return self.seen, self.environment, self.ended, self.counts

    def observation(self) -> Observation:
        """The valid part of the buffers."""
        count, rows, beside = self.counts.tolist()
        seen = self.seen
        return Observation(
            environment=self.environment[:count], queue=seen.queue[:rows],
            queue_offsets=seen.queue_offsets[: count + 1], selectable=seen.selectable[:rows],
            running=seen.running[:beside], running_offsets=seen.running_offsets[: count + 1],
            supply=seen.supply[:count], slot=seen.slot[:count],
            state=seen.state[:count], delays=seen.delays[:count], image=seen.image[:count],
        )  # fmt: skip

    def joined(self, shares: Sequence[Buffers]) -> Observation:
        """Observations of several shares, concatenated in these buffers."""
        parts = [share.observation() for share in shares]
        self.counts[:] = sum((share.counts for share in shares), np.zeros(3, np.int64))
        whole = self.observation()
        for name in Observation._fields:
            if not name.endswith("offsets"):
                target: NDArray[Any] = getattr(whole, name)
                np.concatenate([getattr(part, name) for part in parts], out=target)
        for name in ("queue_offsets", "running_offsets"):
            np.cumsum(np.concatenate([np.diff(getattr(part, name)) for part in parts]), out=getattr(whole, name)[1:])
        return whole


def most_in(submit_s: Floats, length_s: float) -> int:
    """Largest number of jobs that are submitted within some time from the submission of one on."""
    ordered = np.sort(submit_s)
    return int(np.max(np.searchsorted(ordered, ordered + length_s) - np.arange(len(ordered)), initial=0))


def _checked_episode(episode_s: float, scenario: Scenario) -> float:
    if not 0.0 <= episode_s < np.inf:
        raise InputError(f"is {episode_s:g}", field="episode_s", fix="give seconds, >= 0")
    refuse("episode_s", (), {"episodes": episode_s, "fixed": scenario.cluster.powered is None})
    return episode_s


def _whole_numbers(values: Any, field: str, dimensions: int) -> Ints:
    """Values as a contiguous int64 array; compiled code checks neither type nor shape.

    Raises:
        InputError: they are not whole numbers, or have another number of dimensions.
    """
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"are of type {array.dtype}", field=field, fix="give whole numbers")
    if array.ndim != dimensions:
        raise InputError(f"have shape {array.shape}", field=field, fix=f"give {dimensions} dimension(s)")
    return np.ascontiguousarray(array, dtype=np.int64)
