"""The sentence and the tiles at the top of a report follow the numbers, and say so where they mean little."""

# ruff: noqa: RUF001 - typographic dashes and signs are what is tested.

from __future__ import annotations

import polars
import pytest
from example_windows import example

from greenbatch.experiments.reports.answer import key_figures, objective_of, trade_sentence, unfinished_note
from greenbatch.experiments.reports.whatif import plain_words
from greenbatch.experiments.running.compare import Comparison
from greenbatch.experiments.running.frames import breakdown, tidy
from greenbatch.scenarios import load_scenario
from greenbatch.schedulers import scheduler

BASE = {"avg_bounded_slowdown": 5.0, "avg_wait_s": 3600.0, "max_wait_s": 7200.0, "renewable_utilization": 0.5,
        "makespan_ratio": 1.0, "horizon_brown_kwh": 1000.0}  # fmt: skip


def frame_of(
    windows: int = 6, noise: float = 0.0, base: dict[str, float] | None = None, **changes: float
) -> polars.DataFrame:
    """A baseline and a scheduler that differs from it; brown energy varies by the noise in turn."""
    base = BASE if base is None else base
    rows = []
    for k in range(windows):
        late = base | changes
        sway = noise if k % 2 else -noise
        rows.append(
            (str(k), {"fcfs+easy": base, "late": {m: v + sway * (m == "horizon_brown_kwh") for m, v in late.items()}})
        )
    return tidy(rows)


def test_the_sentence_names_gain_and_price() -> None:
    frame = frame_of(horizon_brown_kwh=600.0, avg_wait_s=7200.0, noise=20.0)
    assert trade_sentence(frame, "fcfs+easy") == (
        "late draws 40% less from the grid than fcfs+easy (95% interval 39 to 41%); its jobs wait 1.00 h longer on "
        "average (1.00 to 1.00 h), 2.00 h instead of 1.00 h."
    )


def test_within_noise_there_is_no_winner() -> None:
    sentence = trade_sentence(frame_of(horizon_brown_kwh=995.0, noise=50.0), "fcfs+easy")
    assert sentence.startswith(
        "No scheduler clearly draws less from the grid than fcfs+easy: late is lowest, by 0.5%, "
    )
    assert "within noise (95% interval −" in sentence
    dearer = trade_sentence(frame_of(horizon_brown_kwh=1100.0), "fcfs+easy")
    assert dearer == "No scheduler clearly draws less from the grid than fcfs+easy, 1,000 kWh."


@pytest.mark.parametrize(
    ("windows", "told"), [(1, "one window, so no interval"), (3, "better in 3 of 3 windows, too few")]
)
def test_few_windows_have_no_interval(windows: int, told: str) -> None:
    sentence = trade_sentence(frame_of(windows, horizon_brown_kwh=600.0, avg_wait_s=1800.0), "fcfs+easy")
    assert told in sentence
    assert "95%" not in sentence
    assert "its jobs wait 0.50 h less on average, 0.50 h instead of 1.00 h." in sentence


def test_money_comes_first_and_has_its_name() -> None:
    base = BASE | {"horizon_cost": 200.0, "horizon_carbon_kg": 90.0}
    frame = frame_of(base=base, horizon_cost=150.0, horizon_carbon_kg=80.0)
    assert objective_of(frame) == "horizon_cost"
    assert trade_sentence(frame, "fcfs+easy", "EUR").startswith("late costs 25% less than fcfs+easy")
    tiles = key_figures(frame, "fcfs+easy", "EUR")
    assert [(tile.label, tile.unit) for tile in tiles] == [("Lowest cost", "EUR"), ("Lowest carbon", "kg CO₂")]


def test_less_than_nothing_is_paid_in_units() -> None:
    """A site that earns money: percentages of a negative cost mean nothing."""
    frame = frame_of(base=BASE | {"horizon_cost": -200.0}, horizon_cost=-260.0)
    assert trade_sentence(frame, "fcfs+easy", "EUR").startswith("late costs 60.00 EUR less than fcfs+easy")
    assert key_figures(frame, "fcfs+easy", "EUR")[0].comment.startswith("60.00 EUR below the baseline")


def test_unfinished_work_is_told_and_much_of_it_cannot_win() -> None:
    base = BASE | {"horizon_unfinished_share": 0.0}
    little = frame_of(base=base, horizon_brown_kwh=600.0, horizon_unfinished_share=0.02)
    assert trade_sentence(little, "fcfs+easy").startswith("late draws 40% less")
    assert unfinished_note(little, "fcfs+easy").endswith("are too low: late 2.0%.")
    much = frame_of(base=base, horizon_brown_kwh=100.0, horizon_unfinished_share=0.31)
    assert trade_sentence(much, "fcfs+easy").startswith("No scheduler ")
    assert {tile.scheduler for tile in key_figures(much, "fcfs+easy")} == {"fcfs+easy"}
    assert unfinished_note(much, "fcfs+easy").endswith("late 31%, left out above.")
    assert unfinished_note(frame_of(base=base), "fcfs+easy") == ""


def test_nothing_is_saved_beside_a_baseline_that_leaves_work() -> None:
    """Its bill is too low, whichever sign the difference has."""
    base = BASE | {"horizon_unfinished_share": 0.31}
    for brown_kwh in (600.0, 1400.0):
        frame = frame_of(base=base, horizon_brown_kwh=brown_kwh, horizon_unfinished_share=0.0)
        assert trade_sentence(frame, "fcfs+easy").startswith(
            "No savings are stated: fcfs+easy leaves 31% of its work unfinished when the horizon ends"
        )
        assert "Least brown energy" not in {tile.label for tile in key_figures(frame, "fcfs+easy")}


def answer_of(windows: polars.DataFrame, jobs: int = 60) -> Comparison:
    """A comparison of the two schedulers, without months."""
    names = ("fcfs+easy", "late")
    return Comparison(
        scenario=load_scenario("default"), deciders={name: scheduler("fcfs+easy") for name in names},
        baseline="fcfs+easy", starts=(0,), jobs=jobs, frame=windows, breakdown=breakdown([]), example={},
    )  # fmt: skip


def in_words(jobs: int, windows: polars.DataFrame) -> list[str]:
    """What whatif says of it."""
    return plain_words(answer_of(windows, jobs))


def test_the_paragraph_of_the_first_screen_has_one_scheduler_in_all_figures() -> None:
    base = BASE | {"horizon_carbon_kg": 90.0}
    (told,) = in_words(60, frame_of(1, base=base, horizon_brown_kwh=600.0, horizon_carbon_kg=90.0))
    assert told == (
        "Under fcfs+easy, 60 jobs emit 90.00 kg CO₂, draw 1,000 kWh from the grid and wait 1.00 h on average. "
        "Under late, they emit the same CO₂, draw 400.0 kWh less from the grid (40.0%) and wait the same on average."
    )
    (told,) = in_words(1, frame_of(1, base=base, horizon_carbon_kg=90.0 - 1e-12))
    assert told == (
        "Under fcfs+easy, 1 job emits 90.00 kg CO₂, draws 1,000 kWh from the grid and waits 1.00 h on average. "
        "No other scheduler improves any of these figures."
    )
    (told,) = in_words(60, frame_of(1, base=base | {"horizon_unfinished_share": 0.2}, horizon_carbon_kg=80.0))
    assert told.endswith("or supply that lasts as long.")
    assert "Under late" not in told


def test_the_wait_is_always_among_four_tiles() -> None:
    tiles = key_figures(example(windows=3)[0], "fcfs+none")
    assert [tile.label for tile in tiles] == [
        "Largest renewable share", "Least brown energy", "Lowest bounded slowdown", "Shortest mean wait",
    ]  # fmt: skip
    assert tiles[-1].unit == "h"
    plain = key_figures(example(windows=3, power=False)[0], "fcfs+none")
    assert len(plain) == 4
    assert plain[-1].label == "Shortest mean wait"


def test_a_larger_share_over_a_longer_schedule_says_so() -> None:
    tile = key_figures(frame_of(renewable_utilization=0.7, makespan_ratio=1.4), "fcfs+easy")[0]
    assert tile.comment == "20.0 points above the baseline, better in 6 of 6, over 1.40 times the makespan"


def test_the_record_cannot_win() -> None:
    row = BASE | {"horizon_brown_kwh": 1.0}
    frame = tidy([(str(k), {"fcfs+easy": BASE, "as-recorded+none": row}) for k in range(6)])
    assert trade_sentence(frame, "fcfs+easy") == "No scheduler draws less from the grid than fcfs+easy, 1,000 kWh."
    assert {tile.scheduler for tile in key_figures(frame, "fcfs+easy")} == {"fcfs+easy"}
