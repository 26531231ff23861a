"""CSV and Parquet tables, and the one door for all traces."""

from __future__ import annotations

import gzip

import numpy as np
import polars as pl
import pytest

from greenbatch.errors import InputError
from greenbatch.workload import Workload, read_swf, read_table, read_workload, write_swf
from greenbatch.workload.table import COLUMNS

CSV = "job_id,submit_s,run_time_s,processors,power_w,user,note\n7,10.5,60,4,120.5,3,a\n5,0,30,2,,,b\n"


@pytest.fixture
def csv(tmp_path):
    def read(text: str, **options) -> Workload:
        path = tmp_path / "jobs.csv"
        path.write_text(text, newline="")
        return read_table(path, **options)

    return read


def test_named_columns(csv):
    w = csv(CSV)
    assert w.job_id.tolist() == [5, 7]
    assert w.submit_s.tolist() == [0, 10.5]
    assert w.requested_time_s.tolist() == w.run_time_s.tolist() == [30, 60]
    assert w.user.tolist() == [-1, 3]
    assert w.power_w.tolist() == pytest.approx([np.nan, 120.5], nan_ok=True)
    assert w.trace_row.tolist() == [1, 0]
    assert [str(n) for n in w.notes] == [
        "column 'note' ignored: 2",
        "requested time missing, run time used: 2, first at line 2 (100% of the processor-hours and 100% of the jobs)",
    ]
    assert w.name == "jobs"


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_separators_line_ends_blank_lines_and_byte_order_marks(csv, mark, end):
    w = csv("\ufeff" + CSV.replace(",", mark).replace("\n", end + end))
    assert w.job_id.tolist() == [5, 7]


def test_missing_words_and_quotes(csv):
    w = csv('submit_s,"run_time_s",processors,user\n0,"60",1,NA\n1, 60 ,1,null\n2,60,1,NaN\n')
    assert w.user.tolist() == [-1, -1, -1]
    assert w.job_id.tolist() == [1, 2, 3]


def test_columns_of_names(csv, tmp_path):
    text = "submit_s,run_time_s,processors,partition,user\n0,60,1,cpu,7\n1,60,1, gpu ,3\n2,60,1,,7\n3,60,1,cpu,\n"
    w = csv(text)
    assert (w.partition.tolist(), w.names) == ([1, 2, -1, 1], {"partition": {1: "cpu", 2: "gpu"}})
    assert w.user.tolist() == [7, 3, 7, -1]
    mixed = csv(text.replace(",7\n", ",ann\n"))
    assert (mixed.user.tolist(), mixed.names["user"]) == ([1, 2, 1, -1], {1: "ann", 2: "3"})
    frame = pl.DataFrame({"submit_s": [0, 1], "run_time_s": [9, 9], "processors": [1, 1], "partition": ["b", None]})
    frame.write_parquet(tmp_path / "t.parquet")
    w = read_table(tmp_path / "t.parquet")
    assert (w.partition.tolist(), w.names) == ([1, -1], {"partition": {1: "b"}})


def test_mapped_columns(csv):
    text = "arrival_time,length,cpus,queue\n3,60,4,1\n"
    w = csv(text, columns={"arrival_time": "submit_s", "length": "run_time_s", "cpus": "processors"})
    assert (w.submit_s.tolist(), w.run_time_s.tolist(), w.processors.tolist(), w.queue.tolist()) == (
        [3],
        [60],
        [4],
        [1],
    )


def test_machine_size_and_clock(csv):
    w = csv(CSV, processors=3, unix_start_s=1e9, time_zone="UTC")
    assert (w.job_id.tolist(), w.machine_processors, w.unix_start_s, w.time_zone) == ([5], 3, 1e9, "UTC")
    assert w.trace_row.tolist() == [1]
    with pytest.raises(InputError, match="line 2: processors: job larger than the machine"):
        csv(CSV, processors=3, strict=True)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_requested_times_are_noted_as_in_logs(tmp_path, kind):
    path = tmp_path / f"jobs.{kind}"
    frame = pl.DataFrame(
        {
            "submit_s": [0, 1, 2, 3, 4],
            "run_time_s": [600, 60, 7200, 60, 60],
            "processors": [4, 99, 4, 4, 4],
            "requested_time_s": [60, 30, 240, None, 60],
        }
    )
    frame.write_parquet(path) if kind == "parquet" else frame.write_csv(path)
    first = kind == "csv"
    for strict in (False, True):  # a fact, not a repair
        w = read_table(path, strict=strict)
        assert w.requested_time_s.tolist() == [60, 30, 240, 60, 60]
        assert [str(n) for n in w.notes] == [
            f"requested time missing, run time used: 1, first at line {4 + first} "
            "(0.6% of the processor-hours and 20% of the jobs)",
            f"run time over the requested time (whole trace): 3, first at line {1 + first}",
        ]
    over = read_table(path, processors=8).notes[-1]
    assert (over.count, over.first_line) == (2, 1 + first), "the job that was dropped does not count"


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz"])
def test_every_column_survives_a_table(tmp_path, greenbatch_data, name):
    w = read_swf(greenbatch_data("swf-extra/LLNL-Thunder-2007-1.1-cln.swf.gz"), limit=3000)
    path = tmp_path / name
    if name == "t.parquet":
        w.frame().write_parquet(path)
    else:
        text = w.frame().with_columns(pl.col(pl.Float64).fill_nan(None)).write_csv().encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    back = read_table(path)
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(w, column), getattr(back, column), err_msg=column)


def test_many_rows_cross_block_borders(csv, monkeypatch):
    monkeypatch.setattr("greenbatch.workload.tabular._BLOCK_ROWS", 500)
    n = 1201
    rows = "".join(f"{k},{k % 97 + 1},{k % 8 + 1}\n" for k in range(n))
    w = csv("submit_s,run_time_s,processors\n" + rows)
    assert len(w) == n
    assert (w.run_time_s == np.arange(n) % 97 + 1).all()
    with pytest.raises(InputError, match="line 1203: run_time_s: 'x' is not a number"):
        csv("submit_s,run_time_s,processors\n" + rows + "1,x,1\n")


NAMES = "submit_s,run_time_s,processors"
MALFORMED = {
    "empty": ("", None, "is empty"),
    "blank": ("\n\n", None, "has no lines"),
    "header only": (f"{NAMES}\n", 1, "has no rows"),
    "no header": ("0,60,4\n", 1, "submit_s: column is missing; the file has '0,"),
    "column missing": ("submit_s,run_time_s\n0,60\n", 1, "processors: column is missing"),
    "column twice": (f"{NAMES},submit_s\n0,60,4,0\n", 1, "submit_s: column is named twice"),
    "too few cells": (f"{NAMES}\n0,60,4\n0,60\n", 3, "row: 2 cells"),
    "too many cells": (f"{NAMES}\n0,60,4,5\n", 2, "row: 4 cells"),
    "text": (f"{NAMES}\n0,60,4\n\n0,sixty,4\n", 4, "run_time_s: 'sixty' is not a number"),
    "decimal comma": (f"{NAMES}\n0,\"60,5\",4\n", 2, "run_time_s: '60,5' is not a number"),
    "open quote": (f"{NAMES}\n0,\"60,4\n1,60,4\n", 3, "is not CSV"),
    "missing run time": (f"{NAMES}\n0,,4\n", 2, "run_time_s: is missing"),
    "NaN submit": (f"{NAMES}\nnan,60,4\n", 2, "submit_s: is missing"),
    "infinite run time": (f"{NAMES}\n0,inf,4\n", 2, "run_time_s: is inf"),
    "huge": (f"{NAMES}\n0,1e300,4\n", 2, "run_time_s: is 1e+300"),
    "negative submit": (f"{NAMES}\n0,60,4\n-1,60,4\n", 3, "submit_s: is -1"),
    "zero run time": (f"{NAMES}\n0,0,4\n", 2, "run_time_s: is 0 (it must be finite and > 0)"),
    "zero requested time": (f"{NAMES},requested_time_s\n0,1,4,0\n", 2, "requested_time_s: is 0"),
    "no processors": (f"{NAMES}\n0,60,0\n", 2, "processors: is 0"),
    "fractional processors": (f"{NAMES}\n0,60,1.5\n", 2, "processors: is 1.5"),
    "fractional user": (f"{NAMES},user\n0,60,1,1.5\n", 2, "user: is 1.5 (it must be a whole number)"),
    "negative power": (f"{NAMES},power_w\n0,60,1,-5\n", 2, "power_w: is -5 (it must be finite and >= 0, or blank)"),
    "negative recorded wait": (f"{NAMES},recorded_wait_s\n0,60,1,\n0,60,1,-7200\n", 3, "recorded_wait_s: is -7200"),
    "negative think time": (f"{NAMES},think_time_s\n0,60,1,-1\n", 2, "think_time_s: is -1"),
    "negative memory": (f"{NAMES},requested_memory_kb\n0,60,1,-1\n", 2, "requested_memory_kb: is -1"),
    "id twice": (f"{NAMES},job_id\n0,60,1,4\n0,60,1,3\n0,60,1,4\n", 4, "job_id: 4 occurs twice"),
    "binary": ("a,b\0c\n", 1, "is not a text file"),
    "broken parquet": ("PAR1 and then text", None, "broken Parquet"),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed(tmp_path, case):
    text, line, words = MALFORMED[case]
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_table(path)
    message = str(refused.value)
    assert message.startswith(str(path))
    assert words in message
    assert "\n" not in message
    assert (refused.value.line, bool(refused.value.fix)) == (line, True)


def test_latin_1_text_names_the_line(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"submit_s,run_time_s,processors,n\n0,1,1,a\n0,1,1,\xe5\n")
    with pytest.raises(InputError, match="line 3: byte 0xe5 is not UTF-8 text"):
        read_table(path)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"cpus": "processor"}, "mapped to the unknown column 'processor'"),
        ({"cpus": "processors", "cores": "processors"}, "two columns are mapped"),
        ({"cpus": "processors"}, "cpus: column is missing"),
    ],
)
def test_bad_mappings(csv, columns, words):
    with pytest.raises(InputError, match=words):
        csv(CSV, columns=columns)


def test_parquet_columns_must_be_numbers_and_filled(tmp_path):
    path = tmp_path / "jobs.parquet"
    good = {"submit_s": [0, 1], "run_time_s": [5, 6], "processors": [1, 1]}
    for column, values, words in (
        ("submit_s", ["2026-01-01", "2026-01-02"], "submit_s: holds String, not numbers"),
        ("run_time_s", [5, None], "line 2: run_time_s: is missing"),
        ("processors", [0, 1], "line 1: processors: is 0"),
    ):
        pl.DataFrame({**good, column: values}).write_parquet(path)
        with pytest.raises(InputError, match=words):
            read_table(path)
    pl.DataFrame(good).clear().write_parquet(path)
    with pytest.raises(InputError, match="has no rows"):
        read_table(path)
    pl.DataFrame({**good, "user": [None, None]}).write_parquet(path)
    assert read_table(path).user.tolist() == [-1, -1]


SACCT = "JobID|Submit|Start|ElapsedRaw|AllocCPUS\n1|1000|1000|60|4\n"


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", ["t", "t.txt", "t.data"])
@pytest.mark.parametrize(
    "text",
    [
        SACCT,
        "submit_s,run_time_s,processors\n0,60,4\n",
        "; MaxProcs: 4\n1 0 -1 60 4" + " -1" * 13,
        "1 0 -1 60 4" + " -1" * 13,
    ],
)
def test_the_kind_of_a_trace_is_told_by_its_content(tmp_path, text, name, zipped):
    path = tmp_path / (name + ".gz" * zipped)
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    w = read_workload(path, strict=True)
    assert (w.run_time_s.tolist(), w.processors.tolist()) == ([60], [4])


def test_parquet_and_swf_through_the_one_door(tmp_path):
    w = Workload.from_columns("w", {"submit_s": [0], "run_time_s": [60], "processors": [4]})
    w.frame().write_parquet(tmp_path / "any.name")
    write_swf(w, tmp_path / "t.swf.gz")
    for name in ("any.name", "t.swf.gz"):
        for size in (8, np.int64(8)):
            assert read_workload(tmp_path / name, limit=None, processors=size).machine_processors == 8
        with pytest.raises(InputError, match=r"^processors: is '8' \(give a whole number, 1 or more\)$"):
            read_workload(tmp_path / name, processors="8")


def test_options_that_do_not_belong_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("submit_s,run_time_s,processors\n0,60,4\n")
    with pytest.raises(InputError, match="limit: does not apply to a table trace"):
        read_workload(path, limit=5)


@pytest.mark.parametrize("path", [None, 3, ["a.swf"]])
def test_other_objects_are_refused_as_paths(path):
    with pytest.raises(InputError, match=r"^path: is .* \(give the path of a trace\)$"):
        read_workload(path)


@pytest.mark.parametrize("text", ["hello", "<html></html>", "()", "\x7fELF\x02"])
def test_unknown_kinds_are_refused(tmp_path, text):
    path = tmp_path / "t.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"t\.txt, line 1: is not a known kind of trace"):
        read_workload(path)


def test_real_csv_with_mapped_names(greenbatch_data):
    mapping = {"arrival_time": "submit_s", "length": "run_time_s", "cpus": "processors"}
    path = greenbatch_data("swf-extra/GAIA_LANL-Mustang-2015_first100k.csv.gz")
    w = read_workload(path, columns=mapping)
    assert (len(w), w.processors.max()) == (100_000, 1570)
