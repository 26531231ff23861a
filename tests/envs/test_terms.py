"""Reward terms: each ends with its metric's value, and former names mean the same in presets, runs and models."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.cluster import Capacity, Cluster, NodeGroup
from greenbatch.energy import Storage
from greenbatch.energy.grid import Grid
from greenbatch.engine.observe.reward_terms import FINISHED_VALUE, TERMS, codes_of
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.pools import Pools
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Start
from greenbatch.engine.views.session import Session
from greenbatch.envs.batch import BatchEnv
from greenbatch.errors import InputError
from greenbatch.learning.runs.plan import make_plan
from greenbatch.metrics import METRICS, evaluate
from greenbatch.presets.preset import check, preset
from greenbatch.presets.term_names import FORMER, current, in_key
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

OF_GRID = ("energy_cost", "energy_cost_per_kwh", "carbon_kg")


def grid(slots: int) -> Grid:
    """Prices, some of them negative, and carbon."""
    random = np.random.default_rng(5)
    import_price, export_price = random.uniform(-0.1, 0.4, (2, slots))
    carbon = random.uniform(20.0, 600.0, slots)
    return Grid(
        currency="EUR", import_price=import_price, export_price=export_price, carbon_g_per_kwh=carbon,
        source_price={"solar": random.uniform(0.0, 0.2, slots)}, source_g_per_kwh={"wind": 11.0},
    )  # fmt: skip


@cache
def scenario(site: bool, users: bool, priced: bool = False) -> Scenario:
    """Jobs of which many are killed at their requested time, some of users without a number."""
    made = load_scenario("default", overrides={"workload.generator.jobs": 300})
    jobs, random = made.workload, np.random.default_rng(1)
    requested_s = np.ceil(jobs.run_time_s * random.choice([0.5, 1.0, 3.0], len(jobs)))
    user = random.integers(-1, 6, len(jobs)) if users else np.full(len(jobs), -1)
    workload = jobs.with_columns(requested_time_s=requested_s, user=user)
    rules = replace(made.rules, overrun="kill")
    power = made.site if site else None
    if power is not None and priced:
        storage = Storage(capacity_kwh=50.0, charge_w=1e4, discharge_w=1e4, dispatch="scheduler")  # which rests
        power = replace(power, grid=grid(power.slots), storage=storage)
    return replace(made, workload=workload, rules=rules, site=power)


def every_term(name: str) -> Any:
    """A shipped preset that is rewarded for every term."""
    return check({**preset(name).model_dump(), "reward": {"terms": dict.fromkeys(TERMS, 1.0)}})


def outcome_of(question: Scenario, start: int, starts_s: np.ndarray) -> Outcome:
    """The outcome of a schedule, worked out from its starts alone."""
    jobs = question.window(start, len(starts_s))
    ends_s = starts_s + np.minimum(jobs.run_time_s, jobs.requested_time_s)
    times_s = np.unique(np.concatenate([starts_s, ends_s]))
    step_w = np.zeros(len(times_s))
    np.add.at(step_w, np.searchsorted(times_s, starts_s), jobs.power_w)
    np.subtract.at(step_w, np.searchsorted(times_s, ends_s), jobs.power_w)
    return Outcome(
        scheduler="x+none", workload=jobs, cluster=question.cluster, site=question.site, rules=question.rules,
        start_s=starts_s, end_s=ends_s, promised_start_s=np.full(len(starts_s), np.nan), profile_time_s=times_s,
        profile_load_w=question.cluster.idle_power_w + np.cumsum(step_w), decisions=0,
        killed=int((jobs.run_time_s > jobs.requested_time_s).sum()),
    )  # fmt: skip


@pytest.mark.plain
@settings(max_examples=20, deadline=None)
@given(
    start=st.integers(0, 250), seed=st.integers(0, 99), users=st.booleans(), priced=st.booleans(),
    case=st.sampled_from([
        *((True, name) for name in ("none", "easy", "easy-schedgym", "easy-green-order", "green")),
        *((False, name) for name in ("none", "easy", "easy-schedgym")),
    ]),
)  # fmt: skip
def test_every_term_ends_with_the_value_of_its_metric(
    start: int, seed: int, users: bool, priced: bool, case: Any
) -> None:  # fmt: skip
    site, backfill = case
    question, random = scenario(site, users, priced), np.random.default_rng(seed)
    env = BatchEnv(question, every_term("gas-marl" if site else "rlscheduler"), environments=1, jobs=25,
                   backfill=backfill)  # fmt: skip
    seen = env.reset([start])
    while len(seen.environment):
        delay = random.choice(np.flatnonzero(seen.delays[0]))
        seen, _, _ = env.step(np.array([[random.integers(len(seen.queue)), delay]]))
    outcome = outcome_of(question, start, env.starts_s[0].copy())
    assert outcome.killed
    metrics = evaluate(outcome)
    values = dict(zip(env.terms, env.values[0].tolist(), strict=True))
    assert values.keys() == TERMS.keys()
    known = {name: term.metric for name, term in TERMS.items() if term.metric is not None}
    undefined = {name for name, metric in known.items() if np.isnan(metrics[metric])}
    assert undefined == {
        *(() if users else ("max_user_bounded_slowdown", "mean_user_bounded_slowdown")),
        *(() if site else ("renewable_utilization", "brown_energy_ratio", "brown_kwh", "energy_kwh", "edp_js")),
        *(() if site and priced else OF_GRID),
    }
    for name, metric in known.items():
        unseen = name in undefined or (name == "peak_power_w" and not site)  # nothing is accrued without a supply
        value, expected = values[name], 0.0 if unseen else metrics[metric]
        assert value == pytest.approx(expected, rel=1e-9), name


SWITCHES = {"boot_s": 3.0, "boot_energy_j": 500.0, "shutdown_s": 6.0, "shutdown_energy_j": 900.0}


@pytest.mark.plain
@pytest.mark.parametrize(
    ("name", "power_on"),
    [("ineps/green", "always"), *(("ineps/adaptability-memory", on) for on in ("always", "first-use", "on-demand"))],
)
def test_every_term_ends_with_the_value_of_its_metric_on_nodes(
    name: str, power_on: Any, greenbatch_data: Callable[[str], Path]
) -> None:
    """Nodes of several speeds, tasks that slow each other down, and boots: run times are known when jobs end."""
    if name == "ineps/green":
        greenbatch_data("swf/lublin_256.swf.gz")
    question = load_scenario(name)
    assert question.cluster.on_nodes
    groups = tuple(
        replace(group, **SWITCHES) if power_on == "on-demand" else group for group in question.cluster.groups
    )
    question = replace(question, cluster=replace(question.cluster, groups=groups, power_on=power_on))
    site = question.site is not None
    env = BatchEnv(question, every_term("rlscheduler"), environments=1, jobs=40, backfill="none")
    seen = env.reset([7])
    while len(seen.environment):
        seen, _, _ = env.step(np.zeros((1, 2), np.int64))
    window = question.window(7, 40)
    outcome = simulate(window, question.cluster, question.site, question.rules, scheduler("fcfs+none"))
    np.testing.assert_array_equal(env.starts_s[0], outcome.start_s)
    run_s = outcome.end_s - outcome.start_s
    assert (np.abs(run_s - window.run_time_s) > 1e-3 * run_s).mean() > 0.2
    metrics, values = evaluate(outcome), dict(zip(env.terms, env.values[0].tolist(), strict=True))
    known = {term: each.metric for term, each in TERMS.items() if each.metric is not None}
    undefined = {term for term, metric in known.items() if np.isnan(metrics[metric])}
    assert undefined == {
        "max_user_bounded_slowdown", "mean_user_bounded_slowdown", "brown_energy_ratio", *OF_GRID,
        *(() if site else ("renewable_utilization", "brown_kwh")),
    }  # fmt: skip
    for term, metric in known.items():
        assert values[term] == pytest.approx(0.0 if term in undefined else metrics[metric], rel=1e-9), term


@pytest.mark.plain
@pytest.mark.parametrize("power_on", ["always", "on-demand"])
def test_every_term_ends_with_the_value_of_its_metric_where_jobs_are_suspended(power_on: Any) -> None:
    """On nodes of which not all are powered: an environment starts what a session does, and counts all spans."""
    suspensions = 0
    for seed in range(4):
        random, n = np.random.default_rng(seed), 15
        columns = {"submit_s": np.sort(random.integers(0, 60, 3 * n)), "requested_time_s": np.full(3 * n, 12)}
        for name, most in (("run_time_s", 9), ("processors", 7), ("power_w", 40), ("value", 5)):
            columns[name] = random.integers(1, most, 3 * n)
        level = np.array([6, *random.integers(0, 7, 17), 6])
        powered = Capacity(time_s=5.0 * np.arange(19), processors=level, gpus=0 * level)
        group = NodeGroup(
            name="a", count=3, processors=2, static_power_w=60.0, idle_fraction=0.5, power_per_processor_w=9.0,
            **SWITCHES,
        )  # fmt: skip
        rules = Rules(pools=Pools(suspends="power", suspend_s=float(seed % 2)), event_rule="per_instant")
        question = replace(
            load_scenario("ineps/adaptability-memory"), workload=Workload.from_columns("random", columns), rules=rules,
            cluster=Cluster.of_nodes([group], power_on=power_on, powered=powered), site=None,
        )  # fmt: skip
        env = BatchEnv(question, every_term("rlscheduler"), environments=1, jobs=n, backfill="easy")
        program = Program(name="driven", backfill="easy", settings=dict(env.preset.settings))
        session, seen = Session(question.window(n, n), question.cluster, None, rules, program), env.reset([n])
        while len(seen.environment):
            row = int(random.choice(np.flatnonzero(seen.selectable)))
            assert session.view() is not None
            session.apply(Start(row))
            seen, _, _ = env.step(np.array([[row, 0]]))
        assert session.view() is None
        outcome = session.outcome()
        np.testing.assert_array_equal(outcome.start_s, env.starts_s[0])
        metrics, values = evaluate(outcome), dict(zip(env.terms, env.values[0].tolist(), strict=True))
        for term, each in TERMS.items():
            if each.metric is not None:
                assert values[term] == pytest.approx(np.nan_to_num(metrics[each.metric]), rel=1e-9), term
        progress = float((outcome.workload.value * outcome.run_s / outcome.workload.requested_time_s).sum())
        assert values["progress_value"] == pytest.approx(progress), "not while nodes boot"
        suspensions += int(outcome.stays.suspensions.sum())  # type: ignore[union-attr]
    assert suspensions > 5


@pytest.mark.plain
@pytest.mark.parametrize(("nodes", "powered"), [(7, False), (200, False), (200, True)])
def test_nodes_that_boot_do_not_fill_the_log_of_an_environment(nodes: int, powered: bool) -> None:
    """However many there are, and however often they are switched."""
    random, n = np.random.default_rng(0), 15
    columns = {"submit_s": np.sort(random.integers(0, 60, n)), "run_time_s": random.integers(1, 9, n)}
    jobs = Workload.from_columns("random", {**columns, "processors": random.integers(1, 7, n)})
    group = NodeGroup(name="a", count=nodes, processors=2, static_power_w=60.0, boot_s=3.0, shutdown_s=2.0)
    size = 2 * nodes
    levels = Capacity(time_s=np.array([0.0, 10.0, 20.0]), processors=np.array([size, 6, size]), gpus=np.zeros(3, int))
    question = replace(
        load_scenario("ineps/adaptability-memory"), workload=jobs, site=None,
        rules=Rules(pools=Pools(suspends="power") if powered else None),
        cluster=Cluster.of_nodes([group], power_on="on-demand", powered=levels if powered else None),
    )  # fmt: skip
    env = BatchEnv(question, preset("rlscheduler"), environments=1, jobs=n, backfill="none")
    seen = env.reset([0])
    while len(seen.environment):
        seen, _, _ = env.step(np.zeros((1, 2), np.int64))
    outcome = simulate(jobs, question.cluster, None, question.rules, scheduler("fcfs+none"))
    np.testing.assert_array_equal(env.starts_s[0], outcome.start_s)


def test_terms_are_metrics_under_their_names_and_codes_are_used_once() -> None:
    assert sorted(codes_of(TERMS)) == list(range(len(TERMS)))
    other_names = {name: term.metric for name, term in TERMS.items() if term.metric != name}
    of_value = [name for name, term in TERMS.items() if term.code >= FINISHED_VALUE]  # tests/rare/test_value_terms.py
    assert other_names == {
        "accrued_bounded_slowdown": "avg_bounded_slowdown", "accrued_wait_s": "avg_wait_s", "edp_steps_js": None,
        **dict.fromkeys(of_value),
    }  # fmt: skip
    assert all(METRICS[term.metric].scope == "run" for term in TERMS.values() if term.metric is not None)


# ---------------------------------------------------------------- former names


def test_every_term_has_the_unit_of_what_it_counts() -> None:
    """Value, jobs x ticks and events are numbers without a unit, as the metrics of the same names are."""
    units = {name: METRICS[term.metric].unit if term.metric else term.unit for name, term in TERMS.items()}
    assert {name for name, unit in units.items() if unit == "J s"} == {"edp_js", "edp_steps_js"}
    assert {name: unit for name, unit in units.items() if name in METRICS and METRICS[name].unit != unit} == {}
    assert {
        units[name] for name in units if name.endswith(("_value", "_ticks", "_cost")) and name != "energy_cost"
    } == {"-"}
    assert units["late_jobs"] == "jobs"


def test_former_names_are_terms_under_one_name_only() -> None:
    assert set(FORMER.values()) <= set(TERMS)
    assert not set(FORMER) & (set(TERMS) | set(METRICS))


def test_former_names_keep_order_and_weights() -> None:
    """Terms are added up in their order, so another one would round differently."""
    former = {"makespan": 1.0, "renewable_utilization": 2.0, "wait": 3.0, "beauty": 4.0}
    assert list(current(former).items()) == [
        ("makespan_area_ratio", 1.0), ("renewable_utilization", 2.0), ("avg_wait_s", 3.0), ("beauty", 4.0)
    ]  # fmt: skip
    assert current(current(former)) == current(former)
    assert in_key("reward.terms.wait") == "reward.terms.avg_wait_s"
    assert in_key("training.wait") == "training.wait"


FORMER_FILE = """
extends = "gas-marl"
name = "mine"
[reward.terms]
bounded_slowdown = -0.5
wait = -1e-5
[training]
curriculum = [{start = 0.0, jobs = 64}, {start = 0.5, weights = {wait = -1e-4}}]
"""


def test_a_file_with_former_names_is_the_same_preset(tmp_path: Path) -> None:
    former, present, child = (tmp_path / f"{name}.toml" for name in ("former", "present", "child"))
    former.write_text(FORMER_FILE)
    present.write_text(
        FORMER_FILE.replace("bounded_slowdown", "avg_bounded_slowdown").replace("wait =", "avg_wait_s =")
    )
    assert preset(former) == preset(present)
    assert list(preset(former).reward.terms.items()) == [
        ("renewable_utilization", 1.0), ("avg_bounded_slowdown", -0.5), ("avg_wait_s", -1e-5)
    ]  # fmt: skip
    for name in ("wait", "avg_wait_s"):
        child.write_text(f'extends = "former.toml"\nname = "mine"\n[reward.terms]\n{name} = 7.0\n')
        assert preset(child).reward.terms["avg_wait_s"] == 7.0


@pytest.mark.parametrize("key", ["reward.terms.bounded_slowdown", "reward.terms.avg_bounded_slowdown"])
def test_a_value_for_a_former_name_replaces_that_of_the_term(key: str) -> None:
    made = make_plan("gas-marl", scenario(True, False), overrides={key: -0.25}).preset
    assert list(made.reward.terms.items()) == [("renewable_utilization", 1.0), ("avg_bounded_slowdown", -0.25)]
    whole = make_plan("gas-marl", scenario(True, False), overrides={"reward.terms": {"wait": -1.0}}).preset
    assert whole.reward.terms == {"avg_wait_s": -1.0}


def test_a_term_under_both_names_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('extends = "gas-marl"\n[reward.terms]\nwait = -1.0\navg_wait_s = -2.0\n')
    with pytest.raises(InputError) as caught:
        preset(file)
    assert str(caught.value) == f"{file}: wait and avg_wait_s are the same term (keep avg_wait_s)"


def test_an_unknown_term_is_refused_with_the_names_of_today(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('extends = "gas-marl"\n[reward.terms]\navg_wait = -1.0\n')
    with pytest.raises(InputError, match=r"reward.terms: 'avg_wait' is not known \(did you mean avg_wait_s\?"):
        preset(file)
    assert json.dumps(preset("gas-marl").model_dump(mode="json")).count("avg_bounded_slowdown") == 1
