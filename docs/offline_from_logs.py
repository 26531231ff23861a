"""Agents that learn from the recorded starts of a log alone, on weeks of it that are held out.

``python docs/offline_from_logs.py train OUT`` records the decisions of HPC2N and SDSC Blue Horizon and trains `SEEDS`
agents on each with each of `LOSSES`; what is there already is kept. ``... table OUT`` prints their waits and slowdowns
on `WEEKS`, and those of the logged schedule and of rules. ``... value OUT`` compares fitted Q evaluation, from the
record alone, with the simulated value of the first agent. ``... table OUT logs/hpc2n`` is for one log. The logs are
those of `greenbatch data list`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from greenbatch.datasets import read, recording, write
from greenbatch.engine.simulate import simulate
from greenbatch.experiments.reports.estimates import agreement_table, value_table
from greenbatch.experiments.reports.terminal import TerminalTable
from greenbatch.experiments.running.estimates import estimates
from greenbatch.experiments.running.statistics import paired_difference
from greenbatch.learning.runs.plan import make_plan
from greenbatch.learning.trainers import train_or_search
from greenbatch.metrics import bounded_slowdown, wait_s
from greenbatch.models.model import MODEL, load_model
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler

PRESET = "site-offline"
WEEKS = {"logs/hpc2n": (22, 67, 113, 158), "logs/sdsc-blue": (17, 52, 87, 122)}
"""Log -> weeks held out, counted from the first submission: the middle of each quarter of the log."""
SEEDS = range(5)
LOSSES = ("binary", "clone")
"""The preset's loss, and for comparison one that copies every recorded start, whatever came of it."""
LEAD, AFTER = 2, 1
"""Weeks before a held-out one that are scheduled too, for it does not begin with an empty machine; and after it."""
OTHERS = ("as-recorded", "fcfs+easy", "sjf+easy", "f2+easy")
METRICS = ("Mean wait [h]", "Mean bounded slowdown")
WEEK_S = 7 * 86_400


def possible(question: Scenario, jobs: int) -> NDArray[np.int64]:
    """First jobs of the windows for training: none of their jobs is submitted less than `LEAD` weeks from `WEEKS`."""
    submit_s, first = question.workload.submit_s, np.arange(len(question.workload) - jobs + 1)
    begins, ends = submit_s[first] / WEEK_S, submit_s[first + jobs - 1] / WEEK_S
    clear = [(ends < week - LEAD) | (begins >= week + 1 + LEAD) for week in WEEKS[question.name]]
    return first[np.logical_and.reduce(clear)]


def train(out: Path, name: str) -> None:
    """Record and train what is missing; an interrupted training goes on."""
    question, dataset = load_scenario(name), out / name / "record"
    if not dataset.exists():
        made, unfinished = make_plan(PRESET, question), dataset.with_name("unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        done = write(
            recording(question, made.preset, "as-recorded", starts=lambda n: possible(question, n)), unfinished
        )
        unfinished.rename(dataset)
        print(f"{name}: {done.decisions:,} decisions of {len(done.starts)} windows", flush=True)
    for loss, seed in product(LOSSES, SEEDS):
        folder = out / name / loss / str(seed)
        if not (folder / MODEL).exists():
            given = {"training.off_policy.dataset": str(dataset), "training.off_policy.loss": loss}
            plan = make_plan(PRESET, question, overrides=given, seed=seed, threads=1)
            counters = train_or_search(plan, folder, watch=lambda _: None)
            print(f"{name}: {loss}, seed {seed}, {counters.elapsed_s:.0f} s", flush=True)


def figures(question: Scenario, name: str) -> NDArray[np.float64]:
    """`METRICS` of the jobs that are submitted in each of the weeks, shape (weeks, metrics)."""
    submit_s, rows = question.workload.submit_s, []
    for week in WEEKS[question.name]:
        first, last = np.searchsorted(submit_s, [(week - LEAD) * WEEK_S, (week + 1 + AFTER) * WEEK_S])
        jobs = question.window(int(first), int(last - first))
        found = simulate(jobs, question.cluster, None, question.rules, scheduler(name))
        own = jobs.submit_s // WEEK_S == week
        rows.append([wait_s(found)[own].mean() / 3600, bounded_slowdown(found)[own].mean()])
    return np.array(rows)


def table(out: Path, name: str) -> list[str]:
    """What schedulers reach, and how much less the agents do: over weeks and seeds, with 95 % intervals."""
    question, reached = load_scenario(name), {}
    for loss in LOSSES:
        models = [f"{PRESET}@{out / name / loss / str(seed) / MODEL}+easy" for seed in SEEDS]
        reached[f"{PRESET}, {loss}"] = np.stack([figures(question, model) for model in models])
    reached |= {other: figures(question, other)[None] for other in OTHERS}
    ours = next(iter(reached.values()))
    lines = [
        f"| {name} | {METRICS[0]} | Agents minus it | {METRICS[1]} | Agents minus it | Weeks: wait, slowdown |",
        "|:---|---:|---:|---:|---:|:---|",
        *(f"| {label} | {_cells(found, None if found is ours else ours)} |" for label, found in reached.items()),
    ]
    by_seed = ", ".join(f"{wait:.2f} / {slowdown:.1f}" for wait, slowdown in ours.mean(axis=1))
    return [*lines, "", f"Means of the seeds (wait / slowdown): {by_seed}", ""]


def _cells(found: NDArray[np.float64], ours: NDArray[np.float64] | None) -> str:
    """Means over the weeks, how much less the agents' are, and each week; arrays are (seeds, weeks, metrics)."""
    cells = []
    for k, mean in enumerate(found.mean(axis=(0, 1))):
        gap = None if ours is None else paired_difference(ours[..., k], found[..., k]).difference
        told = "" if gap is None else f"{gap.mean:.2f} [{gap.low:.2f}, {gap.high:.2f}] ({100 * gap.mean / mean:+.0f} %)"
        cells += [f"{mean:.2f}", told]
    return " | ".join([*cells, "; ".join(f"{wait:.2f}, {slowdown:.1f}" for wait, slowdown in found.mean(axis=0))])


def value(out: Path, name: str) -> None:
    """Fitted Q evaluation of an agent beside its simulated value on the recorded windows."""
    model = load_model(out / name / LOSSES[0] / str(SEEDS[0]) / MODEL)
    found = estimates(model, read(out / name / "record"), scenario=load_scenario(name))
    for made in (agreement_table, value_table):
        Console().print(TerminalTable(made(found)))


def main(what: str, out: Path, names: Sequence[str]) -> None:
    """Train, or print tables, log after log."""
    for name in names or tuple(WEEKS):
        if what == "train":
            train(out, name)
        elif what == "table":
            print("\n".join(table(out, name)), flush=True)
        else:
            value(out, name)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
