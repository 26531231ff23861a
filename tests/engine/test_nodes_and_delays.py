"""The planner that also chooses nodes: valid schedules, no choice where there is none, fast nodes in the sun only."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from test_lookahead import HOUR_S, INITIAL, Planned, numbers_with, site
from test_node_machine import PLACEMENTS, check_capacity, jobs_for, node_clusters, same
from test_planners_on_nodes import FRAGMENTED, in_units, planned, wide_job_in_a_stream

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.policies.compiled.lookahead.weights import INPUTS, NODE_NUMBERS, NODE_WEIGHTS
from greenbatch.workload import Workload

EAGER = numbers_with(block_price=-3.0, idle_price=40.0, reserve=0.0, green_price=0.0)
"""Starts every job that fits, and leaves green hours to nobody."""


def choosing(numbers: np.ndarray, **changes: float) -> np.ndarray:
    """The numbers of a planner that also chooses nodes."""
    made = [changes.get(name, number.initial) for name, number in NODE_NUMBERS.items()]
    return np.concatenate([numbers, made, np.zeros(len(INPUTS))])


def chosen(jobs: Workload, cluster: Cluster, power: list[float], numbers: np.ndarray, overrun: str = "kill") -> Outcome:
    return simulate(jobs, cluster, site(power), replace(Rules(), overrun=overrun), Planned(numbers))  # type: ignore[arg-type]


def groups_of(outcome: Outcome) -> list[set[str]]:
    """Names of the groups on which each job ran."""
    assert outcome.placements is not None
    assert outcome.cluster.on_nodes
    names = [g.name for g in outcome.cluster.groups for _ in range(g.count)]
    placed = outcome.placements
    return [{names[node] for node in placed.node[placed.job == job]} for job in range(len(outcome.workload))]


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_nothing_above_what_is_there_and_every_job_starts(data: st.DataObject) -> None:
    """Whatever jobs ask for and whatever the numbers are, on nodes of several speeds."""
    cluster = data.draw(node_clusters(partitions=data.draw(st.booleans()), speeds=(0.5, 1.0, 1.25)))
    jobs = in_units(data.draw(jobs_for(cluster)), data.draw(st.sampled_from([60.0, 1200.0])))
    if data.draw(st.booleans()):
        jobs = jobs.with_columns(power_w=10.0 * jobs.processors)
    power = data.draw(st.lists(st.sampled_from([0.0, 50.0, 200.0]), min_size=24, max_size=24))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    drawn = {name: random.uniform(number.lowest, number.highest) for name, number in NODE_NUMBERS.items()}
    numbers = choosing(data.draw(st.sampled_from([INITIAL, EAGER])), **drawn)
    numbers[-len(INPUTS) :] = random.uniform(-3.0, 3.0, len(INPUTS))
    outcome = chosen(jobs, cluster, power, numbers, data.draw(st.sampled_from(["kill", "extend"])))
    assert (outcome.start_s >= jobs.submit_s).all()
    check_capacity(outcome)


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_there_is_no_choice_among_nodes_that_draw_the_same(data: st.DataObject) -> None:
    """The same schedule as with any placement, and as on a pool, where the numbers have no effect either."""
    cluster = data.draw(node_clusters())
    cluster = Cluster.of_nodes(tuple(replace(g, idle_fraction=1.0) for g in cluster.groups))
    jobs = in_units(data.draw(jobs_for(cluster, spanning=True)), data.draw(st.sampled_from([600.0, 1800.0])))
    jobs = jobs.with_columns(power_w=np.round(np.linspace(1.0, 60.0, len(jobs))))
    power = data.draw(st.lists(st.sampled_from([0.0, 100.0, 400.0]), min_size=24, max_size=24))
    numbers = choosing(INITIAL, haste=data.draw(st.sampled_from([-20.0, 0.0, 20.0])))
    ours = chosen(jobs, cluster, power, numbers)
    same(ours, planned("lookahead", jobs, cluster, placement=data.draw(st.sampled_from(PLACEMENTS)), power=power))
    pool = Cluster.pooled(
        cluster.processors, processors_per_machine=1000, idle_power_per_machine_w=cluster.idle_power_w
    )
    same(chosen(jobs, pool, power, numbers), ours)


def two_speeds(processors: int = 4) -> Cluster:
    """A fast node that draws 4 times the power of a frugal one, which is half as fast."""
    each = NodeGroup(name="frugal", count=1, processors=processors, static_power_w=0.0, power_per_processor_w=10.0)
    return Cluster.of_nodes(
        (replace(each, speed=1.0), replace(each, name="fast", speed=2.0, power_per_processor_w=40.0))
    )


def one_job(processors: int = 4, hours: float = 4.0) -> Workload:
    return Workload.from_columns("x", {
        "submit_s": np.zeros(1), "run_time_s": np.full(1, hours * HOUR_S), "processors": np.full(1, processors),
        "requested_memory_kb": np.zeros(1),
    })  # fmt: skip


@pytest.mark.parametrize(("power_w", "group", "run_h"), [(0.0, "frugal", 4.0), (1000.0, "fast", 2.0)])
def test_fast_nodes_in_the_sun_and_frugal_ones_at_night(power_w: float, group: str, run_h: float) -> None:
    """320 Wh of green power cost nothing, so the time for which processors are held decides; at night 160 Wh do."""
    outcome = chosen(one_job(), two_speeds(), [power_w], choosing(EAGER, haste=1.0))
    assert groups_of(outcome) == [{group}]
    assert (outcome.end_s - outcome.start_s).tolist() == [run_h * HOUR_S]


@pytest.mark.parametrize(("haste", "group"), [(0.0, "frugal"), (60.0, "fast")])
def test_haste_pays_for_brown_power(haste: float, group: str) -> None:
    assert groups_of(chosen(one_job(), two_speeds(), [0.0], choosing(EAGER, haste=haste))) == [{group}]


def test_a_surplus_that_ends_soon_is_not_enough_for_the_fast_node() -> None:
    """An hour of 160 W: the fast node would draw 160 Wh of brown energy afterwards, the frugal one 120."""
    sky = [160.0] + 23 * [0.0]
    numbers = choosing(EAGER, haste=0.0)
    assert groups_of(chosen(one_job(), two_speeds(), sky, numbers)) == [{"frugal"}]
    assert groups_of(chosen(one_job(), two_speeds(), [160.0] * 2 + sky[2:], numbers)) == [{"fast"}]


def test_a_job_wider_than_one_kind_of_node_takes_both() -> None:
    outcome = chosen(one_job(processors=6), two_speeds(), [0.0], choosing(EAGER))
    assert groups_of(outcome) == [{"frugal", "fast"}]
    check_capacity(outcome)


@pytest.mark.parametrize(("waking", "woken"), [(0.0, True), (1.0, False)])
def test_a_job_beside_another_wakes_no_node(waking: float, woken: bool) -> None:
    """Two nodes of one speed, the second of which draws less per processor but sleeps."""
    here = NodeGroup(
        name="busy", count=1, processors=4, static_power_w=40.0, idle_fraction=0.0, power_per_processor_w=9
    )
    cluster = Cluster.of_nodes((here, replace(here, name="asleep", power_per_processor_w=8.0, static_power_w=41.0)))
    jobs = Workload.from_columns("x", {
        "submit_s": np.array([0.0, 0.0, 60.0]), "run_time_s": np.array([4.0, 0.01, 1.0]) * HOUR_S,
        "processors": np.array([3, 4, 1]), "nodes": np.ones(3, np.int64),
    })  # fmt: skip
    placed = groups_of(chosen(jobs, cluster, [0.0], choosing(EAGER, waking=waking)))
    assert placed[2] == ({"asleep"} if woken else placed[0])


def test_a_job_wider_than_any_node_is_held_nodes_for() -> None:
    """As with a placement: others start beside the nodes that are held."""
    jobs = wide_job_in_a_stream(days=10)
    outcome = chosen(jobs, FRAGMENTED, [100.0], choosing(EAGER, crowding=-30.0))
    wait_s = outcome.start_s - jobs.submit_s
    assert 0.0 < wait_s[-1] <= 10 * HOUR_S
    assert wait_s[:-1].max() == 0.0
    check_capacity(outcome)


def test_the_layout_of_the_numbers() -> None:
    assert choosing(INITIAL).shape == (NODE_WEIGHTS,)
