"""A scheduler that is asked one decision at a time, from views alone, starts every job when a simulation does."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import ESTIMATES, clusters, job_lists, site, supplies, workload
from digests import CLUSTER, SITE, random_jobs
from driven import driver_of, run_from_views
from hypothesis import given, settings
from hypothesis import strategies as st

import greenbatch as gb
from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Attributes, Decision, Nodes, Queue, Running, Start, Supply, View, Wait
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.models.find import shipped_models
from greenbatch.schedulers import entries, scheduler
from greenbatch.workload import Workload

BACKFILLS = ("none", "easy", "easy-schedgym", "easy-green-order", "green:sigma=200", "conservative")
ELSEWHERE = ("random", "ga", "aco", "ga-published")
"""The order of ``random`` is drawn for a known number of jobs; searches have tests of their own with less work."""
POLICIES = sorted(
    name for name, entry in entries().items() if entry.backfills and entry.built_in and name not in ELSEWHERE
)
"""All others that can be combined with a backfilling."""
PLANNERS = (
    "lptpn:sigma=200",
    "lptpn-published:sigma=200",
    "min-min",
    "max-min",
    "cheapest-start:horizon=60:tick=7:short=6:hold=900",
    "cheapest-start:horizon=40:tick=3:psi=30:reserve=0",
    "foresee:horizon=60:tick=7:slowdown=900:idle=2:limit=40",
    "green-threshold:tick=7:slowdown=3:share=0.1",
    "foresee:horizon=40:tick=3:slowdown=90:idle=0:reserve=0.3:learned=0:wide=1",
)
MODELS = (
    "gas-marl-plus@cirne", "gas-marl-plus@default", "gas-marl-plus@jann", "gas-marl-plus@lublin-256",
    "green-ineps@lublin-256", "cost-aware-plus@hpc2n",
)  # fmt: skip
RULES = (("sticky", "reconsider"), ("per_event", "per_instant"), ("kill", "extend"))
"""Choices of commitment, of the event rule and of what happens to overruns."""
UNITS_S = (1.0, 0.1, 1 / 3, 0.7)
"""Units of times."""
HOUR_S = 3600.0


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for what a scheduler remembers."""
    return tmp_path_factory.mktemp("memory") / "memory.npz"


def same_starts(how: Any, jobs: Any, cluster: Any, power: Any, rules: Rules, **given: Any) -> None:
    """The starts of a simulation, and those of a batch system that asks for one decision at a time."""
    wanted = simulate(jobs, cluster, power, rules, how).start_s
    np.testing.assert_array_equal(run_from_views(how, jobs, cluster, power, rules, **given).start_s, wanted)


@st.composite
def rule_sets(draw: st.DrawFn) -> Rules:
    """All options of the batch system."""
    return Rules(
        commitment=draw(st.sampled_from(["sticky", "reconsider"])),
        event_rule=draw(st.sampled_from(["per_event", "per_instant"])),
        ties=draw(st.sampled_from(["arrival_first", "completion_first"])),
        overrun=draw(st.sampled_from(["kill", "extend"])), tick_s=draw(st.sampled_from([0.0, 7.0])),
    )  # fmt: skip


def restarts() -> st.SearchStrategy[Callable[[int], bool]]:
    """At no decision, at some, or at every third."""
    some = st.sets(st.integers(1, 40), max_size=4).map(lambda chosen: chosen.__contains__)
    return some | st.just(lambda number: number % 3 == 0)


@pytest.mark.parametrize("backfill", BACKFILLS)
@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_priority_rules(memory: Path, backfill: str, data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    unit_s = data.draw(st.sampled_from(UNITS_S))
    jobs = workload(data.draw(job_lists(cluster.processors, data.draw(st.sampled_from(ESTIMATES)), unit_s=unit_s)))
    power = site(data.draw(supplies(unit_s=data.draw(st.sampled_from([1.0, unit_s])))))
    names = st.sampled_from(POLICIES).filter(lambda name: (name, backfill) != ("slurm-multifactor", "conservative"))
    how = scheduler(f"{data.draw(names)}+{backfill}")
    given = {"restart": data.draw(restarts()), "memory": memory}
    same_starts(how, jobs, cluster, power, data.draw(rule_sets()), **given)


@pytest.mark.parametrize("name", PLANNERS)
@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_planners(memory: Path, name: str, data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    unit_s = data.draw(st.sampled_from(UNITS_S))
    jobs = workload(data.draw(job_lists(cluster.processors, data.draw(st.sampled_from(ESTIMATES)), unit_s=unit_s)))
    power = site(data.draw(supplies(unit_s=unit_s)))
    given = {"restart": data.draw(restarts()), "memory": memory}
    same_starts(scheduler(name), jobs, cluster, power, data.draw(rule_sets()), **given)


def test_a_slot_that_begins_between_two_floats(memory: Path) -> None:
    """The job ends at 15 1/3 s, where the quotient by the step is rounded below the slot that begins there."""
    columns = {
        "submit_s": [0.0, 3.0, 4.0, 12.0], "run_time_s": [12.0, 28.0, 26.0, 20.0], "processors": [5, 8, 2, 2],
        "requested_time_s": [906.0, 10.0, 18.0, 15.0], "power_w": [48.7, 39.2, 41.6, 36.1],
    }  # fmt: skip
    power = Site(
        name="s", step_s=10 / 3, sources_w={"all": np.array([43.0, 153.0, 85.0])}, repeat=True, origin_s=-18.0,
        forecast_horizon_s=10 / 3,
    )  # fmt: skip
    rules = Rules(commitment="sticky", event_rule="per_instant", overrun="extend")
    cluster = Cluster.pooled(8, idle_power_per_machine_w=3.7)
    same_starts(scheduler("wfp3+green:sigma=70"), Workload.from_columns("w", columns), cluster, power, rules)


@pytest.mark.parametrize("backfill", BACKFILLS)
def test_every_policy_under_every_rule(memory: Path, backfill: str) -> None:
    """A table: half of the policies, restarted now and then, by turns under all combinations of rules.

    The other half is driven under the backfillings before and after it.
    """
    policies = [each for each in POLICIES if not (each == "slurm-multifactor" and backfill == "conservative")]
    place, options = BACKFILLS.index(backfill), list(itertools.product(*RULES))
    for turn, policy in enumerate(policies[place % 2 :: 2], start=place):
        commitment, event_rule, overrun = options[turn % len(options)]
        rules: Any = {"commitment": commitment, "event_rule": event_rule, "overrun": overrun}
        rules["ties"], rules["tick_s"] = ("arrival_first", "completion_first")[turn // 2 % 2], 6.0 * (turn % 3 == 0)
        jobs, how = workload(random_jobs(turn, 10)), scheduler(f"{policy}+{backfill}")
        same_starts(how, jobs, CLUSTER, SITE, Rules(**rules), restart=lambda k: k % 17 == 4, memory=memory)


def test_a_cluster_without_a_site(memory: Path) -> None:
    for number, backfill in enumerate(each for each in BACKFILLS if "green" not in each):
        how, jobs = scheduler(f"wfp3+{backfill}"), workload(random_jobs(number, 16))
        same_starts(how, jobs, CLUSTER, None, Rules(), restart=lambda k: k % 5 == 0, memory=memory)


@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_a_policy_that_remembers_the_use_of_every_user(memory: Path, data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    jobs = workload(data.draw(job_lists(cluster.processors, data.draw(st.sampled_from(ESTIMATES)))))
    user = data.draw(st.lists(st.integers(-1, 3), min_size=len(jobs), max_size=len(jobs)))
    how = scheduler(
        "slurm-multifactor:age=500:max_age=30:fairshare=1000:half_life=40:size=20+"
        + data.draw(st.sampled_from(BACKFILLS[:-1]))
    )
    given = {"restart": data.draw(restarts()), "memory": memory}
    same_starts(
        how,
        jobs.with_columns(user=np.array(user)),
        cluster,
        site(data.draw(supplies())),
        data.draw(rule_sets()),
        **given,
    )


@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_shipped_models(memory: Path, data: st.DataObject) -> None:
    """Distinct submissions: between two arrivals of one instant, a simulation's planner already knows from its baseline
    that the second will come, but one that is driven from views does not."""
    how, cluster = scheduler(data.draw(st.sampled_from(MODELS))), data.draw(clusters())
    estimates = data.draw(st.sampled_from(ESTIMATES))
    jobs = workload(data.draw(job_lists(cluster.processors, estimates, unit_s=1200.0, ties=False)))
    sky = data.draw(st.lists(st.sampled_from([0.0, 100.0, 400.0]), min_size=24, max_size=48))
    power = Site(name="s", step_s=HOUR_S, sources_w={"all": np.array(sky)}, repeat=True)
    given = {"restart": data.draw(restarts()), "memory": memory}
    same_starts(how, jobs, cluster, power, data.draw(rule_sets()), **given)


def test_the_models_are_all_shipped_ones_that_run_on_a_pool() -> None:
    shipped = {name.replace("/", "@") for name in shipped_models()}
    assert {*MODELS, "ineps-plus@default", "ineps-plus-edp@default", "rare-plus@10"} == shipped


def written(folder: Path, spec: dict[str, Any] | None = None) -> str:
    """A network with GAS-MARL's tables and random weights for the default scenario, by its name."""
    import torch

    from greenbatch.learning.networks import build
    from greenbatch.models.model import save_model
    from greenbatch.presets.preset import preset
    from greenbatch.presets.shapes import shapes_of
    from model_records import record_for

    scenario, made = gb.load_scenario("default"), preset("maskable-ppo" if spec else "gas-marl")
    made = made.model_copy(update={"network": spec or made.network})
    actor, _ = build(made.network, shapes_of(made), 0)
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter.mul_(1.7).add_(0.05 * torch.randn(parameter.shape, generator=noise))
    weights = {key: value.numpy() for key, value in actor.state_dict().items()}
    save_model(folder, weights, made, record_for(scenario), scenario=scenario)
    return f"{made.name}@{folder}"


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, gb.Scenario]:
    """A network of GAS-MARL, which chooses delays, with random weights; and a scenario."""
    return written(tmp_path_factory.mktemp("model")), gb.load_scenario("default")


@pytest.mark.parametrize("backfill", ["green", "easy"])
@pytest.mark.parametrize(("start", "commitment"), [(300, "sticky"), (4321, "reconsider")])
def test_a_network_that_delays(
    network: tuple[str, gb.Scenario], memory: Path, backfill: str, start: int, commitment: Any
) -> None:
    name, scenario = network
    window = scenario.window(start, 32)
    how = scheduler(f"{name}+{backfill}")
    rules, given = Rules(commitment=commitment), {"restart": lambda k: k % 9 == 0, "memory": memory}
    same_starts(how, window, scenario.cluster, scenario.site, rules, **given)


def test_a_network_that_samples_resumes_its_random_numbers(network: tuple[str, gb.Scenario], memory: Path) -> None:
    name, scenario = network
    how, window = scheduler(f"{name}:sample=1:seed=3+green"), scenario.window(300, 24)
    given = {"restart": lambda k: k % 9 == 0, "memory": memory}
    same_starts(how, window, scenario.cluster, scenario.site, scenario.rules, **given)


def test_a_network_with_a_memory_resumes_what_it_remembers(tmp_path: Path, memory: Path) -> None:
    how = scheduler(written(tmp_path / "model", {"kind": "recurrent", "hidden": 24}) + ":sample=1:seed=3+easy")
    scenario = gb.load_scenario("default")
    given = {"restart": lambda k: k % 9 == 0, "memory": memory}
    same_starts(how, scenario.window(300, 24), scenario.cluster, scenario.site, scenario.rules, **given)
    smaller = scheduler(written(tmp_path / "smaller", {"kind": "recurrent", "hidden": 8}) + "+easy").policy()
    with pytest.raises(InputError, match="has 48 numbers to remember, the network has 16"):
        smaller.recall(how.policy().memory())


class Alternating:
    """Start the widest or the narrowest job by turns, some after a delay; wait for a while now and then."""

    def __init__(self) -> None:
        self.asked = 0

    def decide(self, view: View) -> Decision:
        self.asked += 1
        turn, widths = self.asked % 5, view.queue.processors
        if turn == 0 and len(view.running.job_id):
            return Wait(view.now_s + 2.5)
        row = int(np.argmax(widths) if turn % 2 else np.argmin(widths))
        if turn == 3:
            return Start.after_seconds(row, 3.0)
        return Start.after_releases(row, 2) if turn == 4 else Start(row)

    def memory(self) -> int:
        return self.asked

    def recall(self, memory: int) -> None:
        self.asked = memory


@pytest.mark.parametrize("backfill", BACKFILLS[:-1])
def test_a_policy_of_ones_own_with_a_memory(memory: Path, backfill: str) -> None:
    how = scheduler(Alternating, backfill=backfill)
    for number, (commitment, event_rule) in enumerate(itertools.product(*RULES[:2])):
        rules: Any = {"commitment": commitment, "event_rule": event_rule}
        given = {"restart": lambda k: k % 7 == 3, "memory": memory}
        same_starts(how, workload(random_jobs(number, 12)), CLUSTER, SITE, Rules(**rules), **given)


@pytest.mark.compiled
@pytest.mark.parametrize("backfill", ["easy", "green:sigma=200", "conservative"])
def test_a_rule_that_cannot_be_compiled(memory: Path, backfill: str) -> None:
    def expansion(queue: Queue) -> Any:
        table = [{"wait": w, "asked": r} for w, r in zip(queue.wait_s, queue.requested_time_s, strict=True)]
        return [-(row["wait"] + row["asked"]) / row["asked"] for row in table]

    how = scheduler(expansion, backfill=backfill)
    assert how.program(workload(random_jobs(0))).compiled is None
    for number, commitment in enumerate(("sticky", "reconsider") * 3):
        rules = Rules(commitment=commitment, overrun="extend" if number % 3 else "kill")  # type: ignore[arg-type]
        jobs = workload(random_jobs(number, 20))
        same_starts(how, jobs, CLUSTER, SITE, rules, restart=lambda k: k % 7 == 3, memory=memory)


def test_random_cannot_be_driven_and_says_so() -> None:
    how, jobs = scheduler("random+easy"), workload(random_jobs(1))
    with pytest.raises(InputError, match=r"random\+easy: returned NaN, or not one score per waiting job"):
        run_from_views(how, jobs, CLUSTER, SITE, Rules())


# ---------------------------------------------------------------- wrong answers

ANSWERS: dict[str, Callable[[View], Any]] = {
    "none": lambda view: None,
    "pair": lambda view: (0,),
    "negative row": lambda view: Start(-1),
    "large row": lambda view: Start(99),
    "row as float": lambda view: Start(0.0),  # type: ignore[arg-type]
    "row as text": lambda view: Start("a"),  # type: ignore[arg-type]
    "kind of delay": lambda view: Start(0, 9, 1.0),
    "text as kind": lambda view: Start(0, "x", 1.0),  # type: ignore[arg-type]
    "text as amount": lambda view: Start(0, 1, "x"),  # type: ignore[arg-type]
    "negative delay": lambda view: Start.after_seconds(0, -5.0),
    "infinite delay": lambda view: Start.after_seconds(0, np.inf),
    "NaN as delay": lambda view: Start.after_seconds(0, np.nan),
    "NaN as wait": lambda view: Wait(np.nan),
    "text as wait": lambda view: Wait("x"),  # type: ignore[arg-type]
    "wait until before": lambda view: Wait(view.now_s - 5.0),
}


def policy_that(answers: Callable[[View], Any]) -> Any:
    class Wrong:
        def decide(self, view: View) -> Any:
            return answers(view)

    return scheduler(Wrong, backfill="easy")


def errors_of(how: Any) -> list[str]:
    """The messages when simulated and when driven."""
    jobs = workload(random_jobs(2))
    with pytest.raises(GreenbatchError) as simulated:
        simulate(jobs, CLUSTER, SITE, Rules(), how)
    with pytest.raises(GreenbatchError) as driven:
        run_from_views(how, jobs, CLUSTER, SITE, Rules())
    return [str(simulated.value), str(driven.value)]


@pytest.mark.parametrize("case", ANSWERS)
def test_a_wrong_answer_of_a_policy_is_refused_as_in_a_simulation(case: str) -> None:
    simulated, driven = errors_of(policy_that(ANSWERS[case]))
    assert simulated == driven
    assert simulated.startswith("Wrong+easy: ")


def test_a_wait_that_ends_now_is_no_progress(impatient: int) -> None:
    """It asks again after the other events of this instant, and forever if there are none."""
    simulated, driven = errors_of(policy_that(lambda view: Wait(view.now_s)))
    assert f"Wrong+easy left 1 jobs waiting forever: {impatient} decisions changed nothing" in simulated
    assert f"left 1 jobs waiting forever: {impatient} decisions changed nothing" in driven


def late_nan(queue: Queue) -> Any:
    return np.where(queue.wait_s > 3.0, np.nan, queue.wait_s)


def only_one(queue: Queue) -> Any:
    return queue.wait_s[:1] * 1.0


def raising(queue: Queue) -> Any:
    if queue.now_s > 5.0:
        raise ValueError("no score")
    return queue.wait_s * 1.0


@pytest.mark.parametrize("rule", [late_nan, only_one, raising])
def test_a_compiled_rule_that_fails_is_refused_as_in_a_simulation(rule: Any) -> None:
    how = scheduler(rule, backfill="easy")
    if rule is not only_one:
        assert how.program(workload(random_jobs(2))).compiled is not None
    simulated, driven = errors_of(how)
    assert simulated == driven
    assert simulated.startswith(f"{rule.__name__}+easy: ")


# ---------------------------------------------------------------- wrong views


def first_view(**changed: Any) -> View:
    """A view of two waiting and two running jobs; ``part__column = value`` changes columns."""
    waiting, running, none = np.array([3, 4]), np.array([7, 8]), np.array([-1.0, -1.0])
    parts: dict[str, Any] = {
        "queue": Queue(5.0, 2.0, 8.0, np.array([1.0, 2.0]), np.array([4.0, 3.0]), np.array([10.0, 20.0]),
                       np.array([6.0, 2.0]), np.array([50.0, 50.0]), none,
                       Attributes(*np.full((len(Attributes._fields), 2), np.nan))),
        "running": Running(running, np.zeros(2), np.array([10.0, 100.0]), np.array([4, 2]), np.full(2, 5.0), none),
        "nodes": Nodes(np.array([8]), np.array([2]), np.array([30.0])),
        "supply": Supply(np.array([0.0, 60.0]), np.array([60.0, 120.0]), np.array([10.0, 10.0]), 0.0, 60.0),
    }  # fmt: skip
    whole: dict[str, Any] = {"now_s": 5.0, "job_id": waiting, "load_w": 100.0, "last_submission_s": 2.0, "submitted": 4}
    whole["cause"] = "arrival"
    for name, value in changed.items():
        part, _, column = name.partition("__")
        if column:
            parts[part] = parts[part]._replace(**{column: value})
        else:
            whole[part] = value
    return View(**whole, **parts)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"now_s": np.nan}, "now_s"),
        ({"load_w": np.inf}, "load_w"),
        ({"cause": "zzz"}, "cause: is 'zzz'"),
        ({"job_id": np.array([3, 3])}, "job 3 occurs twice"),
        ({"job_id": np.array([3, 7])}, "job 7 occurs twice"),
        ({"job_id": np.array([3, 4, 5])}, r"queue.submit_s: has the shape \(2,\), not \(3,\)"),
        ({"queue__requested_time_s": np.array([np.nan, 5.0])}, "queue.requested_time_s: row 0 is nan"),
        ({"queue__requested_time_s": np.array([5.0, np.inf])}, "queue.requested_time_s: row 1 is inf"),
        ({"queue__requested_time_s": np.array([0.0, 5.0])}, "queue.requested_time_s: row 0 is 0"),
        ({"queue__processors": np.array([9.0, 1.0])}, "a job needs 9, the cluster has 8"),
        ({"queue__processors": np.array([1.5, 1.0])}, "a part of a processor"),
        ({"queue__power_w": [1.0, 2.0]}, "queue.power_w: has the shape"),
        (
            {"queue__attributes": Attributes(*np.zeros((len(Attributes._fields), 3)))},
            "queue.attributes.requested_memory_kb: has the shape",
        ),
        ({"running__expected_end_s": np.array([10.0, -1.0])}, "running.expected_end_s: is not after start_s"),
        ({"nodes__free_processors": np.array([3])}, "of 8 processors, 3 are free and 6 in use"),
        ({"nodes__free_processors": np.array([-3])}, "nodes.free_processors: row 0 is -3"),
        ({"supply__step_s": 0.0}, "supply.step_s: is 0 s"),
        ({"supply__step_s": 1e-9}, "supply.step_s: is 1e-09 s"),
        ({"supply__origin_s": np.nan}, "supply.origin_s"),
        ({"supply__renewable_w": np.array([1.0, np.nan])}, "supply.renewable_w: row 1 is nan"),
    ],
)
def test_a_view_that_is_not_possible_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"view.*{message}") as refused:
        driver_of(scheduler("fcfs+easy"), workload(random_jobs(1)), CLUSTER, Rules()).decide(first_view(**changed))
    assert "\n" not in str(refused.value)


def test_a_clock_that_goes_back_is_refused() -> None:
    driver = driver_of(scheduler("fcfs+easy"), workload(random_jobs(1)), CLUSTER, Rules())
    driver.decide(first_view())
    with pytest.raises(InputError, match="now_s: is 4, after a view of 5"):
        driver.decide(first_view(now_s=4.0))


@pytest.mark.parametrize("name", ["fcfs+green", "lptpn", "cheapest-start"])
def test_a_scheduler_that_needs_a_supply_says_so(name: str) -> None:
    driver = driver_of(scheduler(name), workload(random_jobs(1)), CLUSTER, Rules())
    none = np.zeros(0)
    with pytest.raises(InputError, match="needs a power supply"):
        driver.decide(first_view(supply__renewable_w=none, supply__start_s=none, supply__end_s=none))


@pytest.mark.parametrize("name", ["fcfs+easy", "fcfs+conservative"])
def test_running_jobs_in_another_order_change_no_decision(name: str) -> None:
    view = first_view()
    turned = {f"running__{each}": column[::-1].copy() for each, column in view.running._asdict().items()}
    one, other = (driver_of(scheduler(name), workload(random_jobs(1)), CLUSTER, Rules()) for _ in range(2))
    assert one.decide(view) == other.decide(first_view(**turned))


@pytest.mark.parametrize("name", ["fcfs+easy", "fcfs+conservative", "gas-marl-plus@default"])
def test_an_empty_queue_waits(name: str) -> None:
    none = np.zeros(0)
    columns = {f"queue__{each}": none for each in Queue._fields[3:9]}
    columns["queue__attributes"] = Attributes(*(none,) * len(Attributes._fields))
    driver = driver_of(scheduler(name), workload(random_jobs(1)), CLUSTER, Rules())
    empty = first_view(job_id=np.zeros(0, np.int64), **columns)
    assert driver.decide(empty) == driver.decide(empty) == Wait()
    driver.decide(first_view(now_s=6.0))
