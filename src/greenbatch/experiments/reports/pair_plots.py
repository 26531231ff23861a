"""How a model scored the pairs of waiting jobs and nodes at one decision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from greenbatch.experiments.reports.choices import Choice
from greenbatch.experiments.reports.drawing import COLORS, INK, PALE, Picture, drawing, new_figure, slug

JOBS = 16
"""Maximum number of jobs in a picture."""
LOWEST_IN = 1.4
"""Minimum height of a picture. [inch]"""
BAR_ROWS = 3
"""Jobs from which there is room for a color bar."""
LABELS = 12
"""Maximum number of names of nodes below a picture."""


def most_varied(choices: Sequence[Choice]) -> Choice:
    """The decision with the most different scores on the most nodes, the earliest of several."""
    return max(choices, key=lambda choice: len(np.unique(choice.score)) * len(np.unique(choice.node)))


def pair_plot(
    name: str, choices: Sequence[Choice], nodes: Sequence[str], color: str = COLORS[0]
) -> Picture | None:  # fmt: skip
    """Scores of all pairs at the decision where they differ most, by their rank; None if no job waited.

    Args:
        name: the model.
        choices: all its decisions in the window.
        nodes: name of each node.
        color: that of the scheduler.
    """
    from scipy.stats import rankdata  # takes half a second to import

    choice = most_varied(choices)
    pairs = np.flatnonzero(choice.node >= 0)
    if pairs.size == 0:
        return None
    waiting, waits = choice.job_id[pairs].tolist(), bool(choice.node[choice.row] < 0)
    chosen = None if waits else int(choice.job_id[choice.row])
    best = dict(sorted(zip(waiting, choice.score[pairs].tolist(), strict=True), key=lambda pair: pair[1]))
    shown = set(sorted(best, key=lambda job: (job != chosen, -best[job]))[:JOBS])
    jobs = [job for job in dict.fromkeys(waiting) if job in shown]
    ranks = np.full((len(jobs), len(nodes)), np.nan)
    standing = rankdata(choice.score) / len(choice.score)
    for i in pairs:
        if choice.job_id[i] in jobs:
            ranks[jobs.index(int(choice.job_id[i])), choice.node[i]] = standing[i]
    with drawing():
        figure, axes = new_figure(max(LOWEST_IN, 0.9 + 0.16 * len(jobs)))
        from matplotlib.colors import LinearSegmentedColormap

        colors = LinearSegmentedColormap.from_list("score", ["#e8eef4", color])
        drawn = axes.pcolormesh(np.ma.masked_invalid(ranks), cmap=colors, vmin=0, vmax=1, edgecolors=PALE,
                                linewidth=0.3)  # fmt: skip
        if chosen is not None:
            at = choice.node[choice.row] + 0.5, jobs.index(chosen) + 0.5
            axes.plot(*at, "o", markersize=6, markerfacecolor="none", markeredgecolor=INK, label="chosen")
            figure.legend(loc="outside upper left")
        every = -(-len(nodes) // LABELS)
        axes.set_xticks(np.arange(0, len(nodes), every) + 0.5, list(nodes)[::every], rotation=90)
        axes.set_yticks(np.arange(len(jobs)) + 0.5, [f"job {job}" for job in jobs])
        axes.invert_yaxis()
        axes.grid(visible=False)
        if len(jobs) >= BAR_ROWS:
            bar = figure.colorbar(drawn, ax=axes, ticks=[0, 1])
            bar.ax.set_yticklabels(["lowest\nscore", "highest"])
        hidden = len(best) - len(jobs)
        caption = (
            f"Decision {choice.number + 1:,}: {len(pairs):,} pairs of a waiting job and a node with room for it, "
            f"by the rank of their scores (darker: higher); empty: no room. "
            + ("The model waits. " if waits else "Ring: chosen. ")
            + (f"{hidden:,} more jobs, whose best scores are lower, are not shown." if hidden else "")
        ).strip()
        alt = f"Grid of {len(jobs)} waiting jobs and {len(nodes)} nodes under {name}, darker for a higher score."
        return Picture(f"pairs-{slug(name)}", "Scores of the pairs", caption, alt, figure)
