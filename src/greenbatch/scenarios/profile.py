"""The profile of a scenario: a few numbers to compare one site with another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from greenbatch.scenarios.section import Count, NotNegative, Section

if TYPE_CHECKING:
    from greenbatch.scenarios.scenario import Scenario

SHORT_S = 300.0
"""Jobs that run less than this are short. [s]"""
DIGITS = 6
"""Significant digits of every number."""


class Profile(Section):
    """Key figures of a scenario's machine, jobs and power supply."""

    processors: Count
    """Processors of the machine."""
    jobs: Count
    """Jobs in the whole trace."""
    load: NotNegative | None
    """Offered work over capacity between the first and the last submission; null if these coincide."""
    median_run_time_s: NotNegative
    short_jobs: Annotated[float, Field(ge=0, le=1)]
    """Share of jobs that run less than 5 minutes."""
    median_request: NotNegative
    """Median of requested time over run time; 1 if requests are exact."""
    supply: bool
    """Whether there is a renewable supply."""
    mean_supply: NotNegative | None
    """Mean renewable power over the machine's peak power; null without a supply, or if the power of jobs is unknown.

    The peak power is the idle power plus that of all processors running the average job of the trace."""
    peak_supply: NotNegative | None
    """Largest renewable power over the machine's peak power."""


def profile(scenario: Scenario) -> Profile:
    """The profile of a scenario, from its whole trace and the dates that its power series state."""
    import numpy as np

    jobs, cluster = scenario.workload, scenario.cluster
    work_s = jobs.run_time_s * jobs.processors
    span_s = float(jobs.submit_s.max() - jobs.submit_s.min())
    busy_w = cluster.processors * float((jobs.power_w * jobs.run_time_s).sum() / work_s.sum())
    peak_w = cluster.idle_power_w + busy_w
    site = scenario.site
    supply_w = np.zeros(1) if site is None else site.renewable_w[slice(*(site.stated or (None,)))]
    measured = site is not None and np.isfinite(peak_w) and peak_w > 0
    return Profile(
        processors=cluster.processors, jobs=len(jobs),
        load=_rounded(work_s.sum() / (cluster.capacity * span_s)) if span_s > 0 else None,
        median_run_time_s=_rounded(np.median(jobs.run_time_s)),
        short_jobs=_rounded((jobs.run_time_s < SHORT_S).mean()),
        median_request=_rounded(np.median(jobs.requested_time_s / jobs.run_time_s)),
        supply=bool(supply_w.max() > 0),
        mean_supply=_rounded(supply_w.mean() / peak_w) if measured else None,
        peak_supply=_rounded(supply_w.max() / peak_w) if measured else None,
    )  # fmt: skip


def _rounded(value: float) -> float:
    """A number rounded for records, and at most the largest number that a record may hold."""
    return float(f"{min(float(value), 1e12):.{DIGITS}g}")
