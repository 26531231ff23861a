"""Random small clusters and workloads, for hypothesis: ties, over- and under-estimated requests, a repeating site."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from plain import Job, Supply

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.views.interface import Charge, Decision, Start, View, Wait
from greenbatch.workload import Workload

ESTIMATES = ("exact", "over", "any")


class Commander:
    """First come, first served; the next of some commands to storage at every new instant."""

    charges = True

    def __init__(self, commands_w: Sequence[float]) -> None:
        self.commands_w, self.now_s = list(commands_w), -math.inf
        self.seen: list[View] = []

    def decide(self, view: View) -> Decision:
        self.seen.append(view)
        if self.commands_w and view.now_s > self.now_s:
            self.now_s = view.now_s
            return Charge(self.commands_w.pop(0))
        return Start(0) if len(view.job_id) else Wait()

    def memory(self) -> dict[str, Any]:
        return {"commands_w": self.commands_w, "now_s": self.now_s}

    def recall(self, memory: dict[str, Any]) -> None:
        self.commands_w, self.now_s = memory["commands_w"], memory["now_s"]


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Pooled clusters of 1 to 12 processors."""
    return Cluster.pooled(
        draw(st.integers(1, 12)), processors_per_machine=4, idle_power_per_machine_w=draw(st.sampled_from([0.0, 40.0]))
    )


@st.composite
def job_lists(
    draw: st.DrawFn, processors: int, estimates: str = "any", *, unit_s: float = 1.0, ties: bool = True
) -> list[Job]:
    """Up to 25 jobs in no order of submission, submitted close together; times are multiples of a unit."""
    count = draw(st.integers(1, 25))
    submits = st.integers(0, 3 * count) if ties else st.integers(0, 100)
    jobs = []
    for submit in draw(st.lists(submits, min_size=count, max_size=count, unique=not ties)):
        run, other = draw(st.integers(1, 12)), draw(st.integers(1, 12))
        requested = {"exact": run, "over": run + other - 1, "any": other}[estimates]
        power = draw(st.integers(0, 60))
        jobs.append(
            Job(submit * unit_s, run * unit_s, requested * unit_s, draw(st.integers(1, processors)), float(power))
        )
    return jobs


@st.composite
def supplies(draw: st.DrawFn, *, unit_s: float = 1.0) -> Supply:
    """Repeating supplies of whole watts in slots of a few seconds, seen some slots ahead.

    Steps and origins are multiples of a unit; steps are also a half or a third of one if it is not a second.
    """
    renewable_w = draw(st.lists(st.integers(0, 150), min_size=1, max_size=8))
    parts = 1 if unit_s == 1.0 else draw(st.integers(1, 3))
    return Supply(
        [float(power) for power in renewable_w], unit_s * draw(st.integers(2, 9)) / parts,
        unit_s * draw(st.integers(-20, 20)), draw(st.integers(1, 6)),
    )  # fmt: skip


def workload(jobs: list[Job]) -> Workload:
    """The engine's table of the jobs, in the same order."""
    submit_s, run_s, requested_s, processors, power_w = (np.array(column) for column in zip(*jobs, strict=True))
    columns: dict[str, Any] = {
        "submit_s": submit_s, "run_time_s": run_s, "requested_time_s": requested_s, "processors": processors,
        "power_w": power_w,
    }  # fmt: skip
    return Workload.from_columns("random", columns)


def site(supply: Supply) -> Site:
    """The engine's site of a supply."""
    return Site(
        name="random", step_s=supply.step_s, sources_w={"all": np.array(supply.renewable_w)}, origin_s=supply.origin_s,
        repeat=True, forecast_horizon_s=supply.foreseen * supply.step_s,
    )  # fmt: skip
