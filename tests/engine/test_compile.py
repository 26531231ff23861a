"""The compile cache: said once, loaded later, and never stale."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import pytest

import greenbatch
from greenbatch.energy.slots import interval_at
from greenbatch.machine_code.compile import machine_code
from greenbatch.machine_code.kept import announced, cache_folder

pytestmark = pytest.mark.compiled

SIMULATE = """
import json
import numpy as np
from numba.core import event
from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.machine_code.compile import ENTRIES
from greenbatch.machine_code.fingerprint import functions
from greenbatch.machine_code.kept import cache_folder
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

linked, within, depth = [], set(), []

class Compiling(event.Listener):
    def on_start(self, each):
        function = each.data["dispatcher"].py_func
        if function.__module__.startswith("greenbatch."):
            linked.append(function)
            if not depth:
                within.update(functions(function, each.data["args"]))
        depth.append(function)
    def on_end(self, each):
        depth.pop()

event.register("numba:compile", Compiling())

def starts(submit, run, processors, power):
    columns = {"submit_s": submit, "run_time_s": run, "processors": processors, "power_w": power}
    site = Site(name="s", step_s=100.0, sources_w={"all": np.array([50.0])}, repeat=True)
    cluster = Cluster.pooled(2, idle_power_per_machine_w=0.0)
    rule = scheduler("lptpn-published:sigma=100")
    return simulate(Workload.from_columns("x", columns), cluster, site, Rules(), rule).start_s.tolist()

print(json.dumps({
    "little brown": starts([0, 1], [10, 6], [1, 1], [50.0, 10.0]),
    "order": starts([0, 1, 2], [10, 6, 5], [2, 2, 2], [1.0, 1.0, 1.0]),
    "loaded": ENTRIES["lptpn-published"]._cache.loaded,
    "linked": len(set(linked)),
    "unseen": sorted({f"{each.__module__}.{each.__qualname__}" for each in linked if each not in within}),
    "folder": str(cache_folder()),
}))
"""

BOOKS = """
import numpy as np
from types import SimpleNamespace
from greenbatch.cluster import Cluster
from greenbatch.engine.accounts import books
outcome = SimpleNamespace(
    profile_time_s=np.array([0.0, 10.0]), profile_load_w=np.array([7.0, 5.0]), profile_command_w=None, site=None,
    cluster=Cluster.pooled(1, idle_power_per_machine_w=5.0),
)
print(books(outcome, 0.0, 20.0).grid_j)
"""


class Copy:
    """A copy of the package in a folder of its own, with a cache of its own.

    Machine code is not optimized: which functions it holds, and what it gives, is the same.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        package = Path(greenbatch.__file__).parent
        shutil.copytree(package, folder / "greenbatch", ignore=shutil.ignore_patterns("__pycache__"))

    @property
    def engine(self) -> Path:
        return self.folder / "greenbatch" / "engine"

    def edit(self, file: str, old: str, new: str) -> None:
        text = (self.engine / file).read_text()
        assert text.count(old) == 1
        (self.engine / file).write_text(text.replace(old, new))

    def run(self, code: str, *arguments: str) -> tuple[Any, str]:
        """Output as JSON, and what stood on standard error."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "XDG_CACHE_HOME": str(self.cache)}
        environment["NUMBA_OPT"] = "0"
        environment.pop("NUMBA_DISABLE_JIT", None)
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code, *arguments], env=environment, cwd=self.folder,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


def test_compiled_once_said_once_and_loaded_later(copy: Copy) -> None:
    cold, said = copy.run(SIMULATE)
    parts = ("events", "lptpn-published")
    assert said.splitlines() == [f"greenbatch: compiling the engine ({part}; once per version) ..." for part in parts]
    assert cold["loaded"] == 0
    assert cold["little brown"] == [0, 1]  # 60 J are less than 100 J
    assert cold["order"] == [0, 10, 16]  # the larger one first
    assert cold["linked"] > 150
    assert cold["unseen"] == [], "machine code is kept under a fingerprint of all functions that are linked"
    warm, said = copy.run(SIMULATE)
    assert said == ""
    assert warm == {**cold, "loaded": 1, "linked": 0}
    assert Path(warm["folder"]).is_relative_to(copy.cache)


def test_what_was_compiled_is_never_stale(copy: Copy) -> None:
    """A changed constant and a changed callee of a callee are compiled anew; a comment and a docstring are not."""
    kept = copy.cache / "greenbatch" / "engine"

    def files() -> set[str]:
        return {file.name for file in kept.glob("*.code")}

    assert copy.run(BOOKS)[0] == 120.0
    before = files()
    copy.edit("power/balance.py", "NO_STORAGE = Stored(0.0, ", "# A comment.\nNO_STORAGE = Stored(0.0, ")
    copy.edit("power/balance.py", "Add a piece to the ledger; ", "Add one piece to the ledger; ")
    copy.edit(
        "power/storage.py", "return bus_w * battery.charge_efficiency", "return 2.0 * bus_w * battery.charge_efficiency"
    )
    assert copy.run(BOOKS)[0] == 120.0
    changed = {name.rsplit("-", 1)[0] for name in files() - before}
    assert changed == {"engine.power.supply.cut_and_enter", "engine.accounts.replay_profile"}, "those that charge"
    between = files()
    copy.edit("power/balance.py", "NO_STORAGE = Stored(0.0, ", "NO_STORAGE = Stored(1.0, ")  # which charges with 1 W
    copy.edit("power/balance.py", "ledger.grid_j += import_w * seconds", "ledger.grid_j += 2.0 * import_w * seconds")
    assert copy.run(BOOKS)[0] == 280.0, "140 with the constant alone, 240 with the callee alone"
    assert len(files()) == len(between) + 2


# ---------------------------------------------------------------- one function, in this process


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for this process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def one() -> list[float]:
    """What a small function gives that is compiled or loaded now, and whether it was loaded."""
    function = getattr(interval_at, "py_func", interval_at)
    code = machine_code(function, numba.float64(*[numba.float64] * 3), told="one")
    return [code(25.0, 5.0, 10.0), code._cache.loaded]


def test_only_who_compiles_the_same_types_waits(cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    @contextmanager
    def compiling(variant: str) -> Iterator[None]:
        file = cache_folder() / f"part{variant}.code"
        with announced(file, "part"):
            yield
            file.touch()

    def compiles(variant: str) -> None:
        with compiling(variant):
            pass

    waits, others = {}, []
    with compiling("-one"):
        for variant in ("-one", "-other"):
            others.append(other := threading.Thread(target=compiles, args=(variant,), daemon=True))
            other.start()
            other.join(timeout=0.5 if variant == "-one" else 30)
            waits[variant] = other.is_alive()
    for other in others:
        other.join(timeout=30)
    compiles("-third")
    assert waits == {"-one": True, "-other": False}
    said = capfd.readouterr().err
    assert said.count("compiling the engine (part; once per version)") == 3, "each kind of machine is told"
    assert cache_folder().is_relative_to(cache)


def test_a_home_that_cannot_be_written_does_no_harm(cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cache.write_text("a file where the cache folder should be")
    assert one() == [2.0, 0]
    assert capfd.readouterr().err.count("compiling") == 1


def test_what_no_run_has_used_for_long_is_removed(cache: Path) -> None:
    kept = cache / "greenbatch" / "engine"
    kept.mkdir(parents=True)
    names = ("engine.x-0.code", "0123456789abcdef", "a-copy")  # of this version, of an earlier one, and not ours
    for name, age_s in [*((name, 40 * 86_400) for name in names), ("engine.y-0.code", 20 * 86_400)]:
        (kept / name).mkdir(parents=True) if "." not in name else (kept / name).touch()
        os.utime(kept / name, (time.time() - age_s,) * 2)
    assert one() == [2.0, 0]
    left = {each.name for each in kept.iterdir()}
    assert left >= {"a-copy", "engine.y-0.code"}
    assert not left & {"engine.x-0.code", "0123456789abcdef"}


@pytest.mark.parametrize("content", [b"garbage", b""])
def test_a_damaged_cache_is_made_again(cache: Path, content: bytes) -> None:
    assert one() == [2.0, 0]
    files = list(cache.rglob("*.code"))
    assert files
    for file in files:
        file.write_bytes(content)
    assert one() == [2.0, 0]
    assert all(file.stat().st_size > len(content) for file in files)


def test_a_cache_without_room_does_no_harm(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> None:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(Path, "write_bytes", write)
    assert one() == [2.0, 0]
    assert not list(cache.rglob("*.code"))


def bound_by_permissions() -> None:
    """The user of the system is subject to permissions like everybody else."""
    import ctypes

    drop, dac_override = 24, 1
    ctypes.CDLL(None).prctl(drop, dac_override)


LOADS = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from test_compile import one
print(json.dumps(one()))
"""


def test_a_filled_cache_that_may_not_be_written_is_used(
    cache: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As in a container image; every command compiled anew, and left a folder."""
    assert one() == [2.0, 0]
    assert "compiling" in capfd.readouterr().err
    for place in cache.rglob("*"):
        place.chmod(0o555 if place.is_dir() else 0o444)
    try:
        done = subprocess.run(
            [sys.executable, "-c", LOADS, json.dumps([str(Path(__file__).parent)])], capture_output=True, text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)}, check=True, preexec_fn=bound_by_permissions,
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("[2.0, 1]\n", "")
        assert not list(tmp_path.glob("greenbatch-engine-*"))
    finally:
        for place in [cache, *cache.rglob("*")]:
            place.chmod(0o755)
