"""The report of a study: tables with the published figures, training curves, sweeps, spread, and decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.experiments.papers.study_results import Result, decider_of
from greenbatch.experiments.papers.study_tables import answers_of, matrix_table, remarks_of, tables_of
from greenbatch.experiments.reports.columns import MAIN
from greenbatch.experiments.reports.curves import sweep_plot
from greenbatch.experiments.reports.model_sections import decision_section, planner_section, training_section
from greenbatch.experiments.reports.page import definitions, write_page
from greenbatch.experiments.reports.sections import Section
from greenbatch.experiments.reports.spread import box_plot
from greenbatch.experiments.reports.tables import Table
from greenbatch.experiments.reports.tradeoff import tradeoff_plot
from greenbatch.notes import Note

if TYPE_CHECKING:
    import polars

    from greenbatch.experiments.papers.studies import Study
    from greenbatch.experiments.reports.drawing import Picture


def all_tables(results: Sequence[Result], *, narrow: bool = False, remarks: bool = False) -> list[Table]:
    """Tables of all results and, if the study has one, the matrix of models on other traces.

    Args:
        results: one per trace and kind of windows.
        narrow: omit columns and tables that do not fit a terminal.
        remarks: append the remarks on each result to its first table.
    """
    made: list[Table] = []
    for result in results:
        first, *others = (table for table in tables_of(result, narrow=narrow) if table.rows)
        made += [replace(first, notes=(*first.notes, *remarks_of(result))) if remarks else first, *others]
    kinds = dict.fromkeys((e.cell.agent, e.backfill) for result in results for e in result.entries if e.cell)
    matrices = (matrix_table(results, agent, backfill) for agent, backfill in kinds)
    return [*made, *(table for table in matrices if table is not None)]


def all_lines(results: Sequence[Result]) -> list[str]:
    """Verdicts and remarks on all results, one line each."""
    return [line for result in results for line in (*answers_of(result), *remarks_of(result))]


def write_study(
    path: Path, study: Study, results: Sequence[Result], *, command: str, provenance: Mapping[str, Any]
) -> None:
    """Write the report of a study as one self-contained HTML file.

    Raises:
        InputError: the file cannot be written.
    """
    write_page(
        path, title=study.title, command=command, tables=all_tables(results, remarks=True),
        sections=list(_sections(study, results)),
        notes=[Note(line, level="warning") for each in results for line in answers_of(each)],
        explained=definitions(), provenance=provenance,
    )  # fmt: skip


def _sections(study: Study, results: Sequence[Result]) -> Iterator[Section]:
    for result in results:
        yield from training_sections(result)
        pictures = [*_sweep(result), *_settings(result)]
        if trade := tradeoff_plot(result.frame, _baseline(result), x="avg_bounded_slowdown", y="renewable_utilization"):
            pictures.append(_renamed(trade, result))
        if pictures:
            yield Section(_heading(result, "trade-off and spread"), "", tuple(pictures))
    for result in results:
        yield from _decisions(study, result)


def _baseline(result: Result) -> str:
    return next(entry.label for entry in result.entries if entry.rule == result.study.baseline)


def _heading(result: Result, what: str) -> str:
    return f"{result.trace}, {result.windows} windows: {what}"


def _renamed(picture: Picture, result: Result) -> Picture:
    """The same picture with a unique name, as required for ids in a page."""
    from greenbatch.experiments.reports.drawing import slug

    new = f"{slug(result.trace)}-{result.windows}-{picture.name}"
    return replace(picture, name=new, title=f"{picture.title}, {result.trace}")


def training_sections(result: Result) -> Iterator[Section]:
    """The training curves of a result's agents; none without agents."""
    from greenbatch.models.model import MODEL

    own = [e for e in result.entries if e.cell and not e.away and e.knob == e.cell.agent.knobs[0]]
    folders = {
        entry.label: [folder / MODEL for folder in entry.seeds.values()]
        for entry in own
        if entry.seeds and entry.cell is not None
        and (entry.cell.backfill, entry.cell.windows) == (entry.backfill, result.windows)
    }  # fmt: skip
    if made := training_section(folders, _heading(result, "training")):
        yield made


def _sweep(result: Result) -> list[Picture]:
    points: dict[str, list[tuple[float, float, float]]] = {}
    for row in result.rows:
        agent, figures = row["agent"], row["figures"]
        if agent and agent["eta"] is not None and "renewable_utilization" in figures:
            slow, green = (figures[m]["mean"] for m in ("avg_bounded_slowdown", "renewable_utilization"))
            trained = "" if agent["trained_with"] == row["backfill"] else f", trained with {agent['trained_with']}"
            trained += "" if agent["trained_windows"] == row["windows"] else f", trained {agent['trained_windows']}"
            label = f"{row['column']}{agent['knob']}+{row['backfill']}{trained}"
            points.setdefault(label, []).append((agent["eta"], slow, green))
    drawn = sweep_plot(points, f"{result.trace}, {result.windows} windows")
    return [drawn] if drawn else []


def _settings(result: Result) -> list[Picture]:
    """Agents with backfilling in training and evaluation, in evaluation alone, and without, window by window.

    Source of the form: GAS-MARL Figs. 4 and 5.
    """
    agents = [row for row in result.rows if row["agent"] and row["figures"]]
    if not any(row["agent"]["trained_with"] != row["backfill"] for row in agents):
        return []
    import polars as pl

    frame: polars.DataFrame = result.frame.filter(pl.col("scheduler").is_in([row["scheduler"] for row in agents]))
    drawn = (box_plot(frame, column) for column in MAIN[:2])
    return [_renamed(picture, result) for picture in drawn if picture is not None]


def _decisions(study: Study, result: Result) -> Iterator[Section]:
    """Decisions of the last network's first seed in the first window, and the weights of planners."""
    from greenbatch.engine.simulate import simulate
    from greenbatch.models.network import NetworkScheduler
    from greenbatch.models.planner import PlannerScheduler
    from greenbatch.scenarios import load_scenario

    scenario = load_scenario(study.traces[result.trace])
    own = [e for e in result.entries if not e.away and e.cell is not None and e.cell.windows == result.windows]
    trained = [(e, seed) for e in own for seed in list(e.seeds)[:1]]
    models = [decider_of(entry, seed, scenario) for entry, seed in trained]
    networks = [model for model in models if isinstance(model, NetworkScheduler)]
    for network in networks[-1:]:
        jobs = scenario.window(result.starts[0], result.jobs)
        outcome = simulate(jobs, scenario.cluster, scenario.site, scenario.rules, network)
        name = _heading(result, f"{network.name}, jobs from {result.starts[0]}")
        yield decision_section(name, network, outcome)
    for model in models:
        if isinstance(model, PlannerScheduler):
            yield planner_section(_heading(result, model.name), model)
