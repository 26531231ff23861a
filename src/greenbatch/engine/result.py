"""The outcome of a finished simulation, from its state and the readings of its log."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.capacity.varying import Varying
from greenbatch.engine.log import Readings
from greenbatch.engine.machine.dvfs import levels_of
from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.outcome import Outcome, placements_of, stays_of, switching_of
from greenbatch.engine.power.protocol import is_commanded
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.workload import Workload


def outcome_of(
    state: State, readings: Readings, name: str, workload: Workload, cluster: Cluster, site: Site | None, rules: Rules
) -> Outcome:
    """The outcome of a finished simulation; its jobs were submitted as simulated."""
    read = readings.columns
    if len(state.feedback):
        workload = workload.with_columns(submit_s=np.array(cast(Any, state.jobs)["submit_s"]))
    steps, chosen, started = (int(each) for each in read.counts)
    nodes: Any = state.machine if isinstance(state.machine, Nodes) else None
    stays = stays_of(state.capacity, readings.placed) if isinstance(state.capacity, Varying) else None
    killed = _killed(state, workload, cluster) if nodes is None else int(nodes.counts.killed)
    return Outcome(
        scheduler=name, workload=workload, cluster=cluster, site=site, rules=rules,
        start_s=read.start_s if nodes is None else nodes.demands["begin_s"].copy(), end_s=read.end_s,
        promised_start_s=read.promised_s,
        profile_time_s=read.profile_time_s[:steps], profile_load_w=read.profile_load_w[:steps],
        profile_command_w=read.profile_command_w[:steps] if is_commanded(state.power) else None,
        decisions=chosen, killed=killed, placements=placements_of(readings.placed, cluster), stays=stays,
        switching=switching_of(nodes.nodes, readings.switched) if nodes and nodes.counts.on_demand else None,
        dvfs_level=nodes.demands["dvfs_level"].copy() if nodes and len(levels_of(cluster)) > 1 else None,
        start_order=read.order[:started],
    )  # fmt: skip


def _killed(state: State, workload: Workload, cluster: Cluster) -> int:
    """On a pool, where run times are known."""
    if isinstance(state.capacity, Varying):  # the rest of a suspended job is less than its run time
        return int(np.count_nonzero(workload.requested_time_s < workload.run_time_s)) if state.rules.kill else 0
    return int(np.count_nonzero(state.jobs["run_s"] < workload.run_time_s / cluster.speed))
