"""Traces as people have them (``field/``): the right jobs by value, or words that help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import greenbatch as gb
from greenbatch.cli.process import main
from greenbatch.errors import InputError
from greenbatch.notes import Note
from greenbatch.workload import Workload, read_workload

FIELD = Path(__file__).with_name("field")
JOULES_PER_KWH = 3.6e6


def read(name: str, **options: Any) -> Workload:
    return read_workload(FIELD / name, **options)


def note(workload: Workload, words: str) -> Note:
    """The one note with these words."""
    (found,) = (each for each in workload.notes if words in each.what)
    return found


def shares(found: Note) -> dict[str, float]:
    return {of: round(part, 3) for part, of in found.shares}


def energy_kwh(workload: Workload) -> float:
    return float(np.nansum(workload.power_w * workload.run_time_s)) / JOULES_PER_KWH


def test_01_the_tasks_of_a_pending_array_are_counted():
    jobs = read("01-array-throttle.txt")
    assert jobs.job_id.tolist() == [7002, 7003, 7011, 7012, 7013]
    assert jobs.run_time_s.tolist() == [3600, 18020, 176400, 30, 60]
    waiting = note(jobs, "still waiting")
    assert (waiting.count, waiting.level) == (3 + 392, "repair")
    assert shares(waiting) == {"processor-hours": 0.0, "jobs": round(395 / 401, 3)}
    assert jobs.requested_time_s[3:].tolist() == [3 * 86_400] * 2, "UNLIMITED and Partition_Limit: the longest limit"


def test_03_a_header_line_above_is_all_that_lacks(tmp_path):
    with pytest.raises(InputError, match=r"line 1: header: there is no header line .*without --noheader"):
        read("03-sacct-noheader.txt")


def test_06_runs_of_a_requeued_job():
    last = read("06-requeue.txt")
    assert (last.job_id.tolist(), last.run_time_s.tolist()) == ([9301, 9302], [5700, 1800])
    earlier = note(last, "earlier run of a requeued job dropped")
    work_s = 3890 + 4473 + 6122
    assert (earlier.count, earlier.level) == (3, "change")
    assert shares(earlier) == {"processor-hours": round(work_s / (work_s + 5700 + 2 * 1800), 3), "jobs": 0.6}

    every = read("06-requeue.txt", requeued="every-run")
    in_order = np.argsort(every.submit_s, kind="stable")
    assert every.run_time_s[in_order].tolist() == [3890, 1800, 4473, 6122, 5700]
    assert every.submit_s[in_order].tolist() == [0, 1800, 4020, 8793, 15242], "when it could run again"
    runs = every.job_id[every.run_time_s != 1800]
    assert every.preceding_job[every.run_time_s != 1800].tolist() == [-1, *runs[:-1]]
    think_s = every.think_time_s[every.run_time_s != 1800]
    assert think_s[1:].tolist() == [120, 120, 120]
    with pytest.raises(InputError, match=r'earlier run of a requeued job .*workload.requeued = "every-run"'):
        read("06-requeue.txt", strict=True)
    assert len(read("06-requeue.txt", strict=True, requeued="every-run")) == 5


def test_07_gpus_of_all_types():
    jobs = read("07-tres-gpu.txt")
    assert (jobs.gpus.tolist(), jobs.processors.tolist()) == ([4, 3, 2], [36, 8, 8])
    assert np.isnan(jobs.power_w).all()


def test_08_a_count_with_a_question_mark():
    with pytest.raises(InputError, match=r"line 3: NCPUS: '16\?' is malformed \(write a whole number\)"):
        read("08-ncpus-question.txt")


def test_09_memory_per_node_per_processor_and_per_job():
    gib_kb = 1024**3 / 1000
    jobs = read("09-reqmem.txt")
    wanted = [2 * 3 / 4, 3, 15.5 / 4, np.nan, np.nan, 16_000 / 1024 / 4, 512, 4.5]
    assert (jobs.requested_memory_kb / gib_kb).tolist() == pytest.approx(wanted, nan_ok=True)


def test_10_an_absurd_counter_costs_nothing_and_is_not_spread():
    jobs = read("10-energy.txt")
    assert jobs.power_w.tolist() == pytest.approx([500, 500, np.nan, np.nan, np.nan], nan_ok=True)
    left_out = note(jobs, "implausible job power")
    assert (left_out.count, left_out.first_line, left_out.level, left_out.about) == (1, 4, "warning", "power_w")
    assert shares(left_out)["jobs"] == 0.2
    assert shares(left_out)["energy"] == 1.0, "more than all others together"
    with pytest.raises(InputError, match=r"line 4: ConsumedEnergyRaw: .*ignored \(clear the value\)"):
        read("10-energy.txt", strict=True)

    options: dict[str, Any] = {"trace": FIELD / "10-energy.txt", "processors": 256}
    whole = gb.load_scenario("default", overrides={"workload.power": {"kind": "measured"}}, **options)
    per_processor_w = (500 * 3600 + 500 * 1800) / (128 * 3600 + 64 * 1800)
    assert whole.workload.power_w.tolist() == pytest.approx([500, 500, *[64 * per_processor_w] * 3])
    assert energy_kwh(whole.workload) < 1.0
    with pytest.raises(InputError, match="implausible job power"):
        gb.load_scenario("default", strict=True, **options)


def test_10_the_command_refuses_it_under_strict(tmp_path, capsys):
    (tmp_path / "site.toml").write_text('name = "s"\n[site]\nkind = "synthetic"\n')
    words = ["whatif", "--trace", str(FIELD / "10-energy.txt"), "--site", str(tmp_path / "site.toml")]
    assert main([*words, "--processors", "256", "--strict", "--out", str(tmp_path / "out")]) == 2
    assert "10-energy.txt, line 4: ConsumedEnergyRaw: implausible job power" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_11_components_are_one_job():
    jobs = read("11-het-job.txt")
    assert (jobs.job_id.tolist(), jobs.processors.tolist(), jobs.gpus.tolist()) == ([9801, 9803], [24, 4], [2, -1])


def test_12_rows_that_lack_a_zone_are_counted():
    assert note(read("12-time-offsets.txt"), "without a time zone").count == 1
    jobs = read("12-time-offsets.txt", time_zone="Europe/Berlin")
    assert jobs.submit_s.tolist() == [0, 3600, 8400, 12600]
    assert jobs.recorded_wait_s.tolist() == [600, 300, 300, 60]


def test_13_a_blank_instead_of_T():
    jobs = read("13-time-space.txt", time_zone="UTC")
    assert (jobs.unix_start_s, jobs.submit_s.tolist()) == (1772438400.0, [0, 300])
    assert jobs.recorded_wait_s.tolist() == [10, 10]


def test_14_free_text_is_refused_with_a_fix():
    with pytest.raises(
        InputError, match=r"line 2: row: 11 fields, the header names 10 .*leave out fields of free text"
    ):
        read("14-jobname-separators.txt")


@pytest.mark.parametrize(
    ("name", "says", "wrong"),
    [
        ("02-sacct.json", "is JSON of Slurm .*, which is not read .*sacct -X -P", "subtime"),
        ("16-pbs-accounting.log", "line 1: is an accounting log of PBS, which is not read .*E records", "field 1"),
    ],
)
def test_02_16_files_of_others_are_named(name, says, wrong):
    with pytest.raises(InputError, match=says) as refused:
        read(name)
    assert wrong not in str(refused.value)


def test_19_profiles_of_delays_are_read():
    jobs = read("19-batsim.json")
    assert [jobs.names["job_id"][k] for k in jobs.job_id.tolist()] == ["1", "2"]
    assert (jobs.submit_s.tolist(), jobs.run_time_s.tolist()) == ([0, 10.5], [100, 20.2])
    assert (jobs.processors.tolist(), jobs.requested_time_s.tolist()) == ([4, 8], [200, 100])
    assert jobs.machine_processors == 8
    dropped = note(jobs, "states no run time")
    assert (dropped.count, dropped.level, shares(dropped)) == (1, "change", {"jobs": 0.333})
    with pytest.raises(InputError, match=r'give it a profile of "type": "delay"'):
        read("19-batsim.json", strict=True)


def test_21_an_odd_log(tmp_path):
    with pytest.raises(InputError, match=r"line 12: job line: 12 fields"):
        read("21-odd.swf")
    path = tmp_path / "odd.swf"
    path.write_text((FIELD / "21-odd.swf").read_text().partition("\n7 ")[0] + "\n")
    jobs = read_workload(path)
    assert (jobs.job_id.tolist(), jobs.processors.tolist()) == ([1, 5, 6], [4, 2, 4])
    assert jobs.requested_time_s.tolist() == [200, 1000, 600]
    assert (jobs.preceding_job.tolist(), jobs.think_time_s[2]) == ([-1, -1, 5], 30)
    larger = note(jobs, "larger than the machine")
    work_s = 100.5 * 4 + 50 * 129 + 1000 * 2 + 300 * 3.5
    assert shares(larger) == {"processor-hours": round(50 * 129 / work_s, 3), "jobs": round(1 / 6, 3)}
    assert shares(note(jobs, "without processors")) == {"jobs": 0.167}, "its processor-hours are not known"
    missing = note(jobs, "requested time missing")
    assert (missing.level, shares(missing)["processor-hours"]) == ("warning", round(2000 / work_s, 3))


def test_41_the_energy_of_a_shared_node_is_counted_once():
    jobs = read("41-shared-node-energy.txt")
    assert energy_kwh(jobs) == pytest.approx(0.8)
    assert jobs.power_w == pytest.approx(100)
    split = note(jobs, "energy of shared nodes")
    assert (split.count, split.level, shares(split)["jobs"]) == (8, "change", 1.0)
    assert energy_kwh(read("41-shared-node-energy.txt", shared_nodes="keep")) == pytest.approx(6.4)


def test_42_time_that_a_job_was_suspended_is_no_run_time():
    jobs = read("42-suspended.txt")
    assert jobs.run_time_s.tolist() == [7200, 7200]
    running = note(jobs, "still running")
    assert (running.level, shares(running)["processor-hours"]) == ("change", round(600 / 15000, 3))


def test_43_no_limit_is_no_perfect_estimate():
    folder = FIELD / "43-unlimited-partition-limit"
    alone = read_workload(folder / "sacct.txt")
    assert alone.requested_time_s.tolist() == [7200, 7200, 7200], "the longest limit of the trace"
    assert note(alone, "longest limit of the trace, 2 h,").count == 2
    assert note(alone, "longest limit of the trace, 2 h,").level == "change"
    scenario = gb.load_scenario("plain", trace=folder / "sacct.txt", cluster=folder / "slurm.conf")
    assert scenario.workload.requested_time_s.tolist() == [86_400, 7200, 86_400], "MaxTime of the partition"
    assert note(scenario.workload, "MaxTime of its partition").count == 2


def test_46_limits_in_other_units_are_read_as_written():
    jobs = gb.load_scenario(FIELD / "46-limits-in-minutes.toml").workload
    assert jobs.requested_time_s[:3].tolist() == [743, 413, 988]
    assert note(jobs, "run time over the requested time").count == len(jobs)


def test_48_nodes_of_a_list():
    assert read("48-nodelist.txt").nodes.tolist() == [8, 4, -1, 4]
