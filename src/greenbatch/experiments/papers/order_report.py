"""The files of agents that were tested on orders: tables, report, all figures, and provenance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.engine.simulate import simulate
from greenbatch.experiments.papers.ineps_tables import all_tables, answers, budget_table
from greenbatch.experiments.papers.order_results import TrialResult, model_of
from greenbatch.experiments.papers.order_studies import OrderStudy
from greenbatch.experiments.papers.orders import METRICS, in_order
from greenbatch.experiments.papers.protocols import PROTOCOLS
from greenbatch.experiments.papers.studies import Cell
from greenbatch.experiments.reports.model_sections import decision_section, training_section
from greenbatch.experiments.reports.page import write_page
from greenbatch.experiments.reports.result_folder import write_record
from greenbatch.experiments.reports.sections import Section
from greenbatch.experiments.reports.tables import write
from greenbatch.files import write_parquet
from greenbatch.learning.several import state_of
from greenbatch.provenance import provenance
from greenbatch.scenarios.sources import sources_of

if TYPE_CHECKING:
    import polars


def write_orders(
    study: OrderStudy, results: Sequence[TrialResult], cells: Sequence[Cell], place: Path, folder: Path,
    command: Sequence[str],
) -> None:  # fmt: skip
    """Write rows.json, results.parquet, table.md, report.html and provenance.json.

    Args:
        study: the paper.
        results: its results.
        cells: the selected trainings.
        place: folder of the study.
        folder: the target folder.
        command: the command line.
    """
    (folder / "rows.json").write_text(json.dumps(rows_of(results), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    write_parquet(frame_of(results), folder / "results.parquet")
    tables = [*all_tables(results), budget_table(study, cells, place)]
    text = "\n".join([*(write(table, "markdown") for table in tables), *(f"- {line}" for line in answers(results))])
    (folder / "table.md").write_text(text + "\n", encoding="utf-8")
    record = provenance(
        **sources_of({result.trial.name: result.trial.load() for result in results}),
        settings={"study": study.name, "orders": {result.trial.name: list(result.orders) for result in results}},
        command=command,
    )
    sections = [*_training(study, cells, place), *_decisions(study, results, cells, place)]
    write_page(
        folder / "report.html", title=study.title, command=" ".join(command), tables=tables, sections=sections,
        summary=answers(results), notes=PROTOCOLS[study.name].readings, provenance=record,
    )  # fmt: skip
    write_record(folder, record)


def rows_of(results: Sequence[TrialResult]) -> list[dict[str, Any]]:
    """The figures of the tables, ready for JSON: one per test and scheduler, fixed rules only if they are best."""
    rows = []
    for result in results:
        best = {metric: result.best_rule(metric) for metric in METRICS}
        agents = {agent.name: agent for agent in result.agents}
        for name in dict.fromkeys((*best.values(), *result.paper_rules, *agents)):
            agent = agents.get(name)
            row: dict[str, Any] = {
                "test": result.trial.name, "scenario": result.trial.scenario, "orders": list(result.orders),
                "scheduler": name, "trained_on": agent and result.study.traces[result.trial.trained_on],
                "seeds": list(agent.seeds) if agent else [], "not_trained": list(agent.missing) if agent else [],
                "figures": {},
            }  # fmt: skip
            for metric in METRICS if name in result.figures else ():
                mean, ratio = result.interval(name, metric), result.ratio(name, metric)
                row["figures"][metric] = {
                    "mean": mean.mean, "low": _finite(mean.low), "high": _finite(mean.high),
                    "best_fixed_rule": best[metric], "ratio": ratio.mean, "ratio_low": _finite(ratio.low),
                    "ratio_high": _finite(ratio.high), "values": result.values(name, metric).tolist(),
                }  # fmt: skip
            rows.append(row)
    return rows


def _finite(end: float) -> float | None:
    return end if end == end else None  # noqa: PLR0124  (NaN: one order has no interval)


def frame_of(results: Sequence[TrialResult]) -> polars.DataFrame:
    """All figures of all schedulers: test, order, scheduler, seed (null for rules), metric, value."""
    import polars as pl

    rows = []
    for result in results:
        seeds = {agent.name: agent.seeds for agent in result.agents}
        for name, figures in result.figures.items():
            for seed, by_order in zip(seeds.get(name, (None,)), figures, strict=True):
                for order, values in zip(result.orders, by_order, strict=True):
                    rows += [
                        (result.trial.name, order, name, seed, metric, float(value))
                        for metric, value in zip(METRICS, values, strict=True)
                    ]
    schema = {"test": pl.String, "order": pl.Int64, "scheduler": pl.String, "seed": pl.Int64, "metric": pl.String,
              "value": pl.Float64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _training(study: OrderStudy, cells: Sequence[Cell], place: Path) -> list[Section]:
    """Learning curves, as in Figs. 4 and 7, one section per workload."""
    made = []
    for trace, scenario in study.traces.items():
        folders: dict[str, list[Path]] = {}
        for cell in cells:
            if cell.trace == trace and state_of(place / cell.folder) == "finished":
                folders.setdefault(study.variant(cell).column, []).append(place / cell.folder / "model")
        made.append(training_section(folders, f"{trace}: training on {scenario}"))
    return [section for section in made if section is not None]


def _decisions(study: OrderStudy, results: Sequence[TrialResult], cells: Sequence[Cell], place: Path) -> list[Section]:
    """How each agent scored pairs: its first seed, on the first order of the first test of what it was trained on."""
    made = []
    for trace in study.traces:
        result = next((each for each in results if each.trial.trained_on == trace), None)
        if result is None:
            continue
        done = [each for each in cells if each.trace == trace and state_of(place / each.folder) == "finished"]
        scenario = result.trial.load()
        workload = in_order(scenario.workload, result.orders[0])
        for column, cell in {study.variant(each).column: each for each in reversed(done)}.items():
            agent = model_of(cell.agent.preset, place / cell.folder)
            outcome = simulate(workload, scenario.cluster, scenario.site, scenario.rules, agent)
            name = f"{column}, seed {cell.seed}, on an order of {result.trial.name}"
            made.append(decision_section(name, agent, outcome))
    return made
