"""Fixed rules of jobs and nodes that trained agents are compared with: every combination of the shipped ones."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from greenbatch.engine.machine.placement import PLACEMENTS

POLICIES = ("fcfs", "sjf", "longest", "smallest", "largest", "low-mem", "low-mem-ops", "random")
BACKFILLS = ("none", "first-fit", "easy")
ENDS = ("lowest", "highest")
RANDOM = "random"
SEEDS = 3
"""Seeds of a rule with a random part; its figure is their mean."""


def fixed_rules() -> Mapping[str, tuple[str, ...]]:
    """Name of a rule -> names of its schedulers: one, or one per seed if a part of it is random."""
    pairs = [*product(POLICIES, BACKFILLS, PLACEMENTS), *product(("fcfs",), ("easy-irmasim",), PLACEMENTS)]
    made = {"+".join(parts): _specs(*parts) for parts in pairs}
    for metric, jobs, nodes in product(("energy", "edp", "timetasks"), ENDS, ENDS):  # InEPS, Eq. 1
        name = f"eq1:metric={metric}:jobs={jobs}:nodes={nodes}"
        made[name] = (name,)
    return made | {name: (name,) for name in ("min-min", "max-min")}


def _specs(policy: str, backfill: str, placement: str) -> tuple[str, ...]:
    if RANDOM not in {policy, placement}:
        return (f"{policy}+{backfill}+{placement}",)

    def drawn(part: str, seed: int) -> str:
        return f"{part}:seed={seed}" if part == RANDOM else part

    return tuple(f"{drawn(policy, k)}+{backfill}+{drawn(placement, k)}" for k in range(SEEDS))
