"""Lose a process, a node and the command itself midway on a Ray cluster of two nodes: the results must be the same.

Usage: ``python tests/lost.py [CASE[:LOSS]] ...`` with the cases ``compare``, ``sweep``, ``search`` and ``trainings``,
by default all four. One line each, exits with 1 where a byte differs. Each is run in one process and four times on the
cluster, or once for one loss: of ``nothing``, of a working ``process``, of a ``node``, of the ``command``, which is
repeated.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "cli"))

import psutil
from ray.cluster_utils import Cluster
from small import SLOW, SMALL

WAIT_S = 900.0
"""How long to wait for anything: on a busy machine, only what hangs takes so long. [s]"""
TABLES = ("results.parquet", "table.md", "table.tex")
WEIGHTS = "model/actor.safetensors"
SLOWLY = ["--schedulers", "slow.py:slow,fcfs+easy", "--baseline", "fcfs+easy", "--jobs", "20"]
STARTS = ",".join(str(start) for start in range(0, 40, 2))
SIZES = [
    "training.windows=4", "training.jobs=40", "training.search.population=8", "training.search.makespan_bound=[1.5]",
    "training.search.aim=[1.4]", "training.search.most=[1.6]", "training.search.slowdown=[5]",
]  # fmt: skip
TINY = [
    "training.windows=2", "training.jobs=10", "training.passes=1", "training.critic_passes=1",
    "training.validation.windows=2", "training.validation.jobs=10", "training.validation.every=1",
]  # fmt: skip

CASES: dict[str, tuple[list[str], tuple[str, ...], str]] = {
    "compare": (["compare", *SLOWLY, "--starts", STARTS], TABLES, ".cells/*.parquet"),
    "sweep": (["compare", *SLOWLY, "--starts", "0,5,9,14", "--sweep", "forecast.sigma=0,0.2,0.4,0.6,0.8"], TABLES,
              ".cells/*.parquet"),
    "search": (["train", "gas-marl-plus", "--epochs", "24", "--threads", "1", "--set", *SIZES], (WEIGHTS,),
               "/checkpoint/state.json"),
    "trainings": (["train", "rlscheduler", "--seeds", "0,1,2", "--epochs", "24", "--threads", "1", "--set", *TINY],
                  tuple(f"seed-{seed}/{WEIGHTS}" for seed in range(3)), "/seed-0/checkpoint/state.json"),
}  # fmt: skip
"""Name -> command, files that must have the same bytes, and what there is after --out once it is midway."""


def begin(words: list[str], out: str, *more: str) -> subprocess.Popen[str]:
    """Start a command in the folder of the scenario."""
    command = [sys.executable, "-m", "greenbatch", *words, "--scenario", "small.toml", "--out", out, *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(running: subprocess.Popen[str]) -> str:
    """Wait until a command ends well; what it said.

    Raises:
        RuntimeError: it failed; with the end of what it said.
    """
    said, _ = running.communicate(timeout=WAIT_S)
    if running.returncode:
        raise RuntimeError(f"exit code {running.returncode}: {said[-600:]}")
    return said


def midway(running: subprocess.Popen[str], pattern: str) -> None:
    """Wait until there is a file.

    Raises:
        RuntimeError: the command ended before, or there is none for long.
    """
    until_s = time.monotonic() + WAIT_S
    while not list(Path().glob(pattern)):
        if running.poll() is not None or time.monotonic() > until_s:
            raise RuntimeError(f"no {pattern}; exit code {running.returncode}: {running.communicate()[0][-600:]}")
        time.sleep(0.02)


def working() -> list[Any]:
    """The processes of the cluster that have something in hand."""
    found = []
    for each in psutil.Process().children(recursive=True):  # those of other clusters are left alone
        with suppress(psutil.Error):
            if any("_attempt" in word for word in (each.name(), *each.cmdline())):
                found.append(each)
    return found


def lose_process(cluster: Cluster, running: subprocess.Popen[str]) -> None:
    """Kill a process that has something in hand."""
    del cluster
    until_s = time.monotonic() + WAIT_S
    while not (some := working()):
        if running.poll() is not None or time.monotonic() > until_s:
            raise RuntimeError("nothing is in hand")
        time.sleep(0.02)
    some[0].kill()


def lose_node(cluster: Cluster, running: subprocess.Popen[str]) -> None:
    """Kill the node that the command is not connected to."""
    del running
    cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)


def lose_command(cluster: Cluster, running: subprocess.Popen[str]) -> None:
    """Kill the command, and wait until the cluster has dropped its work."""
    del cluster
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    until_s = time.monotonic() + WAIT_S
    while working() and time.monotonic() < until_s:
        time.sleep(0.1)


def lose_nothing(cluster: Cluster, running: subprocess.Popen[str]) -> None:
    """Leave all as it is."""


LOSSES: dict[str, Callable[[Cluster, subprocess.Popen[str]], None]] = {
    "nothing": lose_nothing, "process": lose_process, "node": lose_node, "command": lose_command,
}  # fmt: skip


def tried(name: str, losses: Iterable[str], cluster: Cluster) -> dict[str, bool]:
    """Loss -> whether a case gave the same bytes as in one process."""
    words, files, pattern = CASES[name]
    one = f"{name}-one"
    finish(begin(words, one, *(["--workers", "1"] if name != "trainings" else [])))
    outs = {}
    for loss in losses:
        out, lose = f"{name}-{loss}", LOSSES[loss]
        running = begin(words, out, "--ray", cluster.address)
        if lose is not lose_nothing:
            midway(running, f"{out}{pattern}")
        lose(cluster, running)
        if lose is lose_command:
            resume = ["--resume"] if name == "search" else []
            running = begin(words, out, "--ray", cluster.address, *resume)
        said = finish(running)
        if lose is lose_command and pattern.startswith(".cells") and "windows are finished already" not in said:
            raise RuntimeError("what was finished was not used")
        outs[loss] = out
        if lose is lose_node:
            cluster.add_node(num_cpus=1)
    return {
        loss: all((Path(out) / file).read_bytes() == (Path(one) / file).read_bytes() for file in files)
        for loss, out in outs.items()
    }


def main(names: list[str]) -> int:
    """Print what was found; 1 where something differs."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    equal = True
    try:
        with tempfile.TemporaryDirectory() as place:
            os.chdir(place)
            Path("small.toml").write_text(SMALL)
            Path("slow.py").write_text(SLOW.replace("SECONDS", "0.02"))
            for name, _, loss in (name.partition(":") for name in names or CASES):
                found = tried(name, [loss] if loss else LOSSES, cluster)
                equal &= all(found.values())
                shown = (f"{loss} lost: {'the same bytes' if same else 'DIFFERENT'}" for loss, same in found.items())
                print(f"{name}: {', '.join(shown)}", flush=True)
            os.chdir("/")
    finally:
        cluster.shutdown()
    return int(not equal)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
