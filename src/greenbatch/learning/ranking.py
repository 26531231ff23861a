"""The loop of a search for a ranking: the weights of a score of the waiting jobs, by an evolution strategy.

The score is linear in the columns of the queue, plus, if ``network.hidden`` says so, a few units with ReLU.

A candidate plays whole windows by arg-max, as it will be used, so that nothing is lost between a policy that explores
and the one that decides, and no reward has to be handed to single decisions. All candidates of a generation play the
same windows; the next generation's are new. All random numbers come from (seed, generation).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from greenbatch.envs.batch import BatchEnv, Observation
from greenbatch.errors import InputError
from greenbatch.learning import runs, windows
from greenbatch.learning.checkpoint import STATE
from greenbatch.learning.counters import Counters
from greenbatch.learning.log import Log
from greenbatch.learning.model import save_model, training_record
from greenbatch.learning.onnx_builder import Weights
from greenbatch.learning.plan import Plan
from greenbatch.learning.search import Record, Searching
from greenbatch.learning.settings import Search

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POINT = "point"
"""Name of a candidate's numbers in a checkpoint."""
MOST_HIDDEN = 16
"""Hidden units: a strategy that adapts a whole covariance takes no more."""
FIRST_STEP = 0.5
"""Deviation of the first weights of hidden units."""


def choose(seen: Observation, scores: NDArray[np.float32]) -> Ints:
    """The row with the largest score of each simulation, the first of equals, as actions of shape (A, 2).

    Args:
        seen: what the simulations show.
        scores: of every row, shape (Q,); a row that may not be chosen is never taken.
    """
    first = seen.queue_offsets[:-1]
    scores = np.where(seen.selectable, scores, np.float32(-np.inf))
    owner = np.repeat(np.arange(len(first)), np.diff(seen.queue_offsets))
    among = np.flatnonzero(scores == np.maximum.reduceat(scores, first)[owner])
    new = np.diff(owner[among], prepend=-1) > 0
    rows = among[new] - first
    return np.stack([rows, np.zeros_like(rows)], axis=1)


def weights_of(point: Floats, columns: int) -> Weights:
    """The network that a candidate's numbers are.

    Args:
        point: linear weights, then of every hidden unit its weights, then their biases, then what they count for:
            shape (columns + hidden * (columns + 2),).
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


def play(env: BatchEnv, starts: Ints, points: Floats) -> Floats:
    """The preset's reward of every candidate on every window, shape (candidates, windows).

    Args:
        env: room for candidates x windows simulations.
        starts: first jobs of the windows.
        points: numbers of the candidates, shape (candidates, numbers), see `weights_of`.
    """
    count, columns = len(starts), len(env.preset.observation.queue.columns)
    networks = [weights_of(point, columns) for point in points]
    edges = np.arange(len(points) + 1) * count
    seen = env.reset(np.tile(starts, len(points)))
    while len(seen.environment):  # a candidate's simulations are neighbors, so its rows are one block
        blocks = seen.queue_offsets[np.searchsorted(seen.environment, edges)]
        parts = [
            score(seen.queue[low:high], made)
            for made, low, high in zip(networks, blocks[:-1], blocks[1:], strict=True)
            if high > low
        ]
        seen, _, _ = env.step(choose(seen, np.concatenate(parts)))
    total: Floats = env.values[: count * len(points)] @ env.weights
    return total.reshape(len(points), count)


def costs(rewards: Floats) -> Floats:
    """What is to be small, shape (candidates,): the cost of the windows, each divided by the root of its mean cost.

    A window whose queue runs away costs a hundred times as much as a quiet one, and mostly by chance; with the root it
    still counts more, but does not decide alone.

    Args:
        rewards: of every candidate on every window, shape (candidates, windows).
    """
    means: Floats = np.abs(rewards.mean(axis=0))
    scale = np.sqrt(np.maximum(means, 1e-9))
    total: Floats = -(rewards / scale).sum(axis=1) / scale.sum()
    return total


class Ranking(Searching):
    """A search for a ranking in a folder, from its last checkpoint on."""

    def __init__(self, plan: Plan, folder: Path, watch: Callable[[Record], None]) -> None:
        self.plan, self.folder, self.watch = plan, folder, watch
        self.settings, self.search = plan.settings, check(plan)
        self.begin = begin_of(plan)
        self.counters, self.found = Counters(), {}
        self.evolution = self._fresh(np.zeros(len(self.begin)))
        if (folder / runs.CHECKPOINT / STATE).exists():
            self._restore()
        made = self.settings
        self.starts = windows.training_starts(plan.scenario, made.jobs, plan.windows)
        self.env = BatchEnv(
            plan.scenario, plan.preset, environments=made.windows * self.search.population, jobs=made.jobs,
            backfill=plan.backfill, threads=plan.threads,
        )  # fmt: skip
        self.log = Log(folder / runs.LOG, self.counters.log_bytes)
        self._clock = time.perf_counter() - self.counters.elapsed_s

    def run(self) -> None:
        """All generations that are left, and the model: the center of the last one."""
        counters = self.counters
        while counters.epoch < self.settings.epochs and self._progress() < 1.0:
            record = self._generation(0)
            counters.epoch += 1
            self.found = {POINT: self.begin + self.evolution.mean}
            self._save(record)
        counters.done = True
        self._save({"done": True})
        self.write_model()

    def write_model(self) -> None:
        """Write the weights that were found so far."""
        weights = weights_of(self.found[POINT], len(self.plan.preset.observation.queue.columns))
        record = training_record(self.plan, self.counters, kept="last", averaged=False)
        save_model(
            self.folder / runs.MODEL, weights, self.plan.preset, {**record, "validation": {}},
            scenario=self.plan.scenario,
        )  # fmt: skip

    def _generation(self, _: int) -> Record:
        """Try the candidates of one generation on the same windows, and move."""
        epoch, made = self.counters.epoch, self.settings
        random = np.random.default_rng(windows.random_seed(made.seed, epoch, "actions"))
        starts = windows.draw(self.starts, made.windows, made.seed, epoch)
        begun = time.perf_counter()
        rewards = play(self.env, starts, self.begin + self.evolution.ask(random))
        self.evolution.tell(costs(rewards))
        jobs = rewards.size * made.jobs
        self.counters.decisions += jobs
        return {
            "epoch": epoch + 1, "return": float(rewards.mean()), "best_return": float(rewards.mean(axis=1).max()),
            "sigma": self.evolution.sigma, "jobs_per_s": round(jobs / (time.perf_counter() - begun), 1),
        }  # fmt: skip


def check(plan: Plan) -> Search:
    """The search that a plan asks for.

    Raises:
        InputError: the plan is no search for a ranking, or asks for what it cannot do.
    """
    made, preset = plan.settings.search, plan.preset
    if made is None:
        raise InputError("is missing", field="training.search", fix="a linear score is found by a search")
    if len(preset.action.delays) > 1:
        raise InputError("are more than one, and a ranking chooses none", field="action.delays", fix="leave them out")
    if unknown := sorted(set(preset.network) - {"kind", "begin", "hidden"}):
        raise InputError("linear has no such key", field=f"network.{unknown[0]}", fix="its keys: begin, hidden")
    if plan.device != "cpu":
        raise InputError(f"is {plan.device}", field="--device", fix="a search runs on the cpu")
    begin_of(plan)
    return made


def begin_of(plan: Plan) -> Floats:
    """Where a search begins, see `weights_of`.

    The linear weights are ``network.begin``, 0 if not given; hidden units are drawn from the seed and count for nothing
    yet.

    Raises:
        InputError: not as many numbers as columns, or no number of hidden units.
    """
    columns = len(plan.preset.observation.queue.columns)
    begin = plan.preset.network.get("begin", [0.0] * columns)
    numbers = isinstance(begin, list | tuple) and all(isinstance(each, int | float) for each in begin)
    if not numbers or len(begin) != columns or not np.isfinite(begin).all():
        raise InputError("does not fit the queue", field="network.begin", fix=f"give {columns} numbers")
    hidden = plan.preset.network.get("hidden", 0)
    if isinstance(hidden, bool) or not isinstance(hidden, int) or not 0 <= hidden <= MOST_HIDDEN:
        raise InputError(f"is {hidden!r}", field="network.hidden", fix=f"give 0 to {MOST_HIDDEN}")
    random = np.random.default_rng(windows.random_seed(plan.settings.seed, 0, "weights"))
    inner = random.normal(0.0, FIRST_STEP, hidden * columns)
    return np.concatenate([np.array(begin, dtype=np.float64), inner, np.zeros(2 * hidden)])
