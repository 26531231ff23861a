"""Policies that choose a job and a node: what they see, what they may choose, where jobs start, and their rewards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import example, given, settings
from hypothesis import strategies as st

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.engine.observe.batch import observe_view
from greenbatch.engine.observe.pair_features import PAIR_FEATURES
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.check import checked_view
from greenbatch.engine.views.decode_nodes import MachineOfViews
from greenbatch.engine.views.driver import ViewDriver
from greenbatch.engine.views.interface import Running, Start, View, Wait
from greenbatch.engine.views.session import Session
from greenbatch.envs.batch import BatchEnv, Observation
from greenbatch.envs.single import SchedulingEnv
from greenbatch.errors import InputError
from greenbatch.metrics import evaluate
from greenbatch.presets.preset import Preset, check, preset, refuse_preset
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

pytestmark = pytest.mark.plain

JOBS = 30


BOOTS = {"boot_s": 40.0, "boot_energy_j": 3000.0, "shutdown_s": 15.0, "shutdown_energy_j": 500.0, "min_on_s": 20.0}


def cluster(contention: str = "none", power_on: str = "always") -> Cluster:
    """Seven nodes of three kinds, one of them with a GPU and little memory."""
    kinds = ((3, 8, 1.4, 64.0, 0, 68.8, 6.5), (2, 16, 1.2, 16.0, 1, 50.0, 5.0), (2, 48, 1.0, 96.0, 0, 35.1, 3.3))
    groups = tuple(
        NodeGroup(
            name=f"g{k}-", count=count, processors=processors, speed=speed, memory_gb=memory_gb, gpus=gpus,
            static_power_w=static_w, idle_fraction=0.4, power_per_processor_w=processor_w, power_per_gpu_w=100.0,
            **(BOOTS if power_on == "on-demand" else {}),
        )
        for k, (count, processors, speed, memory_gb, gpus, static_w, processor_w) in enumerate(kinds)
    )  # fmt: skip
    return Cluster.of_nodes(groups, contention=contention, power_on=power_on)


def question(seed: int, contention: str = "none", power_on: str = "always", *, single: bool = True) -> Scenario:
    """Three windows of random jobs, all different, some with a GPU, some with an energy budget."""
    random, n = np.random.default_rng(seed), 3 * JOBS
    run_s = np.round(random.lognormal(3, 1, n)).clip(1)
    processors = random.choice([1, 2, 4, 8], n)
    columns: dict[str, Any] = {
        "job_id": np.arange(n), "submit_s": np.cumsum(random.exponential(6.0, n)).round(1), "run_time_s": run_s,
        "requested_time_s": run_s * random.choice([1.0, 1.5, 3.0], n), "processors": processors,
        "nodes": np.where(single, 1, random.choice([-1, 1, 2], n)), "gpus": random.choice([-1, -1, 1], n),
        "requested_memory_kb": random.choice([0.0, 1e6], n), "memory_volume_mb": random.choice([1.0, 1e4, 1e6], n),
        "requested_energy_j": random.choice([0.0, 1.3], n) * run_s * 3 * (35.1 + 100.0) / 1.0,
    }  # fmt: skip
    base = load_scenario("ineps/adaptability-mixed")
    jobs = Workload.from_columns("random", columns)
    rules = Rules(overrun="extend")
    return replace(base, workload=jobs, cluster=cluster(contention, power_on), rules=rules, site=None)


def every_feature(**changes: Any) -> Preset:
    """ineps-plus with a column for every feature of pairs, not scaled."""
    made = preset("ineps-plus").model_dump()
    made["observation"]["queue"]["columns"] = [{"feature": name} for name in ("is_wait", "wait", *PAIR_FEATURES)]
    made["network"] = {"kind": "linear"}
    return check(made | changes)


def at_random(seen: Observation, random: np.random.Generator) -> np.ndarray:
    """An action for each simulation."""
    rows = [
        random.choice(np.flatnonzero(seen.selectable[low:high]))
        for low, high in zip(seen.queue_offsets[:-1], seen.queue_offsets[1:], strict=True)
    ]
    return np.column_stack([rows, np.zeros(len(rows), np.int64)])


def decision(row: int, view: View, env: BatchEnv) -> Start | Wait:
    """What a row of an observation means for a view."""
    jobs, nodes = min(len(view.job_id), env.layout.queue_rows), len(view.nodes.processors)
    return Wait() if row == jobs * nodes else Start(row // nodes, nodes=(row % nodes,))


def shown(view: View, env: BatchEnv) -> Any:
    """The observation of a view."""
    assert view.cluster.on_nodes
    return observe_view(view, env.layout, MachineOfViews(view.cluster)(view))


@settings(max_examples=5, deadline=None)
@given(
    st.integers(0, 10_000), st.sampled_from(["none", "irmasim-v1", "repaired"]), st.booleans(),
    st.sampled_from(["always", "first-use"]),
)  # fmt: skip
@example(1, "repaired", True, "on-demand")
@example(2, "none", False, "on-demand")
def test_a_view_shows_what_a_batch_shows(seed: int, contention: str, single: bool, power_on: str) -> None:
    """The same decisions in a batch and in a session, at every step: same rows, same choices, same starts."""
    asked, random, start = question(seed, contention, power_on, single=single), np.random.default_rng(seed), JOBS
    env = BatchEnv(asked, every_feature(), environments=1, jobs=JOBS)
    seen = env.reset([start])
    program = Program(name="driven", settings=dict(env.preset.settings))
    session = Session(asked.window(start, JOBS), asked.cluster, None, asked.rules, program)
    assert asked.cluster.on_nodes
    machines, decisions = MachineOfViews(asked.cluster), 0
    while len(seen.environment):
        view = session.view()
        assert view is not None
        other = observe_view(view, env.layout, machines(view))
        if not other.selectable[:-1].any():  # the batch does not ask then
            session.apply(Wait())
            continue
        np.testing.assert_array_equal(other.selectable, seen.selectable)
        np.testing.assert_allclose(other.queue, seen.queue, rtol=2e-6, atol=1e-6)
        action = at_random(seen, random)
        session.apply(decision(int(action[0, 0]), view, env))
        seen, _, _ = env.step(action)
        decisions += 1
    while (view := session.view()) is not None:
        session.apply(Wait())
    assert decisions >= JOBS
    np.testing.assert_array_equal(session.outcome().start_s, env.starts_s[0])


def busy_view(seed: int = 3) -> tuple[View, BatchEnv]:
    """A view with running and waiting jobs, and an environment with its layout."""
    asked = question(seed)
    env = BatchEnv(asked, every_feature(), environments=1, jobs=JOBS)
    session = Session(asked.window(0, JOBS), asked.cluster, None, asked.rules, Program(name="x"))
    view = session.view()
    while view is not None and (len(view.placements.node) < 3 or len(view.job_id) < 2):
        pairs = np.flatnonzero(shown(view, env).selectable[:-1])
        session.apply(decision(int(pairs[0]), view, env) if pairs.size else Wait())
        view = session.view()
    assert view is not None
    return view, env


def test_a_view_may_have_columns_of_other_types() -> None:
    view, env = busy_view()
    placed = view.placements._replace(node=view.placements.node.astype(np.int16), gpus=view.placements.gpus * 1.0)
    free = np.asfortranarray(np.column_stack([view.nodes.free_processors] * 2).astype(np.int32))[:, 0]
    other = replace(view, placements=placed, nodes=view.nodes._replace(free_processors=free))
    for ours, theirs in zip(shown(other, env), shown(view, env), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("column", "value"), [("node", 7), ("node", -1), ("running", 10_000), ("running", -1)])
def test_placements_of_no_job_or_node_are_refused(column: str, value: int) -> None:
    view, env = busy_view()
    wrong = getattr(view.placements, column).copy()
    wrong[-1] = value
    with pytest.raises(InputError, match="do not fit its queue, its running jobs or the nodes"):
        shown(replace(view, placements=view.placements._replace(**{column: wrong})), env)


@pytest.mark.parametrize("part", ["placements", "nodes", "running"])
def test_columns_of_unequal_length_are_refused(part: str) -> None:
    view, env = busy_view()
    last = {"running": "start_s", "nodes": "is_on", "placements": "memory_volume_mb"}[part]
    columns = getattr(view, part)._replace(**{last: getattr(getattr(view, part), last)[1:]})
    with pytest.raises(InputError, match="do not fit its queue, its running jobs or the nodes"):
        shown(replace(view, **{part: columns}), env)


def test_placements_follow_running_jobs_that_are_put_in_order() -> None:
    view, _ = busy_view()
    running = Running(*(column[::-1] for column in view.running))
    placed = view.placements._replace(running=len(running.job_id) - 1 - view.placements.running)
    ordered = checked_view(
        replace(view, running=running, placements=placed), Program(name="x"), -np.inf, question(3).cluster
    )
    np.testing.assert_array_equal(ordered.running.job_id, view.running.job_id)
    np.testing.assert_array_equal(ordered.placements.running, view.placements.running)


def played(asked: Scenario, made: Preset, start: int) -> tuple[BatchEnv, np.ndarray, Outcome]:
    """A window played at random: environment, sum of the rewards, and the schedule's outcome."""
    env, random = BatchEnv(asked, made, environments=1, jobs=JOBS), np.random.default_rng(0)
    seen, total = env.reset([start]), 0.0
    program = Program(name="driven", settings=dict(env.preset.settings))
    session = Session(asked.window(start, JOBS), asked.cluster, None, asked.rules, program)
    while len(seen.environment):
        view = session.view()
        assert view is not None
        if not shown(view, env).selectable[:-1].any():
            session.apply(Wait())
            continue
        action = at_random(seen, random)
        session.apply(decision(int(action[0, 0]), view, env))
        seen, reward, _ = env.step(action)
        total += float(reward[0])
    while (view := session.view()) is not None:
        session.apply(Wait())
    return env, np.array(total), session.outcome()


@pytest.mark.parametrize(("term", "weight", "contention"), [("energy_kwh", -1.0, "repaired"), ("edp_js", -2.0, "none")])
def test_rewards_add_up_to_the_metric(term: str, weight: float, contention: str) -> None:
    made = every_feature(reward={"terms": {term: weight}, "form": "dense"})
    _, total, outcome = played(question(3, contention), made, 2 * JOBS)
    assert total == pytest.approx(weight * evaluate(outcome)[term], rel=1e-9)


def test_published_rewards_are_the_products_of_increments() -> None:
    made = every_feature(reward={"terms": {"edp_steps_js": 1.0, "energy_kwh": 0.0}, "form": "dense"})
    env, random = BatchEnv(question(4), made, environments=1, jobs=JOBS), np.random.default_rng(1)
    seen, last_s, energy_kwh, products = env.reset([0]), float(question(4).workload.submit_s[0]), 0.0, 0.0
    while len(seen.environment):
        seen, reward, _ = env.step(at_random(seen, random))
        more_j = (env.values[0, 1] - energy_kwh) * 3.6e6
        assert reward[0] == pytest.approx(more_j * (env.now_s[0] - last_s), rel=1e-6, abs=1e-6)
        last_s, energy_kwh = env.now_s[0], env.values[0, 1]
        products += float(reward[0])
    assert products == pytest.approx(env.values[0, 0], rel=1e-9)
    assert products < energy_kwh * 3.6e6 * last_s  # the energy-delay product


def table_1(view: View, job: int, node: int) -> dict[str, float]:
    """InEPS's features of a pair, from its text (section 3.3)."""
    assert view.cluster.on_nodes
    group = [g for g in view.cluster.groups for _ in range(g.count)][node]
    here = view.placements.node == node
    busy, jobs = int(view.placements.processors[here].sum()), int(here.sum())
    asked = float(view.queue.processors[job])
    own_w = asked * group.power_per_processor_w + max(0.0, np.nan_to_num(view.attributes.gpus[job])) * 100.0
    estimate_j = view.queue.requested_time_s[job] / group.speed * (group.static_power_w / (jobs + 1) + own_w)
    return {
        "wait": view.now_s - view.queue.submit_s[job],
        "availability": (group.processors - busy) / group.processors,
        "static_power": group.static_power_w if jobs else group.static_power_w * 0.4,
        "dynamic_power": busy * group.power_per_processor_w,
        "energy_estimate": estimate_j,
        "node_processors": group.processors,
        "free_share": view.queue.free_processors / view.queue.total_processors,
    }


def test_features_are_those_of_table_1() -> None:
    asked, random = question(5), np.random.default_rng(2)
    env = BatchEnv(asked, every_feature(), environments=1, jobs=JOBS)
    names, nodes = [c.feature for c in env.preset.observation.queue.columns], 7
    session = Session(asked.window(0, JOBS), asked.cluster, None, asked.rules, Program(name="x"))
    compared = 0
    while (view := session.view()) is not None:
        seen = shown(view, env)
        pairs = np.flatnonzero(seen.selectable[:-1])
        if not pairs.size:
            session.apply(Wait())
            continue
        for pair in pairs:
            for name, value in table_1(view, pair // nodes, pair % nodes).items():
                assert seen.queue[pair, names.index(name)] == pytest.approx(value, rel=1e-5), name
                compared += 1
        chosen = int(random.choice(pairs))
        session.apply(Start(chosen // nodes, nodes=(chosen % nodes,)))
        placed = session.state.machine.placed[session.state.machine.counts.placed - 1]
        assert placed.node == chosen % nodes
    assert compared > 1000


@pytest.mark.parametrize(("widths", "expected"), [((4, 0), 0.9), ((2, 2), 0.6), ((2, 0), 1.0)])
def test_a_job_ends_sooner_on_a_fast_node_that_it_waits_for(widths: tuple[int, int], expected: float) -> None:
    """A job of four processors and 100 s runs for 50 s on the fast node, on which others end after 5 and 20 s.

    It has room there now, when the first one has ended, or when both have.
    """
    groups = (
        NodeGroup(
            name=name,
            count=1,
            processors=4 + (name == "fast" and widths == (2, 0)) * 2,
            static_power_w=10.0,
            speed=speed,
        )
        for name, speed in (("fast", 2.0), ("slow", 1.0))
    )
    others = [(width, 10.0 * 4**k) for k, width in enumerate(widths) if width]
    jobs = Workload.from_columns("x", {
        "submit_s": np.zeros(len(others) + 1), "run_time_s": np.array([*(s for _, s in others), 100.0]),
        "processors": np.array([*(width for width, _ in others), 4]),
    })  # fmt: skip
    asked = replace(question(0), workload=jobs, cluster=Cluster.of_nodes(tuple(groups)))
    env = BatchEnv(asked, every_feature(), environments=1, jobs=len(jobs))
    seen = env.reset([0])
    for _ in others:
        seen, _, _ = env.step(np.zeros((1, 2), np.int64))
    column = 2 + list(PAIR_FEATURES).index("relative_finish")
    np.testing.assert_allclose(seen.queue[:2, column], [0.0, expected], rtol=1e-6)


@pytest.mark.parametrize("backfill", ["easy+worst-fit", "none+random", "easy+high-total-cores"])
def test_an_agent_leaves_the_nodes_to_a_placement(backfill: str) -> None:
    """One that always takes the first job does what first come, first served does, at the same energy."""
    asked = question(7)
    made = check({**preset("rlscheduler").model_dump(), "reward": {"terms": {"energy_kwh": -1.0}}})
    env = BatchEnv(asked, made, environments=1, jobs=JOBS, backfill=backfill)
    seen = env.reset([0])
    while len(seen.environment):
        seen, _, _ = env.step(np.zeros((1, 2), np.int64))
    parts = asked.window(0, JOBS), asked.cluster, None, replace(asked.rules, commitment="sticky")
    placed, first = (simulate(*parts, scheduler(f"fcfs+{name}")) for name in (backfill, backfill.partition("+")[0]))
    np.testing.assert_array_equal(env.starts_s[0], placed.start_s)
    assert env.values[0, 0] == pytest.approx(evaluate(placed)["energy_kwh"], rel=1e-9)
    assert env.values[0, 0] != pytest.approx(evaluate(first)["energy_kwh"], rel=1e-3)


def test_a_preset_may_name_a_placement() -> None:
    made = check({**preset("rlscheduler").model_dump(), "backfill": "easy+worst-fit"})
    env = BatchEnv(question(7), made, environments=1, jobs=JOBS)
    assert (env.program.backfill, env.program.placement) == ("easy", "worst-fit")
    with pytest.raises(InputError, match=r"backfill: 'worst' is not known .did you mean worst-fit"):
        check({**preset("rlscheduler").model_dump(), "backfill": "easy+worst"})
    with pytest.raises(InputError, match="does not support a placement"):
        refuse_preset(
            made.model_copy(update={"network": {"kind": "node-prices"}, "backfill": "none+pack"}), question(7)
        )


def test_every_window_has_its_own_jobs() -> None:
    """A window that does not begin with the first job is played like the same jobs on their own."""
    asked, alone = question(6), scheduler("fcfs+first-fit+first")
    free = replace(asked, workload=asked.workload.with_columns(requested_energy_j=np.zeros(3 * JOBS)))
    env = BatchEnv(free, every_feature(), environments=3, jobs=JOBS)
    seen = env.reset([0, JOBS, 2 * JOBS])
    while len(seen.environment):  # the first pair in order of jobs and nodes
        first = [int(np.argmax(seen.selectable[low:])) for low in seen.queue_offsets[:-1]]
        seen, _, _ = env.step(np.column_stack([first, np.zeros(len(first), np.int64)]))
    for k in range(3):
        outcome = simulate(free.window(k * JOBS, JOBS), free.cluster, None, free.rules, alone)
        np.testing.assert_array_equal(env.starts_s[k], outcome.start_s)


def test_other_jobs_are_submitted_at_the_times_of_the_window() -> None:
    asked, random = question(13), np.random.default_rng(0)
    free = asked.workload.with_columns(requested_energy_j=np.zeros(3 * JOBS))
    others = random.integers(0, 3 * JOBS, (2, JOBS))
    env = BatchEnv(replace(asked, workload=free), every_feature(), environments=2, jobs=JOBS)
    seen = env.reset([5, JOBS], others)
    while len(seen.environment):
        first = [int(np.argmax(seen.selectable[low:])) for low in seen.queue_offsets[:-1]]
        seen, _, _ = env.step(np.column_stack([first, np.zeros(len(first), np.int64)]))
    for k, start in enumerate((5, JOBS)):
        times = {"job_id": np.arange(JOBS), "submit_s": free.submit_s[start : start + JOBS]}
        outcome = simulate(free.take(others[k]).with_columns(**times), asked.cluster, None, asked.rules,
                           scheduler("fcfs+first-fit+first"))  # fmt: skip
        np.testing.assert_array_equal(env.starts_s[k], outcome.start_s)


@pytest.mark.parametrize("name", ["ineps", "ineps-plus", "ineps-plus-edp"])
def test_presets_run_in_gymnasium(name: str) -> None:
    check_env(SchedulingEnv(question(7), name, jobs=10), skip_render_check=True)


def test_another_trainer_runs_on_pairs() -> None:
    """sb3-contrib's MaskablePPO, unchanged."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sb3_contrib import MaskablePPO

        env = SchedulingEnv(question(8), "ineps", jobs=10)
        agent = MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu")
        before = [each.detach().clone() for each in agent.policy.parameters()]
        agent.learn(32)
    assert any((a != b).any() for a, b in zip(before, agent.policy.parameters(), strict=True))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [((7,), "chose node 7 of 7"), ((-1,), "chose node -1 of 7"), ((3,), "chose node 3 for job 0, which has no room")],
)
def test_impossible_nodes_are_refused(nodes: tuple[int, ...], message: str) -> None:
    asked = question(9)
    jobs = asked.window(0, 2).with_columns(processors=np.array([40, 1]), requested_memory_kb=np.zeros(2))
    session = Session(jobs, asked.cluster, None, asked.rules, Program(name="mine"))
    assert session.view() is not None
    with pytest.raises(InputError, match=message):
        session.apply(Start(0, nodes=nodes))


def test_several_nodes_are_taken_in_the_order_chosen() -> None:
    asked = question(10)
    jobs = asked.window(0, 1).with_columns(processors=np.array([6]), nodes=np.array([3]), gpus=np.array([-1]))
    session = Session(jobs, asked.cluster, None, asked.rules, Program(name="mine"))
    assert session.view() is not None
    session.apply(Start(0, nodes=(6, 2)))
    assert session.view() is None
    placements = session.outcome().placements
    assert placements is not None
    assert placements.node.tolist() == [6, 2, 0]


def test_pairs_have_no_features_of_brown_energy() -> None:
    made = preset("ineps-plus").model_dump()
    made["observation"]["queue"]["columns"] = [{"feature": "brown_ratio"}]
    with pytest.raises(InputError, match="'brown_ratio' is not known"):
        check(made)


@pytest.mark.parametrize(
    ("part", "changes", "message"),
    [
        ("queue", {"per_node": False}, "relative_energy is a feature of pairs: it needs per_node = true"),
        ("queue", {"columns": []}, r"observation\.queue\.columns: is empty"),
        ("queue", {"rows": 0}, r"observation\.queue\.rows: is 0"),
        ("reward", {"terms": {}}, r"reward\.terms: is empty"),
        ("action", {"delays": []}, r"action\.delays: is empty"),
    ],
)
def test_what_is_missing_is_named(part: str, changes: dict[str, Any], message: str) -> None:
    made = preset("ineps-plus").model_dump()
    (made["observation"] if part == "queue" else made)[part] |= changes
    with pytest.raises(InputError, match=message):
        check(made)


def test_a_single_delay_is_refused_with_pairs() -> None:
    made = preset("ineps-plus").model_dump()
    made["action"]["delays"] = [{"kind": "seconds", "amount": 60.0}]
    made["settings"]["sticky"] = 1.0
    with pytest.raises(InputError, match=r"ineps-plus chooses among the pairs that fit now, so it neither delays"):
        BatchEnv(question(11), check(made), environments=1, jobs=10)


def test_pairs_need_nodes() -> None:
    with pytest.raises(InputError, match="ineps-plus chooses nodes, and the cluster is a pool of processors"):
        BatchEnv(load_scenario("default"), "ineps-plus", environments=1, jobs=10)


class OnTheLastNode:
    """First come, first served, each on the last node."""

    def decide(self, view: View) -> Start | Wait:
        """Start the first job if the last node is free."""
        free = int(view.nodes.free_processors[-1])
        return Start(0, nodes=(len(view.nodes.processors) - 1,)) if free >= view.queue.processors[0] else Wait()


def test_a_policy_object_chooses_nodes() -> None:
    asked = question(11)
    jobs = asked.window(0, JOBS).with_columns(gpus=np.full(JOBS, -1), requested_energy_j=np.zeros(JOBS))
    outcome = simulate(jobs, asked.cluster, None, asked.rules, scheduler(OnTheLastNode()))
    assert outcome.placements is not None
    assert set(outcome.placements.node.tolist()) == {6}


def test_a_driver_of_views_passes_the_nodes_on() -> None:
    asked = question(12)
    jobs = asked.window(0, 1).with_columns(gpus=np.array([-1]), requested_energy_j=np.zeros(1))
    decider = scheduler(OnTheLastNode())
    driver = ViewDriver(decider.program(jobs), decider.policy(), asked.cluster, asked.rules)
    view = Session(jobs, asked.cluster, None, asked.rules, Program(name="system")).view()
    assert view is not None
    answer = driver.decide(view)
    assert isinstance(answer, Start)
    assert answer.nodes == (6,)
    assert answer.processors == (jobs.processors[0],)
