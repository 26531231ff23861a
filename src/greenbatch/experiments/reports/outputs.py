"""The files of a result: those of one simulation, and those of a comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.outcome import STATES
from greenbatch.experiments.reports.result_folder import write_record
from greenbatch.files import write_parquet
from greenbatch.provenance import provenance
from greenbatch.scenarios.sources import sources
from greenbatch.schedulers import input_files
from greenbatch.schedulers.during_outages import SUFFIX

if TYPE_CHECKING:
    import polars

    from greenbatch.engine.outcome import Outcome
    from greenbatch.experiments.running.compare import Comparison
    from greenbatch.metrics.energy_use import EnergyUse
    from greenbatch.scenarios import Scenario

REPORT = "report.html"


def write_outcome(outcome: Outcome, scenario: Scenario, folder: Path) -> dict[str, float | int | None]:
    """Write the metrics, schedule, nodes and power profile of a run; return the metrics."""
    import polars

    from greenbatch.engine.accounts import power_segments
    from greenbatch.metrics import Cut, evaluate, evaluate_parts, horizon_of, json_ready, measure, parts_of
    from greenbatch.metrics.breakdown import nested

    own = scenario.evaluation
    horizon = horizon_of(
        outcome.workload, outcome.cluster, outcome.site, outcome.rules, own.horizon, cover_record=own.cover_record
    )
    cut = Cut(**own.cut)  # type: ignore[arg-type]
    run = measure(outcome, cut)
    metrics = json_ready(evaluate(outcome, cut=cut, horizon=horizon))
    parts = nested(json_ready(evaluate_parts(run, parts_of(outcome.workload, outcome.cluster), horizon)))
    found = {**metrics, **({"by": parts} if parts else {})}
    (folder / "metrics.json").write_text(json.dumps(found, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    jobs = outcome.workload
    schedule = polars.DataFrame(
        {
            "job_id": jobs.job_id,
            "submit_s": _seconds(jobs.submit_s),
            "start_s": _seconds(outcome.start_s),
            "end_s": _seconds(outcome.end_s),
            "processors": jobs.processors,
            "node": nodes_of(outcome),
            "energy_j": _known(run.per_job("energy_j")),
            "edp_js": _known(run.per_job("edp_js")),
        }
    )
    if outcome.stays is not None:
        schedule = schedule.with_columns(**stays_columns(outcome))
    if outcome.dvfs_level is not None:
        schedule = schedule.with_columns(dvfs_level=polars.Series(outcome.dvfs_level))
    for file, table in (("schedule.csv", schedule), ("nodes.csv", nodes_table(run.energy_use))):
        (folder / file).write_text(for_spreadsheets(table).write_csv(), encoding="utf-8")
    power = polars.DataFrame(power_segments(outcome)._asdict())
    if outcome.profile_command_w is not None:
        last = np.searchsorted(outcome.profile_time_s, power["start_s"].to_numpy(), side="right") - 1
        power = power.with_columns(command_w=np.where(last >= 0, outcome.profile_command_w[last], 0.0))
    unknown = [] if run.has_power else ["load_w", "renewable_used_w"]
    unknown += [] if outcome.site is not None else ["renewable_w", "renewable_used_w"]
    nothing = polars.lit(None, dtype=polars.Float64)
    power = power.with_columns(nothing.alias(name) for name in set(unknown))
    write_parquet(power, folder / "power.parquet")
    return metrics


def for_spreadsheets(frame: polars.DataFrame) -> polars.DataFrame:
    """A frame whose texts no spreadsheet takes for formulas: an apostrophe before those that begin like one."""
    import polars

    text = polars.col(polars.String)
    runs = text.str.contains(r"^[=+\-@\t\r]") & ~text.str.contains(r"^[+-]?[0-9.]+$")
    return frame.with_columns(polars.when(runs).then("'" + text).otherwise(text).name.keep())


def stays_columns(outcome: Outcome) -> dict[str, polars.Series]:
    """What became of each job: its state, suspensions, value, and the spans in which it ran, ``begin-end`` [s]."""
    import polars

    if (stays := outcome.stays) is None:
        return {}
    spans: list[list[str]] = [[] for _ in range(len(outcome.workload))]
    for job, *span in zip(*(each.tolist() for each in outcome.spans), strict=True):
        spans[job].append("-".join(f"{time_s:.15g}" for time_s in span))
    return {
        "state": polars.Series(np.array(STATES)[stays.state]),
        "suspensions": polars.Series(stays.suspensions),
        "value": _known(outcome.workload.value),
        "spans": polars.Series([";".join(each) or None for each in spans]),
    }


def nodes_of(outcome: Outcome) -> list[str] | NDArray[np.int64]:
    """The nodes of each job, ``name:processors`` separated by semicolons; 0 on a pool, which is one big node.

    If a job was suspended, those of each of its spans, separated by bars.
    """
    placed = outcome.placements
    if placed is None:
        return np.zeros(len(outcome.start_s), dtype=np.int64)
    names, most = outcome.cluster.node_names, int(placed.processors.max(initial=0)) + 1
    parts, texts = placed.node.astype(np.int64) * most + placed.processors, np.empty(len(names) * most, dtype=object)
    for part in np.flatnonzero(np.bincount(parts)).tolist():
        texts[part] = f"{names[part // most]}:{part % most}"
    listed = texts[parts].tolist()
    job = outcome.spans[0]
    first = np.searchsorted(placed.span, np.arange(len(job) + 1)).tolist()
    spans = [";".join(listed[i:j]) for i, j in pairwise(first)]
    if outcome.stays is None:
        return spans
    of_job = np.searchsorted(job, np.arange(len(outcome.start_s) + 1)).tolist()
    return ["|".join(spans[i:j]) for i, j in pairwise(of_job)]


def nodes_table(use: EnergyUse) -> polars.DataFrame:
    """One row per node: jobs, busy processor-hours and energies; null where the power of a job is unknown."""
    import polars

    return polars.DataFrame(
        {
            "node": use.node,
            "group": use.group,
            "jobs": use.jobs,
            "busy_processor_h": use.busy_processor_s / 3600,
            "idle_kwh": use.idle_j / 3.6e6,
            "static_kwh": use.static_j / 3.6e6,
            "dynamic_kwh": _known(use.dynamic_j / 3.6e6),
        }
    )


def _known(values: NDArray[np.float64]) -> polars.Series:
    """Values for a table, null instead of NaN."""
    import polars

    return polars.Series(values, nan_to_null=True)


def _seconds(values: NDArray[np.float64]) -> polars.Series:
    """Whole seconds as integers, as in the trace; null where a job did not start or end."""
    import polars

    known = np.isfinite(values)
    whole = np.all(values[known] == np.floor(values[known]))
    return _known(values).cast(polars.Int64) if whole else _known(values)


def comparison_record(
    scenario: Scenario,
    schedulers: Sequence[str],
    baseline: str,
    starts: Sequence[int],
    jobs: int,
    *,
    seed: int | None,
    command: Sequence[str] = (),
) -> dict[str, Any]:
    """The provenance of a comparison.

    Args:
        scenario: the scenario.
        schedulers: names of the schedulers.
        baseline: the one that the others are compared with.
        starts: first job of each window.
        jobs: jobs per window.
        seed: seed of random windows; None for that of the scenario.
        command: the command line.
    """
    return provenance(
        **sources(scenario, input_files([name for name in schedulers if not name.endswith(SUFFIX)])),
        settings={"schedulers": list(schedulers), "baseline": baseline, "starts": list(starts), "jobs": jobs},
        seed=scenario.evaluation.seed if seed is None else seed,
        command=command,
    )


def write_comparison(
    comparison: Comparison, folder: Path, record: Mapping[str, Any], in_words: Sequence[str] = ()
) -> bool:  # fmt: skip
    """Write results.parquet (tidy), table.md, table.tex, report.html and provenance.json.

    If jobs have partitions, accounts or users, also breakdown.csv.

    Args:
        comparison: the comparison.
        folder: the target folder.
        record: provenance of the comparison.
        in_words: sentences that lead the summary of the report.

    Returns:
        Whether the report was drawn. If the user interrupts, the other files are written: ``--resume`` requires them.
    """
    from greenbatch.experiments.reports.report import report_comparison

    try:
        _write_figures(comparison, folder)
        command = " ".join(record["run"]["command"])
        report_comparison(folder / REPORT, comparison, command=command, provenance=record, in_words=in_words)
        write_record(folder, record)
    except KeyboardInterrupt:
        _write_figures(comparison, folder)
        write_record(folder, record)
    return (folder / REPORT).exists()


def _write_figures(comparison: Comparison, folder: Path) -> None:
    from greenbatch.experiments.reports.breakdown import gains_table, means_frame
    from greenbatch.experiments.reports.notes import notes_of
    from greenbatch.experiments.reports.outages import outage_table
    from greenbatch.experiments.reports.tables import (
        comparison_table,
        difference_table,
        idle_words,
        record_table,
        write,
    )
    from greenbatch.experiments.running.frames import with_breakdown

    frame, parts, idle = comparison.frame, comparison.breakdown, idle_words(comparison.scenario.cluster)
    notes = [str(note) for note in notes_of(comparison) if note.matters]
    write_parquet(with_breakdown(frame, parts), folder / "results.parquet")
    if len(parts):
        (folder / "breakdown.csv").write_text(for_spreadsheets(means_frame(parts)).write_csv(), encoding="utf-8")
    tables = [
        comparison_table(frame, title=comparison.title, notes=notes, currency=comparison.currency, idle=idle),
        difference_table(frame, comparison.baseline, currency=comparison.currency),
        record_table(frame),
        gains_table(parts, comparison.baseline),
        outage_table(frame, comparison.baseline, comparison.currency),
    ]
    for form, suffix in (("markdown", "md"), ("latex", "tex")):
        text = "\n".join(write(table, form) for table in tables if table and table.rows)
        (folder / f"table.{suffix}").write_text(text, encoding="utf-8")
