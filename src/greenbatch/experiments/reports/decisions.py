"""The decisions of a model in a window, with the probabilities of the candidates."""

# ruff: noqa: RUF001 - typographic dashes and multiplication signs are meant for the reader.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
from greenbatch.experiments.reports.tables import Cell, Table

if TYPE_CHECKING:
    from greenbatch.engine.interface import View
    from greenbatch.engine.outcome import Outcome
    from greenbatch.engine.program import Program
    from greenbatch.models.network import Answer, NetworkPolicy, NetworkScheduler
    from greenbatch.workload import Workload

Floats = NDArray[np.float64]
CANDIDATES = 5
"""Maximum number of candidates in the table of a decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One decision of a model: the candidates, their probabilities, and the choice."""

    number: int
    """Number of earlier decisions."""
    now_s: float
    waiting: int
    """Number of waiting jobs, including those the model does not observe."""
    free_processors: int
    job_id: NDArray[np.int64]
    """Candidates in order of submission, shape (q,); -1 means waiting until the next event."""
    wait_s: Floats
    requested_time_s: Floats
    processors: Floats
    power_w: Floats
    probability: Floats
    """One per candidate, shape (q,); 0 if the model may not choose it."""
    row: int
    delay_probability: Floats
    """One per delay, given the chosen job, shape (d,)."""
    delay: int

    @property
    def surest(self) -> float:
        """Highest probability of a candidate."""
        return float(self.probability.max())

    @property
    def margin(self) -> float:
        """Highest probability minus the second highest; 1 with one candidate."""
        top = np.sort(self.probability)[::-1]
        return float(top[0] - top[1]) if len(top) > 1 else 1.0


def choices_of(scheduler: NetworkScheduler, outcome: Outcome) -> list[Choice]:
    """All decisions of a model in a window, recorded by simulating it again; identical if it takes the best actions.

    Args:
        scheduler: the model.
        outcome: its outcome in the window, which provides jobs, machine, site and rules.
    """
    from greenbatch.engine.simulate import simulate

    watched = _Watched(scheduler)
    simulate(outcome.workload, outcome.cluster, outcome.site, outcome.rules, watched)
    return watched.made


class _Watched:
    """A model that records its decisions."""

    def __init__(self, scheduler: NetworkScheduler) -> None:
        self.scheduler = scheduler
        self.made: list[Choice] = []

    def program(self, workload: Workload) -> Program:
        return self.scheduler.program(workload)

    def policy(self) -> NetworkPolicy:
        from greenbatch.engine.from_view import observe_view

        policy, made, eager = self.scheduler.policy(), self.made, self.scheduler.eager
        ask, layout = policy.answer, policy.layout

        def answer(view: View) -> Answer:
            given, seen, queue = ask(view), observe_view(view, layout), view.queue
            rows = len(given.logits) - layout.wait
            logits = np.append(given.logits[:rows], given.logits[rows:] - eager)

            def column(values: Any, nothing: float) -> Any:
                return np.append(values[:rows], [nothing] * layout.wait)

            made.append(
                Choice(
                    number=len(made), now_s=view.now_s, waiting=len(view.job_id),
                    free_processors=int(queue.free_processors), job_id=column(view.job_id, -1).astype(np.int64),
                    wait_s=column(queue.wait_s, np.nan), requested_time_s=column(queue.requested_time_s, np.nan),
                    processors=column(queue.processors, np.nan), power_w=column(queue.power_w, np.nan),
                    probability=_probability(logits, seen.selectable), row=given.row,
                    delay_probability=_probability(given.delay_logits, seen.delays[0]), delay=given.delay,
                )
            )  # fmt: skip
            return given

        vars(policy)["answer"] = answer  # called by `decide`; a second call would draw other random numbers
        return policy


def _probability(logits: Any, allowed: Any) -> Floats:
    values = np.where(allowed, np.asarray(logits, np.float64), -np.inf)
    raised = np.exp(values - values.max())
    return np.asarray(raised / raised.sum())


def telling(choices: Sequence[Choice]) -> list[tuple[str, Choice]]:
    """A few instructive decisions, each with the reason for showing it, in order of time."""
    real = [choice for choice in choices if len(choice.job_id) > 1]
    if not real:
        return []
    found = {
        "the closest call": min(real, key=lambda c: c.margin),
        "the most candidates": max(real, key=lambda c: len(c.job_id)),
        "the most certain choice among many": max(real, key=lambda c: c.surest * np.log(len(c.job_id))),
        "the longest delay": max(real, key=lambda c: c.delay),
    }
    if not found["the longest delay"].delay:
        del found["the longest delay"]
    sure = found["the most certain choice among many"]
    if sure.surest * len(sure.job_id) < 2:  # no candidate is twice as likely as at random
        del found["the most certain choice among many"]
    unique: dict[int, tuple[str, Choice]] = {}
    for reason, choice in found.items():
        unique.setdefault(choice.number, (reason, choice))
    return [unique[number] for number in sorted(unique)]


def choice_tables(choices: Sequence[Choice], delays: Sequence[dict[str, Any]], *, first_s: float) -> list[Table]:
    """A table for each instructive decision: the likeliest candidates, their properties and probabilities.

    Args:
        choices: all decisions of a scheduler in the window.
        delays: the delays of the preset.
        first_s: first submission of the window. [s]
    """
    headers = (("Wait", "h"), ("Requested", "h"), ("Processors", ""), ("Power", "kW"), ("Probability", "%"))
    columns = tuple((header, unit, header) for header, unit in headers)
    made = []
    for reason, c in telling(choices):
        order = np.argsort(-c.probability, kind="stable")
        shown = list(dict.fromkeys((*order[:CANDIDATES].tolist(), c.row)))
        rows = tuple((_candidate(c, i), _cells(c, i)) for i in shown)
        rest = len(c.job_id) - len(shown)
        notes = [f"{rest:,} more candidates share {1 - c.probability[shown].sum():.1%}."] if rest > 0 else []
        if len(delays) > 1:
            likely = np.argsort(-c.delay_probability, kind="stable")[:3]
            told = ", ".join(f"{delay_words(delays[k])} {c.delay_probability[k]:.0%}" for k in likely)
            notes.append(f"Delay: {delay_words(delays[c.delay])}. Likeliest: {told}.")
        title = (
            f"Decision {c.number + 1:,}, day {(c.now_s - first_s) / 86_400:.2f}, {c.waiting} waiting, "
            f"{c.free_processors} processors free: {reason}"
        )
        made.append(Table(title, columns, rows, corner="Candidate", notes=tuple(notes)))
    return made


def _candidate(c: Choice, i: int) -> str:
    return "wait for the next event" if c.job_id[i] < 0 else f"job {c.job_id[i]}"


def _cells(c: Choice, i: int) -> tuple[Cell, ...]:
    def number(value: float, digits: int) -> str:
        return f"{value:,.{digits}f}" if np.isfinite(value) else "–"

    texts = (
        number(c.wait_s[i] / 3600, 2), number(c.requested_time_s[i] / 3600, 2), number(c.processors[i], 0),
        number(c.power_w[i] / 1e3, 2),
    )  # fmt: skip
    chosen = i == c.row
    return (*map(Cell, texts), Cell(f"{100 * c.probability[i]:.1f}", "", "chosen" if chosen else "",
                                    "best" if chosen else ""))  # fmt: skip


def choice_plots(
    name: str, choices: Sequence[Choice], delays: Sequence[dict[str, Any]], *, first_s: float
) -> list[Picture]:
    """Probability of the choice over the window, candidates of the decision with most of them, and chosen delays."""
    if not choices:
        return []
    drawn = (
        _confidence_plot(name, choices, first_s),
        _candidate_plot(name, choices),
        _delay_plot(name, choices, delays),
    )
    return [picture for picture in drawn if picture is not None]


def _confidence_plot(name: str, choices: Sequence[Choice], first_s: float) -> Picture:
    days = np.array([(c.now_s - first_s) / 86_400 for c in choices])
    sure = np.array([100 * c.probability[c.row] for c in choices])
    several = np.array([len(c.job_id) > 1 for c in choices])
    with drawing():
        figure, axes = new_figure(2.1)
        axes.plot(days[several], sure[several], ".", markersize=3, color=color_of(0), alpha=0.6, markeredgewidth=0)
        axes.set(ylim=(0, 103), xlabel="days since the first submission", ylabel="probability of\nthe chosen job [%]")
        caption = f"{int(several.sum()):,} of {len(choices):,} decisions had more than one candidate; each is a dot."
        middle = f"; median {np.median(sure[several]):.0f}%" if several.any() else ""
        alt = f"Scatter plot of the probability of the chosen job over time under {name}{middle}."
        return Picture(f"confidence-{slug(name)}", "Confidence of the decisions", caption, alt, figure)


def _candidate_plot(name: str, choices: Sequence[Choice]) -> Picture | None:
    c = max(choices, key=lambda c: len(c.job_id))
    jobs = np.flatnonzero(c.job_id >= 0)
    if len(jobs) < 2:
        return None
    area = 4 + 80 * c.probability[jobs] / c.surest
    hours, wait = c.requested_time_s[jobs] / 3600, np.maximum(c.wait_s[jobs] / 3600, 1 / 3600)
    with drawing():
        figure, axes = new_figure(2.7)
        axes.scatter(hours, wait, s=area, color=color_of(0), alpha=0.45, linewidths=0)
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
