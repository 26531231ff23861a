"""Limits of power on nodes that boot on demand: what boots, shutdowns and waiting jobs will draw counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.energy import Grid, Site
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

BOOT_S, STOP_S, MIN_ON_S = 3.0, 2.0, 4.0
GROUP = NodeGroup(
    name="a", count=3, processors=2, static_power_w=60.0, idle_fraction=0.5, power_per_processor_w=9.0, boot_s=BOOT_S,
    boot_energy_j=66.0 * BOOT_S, shutdown_s=STOP_S, shutdown_energy_j=80.0 * STOP_S, min_on_s=MIN_ON_S,
)  # fmt: skip
"""60 W with jobs, 30 W idle, 66 W while it boots, 80 W while it shuts down."""
NODES = Cluster.of_nodes([GROUP], power_on="on-demand")


def jobs(rows: list[tuple[float, float, int, float]]) -> Workload:
    """Submission [s], run time [s], processors, power [W]."""
    submit_s, run_s, processors, power_w = (np.array(column, float) for column in zip(*rows, strict=True))
    columns = {"submit_s": submit_s, "run_time_s": run_s, "requested_time_s": run_s, "power_w": power_w}
    return Workload.from_columns("by hand", {**columns, "processors": processors.astype(int)})


def run(rows: list[tuple[float, float, int, float]], cap_w: float, name: str = "fcfs+easy") -> Outcome:
    return simulate(jobs(rows), NODES, None, Rules(power_cap_w=cap_w), scheduler(name))


def test_jobs_that_wait_for_boots_count_with_their_power() -> None:
    """While three nodes boot, 198 W are drawn; three jobs of 60 W and their nodes would draw 360 W after it."""
    done = run([(0.0, 10.0, 2, 60.0)] * 3, cap_w=290.0)
    assert done.start_s.tolist() == [3.0, 3.0, 13.0]
    assert done.profile_load_w.max() == 240.0


def test_a_job_starts_when_an_idle_node_has_shut_down() -> None:
    """Two idle nodes hold 80 W each, which a third one needs: it boots when the first of them is off."""
    narrow, wide = replace(GROUP, name="b", count=1, partitions=("q",)), replace(GROUP, count=2, partitions=("p",))
    cluster = Cluster.of_nodes([wide, narrow], power_on="on-demand")
    workload = jobs([(0.0, 1.0, 4, 5.0), (5.0, 5.0, 2, 60.0)]).with_columns(partition=np.array([0, 1]))
    workload = replace(workload, names={"partition": {0: "p", 1: "q"}})
    done = simulate(workload, cluster, None, Rules(power_cap_w=230.0), scheduler("fcfs+easy"))
    assert done.start_s[1] == 12.0  # boots until 3 s, runs until 4 s, is on until 7 s at least, and off at 9 s
    assert done.profile_load_w.max() <= 230.0


def test_what_can_never_start_is_said() -> None:
    with pytest.raises(InputError, match="draw too much"):
        run([(0.0, 5.0, 2, 60.0)], cap_w=125.0)


def test_imports_stay_below_the_limit() -> None:
    grid = Grid(currency="EUR", import_price=np.array([0.1]), import_limit_w=290.0, over_limit="hold")
    site = Site(name="grid", step_s=100.0, sources_w={"all": np.array([0.0])}, repeat=True, grid=grid)
    done = simulate(jobs([(0.0, 10.0, 2, 60.0)] * 3), NODES, site, Rules(), scheduler("fcfs+easy"))
    assert done.start_s.tolist() == [3.0, 3.0, 13.0]


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 12), st.integers(1, 9), st.integers(1, 4), st.integers(30, 60)),
        min_size=3,
        max_size=12,
    ),
    name=st.sampled_from(["fcfs+easy", "sjf+first-fit", "sjf+conservative", "min-min"]),
    cap_w=st.integers(300, 400),
)
def test_the_cap_holds_at_every_instant(rows: list[tuple[int, int, int, int]], name: str, cap_w: int) -> None:
    done = run(sorted(rows), cap_w, name)
    assert done.profile_load_w.max() <= cap_w * (1 + 1e-9)
    assert np.isfinite(done.end_s).all()
