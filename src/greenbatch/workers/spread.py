"""The one place where work is distributed: in this process, in several, or on the machines of a Ray cluster.

An item is a small description of work, such as a window or a seed; the function that does the work is sent once, with
all that it refers to.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TypeVar

from greenbatch.arguments import whole_number
from greenbatch.workers.processes import Broken, Processes, portable
from greenbatch.workers.ray_cluster import RayCluster

Item = TypeVar("Item")
Result = TypeVar("Result")
Workers = int | RayCluster
"""Number of processes on this machine, or a Ray cluster."""

WORTH_S = 10.0
"""Work that takes longer is distributed by default; processes take a second or two to start. [s]"""


def checked(workers: Workers | None) -> Workers | None:
    """What a user gave as workers; None to choose.

    Raises:
        InputError: it is neither a Ray cluster nor a whole number from 1 on.
    """
    return workers if workers is None or isinstance(workers, RayCluster) else whole_number(workers, "workers", lowest=1)


def choose(asked: Workers | None, work_s: float) -> Workers:
    """Where to do some work.

    Args:
        asked: what the user asked for; None to choose a number of processes.
        work_s: estimated duration of the work in one process. [s]
    """
    if asked is not None:
        return asked
    if work_s < WORTH_S or multiprocessing.current_process().daemon:
        return 1
    import loky

    return int(loky.cpu_count())


def several(workers: Workers) -> bool:
    """Whether work is done elsewhere than in this process."""
    return isinstance(workers, RayCluster) or workers > 1


def where(workers: Workers) -> str:
    """In words, such as ``in 4 processes``."""
    return workers.text if isinstance(workers, RayCluster) else f"in {workers} processes"


@contextmanager
def pool(
    here: Callable[[Item], Result], there: Callable[[Item], Result], workers: Workers
) -> Iterator[Callable[[Iterable[Item]], Generator[tuple[Item, Result]]]]:
    """Workers for several lots of items, such as the generations of a search: they start once.

    Args:
        here: computes a result in this process.
        there: computes the same in another process; pickled with everything it refers to. A process keeps it, and what
            it remembers, as long as the pool is open.
        workers: where. Work that cannot be pickled is done in this process, and so is what is left when processes of
            this machine are killed; work of a lost machine is done again on another.

    Yields:
        Items, all different -> each item with its result, as it completes. It raises the error of the first item that
        failed, and `GreenbatchError` if the Ray cluster cannot be used.
    """
    task = portable(there) if several(workers) else None
    if task is None:
        yield lambda items: ((item, here(item)) for item in items)
    elif isinstance(workers, RayCluster):
        yield workers.function(task)
    else:
        with closing(Processes(task, workers)) as processes:
            yield lambda items: _in_processes(list(items), here, processes)


def _in_processes(
    left: list[Item], here: Callable[[Item], Result], processes: Processes
) -> Generator[tuple[Item, Result]]:  # fmt: skip
    if len(left) > 1:
        try:
            with closing(processes.each(tuple(left))) as results:
                for item, result in results:
                    left.remove(item)
                    yield item, result
        except Broken:  # a process was killed or could not start: do the rest here
            pass
    for item in left:
        yield item, here(item)


def spread(
    items: Iterable[Item], here: Callable[[Item], Result], there: Callable[[Item], Result], workers: Workers
) -> Generator[tuple[Item, Result]]:
    """Yield each item with its result as it completes; a `pool` for one lot of items."""
    left = list(items)
    if not isinstance(workers, RayCluster):
        workers = min(workers, len(left))
    if left:
        with pool(here, there, workers) as each:
            yield from each(left)
