"""Observations of many decisions as tensors: a forward pass reads a ``Batch``, an epoch is stored as ``Decisions``.

The rows of a supply table after the first depend only on the absolute slot, so an epoch stores each distinct hour once
and a minibatch encodes each of its hours once: about 9 rows per decision instead of 24.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from greenbatch.learning.networks import segments

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]


class Observed(Protocol):
    """Observation of a batched environment (``greenbatch.envs.batch.Observation``): NumPy views of its buffers."""

    @property
    def environment(self) -> Integers: ...  # noqa: D102  # fields are described in Batch
    @property
    def queue(self) -> Floats: ...  # noqa: D102
    @property
    def queue_offsets(self) -> Integers: ...  # noqa: D102
    @property
    def selectable(self) -> Flags: ...  # noqa: D102
    @property
    def running(self) -> Floats: ...  # noqa: D102
    @property
    def running_offsets(self) -> Integers: ...  # noqa: D102
    @property
    def supply(self) -> Floats: ...  # noqa: D102
    @property
    def slot(self) -> Integers: ...  # noqa: D102
    @property
    def state(self) -> Floats: ...  # noqa: D102
    @property
    def delays(self) -> Flags: ...  # noqa: D102
    @property
    def image(self) -> Bytes: ...  # noqa: D102


def no_image() -> Tensor:
    """The images of decisions without any."""
    return torch.zeros(0, 0, 0, 0, dtype=torch.uint8)


@dataclass(frozen=True)
class Batch:
    """Observations of A decisions: the input of a network."""

    queue: Tensor
    """float32 (Q, kq): valid rows, decision by decision."""
    queue_offsets: Tensor
    """int64 (A + 1,)."""
    queue_owner: Tensor
    """int64 (Q,): decision of every row."""
    selectable: Tensor
    """bool (Q,)."""
    running: Tensor
    """float32 (R, kr)."""
    running_offsets: Tensor
    """int64 (A + 1,)."""
    running_owner: Tensor
    """int64 (R,)."""
    supply: Tensor
    """float32 (S, ks): distinct forecast rows; the first A are the first rows of the decisions."""
    supply_row: Tensor
    """int64 (A, f): rows of ``supply`` that form each decision's forecast."""
    state: Tensor
    """float32 (A, kg)."""
    delays: Tensor
    """bool (A, D)."""
    image: Tensor = field(default_factory=no_image)
    """uint8 (A, channels, ticks, bytes): packed resource images, see `engine.observe.image`; no channels without."""
    sequences: Tensor | None = None
    """int64 (S + 1,): where each run of consecutive decisions of one simulation begins, and A; none of them is empty.
    Without it, every decision is a run of its own. Only networks with a memory read it."""
    memory: Tensor | None = None
    """float32 (S, m): what a network with a memory knows at the beginning of each run; zeros without it."""
    shared: dict[Any, Any] = field(default_factory=dict)
    """Results that depend on the rows only, shared between actor and critic."""


def as_batch(observation: Observed, device: torch.device | str = "cpu") -> Batch:
    """Tensors of one observation for one forward pass; on a CPU they share memory with the environment's buffers."""
    return _stack([observation], by_value=False).batch(device)


class Decisions:
    """Packed observations of N decisions, from which minibatches are taken."""

    def __init__(
        self,
        queue: Tensor,
        queue_offsets: Tensor,
        selectable: Tensor,
        running: Tensor,
        running_offsets: Tensor,
        first: Tensor,
        hours: Tensor,
        hour: Tensor,
        state: Tensor,
        delays: Tensor,
        image: Tensor | None = None,
    ) -> None:
        """Arguments as in ``Batch``; ``first`` (N, ks) holds the first forecast rows ((N, 0) if there are none),
        ``hours`` (H, ks) the distinct later rows, and ``hour`` int64 (N, f - 1) their numbers.
        """
        self.queue, self.queue_offsets, self.selectable = queue, queue_offsets, selectable
        self.running, self.running_offsets = running, running_offsets
        self.first, self.hours, self.hour = first, hours, hour
        self.state, self.delays = state, delays
        self.image = torch.zeros(len(state), 0, 0, 0, dtype=torch.uint8) if image is None else image

    def __len__(self) -> int:
        return self.queue_offsets.shape[0] - 1

    @property
    def queued(self) -> Tensor:
        """Number of queue rows of every decision: int64 (N,)."""
        return self.queue_offsets[1:] - self.queue_offsets[:-1]

    def to(self, device: torch.device | str) -> Decisions:
        """The same decisions on another device."""
        return Decisions(*(part.to(device) for part in self._parts()))

    def _parts(self) -> tuple[Tensor, ...]:
        return (
            self.queue, self.queue_offsets, self.selectable, self.running, self.running_offsets,
            self.first, self.hours, self.hour, self.state, self.delays, self.image,
        )  # fmt: skip

    def take(self, chosen: Tensor, sequences: Tensor | None = None) -> Batch:
        """Batch of the decisions ``chosen``, int64 (M,), in ``sequences``, without a loop over decisions."""
        queue_rows, queue_offsets = segments.rows_of(self.queue_offsets, chosen)
        running_rows, running_offsets = segments.rows_of(self.running_offsets, chosen)
        supply, supply_row = self._supply(chosen)
        return Batch(
            queue=self.queue[queue_rows],
            queue_offsets=queue_offsets,
            queue_owner=segments.owners(queue_offsets),
            selectable=self.selectable[queue_rows],
            running=self.running[running_rows],
            running_offsets=running_offsets,
            running_owner=segments.owners(running_offsets),
            supply=supply,
            supply_row=supply_row,
            state=self.state[chosen],
            delays=self.delays[chosen],
            image=self.image[chosen],
            sequences=sequences,
        )

    def reordered(self, order: Tensor) -> Decisions:
        """The decisions ``order`` (N',), in that order."""
        queue_rows, queue_offsets = segments.rows_of(self.queue_offsets, order)
        running_rows, running_offsets = segments.rows_of(self.running_offsets, order)
        return Decisions(
            self.queue[queue_rows],
            queue_offsets,
            self.selectable[queue_rows],
            self.running[running_rows],
            running_offsets,
            self.first[order],
            self.hours,
            self.hour[order],
            self.state[order],
            self.delays[order],
            self.image[order],
        )

    def batch(self, device: torch.device | str = "cpu") -> Batch:
        """All decisions as one Batch."""
        whole = self if str(device) == "cpu" else self.to(device)
        first = torch.arange(len(self), device=whole.first.device).unsqueeze(1)
        return Batch(
            queue=whole.queue,
            queue_offsets=whole.queue_offsets,
            queue_owner=segments.owners(whole.queue_offsets),
            selectable=whole.selectable,
            running=whole.running,
            running_offsets=whole.running_offsets,
            running_owner=segments.owners(whole.running_offsets),
            supply=torch.cat([whole.first, whole.hours]),
            supply_row=torch.cat([first, whole.hour + len(self)], dim=1) if self.first.shape[1] else whole.hour,
            state=whole.state,
            delays=whole.delays,
            image=whole.image,
        )

    def _supply(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Distinct forecast rows of some decisions, and which of them form each decision's forecast."""
        if not self.first.shape[1]:
            return self.hours[:0], self.hour[chosen]
        hour = self.hour[chosen]
        used = torch.zeros(self.hours.shape[0], dtype=torch.bool, device=hour.device)
        used[hour.reshape(-1)] = True
        number = torch.cumsum(used, 0) + (chosen.shape[0] - 1)
        first = torch.arange(chosen.shape[0], device=hour.device).unsqueeze(1)
        return torch.cat([self.first[chosen], self.hours[used]]), torch.cat([first, number[hour]], dim=1)


class Copy(NamedTuple):
    """A copy of one observation, with the fields of the environment's observation."""

    environment: Integers
    queue: Floats
    queue_offsets: Integers
    selectable: Flags
    running: Floats
    running_offsets: Integers
    supply: Floats
    slot: Integers
    state: Floats
    delays: Flags
    image: Bytes


def copied(observation: Observed) -> Copy:
    """A copy that remains valid after the environment's next step."""
    return Copy(*(np.array(getattr(observation, name)) for name in Copy._fields))


def stack(observations: Sequence[Observed]) -> Decisions:
    """All decisions of a sequence of observations, in that order."""
    return _stack(observations, by_value=True)


def _stack(observations: Sequence[Observed], *, by_value: bool) -> Decisions:
    supply = _joined([each.supply for each in observations])
    hours, hour = _distinct_hours(supply, _joined([each.slot for each in observations]), by_value)
    first = supply[:, 0] if supply.shape[1] else np.zeros((len(supply), 0), dtype=np.float32)
    parts = (
        _joined([each.queue for each in observations]),
        _joined_offsets([each.queue_offsets for each in observations]),
        _joined([each.selectable for each in observations]),
        _joined([each.running for each in observations]),
        _joined_offsets([each.running_offsets for each in observations]),
        first,
        hours,
        hour,
        _joined([each.state for each in observations]),
        _joined([each.delays for each in observations]),
        _joined([each.image for each in observations]),
    )
    return Decisions(*(torch.from_numpy(np.ascontiguousarray(part)) for part in parts))


def _joined(parts: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _joined_offsets(parts: Sequence[Integers]) -> Integers:
    if len(parts) == 1:
        return np.asarray(parts[0], dtype=np.int64)
    lengths = np.concatenate([np.diff(part) for part in parts])
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _distinct_hours(
    supply: NDArray[np.generic], slot: NDArray[np.generic], by_value: bool
) -> tuple[NDArray[np.generic], Integers]:
    """Rows 1.. of (N, f, ks) forecasts as distinct rows (H, ks) and their numbers (N, f - 1).

    Rows are compared by absolute slot (cheap), with ``by_value`` also by value: nights without wind are equal, and so
    are noons beyond the normalizer's ceiling.
    """
    count, rows, columns = supply.shape
    if rows < 2:
        return np.zeros((0, columns), dtype=np.float32), np.zeros((count, 0), dtype=np.int64)
    absolute = (np.asarray(slot, dtype=np.int64)[:, None] + np.arange(1, rows)).reshape(-1)
    first = int(absolute.min(initial=0))
    where = np.full(int(absolute.max(initial=0)) - first + 1, -1)
    where[absolute - first] = np.arange(len(absolute))
    used = where >= 0
    hour = (np.cumsum(used) - 1)[absolute - first]
    table = np.ascontiguousarray(supply[:, 1:].reshape(-1, columns)[where[used]])
    if by_value:
        whole = table.view(np.dtype((np.void, table.dtype.itemsize * columns))).reshape(-1)
        _, chosen, same = np.unique(whole, return_index=True, return_inverse=True)
        table, hour = table[chosen], same.reshape(-1)[hour]
    return table, hour.reshape(count, rows - 1).astype(np.int64)
