"""The shipped models: whole, small, with their logs, and each at home on its scenario."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.experiments.running.compare import choose_windows, compare
from greenbatch.experiments.running.retrained import plan_of
from greenbatch.learning.runs.log import read_log
from greenbatch.learning.runs.windows import seen_jobs
from greenbatch.metrics import evaluate
from greenbatch.metrics.horizon import horizon_of
from greenbatch.models.find import shipped_models
from greenbatch.models.model import load_model
from greenbatch.models.records import ACTOR
from greenbatch.presets.training import HELD_OUT
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.scenarios.profile import profile
from greenbatch.schedulers import scheduler

Find = Callable[[str], Path]


@cache
def scenario_of(name: str) -> Scenario:
    """A shipped scenario, whose trace is read once for all tests."""
    return load_scenario(name)


TRACES = {
    "default": None,
    "lublin-256": "swf/lublin_256.swf.gz",
    "cirne": "swf/Cirne.swf.gz",
    "jann": "swf/Jann.swf.gz",
}
"""Models of gas-marl-plus -> what they were trained on."""
LOGS = {"hpc2n": "swf/HPC2N-2002-2.2-cln.swf.gz"}
"""Models of cost-aware-plus; the jobs of their tests are those of another scenario."""
NEEDED = {**TRACES, **LOGS, "10": None}
PLANNERS = ("gas-marl-plus", "green-ineps", "cost-aware-plus")


def test_the_embedded_scenario_and_all_of_gas_marls_have_one() -> None:
    assert {f"gas-marl-plus/{name}" for name in TRACES} <= set(shipped_models())


@pytest.mark.parametrize("name", sorted(shipped_models()))
def test_a_model_is_whole_and_says_how_it_was_trained(name: str, greenbatch_data: Find) -> None:
    folder = shipped_models()[name]
    assert (folder / ACTOR).stat().st_size <= 1_000_000
    log = read_log(folder / "log.jsonl")
    model = load_model(folder)
    assert log[-1]["done"]
    assert log[-1]["epoch"] == model.record.training.epochs
    text = (folder / "model.json").read_text()
    assert '"/' not in text  # no absolute path of the machine it was trained on
    if trace := NEEDED[folder.name]:
        greenbatch_data(trace)
    plan = plan_of(model, scenario_of(model.record.training.scenario))
    assert plan.preset.name == folder.parent.name
    assert plan.settings.epochs == model.record.training.epochs


@pytest.mark.parametrize("name", sorted(shipped_models()))
def test_its_record_says_what_its_scenario_is_like_and_which_jobs_it_saw(name: str, greenbatch_data: Find) -> None:
    record = load_model(shipped_models()[name]).record
    if trace := NEEDED[name.rpartition("/")[2]]:
        greenbatch_data(trace)
    question, training = scenario_of(record.training.scenario), record.training
    assert record.profile == profile(question)
    of_policy = record.preset["network"]["kind"] == "policy"  # plays generated jobs of other seeds
    seen = [] if of_policy else seen_jobs(question, training.settings, training.windows)
    assert [list(run) for run in training.seen_jobs] == seen
    if name.startswith("cost-aware"):
        starts = scenario_of(training.scenario.removesuffix("-training")).evaluation.starts
        assert starts
        assert max(last for _, last in seen) < min(starts)
    else:
        assert not any(set(range(first, last + 1)) & set(HELD_OUT) for first, last in seen)
    assert not training.untrained
    assert len(record.limits) == (2 if name.startswith(PLANNERS) else 0)


@pytest.mark.parametrize("name", sorted(TRACES))
def test_it_is_greener_than_plain_rules_and_keeps_short_jobs_going(name: str, greenbatch_data: Find) -> None:
    """On one window of its scenario: more renewable energy at less slowdown than F2 with backfilling."""
    if trace := TRACES[name]:
        greenbatch_data(trace)
    question = scenario_of("default" if name == "default" else f"gas-marl/{name}")
    window = question.window(3000, 1024)

    def played(spec: str) -> dict[str, float]:
        return evaluate(simulate(window, question.cluster, question.site, question.rules, scheduler(spec)))

    ours, rule = played(f"gas-marl-plus@{name}+none"), played("f2+easy-schedgym")
    assert ours["renewable_utilization"] > rule["renewable_utilization"] + 0.1
    assert ours["avg_bounded_slowdown"] < rule["avg_bounded_slowdown"]


@pytest.mark.parametrize("name", sorted(TRACES))
def test_mean_makespan_is_at_most_a_tenth_above_the_target(name: str, greenbatch_data: Find) -> None:
    """Mean over every other of the scenario's windows, relative to F2 with backfilling."""
    if trace := TRACES[name]:
        greenbatch_data(trace)
    question = scenario_of("default" if name == "default" else f"gas-marl/{name}")
    specs, rule = {b: f"gas-marl-plus@{name}:makespan_bound={b}+none" for b in (1.5, 1.25)}, "f2+easy-schedgym"
    starts, jobs = choose_windows(question, starts=None, windows=None, jobs=None, seed=None)
    frame = compare(question, [rule, *specs.values()], starts[::2], jobs, rule).frame
    for bound, spec in specs.items():
        ours = frame.filter((frame["scheduler"] == spec) & (frame["metric"] == "makespan_ratio"))["value"]
        assert 1.0 < ours.mean() < 1.1 * bound, bound


@pytest.mark.parametrize(
    ("model", "metric", "workload", "rule", "least"),
    [
        ("ineps-plus@default", "energy_kwh", "memory", "eq1:metric=timetasks:jobs=lowest:nodes=highest", 0.03),
        ("ineps-plus@default", "energy_kwh", "compute", "longest+none+high-total-cores", 0.03),
        ("ineps-plus-edp@default", "edp_js", "memory", "fcfs+none+high-mem-bw", 0.3),
    ],
)
def test_models_that_choose_nodes_win_against_the_best_fixed_rules(
    model: str, metric: str, workload: str, rule: str, least: float
) -> None:
    """On the scenarios' own orders; the rules are the best of several hundred on other orders."""
    question = scenario_of(f"ineps/adaptability-{workload}")
    ours, theirs = (
        evaluate(simulate(question.window(), question.cluster, None, question.rules, scheduler(name)))[metric]
        for name in (model, rule)
    )
    assert ours < (1.0 - least) * theirs


def test_green_ineps_uses_less_brown_energy_than_the_best_placement(greenbatch_data: Find) -> None:
    """On held-out windows that do not overlap, at about the same makespan."""
    greenbatch_data("swf/lublin_256.swf.gz")
    question, ours, theirs = scenario_of("ineps/green"), [], []
    for start in (2000, 3376):
        window = question.window(start, 1024)
        for name, found in (("green-ineps@lublin-256", ours), ("gas-marl-plus@lublin-256+none+worst-fit", theirs)):
            outcome = simulate(window, question.cluster, question.site, question.rules, scheduler(name))
            found.append(evaluate(outcome))
    assert sum(each["brown_kwh"] for each in ours) < 0.99 * sum(each["brown_kwh"] for each in theirs)
    assert sum(each["makespan_s"] for each in ours) < 1.03 * sum(each["makespan_s"] for each in theirs)


def test_green_ineps_takes_no_placement() -> None:
    with pytest.raises(InputError, match=r"chooses the nodes itself .* \(leave out pack\)"):
        scheduler("green-ineps@lublin-256+none+pack")


def test_cost_aware_plus_pays_less_for_less_brown_energy(greenbatch_data: Find) -> None:
    """On some windows of the year after its training: the weights of an operator say which of both is saved."""
    greenbatch_data(LOGS["hpc2n"])
    question = scenario_of("cost-aware/hpc2n")
    told, found = question.evaluation, {}
    for spec in (
        "f2+none", "cost-aware-plus@hpc2n+none", "cost-aware-plus@hpc2n:brown=1:cost=0+none",
        "cost-aware-plus@hpc2n:brown=0:cost=1+none",
    ):  # fmt: skip
        rows = []
        for start in (told.starts or ())[::2]:
            given = question.window(start, told.jobs), question.cluster, question.site, question.rules
            outcome = simulate(*given, scheduler(spec))
            figures = evaluate(outcome, horizon=horizon_of(*given, told.horizon))
            rows.append([figures["horizon_brown_kwh"], figures["horizon_cost"]])
        found[spec] = np.sum(rows, axis=0)
    rule, usual, brown, cheap = found.values()
    assert (usual < rule).all()
    assert brown[0] < cheap[0]
    assert cheap[1] < brown[1]
