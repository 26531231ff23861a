"""The tables of docs/results.md from rows with and without the values of single windows."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from greenbatch.experiments.running.statistics import mean_interval


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    file = Path(__file__).parents[2] / "docs" / "results_tables.py"
    spec = importlib.util.spec_from_file_location("results_tables", file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def row(figure: dict[str, Any], *, agent: bool = True) -> dict[str, Any]:
    return {
        "trace": "T", "windows": "published", "scheduler": "A+none", "column": "A", "backfill": "none", "published": {},
        "agent": {"seeds": [0, 1, 2], "preset": "a", "knob": "", "trained_windows": "published"} if agent else None,
        "figures": {"avg_bounded_slowdown": figure},
    }  # fmt: skip


VALUES = [[3.0, 9.0, 5.0, 7.0], [4.0, 8.0, 5.0, 9.0], [2.0, 9.0, 6.0, 6.0]]
BY_SEED = {str(seed): sum(values) / 4 for seed, values in enumerate(VALUES)}


def test_intervals_are_computed_from_the_values_of_seeds_and_windows(tables: ModuleType) -> None:
    at = mean_interval(VALUES)
    stale = {"mean": 1.0, "low": 0.0, "high": 2.0, "by_seed": BY_SEED, "values": VALUES}
    assert tables.cell(row(stale), "avg_bounded_slowdown", 2) == f"{at.mean:.2f} [{at.low:.2f}, {at.high:.2f}]"
    rule = mean_interval(VALUES[0])
    alone = {"mean": 6.0, "low": None, "high": None, "values": VALUES[:1]}
    assert tables.cell(row(alone, agent=False), "avg_bounded_slowdown", 1) == f"6.0 [{rule.low:.1f}, {rule.high:.1f}]"


@pytest.mark.parametrize(
    ("bound", "told"),
    [(20.0, "(met, 3 of 3 seeds)"), (6.1, "(within noise, 2 of 3 seeds)"), (1.0, "(missed, 0 of 3 seeds)")],
)
def test_goals_take_the_interval_into_account(tables: ModuleType, bound: float, told: str) -> None:
    figure = {"mean": 6.08, "low": None, "high": None, "by_seed": BY_SEED, "values": VALUES}
    assert tables.judged(row(figure), "avg_bounded_slowdown", 2, 1.0, bound).endswith(told)


def test_older_rows_say_that_their_interval_is_over_the_seeds_alone(tables: ModuleType) -> None:
    old = row({"mean": 6.0, "low": 5.0, "high": 7.0, "by_seed": BY_SEED})
    assert tables.cell(old, "avg_bounded_slowdown", 1) == r"6.0 ± 1.0 \*"
    assert any("over the seeds alone" in line for line in tables.notes([old]))
    new = row({"mean": 6.0, "low": 5.0, "high": 7.0, "by_seed": BY_SEED, "values": VALUES})
    assert not any("over the seeds alone" in line and "half" in line for line in tables.notes([new]))


def test_the_tables_of_the_kept_rows_can_be_made(tables: ModuleType) -> None:
    import json

    rows = json.loads((tables.RESULTS / "gas-marl.json").read_text(encoding="utf-8"))
    text = "\n".join([*tables.goals(rows), *tables.renewable(rows)])
    assert text.count("| gas-marl-plus |") == 6
    assert "nan" not in text


def test_the_rows_of_the_protocol_fresh_say_who_has_seen_the_windows(tables: ModuleType) -> None:
    import json

    rows = json.loads((tables.RESULTS / "gas-marl-fresh.json").read_text(encoding="utf-8"))
    text = "\n".join(tables.fresh(rows))
    assert text.count(": in-sample: the trace itself") == 6
    assert text.count("authors' parameters (3 seeds)") == 2
    assert text.count("fitted to the trace (3 seeds)") == text.count("Lublin's model (3 seeds)") == 4
    assert "nan" not in text
