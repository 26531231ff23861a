"""How well run times are predicted on whole real logs: prints the tables of the results page.

``python docs/predictions.py`` needs the logs of HPC2N, SDSC Blue Horizon, CEA Curie and RICC, see ``greenbatch data
list``; takes about four minutes. ``python docs/predictions.py logs/hpc2n my.toml`` does it for the jobs and the machine
of some scenarios.

Every job is predicted when it is submitted, from the jobs that have ended by then under ``f2+easy``, by the engine
itself. The point prediction is the median, for ``last-two`` the mean of two. Nothing is left out: the first jobs are
predicted from nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import process_time
from typing import Any, NamedTuple, get_args

import numba as _numba
import numpy as np

import greenbatch as gb
from greenbatch.engine.codes import LOG_FULL, WAKE_UP
from greenbatch.engine.decide import decide
from greenbatch.engine.entry_points import kind_of
from greenbatch.engine.log import drained, new_readings
from greenbatch.engine.observe.stacked import type_of
from greenbatch.engine.prediction.known import predicts
from greenbatch.engine.prepare import prepare
from greenbatch.engine.program import decider_of
from greenbatch.engine.records import SHORT_S
from greenbatch.engine.rules import PredictorName
from greenbatch.engine.scores import predicted_by_requests
from greenbatch.engine.simulate import last_state
from greenbatch.engine.state import State
from greenbatch.engine.step import advance
from greenbatch.engine.views.interface import Predicted
from greenbatch.machine_code.compile import entry, whole
from greenbatch.policies.compiled.foresee import running_end_s
from greenbatch.scenarios import Scenario
from greenbatch.workload import Workload

numba: Any = _numba

SCHEDULER = "f2+easy"
LOGS: dict[str, tuple[str, dict[str, Any]]] = {
    "HPC2N": ("logs/hpc2n", {}),
    "SDSC-BLUE": ("logs/sdsc-blue", {}),
    "CEA-Curie": ("logs/cea-curie", {}),
    "RICC": ("logs/hpc2n", {"workload.dataset": "swf/RICC-2010-2.swf.gz", "cluster.processors": 8192}),
}
"""Name -> scenario, and what differs from it; power plays no part."""
FEW = 200
"""Jobs of a first run, which compiles and is not measured."""
DECILES = 10
TICK_S = 7200.0
"""Time between two looks at the running jobs, while jobs wait. [s]"""


class Seen(NamedTuple):
    """What was predicted of each job, its run time, and the computing time of the simulation."""

    predicted: Predicted
    run_s: Any
    """Shape (n,). [s]"""
    computing_s: float


def seen(scenario: Scenario, jobs: Workload, predictor: PredictorName) -> Seen:
    """Simulate, and keep the predictions of the submissions: without wake-ups, nothing replaces them."""
    rules = replace(scenario.rules, predictor=predictor, tick_s=0.0)
    program = gb.scheduler(SCHEDULER).program(jobs)
    begin_s = process_time()
    state, readings = last_state(jobs, scenario.cluster, None, rules, program)
    computing_s = process_time() - begin_s
    read, known = readings.columns, state.predictor.jobs
    shown = predicted_by_requests(jobs.requested_time_s)
    if predicts(state.predictor):
        shown = Predicted(*(known[name] for name in Predicted._fields))
    return Seen(shown, read.end_s - read.start_s, computing_s)


def figures(found: Seen, without_s: float) -> list[str]:
    """Cells of a row; of the computing time, what the simulation with requested times takes is not the predictor's."""
    predicted, run_s = found.predicted, np.maximum(found.run_s, 1.0)
    point_s = np.maximum(predicted.expected_time_s, 1.0)
    accuracy = np.minimum(point_s, run_s) / np.maximum(point_s, run_s)
    price, true = predicted.slowdown_price, 1.0 / np.maximum(run_s, SHORT_S)
    outside = (run_s < predicted.shortest_time_s).mean(), (run_s > predicted.longest_time_s).mean()
    cost_us = 1e6 * (found.computing_s - without_s) / len(run_s)
    return [
        f"{accuracy.mean():.2f}", f"{100 * (point_s < run_s).mean():.0f}",
        f"{100 * outside[0]:.0f} / {100 * outside[1]:.0f}", f"{1000 * price.mean():.1f} / {1000 * true.mean():.1f}",
        f"{cost_us:.0f}" if without_s < found.computing_s else "0",
    ]  # fmt: skip


def calibration(found: Seen) -> list[str]:
    """Mean predicted and true price of slowdown of each tenth of the jobs, lowest predictions first. [1/(1000 s)]"""
    price, true = found.predicted.slowdown_price, 1.0 / np.maximum(found.run_s, SHORT_S)
    tenths = np.array_split(np.argsort(price, kind="stable"), DECILES)
    return [f"{1000 * price[rows].mean():.2f} / {1000 * true[rows].mean():.2f}" for rows in tenths]


def _compare(s: State, decider: Any, known_s: Any, sums: Any) -> None:
    """Simulate, and at wake-ups compare how long running jobs will run on with both expectations of it."""
    while advance(s):
        c = s.clock
        if c.event == WAKE_UP:
            for k in range(c.expected_first, c.expected_first + c.running):
                number, ran_s = whole(s.expected[k].job), c.now_s - s.expected[k].start_s
                requested_s, left_s = s.jobs[number].requested_s, s.jobs[number].run_s - ran_s
                if ran_s <= 0.0 or left_s <= 0.0:
                    continue
                kept_s = running_end_s(0.0, ran_s, known_s[number], requested_s) - ran_s
                corrected_s = s.predictor.jobs[number].expected_time_s - ran_s
                sums[0] += 1.0
                sums[1] += max(1.0, min(kept_s, left_s)) / max(1.0, kept_s, left_s)
                sums[2] += max(1.0, min(corrected_s, left_s)) / max(1.0, corrected_s, left_s)
                sums[3] += abs(kept_s - left_s)
                sums[4] += abs(corrected_s - left_s)
        for i in range(c.first, c.last):
            known_s[s.queue.job[i]] = s.predictor.jobs[s.queue.job[i]].expected_time_s
        decide(decider, s)


def while_running(scenario: Scenario, jobs: Workload) -> list[str]:
    """Accuracy and mean error of the time left: if a prediction is doubled when it is outlived, and as corrected."""
    rules = replace(scenario.rules, predictor="learned", tick_s=TICK_S)
    program = gb.scheduler(SCHEDULER).program(jobs)
    state: Any = prepare(jobs, scenario.cluster, None, rules, program)
    decider, readings = decider_of(program, jobs, scenario.cluster, rules), new_readings(len(jobs))
    known_s, sums = np.zeros(len(jobs)), np.zeros(5)
    column = numba.typeof(sums)
    kinds = numba.types.void(type_of(state).numba, kind_of(decider).numba, column, column)
    compare = entry("compare-predictions", _compare, kinds)
    compare(state, decider, known_s, sums)
    while state.clock.status == LOG_FULL:
        state = drained(state, readings)
        compare(state, decider, known_s, sums)
    means = sums[1:] / sums[0]
    return [f"{sums[0]:,.0f}", *(f"{each:.2f}" for each in means[:2]), *(f"{each / 3600:.1f}" for each in means[2:])]


def line(cells: Sequence[str]) -> str:
    """A line of a table."""
    return "| " + " | ".join(cells) + " |"


def scenarios(names: Sequence[str]) -> Iterator[tuple[str, Scenario]]:
    """Name and scenario of each log."""
    for label, (name, changes) in ({each: (each, {}) for each in names} or LOGS).items():
        yield label, gb.load_scenario(name, overrides=changes)


def main(names: Sequence[str]) -> None:
    """Print the tables."""
    below = []
    heads = ("Log", "Predictor", "Accuracy", "Underestimated [%]", "Below its 10 %, above its 90 % quantile [%]",
             "Price of slowdown, predicted / true [1/(1000 s)]", "Cost [µs/job]")  # fmt: skip
    print(line(heads))
    print("|:---|:---|" + "---:|" * 5)
    for label, scenario in scenarios(names):
        jobs, without_s = scenario.window(), np.inf
        for predictor in get_args(PredictorName):
            seen(scenario, scenario.window(0, min(FEW, len(jobs))), predictor)
            found = seen(scenario, jobs, predictor)
            without_s = min(without_s, found.computing_s)
            print(line([label, f"`{predictor}`", *figures(found, without_s)]), flush=True)
        below.append(line([label, *calibration(found)]))
    print()
    print(line(["Log", *(f"{10 * k + 1} to {10 * k + 10} %" for k in range(DECILES))]))
    print("|:---|" + "---:|" * DECILES)
    print("\n".join(below))
    print()
    print(line(["Log", "Pairs", "Accuracy: doubled", "corrected", "Mean error [h]: doubled", "corrected"]))
    print("|:---|" + "---:|" * 5)
    for label, scenario in scenarios(names):
        print(line([label, *while_running(scenario, scenario.window())]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
