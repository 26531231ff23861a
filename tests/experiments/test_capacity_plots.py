"""Pictures of machines whose capacity follows the power: against plain sums over ticks, and in a report."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from chromium_pipe import Browser, texts_cut
from example_windows import example
from hypothesis import given
from hypothesis import strategies as st

import greenbatch as gb
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.experiments.reports.capacity_plots import (
    TICKS,
    Curves,
    capacity_keys,
    capacity_plots,
    dark_blocks,
    image_plots,
    image_span,
    suspended_spans,
)
from greenbatch.experiments.reports.gantt import lanes
from greenbatch.experiments.reports.report import report_comparison, write_report
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler

NAMES = ("qos+none", "fcfs+first-fit")


@cache
def powered(suspends: str = "power", ticks: int = 200) -> Scenario:
    """A short run in which the power falls in most ticks."""
    changes = {"workload.generator.ticks": ticks, "rules.pools.end_s": float(ticks), "rules.pools.suspends": suspends}
    return load_scenario("rare/10-intermittent80", overrides={**changes, "evaluation.draws": 2})


@cache
def outcomes(suspends: str = "power") -> dict[str, Outcome]:
    scenario = powered(suspends)
    return {
        name: simulate(scenario.workload, scenario.cluster, None, scenario.rules, scheduler(name)) for name in NAMES
    }


# ---------------------------------------------------------------- capacity and use


@pytest.mark.parametrize("suspends", ["power", "never"])
def test_curves_are_the_sums_of_every_tick(suspends: str) -> None:
    """Spans and levels begin at whole ticks, so a plain count in each tick is exact."""
    for outcome in outcomes(suspends).values():
        assert outcome.cluster.powered is not None
        levels, jobs = outcome.cluster.capacity_levels, outcome.workload
        job, start_s, end_s = outcome.spans
        edges = np.arange(201.0)
        curves = Curves.of(outcome, edges)
        used = [sum(int(jobs.processors[j]) for j, s, e in zip(job, start_s, end_s, strict=True) if s <= t < e)
                for t in range(200)]  # fmt: skip
        power = [levels.processors[np.searchsorted(levels.time_s, t, side="right") - 1] for t in range(200)]
        np.testing.assert_allclose(curves.used, used, atol=1e-9)
        np.testing.assert_allclose(curves.powered, power, atol=1e-9)
        if suspends == "power":
            assert (curves.used <= curves.powered + 1e-9).all(), "jobs are suspended when power falls"
        assert curves.suspended.any() == (suspends == "power")


def test_suspended_jobs_are_between_their_spans_or_left_at_the_end() -> None:
    outcome = outcomes()["fcfs+first-fit"]
    assert outcome.stays is not None
    job, start_s, end_s = suspended_spans(outcome)
    assert len(job) == outcome.stays.suspensions.sum() > 0
    assert (start_s <= end_s).all(), "a job may be resumed at once, when another one has ended"
    rows, begins, ends = outcome.spans
    for j in set(job.tolist()):
        mine = rows == j
        resumed = sorted(begins[mine])[1:]
        left = [outcome.last_s] if (job == j).sum() > len(resumed) else []
        assert sorted(end_s[job == j]) == [*resumed, *left]
        assert set(start_s[job == j]) <= set(ends[mine])


def test_the_legend_names_suspension_only_where_there_is_some() -> None:
    assert len(capacity_keys(outcomes())) == 2
    assert len(capacity_keys(outcomes("never"))) == 1
    told = [picture.caption for picture in capacity_plots(outcomes())]
    assert all(re.fullmatch(r"\d+% of the powered processors in use\. \d+ suspensions?, \d+ for lack of power\.", text)
               for text in told)  # fmt: skip


# ---------------------------------------------------------------- resource images


@st.composite
def machines(draw: st.DrawFn) -> tuple[list[tuple[float, float, float, float]], list[int], int]:
    """Blocks that do not overlap, and powered units in each of 6 ticks."""
    total = draw(st.integers(1, 9))
    taken = np.zeros((total, 6), bool)
    blocks = []
    for _ in range(draw(st.integers(0, 6))):
        start, first = draw(st.integers(0, 5)), draw(st.integers(0, total - 1))
        end, count = draw(st.integers(start + 1, 6)), draw(st.integers(1, total - first))
        if not taken[first : first + count, start:end].any():
            taken[first : first + count, start:end] = True
            blocks.append((float(start), float(end), float(first), float(count)))
    return blocks, draw(st.lists(st.integers(0, total), min_size=6, max_size=6)), total


@given(machines())
def test_what_has_no_power_lies_on_the_highest_free_units(
    given: tuple[list[tuple[float, float, float, float]], list[int], int],
) -> None:
    blocks, power, total = given
    cells = np.zeros((total, 6), int)
    for start, end, first, count in blocks:
        cells[int(first) : int(first + count), int(start) : int(end)] = 1
    placed = np.array(blocks).reshape(-1, 4)
    for start, end, first, count in dark_blocks(placed, np.arange(6.0), np.array(power), total, 0.0, 6.0):
        area = cells[int(first) : int(first + count), int(start) : int(end)]
        assert (area == 0).all(), "neither on a job nor twice"
        area[:] = 2
    for tick in range(6):
        column = cells[:, tick]
        dark, free = (column == 2).sum(), (column == 0).sum()
        assert dark == min(total - power[tick], dark + free)
        if dark and free:
            assert np.flatnonzero(column == 0).max() < np.flatnonzero(column == 2).min()


def test_jobs_lie_on_gpus_as_on_processors() -> None:
    outcome = outcomes()["fcfs+first-fit"]
    rows, blocks = lanes(outcome, total=10, requests=outcome.workload.gpus)
    cells = np.zeros((10, 200), int)
    for start, end, first, count in blocks.astype(int).tolist():
        cells[first : first + count, start:end] += 1
    assert cells.max() == 1
    job, start_s, end_s = outcome.spans
    assert cells.sum() == outcome.workload.gpus[job] @ (end_s - start_s)
    assert set(rows.tolist()) == set(job.tolist())


def test_all_images_show_the_same_ticks() -> None:
    begin, end = image_span(outcomes())
    assert end - begin == TICKS
    assert 0 <= begin <= end <= 200
    pictures = image_plots(outcomes(), panels=True)
    assert [picture.title for picture in pictures] == list(NAMES)
    for picture in pictures:
        processors, gpus = picture.figure.axes
        assert processors.get_xlim() == gpus.get_xlim()
        assert (processors.get_ylabel(), gpus.get_ylabel()) == ("processor", "GPU")
        assert "black without power" in picture.alt


# ---------------------------------------------------------------- where they stand


def test_an_image_ends_with_the_run() -> None:
    short = load_scenario("rare/10-intermittent80", overrides={
        "workload.generator.ticks": 20, "rules.pools.end_s": 20.0,
    })  # fmt: skip
    assert image_span({"fcfs+first-fit": gb.simulate(short, "fcfs+first-fit")}) == (0.0, 20.0)


def test_machines_without_changing_capacity_have_none() -> None:
    frame, plain = example()
    assert capacity_plots(plain) == image_plots(plain) == []
    assert frame.height
    full = load_scenario("rare/10", overrides={"workload.generator.ticks": 60, "rules.pools.end_s": 60.0})
    outcome = gb.simulate(full, "qos+none")
    assert capacity_plots({"qos+none": outcome}) == []
    with pytest.raises(InputError, match="requires a machine whose capacity changes"):
        outcome.plot("image")


@pytest.mark.usefixtures("undrawn")
def test_a_report_has_them_instead_of_schedules(tmp_path: Path) -> None:
    scenario = powered()
    made = gb.compare(scenario, NAMES)
    assert made.plot("capacity", of=NAMES[1]).axes
    report_comparison(tmp_path / "report.html", made, command="greenbatch compare", provenance={})
    text = (tmp_path / "report.html").read_text()
    for title in ("Capacity and use", "Resource images"):
        assert f">{title}<" in text
    assert ">Schedules<" not in text
    assert len(re.findall(r'<svg><title id="(?:capacity|image)-', text)) == 2 * len(NAMES)
    frame, plain = example()
    write_report(
        tmp_path / "plain.html", title="t", command="c", frame=frame, outcomes=plain, baseline=next(iter(plain))
    )
    other = (tmp_path / "plain.html").read_text()
    assert ">Schedules<" in other
    assert "Resource images" not in other


def test_the_page_of_eight_schedulers_is_short(chromium: Browser, tmp_path: Path) -> None:
    names = ("qos+none", "sjf+none", "hvf+none", "fcfs+none", "qos+first-fit", "sjf+first-fit", "hvf+first-fit",
             "fcfs+first-fit")  # fmt: skip
    report_comparison(
        tmp_path / "report.html", gb.compare(powered(), names), command="greenbatch compare", provenance={}
    )  # fmt: skip
    chromium.open((tmp_path / "report.html").as_uri(), 1280)
    assert chromium.evaluate("document.documentElement.scrollHeight") <= 7000
    assert texts_cut(chromium, ".panels svg") == []
