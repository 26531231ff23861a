"""Where a result comes from."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version

from greenbatch import data_catalog, provenance


def record(**changes):
    return provenance.provenance(**{"scenario": {"name": "x"}, "inputs": {"b": "2", "a": "1"}, **changes})


def test_only_run_depends_on_the_command_line():
    one, other = record(command=["greenbatch", "a"]), record(command=["greenbatch", "b"])
    assert one.pop("run") != other.pop("run")
    assert json.dumps(one) == json.dumps(other)
    assert list(one["inputs"]) == ["a", "b"]


def test_versions_are_those_of_the_installed_packages(monkeypatch):
    monkeypatch.setattr(provenance, "_PACKAGES", ("no-such-package", "numpy"))
    found = provenance.versions()
    assert found["numpy"] == version("numpy")
    assert "no-such-package" not in found


def test_any_source_file_changes_the_hash(tmp_path, monkeypatch):
    package = tmp_path / "greenbatch"
    shutil.copytree(provenance.Path(provenance.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(provenance, "__file__", str(package / "provenance.py"))
    hashes = set()
    for change in (None, "engine/rules.py", "scenarios/shipped/plain.toml"):
        if change:
            with (package / change).open("a") as file:
                file.write("\n# changed\n")
        hashes.add(provenance.source_sha256.__wrapped__())
    assert len(hashes) == 3
    assert provenance.source_sha256() in hashes


def test_files_of_rules_count_as_inputs(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n")
    found = provenance.rule_files([f"{file}:a+easy", f"{file}:b", "fcfs+easy"])
    assert found == {"mine.py": data_catalog.sha256(file)}


def test_differences_name_the_keys_of_nested_tables() -> None:
    old = {"site": {"kind": "series", "repeat": True}, "jobs": [1, 2], "seed": None, "gone": 1}
    new = {"site": {"kind": "series", "repeat": False}, "jobs": [1, 3], "extra": {"a": 1}}
    assert provenance.differences(old, new) == {
        "site.repeat": (True, False), "jobs": ([1, 2], [1, 3]), "gone": (1, None), "extra": (None, {"a": 1}),
    }  # fmt: skip
    assert provenance.differences(old, old) == {}
    assert provenance.differences({"a": {"b": 1}}, {"a": 1}) == {"a": ({"b": 1}, 1)}
