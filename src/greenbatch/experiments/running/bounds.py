"""Bounds of the windows of a scenario, by how much longer than a reference a schedule may take, or each job."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from greenbatch.engine.capabilities import features_of, refuse
from greenbatch.errors import InputError
from greenbatch.workers import Workers, checked, spread

if TYPE_CHECKING:
    from greenbatch.bounds import Bound
    from greenbatch.engine.program import Scheduler
    from greenbatch.experiments.running.cells import Progress
    from greenbatch.scenarios import Scenario

REFERENCE = "f2+easy-schedgym"
"""The scheduler whose makespan others may exceed."""
FIRST = "f2+easy"
"""The scheduler beside bounds of spans."""
RATIOS = (1.0, 1.1, 1.25, 1.5, 1.75, 2.0)
"""Makespans for which bounds are computed, relative to the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowBound:
    """What no schedule of a window can beat that takes at most so much longer than the reference."""

    scenario: str
    """Name of the scenario."""
    start: int
    """First job of the window."""
    jobs: int
    """Jobs of the window."""
    reference: str
    """Scheduler that makespans are relative to."""
    reference_makespan_s: float
    """Its makespan. [s]"""
    makespan_ratio: float
    """Largest makespan, relative to the reference, > 0."""
    renewable_utilization: float
    """No schedule has a larger one. [-], in [0, 1]"""
    brown_kwh: float
    """No schedule takes less from the grid from the first submission to the latest end. [kWh]"""


def window_bounds(
    scenario: Scenario,
    starts: Sequence[int],
    jobs: int,
    ratios: Sequence[float] = RATIOS,
    *,
    reference: str = REFERENCE,
    progress: Progress | None = None,
    workers: Workers = 1,
) -> list[WindowBound]:
    """Bounds of windows, window by window, each in the order of the makespans.

    Args:
        scenario: a pool of processors with a power supply.
        starts: first job of each window.
        jobs: length of the windows.
        ratios: largest makespans, relative to the reference, > 0.
        reference: the scheduler that they are relative to.
        progress: called before every window.
        workers: number of processes, >= 1.

    Raises:
        InputError: no power supply, another machine or site than `bounds.oracle_bound` knows, a ratio that no schedule
            can meet, or a window beyond the trace.
    """
    from greenbatch.schedulers import scheduler

    if not ratios or not all(0 < ratio < np.inf for ratio in ratios):
        raise InputError(f"is {list(ratios)}", field="--makespan", fix="give numbers > 0, such as 1.0,1.25,1.5")
    workers = checked(workers) or 1
    for start in starts:
        scenario.window(start, jobs)
    task = partial(_of_window, scenario, jobs, tuple(ratios), scheduler(reference), reference)
    found: dict[int, list[WindowBound]] = {}

    def here(start: int) -> list[WindowBound]:
        if progress is not None:
            progress(f"bounds of jobs {start} to {start + jobs - 1}", len(found), len(starts))
        return task(start)

    with closing(spread(list(starts), here, task, workers)) as results:
        for start, bounds in results:
            found |= {start: bounds}
    return [bound for start in starts for bound in found[start]]


def _of_window(
    scenario: Scenario, jobs: int, ratios: Sequence[float], decider: Scheduler, reference: str, start: int
) -> list[WindowBound]:  # fmt: skip
    from greenbatch.bounds import oracle_bounds
    from greenbatch.engine.simulate import simulate
    from greenbatch.metrics import find, measure

    window = scenario.window(start, jobs)
    refuse("a bound", [("bound", "oracle")], features_of(window, scenario.cluster, scenario.site, scenario.rules))
    assert scenario.site is not None  # noqa: S101  (refused above)
    run = measure(simulate(window, scenario.cluster, scenario.site, scenario.rules, decider))
    makespan_s = find("makespan_s").function(run)
    ends_s = [run.first_submit_s + ratio * makespan_s for ratio in ratios]
    try:
        bounds: list[Bound] = oracle_bounds(
            window, scenario.cluster, scenario.site, scenario.rules, latest_ends_s=ends_s
        )
    except InputError as error:
        if error.field != "latest_end_s":
            raise
        problem = f"a makespan of {min(ratios):g} times that of {reference} is too short: {error.problem}"
        raise InputError(problem, field="--makespan", fix="give a larger factor, such as 1.0") from None
    return [
        WindowBound(
            scenario=scenario.name, start=start, jobs=jobs, reference=reference, reference_makespan_s=makespan_s,
            makespan_ratio=float(ratio), renewable_utilization=bound.renewable_utilization,
            brown_kwh=bound.brown_j / 3.6e6,
        )
        for ratio, bound in zip(ratios, bounds, strict=True)
    ]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanBound:
    """What no schedule of a window can beat whose jobs all end in time, beside a schedule; over one span."""

    scenario: str
    """Name of the scenario."""
    start: int
    """First job of the window."""
    jobs: int
    """Jobs of the window."""
    within_s: float
    """Each job ends at most so long after its submission and its run time. [s]"""
    brown_kwh: float
    """Least energy from the grid. [kWh]"""
    cost: float | None
    """Least cost of energy without demand charges, None without prices. [currency of the site]"""
    carbon_kg: float | None
    """Least emissions, None without intensities. [kg]"""
    reference: str
    """A scheduler."""
    reference_within_s: float
    """The longest that one of its jobs takes beyond its run time. [s]"""
    reference_brown_kwh: float
    """Its energy from the grid. [kWh]"""
    reference_cost: float | None
    """Its cost of energy without demand charges, None without prices. [currency of the site]"""
    reference_carbon_kg: float | None
    """Its emissions, None without intensities. [kg]"""


def span_bounds(
    scenario: Scenario, starts: Sequence[int], jobs: int, within_s: float, *, reference: str = FIRST
) -> list[SpanBound]:  # fmt: skip
    """Fluid bounds of windows, see `bounds.fluid_bound`, beside a scheduler over the same span.

    Args:
        scenario: any machine with a power supply.
        starts: first job of each window.
        jobs: length of the windows.
        within_s: each job ends at most so long after its submission and its run time. [s]
        reference: the scheduler.

    Raises:
        InputError: as `bounds.fluid_bound`, or a window is beyond the trace.
    """
    from greenbatch.bounds import fluid_bound
    from greenbatch.engine.accounts import books
    from greenbatch.engine.simulate import simulate
    from greenbatch.engine.state import work_s
    from greenbatch.schedulers import scheduler

    found, decider = [], scheduler(reference)
    for start in starts:
        window, cluster, site, rules = scenario.window(start, jobs), scenario.cluster, scenario.site, scenario.rules
        refuse("a bound", [("bound", "fluid")], features_of(window, cluster, site, rules))
        assert site is not None  # noqa: S101  (refused above)
        outcome = simulate(window, cluster, site, rules, decider)
        late_s = outcome.end_s - window.submit_s - work_s(window, cluster, rules)
        latest_s = max(0.0, float(np.nanmax(late_s)))
        try:
            bound = fluid_bound(window, cluster, site, rules, within_s=within_s)
        except InputError as error:
            if error.field != "within_s":
                raise
            fix = f"give a longer time; {reference} ends no job more than {latest_s / 3600.0:,.1f} h late"
            raise InputError(error.problem, field="--within", fix=fix) from None
        drawn = books(outcome, bound.first_s, max(bound.last_s, outcome.last_s))
        has_money, has_carbon = not math.isnan(bound.cost), not math.isnan(bound.carbon_kg)
        found.append(SpanBound(
            scenario=scenario.name, start=start, jobs=len(window), within_s=within_s, brown_kwh=bound.brown_kwh,
            cost=bound.cost if has_money else None, carbon_kg=bound.carbon_kg if has_carbon else None,
            reference=reference, reference_within_s=latest_s,
            reference_brown_kwh=drawn.grid_j / 3.6e6, reference_cost=drawn.cost if has_money else None,
            reference_carbon_kg=drawn.carbon_g / 1e3 if has_carbon else None,
        ))  # fmt: skip
    return found


def bound_rows(bounds: Sequence[WindowBound] | Sequence[SpanBound]) -> list[dict[str, Any]]:
    """The bounds as JSON rows."""
    return [asdict(bound) for bound in bounds]
