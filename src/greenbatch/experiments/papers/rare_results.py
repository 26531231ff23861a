"""Test rules, shipped models and agents of the study ``rare`` on draws of its settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from greenbatch.experiments.papers.rare import (
    FIRST,
    ROWS,
    SETTINGS,
    STUDY,
    UNTRAINED,
    UNTRAINED_DRAWS,
    VALUE,
    Setting,
)
from greenbatch.experiments.papers.studies import KIND, Selection
from greenbatch.experiments.papers.study_results import (
    Entry,
    Result,
    agent_entries,
    plain_entries,
    result_from,
    simulated,
)
from greenbatch.experiments.papers.untrained import untrained_entry
from greenbatch.workers import Workers

if TYPE_CHECKING:
    import polars

    from greenbatch.experiments.running.cells import Progress
    from greenbatch.scenarios import Scenario

METRICS = (VALUE, "value_ratio", "on_time_value", "net_value", "completion_ratio", "utilization_available",
           "late_share", "suspensions", "accrued_cost")  # fmt: skip
"""Metrics of the rows."""


def rare_results(
    which: Selection, place: Path | None = None, *, draws: Sequence[int] | None = None, workers: Workers | None = None,
    progress: Progress | None = None,
) -> list[Result]:  # fmt: skip
    """One result per setting.

    Args:
        which: the selected settings and agents.
        place: folder of the trainings; without it there are rules and shipped models alone.
        draws: numbers of the draws, instead of the settings' own.
        workers: number of processes, see `compare`.
        progress: called before every simulation.
    """
    made = []
    for name in which.traces:
        numbers = draws_of(SETTINGS[name]) if draws is None else tuple(draws)
        with TemporaryDirectory() as scratch:
            untrained = [
                untrained_entry(STUDY, "rare", name, scenario_of(name), Path(scratch), label=UNTRAINED, kind=KIND,
                                reason=f"the weights that training begins with, on the first {UNTRAINED_DRAWS} draws")
            ] if find_spec("torch") else []  # fmt: skip
            agents = [] if place is None else agent_entries(STUDY, which, place, name, KIND)
            frame = _played(name, [*rule_entries(), *agents], untrained, numbers, progress, workers)
        entries = [*rule_entries(), *untrained, *agents]
        made.append(result_from(STUDY, which, name, KIND, entries, numbers, 0, frame, METRICS))
    return made


def draws_of(setting: Setting) -> tuple[int, ...]:
    """Numbers of the draws of a setting."""
    return tuple(range(FIRST, FIRST + setting.draws))


def rule_entries() -> list[Entry]:
    """The rows without training."""
    return plain_entries([row.scheduler for row in ROWS], {row.scheduler: row.reason for row in ROWS})


def _played(
    name: str, entries: Sequence[Entry], few: Sequence[Entry], draws: Sequence[int], progress: Progress | None,
    workers: Workers | None,
) -> polars.DataFrame:  # fmt: skip
    """Entries on all draws, and others on the first few."""
    import polars as pl

    if not SETTINGS[name].trace:
        groups = ((entries, draws), (few, draws[:UNTRAINED_DRAWS]))
        return pl.concat(
            simulated(STUDY, scenario_of(name), those, numbers, 0, progress, workers)
            for those, numbers in groups if those
        )  # fmt: skip
    frames = []
    for k, (draw, scenario) in enumerate(_drawn_traces(name, draws)):
        those = [*entries, *(few if k < UNTRAINED_DRAWS else ())]
        whole = simulated(STUDY, scenario, those, (0,), len(scenario.workload), progress, workers)
        frames.append(whole.with_columns(window=pl.lit(str(draw), whole.schema["window"])))
    return pl.concat(frames)


def scenario_of(name: str) -> Scenario:
    """The scenario of a setting."""
    from greenbatch.scenarios import load_scenario

    return load_scenario(SETTINGS[name].scenario, overrides=SETTINGS[name].overrides)


def _drawn_traces(name: str, draws: Iterable[int]) -> Iterable[tuple[int, Scenario]]:
    """A trace with other GPUs and QoS for each draw."""
    from greenbatch.scenarios import load_scenario

    for draw in draws:
        yield draw, load_scenario(SETTINGS[name].scenario, overrides=SETTINGS[name].drawn(draw))
