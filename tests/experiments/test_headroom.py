"""Bounds of windows, and how much is left to schedulers: stored bounds, tables, and the kept results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import greenbatch as gb
from greenbatch.errors import InputError
from greenbatch.experiments.papers import headroom as module
from greenbatch.experiments.papers.cells import reproduction_tables
from greenbatch.experiments.papers.headroom import headroom, row_headroom, stored_bounds
from greenbatch.experiments.papers.protocols import PROTOCOLS
from greenbatch.experiments.papers.reproduce import BOUND, cells, compute
from greenbatch.experiments.reports.bounds import bounds_table
from greenbatch.experiments.running.bounds import bound_rows, window_bounds
from greenbatch.learning.runs.windows import HELD_OUT_JOBS, HELD_OUT_STARTS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two windows of a scenario ``s``: bounds 0.6 and 0.8 at makespans 1 and 1.5, 0.7 and 0.9 in the other."""
    rows = [
        {"scenario": "s", "start": start, "jobs": 10, "reference": "base+easy", "reference_makespan_s": 100.0,
         "makespan_ratio": ratio, "renewable_utilization": 0.6 + more + 0.4 * (ratio - 1), "brown_kwh": 1.0}
        for start, more in ((0, 0.0), (50, 0.1)) for ratio in (1.5, 1.0)
    ]  # fmt: skip
    file = tmp_path / "bounds.json"
    file.write_text(json.dumps({"commands": [], "rows": rows}))
    monkeypatch.setattr(module, "stored_bounds", lambda: stored_bounds(file))


def row(ratios: Any, utilizations: Any, **more: Any) -> dict[str, Any]:
    figures = {"makespan_ratio": {"values": ratios}, "renewable_utilization": {"values": utilizations}}
    return {"starts": [0, 50], "jobs": 10, "figures": figures, **more}


@pytest.mark.usefixtures("stored")
def test_a_schedule_is_compared_with_the_next_longer_stored_makespan() -> None:
    found = headroom("s", [0, 50], 10, [[100.0, 120.0]], [[0.5, 0.6]])
    assert found is not None
    assert (found.bound, found.left) == (pytest.approx((0.6 + 0.9) / 2), pytest.approx(0.75 - 0.55))
    seeds = row_headroom(row([[1.0, 1.0], [0.9, 1.5]], [[0.5, 0.5], [0.5, 0.7]]), "s", "base+easy")
    assert seeds is not None
    assert (seeds.bound, seeds.left) == (pytest.approx((0.6 + 0.7 + 0.6 + 0.9) / 4), pytest.approx(0.7 - 0.55))


@pytest.mark.usefixtures("stored")
def test_what_has_no_bound_has_no_gap() -> None:
    assert headroom("s", [0, 50], 10, [[100.0, 151.0]], [[0.5, 0.6]]) is None  # longer than all that is stored
    assert headroom("s", [0, 60], 10, [[100.0, 100.0]], [[0.5, 0.6]]) is None
    assert headroom("s", [0, 50], 11, [[100.0, 100.0]], [[0.5, 0.6]]) is None
    assert headroom("s", [0, 50], 10, [[100.0, None]], [[0.5, 0.6]]) is None
    assert row_headroom(row([[1.0, 1.0]], [[0.5, 0.5]]), "s", "other+easy") is None
    assert row_headroom({"figures": {"makespan_ratio": {"mean": 1.0}}}, "s", "base+easy") is None


def test_reproduced_tables_show_the_bound_beside_the_utilization() -> None:
    key = "Jann", "FCFS", "green"
    figures = {(*key, "renewable_utilization"): 0.6, (*key, "avg_bounded_slowdown"): 9.0, (*key, BOUND): 0.75}
    made = cells("gas-marl", figures, ["Jann"])
    assert {cell["metric"]: cell["bound"] for cell in made if "bound" in cell} == {"renewable_utilization": 0.75}
    tables = {table.title: table for table in reproduction_tables(made)}
    (green,) = [table for title, table in tables.items() if "Table 4" in title]
    assert [header for header, *_ in green.columns] == ["Published", "Ours", "Bound", "Left", "Verdict"]
    rows = {name: [cell.text for cell in shown] for name, shown in green.rows}
    assert rows["FCFS+green"][1:4] == ["0.6000", "0.7500", "0.1500"]
    assert rows["F2+green"][2:4] == ["–"] * 2  # noqa: RUF001 - as printed
    for title, table in tables.items():
        if "Table 3" in title:
            assert [header for header, *_ in table.columns] == ["Published", "Ours", "Verdict"]


def test_the_stored_bounds_cover_the_windows_of_the_results_and_rise_with_the_makespan() -> None:
    bounds = stored_bounds()
    rows = json.loads((ROOT / "docs/results/gas-marl.json").read_text(encoding="utf-8"))
    starts = {start for row in rows for start in row.get("starts", ())}
    assert {start for _, start, _ in bounds} == starts >= set(HELD_OUT_STARTS)
    assert len(bounds) == 3 * 20
    for (_, _, jobs), window in bounds.items():
        values = list(window.utilization.values())
        assert jobs == HELD_OUT_JOBS
        assert list(window.utilization) == sorted(window.utilization)
        assert values == sorted(values)
        assert 0.4 < values[0] < values[-1] <= 1.0


TIGHT = {"gas-marl/lublin-256": (0.956, 0.970), "gas-marl/cirne": (0.803, 0.875), "gas-marl/jann": (0.854, 0.895)}


@pytest.mark.parametrize("scenario", TIGHT)
def test_the_bounds_of_the_published_windows_are_at_least_as_tight_as_earlier_ones(scenario: str) -> None:
    each = [w.utilization for (name, start, _), w in stored_bounds().items()
            if name == scenario and start not in HELD_OUT_STARTS]  # fmt: skip
    assert len(each) == 10
    for ratio, most in zip((1.25, 1.5), TIGHT[scenario], strict=True):
        assert np.mean([window[ratio] for window in each]) <= most


def test_no_kept_result_beats_its_bound() -> None:
    rows = json.loads((ROOT / "docs/results/gas-marl.json").read_text(encoding="utf-8"))
    checked = 0
    for each in rows:
        figures = each["figures"]
        ratios, values = (figures.get(m, {}).get("values") for m in ("makespan_ratio", "renewable_utilization"))
        if ratios is None or values is None:
            continue
        scenario = {"Lublin-256": "gas-marl/lublin-256"}.get(each["trace"], f"gas-marl/{each['trace'].lower()}")
        for lengths, reached in zip(ratios, values, strict=True):
            for start, ratio, value in zip(each["starts"], lengths, reached, strict=True):
                bound = stored_bounds()[scenario, start, each["jobs"]].at(ratio)
                assert not value > bound, f"{scenario}, {each['scheduler']} from {start}: {value} > {bound}"
                checked += np.isfinite(bound)
    assert checked > 1000


def test_the_tables_of_the_papers_state_the_bound(greenbatch_data: Callable[[str], Path]) -> None:
    """One real window, whose stored bound is computed again."""
    greenbatch_data("swf/Jann.swf.gz")
    protocol = PROTOCOLS["gas-marl"]
    few = replace(protocol, rows=tuple(row for row in protocol.rows if row.policy == "f2"))
    made = cells("gas-marl", compute(few, traces=["Jann"], starts=[919]), ["Jann"])
    found = {cell["scheduler"]: cell for cell in made if cell.get("bound") and cell["backfill"] == "easy-schedgym"}
    window = stored_bounds()["gas-marl/jann", 919, 1024]
    assert found["F2"]["bound"] == window.utilization[1.0] > found["F2"]["ours"]
    scenario = gb.load_scenario("gas-marl/jann")
    one, longer = window_bounds(scenario, [919], 1024, [1.0, 1.25])
    assert one.reference_makespan_s == window.reference_makespan_s
    for bound in (one, longer):
        assert bound.renewable_utilization == pytest.approx(window.utilization[bound.makespan_ratio], abs=2e-3)


# ---------------------------------------------------------------- bounds of windows


def test_bounds_of_windows_are_rows_and_a_table() -> None:
    scenario = gb.load_scenario("default")
    told: list[tuple[str, int, int]] = []
    found = window_bounds(scenario, [0, 400], 40, [1.0, 1.5], progress=lambda *step: told.append(step))
    assert [(bound.start, bound.makespan_ratio) for bound in found] == [(0, 1.0), (0, 1.5), (400, 1.0), (400, 1.5)]
    assert told == [("bounds of jobs 0 to 39", 0, 2), ("bounds of jobs 400 to 439", 1, 2)]
    assert found[0].renewable_utilization <= found[1].renewable_utilization
    assert bound_rows(found)[0]["reference"] == "f2+easy-schedgym"
    table = bounds_table(found)
    mean = (found[1].renewable_utilization + found[3].renewable_utilization) / 2
    assert table.rows[1][0] == "at most 1.5 x"
    assert table.rows[1][1][0].text == f"{mean:.4f}"
    assert "2 windows of 40 jobs" in table.title


@pytest.mark.parametrize(
    ("scenario", "ratios", "words"),
    [("default", [], "numbers > 0"), ("default", [-1.0], "numbers > 0"), ("default", [0.2], "no schedule ends before"),
     ("small-nodes", [1.0], "pool of processors"), ("rlscheduler-like", [1.0], "needs a power supply")],
)  # fmt: skip
def test_windows_without_a_bound_are_refused(scenario: str, ratios: list[float], words: str) -> None:
    default = gb.load_scenario("default")
    if scenario == "small-nodes":
        default = replace(default, cluster=gb.Cluster.of_nodes(groups=default.cluster.groups))
    if scenario == "rlscheduler-like":
        default = replace(default, site=None)
    with pytest.raises(InputError, match=words):
        window_bounds(default, [0], 30, ratios)
