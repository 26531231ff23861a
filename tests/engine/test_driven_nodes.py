"""On nodes, a scheduler that is asked one decision at a time starts every job when and where a simulation does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driven import driver_of, run_from_views
from hypothesis import given, settings
from hypothesis import strategies as st
from test_driven import restarts, rule_sets
from test_node_machine import jobs_for, node_clusters, placed_on

import greenbatch as gb
from greenbatch.cluster import Cluster, DvfsLevel, NodeGroup
from greenbatch.energy import Site
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Decision, Start, View, Wait
from greenbatch.engine.views.session import Session
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

PLACEMENTS = (
    "first", "best-fit", "worst-fit", "pack", "spread", "random:seed=3", "high-gflops", "high-mem", "low-power",
    "low-energy", "first-by-name",
)  # fmt: skip
BACKFILLS = ("none", "first-fit", "easy", "easy-schedgym", "easy-green-order", "green:sigma=200")
HOUR_S = 3600.0


def same_schedule(
    how: Any, jobs: Workload, cluster: Cluster, power: Site | None, rules: Rules, **given: Any
) -> Outcome:  # fmt: skip
    """The starts and nodes of a simulation, and those of a batch system that asks for one decision at a time."""
    wanted = simulate(jobs, cluster, power, rules, how)
    driven = run_from_views(how, jobs, cluster, power, rules, **given)
    np.testing.assert_array_equal(driven.start_s, wanted.start_s)
    assert on_each_node(driven) == on_each_node(wanted)
    return wanted


def on_each_node(outcome: Outcome) -> dict[tuple[int, int], tuple[int, int]]:
    """Job and node -> processors and GPUs; the driver names each node once, even if a job took two parts of it."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for job, node, processors, gpus in placed_on(outcome):
        before = found.get((job, node), (0, 0))
        found[job, node] = before[0] + processors, before[1] + gpus
    return found


def sun(data: st.DataObject, step_s: float) -> Site:
    sky = data.draw(st.lists(st.sampled_from([0.0, 50.0, 200.0]), min_size=12, max_size=24))
    return Site(name="s", step_s=step_s, sources_w={"all": np.array(sky)}, repeat=True)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for what a scheduler remembers."""
    return tmp_path_factory.mktemp("memory") / "memory.npz"


def known_from_the_first(jobs: Workload, cluster: Cluster) -> Workload:
    """Jobs of which the first one shows that nodes matter, and that name partitions if there are any.

    A simulation knows from its window whether all jobs ask for processors of any nodes, and whether one of them links
    all partitions; from views it is what jobs so far have asked for.
    """
    small = np.zeros(len(jobs), np.bool_)
    small[np.argsort(jobs.submit_s, kind="stable")[0]] = True
    if cluster.partitions:
        small |= jobs.partition < 0
        jobs = jobs.with_columns(partition=np.maximum(jobs.partition, 0))
    ones, zeros = np.ones(len(jobs), np.int64), np.zeros(len(jobs))
    return jobs.with_columns(
        nodes=np.where(small, ones, jobs.nodes), processors=np.where(small, ones, jobs.processors),
        gpus=np.where(small, 0, jobs.gpus),
        requested_memory_kb=np.where(small, zeros, jobs.requested_memory_kb),
    )  # fmt: skip


@pytest.mark.parametrize("backfill", BACKFILLS)
@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_priority_rules_whatever_jobs_ask_for(memory: Path, backfill: str, data: st.DataObject) -> None:
    spanning = data.draw(st.booleans())
    cluster = data.draw(node_clusters(partitions=not spanning and data.draw(st.booleans()), speeds=(0.5, 1.0, 1.25)))
    jobs = data.draw(jobs_for(cluster, spanning=spanning))
    jobs = jobs if spanning else known_from_the_first(jobs, cluster)
    if data.draw(st.booleans()):
        jobs = jobs.with_columns(power_w=10.0 * jobs.processors)
    policy = data.draw(st.sampled_from(["fcfs", "f2", "wfp3", "smallest", "sjf"]))
    how = scheduler(f"{policy}+{backfill}+{data.draw(st.sampled_from(PLACEMENTS))}")
    given = {"restart": data.draw(restarts()), "memory": memory}
    same_schedule(how, jobs, cluster, sun(data, 5.0), data.draw(rule_sets()), **given)


@pytest.mark.parametrize("name", ["cheapest-start:horizon=60:tick=7:short=6:hold=900+none+{}", "min-min"])
@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_planners(memory: Path, name: str, data: st.DataObject) -> None:
    spanning = data.draw(st.booleans())
    cluster = data.draw(node_clusters(speeds=(0.5, 1.0, 1.25)))
    jobs = data.draw(jobs_for(cluster, spanning=spanning))
    jobs = jobs if spanning else known_from_the_first(jobs, cluster)
    how = scheduler(name.format(data.draw(st.sampled_from(PLACEMENTS))))
    given = {"restart": data.draw(restarts()), "memory": memory}
    same_schedule(how, jobs, cluster, sun(data, 5.0), data.draw(rule_sets()), **given)


@pytest.mark.parametrize("model", ["gas-marl-plus@default+none+worst-fit", "green-ineps@lublin-256+none"])
@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_models_that_plan(memory: Path, model: str, data: st.DataObject) -> None:
    """Distinct submissions, as in `test_driven.test_shipped_models`."""
    spanning = data.draw(st.booleans())
    cluster = data.draw(node_clusters(speeds=(0.5, 1.0, 1.25)))
    jobs = data.draw(jobs_for(cluster, spanning=spanning))
    jobs = jobs if spanning else known_from_the_first(jobs, cluster)
    jobs = jobs.with_columns(
        submit_s=1200.0 * np.argsort(np.argsort(jobs.submit_s, kind="stable"), kind="stable"),
        run_time_s=1200.0 * jobs.run_time_s, requested_time_s=1200.0 * jobs.requested_time_s,
    )  # fmt: skip
    given = {"restart": data.draw(restarts()), "memory": memory}
    same_schedule(scheduler(model), jobs, cluster, sun(data, HOUR_S), data.draw(rule_sets()), **given)


@pytest.mark.parametrize("model", ["ineps-plus@default", "ineps-plus-edp@default"])
def test_models_that_rank_pairs(memory: Path, model: str) -> None:
    scenario = gb.load_scenario("ineps/adaptability-memory")
    jobs, given = scenario.window(0, 12), {"restart": lambda k: k % 9 == 4, "memory": memory}
    same_schedule(scheduler(model), jobs, scenario.cluster, None, scenario.rules, **given)


@pytest.mark.parametrize("model", ["ineps-plus@default", "gas-marl-plus@lublin-256"])
def test_models_with_a_power_supply(model: str, memory: Path, greenbatch_data: Callable[[str], Path]) -> None:
    """Sun and wind, and jobs of which many take several nodes."""
    greenbatch_data("swf/lublin_256.swf.gz")
    scenario = gb.load_scenario("ineps/green")
    jobs, given = scenario.window(0, 16), {"restart": lambda k: k % 9 == 4, "memory": memory}
    wanted = same_schedule(scheduler(model), jobs, scenario.cluster, scenario.site, scenario.rules, **given)
    assert wanted.placements is not None
    assert np.bincount(wanted.placements.job).max() > 1


# ---------------------------------------------------------------- answers, and what cannot be driven

TWO_NODES = Cluster.of_nodes(tuple(
    NodeGroup(name=f"g{k}", count=1, processors=4, static_power_w=10.0, power_per_processor_w=2.0) for k in range(2)
))  # fmt: skip


class Divided:
    """Start each job on both nodes, one processor on the first."""

    def __init__(self, processors: tuple[int, ...] = (1, 3)) -> None:
        self.processors = processors

    def decide(self, view: View) -> Decision:
        if view.nodes.free_processors.sum() < view.queue.processors[0]:
            return Wait()
        return Start(0, nodes=(0, 1), processors=self.processors)


def four_wide() -> Workload:
    return Workload.from_columns(
        "w", {"submit_s": [0.0, 1.0], "run_time_s": [5.0, 5.0], "processors": [4, 4], "power_w": [1.0, 1.0]}
    )


def test_a_start_divides_a_job_among_nodes(memory: Path) -> None:
    outcome = simulate(four_wide(), TWO_NODES, None, Rules(), scheduler(Divided))
    assert sorted(placed_on(outcome)) == [(0, 0, 1, 0), (0, 1, 3, 0), (1, 0, 1, 0), (1, 0, 2, 0), (1, 1, 1, 0)]
    same_schedule(scheduler(Divided), four_wide(), TWO_NODES, None, Rules(), restart=lambda k: True, memory=memory)


@pytest.mark.parametrize("processors", [(1,), (1, 2, 3), (0, 4), (-1, 5), (2**31, 1)])
def test_processors_that_do_not_match_the_nodes_are_refused(processors: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"on 2 nodes.*one number >= 1 per node"):
        simulate(four_wide(), TWO_NODES, None, Rules(), scheduler(Divided(processors)))


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("fcfs+easy-irmasim+first", {}, "the order of its list of nodes"),
        ("fcfs+easy+high-mem-bw", {"contention": "repaired"}, "the memory bandwidth that a job uses"),
    ],
)
def test_what_a_view_does_not_show_is_refused(name: str, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        driver_of(scheduler(name), four_wide(), replace(TWO_NODES, **changed), Rules())


def test_a_reservation_of_nodes_outlives_a_restart(memory: Path) -> None:
    """Two jobs hold a node each until 4 and 9 s; the next reserves the first node, so the last waits for the second.

    Whoever forgets the reservation starts the last job, which fits at once, on the first node at 4 s.
    """
    jobs = Workload.from_columns("w", {
        "submit_s": np.array([0.0, 0.0, 1.0, 2.0]), "run_time_s": np.array([4.0, 9.0, 5.0, 8.0]),
        "processors": np.array([4, 4, 4, 2]), "nodes": np.array([1, 1, 1, 1]), "exclusive": np.ones(4, np.int64),
    })  # fmt: skip
    how = scheduler("fcfs+conservative")
    for again in (lambda _: False, lambda _: True):
        found = same_schedule(how, jobs, TWO_NODES, None, Rules(), restart=again, memory=memory)
        assert found.start_s.tolist() == [0.0, 0.0, 4.0, 9.0]


def test_a_level_of_the_rules_is_kept() -> None:
    """At half of the speed and a tenth of the power, two jobs run at once under the cap; at the highest level, none."""
    node = NodeGroup(name="n", count=2, processors=4, static_power_w=20.0, idle_fraction=1.0)
    cluster = Cluster.of_nodes((node,), dvfs=(DvfsLevel(speed=0.5, power=0.1),))
    columns = {
        "submit_s": np.zeros(4),
        "run_time_s": np.full(4, 5.0),
        "processors": np.ones(4),
        "power_w": np.full(4, 100.0),
    }
    jobs, rules = Workload.from_columns("w", columns), Rules(dvfs_level=1, power_cap_w=65.0)
    assert same_schedule(scheduler("fcfs+easy"), jobs, cluster, None, rules).start_s.tolist() == [0.0, 0.0, 10.0, 10.0]


# ---------------------------------------------------------------- views and answers that are not possible


def first_view(**attributes: float) -> View:
    """Two jobs submitted, the first of which runs on both nodes of `TWO_NODES` and the second waits."""
    session = Session(
        four_wide().with_columns(processors=np.array([5, 3])), TWO_NODES, None, Rules(), Program(name="system")
    )
    assert session.view() is not None
    session.apply(Start(0, nodes=(0, 1), processors=(2, 3)))
    view = session.view()
    assert view is not None
    asked = view.queue.attributes._replace(**{name: np.array([value]) for name, value in attributes.items()})
    return replace(view, queue=view.queue._replace(attributes=asked))


def ask(view: View) -> Decision:
    return driver_of(scheduler("fcfs+easy+first"), four_wide(), TWO_NODES, Rules()).decide(view)


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ("nodes", {"processors": [2, 6]}),
        ("nodes", {"processors": [40, 40], "free_processors": [38, 37]}),
        ("nodes", {"free_processors": [3, 0]}),
        ("nodes", {"free_processors": [-1, 1]}),
        ("nodes", {"free_gpus": [1, 0]}),
        ("nodes", {"free_gpus": [-1, 0]}),
        ("nodes", {"free_memory_mb": [np.nan, 1.0]}),
        ("nodes", {"free_memory_mb": [-1.0, 1.0]}),
        ("placements", {"processors": [-2, 3]}),
        ("placements", {"processors": [2, 4]}),
        ("placements", {"taken": [2, 4]}),
        ("placements", {"node": [0, 0]}),
    ],
)
def test_views_of_other_nodes_or_of_more_than_they_have_are_refused(part: str, changed: dict[str, Any]) -> None:
    view = first_view()
    assert ask(view) == Start(0, nodes=(0, 1), processors=(2, 1))
    columns = {name: np.array(column) for name, column in changed.items()}
    with pytest.raises(InputError, match=r"^view\.nodes"):
        ask(replace(view, **{part: getattr(view, part)._replace(**columns)}))


@pytest.mark.parametrize(("processors", "asked"), [(3.0, {"gpus": 1.0}), (8.0, {"nodes": 1.0}), (5.0, {"nodes": 1.0})])
def test_jobs_that_fit_on_no_idle_nodes_are_refused(processors: float, asked: dict[str, float]) -> None:
    view = first_view(**asked)
    with pytest.raises(InputError, match=r"view\.queue: job 2 asks for more than idle nodes .*leave the job out"):
        ask(replace(view, queue=view.queue._replace(processors=np.array([processors]))))


@pytest.mark.parametrize("name", ["nodes", "gpus", "partition", "requested_memory_kb"])
def test_infinite_attributes_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=rf"view\.queue\.attributes\.{name}: is infinite"):
        ask(first_view(**{name: np.inf}))


@pytest.mark.parametrize("nodes", [0.0, -3.0, 2.5])
def test_numbers_of_nodes_that_no_job_can_ask_for_are_refused(nodes: float) -> None:
    message = rf"view\.queue\.attributes\.nodes: row 0 is {nodes:g} \(give whole numbers >= 1, NaN for any number\)"
    with pytest.raises(InputError, match=message):
        ask(first_view(nodes=nodes))


def test_a_job_that_is_submitted_later_is_refused() -> None:
    view = first_view()
    with pytest.raises(InputError, match=r"view\.queue\.submit_s: is 9, after now_s 1 \(leave out later jobs\)"):
        ask(replace(view, queue=view.queue._replace(submit_s=np.array([9.0]))))


@pytest.mark.parametrize("part", ["nodes", "placements", "queue", "running", "supply"])
def test_a_view_without_a_part_is_refused(part: str) -> None:
    with pytest.raises(InputError, match=rf"view\.{part}: is None \(give its columns"):
        ask(replace(first_view(), **{part: None}))


@pytest.mark.parametrize("nodes", [("0", "1"), (0.0, 1.0), (True, False), "01", np.array([0, 1]), None, ([0], 1)])
def test_nodes_that_are_no_whole_numbers_are_refused(nodes: Any) -> None:
    session = Session(four_wide(), TWO_NODES, None, Rules(), Program(name="mine"))
    assert session.view() is not None
    with pytest.raises(InputError, match=r"mine: chose nodes .*give a tuple of whole numbers"):
        session.apply(Start(0, nodes=nodes))
    with pytest.raises(InputError, match=r"mine: chose processors .*give a tuple of whole numbers"):
        session.apply(Start(0, nodes=(0, 1), processors=nodes))


def test_processors_without_nodes_are_refused() -> None:
    session = Session(four_wide(), TWO_NODES, None, Rules(), Program(name="mine"))
    assert session.view() is not None
    with pytest.raises(InputError, match="mine: chose processors without nodes"):
        session.apply(Start(0, processors=(4,)))


def test_an_answer_names_each_node_once() -> None:
    how = scheduler(Divided((1, 1)))
    view = Session(four_wide(), TWO_NODES, None, Rules(), Program(name="system")).view()
    assert view is not None
    assert driver_of(how, four_wide(), TWO_NODES, Rules()).decide(view) == Start(0, nodes=(0, 1), processors=(3, 1))


def test_a_memory_fits_the_same_cluster_from_another_file(memory: Path) -> None:
    here = replace(TWO_NODES, sources={"here/slurm.conf": "0"}, notes=("read from here",))
    there = replace(TWO_NODES, sources={"there/slurm.conf": "0"})
    assert here == there
    driver_of(scheduler("fcfs+easy"), four_wide(), here, Rules()).save(memory)
    driver_of(scheduler("fcfs+easy"), four_wide(), there, Rules()).load(memory)
    other = replace(TWO_NODES, contention="repaired")
    with pytest.raises(InputError, match="was saved with another cluster"):
        driver_of(scheduler("fcfs+easy"), four_wide(), other, Rules()).load(memory)


def test_a_node_that_is_named_twice_is_refused() -> None:
    session = Session(four_wide(), TWO_NODES, None, Rules(), Program(name="mine"))
    assert session.view() is not None
    with pytest.raises(InputError, match=r"mine: chose nodes \(0, 0\) \(name each node once\)"):
        session.apply(Start(0, nodes=(0, 0), processors=(1, 1)))


# ---------------------------------------------------------------- nodes that boot

BOOTS = {"boot_s": 14.0, "boot_energy_j": 1000.0, "shutdown_s": 9.0, "shutdown_energy_j": 80.0, "min_on_s": 6.0}
BOOTING = Cluster.of_nodes(
    [NodeGroup(name="a", count=2, processors=3, static_power_w=60.0, idle_fraction=0.5, **BOOTS),
     NodeGroup(name="b", count=1, processors=4, static_power_w=40.0, idle_fraction=0.5, **BOOTS)],
    power_on="on-demand",
)  # fmt: skip
WEATHER = Site(name="s", step_s=8.0, sources_w={"sun": np.array([0.0, 90.0, 200.0, 40.0])}, repeat=True)


@pytest.mark.parametrize("name", [
    "fcfs+easy", "f2+green:sigma=300", "min-min", "lptpn:sigma=300", "green-threshold:tick=7:limit=60",
    "foresee:horizon=60:tick=7:slowdown=900:limit=40", "cheapest-start:horizon=60:tick=7", "ga:evaluations=60+easy",
    "rolling:futures=1:horizon=3600",
])  # fmt: skip
def test_schedulers_on_nodes_that_boot(name: str) -> None:
    """A view shows what nodes do and until when; seed 3 has a decision at the instant at which a boot ends."""
    how, searches = scheduler(name), name.startswith(("ga", "aco", "rolling"))
    n = 9 if searches else 15
    for seed, cap_w in [(0, 265.0)] if searches else [(0, 265.0), (3, 0.0), (3, 265.0)]:
        rules = Rules(event_rule="per_instant", ties="completion_first", power_cap_w=cap_w)
        draw = np.random.default_rng(seed)
        run_s = draw.integers(1, 12, n)
        columns = {
            "run_time_s": run_s, "requested_time_s": run_s + draw.integers(0, 4, n),
            "submit_s": np.sort(draw.integers(0, 60, n)), "processors": draw.integers(1, 6, n),
            "power_w": draw.integers(1, 60, n).astype(float), "nodes": np.full(n, -1),
        }  # fmt: skip
        jobs = Workload.from_columns("random", columns)
        outcome = same_schedule(how, jobs, BOOTING, WEATHER, rules)
        assert outcome.switching is not None
        assert outcome.switching.energy_j.sum() > 200.0 * n


def test_a_node_that_does_nothing_known_is_refused() -> None:
    how, jobs = scheduler("fcfs+easy"), Workload.from_columns("one", {
        "submit_s": [0], "run_time_s": [5], "processors": [2], "power_w": [1.0], "nodes": [-1],
    })  # fmt: skip
    view = Session(jobs, BOOTING, WEATHER, Rules(), Program(name="system")).view()
    assert view is not None
    wrong = view.nodes._replace(phase=np.array([0, 4, 1]))
    with pytest.raises(InputError, match="are not those of the cluster"):
        driver_of(how, jobs, BOOTING, Rules()).decide(replace(view, nodes=wrong))
