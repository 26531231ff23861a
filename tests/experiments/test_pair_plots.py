"""Reports on models that choose a job and a node say which pairs were scored how."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import greenbatch as gb
from greenbatch.experiments.reports.choices import Choice, choices_of
from greenbatch.experiments.reports.decisions import choice_tables
from greenbatch.experiments.reports.model_sections import decision_section
from greenbatch.experiments.reports.pair_plots import most_varied, pair_plot
from greenbatch.schedulers import scheduler

MODEL = "ineps-plus@default"


@pytest.fixture(scope="module")
def outcome() -> gb.Outcome:
    return gb.simulate("ineps/adaptability-memory", MODEL, jobs=30)


@pytest.fixture(scope="module")
def choices(outcome: gb.Outcome) -> list[Choice]:
    return choices_of(scheduler(MODEL), outcome)  # type: ignore[arg-type]


def test_candidates_are_the_pairs_that_can_be_chosen(outcome: gb.Outcome, choices: list[Choice]) -> None:
    placed = outcome.placements
    assert placed is not None
    started = [(int(c.job_id[c.row]), int(c.node[c.row])) for c in choices if c.node[c.row] >= 0]
    assert sorted(started) == sorted(zip(outcome.workload.job_id[placed.job], placed.node, strict=True))
    columns = ("job_id", "wait_s", "requested_time_s", "processors", "power_w", "node", "score", "probability")
    for c in choices:
        assert {len(getattr(c, name)) for name in columns} == {len(c.job_id)}
        assert c.score[c.row] == c.score.max()
        assert c.probability.sum() == pytest.approx(1.0)
        assert (c.probability > 0.0).all()
        assert len({*zip(c.job_id, c.node, strict=True)}) == len(c.job_id)
        assert ((c.job_id < 0) == (c.node < 0)).all()
        assert (c.job_id < 0).sum() <= 1


def test_tables_name_nodes_and_count_those_that_are_alike(outcome: gb.Outcome, choices: list[Choice]) -> None:
    names = outcome.cluster.node_names  # type: ignore[union-attr]
    first, *_ = choice_tables(choices, [{}], first_s=0.0, nodes=names)
    assert [row for row, _ in first.rows][:2] == [
        "job 0 on node10 or 1 more like it",
        "job 0 on node0 or 9 more like it",
    ]
    assert [header for header, *_ in first.columns] == ["Wait", "Requested", "Processors", "Power", "Probability"]
    assert [unit for _, unit, _ in first.columns] == ["s", "s", "", "kW", "%"]
    cells = first.rows[0][1]
    assert [cell.text for cell in cells[:4]] == ["0.00", "9.20", "8", "–"]  # noqa: RUF001
    assert [cell.remark for _, cells in first.rows for cell in cells].count("chosen") == 1


def test_the_picture_shows_the_pairs_of_one_decision(outcome: gb.Outcome, choices: list[Choice]) -> None:
    names = outcome.cluster.node_names  # type: ignore[union-attr]
    picture, shown = pair_plot(MODEL, choices, names), most_varied(choices)
    assert picture is not None
    drawn = picture.figure.axes[0].collections[0].get_array()
    assert drawn.shape == (len(set(shown.job_id[shown.node >= 0])), len(names))
    assert drawn.count() == (shown.node >= 0).sum()
    best = shown.score == shown.score.max()
    assert {names[node] for node in shown.node[best & (shown.node >= 0)]} >= (
        {names[n] for n in np.unique(np.nonzero(np.ma.filled(drawn, -1.0) == 1.0)[1])}
    )
    assert f"Decision {shown.number + 1:,}: {(shown.node >= 0).sum():,} pairs" in picture.caption


def test_the_report_of_a_comparison_has_them(tmp_path: Path, outcome: gb.Outcome) -> None:
    section = decision_section(MODEL, scheduler(MODEL), outcome)  # type: ignore[arg-type]
    assert "Scores of the pairs" in [picture.title for picture in section.pictures]
    assert "only the order of its scores counts" in section.text
    gb.compare("ineps/adaptability-memory", ["fcfs+easy", MODEL], jobs=30, starts=[0]).report(tmp_path / "report.html")
    assert "Scores of the pairs" in (tmp_path / "report.html").read_text()
