"""Speed against an earlier commit, interleaved in one run, beside the noise of that commit against itself.

``python benchmarks/against.py`` prints, for each kernel, the ratio of the earlier commit's CPU time to the present time
(above 1: the present code is faster) and the ratio of two processes of the earlier commit, which would be 1 without
noise. Each is the median over rounds, with the smallest and the largest; in every round, each process runs the kernel
once, in an order that rotates. ``--json`` prints one object, ``--commit`` selects the earlier commit, ``--kernels`` a
part of the kernels. The earlier commit is taken from the repository; its engine compiles on first use.

A present ratio below 0.95 counts as slower if it is also below every ratio of the earlier commit against itself; the
exit code is then 1. Traces are looked up in ``GREENBATCH_DATA``, else the user's cache.
"""

# ruff: noqa: PLC0415 - kernels import from whichever commit their process runs

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMMIT = "4178060"
"""The commit before the engine was given its present shape."""
SLOWER = 0.95
LUBLIN = "gas-marl/lublin-256"
Work = Callable[[], Any]


# ---------------------------------------------------------------- kernels, which run in the code of either commit


def first_of(*places: str) -> Any:
    """The first of several objects, ``module:name``, that exists: names move between commits."""
    for place in places:
        module, _, name = place.partition(":")
        try:
            return getattr(importlib.import_module(f"greenbatch.{module}"), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"none of {', '.join(places)}")


def fcfs_easy() -> Work:
    """FCFS+easy on a million jobs: a hundred copies of the Lublin trace, one after the other."""
    import numpy as np

    import greenbatch as gb

    scenario = replace(gb.load_scenario(LUBLIN), rules=gb.Rules())
    one = gb.simulate(replace(scenario, site=replace(scenario.site, repeat=True)), "fcfs+easy")
    jobs, copies = scenario.workload, 100
    rows = np.tile(np.arange(len(jobs)), copies)
    later_s = np.repeat(np.arange(copies) * float(one.end_s.max()), len(jobs))
    many = jobs.take(rows).with_columns(
        job_id=np.arange(1, rows.size + 1), submit_s=jobs.submit_s[rows] + later_s, trace_row=np.arange(rows.size)
    )
    long = replace(scenario, workload=many, site=replace(scenario.site, repeat=True))
    return lambda: gb.simulate(long, "fcfs+easy")


def f2_green() -> Work:
    """F2+green on the ten published windows of 1,024 jobs, twenty times."""
    import greenbatch as gb

    scenario = gb.load_scenario(LUBLIN)
    starts = scenario.evaluation.starts or ()
    return lambda: [gb.simulate(scenario, "f2+green", start=start, jobs=1024) for _ in range(20) for start in starts]


def wfp3_reconsider() -> Work:
    """WFP3+easy on 10,000 jobs, with all scores recomputed at every event."""
    import greenbatch as gb

    scenario = replace(gb.load_scenario("rlscheduler/lublin-1"), site=None, rules=gb.Rules(commitment="reconsider"))
    return lambda: [gb.simulate(scenario, "wfp3+easy") for _ in range(3)]


def cheapest_start() -> Work:
    """cheapest-start on the ten published windows."""
    import greenbatch as gb

    scenario = gb.load_scenario(LUBLIN)
    starts = scenario.evaluation.starts or ()
    return lambda: [gb.simulate(scenario, "cheapest-start", start=start, jobs=1024) for start in starts]


def conservative() -> Work:
    """FCFS+conservative on the Lublin trace."""
    import greenbatch as gb

    scenario = replace(gb.load_scenario(LUBLIN), site=None, rules=gb.Rules())
    return lambda: [gb.simulate(scenario, "fcfs+conservative") for _ in range(3)]


def planner() -> Work:
    """The shipped look-ahead planner on the ten published windows."""
    import greenbatch as gb

    scenario = gb.load_scenario(LUBLIN)
    model = gb.scheduler("gas-marl-plus@lublin-256")
    starts = scenario.evaluation.starts or ()
    return lambda: [gb.simulate(scenario, model, start=start, jobs=1024) for start in starts]


def environment(backfill: str) -> Work:
    """A random agent in 256 environments of 256 jobs with GAS-MARL's full observation."""
    import numpy as np

    import greenbatch as gb
    from greenbatch.envs.batch import BatchEnv

    env = BatchEnv(gb.load_scenario(LUBLIN), "gas-marl", environments=256, jobs=256, backfill=backfill)
    starts = np.random.default_rng(1).integers(256, len(env.scenario.workload) - 257, 256)

    def play() -> None:
        agent = np.random.default_rng(0)
        seen = env.reset(starts)
        while count := len(seen.environment):
            rows = agent.random(count) * np.diff(seen.queue_offsets)
            seen, _, _ = env.step(np.column_stack([rows, np.zeros(count)]).astype(np.int64))

    return play


def one_decision() -> Work:
    """A thousand observations of a learned policy, each from a View."""
    import greenbatch as gb

    preset, resolve = (first_of(f"presets.preset:{name}", f"envs.preset:{name}") for name in ("preset", "resolve"))
    places = ("observe.batch", "observe.choice", "from_view", "view_state")
    observe = first_of(*(f"engine.{place}:observe_view" for place in places))
    start, session = (
        first_of("engine.views.interface:Start", "engine.interface:Start", "engine.seam:Start"),
        first_of("engine.views.session:Session", "engine.session:Session"),
    )
    scenario = gb.load_scenario("default")
    made = resolve(preset("gas-marl"), scenario)
    layout = first_of("presets.layout:layout_of", "envs.layout:layout_of")(made)
    program = first_of("presets.layout:program_of", "envs.batch:program_of")(made, "none")
    views, steps = [], session(
        scenario.window(0, 600), scenario.cluster, scenario.site, scenario.rules, program
    )  # fmt: skip
    while (view := steps.view()) is not None:
        views.append(view)
        steps.apply(start(0))
    return lambda: [observe(view, layout) for view in (views * 4)[:1000]]


def training_epoch() -> Work:
    """Rollout and update of one epoch of GAS-MARL on 20 windows of 256 jobs, one thread."""
    import torch

    import greenbatch as gb
    from greenbatch.envs.batch import BatchEnv

    torch.set_num_threads(1)
    build = first_of("learning.networks:build")
    shapes_of = first_of("presets.shapes:shapes_of", "learning.shapes:shapes_of")
    learner = first_of("learning.training.ppo:Learner", "learning.ppo:Learner")
    settings = first_of("learning.training.ppo:UpdateSettings", "learning.ppo:UpdateSettings")
    collect = first_of("learning.training.rollout:collect", "learning.rollout:collect")
    gae = first_of("learning.training.advantages:gae", "learning.advantages:gae")
    normalized = first_of("learning.training.advantages:normalized", "learning.advantages:normalized")
    env = BatchEnv(gb.load_scenario(LUBLIN), "gas-marl", environments=20, jobs=256, backfill="green")

    def epoch() -> None:
        actor, critic = build(env.preset.network, shapes_of(env.preset), 0)
        nets = learner(actor, critic, settings(passes=2, minibatch=1024))
        starts = [256 + 300 * k for k in range(20)]
        seen = collect(env, starts, nets.actor, nets.critic, torch.Generator().manual_seed(0))
        advantages = gae(seen.rewards, seen.values, seen.offsets)
        nets.update(seen, normalized(advantages), advantages + seen.values, torch.Generator().manual_seed(0))

    return epoch


KERNELS: dict[str, Callable[[], Work]] = {
    "fcfs+easy, a million jobs": fcfs_easy,
    "f2+green, windows": f2_green,
    "wfp3+easy, reconsider": wfp3_reconsider,
    "cheapest-start, windows": cheapest_start,
    "fcfs+conservative": conservative,
    "gas-marl-plus, windows": planner,
    "environment, easy-schedgym": lambda: environment("easy-schedgym"),
    "environment, green": lambda: environment("green"),
    "one decision": one_decision,
    "training epoch": training_epoch,
}
"""What is timed -> its preparation, which compiles, and returns the work."""


def serve() -> None:
    """Run kernels on request: a name per line on standard input, CPU seconds on standard output."""
    answers, sys.stdout = sys.stdout, sys.stderr
    ready: dict[str, Work] = {}
    for line in sys.stdin:
        name = line.rstrip("\n")
        if name not in ready:
            ready.clear()  # one kernel's data at a time
            ready[name] = KERNELS[name]()
            ready[name]()
        begin = time.process_time()
        ready[name]()
        print(time.process_time() - begin, file=answers, flush=True)


# ---------------------------------------------------------------- the comparison


class Runner:
    """A process that runs kernels in the code of one commit."""

    def __init__(self, source: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(source)}
        command = [sys.executable, __file__, "--serve"]
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def cpu_s(self, kernel: str) -> float:
        """CPU seconds of a kernel, run once."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("the process has no pipes")
        print(kernel, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{kernel} failed in {self.process.args!r}")
        return float(answer)


@contextmanager
def source_of(commit: str) -> Iterator[Path]:
    """The folder ``src`` of a commit."""
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit, "src"], check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory(prefix="greenbatch-against-") as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder) / "src"


def measure(commit: str, kernels: list[str], rounds: int) -> dict[str, Any]:
    """Kernel -> median, smallest and largest ratio of the present code, and of the earlier commit against itself."""
    figures: dict[str, Any] = {}
    with source_of(commit) as source:
        runners = {"then": Runner(source), "again": Runner(source), "now": Runner(ROOT / "src")}
        for kernel in kernels:
            print(f"{kernel} ...", file=sys.stderr, flush=True)
            for runner in runners.values():
                runner.cpu_s(kernel)
            ratios: dict[str, list[float]] = {"now": [], "again": []}
            for round_ in range(rounds):
                order = list(runners)[round_ % 3 :] + list(runners)[: round_ % 3]
                took = {name: runners[name].cpu_s(kernel) for name in order}
                for name, each in ratios.items():
                    each.append(took["then"] / took[name])
            figures[kernel] = {
                name: {"median": median(each), "low": min(each), "high": max(each)} for name, each in ratios.items()
            } | {"cpu_s": took["now"]}
        for runner in runners.values():
            runner.process.kill()
    return figures


def is_slower(figures: dict[str, Any]) -> bool:
    """Whether a kernel is slower by more than 5 % and more than noise."""
    return figures["now"]["median"] < min(SLOWER, figures["again"]["low"])


def table(commit: str, figures: dict[str, Any]) -> str:
    """Ratios of all kernels."""
    lines = [f"{'':32}{f'{commit} / now':>26}{f'{commit} / itself':>26}{'CPU [s]':>10}"]
    for kernel, each in figures.items():
        shown = [f"{r['median']:.3f} ({r['low']:.3f} to {r['high']:.3f})" for r in (each["now"], each["again"])]
        slower = "   SLOWER" if is_slower(each) else ""
        lines.append(f"{kernel:32}{shown[0]:>26}{shown[1]:>26}{each['cpu_s']:10.3f}{slower}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--commit", default=COMMIT, help=f"the earlier commit, by default {COMMIT}")
    parser.add_argument("--rounds", type=int, default=9, help="runs of each kernel")
    parser.add_argument("--kernels", default="", help="only kernels whose names contain this text")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    chosen = [name for name in KERNELS if options.kernels in name]
    figures = measure(options.commit, chosen, options.rounds)
    print(json.dumps(figures, indent=2) if options.json else table(options.commit, figures))
    sys.exit(any(map(is_slower, figures.values())))


if __name__ == "__main__":
    main()
