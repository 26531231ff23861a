"""Reports on models that choose a job and a node say which pairs were scored how."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

import greenbatch as gb
from greenbatch.experiments.reports.choices import Choice, choices_of, telling
from greenbatch.experiments.reports.decisions import choice_tables
from greenbatch.experiments.reports.drawing import Picture
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
    shown = choices[0]
    (first,) = choice_tables([shown], [{}], first_s=0.0, nodes=names)
    assert [row for row, _ in first.rows][:2] == [
        "job 0 on node10 or 1 more like it",
        "job 0 on node0 or 9 more like it",
    ]
    assert [header for header, *_ in first.columns] == ["Wait", "Requested", "Processors", "Probability"]
    assert [unit for _, unit, _ in first.columns] == ["s", "s", "", "%"]
    cells = first.rows[0][1]
    assert [cell.text for cell in cells[:3]] == ["0", "9.20", "8"]
    assert float(cells[3].text) == pytest.approx(100 * shown.probability[shown.alike[0]].sum(), abs=0.05)
    assert "The probabilities of candidates that are alike are added up." in first.notes
    assert [cell.remark for _, cells in first.rows for cell in cells].count("chosen") == 1


def test_the_picture_shows_the_pairs_of_one_decision(outcome: gb.Outcome, choices: list[Choice]) -> None:
    names = outcome.cluster.node_names  # type: ignore[union-attr]
    picture, shown = pair_plot(MODEL, choices, names), most_varied(choices)
    assert picture is not None
    drawn = picture.figure.axes[0].collections[0].get_array()
    assert drawn.shape == (len(set(shown.job_id[shown.node >= 0])), len(names))
    assert drawn.count() == (shown.node >= 0).sum()
    jobs = list(dict.fromkeys(shown.job_id[shown.node >= 0].tolist()))
    assert [text.get_text() for text in picture.figure.axes[0].get_yticklabels()] == [f"job {job}" for job in jobs]
    for job, node, rank in zip(shown.job_id, shown.node, rankdata(shown.score) / len(shown.score), strict=True):
        assert node < 0 or drawn[jobs.index(job), node] == rank
    assert ring_of(picture) == (shown.node[shown.row] + 0.5, jobs.index(shown.job_id[shown.row]) + 0.5)
    assert f"Decision {shown.number + 1:,}: {(shown.node >= 0).sum():,} pairs" in picture.caption


def ring_of(picture: Picture) -> tuple[float, float]:
    """The place of the ring: node and row of the job, from 0.5."""
    (ring,) = picture.figure.axes[0].lines
    return float(ring.get_xdata()[0]), float(ring.get_ydata()[0])


def made_up(scores: list[float], row: int, *, nodes: int = 1) -> Choice:
    """A decision with some pairs of jobs 10, 11, ... with nodes."""
    count, raised = len(scores), np.exp(scores)
    number = np.arange(count)
    return Choice(
        number=0, now_s=0.0, waiting=count, free_processors=8, job_id=10 + number // nodes, wait_s=np.ones(count),
        requested_time_s=np.full(count, 5000.0), processors=np.ones(count), power_w=np.zeros(count),
        node=number % nodes, score=np.array(scores), probability=raised / raised.sum(), row=row,
        delay_probability=np.ones(1), delay=0,
    )  # fmt: skip


def test_a_picture_of_many_jobs_keeps_the_best_and_the_chosen_one() -> None:
    scores = [0.1 * k for k in range(30)]
    for row in (29, 0):
        picture = pair_plot(MODEL, [made_up(scores, row)], ["n"])
        assert picture is not None
        shown = [text.get_text() for text in picture.figure.axes[0].get_yticklabels()]
        best = [*range(24, 40)] if row == 29 else [10, *range(25, 40)]
        assert shown == [f"job {job}" for job in best]
        assert ring_of(picture) == (0.5, best.index(10 + row) + 0.5)
        assert picture.caption.endswith("Ring: chosen. 14 more jobs, whose best scores are lower, are not shown.")


def test_a_picture_of_few_jobs_is_high_enough_and_has_no_color_bar() -> None:
    picture = pair_plot(MODEL, [made_up([0.1, 0.2], 1, nodes=2)], ["a", "b"])
    assert picture is not None
    assert picture.figure.get_figheight() >= 1.3
    assert len(picture.figure.axes) == 1


def test_nodes_that_are_alike_are_no_close_call() -> None:
    tie, close = made_up([2.0, 2.0, 0.0], 0, nodes=3), made_up([1.0, 0.8], 0)
    assert tie.alike == [[0, 1], [2]]
    assert tie.margin == pytest.approx(tie.probability[0] - tie.probability[2])
    assert made_up([1.0, 1.0], 1, nodes=2).alike == [[1, 0]]
    assert made_up([1.0, 1.0], 1, nodes=2).margin == 1.0
    assert dict(telling([tie, close]))["the closest call"] is close


def test_shares_of_other_candidates_are_not_negative_and_times_are_legible() -> None:
    """Six candidates are shown, the seventh has next to no probability."""
    table = choice_tables([made_up([9.0, 8.0, 7.0, 6.0, 5.0, 4.0, -90.0], 5)], [{}], first_s=0.0, nodes=["n"])[0]
    assert len(table.rows) == 6
    assert table.notes == ("1 more candidates share 0.0%.",)
    assert [cell.text for cell in table.rows[0][1][:3]] == ["0.000278", "1.39", "1"]


def test_the_report_of_a_comparison_has_them(tmp_path: Path, outcome: gb.Outcome) -> None:
    section = decision_section(MODEL, scheduler(MODEL), outcome)  # type: ignore[arg-type]
    assert [picture.title for picture in section.pictures] == ["Scores of the pairs"]
    assert "only the order of its scores counts" in section.text
    gb.compare("ineps/adaptability-memory", ["fcfs+easy", MODEL], jobs=30, starts=[0]).report(tmp_path / "report.html")
    assert "Scores of the pairs" in (tmp_path / "report.html").read_text()
