"""Slurm accounting dumps as sites make them, small enough to check by eye."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import site_dump
from greenbatch.errors import InputError
from greenbatch.workload import Workload, read_sacct, read_workload

FIELD_NAMES = (
    *("JobIDRaw", "JobID", "User", "Account", "Partition", "QOS", "State", "Submit", "Eligible", "Start", "End"),
    *("ElapsedRaw", "TimelimitRaw", "ReqCPUS", "AllocCPUS", "ConsumedEnergyRaw"),
)
HEADER = "|".join(FIELD_NAMES)
# Times of the day 2026-01-05; columns as in the header.
ROWS = """
100         100           ada phys batch normal COMPLETED 08:00:00 08:00:00 08:00:10 09:00:10 3600  120             32 32 7200000
100.batch   100.batch     -   phys -     -      COMPLETED 08:00:10 08:00:10 08:00:10 09:00:10 3600  -               -  32 7200000
100.extern  100.extern    -   phys -     -      COMPLETED 08:00:10 08:00:10 08:00:10 09:00:10 3600  -               -  32 7200000
101         101           bob chem batch normal TIMEOUT   08:01:00 08:01:00 08:01:00 08:11:30 630   10              4  4  0
102         102           ada phys batch high   CANCELLED 08:02:00 08:02:00 None     08:03:00 0     60              8  0  0
103         103           bob chem batch high   CANCELLED 08:02:30 08:02:30 08:03:30 08:04:30 60    UNLIMITED       8  8  0
104         104           bob chem batch normal RUNNING   08:05:00 08:05:00 08:06:00 Unknown  86400 2880            8  8  0
105         105           cyd chem batch normal PENDING   08:05:30 Unknown  Unknown  Unknown  0     60              8  0  0
112         110_1         cyd chem batch normal COMPLETED 08:10:00 08:10:00 08:11:00 08:12:00 60    5               1  1  0
113         110_2         cyd chem batch normal FAILED    08:10:00 08:10:00 08:11:00 08:11:30 30    5               1  1  0
110         110_[3-9%2]   cyd chem batch normal PENDING   08:10:00 08:10:00 Unknown  Unknown  0     5               1  0  0
120         120           ada phys batch normal COMPLETED 08:20:00 10:20:00 10:21:00 10:31:00 600   Partition_Limit 16 16 -
"""  # noqa: E501 - a table is read by its columns


def _as_sacct_prints(cell: str) -> str:
    if len(cell) == len("08:00:00") and cell.count(":") == 2:
        return f"2026-01-05T{cell}"
    return {"-": "", "CANCELLED": "CANCELLED by 1000"}.get(cell, cell)


DUMP = "\n".join([HEADER, *("|".join(map(_as_sacct_prints, row.split())) for row in ROWS.strip().splitlines())]) + "\n"


@pytest.fixture
def dump(tmp_path):
    def read(text: str, **options) -> Workload:
        path = tmp_path / "site.txt"
        path.write_text(text)
        return read_sacct(path, **options)

    return read


def table(*rows: str, fields: str) -> str:
    return "\n".join([fields, *rows]) + "\n"


def counted(workload: Workload) -> dict[str, int]:
    return {note.what: note.count for note in workload.notes}


def test_a_realistic_dump(dump):
    w = dump(DUMP, time_zone="Europe/Paris")
    assert w.job_id.tolist() == [100, 101, 103, 112, 113, 120]
    assert w.submit_s.tolist() == [0, 60, 150, 600, 600, 8400]  # job 120 became eligible two hours later
    assert w.run_time_s.tolist() == [3600, 630, 60, 60, 30, 600]
    assert w.requested_time_s.tolist() == [7200, 600, 7200, 300, 300, 7200], "without a limit: the longest"
    assert w.processors.tolist() == [32, 4, 8, 1, 1, 16]
    assert w.status.tolist() == [1, 0, 5, 1, 0, 1]
    assert w.recorded_wait_s.tolist() == [10, 0, 60, 60, 60, 60]
    assert w.user.tolist() == [1, 2, 2, 3, 3, 1]
    assert w.group.tolist() == [1, 2, 2, 2, 2, 1]
    assert w.queue.tolist() == [1, 1, 2, 1, 1, 1]
    assert w.trace_row.tolist() == [0, 1, 3, 6, 7, 9]
    assert w.power_w[0] == 7200000 / 3600
    assert np.isnan(w.power_w[1:]).all()
    assert (w.unix_start_s, w.time_zone) == (1767596400.0, "Europe/Paris")  # 2026-01-05 07:00 UTC
    assert counted(w) == {
        "step skipped": 2,
        "job that was still waiting dropped": 1 + 7,  # 110_[3-9%2] are seven tasks
        "job that never started dropped": 1,
        "job that was still running dropped": 1,
        "no time limit of its own, longest limit of the trace, 2 h, taken as requested": 2,
        "run time over the requested time (whole trace)": 1,
        "power from measured energy, idle power of the job's nodes included": 1,
    }
    assert {n.what: n.first_line for n in w.notes}["job that never started dropped"] == 6


GIB_KB = 1024**3 / 1000


def test_a_dump_of_four_partitions_with_gpus(dump):
    w = dump(site_dump.dump(jobs=200), time_zone="UTC")
    rows = [line.split("|") for line in site_dump.dump(jobs=200).splitlines()[1:]]
    column = dict(zip(site_dump.FIELDS.split("|"), zip(*rows, strict=True), strict=True))
    for ours, theirs in (("user", "User"), ("group", "Account"), ("queue", "QOS"), ("partition", "Partition")):
        assert [w.names[ours][code] for code in getattr(w, ours)] == list(column[theirs])
    assert w.nodes.tolist() == [int(nodes) for nodes in column["AllocNodes"]]
    gpus = [int(tres.partition("gres/gpu=")[2] or -1) for tres in column["AllocTRES"]]
    assert w.gpus.tolist() == gpus
    assert max(gpus) > 4, "jobs on several nodes with GPUs"
    memory_kb = [int(memory.removesuffix("G")) * GIB_KB for memory in column["ReqMem"]]
    assert (w.requested_memory_kb * w.processors).tolist() == pytest.approx(memory_kb, rel=1e-12)
    assert set(w.exclusive.tolist()) == {-1}
    assert w.take(slice(3, 5)).names == w.names


@pytest.mark.parametrize(
    ("field", "texts", "gpus"),
    [
        ("AllocTRES", ("billing=4,cpu=4,gres/gpu=2,node=1", "cpu=4,mem=8G", "cpu=1,gres/gpu:a100=1,gres/gpu=1"),
         (2, -1, 1)),
        ("ReqTRES", ("cpu=4,gres/gpu=0", "cpu=4,gres/gpu:h100=8", "gres/gpu:a=1,gres/gpu:b=2"), (0, 8, 3)),
        ("ReqGRES", ("gpu:2", "gres:gpu:1", "gpu:tesla:2,craynetwork:1"), (4, 2, 4)),
        ("AllocGRES", ("gpu:0", "gpu:4", "craynetwork:2"), (0, 4, -1)),
        ("AllocTRES", ("cpu=4,gres/gpu:2080ti=2,gres/gpu=2", "gres/gpu:3090=1", "gres/gpu:3g.20gb=1,gres/gpu:1g.5gb=2"),
         (2, 1, 3)),
        ("AllocGRES", ("gpu:2080ti:8", "gpu:a100:2(IDX:0,2)", "gpu:a100"), (8, 2, 1)),
    ],
)  # fmt: skip
def test_gpus(dump, field, texts, gpus):
    rows = [f"{k}|0|2026-01-05T08:00:00|2026-01-05T08:00:00|60|4|2|{text}" for k, text in enumerate(texts, start=1)]
    w = dump(table(*rows, fields=f"JobIDRaw|UID|Submit|Start|ElapsedRaw|AllocCPUS|AllocNodes|{field}"))
    assert w.gpus.tolist() == list(gpus)
    assert set(w.nodes) == {2}


MB_KB = 1024**2 / 1000


@pytest.mark.parametrize(
    ("fields", "text", "per_processor_kb"),
    [
        ("ReqMem", "2Gc", 2048 * MB_KB),
        ("ReqMem", "1000Mn", 1000 * MB_KB * 2 / 8),
        ("ReqMem", "16G", 2048 * MB_KB),
        ("ReqMem", "1.5T", 1.5 * 1024**2 / 8 * MB_KB),
        ("ReqMem", "0n", np.nan),
        ("ReqMem", "0", np.nan),
        ("ReqMem", "", np.nan),
        ("ReqMem", "4000", 500 * MB_KB),
        ("AllocTRES", "billing=8,cpu=8,mem=4000M,node=2", 500 * MB_KB),
        ("AllocTRES|ReqMem", "cpu=8,mem=62.50G|1Gc", 8000 * MB_KB),
        ("AllocTRES|ReqMem", "cpu=8|1Gc", 1024 * MB_KB),
        ("ReqTRES|ReqMem", "cpu=8,mem=8000M|1Gn", 1000 * MB_KB),
    ],
)
def test_memory_per_processor(dump, fields, text, per_processor_kb):
    row = f"1|2026-01-05T08:00:00|2026-01-05T08:00:00|60|8|2|{text}"
    w = dump(table(row, fields=f"JobIDRaw|Submit|Start|ElapsedRaw|AllocCPUS|NNodes|{fields}"))
    assert w.requested_memory_kb[0] == pytest.approx(per_processor_kb, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("fields", "text", "nodes"),
    [
        ("NodeList", "node[001-004,7]", 5),
        ("NodeList", "gpu1,rack[1-2]n[01-03],x", 8),
        ("NodeList", "None assigned", -1),
        ("NodeList", "", -1),
        ("NNodes|NodeList", "3|node1", 3),
        ("AllocNodes|ReqNodes", "0|4", -1),
        ("ReqNodes", "4", 4),
        ("AllocTRES", "cpu=8,node=2", 2),
        ("AllocNodes", "9", -1),
    ],
)
def test_nodes(dump, fields, text, nodes):
    row = f"1|2026-01-05T08:00:00|2026-01-05T08:00:00|60|8|{text}"
    w = dump(table(row, fields=f"JobIDRaw|Submit|Start|ElapsedRaw|AllocCPUS|{fields}"))
    assert w.nodes.tolist() == [nodes]
    assert counted(w).get("more nodes than processors, number of nodes ignored") == (1 if text == "9" else None)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("NodeList", "node[001-"), ("NodeList", "node[4-1]"), ("NodeList", "a,,b"), ("ReqMem", "lots"),
        ("ReqMem", "4Gx"), ("AllocTRES", "cpu=4,mem=8X"), ("AllocTRES", "mem=-1G"), ("AllocTRES", "mem="),
        ("AllocTRES", "cpu=8,node=two"), ("AllocTRES", "gres/gpu=-2"), ("ReqTRES", "cpu=8,gres/gpu:a100=x"),
        ("ReqTRES", "cpu 8"), ("AllocGRES", "gpu:-1"), ("ReqGRES", "gpu:2080ti:x"),
    ],
)  # fmt: skip
def test_broken_requests_are_one_line(dump, field, text):
    row = f"1|2026-01-05T08:00:00|2026-01-05T08:00:00|60|8|{text}"
    with pytest.raises(InputError) as caught:
        dump(table(row, fields=f"JobIDRaw|Submit|Start|ElapsedRaw|AllocCPUS|{field}"))
    assert (caught.value.line, caught.value.field) == (2, field)
    assert text.rpartition("8,")[2].removeprefix("cpu=4,") in str(caught.value)
    assert caught.value.fix


def test_the_broken_entry_of_a_long_list_is_named(dump):
    row = "1|2026-01-05T08:00:00|2026-01-05T08:00:00|60|8|billing=8,cpu=8,fs/disk=1048576,mem=8000Q,node=1"
    with pytest.raises(InputError, match=r"line 2: AllocTRES: 'mem=8000Q' is malformed \(write name=value"):
        dump(table(row, fields="JobIDRaw|Submit|Start|ElapsedRaw|AllocCPUS|AllocTRES"))


def test_a_note_goes_with_the_column_that_it_tells_of(dump):
    w = dump(DUMP, time_zone="UTC")
    again = w.with_columns(power_w=np.ones(len(w)))
    gone = [note.what for note in w.notes if note not in again.notes]
    assert gone == ["power from measured energy, idle power of the job's nodes included"]
    assert w.with_columns(run_time_s=w.run_time_s).notes == w.notes


def test_strict_refuses_the_first_drop(dump):
    with pytest.raises(InputError, match=r"line 9: State: job that was still waiting dropped"):
        dump(DUMP, strict=True)


def test_field_order_case_and_trailing_delimiter_do_not_matter(dump):
    plain = dump(DUMP, time_zone="UTC")
    lines = [line.split("|") for line in DUMP.strip().split("\n")]
    order = np.random.default_rng(1).permutation(len(lines[0]))
    shuffled = "\n".join("|".join(line[k] for k in order) + "|" for line in lines)
    again = dump(shuffled.replace("JobIDRaw", "jobidraw").replace("\n", "\r\n"), time_zone="UTC")
    for name in ("job_id", "submit_s", "run_time_s", "requested_time_s", "processors", "power_w", "user"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(again, name))


def test_blanks_around_cells_do_not_matter(dump):
    plain, padded = (dump(text, time_zone="Asia/Tokyo") for text in (DUMP, DUMP.replace("|", " | ")))
    assert plain.submit_s.tolist() == padded.submit_s.tolist()
    assert plain.unix_start_s == padded.unix_start_s


def test_gzip_and_concatenated_dumps(tmp_path):
    path = tmp_path / "site.txt.gz"
    first, second = DUMP.split("112|", 1)
    path.write_bytes(gzip.compress(f"{first}{HEADER}\n112|{second}".encode()))
    w = read_sacct(path)
    assert len(w) == 6
    assert counted(w)["repeated header line skipped"] == 1
    assert w.name == "site"


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_other_delimiters_with_quotes_where_cells_hold_them(tmp_path, mark):
    rows = [FIELDS + "|AllocTRES", GOOD + '|"cpu=1,mem=2G,gres/gpu=2"', GOOD.replace("1|", "2|", 1) + "|"]
    path = tmp_path / "sacct.csv"
    path.write_text("\n".join(row.replace("|", mark) for row in rows) + "\n")
    w = read_workload(path)
    assert (w.job_id.tolist(), w.gpus.tolist(), w.run_time_s.tolist()) == ([1, 2], [2, -1], [60, 60])
    with pytest.raises(InputError, match="column is missing"):  # a table, where columns are named
        read_workload(path, columns={"JobID": "job_id"})


def test_a_second_header_names_the_fields_of_the_rows_below_it(dump):
    again = "AllocCPUS|Start|Submit|JobID|State|Elapsed"
    row = "8|2026-01-05T08:00:00|2026-01-05T07:30:00|2|COMPLETED|01:00:00"
    w = dump(table(GOOD, again, row, again, row.replace("|2|", "|3|"), fields=FIELDS))
    assert (w.job_id.tolist(), w.processors.tolist(), w.run_time_s.tolist()) == ([1, 2, 3], [1, 8, 8], [60, 3600, 3600])
    assert counted(w)["repeated header line skipped"] == 2


def test_a_last_line_that_is_cut_off_is_left_out_with_a_warning(dump):
    text = table(GOOD, GOOD.replace("1|", "2|", 1), fields=FIELDS)[:-9]
    w = dump(text)
    (cut,) = (note for note in w.notes if "truncated" in note.what)
    assert (w.job_id.tolist(), cut.level, cut.first_line) == ([1], "warning", 3)
    with pytest.raises(InputError, match="line 3: row: truncated last line"):
        dump(text, strict=True)


@pytest.mark.parametrize(
    ("job", "tasks"),
    [("7_[1-5]", 5), ("7_[1,3,8-9%1]", 4), ("7_[0-10:2]", 6), ("7_[3]", 1), ("7_[1-3,...]", 3), ("7_[x]", 1), ("7", 1)],
)
def test_tasks_of_an_array_that_waits(dump, job, tasks):
    row = f"{job}|PENDING|2026-01-05T07:00:00|Unknown|0|0"
    ran = "9|COMPLETED|2026-01-05T07:00:00|2026-01-05T07:00:00|60|1"
    w = dump(table(row, ran, fields="JobID|State|Submit|Start|ElapsedRaw|AllocCPUS"))
    assert counted(w)["job that was still waiting dropped"] == tasks


def test_every_run_of_a_requeued_job_with_components(dump):
    fields = "JobIDRaw|JobID|State|Submit|Start|ElapsedRaw|AllocCPUS"
    rows = (
        "5|5+0|NODE_FAIL|1000|1100|50|4", "6|5+1|NODE_FAIL|1000|1100|50|8",
        "5|5+0|COMPLETED|1000|1300|70|4", "6|5+1|COMPLETED|1000|1300|60|8",
        "9|9|COMPLETED|1000|1000|10|1",
    )  # fmt: skip
    w = dump(table(*rows, fields=fields), requeued="every-run")
    by_submit = np.argsort(w.submit_s, kind="stable")
    assert sorted(w.run_time_s.tolist()) == [10, 50, 70]
    assert w.submit_s[by_submit].tolist() == [0, 0, 150], "a later run waits for the end of the one before"
    assert w.processors[w.run_time_s > 10].tolist() == [12, 12]
    with pytest.raises(InputError, match="requeued: is 'all'"):
        dump(table(*rows, fields=fields), requeued="all")


def test_without_a_time_zone_no_real_time_is_claimed(dump):
    w = dump(DUMP)
    assert (w.unix_start_s, w.time_zone) == (None, None)
    assert counted(w)["time stamps without a time zone taken as UTC"] == 10


@pytest.mark.parametrize(
    ("submit", "start"),
    [("1767596400", "1767596460"), ("2026-01-05T07:00:00Z", "2026-01-05T08:01:00+01:00"),
     ("2026-01-05T02:00:00-0500", "2026-01-05T07:01:00+0000"),
     ("2026-01-05 08:00:00 +0100", "2026-01-05 07:01:00.000Z")],
)  # fmt: skip
def test_stamps_that_carry_their_own_zone(dump, submit, start):
    w = dump(table(f"1|{submit}|{start}|60|2", fields="JobID|Submit|Start|ElapsedRaw|NCPUS"))
    assert (w.unix_start_s, w.recorded_wait_s.tolist()) == (1767596400.0, [60])
    assert counted(w) == {"requested time missing or unlimited, run time used": 1}


@pytest.mark.parametrize(
    ("elapsed", "seconds"),
    [
        ("00:00:59", 59),
        ("01:00:00", 3600),
        ("1-00:00:01", 86401),
        ("07-23:59:59", 691199),
        ("12:34", 754),
        ("00:01.123", 1),
    ],
)
def test_elapsed(dump, elapsed, seconds):
    fields = "JobID|Submit|Start|Elapsed|Timelimit|AllocCPUS"
    w = dump(table(f"1|2026-01-05T07:00:00|2026-01-05T07:00:00|{elapsed}|{elapsed}|1", fields=fields))
    assert w.run_time_s.tolist() == w.requested_time_s.tolist() == [seconds]


@pytest.mark.parametrize("limit", ["UNLIMITED", "Partition_Limit", "", "INVALID"])
@pytest.mark.parametrize("field", ["Timelimit", "TimelimitRaw"])
def test_no_time_limit(dump, limit, field):
    fields = f"JobID|Submit|Start|Elapsed|{field}|AllocCPUS"
    w = dump(table(f"1|2026-01-05T07:00:00|2026-01-05T07:00:00|01:00:00|{limit}|1", fields=fields))
    assert w.requested_time_s.tolist() == [3600]
    assert counted(w)["requested time missing or unlimited, run time used"] == 1


def test_run_time_from_end_when_elapsed_is_not_listed(dump):
    rows = (
        "1|2026-01-05T07:00:00|2026-01-05T07:10:00|2026-01-05T07:40:00|3",
        "2|2026-01-05T07:00:00|2026-01-05T07:10:00|Unknown|3",
    )
    w = dump(table(*rows, fields="JobID|Submit|Start|End|ReqCPUS"))
    assert (w.job_id.tolist(), w.run_time_s.tolist(), w.processors.tolist()) == ([1], [1800], [3])
    assert counted(w)["job that was still running dropped"] == 1


def test_a_job_that_ends_before_it_starts_is_not_one_of_0_s(dump):
    fields = "JobID|Submit|Start|End|AllocCPUS"
    day, ends = "2026-01-05T", ("07:00:00", "08:00:00", "09:00:00")
    rows = [f"{job}|{day}07:00:00|{day}08:00:00|{day}{end}|3" for job, end in enumerate(ends)]
    w = dump(table(*rows, fields=fields))
    assert w.run_time_s.tolist() == [3600]
    assert counted(w)["job that ends before it starts dropped"] == 1
    assert counted(w)["job that ran for 0 s dropped"] == 1
    with pytest.raises(InputError, match="line 2: End: job that ends before it starts dropped"):
        dump(table(*rows, fields=fields), strict=True)


def test_jobs_of_an_unknown_state_are_noted_and_judged_by_their_end(dump):
    fields = "JobID|State|Submit|Start|End|ElapsedRaw|AllocCPUS"
    rows = ("1|FOO|100|100|160|60|1", "2|foo|100|100|Unknown|60|1", "3||100|100|160|60|1", "4|FAILED|100|100|160|60|1")
    w = dump(table(*rows, fields=fields))
    assert (w.job_id.tolist(), w.status.tolist()) == ([1, 3, 4], [-1, -1, 0])
    assert counted(w)["unknown State, job taken as ended unless its End is Unknown"] == 3
    assert counted(w)["job that was still running dropped"] == 1
    without = dump(table("1|FOO|100|100|60|1", fields=fields.replace("End|", "")))
    assert counted(without)["unknown State, job taken as ended unless its End is Unknown"] == len(without) == 1


def test_processors_from_tres(dump):
    fields = "JobID|Submit|Start|ElapsedRaw|AllocTRES|ReqTRES"
    rows = (
        "1|100|100|60|billing=4,cpu=4,gres/gpu=1,mem=8G,node=1|cpu=2",
        "2|100|100|60||billing=1,cpu=7",
        "3|100|100|60||mem=1G",
    )
    w = dump(table(*rows, fields=fields))
    assert w.processors.tolist() == [4, 7]
    assert counted(w)["job without processors dropped"] == 1


def test_heterogeneous_components_become_one_job(dump):
    fields = "JobIDRaw|JobID|State|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS|ConsumedEnergyRaw"
    rows = (
        "199|199|COMPLETED|990|995|60|2|1|0",
        "200|200+0|COMPLETED|1000|1100|600|20|16|6000",
        "201|200+1|COMPLETED|1000|1100|660|30|8|600",
        "200.0+0|200.0+0|COMPLETED|1000|1100|600||16|99",
        "202|202|COMPLETED|2000|2000|60|2|1|0",
    )
    w = dump(table(*rows, fields=fields))
    assert w.job_id.tolist() == [199, 200, 202]
    assert w.processors.tolist() == [1, 24, 1]
    assert w.run_time_s.tolist() == [60, 660, 60]
    assert w.requested_time_s[1] == 1800
    assert w.power_w[1] == 10
    assert w.trace_row.tolist() == [0, 1, 3]
    assert counted(w)["component of a heterogeneous job merged into its first"] == 1


def test_of_a_requeued_job_the_last_finished_run_is_kept(dump):
    fields = "JobID|State|Submit|Start|End|ElapsedRaw|AllocCPUS"
    rows = (
        "7|NODE_FAIL|1000|1100|1200|100|4",
        "7|COMPLETED|1300|1400|1900|500|4",
        "7|PREEMPTED|1200|1210|1260|50|4",
        "8|COMPLETED|1500|1600|1700|100|4",
        "8|COMPLETED|1500|1600|1700|100|4",
    )
    w = dump(table(*rows, fields=fields))
    assert (w.submit_s.tolist(), w.run_time_s.tolist()) == ([0, 200], [500, 100])
    assert counted(w)["earlier run of a requeued job dropped"] == 2
    assert counted(w)["repeated row of a job dropped"] == 1
    notes = {note.what: note for note in w.notes}
    shares = dict(map(reversed, notes["earlier run of a requeued job dropped"].shares))
    assert shares == {"processor-hours": pytest.approx(150 / 750), "jobs": pytest.approx(2 / 4)}
    assert notes["repeated row of a job dropped"].shares == ()


def test_array_tasks_without_raw_ids_are_numbered_by_submission(dump):
    rows = ("12_1|2000|2000|60|1", "12_2|2000|2000|60|1", "11|1000|1000|50|1", "13+0|1500|1500|50|1")
    w = dump(table(*rows, fields="JobID|Submit|Start|ElapsedRaw|AllocCPUS"))
    assert w.job_id.tolist() == [1, 2, 3, 4]
    assert w.submit_s.tolist() == [0, 500, 1000, 1000]
    assert counted(w)["jobs renumbered by submit time because not all have a unique JobIDRaw"] == 4


def test_old_versions_print_start_and_end_for_jobs_that_never_ran(dump):
    fields = "JobID|State|Submit|Start|End|Elapsed|AllocCPUS"
    w = dump(
        table(
            "1|CANCELLED by 5|1000|1100|1100|00:00:00|0",
            "2|FAILED|1000|1100|1100|00:00:00|4",
            "3|COMPLETED|1000|1000|1001|00:00:01|4",
            fields=fields,
        )
    )
    assert w.job_id.tolist() == [3]
    assert counted(w)["job that never started dropped"] == 1
    assert counted(w)["job that ran for 0 s dropped"] == 1


def test_energy_that_was_not_recorded_is_unknown(dump):
    fields = "JobID|Submit|Start|ElapsedRaw|AllocCPUS|ConsumedEnergyRaw|ConsumedEnergy"
    rows = (
        "1|1000|1000|100|4|0|0",
        "2|1000|1000|100|4||1.50K",
        "3|1000|1000|100|4|18446744073709551614|0",
        "4|1000|1000|100|4|500|0",
    )
    assert dump(table(*rows, fields=fields)).power_w.tolist() == pytest.approx([np.nan, 15, np.nan, 5], nan_ok=True)


def test_jobs_larger_than_the_machine(dump):
    w = dump(DUMP, processors=16)
    assert w.machine_processors == 16
    assert w.job_id.tolist() == [101, 103, 112, 113, 120]
    assert counted(w)["job larger than the machine (16 processors) dropped"] == 1


# Europe/Paris: on 2026-10-25 the wall clock goes from 03:00 back to 02:00; on 2026-03-29 from 02:00 to 03:00.
@pytest.mark.parametrize(
    ("clock", "elapsed", "wait"),
    [
        ("01:30:00 02:30:00 04:00:00", 9000, 3600),  # first 02:30
        ("01:30:00 02:30:00 04:00:00", 5400, 7200),  # second 02:30
        ("02:50:00 02:10:00 04:00:00", 6600, 1200),  # submitted before, started after the change
        ("02:10:00 02:20:00 02:40:00", 1200, 600),  # cannot be told apart: the first
        ("03:10:00 03:20:00 03:40:00", 1200, 600),
    ],
)
def test_the_repeated_hour(dump, clock, elapsed, wait):
    day = "2026-10-25T"
    submit, start, end = clock.split()
    fields = "JobID|Submit|Start|End|ElapsedRaw|AllocCPUS"
    w = dump(table(f"1|{day}{submit}|{day}{start}|{day}{end}|{elapsed}|1", fields=fields), time_zone="Europe/Paris")
    assert (w.run_time_s.tolist(), w.recorded_wait_s.tolist()) == ([elapsed], [wait])
    from_end = dump(
        table(f"1|{day}{submit}|{day}{start}|{day}{end}|1", fields=fields.replace("ElapsedRaw|", "")),
        time_zone="Europe/Paris",
    )
    assert from_end.run_time_s[0] in (elapsed, elapsed + 3600)


def test_the_skipped_hour_is_counted(dump):
    fields = "JobID|Submit|Start|ElapsedRaw|AllocCPUS"
    text = table("1|2026-03-29T01:59:00|2026-03-29T02:30:00|60|1", fields=fields)
    w = dump(text, time_zone="Europe/Paris")
    assert w.recorded_wait_s.tolist() == [31 * 60]
    with pytest.raises(InputError, match="daylight saving skips"):
        dump(text, time_zone="Europe/Paris", strict=True)


def test_summer_and_winter_offsets(dump):
    rows = ("1|2026-01-05T08:00:00|2026-01-05T08:00:00|60|1", "2|2026-07-05T08:00:00|2026-07-05T08:00:00|60|1")
    w = dump(table(*rows, fields="JobID|Submit|Start|ElapsedRaw|AllocCPUS"), time_zone="America/New_York")
    assert w.submit_s[1] == 181 * 86400 - 3600


FIELDS = "JobID|Submit|Start|ElapsedRaw|AllocCPUS"
ENERGY = "ConsumedEnergyRaw"
GOOD = "1|2026-01-05T07:00:00|2026-01-05T07:00:00|60|1"
MALFORMED = {
    "empty": ("", None, "is empty"),
    "blank lines": ("\n\n", None, "has no lines"),
    "no header": (GOOD, 1, "header: there is no header line"),
    "no header, Unix seconds": ("7_1|1767596400|1767596400|60|4", 1, "header: there is no header line"),
    "not parsable": ("       JobID    JobName\n------------ ----------\n1 a\n", 1, "has columns of fixed width"),
    "other delimiter": (FIELDS.replace("|", ","), 1, "has no jobs"),
    "no Submit": (table("1|2", fields="JobID|Start"), 1, "Submit: field is missing"),
    "no Start": (table("1|2", fields="JobID|Submit"), 1, "Start: field is missing"),
    "no run time": (table("1|2|3|1", fields="JobID|Submit|Start|AllocCPUS"), 1, "ElapsedRaw: field is missing"),
    "no processors": (table("1|2|3|1", fields="JobID|Submit|Start|ElapsedRaw"), 1, "AllocCPUS: field is missing"),
    "field named twice": (table("1|1|2", fields="JobID|jobid|Submit"), 1, "jobid: is named twice"),
    "header only": (FIELDS, 1, "has no jobs"),
    "steps only": (table(GOOD.replace("1|", "1.batch|", 1), fields=FIELDS), 1, "has no jobs"),
    "too many fields": (table(GOOD, f"{GOOD}|a|b", fields=FIELDS), 3, "7 fields, the header names 5"),
    "too few fields": (table(GOOD, "2|2026", fields=FIELDS), 3, "2 fields, the header names 5"),
    "bad stamp": (table(GOOD.replace("07:00:00|2", "7h|2"), fields=FIELDS), 2, "Submit: '2026-01-05T7h'"),
    "no such day": (table(GOOD.replace("01-05", "02-30"), fields=FIELDS), 2, "Submit: '2026-02-30T07:00:00'"),
    "zone without seconds": (table(GOOD.replace("07:00:00|2", "07:00+00|2"), fields=FIELDS), 2, "07:00+00' is mal"),
    "non-ASCII digits": (table(GOOD.replace("|60|", "|٦٠|"), fields=FIELDS), 2, "ElapsedRaw: "),
    "before 1970": (table(GOOD.replace("2026", "1926"), fields=FIELDS), 2, "'1926-01-05T07:00:00' is before 1970"),
    "before 1970 in UTC": (
        table("1|1970-01-01T00:00:00+01:00|2|60|1", fields=FIELDS), 2, "'1970-01-01T00:00:00+01:00' is before 1970"
    ),
    "bad elapsed": (table(GOOD.replace("|60|", "|-60|"), fields=FIELDS), 2, "ElapsedRaw: '-60' is malformed"),
    "fractional elapsed": (table(GOOD.replace("|60|", "|6.5|"), fields=FIELDS), 2, "ElapsedRaw: '6.5' is malformed"),
    "bad duration": (table("1|2|3|1h|1", fields="JobID|Submit|Start|Elapsed|NCPUS"), 2, "Elapsed: '1h' is malformed"),
    "bad processors": (table(GOOD[:-1] + "four", fields=FIELDS), 2, "AllocCPUS: 'four' is malformed"),
    "bad energy": (table(f"{GOOD}|-5", fields=f"{FIELDS}|{ENERGY}"), 2, f"{ENERGY}: '-5' is malformed"),
    "nothing ran": (table(GOOD.replace("|60|1", "|0|0"), fields=FIELDS), None, "no job is left"),
    "binary": ("JobID\0\1\2", 1, "is not a text file"),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed(tmp_path, case):
    text, line, words = MALFORMED[case]
    path = tmp_path / "site.txt"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_sacct(path)
    message = str(refused.value)
    assert message.startswith(str(path))
    assert words in message
    assert "\n" not in message
    assert (refused.value.line, bool(refused.value.fix)) == (line, True)


@pytest.mark.parametrize("options", [{"time_zone": "Mars/Olympus"}, {"time_zone": ""}, {"processors": 0}])
def test_bad_options(tmp_path, options):
    (tmp_path / "site.txt").write_text(DUMP)
    with pytest.raises(InputError, match=next(iter(options))):
        read_sacct(tmp_path / "site.txt", **options)


def test_names_in_another_encoding_stay_apart(tmp_path):
    path = tmp_path / "site.txt"
    rows = [GOOD.encode() + b"|" + name for name in ("Åsa".encode("latin-1"), "Èva".encode("latin-1"))]
    path.write_bytes(b"\n".join([FIELDS.encode() + b"|User", rows[0], rows[1].replace(b"1|", b"2|", 1)]))
    assert read_sacct(path).user.tolist() == [1, 2]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(DUMP)), st.integers(0, 3), st.binary(max_size=6)), max_size=4), st.booleans()
)
def test_a_damaged_dump_gives_jobs_or_one_line(tmp_path_factory, edits, strict):
    content = DUMP.encode()
    for place, cut, insert in edits:
        content = content[:place] + insert + content[place + cut :]
    path = tmp_path_factory.getbasetemp() / "damaged.txt"
    path.write_bytes(content)
    workload, refused = None, None
    try:
        workload = read_sacct(path, strict=strict, time_zone="Europe/Paris")
    except InputError as error:
        refused = error
    if refused is not None:
        assert "\n" not in str(refused)
        assert str(refused).startswith(str(path))
    if workload is not None:
        assert (workload.run_time_s > 0).all()
