"""Scenario files that are wrong: their error messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenbatch.errors import InputError
from greenbatch.scenarios import read_scenario, shipped_names
from greenbatch.scenarios.schema import ScenarioFile
from greenbatch.scenarios.toml import write_toml

VALID = """\
name = "ours"
[workload]
file = "trace.swf"
[workload.power]
kind = "per-processor"
[cluster]
processors = 64
[site]
kind = "series"
[[site.sources]]
name = "solar"
kind = "pv"
file = "sun.csv"
columns = ["ghi"]
unit = "W/m2"
time_kind = "elapsed"
time_column = "t"
area_m2 = 200
[rules]
commitment = "sticky"
[evaluation]
starts = [0, 10]
schedulers = ["fcfs+easy", "sjf+easy"]
"""

CASES = [
    # what is changed, into what, line, what the message says
    ('name = "ours"\n', "", None, "name: is missing (add it)"),
    ('name = "ours"', "name = 3", 1, "name: is 3 (give a string in quotes"),
    ('name = "ours"', 'name = ""', 1, "name: is ''"),
    ("[workload]\n", "[workloads]\n", 2, "workloads: unknown key (did you mean workload?)"),
    ('file = "trace.swf"', 'file = "a"\ndataset = "b"', 2, "workload: found file and dataset (give exactly one of"),
    ('file = "trace.swf"', 'file = "a\\u0000b"', 3, "workload.file"),
    ('file = "trace.swf"', 'file = "a"\nlimit = 0', 4, "workload.limit: is 0 (it must be greater than or equal to 1)"),
    ('file = "trace.swf"', 'file = "a"\nlimit = 1.5', 4, "workload.limit: is 1.5 (give a whole number"),
    ('file = "trace.swf"', 'file = "a"\nlimit = true', 4, "workload.limit: is true (give a whole number"),
    ('file = "trace.swf"', 'file = "a"\nreader = "mine"', 4, "workload.reader: is 'mine' (it must be 'default'"),
    ('file = "trace.swf"', "[workload.generator]\nmodel = 'other'", 4, "generator.model: is 'other' (use one of"),
    ('kind = "per-processor"', 'kind = "solar"', 5, "workload.power.kind: is 'solar' (use one of 'none', 'trace'"),
    ('kind = "per-processor"', "seed = 1", 4, "workload.power.kind: is missing"),
    ('kind = "per-processor"', 'kind = "per-processor"\nlow = 1', 6, "power.low: unknown key (did you mean low_w?)"),
    ('kind = "per-processor"', 'kind = "per-processor"\nseed = -1', 6, "workload.power.seed: is -1"),
    ('kind = "per-processor"', 'kind = "list"', 4, "power: found none of them (give exactly one of file, dataset)"),
    ("processors = 64", "processors = 0", 7, "cluster.processors"),
    ("processors = 64", 'processors = "many"', 7, "is 'many' (it must be 'trace', or give a whole number"),
    ("processors = 64", "processors = 99999999999999999999", 7, "cluster.processors"),
    ("processors = 64", "idle_power_per_machine_w = nan", 7, "cluster.idle_power_per_machine_w: is nan (give a finite"),
    ("processors = 64", "idle_power_per_machine_w = -1", 7, "cluster.idle_power_per_machine_w: is -1"),
    ("processors = 64", "processors_per_maschine = 4", 7, "did you mean processors_per_machine?"),
    ('kind = "series"\n', "", 8, "site.kind: is missing"),
    ('kind = "series"', 'kind = "series"\narea_m2 = 9', 10, "site.area_m2: is no key of this kind of site"),
    ('kind = "series"', 'kind = "coal"', 9, "site.kind: is 'coal' (use one of"),
    ('kind = "series"', 'kind = "series"\nrepeat = "yes"', 10, "site.repeat: is 'yes' (give true or false)"),
    ('kind = "series"', 'kind = "series"\nforecast_horizon_s = inf', 10, "site.forecast_horizon_s"),
    ('kind = "series"', 'kind = "series"\npue = 0.9', 10, "site.pue: is 0.9 (it must be greater than or equal to 1"),
    ('kind = "series"', 'kind = "series"\npue = nan', 10, "site.pue: is nan (give a finite number"),
    ('kind = "series"', 'kind = "series"\nbase_load_w = -5', 10, "site.base_load_w: is -5"),
    ('kind = "series"', 'kind = "series"\nbase_load = 5', 10, "site.base_load: unknown key (did you mean base_load_w?"),
    ('kind = "series"', 'kind = "series"\npue = "low"', 10, "site.pue: is 'low' (give a number, without quotes)"),
    ('kind = "series"', 'kind = "series"\npue.kind = "air"', 10, "site.pue.kind: is 'air' (use one of 'weather'"),
    ('kind = "series"', 'kind = "series"\npue = { values = [1, 2] }', 10, "site.pue.kind: is missing"),
    ('kind = "pv"', 'kind = "lamp"', 12, "site.sources[0].kind: is 'lamp' (use one of"),
    ('kind = "pv"', "kind = 'pv'\nefficiency = '20 %'", 13, "sources[0].efficiency: is '20 %' (give a number"),
    ('kind = "pv"', 'kind = "pv"\nrated_w = 20', 13, "site.sources[0].rated_w: is no key of this kind"),
    ('columns = ["ghi"]', 'columns = "ghi"', 14, "site.sources[0].columns: is 'ghi' (give an array"),
    ('columns = ["ghi"]', "columns = []", 14, "site.sources[0].columns: is []"),
    ('columns = ["ghi"]', "columns = [1]", 14, "site.sources[0].columns[0]: is 1 (give a string"),
    ('unit = "W/m2"\n', "", 10, "site.sources[0].unit: is missing"),
    ('time_kind = "elapsed"', 'time_kind = "lunar"', 16, "site.sources[0].time_kind"),
    ('commitment = "sticky"', 'commitment = "loose"', 20, "rules.commitment: is 'loose' (it must be 'sticky'"),
    ('commitment = "sticky"', "tick_s = -5", 20, "rules.tick_s: is -5 (give 0 for none, or 1 to 604800 s)"),
    ('commitment = "sticky"', "comitment = 'sticky'", 20, "did you mean commitment?"),
    ("starts = [0, 10]", "starts = [0, -10]", 22, "evaluation.starts[1]: is -10"),
    ("starts = [0, 10]", "starts = []", 22, "evaluation.starts: is []"),
    ("starts = [0, 10]", "starts = 5", 22, "evaluation.starts: is 5 (give an array"),
    ("starts = [0, 10]", "windows = 0", 22, "evaluation.windows: is 0"),
    ("starts = [0, 10]", "baseline = 'f1+easy'", 21, "evaluation: the baseline 'f1+easy' is not among the schedulers"),
    ("starts = [0, 10]", "cut = 3", 22, "evaluation.cut: is 3 (make it a table)"),
    ("starts = [0, 10]", "cut.first_jobs = -3", 22, "evaluation.cut.first_jobs: is -3"),
]  # fmt: skip


def scenario(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "s.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(("old", "new", "line", "message"), CASES)
def test_a_wrong_key_is_named_with_its_line_and_a_fix(tmp_path, old, new, line, message):
    assert VALID.count(old) == 1
    file = scenario(tmp_path, VALID.replace(old, new))
    with pytest.raises(InputError) as error:
        read_scenario(file)
    text = str(error.value)
    assert message in text
    assert text.startswith(f"{file}, line {line}: " if line else f"{file}: ")
    assert text.endswith(")"), "no fix"
    assert "\n" not in text


def test_all_problems_come_at_once(tmp_path):
    text = VALID.replace("processors = 64", "processors = 0").replace("sticky", "loose").replace("[0, 10]", "[]")
    with pytest.raises(InputError, match=r"3 problems: line 7: .*; line 20: .*; line 22: "):
        read_scenario(scenario(tmp_path, text))


def test_two_sources_of_one_name_are_refused(tmp_path):
    tail = VALID[VALID.index("[[site") : VALID.index("[rules]")]
    with pytest.raises(InputError, match="'solar' occurs twice"):
        read_scenario(scenario(tmp_path, VALID.replace("[rules]", tail + "[rules]")))


def test_the_valid_file_is_valid_and_defaults_are_filled_in(tmp_path):
    section, file, _ = read_scenario(scenario(tmp_path, VALID))
    assert file == tmp_path / "s.toml"
    assert section.cluster.idle_power_per_machine_w == 50.0
    assert section.rules.model_dump() == {
        "commitment": "sticky", "event_rule": "per_event", "overrun": "kill", "ties": "arrival_first", "tick_s": 0.0,
        "power_cap_w": 0.0,
        "backfill_depth": 0, "dvfs_level": 0, "predictor": "requested", "dependencies": "ignore", "pools": None,
    }  # fmt: skip


@pytest.mark.parametrize("name", shipped_names())
def test_a_resolved_scenario_reads_the_same(tmp_path, name):
    section, _, _ = read_scenario(name)
    assert section.name == name
    text = write_toml(section.model_dump(mode="json", exclude_none=True), lambda _: "")
    assert read_scenario(scenario(tmp_path, text))[0] == section


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("cluster.processors", 0, "cluster.processors: is 0"),
        ("cluster.processors.more", 1, "is not a key of a table"),
        ("nothing.here", 1, "nothing: unknown key"),
    ],
)
def test_overrides_are_checked_too(tmp_path, key, value, message):
    with pytest.raises(InputError, match=message):
        read_scenario(scenario(tmp_path, VALID), overrides={key: value})


def test_overrides_replace_add_and_remove(tmp_path):
    changes = {"cluster.processors": 8, "rules.tick_s": 60.0, "evaluation.starts": None}
    section, _, _ = read_scenario(scenario(tmp_path, VALID), overrides=changes)
    assert section.cluster.processors == 8
    assert section.rules.model_dump()["tick_s"] == 60.0
    assert section.evaluation.starts is None


def test_every_key_of_the_schema_has_a_type():
    def properties(node):
        yield from node.get("properties", {}).items()

    schema = ScenarioFile.model_json_schema()
    for section in [schema, *schema["$defs"].values()]:
        assert section.get("additionalProperties") is False
        for key, value in properties(section):
            assert {"type", "$ref", "anyOf", "oneOf", "const", "enum"} & set(value), key


@pytest.mark.parametrize("name", ["nope", "gas-marl", "gas-marl/lublin", "", "rlscheduler/../plain"])
def test_unknown_scenarios_are_refused(name):
    with pytest.raises(InputError, match="there is no scenario"):
        read_scenario(name)
