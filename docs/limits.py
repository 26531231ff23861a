"""Where the shipped models of ``gas-marl-plus`` break: ``python docs/limits.py`` prints the tables of the results page.

Needs the papers' traces and the HPC2N log, see ``greenbatch data list``; takes about two minutes.
"""

# ruff: noqa: RUF001 - multiplication signs are meant for the reader.

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import greenbatch as gb
from greenbatch.experiments.running.compare import Comparison
from greenbatch.scenarios import Scenario
from greenbatch.scenarios.scenario import scenario_path

TRACES = {"Lublin-256": "lublin-256", "Cirne": "cirne", "Jann": "jann"}
BOUNDS = (1.5, 1.25)
LOG = Path(__file__).parent / "limits" / "hpc2n-with-site.toml"


def bound_table(count: int = 40, seed: int = 1) -> list[str]:
    """How often random windows of a model's own trace exceed its makespan bound."""
    lines = ["| Trace | Bound [×] | Mean makespan [×] | Windows above the bound [%] | Above it by a tenth [%] |",
             "|:---|---:|---:|---:|---:|"]  # fmt: skip
    for trace, name in TRACES.items():
        for bound in BOUNDS:
            model = f"gas-marl-plus@{name}:makespan_bound={bound}"
            found = gb.compare(f"gas-marl/{name}", ["f2+easy-schedgym", model], windows=count, seed=seed)
            ratio = values(found, model, "makespan_ratio")
            above, far = (100 * sum(each > limit for each in ratio) / len(ratio) for limit in (bound, 1.1 * bound))
            lines.append(f"| {trace} | {bound} | {sum(ratio) / len(ratio):.3f} | {above:.0f} | {far:.1f} |")
    return lines


def long_table() -> list[str]:
    """Whole workloads and a supply without renewable power, beside F2 with backfilling."""
    lines = [
        "| Workload | Scheduler | Slowdown | Mean wait [h] | Longest wait [d] | Makespan [×] | Brown energy [MWh] |",
        "|:---|:---|---:|---:|---:|---:|---:|",
    ]
    models = [f"gas-marl-plus@lublin-256:makespan_bound={bound}" for bound in BOUNDS]
    whole = gb.load_scenario("gas-marl/lublin-256")
    everything = (0, len(whole.workload.job_id))
    lines += rows("Lublin-256, all 10,000 jobs", whole, ["f2+easy-schedgym", *models], *everything)
    log = gb.load_scenario(str(LOG))
    lines += rows("HPC2N, 202,871 jobs, users' estimates", log, ["f2+easy", *models], 0, log.evaluation.jobs)
    lines += rows("Lublin-256, published windows, no renewable power", dark(), ["f2+easy-schedgym", *models])
    return lines


def rows(label: str, scenario: Scenario, schedulers: Sequence[str], start: int | None = None,
         jobs: int | None = None) -> list[str]:  # fmt: skip
    """A line for each scheduler: means over the windows."""
    found = gb.compare(scenario, schedulers, starts=None if start is None else [start], jobs=jobs,
                       baseline=schedulers[0])  # fmt: skip
    lines = []
    for name in schedulers:
        slowdown, wait, longest, ratio, brown = (
            sum(given) / len(given) for metric in
            ("avg_bounded_slowdown", "avg_wait_s", "max_wait_s", "makespan_ratio", "common_horizon_brown_kwh")
            for given in [values(found, name, metric)]
        )  # fmt: skip
        figures = f"{slowdown:,.1f} | {wait / 3600:.1f} | {longest / 86_400:.1f} | {ratio:.3f} | {brown / 1000:.2f}"
        lines.append(f"| {label} | `{name}` | {figures} |")
    return lines


def values(found: Comparison, scheduler: str, metric: str) -> list[float]:
    """A metric of a scheduler, window by window."""
    frame = found.frame
    return frame.filter((frame["scheduler"] == scheduler) & (frame["metric"] == metric))["value"].to_list()


def dark() -> Scenario:
    """Lublin-256 with a site that gives next to nothing."""
    text = scenario_path("gas-marl/lublin-256").read_text(encoding="utf-8")
    for lit in ("area_m2 = 200", "rated_w = 7200"):
        text = text.replace(lit, f"{lit.partition('=')[0]}= 1e-6")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dark.toml"
        file.write_text(text, encoding="utf-8")
        return gb.load_scenario(str(file))


if __name__ == "__main__":
    print("\n".join([*bound_table(), "", *long_table()]))
