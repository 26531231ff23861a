"""End commands with workers by signals at random instants: no process is left, and the work ends with the same bytes.

Usage: ``python tests/signals.py [NAME ...] [--instants 40] [--seed 0]``; by default all commands, which share the
instants; one line each, exits with 1 where something was left or a byte differs. Half of the instants lie within the
first second after the first child process has started. The signal is that of Ctrl-C, `kill`, a closed terminal or
`kill -9`, to the command alone or, as from a terminal, to all processes.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "cli"))

import psutil
from small import SLOW, SMALL

LIMIT_S = 10.0
"""After this time no process may be alive. [s]"""
SIGNALS = (signal.SIGINT, signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
TINY = [
    "training.windows=2", "training.jobs=10", "training.passes=1", "training.critic_passes=1",
    "training.validation.windows=2", "training.validation.jobs=10", "training.validation.every=1",
]  # fmt: skip
SLOWLY = ["--schedulers", "slow.py:slow,fcfs+easy", "--baseline", "fcfs+easy", "--workers", "2"]
TABLES = ("results.parquet", "table.md")
SITE = SMALL.partition("[site]")[2].partition("[evaluation]")[0]
CASES: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "compare": (["compare", "--scenario", "small.toml", "--starts", "0,9,20,31", *SLOWLY], TABLES),
    "tune": (["tune", "--scenario", "small.toml", "--scheduler", "f2+green", "--search", "+sigma=0:1e6", "--objective",
              "avg_bounded_slowdown=1", "--workers", "2", "--population", "4", "--generations", "2", "--count", "4",
              "--jobs", "10", "--windows", "published"], ("tuned.json",)),
    "seeds": (["train", "rlscheduler", "--scenario", "small.toml", "--seeds", "0,1", "--workers", "2", "--epochs", "4",
               "--threads", "1", "--set", *TINY], tuple(f"seed-{k}/model/actor.safetensors" for k in range(2))),
    "whatif": (["whatif", "--trace", "jobs.csv", "--site", "site.toml", "--processors", "32", *SLOWLY], TABLES),
}  # fmt: skip
"""Command -> its words, and the files that must have the same bytes."""


def prepare() -> None:
    """The inputs, in the current folder."""
    Path("small.toml").write_text(SMALL)
    Path("site.toml").write_text(f'name = "site"\n[workload.power]\nkind = "per-processor"\n[site]{SITE}')
    Path("slow.py").write_text(SLOW.replace("SECONDS", "0.01"))
    rows = "".join(f"{k},{97 * k},{50 + 31 * k % 400},{1 + k % 7}\n" for k in range(1, 240))
    Path("jobs.csv").write_text(f"job_id,submit_s,run_time_s,processors\n{rows}")


def begin(words: list[str], mark: str) -> subprocess.Popen[str]:
    """Start a command whose processes carry a mark in their environment; compiled code would take longer to load."""
    more = {"GREENBATCH_MARK": mark, "NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(
        [sys.executable, "-m", "greenbatch", *words], env={**os.environ, **more}, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def alive(mark: str) -> list[psutil.Process]:
    """The processes with a mark."""
    found = []
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            if each.status() != psutil.STATUS_ZOMBIE and each.environ().get("GREENBATCH_MARK") == mark:
                found.append(each)
    return found


def strike(words: list[str], mark: str, chance: random.Random, first: bool) -> tuple[bool, str]:
    """Start a command and end it by a signal; whether it was still there, and what is wrong afterwards."""
    running, said = begin(words, mark), list[str]()
    drain = threading.Thread(target=lambda: said.append(running.communicate()[0]))
    drain.start()
    until_s = time.monotonic() + 3  # a command may have no child
    while running.poll() is None and len(alive(mark)) < 2 and time.monotonic() < until_s:
        time.sleep(0.05)
    delay_s, number, whole = chance.uniform(0, 1 if first else 4), chance.choice(SIGNALS), chance.random() < 0.5
    with suppress(subprocess.TimeoutExpired):
        running.wait(delay_s)
    if struck := running.poll() is None:
        (os.killpg if whole else os.kill)(running.pid, number)
    since_s = time.monotonic()
    while (left := alive(mark)) and time.monotonic() < since_s + LIMIT_S:
        time.sleep(0.05)
    for each in left:
        each.kill()
    drain.join()
    told = f"{len(left)} processes are left" if left else ""
    codes = {0, -number, 128 + number} if struck else {0}  # 0: it had done its work; negative: its handlers were gone
    if running.returncode not in codes or "Traceback" in said[0]:
        told += f" exit code {running.returncode}: {said[0][-3000:]}"
    what = f"{number.name} after {delay_s:.2f} s to {'all' if whole else 'the command'}"
    return struck, f"{what}: {told}" if told else ""


def tried(name: str, instants: int, seed: int) -> tuple[int, list[str]]:
    """Strike a command so many times in one folder, then let it end; how many signals it got, and what is wrong."""
    words, files = CASES[name]
    chance = random.Random(f"{seed} {name}")  # noqa: S311  # reproducible, no secrets
    whole, out = Path(f"{name}-whole"), Path(f"{name}-struck")

    def again() -> list[str]:
        resumes = name in {"compare", "whatif"} and (out / "provenance.json").exists()
        forced = name == "tune" and out.exists()
        return [*words, "--out", str(out), *["--resume"] * resumes, *["--force"] * forced]

    struck = [strike(again(), f"{os.getpid()} {name} {k}", chance, first=k % 2 == 0) for k in range(instants)]
    count, found = sum(was for was, _ in struck), [problem for _, problem in struck if problem]
    alone = ["1" if before == "--workers" else word for before, word in zip(["", *words], words, strict=False)]
    for line, place in ((again(), out), ([*alone, "--out", str(whole)], whole)):
        running = begin(line, "whole")
        said = running.communicate(timeout=240)[0]
        if running.returncode:
            return count, [*found, f"{' '.join(line)} ends with {running.returncode}: {said[-400:]}"]
        found += [f"{place / file} is missing" for file in files if not (place / file).is_file()]
    same = all((out / file).read_bytes() == (whole / file).read_bytes() for file in files)
    return count, found if same else [*found, "the bytes differ"]


def main() -> int:
    """Print what was found; 1 if anything was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="commands, by default all")
    parser.add_argument("--instants", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    bad = False
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        prepare()
        with ThreadPoolExecutor(2) as two:
            names = given.names or [*CASES]
            share = {name: given.instants // len(names) for name in names}
            results = two.map(lambda n: tried(n, share[n], given.seed), share)
            for name, (count, found) in zip(share, results, strict=True):
                bad |= bool(found)
                told = "; ".join(found) or "nothing left, the same bytes"
                print(f"{name}: {count} of {share[name]} signals, {told}", flush=True)
        os.chdir("/")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
