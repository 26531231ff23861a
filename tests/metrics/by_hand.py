"""Outcomes written down by hand, for metrics that can be checked on paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.workload import Workload


def outcome_of(
    jobs: dict[str, Any],
    start_s: Any,
    end_s: Any,
    cluster: Cluster,
    site: Site | None = None,
    *,
    decisions: int = 0,
    killed: int = 0,
) -> Outcome:
    """An outcome from job columns (in order of job id), starts and ends; its load profile is summed up plainly."""
    start, end = np.asarray(start_s, dtype=float), np.asarray(end_s, dtype=float)
    workload = Workload.from_columns("by hand", {"run_time_s": end - start, **jobs})
    times = np.unique(np.concatenate([start, end]))
    step = np.zeros(len(times))
    np.add.at(step, np.searchsorted(times, start), workload.power_w)
    np.subtract.at(step, np.searchsorted(times, end), workload.power_w)
    return Outcome(
        scheduler="by-hand+none", workload=workload, cluster=cluster, site=site, rules=Rules(), start_s=start,
        end_s=end, promised_start_s=np.full(len(start), np.nan), profile_time_s=times,
        profile_load_w=cluster.idle_power_w + np.cumsum(step), decisions=decisions, killed=killed,
    )  # fmt: skip
