"""What agents of the study ``offline`` learned, and how fast: Table 7.1 beside ours, and online decisions.

All are made of rows (`study_results.Result.rows`).
"""

# ruff: noqa: RUF001 - typographic dashes and minus signs are meant for the reader.

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from greenbatch.experiments.papers.cocorl_tables import by_setting
from greenbatch.experiments.papers.offline import AS_PUBLISHED, METHODS, MIXES, NAME
from greenbatch.experiments.papers.offline_agreement import with_dataset
from greenbatch.experiments.papers.offline_curves import LAST, Curve, Reach, reach
from greenbatch.experiments.papers.offline_tables import WORTH, Row, learner_of
from greenbatch.experiments.papers.reproduce import published
from greenbatch.experiments.reports.drawing import Picture, drawing, new_figure, slug, wrapped
from greenbatch.experiments.reports.looks import looks_of
from greenbatch.experiments.reports.tables import Cell, Table
from greenbatch.experiments.running.statistics import Interval, mean_interval

PUBLISHED_AT = "10"
"""Size of Table 7.1."""
AGREED = (
    "Share of the decisions in which the agent's most probable action is the rule's, in new episodes that the rules "
    "of the dataset control, by their shares. Only decisions with at least two valid actions count; whether those of "
    "the paper do is not stated, nor is its mask, so the published figures stand beside. Uniform: an agent that "
    "chooses any valid action. 95% intervals over seeds and draws."
)
MIXED = "No policy agrees fully with a dataset of several rules, because it does not see whose decision it is."
REACHED = (
    f"Value: reward on validation windows, the same for all. Final: mean of the last {LAST} validations, over the "
    f"seeds. Reached: the last of the first {LAST} validations in a row whose mean is at least the final value of "
    "online training. Decisions and steps: mean of the seeds that reach it [lowest, highest]."
)


def agreement_tables(rows: Sequence[Row]) -> list[Table]:
    """Table 7.1 beside ours, one table per size; none without agents."""
    made = (_agreement_table(name, own) for name, own in by_setting(rows).items())
    return [table for table in made if table.rows]


def _agreement_table(setting: str, rows: Sequence[Row]) -> Table:
    told = [row for row in rows if row.get("agreement")]
    learned = {at.mix for row in told if (at := learner_of(row)) is not None}
    mixes = [mix for mix in MIXES if mix in learned]
    printed = {(line["row"], line["column"]): line["value"] for line in published(NAME) if line["table"] == "Table 7.1"}
    names = [(method, kind) for kind in (False, True) for method in METHODS]
    lines = []
    for method, kind in names:
        own = [row for row in told if (at := learner_of(row)) and (at.method, at.published) == (method, kind)]
        if own:
            cells = [cell for mix in mixes for cell in (
                _printed(printed, method, mix, setting), _agreed(own, mix)
            )]  # fmt: skip
            lines.append((f"{METHODS[method].column}{AS_PUBLISHED * kind}", tuple(cells)))
    if told:
        uniform = [_uniform(told, mix) for mix in mixes]
        lines.append(("Uniform", tuple(cell for each in uniform for cell in (Cell("–"), each))))
    headers = [
        (f"{mix}, {what}", "%", f"{mix}, {what}") for mix in mixes for what in ("published", "ours")
    ]  # fmt: skip
    several = (MIXED,) if any(len(MIXES[mix].shares) > 1 for mix in mixes) else ()
    title = f"Action agreement with the rules of a dataset (Table 7.1), {setting}"
    return Table(title, tuple(headers), tuple(lines), corner="Agent", notes=(AGREED, *several))


def _printed(printed: dict[tuple[str, str], str], method: str, mix: str, setting: str) -> Cell:
    return Cell(printed.get((METHODS[method].table, mix), "–") if setting == PUBLISHED_AT else "–")


def _agreed(rows: Sequence[Row], mix: str) -> Cell:
    """The agreement of the agent that learned from a dataset, or from none, with its rules."""
    for row in rows:
        at = learner_of(row)
        if at is not None and at.mix in {mix, ""} and set(MIXES[mix].shares) <= set(row["agreement"]):
            return _percent(mean_interval(100 * with_dataset(row["agreement"], MIXES[mix].shares)))
    return Cell("–")


def _uniform(rows: Sequence[Row], mix: str) -> Cell:
    shares = MIXES[mix].shares
    told = next(row["agreement"] for row in rows if set(shares) <= set(row["agreement"]))
    return _percent(mean_interval(100 * with_dataset(told, shares, "at_random")))


def _percent(at: Interval) -> Cell:
    return Cell(f"{at.mean:.1f}", f"[{at.low:.1f}, {at.high:.1f}]" if at.low < at.high else "")


# ---------------------------------------------------------------- steps


def curves_of(row: Row) -> list[Curve]:
    """The validations of an agent's seeds."""
    return [Curve(**each) for each in row.get("validations", ())]


def reaches(rows: Sequence[Row]) -> dict[str, Reach]:
    """Agents of a size that act online -> how soon they have the final value of online training with like numbers."""
    found = {}
    learned = [(row, at) for row in rows if (at := learner_of(row)) is not None]
    for row, at in learned:
        online = next((own for own, other in learned if other.method == "online" and other.published == at.published),
                      None)  # fmt: skip
        if at.method in {"online", "offline-online"} and online is not None:
            made = reach(curves_of(row), curves_of(online))
            if made is not None:
                found[str(row["scheduler"])] = made
    return found


def steps_table(rows: Sequence[Row]) -> Table:
    """Online decisions until the final value of online training, per size and agent."""
    lines = []
    for setting, own in by_setting(rows).items():
        for name, made in reaches(own).items():
            ratio = made.ratio
            cells = (
                Cell(WORTH.number(made.level)),
                Cell("–" if made.before is None else WORTH.number(made.before)),
                Cell(WORTH.number(made.final)),
                Cell(f"{made.count} of {len(made.decisions)}"),
                _range(made.decisions), _range(made.steps),
                Cell("–" if ratio is None else f"{100 * ratio:.0f}"),
            )  # fmt: skip
            lines.append((f"{setting}: {name}", cells))
    headers = (
        ("Final value of online training", "", "Online"), ("Before its first decision", "", "Before"),
        ("Final value", "", "Final"), ("Seeds that reach it", "", "Reach it"),
        ("Decisions until then", "", "Decisions"),
        ("Gradient steps until then", "", "Steps"), ("Decisions over those of online training", "%", "Ratio"),
    )  # fmt: skip
    return Table("Online decisions to the value of online training", headers, tuple(lines), corner="Size: agent",
                 notes=(REACHED,))  # fmt: skip


def step_findings(rows: Sequence[Row]) -> list[str]:
    """How soon agents that begin offline have the final value of online training, a line each."""
    told = []
    for setting, own in by_setting(rows).items():
        for row in own:
            at, made = learner_of(row), reaches(own).get(str(row["scheduler"]))
            if at is not None and at.mix and made is not None:
                share = "" if made.ratio is None else f", after {100 * made.ratio:.0f} % of its decisions"
                told.append(
                    f"{setting}: {row['scheduler']} has the final value of online training in {made.count} of "
                    f"{len(made.decisions)} seeds{share}."
                )
    return told


def _range(each: Sequence[int | None]) -> Cell:
    known = [number for number in each if number is not None]
    if not known:
        return Cell("–")
    return Cell(f"{np.mean(known):,.0f}", f"[{min(known):,}, {max(known):,}]" if min(known) < max(known) else "")


def curve_plot(rows: Sequence[Row], setting: str) -> Picture | None:
    """Validation value against online decisions: a line per seed, and the final value of online training.

    Args:
        rows: the rows of a size.
        setting: its name.
    """
    shown = {name: curves_of(row) for row in rows if (name := str(row["scheduler"])) in reaches(rows)}
    if not shown:
        return None
    told = []
    with drawing():
        figure, axes = new_figure(2.6 + 0.16 * len(shown))
        for name, look in looks_of(shown).items():
            for k, curve in enumerate(shown[name]):
                begun = max(sum(each == 0 for each in curve.decisions) - 1, 0)  # all before have no decision
                axes.plot(curve.decisions[begun:], curve.values[begun:], color=look.color, linestyle=look.dash,
                          linewidth=0.9, alpha=0.8, label=wrapped(name, 44) if k == 0 else None)  # fmt: skip
            ends = [curve for curve in shown[name] if curve.values]
            told.append(f"{name}: {', '.join(f'{end.final:.4g} after {end.decisions[-1]:,}' for end in ends)}")
        for level in {made.level for made in reaches(rows).values()}:
            axes.axhline(level, color="black", linewidth=0.8, linestyle=":")
        axes.set(xlabel="online decisions", ylabel="value of validation windows")
        figure.legend(loc="outside lower left", ncols=1)
        caption = "A line per seed. Dotted: the final value of online training. Offline training begins at 0 decisions."
        alt = f"Line chart of validation values against online decisions, by seed. {'; '.join(told)}."
        title = f"Value by online decisions, {setting}"
        return Picture(f"steps-{slug(setting)}", title, caption, alt, figure)
