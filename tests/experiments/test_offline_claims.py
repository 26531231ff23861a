"""The study ``offline``: published claims and Table 7.2 beside ours, datasets, decisions until a value is reached."""

# ruff: noqa: RUF001 - typographic dashes and minus signs are those of the tables.

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from greenbatch.experiments.papers.cocorl import HEURISTICS, STRICT
from greenbatch.experiments.papers.offline import LEARNERS, METHODS, SETTINGS, VALUE
from greenbatch.experiments.papers.offline_claims import claim_findings, claims, recommendation_tables, verdict_of
from greenbatch.experiments.papers.offline_curves import Curve, curve_from, reach, reached
from greenbatch.experiments.papers.offline_tables import dataset_table, mixed_value
from greenbatch.experiments.papers.reproduce import published
from greenbatch.experiments.running.statistics import Interval

# ---------------------------------------------------------------- claims


def at(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high, 10)


@pytest.mark.parametrize(
    ("relation", "difference", "verdict"),
    [
        (">", at(0.1, 3), "holds"), (">", at(-0.1, 3), "within the interval"), (">", at(-3, -0.1), "does not hold"),
        ("<", at(-3, -0.1), "holds"), ("<", at(0.1, 3), "does not hold"), ("<", at(-1, 1), "within the interval"),
        ("=", at(-1.9, 1.9), "holds"), ("=", at(1, 3), "within the interval"), ("=", at(2.1, 3), "does not hold"),
        ("=", at(-3, -2.1), "does not hold"), (">=", at(-1.9, 30), "holds"), (">=", at(-3, -2.1), "does not hold"),
        (">=", at(-3, 30), "within the interval"), (">", at(0, 3), "within the interval"),
        (">", at(0, 0), "does not hold"), ("<", at(0, 0), "does not hold"),
        ("=", at(0, 0), "holds"), (">", Interval(5.0, math.nan, math.nan, 1), "within the interval"),
    ],
)  # fmt: skip
def test_a_relation_is_decided_by_the_whole_interval(relation: str, difference: Interval, verdict: str) -> None:
    assert verdict_of(relation, difference) == verdict


def test_every_claim_is_of_rows_and_sizes_of_the_study() -> None:
    lines = published("offline-claims")
    assert len({line["claim"] for line in lines}) == len(lines) == 21
    columns = {(learner.method, learner.mix) for learner in LEARNERS.values()}
    for line in lines:
        assert set(line["sizes"].split()) <= set(SETTINGS)
        for side in (line["left"], line["right"]):
            method, _, mix = side.partition("/")
            assert side in HEURISTICS or (method, mix) in columns
    tables = published("offline")
    assert [line["value"] for line in tables if line["table"] == "Table 7.1"] == [
        "95",
        "99",
        "98",
        "91",
        "91",
        "87",
        "21",
        "21",
        "17",
    ]
    assert {(line["row"], line["column"]) for line in tables if line["table"] == "Table 7.2"} == {
        (quality, method.table) for quality in ("High", "Medium", "Low", "No data") for method in METHODS.values()
    }  # fmt: skip


def row(name: str, values: list[list[float]], preset_: str | None = None, trace: str = "10") -> dict[str, Any]:
    mean = float(np.mean(values))
    figures = {VALUE: {"mean": mean, "low": mean, "high": mean, "values": values}}
    agent = None if preset_ is None else {"preset": preset_, "seeds": [0, 1], "not_trained": []}
    return {"trace": trace, "scheduler": name if agent is None else f"{name}+none", "column": name, "agent": agent,
            "figures": figures, "starts": [0] * len(values[0])}  # fmt: skip


LEVELS = [900.0, 1000.0, 1100.0, 1000.0, 950.0, 1050.0]


def scaled(*factors: float) -> list[list[float]]:
    return [[factor * level + (k % 2) for k, level in enumerate(LEVELS)] for factor in factors]


def made_rows() -> list[dict[str, Any]]:
    rules = [row(rule, scaled(1.0 if rule.startswith("qos") else 0.9)) for rule in STRICT]
    return [
        *rules, row("BC combo", scaled(0.95, 0.951), "bc"), row("BC qos", scaled(0.999, 1.001), "bc"),
        row("Offline combo", scaled(1.1, 1.12), "offline"), row("Offline qos", scaled(0.9, 1.2), "offline"),
        row("Online", scaled(0.8, 0.81), "online"),
    ]  # fmt: skip


def test_claims_are_checked_at_the_sizes_that_they_are_about() -> None:
    verdicts = {claim.printed["claim"]: claim.verdict for claim in claims(made_rows())}
    assert verdicts == {
        "rules-1": "holds", "rules-2": "holds", "rules-3": "does not hold", "rules-4": "does not hold",
        "7.3-combo": "holds", "7.3-qos": "holds", "7.4a-bc-2": "holds", "7.4a-offline": "holds",
        "7.4a-same-1": "within the interval", "7.6-small-1": "does not hold", "7.6-small-2": "does not hold",
    }  # fmt: skip
    assert {claim.setting for claim in claims([{**r, "trace": "50"} for r in made_rows()])} == {"50"}
    at_50 = {claim.printed["claim"]: claim.verdict for claim in claims([{**r, "trace": "50"} for r in made_rows()])}
    assert at_50["7.5-1"] == at_50["7.6-large-1"] == "holds"
    assert "7.4a-offline" not in at_50


def test_recommendations_are_recomputed_beside_the_printed_ones() -> None:
    (table,) = recommendation_tables(made_rows())
    cells = {name: [cell.text for cell in line] for name, line in table.rows}
    assert cells["High"] == ["yes", "yes", "yes", "open", "yes", "not trained", "NA", "–"]
    assert cells["Low"] == ["no", "no", "no", "yes", "yes", "not trained", "NA", "–"]
    assert cells["No data"] == ["no", "–", "no", "–", "no", "–", "yes", "no"]
    assert cells["Medium"][1] == "not trained"
    (told,) = claim_findings(made_rows())
    assert told.startswith("10: of 11 claims 6 hold, 4 do not, and 1 are within the interval.")


def test_the_quality_of_a_dataset_is_that_of_its_rules() -> None:
    rows = made_rows()
    np.testing.assert_allclose(mixed_value(rows, {"qos+none": 50, "sjf+none": 50}), scaled(0.95)[0])
    table = dataset_table(rows, ["combo", "qos"])
    combo, qos = (line for _, line in table.rows)
    assert [cell.text for cell in combo[1:3]] == ["qos+none", "25"]
    assert combo[3].text == "−7.5"
    assert [cell.text for cell in qos[1:]] == ["qos+none", "100", "+0.0", "+0.0"]


# ---------------------------------------------------------------- online decisions


def test_a_value_is_reached_by_validations_in_a_row() -> None:
    once = Curve(0, (0, 10, 20, 30, 40, 50), (0, 1, 2, 3, 4, 5), (1.0, 8.0, 1.0, 5.0, 5.0, 5.0))
    assert reached(once, 5.0) == 5  # 8 alone is not enough
    assert reached(once, 5.1) is None
    assert reached(replace(once, values=(6.0,) * 6), 5.0) == 2
    assert reached(replace(once, values=()), 5.0) is None


def test_curves_add_up_online_decisions() -> None:
    log = [
        {"epoch": 1, "steps": 5, "validation": 1.0}, {"epoch": 2, "steps": 10, "decisions": 100},
        {"epoch": 3, "steps": 15, "decisions": 120, "validation": 2.0}, {"epoch": 4, "steps": 20, "validation": None},
    ]  # fmt: skip
    assert curve_from(7, log) == Curve(7, (0, 220), (5, 15), (1.0, 2.0))


def test_how_soon_the_value_of_online_training_is_reached() -> None:
    online = [Curve(k, (100, 200, 300, 400), (1, 2, 3, 4), (0.0, 4.0 + k, 5.0 + k, 6.0 + k)) for k in (0, 2)]
    begun = Curve(0, (0, 0, 50, 100, 150), (1, 2, 3, 4, 5), (1.0, 5.0, 6.0, 6.0, 6.0))
    slow = replace(begun, seed=1, values=(1.0, 2.0, 3.0, 3.0, 3.0))
    made = reach([begun, replace(begun, seed=1)], online)
    assert made is not None
    assert made.level == pytest.approx(6.0)
    assert made.decisions == (150, 150)
    assert made.steps == (5, 5)
    assert (made.before, made.final, made.ratio) == (5.0, 6.0, 150 / 400)
    some = reach([begun, slow], online)
    assert some is not None
    assert (some.decisions, some.count, some.ratio) == ((150, None), 1, None)
    assert reach([], online) is None
    assert reach([begun], [Curve(0, (), (), ())]) is None
