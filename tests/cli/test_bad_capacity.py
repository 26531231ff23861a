"""Wrong capacities, pools and jobs with value, through the command line: one line that names the place and helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenbatch.cli import main

JOBS = "submit_s,run_time_s,processors,gpus,value,qos\n0,5,2,1,3,0.9\n1,5,2,1,3,0.9\n"
MACHINE = """\
name = "ours"
[workload]
file = "jobs.csv"
[cluster]
processors = 4
gpus = 4
"""
GENERATED = """\
name = "ours"
[cluster]
processors = 10
gpus = 10
[workload.generator]
model = "rare"
"""
TO_POOL = MACHINE.replace("[cluster]", "[workload.to_pool]\n%s[cluster]")
CAPACITY, POOLS = MACHINE + "[cluster.capacity]\n", MACHINE + "[rules.pools]\n"
TABLES = [  # content of capacity.csv, what is said
    ("", "capacity.csv: is empty (give a file with data in it)"),
    (
        "time_s,capacity\n",
        "capacity.csv: has no rows (name the columns on the first line, then give one row per level)",
    ),
    ("time_s,processors\n0,4\n", "line 1: gpus: column is missing, and the machine has GPUs (add it, or a column cap"),
    ("processors,gpus\n4,4\n", "line 1: time_s: column is missing; the file has 'processors, gpus' (give one column"),
    ("time_s,gpus\n0,4\n", "line 1: processors: column is missing; the file has 'time_s, gpus' (add it, or one called"),
    ("time_s;capacity\n0;4\n", "line 1: time_s: column is missing; the file has 'time_s;capacity'"),
    ("time_s,tick,capacity\n0,0,4\n", "line 1: time_s: found both time_s and tick (give one column of times"),
    ("time_s,capacity,gpus\n0,4,4\n", "line 1: capacity: stands beside processors or gpus (give capacity alone, or"),
    ("time_s,capacity,capacity\n0,4,4\n", "line 1: capacity: column is named twice (name each column once)"),
    ("time_s,capacity\n0,4\n5,3\n2,4\n", "line 4: time_s: is not after that of the row before (sort the rows by time"),
    ("time_s,capacity\n0,4\n0,3\n", "line 3: time_s: is not after that of the row before (sort the rows by time"),
    ("time_s,capacity\n-5,4\n0,3\n", "line 2: time_s: is '-5' (give seconds >= 0; time 0 is that of the jobs' clock)"),
    ("tick,capacity\n0.5,4\n", "line 2: tick: is '0.5' (give whole numbers >= 0"),
    ("time_s,capacity\n0,-1\n", "line 2: capacity: is '-1' (give whole numbers >= 0)"),
    ("time_s,capacity\n0,2.5\n", "line 2: capacity: is '2.5' (give whole numbers >= 0)"),
    ("time_s,capacity\n0,nan\n", "line 2: capacity: is 'nan' (give whole numbers >= 0)"),
    ("time_s,capacity\n0,inf\n", "line 2: capacity: is 'inf' (give whole numbers >= 0)"),
    ("time_s,capacity\n0,\n", "line 2: capacity: is missing (give whole numbers >= 0)"),
    ("time_s,capacity\n0,four\n", "line 2: capacity: is 'four' (give whole numbers >= 0)"),
    ("time_s,capacity\n0,4,4\n", "line 2: row: 3 cells (the first line names 2 columns)"),
    (
        "time_s,capacity\n0,5\n",
        "line 2: processors: is 5, the machine has 4 (give at most what the machine has, or a larger",
    ),
    ("time_s,processors,gpus\n0,4,9\n", "line 2: gpus: is 9, the machine has 4 (give at most what the machine has"),
]
JOB_TABLES = [  # the second job of jobs.csv, what is said
    ("1,5,2,1,-3,0.9", "jobs.csv, line 3: value: is -3 (it must be finite and >= 0, or blank)"),
    ("1,5,2,1,x,0.9", "jobs.csv, line 3: value: 'x' is not a number"),
    ("1,5,2,1,3,1.2", "jobs.csv, line 3: qos: is 1.2 (it must be finite and > 0, at most 1, or blank)"),
    ("1,5,2,1,3,0", "jobs.csv, line 3: qos: is 0 (it must be finite and > 0, at most 1, or blank)"),
    ("1,5,2,9,3,0.9", "gpus: job 2 needs 9 GPUs, the machine has 4 (give a machine with more GPUs"),
    ("1,5,2,-2,3,0.9", "jobs.csv, line 3: gpus: is -2 (it must be a whole number >= 0, or blank)"),
]
SCENARIOS = [  # s.toml, what is said
    (POOLS + "tick_s = 0\n", "s.toml, line 8: rules.pools.tick_s: is 0 (give the length of a tick, > 0)"),
    (POOLS + 'victim = "random"\n', "line 8: rules.pools.victim: is 'random' (it must be 'lowest-value', 'latest-due'"),
    (POOLS + 'loses = "checkpoint"\n', "rules.pools.checkpoint_s: is 0 (give checkpoint_s > 0 together with loses = "),
    (POOLS + "checkpoint_s = 5\n", "line 8: rules.pools.checkpoint_s: is 5 (give checkpoint_s > 0 together with loses"),
    (POOLS + "ready = -1\n", "line 8: rules.pools.ready: is -1 (give a whole number >= 0)"),
    (POOLS + "ready = 2.5\n", "line 8: rules.pools.ready: is 2.5 (give a whole number, without quotes)"),
    (POOLS + "end_s = -1\n", "line 8: rules.pools.end_s: is -1.0 (give a number >= 0)"),
    (
        POOLS + 'suspends = "always"\n',
        "line 8: rules.pools.suspends: is 'always' (it must be 'never', 'power' or 'swap')",
    ),
    (POOLS + 'admission = "lifo"\n', "line 8: rules.pools.admission: is 'lifo' (it must be 'fifo' or 'qos')"),
    (POOLS + "redy = 3\n", "line 8: rules.pools.redy: unknown key (did you mean ready?)"),
    (
        POOLS.replace("gpus = 4\n", ""),
        "line 6: rules.pools: are for a machine whose capacity follows",
    ),
    (
        CAPACITY + 'kind = "constant"\nfraction = 1.5\n',
        "line 9: cluster.capacity.fraction: is 1.5 (it must be less than",
    ),
    (CAPACITY + 'kind = "intermittent"\n', "line 7: cluster.capacity.level: is missing (add it)"),
    (
        CAPACITY + 'kind = "intermittent"\nlevel = 0.8\n',
        "cluster.capacity.ticks: is missing (state how long it lasts, or",
    ),
    (CAPACITY + 'kind = "solar"\n', "line 8: cluster.capacity.kind: is 'solar' (use one of 'constant', 'intermittent'"),
    (CAPACITY + "fraction = 1\n", "line 7: cluster.capacity.kind: is missing (add it"),
    (
        CAPACITY + 'kind = "series"\n',
        "line 7: cluster.capacity: found none of them (give exactly one of fractions, file)",
    ),
    (CAPACITY + 'kind = "series"\nfractions = [0.5, -1]\n', "line 9: cluster.capacity.fractions[1]: is -1 (it must be"),
    (CAPACITY + 'kind = "series"\nfractions = []\n', "line 9: cluster.capacity.fractions: is [] (give at least one)"),
    (
        CAPACITY + 'kind = "series"\nfile = "none.csv"\n',
        "none.csv: no such file (check the path; it is relative to the",
    ),
    (
        CAPACITY + 'kind = "power"\nfull_power_per_unit_w = 9\n',
        "line 8: cluster.capacity.kind: follows the power of a site",
    ),
    (
        CAPACITY + 'kind = "power"\nfull_power_per_unit_w = 1\n[site]\nkind = "synthetic"\ndays = 3\n',
        "full_power_per_unit_w: is 1: the full machine would draw less than the idle one, 50 W (state the power",
    ),
    (
        CAPACITY + 'kind = "power"\nfull_power_per_unit_w = 99\n[site]\nkind = "synthetic"\ndays = 3\n'
        '[site.storage]\ncapacity_kwh = 1\ncharge_w = 1\ndischarge_w = 1\ndispatch = "scheduler"\n',
        "site.storage.dispatch: is scheduler, which does not always give what the capacity counts on",
    ),
    (
        MACHINE.replace("processors = 4\n", 'file = "x.toml"\n'),
        "line 4: cluster: found gpus beside cluster.file (leave",
    ),
    (
        MACHINE + "[evaluation]\ndraws = 3\n",
        "evaluation.draws: requires a generator with a seed (give starts or windows",
    ),
    (
        MACHINE + "[evaluation]\ndraws = 3\nstarts = [0]\n",
        "line 7: evaluation: found draws and starts (give one or the",
    ),
    (GENERATED + "load = 0\n", "line 7: workload.generator.load: is 0.0 (give a number > 0)"),
    (
        GENERATED + "load = 1e-9\n",
        "line 7: workload.generator.load: no job arrives (give a higher load, more ticks or an",
    ),
    (
        GENERATED + 'arrivals = "poisson"\n',
        "line 7: workload.generator.arrivals: is 'poisson' (it must be 'work' or 'jobs')",
    ),
    (
        GENERATED + "largest_request = 11\n",
        "line 7: workload.generator.largest_request: is 11 (the machine has 10 of each",
    ),
    (GENERATED + "[workload.to_pool]\n", "workload: found to_pool beside generator (it is for traces: leave it out)"),
    (
        TO_POOL % 'part = "train"\n',
        "line 5: workload.to_pool.part: is 'train' (it must be 'all', 'training' or 'test')",
    ),
    (
        TO_POOL % 'part = "test"\n',
        "workload.to_pool.part: leaves no two jobs that are submitted at different times (give",
    ),
    ((TO_POOL % "").replace("processors = 4\n", ""), "workload.to_pool: needs the size of the small machine (set clu"),
]


def _said(
    folder: Path, capsys: pytest.CaptureFixture[str], *, scenario: str = MACHINE, jobs: str = JOBS,
    capacity: str | None = None, scheduler: str = "qos+none",
) -> str:  # fmt: skip
    (folder / "jobs.csv").write_text(jobs)
    (folder / "s.toml").write_text(scenario)
    flags = []
    if capacity is not None:
        (folder / "capacity.csv").write_text(capacity)
        flags = ["--capacity", str(folder / "capacity.csv")]
    made = ["--scenario", str(folder / "s.toml"), "--scheduler", scheduler, "--out", str(folder / "out"), *flags]
    assert main(["simulate", *made]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "compiling the engine" not in line]
    assert len(lines) == 1, lines
    assert not (folder / "out").exists()
    return lines[0]


@pytest.mark.parametrize(("content", "expected"), TABLES)
def test_table_of_capacity(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, expected: str) -> None:
    assert expected in _said(tmp_path, capsys, capacity=content)


@pytest.mark.parametrize(("job", "expected"), JOB_TABLES)
def test_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str], job: str, expected: str) -> None:
    assert expected in _said(tmp_path, capsys, jobs=JOBS.replace("1,5,2,1,3,0.9", job))


@pytest.mark.parametrize(("scenario", "expected"), SCENARIOS)
def test_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str], scenario: str, expected: str) -> None:
    assert expected in _said(tmp_path, capsys, scenario=scenario)


@pytest.mark.parametrize("scheduler", ["packer", "random-action"])
def test_a_machine_that_is_always_powered(tmp_path: Path, capsys: pytest.CaptureFixture[str], scheduler: str) -> None:
    said = _said(tmp_path, capsys, scenario=MACHINE.replace("gpus = 4\n", ""), scheduler=scheduler)
    assert said.endswith("this machine does not have (use a scenario with cluster.gpus or [cluster.capacity])")


def test_scheduler_that_does_not_know_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fix = "(use a priority rule with none, first-fit, easy, easy-green-order or green backfilling)"
    said = _said(tmp_path, capsys, scenario=MACHINE, scheduler="fcfs+easy-schedgym")
    assert said.endswith(f"is as a published simulator runs it, which does not know the GPUs of a pool {fix}")
    follows = MACHINE + '[cluster.capacity]\nkind = "constant"\nfraction = 0.5\n'
    said = _said(tmp_path, capsys, scenario=follows, scheduler="fcfs+easy-schedgym")
    assert said.endswith(f"does not know a capacity that follows the power {fix}")


def test_capacity_beside_the_default_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "capacity.csv").write_text("time_s,processors,gpus\n0,2,1\n6,4,2\n")
    files = ["--trace", str(tmp_path / "jobs.csv"), "--capacity", str(tmp_path / "capacity.csv")]
    made = ["--scenario", "plain", "--processors", "4", "--scheduler", "fcfs+none", "--out", str(tmp_path / "out")]
    assert main(["simulate", *files, *made]) == 0
    rows = (tmp_path / "out" / "schedule.csv").read_text().splitlines()
    assert rows[0].endswith("state,suspensions,value,spans")
    assert rows[1].startswith("1,0,0,5,")
    assert rows[2].startswith("2,1,5,10,")
    assert rows[2].endswith("finished,0,3.0,5-10")
    assert "Value of finished jobs" in capsys.readouterr().out


@pytest.mark.parametrize("scheduler", ["qos+none", "random-action"])
@pytest.mark.parametrize(("rows", "from_s"), [("0,1,4\n", 0), ("0,4,4\n1,1,4\n2,4,0\n", 1)])
@pytest.mark.usefixtures("impatient")
def test_too_small_for_ever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, scheduler: str, rows: str,
    from_s: int,
) -> None:  # fmt: skip
    monkeypatch.setattr("greenbatch.engine.step.A_YEAR_S", 1000.0)  # a year of ticks takes minutes as plain Python
    said = _said(tmp_path, capsys, capacity="time_s,processors,gpus\n" + rows, scheduler=scheduler)
    assert f"capacity.csv: cluster.capacity: is too small for job 1 from {from_s} s on: it needs 2 processors" in said
    assert f"(the one of {from_s} s has 1 and 4)" in said


@pytest.mark.plain
def test_a_pool_with_gpus_has_defaults_that_know_it(tmp_path: Path) -> None:
    """What is compared by default can be simulated there, the recorded schedule too, which it repeats."""
    from greenbatch.cli.whatif import recorded_and_rules
    from greenbatch.engine.prepare import prepare
    from greenbatch.engine.simulate import simulate
    from greenbatch.scenarios import load_scenario
    from greenbatch.schedulers import scheduler

    table = "submit_s,run_time_s,processors,gpus,recorded_wait_s\n0,50,3,40,0\n5,50,3,40,60\n9,5,2,4,1\n"
    (tmp_path / "jobs.csv").write_text(table)
    site = (
        'power = { kind = "per-unit" }\n[cluster]\nprocessors = 16\ngpus = 48\n[site]\nkind = "synthetic"\ndays = 2\n'
    )
    (tmp_path / "s.toml").write_text('name = "ours"\n[workload]\nfile = "jobs.csv"\n' + site)
    scenario = load_scenario(tmp_path / "s.toml")
    jobs, parts = scenario.workload, (scenario.cluster, scenario.site, scenario.rules)
    names = {*scenario.evaluation.schedulers, *recorded_and_rules(scenario)}
    assert names == {"as-recorded", "fcfs+easy", "sjf+easy", "f2+easy"}
    for name in names:
        prepare(jobs, *parts, scheduler(name).program(jobs))
    assert simulate(jobs, *parts, scheduler("as-recorded")).start_s.tolist() == [0, 65, 10]
