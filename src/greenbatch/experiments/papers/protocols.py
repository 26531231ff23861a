"""How each paper's tables are reproduced, as data: traces, rules, tables, and what its code or its text leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NOT_TRAINED = "a learned scheduler: not computed unless trained, with --train --out FOLDER"
AS_WORDED = "the rule as it is worded; the published code departs from it"
OURS = "our own rule"
LEFT_OUT = "a plain rule that the paper left out"
WAIT_REVERSED = (
    "the published code takes -(1 + submission) for the wait, so the rule runs backward; see the corrected row"
)
LPTPN_WAITS = "the published code waits for one job in steps of a second; see the row as worded"
SEARCHED_ONCE = (
    "the published code orders all waiting jobs once and starts them all before it looks at later ones, by plans with "
    "errors"
)
NO_SPARE = "the published EASY has no spare processors and a strict deadline"
TO_LAST_START = "the published utilization ends at the last start, not at the makespan"
MOST_USED = "in the published code, high_mem takes the node with the most memory in use; see the row as worded"
MOST_FREE = "high_mem as it is worded: the node with the most available memory; otherwise as published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A scheduler that reproduces a column of the paper, or an additional one."""

    column: str
    """The paper's name, or ours."""
    policy: str
    backfills: tuple[str, ...]
    placement: str = ""
    """On nodes: which nodes a job takes."""
    seeds: int = 1
    """Number of seeds, 0, 1, …, of a random rule with a random placement; the figure is their mean."""
    traces: tuple[str, ...] = ()
    """The traces on which it is computed; if empty, all of them."""
    in_turn: bool = False
    """Its windows are simulated one after the other with one stream of random numbers, see `in_turn`."""
    reason: str = ""
    """How the published code departs from its paper, or why there is no published figure."""
    published: bool = True

    def specs(self, backfill: str, sigma: float | None = None) -> tuple[str, ...]:
        """Names of its schedulers, one per seed.

        Args:
            backfill: the backfilling.
            sigma: threshold of brown energy, if not the default. [J]
        """
        changed = "" if sigma is None else f":sigma={sigma!r}"
        policy = f"{self.policy}{changed if self.policy.startswith('lptpn') else ''}"
        backfill = f"{backfill}{changed if backfill == 'green' else ''}"
        if self.seeds == 1:
            return ("+".join(filter(None, (policy, backfill, self.placement))),)
        return tuple(f"{policy}:seed={k}+{backfill}+{self.placement}:seed={k}" for k in range(self.seeds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """A metric that papers print as a reduction from another scheduler."""

    metric: str
    label: str


REDUCTIONS: dict[str, Reduction] = {
    "energy_reduction": Reduction(metric="energy_kwh", label="energy, reduction [%]"),
    "edp_reduction": Reduction(metric="edp_js", label="energy-delay product, reduction [%]"),
}
"""Reductions from a protocol's baseline, 100 x (1 - value / baseline's value), by name. [%]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How a paper's tables are reproduced."""

    title: str
    traces: Mapping[str, str]
    """Trace as the paper names it -> scenario."""
    metrics: Mapping[str, str]
    """Table -> metric, or a key of `REDUCTIONS`."""
    rows: tuple[Row, ...]
    covers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Table -> its traces, if not all."""
    baselines: Mapping[str, str] = field(default_factory=dict)
    """Trace -> column that reductions are from."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Backfilling or metric -> how the published code departs from the paper."""
    learned: str = NOT_TRAINED
    """Why a published column without a row is not computed."""
    readings: tuple[str, ...] = ()
    """What the paper leaves unstated, and the reading taken here; with any, no figure is expected to be equal."""

    def tables(self, trace: str) -> dict[str, str]:
        """Metric -> the table of a trace that states it."""
        return {metric: table for table, metric in self.metrics.items() if trace in self.covers.get(table, self.traces)}

    def rows_on(self, trace: str) -> list[Row]:
        """The rows that are computed on a trace."""
        return [row for row in self.rows if not row.traces or trace in row.traces]


_ALL = ("none", "easy-schedgym", "green")
_TWO = ("none", "easy-schedgym")

GA_ETA = {"Lublin-256": 0.002, "Cirne": 0.008, "Jann": 0.003}
"""The penalty factors of GAS-MARL's agent, which its GA shares (§5.4.1)."""

GAS_MARL = Protocol(
    title="GAS-MARL, Tables 3 and 4",
    traces={"Lublin-256": "gas-marl/lublin-256", "Cirne": "gas-marl/cirne", "Jann": "gas-marl/jann"},
    metrics={"Table 3": "avg_bounded_slowdown", "Table 4": "renewable_utilization"},
    rows=(
        Row(column="FCFS", policy="fcfs", backfills=(*_ALL, "easy-green-order")),
        Row(column="F2", policy="f2", backfills=(*_ALL, "easy-green-order")),
        Row(column="LPTPN", policy="lptpn-published", backfills=("none",), reason=LPTPN_WAITS),
        *(
            Row(
                column="GA",
                policy=f"ga-published:eta={eta}",
                backfills=_ALL,
                traces=(trace,),
                in_turn=True,
                reason=SEARCHED_ONCE,
            )
            for trace, eta in GA_ETA.items()
        ),
        Row(column="LPTPN as worded", policy="lptpn", backfills=("none",), reason=AS_WORDED, published=False),
        Row(column="FCFS, true EASY", policy="fcfs", backfills=("easy",), reason=NO_SPARE, published=False),
        Row(column="F2, true EASY", policy="f2", backfills=("easy",), reason=NO_SPARE, published=False),
        Row(column="cheapest-start", policy="cheapest-start", backfills=("none",), reason=OURS, published=False),
    ),
    reasons={"easy-schedgym": NO_SPARE},
)

RLSCHEDULER = Protocol(
    title="RLScheduler, Tables V and VI",
    traces={
        "Lublin-1": "rlscheduler/lublin-1", "Lublin-2": "rlscheduler/lublin-2", "HPC2N": "rlscheduler/hpc2n",
        "SDSC-SP2": "rlscheduler/sdsc-sp2",
    },
    metrics={"Table V": "avg_bounded_slowdown", "Table VI": "utilization_to_last_start"},
    rows=(
        Row(column="FCFS", policy="fcfs", backfills=_TWO),
        Row(column="WFP3", policy="wfp3-published", backfills=_TWO, reason=WAIT_REVERSED),
        Row(column="UNICEP", policy="unicep-published", backfills=_TWO, reason=WAIT_REVERSED),
        Row(column="SJF", policy="sjf", backfills=_TWO),
        Row(column="F1", policy="f1", backfills=_TWO),
        Row(column="WFP3 corrected", policy="wfp3", backfills=_TWO, reason=AS_WORDED, published=False),
        Row(column="UNICEP corrected, log2(n)", policy="unicep-unbounded", backfills=_TWO, reason=AS_WORDED,
            published=False),
        Row(column="UNICEP corrected", policy="unicep", backfills=_TWO, reason=AS_WORDED, published=False),
        Row(column="SMALLEST", policy="smallest", backfills=_TWO, reason=LEFT_OUT, published=False),
        Row(column="F2", policy="f2", backfills=_TWO, reason=LEFT_OUT, published=False),
        Row(column="F3", policy="f3", backfills=_TWO, reason=LEFT_OUT, published=False),
        Row(column="F4", policy="f4", backfills=_TWO, reason=LEFT_OUT, published=False),
    ),
    reasons={"easy-schedgym": NO_SPARE, "utilization_to_last_start": TO_LAST_START},
)  # fmt: skip

_CONVERGENCE = ("Convergence as worded", "Convergence as worded at 1 s", "Convergence as worded at once")
_ADAPTABILITY = ("Memory-intensive as worded", "Computation-intensive as worded")
_PUBLISHED = ("Convergence", "Memory-intensive", "Computation-intensive")
_WORDED = (*_CONVERGENCE, *_ADAPTABILITY)
_FIRST, _FIT = ("none",), ("first-fit",)

INEPS = Protocol(
    title="InEPS, Figs. 5, 6 and 8 and Table 7",
    traces={
        "Convergence": "ineps/as-published",
        "Convergence as worded": "ineps/convergence",
        "Convergence as worded at 1 s": "ineps/convergence-1s",
        "Convergence as worded at once": "ineps/convergence-t0",
        "Memory-intensive": "ineps/adaptability-memory-as-published",
        "Memory-intensive as worded": "ineps/adaptability-memory",
        "Computation-intensive": "ineps/adaptability-compute-as-published",
        "Computation-intensive as worded": "ineps/adaptability-compute",
    },
    metrics={"Fig. 5": "energy_reduction", "Fig. 6": "edp_reduction", "Fig. 8": "energy_reduction"},
    covers={
        "Fig. 5": ("Convergence", *_CONVERGENCE), "Fig. 6": ("Convergence", *_CONVERGENCE),
        "Fig. 8": ("Memory-intensive", "Computation-intensive", *_ADAPTABILITY),
    },
    rows=(
        Row(column="first-high_gflops", policy="fcfs", backfills=_FIRST, placement="high-gflops", traces=_PUBLISHED),
        Row(column="first-high_cores", policy="fcfs", backfills=_FIRST, placement="high-cores", traces=_PUBLISHED),
        Row(column="first-high_mem_bw", policy="fcfs", backfills=_FIRST, placement="high-mem-bw", traces=_PUBLISHED),
        Row(column="smallest-high_mem", policy="smallest", backfills=_FIRST, placement="high-mem-published",
            traces=("Convergence",), reason=MOST_USED),
        Row(column="smallest-high_mem as worded", policy="smallest", backfills=_FIRST, placement="high-mem",
            traces=("Convergence",), reason=MOST_FREE, published=False),
        Row(column="random-random", policy="random", backfills=_FIRST, placement="random", seeds=10,
            traces=("Convergence",)),
        Row(column="first-high_gflops", policy="fcfs", backfills=_FIT, placement="high-gflops", traces=_WORDED),
        Row(column="first-high_cores", policy="fcfs", backfills=_FIT, placement="high-cores", traces=_WORDED),
        Row(column="first-high_mem_bw", policy="fcfs", backfills=_FIT, placement="high-mem-bw", traces=_WORDED),
        Row(column="smallest-high_mem", policy="smallest", backfills=_FIT, placement="high-mem", traces=_CONVERGENCE),
        Row(column="random-random", policy="random", backfills=_FIT, placement="random", seeds=10,
            traces=_CONVERGENCE),
    ),
    baselines={
        **dict.fromkeys(("Convergence", *_CONVERGENCE), "random-random"),
        **dict.fromkeys(("Memory-intensive", "Computation-intensive", *_ADAPTABILITY), "first-high_gflops"),
    },
    readings=(
        "Figs. 5 and 6: reductions from random-random, here the mean of ten seeds. Fig. 8: reductions from "
        "first-high_gflops, as they follow from the averages of Table 7.",
        "As published: the first job of the queue blocks the others, contention vanishes where ten or more tasks share "
        "a node, and a node draws nothing before its first job. As worded: only jobs that fit compete, contention "
        "never shrinks with more tasks, and every node always draws its idle power.",
        "The times and the order of the 180 submissions are not stated: read as blocks of 10 A, 10 B and 10 C, one job "
        "every 100 ms; as worded also in random order, one job per second (at 1 s) or all at once. The order of the "
        "100 jobs of Fig. 8 is not stated either: one random order.",
        "The memory of a job is not stated: 1 GB per processor. Mem. vol. (MB/s) is read as a volume in MB, as in the "
        "published simulator, whose parameters of memory contention are used.",
    ),
)  # fmt: skip

PROTOCOLS: dict[str, Protocol] = {"gas-marl": GAS_MARL, "rlscheduler": RLSCHEDULER, "ineps": INEPS}
"""All protocols by name."""
