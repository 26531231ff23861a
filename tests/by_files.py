"""A scenario of a few lines of text, so that tests of schedules and sums know no part of the engine."""

from __future__ import annotations

from pathlib import Path

import greenbatch as gb

RULE = "fcfs+easy"


def scenario(folder: Path, jobs: str, described: str, **files: str) -> gb.Scenario:
    """Write a scenario and read it.

    Args:
        folder: an empty folder.
        jobs: rows of jobs after a header, separated by line breaks; blanks separate columns.
        described: the tables of the scenario without ``[workload]``.
        files: name without ``.csv`` -> rows of another file of the folder, in the same form.
    """
    for name, rows in {"jobs": jobs, **files}.items():
        lines = [",".join(row.split()) for row in rows.strip().splitlines()]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    workload = '[workload]\nfile = "jobs.csv"\n'
    if "[workload" in described:
        workload = ""
    (folder / "scenario.toml").write_text(f'name = "by hand"\n{workload}{described}')
    return gb.load_scenario(folder / "scenario.toml")


def outcome(folder: Path, jobs: str, described: str, rule: str = RULE, **files: str) -> gb.Outcome:
    """The outcome of a scheduler on all jobs of `scenario`."""
    made = scenario(folder, jobs, described, **files)
    return gb.simulate(made, rule)
