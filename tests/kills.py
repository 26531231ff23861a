"""Kill every command at every step that changes something on disk; what is left must be the old or the new result.

Usage: ``python tests/kills.py [CASE ...] [--every]``; one JSON object a case, exits with 1 where something was lost.
Without ``--every`` only some steps of different kinds are tried. A killed command is a forked child that
ends itself with SIGKILL before a step: opening a file for writing, each half of a write, fsync, rename, exchange,
unlink, mkdir ... Afterwards the same words must succeed, and nothing may be left beside the result.
"""

from __future__ import annotations

import argparse
import builtins
import gc
import hashlib
import importlib
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "cli"))
sys.path.insert(0, str(Path(__file__).parent / "experiments"))

from small import SMALL

import greenbatch as gb
from greenbatch import datasets, storage
from greenbatch.cli import main
from greenbatch.experiments.papers import protocols, studies
from greenbatch.experiments.reports import drawing
from greenbatch.experiments.running import pieces
from greenbatch.learning.runs.checkpoint import load_checkpoint
from greenbatch.learning.runs.log import read_log
from greenbatch.models.model import load_model
from tiny_study import tiny_study

HIDDEN = storage.PREFIX
CHANGES = {
    "os.rename": 2, "os.link": 2, "os.symlink": 2, "os.remove": 1, "os.rmdir": 1, "os.mkdir": 1, "os.truncate": 1,
    "os.chmod": 1,
}  # fmt: skip
"""Audited calls that change something on disk -> how many paths they begin with."""


# ---------------------------------------------------------------- a command that is killed


class Disk:
    """Counts what a process changes below a folder, and ends the process before a certain step.

    Nothing may become visible before it is on disk: ``unsafe`` names what did.
    """

    def __init__(self, root: Path, stop: int, exchange: bool) -> None:
        self.root, self.stop, self.exchange = f"{root}/", stop, exchange
        self.steps: list[str] = []
        self.unsafe: list[str] = []
        self._synced: dict[tuple[int, int], tuple[int, int]] = {}
        self._shown: dict[str, str] = {}
        """Folders in which a name has changed, and which have not been synced since."""
        self._written: set[str] = set()
        """Files in the user's sight that were written to, and have not been synced since."""

    def install(self) -> None:
        """Watch this process."""
        sys.addaudithook(self._audit)
        self._open, self._exchange = io.open, storage.exchange
        io.open = builtins.open = self._opened  # type: ignore[assignment]
        os.fsync = self._fsync  # type: ignore[assignment]
        storage.exchange = self._exchanged

    def step(self, kind: str, path: str) -> None:
        """Something is about to change."""
        if path.startswith(self.root):
            self.steps.append(f"{kind} {path.removeprefix(self.root)}")
            if len(self.steps) == self.stop:
                os.kill(os.getpid(), signal.SIGKILL)

    def written(self, path: str) -> None:
        """A file in the user's sight was written to."""
        self._written.add(path)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[0], str):
            if args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                self.step("open", os.path.abspath(args[0]))
        elif event in CHANGES and not isinstance(args[0], int):
            count = CHANGES[event]
            folders = args[-count:] if count == 2 and event != "os.symlink" else args[-1:] * 2
            paths = [self._absolute(*each) for each in zip(args[:count], folders, strict=False)]
            self.step(event, paths[-1])
            if event == "os.rename":
                self._shows(*paths)

    def _absolute(self, path: Any, folder: Any) -> str:
        base = os.readlink(f"/proc/self/fd/{folder}") if isinstance(folder, int) and folder >= 0 else os.getcwd()
        return os.path.abspath(os.path.join(base, os.fspath(path)))

    def _opened(self, file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        stream = self._open(file, mode, *args, **options)
        if isinstance(file, int) or not set(mode) & set("wax+"):
            return stream
        path = os.path.abspath(file)
        return Written(stream, path, self) if path.startswith(self.root) else stream

    def _fsync(self, handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        self.step("fsync", path)
        found = os.fstat(handle)
        self._synced[found.st_dev, found.st_ino] = (found.st_size, found.st_mtime_ns)
        self._shown.pop(path, None)
        self._written.discard(path)

    def _exchanged(self, one: Path, other: Path) -> bool:
        self.step("exchange", str(other))
        if not self.exchange:
            return False
        self._shows(str(one), str(other))
        return self._exchange(one, other)

    def _shows(self, source: str, name: str) -> None:
        """A file or folder becomes visible: all of it must be on disk, and so must be its name before the end."""
        if HIDDEN in name or not name.startswith(self.root):
            return
        inside = [Path(source), *Path(source).rglob("*")] if os.path.isdir(source) else [Path(source)]
        for path in inside:
            found = path.lstat()
            ours = not path.is_symlink() and (path.is_dir() or found.st_nlink == 1)  # links are of the user's files
            if ours and self._synced.get((found.st_dev, found.st_ino)) != (found.st_size, found.st_mtime_ns):
                self.unsafe.append(f"{path} is shown as {name} before it is on disk")
        self.unsafe += [f"{path} is not on disk when {name} is shown" for path in sorted(self._written)]
        self._shown[os.path.dirname(name)] = name

    def end(self) -> dict[str, Any]:
        """What was seen."""
        unsafe = [*self.unsafe, *(f"the name {name} is not on disk" for name in self._shown.values())]
        return {"steps": self.steps, "unsafe": unsafe, "modules": list(sys.modules)}


class Written:
    """A stream whose writes are two steps each."""

    def __init__(self, stream: Any, path: str, disk: Disk) -> None:
        self._stream, self._path, self._disk = stream, path, disk

    def write(self, content: Any) -> int:
        """Write half, then the other half."""
        half = len(content) // 2
        for part, name in ((content[:half], "write"), (content[half:], "write rest")):
            self._disk.step(name, self._path)
            self._stream.write(part)
            self._stream.flush()
        if HIDDEN not in self._path:
            self._disk.written(self._path)
        return len(content)

    def __enter__(self) -> Written:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Place:
    """A folder in which commands run, each in a forked child."""

    def __init__(self, base: Path) -> None:
        self.base, self.root = base, base / "run"

    def enter(self, state: Path | None) -> None:
        """Begin with a copy of a state."""
        shutil.rmtree(self.root, ignore_errors=True)
        if state is None:
            self.root.mkdir()
            for name in ("small.toml", "tiny.toml", "small-8.toml"):
                shutil.copy(self.base / name, self.root / name)
        else:
            shutil.copytree(state, self.root, symlinks=True)

    def run(self, words: list[str], stop: int = 0, exchange: bool = True) -> tuple[int, dict[str, Any]]:
        """Run a command; its exit code, negative for a signal, and what `Disk` saw."""
        report = self.base / "report.json"
        report.unlink(missing_ok=True)
        if (pid := os.fork()) == 0:
            code = 99
            try:
                signal.alarm(120)
                os.chdir(self.root)
                told = os.open(self.base / "told.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(told, 1)
                os.dup2(told, 2)
                disk = Disk(self.root, stop, exchange)
                disk.install()
                code = main(words)
                handle = os.open(report, os.O_WRONLY | os.O_CREAT)
                os.write(handle, json.dumps(disk.end()).encode())
            finally:
                sys.stdout.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return code, json.loads(report.read_bytes()) if report.exists() else {}

    def told(self) -> str:
        """The last lines of the last command."""
        return (self.base / "told.txt").read_text()[-600:]


# ---------------------------------------------------------------- what must hold


def snapshot(folder: Path) -> dict[str, str]:
    """Everything in a folder; empty if there is none."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            content = f"-> {path.readlink()}"
        else:
            content = "folder" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
        found[path.relative_to(folder).as_posix()] = content
    return found


MINE = ("notes.txt", "mine/deep/data", "mine/empty", "link")


def add_mine(out: Path, *more: str) -> None:
    """Add user files to a result."""
    (out / "mine" / "deep").mkdir(parents=True)
    (out / "mine" / "empty").mkdir()
    (out / "link").symlink_to("notes.txt")
    for name in ("notes.txt", "mine/deep/data", *more):
        (out / name).write_text(f"mine: {name}")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A command in a state."""

    words: list[str]
    out: str = "out"
    state: str = ""
    exchange: bool = True
    training: bool = False
    """The command trains."""
    mine: tuple[str, ...] = ()
    resumes: bool = field(default=False)
    """The same words resume."""


def problems(case: Case, root: Path, old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    """What is wrong with what a kill left."""
    out = root / case.out
    if not case.exchange:  # whoever reads puts back what lies aside
        for folder in (out, out / "checkpoint", out / "model"):
            storage.restore(folder)
    found = snapshot(out)
    if not out.exists():
        if old:
            yield "the old result is gone"
        return
    for name in case.mine:
        if found.get(name) != old.get(name):
            yield f"{name} is lost"
    if case.training:
        runs = [record.parent for record in out.rglob("run.json") if HIDDEN not in str(record)]
        yield from (problem for run in runs if found != old for problem in _training_problems(run))
    elif content(case, root) not in (old, new):
        yield "a mix of the old result and the new one"


def _training_problems(run: Path) -> Iterator[str]:
    """What is wrong with a training that is under way."""
    try:
        saved = load_checkpoint(run / "checkpoint")
        if (run / "log.jsonl").stat().st_size < saved.state["log_bytes"]:
            yield "the log is shorter than the checkpoint records"
        read_log(run / "log.jsonl")
        if any((run / "model" / name).exists() for name in ("model.json", "actor.safetensors")):
            load_model(run / "model")
    except Exception as error:  # noqa: BLE001 - whatever cannot be loaded is lost
        yield f"{type(error).__name__}: {error}"


def content(case: Case, root: Path) -> dict[str, str]:
    """What a command leaves, without what differs from run to run."""
    out = root / case.out
    if out.is_file():
        return {"": hashlib.sha256(out.read_bytes()).hexdigest()}
    found = snapshot(out)
    if case.training:
        changing = ("log.jsonl", "model.json", "run.json", "checkpoint", ".safetensors", "state.json", "report.html")
        kept = {name for name in found if not name.endswith(changing) or name.endswith("actor.safetensors")}
        found = {name: found[name] for name in kept if "results/" not in name}
    return found


def again(case: Case, root: Path, old: dict[str, str], new: dict[str, str]) -> list[str] | None:
    """The command line to run after a kill; None if the command had finished."""
    found = snapshot(root / case.out) if not (root / case.out).is_file() else content(case, root)
    if case.resumes:
        return case.words
    begun = case.training and (root / case.out / "run.json").exists() and found != old
    if begun:
        return [*(word for word in case.words if word not in {"--force", "--resume"}), "--resume"]
    return None if found == new and "--force" not in case.words else case.words


# ---------------------------------------------------------------- the commands

EPOCHS = ["--epochs", "2", "--threads", "1"]
SIZES = [
    "training.windows=2", "training.jobs=10", "training.passes=1", "training.critic_passes=1",
    "training.validation.windows=2", "training.validation.jobs=10", "training.validation.every=1",
]  # fmt: skip
NETWORK = ["train", "rlscheduler", "--scenario", "tiny.toml", *EPOCHS, "--set", *SIZES, "--out", "run"]
SEARCH = [
    "train", "gas-marl-plus", "--scenario", "small.toml", *EPOCHS, "--out", "run", "--set",
    "training.search.population=4", "training.windows=2", "training.jobs=20",
]  # fmt: skip
SIMULATE = ["simulate", "--scenario", "small.toml", "--scheduler", "f2+easy", "--out", "out"]
RECORD = ["record", "rlscheduler", "--scenario", "small.toml", "--schedulers", "fcfs+easy", "--threads", "1"]
RECORD += ["--jobs", "20", "--out", "out"]
COMPARE = ["compare", "--scenario", "small.toml", "--out", "out"]
INSIDE = ("model/notes.txt", "checkpoint/notes.txt")
STUDY = ["reproduce", "rlscheduler", "--train", "--seeds", "0", "--presets", "rlscheduler", "--windows", "published"]
STUDY += ["--goals", "bounded-slowdown", "--backfills", "none", "--traces", "Tiny", *EPOCHS, "--out", "out", "--set"]
STUDY += [*SIZES, "training.minibatch=16"]


MODELS = {"search-model": "searched", "network-model": "trained"}
"""Models that commands begin with -> the states that they are copied from."""


def cases(base: Path) -> dict[str, Case]:
    """Every command that writes, into nothing and over something."""
    network: dict[str, Any] = {"out": "run", "training": True}
    model, network_model = (str(base / name) for name in MODELS)
    return {
        "simulate": Case(words=SIMULATE),
        "simulate --force": Case(words=[*SIMULATE, "--force"], state="simulated", mine=MINE),
        "simulate --force, no exchange": Case(
            words=[*SIMULATE, "--force"], state="simulated", mine=MINE, exchange=False
        ),
        "record": Case(words=RECORD),
        "record --force": Case(words=[*RECORD, "--force"], state="simulated", mine=MINE),
        "compare": Case(words=[*COMPARE, "--windows", "3"]),
        "compare --force": Case(words=[*COMPARE, "--windows", "1", "--force"], state="simulated", mine=MINE),
        "reproduce --force": Case(
            words=["reproduce", "rlscheduler", "--starts", "0", "--out", "out", "--force"], state="simulated", mine=MINE
        ),
        "train": Case(words=NETWORK, **network),
        "train --resume": Case(words=[*NETWORK, "--resume"], state="interrupted", mine=(*MINE, *INSIDE), **network),
        "train --force": Case(words=[*NETWORK, "--force"], state="trained", mine=(*MINE, *INSIDE), **network),
        "train --force, no exchange": Case(
            words=[*NETWORK, "--force"], state="trained", mine=(*MINE, *INSIDE), exchange=False, **network
        ),
        "search": Case(words=SEARCH, **network),
        "search --resume": Case(words=[*SEARCH, "--resume"], state="half-searched", mine=(*MINE, *INSIDE), **network),
        "search --force": Case(words=[*SEARCH, "--force"], state="trained", mine=(*MINE, *INSIDE), **network),
        "retrain": Case(
            words=["retrain", model, "--scenario", "small.toml", "--out", "out"], training=True, resumes=True
        ),
        "reproduce --train": Case(words=STUDY, training=True, resumes=True),
        "export": Case(words=["export", network_model, "--out", "out.onnx"], out="out.onnx"),
        "export --force": Case(
            words=["export", network_model, "--out", "out.onnx", "--force"], out="out.onnx", state="exported"
        ),
    }  # fmt: skip


def prepare(base: Path, commands: Collection[Case]) -> None:
    """Write the scenarios, put the tiny study in the place of the paper's, and load what commands have in common."""
    (base / "small.toml").write_text(SMALL)
    pieces.EVERY_S = 0.0  # every finished window is written, in this thread
    study = tiny_study("rlscheduler", base)
    (base / "small.toml").rename(base / "small-8.toml")
    (base / "small.toml").write_text(SMALL)
    study = replace(study, traces={"Tiny": "tiny.toml", "Small": "small-8.toml"})
    studies.STUDIES["rlscheduler"] = study
    protocol = protocols.PROTOCOLS["rlscheduler"]
    protocols.PROTOCOLS["rlscheduler"] = replace(protocol, traces={"Tiny": "tiny.toml"}, rows=protocol.rows[:1])
    drawing._svg = lambda _, name: f'<svg id="{name}"></svg>'  # in memory, and most of the time of a run
    for name in ("fcfs+easy", "f2+easy", "f2+green"):  # loads the compiled engine before anything is forked
        gb.evaluate(gb.simulate(gb.load_scenario(base / "small.toml"), name, start=0, jobs=10))
    for _ in datasets.play(datasets.recording(gb.load_scenario(base / "small.toml"), "rlscheduler", "fcfs", jobs=20)):
        pass  # writes nothing: the threads of polars do not survive a fork
    used = {Path(word).name for case in commands for word in case.words}
    for number, (words, model) in enumerate(((NETWORK, "network-model"), (SEARCH, "search-model"))):
        if not used & {words[1], model}:
            continue
        at = [str(base / word) if word.endswith(".toml") else word for word in words]
        at[at.index("--out") + 1] = str(base / f"warm-{number}")
        with redirect_stdout(io.StringIO()):
            main(at)


def compile_elsewhere(base: Path, commands: Collection[Case]) -> None:
    """Compile what is needed in a child: what a compiler leaves in memory, every other child would be forked with."""
    base.mkdir()
    if (pid := os.fork()) == 0:
        try:
            prepare(base, commands)
        finally:
            os._exit(0)  # what went wrong goes wrong again, where it is seen
    os.waitpid(pid, 0)


def import_here(modules: Iterable[str]) -> None:
    """Import once what a command has imported, which each of its children would do again."""
    for module in modules:
        if not module.startswith(("__", "torch.")):
            with suppress(ImportError):
                importlib.import_module(module)


def make_states(place: Place, commands: Collection[Case]) -> None:
    """What commands begin with, as far as these need it."""
    models = {model for case in commands for model in MODELS if str(place.base / model) in case.words}
    needed = {case.state for case in commands} | {MODELS[model] for model in models}

    def keep(name: str, words: list[str], out: str, *mine: str, stop: str = "") -> None:
        if name not in needed:
            return
        place.enter(None)
        code, seen = place.run(words)
        if stop:
            at = [number for number, step in enumerate(seen["steps"], 1) if step == stop][-1]
            place.enter(None)
            code, _ = place.run(words, at)
            code = 0 if code == -signal.SIGKILL else 1
        if code:
            raise SystemExit(f"{words}: {place.told()}")
        if (place.root / out).is_dir():
            add_mine(place.root / out, *mine)
        shutil.copytree(place.root, place.base / name, symlinks=True)
        import_here(seen["modules"])

    if any(case.words == STUDY for case in commands):
        needed.add("studied")
        keep("studied", STUDY, "out")
    keep("simulated", [*SIMULATE, "--jobs", "30"], "out")
    keep("trained", [*NETWORK, "--seed", "7"], "run", *INSIDE)
    keep("interrupted", NETWORK, "run", "checkpoint/notes.txt", stop="exchange run/checkpoint")
    keep("half-searched", SEARCH, "run", "checkpoint/notes.txt", stop="exchange run/checkpoint")
    keep("searched", SEARCH, "run")
    for model in models:
        shutil.copytree(place.base / MODELS[model] / "run" / "model", place.base / model)
    place.enter(None)
    (place.root / "out.onnx").write_text("old")
    shutil.copytree(place.root, place.base / "exported")


FEW = 3
"""Kinds of steps that are tried at least, if there are as many."""


def chosen(steps: list[str], every: bool) -> list[int]:
    """Which steps are tried, numbered from 1: all, or some of different kinds and those around what a user can see."""
    if every:
        return list(range(1, len(steps) + 1))
    kinds: dict[str, int] = {}
    for number, step in enumerate(steps, 1):
        place = re.match(rf".*?{re.escape(HIDDEN)}\w+(/\w+)?", step)
        kinds[place[0] if place else step] = number
    last = list(kinds.values())
    seen = [
        number for step, number in kinds.items() if HIDDEN not in step and step.startswith(("exchange", "os.rename"))
    ]
    around = {number + k for number in seen for k in (0, 1) if number + k <= len(steps)}
    return sorted({*around, *last[:: max(1, len(last) // FEW)]})


def attempt(case: Case, place: Place, every: bool) -> dict[str, Any]:
    """Kill a command at its steps; what was tried and what went wrong."""
    state = place.base / case.state if case.state else None
    place.enter(state)
    old = content(replace(case, training=False), place.root) if (place.root / case.out).exists() else {}
    code, seen = place.run(case.words, exchange=case.exchange)
    if code:
        return {"steps": 0, "kills": 0, "problems": [f"exit code {code}: {place.told()}"]}
    import_here(seen["modules"])
    wrong, new = list(seen["unsafe"]), content(replace(case, training=False), place.root)
    final, tried = content(case, place.root), set()
    numbers = chosen(seen["steps"], every)
    for number in numbers:
        at = f"killed before step {number} ({seen['steps'][number - 1]}): "
        place.enter(state)
        code, _ = place.run(case.words, number, case.exchange)
        if code != -signal.SIGKILL:
            wrong.append(f"{at}was not killed but ended with {code}: {place.told()}")
            continue
        left = json.dumps(snapshot(place.root))
        if left in tried:
            continue
        tried.add(left)
        wrong += [at + problem for problem in problems(case, place.root, old, new)]
        words = again(case, place.root, old, new)
        code, _ = place.run(words or case.words, exchange=case.exchange)
        if code != (2 if words is None else 0):
            wrong.append(f"{at}{' '.join(words or case.words)} ended with {code}: {place.told()}")
        if content(case, place.root) != final:
            wrong.append(f"{at}the next run gives something else")
        if hidden := [str(path) for path in place.root.rglob(f"{HIDDEN}*")]:
            wrong.append(f"{at}left behind: {hidden}")
    return {"steps": len(seen["steps"]), "kills": len(numbers), "problems": wrong}


def run_all(names: list[str], *, every: bool, tell: Callable[[str], None]) -> int:
    """Try cases; 1 if anything was lost."""
    lost = 0
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(os.path.realpath(scratch))
        tried = {name: case for name, case in cases(base).items() if not names or name in names}
        if os.environ.get("NUMBA_DISABLE_JIT") != "1":
            compile_elsewhere(base / "compiled", tried.values())
        prepare(base, tried.values())
        place = Place(base)
        make_states(place, tried.values())
        gc.collect()
        gc.freeze()  # or every child looks through, and so copies, what the compiler left here
        for name, case in tried.items():
            found = attempt(case, place, every)
            lost += bool(found["problems"])
            tell(json.dumps({"case": name, **found}))
    return int(lost > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--every", action="store_true")
    given = parser.parse_args()
    sys.exit(run_all(given.cases, every=given.every, tell=lambda line: print(line, flush=True)))
