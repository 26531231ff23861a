"""Attack every verb: full disks, homes that are missing or read-only, odd environments, files and folders of strangers.

Usage: ``python tests/attack.py [NAME ...]``; by default all; a line for each that succeeded, then a count; exits with 1
if there was one. Whatever happens, a command ends with a result or with one line that says what to do; no traceback, no
control character and no code of a file is seen, and nothing but its ``--out`` has changed. Signals are in
``signals.py``, kills in ``kills.py``, damaged files in ``fuzz.py``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "cli"))

from small import SMALL

LIMIT_S = 120.0
HOSTILE = "\x1b[2Jx\x1b]0;y\x07\u202ez\x9b1m"
CODE = "open(__file__ + '.ran', 'w').close()\nimport greenbatch as gb\n@gb.rule('rule')\ndef rule(q): return q.wait\n"
SITE = '[workload.power]\nkind = "per-processor"\n[site]' + SMALL.partition("[site]")[2].partition("[evaluation]")[0]
JOBS = "job_id,submit_s,run_time_s,processors,group\n" + "".join(
    f"{k},{97 * k},{50 + 31 * k % 400},{1 + k % 7},a{k % 3}\n" for k in range(1, 60)
)
TINY = [
    "training.windows=2", "training.jobs=10", "training.passes=1", "training.critic_passes=1",
    "training.validation.windows=2", "training.validation.jobs=10", "training.validation.every=1",
]  # fmt: skip
TRAIN = ["train", "rlscheduler", "--scenario", "small.toml", "--epochs", "2", "--threads", "1", "--set", *TINY]
WRITING: dict[str, list[str]] = {
    "simulate": ["simulate", "--scenario", "small.toml", "--scheduler", "f2+green"],
    "compare": ["compare", "--scenario", "small.toml", "--windows", "2"],
    "sweep": ["compare", "--scenario", "small.toml", "--windows", "2", "--sweep", "forecast.sigma=0,0.2"],
    "whatif": ["whatif", "--trace", "jobs.csv", "--site", "site.toml", "--processors", "32", "--schedulers",
               "fcfs+easy"],
    "record": ["record", "rlscheduler", "--scenario", "small.toml", "--schedulers", "fcfs+easy", "--jobs", "20"],
    "tune": ["tune", "--scenario", "small.toml", "--scheduler", "f2+green", "--search", "+sigma=0:1e6", "--objective",
             "avg_bounded_slowdown=1", "--population", "4", "--generations", "1", "--count", "1", "--jobs", "10",
             "--windows", "published"],
    "train": TRAIN,
    "train --seeds": [*TRAIN[:8], "--seeds", "0,1", *TRAIN[8:]],
    "estimate": ["estimate", "model", "--dataset", "dataset", "--steps", "5"],
}  # fmt: skip
"""Verb -> its words without --out, quick as plain Python."""
READING = {
    "results": ["results", "compared"], "scenario show": ["scenario", "show", "small.toml"],
    "schedulers": ["schedulers"], "scenario list": ["scenario", "list"],
    "data list": ["data", "list"], "bound": ["bound", "--scenario", "small.toml", "--makespan", "1.5", "--jobs", "10"],
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A command in an environment, with files of a stranger."""

    words: list[str]
    env: dict[str, str | None] = field(default_factory=dict)
    """None removes a variable."""
    prepare: Callable[[Path], None] = lambda _: None
    before: Callable[[], None] = lambda: None
    """What the process does before it becomes the command."""
    codes: tuple[int, ...] = (0, 2)
    twice: bool = False
    """Two at the same time."""


def no_room(size: int) -> Callable[[], None]:
    """No file may become larger, as on a full disk."""

    def limit() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


NO_USER = (
    "import os, pwd, sys\ndef unknown(*_): raise KeyError('getpwuid(): uid not found')\n"
    "pwd.getpwuid = unknown\nfrom greenbatch.cli import main\nsys.exit(main())"
)
"""As in a container that runs with a number of a user that it does not know."""


def linked(name: str, goal: str) -> Callable[[Path], None]:
    """A link of a stranger in the place of one of our files."""

    def make(place: Path) -> None:
        file = place / name
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        file.unlink(missing_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(goal if goal.startswith("/") else place.parent / "outside" / goal)

    return make


def text(name: str, content: str | bytes) -> Callable[[Path], None]:
    """A file of a stranger."""

    def make(place: Path) -> None:
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    return make


def changed(name: str, change: Callable[[dict[str, object]], None]) -> Callable[[Path], None]:
    """A record of ours that a stranger has changed."""

    def make(place: Path) -> None:
        record = json.loads((place / name).read_bytes())
        change(record)
        (place / name).write_text(json.dumps(record))

    return make


def fifo(name: str) -> Callable[[Path], None]:
    """A pipe that nobody writes to."""

    def make(place: Path) -> None:
        (place / name).unlink(missing_ok=True)
        os.mkfifo(place / name)

    return make


def names_code(key: str) -> Callable[[dict[str, object]], None]:
    """Change a record so that its schedulers or its backfilling are code."""

    def change(record: dict[str, object]) -> None:
        table: object = record
        *path, last = key.split(".")
        for part in path:
            table = table[int(part) if part.isdecimal() else part]  # type: ignore[index]
        table[last] = ["evil.py:rule"] if last == "schedulers" else "evil.py:rule"  # type: ignore[index]

    return change


def attacks() -> dict[str, Attack]:
    """Name -> attack."""
    found: dict[str, Attack] = {}
    for verb, words in WRITING.items():
        line = [*words, "--out", "out"]
        for size in (0, 2_000, 60_000):
            found[f"{verb}, no file above {size} bytes"] = Attack(words=line, before=no_room(size))
        found[f"{verb}, no home"] = Attack(words=line, env={"HOME": None, "XDG_CACHE_HOME": None}, codes=(0,))
        found[f"{verb}, twice at once"] = Attack(words=line, twice=True)
    odd: dict[str, dict[str, str | None]] = {
        "home is nowhere": {"HOME": "/nowhere", "XDG_CACHE_HOME": None},
        "cache is a file": {"XDG_CACHE_HOME": "/etc/hostname"},
        "LANG=C": {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        "TZ": {"TZ": "Pacific/Apia"}, "no TZ": {"TZ": ":/nowhere"}, "TZ is odd": {"TZ": "X-14:59:59Y,J1,J365/-100"},
        "backend": {"MPLBACKEND": "module://matplotlib_inline.none"}, "narrow": {"COLUMNS": "1", "LINES": "1"},
        "optimized": {"PYTHONOPTIMIZE": "2"}, "no color": {"NO_COLOR": "1", "TERM": "dumb"}, "no path": {"PATH": ""},
        "temporary folder": {"TMPDIR": "/nowhere"}, "warnings": {"PYTHONWARNINGS": "error::UserWarning"},
    }  # fmt: skip
    for name, env in odd.items():
        for verb in ("simulate", "compare", "whatif"):
            found[f"{verb}, {name}"] = Attack(words=[*WRITING[verb], "--out", "out"], env=env, codes=(0,))
    for verb, words in READING.items():
        found[f"{verb}, no home"] = Attack(words=words, env={"HOME": None, "XDG_CACHE_HOME": None}, codes=(0,))
        found[f"{verb}, LANG=C"] = Attack(words=words, env=odd["LANG=C"], codes=(0,))
    for name, content in {
        "UTF-16": JOBS.encode("utf-16"), "UTF-8 with a mark": b"\xef\xbb\xbf" + JOBS.encode(), "empty": b"",
        "CRLF": JOBS.replace("\n", "\r\n").encode(), "null bytes": JOBS.encode().replace(b"1", b"\0"),
        "names": JOBS.replace("a1", HOSTILE).encode(), "a formula": JOBS.replace("a1", "=1+cmd|' /C calc'!A0").encode(),
        "packed twice": gzip.compress(gzip.compress(JOBS.encode())), "cut": gzip.compress(JOBS.encode())[:-9],
    }.items():  # fmt: skip
        words = [*WRITING["whatif"], "--out", "out"]
        found[f"whatif, jobs are {name}"] = Attack(words=words, prepare=text("jobs.csv", content))
    for name, content in {
        "names": SMALL.replace('"small"', json.dumps(HOSTILE)), "keys": SMALL + f"\n{json.dumps(HOSTILE)} = 1\n",
        "UTF-16": SMALL.encode("utf-16"), "a mark": b"\xef\xbb\xbf" + SMALL.encode(),
        "description": SMALL.replace("[workload", f"description = {json.dumps(HOSTILE)}\n[workload", 1),
        "code": SMALL.replace('"f2+green"', '"evil.py:rule"'),
        "code, with a backfilling": SMALL.replace('"f2+green"', '"./evil.py:rule+easy"'),
    }.items():  # fmt: skip
        for verb in ("compare", "scenario show"):
            line = [*WRITING[verb], "--out", "out"] if verb in WRITING else READING[verb]
            found[f"{verb}, the scenario is {name}"] = Attack(words=line, prepare=text("small.toml", content))
    found |= strangers()
    return found


def strangers() -> dict[str, Attack]:
    """Folders of a stranger: results, trainings, models and datasets with links, devices, code and names."""
    resume, force = ["--resume", "--out", "run"], ["--force", "--out", "run"]
    found = {
        f"{' '.join(how)}, {name} is a link": Attack(
            words=[*TRAIN, *how], prepare=linked(f"run/{name}", "folder" if "." not in name else "file"), codes=(2,)
        )
        for how in (resume, force)
        for name in ("log.jsonl", "run.json", "checkpoint", "model", "checkpoint/state.json", "model/model.json")
        if how is resume or name in {"checkpoint", "model"}
    }
    for name in ("run.json", "log.jsonl", "checkpoint/state.json", "model/model.json"):
        device = Attack(words=[*TRAIN, *resume], prepare=linked(f"run/{name}", "/dev/zero"), codes=(2,))
        found[f"resume, {name} is /dev/zero"] = device
        found[f"resume, {name} is a pipe"] = Attack(words=[*TRAIN, *resume], prepare=fifo(f"run/{name}"))
    for name in ("results.parquet", "provenance.json"):
        found[f"results, {name} is /dev/zero"] = Attack(
            words=["results", "compared"], prepare=linked(f"compared/{name}", "/dev/zero"), codes=(2,)
        )
    sources = {"small.toml": "compare", "jobs.csv": "whatif", "site.toml": "whatif"}
    for name, verb in sources.items():
        words = [*WRITING[verb], "--out", "out"]
        found[f"{verb}, {name} is /dev/zero"] = Attack(words=words, prepare=linked(name, "/dev/zero"), codes=(2,))
    estimate = WRITING["estimate"]
    for name in ("model/model.json", "dataset/dataset.json", "model/actor.safetensors"):
        found[f"estimate, {name} is /dev/zero"] = Attack(words=estimate, prepare=linked(name, "/dev/zero"), codes=(2,))
    simulated = [*estimate, "--simulate", "--scenario", "small.toml"]
    of_dataset = changed("dataset/dataset.json", names_code("schedulers.0.name"))
    found["estimate, a dataset names code"] = Attack(words=simulated, prepare=of_dataset, codes=(2,))
    of_model = changed("model/model.json", names_code("training.backfill"))
    retrain = ["retrain", "model", "--scenario", "small.toml", "--out", "out"]
    found["retrain, a model names code"] = Attack(words=retrain, prepare=of_model, codes=(2,))
    preset = 'extends = "rare-offline"\n[training.off_policy]\nschedulers = ["evil.py:rule"]\n'
    words = ["train", "theirs.toml", "--scenario", "rare/mixed", "--epochs", "1", "--out", "out"]
    found["train, a preset names code"] = Attack(words=words, prepare=text("theirs.toml", preset), codes=(2,))
    hidden = f".greenbatch-{hashlib.sha256(b'out').hexdigest()[:8]}"
    for part in ("", "/new", "/old", "/ready"):
        words = [*WRITING["simulate"], "--out", "out"]
        found[f"simulate, the hidden folder{part} is a link"] = Attack(
            words=words, prepare=linked(f"{hidden}{part}", "folder"), codes=(2,)
        )
    found["compare, the pieces are a link"] = Attack(
        words=[*WRITING["compare"], "--out", "out"], prepare=linked("out.cells", "folder"), codes=(2,)
    )
    for name in ("queue", "random", "multiprocessing", "loky", "numpy", "signal", "pickle", "sitecustomize"):
        found[f"compare, {name}.py in the current folder"] = Attack(
            words=[*WRITING["compare"], "--workers", "2", "--out", "out"], prepare=text(f"{name}.py", CODE), codes=(0,)
        )
    return found


# ---------------------------------------------------------------- one attack


def command(words: list[str], env: dict[str, str | None], place: Path, before: Callable[[], None]) -> tuple[int, str]:
    """Run a command; exit code and all that it says."""
    given = {**os.environ, "NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1", **env}
    known = {key: value for key, value in given.items() if value is not None}
    start = ["-c", NO_USER] if env.get("HOME", "") is None else ["-m", "greenbatch"]
    done = subprocess.run(
        [sys.executable, *start, *words], cwd=place, env=known,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False, preexec_fn=before,
    )  # fmt: skip
    return done.returncode, done.stdout.decode(errors="surrogateescape")


def digest(folder: Path, out: set[str]) -> dict[str, str]:
    """Everything in a folder but what commands may write."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not any(name == each or name.startswith(f"{each}/") for each in out):
            kind = (
                f"-> {path.readlink()}" if path.is_symlink() else "" if not path.is_file() else path.read_bytes().hex()
            )
            found[name] = hashlib.sha256(kind.encode()).hexdigest()
    return found


def problems(attack: Attack, start: Path, base: Path) -> Iterator[str]:
    """What went wrong."""
    place = base / "here"
    shutil.copytree(start, place, symlinks=True)
    (base / "outside" / "folder").mkdir(parents=True)
    for name in ("file", "folder/cells-000001-0123456789abcdef.parquet", "folder/mine"):
        (base / "outside" / name).write_text("kept")
    (place / "evil.py").write_text(CODE)
    attack.prepare(place)
    may = {f"here/{word}" for flag, word in zip(attack.words, attack.words[1:], strict=False) if flag == "--out"}
    seen = digest(base, may | {"here/out.cells"})
    with ThreadPoolExecutor(2) as both:
        runs = [both.submit(command, attack.words, attack.env, place, attack.before) for _ in range(1 + attack.twice)]
        try:
            ended = [run.result() for run in runs]
        except subprocess.TimeoutExpired:
            yield "does not end"
            return
    for code, said in ended:
        yield from judged(attack, code, said)
    if attack.twice and all(code for code, _ in ended):
        yield "neither of the two has a result"
    after = digest(base, may | {"here/out.cells"})
    yield from (f"{name} has changed" for name in sorted({*seen} ^ {*after}) if "__pycache__" not in name)
    yield from (f"{name} has changed" for name in seen if name in after and seen[name] != after[name])


def judged(attack: Attack, code: int, said: str) -> Iterator[str]:
    """What is wrong with how a command ended."""
    end = said.strip().splitlines()[-1:] or [""]
    if "Traceback" in said or "Error:" in said:
        yield f"a traceback: {said[-700:]}"
    elif code not in attack.codes:
        yield f"exit code {code}: {said[-300:]}"
    elif code == 2 and not end[0].startswith("greenbatch: "):
        yield f"does not say what is wrong: {said[-300:]}"
    elif code == 2 and "(" not in end[0]:
        yield f"does not say what to do: {end[0]}"
    raw = {c for c in said if unicodedata.category(c) in {"Cc", "Cf"} and c not in "\n\t"}
    if raw:
        yield f"control characters are printed: {raw}"


def made(start: Path, named: Collection[str]) -> None:
    """What attacks find: a scenario, a site and jobs; a result, a training, a model and a dataset if words name it."""
    start.mkdir()
    (start / "small.toml").write_text(SMALL)
    (start / "site.toml").write_text(f'name = "site"\n{SITE}')
    (start / "jobs.csv").write_text(JOBS)
    of_model = "model" in named
    for words, out in ((WRITING["compare"], "compared"), (TRAIN, "run"), (WRITING["record"], "dataset")):
        if out in named or (of_model and out == "run"):
            code, said = command([*words, "--out", out], {}, start, lambda: None)
            if code:
                raise RuntimeError(said)
    if of_model:
        shutil.copytree(start / "run" / "model", start / "model")


def main() -> int:
    """Print what went wrong; 1 if anything did."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="parts of the names of attacks")
    given = parser.parse_args()
    chosen = {name: each for name, each in attacks().items() if not given.names or any(n in name for n in given.names)}
    failed, begun_s = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        start = Path(folder) / "start"
        made(start, {word for each in chosen.values() for word in each.words})

        def tried(numbered: tuple[int, str]) -> list[str]:
            base = Path(folder) / f"attack-{numbered[0]}"
            base.mkdir()
            try:
                return list(problems(chosen[numbered[1]], start, base))
            finally:
                with suppress(OSError):
                    shutil.rmtree(base)

        with ThreadPoolExecutor(2) as two:
            for name, found in zip(chosen, two.map(tried, enumerate(chosen)), strict=True):
                failed += bool(found)
                if found:
                    print(f"{name}: {'; '.join(found)}", flush=True)
    print(f"{len(chosen)} attacks, {failed} succeeded, {time.monotonic() - begun_s:.0f} s")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
