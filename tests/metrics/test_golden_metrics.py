"""The metrics of two published simulators, recomputed from their own schedules."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from by_hand import outcome_of

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.metrics import evaluate

Find = Callable[[str], Path]


def rows(path: Path) -> list[dict[str, str]]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize("trace", ["Lublin-1", "Lublin-2"])
def test_rlscheduler_schedules_give_the_published_metrics(greenbatch_reference: Find, trace: str) -> None:
    compared = 0
    for golden in rows(greenbatch_reference("rlscheduler/golden.csv")):
        if golden["trace"] != trace:
            continue
        name = f"{trace}_s{golden['start']}_n1024_{golden['scheduler']}_bf{golden['backfill']}.csv.gz"
        table = rows(greenbatch_reference(f"rlscheduler/schedules/{name}"))
        column = {key: np.array([float(row[key]) for row in table]) for key in table[0]}
        jobs = {
            "job_id": column["job_id"], "submit_s": column["submit_time"], "run_time_s": column["run_time"],
            "requested_time_s": column["request_time"], "processors": column["procs"],
        }  # fmt: skip
        order = np.argsort(column["job_id"])
        start = column["start_time"][order]
        end = start + column["run_time"][order]
        got = evaluate(outcome_of(jobs, start, end, Cluster.pooled(256)))
        expected = {
            "avg_bounded_slowdown": "avg_bsld", "avg_wait_s": "avg_wait", "avg_turnaround_s": "avg_turnaround",
            "avg_slowdown": "avg_slowdown", "utilization_to_last_start": "utilization",
            "utilization": "utilization_to_makespan", "makespan_s": "makespan",
        }  # fmt: skip
        for ours, theirs in expected.items():
            assert got[ours] == pytest.approx(float(golden[theirs]), rel=1e-12), (name, ours)
        assert np.isnan(got["renewable_utilization"])
        assert np.isnan(got["peak_power_w"])
        compared += 1
    assert compared == 54


@cache
def gas_marl_trace(swf: Path, power: Path) -> dict[str, np.ndarray]:
    """Columns of the trace on GAS-MARL's clock (the first line is 0), read without greenbatch's own reader."""
    with gzip.open(swf, "rt") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith(";")]
    with gzip.open(power, "rt") as file:
        digits = [line.strip() for line in file]
    per_processor = np.array([float(d) for d in digits if d.replace(".", "").isdigit()])
    field = np.array([[float(x) for x in line] for line in lines])
    processors = np.maximum(field[:, 4], field[:, 7])
    return {
        "job_id": field[:, 0], "submit_s": field[:, 1] - field[0, 1], "run_time_s": field[:, 3],
        "processors": processors, "power_w": processors * per_processor[: len(field)],
    }  # fmt: skip


def gas_marl_site(weather: Callable[[str], Path], scale: float) -> Site:
    """PV and wind of GAS-MARL Eqs. 17 and 18 with the shipped configuration, weather of 2016."""
    irradiance, wind = (
        np.array([float(row["2016"]) for row in rows(weather(f"weather/gasmarl_{name}.csv.gz"))])
        for name in ("irradianceS", "windspeedS")
    )
    # Python's own rounding: half cents are common in the scaled series, and numpy rounds some of them the other way.
    rated, area = 7200.0 * scale, 200.0 * scale
    ramp = np.array([round(rated * (v - 2.5) / 12.5, 2) if v < 15.0 else rated for v in wind.tolist()])
    turbine = np.where((wind <= 2.5) | (wind >= 30.0), 0.0, ramp)
    solar = np.array([round(0.2 * g * area, 2) for g in irradiance.tolist()])
    return Site(name="gas-marl", step_s=3600.0, sources_w={"solar": solar, "wind": turbine})


@pytest.mark.parametrize("trace", ["lublin_256", "Cirne", "Jann", "Jann_scaled"])
def test_gas_marl_schedules_give_the_published_renewable_utilization(
    greenbatch_reference: Find, greenbatch_data: Find, trace: str
) -> None:
    swf = "Jann" if trace == "Jann_scaled" else trace
    processors = 322 if swf == "Jann" else 256
    columns = gas_marl_trace(
        greenbatch_data(f"swf/{swf}.swf.gz"), greenbatch_data("power/gasmarl_power_per_proc_synthetic.csv.gz")
    )
    site = gas_marl_site(greenbatch_data, 322 / 256 if trace == "Jann_scaled" else 1.0)
    compared = 0
    for golden in rows(greenbatch_reference("gas-marl/golden.csv")):
        if golden["trace"] != trace:
            continue
        name = f"{trace}_{golden['start']}_{golden['scheduler'].rstrip('*')}_{golden['backfill']}.csv.gz"
        schedule = rows(greenbatch_reference(f"gas-marl/schedules/{name}"))
        ids = np.array([float(row["job_id"]) for row in schedule])
        where = np.searchsorted(columns["job_id"], ids)
        jobs = {key: values[where] for key, values in columns.items()}
        order = np.argsort(ids)
        start, end = (np.array([float(row[key]) for row in schedule])[order] for key in ("start", "end"))
        got = evaluate(outcome_of(jobs, start, end, Cluster.pooled(processors), site))
        assert got["avg_bounded_slowdown"] == pytest.approx(float(golden["avg_bsld"]), rel=1e-12), name
        assert got["renewable_utilization"] == pytest.approx(float(golden["re_util"]), rel=1e-12), name
        assert got["brown_kwh"] + got["renewable_used_kwh"] == pytest.approx(got["energy_kwh"], rel=1e-12)
        compared += 1
    assert compared == 30
