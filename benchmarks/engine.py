"""Speed of the engine: CPU seconds of one core, best of five, warm, with a calibration kernel.

``python benchmarks/engine.py`` prints a table with the targets, ``--json`` one object of named figures; ``--quick``
skips whole command lines. Every timed schedule is also checked: FCFS+easy against an independent EASY below, the others
against the same rule driven from Python, one decision at a time. Real traces are looked up in ``GREENBATCH_DATA``, else
the user's cache; a figure without its trace is null.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from greenbatch import data_catalog
from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.accounts import books
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Start
from greenbatch.engine.views.session import Session
from greenbatch.errors import DataMissing
from greenbatch.scenarios import load_scenario
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

TARGETS: dict[str, tuple[str, float]] = {
    "lublin_256_1m_easy_jobs_per_s": (">=", 1e6),
    "peak_rss_mb": ("<", 1000),
    "f2_green_window_jobs_per_s": (">=", 200e3),
    "wfp3_reconsider_jobs_per_s": (">=", 100e3),
    "cea_curie_cli_cpu_s": ("<", 15),
    "ricc_cli_cpu_s": ("<", 15),
    "first_run_cpu_s": ("<", 20),
    "later_run_cpu_s": ("<", 2),
    "help_cpu_s": ("<", 0.3),
}
"""Figure -> target on one core of a machine of 2025."""

REPEATS = 5
Figures = dict[str, Any]


def best_cpu_s(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """CPU seconds of the fastest of several runs."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def calibration_s() -> float:
    """CPU seconds to merge-sort two million numbers: the present speed of this core."""
    numbers = np.random.default_rng(0).random(2_000_000)
    return best_cpu_s(lambda: np.sort(numbers, kind="stable"))


def tiled(jobs: Workload, copies: int, period_s: float) -> Workload:
    """Copies of a workload in a row, each one period after the previous one."""
    rows = np.tile(np.arange(len(jobs)), copies)
    later_s = np.repeat(np.arange(copies) * period_s, len(jobs))
    return jobs.take(rows).with_columns(
        job_id=np.arange(1, rows.size + 1), submit_s=jobs.submit_s[rows] + later_s, trace_row=np.arange(rows.size)
    )


def plain_easy(jobs: Workload, processors: int) -> list[float]:
    """Starts under FCFS with true EASY, one pass per event, exact requested times, computed without the engine."""
    submit, run = jobs.submit_s.tolist(), jobs.run_time_s.tolist()
    need = jobs.processors.tolist()
    arrivals = sorted(range(len(submit)), key=lambda j: submit[j])
    start: list[float] = [0.0] * len(submit)
    waiting: list[int] = []
    running: list[tuple[float, int, int]] = []  # end, order of starting, job
    free, arrived, started = processors, 0, 0

    def launch(job: int, now: float) -> None:
        nonlocal free, started
        start[job] = now
        insort(running, (now + run[job], started, job))
        free -= need[job]
        started += 1

    while started < len(submit):
        if arrived < len(submit) and (not running or submit[arrivals[arrived]] <= running[0][0]):
            now = submit[arrivals[arrived]]
            waiting.append(arrivals[arrived])
            arrived += 1
        else:
            now, _, ended = running.pop(0)
            free += need[ended]
        while waiting and need[waiting[0]] <= free:
            launch(waiting.pop(0), now)
        if not waiting:
            continue
        shadow, spare = now, free - need[waiting[0]]
        for end, _, job in running:
            if spare >= 0 and end > shadow:
                break
            shadow, spare = end, spare + need[job]
        left = [waiting[0]]
        for job in waiting[1:]:
            short = now + run[job] <= shadow
            if need[job] <= free and (short or need[job] <= spare):
                launch(job, now)
                spare -= 0 if short else need[job]
            else:
                left.append(job)
        waiting = left
    return start


def driven(jobs: Workload, cluster: Cluster, site: Site | None, rules: Rules, name: str) -> Outcome:
    """Starts under the same scheduler with its rule called from Python at every decision."""
    program = scheduler(name).program(jobs)
    score = program.score
    session = Session(jobs, cluster, site, rules, replace(program, score=None, compiled=None))
    with np.errstate(divide="ignore"):
        while (view := session.view()) is not None:
            session.apply(Start(int(np.argmin(score(view.queue))) if score else 0))
    return session.outcome()


def expect(name: str, ours: Any, plain: Any) -> None:
    """Stop if a schedule differs from the one of the plain path."""
    if not np.array_equal(ours, plain):
        raise SystemExit(
            f"{name}: {np.count_nonzero(np.asarray(ours) != plain)} jobs start at other times than on the plain path"
        )


def a_million_jobs(figures: Figures) -> None:
    """FCFS+easy with energy accounting on a hundred copies of the Lublin trace."""
    scenario = load_scenario("gas-marl/lublin-256")
    if scenario.site is None:
        raise SystemExit("gas-marl/lublin-256 has no site")
    jobs, cluster, site, rules = scenario.workload, scenario.cluster, replace(scenario.site, repeat=True), Rules()
    easy = scheduler("fcfs+easy")
    one = simulate(jobs, cluster, site, rules, easy)
    expect("fcfs+easy", one.start_s, plain_easy(jobs, cluster.processors))
    period_s = float(one.end_s.max())
    many = tiled(jobs, 100, period_s)
    last: list[Outcome] = []

    def run() -> None:
        last.clear()  # one outcome in memory at a time
        last.append(simulate(many, cluster, site, rules, easy))

    def run_with_books() -> None:
        run()
        books(last[0])

    figures["lublin_256_1m_easy_jobs_per_s"] = len(many) / best_cpu_s(run_with_books)
    figures["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures["lublin_256_1m_easy_without_books_jobs_per_s"] = len(many) / best_cpu_s(run)
    expect(
        "tiles", last[0].start_s.reshape(100, -1) - period_s * np.arange(100)[:, None], np.tile(one.start_s, (100, 1))
    )
    b = books(last[0])
    figures["books_imbalance"] = abs(b.renewable_used_j + b.grid_j - b.load_j) / b.load_j


def windows(figures: Figures) -> None:
    """Windows of 1,024 jobs under F2+green, as in GAS-MARL's tables."""
    scenario = load_scenario("gas-marl/lublin-256")
    rule = scheduler("f2+green")
    parts = (scenario.cluster, scenario.site, scenario.rules)
    speeds = []
    for start in scenario.evaluation.starts or ():
        jobs = scenario.window(start, 1024)
        expect(f"f2+green from {start}", simulate(jobs, *parts, rule).start_s, driven(jobs, *parts, "f2+green").start_s)
        speeds.append(1024 / best_cpu_s(lambda jobs=jobs: books(simulate(jobs, *parts, rule))))
    figures["f2_green_window_jobs_per_s"] = speeds[0]
    figures["f2_green_slowest_window_jobs_per_s"] = min(speeds)


def changing_scores(figures: Figures) -> None:
    """WFP3 on 10,000 jobs; all scores are recomputed at every event."""
    scenario = load_scenario("rlscheduler/lublin-1")
    parts = (scenario.workload, scenario.cluster, None, Rules(commitment="reconsider"))
    for name, figure in (("wfp3+easy", "wfp3_reconsider_jobs_per_s"), ("wfp3+none", "wfp3_none_reconsider_jobs_per_s")):
        rule = scheduler(name)
        expect(name, simulate(*parts, rule).start_s, driven(*parts, name).start_s)
        figures[figure] = len(parts[0]) / best_cpu_s(lambda rule=rule: simulate(*parts, rule))


def command(*arguments: str, cache: Path | None = None) -> tuple[float, float]:
    """CPU and wall seconds of a greenbatch command line in a separate process."""
    code = "import sys; from greenbatch.cli import main; sys.exit(main())"
    environment = dict(os.environ) if cache is None else {**os.environ, "XDG_CACHE_HOME": str(cache)}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    wall_s, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"greenbatch {' '.join(arguments)}: {done.stderr.strip()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall_s


def whole_commands(figures: Figures) -> None:
    """First and later runs, help, and the two large traces through the command line."""
    with tempfile.TemporaryDirectory(prefix="greenbatch-bench-") as scratch:
        folder = Path(scratch)
        small = ("simulate", "--scenario", "default", "--scheduler", "fcfs+easy", "--jobs", "100", "--force", "--out")
        figures["first_run_cpu_s"], _ = command(*small, str(folder / "small"), cache=folder / "cache")
        later = [command(*small, str(folder / "small"), cache=folder / "cache") for _ in range(REPEATS)]
        figures["later_run_cpu_s"] = min(cpu_s for cpu_s, _ in later)
        figures["later_run_wall_s"] = min(wall_s for _, wall_s in later)
        figures["help_cpu_s"] = min(command("--help")[0] for _ in range(REPEATS))
        for trace, figure in (
            ("swf/CEA-Curie-2011-2.1-cln.swf.gz", "cea_curie_cli_cpu_s"), ("swf/RICC-2010-2.swf.gz", "ricc_cli_cpu_s"),
        ):  # fmt: skip
            figures[figure] = None
            try:
                file = str(data_catalog.find(trace))
            except DataMissing:
                continue
            run = ("simulate", "--scenario", "plain", "--trace", file, "--scheduler", "fcfs+easy", "--force", "--out")
            figures[figure] = min(command(*run, str(folder / "large"))[0] for _ in range(2))


def processor() -> str:
    """Model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def measure(*, quick: bool) -> Figures:
    """All figures."""
    figures: Figures = {"processor": processor(), "load_average": os.getloadavg()[0], "calibration_s": calibration_s()}
    parts = (a_million_jobs, windows, changing_scores, *(() if quick else (whole_commands,)))
    return measured(figures, parts, TARGETS)


def measured(figures: Figures, parts: Sequence[Callable[[Figures], None]], targets: Iterable[str]) -> Figures:
    """The figures of several parts; null where a trace is missing, and the calibration repeated."""
    for part in parts:
        print(f"{part.__name__.replace('_', ' ')} ...", file=sys.stderr, flush=True)
        try:
            part(figures)
        except DataMissing as missing:
            print(f"left out: {missing}", file=sys.stderr)
    return {**dict.fromkeys(targets), **figures, "calibration_again_s": calibration_s()}


def table(figures: Figures, targets: dict[str, tuple[str, float]]) -> str:
    """Figures with their targets."""
    lines = []
    for name, value in figures.items():
        shown = "-" if value is None else f"{value:,.4g}" if isinstance(value, float) and value < 1000 else value
        shown = f"{value:,.0f}" if isinstance(value, float) and value >= 1000 else shown
        goal = ""
        if name in targets:
            sign, target = targets[name]
            met = value is not None and (value >= target if sign == ">=" else value <= target)
            goal = f"{sign} {target:,.10g}   {'reached' if met else 'MISSED' if value is not None else 'not measured'}"
        lines.append(f"{name:45} {shown!s:>16}   {goal}".rstrip())
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="skip whole command lines")
    options = parser.parse_args()
    figures = measure(quick=options.quick)
    print(json.dumps(figures, indent=2) if options.json else table(figures, TARGETS))


if __name__ == "__main__":
    main()
