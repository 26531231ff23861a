"""Processes of this machine.

Processes are used rather than threads: compiled code releases the interpreter's lock, but the code around it does not,
and models and policies in Python hold the lock nearly all the time (docs/performance.md has the measurements). Loky is
used rather than `multiprocessing`: scripts need no ``if __name__ == "__main__"``, and rules defined in a script or
notebook can be sent.

A process ends by itself when its parent is gone, however that ended. Processes start in Python's safe-path mode:
otherwise files such as ``queue.py`` in the current folder would be imported, and executed.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

_IDLE_S = 60.0
"""An idle process ends after this time. [s]"""
_ORPHAN_S = 0.5
"""How often a process looks for its parent. [s]"""
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command."""


class Broken(Exception):
    """A process was killed, or could not start."""


def portable(task: Callable[..., Any]) -> bytes | None:
    """A function as bytes; None if it cannot be pickled."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(task))
    except Exception:  # noqa: BLE001  (pickling may raise anything)
        return None


_TASKS: list[Callable[..., Any]] = []
"""The function of this process, if it is one of the workers."""


def _begin(task: bytes, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS[1:])
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _TASKS[:] = [pickle.loads(task)]  # noqa: S301  (our own process made it)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_ORPHAN_S)
    os._exit(1)


def _carry_out(item: Any) -> Any:
    return _TASKS[0](item)


class Processes:
    """Processes with a function; they start with the first items and stay until `close`."""

    def __init__(self, task: bytes, workers: int) -> None:
        self._task, self._workers = task, workers
        self._executor: Any = None

    def each(self, items: Sequence[Any]) -> Generator[tuple[Any, Any]]:
        """Each item with its result, as it completes.

        Raises:
            Exception: the error of the first item that failed.
            Broken: a process was killed; what was not yielded is not done.
        """
        from concurrent.futures import as_completed

        from loky.process_executor import BrokenProcessPool

        complete = False
        try:
            with safe_path(), _signals_later():
                executor = self._started()
                futures = {executor.submit(_carry_out, item): item for item in items}
            for future in as_completed(futures):
                if future.exception() is not None:
                    break
                yield futures[future], future.result()
            for future in futures:
                future.result()  # raises the error of the first item, whichever failed first
            complete = True
        except BrokenProcessPool as error:
            raise Broken from error
        finally:
            if not complete:
                self.close()

    def close(self) -> None:
        """End the processes, whatever they do."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            self._executor = None

    def _started(self) -> Any:
        from loky.process_executor import ProcessPoolExecutor

        if self._executor is None:
            begin = {"initializer": _begin, "initargs": (self._task, os.getpid()), "env": {_SAFE: "1"}}
            self._executor = ProcessPoolExecutor(self._workers, timeout=_IDLE_S, **begin)
        return self._executor


_SAFE = "PYTHONSAFEPATH"


@contextmanager
def safe_path() -> Iterator[None]:
    """Python processes started here, and by those, do not import from the current folder."""
    before = {name: value for name, value in os.environ.items() if name == _SAFE}
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        del os.environ[_SAFE]
        os.environ |= before


@contextmanager
def _signals_later() -> Iterator[None]:
    """Signals that end the command are heard at the end of this context, so that no process is left half-started.

    Processes started here inherit the block, until they ignore Ctrl-C themselves; this process ends them.
    """
    from multiprocessing.resource_tracker import ensure_running

    heard: list[int] = []
    handlers = {}
    with suppress(ValueError):  # not the main thread, which hears them
        for number in _STOPS:
            if callable(found := signal.getsignal(number)):
                handlers[number] = found
                signal.signal(number, lambda told, _: heard.append(told))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        ensure_running()  # starting it lifts the block
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if heard:
            signal.raise_signal(signal.Signals(heard[0]))
