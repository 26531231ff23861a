"""Outages that recorded starts show, by hand and in a dump with a known one."""

from __future__ import annotations

import numpy as np
import pytest

import site_dump
from greenbatch.workload import Outage, Workload, outages, read_sacct

HOUR_S = 3600.0


def jobs_of(*rows, **columns) -> Workload:
    """Jobs as (submission, start, run time [h], processors, user)."""
    submit_h, start_h, run_h, processors, user = np.array(rows, dtype=float).T
    return Workload.from_columns("hand", {
        "submit_s": submit_h * HOUR_S, "run_time_s": run_h * HOUR_S, "processors": processors, "user": user,
        "recorded_wait_s": (start_h - submit_h) * HOUR_S, **columns,
    })  # fmt: skip


def spans(found: list[Outage]) -> list[tuple[float, float, int]]:
    return [(each.begin_s / HOUR_S, each.end_s / HOUR_S, each.processors) for each in found]


def test_nothing_runs_although_jobs_wait():
    jobs = jobs_of((0, 0, 2, 8, 1), (3, 9, 1, 4, 1), (3.5, 9, 1, 4, 1))
    assert spans(outages(jobs)) == [(3, 9, 8)]  # from the submission on: before it, nobody waited
    assert outages(jobs)[0].waiting == 2
    assert outages(jobs)[0].partition == ""


def test_a_short_wait_of_an_idle_machine_is_no_outage():
    assert outages(jobs_of((0, 0, 2, 8, 1), (3, 3.4, 1, 4, 1))) == []


def test_an_idle_machine_without_waiting_jobs_is_no_outage():
    assert outages(jobs_of((0, 0, 2, 8, 1), (30, 30, 1, 4, 1))) == []


def test_nothing_starts_although_the_first_would_fit():
    rows = [(0, 0, 20, 4, 1), (0, 0, 2, 6, 1), (1, 9, 1, 4, 1), (2, 9, 1, 2, 2)]
    assert spans(outages(jobs_of(*rows))) == [(2, 9, 6)]  # 6 of 10 are free from 2 h on
    draining = [(0, 0, 20, 4, 1), (0, 0, 2, 6, 1), (1, 20, 1, 8, 1), (2, 20, 1, 2, 2)]
    assert outages(jobs_of(*draining)) == [], "the machine drains for the wide job"
    alone = [(0, 0, 20, 4, 1), (0, 0, 2, 6, 1), (1, 9, 1, 4, 1), (2, 9, 1, 2, 1)]
    assert outages(jobs_of(*alone)) == [], "one user only, who may have reached a limit"


def test_partitions_are_seen_apart_and_named():
    rows = [(0, 0, 20, 8, 1), (0, 0, 2, 6, 1), (1, 9, 1, 4, 1), (2, 9, 1, 2, 2), (5, 5, 1, 4, 3)]
    jobs = jobs_of(*rows, partition=[1, 2, 2, 2, 1])
    named = jobs.with_columns(names={"partition": {1: "cpu", 2: "gpu"}})
    (found,) = outages(named)
    assert (found.partition, found.processors, found.of, found.waiting) == ("gpu", 6, 6, 2)
    assert spans([found]) == [(2, 9, 6)]


def test_jobs_of_no_partition_are_no_partition():
    rows = [(0, 0, 20, 8, 1), (0, 0, 2, 6, 1), (1, 9, 1, 4, 1), (2, 9, 1, 2, 2), (5, 5, 1, 4, 3)]
    assert outages(jobs_of(*rows, partition=[1, -1, -1, -1, 1])) == []
    assert [each.partition for each in outages(jobs_of(*rows, partition=[1, 2, 2, 2, 1]))] == ["2"]


def test_without_a_record_nothing_is_known():
    jobs = jobs_of((0, 0, 2, 8, 1), (3, 9, 1, 4, 1))
    assert outages(jobs.with_columns(recorded_wait_s=np.full(2, np.nan))) == []


@pytest.mark.parametrize("seed", range(4))
def test_the_outage_of_a_dump_is_found(tmp_path, seed):
    found = {}
    for outage in (None, (40.0, 52.0)):
        (tmp_path / "dump.txt").write_text(site_dump.dump(jobs=500, seed=seed, outage=outage))
        jobs = read_sacct(tmp_path / "dump.txt", time_zone="UTC")
        found[outage] = [each for each in outages(jobs) if not each.partition]
        offset_s = jobs.unix_start_s - site_dump.BEGIN.timestamp()
    assert found[None] == []
    whole = found[40.0, 52.0][-1]  # a short job may run while the machine drains
    assert whole.end_s + offset_s == 52 * HOUR_S
    assert 36 < (whole.begin_s + offset_s) / HOUR_S < 42
    assert whole.processors == whole.of <= site_dump.PROCESSORS
