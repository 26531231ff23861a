"""A pool says which requests of jobs it ignores; a cluster of nodes ignores none."""

from __future__ import annotations

import site_dump
from greenbatch.cluster import Cluster, NodeCluster, NodeGroup
from greenbatch.scenarios.pooled import ignored_requests
from greenbatch.scenarios.scenario import load_scenario
from greenbatch.workload import Workload, read_sacct


def site_workload(tmp_path) -> Workload:
    (tmp_path / "site.txt").write_text(site_dump.dump(jobs=60))
    return read_sacct(tmp_path / "site.txt", time_zone="UTC")


def test_a_pool_counts_partitions_gpus_and_exclusive_jobs(tmp_path):
    w = site_workload(tmp_path)
    exclusive = w.with_columns(exclusive=(w.job_id % 2 == 0).astype(int))
    counts = {note.what: note.count for note in ignored_requests(exclusive, Cluster.pooled(640))}
    assert counts == {
        "jobs of 4 partitions run on one pool of processors": 60,
        "GPUs of a job ignored: the machine has processors only": int((w.gpus > 0).sum()),
        "exclusive use of nodes ignored: the machine is a pool of processors": 30,
    }
    assert min(counts.values()) > 0


def test_one_partition_without_gpus_has_nothing_to_ignore(tmp_path):
    w = site_workload(tmp_path)
    assert ignored_requests(w.take((w.partition == w.partition[0]) & (w.gpus <= 0)), Cluster.pooled(640)) == ()


def test_nodes_ignore_nothing(tmp_path):
    nodes = NodeCluster((NodeGroup(name="n", count=20, processors=32, static_power_w=0.0),))
    assert ignored_requests(site_workload(tmp_path), nodes) == ()


def test_the_notes_of_a_scenario_name_what_its_pool_ignores(tmp_path):
    (tmp_path / "site.txt").write_text(site_dump.dump(jobs=60))
    notes = load_scenario("plain", trace=tmp_path / "site.txt", processors=640).notes
    assert "jobs of 4 partitions run on one pool of processors: 60" in notes
    assert any(note.startswith("GPUs of a job ignored") for note in notes)
