"""Measured power that no machine draws: counters that wrap, are not set or overflow, and sensors that fail.

Energy counters of jobs and sensors of nodes are known to fail upward: Slurm's NO_VAL64 is 2^64 - 2, RAPL counters wrap,
and a sensor of 16 bits reads 65,535 W. One such value outweighs all others of a trace, so it is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.workload.ledger import Ledger

if TYPE_CHECKING:
    import polars

Floats = NDArray[np.float64]

MOST_NODE_W = 20_000.0
"""No node of the machines that traces come from draws more. [W]

Nodes with the most power today hold eight GPUs: NVIDIA states at most 10.2 kW for a DGX H100 and about 14.3 kW for a
DGX B200 (data sheets); nodes without GPUs stay far below 5 kW.
"""
SUSPICIOUS_NODE_W = 5_000.0
"""Up to this, no node is compared with others. [W]"""
MOST_TIMES = 20.0
"""Largest ratio of a job's power per node to the median of the other jobs."""
MOST_TIMES_OWN = 10.0
"""Largest ratio of a sample to the median of all samples of its job."""
BELIEVABLE_NODE_W = 1e6
"""Up to this, a message offers to accept the power: a node may stand for a rack. [W]"""
FEWEST = 2
"""Measured jobs of a kind that are compared, itself included."""
WITH_IDLE = "idle power of the job's nodes included"
"""What a note on measured power says, for meters measure whole nodes."""


def implausible(
    power_w: Floats, processors: Floats, nodes: Floats, gpus: Floats, most_node_w: float | None = None
) -> NDArray[np.bool_]:
    """Which measured powers no machine draws, shape (n,).

    Where nodes are known, those above `MOST_NODE_W` per node, and those above `SUSPICIOUS_NODE_W` per node and more
    than `MOST_TIMES` the median of the other measured jobs. Where they are not, a job may have a node for each
    processor, so it is those above `MOST_NODE_W` per processor, and those above `MOST_NODE_W` in all and more than
    `MOST_TIMES` the median per processor. Jobs that state GPUs are compared with each other, and so are the others.
    With an even number of other jobs the lower of the two in the middle counts, so that of three two may be wrong.

    Args:
        power_w: mean power, idle power of the nodes included; NaN if not measured, shape (n,). [W]
        processors: processors of the jobs.
        nodes: nodes of the jobs; NaN or below 1 if unknown.
        gpus: GPUs of the jobs; NaN or below 0 if unknown.
        most_node_w: replaces all of this by a highest power per node, or per processor where nodes are unknown. [W]
    """
    known = nodes >= 1
    units = np.where(known, nodes, processors)
    each_w = power_w / np.fmax(units, 1)
    bad: NDArray[np.bool_] = each_w > (MOST_NODE_W if most_node_w is None else most_node_w)
    if most_node_w is not None:
        return bad
    high = power_w > np.where(known, SUSPICIOUS_NODE_W * units, MOST_NODE_W)
    measured = power_w > 0
    for of_nodes in (True, False):
        for with_gpus in (True, False):
            kind = measured & (known == of_nodes) & ((gpus > 0) == with_gpus)
            if high[kind].any() and np.count_nonzero(kind) >= FEWEST:
                others_w = np.sort(each_w[kind])[(np.count_nonzero(kind) - 2) // 2]
                bad |= kind & high & (each_w > MOST_TIMES * others_w)
    return bad


def without_implausible(
    power_w: Floats, run_s: Floats, processors: Floats, nodes: Floats, gpus: Floats, lines: NDArray[np.int64],
    ledger: Ledger, *, column: str, most_node_w: float | None = None,
) -> Floats:  # fmt: skip
    """The measured powers with NaN for the implausible ones, counted in a warning with their share of the energy. [W]

    Args:
        power_w: as of `implausible`, like the columns below. [W]
        run_s: run times. [s]
        processors: processors of the jobs.
        nodes: nodes of the jobs.
        gpus: GPUs of the jobs.
        lines: file line of each job.
        ledger: takes the note.
        column: column of the file that holds the power or energy, for the message.
        most_node_w: highest power per node. [W]

    Raises:
        InputError: one is implausible and the ledger is strict.
    """
    bad = implausible(power_w, processors, nodes, gpus, most_node_w)
    if not bad.any():
        return power_w
    up_w = _up(power_w, nodes, processors, bad)
    part_j, whole_j = energy_of(power_w[bad], run_s[bad]), energy_of(power_w, run_s)
    highest_w = MOST_NODE_W if most_node_w is None else most_node_w
    beyond = f"over {highest_w / 1e3:g} kW per node, or per processor where nodes are unknown"
    beyond += "" if most_node_w is not None else f", or {MOST_TIMES:g} times that of other jobs"
    ledger.repair(
        f"implausible job power ({beyond}) ignored", lines[bad], column=column, level="warning",
        about="power_w",
        fix="clear the value" + (f", or set workload.most_node_w above {up_w:g}" if up_w <= BELIEVABLE_NODE_W else ""),
        shares=((part_j / whole_j, "energy"),) if whole_j > 0 else (),
    )  # fmt: skip
    return np.where(bad, np.nan, power_w)


def energy_of(power_w: Floats, run_s: Floats) -> float:
    """Energy of jobs, of those with an unknown power or run time none. [J]"""
    return float(np.nansum(power_w * np.fmax(run_s, 0.0)))


def plausible_samples(samples: polars.Expr, nodes: polars.Expr, most_node_w: float | None = None) -> polars.Expr:
    """Lists of power samples, each the sum over a job's nodes [W], without those that no nodes draw.

    These are above `MOST_NODE_W` per node, or above `SUSPICIOUS_NODE_W` per node and more than `MOST_TIMES_OWN` the
    median of the job's samples, as where the sensor of one node of several fails.

    Args:
        samples: lists of floats.
        nodes: number of nodes; unknown ones count as one.
        most_node_w: replaces all of this by a highest power per node. [W]
    """
    import polars

    count = nodes.cast(polars.Float64).fill_null(1.0).clip(1.0)
    each = polars.element()
    usual = (each <= SUSPICIOUS_NODE_W) | (each <= MOST_TIMES_OWN * each.median())
    plausible = (each <= MOST_NODE_W) & usual if most_node_w is None else each <= most_node_w
    kept = (samples / count).list.eval(each.filter(plausible)) * count
    looked_at_w = SUSPICIOUS_NODE_W if most_node_w is None else most_node_w
    return polars.when(samples.list.max() > looked_at_w * count).then(kept).otherwise(samples)


def _up(power_w: Floats, nodes: Floats, processors: Floats, bad: NDArray[np.bool_]) -> float:
    """The highest power per node, or per processor where nodes are unknown, rounded up. [W]"""
    each_w = power_w[bad] / np.where(nodes >= 1, nodes, processors)[bad]
    step = 10.0 ** (np.floor(np.log10(each_w.max())) - 1)
    return float(np.ceil(each_w.max() / step) * step)
