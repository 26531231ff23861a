"""F-DATA's months in their exact schema, what is peculiar about them, and which format a Parquet file is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.errors import InputError
from greenbatch.workload import Workload, read_fdata, read_workload
from greenbatch.workload.readers import _POWER_TRACES, trace_format
from greenbatch.workload.table import COLUMNS
from power_trace_files import by_row, fdata, one, pm100, told, written

JOBS = fdata(300)
PER_NODE = fdata(300, power_of="node")
OF_JOB = "power from avgpcon as that of the whole job, idle power of the job's nodes included"
OF_NODE = "power from avgpcon as that of a node, idle power of the job's nodes included"
SEVERAL = "(energy / (power x run time) is 1.00 in the median of jobs of several nodes)"
ONE = "(energy / (power x run time) is 1.00 in the median of jobs of one node)"
NO_ZONE = "time stamps without a time zone taken as UTC"
TIMES = ("adt", "qdt", "schedsdt", "deldt", "sdt", "edt")


@pytest.fixture
def read(tmp_path):
    def go(frame: pl.DataFrame, **options) -> Workload:
        return read_fdata(written(frame, tmp_path / "23_06.parquet"), **options)

    return go


def test_jobs_have_the_values_of_the_file(read):
    w = read(JOBS)
    assert (w.name, len(w), w.unix_start_s) == ("23_06", 300, None)
    assert w.job_id.tolist() == list(range(1, 301))
    assert (np.diff(w.submit_s) >= 0).all(), "job numbers follow the submissions"
    for column, theirs in (
        ("run_time_s", "duration"), ("requested_time_s", "elpl"), ("processors", "cnumat"), ("nodes", "nnuma"),
        ("power_w", "avgpcon"),
    ):  # fmt: skip
        assert by_row(w, column).tolist() == JOBS[theirs].to_list(), column
    assert by_row(w, "status").tolist() == (JOBS["ec"] == 0).cast(int).to_list()
    for column, theirs in (("user", "usr"), ("executable", "jnam")):
        assert [w.names[column][code] for code in by_row(w, column).tolist()] == JOBS[theirs].to_list()
    assert (w.gpus == -1).all()
    assert told(w) == {f"{OF_JOB} {SEVERAL}": 300, NO_ZONE: 300}


def test_jobs_submitted_together_are_numbered_by_row(read):
    early, late = JOBS["adt"][0], JOBS["adt"][1]
    w = read(
        JOBS.with_columns(adt=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit(late)).otherwise(pl.lit(early)))
    )
    assert w.trace_row.tolist() == [*range(1, 300, 2), *range(0, 300, 2)]


def test_the_clock(read):
    start = JOBS["adt"].min()
    assert read(JOBS, time_zone="UTC").unix_start_s == start.replace(tzinfo=UTC).timestamp()
    japan = read(JOBS, time_zone="Asia/Tokyo")
    assert japan.unix_start_s == start.replace(tzinfo=UTC).timestamp() - 9 * 3600
    assert (japan.time_zone, NO_ZONE in told(japan)) == ("Asia/Tokyo", False)


FORMATS = {
    "as pandas writes them": ("%Y-%m-%d %H:%M:%S%.6f", 0),
    "ISO": ("%Y-%m-%dT%H:%M:%S%.6f", 0),
    "zulu": ("%Y-%m-%dT%H:%M:%S%.6fZ", None),
    "Japan": ("%Y-%m-%d %H:%M:%S%.6f+09:00", None),
    "Newfoundland": ("%Y-%m-%d %H:%M:%S%.6f -0230", None),
}


@pytest.mark.parametrize("case", FORMATS)
def test_times_may_be_texts(read, case):
    pattern, local = FORMATS[case]
    w, plain = read(JOBS.with_columns(pl.col(TIMES).dt.strftime(pattern))), read(JOBS)
    assert w.frame().drop("submit_s", "recorded_wait_s").equals(plain.frame().drop("submit_s", "recorded_wait_s"))
    for column in ("submit_s", "recorded_wait_s"):
        np.testing.assert_allclose(getattr(w, column), getattr(plain, column), atol=1e-5)
    ahead_s = {"Japan": 9 * 3600, "Newfoundland": -2.5 * 3600}.get(case, 0)
    start_s = JOBS["adt"].min().replace(tzinfo=UTC).timestamp() - ahead_s
    assert w.unix_start_s == (None if local is not None else pytest.approx(start_s, abs=1e-5))
    assert (NO_ZONE in told(w)) == (local is not None)


def test_texts_that_are_no_times_are_missing_times(read):
    texts = JOBS["sdt"].dt.strftime("%Y-%m-%d %H:%M:%S").to_list()
    texts[3:7] = ["NaT", "", None, "soon"]
    frame = JOBS.with_columns(sdt=pl.Series(texts))
    w = read(frame)
    assert told(w)["time that cannot be read, taken as missing"] == 1
    assert told(w)["job that never started dropped"] == 4
    with pytest.raises(InputError, match=r"23_06.parquet, line 7: sdt: time that cannot be read"):
        read(frame, strict=True)


YEAR_1970 = datetime(1970, 1, 1)
DROPPED = {
    "job without submit time dropped": {"adt": YEAR_1970},
    "job that never started dropped": {"sdt": YEAR_1970},
    "job that ends before it starts dropped": {"edt": datetime(2023, 5, 1)},
    "job without run time dropped": {"duration": None, "edt": None},
    "job that ran for 0 s dropped": {"duration": 0.0},
    "job without processors dropped": {"cnumat": 0, "cnumr": 0},
}


@pytest.mark.parametrize("what", DROPPED)
def test_unusable_jobs_are_dropped_or_refused(read, what):
    frame = one(JOBS, 2, **DROPPED[what])
    w = read(frame)
    assert (told(w)[what], len(w), 2 in w.trace_row) == (1, 299, False)
    with pytest.raises(InputError, match=rf"23_06.parquet, line 3: \w+: {what}"):
        read(frame, strict=True)


def test_run_times_that_differ_from_the_dates_are_kept_and_counted(read):
    w = read(one(JOBS, 9, duration=JOBS["duration"][9] + 900))
    assert told(w)["run time more than 60 s from end - start (kept)"] == 1
    assert by_row(w, "run_time_s")[9] == JOBS["duration"][9] + 900


def test_an_unlimited_job_is_taken_to_have_requested_the_longest_limit(read):
    w = read(one(JOBS, 9, elpl=2.0**64))
    longest_s = JOBS["elpl"].drop_nulls().max()
    assert by_row(w, "requested_time_s")[9] == max(longest_s, JOBS["duration"][9])
    assert not any("run time used" in what for what in told(w))


@pytest.mark.parametrize("limit", [float("inf"), float("nan"), None, 0.0, -1.0])
def test_limits_that_are_none(read, limit):
    w = read(one(JOBS, 9, elpl=limit))
    assert by_row(w, "requested_time_s")[9] == JOBS["duration"][9]
    assert told(w)["requested time missing or unlimited, run time used"] == 1


def test_power_of_a_node_is_multiplied(read):
    w = read(PER_NODE)
    assert by_row(w, "power_w").tolist() == (PER_NODE["avgpcon"] * PER_NODE["nnuma"]).to_list()
    assert told(w)[f"{OF_NODE} {SEVERAL}"] == 300


def test_jobs_of_one_node_cannot_tell_and_need_not(read):
    w = read(PER_NODE.filter(pl.col("nnuma") == 1))
    assert f"{OF_JOB} {ONE}" in told(w)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), per_node=st.booleans(), wrong=st.floats(0, 0.4), jobs=st.integers(20, 60))
def test_either_unit_gives_the_energy_of_most_jobs(tmp_path_factory, seed, per_node, wrong, jobs):
    """Whatever avgpcon is, power x run time is the energy, as long as most of the jobs are right."""
    frame = fdata(jobs, seed % 1000, embedded=0, power_of="node" if per_node else "job")
    off = np.random.default_rng(seed).permutation(jobs) < wrong * jobs * (frame["nnuma"] > 1).mean()
    frame = frame.with_columns(econ=pl.when(pl.Series(off)).then(pl.col("econ") * 40).otherwise("econ"))
    w = read_fdata(written(frame, tmp_path_factory.mktemp("fdata") / "t.parquet"))
    energy_wh = by_row(w, "power_w") * by_row(w, "run_time_s") / 3600
    assert energy_wh[~off] == pytest.approx(frame["econ"].to_numpy()[~off], rel=0.05)
    assert told(w).get("energy more than 10% from power x run time", 0) == off.sum()


def test_power_in_neither_unit_is_ignored_or_refused(read):
    frame = JOBS.with_columns(pl.col("econ") * 1000)
    w = read(frame)
    assert np.isnan(w.power_w).all()
    (what,) = (what for what in told(w) if "neither" in what)
    assert what == (
        "power ignored: avgpcon is neither that of a job nor that of a node (econ x 3600 / (avgpcon x duration) is "
        "1e+03 in the median of jobs of several nodes)"
    )
    assert told(w)["job without measured power"] == 300
    with pytest.raises(InputError, match=r"line 1: avgpcon: power ignored: .*check the units of econ, av"):
        read(frame, strict=True)


def test_power_that_cannot_be_tested_is_ignored_or_refused(read):
    frame = JOBS.with_columns(econ=pl.lit(0.0))
    w = read(frame)
    assert np.isnan(w.power_w).all()
    assert sum("power ignored" in what for what in told(w)) == 1
    with pytest.raises(InputError, match=r"line 1: avgpcon: power ignored"):
        read(frame, strict=True)


@pytest.mark.parametrize("watts", [0.0, None, float("nan"), -5.0])
def test_jobs_without_power_are_unknown(read, watts):
    w = read(one(JOBS, 9, avgpcon=watts))
    assert np.flatnonzero(np.isnan(by_row(w, "power_w"))).tolist() == [9]
    assert told(w)["job without measured power"] == 1
    nothing = read(JOBS.with_columns(avgpcon=pl.lit(None, dtype=pl.Float64)))
    assert told(nothing) == {"job without measured power": 300, NO_ZONE: 300}


def test_the_state_is_in_a_column_with_a_space(read):
    assert by_row(read(one(JOBS, 0, **{"exit state": "unheard of"})), "status")[0] == -1
    assert (read(JOBS.drop("exit state")).status == -1).all()


def test_more_nodes_than_processors(read):
    w = read(one(JOBS, 5, nnuma=2000, cnumat=48))
    assert by_row(w, "nodes")[5] == -1
    assert told(w)["more nodes than processors, number of nodes ignored"] == 1


# ---------------------------------------------------------------- what is not read


def test_embeddings_are_never_read(tmp_path):
    """A file whose embeddings are overwritten is read as before: nothing looks at their bytes."""
    path = tmp_path / "23_06.parquet"
    JOBS.write_parquet(path, compression="uncompressed")
    jobs, content = read_fdata(path).frame(), path.read_bytes()
    vectors = JOBS["embedding"].explode().to_numpy().tobytes()
    at = content.index(vectors[:4000])
    path.write_bytes(content[: at - 200] + bytes(len(vectors)) + content[at - 200 + len(vectors) :])
    with pytest.raises((pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)):
        pl.read_parquet(path, columns=["embedding"])
    assert read_fdata(path).frame().equals(jobs)


# ---------------------------------------------------------------- several months


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path):
    months = [fdata(50 + k, k, embedded=0) for k in range(3)]
    months = [m.with_columns(pl.col(TIMES).dt.offset_by(f"{30 * k}d")) for k, m in enumerate(months)]
    folder = tmp_path / "fugaku"
    folder.mkdir()
    for name, frame in (("23_07", months[1]), ("23_06", months[0]), ("23_08", months[2])):
        written(frame, folder / f"{name}.parquet")
    (folder / "croissant.json").write_text("{}")
    w = read_workload(folder)
    whole = read_fdata(written(pl.concat(months), tmp_path / "fugaku.parquet"))
    assert w.frame().equals(whole.frame())
    assert (w.name, w.names, sorted(w.sources)) == (whole.name, whole.names, [f"23_0{k}.parquet" for k in (6, 7, 8)])
    assert [(note.what, note.count) for note in w.notes] == [(note.what, note.count) for note in whole.notes]


def test_every_month_decides_about_its_own_power(tmp_path):
    for k, power_of in enumerate(("job", "node", "job")):
        written(fdata(100, k, embedded=0, power_of=power_of), tmp_path / f"23_0{k}.parquet")
    w = read_workload(tmp_path)
    assert {what: count for what, count in told(w).items() if "avgpcon" in what} == {
        f"{OF_JOB} {SEVERAL}": 200, f"{OF_NODE} {SEVERAL}": 100,
    }  # fmt: skip


def test_a_file_of_a_folder_is_named(tmp_path):
    written(JOBS, tmp_path / "23_06.parquet")
    written(JOBS.drop("econ"), tmp_path / "23_07.parquet")
    with pytest.raises(InputError, match=r"23_07.parquet: econ: column is missing"):
        read_workload(tmp_path)
    written(one(JOBS, 4, sdt=None), tmp_path / "23_07.parquet")
    with pytest.raises(InputError, match=r"23_07.parquet, line 5: sdt: job that never started dropped"):
        read_workload(tmp_path, strict=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: is a folder \(give the file itself, or a folder of \*.parquet\)"):
        read_workload(tmp_path / "empty")


# ---------------------------------------------------------------- bad files, and which format a file is

BAD = {
    "no rows": (lambda t: t.clear(), "23_06.parquet: has no rows"),
    "no dates": (lambda t: t.drop("edt"), "23_06.parquet: edt: column is missing; the file has"),
    "numbers for dates": (lambda t: t.with_columns(pl.col("edt").cast(pl.Int64)), "edt: holds Int64, not times"),
    "texts for numbers": (lambda t: t.with_columns(pl.col("econ").cast(pl.String)), "econ: holds String, not numbers"),
    "lists for names": (lambda t: t.with_columns(usr=pl.col("embedding")), "usr: holds List.*, not names"),
    "half a core": (lambda t: t.with_columns(cnumat=pl.lit(0.5)), "line 1: cnumat: is 0.5 .it must be a whole number"),
    "nothing left": (lambda t: t.with_columns(duration=pl.lit(0.0)), "no job is left .*ran for 0 s dropped: 300"),
    "endless": (lambda t: t.with_columns(duration=pl.lit(1e12)), "run_time_s: job 1 has 1e.12 .give 0.001 to 1e.11 s"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(read, case):
    change, words = BAD[case]
    with pytest.raises(InputError, match=words) as refused:
        read(change(JOBS))
    assert "\n" not in str(refused.value)
    assert refused.value.fix


def test_broken_files(tmp_path):
    content = written(JOBS, tmp_path / "t.parquet").read_bytes()
    for broken in (content[:-5], content[:500], b"PAR1" + content[4000:]):
        (tmp_path / "t.parquet").write_bytes(broken)
        for read in (read_fdata, read_workload):
            with pytest.raises(InputError, match=r"t.parquet: broken Parquet: .*copy the file again"):
                read(tmp_path / "t.parquet")


OWN = pl.DataFrame({"submit_s": [0], "run_time_s": [60], "processors": [4]})
KINDS = {
    "pm100": (pm100(20), "pm100"),
    "fdata": (JOBS.head(20), "fdata"),
    "table": (OWN, "table"),
    "table with F-DATA's names": (pl.concat([OWN, JOBS.head(1)], how="horizontal"), "table"),
    "table with PM100's names": (pl.concat([OWN, pm100(1)], how="horizontal"), "table"),
    "other": (pl.DataFrame({"a": [1]}), "table"),
}


@pytest.mark.parametrize("name", ["t.parquet", "t"])
@pytest.mark.parametrize("case", KINDS)
def test_a_parquet_file_is_of_one_format(tmp_path, case, name):
    frame, kind = KINDS[case]
    assert trace_format(written(frame, tmp_path / name)) == kind


def test_marks_of_formats_are_their_own():
    for kind, trace in _POWER_TRACES.items():
        assert trace.marks <= set(trace.columns) - trace.optional
        assert not trace.marks & set(COLUMNS)
        assert set(trace.fields.values()) <= set(trace.columns)
        for other in _POWER_TRACES.values():
            assert other is trace or not trace.marks & set(other.columns), kind


def test_options_of_other_formats_are_refused(tmp_path):
    path = written(JOBS, tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"columns: does not apply to a fdata trace \(options of fdata traces: strict"):
        read_workload(path, columns={"adt": "submit_s"})
    assert read_workload(path, time_zone="Asia/Tokyo", processors=48).machine_processors == 48
    with pytest.raises(InputError, match="processors: is 0"):
        read_fdata(path, processors=0)


def test_a_year_of_times_before_the_epoch_is_no_time(read):
    w = read(JOBS.with_columns(sdt=pl.when(pl.int_range(pl.len()) < 3).then(YEAR_1970 + timedelta(days=300))
                               .otherwise("sdt")))  # fmt: skip
    assert told(w)["job that never started dropped"] == 3
