"""The study ``cocorl``: limits from agents without one, whether they are kept, and the published ranges beside ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from greenbatch.errors import InputError
from greenbatch.experiments.papers.cocorl import AIM, COST, FREE, SETTINGS, SHARE, STUDY, limited, training_changes
from greenbatch.experiments.papers.cocorl_limits import accrued, limits_of
from greenbatch.experiments.papers.cocorl_report import all_lines, all_tables, load_plot, write_cocorl
from greenbatch.experiments.papers.cocorl_results import UNTRAINED, cocorl_results
from greenbatch.experiments.papers.cocorl_tables import ACCRUED, claims, promise
from greenbatch.experiments.papers.reproduce import published
from greenbatch.experiments.papers.studies import Budget, Selection, cells_of, select, train_missing

TINY = Budget(epochs=1, threads=1, overrides={
    "training.windows": 2, "training.jobs": 25, "training.passes": 1,
    "training.validation": {"windows": 1, "jobs": 10, "every": 1},
})  # fmt: skip
NAMES = ("synthetic-80", "synthetic-100")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Selection, Path]:
    """Both agents at two loads, after one epoch, those without a limit with two seeds."""
    place = tmp_path_factory.mktemp("cocorl")
    which = select(STUDY, traces=NAMES, presets=(FREE, "cocorl-plus"), windows="published", seeds=(0, 1))
    with pytest.raises(InputError, match=r"has no finished training of cocorl-plus-unlimited on synthetic-80"):
        limits_of(which, place)
    free, ours = (
        replace(which, presets=(name,), seeds=seeds) for name, seeds in zip(which.presets, ((0, 1), (0,)), strict=True)
    )
    train_missing(STUDY, cells_of(STUDY, free), place, TINY, changes=training_changes)
    study = limited(limits_of(which, place))
    train_missing(study, cells_of(study, ours), place, TINY, changes=training_changes)
    return which, place


def test_limits_are_a_share_of_what_is_accrued_without_one(trained: tuple[Selection, Path]) -> None:
    which, place = trained
    costs = [accrued(place / cell.folder) for cell in cells_of(STUDY, replace(which, presets=(FREE,)))]
    limits = limits_of(which, place)
    assert limits["synthetic-80"] == pytest.approx(AIM * SHARE * sum(costs[:2]) / 2, rel=5e-3)
    assert limits["synthetic-100"] > limits["synthetic-80"]
    from greenbatch.models.model import MODEL, load_model

    cell = next(cell for cell in cells_of(STUDY, which) if cell.agent.preset == "cocorl-plus")
    settings = load_model(place / cell.folder / MODEL).record.training.settings
    assert settings.constraints[COST].at_most == limits[cell.trace]


def test_the_tables_and_the_report(trained: tuple[Selection, Path], tmp_path: Path) -> None:
    which, place = trained
    made = cocorl_results(which, place, starts=(0,), workers=1)
    names = [row["scheduler"] for row in made[0].rows]
    assert names[-3:] == [UNTRAINED, "CoCoRL plus without a limit+none", "CoCoRL plus+none"]
    tables = all_tables(made)
    assert [table.title for table in tables[:4]] == [
        "Limits on the accrued cost", "The chapter's claims", SETTINGS[NAMES[0]].about, SETTINGS[NAMES[1]].about,
    ]  # fmt: skip
    assert len(tables[0].rows) == 2
    rows = [row for result in made for row in result.rows]
    picture = load_plot(rows, ACCRUED, "synthetic")
    assert picture is not None
    assert "CoCoRL plus+none" in picture.svg
    lines = all_lines(made)
    assert ["not trained for seed 1" in line for line in lines] == [False, False, True, True]
    write_cocorl(made, tmp_path, ("greenbatch", "reproduce", "cocorl"))
    page = (tmp_path / "report.html").read_text()
    assert "Limits on the accrued cost" in page
    assert "synthetic: by load" in page
    assert "Multiplier of accrued_cost" in page
    assert "accrued_cost over its bound" in page


def rows_with(
    costs: list[list[float]], free: list[float], rules: dict[str, tuple[float, float]]
) -> list[dict[str, Any]]:
    """Rows of a setting: costs (seeds, episodes) of ours, costs of the free agent, rule -> (value, cost)."""

    def row(name: str, preset: str | None, value: list[list[float]], cost: list[list[float]]) -> dict[str, Any]:
        figures = {}
        for metric, each in (("value_ratio", value), (COST, cost)):
            mean = sum(map(sum, each)) / sum(map(len, each))
            figures[metric] = {"mean": mean, "low": mean, "high": mean, "values": each}
        agent = None if preset is None else {"preset": preset, "knob": ""}
        return {"trace": "synthetic-100", "scheduler": name, "agent": agent, "figures": figures, "starts": []}

    count = len(free)
    made = [row(name, None, [[value] * count], [[cost] * count]) for name, (value, cost) in rules.items()]
    made.append(row("free", FREE, [[0.9] * count], [free]))
    made.append(row("ours", "cocorl-plus", [[0.7] * count] * len(costs), costs))
    return made


def test_a_limit_is_kept_if_the_interval_on_the_same_episodes_says_so() -> None:
    free = [110.0 * k for k in range(1, 13)]
    below = [[0.6 * cost + 3 * seed for cost in free] for seed in range(3)]
    rules = {"qos+first-fit": (0.8, 900.0), "sjf+first-fit": (0.6, 400.0), "fcfs+first-fit": (0.65, 420.0)}
    kept = promise(rows_with(below, free, rules))
    assert kept is not None
    assert kept.limit == pytest.approx(7 / 11 * sum(free) / 12)
    assert kept.kept
    assert kept.cost.mean < kept.limit
    assert (kept.rival, kept.over.mean) == ("fcfs+first-fit", pytest.approx(0.05))
    assert kept.beyond == sum(cost > kept.limit for each in below for cost in each) / 36
    above = promise(rows_with([[0.65 * cost for cost in free]] * 3, free, {"qos+first-fit": (0.8, 900.0)}))
    assert above is not None
    assert (above.kept, above.text) == (False, "no")
    assert above.rival == ""


def test_a_mean_below_the_limit_is_not_enough() -> None:
    free = [100.0] * 12
    unsure = promise(rows_with([[40.0, 80.0] * 6, [60.0] * 12, [80.0, 45.0] * 6], free, {}))
    assert unsure is not None
    assert unsure.cost.mean < unsure.limit
    assert (unsure.kept, unsure.text) == (False, "in the mean")


def test_every_published_range_is_of_a_setting_and_a_metric_of_the_study() -> None:
    printed = published("cocorl")
    assert len(printed) == 15
    for line in printed:
        assert all(f"{line['workload']}-{load}" in SETTINGS for load in line["loads"].split())
        assert line["unit"] in {"%", "points", "x"}


def test_ours_over_the_best_and_the_weakest_rule() -> None:
    rules = {"qos+none": (0.5, 100.0), "sjf+none": (0.4, 30.0), "hvf+none": (0.35, 90.0), "fcfs+none": (0.6, 80.0)}
    rows = [{**row, "trace": "sdsc-blue-100"} for row in rows_with([[50.0] * 3], [100.0] * 3, rules)]
    (claim,) = claims(rows)
    assert (claim.printed["claim"], claim.setting) == ("6.9-100", "sdsc-blue-100")
    assert (claim.best, claim.weakest) == (pytest.approx(100 * (0.7 / 0.6 - 1)), pytest.approx(100.0))
