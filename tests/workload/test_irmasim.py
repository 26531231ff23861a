"""Workloads of IRMaSim, and jobs of a few profiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from greenbatch.errors import InputError
from greenbatch.workload import JobProfile, profile_jobs, read_workload
from platform_json import ABSENT, changed, written

JOBS: dict[str, Any] = {
    "jobs": [
        {"id": "first", "subtime": 0, "res": 8, "profile": "A"},
        {"id": "job1", "subtime": 0.5, "nodes": 2, "ntasks": 6, "ntasks_per_node": 3, "profile": "B"},
        {"subtime": 1, "ntasks": 3, "req_ops": 3e9, "req_time": 2},
        {"id": "x", "subtime": 1, "nodes": 2, "ntasks_per_node": 4, "req_ops": 1e10 + 1, "ipc": 3, "req_energy": 5},
        {"id": "y", "subtime": 2, "ntasks": 8, "ntasks_per_node": 4, "profile": "A"},
    ],
    "profiles": {
        "A": {"req_time": 4.6, "req_ops": 13750000000, "ipc": 1, "mem": 1024, "mem_vol": 100, "req_energy": 7},
        "B": {"req_time": 20.8, "req_ops": 62500000000},
    },
}


def test_jobs(tmp_path):
    jobs = read_workload(written(tmp_path, JOBS, "jobs.json"))
    assert jobs.name == "jobs"
    assert jobs.job_id.tolist() == [0, 1, 2, 3, 4]
    assert jobs.names["job_id"] == {0: "first", 1: "job1", 2: "job2", 3: "x", 4: "y"}
    assert jobs.submit_s.tolist() == [0, 0.5, 1, 1, 2]
    assert jobs.nodes.tolist() == [1, 2, 3, 2, 2]
    assert jobs.processors.tolist() == [8, 6, 3, 8, 8]
    assert jobs.run_time_s.tolist() == pytest.approx([13.75 / 3, 62.5 / 3, 1.0, 3333333334 / 3e9, 13.75 / 3], rel=1e-15)
    assert jobs.requested_time_s.tolist() == [4.6, 20.8, 2.0, jobs.run_time_s[3], 4.6]
    assert jobs.requested_memory_kb.tolist() == [1024e3, 0, 0, 0, 1024e3]
    assert jobs.memory_volume_mb.tolist() == [100, 1, 0, 0, 100]
    assert jobs.requested_energy_j.tolist() == [7, 0, 0, 5, 7]
    assert [jobs.names["executable"].get(k) for k in jobs.executable.tolist()] == ["A", "B", None, None, "A"]
    assert np.isnan(jobs.power_w).all()
    assert [str(note) for note in jobs.notes] == ["operations of a job as run time on 3 Gflop/s: 5"]


def test_another_reference_and_a_machine_size(tmp_path):
    path = written(tmp_path, JOBS, "jobs.json")
    assert read_workload(path, reference_gflops=1.0).run_time_s[2] == 3.0
    small = read_workload(path, processors=6)
    assert [small.names["job_id"][k] for k in small.job_id.tolist()] == ["job1", "job2"]
    assert small.machine_processors == 6
    (dropped,) = (note for note in small.notes if "larger" in note.what)
    assert (dropped.what, dropped.count) == ("job larger than the machine (6 processors) dropped", 3)
    assert dict(map(reversed, dropped.shares))["jobs"] == 3 / 5
    with pytest.raises(InputError, match=r"jobs.json: jobs\[\d\]: job larger than the machine"):
        read_workload(path, processors=6, strict=True)
    with pytest.raises(InputError, match="no job is left"):
        read_workload(path, processors=1)


def job(index: int, key: str, value: object) -> Any:
    return changed(JOBS, f"jobs.{index}.{key}", value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({}, "jobs: is missing (add it)"),
        ({"jobs": []}, "jobs: is empty"),
        ({"jobs": [3]}, "jobs[0]: is 3 (give an object)"),
        (changed(JOBS, "profiles", []), "profiles: is an array (give an object)"),
        (job(0, "id", 3), "jobs[0].id: is 3 (give a text)"),
        (job(0, "id", "y"), "jobs[4].id: 'y' occurs twice (the first is jobs[0].id; name each once)"),
        (job(0, "subtime", -1), "jobs[0].subtime: is -1"),
        (job(0, "subtime", ABSENT), "jobs[0].subtime: is missing"),
        (job(0, "subtime", "0"), 'jobs[0].subtime: is "0" (give a number, without quotes)'),
        (job(0, "res", 0), "jobs[0].res: is 0"),
        (job(0, "res", 1.5), "jobs[0].res: is 1.5 (give a whole number)"),
        (job(0, "res", ABSENT), "jobs[0].res: is missing (add it, or nodes and ntasks_per_node)"),
        (job(0, "nodes", 1), "jobs[0].nodes: is given beside res"),
        (job(1, "ntasks", 5), "jobs[1]: nodes 2, ntasks 5, ntasks_per_node 3 do not agree"),
        (job(4, "ntasks", 3), "jobs[4]: ntasks 3, ntasks_per_node 4 do not agree"),
        (job(4, "ntasks", 7), "jobs[4]: ntasks 7, ntasks_per_node 4 do not agree"),
        (job(0, "profile", "Z"), "jobs[0].profile: there is no profile 'Z'"),
        (job(2, "req_ops", ABSENT), "jobs[2].req_ops: is missing"),
        (job(2, "req_ops", float("nan")), "jobs[2].req_ops: is NaN"),
        (job(2, "req_time", 0), "jobs[2].req_time: is 0 (it must be finite and > 0"),
        (changed(JOBS, "profiles.A.ipc", 0), "profiles.A.ipc: is 0"),
        (changed(JOBS, "profiles.A.ipc", 1e-300), "profiles.A.ipc: is 1e-300"),
        (changed(JOBS, "profiles.A.mem", -1), "profiles.A.mem: is -1"),
        (changed(JOBS, "profiles.A.mem_vol", None), "profiles.A.mem_vol: is null"),
        (changed(JOBS, "profiles.A.req_ops", 1), "profiles.A.req_ops: is a run time of 3.33333e-10 s"),
    ],
)
def test_bad_jobs_are_refused(tmp_path, content, says):
    path = written(tmp_path, content, "jobs.json")
    with pytest.raises(InputError) as refused:
        read_workload(path)
    assert says in str(refused.value)
    assert refused.value.file
    assert "\n" not in str(refused.value)


A, B = (JobProfile(name=name, processors=2, operations=3e9 * k) for k, name in enumerate("AB", start=1))


def names(order: str, jobs: int, **options: Any) -> str:
    made = profile_jobs([A, B], order, jobs=jobs, **options)
    return "".join(made.names["executable"][k] for k in made.executable.tolist())


def test_an_order_repeats_and_counts():
    assert names("A 2 B", 7) == "ABBABBA"
    assert names("3 A\nB", 4) == "AAAB"
    assert names("99999999999 A", 3) == "AAA"


def test_a_seed_shuffles_the_same_jobs():
    shuffled = names("50 A 50 B", 100, shuffle_seed=1)
    assert shuffled != "A" * 50 + "B" * 50
    assert sorted(shuffled) == ["A"] * 50 + ["B"] * 50
    assert shuffled == names("50 A 50 B", 100, shuffle_seed=1) != names("50 A 50 B", 100, shuffle_seed=2)


def test_jobs_of_profiles():
    kind = JobProfile(
        name="C", processors=4, operations=6e9, requested_time_s=9.0, memory_mb=2.0, memory_volume_mb=5.0,
        requested_energy_j=1.0,
    )  # fmt: skip
    made = profile_jobs([A, kind], "A C", jobs=4, gap_s=0.1)
    assert made.submit_s.tolist() == [0.0, 0.1, 0.2, 0.3]
    assert made.run_time_s.tolist() == [1.0, 2.0, 1.0, 2.0]
    assert made.requested_time_s.tolist() == [1.0, 9.0, 1.0, 9.0]
    assert (made.processors.tolist(), made.nodes.tolist()) == ([2, 4, 2, 4], [1] * 4)
    assert made.requested_memory_kb.tolist() == [0.0, 2000.0] * 2
    assert made.memory_volume_mb.tolist() == [0.0, 5.0] * 2
    assert made.requested_energy_j.tolist() == [0.0, 1.0] * 2


@pytest.mark.parametrize(
    ("kinds", "order", "says"),
    [
        ([A], "A X", "order: there is no profile 'X' (use A)"),
        ([A], "  ", "order: names no profile"),
        ([A], "3", "order: names no profile"),
        ([A, A], "A", "profiles: profile 'A' is listed twice"),
    ],
)
def test_bad_orders_are_refused(kinds, order, says):
    with pytest.raises(InputError) as refused:
        profile_jobs(kinds, order, jobs=2)
    assert says in str(refused.value)
