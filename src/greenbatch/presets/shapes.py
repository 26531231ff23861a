"""Shapes of a preset's tables; without torch, so that trained networks can run without it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from greenbatch.errors import InputError

if TYPE_CHECKING:
    from greenbatch.presets.preset import Preset


@dataclass(frozen=True)
class Shapes:
    """Columns and rows of the tables that a network reads."""

    queue: tuple[str, ...]
    """Column names of the queue table."""
    queue_rows: int
    """Slots of the published, padded table: the maximum number of rows of a decision."""
    empty: tuple[float, ...]
    """A padded queue row."""
    running: tuple[str, ...] = ()
    running_rows: int = 0
    supply: tuple[str, ...] = ()
    forecast: int = 0
    """Forecast slots."""
    state: tuple[str, ...] = ()
    delays: int = 1
    """Number of delays; 1: there is no second action."""
    extras: int = 0
    """Last rows of the queue that are no jobs but further actions: suspending, then waiting."""
    each: int = 1
    """Rows of each job: its pairs with nodes, if these are chosen."""
    image: tuple[int, int] = (0, 0)
    """Ticks and units (processors, then GPUs) of the resource image; 0 for none."""


def shapes_of(preset: Preset) -> Shapes:
    """Shapes of a preset's tables; suspending and waiting, if allowed, are one more row of the queue each.

    Raises:
        InputError: the padding row does not have as many numbers as the table has columns.
    """
    seen, action = preset.observation, preset.action
    tables = (seen.queue, seen.running, seen.supply, seen.state)
    names = [tuple(column.feature for column in table.columns) for table in tables]
    if seen.queue.empty and len(seen.queue.empty) != len(names[0]):
        problem = f"has {len(seen.queue.empty)} numbers for {len(names[0])} columns"
        raise InputError(problem, field="observation.queue.empty", fix="give one per column, or leave it out")
    return Shapes(
        queue=names[0],
        queue_rows=seen.queue.rows * max(seen.queue.nodes, 1) + int(action.suspend) + int(action.wait),
        empty=seen.queue.empty or (0.0,) * len(names[0]),
        running=names[1],
        running_rows=seen.running.rows if names[1] else 0,
        supply=names[2],
        forecast=seen.supply.rows if names[2] else 0,
        state=names[3],
        delays=len(action.delays),
        extras=int(action.suspend) + int(action.wait),
        each=max(seen.queue.nodes, 1),
        image=(seen.image.ticks, seen.image.units) if seen.image.ticks else (0, 0),
    )


Sees = Literal["both", "image", "jobs"]
"""What a network with fixed slots sees: the resource ``image``, vectors of ``jobs`` and of the system, or ``both``."""


class Seen(NamedTuple):
    """Sizes of what a network with fixed slots sees."""

    image: tuple[int, int, int] | None
    """Channels, ticks and units of the image; None without one."""
    jobs: int
    """Numbers of the vectors of all jobs and of the system together; 0 without them."""

    @property
    def width(self) -> int:
        """Numbers of all of it together."""
        return math.prod(self.image or (0,)) + self.jobs


def seen_by(shapes: Shapes, sees: str) -> Seen:
    """What a network with the option ``sees`` reads of a preset's tables.

    Raises:
        InputError: there is no such option, or nothing to see.
    """
    from greenbatch.engine.observe.image import CHANNELS

    if sees not in get_args(Sees):
        raise InputError(f"is {sees!r}", field="network.sees", fix="one of " + ", ".join(get_args(Sees)))
    ticks, units = shapes.image
    if not ticks and sees == "image":
        raise InputError("there is no image to see", field="network.sees", fix="set observation.image.ticks")
    jobs = (shapes.queue_rows - shapes.extras) * len(shapes.queue) + len(shapes.state)
    seen = Seen((len(CHANNELS), ticks, units) if ticks and sees != "jobs" else None, jobs if sees != "image" else 0)
    if seen.image is None and not seen.jobs:
        raise InputError("sees neither an image nor jobs", field="network.kind", fix="name columns of the queue")
    return seen
