"""The SWF reader's rules, each on a trace small enough to check by eye."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.errors import InputError
from greenbatch.workload import SWF_RULES, SwfRules, Workload, read_swf, write_swf
from greenbatch.workload.table import COLUMNS

PAPERS = SWF_RULES["papers"]


BLANK = {"job": 1, "submit": 0, "run": 100, "allocated": 4, "status": 1}
ORDER = (
    *("job", "submit", "wait", "run", "allocated", "cpu", "memory", "requested", "limit", "requested_memory"),
    *("status", "user", "group", "executable", "queue", "partition", "before", "think"),
)


def row(job: int = 1, **fields) -> str:
    """A job line: 4 processors for 100 s at time 0, everything else missing."""
    return " ".join(str({**BLANK, "job": job, **fields}.get(name, -1)) for name in ORDER)


@pytest.fixture
def swf(tmp_path):
    """Write lines to a trace and read it."""

    def read(*lines: str, **options) -> Workload:
        path = tmp_path / "trace.swf"
        path.write_text("\n".join(lines) + "\n")
        return read_swf(path, **options)

    return read


def counts(workload: Workload) -> dict[str, tuple[int, int | None]]:
    return {note.what: (note.count, note.first_line) for note in workload.notes}


def one(workload: Workload, words: str) -> tuple[int, int | None]:
    """Count and first line of the single note that contains the words."""
    (found,) = [(n.count, n.first_line) for n in workload.notes if words in n.what]
    return found


def test_the_eighteen_fields_land_in_their_columns(swf):
    w = swf("; MaxProcs: 64", "7 10 20 30 4 5.5 6 8 90 1000 1 12 13 14 15 16 3 18")
    got = {name: getattr(w, name)[0] for name in COLUMNS}
    for column in ("power_w", "memory_volume_mb", "requested_energy_j", "value", "qos"):  # NaN: the format has none
        assert np.isnan(got.pop(column))
    assert [got.pop(column) for column in ("nodes", "gpus", "exclusive")] == [-1, -1, -1]
    assert got == {
        "job_id": 7, "submit_s": 10, "run_time_s": 30, "requested_time_s": 90, "processors": 8, "user": 12,
        "group": 13, "executable": 14, "queue": 15, "partition": 16, "status": 1, "requested_memory_kb": 1000,
        "preceding_job": 3, "think_time_s": 18, "recorded_wait_s": 20, "trace_row": 0,
    }  # fmt: skip
    assert w.name == "trace"
    assert w.machine_processors == 64


def test_missing_values(swf):
    w = swf("; MaxProcs: 64", row())
    assert np.isnan([w.recorded_wait_s[0], w.requested_memory_kb[0], w.think_time_s[0], w.power_w[0]]).all()
    assert (w.user[0], w.group[0], w.preceding_job[0]) == (-1, -1, -1)
    assert w.requested_time_s[0] == w.run_time_s[0] == 100
    assert counts(w) == {"requested time missing, run time used": (1, 2)}


@pytest.mark.parametrize(
    ("allocated", "requested", "processors"),
    [(4, -1, 4), (-1, 6, 6), (4, 6, 6), (6, 4, 6), ("4.0", -1, 4), (2.5, -1, 3)],
)
def test_processors_are_the_larger_of_allocated_and_requested(swf, allocated, requested, processors):
    assert swf(row(allocated=allocated, requested=requested)).processors.tolist() == [processors]


def test_fractional_processors_are_counted_and_refused_under_strict(swf):
    assert one(swf(row(), row(2, allocated=2.5)), "fractional processors") == (1, 2)
    with pytest.raises(InputError, match=r"line 1: field 5 \(allocated processors\)"):
        swf(row(allocated=2.5), strict=True)


def test_fractional_times_are_kept(swf):
    w = swf(row(submit=0.25, wait=1.5, run=552.21, limit=600.5))
    assert (w.submit_s[0], w.recorded_wait_s[0], w.run_time_s[0], w.requested_time_s[0]) == (0.25, 1.5, 552.21, 600.5)


def test_run_over_requested_time_is_counted_not_changed(swf):
    w = swf(row(run=100, limit=60), row(2, run=60, limit=60), strict=True)
    assert w.run_time_s.tolist() == [100, 60]
    assert w.requested_time_s.tolist() == [60, 60]
    assert one(w, "over the requested time") == (1, 1)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (row(9, submit=-1), "without submit time"),
        (row(9, allocated=-1), "without processors"),
        (row(9, allocated=0, requested=0), "without processors"),
        (row(9, run=-1), "negative run time"),
        (row(9, run=0), "zero run time"),
        (row(9, allocated=65), "larger than the machine"),
        (row(1), "repeated row"),
        (row(1, status=2), "partial record"),
        (row(1, status=3), "partial record"),
        (row(1, status=4), "partial record"),
    ],
)
def test_lines_that_cannot_be_simulated_are_dropped_and_counted(swf, line, words):
    lines = ("; MaxProcs: 64", row(), line, row(10, submit=5))
    w = swf(*lines)
    assert w.job_id.tolist() == [1, 10]
    assert w.trace_row.tolist() == [0, 2]
    assert one(w, words) == (1, 3)
    with pytest.raises(InputError) as refused:
        swf(*lines, strict=True)
    assert (refused.value.line, refused.value.fix is not None) == (3, True)


@pytest.mark.parametrize("status", [2, 3, 4])
def test_a_part_without_a_summary_line_is_a_job(swf, status):
    w = swf(row(), row(9, submit=5, status=status), strict=True)
    assert w.job_id.tolist() == [1, 9]
    assert w.status.tolist() == [1, status]


def test_the_parts_of_a_job_are_not_jobs(swf):
    """A job that was swapped twice: its summary, and what it ran before, between and at last (SWF, field 11)."""
    parts = [row(1, run=run, status=status) for run, status in ((20, 2), (30, 2), (50, 4))]
    w = swf(row(1, run=100, status=0), *parts)
    assert (w.run_time_s.tolist(), w.status.tolist()) == ([100], [0])
    assert one(w, "partial record") == (3, 2)


def test_a_preceding_job_of_0_is_none(swf):
    w = swf(row(1), row(2, before=0))
    assert w.preceding_job.tolist() == [-1, -1]


def test_a_line_with_two_faults_is_counted_once(swf):
    w = swf(row(), row(2, submit=-1, run=0, allocated=-1))
    assert len(w) == 1
    assert sum(n.count for n in w.notes if "dropped" in n.what) == 1


def test_requested_time_zero_becomes_the_run_time(swf):
    w = swf(row(limit=0))
    assert w.requested_time_s.tolist() == [100]
    assert one(w, "requested time not positive") == (1, 1)


def test_papers_rules(swf):
    lines = ("; MaxProcs: 4", row(5, run=-1), row(3, run=0), row(4, allocated=8), row(2, run=-1, limit=60))
    w = swf(*lines, repairs=PAPERS)
    assert w.job_id.tolist() == [2, 4, 5]
    assert w.run_time_s.tolist() == [10, 100, 10]
    assert w.requested_time_s.tolist() == [60, 100, 10]
    assert w.processors.tolist() == [4, 8, 4]
    assert w.trace_row.tolist() == [3, 2, 0]
    assert one(w, "negative run time set to 10 s") == (2, 2)


def test_limit_counts_job_lines_not_jobs(swf):
    w = swf("; head", row(1, run=0), "", row(2), row(3), limit=2, repairs=PAPERS)
    assert w.job_id.tolist() == [2]


def test_papers_rules_refuse_repeated_ids(swf):
    with pytest.raises(InputError, match=r"line 2: field 1 \(job number\): 1 occurs twice"):
        swf(row(1), row(1, submit=5), repairs=PAPERS)


def test_ids_that_are_not_unique_are_replaced_in_submit_order(swf):
    w = swf(row(5, submit=50, before=3), row(5, submit=20), row(7, submit=30))
    assert w.job_id.tolist() == [1, 2, 3]
    assert w.submit_s.tolist() == [20, 30, 50]
    assert w.trace_row.tolist() == [1, 2, 0]
    assert w.preceding_job.tolist() == [-1, -1, -1]
    assert one(w, "renumbered") == (1, 2)
    assert one(w, "preceding job dropped") == (1, 1)


def test_missing_ids_are_replaced(swf):
    w = swf(row(-1), row(-1, submit=4))
    assert w.job_id.tolist() == [1, 2]
    assert one(w, "renumbered") == (2, 1)


def test_rows_are_sorted_by_id_and_the_disorder_is_counted(swf):
    lines = (row(3, submit=9), row(1, submit=5), row(2, submit=7))
    w = swf(*lines)
    assert w.job_id.tolist() == [1, 2, 3]
    assert w.submit_s.tolist() == [5, 7, 9]
    assert one(w, "later job id") == (1, 2)
    assert one(w, "later submit time") == (1, 2)
    with pytest.raises(InputError, match=r"line 2: field 2 \(submit time\)"):
        swf(*lines, strict=True)


def test_preceding_jobs_are_kept_and_dangling_ones_counted(swf):
    w = swf(row(1), row(2, before=1, think=30), row(3, before=9))
    assert w.preceding_job.tolist() == [-1, 1, 9]
    assert w.think_time_s[1] == 30
    assert one(w, "preceding job is not in the trace") == (1, 3)


def test_own_rules(swf):
    w = swf(row(run=0), row(2, run=-1), repairs=SwfRules(zero_run_time_s=1.0, negative_run_time_s=5.0))
    assert w.run_time_s.tolist() == [1, 5]
    with pytest.raises(InputError, match="zero_run_time_s"):
        SwfRules(zero_run_time_s=0)


HEADERS = [
    (["; MaxNodes: 8", "; MaxProcs: 64"], 64),
    (["; MaxNodes: 338 (batch partition; 512 total)"], 338),
    ([";MaxNodes:\t256"], 256),
    ([";\tMaxProcs :  256\t"], 256),
    (["; MaxNodes: -1", "; MaxProcs: 128"], 128),
    (["; MaxProcs: -1", "; MaxNodes: 128"], 128),
    (["; maxprocs: 16"], 16),
    (["; MaxProcs: " + "9" * 400, "; MaxNodes: 4"], 4),
    (["; MaxProcs: many", "; MaxNodes: 4"], 4),
    (["; MaxProcs: 8", "; MaxProcs: 8"], 8),
    (["; MaxProcs: 1e30", "; MaxNodes: 4"], 4),
    (["; MaxProcs: 1,024", "; MaxNodes: 4"], 4),
    (["; MaxProcs: 6.4e1"], 64),
    (["; MaxProcs: 128, 64 of them with a GPU"], 128),
    (["; free text", ";", "; Note: MaxProcs: 5"], None),
    ([], None),
]


@pytest.mark.parametrize(("lines", "processors"), HEADERS)
def test_machine_size_from_headers(swf, lines, processors):
    w = swf(*lines, row())
    assert w.machine_processors == processors
    assert ("header states no machine size" in counts(w)) == (processors is None)


def test_contradicting_headers_are_noted(swf):
    w = swf("; MaxProcs: 8", "; MaxProcs: 16", row())
    assert w.machine_processors == 8
    assert one(w, "more than once") == (2, None)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("MaxProcs: 1e30", "maxprocs '1e30', which is not a whole number from 1 to 1e11"),
        ("MaxProcs: 1,024", "maxprocs '1,024', which is not a whole"),
        ("MaxProcs: 1.5", "maxprocs '1.5', which is not a whole"),
        ("MaxProcs: -4", "maxprocs '-4', which"),
        ("MaxNodes: 8x16", "maxnodes '8x16', which"),
        ("UnixStartTime: abc", "unixstarttime 'abc', which is not a number from 1 to 1e11, ignored"),
        ("UnixStartTime: -1e30", "unixstarttime '-1e30', which"),
        ("UnixStartTime: -86400", "unixstarttime '-86400', which"),
        ("UnixStartTime: 1e999", "unixstarttime '1e999', which"),
    ],
)
def test_header_values_that_cannot_be_used_are_noted(swf, line, told):
    w = swf(f"; {line}", row())
    assert (w.machine_processors, w.unix_start_s) == (None, None)
    assert one(w, f"header states {told}") == (1, None)


@pytest.mark.parametrize("value", ["", "0", "-1", "-1 (unknown)"])
def test_header_values_that_mean_unknown_are_not_noted(swf, value):
    w = swf(f"; MaxProcs: {value}", f"; UnixStartTime: {value}", "; MaxNodes: 8", row())
    assert (w.machine_processors, w.unix_start_s) == (8, None)
    assert not any("header" in what for what in counts(w))


def test_stated_machine_size_wins_over_the_header(swf):
    w = swf("; MaxProcs: 8", row(1), row(2, allocated=3), processors=3)
    assert w.machine_processors == 3
    assert w.job_id.tolist() == [2]


def test_clock_and_time_zone(swf):
    w = swf("; UnixStartTime: 1027839845", "; TimeZone: 3600", "; TimeZoneString: Europe/Stockholm", row())
    assert (w.unix_start_s, w.time_zone) == (1027839845.0, "Europe/Stockholm")
    w = swf("; UnixStartTime: 0", "; TimeZoneString: Mars/Olympus", row())
    assert (w.unix_start_s, w.time_zone) == (None, None)
    assert one(w, "Mars/Olympus")[0] == 1


@pytest.mark.parametrize("name", ["t.swf", "t.swf.gz", "gzip-without-the-name.swf"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n \t\n"])
def test_line_ends_blank_lines_tabs_and_gzip(tmp_path, name, end):
    text = end.join(
        ["; MaxProcs: 64", "\t" + row(1).replace(" ", "\t"), "; between jobs", "  " + row(2, run=0) + "  ", row(3)]
    )
    path = tmp_path / name
    path.write_bytes(text.encode() if name == "t.swf" else gzip.compress(text.encode()))
    w = read_swf(path)
    assert w.job_id.tolist() == [1, 3]
    assert one(w, "zero run time")[1] == (10 if end.count("\n") == 3 else 4)


def test_headers_in_other_encodings_are_harmless(tmp_path):
    path = tmp_path / "t.swf"
    path.write_bytes(b"\xef\xbb\xbf; Installation: Ume\xe5\n; MaxProcs: 9\n" + row().encode())
    assert read_swf(path).machine_processors == 9


def test_source_is_the_hash_of_the_file_on_disk(tmp_path):
    import hashlib

    path = tmp_path / "t.swf.gz"
    path.write_bytes(gzip.compress(row().encode()))
    assert read_swf(path).sources == {"t.swf.gz": hashlib.sha256(path.read_bytes()).hexdigest()}


def assert_same_jobs(a: Workload, b: Workload, but: tuple[str, ...] = ("power_w", "trace_row")):
    for name in COLUMNS:
        if name not in but:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


seconds = st.one_of(st.integers(1, 10**9).map(float), st.floats(1e-3, 1e9))
jobs = st.fixed_dictionaries(
    {
        "job_id": st.integers(0, 10**9), "submit_s": seconds, "run_time_s": seconds, "requested_time_s": seconds,
        "processors": st.integers(1, 10**6), "user": st.integers(-1, 10**6), "status": st.integers(-1, 5),
        "queue": st.integers(-1, 99), "preceding_job": st.one_of(st.just(-1), st.integers(1, 10**9)),
        "requested_memory_kb": st.one_of(st.just(np.nan), st.floats(0, 1e20)),
        "think_time_s": st.one_of(st.just(np.nan), st.floats(0, 1e9)),
        "recorded_wait_s": st.one_of(st.just(np.nan), st.floats(0, 1e9)),
    }
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(jobs, min_size=1, max_size=8, unique_by=lambda j: j["job_id"]),
    st.sampled_from(["t.swf", "t.swf.gz"]),
    st.one_of(st.none(), st.integers(10**6, 10**7)),
    st.one_of(st.none(), st.just(1027839845.0), st.just(1027839845.25)),
)
def test_what_is_written_reads_back(tmp_path_factory, rows, name, machine, unix_start_s):
    columns = {key: np.array([job[key] for job in rows]) for key in rows[0]}
    w = Workload.from_columns(
        "any", columns, machine_processors=machine, unix_start_s=unix_start_s, time_zone="Asia/Tokyo"
    )
    path = tmp_path_factory.mktemp("written") / name
    write_swf(w, path)
    back = read_swf(path)
    assert_same_jobs(w, back)
    assert (back.machine_processors, back.unix_start_s, back.time_zone) == (machine, unix_start_s, "Asia/Tokyo")
    first = path.read_bytes()
    write_swf(back.with_columns(name="any"), path)
    assert path.read_bytes() == first


def test_nothing_is_left_behind_when_writing_fails(tmp_path):
    w = Workload.from_columns("w", {"submit_s": [0], "run_time_s": [1], "processors": [1]})
    with pytest.raises(InputError, match="cannot be written"):
        write_swf(w, tmp_path / "no" / "t.swf")
    (tmp_path / "t.swf").mkdir()
    with pytest.raises(InputError, match=r"t\.swf: cannot be written"):
        write_swf(w, tmp_path / "t.swf")
    assert [p.name for p in Path(tmp_path).iterdir()] == ["t.swf"]


def test_names_of_queues_and_partitions_in_the_header(tmp_path):
    header = "; Queue: 1 short\n; Queue: 2  very long \n; Queue: 1 again\n; Partition: all nodes\n; Partition: 3\n"
    path = tmp_path / "t.swf"
    path.write_text(header + "1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 1 2 1 -1 -1\n")
    assert read_swf(path).names == {"queue": {1: "short", 2: "very long"}}


def test_a_trace_is_given_another_date(tmp_path):
    path = tmp_path / "jobs.swf"
    path.write_text("; UnixStartTime: 1000\n1 5 -1 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1\n")
    assert read_swf(path).unix_start_s == 1000
    assert read_swf(path, unix_start_s=2000.0).unix_start_s == 2000
    assert read_swf(path, unix_start_s=2000.0).submit_s.tolist() == [5]
