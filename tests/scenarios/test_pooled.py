"""A pool says which requests of jobs it ignores; a cluster of nodes ignores none."""

from __future__ import annotations

import numpy as np

import site_dump
from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.engine.rules import Rules
from greenbatch.scenarios.pooled import request_notes
from greenbatch.scenarios.scenario import load_scenario
from greenbatch.workload import Workload, read_sacct


def site_workload(tmp_path) -> Workload:
    (tmp_path / "site.txt").write_text(site_dump.dump(jobs=60))
    return read_sacct(tmp_path / "site.txt", time_zone="UTC")


def test_a_pool_counts_partitions_gpus_and_exclusive_jobs(tmp_path):
    w = site_workload(tmp_path)
    exclusive = w.with_columns(exclusive=(w.job_id % 2 == 0).astype(int))
    counts = {note.what: note.count for note in request_notes(exclusive, Cluster.pooled(640), Rules())}
    assert counts == {
        "jobs of 4 partitions run on one pool of processors": 60,
        "GPUs of a job ignored: the machine has processors only": int((w.gpus > 0).sum()),
        "exclusive use of nodes ignored: the machine is a pool of processors": 30,
    }
    assert min(counts.values()) > 0


def test_one_partition_without_gpus_has_nothing_to_ignore(tmp_path):
    w = site_workload(tmp_path)
    assert request_notes(w.take((w.partition == w.partition[0]) & (w.gpus <= 0)), Cluster.pooled(640), Rules()) == ()


def test_nodes_ignore_nothing(tmp_path):
    nodes = Cluster.of_nodes((NodeGroup(name="n", count=20, processors=32, static_power_w=0.0),))
    assert request_notes(site_workload(tmp_path), nodes, Rules()) == ()


def test_the_notes_of_a_scenario_name_what_its_pool_ignores(tmp_path):
    (tmp_path / "site.txt").write_text(site_dump.dump(jobs=60))
    notes = load_scenario("plain", trace=tmp_path / "site.txt", processors=640).notes
    (pool,) = (note for note in notes if note.what == "jobs of 4 partitions run on one pool of processors")
    assert (pool.count, dict(map(reversed, pool.shares))["jobs"]) == (60, 1.0)
    assert any(note.what.startswith("GPUs of a job ignored") for note in notes)


def test_unknown_gpus_value_and_qos_are_noted() -> None:
    jobs = Workload.from_columns("jobs", {
        "submit_s": [0, 1, 2], "run_time_s": [5, 5, 5], "processors": [1, 1, 1], "gpus": [-1, 0, 1],
        "value": [np.nan, 3, np.nan], "qos": [0.5, 0.5, np.nan],
    })  # fmt: skip
    machine = Cluster.of_units(4, 4)
    assert {note.what: note.count for note in request_notes(jobs, machine, Rules())} == {
        "GPUs of a job unknown, taken as none": 1, "value of a job unknown, taken as 0": 2,
        "QoS of a job unknown, taken as 1 (never late in figures)": 1,
    }  # fmt: skip
    plain = jobs.with_columns(gpus=np.zeros(3), value=np.full(3, np.nan), qos=np.full(3, np.nan))
    assert request_notes(plain, machine, Rules()) == ()
