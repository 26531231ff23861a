"""``greenbatch whatif``: what other schedulers would have done with recorded jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from greenbatch.cli.flags import Positive, Switch

if TYPE_CHECKING:
    from greenbatch.scenarios import Scenario

RECORDED = "as-recorded"
"""The schedule in the trace."""
HORIZON = 1.1
"""Horizon of the bill, in makespans of fcfs+easy."""


def whatif(
    *,
    trace: str,
    site: str,
    out: Path | None = None,
    cluster: str | None = None,
    processors: Positive = None,
    schedulers: str | None = None,
    baseline: str | None = None,
    sweep: str | None = None,
    unit_cost: Annotated[str | None, Parameter(name="--unit-cost")] = None,
    workers: Positive = None,
    ray: str | None = None,
    json: Switch = False,
    resume: Switch = False,
    outages: Switch = False,
    strict: Switch = False,
    force: Switch = False,
) -> None:
    """What other schedulers would have done with recorded jobs: money, carbon and waiting, by month and partition.

    Parameters
    ----------
    trace
        The jobs: an accounting dump (sacct), SWF, CSV, Parquet, PM100, F-DATA, or a name in greenbatch data list.
    site
        A TOML file with [site], as in a scenario; also [cluster], [workload.power] and [rules], if it has them.
    out
        Folder for the results; refused if it exists and is not empty. Optional with --json.
    cluster
        Nodes: a slurm.conf, a platform JSON or node groups in TOML.
    processors
        Size of a pool of processors.
    schedulers
        Names separated by commas; by default the recorded schedule, rules, and planners of what the site states.
    baseline
        Scheduler that the others are compared with; by default the recorded schedule.
    sweep
        Answer for several values of a key of the site: KEY=VALUE,VALUE,... (site.storage.capacity_kwh=0,500,1000).
    unit_cost
        With --sweep of a size: what one more unit of it costs, for the payback.
    workers
        Processes that simulate; results do not change.
    ray
        Use the machines of a Ray cluster: auto, HOST:PORT, or local for this machine. Results do not change.
    json
        Print one JSON object instead of the table.
    resume
        Resume the interrupted run in the folder; the other flags must be unchanged.
    outages
        Also simulate every scheduler with the outages that the record shows, in which no job may run.
    strict
        Refuse a trace with records that would be repaired or dropped.
    force
        Replace an earlier result in the folder.
    """
    from greenbatch.cli.compare import check_flags, run_comparison
    from greenbatch.cli.compare_sweep import run_sweep
    from greenbatch.cli.flags import positive, workers_of
    from greenbatch.errors import InputError

    check_flags(out, json=json, resume=resume, force=force, outages=outages, sweep=sweep)
    cost = None if unit_cost is None else positive(unit_cost, "--unit-cost")
    if cost is not None and sweep is None:
        fix = "give --sweep site.storage.capacity_kwh=0,500 or another size"
        raise InputError("is given without --sweep", field="--unit-cost", fix=fix)
    given: dict[str, Any] = {
        "schedulers": schedulers, "baseline": baseline, "workers": workers_of(workers, ray), "json": json,
        "resume": resume, "force": force, "windows": {"whole": True}, "defaults": recorded_and_rules,
        "inputs": {"trace": trace, "cluster": cluster, "processors": processors, "strict": strict,
                   "overrides": span_of_the_record(site)},
    }  # fmt: skip
    if sweep is None:
        from greenbatch.experiments.reports.whatif import plain_words

        run_comparison(out, site, in_words=plain_words, outages=outages, **given)
        return
    run_sweep(out, site, sweep, unit_cost=cost, **given)


def span_of_the_record(site: str) -> dict[str, Any]:
    """A horizon of little more than the record, unless the file states one, so that the bill has no year of idling.

    It covers the record to its end, which may be later than that of fcfs+easy.
    """
    from greenbatch.scenarios.scenario import scenario_path
    from greenbatch.scenarios.toml import read_toml

    stated, _ = read_toml(scenario_path(site))
    evaluation = stated.get("evaluation")
    given = isinstance(evaluation, dict) and "horizon" in evaluation
    return {} if given else {"evaluation.horizon": HORIZON, "evaluation.cover_record": True}


def recorded_and_rules(scenario: Scenario) -> tuple[str, ...]:
    """What is compared by default: the recorded schedule, if known, rules, and planners of what the site states."""
    from numpy import isfinite

    from greenbatch.scenarios.schema import PLAIN

    recorded = (RECORDED,) if isfinite(scenario.workload.recorded_wait_s).any() else ()
    planners, grid = scenario.evaluation.planners, None if scenario.site is None else scenario.site.grid
    stated = {} if grid is None else {"cost": grid.has_money, "carbon": grid.has_carbon}
    of_grid = (f"{name}:brown=0:{each}=1" for name in planners for each, known in stated.items() if known)
    return (*recorded, *PLAIN, *planners, *of_grid)
