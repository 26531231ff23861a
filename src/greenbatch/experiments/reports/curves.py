"""Pictures of a training from its log: curves of return, validation, KL and entropy, and the chosen delays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.experiments.reports.drawing import (
    PAPER,
    Picture,
    color_of,
    drawing,
    empty_figure,
    legend_room,
    marked,
    new_figure,
    slug,
    wrapped,
)
from greenbatch.experiments.reports.looks import Looks, looks_of

Record = Mapping[str, Any]
"""The figures of one epoch, a line of ``log.jsonl``."""
Logs = Mapping[str, Sequence[Sequence[Record]]]
"""Name of a training -> the log of each of its seeds."""

CURVES = (
    ("return", "Return", "mean return of an epoch's windows",
     "It should rise; steps occur when training switches to another bound or to harder windows."),
    ("validation", "Validation", "reward of the best actions on the validation windows",
     "Higher is better; these windows share no job with a test window."),
    ("kl", "KL divergence", "KL divergence of the update [nat]",
     "Size of the policy update; the estimate may fall below 0. It should stay small."),
    ("entropy", "Entropy", "entropy of the choice [nat]",
     "It falls as the policy becomes more certain; near 0 it stops exploring."),
    ("sigma", "Step of the search", "step of the search",
     "Distance of candidates from the center, relative to the first step; it shrinks as the search converges."),
)  # fmt: skip
"""Key in the log, title, axis label, and how to read it."""
CONSTRAINTS = (
    ("of_bound_", "{} and its bound", "{} over its bound", "Means of an epoch's episodes; 1 is the bound."),
    ("multiplier_", "Multiplier of {}", "multiplier of {}",
     "It rises while the bound is exceeded, and weighs the cost against the reward."),
)  # fmt: skip
"""Beginning of a key in the log, before the name of a constrained term; title, axis label, and how to read it."""
BINS = 60
"""Maximum number of columns in a histogram of delays."""
DELAY_COLORS = ("#c9ced6", "#0b3d63", "#10518a", "#3585c0", "#7db5df", "#c6dff1", "#5c2a00", "#8f4100", "#c25a05",
                "#e07b26", "#eda060", "#f5c396", "#fbe3cc")  # fmt: skip
"""Gray for no delay, blue for delays until jobs end, orange for delays of a given time."""


def log_of(model: Path) -> list[dict[str, Any]]:
    """The log of a model's training, from the model's or the training's folder; empty if there is none."""
    from greenbatch.learning.runs.folder import LOG
    from greenbatch.learning.runs.log import read_log

    found = (place / LOG for place in (model, model.parent))
    return next((read_log(file) for file in found if file.is_file()), [])


def curve_plots(logs: Logs, name: str = "training", looks: Looks | None = None) -> list[Picture]:
    """One picture per figure of `CURVES`: the mean over the seeds as a line, lowest to highest seed as a band.

    Args:
        logs: name of a training -> the log of each of its seeds.
        name: begins the names of the pictures.
        looks: name of a training -> color and dash; by default `looks_of` all of them.

    Source of the form: GAS-MARL Fig. 6, RLScheduler Fig. 10.
    """
    drawn = (_curve_plot(logs, looks or looks_of(logs), name, *curve) for curve in (*CURVES, *_of_constraints(logs)))
    return [picture for picture in drawn if picture is not None]


def _of_constraints(logs: Logs) -> list[tuple[str, str, str, str]]:
    """Curves of the constraints of trainings: how each cost moves against its bound, and its multiplier."""
    keys = dict.fromkeys(key for seeds in logs.values() for log in seeds for record in log for key in record)
    return [
        (key, title.format(term), axis.format(term), reading)
        for prefix, title, axis, reading in CONSTRAINTS
        for key in keys if (term := key.removeprefix(prefix)) != key
    ]  # fmt: skip


def _curve_plot(
    logs: Logs, looks: Looks, name: str, key: str, title: str, axis: str, reading: str
) -> Picture | None:  # fmt: skip
    curves = {label: _over_seeds(seeds, key) for label, seeds in logs.items()}
    shown = {label: curve for label, curve in curves.items() if len(curve[0])}
    if not shown:
        return None
    from matplotlib.ticker import MaxNLocator

    with drawing():
        figure, axes = new_figure(2.0 + 0.16 * sum(1 + wrapped(label, 44).count("\n") for label in shown))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        for k, (label, (epochs, values)) in enumerate(shown.items()):
            look = looks[label]
            line: dict[str, Any] = {"color": look.color, "linestyle": look.dash, **marked(k, len(shown))}
            if len(epochs) == 1:
                line |= {"marker": look.marker, "markersize": 4, "markevery": None}
            if len(values) > 1:
                axes.fill_between(
                    epochs, values.min(axis=0), values.max(axis=0), color=look.color, alpha=0.18, linewidth=0
                )
            axes.plot(epochs, values.mean(axis=0), label=wrapped(label, 44), **line)
        axes.set(xlabel="epoch", ylabel=wrapped_axis(axis))
        figure.legend(loc="outside lower left", ncols=1)
        ends = "; ".join(
            f"{label} from {v.mean(axis=0)[0]:.4g} to {v.mean(axis=0)[-1]:.4g} after {int(e[-1]):,} epochs"
            for label, (e, v) in shown.items()
        )
        seeds = max(len(values) for _, values in shown.values())
        caption = f"{axis[0].upper()}{axis[1:]}. {reading}"
        if seeds > 1:
            caption += " Line: mean over the seeds; band: lowest to highest seed."
        return Picture(f"{slug(name)}-{slug(key)}", title, caption, f"Line chart over the epochs: {ends}.", figure)


def wrapped_axis(text: str) -> str:
    """An axis label, broken into two lines if it is long."""
    if len(text) < 30:
        return text
    middle = min((i for i, c in enumerate(text) if c == " "), key=lambda i: abs(i - len(text) / 2))
    return f"{text[:middle]}\n{text[middle + 1 :]}"


def _over_seeds(seeds: Sequence[Sequence[Record]], key: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Epochs with a figure for every seed, and the figures, shapes (e,) and (seeds, e)."""
    tables = [{int(r["epoch"]): float(r[key]) for r in log if isinstance(r.get(key), (int, float))} for log in seeds]
    tables = [table for table in tables if table]
    common = sorted(set.intersection(*map(set, tables))) if tables else []
    return np.array(common, np.float64), np.array([[table[e] for e in common] for table in tables], np.float64)


def delay_words(delay: Mapping[str, Any]) -> str:
    """A delay of an action in words."""
    amount = float(delay.get("amount", 0.0))
    if delay["kind"] == "releases":
        return f"{amount:.0f} job{'' if amount == 1 else 's'} end{'s' if amount == 1 else ''}"
    return "no delay" if delay["kind"] == "none" else f"{amount / 60:g} min"


def delay_plot(
    logs: Sequence[Sequence[Record]], delays: Sequence[Mapping[str, Any]], label: str, name: str = "training"
) -> Picture | None:
    """Shares of the delays among all actions over a training, all seeds together; None with fewer than two delays."""
    counted = [r for log in logs for r in log if len(r.get("delays", ())) == len(delays)]
    if len(delays) < 2 or not counted:
        return None
    last = max(int(r["epoch"]) for r in counted)
    columns = min(last, BINS)
    counts = np.zeros((columns, len(delays)))
    for record in counted:
        counts[(int(record["epoch"]) - 1) * columns // last] += record["delays"]
    shares = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    edges = np.arange(columns + 1) * last / columns
    words = [delay_words(delay) for delay in delays]
    from matplotlib.ticker import MaxNLocator

    with drawing():
        figure, axes = new_figure(2.9)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        below = np.zeros(columns)
        for k, word in enumerate(words):
            color = DELAY_COLORS[k] if len(delays) <= len(DELAY_COLORS) else color_of(k)
            axes.bar(edges[:-1], shares[:, k], np.diff(edges), below, align="edge", color=color, edgecolor=PAPER,
                     linewidth=0.15, label=word)  # fmt: skip
            below += shares[:, k]
        axes.set(xlim=(0, last), ylim=(0, 100), xlabel="epoch", ylabel="share of the actions [%]")
        axes.grid(visible=False)
        figure.legend(loc="outside lower left", ncols=4, handlelength=1.0)
        told = "; ".join(f"{word} {first:.0f} to {end:.0f}%" for word, first, end in
                         zip(words, shares[0], shares[-1], strict=True))  # fmt: skip
        caption = "Delays sampled during training, bottom to top in the order of the legend."
        alt = f"Stacked columns over the epochs: {told}."
        return Picture(f"{slug(name)}-delays-{slug(label)}", f"Delays chosen: {label}", caption, alt, figure)


def sweep_plot(points: Mapping[str, Sequence[tuple[float, float, float]]], name: str) -> Picture | None:
    """Slowdown and renewable utilization against the penalty factor; None with fewer than two of them.

    Args:
        points: name -> (eta, mean bounded slowdown, mean renewable utilization).
        name: of the picture.

    Source of the form: GAS-MARL Fig. 3.
    """
    if max((len(each) for each in points.values()), default=0) < 2:
        return None
    columns, room = legend_room(list(points))
    with drawing():
        figure = empty_figure(3.3 + room)
        upper, lower = figure.subplots(2, 1, sharex=True)
        for label, look in looks_of(points).items():
            eta, slow, green = np.array(sorted(points[label])).T
            line: dict[str, Any] = {"color": look.color, "linestyle": look.dash, "marker": look.marker}
            upper.plot(eta, slow, markersize=3, label=wrapped(label, 40), **line)
            lower.plot(eta, 100 * green, markersize=3, **line)
        upper.set(ylabel="mean bounded slowdown")
        lower.set(xlabel="penalty factor η", ylabel="renewable utilization [%]")
        figure.legend(loc="outside lower left", ncols=columns)
        told = "; ".join(f"{label} at {e:g}: {s:.4g}, {g:.1%}" for label, each in points.items() for e, s, g in each)
        alt = f"Two line charts against the penalty factor: {told}."
        caption = "Each point is the mean over seeds and windows of models trained with this factor."
        return Picture(f"sweep-{slug(name)}", f"Penalty factor: {name}", caption, alt, figure)
