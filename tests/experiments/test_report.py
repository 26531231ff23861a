"""The HTML report: what it says, what it escapes, that it is whole, and how a browser sees it."""

# ruff: noqa: RUF001 - typographic dashes and signs are what is tested.

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars
import pytest
from chromium_pipe import Browser
from example_windows import example

from greenbatch.errors import InputError
from greenbatch.experiments.papers.cells import write_reproduction
from greenbatch.experiments.reports import page as pages
from greenbatch.experiments.reports.answer import key_figures
from greenbatch.experiments.reports.cautions import cautions
from greenbatch.experiments.reports.findings import headlines, summary_lines
from greenbatch.experiments.reports.page import provenance_blocks, write_page
from greenbatch.experiments.reports.power_plots import power_plots
from greenbatch.experiments.reports.report import write_report
from greenbatch.experiments.running.frames import breakdown, tidy
from greenbatch.files import write_bytes
from greenbatch.metrics.breakdown import PART_METRICS, part_metric

PROVENANCE = {
    "greenbatch": "0.1.0", "seed": 0, "nothing": None, "inputs": {"trace.swf": "ab" * 32},
    "scenario": {"name": "example", "cluster": {"processors": 64}, "windows": [0, 1000]},
}  # fmt: skip
CELLS = [
    {"table": "3", "trace": trace, "backfill": "green", "scheduler": "f2", "metric": metric, "published": published,
     "ours": ours, "digits": 3, "verdict": verdict, "reason": "made up"}
    for trace in ("lublin-256", "cirne")
    for metric, published, ours, verdict in (
        ("AvgBSLD", 57.412, 57.412, "equal"), ("AvgBSLD", 3.5, 900.0, "worse"),
        ("ReUtil", None, 0.5, "not in the paper"),
    )
]  # fmt: skip


def written(path: Path, **changes: Any) -> str:
    frame, outcomes = changes.pop("data", None) or example(windows=3)
    arguments = {
        "title": "Three schedulers on a sunny site", "command": "greenbatch compare --windows 3", "frame": frame,
        "outcomes": outcomes, "baseline": "fcfs+none", "provenance": PROVENANCE, "example": "0",
    }  # fmt: skip
    write_report(path, **(arguments | changes))
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    written(path)
    return path


@pytest.fixture(scope="module")
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


class Elements(HTMLParser):
    """Tags that open and close, and every id."""

    VOID = ("meta", "link", "br", "img", "hr", "wbr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.count: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        self.ids += [value for key, value in attrs if key == "id" and value]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_well_formed_self_contained_and_without_script(text: str) -> None:
    elements = Elements()
    elements.feed(text)
    assert elements.open == []
    assert len(elements.ids) == len(set(elements.ids)), "an id occurs twice"
    assert "script" not in elements.count
    # Trade-off, radar, queue, four boxes, and two pictures for each of three schedulers.
    assert elements.count["svg"] == elements.count["figure"] == 3 + 4 + 2 * 3
    assert elements.count["table"] == 4
    assert not re.search(r"""(?:src|href|url\()\s*=?\s*["']?(?:https?:)?//""", text)
    for reference in re.findall(r"""(?:href="|url\()#([^")]+)""", text):
        assert reference in elements.ids


def test_the_same_inputs_give_the_same_bytes(text: str, tmp_path: Path) -> None:
    assert written(tmp_path / "again.html") == text


def test_the_summary_states_the_findings() -> None:
    frame, outcomes = example(windows=3)
    lines = " ".join(summary_lines(frame, outcomes, "fcfs+none"))
    assert lines.startswith("patient+none has the lowest mean bounded slowdown, "), "the finding comes first"
    assert lines.endswith(
        "Three schedulers ran the same three windows of 150 jobs each on 64 processors and the renewable supply of "
        "sunny."
    )
    assert "fastest" not in lines
    assert "better in 3 of 3 windows" in lines
    assert "brown energy" in lines


def test_words_follow_the_numbers() -> None:
    base = {"avg_bounded_slowdown": 2.0, "renewable_utilization": 0.5, "makespan_ratio": 1.0,
            "horizon_brown_kwh": 100.0}  # fmt: skip
    other = base | {"avg_bounded_slowdown": 3.0, "renewable_utilization": 0.6, "horizon_brown_kwh": 90.0}
    _, outcomes = example(windows=1)
    frame = tidy([(w, {"fcfs+easy": base, "green": other}) for w in "ab"])
    lines = summary_lines(frame, outcomes, "fcfs+easy")
    assert "No scheduler has a lower mean bounded slowdown than fcfs+easy, 2.000." in lines
    assert any(line.startswith("green uses the largest renewable share, 60.0%, 10.0 points above") for line in lines)
    assert any("90.00 kWh, 10% below fcfs+easy, better in 2 of 2 windows" in line for line in lines)
    worse = tidy([(w, {"fcfs+easy": base, "green": other | {"horizon_brown_kwh": 110.0}}) for w in "ab"])
    assert any(
        "no scheduler draws less brown energy than fcfs+easy" in line
        for line in summary_lines(worse, outcomes, "fcfs+easy")
    )
    noisy = tidy(
        [(w, {"fcfs+easy": base, "green": base | {"avg_bounded_slowdown": v}}) for w, v in (("a", 1.0), ("b", 2.5))]
    )
    assert "within noise" in " ".join(summary_lines(noisy, outcomes, "fcfs+easy"))


@pytest.mark.parametrize(
    ("wait_h", "told"),
    [
        (
            10.5,
            "while its jobs wait 10.50 h on average, 2.6 times fcfs+easy's. fcfs+easy has the shortest",
        ),
        (4.1, "; its jobs wait 4.10 h on average, about as long as fcfs+easy's. fcfs+easy has the shortest"),
        (3.0, "; its jobs wait 3.00 h on average, 25% less than fcfs+easy's, the shortest mean wait."),
        (4.0001, "; its jobs wait 4.00 h on average, about as long as fcfs+easy's, the shortest mean wait."),
    ],
)
def test_the_summary_names_what_a_low_slowdown_costs(wait_h: float, told: str) -> None:
    base = {"avg_bounded_slowdown": 20.0, "avg_wait_s": 4.0 * 3600}
    patient = {"avg_bounded_slowdown": 5.0, "avg_wait_s": wait_h * 3600}
    frame = tidy([(w, {"fcfs+easy": base, "patient": patient}) for w in "ab"])
    lines = " ".join(summary_lines(frame, example(windows=1)[1], "fcfs+easy"))
    assert lines.startswith("patient has the lowest mean bounded slowdown, 5.000, 75% below fcfs+easy")
    assert told in lines


def test_the_summary_gives_calendar_dates_where_they_are_known() -> None:
    frame, outcomes = example(windows=1)
    known = {
        name: replace(outcome, workload=replace(outcome.workload, unix_start_s=1_767_225_600.0))
        for name, outcome in outcomes.items()
    }
    assert "submitted" not in " ".join(summary_lines(frame, outcomes, "fcfs+none"))
    last = summary_lines(frame, known, "fcfs+none")[-1]
    assert re.fullmatch(r"The window's jobs were submitted from 2026-01-01 to 2026-01-\d\d\.", last)


def priced(**changes: float) -> polars.DataFrame:
    """A baseline and a scheduler that differs from it, in six windows that are alike but for noise."""
    base = {"avg_bounded_slowdown": 5.0, "avg_wait_s": 3600.0, "renewable_utilization": 0.5, "makespan_ratio": 1.0,
            "horizon_brown_kwh": 1000.0}  # fmt: skip
    return tidy([(str(k), {"fcfs+easy": base, "late": base | changes}) for k in range(6)])


def test_the_summary_states_what_each_gain_costs() -> None:
    dear = priced(horizon_brown_kwh=990.0, renewable_utilization=0.6, avg_wait_s=6.9 * 3600, avg_bounded_slowdown=20.0)
    share, brown = summary_lines(dear, example(windows=1)[1], "fcfs+easy")[-3:-1]
    price = "at 6.9 times the mean wait and 4.0 times the bounded slowdown."
    assert brown.endswith(f"late draws the least brown energy: 990.0 kWh, 1% below fcfs+easy, better in 6 of 6 windows "
                          f"(small), {price}")  # fmt: skip
    assert share.startswith("late uses the largest renewable share, 60.0%, 10.0 points above fcfs+easy")
    assert share.endswith(price)
    free = " ".join(summary_lines(priced(horizon_brown_kwh=500.0), example(windows=1)[1], "fcfs+easy"))
    assert (
        "50% below fcfs+easy, better in 6 of 6 windows, at no higher mean wait, bounded slowdown or makespan." in free
    )
    quick = " ".join(summary_lines(priced(avg_wait_s=1800.0, avg_bounded_slowdown=6.0), example(1)[1], "fcfs+easy"))
    assert "late has the shortest mean wait, 0.50 h, 50% below fcfs+easy" in quick
    assert "at 1.20 times the bounded slowdown." in quick


def test_a_large_price_for_a_small_gain_must_be_read_with_care() -> None:
    dear = {"avg_wait_s": 6.9 * 3600, "avg_bounded_slowdown": 20.0}
    (line,) = map(str, cautions(priced(horizon_brown_kwh=990.0, **dear), "fcfs+easy"))
    assert line == (
        "late has the lowest brown energy over the horizon, but the gain over fcfs+easy is small and comes at 6.9 "
        "times the mean wait and 4.0 times the bounded slowdown."
    )
    assert cautions(priced(horizon_brown_kwh=500.0, **dear), "fcfs+easy") == []
    assert cautions(priced(horizon_brown_kwh=990.0), "fcfs+easy") == []
    modest = {"avg_wait_s": 1.2 * 3600, "avg_bounded_slowdown": 5.5}
    assert cautions(priced(horizon_brown_kwh=990.0, **modest), "fcfs+easy") == []


@pytest.mark.parametrize(("charge", "days", "told"), [(60.0, 7, True), (60.0, 31, False), (0.5, 7, False)])
def test_demand_charges_of_months_in_a_bill_of_days_are_told(charge: float, days: int, told: bool) -> None:
    paid = {"horizon_cost": 100.0, "horizon_demand_charge": charge, "horizon_s": days * 86_400.0}
    frame = tidy([(str(k), {"fcfs+easy": paid}) for k in range(2)])
    found = [note.what for note in cautions(frame, "fcfs+easy", currency="EUR") if note.about == "horizon_cost"]
    assert len(found) == told
    assert all("of the 100.00 EUR of fcfs+easy, 60.00 are demand charges of whole months" in each for each in found)
    assert all("a window lasts 7.0 days" in each for each in found)


def test_who_leaves_much_work_wins_nothing() -> None:
    """The same in the summary, in the terminal and on the tiles: of little that is left, a sentence says so."""
    base = {"avg_bounded_slowdown": 2.0, "renewable_utilization": 0.5, "makespan_ratio": 1.0,
            "horizon_brown_kwh": 100.0, "horizon_cost": 9.0, "horizon_unfinished_share": 0.0}  # fmt: skip
    for share, wins, told in ((0.0, True, False), (0.03, True, True), (0.3, False, False)):
        late = base | {"horizon_brown_kwh": 50.0, "horizon_cost": 4.0, "horizon_unfinished_share": share}
        frame = tidy([("a", {"fcfs+easy": base, "late": late})])
        lines = summary_lines(frame, example(windows=1)[1], "fcfs+easy")
        assert any("late draws the least brown energy: 50.00 kWh" in line for line in lines) == wins
        assert any("late has the lowest cost" in line for line in lines) == wins
        (tile,) = [each for each in key_figures(frame, "fcfs+easy") if each.label == "Lowest cost"]
        assert tile.scheduler == ("late" if wins else "fcfs+easy")
        assert any("understated" in line for line in lines) == told
        assert any("understated" in line for line in headlines(frame, "fcfs+easy")) == told, "in the terminal too"


def test_the_horizon_is_defined(text: str) -> None:
    told = text.split('id="definitions"')[1].split("</dl>", maxsplit=1)[0]
    assert "<code>factor * makespan of fcfs+easy</code>" in told
    assert "<code>evaluation.horizon</code>" in told
    assert "`" not in told


def test_a_cell_of_a_planners_tables_holds_one_figure() -> None:
    from greenbatch.experiments.reports.model_sections import planner_section
    from greenbatch.experiments.running.model_warnings import models_among
    from greenbatch.policies.compiled.lookahead.weights import HEADS, INPUTS, NUMBERS
    from greenbatch.schedulers import scheduler

    name = "gas-marl-plus@default+none"
    section = planner_section(name, models_among({name: scheduler(name)})[name])
    numbers, weights = section.tables
    assert [row for row, _ in numbers.rows] == list(NUMBERS)
    assert [row for row, _ in weights.rows] == list(INPUTS)
    assert len(weights.columns) == HEADS
    for _, cells in (*weights.rows, *((row, cells[:1]) for row, cells in numbers.rows)):
        assert all(re.fullmatch(r"[+−]?[\d.e+-]+", cell.text) for cell in cells)
    for source in INPUTS:
        assert source in weights.notes[0], "every input is explained"
    assert "brown energy" in section.text


def test_provenance_is_folded(text: str) -> None:
    folded = text.split('id="provenance"')[1]
    assert folded.count("<details>") == folded.count("<summary>") == 3
    assert "<details open" not in folded
    assert folded.index("<details>") < folded.index("ab" * 32) < folded.rindex("</details>")


@pytest.mark.usefixtures("undrawn")
def test_warnings_notes_definitions_and_provenance_are_shown(tmp_path: Path) -> None:
    frame, outcomes = example(windows=1)
    stretched = frame.with_columns(
        polars.when((polars.col("metric") == "renewable_utilization") & (polars.col("scheduler") == "patient+none"))
        .then(0.99)
        .otherwise(polars.col("value"))
        .alias("value")
    )
    text = written(tmp_path / "r.html", data=(stretched, outcomes), notes=[
        *cautions(stretched, "fcfs+none"), "filled 3 hours",
    ])  # fmt: skip
    for part in (
        "Caveats", "patient+none stretches the makespan", "filled 3 hours", "GAS-MARL Eq. 5",
        "ab" * 32, "&#34;processors&#34;: 64", "greenbatch compare --windows 3",
    ):  # fmt: skip
        assert part in text


def test_without_power_there_are_no_power_columns_or_pictures(tmp_path: Path) -> None:
    text = written(tmp_path / "r.html", data=example(windows=1, power=False))
    assert "<svg" in text
    for absent in ("Renewable utilization", "Power against supply", "Slowdown against renewables", "brown energy"):
        assert absent not in text.split("What the figures mean")[0]


@pytest.mark.usefixtures("undrawn")
def test_one_window_has_no_intervals_and_no_boxes(tmp_path: Path) -> None:
    text = written(tmp_path / "r.html", data=example(windows=1))
    assert "One window, so no interval" in text
    assert "over the windows" not in text.split("<figure>", 1)[1].split("What the figures mean")[0]
    figures = re.sub(r"<svg.*?</svg>", "", text.split("What the figures mean")[0], flags=re.DOTALL)
    assert not re.search(r"\bnan\b", figures, re.IGNORECASE)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    evil = '<script>alert("x")</script>&$a_b$'
    frame, outcomes = example(windows=1)
    frame = frame.with_columns(polars.col("scheduler").str.replace("hold-2h+none", evil, literal=True))
    outcomes = {evil if name == "hold-2h+none" else name: o for name, o in outcomes.items()}
    text = written(
        tmp_path / "r.html",
        data=(frame, outcomes),
        title=evil,
        command=evil,
        notes=[evil],
        provenance={evil: {evil: [evil]}},
    )
    elements = Elements()
    elements.feed(text)
    assert "script" not in elements.count
    assert "alert(&#34;x&#34;)" in text


def test_names_alike_in_letters_keep_their_pictures_apart() -> None:
    outcomes = dict(zip(("fcfs+none", "fcfs-none"), example(windows=1)[1].values(), strict=False))
    names = [picture.name for picture in power_plots(outcomes)]
    assert len(names) == len(set(names)) == 2


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(InputError, match="not among the schedulers"):
        written(path, baseline="sjf+easy")
    with pytest.raises(InputError, match="no example window"):
        written(path, data=(example(windows=1)[0], {}))
    with pytest.raises(InputError, match="'ghost' has an outcome but no row"):
        written(path, data=(example(windows=1)[0], {"ghost": next(iter(example(windows=1)[1].values()))}))
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(InputError, match="No space left"):
        write_bytes(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be written: No such file or directory \(give a file in an existing"):
        write_bytes(tmp_path / "absent" / "report.html", b"new")


def test_provenance_takes_any_shape() -> None:
    blocks = provenance_blocks(PROVENANCE)
    assert blocks[0] == ("", [("greenbatch", "0.1.0"), ("seed", "0"), ("nothing", "–")], "")
    assert blocks[1] == ("inputs", [("trace.swf", "ab" * 32)], "")
    assert blocks[2][0] == "scenario"
    assert '"processors": 64' in blocks[2][2]
    assert provenance_blocks({}) == []


def test_a_reproduction_has_its_own_page(tmp_path: Path) -> None:
    write_reproduction(tmp_path / "r.html", title="GAS-MARL", command="greenbatch reproduce gas-marl", cells=CELLS)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    elements = Elements()
    elements.feed(text)
    assert elements.count["svg"] == 3, "ours against published, and one picture per metric"
    told = "2 of 4 computed figures equal the published ones to every printed digit; 2 are not in the paper."
    assert told in text
    assert "computed in addition; the paper has no such figure" in text


# What a reader's browser makes of it.

LOOK = """JSON.stringify({
  inner: innerWidth, wide: document.documentElement.scrollWidth,
  pictures: [...document.querySelectorAll('svg, img, canvas')].map(e => {
    const box = e.getBoundingClientRect(), style = getComputedStyle(e), scale = box.width / e.viewBox.baseVal.width;
    const ink = e.getBBox(), texts = [...e.querySelectorAll('text')];
    return {name: e.textContent.slice(0, 40), left: box.left, right: box.right, width: box.width,
      height: box.height, shown: style.display !== 'none' && style.visibility === 'visible' && +style.opacity > 0,
      ink: ink.width * ink.height,
      alt: document.getElementById(e.getAttribute('aria-labelledby')).textContent.length,
      smallest: scale * Math.min(...texts.map(t => parseFloat(getComputedStyle(t).fontSize))),
      colors: [...new Set(texts.map(t => getComputedStyle(t).fill))]};
  }),
  tables: [...document.querySelectorAll('table')].map(t => t.parentElement.getBoundingClientRect().right),
  paper: getComputedStyle(document.body).backgroundColor})"""


@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_every_picture_and_asks_for_nothing(chromium: Browser, page: Path, width: int) -> None:
    chromium.open(page.as_uri(), width)
    seen = json.loads(chromium.evaluate(LOOK))
    assert chromium.errors() == []
    assert chromium.requests() == [page.as_uri()]
    assert seen["inner"] == width
    assert seen["wide"] <= width, "the page itself must not scroll sideways"
    assert len(seen["pictures"]) == 13
    for picture in seen["pictures"]:
        assert picture["shown"], picture
        assert picture["ink"] > 0, picture
        assert 0 <= picture["left"] < picture["right"] <= width, picture
        assert picture["width"] >= min(width - 48, 260), picture
        assert picture["height"] > 90, picture
        assert picture["smallest"] >= 9, picture
        assert picture["alt"] > 40, picture
    assert all(right <= width for right in seen["tables"]), "tables scroll inside their box"


def test_who_gains_and_who_waits_is_on_the_second_screen(chromium: Browser, tmp_path: Path) -> None:
    """Of a laptop, behind the answer and the table of means, below a long command; with as many as four partitions."""
    names = "fcfs+none", "hold-2h+none", "patient+none"
    waits = {
        name: {
            part_metric(metric, "partition", f"part{k}"): 3600.0 * (k + at) for k in range(4) for metric in PART_METRICS
        }
        for at, name in enumerate(names, 1)
    }
    words = f"compare --scenario plain --trace jobs.txt --cluster slurm.conf --schedulers {','.join(names)} --whole"
    written(tmp_path / "r.html", command=f"greenbatch {words} --out out/rules", breakdown=breakdown([("0", waits)]))
    chromium.open((tmp_path / "r.html").as_uri(), 1200)
    last = chromium.evaluate("""(table => table.getBoundingClientRect().bottom)(
      [...document.querySelectorAll('table')].find(t => t.textContent.includes('Who gains and who waits')))""")
    assert last <= 1600
    assert json.loads(chromium.evaluate(LOOK))["wide"] <= 1200


def test_a_narrow_page_shows_every_figure_with_its_name(chromium: Browser, page: Path) -> None:
    chromium.open(page.as_uri(), 600)
    seen = json.loads(
        chromium.evaluate("""JSON.stringify([...document.querySelectorAll('td')].map(e => ({
      right: e.getBoundingClientRect().right, width: e.getBoundingClientRect().width, label: e.dataset.label,
      shown: getComputedStyle(e, '::before').content})))""")
    )
    assert {"Mean wait [h]", "Wait, 95th percentile [h]"} <= {cell["label"] for cell in seen}
    for cell in seen:
        assert 0 < cell["width"] <= cell["right"] <= 600, cell
        assert cell["label"] in cell["shown"], cell


def test_dark_pages_turn_the_ink_of_the_pictures(chromium: Browser, page: Path) -> None:
    chromium.open(page.as_uri(), 1280, dark=True)
    dark = json.loads(chromium.evaluate(LOOK))
    chromium.open(page.as_uri(), 1280)
    light = json.loads(chromium.evaluate(LOOK))
    brightness = [sum(map(int, re.findall(r"\d+", look["paper"])[:3])) for look in (dark, light)]
    assert brightness[0] < 150
    assert brightness[1] > 600
    for look, low, high in ((dark, 500, 765), (light, 0, 300)):
        for picture in look["pictures"]:
            assert all(low <= sum(map(int, re.findall(r"\d+", color)[:3])) <= high for color in picture["colors"])


def test_the_browser_check_notices_a_broken_page(chromium: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text('<!doctype html><img src="http://127.0.0.1:9/x.png"><script>missing()</script>')
    chromium.open(bad.as_uri(), 390)
    assert any("Uncaught" in error for error in chromium.errors())
    assert "http://127.0.0.1:9/x.png" in chromium.requests()


def test_the_template_is_packaged() -> None:
    assert {path.name for path in pages.TEMPLATES.iterdir()} == {"report.html.j2", "report.css"}


@pytest.mark.parametrize(("count", "items"), [(6, 0), (7, 7)])
def test_many_lines_of_a_summary_are_a_list(count: int, items: int, tmp_path: Path) -> None:
    write_page(tmp_path / "r.html", title="t", command="c", tables=[], summary=[f"Line {k}." for k in range(count)])
    page = (tmp_path / "r.html").read_text()
    assert len(re.findall(r"<li>Line \d\.</li>", page)) == items
    assert all(f"Line {k}." in page for k in range(count))
