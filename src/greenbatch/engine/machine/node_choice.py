"""What the engine asks of a machine that has nodes among which a policy can choose."""

from __future__ import annotations

from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.records import Clock, Expected, Table
from greenbatch.engine.variants import variant


@variant(default=True, inlined=False)
def node_beside(machine: Machine, expected: Table[Expected], clock: Clock, job: int, head: int, end_s: float) -> int:
    """The node on which a job may start ahead of a blocked one in the manner of IRMaSim; -1 for none.

    Args:
        machine: the machine.
        expected: running jobs by requested end.
        clock: the clock.
        job: row of the job.
        head: row of the blocked one.
        end_s: requested end of the job if it starts now. [s]
    """
    return -1


@variant(default=True)
def want(machine: Machine, node: int, most: int) -> None:
    """Let the next job that starts take a node before others, after those wanted before.

    Args:
        machine: the machine.
        node: the node.
        most: processors that it takes there at most, unless it asks for a number of them on each node.
    """


@variant(default=True)
def want_none(machine: Machine) -> None:
    """Let the next job that starts take nodes in the order of the placement again."""


@variant(default=True)
def node_count(machine: Machine) -> int:
    """Number of nodes among which a policy can choose; 0 for a machine that has none."""
    return 0


@variant(default=True)
def can_take_on(machine: Machine, job: int, node: int) -> bool:
    """Whether a job that fits may be started on a node: that has room for a part of it, and the job's energy budget."""
    return False


@variant(default=True, inlined=False)
def fill_nodes(machine: Machine, now_s: float) -> float:
    """Write the `pair_features` that do not depend on the job to ``machine.pairs``, shape (PAIR_ROWS, nodes).

    Returns:
        When the last running job is expected to end; now if nothing runs. [s]
    """
    return now_s


@variant(default=True, inlined=False)
def fill_pairs(machine: Machine, job: int, now_s: float, last_end_s: float, queued_s: float) -> None:
    """Write the other `pair_features` for a job, after `fill_nodes`.

    Args:
        machine: the machine.
        job: row of the job.
        now_s: the clock. [s]
        last_end_s: what `fill_nodes` returned. [s]
        queued_s: requested processor-seconds of the waiting jobs per processor of the cluster. [s]
    """


@variant(default=True)
def pair_feature(machine: Machine, feature: int, node: int) -> float:
    """A value that `fill_nodes` or `fill_pairs` has written."""
    return 0.0
