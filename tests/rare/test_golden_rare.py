"""The 13 golden cases of a datacenter whose capacity follows the power: every job's start, end, state and spans."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from greenbatch.cluster import Capacity, Cluster
from greenbatch.engine.outcome import STATES, Outcome
from greenbatch.engine.pools import Pools
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.metrics import evaluate
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

CASES = sorted((Path(os.environ.get("GREENBATCH_REFERENCE", "none")) / "rare").glob("g*"))
POLICIES = ("sjf", "qos", "hvf", "fcfs", "sjf+bf", "qos+bf", "hvf+bf", "fcfs+bf")


def _table(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_csv(folder / f"{name}.csv.gz", infer_schema_length=None)


def _parts(folder: Path) -> tuple[dict[str, Any], Workload, Cluster, Rules]:
    config = json.loads((folder / "case.json").read_text())["config"]
    jobs, capacity = _table(folder, "jobs"), _table(folder, "capacity")
    workload = Workload.from_columns(
        folder.name,
        {
            "job_id": jobs["id"] + 1, "submit_s": jobs["enter"], "run_time_s": jobs["length"],
            "processors": jobs["cpu"], "gpus": jobs["gpu"], "qos": jobs["qos"], "value": jobs["value"],
            "power_w": np.zeros(len(jobs)),
        },
    )  # fmt: skip
    size, level = config["resources"], capacity["capacity"].to_numpy()
    changed = np.flatnonzero(np.diff(level, prepend=-1) != 0)
    known = Capacity(time_s=capacity["tick"].to_numpy()[changed], processors=level[changed], gpus=level[changed])
    pool = config["ready_pool"]
    pools = Pools(
        ready=pool, waiting=config["wait_pool"], suspended=config["suspend_pool"], admission=config["admission"],
        largest_request=config["max_job_resources"] or int(config["max_frac"] * size), end_s=config["T"],
        longest_request_s=config["max_job_duration"], horizon_s=config["horizon"],
        actions_per_tick=1 if config["action"] == "tick" else pool + 2,
        suspends={"no": "never"}.get(config["suspend"], config["suspend"]),
    )  # fmt: skip
    rules = Rules(event_rule="per_instant", ties="completion_first", pools=pools)
    return config, workload, Cluster.of_units(size, size, powered=known), rules


def _spans(outcome: Outcome, rows: int) -> list[str]:
    stays, shown = outcome.stays, [[] for _ in range(rows)]
    assert stays is not None
    for job, start_s, end_s in zip(stays.span_job, stays.span_start_s, stays.span_end_s, strict=True):
        shown[job].append(f"{start_s:.0f}-{outcome.rules.pools.end_s if np.isnan(end_s) else end_s:.0f}")
    return [";".join(each) for each in shown]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("folder", CASES, ids=lambda case: case.name)
def test_schedule_is_that_of_the_reference(folder: Path, policy: str) -> None:
    _, workload, cluster, rules = _parts(folder)
    name = policy.replace("+bf", "+first-fit") if "+" in policy else f"{policy}+none"
    outcome = simulate(workload, cluster, None, rules, scheduler(name))
    expected = _table(folder, f"schedule_{policy}")
    assert outcome.stays is not None
    state = np.array(STATES)[outcome.stays.state]
    shown = pl.DataFrame(
        {
            "id": workload.job_id - 1, "state": state, "start": np.nan_to_num(outcome.start_s, nan=-1).astype(int),
            "end": np.nan_to_num(outcome.end_s, nan=-1).astype(int), "suspensions": outcome.stays.suspensions,
            "gained": np.where(state == "finished", workload.value, 0.0), "spans": _spans(outcome, len(workload)),
        }
    )  # fmt: skip
    wanted = expected.select(shown.columns).with_columns(pl.col("spans").fill_null(""))
    different = [row for row in zip(shown.rows(), wanted.rows(), strict=True) if row[0] != row[1]]
    assert not different, different[:3]


TOTALS = {
    "value_finished": "total_job_value", "value_ontime": "on_time_value", "value_net": "net_value",
    "completion": "completion_ratio", "rejected": "jobs_rejected", "ready_ticks": "ready_ticks",
    "wait_ticks": "wait_ticks", "late_ticks": "late_ticks", "suspensions": "suspensions",
    "forced": "forced_suspensions", "jobs": "jobs", "finished": "jobs_counted",
}  # fmt: skip
"""Total of a case -> metric."""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("folder", CASES, ids=lambda case: case.name)
def test_totals_are_those_of_the_reference(folder: Path, policy: str) -> None:
    config, workload, cluster, rules = _parts(folder)
    name = policy.replace("+bf", "+first-fit") if "+" in policy else f"{policy}+none"
    outcome = simulate(workload, cluster, None, rules, scheduler(name))
    totals = json.loads((folder / "case.json").read_text())["totals"][policy]
    metrics = evaluate(outcome)
    assert {each: metrics[metric] for each, metric in TOTALS.items()} == pytest.approx(
        {each: totals[each] for each in TOTALS}, abs=1e-6
    )
    assert metrics["value_ratio"] == pytest.approx(totals["value_finished"] / totals["value_all"])
    cost = sum(totals[each] for each in ("ready_ticks", "wait_ticks", "late_ticks", "suspensions"))
    assert metrics["accrued_cost"] == cost
    # The reference counts from tick 0, the metric from the first submission.
    used = float(outcome.run_s @ (workload.processors + workload.gpus))
    first_s, end_s = float(workload.submit_s.min()), config["T"]
    whole, later = (sum(cluster.capacity_levels.available_s(begin_s, end_s)) for begin_s in (0.0, first_s))
    assert used / (2 * config["resources"] * end_s) == pytest.approx(totals["utilisation"])
    assert used / whole == pytest.approx(totals["utilisation_available"])
    assert metrics["utilization_available"] == pytest.approx(used / later)


def test_there_are_13_cases() -> None:
    assert len(CASES) == 13
