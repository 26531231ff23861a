"""The catalog of node types."""

from __future__ import annotations

import re

import pytest

from greenbatch.cluster.catalog import node_type, node_types
from greenbatch.cluster.groups import changed_group, node_group
from greenbatch.errors import InputError


@pytest.mark.parametrize("name", node_types())
def test_every_type_has_a_record_and_plausible_numbers(name):
    kind = node_type(name)
    assert re.fullmatch(r"SPECpower_ssj2008 20\d{6}-\d{5}", kind.record)
    assert 0 < kind.idle_w < kind.full_w < 20 * kind.processors + 200
    assert kind.record.split()[1][:4] == kind.description[-4:], "the description ends with the year of the record"


def test_records_and_descriptions_differ():
    kinds = node_types().values()
    assert len({kind.record for kind in kinds}) == len({kind.description for kind in kinds}) == len(kinds)


def test_all_processors_busy_draw_what_was_measured_at_full_load():
    group = node_group({"name": "n", "count": 2, "type": "dell-r620"})
    assert (group.processors, group.memory_gb, group.idle_power_w) == (16, 24.0, 54.1)
    assert group.static_power_w + 16 * group.power_per_processor_w == pytest.approx(243)
    assert "20120306-00434" in group.source


def test_other_keys_replace_those_of_a_type():
    group = node_group({"name": "n", "count": 2, "type": "dell-r620", "memory_gb": 128.0, "static_power_w": 60.0})
    assert (group.memory_gb, group.static_power_w, group.processors) == (128.0, 60.0, 16)


def test_a_type_beside_a_file_replaces_the_power_only():
    threads = node_group({"name": "n", "count": 2, "processors": 32, "static_power_w": 0.0})
    group = changed_group(threads, {"name": "n", "type": "dell-r620"})
    assert (group.processors, group.static_power_w) == (32, 54.1)
    assert group.static_power_w + 32 * group.power_per_processor_w == pytest.approx(243)


def test_an_unknown_type_is_refused():
    with pytest.raises(InputError, match=r"there is no node type 'dell-r62' \(did you mean dell-r620\? see"):
        node_type("dell-r62")
