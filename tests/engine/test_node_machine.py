"""Jobs placed on nodes: published schedules, pools as a special case, and what must hold on any nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import irmasim
import irmasim_plain
import numpy as np
import pytest
from driven import run_from_views
from hypothesis import given, settings

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.energy import Site
from greenbatch.engine.machine.node_tables import Node
from greenbatch.engine.machine.rates import slowdown
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.records import record_of
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.scenarios import load_scenario
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

Find = Callable[[str], Path]
PLACEMENTS = (
    "first", "best-fit", "worst-fit", "pack", "spread", "random:seed=3", "high-gflops", "high-mem", "low-power",
    "low-energy",
)  # fmt: skip


def energy_j(outcome: Outcome) -> float:
    """Energy from the first start to the last end."""
    return float(np.diff(outcome.profile_time_s) @ outcome.profile_load_w[:-1])


# ---------------------------------------------------------------- published schedules


@pytest.mark.compiled
@pytest.mark.parametrize("workload", ["wl_adapt_mem", "wl_conv_blocks_100ms"])
def test_every_published_run_of_irmasim_comes_out(workload: str, greenbatch_reference: Find) -> None:
    folder = greenbatch_reference("irmasim/golden.csv").parent
    runs = [run for run in irmasim.golden(folder) if run.workload == workload]
    assert len(runs) == 64
    for run in runs:
        cluster, jobs = irmasim.cluster(folder, run.platform), irmasim.jobs(folder, run.workload)
        outcome = simulate(jobs, cluster, None, irmasim.RULES, scheduler(run.scheduler))
        rows, placed = irmasim.schedule(folder, run), outcome.placements
        assert placed is not None
        names, shown = np.array(cluster.node_names), f"{run.workload} {run.scheduler}"
        ours = ["|".join(names[placed.node[placed.job == k]]) for k in range(len(jobs))]
        assert ours == [row["node"] for row in rows], shown
        for column, times in (("start_time", outcome.start_s), ("finish_time", outcome.end_s)):
            np.testing.assert_allclose(times, [float(row[column]) for row in rows], rtol=0, atol=1e-9, err_msg=shown)
        assert energy_j(outcome) == pytest.approx(run.energy_j, rel=1e-12), shown
        assert energy_j(outcome) * outcome.end_s.max() == pytest.approx(run.edp_js, rel=1e-12), shown


AT_ONCE = {"low-mem+none+low-power": 389272.32751612173, "fcfs+none+high-mem-bw": 429274.99747672584}
"""What the published simulator printed for jobs that all come at one instant. [J]"""


@pytest.mark.compiled
@pytest.mark.parametrize(("scheduler_name", "published_j"), AT_ONCE.items())
def test_jobs_of_one_instant_use_the_published_energy(
    scheduler_name: str, published_j: float, greenbatch_reference: Find
) -> None:
    """Memory is that of a task, and nodes that ask for the same bandwidth differ by rounding, core by core."""
    folder = greenbatch_reference("irmasim/golden.csv").parent
    jobs, cluster = irmasim.jobs(folder, "wl_conv_t0"), irmasim.cluster(folder, "plat_conv")
    outcome = simulate(jobs, cluster, None, irmasim.RULES, scheduler(scheduler_name))
    assert energy_j(outcome) == pytest.approx(published_j, rel=1e-12)


UNPUBLISHED = [
    *(("plat_conv", "wl_conv_t0", "low_mem", nodes) for nodes in irmasim.NODES),
    *(("plat_conv", "wl_conv_t0", jobs, "high_mem_bw") for jobs in irmasim.JOBS),
    ("plat_adapt", "wl_adapt_mixed", "shortest", "high_gflops"),
    ("plat_adapt", "wl_adapt_mixed", "low_mem_ops", "high_mem_bw"),
]  # fmt: skip
"""Runs that differ if memory, ties of bandwidth or the clock are taken otherwise than by the published simulator."""


@pytest.mark.compiled
def test_ties_are_broken_by_rounding_as_published(greenbatch_reference: Find) -> None:
    folder = greenbatch_reference("irmasim/golden.csv").parent
    for platform, workload, of_jobs, of_nodes in UNPUBLISHED:
        name = f"{irmasim.JOBS[of_jobs]}+none+{irmasim.NODES[of_nodes]}"
        used_j, plain = irmasim_plain.run(folder / "inputs", platform, workload, of_jobs, of_nodes)
        cluster = irmasim.cluster(folder, platform)
        outcome = simulate(irmasim.jobs(folder, workload), cluster, None, irmasim.RULES, scheduler(name))
        assert outcome.placements is not None
        where = np.array(cluster.node_names)[outcome.placements.node[np.argsort(outcome.placements.job)]]
        assert list(where) == [job.node.name for job in plain if job.node], name
        np.testing.assert_allclose(outcome.start_s, [job.start_s for job in plain], rtol=0, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(outcome.end_s, [job.end_s for job in plain], rtol=0, atol=1e-9, err_msg=name)
        assert energy_j(outcome) == pytest.approx(used_j, rel=1e-12), name


# ---------------------------------------------------------------- random machines and jobs


@st.composite
def node_clusters(draw: st.DrawFn, *, speeds: tuple[float, ...] = (1.0,), partitions: bool = False) -> Cluster:
    """One to three groups of one to three small nodes."""
    groups = []
    for k in range(draw(st.integers(1, 3))):
        names = draw(st.sampled_from([("a",), ("b",), ("a", "b")])) if partitions else ()
        groups.append(
            NodeGroup(
                name=f"g{k}",
                count=draw(st.integers(1, 3)),
                processors=draw(st.integers(1, 6)),
                partitions=names,
                static_power_w=draw(st.integers(0, 50)),
                idle_fraction=draw(st.sampled_from([0.0, 0.5, 1.0])),
                power_per_processor_w=draw(st.integers(1, 9)),
                speed=draw(st.sampled_from(speeds)),
                gpus=draw(st.integers(0, 2)),
                memory_gb=draw(st.sampled_from([4.0, 8.0, np.inf])),
            )
        )
    return Cluster.of_nodes(tuple(groups))


@st.composite
def jobs_for(draw: st.DrawFn, cluster: Cluster, *, exact: bool = False, spanning: bool = False) -> Workload:
    """Up to 20 jobs, each of which fits on the idle cluster."""
    columns: dict[str, list[float]] = {}
    for _ in range(draw(st.integers(1, 20))):
        group = draw(st.sampled_from(cluster.groups))
        where = draw(st.sampled_from([*group.partitions, ""]))
        usable = [g for g in cluster.groups if not where or where in g.partitions]
        run = draw(st.integers(1, 12))
        row: dict[str, float] = {
            "submit_s": draw(st.integers(0, 30)), "run_time_s": run, "nodes": -1, "gpus": 0, "exclusive": 0,
            "requested_time_s": run if exact else draw(st.integers(1, 15)), "requested_memory_kb": 0.0,
            "partition": cluster.partitions.index(where) if where else -1,
        }  # fmt: skip
        if spanning or draw(st.booleans()):
            row["processors"] = draw(st.integers(1, sum(g.count * g.processors for g in usable)))
        else:
            each = draw(st.integers(1, group.processors))
            row["nodes"] = draw(st.integers(1, group.count))
            row["processors"] = draw(st.integers(row["nodes"], each * row["nodes"]))
            row["gpus"] = draw(st.integers(0, group.gpus)) * row["nodes"]
            row["exclusive"] = draw(st.integers(0, 1))
            row["requested_memory_kb"] = draw(st.sampled_from([0.0, 4e6 / group.processors]))
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    made = Workload.from_columns("random", {name: np.array(values) for name, values in columns.items()})
    return made if not cluster.partitions else _named(made, cluster)


def _named(jobs: Workload, cluster: Cluster) -> Workload:
    return replace(jobs, names={"partition": dict(enumerate(cluster.partitions))})


def placed_on(outcome: Outcome) -> list[tuple[int, int, int, int]]:
    placed = outcome.placements
    assert placed is not None
    return list(zip(placed.job.tolist(), placed.node.tolist(), placed.processors.tolist(), placed.gpus.tolist(),
                    strict=True))  # fmt: skip


def check_capacity(outcome: Outcome) -> None:
    """Recount every node at every start: nothing above what is there, and the load is that of what runs."""
    cluster, jobs = outcome.cluster, outcome.workload
    assert cluster.on_nodes
    groups = [g for g in cluster.groups for _ in range(g.count)]
    parts = placed_on(outcome)
    assert sum(p for _, _, p, _ in parts) == jobs.processors.sum()
    loads = dict(zip(outcome.profile_time_s.tolist(), outcome.profile_load_w.tolist(), strict=True))
    for now_s in np.unique(outcome.start_s):
        load_w = sum(
            jobs.power_w[j] for j in range(len(jobs))
            if not np.isnan(jobs.power_w[j]) and outcome.start_s[j] <= now_s < outcome.end_s[j]
        )  # fmt: skip
        for number, group in enumerate(groups):
            here = [(j, p, g) for j, n, p, g in parts
                    if n == number and outcome.start_s[j] <= now_s < outcome.end_s[j]]  # fmt: skip
            alone = [j for j, _, _ in here if jobs.exclusive[j] == 1]
            assert not alone or len(here) == 1
            assert sum(p for _, p, _ in here) <= group.processors
            assert sum(g for _, _, g in here) <= group.gpus
            memory_kb = sum(jobs.requested_memory_kb[j] * p for j, p, _ in here)
            assert memory_kb <= group.memory_gb * 1e6 * (1 + 1e-12)
            for j, _, _ in here:
                named = jobs.names.get("partition", {}).get(int(jobs.partition[j]))
                assert named is None or not group.partitions or named in group.partitions
            load_w += group.static_power_w if here else group.idle_power_w
            load_w += sum(p * group.power_per_processor_w for j, p, _ in here if np.isnan(jobs.power_w[j]))
        assert loads[float(now_s)] == pytest.approx(load_w, rel=1e-9, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_nothing_above_what_is_there_and_the_load_is_that_of_what_runs(data: st.DataObject) -> None:
    cluster = data.draw(node_clusters(partitions=data.draw(st.booleans())))
    jobs = data.draw(jobs_for(cluster))
    policy = data.draw(st.sampled_from(["fcfs", "sjf", "wfp3", "slurm-multifactor:age=1000"]))
    backfill = data.draw(st.sampled_from(["none", "easy", "first-fit", "easy-schedgym"]))
    if policy != "slurm-multifactor:age=1000" and data.draw(st.booleans()):
        backfill = "conservative"
    name = f"{policy}+{backfill}+{data.draw(st.sampled_from(PLACEMENTS))}"
    commitment = data.draw(st.sampled_from(["sticky", "reconsider"]))
    outcome = simulate(jobs, cluster, None, Rules(commitment=commitment), scheduler(name))
    assert not np.isnan(outcome.start_s).any()
    check_capacity(outcome)


@pytest.fixture(scope="module")
def sun() -> Site:
    """Sun and wind of the default scenario."""
    site = load_scenario("default").site
    assert site is not None
    return site


@pytest.mark.parametrize("backfill", ["easy", "green:sigma=1e9", "conservative"])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_reservation_on_nodes_is_kept(backfill: str, sun: Site, data: st.DataObject) -> None:
    """With requests that no job exceeds, FCFS starts a job at its first reservation at the latest.

    With conservative backfilling, that holds for every job and under every policy.
    """
    cluster = data.draw(node_clusters(partitions=data.draw(st.booleans()), speeds=(1.0, 1.25)))
    jobs = data.draw(jobs_for(cluster, exact=data.draw(st.booleans())))
    jobs = jobs.with_columns(power_w=10.0 * jobs.processors)
    placement = data.draw(st.sampled_from(PLACEMENTS))
    policy = data.draw(st.sampled_from(["fcfs", "sjf", "wfp3"])) if backfill == "conservative" else "fcfs"
    outcome = simulate(jobs, cluster, sun, Rules(), scheduler(f"{policy}+{backfill}+{placement}"))
    check_capacity(outcome)
    promised = ~np.isnan(outcome.promised_start_s)
    assert promised.all() or backfill != "conservative"
    assert (outcome.start_s[promised] <= outcome.promised_start_s[promised] + 1e-9).all()


def same(one: Outcome, other: Outcome) -> None:
    np.testing.assert_array_equal(one.start_s, other.start_s)
    np.testing.assert_array_equal(one.end_s, other.end_s)
    np.testing.assert_array_equal(one.promised_start_s, other.promised_start_s)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_pool_is_one_big_node_and_nodes_of_one_speed_if_jobs_take_any(data: st.DataObject) -> None:
    cluster = data.draw(node_clusters())
    jobs = data.draw(jobs_for(cluster, spanning=True))
    pool, whole = Cluster.pooled(cluster.processors), cluster.processors
    one = Cluster.of_nodes((NodeGroup(name="big", count=1, processors=whole, static_power_w=0.0),))
    on_one = jobs.with_columns(nodes=np.ones(len(jobs), np.int64))
    policy = data.draw(st.sampled_from(["fcfs", "sjf", "f2", "unicep", "wfp3"]))
    backfill = data.draw(
        st.sampled_from(["none", "easy", "easy-schedgym", "easy-green-order", "first-fit", "conservative"])
    )
    rules = Rules(
        commitment=data.draw(st.sampled_from(["sticky", "reconsider"])),
        overrun=data.draw(st.sampled_from(["kill", "extend"])),
        event_rule=data.draw(st.sampled_from(["per_event", "per_instant"])),
    )  # fmt: skip
    powered = jobs.with_columns(power_w=np.full(len(jobs), 10.0))
    made = scheduler(f"{policy}+{backfill}")
    expected = simulate(powered, pool, None, rules, made)
    same(simulate(powered, cluster, None, rules, made), expected)
    same(simulate(on_one.with_columns(power_w=powered.power_w), one, None, rules, made), expected)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_nodes_of_one_processor_are_a_pool_of_jobs_of_one_processor(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    cluster = Cluster.of_nodes((NodeGroup(name="n", count=count, processors=1, static_power_w=0.0),))
    jobs = data.draw(jobs_for(cluster))
    jobs = jobs.with_columns(
        processors=np.ones(len(jobs), np.int64), nodes=np.ones(len(jobs), np.int64), gpus=np.zeros(len(jobs), np.int64),
        exclusive=np.zeros(len(jobs), np.int64), requested_memory_kb=np.zeros(len(jobs)),
    )  # fmt: skip
    made = scheduler(data.draw(st.sampled_from(["fcfs+easy", "sjf+easy", "f2+none", "wfp3+easy"])))
    placement = data.draw(st.sampled_from(PLACEMENTS))
    expected = simulate(jobs, Cluster.pooled(count), None, Rules(), made)
    same(simulate(jobs, cluster, None, Rules(), made), expected)
    same(simulate(jobs, cluster, None, Rules(), scheduler(f"{made.name}+{placement}")), expected)  # type: ignore[attr-defined]


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_a_job_runs_at_the_speed_of_its_slowest_node(data: st.DataObject) -> None:
    cluster = data.draw(node_clusters(speeds=(0.5, 1.0, 2.0, 4.0)))
    jobs = data.draw(jobs_for(cluster))
    overrun = data.draw(st.sampled_from(["kill", "extend"]))
    outcome = simulate(jobs, cluster, None, Rules(overrun=overrun), scheduler("sjf+easy+best-fit"))
    speed = np.array([g.speed for g in cluster.groups for _ in range(g.count)])
    parts = placed_on(outcome)
    slowest = np.array([min(speed[n] for j, n, _, _ in parts if j == k) for k in range(len(jobs))])
    run_s = jobs.run_time_s / slowest
    if overrun == "kill":
        assert outcome.killed == np.count_nonzero(run_s > jobs.requested_time_s * (1 + 1e-6))
        run_s = np.minimum(run_s, jobs.requested_time_s)
    np.testing.assert_allclose(outcome.end_s - outcome.start_s, run_s, rtol=1e-12)


# ---------------------------------------------------------------- contention


def speed_of(model: int, own: float, total: float, tasks: int) -> float:
    node: Any = record_of(Node, b=-1.85e-5, c=32_000.0, da=1.75, db=2_000.0, dc=50_000.0, dd=6_000.0)
    return float(slowdown(node, model, own, total, tasks))


def test_contention_as_published_vanishes_at_ten_tasks_and_the_repaired_one_does_not() -> None:
    published = [speed_of(1, 24_000.0, 24_000.0 * n, n) for n in (1, 2, 4, 8, 9, 10, 48)]
    assert published == pytest.approx([1.0, 0.805, 0.382, 0.192, 0.172, 1.0, 1.0], abs=5e-4)
    repaired = [speed_of(2, 24_000.0, 24_000.0 * n, n) for n in (1, 2, 4, 8, 9, 10, 48)]
    assert repaired[:3] == pytest.approx(published[:3], abs=1e-9)
    assert all(a >= b > 0 for a, b in pairwise(repaired))


@settings(max_examples=200, deadline=None)
@given(
    st.floats(0.0, 1e6), st.floats(0.0, 1e6), st.floats(0.0, 1e5), st.integers(1, 64), st.integers(0, 16),
)  # fmt: skip
def test_repaired_speed_never_rises_with_tasks_or_demand(
    own: float, others: float, more: float, tasks: int, extra: int
) -> None:  # fmt: skip
    before = speed_of(2, own, own + others, tasks)
    assert 0.0 < before <= 1.0
    assert speed_of(2, own, own + others, tasks + extra) <= before + 1e-12
    assert speed_of(2, own, own + others + more, tasks) <= before + 1e-12
    assert speed_of(2, own + more, own + more + others, tasks) <= before + 1e-12
    if tasks <= 4:
        assert before == pytest.approx(speed_of(1, own, own + others, tasks), abs=2e-9)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_work_is_conserved_while_rates_change(data: st.DataObject) -> None:
    """The rates that the model gives to what runs together add up to the work of every job."""
    cluster = replace(data.draw(node_clusters(speeds=(1.0, 2.0))), contention="repaired")
    jobs = data.draw(jobs_for(cluster, exact=True))
    volume_mb = data.draw(
        st.lists(st.sampled_from([0.0, 1e4, 1e5, 1e6]), min_size=len(jobs), max_size=len(jobs))
    )  # fmt: skip
    jobs = jobs.with_columns(memory_volume_mb=np.array(volume_mb))
    outcome = simulate(jobs, cluster, None, Rules(overrun="extend"), scheduler("fcfs+first-fit+pack"))
    check_capacity(outcome)
    groups, parts = [g for g in cluster.groups for _ in range(g.count)], placed_on(outcome)
    times = np.unique(np.concatenate([outcome.start_s, outcome.end_s]))
    done = dict.fromkeys(range(len(parts)), 0.0)
    for from_s, to_s in pairwise(times):
        for number, group in enumerate(groups):
            here = [
                k for k, (j, n, _, _) in enumerate(parts)
                if n == number and outcome.start_s[j] <= from_s < outcome.end_s[j]
            ]  # fmt: skip
            asked = {k: volume_mb[parts[k][0]] / (jobs.run_time_s[parts[k][0]] / group.speed) for k in here}
            total, tasks = sum(asked[k] * parts[k][2] for k in here), sum(parts[k][2] for k in here)
            for k in here:
                done[k] += group.speed * speed_of(2, asked[k], total, tasks) * (to_s - from_s)
    for job in range(len(jobs)):  # a part that is done early waits for the others
        least = min(done[k] for k, part in enumerate(parts) if part[0] == job)
        assert least == pytest.approx(jobs.run_time_s[job], rel=1e-6)


def test_jobs_are_killed_at_their_requested_time_under_the_published_contention_too() -> None:
    node = NodeGroup(name="n", count=1, processors=4, static_power_w=0.0)
    jobs = Workload.from_columns("w", {
        "submit_s": [0, 0, 3], "run_time_s": [10, 10, 5], "requested_time_s": [4, 20, 5], "processors": [1, 1, 3],
    })  # fmt: skip
    outcome = simulate(jobs, Cluster.of_nodes((node,), contention="irmasim-v1"), None, Rules(), scheduler("fcfs"))
    assert outcome.end_s.tolist() == [4, 10, 9]
    assert outcome.killed == 1


def test_a_job_that_others_slow_down_is_killed_at_its_requested_time() -> None:
    node = NodeGroup(name="n", count=1, processors=4, static_power_w=0.0)
    columns = {"submit_s": [0, 4], "run_time_s": [10, 10], "requested_time_s": [11, 50], "memory_volume_mb": [1e6, 1e6]}
    jobs = Workload.from_columns("w", {**columns, "processors": [1, 1]})
    for overrun in ("kill", "extend"):
        rules = Rules(overrun=overrun)  # type: ignore[arg-type]
        outcome = simulate(jobs, Cluster.of_nodes((node,), contention="repaired"), None, rules, scheduler("fcfs"))
        assert outcome.killed == (overrun == "kill")
        assert (outcome.end_s[0] == 11) == (overrun == "kill")


@pytest.mark.parametrize("overrun", ["kill", "extend"])
def test_backfilling_of_irmasim_starts_a_job_with_all_its_processors(overrun: str) -> None:
    """The third job needs three processors; two are free on one node and one on the other."""
    node = NodeGroup(name="n", count=2, processors=3, static_power_w=0.0)
    jobs = Workload.from_columns("w", {
        "submit_s": [0, 0, 1, 2], "run_time_s": [10, 10, 5, 5], "processors": [1, 2, 6, 3], "nodes": [1, 1, -1, -1],
        "requested_memory_kb": [0.0] * 4,
    })  # fmt: skip
    rules = Rules(overrun=overrun)  # type: ignore[arg-type]
    outcome = simulate(jobs, Cluster.of_nodes((node,)), None, rules, scheduler("fcfs+easy-irmasim+worst-fit"))
    check_capacity(outcome)
    assert outcome.start_s.tolist() == [0, 0, 15, 10]


def test_a_job_slows_others_down_once_all_its_nodes_have_booted() -> None:
    """The second job is placed on both nodes at 10 s; as long as the other one boots, it demands no bandwidth."""
    groups = tuple(
        NodeGroup(name=name, count=1, processors=4, static_power_w=0.0, boot_s=boot_s, min_on_s=1e6)
        for name, boot_s in (("a", 0.0), ("b", 50.0))
    )
    jobs = Workload.from_columns("w", {
        "submit_s": [0, 10], "run_time_s": [100, 30], "requested_time_s": [1000, 1000], "processors": [1, 4],
        "nodes": [1, 2], "memory_volume_mb": [3e6, 1.5e6],
    })  # fmt: skip
    cluster = Cluster.of_nodes(groups, contention="repaired", power_on="on-demand")
    outcome = simulate(jobs, cluster, None, Rules(overrun="extend"), scheduler("fcfs"))
    slower = speed_of(2, 30_000.0, 130_000.0, 3)
    together_s = 30 / min(speed_of(2, 50_000.0, 130_000.0, 3), speed_of(2, 50_000.0, 100_000.0, 2))
    assert slower < 0.9
    assert outcome.start_s.tolist() == [0, 60]
    assert outcome.end_s[1] == pytest.approx(60 + together_s, rel=1e-9)
    assert outcome.end_s[0] == pytest.approx(100 + together_s * (1 - slower), rel=1e-9)


# ---------------------------------------------------------------- bad input

NODE = NodeGroup(name="n", count=2, processors=4, static_power_w=100.0, gpus=1, memory_gb=8.0, partitions=("cpu",))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"processors": [9]}, "the cluster has 8"),
        ({"processors": [5], "nodes": [1]}, "fit on no nodes"),
        ({"processors": [3], "nodes": [3]}, "fit on no nodes"),
        ({"processors": [1], "gpus": [3]}, "fit on no nodes"),
        ({"processors": [1], "requested_memory_kb": [9e6]}, "fit on no nodes"),
        ({"processors": [1], "partition": [7]}, "that the cluster does not have: '7' .1 job. .give"),
    ],
)
def test_a_job_that_fits_on_no_node_is_refused_in_one_line(columns: dict[str, list[float]], said: str) -> None:
    jobs = Workload.from_columns("w", {"submit_s": [0.0], "run_time_s": [5.0], **columns})
    with pytest.raises(InputError, match=said) as caught:
        simulate(jobs, Cluster.of_nodes((NODE,)), None, Rules(), scheduler("fcfs+easy"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["fcfs+easy", "green-threshold+none", "foresee+none", "ga+easy", "aco+easy", "rolling+none"]
)
@pytest.mark.parametrize(
    ("placement", "nodes"), [("first", [0, 0, 0]), ("best-fit", [1, 1, 0]), ("spread", [0, 1, 0])]
)  # fmt: skip
def test_planners_leave_the_nodes_to_a_placement(name: str, placement: str, nodes: list[int]) -> None:
    """Three jobs of one processor beside each other, on a node of five processors and one of two."""
    big = NodeGroup(name="big", count=1, processors=5, static_power_w=10.0, power_per_processor_w=1.0)
    cluster = Cluster.of_nodes((big, replace(big, name="small", processors=2)))
    ample = Site(name="ample", step_s=3600.0, sources_w={"all": np.array([1e6])}, repeat=True)
    jobs = Workload.from_columns("w", {
        "submit_s": [0, 60, 120], "run_time_s": [5000] * 3, "processors": [1] * 3, "power_w": [50] * 3,
    })  # fmt: skip
    made = scheduler(f"{name}+{placement}")
    for outcome in (simulate(jobs, cluster, ample, Rules(), made), run_from_views(made, jobs, cluster, ample, Rules())):
        assert outcome.placements is not None
        assert outcome.placements.node[np.argsort(outcome.start_s[outcome.placements.job])].tolist() == nodes


@pytest.mark.parametrize("name", ["ga-published", "lptpn-published"])
def test_a_scheduler_that_needs_a_pool_says_so(name: str, sun: Site) -> None:
    jobs = Workload.from_columns("w", {"submit_s": [0.0], "run_time_s": [5.0], "processors": [1], "power_w": [5.0]})
    with pytest.raises(InputError, match="does not know nodes with partitions"):
        simulate(jobs, Cluster.of_nodes((NODE,)), sun, Rules(), scheduler(name))


def test_a_reservation_keeps_room_for_the_largest_chunk_on_every_node() -> None:
    """The second job takes 2 + 1 processors and needs 2 free ones on both nodes; the third would take one of them."""
    node = NodeGroup(name="n", count=2, processors=2, static_power_w=0.0)
    jobs = Workload.from_columns("w", {
        "submit_s": [0, 1, 2], "run_time_s": [10, 5, 100], "processors": [2, 3, 1], "nodes": [1, 2, 1],
    })  # fmt: skip
    outcome = simulate(jobs, Cluster.of_nodes((node,)), None, Rules(), scheduler("fcfs+easy"))
    assert outcome.promised_start_s[1] == 10
    assert outcome.start_s.tolist() == [0, 10, 10]


def test_memory_is_all_there_again_once_jobs_have_returned_it() -> None:
    """A job without memory keeps the node busy while two others take memory and return it; the last wants all of it."""
    node = NodeGroup(name="n", count=1, processors=4, static_power_w=0.0, memory_gb=1.0)
    asked = [0.0, 333_333.0, 111_111.0, 1e6]
    jobs = Workload.from_columns("w", {
        "submit_s": [0, 0, 0, 3], "run_time_s": [100, 1, 2, 5], "processors": [1] * 4, "requested_memory_kb": asked,
    })  # fmt: skip
    outcome = simulate(jobs, Cluster.of_nodes((node,)), None, Rules(), scheduler("fcfs+easy"))
    assert outcome.start_s.tolist() == [0, 0, 0, 3]


def test_parallel_partitions_do_not_block_each_other() -> None:
    """A job that waits for one partition holds up nobody in another, and each has a reservation of its own."""
    groups = tuple(
        NodeGroup(name=name, count=1, processors=2, static_power_w=0.0, partitions=(name,)) for name in ("a", "b")
    )
    jobs = Workload.from_columns("w", {
        "submit_s": [0, 1, 2, 3, 4, 5], "run_time_s": [10, 5, 1, 10, 5, 1], "processors": [1, 2, 1, 1, 2, 1],
        "partition": [0, 0, 0, 1, 1, 1],
    })  # fmt: skip
    jobs = _named(jobs, Cluster.of_nodes(groups))
    outcome = simulate(jobs, Cluster.of_nodes(groups), None, Rules(), scheduler("fcfs+easy"))
    assert outcome.start_s.tolist() == [0, 10, 2, 3, 13, 5]
    assert outcome.promised_start_s[[1, 4]].tolist() == [10, 13]


@pytest.mark.parametrize("backfill", ["easy", "easy-schedgym", "easy-green-order"])
def test_a_long_job_of_another_partition_may_outlive_the_reservation_of_a_committed_job(backfill: str) -> None:
    groups = tuple(
        NodeGroup(name=name, count=1, processors=2, static_power_w=0.0, partitions=(name,)) for name in ("a", "b")
    )
    jobs = Workload.from_columns("w", {
        "submit_s": [0, 0, 1, 3], "run_time_s": [10, 4, 5, 50], "processors": [1, 2, 2, 1], "power_w": [1, 1, 1, 1],
        "partition": [0, 1, 0, 1],
    })  # fmt: skip
    jobs = _named(jobs, Cluster.of_nodes(groups))
    rules = Rules(commitment="sticky")
    outcome = simulate(jobs, Cluster.of_nodes(groups), None, rules, scheduler(f"fcfs+{backfill}"))
    assert outcome.start_s.tolist() == [0, 0, 10, 4]


@pytest.mark.parametrize(("sigma", "start_s"), [(1, 15), (600, 2)])
def test_green_counts_the_power_that_the_nodes_draw_for_a_job_of_unknown_power(sigma: int, start_s: int) -> None:
    group = NodeGroup(name="n", count=1, processors=4, static_power_w=10.0, power_per_processor_w=100.0)
    jobs = Workload.from_columns(
        "w", {"submit_s": [0, 1, 2], "run_time_s": [10, 5, 5], "processors": [3, 4, 1]}
    )  # fmt: skip
    dark = Site(name="dark", step_s=60.0, sources_w={"pv": np.zeros(2)}, repeat=True)
    outcome = simulate(jobs, Cluster.of_nodes((group,)), dark, Rules(), scheduler(f"fcfs+green:sigma={sigma}"))
    assert outcome.start_s.tolist() == [0, 10, start_s]
