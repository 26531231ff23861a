"""Time of one decision of a planner at 256 waiting and 64 running jobs: wall time, one thread.

``python benchmarks/planners.py`` prints a table with the targets, ``--json`` one object of named figures. Jobs are
those of ``gas-marl/lublin-256``; the 64 that run take at most two processors each and run for over a day, so that half
of the machine is free and every waiting job is considered.

- ``*_us``: a compiled decision in the state of a simulation: one start, or the wait at the end of an instant. The
  longest of an instant: the first one plans all waiting jobs. One of gas-marl-plus is of all starts together.
- ``*_instant_us``: all of the instant, some 50 to 70 starts and the wait.
- ``*_from_view_us``: `ViewDriver.decide`, as a live batch system would ask: check a view, make a state of it, decide.
- ``rolling_*_ms``: a whole decision of the rolling-horizon planner from a view, with futures and all simulations.

Each view is of a new instant, for the rolling-horizon planner half an hour after the last. Figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from dataclasses import replace

import numpy as np
from decision import Figures, median_us, table

from greenbatch.engine.entry_points import step, with_decider
from greenbatch.engine.observe.stacked import fork
from greenbatch.engine.prepare import rule_settings
from greenbatch.engine.program import Program, decider_of
from greenbatch.engine.scores import queue_now, scores_of
from greenbatch.engine.state import set_rules
from greenbatch.engine.views.codec import state_of
from greenbatch.engine.views.driver import ViewDriver
from greenbatch.engine.views.interface import Start, View, Wait
from greenbatch.engine.views.session import Session
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

WAITING, RUNNING = 256, 64
PLANNERS = {
    "gas_marl_plus": "gas-marl-plus@lublin-256", "foresee": "foresee", "cheapest_start": "cheapest-start",
}  # fmt: skip
TARGETS: dict[str, float] = {
    **{f"{name}_us": 200.0 for name in PLANNERS}, "rolling_perfect_ms": 50.0, "rolling_sampled_ms": 50.0,
}  # fmt: skip
"""Figure -> upper limit on one core of a machine of 2025. [µs, ms]"""
REPEATS, ROLLING_REPEATS = 500, 15
DAY_S, HALF_HOUR_S = 86_400.0, 1800.0


def busy_window(scenario: Scenario) -> Workload:
    """The jobs: the first ones narrow and long, all of them submitted within minutes, and others a day later."""
    jobs = scenario.window(0, WAITING + RUNNING + 200)
    run_s, processors, submit_s = (np.array(each) for each in (jobs.run_time_s, jobs.processors, jobs.submit_s))
    run_s[:RUNNING] += 2 * DAY_S
    processors[:RUNNING] = np.minimum(processors[:RUNNING], 2)
    submit_s[: WAITING + RUNNING] = submit_s[0] + np.arange(WAITING + RUNNING)
    submit_s[WAITING + RUNNING :] += DAY_S / 2
    return jobs.with_columns(run_time_s=run_s, requested_time_s=run_s, processors=processors, submit_s=submit_s)


def busy_view(scenario: Scenario, jobs: Workload, predictor: str | None = None) -> View:
    """The view once 256 jobs wait and 64 run, with predicted run times if a predictor is given."""
    session = Session(jobs, scenario.cluster, scenario.site, scenario.rules, Program(name="busy", predictor=predictor))
    while (view := session.view()) is not None:
        if len(view.job_id) == WAITING:
            return view
        session.apply(Start(0) if len(view.running.job_id) < RUNNING else Wait())
    raise RuntimeError("the queue was never long enough")


def later(view: View, by_s: float) -> View:
    """The same jobs some time later. [s]"""
    now_s = view.now_s + by_s
    queue = view.queue._replace(now_s=now_s, wait_s=now_s - view.queue.submit_s)
    return replace(view, now_s=now_s, queue=queue, cause="wake-up")


def in_engine_us(name: str, scenario: Scenario, jobs: Workload, view: View) -> tuple[float, float]:
    """The longest decision of an instant, and all of them, in a state which is copied before every repeat. [µs]"""
    program = scheduler(name).program(jobs)
    assert program.decider is not None or program.score is not None
    state = state_of(view, 0.0 if program.decider is None else program.decider.ahead_s, 10 * DAY_S)
    set_rules(state, scenario.rules, rule_settings(program))
    if program.score is not None and program.fixed:
        state.queue.score[:WAITING] = scores_of(program, queue_now(state), view.now_s)
    decider = decider_of(program, jobs, scenario.cluster, scenario.rules)
    decide, settle = with_decider("decide", state, decider), with_decider("settle", state, decider)
    each: list[list[float]] = []
    together: list[float] = []
    for _ in range(REPEATS):
        copy, asked = fork(state), fork(decider)
        each.append([])
        while step("is-due", copy)(copy):
            begin = time.perf_counter()
            decide(copy, asked)
            each[-1].append(time.perf_counter() - begin)
        copy, asked = fork(state), fork(decider)
        begin = time.perf_counter()
        settle(copy, asked)
        together.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(each, axis=0).max()), 1e6 * float(np.median(together))


def from_view_us(name: str, scenario: Scenario, jobs: Workload, view: View) -> float:
    """A driver asked at successive instants. [µs]"""
    made = scheduler(name)
    driver = ViewDriver(made.program(jobs), made.policy(), scenario.cluster, scenario.rules)
    views = (later(view, 0.001 * k) for k in range(10**6))
    return median_us(lambda _: driver.decide(next(views)), REPEATS)


def rolling_ms(knowledge: str, scenario: Scenario, jobs: Workload, view: View) -> float:
    """The rolling-horizon planner asked at successive half-hours. [ms]"""
    program = scheduler(f"rolling:knowledge={knowledge}").program(jobs)
    assert program.policy is not None
    policy = program.policy(program, jobs, scenario.cluster, scenario.site, scenario.rules)
    times: list[float] = []
    for k in range(ROLLING_REPEATS + 1):
        asked = later(view, k * HALF_HOUR_S)
        begin = time.perf_counter()
        policy.decide(asked)
        times.append(time.perf_counter() - begin)
    return 1e3 * float(np.median(times[1:]))


def measured() -> Figures:
    """All figures."""
    scenario = load_scenario("gas-marl/lublin-256")
    jobs = busy_window(scenario)
    view = busy_view(scenario, jobs)
    figures: Figures = {"machine": platform.machine(), "load_average": os.getloadavg()[0]}
    figures |= {"waiting": len(view.job_id), "running": len(view.running.job_id)}
    figures["free_processors"] = int(view.queue.free_processors)
    for name, spec in PLANNERS.items():
        seen = busy_view(scenario, jobs, scheduler(spec).program(jobs).predictor)
        figures[f"{name}_us"], figures[f"{name}_instant_us"] = in_engine_us(spec, scenario, jobs, seen)
        figures[f"{name}_from_view_us"] = from_view_us(spec, scenario, jobs, seen)
    for knowledge in ("perfect", "sampled"):
        figures[f"rolling_{knowledge}_ms"] = rolling_ms(knowledge, scenario, jobs, view)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    figures = measured()
    print(json.dumps(figures, indent=2) if options.json else table(figures, TARGETS))


if __name__ == "__main__":
    main()
