"""The protocol ``fresh``: what is trained on what, in which order, and its results, on small jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from greenbatch.cli import main
from greenbatch.experiments.papers import fresh, fresh_results
from greenbatch.experiments.papers.fresh import COURSES, FRESH, IN_MODEL, OTHERS, OWN, Lessons, fresh_cells
from greenbatch.experiments.papers.fresh_tables import fresh_tables
from greenbatch.experiments.papers.studies import Budget, plan_of, train_missing
from greenbatch.learning.search.planner import begin_of
from greenbatch.scenarios import load_scenario
from greenbatch.scenarios.scenario import scenario_path
from greenbatch.scenarios.toml import read_toml
from tiny_study import SCENARIO, SITE


def scenarios_of(course: str) -> list[str]:
    """The scenarios that a course, and those that it begins with, are trained on."""
    own = COURSES[course]
    beside = own.overrides.get("training.search.beside", [])
    return [own.scenario, *beside, *(scenarios_of(own.first) if own.first else [])]


def test_nothing_of_a_test_trace_is_trained_on() -> None:
    """Every scenario has generated jobs; leaving a model out leaves it out of what is begun with, too."""
    models = {"Lublin-256": "lublin", "Cirne": "cirne", "Jann": "jann"}
    for name, course in COURSES.items():
        seen = [read_toml(scenario_path(scenario))[0] for scenario in scenarios_of(name)]
        generated = {each["workload"]["generator"]["model"] for each in seen}
        years = {year for each in seen for source in each["site"]["sources"] for year in source["columns"]}
        assert years == {"2019", "2020", "2021"}
        for trace, kind in course.tests.items():
            (tested,) = [read_toml(scenario_path(FRESH.traces[trace]))[0]]
            assert not years & {year for source in tested["site"]["sources"] for year in source["columns"]}
            assert (models[trace] in generated) == (kind in {OWN, IN_MODEL}), (name, trace)
            assert kind != OTHERS or len(generated) == 2


def test_a_training_finds_the_one_it_begins_with() -> None:
    place = Path("somewhere")
    cells = fresh_cells(place, courses=["cirne", "Without-Lublin-256"], seeds=(4, 5))
    assert [(cell.trace, cell.seed) for cell in cells] == [
        (name, seed) for seed in (4, 5) for name in ("Lublin-256", "Cirne", "without-Lublin-256")
    ]
    begins = [cell.overrides.get("training.search.begin") for cell in cells]
    folders = [str(place / cell.folder) for cell in cells]
    assert begins == [None, folders[0], None, None, folders[3], None]
    assert len({str(cell.folder) for cell in fresh_cells(place)}) == 18
    assert not any(set(folder) & set(",+:@ ") for folder in folders)


FEW = 4
"""Random windows."""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two courses on small jobs, tested on others."""
    for seed, name in enumerate(("train", "test")):
        text = SCENARIO.format(name=name, seed=seed, processors=16, site=SITE)
        (tmp_path / f"{name}.toml").write_text(text)
    some = {
        name: replace(COURSES[name], scenario=str(tmp_path / "train.toml"),
                      tests={trace: kind for trace, kind in COURSES[name].tests.items() if trace != "Jann"})
        for name in ("Lublin-256", "Cirne")
    }  # fmt: skip
    study = replace(FRESH, traces=dict.fromkeys(("Lublin-256", "Cirne"), str(tmp_path / "test.toml")))
    monkeypatch.setattr(fresh_results, "COUNT", FEW)
    for module in (fresh, fresh_results):
        monkeypatch.setattr(module, "COURSES", some)
        monkeypatch.setattr(module, "FRESH", study)
    return tmp_path / "out"


SMALL = {
    "training.windows": 2, "training.jobs": 30, "training.search.workloads": 2, "training.search.years": 1,
    "training.search.population": 4,
}  # fmt: skip
BUDGET = Budget(epochs=2, threads=1, overrides=SMALL)


def test_agents_stand_beside_in_sample_models_with_goals_and_windows_beyond(tiny: Path) -> None:
    cells = fresh_cells(tiny, seeds=(0, 1))
    train_missing(Lessons(), cells[:3], tiny, BUDGET)
    assert [cell.trace for cell in cells] == ["Lublin-256", "Cirne"] * 2
    refined = plan_of(cells[1], load_scenario(Lessons().traces["Cirne"]), BUDGET)
    assert begin_of(refined).any(), "at the weights of the other training"
    made = fresh_results.fresh_results(tiny, traces=["Lublin-256", "Cirne"], seeds=(0, 1))
    assert [(result.trace, result.windows, len(result.starts)) for result in made] == [
        (trace, *kind) for trace in ("Lublin-256", "Cirne") for kind in (("published", 2), ("random", FEW))
    ]
    rows = [row for result in made for row in result.rows]
    shipped, on_lublin, own = (
        next(row for row in rows if row["trace"] == "Cirne" and row["reason"] == kind)
        for kind in (fresh_results.IN_SAMPLE, fresh.ELSEWHERE, IN_MODEL)
    )
    assert shipped["agent"] is None
    assert (on_lublin["agent"]["trained_on"], on_lublin["agent"]["seeds"]) == ("Lublin-256", [0, 1])
    assert (own["agent"]["seeds"], own["agent"]["not_trained"]) == ([0], [1])
    tables = fresh_tables(rows)
    assert len(tables) == len(fresh.GOALS)
    lines = dict(tables[0].rows)
    assert len(lines) == 2 * 2 + 3
    shown = lines[f"Cirne: {fresh.ELSEWHERE} (2 seeds)"]
    mine = [row for row in rows if row["scheduler"] == on_lublin["scheduler"] and row["trace"] == "Cirne"]
    green = np.array(mine[0]["figures"]["renewable_utilization"]["values"])
    ratios = np.array(mine[1]["figures"]["makespan_ratio"]["values"])
    assert green.shape == (2, 2)
    assert shown[0].text == f"{100 * green.mean():.1f}"
    assert ratios.shape == (2, FEW)
    assert shown[-1].text == f"{100 * (ratios > 1.65).mean():.1f}"
    assert shown[-2].text == f"{ratios.mean():.3f}"


@pytest.mark.usefixtures("undrawn")
def test_the_command_writes_rows_and_resumes(
    tiny: Path, capsys: pytest.CaptureFixture[str], greenbatch_data: Callable[[str], Path]
) -> None:  # fmt: skip
    words = ["reproduce", "gas-marl", "--windows", "fresh", "--seeds", "0", "--traces", "lublin-256"]
    more = ["--epochs", "2", "--threads", "1", "--set", *(f"{key}={value}" for key, value in SMALL.items())]
    assert main([*words, "--train", "--out", str(tiny), *more]) == 0
    assert "At most 1.5 times the makespan" in " ".join(capsys.readouterr().out.split())
    assert {"rows.json", "table.md", "report.html"} <= {file.name for file in (tiny / "results").iterdir()}
    assert main([*words, "--trained", str(tiny), "--json"]) == 0
    assert '"trained_on": "Lublin-256"' in capsys.readouterr().out
    assert main([*words[:-2], "--traces", "cirne", "--trained", str(tiny)]) == 0  # begins with the one of Lublin-256
    shown = " ".join(capsys.readouterr().out.split())
    lacking = "trained on its model, fitted to the trace: not trained for seed 0."
    for bound in ("1.5", "1.25"):
        assert f"Cirne, published windows, GAS-MARL fresh:makespan_bound={bound}, {lacking}" in shown
    assert "Lublin-256, published windows" not in shown
    assert "Lublin-256: goal" not in shown


@pytest.mark.parametrize(
    ("words", "problem"),
    [(["--eta", "1"], "--eta: does not apply to --windows fresh"),
     (["--presets", "gas-marl"], "--presets: is gas-marl"),
     (["--traces", "KTH"], "--traces: 'KTH' is not known")],
)  # fmt: skip
def test_wrong_flags_are_one_line(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "x"
    assert main(["reproduce", "gas-marl", "--train", "--windows", "fresh", "--out", str(out), *words]) == 2
    line = capsys.readouterr().err
    assert problem in line
    assert line.count("\n") == 1
    assert not out.exists()


def test_a_folder_without_trainings_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "gas-marl", "--windows", "fresh", "--trained", str(tmp_path)]) == 2
    assert "--trained: contains no finished training" in capsys.readouterr().err
