"""Signals reach a simulation although compiled code does not hear them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.compiled

ENDLESS = """
import sys, time
from greenbatch.cluster import Cluster
from greenbatch.engine import simulate as engine
from greenbatch.engine.rules import Rules
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

def wait_for(run_time_s):
    jobs = Workload.from_columns("long", {"submit_s": [0, 1], "run_time_s": [run_time_s, 1], "processors": [2, 2]})
    engine.simulate(jobs, Cluster.pooled(2), None, Rules(tick_s=1.0), scheduler("fcfs+none"))

wait_for(10.0)  # compiles
run = engine._to_the_end

def begin(part, state, *others):
    try:
        print("begins", flush=True)
        return run(part, state, *others)
    except BaseException as error:
        at_s = float(state.clock.now_s)
        time.sleep(0.1)
        print(type(error).__name__, float(state.clock.now_s) == at_s < 1e9, flush=True)
        raise

engine._to_the_end = begin
wait_for(1e9)
"""
"""A job that waits through a thousand million ticks."""


def test_ctrl_c_stops_compiled_code() -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == "begins\n"
        time.sleep(0.5)  # now it runs
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate(timeout=60)
    finally:
        run.kill()
    assert said == "KeyboardInterrupt True\n"


def test_errors_of_a_simulation_reach_the_caller() -> None:
    from greenbatch.engine.simulate import _to_the_end

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _to_the_end(fail, None, None, None)
