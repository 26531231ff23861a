"""Tables and pictures of the decisions of a model in a window."""

# ruff: noqa: RUF001 - typographic dashes and multiplication signs are meant for the reader.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from greenbatch.experiments.reports.choices import Choice, telling
from greenbatch.experiments.reports.curves import DELAY_COLORS, delay_words
from greenbatch.experiments.reports.drawing import (
    COLORS,
    INK,
    Picture,
    color_of,
    drawing,
    new_figure,
    plain_log_ticks,
    slug,
)
from greenbatch.experiments.reports.pair_plots import pair_plot
from greenbatch.experiments.reports.tables import Cell, Table

SHORT_S = 600.0
"""Up to this longest requested time, times are shown in seconds. [s]"""
CANDIDATES = 5
"""Maximum number of candidates in the table of a decision."""


def choice_tables(
    choices: Sequence[Choice], delays: Sequence[dict[str, Any]], *, first_s: float, nodes: Sequence[str] = ()
) -> list[Table]:
    """A table for each instructive decision: the likeliest candidates, their properties and probabilities.

    Args:
        choices: all decisions of a scheduler in the window.
        delays: the delays of the preset.
        first_s: first submission of the window. [s]
        nodes: name of each node, if candidates are pairs.
    """
    longest_s = max((float(c.requested_time_s.max(initial=0.0, where=c.job_id >= 0)) for c in choices), default=0.0)
    unit, scale_s = ("h", 3600.0) if longest_s > SHORT_S else ("s", 1.0)
    told = telling(choices)
    powered = any((c.power_w > 0.0).any() for _, c in told)
    headers = (("Wait", unit), ("Requested", unit), ("Processors", ""), *[("Power", "kW")] * powered,
               ("Probability", "%"))  # fmt: skip
    columns = tuple((header, unit, header) for header, unit in headers)
    made = []
    for reason, c in told:
        likeliest = c.alike
        shown = likeliest[:CANDIDATES]
        shown += [same for same in likeliest[CANDIDATES:] if same[0] == c.row]
        rows = tuple((_candidate(c, same, nodes), _cells(c, same, scale_s, powered=powered)) for same in shown)
        others = np.delete(c.probability, [i for same in shown for i in same])
        notes = [f"{others.size:,} more candidates share {others.sum():.1%}."] if others.size else []
        if any(len(same) > 1 for same in shown):
            notes.append("The probabilities of candidates that are alike are added up.")
        if len(delays) > 1:
            likely = np.argsort(-c.delay_probability, kind="stable")[:3]
            shares = ", ".join(f"{delay_words(delays[k])} {c.delay_probability[k]:.0%}" for k in likely)
            notes.append(f"Delay: {delay_words(delays[c.delay])}. Likeliest: {shares}.")
        passed_s = c.now_s - first_s
        at = f"day {passed_s / 86_400:.2f}" if unit == "h" else f"after {passed_s:,.0f} s"
        title = f"Decision {c.number + 1:,}, {at}, {c.waiting} waiting, {c.free_processors} processors free: {reason}"
        made.append(Table(title, columns, rows, corner="Candidate", notes=tuple(notes)))
    return made


def _candidate(c: Choice, alike: Sequence[int], nodes: Sequence[str]) -> str:
    first = alike[0]
    if c.job_id[first] < 0:
        return "wait for the next event"
    where = "" if c.node[first] < 0 else f" on {nodes[c.node[first]]}"
    return f"job {c.job_id[first]}{where}" + (f" or {len(alike) - 1} more like it" if len(alike) > 1 else "")


def _cells(c: Choice, same: Sequence[int], scale_s: float, *, powered: bool) -> tuple[Cell, ...]:
    i, chosen = same[0], same[0] == c.row
    power = (_three_digits(c.power_w[i] / 1e3) if c.power_w[i] > 0.0 else "–",) if powered else ()
    texts = (
        _three_digits(c.wait_s[i] / scale_s), _three_digits(c.requested_time_s[i] / scale_s),
        f"{c.processors[i]:,.0f}" if np.isfinite(c.processors[i]) else "–", *power,
    )  # fmt: skip
    share = f"{100 * c.probability[same].sum():.1f}"
    return (*map(Cell, texts), Cell(share, "", "chosen" if chosen else "", "best" if chosen else ""))


def _three_digits(value: float) -> str:
    """A number with three significant digits, and all digits before the point; a dash if it is not known."""
    if not np.isfinite(value):
        return "–"
    digits = 2 - int(np.floor(np.log10(abs(value)))) if value else 0
    return f"{value:,.{max(digits, 0)}f}"


def choice_plots(
    name: str, choices: Sequence[Choice], delays: Sequence[dict[str, Any]], *, first_s: float,
    nodes: Sequence[str] = (), ranked: bool = False, color: str = COLORS[0],
) -> list[Picture]:  # fmt: skip
    """Probability of the choice over the window, candidates of one decision, and chosen delays.

    Args:
        name: the model.
        choices: all its decisions in the window.
        delays: the delays of the preset.
        first_s: first submission of the window. [s]
        nodes: name of each node, if candidates are pairs.
        ranked: the model is a ranking, whose probabilities mean nothing: that picture is left out.
        color: that of the scheduler.
    """
    if not choices:
        return []
    drawn = (
        None if ranked else _confidence_plot(name, choices, first_s, color),
        pair_plot(name, choices, nodes, color) if nodes else _candidate_plot(name, choices, color),
        _delay_plot(name, choices, delays),
    )
    return [picture for picture in drawn if picture is not None]


def _confidence_plot(name: str, choices: Sequence[Choice], first_s: float, color: str) -> Picture:
    days = np.array([(c.now_s - first_s) / 86_400 for c in choices])
    sure = np.array([100 * c.probability[c.row] for c in choices])
    several = np.array([len(c.job_id) > 1 for c in choices])
    with drawing():
        figure, axes = new_figure(2.1)
        axes.plot(days[several], sure[several], ".", markersize=3, color=color, alpha=0.6, markeredgewidth=0)
        axes.set(ylim=(0, 103), xlabel="days since the first submission", ylabel="probability of\nthe choice [%]")
        caption = f"{int(several.sum()):,} of {len(choices):,} decisions had more than one candidate; each is a dot."
        middle = f"; median {np.median(sure[several]):.0f}%" if several.any() else ""
        alt = f"Scatter plot of the probability of the chosen job over time under {name}{middle}."
        return Picture(f"confidence-{slug(name)}", "Confidence of the decisions", caption, alt, figure)


def _candidate_plot(name: str, choices: Sequence[Choice], color: str) -> Picture | None:
    c = max(choices, key=lambda c: len(c.job_id))
    jobs = np.flatnonzero(c.job_id >= 0)
    if len(jobs) < 2:
        return None
    area = 4 + 80 * c.probability[jobs] / c.surest
    hours, wait = c.requested_time_s[jobs] / 3600, np.maximum(c.wait_s[jobs] / 3600, 1 / 3600)
    with drawing():
        figure, axes = new_figure(2.7)
        axes.scatter(hours, wait, s=area, color=color, alpha=0.45, linewidths=0)
        if c.job_id[c.row] >= 0:
            axes.scatter(hours[c.row], wait[c.row], s=area[c.row] + 30, facecolors="none", edgecolors=INK,
                         linewidths=1.1, label="chosen")  # fmt: skip
            figure.legend(loc="outside upper left")
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_log_ticks(axes)
        plain_log_ticks(axes, dimension="y")
        axes.set(xlabel="requested time [h] (log scale)", ylabel="wait [h] (log scale)")
        caption = (
            f"Decision {c.number + 1:,} with {len(jobs)} candidates; marker area: probability, at most "
            f"{c.surest:.0%}. Ring: chosen."
        )
        alt = f"Scatter plot of {len(jobs)} waiting jobs by requested time and wait under {name}, sized by probability."
        return Picture(f"candidates-{slug(name)}", "Scores of the candidates", caption, alt, figure)


def _delay_plot(name: str, choices: Sequence[Choice], delays: Sequence[dict[str, Any]]) -> Picture | None:
    if len(delays) < 2:
        return None
    counts = np.bincount([c.delay for c in choices], minlength=len(delays))
    share = 100 * counts / counts.sum()
    mean = 100 * np.mean([c.delay_probability for c in choices], axis=0)
    words = [delay_words(delay) for delay in delays]
    with drawing():
        figure, axes = new_figure(0.8 + 0.17 * len(delays))
        rows = -np.arange(len(delays))
        colors = DELAY_COLORS if len(delays) <= len(DELAY_COLORS) else [color_of(k) for k in range(len(delays))]
        axes.barh(rows, share, color=colors[: len(delays)], label="chosen", edgecolor=INK, linewidth=0.3)
        axes.plot(mean, rows, "D", markersize=3, color=COLORS[4], label="mean probability")
        axes.set_yticks(rows, words)
        axes.set(xlabel="share of the decisions [%]")
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside upper left", ncols=2)
        told = "; ".join(f"{word} {value:.0f}%" for word, value in zip(words, share, strict=True))
        caption = "How often each delay was chosen in the window, and its mean probability."
        return Picture(
            f"window-delays-{slug(name)}", "Delays chosen in the window", caption, f"Bar chart: {told}.", figure
        )
