"""Machine code on disk: one file for each entry point and the types that it was compiled for, never stale.

The name of a file has the `fingerprint` of all that it is made of. What has not been used for long is removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core import compiler, runtime, serialize

from greenbatch.machine_code.fingerprint import PACKAGE, classes_in, fingerprint
from greenbatch.storage import user_cache

LONGEST_UNUSED_S = 30 * 86_400.0
"""Machine code that has not been used for so long is removed when other code is kept."""
_OLD = "[0-9a-f]{16}"
"""Name of a folder of an earlier version, which had one for each state of the sources."""


def cache_folder() -> Path:
    """Folder of all machine code."""
    return user_cache("engine")


def is_ours(kind: Any) -> bool:
    """Whether a type, or each of several, is made of classes of this package only.

    Code for others is not kept: it could not be loaded before their files are.
    """
    return all(made.__module__.partition(".")[0] == PACKAGE for made in classes_in(kind))


class Kept:
    """The machine code of one function that is kept, as Numba asks for it."""

    def __init__(self, function: Callable[..., Any], how: str) -> None:
        """Of a function that is compiled in some way, which is a part of the name."""
        self.function, self.how, self.loaded = function, how, 0
        self._files: dict[Any, Path | None] = {}

    def file(self, signature: Any) -> Path | None:
        """Where the code for some types is or will be; None if it is not kept."""
        kinds = getattr(signature, "args", signature)
        if kinds not in self._files:
            ours = self.function.__module__.partition(".")[0] == PACKAGE and is_ours(kinds)
            made_of = hashlib.sha256(f"{self.how} {fingerprint(self.function, kinds)}".encode()).hexdigest()[:16]
            name = f"{self.function.__module__.partition('.')[2]}.{self.function.__name__}-{made_of}.code"
            self._files[kinds] = cache_folder() / name if ours else None
        return self._files[kinds]

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The code for some types; None if there is none, or if its file is damaged or somebody else's."""
        file = self.file(signature)
        try:
            if file is None or file.stat().st_uid not in {0, os.geteuid()}:
                return None
            # not as Numba does it, which would also import all that it can compile: that takes half a second
            runtime.rtsys.initialize(context)
            code = compiler.CompileResult._rebuild(context, *pickle.loads(file.read_bytes()))  # noqa: S301
            with suppress(OSError):
                os.utime(file)
        except Exception:  # noqa: BLE001  (reading a damaged pickle raises anything)
            return None
        self.loaded += 1
        return code

    def save_overload(self, signature: Any, code: Any) -> None:
        """Keep code, if there is room."""
        if (file := self.file(signature)) is not None:
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                beside = file.with_suffix(f".{os.getpid()}")
                *rest, environments = code._reduce()
                used = tuple(each for each in environments if each.consts)  # each imports the module of its function
                beside.write_bytes(serialize.dumps((*rest, used)))
                beside.replace(file)
                _remove_unused(file.parent)


@contextmanager
def announced(file: Path | None, part: str) -> Iterator[None]:
    """Let one process of this machine compile what is kept in a file, and others load it.

    There is no lock where none works, or where there is code to load.

    Args:
        file: where the code is or will be; None if it is not kept.
        part: what the user is told is compiled, on standard error; nothing if it is empty.
    """
    lock = None
    if file is not None and not file.exists():
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            lock = file.with_suffix(".lock").open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        if part and (file is None or not file.exists()):
            clear = "\r\x1b[K" if sys.stderr and sys.stderr.isatty() else ""  # a line of progress may be there
            often = "in every process" if file is None else "once per version"
            print(f"{clear}greenbatch: compiling the engine ({part}; {often}) ...", file=sys.stderr, flush=True)
        yield
    finally:
        if lock is not None:
            lock.close()


def _remove_unused(folder: Path) -> None:
    """Remove what no run has used for long, in files, and in the folders of earlier versions."""
    before_s = time.time() - LONGEST_UNUSED_S
    for each in folder.iterdir():
        if each.stat().st_mtime < before_s and (each.is_file() or re.fullmatch(_OLD, each.name)):
            shutil.rmtree(each, ignore_errors=True) if each.is_dir() else each.unlink(missing_ok=True)
