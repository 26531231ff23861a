"""Invented jobs in the exact schema of PM100 and of F-DATA: all columns, in the types that the data sets have."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from greenbatch.workload import Workload

START = {"pm100": datetime(2020, 5, 5, tzinfo=UTC), "fdata": datetime(2023, 6, 1)}
EMBEDDED = 384
"""Length of F-DATA's embeddings."""
FUGAKU_CORES, MARCONI_CORES = 48, 128
"""Cores of a node, as the data sets count them."""


def pm100(jobs: int, seed: int = 0) -> pl.DataFrame:
    """PM100's 35 columns: power every 20 s, as sums over the nodes of a job."""
    rng = np.random.default_rng(seed)
    nodes = rng.choice([1, 1, 2, 4, 16], jobs)
    run_s = np.round(rng.lognormal(6, 1.5, jobs)).clip(20, 86_400).astype(np.int64)
    submit_s = np.cumsum(rng.exponential(60, jobs)).astype(np.int64)
    wait_s = rng.integers(0, 7200, jobs)
    cores = MARCONI_CORES * nodes
    power_w = 600 * nodes + rng.integers(0, 300, jobs)
    count = run_s // 20
    layouts = [json.dumps({f"{n}": list(range(4)) for n in range(k)}) for k in nodes.tolist()]

    def texts(*values: str) -> list[str]:
        return rng.choice(values, jobs).tolist()

    def stamps(seconds: np.ndarray) -> pl.Series:
        return pl.Series(seconds * 1e6 + START["pm100"].timestamp() * 1e6).cast(pl.Datetime("us", "UTC"))

    def samples(watts: np.ndarray, lengths: np.ndarray) -> pl.Series:
        ends = np.concatenate(([0], np.cumsum(lengths)))
        values = pl.Series(np.repeat(watts, lengths) + rng.integers(-40, 41, ends[-1]))
        rows = pl.DataFrame({"row": np.repeat(np.arange(jobs), lengths), "watts": values})
        lists = rows.group_by("row", maintain_order=True).agg("watts")
        joined = pl.DataFrame({"row": np.arange(jobs)}).join(lists, on="row", how="left", maintain_order="left")
        return joined["watts"].fill_null(pl.Series([[]], dtype=pl.List(pl.Int64)))

    columns = {
        "cores_alloc_layout": layouts, "cores_allocated": layouts, "cores_per_task": rng.integers(1, 5, jobs),
        "derived_ec": texts("0:0", "1:0"), "eligible_time": stamps(submit_s),
        "end_time": stamps(submit_s + wait_s + run_s),
        "group_id": rng.integers(1, 9, jobs), "job_id": rng.permutation(jobs) + 1000,
        "job_state": texts("COMPLETED", "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"),
        "nodes": [list(range(k)) for k in nodes.tolist()], "num_cores_req": cores, "num_cores_alloc": cores,
        "num_nodes_req": nodes, "num_nodes_alloc": nodes, "num_gpus_req": 4 * nodes, "num_gpus_alloc": 4 * nodes,
        "mem_req": 200 * nodes, "mem_alloc": 200 * nodes,
        "num_tasks": pl.Series(nodes.astype(float)).set(pl.Series(rng.random(jobs) < 0.04), None),
        "partition": texts("0", "1", "2"), "priority": rng.integers(1, 10**6, jobs), "qos": texts("0", "1"),
        "req_nodes": pl.Series(texts("r1", "r2")).set(pl.Series(rng.random(jobs) < 0.89), None),
        "req_switch": np.zeros(jobs, dtype=np.int64), "run_time": run_s, "shared": texts("0", "OK"),
        "start_time": stamps(submit_s + wait_s), "state_reason": texts("None", "TimeLimit"),
        "submit_time": stamps(submit_s), "threads_per_core": pl.Series([None] * jobs, dtype=pl.Float64),
        "time_limit": np.ceil(run_s / 60 * rng.choice([1, 2, 10], jobs)).astype(np.int64),
        "user_id": rng.integers(1, 99, jobs),
        "node_power_consumption": samples(power_w, count), "cpu_power_consumption": samples(power_w // 3, count),
        "mem_power_consumption": samples(power_w // 9, count - (count > 9)),
    }  # fmt: skip
    return pl.DataFrame(columns)


def fdata(jobs: int, seed: int = 0, *, embedded: int | None = None, power_of: str = "job") -> pl.DataFrame:
    """F-DATA's 45 columns for a month of jobs.

    Args:
        jobs: their number.
        seed: seed of the random numbers.
        embedded: how many jobs have an embedding; all by default.
        power_of: ``job`` or ``node``, that of which avgpcon is the power.
    """
    rng = np.random.default_rng(seed)
    nodes = rng.choice([1, 1, 1, 2, 12, 384], jobs)
    run_s = np.round(rng.lognormal(6, 1.5, jobs)).clip(5, 86_400)
    submit_s = np.sort(rng.random(jobs) * 30 * 86_400)
    wait_s = rng.exponential(600, jobs)
    watts = (60 + 90 * rng.random(jobs)) * (nodes if power_of == "job" else 1)
    energy_wh = watts * (1 if power_of == "job" else nodes) * run_s / 3600 * rng.normal(1, 0.004, jobs)
    perf = {f"perf{k}": rng.random(jobs) * 1e12 for k in range(1, 7)}

    def names(prefix: str, count: int) -> list[str]:
        return [f"{prefix}_{k}" for k in rng.integers(0, count, jobs).tolist()]

    def stamps(seconds: np.ndarray) -> pl.Series:
        return pl.Series((seconds + START["fdata"].replace(tzinfo=UTC).timestamp()) * 1e6).cast(pl.Datetime("us"))

    code = rng.choice([0, 0, 0, 1, 137], jobs)
    columns = {
        "jid": [f"jid_{k}" for k in rng.permutation(jobs).tolist()], "usr": names("usr", max(jobs // 500, 2)),
        "jnam": names("jnam", max(jobs // 20, 2)), "cnumr": FUGAKU_CORES * nodes, "cnumat": FUGAKU_CORES * nodes,
        "cnumut": FUGAKU_CORES * nodes, "nnumr": nodes, "adt": stamps(submit_s), "qdt": stamps(submit_s + 0.2),
        "schedsdt": stamps(submit_s + wait_s / 2), "deldt": stamps(submit_s + wait_s + run_s + 60), "ec": code,
        "elpl": np.ceil(run_s / 3600) * 3600.0 * rng.choice([1, 2, 24], jobs), "sdt": stamps(submit_s + wait_s),
        "edt": stamps(submit_s + wait_s + run_s), "nnuma": nodes, "idle_time_ave": rng.random(jobs), "nnumu": nodes,
        **perf,
        "mszl": np.full(jobs, 2.0**64), "pri": rng.integers(0, 256, jobs), "econ": energy_wh, "avgpcon": watts,
        "minpcon": watts * 0.7, "maxpcon": watts * 1.2, "msza": np.full(jobs, 3e10), "mmszu": rng.random(jobs) * 3e10,
        "uctmut": run_s * 40, "sctmut": run_s * 0.5, "usctmut": run_s * 40.5, "jobenv_req": names("jobenv_req", 5),
        "freq_req": np.full(jobs, 2000), "freq_alloc": rng.choice([2000, 2200], jobs),
        "flops": (perf["perf2"] + 4 * perf["perf3"]) / run_s,
        "mbwidth": (perf["perf4"] + perf["perf5"]) / 12 * 256 / run_s,
    }  # fmt: skip
    frame = pl.DataFrame(columns).with_columns(opint=pl.col("flops") / pl.col("mbwidth"))
    bound = pl.when(pl.col("opint") >= 537 / 163).then(pl.lit("compute-bound")).otherwise(pl.lit("memory-bound"))
    some = jobs if embedded is None else min(embedded, jobs)
    vectors = pl.Series(rng.random((some, EMBEDDED), dtype=np.float32)).cast(pl.List(pl.Float32))
    vectors = pl.concat([vectors, pl.Series([None] * (jobs - some), dtype=pl.List(pl.Float32))])
    return frame.with_columns(
        bound.alias("pclass"), vectors.alias("embedding"),
        pl.when(pl.col("ec") == 0).then(pl.lit("completed")).otherwise(pl.lit("failed")).alias("exit state"),
        pl.Series("duration", run_s),
    )  # fmt: skip


def packed(frame: pl.DataFrame) -> bytes:
    """A Parquet file with these jobs, not compressed, so that a changed byte changes a value."""
    content = io.BytesIO()
    frame.write_parquet(content, compression="uncompressed")
    return content.getvalue()


def written(frame: pl.DataFrame, path: Path) -> Path:
    """The path of a Parquet file with these jobs."""
    frame.write_parquet(path)
    return path


def one(jobs: pl.DataFrame, row: int, **values: Any) -> pl.DataFrame:
    """The jobs with other values in one row."""
    return jobs.with_columns(
        pl.when(pl.int_range(pl.len()) == row).then(pl.lit(value, dtype=jobs.schema[name])).otherwise(name).alias(name)
        for name, value in values.items()
    )


def told(workload: Workload) -> dict[str, int]:
    """Notes of a workload -> their counts."""
    return {note.what: note.count for note in workload.notes}


def by_row(workload: Workload, column: str) -> Any:
    """A column in the order of the file."""
    return getattr(workload, column)[np.argsort(workload.trace_row)]
