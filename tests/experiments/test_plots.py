"""Pictures: the numbers behind them, and SVG that is deterministic, named, themable and thin."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import polars
import pytest
from example_windows import day_site, example, fcfs, one_window, some_jobs
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.cluster import Cluster
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.experiments.papers.cells import published_plots
from greenbatch.experiments.reports.columns import MAIN
from greenbatch.experiments.reports.drawing import COLORS, INK, PANEL_IN, Picture, color_of, slug, standalone, wrapped
from greenbatch.experiments.reports.gantt import gantt_plots, lanes
from greenbatch.experiments.reports.power_plots import power_plots, power_span
from greenbatch.experiments.reports.queue_plots import queue_length, queue_plot
from greenbatch.experiments.reports.spread import box_plot, box_plots
from greenbatch.experiments.reports.tradeoff import tradeoff_plot
from greenbatch.experiments.running.frames import tidy
from greenbatch.workload import Workload


@pytest.fixture(scope="module")
def data() -> tuple[polars.DataFrame, dict[str, Outcome]]:
    return example(windows=3)


@pytest.fixture(scope="module")
def pictures(data: tuple[polars.DataFrame, dict[str, Outcome]]) -> list[Picture]:
    frame, outcomes = data
    trade = tradeoff_plot(frame, "fcfs+none")
    assert trade is not None
    return [trade, queue_plot(outcomes), *box_plots(frame, MAIN[:4]), *power_plots(outcomes), *gantt_plots(outcomes)]


def test_every_picture_is_valid_named_described_and_free_of_addresses(pictures: list[Picture]) -> None:
    assert len({picture.name for picture in pictures}) == len(pictures) == 12
    for picture in pictures:
        root = ElementTree.fromstring(picture.svg)  # noqa: S314 - our own text
        assert root.tag == "svg"
        assert root.find("title").text == picture.alt
        assert "://" not in picture.svg
        assert "<script" not in picture.svg
        assert "<?xml" not in picture.svg
        assert all(e.get("id", picture.name).startswith(picture.name) for e in root.iter())
        assert float(root.get("viewBox").split()[2]) == pytest.approx(
            72 * (PANEL_IN if picture.name.startswith("box") else 4)
        )
        assert INK in picture.svg
        assert not re.search(rf"(?<!, ){INK}", picture.svg), "ink that a page cannot turn"
        assert picture.title
        assert picture.caption
        assert len(picture.alt) > 40
        assert len(picture.svg) < 200_000
        assert ElementTree.fromstring(standalone(picture)).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - ours


def test_the_same_data_give_the_same_bytes_whatever_the_users_settings(
    data: tuple[polars.DataFrame, dict[str, Outcome]], pictures: list[Picture]
) -> None:
    import matplotlib

    frame, outcomes = data
    with matplotlib.rc_context({"font.size": 20, "axes.grid": False, "svg.fonttype": "path", "savefig.dpi": 300}):
        again = [tradeoff_plot(frame, "fcfs+none"), queue_plot(outcomes)]
    assert [p.svg for p in again if p] == [p.svg for p in pictures[:2]]


def test_pictures_exist_only_where_there_is_something_to_draw() -> None:
    frame, outcomes = example(windows=1, power=False)
    assert power_plots(outcomes) == []
    assert box_plots(frame, MAIN) == []
    frame, _ = example(windows=2, power=False)
    assert [p.name for p in box_plots(frame, MAIN[:4])] == ["box-avg-bounded-slowdown", "box-makespan-ratio"]


def test_power_pictures_share_hours_scale_and_tell_the_brown_energy() -> None:
    outcomes = one_window(site=day_site())
    start, end = power_span(outcomes)
    assert end - start == 48 * 3600
    assert start == min(o.workload.submit_s.min() for o in outcomes.values())
    long = {name: fcfs(some_jobs(1, 700), site=day_site(), name=name) for name in ("a", "b")}
    first = long["a"].workload.submit_s.min()
    last = min(o.end_s.max() for o in long.values()) - 48 * 3600

    def work(since: float) -> float:
        """Processor-seconds of all schedules in 48 hours, job by job."""
        overlaps = (
            (np.minimum(o.end_s, since + 48 * 3600) - np.maximum(o.start_s, since)).clip(0) @ o.workload.processors
            for o in long.values()
        )
        return float(sum(overlaps))

    busiest = max(np.arange(first, last, 86_400), key=work)
    assert power_span(long)[0] == busiest != first
    # One job of 100 W on an idle power of 400 W under a supply of nothing: 0.5 kW * 1 h.
    dark = day_site()
    jobs = Workload.from_columns(
        "one", {"submit_s": [0.0], "run_time_s": [3600.0], "processors": [1], "power_w": [100.0]}
    )
    night = {"only": fcfs(jobs, site=type(dark)(name="dark", step_s=3600.0, sources_w={"sun": np.zeros(80)}))}
    assert power_plots(night)[0].caption == "0.5 kWh from the grid, 0% renewable."


def test_box_plots_take_logarithms_of_wide_ranges_only() -> None:
    def frame(values: list[float]) -> polars.DataFrame:
        return tidy([(str(k), {"x": {"avg_bounded_slowdown": v}}) for k, v in enumerate(values)])

    assert "(log scale)" in box_plot(frame([1.0, 20.0, 300.0]), MAIN[0]).svg
    assert "(log scale)" not in box_plot(frame([10.0, 20.0, 30.0]), MAIN[0]).svg
    assert "x 20" in box_plot(frame([10.0, 20.0, 30.0]), MAIN[0]).alt


def test_colors_repeat_and_ids_are_plain() -> None:
    assert color_of(len(COLORS)) == color_of(0)
    assert slug("F2 + Green/π") == "f2-green"
    assert slug("π") == "x"


def test_long_names_break_at_their_own_signs() -> None:
    assert wrapped("fcfs+easy", 20) == "fcfs+easy"
    assert wrapped("cheapest-start:psi=0.3:horizon=24+none", 20) == "cheapest-start:\npsi=0.3:horizon=24\n+none"
    assert wrapped("a" * 30 + "+b", 20) == "a" * 30 + "\n+b"


def test_queue_length_by_hand() -> None:
    # Waiting: one job during [0, 10), two during [5, 10), none later.
    jobs = Workload.from_columns("two", {"submit_s": [0.0, 5.0], "run_time_s": [1.0, 1.0], "processors": [1, 1]})
    outcome = Outcome(
        scheduler="x", workload=jobs, cluster=Cluster.pooled(2), site=None, rules=Rules(),
        start_s=np.array([10.0, 10.0]), end_s=np.array([11.0, 11.0]), promised_start_s=np.full(2, np.nan),
        profile_time_s=np.array([10.0, 11.0]), profile_load_w=np.zeros(2), decisions=2, killed=0,
    )  # fmt: skip
    assert queue_length(outcome, np.array([0.0, 5.0, 10.0, 20.0])).tolist() == [1.0, 2.0, 0.0]
    assert queue_length(outcome, np.array([0.0, 20.0])).tolist() == [15 / 20]


@given(st.integers(0, 50), st.integers(2, 40))
@settings(max_examples=20, deadline=None)
def test_queue_length_integrates_to_the_total_wait(seed: int, steps: int) -> None:
    outcome = fcfs(some_jobs(seed, 40))
    edges = np.linspace(0.0, outcome.start_s.max(), steps)
    waited = float(np.sum(queue_length(outcome, edges) * np.diff(edges)))
    assert waited == pytest.approx(float(np.sum(outcome.start_s - outcome.workload.submit_s)), abs=1e-3)


@given(st.integers(0, 200), st.integers(1, 60))
@settings(max_examples=25, deadline=None)
def test_lanes_never_overlap_and_hold_every_job_in_full(seed: int, count: int) -> None:
    outcome = fcfs(some_jobs(seed, count))
    rows, blocks = lanes(outcome)
    width = np.bincount(rows, weights=blocks[:, 3], minlength=count)
    assert width.tolist() == outcome.workload.processors.tolist()
    assert blocks[:, 2].min() >= 0
    assert (blocks[:, 2] + blocks[:, 3]).max() <= outcome.cluster.processors
    for k in range(len(blocks)):
        start, end, low, wide = blocks[k]
        other = blocks[k + 1 :]
        together = (other[:, 0] < end) & (start < other[:, 1])
        assert not np.any(together & (other[:, 2] < low + wide) & (low < other[:, 2] + other[:, 3]))


def test_lanes_take_the_lowest_numbered_free_processors() -> None:
    # Job 1 takes 0-1, job 2 takes 2, job 1 leaves, job 3 takes 0-1 and 3: two blocks.
    jobs = Workload.from_columns(
        "three", {"submit_s": [0.0, 0.0, 0.0], "run_time_s": [10.0, 30.0, 5.0], "processors": [2, 1, 3]}
    )
    outcome = Outcome(
        scheduler="x", workload=jobs, cluster=Cluster.pooled(4), site=None, rules=Rules(),
        start_s=np.array([0.0, 0.0, 10.0]), end_s=np.array([10.0, 30.0, 15.0]), promised_start_s=np.full(3, np.nan),
        profile_time_s=np.array([0.0, 30.0]), profile_load_w=np.zeros(2), decisions=3, killed=0,
    )  # fmt: skip
    rows, blocks = lanes(outcome)
    assert rows.tolist() == [0, 1, 2, 2]
    assert blocks.tolist() == [[0, 10, 0, 2], [0, 30, 2, 1], [10, 15, 0, 2], [10, 15, 3, 1]]


def test_gantt_charts_are_thinned_and_say_so() -> None:
    outcomes = one_window()
    whole, thin = gantt_plots(outcomes), gantt_plots(outcomes, limit=40)
    assert "all" in whole[0].caption
    assert re.search(r"the 40 largest of \d+ blocks drawn, \d\d\.\d% of the processor time", thin[0].caption)
    assert len(thin[0].svg) < len(whole[0].svg)
    assert "150 jobs on 64 processors" in whole[0].alt
    # A job's later start cannot move an earlier one: the first starts lie where they lay.
    rows, blocks = lanes(outcomes["fcfs+none"], jobs=30)
    all_rows, all_blocks = lanes(outcomes["fcfs+none"])
    assert np.array_equal(rows, all_rows[: len(rows)])
    assert np.array_equal(blocks, all_blocks[: len(blocks)])


def test_published_and_ours_stand_side_by_side() -> None:
    cells = [
        {"trace": "cirne", "scheduler": "f2", "backfill": "green", "metric": "AvgBSLD", "published": 17.9, "ours": 17.9,
         "digits": 1, "verdict": "equal"},
        {"trace": "cirne", "scheduler": "lptpn", "backfill": "", "metric": "AvgBSLD", "published": 352.1, "ours": 91.0,
         "digits": 1, "verdict": "better"},
        {"trace": "cirne", "scheduler": "ga", "backfill": "", "metric": "ReUtil", "published": 0.7, "ours": None,
         "digits": 1, "verdict": "not computed"},
    ]  # fmt: skip
    slow, green = published_plots(cells)
    assert slow.caption == "1 of 2 computed figures equal the published ones to every printed digit."
    for part in ("cirne · f2+green", "cirne · lptpn", "published", "ours"):
        assert part in slow.svg
    assert "1 is a learned column, not computed here." in green.alt


def test_lanes_of_a_machine_with_a_billion_processors() -> None:
    from greenbatch.experiments.reports.gantt import _lowest, _merged

    taken, free = _lowest([(0, 3), (10, 1_000_000_000)], 5)
    assert taken == [(0, 3), (10, 2)]
    assert free == [(12, 999_999_998)]
    assert _merged(free + taken) == [(0, 3), (10, 1_000_000_000)]
    assert _lowest([(4, 2)], 2) == ([(4, 2)], [])


def test_long_names_in_the_picture_of_published_figures_have_room_for_their_lines() -> None:
    cells = [
        {"table": "Fig. 5", "trace": "Convergence as worded at once", "backfill": "first-fit", "scheduler": name,
         "metric": "energy_reduction", "published": None, "ours": 1.0, "verdict": "not in the paper"}
        for name in ("smallest-high_mem as worded by the paper", "first-high_cores as worded by the paper")
    ]  # fmt: skip
    (picture,) = published_plots(cells)
    axes = picture.figure.axes[0]
    (upper, lower), labels = axes.get_yticks(), [tick.get_text() for tick in axes.get_yticklabels()]
    lines = [label.count("\n") + 1 for label in labels]
    assert min(lines) > 1
    assert upper - lower == sum(lines) / 2
    assert axes.get_xlabel() == "energy, reduction [%]"
