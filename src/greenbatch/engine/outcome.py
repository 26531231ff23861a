"""The outcome of a simulation: the job schedule and the power profile, from its state and the readings of its log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.capacity.levels import end_of_run_s
from greenbatch.engine.capacity.varying import FINISHED, Varying
from greenbatch.engine.codes import BEGIN, END, SUSPEND
from greenbatch.engine.log import Readings
from greenbatch.engine.machine.dvfs import levels_of
from greenbatch.engine.machine.node_tables import BOOTING, ON, STOPPING, Nodes
from greenbatch.engine.power.protocol import is_commanded
from greenbatch.engine.records import Floats, Int32s, Ints
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Outcome:
    """Schedule and power of one run. Arrays over jobs follow ``workload``'s rows, shape (n,)."""

    scheduler: str
    """Name of the scheduler, ``policy+backfill``."""
    workload: Workload
    """The jobs that were simulated (one window)."""
    cluster: Cluster
    """The machine that the jobs ran on."""
    site: Site | None
    """The power supply; None if there is none, and then no energy metric is defined."""
    rules: Rules
    """The options of the batch system."""
    start_s: Floats
    """Start of each job. [s]"""
    end_s: Floats
    """End of each job. [s]"""
    promised_start_s: Floats
    """First reservation of each job, NaN if it never got one. [s]"""
    profile_time_s: Floats
    """Instants at which the load or the command to storage changes, ascending, shape (m,); the last is the end of the
    last job, or of the last shutdown of a node. [s]"""
    profile_load_w: Floats
    """Cluster power, idle power included, from each instant to the next, shape (m,). [W]"""
    decisions: int
    """Jobs that started because the policy chose them; the others were backfilled. Conservative backfilling gives
    every job a reservation of its own, so it counts all jobs."""
    killed: int
    """Jobs killed at their requested time."""
    profile_command_w: Floats | None = None
    """What storage is commanded to take from each instant to the next, shape (m,); None if nobody commands it. [W]"""
    placements: Placements | None = None
    """The nodes of each job; None on a pool."""
    switching: Switching | None = None
    """What switching nodes took; None if they are not switched off."""
    dvfs_level: Int32s | None = None
    """DVFS level of each job; None if the cluster has only the highest."""
    stays: Stays | None = None
    """What became of each job on a machine whose capacity follows the power, where some may not end; else None."""
    start_order: Ints | None = None
    """Rows of the jobs in the order in which they started, at one instant as well, shape (m,); None if unknown."""

    @property
    def last_s(self) -> float:
        """End of the last job, or of the run as the rules state it if jobs are left then; NaN without jobs. [s]"""
        pools, n = self.rules.pools, len(self.end_s)
        ended_s = self.end_s[np.isfinite(self.end_s)]
        is_left = self.stays is not None and (self.stays.state < STATES.index("finished")).any()
        if is_left and pools is not None and np.isfinite(end_s := pools.end_of(float(self.workload.submit_s.min()))):
            return end_s
        return float(ended_s.max()) if ended_s.size else float(self.workload.submit_s.max()) if n else np.nan

    @property
    def spans(self) -> tuple[Ints, Floats, Floats]:
        """When jobs ran: row of the job, begin and end of each span, up to the end of the run; shape (m,). [s]

        A job that is never suspended has one span.
        """
        if self.stays is None:
            return np.arange(len(self.start_s)), self.start_s, self.end_s
        end_s = np.where(np.isnan(self.stays.span_end_s), self.last_s, self.stays.span_end_s)
        return self.stays.span_job.astype(np.int64), self.stays.span_start_s, end_s

    @property
    def run_s(self) -> Floats:
        """Executed time of each job, without the time for which it was suspended, shape (n,). [s]"""
        if self.stays is None:
            return self.end_s - self.start_s
        job, start_s, end_s = self.spans
        total_s: Floats = np.bincount(job, weights=end_s - start_s, minlength=len(self.start_s)).astype(np.float64)
        return total_s

    @property
    def waits_until_s(self) -> Floats:
        """When each job stopped waiting: its start, the end of the run if it never started, or at once if it was
        rejected; shape (n,). [s]
        """
        if self.stays is None:
            return self.start_s
        submit_s = self.workload.submit_s
        never_s = np.where(self.stays.state == STATES.index("rejected"), submit_s, np.maximum(submit_s, self.last_s))
        return np.where(np.isnan(self.start_s), never_s, self.start_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placements:
    """Where jobs ran: one row for each span of a job and node, ordered by span, columns of shape (p,)."""

    job: Int32s
    """Row of the job in the workload."""
    span: Ints
    """Row of the span in `Outcome.spans`; that of the job, unless jobs can be suspended."""
    node: Int32s
    """Number of the node in `Cluster.node_names`."""
    processors: Int32s
    """Processors that work for the job, without those that it merely blocks."""
    gpus: Int32s
    """GPUs that work for the job."""


STATES = ("waiting", "ready", "running", "suspended", "finished", "rejected")
"""What can become of a job by the end of a run; in the first four, it is left."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stays:
    """What became of n jobs, and when they ran."""

    forced: int
    """Suspensions for lack of power; the others are those of the policy and of failures."""
    state: Int32s
    """Index into `STATES`, shape (n,)."""
    suspensions: Int32s
    """How often each was suspended, shape (n,)."""
    span_job: Int32s
    """Row of the job of each span, ascending, shape (m,); spans of one job are in order of time."""
    span_start_s: Floats
    """Begin of each span. [s]"""
    span_end_s: Floats
    """End of each span, NaN if the job still ran at the end of the run. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Switching:
    """What switching did to each of m nodes."""

    on_s: Floats
    """For how long it was on, boots and shutdowns excluded, shape (m,). [s]"""
    dark_s: Floats
    """For how much of that it drew no idle power because not all is powered, shape (m,). [s]"""
    energy_j: Floats
    """Energy of its boots and shutdowns, shape (m,). [J]"""
    begin_s: Floats
    """Begin of each boot and each shutdown of any node, shape (b,). [s]"""
    end_s: Floats
    """Its end. [s]"""
    power_w: Floats
    """What the node draws meanwhile. [W]"""


def _switching_of(machine: Nodes, switched: Sequence[Any], until_s: float) -> Switching:
    """What switching did until the end of the run, from the nodes then and the log of their switches.

    A node boots, shuts down and is down, in turn; one that needs no time to boot is logged as booting only where it
    does so at once, when it is down. At the end all are down, unless the rules end the run before.
    """
    nodes: Any = machine.nodes
    on, up, down = (np.flatnonzero(nodes["phase"] == phase) for phase in (ON, BOOTING, STOPPING))
    until_s = until_s if on.size or up.size or down.size else np.inf
    on_s, dark_s, energy_j = nodes["on_s"].copy(), nodes["dark_s"].copy(), nodes["switching_j"].copy()
    on_s[on] += until_s - nodes["on_since_s"][on]
    dark_s[on] += nodes["dark"][on] * (until_s - machine.counts.dimmed_s)
    for which, power_w in ((up, "boot_w"), (down, "stop_w")):
        energy_j[which] -= nodes[power_w][which] * np.maximum(nodes["switch_s"][which] - until_s, 0.0)
    still_s = (nodes["switch_s"] - nodes["boot_s"])[up]
    rows = np.concatenate(switched)
    rows = rows[np.argsort(rows["job"], kind="stable")]
    is_first = np.append(True, rows["job"][1:] != rows["job"][:-1])[: len(rows)]
    is_again = np.append(False, rows["time_s"][1:] == rows["time_s"][:-1])[: len(rows)] & ~is_first
    rows = rows[(nodes["boot_s"][rows["job"]] > 0) | ~is_again]
    node, time_s = rows["job"], rows["time_s"]
    _, first, row = np.unique(node, return_index=True, return_inverse=True)
    turn, boots = np.arange(len(rows)) - first[row], nodes["boot_s"][node] > 0
    phase = np.where(boots, turn % 3, 1 + turn % 2)
    booted, stops = phase == 0, phase == 1
    end_s = np.concatenate([time_s[booted], time_s[stops] + nodes["stop_s"][node[stops]], nodes["switch_s"][up]])
    return Switching(
        on_s=on_s, dark_s=dark_s, energy_j=energy_j, end_s=np.minimum(end_s, until_s),
        begin_s=np.concatenate([time_s[booted] - nodes["boot_s"][node[booted]], time_s[stops], still_s]),
        power_w=np.concatenate([nodes["boot_w"][node[booted]], nodes["stop_w"][node[stops]], nodes["boot_w"][up]]),
    )  # fmt: skip


def _stays_of(capacity: Varying, moves: Sequence[Any]) -> tuple[Stays, Ints]:
    """What became of the jobs, from the capacity and the recorded starts, suspensions, resumptions and ends.

    With the number of each span in order of time, shape (m,), of all that began.
    """
    rows = np.concatenate(moves)
    late = np.flatnonzero(rows["kind"] == BEGIN)  # each follows the start or the resumption that it is about
    rows["time_s"][late - 1] = rows["value"][late]
    rows = np.delete(rows, late)
    order = np.argsort(rows["job"], kind="stable")
    job, time_s, kind = (rows[name][order] for name in ("job", "time_s", "kind"))
    begins = np.flatnonzero((kind != END) & (kind != SUSPEND))
    follows = np.minimum(begins + 1, len(job) - 1)
    is_closed = (begins + 1 < len(job)) & (job[follows] == job[begins])
    end_s = np.where(is_closed, time_s[follows], np.nan)
    is_real = time_s[begins] < np.where(is_closed, end_s, capacity.counts.end_s)
    kept, tables = begins[is_real], cast(Any, capacity.jobs)
    number = np.cumsum((rows["kind"] != END) & (rows["kind"] != SUSPEND)) - 1
    stays = Stays(
        forced=int(capacity.counts.forced), state=tables["place"].copy(), suspensions=tables["suspensions"].copy(),
        span_job=job[kept], span_start_s=time_s[kept], span_end_s=end_s[is_real],
    )  # fmt: skip
    return stays, number[order][kept]


def _placements_of(recorded: Sequence[Any], processors: Ints, spans: Ints | None) -> Placements:
    """The placements that a machine recorded, those of a span after each other.

    Args:
        recorded: tables of placements, in order of time.
        processors: of each job, shape (n,).
        spans: which of the placed spans, in order of time, are those of the outcome; None if each job has one.
    """
    rows = np.concatenate(recorded)
    job = rows["job"]
    placed, is_first = np.cumsum(rows["processors"]), np.append(True, job[1:] != job[:-1])[: len(rows)]
    before = np.maximum.accumulate(np.where(is_first, placed - rows["processors"], 0))
    is_first[1:] |= ((placed - before) % processors[job] == 0)[:-1]  # a job can be placed twice in a row
    first = np.flatnonzero(is_first)
    order = np.argsort(job[first], kind="stable") if spans is None else spans
    length = np.diff(first, append=len(rows))[order]
    moved = np.repeat(first[order] - (np.cumsum(length) - length), length)
    moved += np.arange(len(moved))
    columns = {name: rows[name][moved] for name in ("job", "node", "processors", "gpus")}
    span = columns["job"].astype(np.int64) if spans is None else np.repeat(np.arange(len(order)), length)
    return Placements(span=span, **columns)


def outcome_of(
    state: State, readings: Readings, name: str, workload: Workload, cluster: Cluster, site: Site | None, rules: Rules
) -> Outcome:
    """The outcome of a finished simulation; its jobs were submitted as simulated."""
    read, ends_s = readings.columns, end_of_run_s(state.capacity)
    if len(state.feedback):  # what jobs follow may not have ended: they would come after the run
        submit_s = np.minimum(state.jobs["submit_s"], np.maximum(workload.submit_s, ends_s))
        workload = workload.with_columns(submit_s=submit_s)
    steps, chosen, started = (int(each) for each in read.counts)
    nodes: Any = state.machine if isinstance(state.machine, Nodes) else None
    varying: Any = state.capacity if isinstance(state.capacity, Varying) else None
    stays, spans = (None, None) if varying is None else _stays_of(varying, readings.moves)
    start_s = read.start_s if nodes is None else nodes.demands["begin_s"].copy()
    if varying is not None:
        first_s = varying.jobs["first_start_s"]
        start_s = np.where(first_s >= ends_s, np.nan, first_s)  # what still boots at the end has not started
    until_s = ends_s if ends_s < np.inf else float(state.clock.now_s)
    killed = _killed(state, varying, workload, cluster) if nodes is None else int(nodes.counts.killed)
    return Outcome(
        scheduler=name, workload=workload, cluster=cluster, site=site, rules=rules,
        start_s=start_s, end_s=read.end_s,
        promised_start_s=read.promised_s,
        profile_time_s=read.profile_time_s[:steps], profile_load_w=read.profile_load_w[:steps],
        profile_command_w=read.profile_command_w[:steps] if is_commanded(state.power) else None,
        decisions=chosen, killed=killed, stays=stays,
        placements=None if nodes is None else _placements_of(readings.placed, workload.processors, spans),
        switching=_switching_of(nodes, readings.switched, until_s) if nodes and nodes.counts.on_demand else None,
        dvfs_level=nodes.demands["dvfs_level"].copy() if nodes and len(levels_of(cluster)) > 1 else None,
        start_order=read.order[:started],
    )  # fmt: skip


def _killed(state: State, varying: Any, workload: Workload, cluster: Cluster) -> int:
    """On a pool, where run times are known."""
    if varying is not None:  # the rest of a suspended job is less than its run time
        has_ended = varying.jobs["place"] == FINISHED
        is_cut = workload.requested_time_s < workload.run_time_s / cluster.speed
        return int(np.count_nonzero(has_ended & is_cut)) if state.rules.kill else 0
    return int(np.count_nonzero(state.jobs["run_s"] < workload.run_time_s / cluster.speed))
