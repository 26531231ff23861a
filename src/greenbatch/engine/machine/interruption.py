"""What the engine asks of a machine of which a part is switched off at times, so that jobs are suspended and resume.

On nodes, a job keeps the work that is left of it, and may resume on other nodes, at another speed. ``otherwise`` holds
for a pool, where the time that is left is the work that is left.
"""

from __future__ import annotations

from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.machine.nodes import lend
from greenbatch.engine.machine.power_states import dim
from greenbatch.engine.machine.resources import Machine, fits
from greenbatch.machine_code.compile import compiled_small, whole
from greenbatch.machine_code.variants import variant


@variant(Nodes, otherwise=lambda machine, job, processors, gpus: (processors, gpus))
def taken(machine: Nodes, job: int, processors: int, gpus: int) -> tuple[int, int]:
    """Processors and GPUs that a running job takes, if it asks for so many; all of its nodes if it has them alone."""
    if not machine.demands[job].exclusive:
        return (processors, gpus)
    row, processors, gpus = whole(machine.demands[job].first), 0, 0
    while row >= 0:
        share = machine.shares[row]
        processors += whole(share.taken)
        gpus += whole(share.gpus)
        row = whole(share.of_job)
    return (processors, gpus)


@variant(Nodes, otherwise=True)
def fits_instead(machine: Nodes, job: int, processors: int, running: int) -> bool:
    """Whether a job fits once a running one has released its nodes; of a pool, the numbers of free units say that.

    Args:
        machine: the machine.
        job: row of the job.
        processors: its processors.
        running: row of the running job.
    """
    lend(machine, running, 1)
    found = fits(machine, job, processors, 0.0)
    lend(machine, running, -1)
    return bool(found)


@compiled_small
def _idle_at(machine: Machine, off: int, idle_w: float, now_s: float) -> None:
    totals = machine.totals
    totals.load_w += idle_w - totals.base_power_w
    totals.base_power_w, totals.off = idle_w, off


@variant(Nodes, otherwise=_idle_at)
def on_level(machine: Nodes, off: int, idle_w: float, now_s: float) -> None:
    """Let so many processors be off from now on; the idle machine draws ``idle_w`` then, if its nodes are on. [W]"""
    machine.totals.off = off
    if machine.counts.always_on:
        machine.totals.base_power_w = idle_w
    dim(machine, now_s)


@variant(Nodes, otherwise=lambda machine, job, left_s, lost, now_s: left_s)
def set_aside(machine: Nodes, job: int, left_s: float, lost: float, now_s: float) -> float:
    """Keep what is left of the work of a job that is about to release its nodes; return it. [s]

    Args:
        machine: the machine.
        job: row of the job.
        left_s: the time that is left of it where speeds are equal. [s]
        lost: part of the work of this span that is lost, in [0, 1].
        now_s: the clock. [s]
    """
    demand, left = machine.demands[job], 0.0
    row = whole(demand.first)
    while row >= 0:  # the part that is behind says how much is left
        share = machine.shares[row]
        left = max(left, share.work_s - share.rate * max(0.0, now_s - share.since_s))
        share.work_s = 0.0
        row = whole(share.of_job)
    left = min(demand.work_s, left + lost * (demand.work_s - left))
    demand.volume_mb *= left / demand.work_s if demand.work_s > 0.0 else 0.0
    demand.work_s = left
    return float(left)


@variant(Nodes, otherwise=lambda machine, job, run_s, after_s: run_s)
def go_on(machine: Nodes, job: int, run_s: float, after_s: float) -> float:
    """Let a job that has been placed again work after a time; return how long it runs, which is ``run_s`` of work. [s]

    On a pool, that time is a part of ``run_s``.
    """
    row = whole(machine.demands[job].first)
    while row >= 0:
        machine.shares[row].since_s += after_s
        row = whole(machine.shares[row].of_job)
    return run_s + after_s
