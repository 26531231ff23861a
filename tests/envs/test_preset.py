"""Presets from files: what cannot be is refused in one line with its place, before compiled code sees it."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest

from greenbatch.errors import InputError
from greenbatch.presets.preset import SETTINGS, SHIPPED, check, preset, shipped_names


def changed(place: str, value: Any) -> dict[str, Any]:
    """GAS-MARL's preset as plain values, one of them another."""
    raw: Any = copy.deepcopy(preset("gas-marl").model_dump(mode="json"))
    table, keys = raw, [int(key) if key.isdigit() else key for key in place.split("__")]
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = value
    return raw


COLUMN = "observation__queue__columns__0"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        *[(f"{COLUMN}__scale", value) for value in (0, -1.0, math.nan, math.inf, 1e-300, "jobs")],
        *[(f"{COLUMN}__{bound}", value) for bound in ("floor", "ceiling") for value in (math.nan, math.inf, -1e300)],
        (f"{COLUMN}__floor", 2.0),
        (f"{COLUMN}__log", "perhaps"),
        ("observation__running__columns__3__log", True),
        *[(f"observation__{table}__rows", rows) for table in ("queue", "running", "supply") for rows in (-1, 10**9)],
        ("observation__queue__rows", 0),
        ("observation__queue__columns", [{"feature": "wait"}] * 257),
        ("observation__padded_width", 10**6),
        *[("action__delays__6__amount", value) for value in (-1, 1e12, math.inf, math.nan)],
        ("action__delays", [{"kind": "none"}] * 1025),
        ("action__delays", []),
        ("action__longest_hold_s", math.inf),
        *[("reward__terms__avg_bounded_slowdown", value) for value in (math.nan, -math.inf, 1e300)],
        ("reward__terms", {}),
        ("name", "../elsewhere"),
        ("name", ""),
    ],
)
def test_values_that_cannot_be_are_refused(place: str, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        check(changed(place, value), file="mine.toml")
    text = str(caught.value)
    assert text.startswith("mine.toml: ")
    assert "\n" not in text
    assert text.endswith(")")  # the fix


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("sticky", value) for value in (2.0, -1.0, 0.5, math.nan)],
        *[("tick_s", value) for value in (-1.0, 1e-9, 1e30, math.inf)],
        ("threshold_j", -1.0),
        *[(name, 7.0) for name in ("wake_at_supply", "backfill", "ranking", "twins", "processors", "idle_w")],
        *[(f"supply_{name}", 1.0) for name in ("step_s", "slots", "origin_s", "repeat")],
        ("forecast_slots", 0.0),
        ("threshold_j", 1e16),
    ],
)
def test_the_engines_arrays_cannot_be_outgrown_by_settings(name: str, value: float) -> None:
    with pytest.raises(InputError) as caught:
        check(changed("settings", {"sticky": 1.0, name: value}), file="mine.toml")
    assert str(caught.value).startswith(f"mine.toml: settings.{name}: is ")


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_settings_that_presets_may_have(name: str) -> None:
    for value in (0.0, SETTINGS[name].lowest, SETTINGS[name].highest):
        assert check(changed("settings", {name: value})).settings[name] == value


def test_a_refusal_names_file_line_field_and_fix(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    text = (SHIPPED / "gas-marl.toml").read_text()
    file.write_text("tick = 3\n" + text)
    with pytest.raises(InputError) as caught:
        preset(file)
    assert str(caught.value).startswith(f"{file}, line 1: tick: unknown key (use one of name, description, needs_site")
    file.write_text(text.replace("sticky = 1 ", "stiky = 1 "))
    line = file.read_text().splitlines().index("[settings]") + 2
    with pytest.raises(InputError) as caught:
        preset(file)
    assert str(caught.value).startswith(
        f"{file}, line {line}: settings.stiky: is not a setting that a preset may override (did you mean sticky?"
    )


@pytest.mark.parametrize("name", shipped_names())
def test_a_preset_survives_its_record(name: str) -> None:
    made = preset(name)
    assert check(made.model_dump(mode="json")) == made


def test_extends_merges_presets(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'extends = "gas-marl"\nname = "mine"\n[reward.terms]\navg_bounded_slowdown = -0.5\n[training]\npasses = 3\n'
    )
    mine, base = preset(file), preset("gas-marl")
    assert mine.name == "mine"
    assert mine.observation == base.observation
    assert mine.reward.terms == {"renewable_utilization": 1.0, "avg_bounded_slowdown": -0.5}
    assert mine.training == {**base.training, "passes": 3}


def test_an_extended_file_is_in_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('extends = "gas-marl"\nname = "base"\n[training]\npasses = 5\n')
    (tmp_path / "mine.toml").write_text('extends = "base.toml"\nname = "mine"\n')
    assert preset(tmp_path / "mine.toml").training["passes"] == 5
    (tmp_path / "base.toml").write_text('extends = "gas-marl"\nname = "base"\nbackfil = "none"\n')
    with pytest.raises(InputError, match=r"base\.toml, line 3: backfil"):
        preset(tmp_path / "mine.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('extends = "gas"', "there is no preset 'gas' (did you mean gas-marl"),
        ("extends = 3", "mine.toml, line 1: extends: is 3 (name another preset)"),
        ('extends = "mine.toml"', "extends itself"),
        ('extends = "gas-marl"\n[training]\n[reward]\nterms = {speed = 1.0}', "speed"),
    ],
)
def test_what_cannot_be_extended_raises_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        preset("mine.toml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
