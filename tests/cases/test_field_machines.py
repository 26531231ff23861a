"""Descriptions of machines as people have them (``field/``): the right cluster, or words that help."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenbatch.cluster.readers import read_cluster
from greenbatch.errors import InputError

FIELD = Path(__file__).with_name("field")
GROUPS = [("rack[0-1]_blade[00-03]", 8, 64, 0, ("all",)), ("cn[1-2]-ib,login1", 3, 8, 0, ("all",))]
EXTRA = ("extra[1-2]", 2, 4, 0, ("all",))
POWER = "power of nodes is unknown"


def shown(folder: str) -> tuple[list[tuple[str, int, int, int, tuple[str, ...]]], list[str]]:
    """The groups of a ``slurm.conf``, and its notes but the one on power."""
    cluster = read_cluster(FIELD / folder / "slurm.conf")
    groups = [(g.name, g.count, g.processors, g.gpus, g.partitions) for g in cluster.groups]
    return groups, [str(note) for note in cluster.notes if not note.what.startswith(POWER)]


def test_23_an_absolute_include_that_is_missing():
    with pytest.raises(InputError, match=r"line 7: Include: '/etc/slurm/nodes\.conf' no such file") as refused:
        read_cluster(FIELD / "23-slurm-conf-include" / "slurm.conf")
    assert "put a copy named 'nodes.conf' beside this file" in str(refused.value)


@pytest.mark.parametrize("folder", ["b", "c"])
def test_23_with_the_copy_beside_it(folder):
    groups, notes = shown(f"23-slurm-conf-include/{folder}")
    assert groups == [EXTRA, *GROUPS]
    taken = ["Include '/etc/slurm/nodes.conf' is not there, 'nodes.conf' taken, first at line 7"]
    assert notes == taken * (folder == "c") + ["PriorityWeightTRES=CPU=1000,Mem=2000,GRES/gpu=3000 ignored"]


def test_24_an_empty_partition_is_named():
    groups, notes = shown("24-slurm-conf-odd")
    assert groups == [
        ("cpu-dy-[1-100]", 100, 36, 0, ("compute", "cloud")), ("gpu-st-[1-2]", 2, 96, 18, ("gpu",))
    ]  # fmt: skip
    assert notes == ["partitions without nodes in the file left out (empty: Nodes=): 1"]


def test_53_nodes_and_partitions_out_of_service():
    groups, notes = shown("53-slurm-conf-dynamic")
    assert groups == [("w-[0-3]", 4, 2, 0, ("all",))]
    assert notes == [
        "nodes out of service left out (bad-1 DOWN): 1 (50% of the processors)",
        "partitions that are not UP left out (closed INACTIVE): 1",
        "partitions without nodes in the file left out (dyn: Nodes=ns_dyn): 1",
    ]
