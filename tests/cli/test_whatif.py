"""``greenbatch whatif``: what other schedulers would have done with recorded jobs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from greenbatch.cli.process import main
from greenbatch.cli.whatif import recorded_and_rules
from greenbatch.engine import simulate as simulating
from greenbatch.engine.prepare import prepare
from greenbatch.errors import InputError
from greenbatch.experiments.running.compare import choose_schedulers
from greenbatch.metrics.months import LATER, MONTH
from greenbatch.scenarios import load_scenario
from greenbatch.schedulers import scheduler

GRID = """
[site.grid]
time_zone = "Europe/Berlin"
demand_charge = 5

[site.grid.price]
kind = "calendar"
unit = "EUR/kWh"
periods = [
    { name = "day", value = 0.31, hours = ["08:00-20:00"] },
    { name = "night", value = 0.19, hours = ["20:00-08:00"] },
]

[site.grid.carbon]
kind = "constant"
value = 380
unit = "g/kWh"
"""
ROOT = Path(__file__).parents[2]
DUMP = ROOT / "examples" / "sacct.txt"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The example of a site, with a tariff."""
    text = (ROOT / "examples" / "site.toml").read_text(encoding="utf-8")
    file = tmp_path / "site.toml"
    file.write_text(text + GRID, encoding="utf-8")
    return file


@pytest.fixture
def two_months(tmp_path: Path) -> Path:
    """Every third job of the dump of June, and the same under other numbers in July."""
    lines = DUMP.read_text(encoding="utf-8").splitlines()
    lines = [lines[0], *lines[1::3]]
    later = [re.sub(r"^4(\d+)\|4", r"5\1|5", line).replace("2026-06-", "2026-07-") for line in lines[1:]]
    file = tmp_path / "sacct.txt"
    file.write_text("\n".join([*lines, *later]) + "\n", encoding="utf-8")
    return file


def test_the_answer_is_in_money_carbon_and_hours(
    site: Path, two_months: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The record is the baseline, rules and planners of cost and carbon stand beside it; months add up."""
    out = tmp_path / "out"
    assert main(["whatif", "--trace", str(two_months), "--site", str(site), "--out", str(out)]) == 0
    printed = capsys.readouterr()
    told = " ".join((printed.out + printed.err).split())
    assert re.search(r"Under as-recorded, 38 jobs cost [\d.]+ EUR,? [^.]*(emit|draw)", told)
    assert "kg CO₂" in told
    assert "of 2 months" in told
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "jobs cost" in page
    assert "By month" in page
    assert "2026-06" in page
    frame = polars.read_parquet(out / "results.parquet")
    names = set(frame["scheduler"])
    assert {"as-recorded", "foresee:brown=0:cost=1", "foresee:brown=0:carbon=1"} < names
    for whole, monthly in (("horizon_cost", "month_cost"), ("horizon_carbon_kg", "month_carbon_kg")):
        for name in names:
            rows = frame.filter(scheduler=name)
            parts = rows.filter(polars.col("metric").str.starts_with(f"{monthly} by {MONTH}: "))
            assert len(parts) == 3  # and what comes later
            assert parts["metric"].str.contains(LATER).sum() == 1
            total = rows.filter(metric=whole)["value"].item()
            assert np.isclose(parts["value"].sum(), total, rtol=1e-9)


def test_the_bill_does_not_include_a_second_span_of_idling(site: Path, tmp_path: Path) -> None:
    """The horizon is 1.1 makespans, unless the file states another."""
    lengths = []
    for text in ("", "horizon = 3"):
        file = site.with_name("own.toml")
        file.write_text(site.read_text(encoding="utf-8").replace("[evaluation]", f"[evaluation]\n{text}"))
        out = tmp_path / f"out{text[-1:]}"
        command = ["whatif", "--trace", str(DUMP), "--site", str(file), "--schedulers", "fcfs+easy"]
        assert main([*command, "--out", str(out)]) == 0
        frame = polars.read_parquet(out / "results.parquet")
        lengths.append(frame.filter(metric="horizon_s")["value"].item())
    assert np.isclose(lengths[1] / lengths[0], 3 / 1.1)


def test_payback_of_a_size(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Years are the investment over the yearly saving, with the first size as what is there."""
    out = tmp_path / "out"
    command = ["whatif", "--trace", str(DUMP), "--site", str(site), "--schedulers", "as-recorded,f2+easy"]
    sweep = ["--sweep", "site.area_m2=12,24", "--unit-cost", "20", "--out", str(out)]
    assert main([*command, *sweep]) == 0
    frame = polars.read_parquet(out / "results.parquet")

    def value(area: int, metric: str) -> float:
        rows = frame.filter(scheduler="f2+easy", metric=metric).filter(polars.col("site.area_m2") == area)
        return float(rows["value"].item())

    saved = value(12, "horizon_cost") - value(24, "horizon_cost")
    less_peak = value(12, "horizon_demand_charge") - value(24, "horizon_demand_charge")  # of one month
    yearly = (saved - less_peak) * 365.25 * 86_400 / value(12, "horizon_s") + 12 * less_peak
    years = f"{20 * 12 / yearly:,.1f} years"
    assert years in capsys.readouterr().out
    assert years in (out / "report.html").read_text(encoding="utf-8")
    assert years in (out / "table.md").read_text(encoding="utf-8")


def test_the_answer_says_what_the_bill_covers(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its ends, and what is paid after the last job: the difference to a bill that ends with the last job."""

    def told(horizon: float) -> tuple[str, polars.DataFrame]:
        file = site.with_name("own.toml")
        text = site.read_text(encoding="utf-8").replace("[evaluation]", f"[evaluation]\nhorizon = {horizon}")
        file.write_text(text, encoding="utf-8")
        out = tmp_path / f"out-{horizon}"
        words = ["whatif", "--trace", str(DUMP), "--site", str(file), "--schedulers", "fcfs+easy", "--out", str(out)]
        assert main(words) == 0
        return " ".join(capsys.readouterr().out.split()), polars.read_parquet(out / "results.parquet")

    said, exact = told(1)
    assert re.search(
        r"The bill covers 2\.5 days, from the first submission, 2026-06-08 06:40, to 2026-06-10 [\d:]+\.", said
    )
    assert "when nothing runs" not in said
    said, longer = told(3)
    paid = [frame.filter(metric="horizon_cost")["value"].item() for frame in (exact, longer)]
    late = paid[1] - paid[0]
    assert f"{late:.3f} EUR ({late / paid[1]:.1%}) of its bill come later, when nothing runs." in said
    assert "Under fcfs+easy the last job ends 4.9 days before that" in said
    page = (tmp_path / "out-3" / "report.html").read_text(encoding="utf-8")
    assert "The bill covers 7.4 days" in page


def test_the_answer_says_which_jobs_are_missing_and_how_many_do_not_keep_the_record(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On fewer processors than the site had; the counts are those of the metric and of the notes."""
    out = tmp_path / "out"
    words = ["whatif", "--trace", str(DUMP), "--site", str(site), "--processors", "20", "--out", str(out)]
    assert main([*words, "--schedulers", "as-recorded,fcfs+easy"]) == 0
    frame = polars.read_parquet(out / "results.parquet")
    late = frame.filter(scheduler="as-recorded", metric="late_starts")["value"].item()
    assert late > 0
    told = " ".join(capsys.readouterr().out.split())
    why = "9 (job larger than the machine (20 processors))"
    assert re.search(rf"Left out of the 61 jobs of the file: 1 \(job that never started\), {re.escape(why)}\.", told)
    line = f"as-recorded does not keep the record: of 51 jobs, {late:.0f} start 7.6 h later than recorded on average."
    assert line in told
    assert line in (out / "report.html").read_text(encoding="utf-8")


def test_the_answer_tells_what_is_left_of_it_with_the_outages_of_the_record(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dump without its jobs above 20 processors shows times in which the machine is free although jobs wait."""
    out, dump = tmp_path / "out", tmp_path / "small.txt"
    lines = DUMP.read_text(encoding="utf-8").splitlines()
    dump.write_text("\n".join([lines[0], *(each for each in lines[1:] if int(each.split("|")[-1]) <= 20)]) + "\n")
    words = ["whatif", "--site", str(site), "--outages", "--schedulers", "as-recorded,sjf+easy", "--processors", "20"]
    assert main([*words, "--trace", str(dump), "--out", str(out)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    costs = {row["scheduler"]: row["value"] for row in polars.read_parquet(out / "results.parquet").filter(
        metric="horizon_cost").iter_rows(named=True)}  # fmt: skip
    assert set(costs) == {"as-recorded", "sjf+easy", "sjf+easy with outages"}
    less = costs["as-recorded"] - costs["sjf+easy with outages"]
    assert f"With the outages that the record shows, they cost {less:.4f} EUR less" in told
    assert "Differences to as-recorded, all with the outages" in (out / "report.html").read_text(encoding="utf-8")
    assert main([*words, "--trace", str(DUMP), "--out", str(tmp_path / "none")]) == 2, "jobs that ran are left out"
    assert "--outages: the record shows no outages, or they cannot be told" in capsys.readouterr().err


def test_a_machine_that_is_not_the_recorded_one_is_told(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Although the record, which is the baseline, has the recorded waits on any machine that is large enough."""
    words = ["whatif", "--trace", str(DUMP), "--site", str(site), "--schedulers", "as-recorded,f2+easy,fcfs+easy"]
    assert main([*words, "--processors", "480", "--json"]) == 0
    notes = [note["text"] for note in json.loads(capsys.readouterr().out)["notes"]]
    assert any("simulated with fcfs+easy 0.00 h: the simulated machine differs from the real one" in n for n in notes)
    assert main([*words, "--json"]) == 0
    assert "differs from the real one" not in capsys.readouterr().out


def test_an_interrupted_answer_keeps_the_finished_schedulers(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C while the third of four is simulated: the answer of two is written and says so; a resumed one is whole."""
    words = ["whatif", "--trace", str(DUMP), "--site", str(site), "--schedulers", "as-recorded,sjf+easy,f2+easy,random"]
    assert main([*words, "--out", str(tmp_path / "whole")]) == 0
    capsys.readouterr()
    real, at = simulating.simulate, ["f2+easy"]

    def stopping(*given: Any, **more: Any) -> Any:
        if given[4].name in at:
            raise KeyboardInterrupt
        return real(*given, **more)

    monkeypatch.setattr(simulating, "simulate", stopping)
    out = tmp_path / "out"
    again = [*words, "--out", str(out)]
    assert main(again) == 130
    told = capsys.readouterr()
    assert told.err.splitlines()[-1].startswith("greenbatch: interrupted; 2 of 4 schedulers are finished; resume with:")
    assert "2 of 4 schedulers; interrupted" in told.out
    whole = polars.read_parquet(tmp_path / "whole" / "results.parquet")
    kept = polars.read_parquet(out / "results.parquet")
    own = ~polars.col("metric").str.starts_with("common_horizon")  # which depends on who is compared
    wanted = whole.filter(own, polars.col("scheduler").is_in(["as-recorded", "sjf+easy"]))
    assert kept.filter(own).equals(wanted)
    assert "2 of 4 schedulers; interrupted" in (out / "report.html").read_text(encoding="utf-8")
    assert main([*again, "--resume"]) == 130, "interrupted again: what is there is not replaced"
    assert polars.read_parquet(out / "results.parquet").equals(kept)
    at.clear()
    assert main([*again, "--resume"]) == 0
    assert polars.read_parquet(out / "results.parquet").equals(whole)


def test_an_answer_interrupted_before_two_schedulers_are_finished_leaves_nothing(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says that nothing is kept."""
    real = simulating.simulate

    def stopping(*given: Any, **more: Any) -> Any:
        if given[4].name == "sjf+easy":
            raise KeyboardInterrupt
        return real(*given, **more)

    monkeypatch.setattr(simulating, "simulate", stopping)
    words = ["whatif", "--trace", str(DUMP), "--site", str(site), "--schedulers", "as-recorded,sjf+easy"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 130
    last = "greenbatch: interrupted; 1 of 2 schedulers is finished, nothing is kept; repeat the command"
    assert capsys.readouterr().err.splitlines()[-1] == last
    assert not (tmp_path / "out").exists()


def swept(site: Path, *flags: str) -> int:
    command = ["whatif", "--trace", str(DUMP), "--site", str(site), "--schedulers", "as-recorded,f2+easy"]
    return main([*command, *flags])


def test_the_answer_of_a_sweep_names_the_value_its_saving_and_its_payback(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same sentence in JSON, in the terminal and on the first screen; its numbers are those of the fields."""
    flags = ["--sweep", "site.area_m2=12,24,48", "--unit-cost", "20"]
    assert swept(site, *flags, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    by_value = told["payback"]["schedulers"]["as-recorded"]
    for text, each in by_value.items():
        assert each["investment"] == 20 * (int(text) - 12)
        assert np.isclose(each["years"] * each["saving_per_year"], each["investment"], rtol=1e-12)
    assert by_value["24"]["years"] < by_value["48"]["years"]
    assert by_value["24"]["saving_per_year"] < by_value["48"]["saving_per_year"]
    answer = told["answer"][0]
    assert answer.startswith("Under as-recorded, site.area_m2 = 48 saves most against 12: ")
    assert f"{by_value['48']['saving_per_year']:.1f} EUR a year" in answer
    assert f"24 is paid back soonest: {by_value['24']['saving_per_year']:.1f} EUR a year" in answer
    assert f"paid back in {by_value['24']['years']:,.1f} years" in answer
    out = tmp_path / "out"
    assert swept(site, *flags, "--out", str(out)) == 0
    assert answer in " ".join(capsys.readouterr().out.split())
    page = (out / "report.html").read_text(encoding="utf-8")
    assert f'<p class="sentence">{answer}</p>' in page


def test_a_size_that_saves_nothing_is_never_paid_back(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A load that is always there costs more, the larger it is; without a unit cost, nothing is said of a payback."""
    flags = ["--sweep", "site.base_load_w=0,100", "--json"]
    assert swept(site, *flags, "--unit-cost", "2") == 0
    told = json.loads(capsys.readouterr().out)
    never = "no other value of site.base_load_w costs less than 0"
    assert told["answer"][0] == f"Under as-recorded, {never}; none ever pays for itself."
    assert told["payback"]["schedulers"]["f2+easy"]["100"]["years"] is None
    assert swept(site, *flags) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["answer"][0] == f"Under as-recorded, {never}."
    assert "payback" not in told


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--unit-cost", "3"], "--unit-cost: is given without --sweep"),
        (["--unit-cost", "0", "--sweep", "site.area_m2=1,2"], "--unit-cost: is '0'"),
        (["--unit-cost", "x", "--sweep", "site.area_m2=1,2"], "--unit-cost: is 'x'"),
        (["--unit-cost", "3", "--sweep", "site.area_m2=1"], "--unit-cost: requires at least two sizes"),
        (["--sweep", "site.area_m2"], "--sweep"),
        (["--baseline", "sjf"], "--baseline"),
        (["--outages", "--sweep", "site.area_m2=1,2"], "--sweep and --outages: cannot be combined yet"),
    ],
)
def test_bad_flags_are_one_line(
    flags: list[str], told: str, site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, one line, and no folder."""
    out = tmp_path / "out"
    assert main(["whatif", "--trace", str(DUMP), "--site", str(site), "--out", str(out), *flags]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("greenbatch: ")]
    assert told in lines[-1]
    assert not out.exists()


def test_payback_requires_prices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without them, nothing can be saved."""
    command = ["whatif", "--trace", str(DUMP), "--site", str(ROOT / "examples" / "site.toml"), "--unit-cost", "3"]
    assert main([*command, "--sweep", "site.area_m2=1,2", "--out", str(tmp_path / "out")]) == 2
    assert "requires prices" in capsys.readouterr().err


def test_json_alone(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object on standard output, without a folder."""
    lines = DUMP.read_text(encoding="utf-8").splitlines()
    (twice := site.with_name("twice.txt")).write_text("\n".join([*lines, lines[1]]) + "\n", encoding="utf-8")
    command = ["whatif", "--trace", str(twice), "--site", str(site), "--schedulers", "as-recorded,sjf+easy", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert any(re.search(r"dropped|merged|duplicate", note["text"]) for note in found["notes"])
    assert found["baseline"] == "as-recorded"
    assert found["answer"][0].startswith("Under as-recorded, 60 jobs cost")


def test_a_limit_that_jobs_are_held_for_leaves_out_who_does_not_know_it(site: Path) -> None:
    """The record, and planners, start jobs whatever the limit; what is compared instead can be simulated."""
    scenario = load_scenario(site, trace=DUMP)
    held = {"site.grid.import_limit_w": 1e6, "site.grid.over_limit": "hold"}
    limited = load_scenario(site, trace=DUMP, overrides=held)
    every, base, told = choose_schedulers(scenario, None, defaults=recorded_and_rules)
    assert (base, told) == ("as-recorded", [])
    names, base, (note,) = choose_schedulers(limited, None, defaults=recorded_and_rules)
    assert base == names[0] == "fcfs+easy"
    assert f"{', '.join(each for each in every if each not in names)} is not compared: " in note.what
    window = limited.window(0, 5)
    for name in every:
        given = window, limited.cluster, limited.site, limited.rules, scheduler(name).program(window)
        if name in names:
            prepare(*given)
        else:
            with pytest.raises(
                InputError, match=f"^{name.partition(':')[0]}.*: starts jobs as recorded, whatever they draw"
            ):
                prepare(*given)
    assert choose_schedulers(limited, "as-recorded")[0] == ("as-recorded",), "what is asked for is refused later"
