"""The decisions of a model in a window: the candidates, jobs or pairs of job and node, and the probability of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from greenbatch.engine.outcome import Outcome
    from greenbatch.engine.program import Program
    from greenbatch.engine.views.interface import View
    from greenbatch.models.network import Answer, NetworkPolicy, NetworkScheduler
    from greenbatch.workload import Workload

Floats = NDArray[np.float64]

SAME_DIGITS = 6
"""Digits after the point to which the scores of candidates that are alike are equal."""


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
    node: NDArray[np.int64]
    """Node of each candidate, -1 if the placement decides or for waiting."""
    score: Floats
    """One per candidate, shape (q,)."""
    probability: Floats
    """One per candidate, shape (q,); 0 if the model may not choose it. Pairs that it may not choose are no candidates.
    """
    row: int
    delay_probability: Floats
    """One per delay, given the chosen job, shape (d,)."""
    delay: int

    @property
    def surest(self) -> float:
        """Highest probability of a candidate."""
        return float(self.probability.max())

    @property
    def alike(self) -> list[list[int]]:
        """Rows of the candidates, grouped: pairs of one job with nodes of the same score are alike.

        The likeliest group comes first, and the chosen candidate is the first of its group.
        """
        jobs, scores, on_node = self.job_id.tolist(), self.score.tolist(), (self.node >= 0).tolist()
        groups: dict[tuple[int, float], list[int]] = {}
        for i in (self.row, *np.argsort(-self.probability, kind="stable").tolist()):
            group = groups.setdefault((jobs[i], round(scores[i], SAME_DIGITS) if on_node[i] else i), [])
            if i != self.row or not group:
                group.append(i)
        return sorted(groups.values(), key=lambda group: -self.probability[group[0]])

    @property
    def margin(self) -> float:
        """Highest probability of a candidate minus that of the next one that is not like it; 1 if there is none."""
        first, *others = self.alike
        return float(self.probability[first[0]] - self.probability[others[0][0]]) if others else 1.0


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
        policy, made, eager = self.scheduler.policy(), self.made, self.scheduler.eager
        ask, layout = policy.answer, policy.layout

        def answer(view: View) -> Answer:
            given, queue = ask(view), view.queue
            if given.row < 0:
                return given
            nodes = len(view.nodes.processors) if layout.per_node else 1
            rows = len(given.logits) - layout.wait
            logits = np.append(given.logits[:rows], given.logits[rows:] - eager)
            shown = np.flatnonzero(given.selectable) if layout.per_node else np.arange(len(logits))
            pairs = shown[shown < rows]
            waits = len(shown) - len(pairs)

            def column(values: Any, nothing: float) -> Any:
                return np.append(np.asarray(values)[pairs // nodes], [nothing] * waits)

            made.append(
                Choice(
                    number=len(made), now_s=view.now_s, waiting=len(view.job_id),
                    free_processors=int(queue.free_processors), job_id=column(view.job_id, -1).astype(np.int64),
                    wait_s=column(queue.wait_s, np.nan), requested_time_s=column(queue.requested_time_s, np.nan),
                    processors=column(queue.processors, np.nan), power_w=column(queue.power_w, np.nan),
                    node=np.append(pairs % nodes if layout.per_node else pairs * 0 - 1, [-1] * waits).astype(np.int64),
                    score=logits[shown].astype(np.float64),
                    probability=_probability(logits, given.selectable)[shown],
                    row=int(np.searchsorted(shown, given.row)),
                    delay_probability=_probability(given.delay_logits, given.delays), delay=given.delay,
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
    if found["the closest call"].margin == 1.0:  # all candidates are alike
        del found["the closest call"]
    if not found["the longest delay"].delay:
        del found["the longest delay"]
    sure = found["the most certain choice among many"]
    if sure.surest * len(sure.job_id) < 2:  # no candidate is twice as likely as at random
        del found["the most certain choice among many"]
    unique: dict[int, tuple[str, Choice]] = {}
    for reason, choice in found.items():
        unique.setdefault(choice.number, (reason, choice))
    return [unique[number] for number in sorted(unique)]
