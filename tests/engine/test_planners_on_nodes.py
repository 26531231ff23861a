"""Planners that look ahead, on nodes: valid schedules, a pool as a special case, and wide jobs on fragmented nodes."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from test_lookahead import HOUR_S, INITIAL, SUNNY, Planned, numbers_with, site
from test_node_machine import PLACEMENTS, check_capacity, jobs_for, node_clusters, same

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.models.planner import baseline_rule
from greenbatch.policies.compiled.lookahead import plan as planner
from greenbatch.policies.compiled.lookahead.baseline import baseline_progress
from greenbatch.policies.compiled.lookahead.weights import USUAL_W, unit_of_power
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

pytestmark = pytest.mark.compiled  # thousands of start times

PLANNERS = ["lookahead", "cheapest-start"]
EAGER = numbers_with(block_price=-3.0, idle_price=40.0, reserve=0.0)


class Placed(Planned):
    """The look-ahead planner with given numbers and a placement."""

    def __init__(self, numbers: np.ndarray, placement: str) -> None:
        super().__init__(numbers)
        self.placement, _, seed = placement.partition(":seed=")
        self.seed = int(seed or 0)

    def program(self, workload: Workload) -> Program:
        return replace(super().program(workload), placement=self.placement, placement_seed=self.seed)


def planned(
    name: str, jobs: Workload, cluster: Cluster, numbers: np.ndarray = INITIAL, placement: str = "first",
    power: list[float] = SUNNY, overrun: str = "kill",
) -> Outcome:  # fmt: skip
    made = Placed(numbers, placement) if name == "lookahead" else scheduler(f"{name}+none+{placement}")
    return simulate(jobs, cluster, site(power), replace(Rules(), overrun=overrun), made)  # type: ignore[arg-type]


def in_units(jobs: Workload, unit_s: float) -> Workload:
    return jobs.with_columns(
        submit_s=jobs.submit_s * unit_s, run_time_s=jobs.run_time_s * unit_s,
        requested_time_s=jobs.requested_time_s * unit_s,
    )  # fmt: skip


@pytest.mark.parametrize("name", PLANNERS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_nothing_above_what_is_there_and_every_job_starts(name: str, data: st.DataObject) -> None:
    """Whatever jobs ask for, with requests that are exceeded, and on nodes of several speeds."""
    cluster = data.draw(node_clusters(partitions=data.draw(st.booleans()), speeds=(0.5, 1.0, 1.25)))
    jobs = in_units(data.draw(jobs_for(cluster)), data.draw(st.sampled_from([60.0, 1200.0])))
    if data.draw(st.booleans()):
        jobs = jobs.with_columns(power_w=10.0 * jobs.processors)
    power = data.draw(st.lists(st.sampled_from([0.0, 50.0, 200.0]), min_size=24, max_size=24))
    overrun, placement = data.draw(st.sampled_from(["kill", "extend"])), data.draw(st.sampled_from(PLACEMENTS))
    outcome = planned(name, jobs, cluster, placement=placement, power=power, overrun=overrun)
    assert (outcome.start_s >= jobs.submit_s).all()
    check_capacity(outcome)


@pytest.mark.parametrize("name", PLANNERS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_nodes_that_draw_the_same_busy_or_not_are_a_pool_if_jobs_take_any(name: str, data: st.DataObject) -> None:
    cluster = data.draw(node_clusters())
    cluster = Cluster.of_nodes(tuple(replace(g, idle_fraction=1.0) for g in cluster.groups))
    pool = Cluster.pooled(
        cluster.processors, processors_per_machine=1000, idle_power_per_machine_w=cluster.idle_power_w
    )
    jobs = in_units(data.draw(jobs_for(cluster, spanning=True)), data.draw(st.sampled_from([600.0, 1800.0])))
    jobs = jobs.with_columns(power_w=np.round(np.linspace(1.0, 60.0, len(jobs))))
    power = data.draw(st.lists(st.sampled_from([0.0, 100.0, 400.0]), min_size=24, max_size=24))
    placement = data.draw(st.sampled_from(PLACEMENTS))
    same(planned(name, jobs, cluster, placement=placement, power=power), planned(name, jobs, pool, power=power))


FRAGMENTED = Cluster.of_nodes(
    tuple(
        NodeGroup(name=f"g{k}", count=1, processors=4, static_power_w=0.0, power_per_processor_w=1.0) for k in range(4)
    )
)


def wide_job_in_a_stream(days: int) -> Workload:
    """Jobs of one processor that overlap, one on each of four nodes, and one job that asks for two whole nodes."""
    stream = np.arange(0.0, days * 24.0, 2.5) * HOUR_S
    wide = {"submit_s": 20 * HOUR_S, "requested_time_s": 3 * HOUR_S, "processors": 8, "nodes": 2}
    small = {"submit_s": stream, "requested_time_s": 10 * HOUR_S, "processors": 1, "nodes": 1}
    columns = {name: np.append(np.full(len(stream), 1.0) * small[name], wide[name]) for name in wide}
    return Workload.from_columns("stream", {
        **columns, "run_time_s": columns["requested_time_s"], "requested_memory_kb": np.zeros(len(stream) + 1),
    })  # fmt: skip


@pytest.mark.parametrize("name", PLANNERS)
def test_a_job_wider_than_any_group_is_held_nodes_for(name: str) -> None:
    """Twelve processors are always free, and no node is: nodes are held for it, and the others start beside them."""
    jobs = wide_job_in_a_stream(days=10)
    outcome = planned(name, jobs, FRAGMENTED, EAGER, "spread", [100.0])
    wait_s = outcome.start_s - jobs.submit_s
    assert 0.0 < wait_s[-1] <= 10 * HOUR_S
    assert wait_s[:-1].max() == 0.0
    check_capacity(outcome)


def test_a_job_of_last_priority_is_not_overtaken_indefinitely() -> None:
    """The longest jobs go first, which are the others, so no nodes are held for it until it has waited for a month."""
    jobs = wide_job_in_a_stream(days=40)
    last = numbers_with(block_price=-3.0, idle_price=40.0, reserve=0.0, order_time=-3.0)
    wait_s = (planned("lookahead", jobs, FRAGMENTED, last, "spread", [100.0]).start_s - jobs.submit_s)[-1]
    assert planner.LONGEST_HOLD_S <= wait_s <= planner.LONGEST_HOLD_S + 11 * HOUR_S


@pytest.mark.parametrize("name", PLANNERS)
def test_a_job_held_for_the_sun_leaves_its_nodes_to_those_that_end_before(name: str) -> None:
    """The first job waits for six in the morning; one of an hour runs on the same nodes in the meantime."""
    one = Cluster.of_nodes(
        (NodeGroup(name="n", count=2, processors=4, static_power_w=0.0, power_per_processor_w=100.0),)
    )
    jobs = Workload.from_columns("x", {
        "submit_s": np.array([0.0, 60.0]), "run_time_s": np.array([5.0, 0.2]) * HOUR_S, "processors": np.array([8, 8]),
        "nodes": np.array([2, 2]), "requested_time_s": np.array([5.0, 0.2]) * HOUR_S,
    })  # fmt: skip
    start_s = planned(name, jobs, one, power=SUNNY).start_s
    assert start_s.tolist() == [6 * HOUR_S, 60.0]


@pytest.mark.parametrize("name", PLANNERS)
def test_the_power_that_nodes_draw_decides(name: str) -> None:
    """At night a job of unknown power waits for the sun on nodes that draw a lot, and starts on others."""
    jobs = Workload.from_columns("x", {
        "submit_s": np.zeros(1), "run_time_s": np.full(1, 4 * HOUR_S), "processors": np.full(1, 4),
    })  # fmt: skip
    waits = {}
    for processor_w in (1e-9, 100.0):
        group = NodeGroup(name="n", count=1, processors=4, static_power_w=0.0, power_per_processor_w=processor_w)
        made = Cluster.of_nodes((replace(group, name="other", power_per_processor_w=50.0, count=1), group))
        placement = "low-power"
        waits[processor_w] = bool(planned(name, jobs, made, placement=placement).start_s[0] > 5 * HOUR_S)
    assert waits == {1e-9: False, 100.0: True}


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_prices_suit_nodes_of_any_power(data: st.DataObject) -> None:
    """Nodes and a supply of four times the power: the same schedule, because prices refer to what nodes draw."""
    cluster = data.draw(node_clusters(speeds=(1.0, 1.5)))
    larger = Cluster.of_nodes(
        tuple(
            replace(g, static_power_w=4 * g.static_power_w, power_per_processor_w=4 * g.power_per_processor_w)
            for g in cluster.groups
        )
    )
    jobs = in_units(data.draw(jobs_for(cluster)), 1200.0)
    power = data.draw(st.lists(st.sampled_from([0.0, 64.0, 256.0]), min_size=24, max_size=24))
    one = planned("lookahead", jobs, cluster, power=power)
    other = planned("lookahead", jobs, larger, power=[4 * each for each in power])
    np.testing.assert_array_equal(one.start_s, other.start_s)


@pytest.mark.parametrize("widths", [(3, 7), (7, 3)])
def test_jobs_of_equal_power_per_processor_keep_their_order(widths: tuple[int, int]) -> None:
    """Of two jobs of other width that wait for a third one the first starts first, whatever a processor draws."""
    jobs = Workload.from_columns("x", {
        "submit_s": np.array([0.0, 60.0, 61.0]), "run_time_s": np.full(3, 7200.0), "processors": np.array([7, *widths]),
    })  # fmt: skip
    for tenths_w in range(1, 450, 7):
        node = NodeGroup(
            name="n", count=1, processors=7, static_power_w=0.0, power_per_processor_w=tenths_w / 10, speed=1.0
        )
        start_s = planned("lookahead", jobs, Cluster.of_nodes((node,)), EAGER, power=[1e6]).start_s
        assert start_s.tolist() == [0.0, 7200.0, 14400.0], tenths_w


def test_the_unit_of_power_by_hand() -> None:
    group = NodeGroup(
        name="n", count=2, processors=4, static_power_w=20.0, idle_fraction=0.5, power_per_processor_w=3.0
    )
    jobs = Workload.from_columns("x", {"submit_s": np.zeros(1), "run_time_s": np.ones(1), "processors": np.ones(1)})
    assert unit_of_power(jobs, Cluster.of_nodes((group,))) == pytest.approx(USUAL_W / (3.0 + 10.0 / 4))
    assert unit_of_power(jobs.with_columns(power_w=np.ones(1)), Cluster.of_nodes((group,))) == 1.0
    assert unit_of_power(jobs, Cluster.pooled(4)) == 1.0


def test_the_baseline_does_all_requested_work_on_nodes_of_any_speed() -> None:
    jobs = Workload.from_columns("x", {
        "submit_s": 600.0 * np.arange(5), "run_time_s": np.full(5, 1800.0), "requested_time_s": np.full(5, 3600.0),
        "processors": np.full(5, 3),
    })  # fmt: skip
    groups = (
        NodeGroup(name=f"s{speed}", count=1, processors=4, static_power_w=0.0, speed=speed) for speed in (1.0, 2.0)
    )
    rules = replace(Rules(), overrun="extend")
    table = baseline_progress(jobs, Cluster.of_nodes(tuple(groups)), rules, baseline_rule(jobs))
    assert table[-1, 1] == pytest.approx(5 * 3 * 3600.0)


@pytest.mark.parametrize("name", PLANNERS)
def test_what_planners_do_not_support_is_refused_in_one_line(name: str) -> None:
    jobs = wide_job_in_a_stream(days=1)
    made = Placed(INITIAL, "first") if name == "lookahead" else scheduler(name)
    with pytest.raises(InputError, match="has no power") as caught:
        simulate(jobs, Cluster.pooled(16), site(SUNNY), Rules(), made)
    assert "\n" not in str(caught.value)
