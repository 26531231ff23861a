"""Representations of objects: short at a prompt, a small table in a notebook, everything escaped."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import greenbatch as gb
from greenbatch.display import Strong, draws_text, html_table, span_text, windows_text
from greenbatch.experiments.reports.sweeps import sweep_columns, sweep_table
from greenbatch.models.find import SHIPPED
from greenbatch.models.model import load_model

HOSTILE = "<script>alert('&')</script>"
TAGS = {"table", "caption", "thead", "tbody", "tr", "th", "td", "br", "strong", "p"}


@cache
def shown() -> dict[str, Any]:
    scenario = gb.load_scenario("default")
    comparison = gb.compare(scenario, ["fcfs+easy", "f2+easy"], starts=range(5000, 10_000, 1000), jobs=100)
    return {
        "Scenario": scenario, "Workload": scenario.workload, "Site": scenario.site,
        "Outcome": comparison.example["f2+easy"], "Comparison": comparison,
        "Model": load_model(SHIPPED / "gas-marl-plus" / "default"),
    }  # fmt: skip


HOSTILE_FIELD = {"Outcome": "scheduler", "Comparison": "baseline", "Model": "folder"}
"""Field that a user's text may come from, where it is not ``name``."""
KINDS = ("Scenario", "Workload", "Site", "Outcome", "Comparison", "Model")


class Tags(HTMLParser):
    """Collects tags and texts, and checks that tags are closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_one_short_line_that_says_what_it_is(kind: str) -> None:
    text = repr(shown()[kind])
    assert text.startswith(f"<{kind} ")
    assert text.endswith(">")
    assert len(text) <= 200
    assert "\n" not in text
    assert "array(" not in text


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("Scenario", ["default", "jobs 10,000", "processors 256", "span 115.8 d", "load 80%", "solar, wind",
                      "10 of 1,024 jobs", "fcfs+easy"]),
        ("Workload", ["jobs 10,000", "processors 1 to 256 each", "span 115.8 d", "power known for 100%"]),
        ("Site", ["synthetic", "solar 7.61 kW, wind 2.5 kW", "8,760 steps of 1 h, 365 d, repeated", "forecast 1 d"]),
        ("Outcome", ["f2+easy", "jobs 100"]),
        ("Comparison", ["default", "5 of 100 jobs", "baseline fcfs+easy", "fcfs+easy, f2+easy"]),
        ("Model", ["gas-marl-plus", "backfilling none", "weights 206"]),
    ],
)  # fmt: skip
def test_the_facts(kind: str, facts: list[str]) -> None:
    for fact in facts:
        assert fact in repr(shown()[kind])


def test_an_outcome_shows_its_metrics() -> None:
    outcome = shown()["Outcome"]
    metrics = gb.evaluate(outcome)
    text = repr(outcome)
    assert f"makespan {metrics['makespan_s'] / 86_400:.2f} d" in text
    assert f"mean wait {metrics['avg_wait_s'] / 3600:.2f} h" in text
    assert f"mean bounded slowdown {metrics['avg_bounded_slowdown']:,.4g}" in text


@pytest.mark.parametrize("kind", KINDS)
def test_the_notebook_shows_a_table_and_escapes_everything(kind: str) -> None:
    thing = shown()[kind]
    if kind == "Comparison":
        frame = thing.frame.with_columns(
            scheduler=thing.frame["scheduler"].str.replace("fcfs+easy", HOSTILE, literal=True)
        )
        hostile = replace(thing, frame=frame, baseline=HOSTILE)
    else:
        hostile = replace(thing, **{HOSTILE_FIELD.get(kind, "name"): HOSTILE})
    page = Tags(hostile._repr_html_())
    assert page.tags[0] == "table"
    assert page.tags.count("tr") > 2
    assert set(page.tags) <= TAGS
    assert HOSTILE in "".join(page.texts)


def test_a_comparison_shows_its_means_in_the_notebook() -> None:
    html = shown()["Comparison"]._repr_html_()
    texts = Tags(html).texts
    assert {"Scheduler", "Bounded slowdown", "fcfs+easy", "f2+easy"} <= set(texts)
    assert any(re.fullmatch(r"\[[\d.,]+, [\d.,]+\]", text) for text in texts)
    assert "<strong>" in html


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_equals_only_itself(kind: str) -> None:
    """Comparing by value would compare arrays, whose truth value is ambiguous."""
    thing, twin = shown()[kind], replace(shown()[kind])
    assert thing == thing  # noqa: PLR0124
    assert thing != twin
    assert thing in [twin, thing]
    assert len({thing, twin, thing}) == 2


def test_what_is_long_is_cut_in_the_text_alone() -> None:
    scenario = replace(shown()["Scenario"], name="long " * 100)
    assert len(repr(scenario)) == 200
    assert repr(scenario).endswith("…>")
    assert ("long " * 100).strip() in scenario._repr_html_()


def test_what_is_empty_or_has_no_site_shows_itself() -> None:
    nothing = shown()["Workload"].take(np.arange(0))
    assert repr(nothing) == "<Workload lublin-256 | jobs 0>"
    assert Tags(nothing._repr_html_()).tags.count("tr") == 1
    bare = replace(shown()["Scenario"], site=None, workload=nothing)
    assert "site none" in repr(bare)
    assert "load" not in repr(bare)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.5, "59.5 s"), (60, "1 min"), (5400, "1.5 h"), (86_400, "1 d"), (1e10, "115,740.7 d"),
     (-7200, "-2 h"), (-90, "-1.5 min"), (-2, "-2 s")],
)  # fmt: skip
def test_spans_of_time(seconds: float, text: str) -> None:
    assert span_text(seconds) == text


def test_a_strong_text_keeps_its_lines() -> None:
    html = html_table("t", ["a", "b"], [("x", Strong("1\n[<0>]"))], ["note & note"])
    assert "<strong>1</strong><br>[&lt;0&gt;]" in html
    assert "<p>note &amp; note</p>" in html


# --- frames ------------------------------------------------------------------------------------------------------


def test_frames_and_pandas_hold_the_same() -> None:
    import pandas

    outcome, comparison = shown()["Outcome"], shown()["Comparison"]
    frame = outcome.frame()
    assert frame.columns == [
        "job_id", "submit_s", "start_s", "end_s", "wait_s", "processors", "power_w", "energy_j",
    ]  # fmt: skip
    assert frame["energy_j"].sum() / 3.6e6 == pytest.approx(outcome.nodes()["dynamic_kwh"].sum(), rel=1e-12)
    assert frame["wait_s"].to_list() == (outcome.start_s - outcome.workload.submit_s).tolist()
    for polars_frame, pandas_frame in (
        (frame, outcome.to_pandas()),
        (comparison.frame, comparison.to_pandas()),
        (comparison.table().frame(), comparison.table().to_pandas()),
        (outcome.workload.frame(), outcome.workload.to_pandas()),
    ):
        assert isinstance(pandas_frame, pandas.DataFrame)
        assert list(pandas_frame.columns) == polars_frame.columns
        for name in polars_frame.columns:
            np.testing.assert_array_equal(polars_frame[name].to_numpy(), pandas_frame[name].to_numpy(), err_msg=name)


def test_pandas_needs_no_pyarrow_and_its_absence_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert len(shown()["Comparison"].to_pandas()) == shown()["Comparison"].frame.height
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(gb.InputError, match=r'pandas is not installed \(pip install "greenbatch\[notebook\]"\)'):
        shown()["Comparison"].to_pandas()


# --- table, pictures, report -------------------------------------------------------------------------------------


def test_the_table_is_text_and_a_frame() -> None:
    comparison = shown()["Comparison"]
    table = comparison.table()
    text = str(table)
    assert text.splitlines()[0] == "default: 5 windows of 100 jobs; makespan relative to fcfs+easy"
    assert "slowdown" in text
    assert "\x1b" not in text
    assert "[" in text
    frame = table.frame()
    assert frame.columns == ["scheduler", "metric", "mean", "low", "high", "windows"]
    values = comparison.frame.filter(metric="avg_wait_s", scheduler="f2+easy")["value"]
    row = frame.filter(scheduler="f2+easy", metric="avg_wait_s").row(0, named=True)
    assert row["mean"] == pytest.approx(values.mean())
    assert row["low"] <= row["mean"] <= row["high"]


PARTS = {
    "tradeoff": ("collections", 2),
    "spread": ("patches", 2),
    "power": ("collections", 2),
    "queue": ("lines", 2),
    "schedule": ("patches", 4),
}
"""Kind -> what is drawn: a point, box or line per scheduler; renewable and brown power; four run-time classes."""


@pytest.mark.parametrize("kind", PARTS)
def test_pictures_of_a_comparison_show_in_a_notebook(kind: str) -> None:
    from matplotlib.figure import Figure

    figure = shown()["Comparison"].plot(kind)
    assert isinstance(figure, Figure)
    drawn, count = PARTS[kind]
    assert len(getattr(figure.axes[0], drawn)) == count
    svg = figure._repr_svg_()
    assert svg.startswith("<svg")
    assert svg.rstrip().endswith("</svg>")


def test_a_picture_of_one_metric_or_one_scheduler() -> None:
    comparison = shown()["Comparison"]
    assert "Mean wait" in comparison.plot("spread", of="avg_wait_s").axes[0].get_xlabel()
    both = [comparison.plot("power", of=name)._repr_svg_() for name in comparison.schedulers]
    assert both[0] != both[1]
    assert comparison.plot("power")._repr_svg_().count("<path") == both[0].count("<path")


@pytest.mark.parametrize("kind", ["power", "queue", "schedule"])
def test_pictures_of_an_outcome(kind: str) -> None:
    assert shown()["Outcome"].plot(kind)._repr_svg_().startswith("<svg")


def test_pictures_that_cannot_be_drawn_are_one_line() -> None:
    comparison = shown()["Comparison"]
    one = replace(comparison, frame=comparison.frame.filter(window="5000"))
    dark = replace(shown()["Outcome"], site=None)
    for draw, message in (
        (
            lambda: comparison.plot("pie"),
            "plot: there is no picture 'pie' (use tradeoff, radar, spread, power, queue, schedule, capacity, image)",
        ),
        (lambda: comparison.plot("power", of="f9"), "plot: there is no 'power' of 'f9' (use fcfs+easy, f2+easy)"),
        (lambda: comparison.plot("queue", of="f2+easy"), "plot: there is no 'queue' of 'f2+easy' (leave it out)"),
        (lambda: one.plot("spread"), "plot: 'spread' requires two windows (choose another kind of picture)"),
        (
            lambda: shown()["Outcome"].plot("spread"),
            "plot: there is no picture 'spread' (use power, queue, schedule, capacity, image)",
        ),
        (
            lambda: dark.plot("power"),
            "plot: 'power' requires a site and the power of jobs (choose another kind of picture)",
        ),
    ):
        with pytest.raises(gb.InputError) as caught:
            draw()
        assert str(caught.value) == message


def test_the_report_is_that_of_the_command_line(tmp_path: Path) -> None:
    from greenbatch.cli import main

    starts = "5000,6000,7000,8000,9000"
    words = ["compare", "--schedulers", "fcfs+easy,f2+easy", "--starts", starts, "--jobs", "100", "--out"]
    assert main([*words, str(tmp_path / "cli")]) == 0
    theirs = (tmp_path / "cli" / "report.html").read_text()
    file = shown()["Comparison"].report(tmp_path)
    assert file == tmp_path / "report.html"
    ours = file.read_text()
    until = theirs.index("Provenance")
    assert ours[: ours.index("Provenance")].replace("in Python", "") == re.sub(
        r"greenbatch compare [^<]*", "", theirs[:until], count=1
    )
    with pytest.raises(gb.InputError, match="cannot be written"):
        shown()["Comparison"].report(tmp_path / "no" / "such.html")


def test_a_report_of_rules_under_names_of_their_own(tmp_path: Path) -> None:

    def narrow(queue):
        return queue.processors  # narrow jobs first

    comparison = gb.compare(
        shown()["Scenario"],
        {"narrow": narrow, "by: size=x": lambda queue: queue.processors, "fcfs": "fcfs+easy"},
        starts=[0],
        jobs=50,
    )
    text = comparison.report(tmp_path / "r.html").read_text()
    assert "size=x" in text
    assert "# narrow jobs first" in text
    assert list(comparison.rules) == ["narrow", "by: size=x"]
    assert comparison.schedulers == ("narrow", "by: size=x", "fcfs")


def test_errors_are_one_line_in_a_notebook() -> None:
    with pytest.raises(gb.InputError) as caught:
        gb.load_scenario("defualt")
    (line,) = caught.value._render_traceback_()
    assert line.startswith("InputError: scenario: there is no scenario 'defualt'")


def test_windows_and_draws_in_words() -> None:
    assert [draws_text(count) for count in (0, 1, 2, 1_000)] == ["0 draws", "1 draw", "2 draws", "1,000 draws"]
    assert [windows_text(1, 5), windows_text(2, 1_024)] == ["one window of 5 jobs", "2 windows of 1,024 jobs"]
    assert [windows_text(1, 0), windows_text(3, 0)] == ["1 draw", "3 draws"]


def test_one_draw_is_not_a_window_of_no_jobs(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(
        'name = "one"\n[workload]\ngenerator = { model = "rare", ticks = 60 }\n'
        "[cluster]\nprocessors = 10\ngpus = 10\n[evaluation]\ndraws = 1\n"
    )
    assert "windows 1 draw of the generator" in repr(gb.load_scenario(tmp_path / "one.toml"))
    sweep = gb.compare(tmp_path / "one.toml", ["qos+none"], sweep={"cluster.gpus": [10, 12]})
    assert "windows 1 draw of the generator" in repr(sweep)
    assert "windows 1 draw of the generator" in repr(sweep.first)
    assert sweep_table(sweep, sweep_columns(sweep)[0]).notes[0] == "one: 1 draw."
