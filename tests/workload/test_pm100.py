"""PM100's table of jobs, in its exact schema, and what is peculiar about it."""

from __future__ import annotations

import gzip
from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.errors import InputError
from greenbatch.workload import Workload, read_pm100, read_workload
from power_trace_files import START, by_row, one, pm100, told, written

JOBS = pm100(200)
WITH = {
    "text limits": lambda t: t.with_columns(pl.col("time_limit").cast(pl.String)),
    "text times": lambda t: t.with_columns(pl.col(pl.Datetime).dt.strftime("%Y-%m-%d %H:%M:%S%.f+00:00")),
    "whole seconds": lambda t: t.with_columns(pl.col(pl.Datetime).cast(pl.Datetime("ms", "UTC"))),
    "other zone": lambda t: t.with_columns(pl.col(pl.Datetime).dt.convert_time_zone("Europe/Rome")),
    "floats": lambda t: t.with_columns(pl.col("node_power_consumption").cast(pl.List(pl.Float32))),
    "fewer columns": lambda t: t.drop("mem_power_consumption", "cores_allocated", "job_id"),
}
"""Types that the same values may have in a copy of the data set."""


@pytest.fixture
def read(tmp_path):
    def go(frame: pl.DataFrame, **options) -> Workload:
        return read_pm100(written(frame, tmp_path / "job_table.parquet"), **options)

    return go


def test_samples_may_be_arrays_of_one_length(read):
    samples = pl.Series("node_power_consumption", [[100 + k, 200, 300] for k in range(len(JOBS))])
    lists, arrays = (JOBS.with_columns(samples.cast(kind)) for kind in (pl.List(pl.Int64), pl.Array(pl.Int64, 3)))
    assert by_row(read(arrays), "power_w").tolist() == by_row(read(lists), "power_w").tolist()
    assert by_row(read(arrays), "power_w")[:2] == pytest.approx([200.0, 200 + 1 / 3])


def test_jobs_have_the_values_of_the_file(read):
    w = read(JOBS)
    assert (w.name, len(w), w.machine_processors) == ("job_table", 200, None)
    assert w.unix_start_s == JOBS["submit_time"].min().timestamp()
    assert (np.diff(w.submit_s) >= 0).all()
    for column, theirs in (
        ("run_time_s", "run_time"), ("processors", "num_cores_alloc"), ("nodes", "num_nodes_alloc"),
        ("gpus", "num_gpus_alloc"), ("user", "user_id"), ("group", "group_id"),
    ):  # fmt: skip
        assert by_row(w, column).tolist() == JOBS[theirs].to_list(), column
    assert by_row(w, "requested_time_s").tolist() == (JOBS["time_limit"] * 60).to_list(), "limits are in minutes"
    means = [np.mean(samples) for samples in JOBS["node_power_consumption"].to_list()]
    assert by_row(w, "power_w") == pytest.approx(means), "W of the whole job"
    assert (w.exclusive == 1).all()
    wait = (JOBS["start_time"] - JOBS["submit_time"]).dt.total_seconds()
    assert by_row(w, "recorded_wait_s").tolist() == wait.to_list()
    named = [w.names["partition"][code] for code in by_row(w, "partition").tolist()]
    assert named == JOBS["partition"].to_list()
    swf = {"COMPLETED": 1, "CANCELLED": 5}
    assert by_row(w, "status").tolist() == [swf.get(state, 0) for state in JOBS["job_state"].to_list()]
    power = "power from the mean of the samples, idle power of the job's nodes included"
    assert {what: count for what, count in told(w).items() if "requested" not in what} == {power: 200}


@pytest.mark.parametrize("case", WITH)
def test_other_types_of_the_same_values_are_the_same_jobs(read, case):
    assert read(WITH[case](JOBS)).frame().equals(read(JOBS).frame(), null_equal=True)


def test_a_gzipped_file_is_read(tmp_path, read):
    path = written(JOBS, tmp_path / "t")
    (tmp_path / "t.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert read_workload(tmp_path / "t.gz").frame().equals(read(JOBS).frame())


@pytest.mark.parametrize("limit", [2**32 - 1, 2**32 - 2])
def test_infinite_limits_are_the_longest_of_the_trace(read, limit):
    w = read(one(JOBS, 7, time_limit=limit))
    others_s = np.delete(JOBS["time_limit"].to_numpy(), 7) * 60
    assert by_row(w, "requested_time_s")[7] == max(others_s.max(), by_row(w, "run_time_s")[7])
    assert not any("run time used" in what for what in told(w))


@pytest.mark.parametrize("limit", [0, -1, None])
def test_limits_that_are_not_stated_are_unknown(read, limit):
    w = read(one(JOBS, 7, time_limit=limit))
    assert by_row(w, "requested_time_s")[7] == by_row(w, "run_time_s")[7]
    assert told(w)["requested time missing or unlimited, run time used"] == 1


def test_limits_may_be_words(read):
    texts = JOBS["time_limit"].cast(pl.String).to_list()
    texts[3:7] = ["INFINITE", " unlimited ", "90", "N/A"]
    w = read(JOBS.with_columns(time_limit=pl.Series(texts)))
    longest_s = max(float(text) for text in texts if text.isdigit()) * 60
    assert by_row(w, "requested_time_s")[3:7].tolist() == [longest_s, longest_s, 5400, by_row(w, "run_time_s")[6]]
    texts[5] = "a day"
    with pytest.raises(InputError, match=r"job_table.parquet, line 6: time_limit: 'a day' is not a limit \(give a num"):
        read(JOBS.with_columns(time_limit=pl.Series(texts)))


@settings(max_examples=30, deadline=None)
@given(lists=st.lists(st.none() | st.lists(st.none() | st.integers(0, 5000), max_size=5), min_size=3, max_size=8),
       shorter=st.integers(0, 5))  # fmt: skip
def test_power_is_the_mean_of_all_samples_however_long_the_other_lists_are(tmp_path_factory, lists, shorter):
    frame = JOBS.head(len(lists)).with_columns(
        pl.Series("node_power_consumption", lists, dtype=pl.List(pl.Int64)),
        pl.Series("cpu_power_consumption", [(each or [])[:shorter] for each in lists], dtype=pl.List(pl.Int64)),
        pl.lit(None, dtype=pl.List(pl.Int64)).alias("mem_power_consumption"),
    )
    w = read_pm100(written(frame, tmp_path_factory.mktemp("pm100") / "t.parquet"))
    for watts, samples in zip(by_row(w, "power_w"), lists, strict=True):
        known = [sample for sample in samples or [] if sample is not None]
        assert watts == pytest.approx(np.mean(known)) if sum(known) else np.isnan(watts)
    assert told(w).get("job without measured power", 0) == np.isnan(w.power_w).sum()


def test_a_sensor_that_fails_is_left_out_of_the_mean(read):
    """65,535 W on one node: of a job on one node, and of one on four where it only shows in the sum."""
    frame = one(JOBS, 0, num_nodes_alloc=1, node_power_consumption=[700, 65_535, 900])
    frame = one(frame, 1, num_nodes_alloc=4, node_power_consumption=[4_000, 4_000, 68_500, 4_400, 3_600])
    frame = one(frame, 2, num_nodes_alloc=1, node_power_consumption=[65_535, 65_535])
    w = read(frame)
    assert by_row(w, "power_w")[:3].tolist() == pytest.approx([800, 4_000, np.nan], nan_ok=True)
    assert told(w)["implausible power samples of a job ignored"] == 3
    (left_out,) = (note for note in w.notes if "plausible power samples" in note.what)
    assert (left_out.level, dict(map(reversed, left_out.shares))["jobs"]) == ("warning", 3 / 200)
    with pytest.raises(InputError, match="line 1: node_power_consumption: implausible power samples"):
        read(frame, strict=True)
    believed = read(frame, strict=True, most_node_w=70_000)
    assert by_row(believed, "power_w")[:3].tolist() == pytest.approx([67_135 / 3, 84_500 / 5, 65_535])
    clear = read(JOBS, strict=True)
    assert not any("plausible" in what for what in told(clear))


def test_shares_of_the_energy_are_told_only_where_energy_is_known(read, tmp_path):
    hot = one(JOBS, 0, num_nodes_alloc=1, node_power_consumption=[15_000] * 3)
    (told_of,) = (n for n in read(one(hot, 0, run_time=None, end_time=None)).notes if "plausible" in n.what)
    assert dict(map(reversed, told_of.shares))["energy"] == 0, "it ran for no known time"
    for name in "ab":
        still = one(one(hot, 0, run_time=0), 1, run_time=0).head(3)
        (tmp_path / "two").mkdir(exist_ok=True)
        written(one(still, 2, node_power_consumption=[]), tmp_path / "two" / f"{name}.parquet")
    (told_of,) = (n for n in read_pm100(tmp_path / "two").notes if "plausible" in n.what)
    assert (told_of.count, told_of.shares) == (2, ((0.0, "processor-hours"), (1 / 3, "jobs"))), "no energy at all"


def test_jobs_measured_for_a_part_of_their_time_are_counted(read):
    w = read(one(JOBS, 0, run_time=1000, node_power_consumption=[700] * 24).head(1))
    assert told(w)["power samples of less than half of the run time"] == 1
    assert w.power_w.tolist() == [700]
    w = read(one(JOBS, 0, run_time=1000, node_power_consumption=[700] * 25).head(1))
    assert "power samples of less than half of the run time" not in told(w)


def test_jobs_are_submitted_when_they_may_start(read):
    later = JOBS["submit_time"][5] + timedelta(hours=1)
    w = read(one(JOBS, 5, eligible_time=later, start_time=later + timedelta(minutes=1)))
    assert by_row(w, "submit_s")[5] + w.unix_start_s == later.timestamp()
    assert by_row(w, "recorded_wait_s")[5] == 60


EARLIER = START["pm100"] - timedelta(days=1)
DROPPED = {
    "job without submit time dropped": {"submit_time": None, "eligible_time": None},
    "job that never started dropped": {"start_time": None},
    "job that ends before it starts dropped": {"end_time": EARLIER},
    "job without run time dropped": {"run_time": -5},
    "job that ran for 0 s dropped": {"run_time": 0},
    "job without processors dropped": {"num_cores_alloc": 0, "num_cores_req": None},
}


@pytest.mark.parametrize("what", DROPPED)
def test_unusable_jobs_are_dropped_or_refused(read, what):
    frame = one(JOBS, 2, **DROPPED[what])
    w = read(frame)
    assert (told(w)[what], len(w), 2 in w.trace_row) == (1, 199, False)
    with pytest.raises(InputError, match=rf"job_table.parquet, line 3: \w+: {what}") as refused:
        read(frame, strict=True)
    assert refused.value.field in JOBS.columns


def test_larger_jobs_are_dropped(read):
    w = read(JOBS, processors=512)
    small = JOBS.filter(pl.col("num_cores_alloc") <= 512)
    assert (len(w), w.machine_processors) == (len(small), 512)


def test_a_missing_run_time_is_end_minus_start_and_others_are_compared(read):
    w = read(one(JOBS, 4, run_time=None))
    assert by_row(w, "run_time_s").tolist() == JOBS["run_time"].to_list()
    w = read(one(JOBS, 4, run_time=JOBS["run_time"][4] + 900))
    assert told(w)["run time more than 60 s from end - start (kept)"] == 1


def test_a_start_before_the_submission_leaves_the_wait_unknown(read):
    w = read(one(JOBS, 4, start_time=EARLIER))
    assert told(w)["start before submission, recorded wait ignored"] == 1
    assert np.isnan(by_row(w, "recorded_wait_s")[4])
    assert np.isfinite(w.recorded_wait_s).sum() == 199


@pytest.mark.parametrize("name", ["submit_time", "run_time", "time_limit", "num_cores_alloc", "node_power_consumption"])
def test_missing_columns_and_other_types_are_refused(read, name):
    with pytest.raises(InputError, match=rf"job_table.parquet: {name}: column is missing; the file has"):
        read(JOBS.drop(name))
    with pytest.raises(InputError, match=rf"job_table.parquet: {name}: holds Boolean, not "):
        read(JOBS.with_columns(pl.lit(value=True).alias(name)))


def test_text_lists_and_fractions_are_refused(read):
    texts = pl.col("node_power_consumption").list.eval(pl.element().cast(pl.String)).list.join(",")
    with pytest.raises(InputError, match="node_power_consumption: holds String, not lists of numbers"):
        read(JOBS.with_columns(texts))
    with pytest.raises(InputError, match=r"line 1: num_nodes_alloc: is 1.5 .it must be a whole number"):
        read(JOBS.with_columns(num_nodes_alloc=pl.lit(1.5)))
    with pytest.raises(InputError, match="has no rows"):
        read(JOBS.clear())
    with pytest.raises(InputError, match=r"no job is left .*job that ran for 0 s dropped: 200"):
        read(JOBS.with_columns(run_time=pl.lit(0)))
