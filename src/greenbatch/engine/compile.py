"""Compilation of the engine: before the first run, cached on disk, never stale.

Numba's own cache does not detect an edited callee in another file or a changed module constant. The cache folder is
therefore keyed by a hash of *all* engine sources, Numba's version and the CPU; any change gives a new folder.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba as _numba
import numpy as np
from llvmlite import binding as llvm
from numba.core import caching as _caching
from numba.core import config as _config

from greenbatch.engine.linking import PART, WholeCompiler, set_environments
from greenbatch.storage import user_cache

numba: Any = _numba
config: Any = _config
"""Numba's settings, which its type stubs lack."""
UserProvidedCacheLocator: Any = _caching.UserProvidedCacheLocator

Function = TypeVar("Function", bound=Callable[..., Any])

PLAIN = bool(config.DISABLE_JIT)
"""True when ``NUMBA_DISABLE_JIT=1``: the same functions run as plain Python."""

OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""How functions that create no arrays are compiled."""
_FOLDERS_KEPT = 4
_PACKAGE = __package__.partition(".")[0]
COMPILED = ("engine", "policies/compiled", "energy/slots.py", "learning/networks/distinct.py")
"""Folders and files with compiled functions."""


def sources() -> list[Path]:
    """All files with compiled functions, in order."""
    places = [Path(__file__).parents[1] / each for each in COMPILED]
    return [file for place in places for file in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]


@cache
def engine_hash() -> str:
    """Hash of everything that the compiled engine depends on (hex, 16 digits)."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for source in sources():
        digest.update(source.relative_to(root).as_posix().encode() + b"\0" + source.read_bytes() + b"\0")
    cpu = llvm.get_host_cpu_name(), str(llvm.get_host_cpu_features().flatten())
    for part in (numba.__version__, sys.version, *cpu, __file__):  # Numba keeps one cache per path of a source file
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path:
    """Folder of this engine's machine code; created on first use, when folders of old engines are removed.

    One that may not be written is used if it is filled, as in a container or a shared installation. Else, or without a
    home, there is a folder for this process.
    """
    root = user_cache("engine")
    folder = root / engine_hash()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        engines = [each for each in root.iterdir() if re.fullmatch("[0-9a-f]{16}", each.name)]
        for old in sorted(engines, key=lambda f: f.stat().st_mtime, reverse=True)[_FOLDERS_KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:
        if not _is_filled(folder):
            folder = Path(tempfile.mkdtemp(prefix="greenbatch-engine-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _is_filled(folder: Path) -> bool:
    """Whether a folder holds machine code that nobody but this user or the system's could have put there."""
    with suppress(OSError):
        return folder.stat().st_uid in {0, os.geteuid()} and any(folder.glob("*.compiled"))
    return False


@contextmanager
def announced(part: str, *, variant: str = "", kept: bool = True) -> Iterator[None]:
    """Tell the user, on standard error, when a part of the engine is compiled for the first time, or for other types.

    Args:
        part: what is being compiled, unique among the engine's parts.
        variant: for which types, where that differs: processes wait for each other only if they compile the same.
        kept: the machine code is kept, so this is said once.
    """
    done = cache_folder() / f"{part}{variant}.compiled"
    kept_here = kept and not PLAIN
    with ExitStack() as stack:
        if kept_here and not done.exists():
            stack.enter_context(_alone(done.with_suffix(".lock")))
        _tell(part, known=PLAIN or (kept and done.exists()), kept=kept)
        yield
        if kept_here and not done.exists():
            with suppress(OSError):
                done.touch()


def _alone(file: Path) -> AbstractContextManager[object]:
    """Lock a file, so that one process of this machine compiles a part and others load it; no lock where none works."""
    try:
        lock = file.open("w")
    except OSError:
        return nullcontext()
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
    return lock


def _tell(part: str, *, known: bool, kept: bool) -> None:
    if not known:
        clear = "\r\x1b[K" if sys.stderr and sys.stderr.isatty() else ""  # a line of progress may be there
        often = "once per version" if kept else "in every process"
        print(f"{clear}greenbatch: compiling the engine ({part}; {often}) ...", file=sys.stderr, flush=True)


def machine_code(
    function: Callable[..., Any],
    signature: Any = None,
    *,
    cached: bool = True,
    allocates: bool = False,
    checked: bool = False,
    apart: bool = False,
) -> Any:
    """Compile a function that Python calls.

    Args:
        function: the function.
        signature: compile for these types at once; otherwise at the first call.
        cached: keep the machine code on disk if the function is this package's.
        allocates: the function creates arrays. Other functions do without reference counting, which would cost as much
            as their work; the caller keeps the state alive.
        checked: an index out of bounds raises IndexError instead of reading whatever is there.
        apart: only compiled code calls it, see `engine.apart`.
    """
    cached = cached and function.__module__.partition(".")[0] == _PACKAGE
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder()) if cached and not PLAIN else before
    collects = gc.isenabled()
    gc.disable()  # the compiler creates many objects that live until it is done
    ensure = UserProvidedCacheLocator.ensure_cache_path
    if cached and not PLAIN and not os.access(config.CACHE_DIR, os.W_OK):
        UserProvidedCacheLocator.ensure_cache_path = lambda _: None  # Numba refuses a cache that may only be read
    try:
        options = {**OPTIONS, "_nrt": allocates, **({} if allocates else {"pipeline_class": WholeCompiler})}
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True} if apart else {}
        code = numba.njit(cache=cached, boundscheck=checked, **options)(function)
        if cached and not PLAIN:
            _forgive(code._cache)
        if signature is not None and not PLAIN:
            code.compile(signature)
            set_environments(code)
            code.disable_compile()
        return code
    finally:
        config.CACHE_DIR, UserProvidedCacheLocator.ensure_cache_path = before, ensure
        if collects:
            gc.enable()


def _part(function: Callable[..., Any], *, small: bool) -> Any:
    """Compile a function as a part of entry points; when Python calls it, it is compiled as a whole."""
    if PLAIN:
        return function
    code = numba.njit(**OPTIONS, **PART, forceinline=small, boundscheck=False)(function)
    insert, wholes, template = code._insert, cache(lambda: machine_code(function)), code.get_call_template
    widest = numba.types.unliteral

    def template_for_all_values(args: Any, named: Any) -> Any:  # Numba would compile again for each constant
        return template(tuple(map(widest, args)), {name: widest(each) for name, each in named.items()})

    def compile_whole(*args: Any, **named: Any) -> Any:
        found = wholes()
        entry_point = found._compile_for_args(*args, **named)
        for each in found.overloads.values():
            insert([kind._code for kind in each.signature.args], each.entry_point, False)
        return entry_point

    code._insert = lambda *_: None  # a part has no machine code that Python could call
    code._compile_for_args, code.get_call_template = compile_whole, template_for_all_values
    return code


ENTRIES: dict[str, Any] = {}
"""Name -> compiled function, for every entry point used so far."""
LOADERS: list[Callable[[Any], None]] = []
"""Given the types of an entry point, each loads what that calls by address, see `engine.apart`."""


def entry(
    name: str, function: Callable[..., Any], signature: Any, *, allocates: bool = False, told: bool = True
) -> Any:  # fmt: skip
    """An entry point of the engine, compiled or loaded from the cache.

    Args:
        name: unique among the engine's entry points.
        function: what it does.
        signature: its types. Arguments of other types are not detected: a check would cost more than a step.
        allocates: see `machine_code`.
        told: tell the user when it is compiled for the first time; False if that takes a second at most.
    """
    for load in LOADERS if not PLAIN else ():
        load(signature.args)
    types = hashlib.sha256(str(signature.args).encode()).hexdigest()[:16]
    with announced(name, variant=f"-{types}", kept=is_ours(signature.args)) if told else nullcontext():
        ENTRIES[name] = code = machine_code(function, signature, allocates=allocates)
    return code if PLAIN else code.overloads[signature.args].entry_point


def is_ours(kind: Any) -> bool:
    """Whether a type, or each of several, is made of classes of `COMPILED` only, so that its code can be cached.

    The cache would not notice a change in a class or function elsewhere.
    """
    if isinstance(kind, tuple | list):
        return all(map(is_ours, kind))
    kind = getattr(kind, "of", kind)  # what a `Reference` refers to
    made = getattr(kind, "instance_class", None)
    if made is not None and not made.__module__.startswith(
        tuple(f"{_PACKAGE}.{each.replace('/', '.')}." for each in COMPILED)
    ):
        return False
    return is_ours(kind.types) if isinstance(kind, numba.types.BaseTuple) else True


def _forgive(on_disk: Any) -> None:
    """Make a function ignore its cache if a file is damaged or cannot be written, or for types of other packages."""
    load, save = on_disk.load_overload, on_disk.save_overload

    def load_or_compile(signature: Any, *what: Any) -> Any:
        if not is_ours(_arguments(signature)):
            return None
        try:
            return load(signature, *what)
        except Exception:  # noqa: BLE001  (reading a damaged pickle raises anything)
            with suppress(OSError):
                on_disk.flush()
            return None

    def save_if_possible(signature: Any, *what: Any) -> None:
        if is_ours(_arguments(signature)):
            with suppress(OSError), _alone(cache_folder() / "saving.lock"):  # both would change the same index
                save(signature, *what)

    on_disk.load_overload, on_disk.save_overload = load_or_compile, save_if_possible


def _arguments(signature: Any) -> Any:
    return getattr(signature, "args", signature)


def compiled(function: Function) -> Function:
    """Compile a function of the engine on its first call (decorator)."""
    return cast(Function, _part(function, small=False))


def compiled_small(function: Function) -> Function:
    """Compile a small function of the engine and inline its machine code into its callers (decorator)."""
    return cast(Function, _part(function, small=True))


@compiled_small
def whole(number: int) -> int:
    """A whole number of any type as one of 8 bytes: a function is compiled again for each type of argument."""
    return np.int64(number)  # type: ignore[return-value]


def compiled_allocating(function: Function) -> Function:
    """Compile a function of the engine that creates arrays, on its first call (decorator)."""
    return cast(Function, machine_code(function, allocates=True))
