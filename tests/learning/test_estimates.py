"""A model on recorded decisions: its figures are those of the functions, and what does not fit is refused."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from off_policy import PRESET, off_policy_plan
from tiny import SCENARIO

import greenbatch as gb
from greenbatch import datasets
from greenbatch.cli import main
from greenbatch.datasets import Dataset
from greenbatch.errors import InputError
from greenbatch.experiments.papers.untrained import write_untrained
from greenbatch.experiments.reports.estimates import estimates_json, sentences
from greenbatch.experiments.running.estimates import Estimates, Value, estimates
from greenbatch.learning.evaluation import Estimate, agreement, per_episode
from greenbatch.learning.evaluation.fitted import Fitted
from greenbatch.learning.evaluation.recorded import Transitions
from greenbatch.learning.runs.plan import make_plan
from greenbatch.models.model import Model, load_model

pytestmark = pytest.mark.plain

GAMMA = 0.99
STARTS = tuple(range(0, 188, 12))
RULE, OTHER = "sjf+first-fit", "fcfs+none"


@dataclass(frozen=True)
class Case:
    """A network that starts the shortest job that fits, as `RULE`, and a dataset of that rule and another."""

    folder: Path
    model: Model
    dataset: Dataset
    scenario: gb.Scenario

    @property
    def words(self) -> list[str]:
        """The command without flags that tests add."""
        return ["estimate", str(self.model.folder), "--dataset", str(self.dataset.folder), "--threads", "1"]


def model_in(folder: Path, name: str, **network: object) -> Model:
    """A network that is not trained; it sees all jobs of a window."""
    given = {f"network.{key}": value for key, value in network.items()}
    plan = off_policy_plan(folder, overrides={"observation.queue.rows": 12, **given})
    write_untrained(plan, folder / name)
    return load_model(folder / name)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("estimates")
    model = model_in(folder, "sjf", skip={"requested_time": -50.0, "is_wait": -500.0}, zero_last=True)
    (folder / "free.toml").write_text(SCENARIO.replace("sticky", "reconsider"))
    scenario = gb.load_scenario(folder / "free.toml")
    made = datasets.recording(scenario, model.preset, [RULE, OTHER], starts=STARTS, jobs=12)
    (folder / "data").mkdir()
    datasets.write(made, folder / "data")
    return Case(folder, model, datasets.read(folder / "data"), scenario)


@pytest.fixture(scope="module")
def found(case: Case) -> Estimates:
    return estimates(case.model, case.dataset, scenario=case.scenario, steps=60, seed=3)


def hand_count(dataset: Dataset, number: int) -> tuple[int, int, float]:
    """Choices of a scheduler; those among them that go to the shortest job; the sum of 1 / valid actions."""
    contested, equal, chance = 0, 0, 0.0
    for k in range(len(dataset)):
        rows = np.flatnonzero(dataset.masks[k])
        if dataset.schedulers[k] != number or len(rows) < 2:
            continue
        jobs = [row for row in rows if not dataset.observations["queue"][k, row, 4]]
        shortest = min(jobs, key=lambda row: float(dataset.observations["queue"][k, row, 1]))
        contested, chance = contested + 1, chance + 1 / len(rows)
        equal += int(shortest == dataset.actions[k])
    return contested, equal, chance


def test_agreement_is_that_of_a_hand_count(case: Case, found: Estimates) -> None:
    shares = []
    for number, each in enumerate(found.schedulers.values()):
        contested, equal, chance = hand_count(case.dataset, number)
        assert each.agreement is not None
        assert contested == each.agreement.contested > 20
        assert each.agreement.share == pytest.approx(equal / contested)
        assert each.at_random == pytest.approx(chance / contested)
        shares.append(each.agreement.share)
    assert shares[0] == 1.0, "the model is a clone of the rule"
    assert shares[1] < 1.0


def test_a_clone_of_the_recorded_rule_is_worth_what_was_recorded(case: Case) -> None:
    made = datasets.recording(case.scenario, case.model.preset, RULE, starts=STARTS, jobs=12)
    folder = case.folder / "own"
    folder.mkdir()
    datasets.write(made, folder)
    told = estimates(case.model, datasets.read(folder), scenario=case.scenario, steps=20)
    assert told.importance is not None
    assert told.simulated_model is not None
    assert told.whole.agreement is not None
    truth = told.whole.value
    assert told.whole.agreement.share_of_all == 1.0
    assert told.importance.value == pytest.approx(truth.discounted)
    assert told.importance.effective == pytest.approx(len(STARTS))
    assert told.importance.mean_weight == 1.0
    assert told.simulated_model == pytest.approx(truth)
    assert told.simulated == {RULE: pytest.approx(truth)}
    assert told.fitted.gap == pytest.approx(told.fitted.estimate.value - truth.discounted)
    assert told.fitted.gap is not None
    assert told.distance == pytest.approx(told.fitted.gap / abs(truth.discounted))


VERDICTS = {
    "close": ({}, 1.05, ": within 10 % ("),
    "drift": ({"drift": 0.5, "explained": 0.1}, 2.0, ": it had not settled; give more --steps; the critics explain"),
    "critics": ({"explained": 0.1}, 2.0, ": the critics explain 10.0 % of the variance of their targets"),
    "few": ({}, 2.0, ": the record has 16 first decisions, too few"),
    "unknown": ({}, 0.5, ": no diagnostic shows why;"),
    "nothing": ({"drift": 1.0}, 0.0, "the simulation 0: not within 10 %: it had not settled"),
}
"""What speaks against an estimate of 1, the simulated value -> what is said."""


@pytest.mark.parametrize("name", VERDICTS)
def test_the_verdict_names_what_speaks_against_an_estimate(name: str, found: Estimates) -> None:
    diagnostics, simulated, told = VERDICTS[name]
    few = name == "few"
    one = Estimate(1.0, 0.9, 1.1, episodes=16, effective=9.0 if few else 16.0)
    good = {"estimate": one, "residual": 0.1, "explained": 0.9, "drift": 0.0, "gap": 1.0 - simulated}
    assert found.whole.agreement is not None
    agrees = replace(found.whole, agreement=found.whole.agreement._replace(share=0.9))
    truth = Value(simulated, simulated, 16)
    made = replace(found, whole=agrees, fitted=Fitted(**(good | diagnostics)), simulated_model=truth)
    assert told in sentences(made)[-1]
    if name == "unknown":
        differs = replace(found.whole, agreement=found.whole.agreement._replace(share=0.3))
        assert ": the policy agrees with 30.0 % of the recorded choices" in sentences(replace(made, whole=differs))[-1]
        assert ": jobs of the log start when its site let them" in sentences(replace(made, paced=True))[-1]


def test_starts_of_a_log_are_paced_for_an_agent_that_cannot_wait(case: Case, found: Estimates) -> None:
    assert not found.paced
    jobs = case.scenario.workload
    logged = replace(case.scenario, workload=jobs.with_columns(recorded_wait_s=np.full(len(jobs), 30.0)))
    for waits in (True, False):
        overrides = {"observation.queue.rows": 12, "action.wait": waits, "action.only_fitting": waits}
        folder = case.folder / f"log-{waits}"
        write_untrained(off_policy_plan(case.folder, overrides=overrides), folder / "model")
        (folder / "data").mkdir()
        model = load_model(folder / "model")
        datasets.write(datasets.recording(logged, model.preset, "as-recorded", starts=STARTS, jobs=12), folder / "data")
        assert estimates(model, datasets.read(folder / "data"), steps=2).paced == (not waits)


def test_transitions_are_those_of_the_dataset(case: Case) -> None:
    """Each drawn observation is followed by the next of its episode, or worth nothing more."""
    dataset, gamma = replace(case.dataset, rewards=np.arange(len(case.dataset)).astype(float)), 0.5
    drawn = Transitions(dataset, gamma, 40_000)(np.random.default_rng(1))
    places = drawn.rewards.numpy().astype(np.int64)
    ends = np.isin(places, dataset.offsets[1:] - 1)
    np.testing.assert_array_equal(drawn.actions.numpy(), dataset.actions[places])
    np.testing.assert_array_equal(drawn.discounts.numpy(), np.where(ends, 0.0, gamma).astype(np.float32))
    np.testing.assert_array_equal(drawn.batch.state.numpy(), dataset.observations["state"][places])
    following = dataset.observations["state"][np.where(ends, places, places + 1)]
    np.testing.assert_array_equal(drawn.following.state.numpy(), following)
    steps = places - dataset.offsets[np.searchsorted(dataset.offsets, places, side="right") - 1]
    lengths = np.diff(dataset.offsets)
    for step in (0, 1, 2):
        reached = (lengths > step).sum()
        mass = sum(gamma**k * (lengths > k).sum() for k in range(lengths.max()))
        expected = 0.5 * reached / len(dataset) + 0.5 * gamma**step * reached / mass
        assert np.mean(steps == step) == pytest.approx(expected, abs=0.01)


def test_the_figures_are_those_of_the_functions(case: Case, found: Estimates) -> None:
    dataset, whole = case.dataset, found.whole
    discounts = np.concatenate([GAMMA ** np.arange(part.stop - part.start) for part in dataset.episodes])
    returns = np.add.reduceat(dataset.rewards, dataset.offsets[:-1])
    weighed = np.add.reduceat(dataset.rewards * discounts, dataset.offsets[:-1])
    owners = dataset.schedulers[dataset.offsets[:-1]]
    assert whole.value == pytest.approx((weighed.mean(), returns.mean(), len(STARTS)))
    for number, (record, each) in enumerate(zip(dataset.record.schedulers, found.schedulers.values(), strict=True)):
        assert each.value.total == pytest.approx(record.mean_return)
        assert each.value.discounted == pytest.approx(weighed[owners == number].mean())
    shortest = [
        min((row for row in np.flatnonzero(mask) if not seen[row, 4]), key=lambda row: float(seen[row, 1]), default=0)
        if mask.sum() > 1 else int(np.argmax(mask))
        for mask, seen in zip(dataset.masks, dataset.observations["queue"], strict=True)
    ]  # fmt: skip
    assert whole.agreement == agreement(np.array(shortest), dataset.actions, dataset.masks.sum(1))
    agrees = np.where(np.array(shortest) == dataset.actions, 0.0, -np.inf)
    assert found.importance == per_episode(agrees, dataset.rewards, dataset.offsets, gamma=GAMMA, seed=3)
    assert found.simulated is not None
    assert set(found.simulated) == set(found.schedulers)


def test_the_behavior_divides_and_a_sampled_policy_is_another_one(case: Case) -> None:
    """Weights are 1 where the evaluated policy is the behavior; a policy that draws is seldom the record's."""
    soft = model_in(case.folder, "soft")
    same = estimates(soft, case.dataset, behavior=soft, sampled=True, steps=1)
    alone = estimates(soft, case.dataset, sampled=True, steps=1)
    assert same.importance is not None
    assert alone.importance is not None
    assert same.importance.value == pytest.approx(same.whole.value.discounted)
    assert same.importance.mean_weight == pytest.approx(1.0)
    assert alone.importance.mean_weight < 0.01
    assert same.distance is None


def test_the_verb_prints_and_writes_what_the_function_finds(
    case: Case, found: Estimates, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--simulate", "--scenario", str(case.folder / "free.toml"), "--steps", "60", "--seed", "3"]
    out = case.folder / "out"
    assert main([*case.words, *flags, "--json", "--out", str(out)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((out / "estimate.json").read_text())
    assert json.loads((out / "estimate.json").read_text()) == json.loads(json.dumps(estimates_json(found)))
    record = json.loads((out / "provenance.json").read_text())
    assert record["files"].keys() == {"estimate.json", "table.md"}
    assert record["notes"] == [str(note) for note in case.scenario.notes] != []
    table = (out / "table.md").read_text()
    for name, each in found.schedulers.items():
        assert each.agreement is not None
        row = next(line for line in table.splitlines() if line.startswith(f"| {name} |"))
        assert f"{100 * each.agreement.share:.1f}" in row
        assert f"{each.value.total:,.6g}" in row
    row = next(line for line in table.splitlines() if line.startswith("| fitted Q evaluation |"))
    assert f"{found.fitted.estimate.value:,.6g}" in row
    assert all(line in table for line in sentences(found))


def test_one_episode_gives_a_caution_and_no_interval(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    made = datasets.recording(case.scenario, case.model.preset, RULE, starts=[0], jobs=12)
    folder = case.folder / "one"
    folder.mkdir()
    datasets.write(made, folder)
    one = estimates(case.model, datasets.read(folder), steps=3)
    assert one.fitted.estimate.low == one.fitted.estimate.value == one.fitted.estimate.high
    assert main(["estimate", str(case.model.folder), "--dataset", str(folder), "--steps", "3", "--threads", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Caution: fitted Q evaluation" in shown


def test_another_preset_or_scenario_is_refused_in_one_line(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    (case.folder / "six.toml").write_text(PRESET.replace("rows = 5", "rows = 6"))
    write_untrained(make_plan(case.folder / "six.toml", case.scenario, threads=1), case.folder / "six")
    out = case.folder / "refused"
    refused = {
        (str(case.folder / "six"),): "which differs from small-off-policy in observation.queue.rows",
        (str(case.model.folder), "--behavior", str(case.folder / "six")): "in observation.queue.rows",
        ("rare-plus@10",): "which differs from rare-plus in observation",
        (str(case.model.folder), "--simulate", "--scenario", "default"): "was recorded on tiny, which differs from",
        (str(case.model.folder), "--simulate"): "tiny",
        (str(case.model.folder), "--trace", "x"): "--trace: is for simulations",
        (str(case.model.folder), "--gamma", "1.5"): "gamma: is 1.5",
        (str(case.model.folder), "--steps", "0"): "--steps: is 0",
        (str(case.folder / "none"),): "is not a model",
    }
    for words, told in refused.items():
        assert main(["estimate", *words, "--dataset", str(case.dataset.folder), "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert told in error, error
        assert error.count("\n") == 1
        assert not out.exists()


def test_decisions_without_a_choice_are_refused(case: Case) -> None:
    alone = np.zeros_like(case.dataset.masks)
    alone[np.arange(len(alone)), case.dataset.actions] = True
    lonely = replace(case.dataset, masks=alone, observations={**case.dataset.observations, "selectable": alone})
    with pytest.raises(InputError, match=r"has no choice in any of \d+ decisions"):
        estimates(case.model, lonely, steps=1)


def test_without_torch_one_line_says_so(
    case: Case, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    assert main(case.words) == 2
    told = 'greenbatch estimate requires torch, which is not installed (pip install "greenbatch[learn]")'
    assert told in capsys.readouterr().err
