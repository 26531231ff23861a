"""RARE's rules, the packer and ``rare-plus`` on generated jobs: prints the tables of the results page.

``python docs/rare.py`` takes about two minutes; ``python docs/rare.py rare/10 MODEL...`` prints a row of other models.
Each is compared with strict QoS on the same jobs. Intervals (95 %) are over the draws of jobs, and for several models
also over their trainings.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

import greenbatch as gb
from greenbatch.engine.simulate import simulate
from greenbatch.scenarios import Scenario
from greenbatch.scenarios.regenerate import question

DRAWS = 20
FIRST = 100
"""First draw: the settings of the packer were looked at on lower ones."""
BASELINE = "qos+none"
RULES = ("sjf+none", "hvf+none", "fcfs+none", "random-action", "fcfs+first-fit", "qos+first-fit", "packer")
MODEL = "rare-plus@10"
SETTINGS: dict[str, tuple[str, dict[str, object]]] = {
    "10": ("rare/10", {}),
    "10, power 90 %": ("rare/10-intermittent80", {"cluster.capacity.level": 0.9}),
    "10, power 80 %": ("rare/10-intermittent80", {}),
    "10, load 60 %": ("rare/10", {"workload.generator.load": 0.6}),
    "10, load 120 %": ("rare/10", {"workload.generator.load": 1.2}),
    "20": ("rare/20", {}),
    "50": ("rare/50", {}),
    "50, requests up to 5": ("rare/50-fixed5", {}),
    "100, requests up to 5": ("rare/100-fixed5", {}),
}
"""Name -> scenario and what is changed."""


def values(scenario: Scenario, names: Sequence[str]) -> np.ndarray:
    """Value of the finished jobs, shape (names, draws)."""
    found = np.zeros((len(names), DRAWS))
    for k in range(DRAWS):
        workload, cluster = question(scenario, FIRST + k, 0)
        for row, name in enumerate(names):
            outcome = simulate(workload, cluster, scenario.site, scenario.rules, gb.scheduler(name))
            found[row, k] = workload.value[np.isfinite(outcome.end_s)].sum()
    return found


def interval(ratios: np.ndarray) -> str:
    """Mean and 95 % interval of ratios of shape (trainings, draws), in per cent above 1, by a bootstrap over both."""
    random = np.random.default_rng(0)
    trainings, draws = ratios.shape
    means = [
        ratios[np.ix_(random.integers(0, trainings, trainings), random.integers(0, draws, draws))].mean()
        for _ in range(2000)
    ]
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{100 * (ratios.mean() - 1):+.1f} [{100 * (low - 1):+.1f}, {100 * (high - 1):+.1f}]"


def main(only: Sequence[str], models: Sequence[str]) -> None:
    """Print a row of each setting."""
    names = [BASELINE, *RULES, *models]
    shown = [*RULES, "rare-plus", "rare-plus over fcfs+first-fit", "rare-plus over packer"]
    print(f"| Resources | {BASELINE} | " + " | ".join(shown) + " |")
    print("|:---|" + "---:|" * (len(shown) + 1))
    for label, (scenario, changes) in SETTINGS.items():
        if only and scenario not in only:
            continue
        found = values(gb.load_scenario(scenario, overrides=changes), names)
        rows = {name: found[k] for k, name in enumerate(names)}
        ours = found[1 + len(RULES) :]
        cells = [interval((rows[name] / found[0])[None]) for name in RULES]
        cells += [interval(ours / rows[name]) for name in (BASELINE, "fcfs+first-fit", "packer")]
        half = 1.96 * found[0].std(ddof=1) / np.sqrt(DRAWS)
        print(f"| {label} | {found[0].mean():,.0f} ± {half:,.0f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    main([each for each in given if each.startswith("rare/")], [each for each in given if "@" in each] or [MODEL])
