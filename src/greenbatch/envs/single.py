"""One simulation as a gymnasium environment with padded tables and action masks."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from greenbatch.engine.observe.image import CHANNELS, unpacked
from greenbatch.envs.batch import BatchEnv, Observation
from greenbatch.errors import InputError
from greenbatch.presets.preset import Preset, Table
from greenbatch.scenarios import Scenario, load_scenario

LARGEST = 1e9
"""Bound of all values of an observation."""


class SchedulingEnv(gymnasium.Env[Any, NDArray[np.int64]]):
    """A window of a scenario, decision by decision.

    The observation is one flat box: the rows of waiting jobs, running jobs and forecast slots, each table padded to
    its number of rows and all to one width (like GAS-MARL's 344 x 8), then the columns of the system as a whole. The
    action is a row of the queue, which is a job or a pair of a job and a node, and, if the preset has delays, one of
    them; ``action_masks()`` says which may be chosen, in the layout that sb3-contrib's MaskablePPO requires. If the
    queue is longer than its table, only the jobs submitted first are visible. Suspending a job and waiting, if the
    preset allows them, are the rows after the visible jobs, in this order.

    With a resource image, the observation is a dictionary: ``tables`` is that box, ``image`` a box of zeros and ones of
    shape (2, ticks, processors + GPUs), see `engine.observe.image`.

    Example::

        env = SchedulingEnv("gas-marl/lublin-256", "gas-marl", jobs=256)
        seen, _ = env.reset(seed=0)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (gymnasium's own attribute)

    def __init__(
        self,
        scenario: Scenario | str,
        preset: Preset | str,
        *,
        jobs: int = 256,
        episode_s: float = 0.0,
        backfill: str | None = None,
        starts: tuple[int, ...] | None = None,
    ) -> None:
        """Create the environment.

        Args:
            scenario: jobs, machine, power supply and rules; or a name or file.
            preset: observations, actions and rewards; or a name or file.
            jobs: jobs per window, unless ``episode_s`` is given.
            episode_s: where capacity follows the power: length of a window; its jobs are those submitted in that time,
                see `BatchEnv`. [s]
            backfill: backfilling, and after it a placement, as in ``easy+worst-fit``; by default the preset's.
            starts: first jobs of the windows that `reset` draws from; by default all windows of the trace.

        Raises:
            InputError: the preset does not fit the scenario, or an argument is out of range.
        """
        question = load_scenario(scenario) if isinstance(scenario, str) else scenario
        self._env = BatchEnv(
            question, preset, environments=1, jobs=0 if episode_s else jobs, episode_s=episode_s, backfill=backfill
        )
        seen = self._env.preset.observation
        self._tables: tuple[Table, ...] = (seen.queue, seen.running, seen.supply)
        self._rows = seen.queue.rows * max(seen.queue.nodes, 1) + self._env.layout.suspend + self._env.layout.wait
        widest = max(len(table.columns) for table in self._tables)
        self._width = max(seen.padded_width, widest)
        self._blank = np.concatenate([self._padding(table).ravel() for table in self._tables])
        size = self._blank.size + len(seen.state.columns)
        tables = spaces.Box(-LARGEST, LARGEST, (size,), np.float32)
        self._image = (len(CHANNELS), seen.image.ticks, seen.image.units)
        self.observation_space: spaces.Space[Any] = (
            spaces.Dict({"tables": tables, "image": spaces.Box(0, 1, self._image, np.uint8)})
            if seen.image.ticks
            else tables
        )
        delays = len(self._env.layout.delays)
        self._parts = 2 if delays > 1 else 1
        self.action_space = spaces.MultiDiscrete([self._rows, delays][: self._parts])
        self._starts = np.arange(len(question.workload) - self._env.jobs + 1) if starts is None else np.asarray(starts)
        if not self._starts.size:
            raise InputError("names no window", field="starts", fix="give the first job of at least one")
        self._seen: Observation | None = None

    def _padding(self, table: Table) -> NDArray[np.float32]:
        """Rows that pad a table."""
        rows = self._rows if table is self._tables[0] else table.rows
        blank = np.zeros((rows, self._width), np.float32)
        if table.empty:
            if len(table.empty) > self._width:
                problem = f"an empty row has {len(table.empty)} numbers, the tables have {self._width} columns"
                raise InputError(problem, field="observation", fix="give one number per column")
            blank[:, : len(table.empty)] = table.empty
        return blank

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a window: ``options["start"]``, or one drawn at random.

        Raises:
            InputError: the window reaches beyond the trace.
        """
        super().reset(seed=seed)
        start = (options or {}).get("start")
        chosen = int(self.np_random.choice(self._starts)) if start is None else int(start)
        self._seen = self._env.reset([chosen])
        return self._shown(self._seen), {"start": chosen}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Apply an action and advance to the next decision.

        A masked row is replaced by the first allowed one, and ``info["masked"]`` is True.

        Raises:
            InputError: the action is out of range, or the window has not started or has ended.
        """
        if self._seen is None or not len(self._seen.environment):
            raise InputError("there is no decision to make", field="action", fix="call reset first")
        numbers = np.asarray(action)
        if not 1 <= numbers.size <= self._parts or numbers.dtype.kind not in "iu":
            fix = f"give {self._parts} whole number(s)"
            raise InputError(f"is {action!r}"[:80], field="action", fix=fix)
        row, delay = (*numbers.ravel().tolist(), 0)[:2]
        if not 0 <= row < self._rows:
            raise InputError(
                f"row {row} of {self._rows}", field="action", fix="choose a row that action_masks() allows"
            )
        masked = row >= len(self._seen.selectable) or not self._seen.selectable[row]
        if masked:
            row = int(np.argmax(self._seen.selectable))
        self._seen, rewards, ended = self._env.step(np.array([[row, delay]]))
        info: dict[str, Any] = {"masked": masked}
        if ended[0]:
            info["terms"] = dict(zip(self._env.terms, self._env.values[0].tolist(), strict=True))
        return self._shown(self._seen), float(rewards[0]), bool(ended[0]), False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Which rows and delays may be chosen, concatenated, shape (rows [+ delays],)."""
        rows = np.zeros(self._rows, np.bool_)
        delays = np.ones(len(self._env.layout.delays), np.bool_)
        if self._seen is not None and len(self._seen.environment):
            rows[: len(self._seen.selectable)] = self._seen.selectable
            delays = self._seen.delays[0].copy()
        else:
            rows[0] = True
        return np.concatenate([rows, delays]) if len(delays) > 1 else rows

    def _shown(self, seen: Observation) -> Any:
        tables = self._padded(seen)
        if not self._image[1]:
            return tables
        if not len(seen.environment):
            return {"tables": tables, "image": np.zeros(self._image, np.uint8)}
        return {"tables": tables, "image": unpacked(seen.image[0], self._image[2])}

    def _padded(self, seen: Observation) -> NDArray[np.float32]:
        blank = self._blank.copy().reshape(-1, self._width)
        valid = (seen.queue, seen.running, seen.supply[0] if len(seen.supply) else seen.queue[:0])
        if len(seen.environment):
            at = 0
            for table, rows in zip(self._tables, valid, strict=True):
                blank[at : at + len(rows)] = 0.0
                blank[at : at + len(rows), : len(table.columns)] = rows
                at += self._rows if table is self._tables[0] else table.rows
        state = seen.state[0] if len(seen.state) else np.zeros(len(self._env.layout.state), np.float32)
        return np.concatenate([blank.ravel(), state])
