"""The golden results: published simulators' schedules, and the scenarios they were made in."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from greenbatch.scenarios import Scenario, load_scenario

Find = Callable[[str], Path]

POLICIES = {
    "FCFS": "fcfs", "SJF": "sjf", "SMALLEST": "smallest", "F1": "f1", "F2": "f2", "F3": "f3", "F4": "f4",
    "WFP3": "wfp3-published", "UNICEP": "unicep-published", "LPTPN": "lptpn-published",
}  # fmt: skip
BACKFILLS = {"none": "none", "easy": "easy-schedgym", "green": "green", "0": "none", "1": "easy-schedgym"}
SCENARIOS = {
    "lublin_256": "gas-marl/lublin-256", "Cirne": "gas-marl/cirne", "Jann": "gas-marl/jann",
    "Jann_scaled": "gas-marl/jann", "Lublin-1": "rlscheduler/lublin-1", "Lublin-2": "rlscheduler/lublin-2",
}  # fmt: skip


class Schedule(NamedTuple):
    """A golden schedule in order of job id."""

    job_id: NDArray[np.int64]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]


def scenario(trace: str, find_data: Find) -> Scenario:
    """The scenario of a golden trace; skips (or fails) where its data is not there."""
    return _scenario(trace, find_data("swf").parent)


@cache
def _scenario(trace: str, data: Path) -> Scenario:
    # "Jann" is the code as shipped, "Jann_scaled" the paper's tables: sun and wind times 322/256.
    overrides = {"site.reference_processors": None} if trace == "Jann" else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "GREENBATCH_DATA", str(data))
        return load_scenario(SCENARIOS[trace], overrides=overrides)


def golden_rows(path: Path) -> list[dict[str, str]]:
    """Rows of golden.csv."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def golden_schedule(path: Path) -> Schedule:
    """Read a golden schedule of either simulator."""
    with gzip.open(path, "rt") as file:
        columns = file.readline().strip().split(",")
        table = dict(zip(columns, np.loadtxt(file, delimiter=",", unpack=True), strict=True))
    start_s = table["start"] if "start" in table else table["start_time"]
    end_s = table["end"] if "end" in table else start_s + table["run_time"]
    order = np.argsort(table["job_id"])
    return Schedule(table["job_id"][order].astype(np.int64), start_s[order], end_s[order])
