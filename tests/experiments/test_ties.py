"""Nobody wins a tie: headlines, tiles, tables and findings of figures that are the same, or differ by rounding."""

from __future__ import annotations

import re
from dataclasses import replace

import polars
import pytest
from example_windows import CLUSTER, example, some_jobs
from test_answer import BASE, answer_of, frame_of

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.experiments.reports.answer import key_figures, objective_of, trade_sentence
from greenbatch.experiments.reports.cautions import cautions
from greenbatch.experiments.reports.findings import headlines, summary_lines
from greenbatch.experiments.reports.notes import left_out_words, why_left_out
from greenbatch.experiments.reports.tables import comparison_table, difference_table, idle_words
from greenbatch.experiments.reports.whatif import plain_words
from greenbatch.experiments.running.frames import tidy
from greenbatch.notes import Note

PAID = BASE | {"horizon_cost": 200.0, "horizon_carbon_kg": 90.0, "makespan_ratio": 1.0, "horizon_s": 1e5}
NIGHT = PAID | {"renewable_utilization": 0.0}
"""Without sun and wind."""


def of(*others: dict[str, float]) -> polars.DataFrame:
    """A baseline and schedulers ``a``, ``b``, ... with changes, on one window."""
    rows = {"fcfs+easy": NIGHT} | {name: NIGHT | each for name, each in zip("abcd", others, strict=False)}
    return tidy([("0", rows)])


def said(frame: polars.DataFrame) -> str:
    """Everything that is said of a comparison in words."""
    _, outcomes = example(windows=1)
    tiles = [f"{tile.label} {tile.value} {tile.scheduler} {tile.comment}" for tile in key_figures(frame, "fcfs+easy")]
    return "\n".join([
        trade_sentence(frame, "fcfs+easy"), *tiles, *headlines(frame, "fcfs+easy"),
        *summary_lines(frame, outcomes, "fcfs+easy"),
    ])  # fmt: skip


def test_rounding_is_no_winner() -> None:
    """A figure below by less than what is shown as 0.0 %."""
    noise = {
        metric: NIGHT[metric] * (1 - 2e-5) for metric in ("horizon_cost", "horizon_carbon_kg", "horizon_brown_kwh")
    }
    told = said(of(noise | {"avg_wait_s": 7200.0}))
    assert "0.0%" not in told
    assert not re.search(r"^a (costs|emits|draws|has the lowest (cost|carbon))", told, re.MULTILINE)
    assert "Largest renewable share" not in told, "it is 0 for all"


def test_the_objective_is_one_that_tells_schedulers_apart() -> None:
    frame = of({"horizon_brown_kwh": 700.0})
    assert objective_of(frame) == "horizon_brown_kwh"
    assert trade_sentence(frame, "fcfs+easy").startswith("a draws 30% less from the grid than fcfs+easy")
    assert [tile.label for tile in key_figures(frame, "fcfs+easy")] == ["Least brown energy"]


def test_a_tie_has_no_winner() -> None:
    better = {"horizon_carbon_kg": 45.0}
    frame = of(better, better | {"avg_wait_s": 1800.0}, {"horizon_carbon_kg": 80.0})
    told = said(frame)
    assert "a and b tie for the lowest carbon, 45.00 kg, 50% below fcfs+easy." in told
    (tile,) = [tile for tile in key_figures(frame, "fcfs+easy") if tile.label == "Lowest carbon"]
    assert (tile.scheduler, tile.comment) == ("", "a and b, 50% below the baseline")
    assert trade_sentence(frame, "fcfs+easy").startswith("b emits 50% less CO₂"), "the one whose jobs wait less"
    alike, more = of(better, better), of(better, better, better)
    assert trade_sentence(alike, "fcfs+easy").startswith("a and b tie: each emits 50% less CO₂ than fcfs+easy")
    assert trade_sentence(more, "fcfs+easy").startswith("a, b and 1 more tie: each emits 50% less CO₂")


def test_a_price_that_is_barely_higher_is_not_called_no_higher() -> None:
    wins = {"horizon_carbon_kg": 45.0}
    for stretch, words in (
        (1.0, "no higher mean wait, bounded slowdown or makespan"),
        (1.03, "a barely higher makespan"),
    ):
        assert f"at {words}" in said(of(wins | {"makespan_ratio": stretch}))


def test_the_baseline_is_not_beaten_by_its_equal() -> None:
    told = said(of({"horizon_carbon_kg": 90.0}, {"horizon_carbon_kg": 100.0}))
    assert "No scheduler has a lower carbon than fcfs+easy, 90.00 kg." in told


def test_columns_that_are_the_same_for_all_are_one_line() -> None:
    frame = of({"horizon_carbon_kg": 45.0, "avg_wait_s": 60.0})
    table = comparison_table(frame)
    assert [header for header, _, _ in table.columns] == ["Carbon over the horizon", "Mean wait"]
    (line,) = [line for line in table.notes if line.startswith("The same for all: ")]
    assert "Renewable utilization 0.0 %" in line
    assert [header for header, _, _ in difference_table(frame, "fcfs+easy").columns] == [
        "Carbon over the horizon", "Mean wait",
    ]  # fmt: skip
    assert len(comparison_table(of({})).columns) > 3, "if all are, all are shown"
    alone = comparison_table(frame.filter(polars.col("scheduler") == "a"))
    assert "Renewable utilization" in [header for header, _, _ in alone.columns], "nothing to compare with"


def test_the_answer_of_whatif_offers_no_rounding() -> None:
    changes = {"horizon_cost": PAID["horizon_cost"] * (1 - 1e-4), "horizon_brown_kwh": 1000.0}
    (lead, *_) = plain_words(answer_of(frame_of(1, base=PAID, **changes)))
    assert "No other scheduler improves any of these figures." in lead
    assert "0.0%" not in lead


def dropped(share: float) -> Note:
    return Note("job that fits on no nodes of the cluster (memory) dropped", 5_660, about="jobs", level="change",
                shares=((share, "processor-hours"), (0.28, "jobs")))  # fmt: skip


@pytest.mark.parametrize("share", [0.75, 0.2])
def test_left_out_work_stands_in_the_headline(share: float) -> None:
    """The count is that of the file, not of what is left."""
    answer = answer_of(frame_of(1, base=PAID, horizon_cost=150.0))
    jobs = answer.scenario.workload
    jobs = replace(jobs, notes=(*jobs.notes, dropped(share)))
    lead, *rest = plain_words(replace(answer, scenario=replace(answer.scenario, workload=jobs)))
    kept = len(jobs)
    assert lead.startswith(
        f"Only {kept:,} of the {kept + 5_660:,} jobs of the file are simulated: {5_660 / (kept + 5_660):.0%} of the "
        f"jobs and {share:.0%} of the processor-hours are left out. Under fcfs+easy"
    )
    assert f"Left out of the {kept + 5_660:,} jobs of the file: 5,660 (job that fits on no nodes" in " ".join(rest)


def test_little_that_is_left_out_is_no_headline() -> None:
    jobs = replace(some_jobs(0), notes=(Note("job that never started dropped", 1, about="jobs"),))
    assert left_out_words(jobs) == ""
    assert why_left_out(jobs) == "Left out of the 151 jobs of the file: 1 (job that never started)."
    assert why_left_out(some_jobs(0)) == ""


def test_idle_power_is_included_only_where_it_is_known() -> None:
    group = NodeGroup(name="a", count=2, processors=4, static_power_w=0.0)
    lit = replace(group, name="b", static_power_w=50.0)
    assert idle_words(CLUSTER if CLUSTER.idle_power_w else Cluster.pooled(8, idle_power_w=5.0)) == "idle power included"
    assert idle_words(Cluster.of_nodes((group,))) == "without idle power, of which none is stated"
    assert idle_words(Cluster.of_nodes((group, lit))) == "idle power included where it is stated"
    frame = of({"horizon_brown_kwh": 700.0})
    told = headlines(frame, "fcfs+easy", idle=idle_words(Cluster.of_nodes((group,))))
    assert "idle power included" not in " ".join(told)


def test_the_supply_stands_beside_a_saving() -> None:
    """Supply over load = (used / load) / (used / supply)."""
    base = PAID | {"horizon_self_consumption": 0.3, "horizon_autarky": 0.6}
    told = headlines(frame_of(1, base=base, horizon_brown_kwh=700.0), "fcfs+easy")
    assert told[-1] == (
        "Over the horizon, the site's own sources make 2.00 times the energy used; under fcfs+easy, 40% of it comes "
        "from the grid, and savings are of that part."
    )


QUEUE, NONE = {"avg_bounded_slowdown": 40.0}, {"avg_bounded_slowdown": 1.02, "avg_wait_s": 90.0}
HELD = {"avg_bounded_slowdown": 50.0, "avg_wait_s": 36_000.0}


@pytest.mark.parametrize(("base", "changes", "names"), [
    (NONE, HELD, ("late",)), (NONE, {"avg_bounded_slowdown": 1.03, "avg_wait_s": 95.0}, None), (QUEUE, HELD, None),
    (QUEUE | {"avg_wait_s": 5.0}, HELD, ("late",)),
])  # fmt: skip
def test_who_holds_on_a_machine_without_a_queue_is_named(
    base: dict[str, float], changes: dict[str, float], names: tuple[str, ...] | None
) -> None:
    frame = frame_of(1, base=PAID | base, **changes)
    found = [note for note in cautions(frame, "fcfs+easy") if "no queue" in note.what]
    assert [note.of for note in found] == ([names] if names else [])
    assert all(note.level == "warning" for note in found)
