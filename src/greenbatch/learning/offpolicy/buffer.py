"""The replay buffer: observations as named arrays of fixed shapes, with what was done and what it brought.

Every observation is stored once: trajectories are complete and stored in order, so the observation that follows n
decisions later is a few places further on. Flags are stored as bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.datasets.tables import Arrays, Field
from greenbatch.errors import InputError

Ints = NDArray[np.int64]
Singles = NDArray[np.float32]


class Transitions(NamedTuple):
    """Outcome of some decisions, each of shape (M,)."""

    actions: Ints
    """Chosen rows."""
    rewards: Singles
    """Discounted sums of the rewards of up to n decisions."""
    discounts: Singles
    """Discount of the value of the observation that follows them; 0 if the trajectory has ended by then."""


_BESIDE = 4 + 4 + 4 + 2
"""Memory of action, reward, discount and steps ahead. [byte]"""


def bytes_of(fields: Mapping[str, Field]) -> int:
    """Memory of a transition. [byte]"""
    return _BESIDE + sum(field.bytes for field in fields.values())


def check_memory(fields: Mapping[str, Field], capacity: int, memory_gb: float) -> None:
    """Refuse a buffer that is larger than its memory.

    Raises:
        InputError: it is; the fix names the largest capacity.
    """
    each = bytes_of(fields)
    if each * capacity > memory_gb * 1e9:
        needed = f"needs {each * capacity / 1e9:.1f} GB for {capacity:,} transitions of {each:,} bytes"
        fix = f"at most {int(memory_gb * 1e9 / each):,}, or a higher training.off_policy.memory_gb than {memory_gb:g}"
        raise InputError(needed, field="training.off_policy.buffer", fix=fix)


class Replay:
    """A ring of transitions; the newest overwrite the oldest. Memory is taken as it fills."""

    def __init__(self, fields: Mapping[str, Field], capacity: int) -> None:
        self.fields, self.capacity, self.total = dict(fields), capacity, 0
        self._arrays: Arrays = {}
        for name, field in fields.items():
            shape, dtype = field.stored
            self._arrays[name] = np.zeros((capacity, *shape), dtype)
        self._actions = np.zeros(capacity, np.int32)
        self._rewards = np.zeros(capacity, np.float32)
        self._discounts = np.zeros(capacity, np.float32)
        self._ahead = np.zeros(capacity, np.uint16)

    def __len__(self) -> int:
        """Transitions that it holds."""
        return min(self.total, self.capacity)

    def add(self, seen: Mapping[str, NDArray[Any]], actions: Ints, rewards: NDArray[np.float64], offsets: Ints,
            *, discounts: NDArray[np.float64], n_step: int) -> None:  # fmt: skip
        """Store complete trajectories.

        Args:
            seen: the fields of N decisions, trajectory after trajectory, shape (N, ...).
            actions: chosen rows, shape (N,).
            rewards: shape (N,).
            offsets: where each trajectory begins, shape (W + 1,).
            discounts: from each decision to the next, 0 to 1, shape (N,).
            n_step: rewards that are added up, >= 1.
        """
        sums, onward, ahead = n_step_returns(rewards, offsets, discounts, n_step)
        count = len(actions)
        kept = slice(max(count - self.capacity, 0), count)
        places = np.arange(self.total + kept.start, self.total + count) % self.capacity
        for name, field in self.fields.items():
            values = np.asarray(seen[name])[kept]
            if field.dtype is np.bool_:
                values = np.packbits(values.reshape(len(values), prod(field.shape)), axis=1)
            self._arrays[name][places] = values
        self._actions[places] = actions[kept]
        self._rewards[places], self._discounts[places] = sums[kept], onward[kept]
        self._ahead[places] = ahead[kept]
        self.total += count

    def draw(self, count: int, random: np.random.Generator) -> Ints:
        """Places of transitions drawn uniformly, with replacement, shape (count,)."""
        return random.integers(len(self), size=count)

    def outcomes(self, places: Ints) -> Transitions:
        """What was done at some places and what it brought."""
        actions = self._actions[places].astype(np.int64)
        return Transitions(actions, self._rewards[places], self._discounts[places])

    def seen(self, places: Ints) -> Arrays:
        """The observations at some places, shape (M, ...)."""
        found: Arrays = {}
        for name, field in self.fields.items():
            values = self._arrays[name][places]
            if field.dtype is np.bool_:
                bits = np.unpackbits(values, axis=1, count=prod(field.shape))
                values = bits.view(np.bool_).reshape(len(places), *field.shape)
            found[name] = values
        return found

    def following(self, places: Ints) -> Ints:
        """Places of the observations that follow; of ended trajectories, whose discount is 0, the same places."""
        return np.asarray((places + self._ahead[places]) % self.capacity)


def n_step_returns(
    rewards: NDArray[np.float64], offsets: Ints, discounts: NDArray[np.float64], n_step: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], Ints]:
    """Sums of up to n discounted rewards of complete trajectories, and where they lead.

    Args:
        rewards: shape (N,), trajectory after trajectory.
        offsets: where each begins, shape (W + 1,).
        discounts: from each decision to the next, 0 to 1, shape (N,).
        n_step: rewards that are added up, >= 1.

    Returns:
        Sums; discounts of the value that follows, 0 at the end of a trajectory; decisions until then, 0 at the end;
        each of shape (N,).
    """
    ends = np.repeat(offsets[1:], np.diff(offsets))
    left = ends - np.arange(len(rewards))
    sums, product = np.zeros(len(rewards)), np.ones(len(rewards))
    for step in range(min(n_step, int(left.max(initial=0)))):
        inside = np.flatnonzero(left > step)
        sums[inside] += product[inside] * rewards[inside + step]
        product[inside] *= discounts[inside + step]
    goes_on = left > n_step
    return sums, np.where(goes_on, product, 0.0), np.where(goes_on, n_step, 0)
