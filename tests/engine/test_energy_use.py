"""Energy by node and by job: recounted instant by instant, against the energy of the whole run, and by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from cases import clusters, job_lists, site, supplies, workload
from hypothesis import given, settings
from test_node_machine import PLACEMENTS, energy_j, jobs_for, node_clusters

from greenbatch.cluster import Cluster, DvfsLevel, NodeGroup
from greenbatch.engine.accounts import books
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.metrics.energy_use import EnergyUse, energy_use
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

pytestmark = pytest.mark.compiled  # a second implementation counts every instant of large runs

REL = 1e-9


Run = Callable[[], Outcome]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Jobs on nodes: shared and exclusive, on several nodes, with GPUs, own power, contention, kills and first use."""
    cluster = draw(node_clusters(speeds=(0.5, 1.0, 3.0), partitions=draw(st.booleans())))
    groups = tuple(replace(g, power_per_gpu_w=draw(st.sampled_from([0.0, 7.5]))) for g in cluster.groups)
    cluster = replace(
        cluster, groups=groups, power_on=draw(st.sampled_from(["always", "first-use"])),
        contention=draw(st.sampled_from(["none", "repaired"])),
        dvfs=draw(st.sampled_from([(), (DvfsLevel(speed=0.5, power=0.3), DvfsLevel(speed=0.8, power=0.0))])),
    )  # fmt: skip
    jobs = draw(jobs_for(cluster))
    power_w = draw(st.lists(st.sampled_from([np.nan, 0.0, 3.0, 41.7]), min_size=len(jobs), max_size=len(jobs)))
    volume_mb = draw(st.lists(st.sampled_from([0.0, 1e5]), min_size=len(jobs), max_size=len(jobs)))
    unit_s = draw(st.sampled_from([1.0, 1 / 3]))
    times = {name: getattr(jobs, name) * unit_s for name in ("submit_s", "run_time_s", "requested_time_s")}
    jobs = jobs.with_columns(power_w=np.array(power_w), memory_volume_mb=np.array(volume_mb), **times)
    name = f"fcfs+{draw(st.sampled_from(['none', 'easy', 'first-fit']))}+{draw(st.sampled_from(PLACEMENTS))}"
    level = draw(st.integers(0, len(cluster.dvfs)))
    rules = Rules(overrun=draw(st.sampled_from(["kill", "extend"])), dvfs_level=level)
    return partial(simulate, jobs, cluster, site(draw(supplies())), rules, scheduler(name))


def recounted(outcome: Outcome) -> tuple[list[list[float]], list[float]]:
    """Idle, static and dynamic energy of each node, and energy of each job, added up from instant to instant."""
    cluster, jobs, placed = outcome.cluster, outcome.workload, outcome.placements
    assert cluster.on_nodes
    assert placed is not None
    groups = [g for g in cluster.groups for _ in range(g.count)]
    draw = [1.0, *(level.power for level in cluster.dvfs)][outcome.rules.dvfs_level]
    on = [cluster.power_on == "always"] * len(groups)
    nodes, of_jobs = [[0.0, 0.0, 0.0] for _ in groups], [0.0] * len(jobs)
    for from_s, to_s in pairwise(np.unique(np.concatenate([outcome.start_s, outcome.end_s])).tolist()):
        running = (outcome.start_s <= from_s) & (outcome.end_s > from_s)
        for number, group in enumerate(groups):
            here = np.flatnonzero((placed.node == number) & running[placed.job])
            on[number] = on[number] or here.size > 0
            if not here.size:
                nodes[number][0] += on[number] * group.idle_fraction * group.static_power_w * (to_s - from_s)
                continue
            nodes[number][1] += group.static_power_w * (to_s - from_s)
            for k in here:
                job, several = int(placed.job[k]), int((placed.job == placed.job[k]).sum())
                gpus = -(-int(jobs.gpus[job]) // several)
                power_w = placed.processors[k] * group.power_per_processor_w * draw + gpus * group.power_per_gpu_w
                if not np.isnan(jobs.power_w[job]):
                    power_w = jobs.power_w[job] * draw * placed.processors[k] / jobs.processors[job]
                nodes[number][2] += power_w * (to_s - from_s)
                of_jobs[job] += (power_w + group.static_power_w / here.size) * (to_s - from_s)
    return nodes, of_jobs


def adds_up(outcome: Outcome, use: EnergyUse) -> None:
    whole_j = energy_j(outcome)
    assert use.idle_j.sum() + use.job_j.sum() == pytest.approx(whole_j, rel=REL, abs=1e-9)
    assert (use.idle_j + use.static_j + use.dynamic_j).sum() == pytest.approx(whole_j, rel=REL, abs=1e-9)
    assert books(outcome).load_j == pytest.approx(whole_j, rel=REL, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(runs())
def test_energy_by_node_and_job_is_that_of_every_instant_and_adds_up(run: Run) -> None:
    outcome = run()
    use, (nodes, of_jobs) = energy_use(outcome), recounted(outcome)
    np.testing.assert_allclose(np.column_stack([use.idle_j, use.static_j, use.dynamic_j]), nodes, rtol=REL, atol=1e-9)
    np.testing.assert_allclose(use.job_j, of_jobs, rtol=REL, atol=1e-9)
    adds_up(outcome, use)


@st.composite
def switched_runs(draw: st.DrawFn) -> Run:
    """Jobs of one node or of several, on nodes that are shut down when nothing runs on them."""
    cluster = draw(node_clusters(speeds=(0.5, 1.0, 3.0)))
    groups = []
    for group in cluster.groups:
        boot_s, shutdown_s = draw(st.sampled_from([0.0, 1.0, 3.5])), draw(st.sampled_from([0.0, 2.0, 5.25]))
        groups.append(replace(
            group, boot_s=boot_s, shutdown_s=shutdown_s, min_on_s=draw(st.sampled_from([0.0, 4.0, 20.0])),
            boot_energy_j=min(boot_s, 1.0) * draw(st.integers(0, 90)),
            shutdown_energy_j=min(shutdown_s, 1.0) * draw(st.integers(0, 90)),
        ))  # fmt: skip
    cluster = Cluster.of_nodes(
        tuple(groups), power_on="on-demand", contention=draw(st.sampled_from(["none", "repaired"]))
    )  # fmt: skip
    jobs = draw(jobs_for(cluster))
    if draw(st.booleans()):
        most = min(group.processors for group in groups)
        jobs = jobs.with_columns(
            nodes=np.ones(len(jobs), np.int64), processors=np.minimum(jobs.processors, most),
            gpus=np.zeros(len(jobs), np.int64), requested_memory_kb=np.zeros(len(jobs)),
        )  # fmt: skip
    power_w = draw(st.lists(st.sampled_from([np.nan, 0.0, 41.7]), min_size=len(jobs), max_size=len(jobs)))
    volume_mb = draw(st.lists(st.sampled_from([0.0, 1e5]), min_size=len(jobs), max_size=len(jobs)))
    jobs = jobs.with_columns(power_w=np.array(power_w), memory_volume_mb=np.array(volume_mb))
    name = f"sjf+{draw(st.sampled_from(['none', 'easy', 'first-fit']))}+{draw(st.sampled_from(PLACEMENTS))}"
    rules = Rules(
        commitment=draw(st.sampled_from(["sticky", "reconsider"])), overrun=draw(st.sampled_from(["kill", "extend"])),
        event_rule=draw(st.sampled_from(["per_event", "per_instant"])),
    )  # fmt: skip
    return partial(simulate, jobs, cluster, site(draw(supplies())), rules, scheduler(name))


def recounted_without_jobs(outcome: Outcome, number: int, group: NodeGroup) -> float:
    """Energy of a node while no job runs on it, boots and shutdowns included, if every job runs on one node."""
    placed = outcome.placements
    assert placed is not None
    rows = placed.job[placed.node == number]
    spans = sorted(zip(outcome.start_s[rows].tolist(), outcome.end_s[rows].tolist(), strict=True))
    idle_w, energy_j, on_since_s, busy_until_s = group.idle_fraction * group.static_power_w, 0.0, np.nan, np.nan
    for start_s, end_s in [*spans, (np.inf, np.inf)] if spans else []:
        due_s = max(busy_until_s, on_since_s + group.min_on_s)
        if np.isnan(on_since_s):
            energy_j, on_since_s, busy_until_s = group.boot_energy_j, start_s, end_s
        elif start_s > due_s:
            energy_j += idle_w * (due_s - busy_until_s) + group.shutdown_energy_j
            energy_j += group.boot_energy_j * (start_s < np.inf)
            on_since_s, busy_until_s = start_s, end_s
        else:
            energy_j += idle_w * max(0.0, start_s - busy_until_s)
            busy_until_s = max(busy_until_s, end_s)
    return energy_j


@settings(max_examples=60, deadline=None)
@given(switched_runs())
def test_energy_of_nodes_that_boot_on_demand_adds_up(run: Run) -> None:
    """Boots, shutdowns and idle time of every node are those that follow from when jobs ran on it."""
    outcome = run()
    use, (nodes, of_jobs) = energy_use(outcome), recounted(outcome)
    np.testing.assert_allclose(
        np.column_stack([use.static_j, use.dynamic_j]), np.array(nodes)[:, 1:], rtol=REL, atol=1e-9
    )  # fmt: skip
    np.testing.assert_allclose(use.job_j, of_jobs, rtol=REL, atol=1e-9)
    adds_up(outcome, use)
    if (outcome.workload.nodes == 1).all():
        assert outcome.cluster.on_nodes
        groups = [g for g in outcome.cluster.groups for _ in range(g.count)]
        idle_j = [recounted_without_jobs(outcome, number, group) for number, group in enumerate(groups)]
        np.testing.assert_allclose(use.idle_j, idle_j, rtol=REL, atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_pool_is_one_node_whose_idle_power_belongs_to_no_job(data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    jobs = workload(data.draw(job_lists(cluster.processors)))
    outcome = simulate(jobs, cluster, site(data.draw(supplies())), Rules(), scheduler("fcfs+easy"))
    use, run_s = energy_use(outcome), outcome.end_s - outcome.start_s
    assert use.node == ("pool",)
    assert use.job_j.tolist() == (jobs.power_w * run_s).tolist()
    assert use.busy_processor_s.tolist() == pytest.approx([float(jobs.processors @ run_s)], rel=1e-12)
    adds_up(outcome, use)


NODE = NodeGroup(
    name="n", count=2, processors=4, static_power_w=120.0, idle_fraction=0.5, power_per_processor_w=10.0, gpus=4,
    power_per_gpu_w=100.0,
)  # fmt: skip


def on_nodes(columns: dict[str, list[float]], name: str = "fcfs+easy+pack", **cluster: object) -> Outcome:
    jobs = Workload.from_columns("hand", {"submit_s": [0.0] * len(columns["run_time_s"]), **columns})
    return simulate(jobs, replace(Cluster.of_nodes((NODE,)), **cluster), None, Rules(), scheduler(name))  # type: ignore[arg-type]


def test_by_hand() -> None:
    """Three jobs begin on node 0; static power is divided by 3, 2 and 1 as they end after 10, 20 and 40 s."""
    use = energy_use(on_nodes({"run_time_s": [10, 20, 40], "processors": [1, 1, 2], "nodes": [1, 1, 1]}))
    assert use.node == ("n0", "n1")
    assert use.jobs.tolist() == [3, 0]
    assert use.idle_j.tolist() == [0, 60 * 40]
    assert use.static_j.tolist() == [120 * 40, 0]
    assert use.dynamic_j.tolist() == [10 * (10 + 20 + 2 * 40), 0]
    assert use.busy_processor_s.tolist() == [110, 0]
    assert use.job_j == pytest.approx([400 + 100, 400 + 600 + 200, 400 + 600 + 2400 + 800], rel=1e-15)


def test_an_exclusive_job_draws_power_for_what_works_not_for_what_it_blocks() -> None:
    outcome = on_nodes({"run_time_s": [10], "processors": [2], "nodes": [1], "gpus": [1], "exclusive": [1]})
    assert outcome.placements is not None
    assert outcome.placements.gpus.tolist() == [1]
    assert energy_use(outcome).job_j.tolist() == [10 * (120 + 2 * 10 + 100)]
    assert outcome.profile_load_w[0] == 60 + 120 + 20 + 100


@pytest.mark.parametrize(("power_on", "before_j", "after_j"), [("always", 1200, 1200), ("first-use", 0, 600)])
def test_before_and_after_the_schedule_only_nodes_that_are_on_draw_power(
    power_on: str, before_j: float, after_j: float
) -> None:  # fmt: skip
    """Two nodes of 60 W when idle, of which the job uses one."""
    outcome = on_nodes({"run_time_s": [10], "processors": [1], "nodes": [1]}, power_on=power_on)
    assert [books(outcome, *span).load_j for span in ((-10, 0), (10, 20))] == [before_j, after_j]
    assert books(outcome, -10, 20).load_j == books(outcome).load_j + before_j + after_j


def test_unknown_power_is_not_zero_energy() -> None:
    dark = replace(NODE, power_per_processor_w=0.0)
    jobs = {"run_time_s": [10, 10], "processors": [1, 1], "nodes": [1, 1], "power_w": [np.nan, 5.0]}
    use = energy_use(on_nodes(jobs, "fcfs+easy+spread", groups=(dark,)))
    assert np.isnan(use.job_j).tolist() == [True, False]
    assert np.isnan(use.dynamic_j).tolist() == [True, False]
    assert use.static_j.tolist() == [1200, 1200]


def test_no_jobs_use_no_energy() -> None:
    hand = on_nodes({"run_time_s": [10], "processors": [1]})
    none = hand.workload.take(slice(0, 0))
    empty = replace(hand, workload=none, start_s=np.empty(0), end_s=np.empty(0), placements=replace(
        hand.placements, job=np.empty(0, int), node=np.empty(0, int), processors=np.empty(0, int), gpus=np.empty(0, int)
    ))  # type: ignore[type-var]  # fmt: skip
    for outcome in (empty, replace(empty, cluster=Cluster.pooled(4), placements=None)):
        use = energy_use(outcome)
        assert (use.idle_j + use.static_j + use.dynamic_j).sum() == use.job_j.size == 0


def test_a_short_job_after_years_of_others_gets_its_share_exactly() -> None:
    """The share of a short job is not lost in the sums over 400 nodes and three years."""
    count, year_s = 400, 365 * 86_400.0
    cluster = Cluster.of_nodes((replace(NODE, count=count),))
    start_s = np.concatenate([np.zeros(count), np.full(2, 3 * year_s)])
    length_s = np.concatenate([np.full(count, 3 * year_s + 7), np.full(2, 1.25)])
    jobs = Workload.from_columns("long", {
        "submit_s": start_s, "run_time_s": length_s, "requested_time_s": length_s,
        "processors": np.concatenate([np.full(count - 1, 4), [2, 1, 1]]), "nodes": np.ones(count + 2, int),
        "power_w": np.zeros(count + 2),
    })  # fmt: skip
    outcome = simulate(jobs, cluster, None, Rules(), scheduler("fcfs+easy"))
    assert energy_use(outcome).job_j[-1] == pytest.approx(120 * 1.25 / 3, rel=1e-8)
