"""``slurm.conf`` as a cluster."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from greenbatch.cluster.groups import changed_cluster
from greenbatch.cluster.priority import Partition, PriorityWeights
from greenbatch.cluster.readers import read_cluster
from greenbatch.errors import InputError

CONF = """\
# A cluster
ClusterName = here
SchedulerParameters=bf_window=300,bf_max=2
SlurmctldHost=login1(10.0.0.1)
PriorityType=priority/multifactor
PriorityWeightAge=1000          # a comment
priorityweightfairshare=10000
PriorityWeightJobSize=500
PriorityWeightPartition=2000
PriorityWeightQOS=0
PriorityMaxAge=14-0
PriorityDecayHalfLife=7-12:00:00
PriorityCalcPeriod=10
PriorityFavorSmall=NO
PriorityFlags=FAIR_TREE

NodeName=DEFAULT Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=100000 State=UNKNOWN
NodeName=cn[01-04] \\
  Reason="a b \\#1"
NodeName=cn05 CPUs=16 RealMemory=200000
NodeName=gpu[1-2] CoresPerSocket=32 Gres=gpu:a100:4(S:0-1),nvme:1,gpu:2 Features=a100
NodeName=later State=FUTURE
NodeName=spare CPUs=4
NodeSet=fast Feature=a100
PartitionName=DEFAULT MaxTime=24:00:00 State=UP
PartitionName=short Nodes=cn[01-02] Default=YES MaxTime=60 PriorityTier=10 PriorityJobFactor=5
PartitionName=long Nodes=cn[01-05] MaxTime=UNLIMITED
PartitionName=gpu Nodes=fast,later
"""
GPUS = [
    ("gpu:4", 4), ("gpu", 1), ("gpu:a100", 1), ("gpu:2080ti:8", 8), ("gpu:3g.20gb:2,gpu:1g.5gb:3", 5), ("nvme:1", 0),
    ("gpu:nvidia_geforce_rtx_5090:4(S:0-3),VramPerGpu:no_consume:32G", 4), ("gpu:h100:no_consume:2", 2), ("(null)", 0),
]  # fmt: skip
GB = 1024**2 / 1e9


def conf(folder: Path, text: str, name: str = "slurm.conf") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_cluster(tmp_path):
    cluster = read_cluster(conf(tmp_path, CONF))
    assert [(g.name, g.nodes, g.processors, g.gpus, g.partitions) for g in cluster.groups] == [
        ("cn[01-04] (short+long)", ("cn01", "cn02"), 64, 0, ("short", "long")),
        ("cn[01-04] (long)", ("cn03", "cn04"), 64, 0, ("long",)),
        ("cn05", ("cn05",), 16, 0, ("long",)),
        ("gpu[1-2]", ("gpu1", "gpu2"), 128, 6, ("gpu",)),
    ]
    assert [g.memory_gb for g in cluster.groups] == [1e5 * GB, 1e5 * GB, 2e5 * GB, 1e5 * GB]
    assert cluster.priority.weights == PriorityWeights(
        age=1000, fair_share=10_000, job_size=500, partition=2000, max_age_s=14 * 86_400.0,
        decay_half_life_s=7.5 * 86_400, calc_period_s=600.0,
    )  # fmt: skip
    assert cluster.priority.partitions == (
        Partition(name="short", default=True, max_time_s=3600.0, tier=10, job_factor=5),
        Partition(name="long"),
        Partition(name="gpu", max_time_s=86_400.0),
    )
    left, flags, power = cluster.notes
    assert str(left) == "nodes in no partition that is UP left out (spare): 1 (0.8% of the processors)"
    assert left.shares == ((4 / (4 * 64 + 16 + 2 * 128 + 4), "processors"),)
    assert (str(flags), flags.level) == ("PriorityFlags=FAIR_TREE ignored", "change")
    assert power.what.startswith("power of nodes is unknown, 0 W taken: 4 of 4 groups (cn[01-04] (short+long), ")
    assert (power.level, power.shares) == ("warning", ((1.0, "processors"),))
    assert list(cluster.sources) == ["slurm.conf"]


def test_the_power_of_some_nodes_given_by_the_scenario(tmp_path):
    read = read_cluster(conf(tmp_path, "NodeName=a[1-2] CPUs=32\nNodeName=b CPUs=2\n"))
    cluster = changed_cluster(read, [{"name": "a[1-2]", "type": "dell-r620"}])
    a, b = cluster.groups
    assert (a.processors, a.static_power_w, a.power_per_processor_w) == (32, 54.1, (243 - 54.1) / 32)
    (dark,) = cluster.notes
    assert dark.what == (
        "power of nodes is unknown, 0 W taken: 1 of 2 groups (b); give type or static_power_w in [[cluster.groups]] of "
        "the scenario or site file"
    )
    assert dark.shares == ((2 / 66, "processors"),)
    assert changed_cluster(cluster, [{"name": "b", "static_power_w": 5.0}]).notes == ()
    assert (a.memory_gb, a.partitions, b.idle_power_w) == (inf, (), 0.0)


@pytest.mark.parametrize(("gres", "gpus"), GPUS)
def test_gpus(tmp_path, gres, gpus):
    assert read_cluster(conf(tmp_path, f"NodeName=a Gres={gres}\n")).groups[0].gpus == gpus


def test_a_line_can_be_continued_within_a_value(tmp_path):
    text = "NodeName=a[1-3]\nNodeSet=odd Nodes=\\\na1,\\\na3\nPartitionName=p \\\n  Nodes=odd Default=YES\n"
    cluster = read_cluster(conf(tmp_path, text))
    assert cluster.node_names == ("a1", "a3")
    assert cluster.priority.partitions[0].default


def test_the_name_of_a_line_stands_for_its_groups(tmp_path):
    read = read_cluster(conf(tmp_path, CONF))
    changed = changed_cluster(
        read, [{"name": "cn[01-04]", "static_power_w": 7.0}, {"name": "cn05", "type": "dell-r620"}]
    )
    assert [g.name for g in changed.groups] == [g.name for g in read.groups]
    assert [g.static_power_w for g in changed.groups] == [7.0, 7.0, 54.1, 0.0]
    one = changed_cluster(read, [{"name": "cn[01-04] (long)", "static_power_w": 7.0}])
    assert [g.static_power_w for g in one.groups] == [0.0, 7.0, 0.0, 0.0]


def test_speeds_of_nodes_whose_clock_the_scenario_states(tmp_path):
    read = read_cluster(conf(tmp_path, "NodeName=a\nNodeName=b\nNodeName=c\n"))
    tables = [{"name": "a", "clock_ghz": 2.0, "flop_per_cycle": 8.0}, {"name": "b", "gflops_per_processor": 24.0}]
    assert [g.speed for g in changed_cluster(read, tables).groups] == [1.0, 1.5, 1.0]
    assert [g.speed for g in changed_cluster(read, tables, reference_gflops=8.0).groups] == [2.0, 3.0, 1.0]


def test_comments_in_any_encoding(tmp_path):
    (tmp_path / "slurm.conf").write_bytes("NodeName=a CPUs=2  # gr\u00f6\u00dfer\n".encode("latin-1"))
    assert read_cluster(tmp_path / "slurm.conf").processors == 2


def test_included_files(tmp_path):
    (tmp_path / "etc").mkdir()
    conf(tmp_path, "NodeName=a CPUs=2\ninclude more.conf\n", "etc/nodes.conf")
    conf(tmp_path, "NodeName=b CPUs=4\n", "etc/more.conf")
    cluster = read_cluster(conf(tmp_path, "Include etc/nodes.conf\nPartitionName=p Nodes=ALL\n"))
    assert cluster.node_names == ("a", "b")
    assert set(cluster.sources) == {"slurm.conf", "nodes.conf", "more.conf"}


INCLUDED = "NodeName=extra[1-2] CPUs=4\n"


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("/etc/slurm/nodes.conf", "nodes.conf"), ("/etc/slurm/conf.d/nodes.conf", "conf.d/nodes.conf"),
        ("/etc/slurm/conf.d/nodes.conf", "nodes.conf"), ("conf.d/nodes.conf", "nodes.conf"),
        ('"/etc/slurm/nodes.conf"', "nodes.conf"),
    ],
)  # fmt: skip
def test_an_included_file_of_a_copied_folder(tmp_path, written, place):
    (tmp_path / "conf.d").mkdir()
    conf(tmp_path, INCLUDED, place)
    cluster = read_cluster(conf(tmp_path, f"ClusterName=c\ninclude {written}\n"))
    assert cluster.node_names == ("extra1", "extra2")
    stated = written.strip('"')
    assert str(cluster.notes[0]) == f"Include '{stated}' is not there, '{place}' taken, first at line 2"


def test_included_files_are_relative_to_the_first_file_too(tmp_path):
    (tmp_path / "etc").mkdir()
    conf(tmp_path, "Include etc/more.conf\n", "etc/nodes.conf")
    conf(tmp_path, INCLUDED, "etc/more.conf")
    assert read_cluster(conf(tmp_path, "Include etc/nodes.conf\n")).node_names == ("extra1", "extra2")


def test_the_fix_of_a_missing_include_works(tmp_path):
    here = conf(tmp_path, "ClusterName=c\nInclude /etc/slurm/parts/nodes.conf\nNodeName=a\n")
    with pytest.raises(InputError, match=r"line 2: Include: .* \(put a copy named 'nodes.conf'") as refused:
        read_cluster(here)
    assert "or # before the line" in str(refused.value)
    conf(tmp_path, INCLUDED, "nodes.conf")
    assert read_cluster(here).node_names == ("extra1", "extra2", "a")
    commented = conf(tmp_path, here.read_text().replace("Include", "#Include"), "other.conf")
    assert read_cluster(commented).node_names == ("a",)


def notes_of(folder: Path, text: str) -> list[str]:
    cluster = read_cluster(conf(folder, text))
    return [str(note) for note in cluster.notes if note.about in ("nodes", "partitions")]


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ("NodeName=a[1-4] State=DOWN\n", None),
        ("NodeName=a[1-4] state=drain\n", None),
        ("NodeName=a[1-4]\nDownNodes=a[1-4] State=FAIL\n", None),
        ("NodeName=a[1-4]\n", "a1 a2 a3 a4"),
        ("NodeName=a[1-4] State=CLOUD\n", "a1 a2 a3 a4"),
        ("NodeName=a[1-4] State=IDLE\n", "a1 a2 a3 a4"),
        ("NodeName=a[1-3] State=IDLE+CLOUD\nNodeName=a4 State=IDLE+DRAIN\n", "a1 a2 a3"),
        ("NodeName=a1\nPartitionName=p Nodes=a1\nPartitionName=none Nodes=(null)\n", "a1"),
        ("NodeName=DEFAULT State=DRAIN\nNodeName=a[1-2]\nNodeName=DEFAULT State=UNKNOWN\nNodeName=a[3-4]\n", "a3 a4"),
        ("NodeName=a[1-4]\nDownNodes=a[1,3] Reason=memory\n", "a2 a4"),
        ("NodeName=a[1-4]\nDownNodes=DEFAULT State=DRAIN\nDownNodes=a1\ndownnodes=a2 State=FAILING\n", "a3 a4"),
        ("NodeName=a[1-4] State=FUTURE\nNodeName=b\n", "b"),
    ],
)
def test_nodes_out_of_service_are_left_out(tmp_path, lines, left):
    if left is None:
        with pytest.raises(InputError, match="no node is in service") as refused:
            read_cluster(conf(tmp_path, lines))
        assert refused.value.fix == "set State=UNKNOWN for the nodes to simulate"
        return
    assert read_cluster(conf(tmp_path, lines)).node_names == tuple(left.split())


def test_notes_on_nodes_out_of_service(tmp_path):
    text = "NodeName=a[1-6] CPUs=4\nNodeName=b CPUs=8\nDownNodes=a[1-4] State=DRAIN\nNodeName=c CPUs=99 State=FUTURE\n"
    assert notes_of(tmp_path, text) == [
        "nodes out of service left out (a1 DRAIN, a2 DRAIN, a3 DRAIN, …): 4 (50% of the processors)"
    ]


@pytest.mark.parametrize("state", ["DOWN", "drain", "Inactive"])
def test_partitions_that_are_not_up_are_not_usable(tmp_path, state):
    text = f"NodeName=a[1-2] CPUs=4\nPartitionName=p Nodes=a1\nPartitionName=q Nodes=ALL State={state}\n"
    cluster = read_cluster(conf(tmp_path, text))
    assert (cluster.node_names, cluster.partitions) == (("a1",), ("p",))
    assert [each.name for each in cluster.priority.partitions] == ["p"]
    assert notes_of(tmp_path, text) == [
        "nodes in no partition that is UP left out (a2): 1 (50% of the processors)",
        f"partitions that are not UP left out (q {state.upper()}): 1",
    ]


def test_partitions_without_nodes_are_named(tmp_path):
    text = (
        "NodeName=a CPUs=4\nNodeName=b CPUs=4 State=DOWN\nNodeSet=dyn Feature=spot\nPartitionName=p Nodes=a\n"
        "PartitionName=spots Nodes=dyn\nPartitionName=none\nPartitionName=broken Nodes=b\nPartitionName=blank Nodes=\n"
    )
    cluster = read_cluster(conf(tmp_path, text))
    assert cluster.partitions == ("p",)
    empty = notes_of(tmp_path, text)[-1]
    assert empty == (
        "partitions without nodes in the file left out (spots: Nodes=dyn, none: Nodes=, "
        "broken: all are out of service, …): 4"
    )


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90", 5400), ("1:30", 90), ("1:02:03", 3723), ("2-3", 183_600), ("2-3:4", 183_840), ("1-0:0:5", 86_405)],
)
def test_times(tmp_path, written, seconds):
    cluster = read_cluster(conf(tmp_path, f"NodeName=a\nPartitionName=p Nodes=a MaxTime={written}\n"))
    assert cluster.priority.partitions[0].max_time_s == seconds


NODE = "NodeName=a[1-2] CPUs=4\n"
PART = "PartitionName=p Nodes=a1\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ClusterName=x\n", "names no nodes (give NodeName=... CPUs=..., or Include the file that does)"),
        (NODE + "this is not a line\n", "line 2: 'this is not a line' is not Key=Value (write Key=Value, or #"),
        (NODE + "NodeName=b CPUs=4 CPUs=5\n", "line 2: CPUs: occurs twice on the line"),
        ("NodeName=a CPUs=0\n", "line 1: CPUs: is '0' (give a whole number from 1 to 1,000,000)"),
        ("NodeName=a CPUs=four\n", "line 1: CPUs: is 'four'"),
        ("NodeName=a CPUs=-4\n", "line 1: CPUs: is '-4'"),
        ("NodeName=a Sockets=0\n", "line 1: Sockets: is '0'"),
        ("NodeName=a CoresPerSocket=2.5\n", "line 1: CoresPerSocket: is '2.5'"),
        ("NodeName=a RealMemory=64G\n", "line 1: RealMemory: is '64G'"),
        (
            "NodeName=a Gres=gpu:many\nNodeName=b Gres=gpu:a100:x\n",
            "line 2: Gres: 'gpu:a100:x' is not a number of GPUs",
        ),
        ("NodeName=a[1-\n", "line 1: NodeName: 'a[1-': has a bracket that is not closed"),
        ("NodeName=a[2-1] CPUs=1\n", "line 1: NodeName: 'a[2-1]': the range 2-1 runs backward"),
        ("NodeName= CPUs=1\n", "line 1: NodeName: '': has a blank name"),
        (NODE + "\nNodeName=a2\n", "line 3: NodeName: 'a2' is on line 1 too (name each node once)"),
        (NODE + "PartitionName=p Nodes=a3\n", "line 2: Nodes: there is no node 'a3' (did you mean a"),
        (NODE + "PartitionName=p Nodes=a[1-\n", "line 2: Nodes: 'a[1-':"),
        (NODE + PART + PART, "line 3: PartitionName: 'p' occurs twice"),
        (NODE + "PartitionName=\u202e Nodes=a1\n", "line 2: PartitionName: is '\\u202e' (leave out control"),
        (NODE + "PartitionName= Nodes=a1\n", "line 2: PartitionName: is blank"),
        (NODE + "PartitionName=p\n", "no node in service is in a partition that is UP (give PartitionName=... Nodes="),
        (NODE + PART.strip() + " State=DOWN\n", "no node in service is in a partition that is UP"),
        (NODE + PART.strip() + " State=OPEN\n", "line 2: State: is 'OPEN' (give UP, DOWN, DRAIN or INACTIVE)"),
        (NODE + "DownNodes=a3\n", "line 2: DownNodes: there is no node 'a3'"),
        (NODE + PART.strip() + " Default=maybe\n", "line 2: Default: is 'maybe' (give YES or NO)"),
        (NODE + PART.strip() + " MaxTime=1-2-3\n", "line 2: MaxTime: is '1-2-3' (write minutes"),
        (NODE + PART.strip() + " MaxTime=0\n", "line 2: MaxTime: is '0' (give a time > 0 s)"),
        (NODE + PART.strip() + " PriorityTier=99999\n", "line 2: PriorityTier: is '99999' (give a whole number from 0"),
        (NODE + "PriorityWeightAge=1e3\n", "line 2: PriorityWeightAge: is '1e3'"),
        (NODE + "PriorityWeightQOS=-1\n", "line 2: PriorityWeightQOS: is '-1'"),
        (NODE + "PriorityMaxAge=0\n", "line 2: PriorityMaxAge: is '0'"),
        (NODE + "PriorityFavorSmall=some\n", "line 2: PriorityFavorSmall: is 'some'"),
        (
            NODE + "Include no.conf\n",
            "line 2: Include: 'no.conf' no such file (put a copy named 'no.conf' ",
        ),
        (NODE + "Include slurm.conf\n", "line 2: Include: 'slurm.conf' is included within itself"),
        (NODE + "NodeSet=s Nodes=x\n", "line 2: Nodes: there is no node 'x'"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, says):
    with pytest.raises(InputError) as refused:
        read_cluster(conf(tmp_path, text))
    message = str(refused.value)
    assert says in message
    assert message.startswith(f"{tmp_path}/slurm.conf")
    assert refused.value.fix
    assert "\n" not in message
