"""Sections of a report on trained models: their training and their decisions in a window."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from greenbatch.experiments.reports.choices import choices_of
from greenbatch.experiments.reports.curves import curve_plots, delay_plot, log_of
from greenbatch.experiments.reports.decisions import choice_plots, choice_tables
from greenbatch.experiments.reports.drawing import COLORS, Picture
from greenbatch.experiments.reports.looks import Looks, looks_of
from greenbatch.experiments.reports.sections import Section
from greenbatch.experiments.reports.tables import Cell, Table
from greenbatch.experiments.running.model_warnings import models_among

if TYPE_CHECKING:
    from greenbatch.engine.outcome import Outcome
    from greenbatch.models.network import NetworkScheduler
    from greenbatch.models.planner import PlannerScheduler

REASON = (
    "The model scores every candidate. The probabilities are those of its policy; evaluation takes the likeliest "
    "candidate. Candidates are shown by their requests; the model observes the columns listed in its preset."
)

SCORED = (
    " This model is a ranking that was searched for: only the order of its scores counts, not how far apart they are, "
    "and thus not how large the probabilities are."
)


def model_sections(
    deciders: Mapping[str, object], outcomes: Mapping[str, Outcome], looks: Looks | None = None
) -> list[Section]:  # fmt: skip
    """Sections on the models among the schedulers: their training, if there is a log, and their decisions.

    Args:
        deciders: the schedulers by name.
        outcomes: name of a scheduler -> its outcome of the example window.
        looks: name of a scheduler -> how it is drawn; by default by the order of the schedulers.
    """
    found = models_among(deciders)
    if not found:
        return []
    looks = looks_of(deciders) if looks is None else looks
    from greenbatch.models.network import NetworkScheduler
    from greenbatch.models.parameters import PolicyScheduler

    trained = training_section({name: [each.model.folder] for name, each in found.items()}, looks=looks)
    decided = [
        decision_section(name, each, outcomes[name], looks[name].color) if isinstance(each, NetworkScheduler)
        else planner_section(name, each)
        for name, each in sorted(found.items(), key=lambda item: not isinstance(item[1], NetworkScheduler))
        if not isinstance(each, PolicyScheduler)
    ]  # fmt: skip
    return [*([trained] if trained else []), *decided]


PRICED = (
    "The model is a look-ahead planner. At each event it compares, for every waiting job, the cost of starting now "
    "with the cost of starting in each later half-hour of the power forecast, and starts the jobs for which now is "
    "cheapest. The cost of a start is the brown energy that it is expected to draw, plus prices for what brown "
    "energy does not count: using green hours that others could use, holding processors idle, and waiting. The "
    "first table lists these numbers."
)
MOVED = (
    " Some of them depend on the state of the system. The second table lists the weights: a positive weight raises "
    "the number when that input is high; inputs are scaled to about -1 to 1."
)


def planner_section(name: str, scheduler: PlannerScheduler) -> Section:
    """The weights of a look-ahead planner: its prices, and how the state of the system adjusts them."""
    from greenbatch.policies.compiled.lookahead.weights import (
        HEADS,
        INPUTS,
        NODE_NUMBERS,
        NUMBERS,
        PRICES,
        WEIGHTS,
    )

    heads = scheduler.numbers[PRICES:WEIGHTS].reshape(HEADS, len(INPUTS))
    moved, known, values = list(NUMBERS)[:HEADS], dict(NUMBERS), scheduler.numbers[:PRICES]
    if scheduler.model.preset.chooses_nodes:
        heads = np.vstack([heads, scheduler.numbers[-len(INPUTS) :]])
        known |= NODE_NUMBERS
        moved.append("haste")
        values = np.append(values, scheduler.numbers[WEIGHTS : WEIGHTS + len(NODE_NUMBERS)])
    columns = (("Value", "", "Value"), ("Meaning", "", "Meaning"))
    rows = tuple(
        (number, (Cell(f"{value:.4g}"), Cell(about.meaning.replace("`", ""))))
        for (number, about), value in zip(known.items(), values, strict=True)
    )
    weights = tuple((source, tuple(Cell(f"{weight:+.2f}".replace("-", "\N{MINUS SIGN}")) for weight in heads[:, i]))
                    for i, source in enumerate(INPUTS))  # fmt: skip
    tables = (
        Table("Prices and other parameters of the planner", columns, rows, corner="Number"),
        Table("Weights of the inputs", tuple((number, "", number) for number in moved), weights, corner="Input",
              notes=(INPUT_MEANINGS,)),
    )  # fmt: skip
    return Section(f"Weights of {name}", PRICED + MOVED, (), tables, folded=True)


INPUT_MEANINGS = (
    "green_now, green_day, green_later: how green the next hours, the next day and its second half are; quiet: "
    "time since the last arrival; queued_work, free, running_work: waiting work, free processors, running work; "
    "longest: the longest waiting job relative to the queued work; sine, cosine: time of day; arrivals: rate of "
    "arrivals; lag: remaining time of the machine relative to a baseline that never delays jobs."
)


def training_section(
    folders: Mapping[str, list[Path]], title: str = "Training", looks: Looks | None = None
) -> Section | None:  # fmt: skip
    """Curves and delays of trainings; None without logs.

    Args:
        folders: name -> model folder of each of its seeds.
        title: heading.
        looks: name -> how it is drawn; by default by their order.
    """
    from greenbatch.models.model import load_model

    logs = {name: [log for log in map(log_of, each) if log] for name, each in folders.items()}
    logs = {name: each for name, each in logs.items() if each}
    if not logs:
        return None
    pictures: list[Picture] = curve_plots(logs, title, looks)
    for name, each in logs.items():
        delays = [delay.model_dump(mode="json") for delay in load_model(folders[name][0]).preset.action.delays]
        drawn = delay_plot(each, delays, name, title)
        pictures += [drawn] if drawn else []
    return Section(title, "From the logs of the trainings.", tuple(pictures), folded=True)


def decision_section(
    name: str, scheduler: NetworkScheduler, outcome: Outcome, color: str = COLORS[0]
) -> Section:  # fmt: skip
    """The decisions of a model in a window, in the color of the scheduler."""
    choices = choices_of(scheduler, outcome)
    delays = [delay.model_dump(mode="json") for delay in scheduler.model.preset.action.delays]
    first_s = float(outcome.workload.submit_s.min())
    nodes = outcome.cluster.node_names
    nodes = nodes if scheduler.model.preset.observation.queue.per_node else ()
    tables: list[Table] = choice_tables(choices, delays, first_s=first_s, nodes=nodes)
    ranked = scheduler.model.preset.is_ranking
    pictures = choice_plots(name, choices, delays, first_s=first_s, nodes=nodes, ranked=ranked, color=color)
    reason = REASON + SCORED * ranked
    return Section(f"Decisions of {name}", reason, tuple(pictures), tuple(tables), folded=True)
