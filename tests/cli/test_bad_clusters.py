"""Wrong descriptions of nodes, and workloads of IRMaSim, through the real command line: one line that helps."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from greenbatch.cli import main
from platform_json import ABSENT, PLATFORM, changed

JOBS: dict[str, Any] = {"jobs": [{"id": "a", "subtime": 0, "res": 4, "req_ops": 3e9}]}
GROUP = '[[groups]]\nname = "a"\ncount = 2\nprocessors = 4\nstatic_power_w = 10\n'
GROUPS = GROUP.replace("[[", "[[cluster.")
BESIDE = 'file = "nodes.toml"\n[[cluster.groups]]\n'
NODES = GROUP + 'partitions = ["p"]\nmemory_gb = 8\ngpus = 2\n'
MANY = [f"p{k}" for k in range(63)]
PARTITIONS = "".join(f"PartitionName={name} Nodes=a\n" for name in MANY)
ON_DEMAND = 'power_on = "on-demand"\ncontention = "irmasim-v1"\n'
LISTED = "platform.here.clusters.0.nodes"
RUN = ("--scenario", "plain", "--trace", "jobs.json", "--scheduler", "fcfs+none", "--out", "out")

CLUSTERS = [
    ("c.json", "", "c.json: is empty"),
    ("c.json", '{"platform": ', "c.json, line 1: is not JSON"),
    ("c.json", changed(PLATFORM, "processor.p.static_power", ABSENT), "processor.p.static_power: is missing (add it)"),
    ("c.json", changed(PLATFORM, "processor.p.cores", 0), "c.json: processor.p.cores: is 0"),
    ("c.json", changed(PLATFORM, "node.fast.processors.0.type", "x"), "there is no processor type 'x'"),
    ("c.json", JOBS, "c.json: platform: is missing"),
    ("slurm.conf", "NodeName=a[1-2 CPUs=4\n", "slurm.conf, line 1: NodeName: 'a[1-2'"),
    ("slurm.conf", "NodeName=a CPUs=4\nPartitionName=p Nodes=b\n", "line 2: Nodes: there is no node 'b'"),
    ("slurm.conf", "NodeName=a CPUs=4\nNodeName=a CPUs=4\n", "line 2: NodeName: 'a' is on line 1 too"),
    ("c.toml", GROUP.replace("processors = 4", "processors = 0"), "c.toml, line 4: groups[0].processors: is 0"),
    ("c.toml", GROUP + GROUP, "c.toml: groups: group 'a' is listed twice"),
    ("c.toml", GROUP + 'type = "x"\n', "c.toml, line 6: groups.type: there is no node type 'x'"),
    ("c.toml", GROUP + "speed = nan\n", "c.toml, line 6: groups[0].speed: is nan (give a finite number)"),
    (
        "c.toml",
        "\n[cluster]\nprocessors = 3\n",
        "c.toml, line 2: is a scenario, not a cluster (give the content of its",
    ),
    ("c.toml", "groups = 3\n", "c.toml, line 1: groups: is 3 (give an array"),
    ("c.toml", "[[groups]\n", "c.toml, line 1: is not TOML"),
    ("c.txt", "hello\n", "c.txt, line 1: is not a known description of a cluster"),
    ("c.toml", GROUP.replace("processors = 4", "processors = -8"), "line 4: groups[0].processors: is -8 (it must be"),
    ("c.toml", GROUP.replace("processors = 4\n", ""), "line 1: groups.processors: is missing (add it, or a type"),
    ("c.toml", GROUP.replace("count = 2", "count = 0"), "line 3: groups[0].count: is 0 (it must be greater"),
    ("c.toml", GROUP.replace("count = 2", "count = 1.5"), "line 3: groups[0].count: is 1.5 (give a whole number"),
    ("c.toml", GROUP.replace("count = 2\n", ""), "line 1: groups.count: is missing (add it, or node_names)"),
    ("c.toml", GROUP.replace("= 10", "= -5"), "line 5: groups[0].static_power_w: is -5 (it must be"),
    ("c.toml", GROUP.replace("= 10", '= "10 W"'), "static_power_w: is '10 W' (give a number, without quotes)"),
    ("c.toml", GROUP.replace('"a"', '""'), "line 2: groups[0].name: is '' (give a string that is not empty)"),
    ("c.toml", GROUP + "speed = -1\n", "line 6: groups[0].speed: is -1 (it must be greater than 0)"),
    ("c.toml", GROUP + "speed = inf\n", "line 6: groups[0].speed: is inf (give a finite number)"),
    ("c.toml", GROUP + "power_per_processor_w = nan\n", "power_per_processor_w: is nan (give a finite number)"),
    ("c.toml", GROUP + "idle_fraction = 1.5\n", "line 6: groups[0].idle_fraction: is 1.5 (it must be less"),
    ("c.toml", GROUP + "idle_fraction = -0.1\n", "groups[0].idle_fraction: is -0.1 (it must be greater"),
    ("c.toml", GROUP + "memory_gb = 0.0\n", "line 6: groups[0].memory_gb: is 0.0 (it must be greater than 0)"),
    ("c.toml", GROUP + "gpus = -1\n", "line 6: groups[0].gpus: is -1 (it must be greater than or equal to 0)"),
    ("c.toml", GROUP + "boot_s = -1\n", "line 6: groups[0].boot_s: is -1 (it must be greater than or equal to 0)"),
    ("c.toml", GROUP + "boot_energy_j = 5\n", "line 6: groups.boot_energy_j: is 5.0 (give boot_s as well"),
    ("c.toml", GROUP + 'partitions = "p"\n', "line 6: groups[0].partitions: is 'p' (give an array: [...])"),
    ("c.toml", GROUP + "partitions = [1]\n", "line 6: groups[0].partitions[0]: is 1 (give a string in quotes"),
    ("c.toml", GROUP + 'partitions = ["p", "p"]\n', "line 6: groups.partitions: 'p' is listed twice (name each"),
    ("c.toml", GROUP + f"partitions = {MANY}\n", "c.toml: groups: 63 partitions (at most 62: leave out some"),
    ("c.toml", GROUP + 'node_names = "b[001-"\n', "line 6: groups.node_names: 'b[001-': has a bracket"),
    ("c.toml", GROUP + 'node_names = "b[2-1]"\n', "groups.node_names: 'b[2-1]': the range 2-1 runs backward"),
    ("c.toml", GROUP + 'node_names = "b[1-2],b2"\n', "groups.node_names: 'b[1-2],b2': 'b2' occurs twice (name"),
    ("c.toml", GROUP + 'node_names = "b[1-3]"\n', "groups.node_names: has 3 node names for 2 nodes (name each"),
    ("c.toml", GROUP + 'node_names = "b[1-9999999]"\n', "names more than 1,000,000 nodes (correct the ranges)"),
    ("c.toml", GROUP + GROUP.replace('"a"', '"b"') + 'node_names = "a[0-1]"\n', "groups: node 'a0' is listed twice"),
    ("c.toml", GROUP + "clock_ghz = 2.0\n", "groups.flop_per_cycle: is missing (give clock_ghz and flop_per"),
    ("c.toml", GROUP + "speeed = 1\n", "line 6: groups[0].speeed: unknown key (did you mean speed?)"),
    ("c.toml", 'contention = "best"\n' + GROUP, "c.toml, line 1: contention: is 'best' (it must be 'none'"),
    ("c.toml", 'power_on = "never"\n' + GROUP, "c.toml, line 1: power_on: is 'never' (it must be 'always'"),
    ("c.toml", ON_DEMAND + GROUP, "c.toml, line 1: power_on: is on-demand, which irmasim-v1 does not know (use"),
    ("c.toml", "reference_gflops = 0.0\n" + GROUP, "line 1: reference_gflops: is 0.0 (it must be greater than 0)"),
    ("c.toml", GROUP + '[groups.contention]\nc = "x"\n', "line 7: groups[0].contention.c: is 'x' (give a number"),
    ("c.toml", b"\xff\xfe" + GROUP.encode(), "c.toml, line 1: is not UTF-8 text (save it as UTF-8)"),
    ("c.json", json.dumps(PLATFORM)[:200], "c.json, line 1: is not JSON: Expecting"),
    ("c.json", "[" * 5000, "c.json, line 1: is not a known description of a cluster (give a slurm.conf"),
    ("c.json", {"platform": []}, "c.json: platform: is an array (give an object)"),
    ("c.json", changed(PLATFORM, "processor", 3), "c.json: processor: is 3 (give an object)"),
    ("c.json", changed(PLATFORM, "processor.p.dynamic_power", ABSENT), "p.dynamic_power: is missing (add it)"),
    ("c.json", changed(PLATFORM, "processor.p.static_power", -1), "p.static_power: is -1 (it must be finite"),
    ("c.json", changed(PLATFORM, "processor.p.clock_rate", float("nan")), "p.clock_rate: is NaN (it must be"),
    ("c.json", changed(PLATFORM, "processor.p.clock_rate", "4 GHz"), 'p.clock_rate: is "4 GHz" (give a number'),
    ("c.json", changed(PLATFORM, "node.fast.processors.0", 3), "node.fast.processors[0]: is 3 (give an object)"),
    ("c.json", changed(PLATFORM, "node.fast.processors", []), "node.fast.processors: is empty (list at least one)"),
    ("c.json", changed(PLATFORM, f"{LISTED}.0.type", "zz"), "nodes[0].type: there is no node type 'zz' (use one of"),
    ("c.json", changed(PLATFORM, f"{LISTED}.0.number", 1e300), "nodes[0].number: is 1e+300 (it must be finite"),
    ("c.json", changed(PLATFORM, f"{LISTED}.0", []), "clusters[0].nodes[0]: is an array (give an object)"),
    (
        "c.json.gz",
        gzip.compress(json.dumps(PLATFORM).encode(), mtime=0)[:60],
        "the gzip file is truncated (download or copy",
    ),
    ("slurm.conf", "NodeName=a CPUs=0\n", "slurm.conf, line 1: CPUs: is '0' (give a whole number from 1"),
    ("slurm.conf", "NodeName=a RealMemory=-5\n", "line 1: RealMemory: is '-5' (give a whole number from 0"),
    ("slurm.conf", "NodeName=a RealMemory=64G\n", "line 1: RealMemory: is '64G' (give a whole number from 0"),
    ("slurm.conf", "NodeName=a[3-1]\n", "line 1: NodeName: 'a[3-1]': the range 3-1 runs backward (write"),
    ("slurm.conf", "NodeName=a[1-2]\nNodeName=a[2-3]\n", "line 2: NodeName: 'a2' is on line 1 too (name each"),
    ("slurm.conf", "NodeName=a Gres=gpu:-2\n", "line 1: Gres: 'gpu:-2' is not a number of GPUs (write gpu:4"),
    ("slurm.conf", "NodeName=a\nInclude slurm.conf\n", "line 2: Include: 'slurm.conf' is included within itself"),
    ("slurm.conf", "NodeName=a\nInclude gone.conf\n", "line 2: Include: 'gone.conf' no such file (put a copy"),
    ("slurm.conf", "PartitionName=p Nodes=ALL\n", "slurm.conf: names no nodes (give NodeName=... CPUs=..., or"),
    (
        "slurm.conf",
        "NodeName=a\nPartitionName=p\n",
        "slurm.conf: no node in service is in a partition that is UP (give Partition",
    ),
    ("slurm.conf", "NodeName=a\nPartitionName=p Nodes=a\n" * 2, "line 3: NodeName: 'a' is on line 1 too"),
    ("slurm.conf", "NodeName=a\n" + "PartitionName=p Nodes=a\n" * 2, "line 3: PartitionName: 'p' occurs twice"),
    ("slurm.conf", "NodeName=a\n" + PARTITIONS, "slurm.conf: groups: 63 partitions (at most 62: leave out some"),
    ("slurm.conf", "NodeName=a\nPriorityWeightAge=1e3\n", "line 2: PriorityWeightAge: is '1e3' (give a whole"),
    ("slurm.conf", "NodeName=a\nnot a line\n", "line 2: 'not a line' is not Key=Value (write Key=Value, or #"),
    ("slurm.conf", b"NodeName=a\0b CPUs=2\n", "slurm.conf, line 1: is not a text file (save the file as UTF-8"),
    ("slurm.conf", b"NodeName=\xff CPUs=2\n", "is not the name of a node (use letters, digits, _, - and .)"),
    ("slurm.conf", "NodeName=a[1-9999] CPUs=1000000\n", "slurm.conf: processors: is 9,999,000,000 (at most"),
    (
        "slurm.conf",
        gzip.compress(b"NodeName=a CPUs=4\n", mtime=0)[:-6],
        "slurm.conf: the gzip file is truncated (download",
    ),
]
SCENARIOS = [
    ("processors = 8\n" + GROUPS, "s.toml, line 4: cluster: found processors beside [[cluster.groups]] (leave it out"),
    ('contention = "repaired"\n', "s.toml, line 4: cluster: found contention without nodes (give [[cluster.groups]]"),
    ("power_on = 1\n" + GROUPS, "s.toml, line 5: cluster.power_on: is 1 (it must be 'always', 'first-use' or"),
    ("power = 3\n" + GROUPS, "s.toml, line 5: cluster.power: unknown key (did you mean power_on?)"),
    ("groups = []\n", "s.toml, line 5: cluster.groups: is [] (give at least one)"),
    ('file = "gone.json"\n', "gone.json: no such file (check the path; it is relative to the scenario file)"),
    ("file = 3\n", "s.toml, line 5: cluster.file: is 3 (give a string in quotes"),
    (BESIDE + 'name = "zz"\n', "s.toml, line 7: cluster.groups.name: the file describes no group 'zz' (use one of a)"),
    (BESIDE + 'name = "a"\ncount = 0\n', "s.toml, line 8: cluster.groups[0].count: is 0 (it must be greater"),
    (BESIDE + 'name = "a"\nshutdown_energy_j = 5\n', "cluster.groups.shutdown_energy_j: is 5.0 (give shutdown_s"),
    (GROUPS + '[site]\nkind = "synthetic"\npue = 0.9\n', "line 12: site.pue: is 0.9 (it must be greater than or"),
    (GROUPS + '[site]\nkind = "synthetic"\nbase_load_w = -1\n', "line 12: site.base_load_w: is -1 (it must be"),
]
HEADER = (
    "JobIDRaw|Partition|Submit|Start|ElapsedRaw|AllocCPUS|AllocNodes|ReqMem|AllocTRES\n"
    "1|p|2026-01-01T00:00:00|2026-01-01T00:00:00|60|2|1|1G|cpu=2\n"
)
DUMPS = [
    ({"cpu=2": "cpu=2,gres/gpu=-1"}, "line 2: AllocTRES: 'gres/gpu=-1' is malformed (write a number of GPUs"),
    ({"cpu=2": "cpu=2,gres/gpu:a100=two"}, "line 2: AllocTRES: 'gres/gpu:a100=two' is malformed (write a number"),
    ({"cpu=2": "gres/gpu=99999999999999999999"}, "line 2: AllocTRES: 'gres/gpu=99999999999999999999' is malformed"),
    ({"cpu=2": "cpu=2,mem=8X"}, "line 2: AllocTRES: 'mem=8X' is malformed (write name=value, separated by commas"),
    ({"cpu=2": "cpu 2"}, "line 2: AllocTRES: 'cpu 2' is malformed (write name=value, separated by commas"),
    ({"cpu=2": "cpu=2,,mem=1G"}, "line 2: AllocTRES: 'cpu=2,,mem=1G' is malformed (write name=value"),
    ({"cpu=2": "node=-1"}, "line 2: AllocTRES: 'node=-1' is malformed (write name=value"),
    ({"1G": "8Q"}, "line 2: ReqMem: '8Q' is malformed (write memory such as 4000M, 2Gc or 16Gn)"),
    ({"|1|1G": "|-2|1G"}, "line 2: AllocNodes: '-2' is malformed (write a whole number)"),
    ({"|2|1|": "|-2|1|"}, "line 2: AllocCPUS: '-2' is malformed (write a whole number)"),
    ({"|p|": "|old|"}, "partition: partitions of jobs that the cluster does not have: 'old' (1 job) (give them nodes"),
    ({"|2|1|": "|3|3|"}, "needs 3 processors on 3 nodes, 0.357913 GB per node, and like all others it fits on no"),
    ({"|2|1|": "|5|1|"}, "job 1 of partition 'p' needs 5 processors on 1 node, 1.07374 GB per node, and like all"),
    ({"cpu=2": "cpu=2,gres/gpu=3"}, "needs 2 processors on 1 node, 3 GPUs per node, 1.07374 GB per node, and like"),
    ({"cpu=2": "cpu=2,mem=900G"}, "needs 2 processors on 1 node, 966.368 GB per node, and like all others it fits on"),
    (
        {"|2|1|": "|9|1|"},
        "no job is left (no job can be simulated: job larger than the machine (8 processors) dropped: 1",
    ),
    ({"AllocNodes": "NodeList", "|1|1G": "|node[001-|1G"}, "line 2: NodeList: 'node[001-' is malformed (write node"),
    ({"AllocNodes": "NodeList", "|1|1G": "|node[4-1]|1G"}, "line 2: NodeList: 'node[4-1]' is malformed (write node"),
    ({"AllocCPUS": "CPUs", "AllocTRES": "TRES"}, "line 1: AllocCPUS: field is missing (add AllocCPUS or NCPUS or"),
]
TABLES = [
    ("nodes", "-3", "line 2: nodes: is -3 (it must be a whole number >= 1, or blank)"),
    ("nodes", "0", "line 2: nodes: is 0 (it must be a whole number >= 1, or blank)"),
    ("nodes", "1.5", "line 2: nodes: is 1.5 (it must be a whole number >= 1, or blank)"),
    ("gpus", "-2", "line 2: gpus: is -2 (it must be a whole number >= 0, or blank)"),
    ("gpus", "two", "line 2: gpus: 'two' is not a number (write a number, or leave the cell blank"),
    ("exclusive", "7", "line 2: exclusive: is 7 (it must be a whole number from 0 to 1, or blank)"),
    ("requested_memory_kb", "-7", "line 2: requested_memory_kb: is -7 (it must be finite and >= 0, or blank)"),
    ("requested_memory_kb", "inf", "line 2: requested_memory_kb: is inf (it must be finite and >= 0, or blank)"),
    ("memory_volume_mb", "-2", "line 2: memory_volume_mb: is -2 (it must be finite and >= 0, or blank)"),
    ("partition", "9", "partition: partitions of jobs that the cluster does not have: '9' (1 job) (give them nodes"),
]
WORKLOADS = [
    ("[{}]", "t.json: is an array (give an object)"),
    (JOBS | {"jobs": {}}, "t.json: jobs: is an object (give an array)"),
    (changed(JOBS, "jobs.0.res", "4"), 't.json: jobs[0].res: is "4" (give a number, without quotes)'),
    (changed(JOBS, "jobs.0.profile", "A"), "t.json: jobs[0].profile: there is no profile 'A'"),
    (changed(JOBS, "jobs.0.req_ops", ABSENT), "t.json: jobs[0].req_ops: is missing"),
]


def refused(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    before = sorted(folder.rglob("*"))
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("greenbatch: ")
    assert err.count("\n") == 1, err
    assert sorted(folder.rglob("*")) == before, "something was left behind"
    return err


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.json").write_text(json.dumps(JOBS))
    return tmp_path


def put(folder: Path, name: str, content: Any) -> None:
    text = content if isinstance(content, (str, bytes)) else json.dumps(content)
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(("name", "content", "says"), CLUSTERS)
def test_clusters(folder, capsys, name, content, says):
    put(folder, name, content)
    assert says in refused(folder, capsys, "simulate", *RUN, "--cluster", name)
    told = refused(folder, capsys, "cluster", "show", name)
    assert says in told
    assert name in told
    assert told.endswith(")\n"), "the fix"


@pytest.mark.parametrize(("content", "says"), WORKLOADS)
def test_workloads(folder, capsys, content, says):
    put(folder, "t.json", content)
    flags = [flag if flag != "jobs.json" else "t.json" for flag in RUN]
    assert says in refused(folder, capsys, "simulate", *flags, "--processors", "8")


@pytest.mark.parametrize(("described", "says"), SCENARIOS)
def test_scenarios(folder, capsys, described, says):
    put(folder, "nodes.toml", NODES)
    put(folder, "s.toml", f'name = "ours"\n[workload]\nfile = "jobs.json"\n[cluster]\n{described}')
    assert says in refused(folder, capsys, "simulate", "--scenario", "s.toml", "--scheduler", "fcfs", "--out", "out")


@pytest.mark.parametrize(("changes", "says"), DUMPS)
def test_dumps_on_nodes(folder, capsys, changes, says):
    text = HEADER
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    assert says in on_nodes(folder, capsys, text)


@pytest.mark.parametrize(("column", "cell", "says"), TABLES)
def test_tables_on_nodes(folder, capsys, column, cell, says):
    assert says in on_nodes(folder, capsys, f"submit_s,run_time_s,processors,{column}\n0,5,2,{cell}\n")


def on_nodes(folder: Path, capsys: pytest.CaptureFixture[str], jobs: str) -> str:
    """What is said about jobs on two nodes of 4 processors, 2 GPUs and 8 GB of partition p."""
    put(folder, "nodes.toml", NODES)
    put(folder, "jobs.txt", jobs)
    flags = [flag if flag != "jobs.json" else "jobs.txt" for flag in RUN]
    said = refused(folder, capsys, "simulate", *flags, "--cluster", "nodes.toml")
    assert said.startswith("greenbatch: jobs.txt")
    return said


def test_there_are_at_least_sixty_of_them():
    every = [*CLUSTERS, *SCENARIOS, *DUMPS, *TABLES, *WORKLOADS]
    assert len({repr(each[:-1]) for each in every}) >= 60


def test_flags(folder, capsys):
    put(folder, "c.toml", GROUP)
    flags = ("simulate", *RUN, "--cluster", "c.toml")
    assert "--processors: is for a pool (leave it out" in refused(folder, capsys, *flags, "--processors", "4")
    assert "no.toml: no such file (check the path)" in refused(folder, capsys, "simulate", *RUN, "--cluster", "no.toml")
    assert "--cluster: is '' (give a string" in refused(folder, capsys, "simulate", *RUN, "--cluster", "")


def test_show(folder, capsys):
    put(folder, "c.toml", GROUP + 'partitions = ["short"]\nmemory_gb = 64\ngpus = 1\n')
    assert main(("cluster", "show", "c.toml")) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("2 nodes, 8 processors, 20 W idle a 2 x 4 processors; 1 GPUs; 64 GB; speed 1; 10 W idle")
    assert out.endswith("partitions short")
    put(folder, "c.toml", GROUP + "[[dvfs]]\nspeed = 0.8\npower = 0.6\n")
    assert main(("cluster", "show", "c.toml")) == 0
    assert " ".join(capsys.readouterr().out.split()).endswith("DVFS level 1 0.8 x speed, 0.6 x power")


def test_show_tells_the_weights_that_slurm_multifactor_takes(folder, capsys):
    node = "NodeName=a CPUs=2\nPartitionName=p Nodes=a PriorityTier=7\nPartitionName=q Nodes=a\n"
    put(folder, "slurm.conf", node + "PriorityWeightAge=1000\nPriorityWeightJobSize=5\nPriorityWeightQOS=3\n")
    assert main(("cluster", "show", "slurm.conf")) == 0
    out = " ".join(capsys.readouterr().out.split())
    told = "priority age=1000 size=5 (what slurm-multifactor takes by default); tiers: p 7, others 1; the weight of QOS"
    assert told in out
    put(folder, "slurm.conf", "NodeName=a CPUs=2\n")
    assert main(("cluster", "show", "slurm.conf")) == 0
    assert "priority no weights (what slurm-multifactor" in " ".join(capsys.readouterr().out.split())


def test_list(capsys):
    assert main(("cluster", "list")) == 0
    assert "SPECpower_ssj2008 20190409-00952" in " ".join(capsys.readouterr().out.split())
