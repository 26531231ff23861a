"""Distribute work over processes; the results do not depend on their number.

Processes are used rather than threads: compiled code releases the interpreter's lock, but the code around it does not,
and models and policies in Python hold the lock nearly all the time (docs/performance.md has the measurements). Loky is
used rather than `multiprocessing`: scripts need no ``if __name__ == "__main__"``, and rules defined in a script or
notebook can be sent.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

WORTH_S = 10.0
"""Work that takes longer is distributed by default; processes take a second or two to start. [s]"""
_IDLE_S = 60.0
"""An idle process ends after this time, in case this one was killed. [s]"""


def processes(asked: int | None, work_s: float) -> int:
    """Number of processes to use.

    Args:
        asked: the requested number; None to choose.
        work_s: estimated duration of the work in one process. [s]
    """
    if asked is not None:
        return asked
    if work_s < WORTH_S or multiprocessing.current_process().daemon:
        return 1
    import loky

    return int(loky.cpu_count())


def spread(
    items: Iterable[Item], here: Callable[[Item], Result], there: Callable[[Item], Result], workers: int
) -> Generator[tuple[Item, Result]]:
    """Yield each item with its result as it completes.

    Args:
        items: the items, all different.
        here: computes a result in this process.
        there: computes the same in another process; pickled with everything it refers to.
        workers: number of processes; 1 for this one only. Work that cannot be pickled is done in this one.

    Raises:
        Exception: the error of the first item that failed.
    """
    left = list(items)
    if workers > 1 and len(left) > 1 and (task := _portable(there)) is not None:
        from loky.process_executor import BrokenProcessPool

        with suppress(BrokenProcessPool):  # a process was killed or could not start: do the rest here
            for item, result in _elsewhere(task, tuple(left), min(workers, len(left))):
                left.remove(item)
                yield item, result
    for item in left:
        yield item, here(item)


def _portable(task: Callable[..., Any]) -> bytes | None:
    """A function as bytes; None if it cannot be pickled."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(task))
    except Exception:  # noqa: BLE001  (pickling may raise anything)
        return None


@lru_cache(maxsize=1)
def _received(task: bytes) -> Callable[..., Any]:
    made: Callable[..., Any] = pickle.loads(task)  # noqa: S301  (our own process made it)
    return made


def _carry_out(task: bytes, item: Any) -> Any:
    return _received(task)(item)


def _elsewhere(task: bytes, items: tuple[Any, ...], workers: int) -> Iterator[tuple[Any, Any]]:
    from concurrent.futures import as_completed
    from multiprocessing.resource_tracker import ensure_running

    from loky.process_executor import ProcessPoolExecutor

    executor = ProcessPoolExecutor(max_workers=workers, timeout=_IDLE_S, initializer=_ignore_ctrl_c)
    try:
        ensure_running()  # starting it lifts the block
        with _ctrl_c_blocked():
            futures = {executor.submit(_carry_out, task, item): item for item in items}
        for future in as_completed(futures):
            if future.exception() is not None:
                break
            yield futures[future], future.result()
        for future in futures:
            future.result()  # raises the error of the first item, whichever failed first
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def _ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Processes started here inherit the block, until they ignore Ctrl-C themselves; this process ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
