"""The search for prices: the strategy on functions with known minima, the loop, and its models as schedulers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.engine.dependencies import preceding_rows
from greenbatch.engine.simulate import simulate
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.learning.runs.log import read_log
from greenbatch.learning.runs.plan import Plan, make_plan
from greenbatch.learning.search import planner, search
from greenbatch.learning.search.evolution import Evolution
from greenbatch.learning.search.loop import Candidate
from greenbatch.learning.search.parameters import ParameterSearch
from greenbatch.learning.search.planner import (
    HEAD_STEP,
    YEAR_S,
    PlannerSearch,
    Trial,
    begin_of,
    initial_point,
    numbers_of,
    objective,
    point_of,
)
from greenbatch.learning.search.ranking import RankingSearch
from greenbatch.metrics import evaluate
from greenbatch.models.find import shipped_models
from greenbatch.models.model import load_model
from greenbatch.models.planner import baseline_rule, program_of
from greenbatch.policies.compiled.lookahead import weights as prices
from greenbatch.policies.compiled.lookahead.plan import lookahead_policy
from greenbatch.presets.preset import preset
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler
from model_records import record_for

PRESET = preset("gas-marl-plus")


@pytest.fixture(scope="module")
def small() -> Scenario:
    return load_scenario("default", overrides={"workload.generator.jobs": 300})


def minimize(function: Any, start: np.ndarray, generations: int) -> np.ndarray:
    random = np.random.default_rng(0)
    evolution = Evolution(start, 0.5, 4 + int(3 * np.log(len(start))))
    for _ in range(generations):
        evolution.tell(np.array([function(point) for point in evolution.ask(random)]))
    return evolution.mean


def test_the_strategy_finds_known_minima() -> None:
    def rosenbrock(x: np.ndarray) -> float:
        return float(np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2))

    def ellipsoid(x: np.ndarray) -> float:
        return float(np.sum(10.0 ** (4.0 * np.arange(len(x)) / (len(x) - 1)) * x**2))

    np.testing.assert_allclose(minimize(rosenbrock, np.full(5, -0.5), 600), 1.0, atol=1e-4)
    np.testing.assert_allclose(minimize(ellipsoid, np.full(8, 0.7), 400), 0.0, atol=1e-4)


def test_the_diagonal_strategy_learns_scales_and_nothing_else() -> None:
    scales = 10.0 ** (3.0 * np.arange(24) / 23)

    def ellipsoid(x: np.ndarray) -> float:
        return float(np.sum(scales * x**2))

    reached = {}
    for diagonal in (False, True):
        random, evolution = np.random.default_rng(0), Evolution(np.full(24, 0.7), 0.5, 12, diagonal=diagonal)
        for _ in range(200):
            evolution.tell(np.array([ellipsoid(point) for point in evolution.ask(random)]))
        reached[diagonal] = ellipsoid(evolution.mean)
    assert reached[True] < 1e-3 * reached[False]
    spread = np.diag(evolution.covariance)
    np.testing.assert_array_equal(evolution.covariance, np.diag(spread))
    assert spread[:6].min() > 10 * spread[-6:].max()


def test_candidates_without_a_value_count_as_the_worst() -> None:
    evolution = Evolution(np.zeros(3), 1.0, 8)
    points = evolution.ask(np.random.default_rng(1))
    values = points[:, 0].copy()
    values[np.argmin(values)] = np.nan
    evolution.tell(values)
    other = Evolution(np.zeros(3), 1.0, 8)
    other.ask(np.random.default_rng(1))
    other.tell(np.where(np.isnan(values), 1e9, values))
    np.testing.assert_array_equal(evolution.mean, other.mean)


def test_a_point_counts_steps_from_where_the_search_begins() -> None:
    start = numbers_of(initial_point(), 1.5)
    assert start[: prices.PRICES].tolist() == [number.initial for number in prices.NUMBERS.values()]
    assert not start[prices.PRICES :].any()
    point = np.random.default_rng(0).normal(0, 0.1, prices.WEIGHTS)
    steps = np.full(prices.WEIGHTS, HEAD_STEP)
    steps[: prices.PRICES] = [number.step for number in prices.NUMBERS.values()]
    np.testing.assert_allclose(numbers_of(point, 1.5), start + steps * point, atol=1e-12)
    shorter = numbers_of(point, 1.25) - numbers_of(point, 1.5)
    assert shorter[prices.LAG] == pytest.approx(-0.25)
    assert np.count_nonzero(shorter) == 1
    far = numbers_of(np.full(prices.WEIGHTS, 1e3), 1.5)
    assert far[: prices.PRICES].tolist() == [number.highest for number in prices.NUMBERS.values()]


def test_a_trial_says_what_the_metrics_say(small: Scenario) -> None:
    starts = np.array([0, 40, 150])
    numbers = numbers_of(np.random.default_rng(3).normal(0, 0.3, prices.WEIGHTS), 1.5)
    one = Trial(small, PRESET, 100, 3, 1)(numbers, starts, np.zeros(3, np.int64))
    np.testing.assert_array_equal(one, Trial(small, PRESET, 100, 3, 3)(numbers, starts, np.zeros(3, np.int64)))
    from dataclasses import dataclass

    @dataclass
    class Planner:
        def program(self, workload: Any) -> Any:
            return replace(program_of(PRESET), decider=lookahead_policy(numbers, baseline_rule(workload)))

        def policy(self) -> None:
            return None

    for start, found in zip(starts.tolist(), one, strict=True):
        window = small.window(start, 100)
        metrics = evaluate(simulate(window, small.cluster, small.site, small.rules, Planner()))
        base = simulate(window, small.cluster, small.site, small.rules, scheduler("f2+easy-schedgym"))
        ratio = metrics["makespan_s"] / evaluate(base)["makespan_s"]
        expected = [metrics["renewable_utilization"], metrics["avg_bounded_slowdown"], ratio]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    shifted = Trial(small, PRESET, 100, 3, 1)(numbers, starts, np.full(3, 30 * 86_400))
    assert (shifted[:, 0] != one[:, 0]).all()


def test_windows_one_by_one_give_the_same_as_together(small: Scenario) -> None:
    """As they are simulated where jobs follow others; and those that do follow come when they are simulated to."""
    starts, shifts_s = np.array([0, 40, 150]), np.array([0, 0, 30 * 86_400])
    numbers = numbers_of(np.random.default_rng(3).normal(0, 0.3, prices.WEIGHTS), 1.5)
    trial = Trial(small, PRESET, 100, 3, 2)
    together = trial(numbers, starts, shifts_s)
    trial.follows = True
    np.testing.assert_allclose(trial(numbers, starts, shifts_s), together, rtol=1e-9)
    rows = np.arange(len(small.workload))
    before = np.where(rows % 3 == 2, small.workload.job_id[np.maximum(rows - 2, 0)], -1)
    jobs = small.workload.with_columns(preceding_job=before, think_time_s=np.full(len(rows), 600.0))
    obeys = replace(small, workload=jobs, rules=replace(small.rules, dependencies="obey"))
    trial = Trial(obeys, PRESET, 100, 3, 2)
    found = trial(numbers, starts, shifts_s)
    assert (found != together).all()
    for outcome in trial.outcomes.values():
        follower = np.flatnonzero(preceding_rows(outcome.workload) >= 0)
        ends_s = outcome.end_s[preceding_rows(outcome.workload)[follower]]
        np.testing.assert_allclose(outcome.workload.submit_s[follower], ends_s + 600.0)


def on_nodes(small: Scenario) -> Scenario:
    """The same jobs and supply on two types of nodes that model their power."""
    jobs = small.workload.with_columns(power_w=np.full(len(small.workload), np.nan))
    half = small.cluster.processors // 2
    group = NodeGroup(name="slow", count=1, processors=half, static_power_w=900.0, power_per_processor_w=9.0)
    fast = replace(
        group, name="fast", processors=small.cluster.processors - half, speed=1.5, power_per_processor_w=30.0
    )
    return replace(small, workload=jobs, cluster=Cluster.of_nodes((group, fast)))


@pytest.mark.parametrize("placement", ["first", "low-energy"])
def test_a_trial_counts_brown_energy_on_nodes(small: Scenario, placement: str) -> None:
    question, made = on_nodes(small), preset("green-ineps")
    numbers = numbers_of(initial_point(prices.WEIGHTS if placement != "first" else prices.NODE_WEIGHTS), 1.5)
    (found,) = Trial(question, made, 100, 1, 1, placement)(numbers, np.zeros(1, np.int64), np.zeros(1, np.int64))
    window = question.window(0, 100)
    decider = lookahead_policy(numbers, baseline_rule(window, placement))
    program = replace(program_of(made), decider=decider, placement=placement)
    how = SimpleNamespace(program=lambda _: program, policy=lambda: None)
    metrics = evaluate(simulate(window, question.cluster, question.site, question.rules, how))  # type: ignore[arg-type]
    assert found[0] == pytest.approx(metrics["brown_kwh"], rel=1e-9)
    assert metrics["brown_kwh"] > 0.0


def test_a_search_begins_at_a_model(small: Scenario) -> None:
    """At its weights, whichever bound they are for; those of the nodes are the initial ones."""
    theirs = load_model(shipped_models()["gas-marl-plus/default"]).weights
    for bound in (1.25, 1.5):
        overrides = {
            "training.search.begin": "gas-marl-plus@default", "training.search.makespan_bound": [bound],
            "training.search.aim": [bound], "training.search.most": [bound], "training.search.slowdown": [5.0],
        }  # fmt: skip
        numbers = theirs[f"makespan_bound_{bound}"].astype(float)
        begin = begin_of(make_plan("green-ineps", small, overrides=overrides))
        np.testing.assert_allclose(numbers_of(begin, bound)[: prices.WEIGHTS], numbers, atol=1e-12)
        assert not begin[prices.WEIGHTS :].any()
        plain = make_plan("gas-marl-plus", small, overrides=overrides)
        np.testing.assert_allclose(numbers_of(begin_of(plain), bound), numbers, atol=1e-12)
    point = np.random.default_rng(0).normal(0, 0.1, prices.NODE_WEIGHTS)
    np.testing.assert_allclose(point_of(numbers_of(point, 1.4), 1.4)[prices.WEIGHTS + 1 :], point[prices.WEIGHTS + 1 :])


def test_only_what_goes_beyond_the_limits_counts() -> None:
    found = np.array([[0.8, 5.0, 1.4], [0.6, 7.0, 1.6]])
    terms = {"makespan_area_ratio": -2.0, "avg_bounded_slowdown": -0.014, "renewable_utilization": 1.0}
    assert objective(found, terms, 1.5, 1.6, 6.0) == pytest.approx(-0.7)
    assert objective(found, terms, 1.4, 1.6, 6.0) == pytest.approx(-0.5)
    assert objective(found, terms, 1.5, 1.5, 6.0) == pytest.approx(-0.6)
    assert objective(found, terms, 1.5, 1.6, 5.0) == pytest.approx(-0.7 + 0.014)
    assert np.isnan(objective(found * np.nan, terms, 1.5, 1.6, 5.0))
    brown = {"brown_kwh": -0.01, "avg_bounded_slowdown": -0.014, "makespan_area_ratio": -2.0}
    assert objective(found * [100.0, 1.0, 1.0], brown, 1.5, 1.6, 5.0) == pytest.approx(0.7 + 0.014)


TINY = {
    "training.search.population": 4, "training.search.makespan_bound": [1.5, 1.25], "training.windows": 2,
    "training.jobs": 60,
}  # fmt: skip


def plan(small: Scenario, epochs: int = 4, **changes: Any) -> Plan:
    """A tiny search; ``backfill`` among the changes is an argument, the others are keys of the preset."""
    backfill = changes.pop("backfill", None)
    return make_plan("gas-marl-plus", small, overrides={**TINY, **changes}, epochs=epochs, threads=1, backfill=backfill)


@pytest.mark.parametrize("fixed", [True, False])
def test_windows_stay_the_same_only_if_asked(
    small: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fixed: bool
) -> None:
    seen: list[tuple[list[int], list[int]]] = []
    whole = Trial.__call__

    def watched(self: Trial, numbers: np.ndarray, starts: np.ndarray, shifts_s: np.ndarray) -> np.ndarray:
        seen.append((starts.tolist(), shifts_s.tolist()))
        return whole(self, numbers, starts, shifts_s)

    monkeypatch.setattr(Trial, "__call__", watched)
    changes = {"training.search.fixed_windows": fixed, "training.windows": 4}
    search(plan(small, **changes), tmp_path / "x", watch=lambda _: None)
    assert len(seen) == 4 * 4
    if fixed:
        assert seen == [([60, 119, 179, 238], [0, YEAR_S, 0, YEAR_S])] * 16
    else:
        assert len({tuple(starts) for starts, _ in seen}) == 4


SEVERAL = {
    "training.search.workloads": 2, "training.search.gap_factors": [0.5, 1.0], "training.search.beside": ["default"],
    "training.windows": 5,
}  # fmt: skip


def test_windows_are_dealt_to_scenarios_and_workloads_of_several_loads(small: Scenario) -> None:
    """Of two scenarios with two workloads each; each seed has workloads of its own."""
    made = plan(small, **SEVERAL, **{"training.seed": 3})
    of = planner.PlannerSearch(made)
    worlds = [trial.scenario for trial in of.trials]
    assert [len(world.workload) for world in worlds] == [300, len(load_scenario("default").workload)] * 2
    assert [some.tolist() for some in of.dealt] == [[0, 4], [1], [2], [3]]
    assert of.scenario_of.tolist() == [0, 1, 0, 1, 0]
    for number, world in enumerate(worlds[::2]):
        assert world.resolved["workload"]["generator"]["seed"] == (
            small.resolved["workload"]["generator"]["seed"] + 3 * 2 + number
        )
        assert world.resolved["workload"]["generator"]["gap_factor"] == (
            small.resolved["workload"]["generator"]["gap_factor"] * (0.5, 1.0)[number]
        )
    starts, shifts_s = np.array([0, 10, 20, 30, 40]), np.zeros(5, np.int64)
    numbers = numbers_of(initial_point(), 1.5)
    found = of.evaluated(Candidate(0, tuple(numbers), tuple(starts), tuple(shifts_s)))
    for k, start in enumerate(starts):
        (alone,) = Trial(worlds[k % 4], PRESET, 60, 1, 1)(numbers, starts[k : k + 1], shifts_s[:1])
        np.testing.assert_array_equal(found[k], alone, err_msg=f"window {start}")
    limits = of.search.aim[0], of.search.most[0], of.search.slowdown[0]
    each = [objective(found[some], made.preset.reward.terms, *limits) for some in ([0, 2, 4], [1, 3])]
    assert of._objective(0, found) == pytest.approx(sum(each) / 2)


def test_centers_are_averaged_over_the_memory(small: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The distribution of candidates is not affected, only what becomes the model."""
    models = {}
    for memory in (1, 2):
        centers: list[np.ndarray] = []
        whole = planner.PlannerSearch.center

        def watched(self: Any, stage: int, whole: Any = whole, centers: Any = centers) -> Any:
            centers.append(numbers_of(self.evolution.mean, self.search.makespan_bound[stage]))
            return whole(self, stage)

        with monkeypatch.context() as patch:
            patch.setattr(planner.PlannerSearch, "center", watched)
            search(plan(small, **{"training.search.memory": memory}), tmp_path / str(memory), watch=lambda _: None)
        models[memory] = centers, load_model(tmp_path / str(memory)).weights
    np.testing.assert_array_equal(models[1][0], models[2][0])
    for bound, (first, last) in ((1.5, models[1][0][:2]), (1.25, models[1][0][2:])):
        name = f"makespan_bound_{bound}"
        np.testing.assert_array_equal(models[1][1][name], last.astype(np.float32))
        np.testing.assert_allclose(models[2][1][name], (first + last) / 2, rtol=1e-6)


def test_a_model_fills_as_its_search_did(small: Scenario, tmp_path: Path) -> None:
    search(plan(small, 2, **{"network.fill": 0.3}), tmp_path / "x", watch=lambda _: None)
    made = scheduler(f"gas-marl-plus@{tmp_path / 'x'}")
    assert made.model.preset.fill == 0.3  # type: ignore[union-attr]
    numbers = made.numbers  # type: ignore[union-attr]
    trial = Trial(small, made.model.preset, 100, 1, 1)  # type: ignore[union-attr]
    (found,) = trial(numbers, np.array([40]), np.zeros(1, np.int64))
    metrics = evaluate(simulate(small.window(40, 100), small.cluster, small.site, small.rules, made))
    assert found[0] == pytest.approx(metrics["renewable_utilization"], rel=1e-9)
    (without,) = Trial(small, PRESET, 100, 1, 1)(numbers, np.array([40]), np.zeros(1, np.int64))
    assert (found != without).any()


class Stop(Exception):
    """Simulates a power cut."""


@pytest.mark.parametrize(("changes", "ends"), [({}, (1, 3)), ({**SEVERAL, "training.search.memory": 2}, (3,))])
def test_an_interrupted_search_ends_with_the_same_bytes(
    small: Scenario, tmp_path: Path, changes: dict[str, Any], ends: tuple[int, ...]
) -> None:
    """In the middle of the first of two models, or of the second, which has to recall the first."""
    search(plan(small, **changes), tmp_path / "whole", watch=lambda _: None)
    for after in ends:
        seen: list[Any] = []

        def stop(record: Any, seen: list[Any] = seen, after: int = after) -> None:
            seen.append(record)
            if len(seen) == after:
                raise Stop

        with pytest.raises(Stop):
            search(plan(small, **changes), tmp_path / f"cut-{after}", watch=stop)
        search(plan(small, **changes), tmp_path / f"cut-{after}", watch=lambda _: None)
        for file in ("model/actor.safetensors",):
            assert (tmp_path / f"cut-{after}" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
        figures = [
            [
                {k: v for k, v in line.items() if k not in ("elapsed_s", "jobs_per_s")}
                for line in read_log(folder / "log.jsonl")
            ]
            for folder in (tmp_path / f"cut-{after}", tmp_path / "whole")
        ]
        assert figures[0] == figures[1]
    lines = read_log(tmp_path / "whole" / "log.jsonl")
    assert [line.get("makespan_bound") for line in lines] == [1.5] * 2 + [1.25] * 2 + [None]
    assert {"renewable_utilization", "avg_bounded_slowdown", "makespan_ratio"} <= lines[0].keys()


@pytest.fixture(scope="module")
def found(small: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished search of two generations."""
    folder = tmp_path_factory.mktemp("found") / "run"
    search(plan(small, epochs=2), folder, watch=lambda _: None)
    return folder


def test_its_model_is_a_scheduler_with_a_parameter(small: Scenario, found: Path) -> None:
    folder = found / "model"
    model = load_model(folder)
    assert set(model.weights) == {"makespan_bound_1.5", "makespan_bound_1.25"}
    assert (folder / "actor.safetensors").stat().st_size < 2_000
    name = f"gas-marl-plus@{folder}"
    ends = {text: scheduler(f"{name}{text}").numbers for text in ("", ":makespan_bound=1.25", ":makespan_bound=1.375")}
    np.testing.assert_array_equal(ends[""], model.weights["makespan_bound_1.5"].astype(float))
    np.testing.assert_allclose(ends[":makespan_bound=1.375"], (ends[""] + ends[":makespan_bound=1.25"]) / 2)
    outcome = simulate(small.window(0, 60), small.cluster, small.site, small.rules, scheduler(name))
    assert np.isfinite(outcome.start_s).all()
    for text, message in (
        (":makespan_bound=2", "makespan_bound is 2 (give 1.25 to 1.5)"),
        (":sample=1", "gas-marl-plus has no parameter 'sample' (it takes makespan_bound, brown, cost, carbon)"),
        ("+easy", "considers every job that could start itself and does not support backfilling (leave out easy)"),
    ):
        with pytest.raises(InputError) as caught:
            scheduler(name + text)
        assert message in str(caught.value)


def test_invalid_weights_are_refused(small: Scenario, tmp_path: Path) -> None:
    from greenbatch.models.model import save_model

    made = plan(small, epochs=2)
    for number, weights in enumerate(
        (
            {},
            {"makespan_bound_1.5": np.zeros(3)},
            {"actor": np.zeros(prices.WEIGHTS)},
            {"makespan_bound_1": np.full(prices.WEIGHTS, np.nan)},
        )
    ):
        save_model(tmp_path / str(number), weights, made.preset, record_for(small), scenario=small)
        with pytest.raises(InputError, match="weights"):
            load_model(tmp_path / str(number))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training.search.aim": [1.2]}, "makespan_bound, aim, most and slowdown have different lengths"),
        ({"training.search.makespan_bound": [1.5, 1.50000001]}, "makespan_bound has equal values"),
        ({"training.search.population": 2}, "population"),
        ({"training.search.gap_factors": []}, "gap_factors"),
        ({"training.search.beside": ["no-such"]}, "there is no scenario 'no-such'"),
        ({"network.fill": 1.5}, "network.fill: is 1.5"),
        ({"network.fill": "much"}, "network.fill: is 'much'"),
        ({"training.search.temperature": 2}, "unknown key"),
    ],
)
def test_bad_settings_are_one_line(small: Scenario, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(small, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings.tick_s": 0.0}, "settings.tick_s: gas-marl-plus holds jobs"),
        ({"reward.terms": {"renewable_utilization": 1.0}}, "reward.terms: gas-marl-plus is optimized for renewable"),
        ({"training.jobs": 301}, "training.jobs: no training window of 301 jobs"),
        ({"training.search.workloads": 3}, "training.windows: is 2, for 3 workloads (give at least 3)"),
        ({"training.rollouts": 5}, "training.rollouts: has no effect on a search"),
        ({"network.width": 5}, "network: has no effect on the look-ahead planner: its inputs"),
        ({"observation.queue.rows": 5}, "observation: has no effect on the look-ahead planner"),
        ({"action.wait": True}, "action: has no effect on the look-ahead planner"),
        ({"training.validation.windows": 5}, "training.validation: has no effect on the look-ahead planner"),
        ({"epochs": 3}, "training.epochs: is 3, and 2 models share the generations (give a multiple of 2)"),
        ({"training.keep": "best"}, "training.keep: gas-marl-plus keeps the center of the last generation"),
        (
            {"backfill": "green"},
            "--backfill: considers every job that could start itself and does not support backfilling",
        ),
        (
            {"network.kind": "mlp"},
            "network.kind: is 'mlp' (leave out training.search: it finds networks of kind prices, node-prices, lin",
        ),
        ({"network.kind": ["prices"]}, "network.kind: is ['prices'], not a word (leave out training.search"),
        ({"training.search.placement": "worst-fitt"}, "training.search.placement: is 'worst-fitt' (did you mean"),
        ({"training.search.begin": "ineps-plus@default"}, "training.search.begin: is a model of ineps-plus, not of a"),
        (
            {"network.kind": "node-prices", "training.search.placement": "pack"},
            "training.search.placement: chooses the nodes itself and does not support a placement (leave out pack)",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused_before_anything_is_written(
    small: Scenario, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        search(plan(small, **changes), tmp_path / "x", watch=lambda _: None)
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("preset", ["gas-marl-plus", "rlscheduler-plus"])
def test_a_search_that_cannot_begin_leaves_an_earlier_one_alone(
    small: Scenario, tmp_path: Path, preset: str
) -> None:  # fmt: skip
    """Even where it was to be replaced."""
    tiny = {"training.search.population": 6, "training.windows": 2, "training.jobs": 30}
    search(make_plan(preset, small, overrides=tiny, epochs=2, threads=1), tmp_path / "x", watch=lambda _: None)
    before = {file: file.read_bytes() for file in (tmp_path / "x").rglob("*") if file.is_file()}
    greedy = make_plan(preset, small, overrides=tiny, epochs=2, threads=1, backfill="nonsense")
    with pytest.raises(InputError, match="backfill"):
        search(greedy, tmp_path / "x", watch=lambda _: None, replace_earlier=True)
    with pytest.raises(InputError, match="backfill"):
        search(greedy, tmp_path / "new", watch=lambda _: None)
    assert {file: file.read_bytes() for file in (tmp_path / "x").rglob("*") if file.is_file()} == before
    assert not (tmp_path / "new").exists()


def test_a_finished_search_stays_as_it_is(small: Scenario, found: Path) -> None:
    before = {file: file.read_bytes() for file in found.rglob("*") if file.is_file()}
    search(plan(small, epochs=2), found, watch=lambda _: None)
    assert {file: file.read_bytes() for file in found.rglob("*") if file.is_file()} == before


def test_a_checkpoint_of_other_numbers_is_refused(
    small: Scenario, found: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = planner.initial_point()
    monkeypatch.setattr(planner, "initial_point", lambda _: begin[:-1])
    with pytest.raises(InputError, match=r"state\.json: contains a different search"):
        search(plan(small, epochs=2), found, watch=lambda _: None)


def test_a_search_without_its_checkpoint_is_not_restarted(small: Scenario, found: Path, tmp_path: Path) -> None:
    """The checkpoint was deleted: what is left is finished work, and training again may not give the same."""
    shutil.copytree(found, tmp_path / "x")
    shutil.rmtree(tmp_path / "x" / "checkpoint")
    before = {file: file.read_bytes() for file in (tmp_path / "x").rglob("*") if file.is_file()}
    with pytest.raises(InputError, match="checkpoint: --resume: is missing, so training cannot be resumed"):
        search(plan(small, epochs=2), tmp_path / "x", watch=lambda _: None)
    assert {file: file.read_bytes() for file in (tmp_path / "x").rglob("*") if file.is_file()} == before


def test_a_search_killed_before_its_first_checkpoint_resumes(small: Scenario, found: Path, tmp_path: Path) -> None:
    """A generation's line is written before its checkpoint, so a log may stand alone."""
    shutil.copytree(found, tmp_path / "x")
    shutil.rmtree(tmp_path / "x" / "checkpoint")
    shutil.rmtree(tmp_path / "x" / "model")
    search(plan(small, epochs=2), tmp_path / "x", watch=lambda _: None)
    weights = "model/actor.safetensors"
    assert (tmp_path / "x" / weights).read_bytes() == (found / weights).read_bytes()
    assert len(read_log(tmp_path / "x" / "log.jsonl")) == len(read_log(found / "log.jsonl"))


def test_bounds_are_for_planners(small: Scenario, tmp_path: Path) -> None:
    made = make_plan("rlscheduler-plus", small, overrides={"training.search.years": 2}, epochs=2, threads=1)
    with pytest.raises(InputError, match=r"training\.search\.years: is only for the look-ahead planner"):
        search(made, tmp_path / "x", watch=lambda _: None)


def test_however_short_the_time_every_bound_gets_a_model(small: Scenario, tmp_path: Path) -> None:
    brief = make_plan("gas-marl-plus", small, overrides=TINY, epochs=1, minutes=1e-4, threads=1)
    search(brief, tmp_path / "x", watch=lambda _: None)
    assert set(load_model(tmp_path / "x" / "model").weights) == {"makespan_bound_1.5", "makespan_bound_1.25"}
    longer = make_plan("gas-marl-plus", small, overrides=TINY, epochs=1, minutes=0.01, threads=1)
    search(longer, tmp_path / "y", watch=lambda _: None)
    bounds = [line["makespan_bound"] for line in read_log(tmp_path / "y" / "log.jsonl") if "makespan_bound" in line]
    assert bounds == sorted(bounds, reverse=True)
    assert len(bounds) > 2  # time counts, not epochs
    assert set(bounds) == {1.5, 1.25}


def test_networks_that_are_learned_are_not_searched_for(small: Scenario, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"network\.kind: is 'kernel' \(leave out training\.search"):
        make_plan("rlscheduler", small, overrides={"training.search": {}}, epochs=1, threads=1)
    assert not (tmp_path / "x").exists()


def test_a_generation_without_a_single_value_is_one_line(tmp_path: Path) -> None:
    short = load_scenario("default", overrides={"workload.generator.jobs": 300, "site.repeat": False, "site.days": 1})
    lasting = plan(short, **{"training.search.years": 100, "training.windows": 4})
    with pytest.raises(GreenbatchError, match="no candidate of generation 1 starts all jobs"):
        search(lasting, tmp_path / "x", watch=lambda _: None)


def test_a_search_needs_a_site_and_no_gpu(small: Scenario, tmp_path: Path) -> None:
    from dataclasses import replace

    with pytest.raises(InputError, match="gas-marl-plus needs a power supply"):
        search(replace(plan(small), scenario=replace(small, site=None)), tmp_path / "x", watch=lambda _: None)
    with pytest.raises(InputError, match="a search runs on the cpu"):
        search(replace(plan(small), device="cuda"), tmp_path / "x", watch=lambda _: None)
    assert not (tmp_path / "x").exists()
    assert json.dumps(plan(small).record())


def test_two_trainings_never_share_a_folder(small: Scenario, tmp_path: Path) -> None:
    """The second, be it a new one, one that resumes or one that replaces, is refused and touches nothing."""
    refused: list[str] = []

    def watch(record: Any) -> None:
        before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
        for replace_earlier in (False, True):
            with pytest.raises(InputError) as caught:
                search(plan(small, epochs=2), tmp_path / "x", watch=lambda _: None, replace_earlier=replace_earlier)
            refused.append(str(caught.value))
        assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before

    search(plan(small, epochs=2), tmp_path / "x", watch=watch)
    assert len(refused) == 6
    assert all("--out: another run writes here (wait for it to end" in line for line in refused)
    search(plan(small, epochs=2), tmp_path / "x", watch=lambda _: None)  # the folder is free again


@pytest.mark.parametrize(
    ("name", "scenario", "overrides", "begun"),
    [
        ("gas-marl-plus", "default", {"training.windows": 2, "training.jobs": 40}, "there"),
        ("ineps-plus", "ineps/adaptability-mixed", {"training.windows": 2, "training.jobs": 30}, "here"),
    ],
)
def test_a_search_does_not_depend_on_where_candidates_are_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, scenario: str, overrides: dict[str, Any],
    begun: str,
) -> None:  # fmt: skip
    """In two processes, begun there and ended here or the other way round: the same weights as here alone."""
    world = load_scenario(scenario, overrides={"workload.generator.jobs": 300} if scenario == "default" else {})
    plan = make_plan(name, world, overrides={"training.search.population": 4, **overrides}, epochs=2, threads=1)

    def stop(record: dict[str, Any]) -> None:
        if record.get("epoch") == 1:
            raise KeyboardInterrupt

    def run(folder: str, where: str, watch: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
        with monkeypatch.context() as patch:
            for kind in (PlannerSearch, ParameterSearch, RankingSearch) if where == "there" else ():
                patch.setattr(kind, "evaluated", None)  # in this process, not in others
            search(plan, tmp_path / folder, watch=watch, workers=2 if where == "there" else 1)

    run("here", "here")
    with pytest.raises(KeyboardInterrupt):
        run("both", begun, stop)
    run("both", "here" if begun == "there" else "there")
    here, both = ((tmp_path / name / "model" / "actor.safetensors").read_bytes() for name in ("here", "both"))
    assert here == both
