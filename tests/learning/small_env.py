"""A tiny batched environment with the interface of ``BatchEnv``: random tables, rewards from the actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from greenbatch.engine.observe.image import bytes_of
from greenbatch.presets.shapes import Shapes


class Observation(NamedTuple):
    environment: np.ndarray
    queue: np.ndarray
    queue_offsets: np.ndarray
    selectable: np.ndarray
    running: np.ndarray
    running_offsets: np.ndarray
    supply: np.ndarray
    slot: np.ndarray
    state: np.ndarray
    delays: np.ndarray
    image: np.ndarray


GAS = Shapes(
    queue=tuple("abcdefgh"),
    queue_rows=12,
    empty=(0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0),
    running=tuple("abcd"),
    running_rows=5,
    supply=("length", "green"),
    forecast=4,
    delays=3,
)
"""GAS-MARL's tables with fewer slots."""

RICH = Shapes(
    queue=("wait", "size", "fits"),
    queue_rows=9,
    empty=(0.0, 1.0, 0.0),
    running=("size", "left"),
    running_rows=4,
    supply=("green",),
    forecast=3,
    state=("free", "load"),
    delays=4,
    image=(3, 20),
)
"""Every table, global state, delays and an image."""


def observation(shapes: Shapes, count: int, seed: int, *, most: int | None = None) -> Observation:
    """``count`` decisions with random rows; at least one queue row each, running tables may be empty."""
    g = np.random.default_rng(seed)
    queued = g.integers(1, (most or shapes.queue_rows) + 1, count)
    busy = g.integers(0, shapes.running_rows + 1, count)
    slot = g.integers(0, 12, count)
    hours = np.round(np.random.default_rng(7).random((12 + shapes.forecast, len(shapes.supply))), 1)
    supply = hours[slot[:, None] + np.arange(shapes.forecast)].astype(np.float32)
    if shapes.forecast:
        supply[:, 0] = g.random((count, len(shapes.supply)))
    selectable = g.random(queued.sum()) < 0.8
    selectable[np.cumsum(queued) - 1] = True
    delays = g.random((count, shapes.delays)) < 0.7
    delays[:, 0] = True
    return Observation(
        environment=np.arange(count),
        queue=g.random((queued.sum(), len(shapes.queue))).astype(np.float32),
        queue_offsets=np.concatenate([[0], np.cumsum(queued)]),
        selectable=selectable,
        running=g.random((busy.sum(), len(shapes.running))).astype(np.float32),
        running_offsets=np.concatenate([[0], np.cumsum(busy)]),
        supply=supply,
        slot=slot,
        state=g.random((count, len(shapes.state))).astype(np.float32),
        delays=delays,
        image=g.integers(0, 256, (count, 2, shapes.image[0], bytes_of(shapes.image[1])), dtype=np.uint8),
    )


class SmallEnv:
    """Windows of ``2 + start % 3`` decisions; the reward is the chosen row's first column plus 10 times the delay.

    Buffers are overwritten at every step, as the real environment's are.
    """

    def __init__(self, shapes: Shapes, environments: int) -> None:
        self.shapes, self.environments = shapes, environments
        self.values, self.now_s = np.zeros((environments, 1)), np.zeros(environments)
        self._left = np.zeros(environments, dtype=np.int64)
        self._seed = np.zeros(environments, dtype=np.int64)
        self._shown: Observation | None = None

    def reset(self, starts: Sequence[int]) -> Observation:
        count = len(starts)
        self.values[:] = 0.0
        self._left[:count] = 2 + np.asarray(starts) % 3
        self._left[count:] = 0
        self._seed[:count] = np.asarray(starts) * 1000
        return self._show()

    def step(self, actions: np.ndarray) -> tuple[Observation, np.ndarray, np.ndarray]:
        shown = self._shown
        assert shown is not None
        lengths = np.diff(shown.queue_offsets)
        assert actions.shape == (len(shown.environment), 2)
        assert ((actions[:, 0] >= 0) & (actions[:, 0] < lengths)).all()
        chosen = shown.queue_offsets[:-1] + actions[:, 0]
        assert shown.selectable[chosen].all()
        assert shown.delays[np.arange(len(actions)), actions[:, 1]].all()
        rewards = shown.queue[chosen, 0].astype(np.float64) + 10.0 * actions[:, 1]
        who = shown.environment.copy()
        self.values[who, 0] += rewards
        self._left[who] -= 1
        self._seed[who] += 1
        for part in shown:
            part[...] = 0
        return self._show(), rewards, self._left[who] == 0

    def _show(self) -> Observation:
        alive = np.flatnonzero(self._left > 0)
        each = [observation(self.shapes, 1, int(self._seed[a])) for a in alive]
        joined = {}
        for name in Observation._fields:
            parts = [getattr(one, name) for one in each]
            if name.endswith("offsets"):
                joined[name] = np.concatenate([[0], np.cumsum([part[1] for part in parts])]).astype(np.int64)
            elif parts:
                joined[name] = np.concatenate(parts)
            else:
                empty = getattr(observation(self.shapes, 1, 0), name)
                joined[name] = empty[:0]
        self._shown = Observation(**{**joined, "environment": alive})
        return self._shown
