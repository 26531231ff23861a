"""Machines of a Ray cluster (https://docs.ray.io), which an optional dependency connects to.

A function is put into the cluster's object store once; what travels for each item is its description, and back its
result. Ray repeats the work of a lost process or machine; a machine that joins is used. A process refuses work if it
has other versions than this one, because results could then depend on where they are computed.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import socket
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from greenbatch.errors import GreenbatchError, InputError
from greenbatch.workers.processes import safe_path

LOCAL = "local"
"""Address of a cluster that is started on this machine for one command."""
LIMIT_S = 20.0
"""How long to wait for a cluster. [s]"""
_AHEAD = 2
"""Items per processor that are with the cluster at a time: few, so that one that joins finds work."""
_LOST = 10
"""How often Ray repeats an item whose process or machine is lost."""


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A Ray cluster as workers."""

    address: str
    """``local``, ``auto``, HOST:PORT or ray://HOST:PORT."""

    def __post_init__(self) -> None:
        if find_spec("ray") is None:
            fix = 'pip install "greenbatch[scale]"'
            raise InputError("requires Ray, which is not installed", field="--ray", fix=fix)

    @property
    def text(self) -> str:
        """Where work is done, in words."""
        return "on this machine's processors by Ray" if self.address == LOCAL else f"on the Ray cluster {self.address}"

    def function(self, task: bytes) -> Callable[[Iterable[Any]], Generator[tuple[Any, Any]]]:
        """A function on the cluster: items, all different -> each with its result, as it completes.

        It raises the error of the first item that failed, and `GreenbatchError` if the cluster lost an item several
        times or has other versions.

        Args:
            task: a function, see `processes.portable`.

        Raises:
            GreenbatchError: the cluster cannot be reached.
        """
        ray = _connected(self.address)
        with _in_one_line(ray):
            held = _Held(hashlib.sha256(task).hexdigest(), [ray.put(task)])

        def each(items: Iterable[Any]) -> Generator[tuple[Any, Any]]:
            with _in_one_line(ray):
                yield from _each(ray, held, list(items))

        return each


@dataclass(frozen=True, slots=True)
class _Held:
    """A function in the object store."""

    key: str
    """Checksum of its bytes."""
    reference: list[Any]
    """Where its bytes are; in a list, so that Ray hands over the reference rather than the bytes for each item."""


def _each(ray: Any, held: _Held, items: Sequence[Any]) -> Generator[tuple[Any, Any]]:
    attempt = ray.remote(_attempt).options(num_cpus=1, max_retries=_LOST)
    ours, following, pending = fingerprint(), 0, dict[Any, int]()
    failed: dict[int, Exception] = {}
    try:
        while pending or (following < len(items) and not failed):
            room = _AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)
            while following < len(items) and len(pending) < room and not failed:
                pending[attempt.remote(held, items[following], ours)] = following
                following += 1
            done, _ = ray.wait(list(pending), num_returns=1, timeout=LIMIT_S)
            for reference in done:
                number = pending.pop(reference)
                result, error = ray.get(reference)
                if error is not None:
                    failed[number] = error
                    later = [each for each, place in pending.items() if place > number]
                    _cancel(ray, later)
                    pending = {each: place for each, place in pending.items() if place < number}
                elif not failed:
                    yield items[number], result
        if failed:
            raise failed[min(failed)]
    finally:
        _cancel(ray, pending)


def _cancel(ray: Any, references: Iterable[Any]) -> None:
    for reference in references:
        with suppress(Exception):
            ray.cancel(reference, force=True)


_FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Checksum -> function; a process of the cluster keeps the last one, and what that remembers."""


def _attempt(held: _Held, item: Any, expected: dict[str, str]) -> tuple[Any, Exception | None]:
    """The result of an item or the error, on a machine of the cluster."""
    if differing := sorted(name for name, value in expected.items() if fingerprint().get(name) != value):
        name, theirs = differing[0], fingerprint().get(differing[0], "not installed")
        problem = f"a machine of the cluster has {name} {theirs}, this one {expected[name]}"
        return None, GreenbatchError(f"--ray: {problem} (install the same versions on all machines)")
    try:
        if held.key not in _FUNCTIONS:
            import ray

            _FUNCTIONS.clear()
            _FUNCTIONS[held.key] = pickle.loads(ray.get(held.reference[0]))  # noqa: S301  (our own process made it)
        return _FUNCTIONS[held.key](item), None
    except Exception as error:  # noqa: BLE001  (raised again where the item comes from)
        return None, error


@cache
def fingerprint() -> dict[str, str]:
    """Versions that a result can depend on."""
    from greenbatch.provenance import source_sha256, versions

    return {**versions(), "greenbatch source": source_sha256()[:16]}


def _connected(address: str) -> Any:
    """Ray, connected to a cluster for the rest of this process, unless it is connected already.

    Raises:
        GreenbatchError: there is no such cluster, or it has another version of Ray or Python.
    """
    import logging

    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else Ray warns where there is no GPU
    import ray

    if ray.is_initialized():
        return ray
    _check_reachable(address)
    started: dict[str, Any] = {"num_cpus": _processors(), "include_dashboard": False} if address == LOCAL else {}
    with _in_one_line(ray, address), safe_path():
        ray.init(
            address=address, logging_level=logging.CRITICAL, log_to_driver=False, configure_logging=False, **started
        )
    return ray


def _check_reachable(address: str) -> None:
    """Refuse an address that nobody answers at; Ray itself would try for minutes.

    Raises:
        GreenbatchError: nobody answers.
    """
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not (colon and port.isdecimal()):
        return
    try:
        socket.create_connection((host, int(port)), timeout=LIMIT_S).close()
    except OSError as error:
        problem, fix = f"no cluster answers at {address}: {error.strerror or error}", "check the address: ray status"
        raise GreenbatchError(f"--ray: {problem} ({fix})") from None


def _processors() -> int:
    import loky

    return int(loky.cpu_count())


@contextmanager
def _in_one_line(ray: Any, address: str = "") -> Iterator[None]:
    """Errors of Ray as one line."""
    try:
        yield
    except GreenbatchError:
        raise
    except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError):
        problem = "the object store and the disk behind it are full"
        fix = "free some space, or start the cluster with a larger --object-store-memory"
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError) as error:
        problem = f"work was lost {_LOST} times: {str(error).splitlines()[0]}"
        fix = "check the memory of the machines"
    except ray.exceptions.RayError as error:
        problem, fix = str(error).splitlines()[-1], "check the cluster: ray status"
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        if not address:
            raise
        problem = f"no usable cluster at {address}: {str(error).splitlines()[0]}"
        fix = "start one with ray start --head, or give --ray local"
    else:
        return
    raise GreenbatchError(f"--ray: {problem} ({fix})") from None
