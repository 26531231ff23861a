"""Nodes that boot on demand on a machine of which not all is powered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.cluster import Capacity, Cluster, NodeGroup
from greenbatch.energy import Grid, Site
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.pools import Pools
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Start, Wait
from greenbatch.engine.views.session import Session
from greenbatch.metrics.energy_use import energy_use
from greenbatch.policies.futures import Sampler
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

NODES = NodeGroup(
    name="n", count=3, processors=4, static_power_w=100.0, idle_fraction=0.5, power_per_processor_w=10.0,
    boot_s=60.0, boot_energy_j=60 * 80.0, shutdown_s=30.0, shutdown_energy_j=30 * 40.0, min_on_s=100.0,
)  # fmt: skip
"""50 W idle, 100 W with jobs, 80 W while it boots, 40 W while it shuts down."""
ONE = replace(NODES, count=1)
COSTS = Pools(suspends="power", suspend_s=4.0, resume_s=6.0)


def machine(group: NodeGroup, levels: dict[float, int]) -> Cluster:
    """So many processors are powered from each of some times on."""
    processors = np.array([*levels.values()])
    powered = Capacity(time_s=np.array([*levels], float), processors=processors, gpus=0 * processors)
    return Cluster.of_nodes([group], power_on="on-demand", powered=powered)


def jobs_of(**columns: object) -> Workload:
    return Workload.from_columns("jobs", columns)


def run(jobs: Workload, cluster: Cluster, pools: Pools | None = None, name: str = "fcfs+easy", **rules: Any) -> Outcome:
    return simulate(jobs, cluster, None, Rules(pools=pools, **rules), scheduler(name))


def load_of(outcome: Outcome) -> dict[float, float]:
    """Power from each instant on at which it changes."""
    time_s, load_w = outcome.profile_time_s, outcome.profile_load_w
    changes = np.append(True, np.diff(load_w) != 0)
    return dict(zip(time_s[changes].tolist(), load_w[changes].tolist(), strict=True))


def spans_of(outcome: Outcome) -> list[tuple[int, float, float]]:
    return [*zip(*(each.tolist() for each in outcome.spans), strict=True)]


def drawn_j(outcome: Outcome) -> float:
    """Energy of the profile, up to the end of the run if there is one."""
    pools = outcome.rules.pools
    until_s = pools.end_s if pools is not None and pools.end_s else outcome.profile_time_s[-1]
    edges_s = np.append(outcome.profile_time_s, max(until_s, outcome.profile_time_s[-1]))
    return float(outcome.profile_load_w @ np.diff(np.minimum(edges_s, until_s)))


def check_energy(outcome: Outcome) -> None:
    """What nodes and jobs use is what the machine draws."""
    use = energy_use(outcome)
    assert use.idle_j.sum() + use.job_j.sum() == pytest.approx(drawn_j(outcome), rel=1e-9, abs=1e-6)


def test_nodes_that_are_off_count_first_among_what_is_not_powered() -> None:
    """n0 and n1 idle from 110 to 160 s, n2 is off: its 4 processors are the first that lack power."""
    cluster = machine(NODES, {0: 12, 120: 6, 130: 9, 140: 2, 500: 12})
    outcome = run(jobs_of(submit_s=[0, 1000], run_time_s=[50, 10], processors=[8, 4]), cluster, COSTS)
    assert load_of(outcome) == {
        0: 160, 60: 280, 110: 100,
        120: 75,  # 6 lack power: 4 of n2, and 2 of the 8 that idle
        130: 100,  # 3 of n2
        140: 25,  # 10: 4 of n2, and 6 of the 8
        160: 80,  # shutdowns draw their power
        190: 0, 1000: 80, 1060: 140, 1070: 50, 1160: 40, 1190: 0,
    }  # fmt: skip
    check_energy(outcome)
    assert energy_use(outcome).idle_j.sum() == 3 * 60 * 80 + 10 * (100 + 75 + 100) + 20 * 25 + 90 * 50 + 3 * 30 * 40


def test_a_node_whose_job_waits_for_another_node_draws_its_power() -> None:
    """From 120 s on, 4 processors lack power: b is empty, and a waits for c to boot for the job of both."""
    groups = [replace(ONE, name=name, partitions=(part,)) for name, part in (("a", "p"), ("b", "q"), ("c", "p"))]
    powered = machine(NODES, {0: 12, 120: 8}).powered
    cluster = Cluster.of_nodes(groups, power_on="on-demand", powered=powered)
    jobs = jobs_of(submit_s=[0, 0, 115], run_time_s=[50, 50, 50], processors=[4, 4, 8], partition=[0, 1, 0])
    outcome = run(replace(jobs, names={"partition": {0: "p", 1: "q"}}), cluster, COSTS)
    assert outcome.start_s.tolist() == [60, 60, 175]
    assert load_of(outcome) == {
        0: 160, 60: 280, 110: 100, 115: 180, 120: 130, 160: 170, 175: 320, 190: 280, 225: 90, 255: 50, 275: 40, 305: 0,
    }  # fmt: skip
    check_energy(outcome)


@pytest.mark.parametrize(
    ("levels", "spans", "load_w"),
    [
        # It resumes while the node still boots.
        ({0: 4, 30: 0, 40: 4}, [(0, 60, 120)], {0: 80, 60: 140, 120: 50, 160: 40, 190: 0}),
        # The node comes up without a job and without power to be idle.
        ({0: 4, 30: 0, 70: 4}, [(0, 70, 130)], {0: 80, 60: 0, 70: 140, 130: 50, 160: 40, 190: 0}),
        # Suspended one second before it would begin.
        ({0: 4, 59: 0, 60: 4}, [(0, 60, 120)], {0: 80, 60: 140, 120: 50, 160: 40, 190: 0}),
        # It is shut down again meanwhile, and boots anew.
        ({0: 4, 30: 0, 400: 4}, [(0, 460, 520)], {0: 80, 60: 0, 160: 40, 190: 0, 400: 80, 460: 140, 520: 50, 560: 40,
                                                  590: 0}),
    ],
)  # fmt: skip
def test_a_job_that_is_suspended_while_its_node_boots_has_done_nothing(
    levels: dict[float, int], spans: list[tuple[int, float, float]], load_w: dict[float, float]
) -> None:  # fmt: skip
    """50 s of work, and 10 s for the suspension."""
    for loses in ({}, {"loses": "all"}, {"loses": "checkpoint", "checkpoint_s": 20.0}):
        jobs, pools = jobs_of(submit_s=[0], run_time_s=[50], processors=[4]), replace(COSTS, **loses)
        outcome = run(jobs, machine(ONE, levels), pools)
        assert spans_of(outcome) == spans
        assert outcome.start_s.tolist() == [spans[0][1]]
        assert load_of(outcome) == load_w
        assert outcome.stays is not None
        assert outcome.stays.suspensions.tolist() == [1]
        check_energy(outcome)


def test_a_reservation_after_a_job_that_was_suspended_while_its_node_booted() -> None:
    """It begins at 60 s, and its 50 s and 10 s of cost end at 120 s, as requested."""
    jobs = jobs_of(submit_s=[0, 45], run_time_s=[50, 50], processors=[4, 4])
    assert run(jobs, machine(ONE, {0: 4, 30: 0, 40: 4}), COSTS).promised_start_s[1] == 120


def test_a_node_does_not_boot_again_for_a_job_that_is_suspended_before() -> None:
    """The second job is placed while the node shuts down, from 160 to 190 s, and suspended before that is done."""
    jobs = jobs_of(submit_s=[0, 170], run_time_s=[50, 50], processors=[4, 4])
    outcome = run(jobs, machine(ONE, {0: 4, 180: 0, 300: 4}), COSTS)
    assert spans_of(outcome) == [(0, 60, 110), (1, 360, 420)]
    assert load_of(outcome) == {0: 80, 60: 140, 110: 50, 160: 40, 190: 0, 300: 80, 360: 140, 420: 50, 460: 40, 490: 0}
    check_energy(outcome)


@pytest.mark.parametrize(
    ("loses", "levels", "spans"),
    [
        # Suspended at 100 s with 60 s to do; its node is off from 190 s, and boots from 400 to 460 s.
        ({}, {0: 4, 100: 0, 400: 4}, [(0, 60, 100), (0, 460, 530)]),
        # 25 of the 40 s are kept.
        ({"loses": "checkpoint", "checkpoint_s": 25.0}, {0: 4, 100: 0, 400: 4}, [(0, 60, 100), (0, 460, 545)]),
        ({"loses": "all"}, {0: 4, 100: 0, 400: 4}, [(0, 60, 100), (0, 460, 570)]),
        # Suspended once more while it boots: the boot goes on, and no work is lost.
        ({"loses": "checkpoint", "checkpoint_s": 25.0}, {0: 4, 100: 0, 400: 4, 430: 0, 440: 4},
         [(0, 60, 100), (0, 460, 545)]),
        # At 500 s it has worked for 30 s since 470 s, of which 25 s are kept: 50 s are left.
        ({"loses": "checkpoint", "checkpoint_s": 25.0}, {0: 4, 100: 0, 400: 4, 500: 0, 510: 4},
         [(0, 60, 100), (0, 460, 500), (0, 510, 570)]),
    ],
)  # fmt: skip
def test_a_job_resumes_once_its_node_is_up(
    loses: dict[str, Any], levels: dict[float, int], spans: list[tuple[int, float, float]]
) -> None:  # fmt: skip
    jobs, pools = jobs_of(submit_s=[0], run_time_s=[100], processors=[4]), replace(COSTS, **loses)
    outcome = run(jobs, machine(ONE, levels), pools)
    assert spans_of(outcome) == spans
    assert outcome.end_s.tolist() == [spans[-1][2]]
    check_energy(outcome)


@pytest.mark.parametrize(("requested_s", "start_s"), [(110, 60), (111, 360)])
def test_a_job_that_is_never_suspended_needs_power_for_the_longest_boot_as_well(
    requested_s: float, start_s: float
) -> None:  # fmt: skip
    """No power from 200 to 300 s: a node may take 90 s until it is up."""
    jobs = jobs_of(submit_s=[0], run_time_s=[50], requested_time_s=[requested_s], processors=[4])
    assert run(jobs, machine(ONE, {0: 4, 200: 0, 300: 4})).start_s.tolist() == [start_s]


def test_a_job_of_more_value_takes_the_nodes_of_another() -> None:
    """The second job swaps the first out at 100 s; that resumes once that has ended."""
    jobs = jobs_of(submit_s=[0, 100], run_time_s=[100, 100], processors=[4, 8], value=[1.0, 9.0])
    pools = replace(COSTS, suspends="swap", tick_s=10.0)
    outcome = run(jobs, machine(replace(NODES, count=2), {0: 8}), pools, "hvf+none")
    # n1 boots until 160 s for the second job, until 260 s; then the first takes 10 s to resume, and works for 60 s.
    assert spans_of(outcome) == [(0, 60, 100), (0, 260, 330), (1, 160, 260)]
    check_energy(outcome)


@pytest.mark.parametrize(("power_on", "cap_w"), [("always", 280.0), ("on-demand", 340.0)])
def test_no_job_is_swapped_out_for_one_that_a_cap_forbids_on_the_nodes_of_both(power_on: Any, cap_w: float) -> None:
    """The second job takes all nodes: 3 x 60 W and 36 + 80 W, or 3 x 80 W once they may shut down."""
    groups = [replace(GROUP, count=2), replace(GROUP, name="b", count=1, processors=4, power_per_processor_w=20.0)]
    powered = Capacity(time_s=np.zeros(1), processors=np.array([8]), gpus=np.array([0]))
    cluster = Cluster.of_nodes(groups, power_on=power_on, powered=powered)
    jobs = jobs_of(submit_s=[0, 5], run_time_s=[20, 20], processors=[4, 8], value=[1.0, 9.0])
    outcome = run(jobs, cluster, Pools(suspends="swap", resume_s=1.0, end_s=60.0), "hvf+none", power_cap_w=cap_w)
    assert outcome.stays is not None
    assert outcome.stays.suspensions.tolist() == [0, 0]
    assert outcome.end_s[0] == outcome.start_s[0] + 20
    assert np.isnan(outcome.start_s[1])


@pytest.mark.parametrize("end_s", [40.0, 60.0, 80.0, 130.0, 175.0, 1000.0])
def test_energy_until_a_run_ends_with_nodes_that_are_on(end_s: float) -> None:
    """A node boots, runs a job, idles and shuts down, or is cut short in any of these."""
    pools = replace(COSTS, end_s=end_s)
    jobs = jobs_of(submit_s=[0, 2000], run_time_s=[50, 10], processors=[4, 1])
    outcome = run(jobs, machine(NODES, {0: 12, 115: 2}), pools)
    assert outcome.last_s == end_s
    assert np.array_equal(outcome.start_s, [60.0 if end_s > 60.0 else np.nan, np.nan], equal_nan=True)
    load_w = {0: 80, 60: 140, 110: 50, 115: 25, 160: 40, 190: 0}
    edges_s = np.minimum([*load_w, end_s], end_s)
    expected_j = float(np.array([*load_w.values()]) @ np.diff(edges_s))
    assert drawn_j(outcome) == pytest.approx(expected_j)
    check_energy(outcome)


GROUP = NodeGroup(
    name="a", count=3, processors=2, static_power_w=60.0, idle_fraction=0.5, power_per_processor_w=9.0, boot_s=3.0,
    boot_energy_j=66.0 * 3.0, shutdown_s=2.0, shutdown_energy_j=80.0 * 2.0, min_on_s=4.0,
)  # fmt: skip


@st.composite
def powered(draw: Any) -> dict[float, int]:
    """Levels of which the last is all."""
    steps = draw(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 6)), max_size=6))
    time_s = np.cumsum([0, *(step for step, _ in steps)]).tolist()
    return dict(zip(time_s, [*(level for _, level in steps), 6], strict=True))


ROWS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 9), st.integers(1, 6), st.integers(1, 60), st.integers(1, 5)),
    min_size=1, max_size=12,
)  # fmt: skip
POOLS = st.builds(
    Pools, suspends=st.sampled_from(["never", "power", "swap"]), suspend_s=st.integers(0, 1),
    resume_s=st.integers(0, 1), tick_s=st.sampled_from([1.0, 3.0]),
    victim=st.sampled_from(["lowest-value", "shortest-remaining", "latest-start"]),
)  # fmt: skip


@given(
    rows=ROWS, levels=powered(), pools=POOLS, cap_w=st.sampled_from([0, 300, 400]), imports=st.booleans(),
    name=st.sampled_from(["hvf+none", "fcfs+easy", "sjf+first-fit", "wfp3+easy"]),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_work_is_conserved_and_power_and_energy_are_kept(
    rows: list[tuple[int, ...]], levels: dict[float, int], pools: Pools, cap_w: int, imports: bool, name: str
) -> None:
    """Without a limit, under a cap, or under a limit of imports in the dark."""
    submit_s, run_s, processors, power_w, value = (np.array(each, float) for each in zip(*sorted(rows), strict=True))
    power_w = np.minimum(power_w, 40.0) if cap_w == 300 else power_w
    jobs = jobs_of(submit_s=submit_s, run_time_s=run_s, processors=processors.astype(int), power_w=power_w, value=value)
    rules = Rules(pools=pools, power_cap_w=0.0 if imports else float(cap_w), event_rule="per_instant")
    grid = Grid(currency="EUR", import_price=np.array([0.1]), import_limit_w=float(cap_w or 1e6), over_limit="hold")
    site = Site(name="dark", step_s=5.0, sources_w={"sun": np.array([0.0])}, repeat=True, grid=grid)
    outcome = simulate(jobs, machine(GROUP, levels), site if imports else None, rules, scheduler(name))
    job, start_s, end_s = outcome.spans
    assert np.isfinite(outcome.end_s).all()
    if cap_w:
        assert outcome.profile_load_w.max() <= cap_w * (1 + 1e-9)
    assert outcome.profile_load_w.min() >= -1e-9
    check_energy(outcome)
    assert outcome.stays is not None
    worked_s = np.bincount(job, weights=end_s - start_s)
    assert (worked_s >= jobs.run_time_s - 1e-6).all()
    cost_s = (pools.suspend_s + pools.resume_s) * outcome.stays.suspensions
    assert (worked_s <= jobs.run_time_s + cost_s + 1e-6).all()
    if pools.suspends == "never":
        assert outcome.stays.suspensions.sum() == 0
    at_s, used = np.array([*levels]), np.array([*levels.values()])
    for time_s in np.unique(np.concatenate([start_s, at_s])):
        here = (start_s <= time_s) & (time_s < end_s)
        assert jobs.processors[job[here]].sum() <= used[max(0, np.searchsorted(at_s, time_s, side="right") - 1)]


def test_boots_that_take_no_time_change_nothing_but_the_energy_of_what_idles() -> None:
    """Job by job as on nodes that are always on, with suspension and a known capacity."""
    at_once = replace(GROUP, boot_s=0.0, boot_energy_j=0.0, shutdown_s=0.0, shutdown_energy_j=0.0, min_on_s=0.0)
    for seed in range(40):
        random = np.random.default_rng(seed)
        jobs = jobs_of(submit_s=random.integers(0, 30, 10), run_time_s=random.integers(1, 9, 10),
                       processors=random.integers(1, 7, 10), power_w=random.integers(1, 60, 10))  # fmt: skip
        levels = {float(k): int(level) for k, level in zip(range(0, 40, 4), random.integers(0, 7, 10), strict=True)}
        on_demand = machine(at_once, {**levels, 40.0: 6})
        pools = Pools(suspends=("never", "power", "swap")[seed % 3], suspend_s=1.0)
        ours, always = (run(jobs, each, pools) for each in (on_demand, replace(on_demand, power_on="always")))
        for column in ("start_s", "end_s", "promised_start_s"):
            np.testing.assert_array_equal(getattr(ours, column), getattr(always, column))
        check_energy(ours)
        assert drawn_j(ours) <= drawn_j(always) + 1e-6


def test_nodes_that_are_switched_on_at_their_first_use_count_first_until_then() -> None:
    """n0 runs until 50 s and idles; from 60 s on 6 of 12 processors lack power, from 80 s on 10, from 105 s on 4."""
    jobs = jobs_of(submit_s=[0, 100], run_time_s=[50, 10], processors=[4, 8])
    cluster = replace(machine(NODES, {0: 12, 60: 6, 80: 2, 100: 12, 105: 8}), power_on="first-use")
    outcome = run(jobs, cluster, COSTS)
    assert load_of(outcome) == {0: 140, 50: 50, 80: 25, 100: 280, 110: 100}
    use = energy_use(outcome)
    assert use.idle_j.tolist() == [30 * 50 + 20 * 25, 0, 0]
    assert use.idle_j.sum() + use.job_j.sum() == pytest.approx(drawn_j(outcome))


def test_futures_learn_nothing_from_a_job_that_is_suspended_while_its_node_boots() -> None:
    """Its start lies ahead: it has not run for part of its request."""
    jobs = jobs_of(submit_s=[0, 0], run_time_s=[50, 50], processors=[4, 4])
    session = Session(jobs, machine(ONE, {0: 4, 30: 0, 400: 4}), None, Rules(pools=COSTS), Program(name="any"))
    sampler, running = Sampler(0.0, 1), []
    while (view := session.view()) is not None and view.now_s <= 30.0:
        sampler.see(view)
        running.append((view.now_s, view.running.start_s.tolist()))
        session.apply(Start(0) if len(running) == 1 else Wait())
    assert running == [(0.0, []), (0.0, [60.0]), (30.0, [])]
    assert sampler.shares == []
