"""Platforms of IRMaSim as clusters."""

from __future__ import annotations

import re
from math import inf

import pytest

from greenbatch.cluster.readers import read_cluster
from greenbatch.errors import InputError
from platform_json import ABSENT, PLATFORM, changed, written


def test_a_platform(tmp_path):
    cluster = read_cluster(written(tmp_path, PLATFORM))
    fast, big = cluster.groups
    assert (fast.name, fast.count, fast.processors, fast.gflops_per_processor) == ("fast", 2, 8, 8.4)
    assert (fast.static_power_w, fast.idle_fraction, fast.power_per_processor_w) == (68.81, 0.25, 6.49)
    assert (fast.speed, big.speed) == (8.4 / 3.0, 1.0)
    assert fast.contention.c == 32000.0
    assert (big.processors, big.static_power_w, big.idle_power_w, big.power_per_processor_w) == (48, 70.0, 35.0, 3.5)
    assert cluster.node_names == ("node0", "node1", "node2")
    assert fast.memory_gb == inf
    assert cluster.contention == "none"
    assert str(cluster.notes[-1]) == "speed 1 is a processor of 3 Gflop/s, the slowest nodes' (big)"
    assert list(cluster.sources) == ["platform.json"]


def test_the_nodes_of_several_clusters_are_numbered_in_each(tmp_path):
    clusters = [{"nodes": [{"type": "fast", "number": 2}]}, {"id": "b", "nodes": [{"type": "fast"}, {"type": "fast"}]}]
    cluster = read_cluster(written(tmp_path, changed(PLATFORM, "platform.here.clusters", clusters)))
    assert cluster.node_names == ("cluster0.node0", "cluster0.node1", "b.node0", "b.node1")
    assert [group.name for group in cluster.groups] == ["cluster0.fast", "b.fast", "b.fast-2"]


def test_the_reference_platforms(greenbatch_reference):
    cluster = read_cluster(greenbatch_reference("irmasim/inputs/plat_conv.json"))
    assert cluster.processors == 1040
    # Paper 004, Table 3
    assert [(g.count, g.processors, g.static_power_w, g.power_per_processor_w) for g in cluster.groups] == [
        (10, 8, 68.81, 6.49), (10, 16, 56.33, 5.32), (10, 32, 45.09, 4.26), (10, 48, 35.11, 3.31),
    ]  # fmt: skip
    assert [round(group.speed * 3.0, 9) for group in cluster.groups] == [4.2, 3.8, 3.4, 3.0]
    assert cluster.node_names == tuple(f"node{k}" for k in range(40))
    assert {group.idle_fraction for group in cluster.groups} == {0.3959}


P, NODES = "processor.p", "platform.here.clusters.0.nodes"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "line 1: is not JSON"),
        ("{}", "platform: is missing (add it)"),
        ("[{}]", "is an array (give an object)"),
        ('{"platform": NaN}', "platform: is NaN (give an object)"),
        (changed(PLATFORM, "platform.other", {}), "platform: holds 2 platforms"),
        (changed(PLATFORM, "node", ABSENT), "node: is missing"),
        (changed(PLATFORM, "node.fast", ABSENT), f"{NODES}[0].type: there is no node type 'fast' (use one of big)"),
        (changed(PLATFORM, f"{NODES}.0.type", "fats"), "there is no node type 'fats' (did you mean fast?)"),
        (
            changed(PLATFORM, "platform.here.clusters.0.id", "a\x1b"),
            'clusters[0].id: is "a\\u001b" (give a text that is',
        ),
        (changed(PLATFORM, f"{NODES}.0.number", 0), "nodes[0].number: is 0 (it must be finite and >= 1"),
        (changed(PLATFORM, f"{NODES}.0.number", "2"), 'nodes[0].number: is "2" (give a number, without quotes)'),
        (changed(PLATFORM, f"{NODES}.0.number", 1.5), "nodes[0].number: is 1.5 (give a whole number)"),
        (changed(PLATFORM, NODES, []), "clusters[0].nodes: is empty (list at least one)"),
        (changed(PLATFORM, "platform.here.clusters", {}), "clusters: is an object (give an array)"),
        (changed(PLATFORM, f"{P}.cores", ABSENT), f"{P}.cores: is missing"),
        (changed(PLATFORM, f"{P}.cores", 0), f"{P}.cores: is 0"),
        (changed(PLATFORM, f"{P}.cores", True), f"{P}.cores: is true (give a number"),
        (changed(PLATFORM, f"{P}.clock_rate", float("nan")), f"{P}.clock_rate: is NaN (it must be finite"),
        (changed(PLATFORM, f"{P}.clock_rate", -3), f"{P}.clock_rate: is -3"),
        (changed(PLATFORM, f"{P}.static_power", ABSENT), f"{P}.static_power: is missing"),
        (changed(PLATFORM, f"{P}.dynamic_power", float("inf")), f"{P}.dynamic_power: is Infinity"),
        (changed(PLATFORM, f"{P}.min_power", 39.59), f"{P}.min_power: is 39.59 (it must be finite and >= 0 and <= 1)"),
        (changed(PLATFORM, f"{P}.c", None), f"{P}.c: is null"),
        (changed(PLATFORM, "node.big.processors.0.type", 3), "node.big.processors[0].type: is 3 (give a text)"),
        (changed(PLATFORM, "node.big.processors.0", {"type": "x"}), "there is no processor type 'x'"),
        (changed(PLATFORM, "node.big.processors", [{"type": "p"}, {"type": "q"}]), "processors of different speeds"),
        (changed(PLATFORM, "node.big.processors.0.number", 2.5), "processors[0].number: is 2.5"),
    ],
)
def test_bad_platforms_are_refused(tmp_path, content, says):
    path = written(tmp_path, content)
    with pytest.raises(InputError) as refused:
        read_cluster(path)
    text = str(refused.value)
    assert re.sub(r"\.0(?=[.\[:])", "[0]", says) in text
    assert text.startswith(str(path))
    assert refused.value.fix
    assert "\n" not in text


def test_a_file_of_another_kind_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not a known description of a cluster"):
        read_cluster(written(tmp_path, "hello\n"))
