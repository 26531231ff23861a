"""``foresee`` on whole logs, real ones with users' own requests and models': prints the tables of the results page.

``python docs/whole_logs.py`` needs the logs of HPC2N, SDSC Blue Horizon and CEA Curie and GAS-MARL's three traces, see
``greenbatch data list``; takes about five minutes. ``python docs/whole_logs.py logs/hpc2n`` prints the rows of one log.
"""

# ruff: noqa: RUF001 - the multiplication sign is meant for the reader.

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

import greenbatch as gb
from greenbatch.energy.forecasts import ForecastModel
from greenbatch.engine.accounts import books
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.simulate import simulate

SHIFTS_D = (0, 91, 200)
"""The site's year begins so many days before the log, a row each. [d]"""
BASELINE = "f2+easy"
ERRING = ForecastModel(sigma=0.4)


class Log(NamedTuple):
    """A whole log and what is shown of it."""

    name: str
    schedulers: tuple[str, ...]
    """Beside the baseline; the second one is also shown with `ERRING` forecasts."""
    first: int = 0
    """First job."""
    after_d: int = 30
    """Energy is counted from the first submission until so long after the last. [d]"""


REAL = ("foresee:holds=0", "foresee", "foresee:price=0.5")
MODELS = ("foresee:reserve=0.3:backlog=8:holds=0", "foresee:reserve=0.3:backlog=8:price=0.3")
LOGS = {
    "logs/hpc2n": Log("HPC2N, jobs 50,000 on", REAL, first=50_000),
    "logs/sdsc-blue": Log("SDSC-BLUE", REAL),
    "logs/cea-curie": Log("CEA-Curie", REAL),
    "gas-marl/lublin-256": Log("Lublin-256", MODELS, after_d=120),
    "gas-marl/cirne": Log("Cirne", MODELS, after_d=120),
    "gas-marl/jann": Log("Jann", MODELS, after_d=120),
}
"""By scenario. Models of overloaded machines: their last jobs end long after the last submission."""
BLOCKS, DRAWS = 8, 2000
"""Blocks of a log, of equal numbers of jobs and of equal times, and draws of shifts and blocks for an interval."""
HEAD = (
    "| Log | Scheduler | Slowdown | × | without the largest 0.1 % | Wait, mean / p95 [h] | Waits > 24 h [%] |"
    " Longest [d] | Brown energy [MWh] | Saved [%] | Supply ÷ load |"
)


class Run(NamedTuple):
    """What a scheduler did under one shift of the site's year."""

    figures: np.ndarray
    """See `figures`."""
    slowdowns: np.ndarray
    """Mean of each block of jobs, shape (`BLOCKS`,)."""
    grid_j: np.ndarray
    """Brown energy of each block of time, shape (`BLOCKS`,). [J]"""
    supply: float
    """Own supply over load."""


def run_of(outcome: Outcome, after_d: float) -> Run:
    """The figures of an outcome, whole and by blocks of the log."""
    jobs = outcome.workload
    wait_s, run_s = outcome.start_s - jobs.submit_s, outcome.end_s - outcome.start_s
    slowdown = np.maximum(1.0, (wait_s + run_s) / np.maximum(run_s, 10.0))
    edges_s = np.linspace(jobs.submit_s.min(), jobs.submit_s.max() + after_d * 86_400.0, BLOCKS + 1)
    parts = [books(outcome, float(begin_s), float(end_s)) for begin_s, end_s in pairwise(edges_s)]
    grid_j = np.array([part.grid_j for part in parts])
    supply = sum(part.renewable_j for part in parts) / sum(part.load_j for part in parts)
    by_submission = np.array_split(slowdown[np.argsort(jobs.submit_s, kind="stable")], BLOCKS)
    return Run(
        figures(slowdown, wait_s, grid_j.sum()), np.array([each.mean() for each in by_submission]), grid_j, supply
    )


def figures(slowdown: np.ndarray, wait_s: np.ndarray, grid_j: float) -> np.ndarray:
    """Slowdown, cut slowdown, wait, its 95 % quantile [h], share of waits over a day [%], longest wait [d], MWh."""
    cut = np.minimum(slowdown, np.quantile(slowdown, 0.999))
    return np.array([
        slowdown.mean(), cut.mean(), wait_s.mean() / 3600, np.quantile(wait_s, 0.95) / 3600,
        100 * (wait_s > 86_400).mean(), wait_s.max() / 86_400, grid_j / 3.6e9,
    ])  # fmt: skip


def interval(own: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Ends of the 95 % interval of a ratio of means: shifts and blocks, shape (shifts, blocks), are drawn anew."""
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(DRAWS):
        drawn = np.ix_(*(rng.integers(0, size, size) for size in own.shape))
        ratios.append(own[drawn].sum() / base[drawn].sum())
    return np.quantile(ratios, (0.025, 0.975))


def rows(name: str) -> list[str]:
    """A line per scheduler: means over the shifts."""
    log, scenario = LOGS[name], gb.load_scenario(name)
    jobs = scenario.window(log.first, len(scenario.workload) - log.first)

    def runs(scheduler: str, forecast: ForecastModel) -> list[Run]:
        sites = [replace(scenario.site, origin_s=scenario.site.origin_s - shift * 86_400.0, forecast_model=forecast)
                 for shift in SHIFTS_D]  # fmt: skip
        made = [simulate(jobs, scenario.cluster, site, scenario.rules, gb.scheduler(scheduler)) for site in sites]
        return [run_of(each, log.after_d) for each in made]

    asked = [(BASELINE, ForecastModel()), *((each, ForecastModel()) for each in log.schedulers),
             (log.schedulers[1], ERRING)]  # fmt: skip
    lines, base = [], runs(BASELINE, ForecastModel())
    for scheduler, forecast in asked:
        found = base if scheduler == BASELINE else runs(scheduler, forecast)
        slowdown, cut, wait_h, late_h, share, longest_d, brown = np.mean([each.figures for each in found], axis=0)
        usual = np.mean([each.figures for each in base], axis=0)
        times, left = (
            interval(*(np.stack([getattr(each, name) for each in some]) for some in (found, base)))
            for name in ("slowdowns", "grid_j")
        )
        told = f"`{scheduler}`" + ("" if forecast == ForecastModel() else f", forecasts with {forecast.text}")
        lines.append(
            f"| {log.name} | {told} | {slowdown:.1f} |"
            f" {slowdown / usual[0]:.2f} [{times[0]:.2f}, {times[1]:.2f}] | {cut:.1f} |"
            f" {wait_h:.2f} / {late_h:.1f} |"
            f" {share:.1f} | {longest_d:.0f} | {brown:,.1f} | {100 * (1 - brown / usual[-1]):.1f}"
            f" [{100 * (1 - left[1]):.1f}, {100 * (1 - left[0]):.1f}] | {np.mean([each.supply for each in base]):.2f} |"
        )
    return lines


def main(names: Sequence[str]) -> None:
    """Print the table, a log as soon as it is done."""
    print(HEAD)
    print("|:---|:---|" + "---:|" * 9)
    for name in names or tuple(LOGS):
        for line in rows(name):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
