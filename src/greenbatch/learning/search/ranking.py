"""The search for a ranking: the weights of a score of the waiting jobs.

The score is linear in the columns of the queue, plus ``network.hidden`` ReLU units.

Candidates are evaluated on whole windows by arg-max, as they will be used: there is no difference between an exploring
and a deciding policy, and no reward has to be assigned to single decisions.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from greenbatch.envs.batch import BatchEnv, Observation
from greenbatch.errors import InputError
from greenbatch.learning.runs import windows
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.search.loop import Candidate, Record, Searching
from greenbatch.models.onnx_builder import Weights
from greenbatch.workers import several

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POINT = "point"
"""Name of a candidate's numbers in a checkpoint."""
MOST_HIDDEN = 16
"""Maximum number of hidden units, as the strategy adapts a full covariance."""
MIXING = 2.0
"""Concentration of the shares of the kinds of jobs that a mixed window has."""
LARGEST_WEIGHT = float(np.finfo(np.float32).max)
"""Largest size of a weight: networks have single precision."""
FIRST_STEP = 0.5
"""Standard deviation of the initial weights of hidden units."""


def choose(seen: Observation, scores: NDArray[np.float32]) -> Ints:
    """Actions (A, 2) that choose the row with the largest score in each simulation; the first row wins ties.

    Args:
        seen: observation of the simulations.
        scores: score of every row, shape (Q,); rows that may not be chosen are ignored.
    """
    first = seen.queue_offsets[:-1]
    scores = np.where(seen.selectable, scores, np.float32(-np.inf))
    owner = np.repeat(np.arange(len(first)), np.diff(seen.queue_offsets))
    among = np.flatnonzero(scores == np.maximum.reduceat(scores, first)[owner])
    new = np.diff(owner[among], prepend=-1) > 0
    rows = among[new] - first
    return np.stack([rows, np.zeros_like(rows)], axis=1)


def weights_of(point: Floats, columns: int) -> Weights:
    """The network with a candidate's numbers as weights.

    Args:
        point: linear weights, then input weights, biases and output weights of the hidden units, shape
            (columns + hidden * (columns + 2),).
        columns: columns of the queue.
    """
    numbers = point.astype(np.float32)
    hidden = (len(numbers) - columns) // (columns + 2)
    made = {"rows.0.weight": numbers[None, :columns], "rows.0.bias": np.zeros(1, np.float32)}
    if hidden:
        inner, biases, outer = np.split(numbers[columns:], [hidden * columns, hidden * (columns + 1)])
        made |= {"hidden.0.weight": inner.reshape(hidden, columns), "hidden.0.bias": biases}
        made |= {"hidden.1.weight": outer[None], "hidden.1.bias": np.zeros(1, np.float32)}
    return made


def score(rows: NDArray[np.float32], made: Weights) -> NDArray[np.float32]:
    """Scores of rows (Q, columns) by a network from `weights_of`: (Q,)."""
    scores: NDArray[np.float32] = rows @ made["rows.0.weight"][0]
    if "hidden.0.weight" in made:
        inner = np.maximum(rows @ made["hidden.0.weight"].T + made["hidden.0.bias"], np.float32(0))
        scores = scores + inner @ made["hidden.1.weight"][0]
    return scores


def play(env: BatchEnv, starts: Ints, points: Floats, others: Ints | None = None) -> Floats:
    """The preset's reward of every candidate on every window, shape (candidates, windows).

    Args:
        env: environment for candidates x windows simulations.
        starts: first jobs of the windows.
        points: numbers of the candidates, shape (candidates, numbers), see `weights_of`.
        others: rows of the jobs of each window, shape (windows, jobs), if they are not its own.
    """
    count, columns = len(starts), len(env.preset.observation.queue.columns)
    networks = [weights_of(point, columns) for point in points]
    edges = np.arange(len(points) + 1) * count
    seen = env.reset(np.tile(starts, len(points)), None if others is None else np.tile(others, (len(points), 1)))
    while len(seen.environment):  # the simulations of a candidate are adjacent, so its rows form a block
        blocks = seen.queue_offsets[np.searchsorted(seen.environment, edges)]
        parts = [
            score(seen.queue[low:high], made)
            for made, low, high in zip(networks, blocks[:-1], blocks[1:], strict=True)
            if high > low
        ]
        seen, _, _ = env.step(choose(seen, np.concatenate(parts)))
    total: Floats = env.values[: count * len(points)] @ env.weights
    return total.reshape(len(points), count)


def costs(rewards: Floats, balance: float | Literal["ranks"]) -> Floats:
    """Objective to minimize, shape (candidates,).

    With a power: costs of the windows, each divided by this power of its mean cost. A congested window costs a hundred
    times as much as a quiet one, mostly by chance; with the root (0.5) it still counts more but does not dominate.
    With ranks: the mean rank of a candidate among all of them, over the windows. Where candidates differ by a hundredth
    then counts as much as where they differ by half.

    Args:
        rewards: of every candidate on every window, shape (candidates, windows).
        balance: the power, 0 to 1, or "ranks".
    """
    if balance == "ranks":
        from scipy.stats import rankdata  # takes half a second to import

        ranks: Floats = rankdata(-rewards, axis=0).mean(axis=1)
        return ranks
    means: Floats = np.abs(rewards.mean(axis=0))
    scale = np.sqrt(np.maximum(means, 1e-9)) if balance == 0.5 else np.maximum(means, 1e-9) ** balance
    total: Floats = -(rewards / scale).sum(axis=1) / scale.sum()
    return total


class RankingSearch(Searching):
    """Searches relative to the starting point `begin_of`."""

    def __init__(self, plan: Plan) -> None:
        check(plan)
        self.begin, made = begin_of(plan), plan.settings
        super().__init__(plan, np.zeros(len(self.begin)))
        self._envs: dict[int, BatchEnv] = {}
        """Number of candidates that play at a time -> their environment."""
        tests = made.validation
        self.validation_starts = windows.validation_starts(plan.scenario, tests.windows, tests.jobs)
        self.validation: BatchEnv | None = None
        """Environment in which centers are compared, if the best one is kept."""
        if made.keep == "best" and tests.windows:
            self.validation = BatchEnv(
                plan.scenario, plan.preset, environments=tests.windows, jobs=tests.jobs, backfill=plan.backfill,
                threads=plan.threads,
            )  # fmt: skip
            reserved = windows.jobs_of(self.validation_starts, tests.jobs)
            self.starts = windows.training_starts(plan.scenario, made.jobs, plan.windows, reserved=reserved)

    def tried(self, stage: int, starts: Ints, random: np.random.Generator) -> tuple[Floats, Record]:
        """Costs of a generation."""
        del stage
        points = self.begin + self.evolution.ask(random)
        others = self._mixed(len(starts), random) if self.search.mixed else None
        if several(self.workers):
            first, more = tuple(starts.tolist()), () if others is None else tuple(map(tuple, others.tolist()))
            numbers = [tuple(point.tolist()) for point in points]
            found = self.played([Candidate(place, each, first, more) for place, each in enumerate(numbers)])
            rewards = np.array(found)
        else:
            rewards = play(self._env(len(points)), starts, points, others)
        means = rewards.mean(axis=1)
        return costs(rewards, self.search.balance), {"return": float(rewards.mean()), "best_return": float(means.max())}

    def evaluated(self, candidate: Candidate) -> Floats:
        """Rewards of a candidate on its windows, shape (windows,): the same as in a batch of candidates."""
        others = np.array(candidate.more) if candidate.more else None
        rewards = play(self._env(1), np.array(candidate.windows), np.array(candidate.numbers)[None], others)
        return np.asarray(rewards[0])

    def _env(self, candidates: int) -> BatchEnv:
        plan, made = self.plan, self.settings
        if candidates not in self._envs:
            self._envs[candidates] = BatchEnv(
                plan.scenario, plan.preset, environments=made.windows * candidates, jobs=made.jobs,
                backfill=plan.backfill, threads=plan.threads,
            )  # fmt: skip
        return self._envs[candidates]

    def _mixed(self, count: int, random: np.random.Generator) -> Ints:
        """Rows of jobs for some windows: random shares of two or more kinds of jobs, by executable, in each of them.

        Only jobs that training may see are drawn.
        """
        jobs = self.settings.jobs
        rows = windows.jobs_of(self.starts, jobs)
        kinds, kind = np.unique(self.plan.scenario.workload.executable[rows], return_inverse=True)
        shares = random.dirichlet(np.full(len(kinds), MIXING), count)
        places = random.random((count, len(kinds))).argsort(axis=1)
        shares[places >= random.integers(min(2, len(kinds)), len(kinds) + 1, size=count)[:, None]] = 0.0
        weights = shares[:, kind] / np.bincount(kind)[kind]
        return np.array([random.choice(rows, jobs, p=each / each.sum()) for each in weights])

    def center(self, stage: int) -> dict[str, Floats]:
        """The center of the last generation, or the best one so far on the validation windows (``keep = "best"``)."""
        del stage
        center, counters, check = self.begin + self.evolution.mean, self.counters, self.settings.validation
        if self.validation is None:
            return {POINT: center}
        if counters.epoch % check.every == 0 or counters.epoch == self.settings.epochs:
            figure = float(play(self.validation, self.validation_starts, center[None]).mean())
            if counters.best_epoch < 0 or figure > counters.best_figure:
                counters.best_epoch, counters.best_figure = counters.epoch, figure
                return {POINT: center}
        return {} if counters.best_epoch >= 0 else {POINT: center}

    def compared(self) -> Record:
        """The validation windows, if they selected the center."""
        if self.validation is None:
            return {}
        jobs, figure = self.settings.validation.jobs, self.counters.best_figure
        return {"starts": self.validation_starts.tolist(), "jobs": jobs, "figure": figure}

    def weights(self) -> Weights:
        """The network found so far."""
        return weights_of(self.found[POINT], len(self.plan.preset.observation.queue.columns))


def check(plan: Plan) -> None:
    """Refuse a plan that is not for a ranking.

    Raises:
        InputError: the preset chooses delays, or its network or search has other keys.
    """
    preset, bounds = plan.preset, {"years", "makespan_bound", "aim", "most", "slowdown", "begin", "placement"}
    if unused := sorted(bounds & set(preset.training.get("search", {}))):
        raise InputError("is only for the look-ahead planner", field=f"training.search.{unused[0]}", fix="leave it out")
    if preset.chooses_delays:
        problem = "has others than none, but a ranking chooses no delay"
        raise InputError(problem, field="action.delays", fix="leave them out")
    if unknown := sorted(set(preset.network) - {"kind", "begin", "hidden"}):
        raise InputError("linear has no such key", field=f"network.{unknown[0]}", fix="known: begin, hidden")


def begin_of(plan: Plan) -> Floats:
    """Starting point of a search, see `weights_of`.

    The linear weights are ``network.begin``, by default 0; hidden units are drawn from the seed, with output weights 0.

    Raises:
        InputError: ``begin`` does not have one finite number per column, or ``hidden`` is out of range.
    """
    columns = len(plan.preset.observation.queue.columns)
    begin = plan.preset.network.get("begin", [0.0] * columns)
    if not isinstance(begin, list | tuple) or len(begin) != columns:
        raise InputError("does not fit the queue", field="network.begin", fix=f"give {columns} numbers")
    for number, (each, column) in enumerate(zip(begin, plan.preset.observation.queue.columns, strict=True)):
        if isinstance(each, bool) or not isinstance(each, int | float) or not abs(each) <= LARGEST_WEIGHT:
            problem, fix = f"is {each!r:.40}, the weight of {column.feature}", "give a finite number"
            raise InputError(problem, field=f"network.begin.{number}", fix=fix)
    hidden = plan.preset.network.get("hidden", 0)
    if isinstance(hidden, bool) or not isinstance(hidden, int) or not 0 <= hidden <= MOST_HIDDEN:
        raise InputError(f"is {hidden!r}", field="network.hidden", fix=f"give 0 to {MOST_HIDDEN}")
    random = np.random.default_rng(windows.random_seed(plan.settings.seed, 0, "weights"))
    inner = random.normal(0.0, FIRST_STEP, hidden * columns)
    return np.concatenate([np.array(begin, dtype=np.float64), inner, np.zeros(2 * hidden)])
