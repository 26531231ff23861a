"""Scenarios as built: jobs, machine, power supply, windows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from greenbatch.cluster.readers import read_cluster
from greenbatch.engine.simulate import simulate
from greenbatch.errors import DataMissing, InputError
from greenbatch.scenarios import load_scenario, shipped_names
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload, read_workload
from greenbatch.workload.table import COLUMNS

PAPERS = {
    "gas-marl/lublin-256": ("swf/lublin_256.swf.gz", 256, 10_000, True),
    "gas-marl/cirne": ("swf/Cirne.swf.gz", 256, 9_999, True),
    "gas-marl/jann": ("swf/Jann.swf.gz", 322, 10_000, True),
    "rlscheduler/lublin-1": ("swf/lublin_256.swf.gz", 256, 10_000, False),
    "rlscheduler/lublin-2": ("swf/lublin_256_new2.swf.gz", 256, 10_000, False),
    "rlscheduler/hpc2n": ("swf/HPC2N-2002-2.2-cln.swf.gz", 240, 10_000, False),
    "rlscheduler/sdsc-sp2": ("swf/SDSC-SP2-1998_DERIVED-from-pyss.swf.gz", 128, 10_000, False),
}

INEPS = {  # the workload and the platform of the published simulator's reference runs, memory contention
    "as-published": ("wl_conv_blocks_100ms", "plat_conv", "irmasim-v1"),
    "convergence": ("wl_conv_blocks_100ms", "plat_conv", "repaired"),
    "convergence-1s": ("wl_conv_1s", "plat_conv", "repaired"),
    "convergence-t0": ("wl_conv_t0", "plat_conv", "repaired"),
    "adaptability-memory": ("wl_adapt_mem", "plat_adapt", "repaired"),
    "adaptability-memory-as-published": ("wl_adapt_mem", "plat_adapt", "irmasim-v1"),
    "adaptability-compute": ("wl_adapt_comp", "plat_adapt", "repaired"),
    "adaptability-compute-as-published": ("wl_adapt_comp", "plat_adapt", "irmasim-v1"),
    "adaptability-mixed": ("wl_adapt_mixed", "plat_adapt", "repaired"),
    "adaptability-mixed-as-published": ("wl_adapt_mixed", "plat_adapt", "irmasim-v1"),
}

TRACE = """\
; MaxProcs: 8
; UnixStartTime: 1704067200
5 100 -1 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1
6 150 -1 100 2 -1 -1 2 200 -1 1 1 1 1 1 1 -1 -1
7 160 -1 0 2 -1 -1 2 200 -1 1 1 1 1 1 1 -1 -1
8 170 -1 100 1 -1 -1 1 200 -1 1 1 1 1 1 1 -1 -1
"""
MINIMAL = 'name = "ours"\n[workload]\nfile = "jobs.swf"\n'


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A scenario file with its trace beside it."""
    (tmp_path / "jobs.swf").write_text(TRACE)
    (tmp_path / "s.toml").write_text(MINIMAL)
    return tmp_path / "s.toml"


def test_shipped_scenarios_are_the_expected_ones():
    ineps = {
        "ineps/green",
        "ineps/convergence-mixed",
        "ineps/convergence-mixed-as-published",
        *(f"ineps/{name}" for name in INEPS),
    }
    logs = {"logs/hpc2n", "logs/sdsc-blue", "logs/cea-curie"}
    fresh = {"gas-marl/fresh-lublin-256", "gas-marl/fresh-cirne", "gas-marl/fresh-jann"}
    cost_aware = {f"cost-aware/{trace}{part}" for trace in ("hpc2n", "sdsc-blue") for part in ("", "-training")}
    rare = {
        f"rare/{size}"
        for size in ("10", "20", "50", "100", "300", "1200", "10-intermittent80", "anl-like", "10-training")
    }
    rare |= {f"rare/{size}-fixed5" for size in (20, 50, 100, 300)}
    cocorl = {f"cocorl/{jobs}{part}" for jobs in ("synthetic", "sdsc-sp2", "sdsc-blue", "hpc2n", "gleamm")
              for part in ("", "-training")}  # fmt: skip
    offline = {f"offline/{size}{part}" for size in (10, 50) for part in ("", "-training")}
    known = {"default", "plain", "curie-nodes", *PAPERS, *ineps, *logs, *fresh, *cost_aware, *rare, *cocorl, *offline}
    assert set(shipped_names()) == known


@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_scenarios(greenbatch_data, monkeypatch, name):
    dataset, processors, jobs, power = PAPERS[name]
    root = greenbatch_data(dataset).parents[1]
    monkeypatch.setenv("GREENBATCH_DATA", str(root))
    scenario = load_scenario(name)
    assert (scenario.cluster.processors, len(scenario.workload)) == (processors, jobs)
    assert scenario.rules.commitment == "sticky"
    assert scenario.rules.event_rule == "per_event"
    assert len(scenario.evaluation.starts) == 10
    assert scenario.evaluation.jobs == 1024
    for start in scenario.evaluation.starts:
        assert len(scenario.window(start, 1024)) == 1024
    assert np.isfinite(scenario.workload.power_w).all() == power
    assert (scenario.site is not None) == power
    assert scenario.evaluation.comparable == (name != "rlscheduler/sdsc-sp2")
    if power:
        assert scenario.workload.submit_s[0] == 0
        assert scenario.cluster.idle_power_w == {256: 1600, 322: 2050}[processors]
        assert set(scenario.inputs) == {
            Path(dataset).name, "gasmarl_irradianceS.csv.gz", "gasmarl_windspeedS.csv.gz",
            "gasmarl_power_per_proc_synthetic.csv.gz",
        }  # fmt: skip
        assert scenario.site.renewable_w.shape == (26_280,)
        # gas-marl-semantics, section 1.3: the highest hour has 47,640 W at 256 processors; rounding to 0.01 W
        assert scenario.site.renewable_w.max() == pytest.approx(47_640 * processors / 256, abs=0.01)


@pytest.mark.parametrize("name", INEPS)
def test_the_scenarios_of_ineps_are_the_inputs_of_the_reference_runs(greenbatch_reference, name):
    jobs, platform, contention = INEPS[name]
    scenario = load_scenario(f"ineps/{name}")
    expected = read_workload(greenbatch_reference(f"irmasim/inputs/{jobs}.json"))
    for column in set(COLUMNS) - {"executable"}:
        np.testing.assert_array_equal(getattr(scenario.workload, column), getattr(expected, column), err_msg=column)
    assert profiles_of(scenario.workload) == profiles_of(expected)
    assert expected.names["job_id"][7] == "job7"
    nodes = read_cluster(greenbatch_reference(f"irmasim/inputs/{platform}.json"))
    unnamed = [replace(group, name="", source="") for group in nodes.groups]
    assert [replace(group, name="", source="") for group in scenario.cluster.groups] == unnamed
    assert scenario.cluster.contention == contention
    assert scenario.evaluation.jobs == len(scenario.workload)


def test_the_jobs_and_the_weather_of_gas_marl_on_the_nodes_of_ineps(greenbatch_data, monkeypatch):
    """Nodes draw less than the pool, and the site is smaller by as much."""
    monkeypatch.setenv("GREENBATCH_DATA", str(greenbatch_data("swf/lublin_256.swf.gz").parents[1]))
    green, pool, table3 = (load_scenario(name) for name in ("ineps/green", "gas-marl/lublin-256", "ineps/convergence"))
    for column in set(COLUMNS) - {"power_w"}:
        np.testing.assert_array_equal(getattr(green.workload, column), getattr(pool.workload, column), err_msg=column)
    assert np.isnan(green.workload.power_w).all()
    assert green.cluster.knows_power
    assert green.cluster.processors == 256
    assert [replace(g, count=10, node_names=()) for g in green.cluster.groups] == [
        replace(g, node_names=()) for g in table3.cluster.groups
    ]
    assert min(group.speed for group in green.cluster.groups) == 1.0
    assert (green.evaluation.starts, green.evaluation.jobs) == (pool.evaluation.starts, 1024)
    share = {}
    for each in (green, pool):
        outcome = simulate(each.window(6567, 1024), each.cluster, each.site, each.rules, scheduler("fcfs+easy"))
        load_w = np.diff(outcome.profile_time_s) @ outcome.profile_load_w[:-1] / np.ptp(outcome.profile_time_s)
        share[each.name] = each.site.renewable_w.mean() / load_w
    assert share["ineps/green"] == pytest.approx(share["gas-marl/lublin-256"], rel=0.05)


def profiles_of(workload: Workload) -> list[str]:
    return [workload.names["executable"][number] for number in workload.executable.tolist()]


def test_curie_on_its_thin_nodes(greenbatch_data, monkeypatch):
    root = greenbatch_data("swf/CEA-Curie-2011-2.1-cln.swf.gz").parents[1]
    monkeypatch.setenv("GREENBATCH_DATA", str(root))
    scenario = load_scenario("curie-nodes")
    assert [(g.count, g.processors) for g in scenario.cluster.groups] == [(5040, 16)]
    assert (len(scenario.workload), scenario.cluster.processors, scenario.workload.processors.max()) == (
        295_540,
        80_640,
        79_808,
    )


def test_the_derived_trace_says_that_it_is_not_comparable(greenbatch_data, monkeypatch):
    root = greenbatch_data("swf/SDSC-SP2-1998_DERIVED-from-pyss.swf.gz").parents[1]
    monkeypatch.setenv("GREENBATCH_DATA", str(root))
    assert "not comparable" in load_scenario("rlscheduler/sdsc-sp2").description.lower()


def test_the_default_needs_no_file(monkeypatch, tmp_path):
    monkeypatch.setenv("GREENBATCH_DATA", str(tmp_path))
    scenario = load_scenario("default")
    assert scenario.inputs == {}
    assert len(scenario.workload) == 10_000
    assert scenario.cluster.processors == 256
    assert scenario.site is not None
    assert scenario.rules.commitment == "reconsider"
    again = load_scenario("default")
    assert np.array_equal(scenario.workload.submit_s, again.workload.submit_s)
    assert np.array_equal(scenario.site.renewable_w, again.site.renewable_w)


def test_without_its_data_a_scenario_says_what_to_fetch(monkeypatch, tmp_path):
    monkeypatch.setenv("GREENBATCH_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DataMissing, match=r"greenbatch data fetch swf/Jann\.swf\.gz"):
        load_scenario("gas-marl/jann")


def test_paths_are_relative_to_the_scenario_and_traces_to_the_working_folder(ours, tmp_path, monkeypatch):
    other = tmp_path / "elsewhere"
    other.mkdir()
    monkeypatch.chdir(other)
    assert len(load_scenario(ours).workload) == 3
    (other / "jobs.swf").write_text(TRACE.replace("8 170", "9 180").replace("5 100", "4 90"))
    assert load_scenario(ours, trace="jobs.swf").workload.job_id.tolist() == [4, 6, 9]


@pytest.mark.parametrize(("flags", "message"), [
    ({"trace": ""}, "--trace: is '' (give a string that is not empty)"),
    ({"trace": "a\nb.swf"}, "--trace: is 'a\\nb.swf' (leave out line breaks and other control characters)"),
    ({"processors": -1}, "--processors: is -1 (it must be 'trace', or it must be greater than or equal to 1)"),
])  # fmt: skip
def test_an_error_in_a_flag_names_the_flag_instead_of_the_file(ours, flags, message):
    with pytest.raises(InputError) as caught:
        load_scenario(ours, **flags)
    assert str(caught.value) == message


def test_the_machine_is_as_large_as_the_trace_says_or_as_we_say(ours):
    assert load_scenario(ours).cluster.processors == 8
    assert load_scenario(ours, processors=16).cluster.processors == 16
    sixteen = np.int64(16)
    assert load_scenario(ours, processors=sixteen).cluster.processors == 16
    assert load_scenario(ours, overrides={"cluster.processors": sixteen}).cluster.processors == 16
    assert load_scenario(ours, processors=sixteen).resolved == load_scenario(ours, processors=16).resolved
    small = load_scenario(ours, processors=2)
    assert small.workload.job_id.tolist() == [6, 8]
    assert any("larger than the machine (2 processors)" in str(note) for note in small.notes)


def test_the_clock_can_begin_with_the_first_job(ours):
    assert load_scenario(ours).workload.submit_s.tolist() == [100, 150, 170]
    moved = load_scenario(ours, overrides={"workload.clock_origin": "first-job"})
    assert moved.workload.submit_s.tolist() == [0, 50, 70]
    assert moved.workload.unix_start_s == 1704067300


def test_power_from_a_list_a_draw_or_nowhere(ours):
    (ours.parent / "watts.txt").write_text("10\n20\n30\n40\n")
    listed = {"workload.power.kind": "list", "workload.power.file": "watts.txt"}
    # the third job line is dropped, and uses up its line of the list
    assert load_scenario(ours, overrides=listed).workload.power_w.tolist() == [40, 40, 40]
    drawn = {"workload.power.kind": "per-processor", "workload.power.low_w": 7, "workload.power.high_w": 7}
    assert load_scenario(ours, overrides=drawn).workload.power_w.tolist() == [28, 14, 7]
    assert np.isnan(load_scenario(ours, overrides={"workload.power.kind": "none"}).workload.power_w).all()


@pytest.mark.parametrize(
    ("power", "used"),
    [
        ({"kind": "none"}, "jobs have no power"),
        ({"kind": "per-processor", "low_w": 7, "high_w": 9, "seed": 3}, "7 to 9 W per processor, drawn with seed 3"),
        ({"kind": "trace"}, ""),
    ],
)
def test_notes_say_which_power_is_used(tmp_path, power, used):
    row = (
        "1|0|2026-01-05T08:00:00|2026-01-05T08:00:00|60|4|120000\n2|0|2026-01-05T08:00:00|2026-01-05T08:00:00|60|4|0\n"
    )
    (tmp_path / "dump.txt").write_text("JobIDRaw|UID|Submit|Start|ElapsedRaw|AllocCPUS|ConsumedEnergyRaw\n" + row)
    told = load_scenario("plain", trace=tmp_path / "dump.txt", processors=8, overrides={"workload.power": power}).notes
    measured = [note for note in map(str, told) if "measured energy" in note]
    replaced = [note for note in told if note.what.startswith("recorded power replaced")]
    assert len(measured) == (power["kind"] == "trace")
    assert [note.what for note in replaced] == ([f"recorded power replaced by the scenario's ({used})"] if used else [])
    assert all((note.count, note.level, note.share) == (1, "change", 0.5) for note in replaced)


def test_strict_refuses_what_would_be_repaired(ours):
    with pytest.raises(InputError, match=r"line 5: .*zero run time"):
        load_scenario(ours, strict=True)


def test_sources_grow_with_the_cluster_and_keep_its_calendar(ours):
    ours.with_name("sun.csv").write_text("t,ghi\n2024-01-01 00:00,100\n2024-01-01 01:00,200\n2024-01-01 02:00,300\n")
    ours.write_text(
        MINIMAL + '[site]\nkind = "series"\nreference_processors = 4\nalign = "calendar"\n'
        '[[site.sources]]\nname = "solar"\nkind = "pv"\nfile = "sun.csv"\ncolumns = ["ghi"]\nunit = "W/m2"\n'
        'time_kind = "utc"\ntime_column = "t"\narea_m2 = 10\nefficiency = 0.1\n'
    )
    scenario = load_scenario(ours)
    assert scenario.site.renewable_w.tolist() == pytest.approx([200, 400, 600])
    assert (scenario.site.origin_s, scenario.site.step_s) == (0, 3600)
    assert load_scenario(ours, overrides={"site.reference_processors": 8}).site.renewable_w[0] == pytest.approx(100)
    assert load_scenario(ours, overrides={"site.reference_processors": None}).site.renewable_w[0] == pytest.approx(100)
    moved = load_scenario(ours, overrides={"workload.clock_origin": "first-job"})
    assert moved.site.origin_s == -100, "time 0 is the first job, 100 s after the beginning of the series"


def test_windows(ours):
    scenario = load_scenario(ours)
    assert scenario.window().job_id.tolist() == [5, 6, 8]
    assert scenario.window(1).job_id.tolist() == [6, 8]
    assert scenario.window(1, 1).job_id.tolist() == [6]
    for start, jobs, message in (
        (2, 2, "largest start is 1"), (3, None, "largest start is 2"), (-1, 1, "largest start is 2"),
        (0, 4, "has 3 jobs"), (0, 0, "has 3 jobs"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            scenario.window(start, jobs)


def test_random_windows_are_different_seeded_and_within_the_trace(ours):
    scenario = load_scenario(ours)
    assert scenario.random_starts(2, 2, seed=0) == (0, 1)
    with pytest.raises(InputError, match="2 different ones"):
        scenario.random_starts(3, 2, seed=0)
    with pytest.raises(InputError, match="at most 3 jobs"):
        scenario.random_starts(1, 4, seed=0)
    default = load_scenario("default")
    starts = default.random_starts(10, 1024, seed=1)
    assert starts == default.random_starts(10, 1024, seed=1) != default.random_starts(10, 1024, seed=2)
    assert len(set(starts)) == 10
    assert 0 <= min(starts) <= max(starts) <= 10_000 - 1024
    assert list(starts) == sorted(starts)


@pytest.mark.parametrize(
    ("generator", "jobs"),
    [
        ({"model": "lublin", "types": ["batch", "interactive"], "processors": 64}, 50),
        ({"model": "cirne", "user_estimates": True}, 50),
        ({"model": "jann", "gap_factor": 0.5}, 50),
    ],
)
def test_generators(ours, generator, jobs):
    overrides = {"workload.file": None, "workload.generator": {**generator, "jobs": jobs, "seed": 3}}
    scenario = load_scenario(ours, overrides=overrides)
    assert len(scenario.workload) == jobs
    assert scenario.workload.processors.max() <= scenario.cluster.processors


def test_the_resolved_scenario_has_every_default(ours):
    resolved = load_scenario(ours).resolved
    assert resolved["rules"] == {
        "commitment": "reconsider",
        "event_rule": "per_event",
        "overrun": "kill",
        "ties": "arrival_first",
        "tick_s": 0.0,
        "power_cap_w": 0.0,
        "backfill_depth": 0,
        "dvfs_level": 0,
        "predictor": "requested",
        "dependencies": "ignore",
    }
    assert resolved["cluster"]["processors_per_machine"] == 8
    assert resolved["workload"]["file"] == "jobs.swf"


def test_a_baseline_outside_of_the_default_schedulers_is_refused(ours: Path) -> None:
    ours.write_text(f'{MINIMAL}[evaluation]\nbaseline = "foresee"\n')  # no site, so it is not among them
    with pytest.raises(InputError, match=r"'foresee' is not among the default schedulers, fcfs\+easy, sjf\+easy, f2"):
        load_scenario(ours)
    ours.write_text(f'{MINIMAL}[evaluation]\nbaseline = "sjf+easy"\n')
    assert load_scenario(ours).evaluation.baseline == "sjf+easy"


def test_schedulers_by_default_plan_only_where_there_is_power_to_plan_with(ours: Path) -> None:
    """A file that names none: foresee plans for a pool of processors with a site."""
    assert load_scenario(ours).evaluation.schedulers == ("fcfs+easy", "sjf+easy", "f2+easy")
    ours.write_text(f'{MINIMAL}[site]\nkind = "synthetic"\nseed = 1\ndays = 2\n')
    assert load_scenario(ours).evaluation.schedulers == ("fcfs+easy", "sjf+easy", "f2+easy", "foresee")
