"""``greenbatch simulate``: simulate one workload under one scheduler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.cli.flags import Natural, Positive, Switch
from greenbatch.cli.listing import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from greenbatch.engine.outcome import Outcome
    from greenbatch.scenarios import Scenario

_HEADLINE = (
    "makespan_s", "utilization", "avg_wait_s", "avg_bounded_slowdown", "energy_kwh", "brown_kwh", "horizon_brown_kwh",
    "renewable_utilization",
)  # fmt: skip
"""Printed metrics, in the units of the tables."""


def simulate(
    *,
    scheduler: str,
    out: Path,
    scenario: str = "default",
    trace: str | None = None,
    processors: Positive = None,
    start: Natural = None,
    jobs: Positive = None,
    strict: Switch = False,
    force: Switch = False,
) -> None:
    """Replay a workload under one scheduler; write metrics.json, schedule.csv, power.parquet and provenance.json.

    Parameters
    ----------
    scheduler
        policy+backfill, e.g. f2+green or fcfs+none.
    out
        Folder for the results; refused if it exists and is not empty.
    scenario
        A shipped scenario (greenbatch scenario list) or a TOML file.
    trace
        Jobs to use instead of the scenario's: a file, or a name in greenbatch data list.
    processors
        Machine size, instead of the scenario's.
    start
        First job of the window: 0-based index after filtering, in order of job id.
    jobs
        Jobs of the window; by default all from the first on.
    strict
        Refuse a trace with records that would be repaired or dropped.
    force
        Replace an earlier result in the folder.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.cli.output import result_folder, write_record
    from greenbatch.experiments.reports.cautions import borrowed_machine
    from greenbatch.provenance import provenance
    from greenbatch.scenarios import load_scenario

    with result_folder(out, force=force) as folder:
        from greenbatch import schedulers

        rule = schedulers.scheduler(scheduler)
        question = load_scenario(scenario, trace=trace, processors=processors, strict=strict)
        window = question.window(start or 0, jobs)
        from greenbatch.engine.simulate import simulate as run
        from greenbatch.experiments.reports.cautions import killed_lines, recorded_wait_notes
        from greenbatch.experiments.running.model_warnings import model_warnings

        warnings = [
            *borrowed_machine(question, scenario, trace),
            *model_warnings({scheduler: rule}, question, [start or 0], len(window)),
        ]

        outcome = run(window, question.cluster, question.site, question.rules, rule)
        metrics = write_outcome(outcome, question, folder)
        settings = {"scheduler": scheduler, "start": start or 0, "jobs": len(window), "strict": strict}
        record = provenance(
            scenario=question.resolved,
            inputs={**question.inputs, **schedulers.input_files([scheduler])},
            notes=question.notes,
            settings=settings,
            seed=question.evaluation.seed,
            command=COMMAND.get(),
        )
        write_record(folder, record)
    for line in (*warnings, *killed_lines(outcome.killed, len(window))):
        say(f"warning: {line}")
    print(f"{question.name}, {scheduler}")
    for label, value in headline(metrics):
        print(f"  {label:30} {value}")
    for note in question.notes:
        say(f"note: {note}", indent=2)
    for note in recorded_wait_notes(outcome):
        say(f"note: {note}", indent=2)
    print(f"written to {out}")


def headline(metrics: Mapping[str, float | int | None]) -> list[tuple[str, str]]:
    """Label and formatted value with its unit: durations in hours or days, energy in kWh."""
    from greenbatch.experiments.reports.tables import DETAIL, MAIN

    columns = {column.metric: column for column in (*MAIN, *DETAIL)}
    lines = [("Jobs", f"{metrics['jobs']:,}")]
    for name in _HEADLINE:
        if (value := metrics.get(name)) is not None:
            column = columns[name]
            lines.append((column.header, f"{column.number(value)} {column.unit}".rstrip()))
    if left := metrics.get("horizon_unfinished_jobs"):
        lines.append(("Jobs unfinished at the horizon", f"{left:,}"))
    return lines


def write_outcome(outcome: Outcome, scenario: Scenario, folder: Path) -> dict[str, float | int | None]:
    """Write the metrics, schedule and power profile of a run; return the metrics."""
    import numpy as np
    import polars

    from greenbatch.engine.accounts import power_segments
    from greenbatch.metrics import Cut, evaluate, horizon_of, json_ready

    own = scenario.evaluation
    horizon = horizon_of(outcome.workload, outcome.cluster, outcome.site, outcome.rules, own.horizon)
    metrics = json_ready(evaluate(outcome, cut=Cut(**own.cut), horizon=horizon))  # type: ignore[arg-type]
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    jobs = outcome.workload
    schedule = polars.DataFrame(
        {
            "job_id": jobs.job_id,
            "submit_s": _seconds(jobs.submit_s),
            "start_s": _seconds(outcome.start_s),
            "end_s": _seconds(outcome.end_s),
            "processors": jobs.processors,
            "node": np.zeros(len(jobs), dtype=np.int64),  # a pooled cluster is one big node
        }
    )
    schedule.write_csv(folder / "schedule.csv")
    power = polars.DataFrame(power_segments(outcome)._asdict())
    unknown = [] if np.isfinite(jobs.power_w).all() else ["load_w", "renewable_used_w"]
    unknown += [] if outcome.site is not None else ["renewable_w", "renewable_used_w"]
    nothing = polars.lit(None, dtype=polars.Float64)
    power.with_columns(nothing.alias(name) for name in set(unknown)).write_parquet(folder / "power.parquet")
    return metrics


def _seconds(values: object) -> object:
    """Whole seconds as integers, as in the trace."""
    import numpy as np

    floats = np.asarray(values)
    return floats.astype(np.int64) if np.all(floats == np.floor(floats)) else floats
