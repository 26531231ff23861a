"""The compile cache: said once, loaded later, and never stale."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import greenbatch

pytestmark = pytest.mark.compiled

HASH = """
import json, sys
from pathlib import Path
from greenbatch.engine.compile import engine_hash

def current():
    engine_hash.cache_clear()
    return engine_hash()

hashes = {"as it is": current()}
package = Path(sys.argv[1])
compiled = [*package.glob("engine/**/*.py"), *package.glob("policies/compiled/**/*.py"), package / "energy/slots.py"]
for source in sorted(compiled):
    text = source.read_text()
    source.write_text(text + "# edited")
    hashes[str(source)] = current()
    source.write_text(text)
hashes["restored"] = current()
print(json.dumps(hashes))
"""

SIMULATE = """
import json
import numpy as np
from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.compile import ENTRIES, cache_folder
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

def starts(submit, run, processors, power):
    columns = {"submit_s": submit, "run_time_s": run, "processors": processors, "power_w": power}
    site = Site(name="s", step_s=100.0, sources_w={"all": np.array([50.0])}, repeat=True)
    cluster = Cluster.pooled(2, idle_power_per_machine_w=0.0)
    rule = scheduler("lptpn-published:sigma=100")
    return simulate(Workload.from_columns("x", columns), cluster, site, Rules(), rule).start_s.tolist()

print(json.dumps({
    "little brown": starts([0, 1], [10, 6], [1, 1], [50.0, 10.0]),
    "order": starts([0, 1, 2], [10, 6, 5], [2, 2, 2], [1.0, 1.0, 1.0]),
    "loaded": sum(ENTRIES["lptpn-published"].stats.cache_hits.values()),
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
    """A copy of the package in a folder of its own, with a cache of its own."""

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


def test_an_edit_anywhere_in_the_engine_is_another_engine(copy: Copy) -> None:
    hashes, _ = copy.run(HASH, str(copy.folder / "greenbatch"))
    assert hashes.pop("restored") == hashes["as it is"]
    assert len(set(hashes.values())) == len(hashes) > 25


def test_compiled_once_said_once_and_loaded_later(copy: Copy) -> None:
    cold, said = copy.run(SIMULATE)
    parts = ("events", "lptpn-published")
    assert said.splitlines() == [f"greenbatch: compiling the engine ({part}; once per version) ..." for part in parts]
    assert cold["loaded"] == 0
    assert cold["little brown"] == [0, 1]  # 60 J are less than 100 J
    assert cold["order"] == [0, 10, 16]  # the larger one first
    warm, said = copy.run(SIMULATE)
    assert said == ""
    assert warm == {**cold, "loaded": 1}
    assert Path(warm["folder"]).is_relative_to(copy.cache)


def test_what_was_compiled_is_never_stale(copy: Copy) -> None:
    """A changed constant and a changed callee of a callee are compiled anew, which files of callers do not show."""
    assert copy.run(BOOKS)[0] == 120.0
    copy.edit("power/balance.py", "NO_STORAGE = Stored(0.0, ", "NO_STORAGE = Stored(1.0, ")  # which charges with 1 W
    assert copy.run(BOOKS)[0] == 140.0
    copy.edit("power/balance.py", "ledger.grid_j += import_w * seconds", "ledger.grid_j += 2.0 * import_w * seconds")
    assert copy.run(BOOKS)[0] == 280.0


WAITING = """
import json, threading
from greenbatch.engine.compile import announced

def compiles(variant):
    with announced("part", variant=variant):
        return True

waits = {}
with announced("part", variant="-one"):
    for variant in ("-one", "-other"):
        compiling = threading.Thread(target=compiles, args=(variant,), daemon=True)
        compiling.start()
        compiling.join(timeout=0.5 if variant == "-one" else 30)
        waits[variant] = compiling.is_alive()
compiles("-third")
print(json.dumps(waits))
"""


def test_only_who_compiles_the_same_types_waits(copy: Copy) -> None:
    waits, said = copy.run(WAITING)
    assert waits == {"-one": True, "-other": False}
    assert said.count("compiling the engine (part; once per version)") == 3, "each kind of machine is told"


def test_a_home_that_cannot_be_written_does_no_harm(copy: Copy) -> None:
    copy.cache.write_text("a file where the cache folder should be")
    joules, said = copy.run(BOOKS)
    assert joules == 120.0
    assert said == ""


def test_only_a_few_engines_are_kept(copy: Copy) -> None:
    engines = copy.cache / "greenbatch" / "engine"
    for number in range(6):
        (engines / f"{number:016x}").mkdir(parents=True)
        os.utime(engines / f"{number:016x}", (number, number))
    (engines / "a-copy").mkdir()
    assert copy.run(BOOKS)[0] == 120.0
    kept = {folder.name for folder in engines.iterdir()}
    assert {name for name in kept if name.startswith("0000")} == {f"{number:016x}" for number in (3, 4, 5)}
    assert "a-copy" in kept, "what no engine left is not ours"
    assert len(kept) == 5


@pytest.mark.parametrize(("suffix", "content"), [("nbi", b"garbage"), ("nbc", b"")])
def test_a_damaged_cache_is_made_again(copy: Copy, suffix: str, content: bytes) -> None:
    assert copy.run(BOOKS)[0] == 120.0
    files = list(copy.cache.rglob(f"*.{suffix}"))
    assert files
    for file in files:
        file.write_bytes(content)
    assert copy.run(BOOKS)[0] == 120.0
    assert all(file.stat().st_size > len(content) for file in files)


def test_a_cache_without_room_does_no_harm(copy: Copy) -> None:
    full = "import errno\nfrom numba.core.caching import FunctionCache\ndef save(*_): raise OSError(errno.ENOSPC, '')\n"
    assert copy.run(f"{full}FunctionCache.save_overload = save\n{BOOKS}")[0] == 120.0


ONE = """
import sys
from greenbatch.energy.slots import interval_at
from greenbatch.engine.compile import announced, cache_folder, machine_code
import numba
with announced("one"):
    code = machine_code(getattr(interval_at, "py_func", interval_at), numba.float64(*[numba.float64] * 3))
print(sum(code.stats.cache_hits.values()), cache_folder())
"""


def bound_by_permissions() -> None:
    """The user of the system is subject to permissions like everybody else."""
    import ctypes

    drop, dac_override = 24, 1
    ctypes.CDLL(None).prctl(drop, dac_override)


def test_a_filled_cache_that_may_not_be_written_is_used(tmp_path: Path) -> None:
    """As in a container image; every command compiled anew, and left a folder."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    environment.pop("NUMBA_DISABLE_JIT", None)

    def run() -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", ONE], env=environment, capture_output=True, text=True, check=True,
            preexec_fn=bound_by_permissions,
        )  # fmt: skip
        return done.stdout, done.stderr

    compiled, told = run()
    assert compiled.startswith("0 ")
    assert "compiling" in told
    for place in (tmp_path / "cache").rglob("*"):
        place.chmod(0o555 if place.is_dir() else 0o444)
    try:
        assert run() == (compiled.replace("0 ", "1 ", 1), "")
        assert not list(tmp_path.glob("greenbatch-engine-*"))
    finally:
        for place in [tmp_path / "cache", *(tmp_path / "cache").rglob("*")]:
            place.chmod(0o755)
