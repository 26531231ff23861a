"""Malformed inputs through the real command line: exit code 2, one line that helps, nothing half-written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from greenbatch import data_catalog
from greenbatch.cli import main
from power_trace_files import fdata, pm100, written

HEAD = "; MaxProcs: 8\n"
JOB = "1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n"
TRACE = HEAD + JOB + JOB.replace("1 0", "2 50", 1)
SACCT = "JobID|Submit|Start|End|Elapsed|Timelimit|NCPUS|State\n"
ROW = "1|2024-01-01T00:00:00|2024-01-01T00:00:10|2024-01-01T01:00:10|01:00:00|02:00:00|4|COMPLETED\n"
SERIES = "t,ghi\n0,0\n3600,500\n7200,800\n"
SCENARIO = """\
name = "ours"
[workload]
file = "good.swf"
[workload.power]
kind = "per-processor"
[cluster]
processors = 8
[site]
kind = "series"
repeat = true
[[site.sources]]
name = "solar"
kind = "pv"
file = "sun.csv"
columns = ["ghi"]
unit = "W/m2"
time_kind = "elapsed"
time_column = "t"
area_m2 = 200
[evaluation]
starts = [0]
jobs = 2
"""
RUN = ("--scheduler", "fcfs+easy", "--out", "out")

Cli = Callable[..., str]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command line that must be refused, in a folder with good files; return its one line on stderr."""
    monkeypatch.chdir(tmp_path)
    # Not by XDG_CACHE_HOME: the compiled engine lies there too.
    monkeypatch.setattr(data_catalog, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("GREENBATCH_DATA", raising=False)
    (tmp_path / "good.swf").write_text(TRACE)
    (tmp_path / "sun.csv").write_text(SERIES)
    (tmp_path / "good.toml").write_text(SCENARIO)

    def run(*arguments: str) -> str:
        before = snapshot(tmp_path)
        code = main(arguments)
        out, err = capsys.readouterr()
        assert code == 2, (out, err)
        assert err.startswith("greenbatch: ")
        assert err.count("\n") == 1, err
        assert err.endswith("\n")
        assert "Traceback" not in out + err
        assert snapshot(tmp_path) == before, "something was left behind"
        return err

    return run


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {f.relative_to(folder).as_posix(): f.read_bytes() if f.is_file() else None for f in folder.rglob("*")}


TRACES = [
    ("t.swf", "", "t.swf: is empty"),
    ("t.swf", HEAD, "no job"),
    ("t.swf", HEAD + "1 0 -1 100\n", "line 2"),
    ("t.swf", HEAD + JOB.replace("100", "abc", 1), "line 2: .*'abc'"),
    ("t.swf", HEAD + JOB.replace("100", "nan", 1), "line 2"),
    ("t.swf", HEAD + JOB.replace("100", "1e999", 1), "line 2"),
    ("t.swf", HEAD + JOB.strip() + " 7 8 9 10\n", "line 2"),
    ("t.swf", HEAD + JOB.replace(" 4 ", " -1 "), "no job is left"),
    ("t.swf", HEAD + JOB.replace(" 4 ", " 64 "), "no job is left .*larger than the machine"),
    ("t.swf", HEAD + JOB.replace("100", "0", 1), "no job is left .*zero run time"),
    ("t.swf", JOB, "does not state the machine size .*--processors"),
    ("t.swf", "\x00\x01\x02", "t.swf"),
    ("t.swf.gz", TRACE, "not gzip"),
    ("t.txt", "hello world, these are no jobs", "t.txt"),
    ("t.txt", SACCT.replace("Submit", "Submitted") + ROW, "[Ss]ubmit"),
    ("t.txt", SACCT, "t.txt"),
    ("t.txt", SACCT + ROW.replace("|01:00:00", "|1 hour", 1), "line 2"),
    ("t.txt", SACCT + ROW.replace("2024-01-01T00:00:00", "2024-13-01T00:00:00"), "line 2"),
    ("t.txt", SACCT + ROW.replace("|4|", "|four|"), "line 2"),
    ("t.txt", SACCT + ROW.rstrip("\n").rpartition("|")[0] + "\n", "line 2"),
    ("t.csv", "submit_s,run_time_s\n0,100\n", "processors"),
    ("t.csv", "submit_s,run_time_s,processors\n0,100\n", "line 2"),
    ("t.csv", "submit_s,run_time_s,processors\n0,-100,4\n", "run_time_s"),
    ("t.csv", "submit_s,run_time_s,processors\n0,1e-300,4\n", "run_time_s: job 1 has 1e-300 .*give 0.001 to"),
    ("t.csv", "submit_s,run_time_s,processors\n1e15,100,4\n", "submit_s: job 1 has 1e.15 "),
    ("t.csv", "submit_s,run_time_s,processors\n0,100,x\n", "line 2: processors"),
    ("t.csv", "submit_s,run_time_s,processors,processors\n0,100,4,4\n", "processors: .*twice"),
    ("t.parquet", "PAR1 is not enough", "t.parquet"),
]


@pytest.mark.parametrize(("name", "content", "message"), TRACES)
def test_traces(cli: Cli, tmp_path: Path, name: str, content: str, message: str):
    (tmp_path / name).write_text(content)
    extra = ("--processors", "8") if name.endswith((".csv", ".txt", ".parquet")) else ()
    err = cli("simulate", "--scenario", "plain", "--trace", name, *extra, *RUN)
    assert_says(err, message)


POWER_TRACES = [
    ("job_table.parquet", lambda: pm100(4).drop("time_limit"), "job_table.parquet: time_limit: column is missing; the"),
    (
        "job_table.parquet",
        lambda: pm100(4).with_columns(num_cores_alloc=pl.lit(0.5)),
        "line 1: num_cores_alloc: is 0.5",
    ),
    ("job_table.parquet", lambda: pm100(4).with_columns(time_limit=pl.lit("long")), "line 1: time_limit: 'long' is no"),
    (
        "23_06.parquet",
        lambda: fdata(4).with_columns(adt=pl.lit(5)),
        "23_06.parquet: adt: holds Int32, not times .conve",
    ),
    (
        "23_06.parquet",
        lambda: fdata(4).with_columns(adt=pl.lit("soon")),
        "no job is left .*cannot be read, taken as mi",
    ),
    ("23_06.parquet", lambda: fdata(4).clear(), "23_06.parquet: has no rows .give one row per job"),
]


@pytest.mark.parametrize(("name", "frame", "message"), POWER_TRACES)
def test_power_traces(cli: Cli, tmp_path: Path, name: str, frame: Callable[[], pl.DataFrame], message: str):
    written(frame(), tmp_path / name)
    assert_says(cli("simulate", "--scenario", "plain", "--trace", name, "--processors", "9999999", *RUN), message)


def assert_says(err: str, message: str) -> None:
    import re

    assert re.search(message, err), err


STRICT = [
    (HEAD + JOB + JOB, "line 3"),
    (HEAD + JOB.replace("1 0", "1 50", 1) + JOB.replace("1 0", "2 20", 1), "line 3"),
    (HEAD + JOB + JOB.replace("1 0", "2 5", 1).replace("100", "-1", 1), "line 3: .*negative run time"),
]


@pytest.mark.parametrize(("content", "message"), STRICT)
def test_strict_refuses_repairs(cli: Cli, tmp_path: Path, content: str, message: str):
    (tmp_path / "t.swf").write_text(content)
    assert main(["simulate", "--scenario", "plain", "--trace", "t.swf", *RUN[:3], "repaired"]) == 0
    assert_says(cli("simulate", "--scenario", "plain", "--trace", "t.swf", "--strict", *RUN), message)


SERIES_FILES = [
    ("", "sun.csv: "),
    ("t,ghi\n", "no data rows"),
    ("t,sun\n0,1\n", "line 1: ghi: no such column"),
    ("t,ghi,ghi\n0,1,1\n", "ghi: the column occurs twice"),
    ("t,ghi\n0,0\n3600\n", "line 3"),
    ("t,ghi\n0,0\n3600,dark\n7200,1\n", "line 3: ghi: 'dark' is not a number"),
    ("t,ghi\n0,0\n3600,\n7200,1\n", "line 3: ghi: the value is missing"),
    ("t,ghi\n0,0\n3600,-5\n7200,1\n", "line 3"),
    ("t,ghi\n0,0\n3600,9999\n7200,1\n", "line 3"),
    ("t,ghi\n0,0\n3600,inf\n7200,1\n", "line 3"),
    ("t,ghi\n0,0\n7200,1\n3600,1\n", "line 4"),
    ("t,ghi\n0,0\n3600,1\n3600,1\n7200,1\n", "line 4: .*twice"),
    ("t,ghi\n0,0\n3600,1\n7200,1\n36000,1\n", "line 5: .*gap"),
    ("t,ghi\nnoon,0\n3600,1\n", "line 2: t: "),
    ("t,ghi\n0,0\xff\n", "sun.csv"),
]


@pytest.mark.parametrize(("content", "message"), SERIES_FILES)
def test_series(cli: Cli, tmp_path: Path, content: str, message: str):
    (tmp_path / "sun.csv").write_text(content, encoding="latin-1")
    assert_says(cli("simulate", "--scenario", "good.toml", *RUN), message)


SCENARIOS = [
    ('name = "ours"', "name = ", "s.toml, line 1: is not TOML"),
    ('name = "ours"', 'name = "ours"\nname = "again"', "s.toml, line 2: is not TOML"),
    ('file = "good.swf"', 'file = "gone.swf"', "gone.swf: no such file"),
    ('file = "good.swf"', 'file = "."', "is a folder"),
    ('file = "good.swf"', 'dataset = "swf/gone"', "there is no data file"),
    ('file = "good.swf"', 'dataset = "swf/Jann.swf.gz"', "greenbatch data fetch swf/Jann.swf.gz"),
    ('kind = "per-processor"', 'kind = "trace"', "has no power .*workload.power"),
    ('kind = "per-processor"', 'kind = "per-processor"\nlow_w = 60', "line 4: workload.power.*low_w"),
    ('kind = "per-processor"', 'kind = "list"\nfile = "sun.csv"', "sun.csv, line 1: power"),
    ("processors = 8", "processors = 2", "no job is left"),
    ("area_m2 = 200", "area_m2 = -1", "s.toml, line 19: site.sources.area_m2: is -1"),
    ("area_m2 = 200", "area_m2 = 200\nefficiency = 20", "s.toml, line 20: site.sources.efficiency: is 20"),
    ('kind = "pv"', 'kind = "turbine"\nrated_w = 10', "area_m2"),
    ('unit = "W/m2"', 'unit = "W/ft2"', "unknown unit 'W/ft2' .*use one of"),
    ('unit = "W/m2"', 'unit = "kW"', "s.toml, line 11: site.sources.*pv requires irradiance"),
    ('time_column = "t"', "", "time_column"),
    ('time_kind = "elapsed"', 'time_kind = "local"\ntime_zone = "Mars"', "Mars"),
    ("repeat = true", 'align = "calendar"', "the workload has no date"),
    ("repeat = true", "step_s = -1", "site.*step_s: is -1"),
    ("repeat = true", "step_s = 1e-9", "step_s"),
    ('name = "ours"', 'name = "a\\nb"', "line 1: name: .*line breaks"),
    ('name = "ours"', 'name = "\\u001b[2J"', "line 1: name: .*control characters"),
    ('name = "ours"', "name = 2024-01-01", "line 1: name: is 2024-01-01 .give a string"),
    ("processors = 8", "processors = true", "line 7: cluster.processors: is true"),
    (
        "repeat = true",
        "repeat = true\n[rules]\ntick_s = 1e-9",
        "rules.tick_s: is 1e-9 .give 0 for none, or 1 to 604800 s",
    ),
    ('file = "good.swf"', 'file = "/dev/zero"', "/dev/zero: is a device"),
    ("starts = [0]", "starts = [1]", "start.*largest start is 0"),
]


@pytest.mark.parametrize(("old", "new", "message"), SCENARIOS)
def test_scenarios(cli: Cli, tmp_path: Path, old: str, new: str, message: str):
    assert SCENARIO.count(old) == 1
    (tmp_path / "s.toml").write_text(SCENARIO.replace(old, new))
    verb = "compare" if old.startswith("starts") else "simulate"
    flags = RUN if verb == "simulate" else ("--out", "out")
    assert_says(cli(verb, "--scenario", "s.toml", *flags), message)


SIMULATE = ("simulate", "--scenario", "good.toml", *RUN)
COMPARE = ("compare", "--scenario", "good.toml", "--out", "out")
FLAGS = [
    (("simulat",), "Unknown command.*simulate"),
    (("simulate",), "--scheduler"),
    (("simulate", "--scheduler", "fcfs+easy"), "--out"),
    ((*SIMULATE, "--colour"), "--colour"),
    ((*SIMULATE, "stray"), "stray"),
    ((*SIMULATE, "--start", "ten"), "--start.*ten"),
    ((*SIMULATE, "--start", "-1"), "--start: is -1"),
    ((*SIMULATE, "--jobs", "0"), "--jobs: is 0"),
    ((*SIMULATE, "--start", "1", "--jobs", "2"), "largest start is 0"),
    ((*SIMULATE, "--start", "2"), "largest start is 1"),
    ((*SIMULATE, "--jobs", "3"), "has 2 jobs"),
    ((*SIMULATE, "--processors", "0"), "--processors: is 0"),
    ((*SIMULATE, "--processors", "-8"), "--processors: is -8"),
    ((*SIMULATE, "--processors", "1.5"), "--processors: '1.5' is not a whole number"),
    (("simulate", *RUN, "--scenario", "defualt"), "did you mean default"),
    (("simulate", *RUN, "--scenario", "gone.toml"), "gone.toml: cannot be read"),
    (("simulate", *RUN, "--scenario", "."), "there is no scenario"),
    (("simulate", *RUN, "--scenario", "plain"), "--trace"),
    ((*SIMULATE, "--trace", "gone.swf"), "gone.swf: no such file"),
    ((*SIMULATE, "--trace", "a\0b"), "a"),
    (("simulate", *RUN, "--scenario", "plain", "--trace", "swf/RICC-2010-2.swf.gz"), "greenbatch data fetch"),
    (("simulate", "--scheduler", "fcfz+easy", "--out", "out"), "did you mean fcfs"),
    (("simulate", "--scheduler", "fcfs+eazy", "--out", "out"), "did you mean easy"),
    (("simulate", "--scheduler", "", "--out", "out"), "scheduler"),
    (("simulate", "--scheduler", "cheapest-start:psi=x", "--out", "out"), "psi is 'x'"),
    (("simulate", "--scheduler", "lptpn+easy", "--out", "out"), "does not support backfilling"),
    ((*SIMULATE[:3], "--scheduler", "cheapest-start:tick=1e-9", "--out", "out"), "tick is 1e-9 .give 1 to 604800 s"),
    ((*COMPARE, "--schedulers", "fcfs,random:seed=1.5"), "seed is 1.5 .give a whole number from 0 to 1e15"),
    ((*COMPARE, "--schedulers", "cheapest-start:reserve=5"), "reserve is 5 .give 0 to 1"),
    ((*SIMULATE[:3], "--scheduler", "cheapest-start:tick=1", "--out", "out"), "86,400 starts of each job"),
    (("simulate", "--scheduler", "mine.py:rule+easy", "--out", "out"), "mine.py: no such file"),
    (
        ("simulate", "--scheduler", "f2+green", "--out", "out", "--scenario", "plain", "--trace", "good.swf"),
        "power supply",
    ),
    (
        (*SIMULATE[:3], "--scheduler", "fcfs", "--trace", "good.toml", "--out", "out"),
        "good.toml: is TOML, such as a scenario, and has no",
    ),
    (("whatif", "--trace", "good.swf", "--site", "good.swf", "--out", "out"), "jobs are given with --trace"),
    (("compare",), "--out"),
    ((*COMPARE, "--schedulers", "fcfs+easy,+easy"), "policy"),
    ((*COMPARE, "--schedulers", "fcfs+easy,fcfs+easy"), "twice"),
    ((*COMPARE, "--schedulers", "fcfs+easy,nope+easy"), "no policy is called 'nope'"),
    ((*COMPARE, "--schedulers", "fcfs+easy", "--baseline", "sjf+easy"), "sjf"),
    ((*COMPARE, "--starts", "1,two"), "'two' is not a whole number"),
    ((*COMPARE, "--starts", "0,99999"), "largest start"),
    ((*COMPARE, "--starts", "-5"), "--starts: is -5"),
    ((*COMPARE, "--starts", "1", "--windows", "3"), "one or the other"),
    ((*COMPARE, "--windows", "0"), "--windows: is 0"),
    ((*COMPARE, "--windows", "99999"), "different ones"),
    ((*COMPARE, "--jobs", "-1"), "--jobs: is -1"),
    ((*COMPARE, "--seed", "-1"), "--seed: is -1"),
    (("reproduce", "gas-moral"), "gas-marl"),
    (("reproduce",), "protocol"),
    (("scenario", "show"), "name"),
    (("scenario", "show", "nope"), "no scenario 'nope'"),
    (("scenario", "lst"), "Unknown command"),
    (("data", "path", "swf/nope"), "there is no data file"),
    (("data", "path", "swf/Jann.swf.gz"), "greenbatch data fetch swf/Jann.swf.gz"),
    (("data", "path", "../../etc/passwd"), "there is no data file"),
    (("data", "fetch"), "no name given"),
    (("data", "fetch", "swf/nope"), "there is no data file"),
    (("demo", "--out", "good.swf"), "not a folder"),
]


@pytest.mark.parametrize(("arguments", "message"), FLAGS)
def test_flags(cli: Cli, arguments: tuple[str, ...], message: str):
    assert_says(cli(*arguments), message)


FOLDERS: list[tuple[str, tuple[str, ...], str]] = [
    ("good.swf", (), "exists and is not a folder"),
    ("good.swf/below", (), "--out"),
    ("full", (), "not empty .*--force"),
    ("full/strange", ("--force",), "was not written by greenbatch"),
    ("link", (), "link to nowhere"),
    ("n" * 300, (), "--out"),
    ("bad\0name", (), "is not a folder name"),
    ("", (), "--out"),
    ("/", (), "/: --out: "),
    ("/", ("--force",), "/: --out: "),
]


@pytest.mark.parametrize(("out", "extra", "message"), FOLDERS)
def test_folders(cli: Cli, tmp_path: Path, out: str, extra: tuple[str, ...], message: str):
    (tmp_path / "full" / "strange").mkdir(parents=True)
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "full" / "strange" / "metrics.json").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert_says(cli("simulate", "--scenario", "good.toml", "--scheduler", "fcfs+easy", "--out", out, *extra), message)


def test_the_good_files_are_good(cli: Cli, tmp_path: Path):
    assert main(["simulate", "--scenario", "good.toml", *RUN]) == 0
    assert (tmp_path / "out" / "metrics.json").is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "--scheduler", "fcfs+easy", "--out", "out", "--scenario", "nope"),
        ("simulate", "--scheduler", "fcfs+easy", "--out", "out", "--scenario", "plain", "--trace", "bad.swf"),
        ("nonsense",),
    ],
)
def test_in_a_process_of_its_own(tmp_path: Path, arguments: tuple[str, ...]):
    (tmp_path / "bad.swf").write_text(HEAD + JOB.replace("100", "abc", 1))
    command = [sys.executable, "-c", "import sys; from greenbatch.cli import main; sys.exit(main())", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("greenbatch: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert [f.name for f in tmp_path.iterdir()] == ["bad.swf"]
