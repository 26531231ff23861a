"""Clusters of nodes in scenario files."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from greenbatch.cluster import Cluster
from greenbatch.errors import InputError
from greenbatch.scenarios import load_scenario, read_scenario
from greenbatch.scenarios.toml import write_toml
from platform_json import PLATFORM, changed, written

JOBS = '[workload.generator]\nmodel = "lublin"\njobs = 20\nprocessors = 8\n'
NODES = """\
contention = "repaired"
[[cluster.groups]]
name = "fast"
count = 4
processors = 8
clock_ghz = 4.2
flop_per_cycle = 2
static_power_w = 68.81
idle_fraction = 0.4
power_per_processor_w = 6.49
partitions = ["short", "long"]
[[cluster.groups]]
name = "big"
node_names = "big[01-02]"
processors = 48
gflops_per_processor = 3.0
static_power_w = 35.11
gpus = 2
memory_gb = 256
[cluster.groups.contention]
c = 30_000
"""
GROUP = '[[groups]]\nname = "a"\ncount = 2\nprocessors = 4\nstatic_power_w = 10\n'


def load(folder: Path, described: str, **options: object) -> Cluster:
    (folder / "s.toml").write_text(f'name = "ours"\n{JOBS}[cluster]\n{described}')
    return load_scenario(folder / "s.toml", **options).cluster


def refusal(folder: Path, described: str, **options: object) -> str:
    with pytest.raises(InputError) as refused:
        load(folder, described, **options)
    text = str(refused.value)
    assert "\n" not in text
    assert refused.value.fix
    return text.removeprefix(f"{folder}/")


def test_groups(tmp_path):
    cluster = load(tmp_path, NODES)
    assert cluster.on_nodes
    fast, big = cluster.groups
    assert cluster.contention == "repaired"
    assert cluster.node_names == ("fast0", "fast1", "fast2", "fast3", "big01", "big02")
    assert (fast.gflops_per_processor, fast.speed, big.speed) == (8.4, 8.4 / 3.0, 1.0)
    assert cluster.capacity == pytest.approx(4 * 8 * 2.8 + 2 * 48)
    assert (fast.idle_power_w, fast.partitions, fast.memory_gb) == (0.4 * 68.81, ("short", "long"), inf)
    assert (big.gpus, big.memory_gb, big.contention.c, big.contention.db) == (2, 256.0, 30_000.0, 2_000.0)


def test_a_scenario_shows_its_nodes(tmp_path):
    load(tmp_path, NODES)
    assert "nodes 4 x fast, 2 x big |" in repr(load_scenario(tmp_path / "s.toml"))
    load(tmp_path, "".join(GROUP.replace("[[", "[[cluster.").replace('"a"', f'"g{k}"') for k in range(6)))
    assert "nodes 2 x g0, 2 x g1, 2 x g2, 2 x g3, … (6 groups) |" in repr(load_scenario(tmp_path / "s.toml"))


def test_a_stated_speed_is_kept_and_a_reference_can_be_given(tmp_path):
    text = NODES.replace("gflops_per_processor = 3.0", "gflops_per_processor = 3.0\nspeed = 0.5")
    assert [g.speed for g in load(tmp_path, text).groups] == [1.0, 0.5]
    assert [g.speed for g in load(tmp_path, "reference_gflops = 4.2\n" + NODES).groups] == [2.0, 3.0 / 4.2]


def test_a_pool_is_what_it_was(tmp_path):
    cluster = load(tmp_path, "processors = 20\n")
    assert cluster == Cluster.pooled(20)
    assert type(cluster) is Cluster
    section, _, _ = read_scenario(tmp_path / "s.toml")
    assert section.model_dump(mode="json", exclude_none=True)["cluster"] == {
        "processors": 20, "processors_per_machine": 8, "idle_power_per_machine_w": 50.0,
    }  # fmt: skip


def test_a_scenario_with_nodes_can_be_shown_and_read_again(tmp_path):
    cluster = load(tmp_path, NODES)
    section, _, _ = read_scenario(tmp_path / "s.toml")
    (tmp_path / "s.toml").write_text(write_toml(section.model_dump(mode="json", exclude_none=True), lambda _: ""))
    assert load_scenario(tmp_path / "s.toml").cluster == cluster


def test_a_platform_as_file(tmp_path):
    written(tmp_path, PLATFORM)
    scenario = load_scenario_with(tmp_path, 'file = "platform.json"\ncontention = "irmasim-v1"\n')
    assert [group.name for group in scenario.cluster.groups] == ["fast", "big"]
    assert scenario.cluster.contention == "irmasim-v1"
    assert "platform.json" in scenario.inputs
    assert "speed 1 is a processor of 3 Gflop/s, the slowest nodes' (big)" in map(str, scenario.notes)


def load_scenario_with(folder: Path, cluster: str):
    load(folder, cluster)
    return load_scenario(folder / "s.toml")


def test_groups_beside_a_file_change_its_groups(tmp_path):
    written(tmp_path, PLATFORM)
    changes = (
        'file = "platform.json"\n[[cluster.groups]]\nname = "big"\nmemory_gb = 64\nclock_ghz = 6\nflop_per_cycle = 1\n'
    )
    fast, big = load(tmp_path, changes).groups
    assert (big.memory_gb, big.gflops_per_processor, big.speed, big.processors) == (64.0, 6.0, 2.0, 48)
    assert fast.speed == 8.4 / 3.0
    assert [g.speed for g in load(tmp_path, 'file = "platform.json"\nreference_gflops = 1.5\n').groups] == [
        8.4 / 1.5,
        2.0,
    ]


def test_a_cluster_in_a_toml_file_of_its_own(tmp_path):
    (tmp_path / "nodes.toml").write_text('contention = "repaired"\n' + GROUP)
    cluster = load(tmp_path, 'file = "nodes.toml"\n')
    assert (cluster.groups[0].name, cluster.contention, list(cluster.sources)) == ("a", "repaired", ["nodes.toml"])


def test_a_cluster_given_outside_replaces_the_scenarios(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    written(Path(), PLATFORM)
    for own in ("processors = 64\nprocessors_per_machine = 4\n", NODES):
        cluster = load(tmp_path, own, cluster="platform.json")
        assert [group.name for group in cluster.groups] == ["fast", "big"]
        assert cluster.contention == ("none" if own != NODES else "repaired")


def second(change: str, into: str) -> str:
    head, _, tail = NODES.partition('name = "big"')
    assert change in tail
    return head + 'name = "big"' + tail.replace(change, into)


@pytest.mark.parametrize(
    ("cluster", "says"),
    [
        ("processors = 8\n" + NODES, "cluster: found processors beside [[cluster.groups]]"),
        ("processors_per_machine = 8\n" + NODES, "cluster: found processors_per_machine beside [[cluster.groups]]"),
        ('idle_power_per_machine_w = 1.0\nfile = "x.json"\n', "found idle_power_per_machine_w beside cluster.file"),
        ('contention = "repaired"\n', "cluster: found contention without nodes"),
        ("groups = []\n", "cluster.groups: is [] (give at least one)"),
        (NODES.replace('"repaired"', '"irmasim"'), "cluster.contention: is 'irmasim' (it must be 'none'"),
        (NODES.replace("count = 4", "count = 0"), "line 10: cluster.groups[0].count: is 0"),
        (NODES.replace("count = 4\n", ""), "cluster.groups.count: is missing (add it, or node_names)"),
        (NODES.replace("processors = 8", "processors = -8"), "cluster.groups[0].processors: is -8"),
        (NODES.replace("clock_ghz = 4.2", "clock_ghz = nan"), "cluster.groups[0].clock_ghz: is nan (give a finite"),
        (NODES.replace("clock_ghz = 4.2\n", ""), "cluster.groups.clock_ghz: is missing (give clock_ghz and flop"),
        (NODES.replace("clock_ghz = 4.2\n", "clock_ghz = 4.2\nspeed = 1\n"), "groups.speed: is given beside a clock"),
        (NODES.replace("idle_fraction = 0.4", "idle_fraction = 40"), "cluster.groups[0].idle_fraction: is 40"),
        (NODES.replace("static_power_w = 68.81\n", ""), "cluster.groups.static_power_w: is missing"),
        (NODES.replace('["short", "long"]', '"short"'), "groups[0].partitions: is 'short' (give an array"),
        (NODES.replace('"big"', '"fast"'), "'fast' is listed twice"),
        (second('"big[01-02]"', '"big[02-01]"'), "line 20: cluster.groups.node_names: 'big[02-01]': the range 02-01"),
        (second('"big[01-02]"', '"fast[0-1]"'), "node 'fast0' is listed twice"),
        (second('"big[01-02]"', '"big[01-02]"\ncount = 3'), "has 2 node names for 3 nodes"),
        (second("memory_gb = 256", "memory_gb = inf"), "cluster.groups[1].memory_gb: is inf"),
        (second("memory_gb = 256", "memory = 256"), "cluster.groups[1].memory: unknown key (did you mean memory_gb?)"),
        (second("gpus = 2", 'type = "hal-9000"'), "there is no node type 'hal-9000'"),
        (second("c = 30_000", "e = 1"), "cluster.groups[1].contention.e: unknown key (use one of b, c"),
        ('file = "no.json"\n', "no.json: no such file (check the path; it is relative to the scenario file)"),
        ('file = "nodes.toml"\n[[cluster.groups]]\nname = "b"\n', "the file describes no group 'b' (use one of a)"),
        ('file = "nodes.toml"\n[[cluster.groups]]\nname = "a"\nspeed = 0.0\n', "cluster.groups[0].speed: is 0.0"),
        ('file = "pool.toml"\n', "pool.toml, line 1: processors: unknown key"),
        ('file = "twice.toml"\n', "twice.toml: groups: group 'a' is listed twice"),
    ],
)  # fmt: skip
def test_bad_clusters_are_refused(tmp_path, cluster, says):
    (tmp_path / "nodes.toml").write_text(GROUP)
    (tmp_path / "pool.toml").write_text("processors = 5\n" + GROUP)
    (tmp_path / "twice.toml").write_text(GROUP + GROUP)
    assert says in refusal(tmp_path, cluster)


def test_flags_that_do_not_go_together(tmp_path):
    assert refusal(tmp_path, NODES, processors=8) == "--processors: is for a pool (leave it out: nodes state theirs)"
    assert refusal(tmp_path, NODES, cluster="no.json") == "no.json: no such file (check the path)"


def test_operations_are_run_times_on_a_processor_of_speed_1(tmp_path):
    """A slow node of 2 Gflop/s needs as long as its peak says, whatever speed 1 is."""
    written(tmp_path, changed(PLATFORM, "processor.q.clock_rate", 2.0))
    jobs = {"jobs": [{"subtime": 0, "res": 1, "req_ops": 12e9}]}
    written(tmp_path, jobs, "jobs.json")
    for own, run_s in (("", 6.0), ("reference_gflops = 4\n", 3.0)):
        text = f'name = "ours"\n[workload]\nfile = "jobs.json"\n{own}[cluster]\nfile = "platform.json"\n'
        (tmp_path / "s.toml").write_text(text)
        scenario = load_scenario(tmp_path / "s.toml")
        assert scenario.workload.run_time_s.tolist() == [run_s]
        assert scenario.cluster.groups[1].speed == 1.0
    (tmp_path / "s.toml").write_text('name = "ours"\n[workload]\nfile = "jobs.json"\n[cluster]\nprocessors = 4\n')
    assert load_scenario(tmp_path / "s.toml").workload.run_time_s.tolist() == [4.0]


def test_jobs_larger_than_all_nodes_are_dropped(tmp_path):
    trace = "".join(f"{k} 0 -1 9 {p} -1 -1 {p} 9 -1 1 1 1 1 1 1 -1 -1\n" for k, p in enumerate((8, 9, 1)))
    (tmp_path / "jobs.swf").write_text(trace)
    load(tmp_path, GROUP.replace("[[", "[[cluster."))
    assert load_scenario(tmp_path / "s.toml", trace=tmp_path / "jobs.swf").workload.processors.tolist() == [8, 1]


SIX = """job_id,submit_s,run_time_s,processors,nodes,gpus,requested_memory_kb,partition
1,0,10,4,1,,,1
2,0,30,4,1,,900000,1
3,1,10,8,1,,,1
4,1,10,2,1,1,,1
5,2,10,4,3,,,1
6,2,10,8,2,,,1
"""


def test_jobs_that_fit_on_no_nodes_are_dropped_and_told_with_their_work(tmp_path):
    """Too much memory, processors, GPUs or nodes for two nodes of 4 processors and 2 GB."""
    (tmp_path / "jobs.csv").write_text(SIX)
    load(tmp_path, GROUP.replace("[[", "[[cluster.") + "memory_gb = 2\n")
    scenario = load_scenario(tmp_path / "s.toml", trace=tmp_path / "jobs.csv")
    assert scenario.workload.job_id.tolist() == [1, 6]
    told = "job 2 of partition '1' needs 4 processors on 1 node, 3.6 GB per node"
    dropped = next(note for note in map(str, scenario.notes) if "fits on no nodes" in note)
    assert dropped.startswith(f"job that fits on no nodes of the cluster (the first: {told}")
    assert dropped.endswith(") dropped: 4 (68% of the processor-hours and 67% of the jobs)")
    with pytest.raises(InputError, match=r"jobs.csv: processors: job 2 .* which fit on no nodes of the cluster \(give"):
        load_scenario(tmp_path / "s.toml", trace=tmp_path / "jobs.csv", strict=True)
    load(tmp_path, GROUP.replace("[[", "[[cluster.").replace("processors = 4", "processors = 1"))
    with pytest.raises(InputError, match=r"and like all others it fits on no nodes of the cluster \(describe"):
        load_scenario(tmp_path / "s.toml", trace=tmp_path / "jobs.csv")
