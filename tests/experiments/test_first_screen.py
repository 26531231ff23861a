"""What a reader sees first, on a laptop and on a telephone, and how long a page of eight schedulers is."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chromium_pipe import Browser, texts_cut
from example_windows import day_site, fcfs, some_jobs

from greenbatch.energy import Grid, Storage
from greenbatch.experiments.reports.drawing import color_of
from greenbatch.experiments.reports.looks import looks_of
from greenbatch.experiments.reports.report import write_report
from greenbatch.experiments.running.frames import breakdown, tidy
from greenbatch.metrics import Horizon, evaluate_window
from greenbatch.metrics.breakdown import PART_METRICS, part_metric
from greenbatch.notes import Note

NAMES = ("fcfs+easy", "sjf+easy", "f2+easy", "fcfs+green", "f2+green", "foresee", "cheapest-start:psi=2+none",
         "gas-marl-plus@default+none")  # fmt: skip
WINDOWS = 6
UNLIKE = "this scenario is unlike the one it was trained on: load 0.9 here, 0.6 there; possibly worse than plain rules"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of eight schedulers on a site with prices, carbon and a battery, with warnings and partitions."""
    site = day_site(60)
    price = 0.1 + 0.2 * (np.arange(site.slots) % 24 > 16)
    grid = Grid(currency="EUR", import_price=price, carbon_g_per_kwh=np.full(site.slots, 400.0))
    site = replace(site, grid=grid, storage=Storage(capacity_kwh=5.0, charge_w=2000.0, discharge_w=2000.0))
    results, example = [], {}
    for seed in range(WINDOWS):
        jobs = some_jobs(seed)
        jobs = replace(jobs, partition=np.arange(len(jobs)) % 3)
        outcomes = {name: fcfs(jobs, hold_s=7200.0 * k, name=name, site=site) for k, name in enumerate(NAMES)}
        first, last = float(jobs.submit_s.min()), float(outcomes[NAMES[0]].end_s.max())
        horizon = Horizon(start_s=first, end_s=2 * last - first, reference_makespan_s=last - first)
        figures = {name: dict(each) for name, each in
                   evaluate_window(outcomes, baseline=NAMES[0], horizon=horizon).items()}  # fmt: skip
        for k, each in enumerate(figures.values()):  # as if later schedulers found cheaper hours
            for metric in ("horizon_cost", "horizon_carbon_kg", "horizon_brown_kwh"):
                each[metric] *= 1 - 0.08 * k
        results.append((str(1000 * seed), figures))
        example = example or outcomes
    waits = {
        name: {part_metric(m, "partition", f"part{p}"): 3600.0 * (p + k) for p in range(3) for m in PART_METRICS}
        for k, name in enumerate(NAMES, 1)
    }
    path = tmp_path_factory.mktemp("eight") / "report.html"
    write_report(
        path, title="hpc2n-texas: 6 windows of 150 jobs", command=f"greenbatch compare --schedulers {','.join(NAMES)}",
        frame=tidy(results), outcomes=example, baseline=NAMES[0], currency="EUR", example="0",
        breakdown=breakdown([(str(k), waits) for k in range(WINDOWS)]),
        notes=[*(Note(UNLIKE, level="warning", of=(name,)) for name in NAMES[-3:]), "a note"],
        marks={NAMES[-1]: "in-sample"}, provenance={"seed": 0},
    )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


FIRST = """JSON.stringify([...document.querySelectorAll('.sentence, .tiles li, .screen figure svg')].map(e => {
  const box = e.getBoundingClientRect();
  return {kind: e.tagName, top: box.top, bottom: box.bottom, left: box.left, right: box.right, text: e.textContent,
    cut: e.scrollWidth > e.clientWidth + 1};
}))"""


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_has_sentence_tiles_and_picture(
    chromium: Browser, page: Path, width: int, height: int
) -> None:  # fmt: skip
    chromium.open(page.as_uri(), width)
    seen = json.loads(chromium.evaluate(FIRST))
    assert [each["kind"] for each in seen] == ["P", "LI", "LI", "LI", "LI", "svg"]
    for each in seen:
        assert 0 <= each["top"] < each["bottom"] <= height, each
        assert 0 <= each["left"] < each["right"] <= width, each
        assert not each["cut"], each
    sentence, *tiles = (each["text"] for each in seen[:5])
    assert re.search(r"costs? .*less than fcfs\+easy", sentence), sentence
    assert "wait" in sentence
    assert "EUR" in tiles[0]
    assert "kg CO₂" in tiles[1]
    assert "Shortest mean wait" in tiles[3]
    order = [each["top"] for each in seen]
    assert order[0] < order[1] <= order[-1] + 2, "the sentence first, the picture not before the tiles"


def test_the_page_is_short_and_no_picture_text_is_cut(chromium: Browser, page: Path) -> None:
    chromium.open(page.as_uri(), 1280)
    assert chromium.evaluate("document.documentElement.scrollHeight") <= 7000
    assert texts_cut(chromium, "svg") == []


def test_names_at_the_points_do_not_overlap_in_the_browser(chromium: Browser, page: Path) -> None:
    chromium.open(page.as_uri(), 390)
    overlapping = chromium.evaluate("""(texts => texts.flatMap((a, i) => texts.slice(i + 1).filter(b =>
        a.right > b.left + 1 && b.right > a.left + 1 && a.bottom > b.top + 1 && b.bottom > a.top + 1)))(
      [...document.querySelectorAll('.screen figure svg text')].map(t => t.getBoundingClientRect())
        .filter(b => b.width)).length""")
    assert overlapping == 0


def test_a_table_that_scrolls_says_so(chromium: Browser, page: Path) -> None:
    chromium.open(page.as_uri(), 900)
    told = json.loads(
        chromium.evaluate("""JSON.stringify([...document.querySelectorAll('.scroll')].filter(e => e.checkVisibility())
      .map(e => [e.scrollWidth > e.clientWidth, e.querySelector('.hint')?.getBoundingClientRect().height > 0]))""")
    )
    assert {scrolls for scrolls, _ in told} == {True, False}
    assert all(scrolls == says for scrolls, says in told), told


def test_a_scheduler_has_one_color_everywhere(text: str) -> None:
    looks = looks_of(NAMES)
    assert [look.color for look in looks.values()] == [color_of(k) for k in range(len(NAMES))]
    shown = re.findall(r'class="swatch" style="background:(#\w+)"></span>([^<]+(?:<wbr>[^<]+)*)', text)
    names = {name.replace("<wbr>", "").strip(): set() for _, name in shown}
    for color, name in shown:
        names[name.replace("<wbr>", "").strip()].add(color)
    for name in NAMES:
        assert names[name] == {looks[name].color}, name
    assert names[f"{NAMES[-1]} (in-sample)"] == {looks[NAMES[-1]].color}
    pictures = re.findall(r'<svg role="img" aria-labelledby="([\w-]+)-alt".*?</svg>', text, flags=re.DOTALL)
    assert {"tradeoff", "radar", "queue"} <= set(pictures)
    for start in ("tradeoff", "radar", "queue-alt", "box-avg-wait-s"):
        picture = text[text.index(f'aria-labelledby="{start}') :].split("</svg>", maxsplit=1)[0]
        assert all(look.color in picture for look in looks.values()), start


def test_money_has_the_name_of_its_currency(text: str) -> None:
    shown = text.split('id="definitions"', maxsplit=1)[0]
    assert "currency" not in shown
    assert "Cost over the horizon <span" in shown
    assert "[EUR]" in shown
    assert "[EUR/kWh]" in shown


def test_the_longest_wait_stands_in_the_table_of_means(text: str) -> None:
    assert '<th scope="col">Longest wait <span class="unit">[h]</span></th>' in text


def test_the_same_warning_of_several_schedulers_is_one_line_in_full(text: str) -> None:
    caveats = text.split('id="caveats"')[1].split("</section>", maxsplit=1)[0]
    assert re.findall(r"<p>([^<]*unlike[^<]*)</p>", caveats) == [f"{', '.join(NAMES[-3:])}: {UNLIKE}"]
    assert "<details>" not in caveats
    assert "a note" not in caveats


def test_everything_is_in_the_table_of_contents(text: str) -> None:
    links = re.findall(r'<a href="#([\w-]+)">', text.split("<nav")[1].split("</nav>", maxsplit=1)[0])
    assert links == re.findall(r'<h2 id="([\w-]+)"', text)


def test_partitions_are_facets(text: str) -> None:
    section = text.split(">Queues by partition</h2>")[1].split("</section>", maxsplit=1)[0]
    assert re.findall(r"<figcaption><strong>([^<]+)</strong> 50 jobs\.", section) == [
        "partition 0", "partition 1", "partition 2",
    ]  # fmt: skip


def test_folded_parts_are_printed(chromium: Browser, page: Path) -> None:
    chromium.open(page.as_uri(), 1280)
    chromium.call("Emulation.setEmulatedMedia", media="print")
    chromium.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    hidden = chromium.evaluate("""[...document.querySelectorAll('details table')]
      .filter(t => !t.checkVisibility() || !t.getBoundingClientRect().height).map(t => t.textContent.slice(0, 60))""")
    chromium.call("Emulation.setEmulatedMedia", media="")
    assert hidden == []
