"""Normalizers of a preset whose numbers depend on the scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from greenbatch.cluster import Cluster

if TYPE_CHECKING:
    from greenbatch.energy import Site
    from greenbatch.scenarios import Scenario
    from greenbatch.workload import Workload

Normalizer = Literal["processors", "longest_run_time", "largest_memory", "largest_group", "largest_executable",
                     "largest_user", "site_scale", "longest_requested_time", "longest_wait", "last_submission",
                     "largest_node", "largest_peak", "largest_static_power", "largest_dynamic_power",
                     "largest_energy_estimate", "highest_grid_price", "highest_source_price", "highest_export_price",
                     "highest_carbon", "highest_supply", "largest_job_power",
                     "largest_power_per_processor", "gpus", "largest_value", "tick"]  # fmt: skip
"""Names of the scales, see `scales_of`."""


def scales_of(scenario: Scenario) -> dict[str, float]:
    """Name of a scale -> its number; those of nodes only for a cluster that has nodes.

    ``processors``: processors of the cluster. ``longest_run_time``: the longest run time of the trace, as in the
    papers' code (it uses run times, which leaks a little of the future into the scale).
    ``longest_requested_time``: the longest requested time of the trace. ``longest_wait``: ten times that.
    ``last_submission``: the last submission of the trace. ``largest_memory``: the largest requested memory of the
    trace. ``largest_group``: the largest number of a group. ``largest_executable``: the largest number of an
    executable. ``largest_user``: the largest number of a user. ``site_scale``: processors / 256, by which GAS-MARL
    scales a site. ``largest_node``: processors of the largest node. ``largest_peak``: the highest peak of a processor.
    ``largest_static_power``: the highest static power of a node. ``largest_dynamic_power``: the highest power of the
    processors of a node. ``largest_energy_estimate``: the highest energy of a job on an idle node by InEPS's Eq. 1.
    ``largest_job_power``: the highest power of a job. ``largest_power_per_processor``: the same per processor.
    ``highest_supply``: the highest renewable power in any slot of the site, 1 if all are 0. ``highest_grid_price``:
    the largest absolute price of imports in any slot. ``highest_source_price``: that of own energy.
    ``highest_export_price``: that of feed-in. ``highest_carbon``: the highest carbon intensity of the grid. ``gpus``:
    GPUs of a machine whose capacity follows the power, 1 of others. ``tick``: its tick. ``largest_value``: the highest
    value of a job, 1 if none is known.
    """
    jobs = scenario.workload
    scales = {
        "processors": float(scenario.cluster.processors),
        "longest_run_time": float(jobs.run_time_s.max()),
        "longest_requested_time": float(jobs.requested_time_s.max()),
        "longest_wait": 10.0 * float(jobs.requested_time_s.max()),
        "last_submission": float(max(jobs.submit_s.max(), 1.0)),
        "largest_memory": float(np.nanmax(np.append(jobs.requested_memory_kb, 1.0))),
        "largest_group": float(max(jobs.group.max(), 1)),
        "largest_executable": float(max(jobs.executable.max(), 1)),
        "largest_user": float(max(jobs.user.max(), 1)),
        "largest_job_power": float(np.nanmax(np.append(jobs.power_w, 0.0))) or 1.0,
        "largest_power_per_processor": float(np.nanmax(np.append(jobs.power_w / jobs.processors, 0.0))) or 1.0,
        "gpus": float(getattr(scenario.cluster, "gpus", 0)) or 1.0,
        "largest_value": float(np.nanmax(np.append(jobs.value, 0.0))) or 1.0,
        "tick": 1.0 if scenario.rules.pools is None else scenario.rules.pools.tick_s,
        "site_scale": scenario.cluster.processors / 256.0,
    }
    scales |= _of_slots(scenario.site)
    return scales | (_of_nodes(scenario.cluster, jobs) if scenario.cluster.on_nodes else {})


def _of_slots(site: Site | None) -> dict[str, float]:
    from greenbatch.engine.power.costs import costs_of

    names = "highest_supply", "highest_grid_price", "highest_export_price", "highest_source_price", "highest_carbon"
    if site is None:
        return dict.fromkeys(names, 1.0)
    columns = np.stack([site.available_w, *costs_of(site)[:4]])
    return {name: float(value) or 1.0 for name, value in zip(names, np.abs(columns).max(axis=1), strict=True)}


def _of_nodes(cluster: Cluster, jobs: Workload) -> dict[str, float]:
    groups = cluster.groups
    estimates_j = [
        jobs.requested_time_s / g.speed
        * (g.static_power_w + np.minimum(jobs.processors, g.processors) * g.power_per_processor_w)
        for g in groups
    ]  # fmt: skip
    return {
        "largest_node": float(max(g.processors for g in groups)),
        "largest_peak": max(g.gflops_per_processor or g.speed for g in groups),
        "largest_static_power": max(1.0, *(g.static_power_w for g in groups)),
        "largest_dynamic_power": max(1.0, *(g.processors * g.power_per_processor_w for g in groups)),
        "largest_energy_estimate": max(float(np.max(estimates_j)), 1.0),
    }
