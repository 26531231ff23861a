"""Workloads of Batsim: profiles of delays, jobs without a limit, and what is refused."""

from __future__ import annotations

import json

import pytest

from greenbatch.errors import InputError
from greenbatch.workload import read_workload

PROFILES = {"d": {"type": "delay", "delay": 60}, "p": {"type": "parallel", "cpu": [1], "com": [0]}}


def written(folder, jobs, profiles=None, **fields):
    path = folder / "jobs.json"
    path.write_text(json.dumps({"jobs": jobs, "profiles": profiles or PROFILES, **fields}))
    return path


def job(number, **fields):
    return {"id": number, "subtime": 0, "res": 2, "profile": "d", **fields}


def test_ids_limits_and_the_size_of_the_machine(tmp_path):
    path = written(tmp_path, [job(7, walltime=300), job("b", walltime=-1), job("c", res=9), job("x", profile="p")])
    w = read_workload(path)
    assert list(w.names["job_id"].values()) == ["7", "b", "c", "x"]
    assert w.requested_time_s.tolist() == [300, 300, 300], "without a limit: the longest of the file"
    assert (w.machine_processors, w.names["executable"]) == (None, {0: "d", 1: "p"})
    small = read_workload(written(tmp_path, [job(1), job(2, res=9)], nb_res=8))
    assert (small.machine_processors, len(small)) == (8, 1)
    (larger,) = (note for note in small.notes if "larger" in note.what)
    assert dict(map(reversed, larger.shares))["processor-hours"] == pytest.approx(9 / 11)
    (unknown,) = (note for note in small.notes if "run time used" in note.what)
    assert unknown.level == "warning", "no limit at all: schedulers know the run time"


def test_shares_are_of_all_jobs_of_the_file(tmp_path):
    path = written(tmp_path, [job(1), job(2, profile="p"), job(3, profile="p"), job(4, res=9)], nb_res=8)
    w = read_workload(path)
    assert [(note.count, dict(map(reversed, note.shares))["jobs"]) for note in w.notes[:2]] == [(2, 0.5), (1, 0.25)]
    assert "larger" in w.notes[1].what
    assert (w.trace_row.tolist(), w.job_id.tolist()) == ([0], [0])


def test_a_job_of_no_time_is_dropped(tmp_path):
    path = written(tmp_path, [job(1), job(2, profile="z")], {**PROFILES, "z": {"type": "delay", "delay": 0}})
    w = read_workload(path)
    assert w.run_time_s.tolist() == [60]
    assert (w.notes[0].what, w.notes[0].count) == ("job that ran for 0 s dropped", 1)
    with pytest.raises(InputError, match=r"jobs\[1\]: job that ran for 0 s"):
        read_workload(path, strict=True)


@pytest.mark.parametrize(("dropped", "options"), [({"profile": "p"}, {}), ({"res": 9}, {"processors": 8})])
def test_what_strict_refuses_has_its_place(tmp_path, dropped, options):
    path = written(tmp_path, [job(1), job(2, **dropped)])
    with pytest.raises(InputError, match=r"jobs.json: jobs\[1\]: job (of a profile|larger)"):
        read_workload(path, strict=True, **options)


@pytest.mark.parametrize(
    ("jobs", "profiles", "says"),
    [
        ([job(1, profile="e")], None, r"jobs\[0\].profile: there is no profile 'e'"),
        ([job(1, res=0)], None, r"jobs\[0\].res: is 0"),
        ([job(1), job(1)], None, "'1' occurs twice"),
        ([job(1)], {"d": {"type": "delay"}}, "profiles.d.delay: is missing"),
        ([job(1)], {"d": {"type": "delay", "delay": -1}}, "profiles.d.delay: is -1"),
        ([job(1)], {"d": {"type": "delay", "delay": 0}}, "no job is left .*that ran for 0 s dropped: 1"),
        ([job(1, profile="p")], None, "no job is left"),
        ([job(1, walltime="1h")], None, r"jobs\[0\].walltime: is .1h."),
    ],
)
def test_malformed(tmp_path, jobs, profiles, says):
    with pytest.raises(InputError, match=says) as refused:
        read_workload(written(tmp_path, jobs, profiles))
    assert refused.value.fix


def test_json_of_other_programs_is_not_taken_for_a_simulators(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"jobs": [{"name": "a", "type": "x"}]}')
    with pytest.raises(InputError, match="is JSON of an unknown kind"):
        read_workload(path)
