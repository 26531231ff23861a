"""The claims of the study ``offline``: which of two is worth more, and which method to choose for which data.

All are made of rows (`study_results.Result.rows`).
"""

# ruff: noqa: RUF001 - typographic dashes and minus signs are meant for the reader.

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from greenbatch.experiments.papers.cocorl import HEURISTICS, STRICT
from greenbatch.experiments.papers.cocorl_tables import by_setting
from greenbatch.experiments.papers.offline import AS_PUBLISHED, METHODS, MIXES, NAME, Learner
from greenbatch.experiments.papers.offline_results import UNTRAINED
from greenbatch.experiments.papers.offline_tables import Row, best_rule, learner_of, over, row_of
from greenbatch.experiments.papers.rare_tables import percent_cell
from greenbatch.experiments.papers.reproduce import published
from greenbatch.experiments.reports.tables import Cell, Table
from greenbatch.experiments.running.statistics import Interval

Verdict = Literal["holds", "does not hold", "within the interval"]

SIMILAR = 2.0
"""Difference of values that counts as similar: about the intervals of the chapter (§7.5: ±0.015 to ±0.023). [%]"""
_ABOVE = math.nextafter(0.0, 1.0)
"""The smallest number above 0: equal values are neither better nor worse."""
RELATIONS: Mapping[str, tuple[float, float]] = {
    ">": (_ABOVE, math.inf), "<": (-math.inf, -_ABOVE), "=": (-SIMILAR, SIMILAR), ">=": (-SIMILAR, math.inf),
}  # fmt: skip
"""Relation -> least and greatest difference with which it holds: left over right. [%]"""
SIGNS = {">": ">", "<": "<", "=": "≈", ">=": "≳"}
JUDGED = (
    f"Difference: left over right, on the same draws. ≈ similar, ≳ at par or better: within {SIMILAR:g} %, about the "
    "intervals that the chapter states. Holds: so does the whole interval; does not hold: none of it does; else within "
    "the interval."
)
RECOMMENDED = (
    f"Ours: yes if the value is at par with or better than that of the best strict rule, within {SIMILAR:g} %; no if "
    "none of the interval is; else open. In brackets the difference to that rule in percent. That High stands for "
    "the dataset qos, Medium for qos-sjf and Low for combo is our reading."
)
WORDS: Mapping[Verdict, str] = {"holds": "yes", "does not hold": "no", "within the interval": "open"}


def verdict_of(relation: str, difference: Interval) -> Verdict:
    """Whether a relation holds.

    Args:
        relation: of `RELATIONS`.
        difference: left over right, with its interval; without one nothing is decided. [%]
    """
    low, high = RELATIONS[relation]
    if not math.isfinite(difference.low) or not math.isfinite(difference.high):
        return "within the interval"
    if low <= difference.low and difference.high <= high:
        return "holds"
    return "does not hold" if difference.high < low or difference.low > high else "within the interval"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the chapter at a size, and our figures."""

    printed: Mapping[str, str]
    """The row of ``published/offline-claims.csv``."""
    setting: str
    published: bool
    """Whether ours are agents with the numbers of Table A.4."""
    difference: Interval
    """Left over right. [%]"""

    @property
    def verdict(self) -> Verdict:
        """Whether it holds."""
        return verdict_of(self.printed["relation"], self.difference)

    @property
    def text(self) -> str:
        """The claim with a sign, such as ``BC combo < QoS``."""
        left, right = (side_text(self.printed[side]) for side in ("left", "right"))
        return f"{left} {SIGNS[self.printed['relation']]} {right}{AS_PUBLISHED * self.published}"


def side_text(side: str) -> str:
    """A side of a claim in words."""
    method, _, mix = side.partition("/")
    return side if side in HEURISTICS else f"{METHODS[method].column} {mix}".strip()


def side_row(rows: Sequence[Row], side: str, *, published: bool) -> Row | None:
    """The row of a side of a claim at a setting; None if it was not played.

    Args:
        rows: the rows of the setting.
        side: a rule of the paper, or a method and, after a slash, its dataset.
        published: take agents with the numbers of Table A.4.
    """
    if side in HEURISTICS:
        return row_of(rows, rule=HEURISTICS[side])
    method, _, mix = side.partition("/")
    return row_of(rows, learner=Learner(method, mix, published))


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Every claim at every size that it is about and of which both sides were played."""
    found = []
    for printed in published(f"{NAME}-claims"):
        sides = (printed["left"], printed["right"])
        kinds = (False,) if set(sides) <= set(HEURISTICS) else (False, True)
        for setting, own in by_setting(rows).items():
            for kind in kinds if setting in printed["sizes"].split() else ():
                left, right = (side_row(own, side, published=kind) for side in sides)
                if left is not None and right is not None:
                    found.append(Claim(printed, setting, kind, over(left, right)))
    return found


def claim_table(rows: Sequence[Row]) -> Table:
    """The claims beside ours."""
    marks = {"holds": "good", "does not hold": "bad", "within the interval": ""}
    lines = [
        (f"{_place(claim)}, {claim.setting}: {claim.text}",
         (percent_cell(claim.difference), Cell(claim.verdict, mark=marks[claim.verdict])))  # type: ignore[arg-type]
        for claim in claims(rows)
    ]  # fmt: skip
    headers = (("Ours: left over right", "%", "Ours"), ("Verdict", "", "Verdict"))
    return Table(
        "The chapter's claims", headers, tuple(lines), corner="Claim", notes=(JUDGED,),
        legend="Bold: decided by the interval.",
    )  # fmt: skip


def _place(claim: Claim) -> str:
    figure = claim.printed["figure"]
    return f"§{claim.printed['section']}" if figure == "none" else figure


def sentence_lines(rows: Sequence[Row]) -> list[str]:
    """The sentence of each claim that was checked, once."""
    told = {claim.printed["sentence"]: claim for claim in claims(rows)}
    return [f"§{claim.printed['section']}: “{sentence}”." for sentence, claim in told.items()]


def claim_findings(rows: Sequence[Row]) -> list[str]:
    """How many claims hold, and those that do not; a line per size."""
    told = []
    for setting in by_setting(rows):
        own = [claim for claim in claims(rows) if claim.setting == setting]
        counts = {word: sum(claim.verdict == word for claim in own) for word in WORDS}
        refuted = [claim.text for claim in own if claim.verdict == "does not hold"]
        more = f" Does not hold: {'; '.join(refuted)}." if refuted else ""
        told.append(
            f"{setting}: of {len(own)} claims {counts['holds']} hold, {counts['does not hold']} do not, and "
            f"{counts['within the interval']} are within the interval.{more}"
        )
    return told


# ---------------------------------------------------------------- Table 7.2


def recommendation_tables(rows: Sequence[Row]) -> list[Table]:
    """Table 7.2 as printed and from our values, one table per size and kind of agents; none without agents."""
    kinds = (False, True)
    made = (_recommendations(name, own, kind) for name, own in by_setting(rows).items() for kind in kinds)
    return [table for table in made if table is not None]


def _recommendations(setting: str, rows: Sequence[Row], published_kind: bool) -> Table | None:
    learned = [learner for learner in map(learner_of, rows) if learner is not None]
    if not any(learner.published == published_kind for learner in learned):
        return None
    printed = {(line["row"], line["column"]): line["value"] for line in published(NAME) if line["table"] == "Table 7.2"}
    qualities = {mix.quality: name for name, mix in MIXES.items() if mix.quality}
    strict, lines = best_rule(rows, STRICT), []
    for quality in dict.fromkeys(row for row, _ in printed):
        cells: list[Cell] = []
        for name, method in METHODS.items():
            learner = Learner(name, qualities.get(quality, "") if method.learns_from_data else "", published_kind)
            fits = method.learns_from_data == (quality in qualities)
            row = row_of(rows, learner=learner) if fits else None
            cells += [Cell(printed[quality, method.table]), _recommended(row, strict) if fits else Cell("–")]
        lines.append((quality, tuple(cells)))
    headers = [
        (header, "", header)
        for method in METHODS.values() for header in (f"{method.table}, published", f"{method.column}, ours")
    ]  # fmt: skip
    title = f"Table 7.2, {setting}: which method for which data{AS_PUBLISHED * published_kind}"
    nothing = row_of(rows, rule=UNTRAINED)
    beside = () if nothing is None else (
        f"An agent that has learned nothing is {percent_cell(over(nothing, strict)).text} % over the best strict rule: "
        "it takes any job that fits, and rarely waits instead.",
    )  # fmt: skip
    return Table(title, tuple(headers), tuple(lines), corner="Quality", notes=(RECOMMENDED, *beside))


def _recommended(row: Row | None, strict: Row) -> Cell:
    """Whether an agent is at least at par with the best strict rule."""
    if row is None:
        return Cell("not trained")
    difference = over(row, strict)
    return Cell(WORDS[verdict_of(">=", difference)], f"({percent_cell(difference).text})")
