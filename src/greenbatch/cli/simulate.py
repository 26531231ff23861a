"""``greenbatch simulate``: simulate one workload under one scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.cli.flags import Natural, Positive, Switch
from greenbatch.cli.listing import say_notes
from greenbatch.errors import visible

if TYPE_CHECKING:
    from collections.abc import Mapping


_WITHOUT_SUPPLY = ("makespan_s", "utilization", "avg_wait_s", "avg_bounded_slowdown", "energy_kwh", "edp_js")
_HEADLINE = (
    "makespan_s", "utilization", "avg_wait_s", "avg_bounded_slowdown", "energy_kwh", "brown_kwh", "horizon_brown_kwh",
    "renewable_utilization",
)  # fmt: skip
_VALUED = ("total_job_value", "value_ratio", "completion_ratio", "utilization_available", "accrued_cost", "suspensions")
"""Printed metrics, in the units of the tables."""


def simulate(
    *,
    scheduler: str,
    out: Path,
    scenario: str = "default",
    trace: str | None = None,
    cluster: str | None = None,
    processors: Positive = None,
    capacity: str | None = None,
    start: Natural = None,
    jobs: Positive = None,
    strict: Switch = False,
    force: Switch = False,
) -> None:
    """Replay a workload under one scheduler; write its metrics, schedule, nodes, power and provenance.

    Parameters
    ----------
    scheduler
        policy+backfill, e.g. f2+green or fcfs+none.
    out
        Folder for the results; refused if it exists and is not empty.
    scenario
        A shipped scenario (greenbatch scenario list) or a TOML file.
    trace
        Jobs instead of the scenario's: SWF, sacct, CSV, Parquet, PM100, F-DATA, or a name in greenbatch data list.
    cluster
        Nodes to use instead of the scenario's machine: a slurm.conf, a platform JSON or node groups in TOML.
    processors
        Size of a pool of processors, instead of the scenario's machine size.
    capacity
        Powered processors and GPUs over time (CSV: time_s, processors, gpus), instead of the scenario's capacity.
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
    from greenbatch.experiments.reports.outputs import write_outcome
    from greenbatch.experiments.reports.result_folder import RECORD, result_folder, write_record
    from greenbatch.provenance import provenance
    from greenbatch.scenarios import load_scenario
    from greenbatch.scenarios.sources import sources

    with result_folder(out, force=force) as folder:
        from greenbatch import schedulers

        rule = schedulers.scheduler(scheduler)
        question = load_scenario(
            scenario, trace=trace, cluster=cluster, processors=processors, capacity=capacity, strict=strict
        )
        window = question.window(start or 0, jobs)
        from greenbatch.engine.simulate import simulate as run
        from greenbatch.experiments.reports.cautions import depth_notes, killed_notes, record_notes, recorded_wait_notes
        from greenbatch.experiments.running.model_warnings import model_warnings

        warnings = model_warnings({scheduler: rule}, question, [start or 0], len(window))
        outcome = run(window, question.cluster, question.site, question.rules, rule)
        metrics = write_outcome(outcome, question, folder)
        settings = {"scheduler": scheduler, "start": start or 0, "jobs": len(window), "strict": strict}
        own = sources(question, schedulers.input_files([scheduler]))
        record = provenance(**own, settings=settings, seed=question.evaluation.seed, command=COMMAND.get())
        write_record(folder, record)
    killed = killed_notes({scheduler: outcome.killed / len(window)}, question.cluster)
    waits = record_notes([outcome]) or recorded_wait_notes(outcome)
    say_notes([*warnings, *killed, *waits, *depth_notes([outcome]), *question.notes], f"{RECORD} in {out}")
    print(f"{question.name}, {scheduler}")
    for label, value in headline(metrics):
        print(f"  {label:30} {value}")
    print(f"written to {visible(str(out))}")


def headline(metrics: Mapping[str, float | int | None]) -> list[tuple[str, str]]:
    """Label and formatted value with its unit: durations in s, hours or days, energy in Wh or kWh."""
    from greenbatch.experiments.reports.columns import DETAIL, MAIN, VALUED, WITHOUT_SUPPLY

    columns = {column.metric: column for column in (*VALUED, *MAIN, *WITHOUT_SUPPLY, *DETAIL)}
    lines = [("Jobs", f"{metrics['jobs']:,}")]
    usual = _HEADLINE if metrics.get("brown_kwh") is not None else _WITHOUT_SUPPLY
    for name in (*_VALUED, *usual) if metrics.get("total_job_value") is not None else usual:
        if (value := metrics.get(name)) is not None:
            column = columns[name].fitted([value])
            lines.append((column.header, f"{column.number(value)} {column.unit}".rstrip()))
    counts = {"horizon_unfinished_jobs": "Jobs unfinished at the horizon", "jobs_rejected": "Jobs rejected"}
    lines += [(label, f"{metrics[name]:,}") for name, label in counts.items() if metrics.get(name)]
    return lines
