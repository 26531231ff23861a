"""A model behind the seam decides as the batched environment with its torch network; how models are named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import greenbatch as gb
from greenbatch.engine.observe.batch import observe_view
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Start, View, Wait
from greenbatch.engine.views.session import Session
from greenbatch.envs.batch import BatchEnv
from greenbatch.errors import InputError
from greenbatch.models.model import save_model
from greenbatch.models.network import NetworkScheduler
from greenbatch.presets.layout import layout_of, program_of
from greenbatch.presets.preset import Preset, check, preset, resolve
from greenbatch.presets.shapes import shapes_of
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import input_files, scheduler
from model_records import record_for

DATA = {
    "default": None, "gas-marl/lublin-256": "swf/lublin_256.swf.gz", "gas-marl/jann": "swf/Jann.swf.gz",
    "rlscheduler/lublin-1": "swf/lublin_256.swf.gz",
}  # fmt: skip
"""Scenario -> the trace it needs."""


def everything() -> Preset:
    """A preset that uses every table: states, a row that stands for waiting, few delays, short windows."""
    raw = preset("gas-marl").model_dump(mode="json")
    raw["name"] = "everything"
    raw["observation"]["queue"]["rows"] = 7
    raw["observation"]["queue"]["columns"] += [
        {"feature": "is_wait"}, {"feature": "slowdown", "scale": 10.0, "log": True}, {"feature": "area", "scale": 1e4},
    ]  # fmt: skip
    raw["observation"]["queue"]["empty"] = []
    raw["observation"]["running"]["rows"] = 5
    raw["observation"]["state"]["columns"] = [
        {"feature": name, "scale": scale} for name, scale in
        (("free_share", 1.0), ("load", 1e4), ("supply", 1e4), ("queue_length", 10.0), ("queued_work", 1e4),
         ("running_work", 1e4), ("hour_sine", 1.0), ("hour_cosine", 1.0), ("since_arrival", 3600.0))
    ]  # fmt: skip
    raw["action"] = {
        "delays": [{"kind": "none"}, {"kind": "releases", "amount": 2}, {"kind": "seconds", "amount": 900}],
        "wait": True, "longest_hold_s": 20_000.0,
    }  # fmt: skip
    raw["network"] = {"kind": "context", "width": 32, "context": 16}
    raw["settings"] = {"tick_s": 1800.0, "sticky": 1.0}
    return check(raw)


def one_action() -> Preset:
    """GAS-MARL's tables, no delays, a small network: any weights end any simulation."""
    raw = preset("maskable-ppo").model_dump(mode="json")
    return check({**raw, "name": "one-action", "network": {"kind": "context", "width": 32}, "settings": {}})


def ineps_network() -> Preset:
    """RLScheduler's tables with InEPS's network."""
    raw = preset("rlscheduler").model_dump(mode="json")
    return check({**raw, "name": "ineps-network", "network": {"kind": "ineps"}})


def recurrent() -> Preset:
    """The same tables with a memory."""
    raw = one_action().model_dump(mode="json")
    return check({**raw, "name": "recurrent", "network": {"kind": "recurrent", "hidden": 24}})


PRESETS: dict[str, Callable[[], Preset]] = {
    "gas-marl": lambda: preset("gas-marl"),
    "maskable-ppo": lambda: preset("maskable-ppo"),
    "rlscheduler": lambda: preset("rlscheduler"),
    "everything": everything,
    "one-action": one_action,
    "ineps-network": ineps_network,
    "recurrent": recurrent,
}


@pytest.fixture(scope="session")
def question(greenbatch_data: Callable[[str], Path]) -> Callable[[str], Scenario]:
    """A scenario, read once."""
    read: dict[str, Scenario] = {}

    def find(name: str) -> Scenario:
        if (trace := DATA[name]) is not None:
            greenbatch_data(trace)
        if name not in read:
            read[name] = load_scenario(name)
        return read[name]

    return find


def actor_of(made: Preset, seed: int = 0) -> Any:
    """An actor with random weights, large enough that it does not always choose the same."""
    from greenbatch.learning.networks import build

    actor, _ = build(made.network, shapes_of(made), seed)
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter.mul_(1.7).add_(0.05 * torch.randn(parameter.shape, generator=noise))
    return actor


def write_model(folder: Path, made: Preset, scenario: Scenario, *, seed: int = 0) -> Any:
    """A model with random weights in a folder; returns the actor."""
    actor = actor_of(made, seed)
    weights = {key: value.numpy() for key, value in actor.state_dict().items()}
    record = record_for(scenario, made.backfill, seed=seed)
    save_model(folder, weights, made, record, scenario=scenario)
    return actor


def batched_starts(scenario: Scenario, made: Preset, backfill: str, starts: list[int], jobs: int, actor: Any) -> Any:
    """Start times of all jobs by the batched environment and the torch network, and how often it waited or delayed."""
    from greenbatch.learning.networks.observations import as_batch
    from greenbatch.learning.training.rollout import Choice

    env = BatchEnv(scenario, made, environments=len(starts), jobs=jobs, backfill=backfill)
    choice, seen, kinds = Choice(actor, None, simulations=len(starts)), env.reset(starts), np.zeros(2, np.int64)
    with torch.inference_mode():
        while len(seen.environment):
            assert kinds.max() < 20_000, "it waits forever"
            rows, delays, _ = choice(as_batch(seen), seen.environment)
            last = np.diff(seen.queue_offsets) - 1
            kinds += int((env.layout.wait * (rows.numpy() == last)).sum()), int(np.count_nonzero(delays))
            seen, _, _ = env.step(np.column_stack([rows.numpy(), delays.numpy()]))
    return env.starts_s[: len(starts)].copy(), kinds


@pytest.mark.parametrize(
    ("name", "scenario_name", "backfill", "starts"),
    [
        ("gas-marl", "gas-marl/lublin-256", "green", [300, 6567]),
        ("gas-marl", "gas-marl/jann", "easy-schedgym", [4000]),
        ("maskable-ppo", "gas-marl/lublin-256", "none", [1000]),
        ("one-action", "default", "easy", [3000]),
        ("recurrent", "default", "easy", [17, 3000]),
        ("rlscheduler", "rlscheduler/lublin-1", "easy-schedgym", [2500]),
        ("ineps-network", "rlscheduler/lublin-1", "easy-schedgym", [500]),
        ("everything", "gas-marl/lublin-256", "green", [700, 5000]),
        ("everything", "gas-marl/jann", "easy", [900]),
    ],
)
def test_behind_the_seam_a_model_makes_the_schedule_of_the_batched_environment(
    name: str, scenario_name: str, backfill: str, starts: list[int], question: Callable[[str], Scenario], tmp_path: Path
) -> None:
    scenario, made = question(scenario_name), PRESETS[name]()
    jobs = 256 if made.observation.queue.rows == 128 else 128  # up to twice the rows of a table that is full
    actor = write_model(tmp_path / "model", made, scenario)
    wanted, (waits, delays) = batched_starts(scenario, made, backfill, starts, jobs, actor)
    if name in ("gas-marl", "everything"):
        assert delays > 0, "a test of nothing but undelayed starts"
    if name == "everything":
        assert waits > 0
    learned = scheduler(f"{name}@{tmp_path / 'model'}+{backfill}")
    for start, theirs in zip(starts, wanted, strict=True):
        outcome = simulate(scenario.window(start, jobs), scenario.cluster, scenario.site, scenario.rules, learned)
        np.testing.assert_array_equal(outcome.start_s, theirs)


def test_a_memory_is_saved_as_json_and_new_simulations_begin_without_one(tmp_path: Path) -> None:
    scenario = load_scenario("default")
    write_model(tmp_path / "model", recurrent(), scenario)
    learned = scheduler(f"recurrent@{tmp_path / 'model'}+none")
    assert isinstance(learned, NetworkScheduler)
    window, policy = scenario.window(17, 60), learned.policy()
    session = Session(window, scenario.cluster, scenario.site, scenario.rules, learned.program(window))
    for _ in range(20):
        view = session.view()
        assert view is not None
        session.apply(policy.decide(view))
    view, resumed, fresh = session.view(), learned.policy(), learned.policy()
    assert view is not None
    resumed.recall(json.loads(json.dumps(policy.memory())))
    logits = [each.answer(view).logits for each in (policy, resumed, fresh)]
    np.testing.assert_array_equal(logits[0], logits[1])
    assert np.abs(logits[0] - logits[2]).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "scenario_name"),
    [("gas-marl", "gas-marl/jann"), ("rlscheduler", "rlscheduler/lublin-1"), ("everything", "gas-marl/lublin-256")],
)
def test_a_view_shows_what_the_batched_environment_shows(
    name: str, scenario_name: str, question: Callable[[str], Scenario]
) -> None:
    scenario = question(scenario_name)
    made = resolve(PRESETS[name](), scenario)
    layout, rng = layout_of(made), np.random.default_rng(1)
    env = BatchEnv(scenario, made, environments=1, jobs=128)
    seen = env.reset([1500])
    window = scenario.window(1500, 128)
    session = Session(window, scenario.cluster, scenario.site, scenario.rules, program_of(made, None))
    decisions = 0
    while len(seen.environment):
        view = session.view()
        assert view is not None
        ours = observe_view(view, layout)
        for table in ("queue", "selectable", "running", "supply", "state", "delays"):
            np.testing.assert_array_equal(getattr(ours, table), getattr(seen, table), err_msg=table)
        row = int(rng.choice(np.flatnonzero(seen.selectable)))
        delay = int(rng.choice(np.flatnonzero(seen.delays[0])))
        kind, amount = int(layout.delays[delay].kind), float(layout.delays[delay].amount)
        waits = layout.wait and row == len(seen.selectable) - 1
        session.apply(Wait() if waits else Start(row, kind, amount))
        seen, _, _ = env.step(np.array([[row, delay]]))
        decisions += 1
    assert session.view() is None
    assert decisions > 20


def test_a_view_knows_nothing_of_run_times(question: Callable[[str], Scenario]) -> None:
    """Observations of two windows that differ only in run times agree until the first job ends."""
    scenario = question("default")
    layout = layout_of(resolve(everything(), scenario))
    window = scenario.window(40, 30)
    other = window.with_columns(run_time_s=window.run_time_s * 0.999)
    views: list[View] = []
    for jobs in (window, other):
        session = Session(jobs, scenario.cluster, scenario.site, scenario.rules, program_of(everything(), "none"))
        first = session.view()
        assert first is not None
        session.apply(Start(0))
        second = session.view()
        assert second is not None
        assert second.running.job_id.size == 1
        views.append(second)
    for ours, theirs in zip(*(observe_view(view, layout) for view in views), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model for the default scenario, in a folder whose name is not simple."""
    folder = tmp_path_factory.mktemp("a+b") / "runs+green" / "model"
    write_model(folder, one_action(), load_scenario("default"))
    return folder


def refusal(spec: str, scenario: str = "default") -> str:
    with pytest.raises(InputError) as caught:
        gb.simulate(scenario, spec, jobs=20)
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_a_plus_in_a_folder_is_not_the_one_before_a_backfilling(model: Path) -> None:
    for suffix, backfill in (("", "none"), ("+none", "none"), ("+green", "green"), (":sample=1+easy", "easy")):
        made = scheduler(f"one-action@{model}{suffix}")
        assert isinstance(made, NetworkScheduler)
        assert (made.backfill, made.model.folder) == (backfill, model)
    with_sigma = scheduler(f"one-action@{model}+green:sigma=2e+4")
    settings = with_sigma.program(load_scenario("default").window(0, 10)).settings or {}
    assert settings["threshold_j"] == 20_000.0
    assert with_sigma.name == f"one-action@{model}+green:sigma=2e+4"


def test_wrong_names_are_refused_in_one_line(model: Path, tmp_path: Path) -> None:
    assert "is not a model" in refusal(f"one-action@{tmp_path / 'nothing'}+green")
    assert f"is a model of one-action, not of rlscheduler (write one-action@{model})" in refusal(f"rlscheduler@{model}")
    assert "one-action has no parameter 'smaple' (it takes sample, seed, eager, hold)" in refusal(
        f"one-action@{model}:smaple=1"
    )
    assert "(no backfilling is called 'greeen'; known: conservative, easy, " in refusal(f"one-action@{model}+greeen")
    assert "one-action never waits, so it has no parameter 'hold'" in refusal(f"one-action@{model}:hold=60")
    assert "sample is 2 (give 0 or 1)" in refusal(f"one-action@{model}:sample=2")
    assert "seed is 0.5 (give a whole number from 0 to 1e15)" in refusal(f"one-action@{model}:sample=1:seed=0.5")
    assert "seed is 1e300 (give a whole number" in refusal(f"one-action@{model}:sample=1:seed=1e300")
    assert "conservative" in refusal(f"one-action@{model}+conservative")
    assert "easy has no parameter 'sigma'" in refusal(f"one-action@{model}+easy:sigma=3")


def test_weights_that_overflow_raise_and_decide_nothing(model: Path, tmp_path: Path) -> None:
    record = record_for(load_scenario("default"))
    weights = {name: value * np.float32(1e30) for name, value in load_file(model / "actor.safetensors").items()}
    save_model(tmp_path / "huge", weights, one_action(), record, scenario=load_scenario("default"))
    assert "scores of the waiting jobs are not finite" in refusal(f"one-action@{tmp_path / 'huge'}+easy")


def test_a_model_that_does_not_fit_says_why(model: Path, tmp_path: Path) -> None:
    scenario = load_scenario("default")
    learned = scheduler(f"one-action@{model}+easy")
    window = scenario.window(0, 20)
    with pytest.raises(InputError, match="needs a power supply"):
        simulate(window, scenario.cluster, None, scenario.rules, learned)
    unknown = window.with_columns(power_w=np.full(20, np.nan))
    with pytest.raises(InputError, match="has no power"):
        simulate(unknown, scenario.cluster, scenario.site, scenario.rules, learned)
    indoors = learned.model.preset.model_copy(update={"needs_site": False})
    anywhere = replace(learned, model=replace(learned.model, preset=indoors))
    with pytest.raises(InputError, match="needs a power supply"):
        simulate(unknown, scenario.cluster, None, scenario.rules, anywhere)
    larger = gb.Cluster.pooled(512)
    with pytest.raises(InputError, match="was trained for 256 processors, the cluster has 512"):
        simulate(window, larger, scenario.site, scenario.rules, learned)
    record = model / "model.json"
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "actor.safetensors").write_bytes((model / "actor.safetensors").read_bytes())
    content = json.loads(record.read_text())
    for key, value, line in (
        (
            "observation",
            {**content["preset"]["observation"], "state": {"columns": [{"feature": "load"}]}},
            "are for 8 columns at encode_queue.0, the preset has 9",
        ),
        ("network", {"kind": ["context"]}, "no such network: ['context']"),
        ("network", {"kind": "attention"}, "weights.key.weight: is missing"),
    ):
        (broken / "model.json").write_text(json.dumps({**content, "preset": {**content["preset"], key: value}}))
        assert line in refusal(f"one-action@{broken}+green")


@pytest.mark.filterwarnings("ignore::greenbatch.ModelWarning")
def test_drawn_actions_follow_the_seed_and_the_best_ones_do_not(model: Path) -> None:
    def starts(parameters: str) -> Any:
        return gb.simulate("default", f"one-action@{model}{parameters}+easy", start=100, jobs=60).start_s.tolist()

    assert starts(":sample=1:seed=3") == starts(":sample=1:seed=3")
    assert starts(":sample=1:seed=3") != starts(":sample=1:seed=4")
    assert starts("") == starts(":seed=4")


def test_eagerness_and_a_shorter_hold_leave_less_waiting(tmp_path: Path, question: Callable[[str], Scenario]) -> None:
    scenario = question("gas-marl/lublin-256")
    write_model(tmp_path / "model", everything(), scenario)
    window = scenario.window(700, 60)
    waits = {}
    for knobs in ("", ":eager=0", ":eager=1", ":eager=1e6", ":hold=1", ":hold=100000:eager=0.5:sample=1"):
        learned = scheduler(f"everything@{tmp_path / 'model'}{knobs}+none")
        assert isinstance(learned, NetworkScheduler)
        session = Session(window, scenario.cluster, scenario.site, scenario.rules, learned.program(window))
        policy, waits[knobs] = learned.policy(), [0, 0]
        while (view := session.view()) is not None:
            decision = policy.decide(view)
            fits = view.queue.processors[:7] <= view.queue.free_processors
            overdue = bool(np.any(fits & (view.queue.wait_s[:7] > 1.0)))
            waits[knobs][0] += isinstance(decision, Wait)
            waits[knobs][1] += isinstance(decision, Wait) and overdue
            session.apply(decision)
    assert waits[""] == waits[":eager=0"]
    assert waits[""][1] > 0
    assert waits[":eager=1e6"] == [0, 0]
    assert waits[":eager=1"][0] < waits[""][0]
    assert waits[":hold=1"][1] == 0


def test_one_scheduler_object_serves_many_windows_alike(model: Path) -> None:
    scenario = load_scenario("default")
    learned = scheduler(f"one-action@{model}:sample=1+green")
    parts = (scenario.window(30, 40), scenario.cluster, scenario.site, scenario.rules, learned)
    assert simulate(*parts).start_s.tolist() == simulate(*parts).start_s.tolist()


def test_models_that_come_with_greenbatch_are_found_by_name(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenbatch.models.find.SHIPPED", model.parents[2])
    (model.parents[2] / "one-action").symlink_to(model.parents[1])
    shipped = scheduler("one-action@runs+green/model+easy")
    assert isinstance(shipped, NetworkScheduler)
    assert shipped.model.folder == model.parents[2] / "one-action" / "runs+green" / "model"
    assert list(input_files(["one-action@runs+green/model"])) == ["one-action@runs+green/model/actor.safetensors"]
    assert "is not a model (give the folder of a training, or its folder model" in refusal("one-action@elsewhere")


def test_a_training_folder_can_be_given_instead_of_its_model(model: Path) -> None:
    found = scheduler(f"one-action@{model.parent}:sample=1+green")
    assert isinstance(found, NetworkScheduler)
    assert found.model.folder == model
    digest = json.loads((model / "model.json").read_text())["weights"]["sha256"]
    assert list(input_files([f"one-action@{model.parent}+none"]).values()) == [digest]


def test_provenance_names_the_weights(model: Path) -> None:
    digest = json.loads((model / "model.json").read_text())["weights"]["sha256"]
    spec = f"one-action@{model}:sample=1+green:sigma=1e+4"
    assert input_files(["fcfs+easy", spec]) == {f"one-action@{model}/actor.safetensors": digest}


@pytest.mark.filterwarnings("ignore::greenbatch.ModelWarning")
def test_a_model_runs_where_there_is_no_torch(model: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; import greenbatch as gb;"
        f"print(gb.simulate('default', 'one-action@{model}+green', jobs=40).start_s.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == gb.simulate("default", f"one-action@{model}+green", jobs=40).start_s.tolist()


def test_the_scores_of_a_view_are_those_that_decide(model: Path) -> None:
    scenario = load_scenario("default")
    learned = scheduler(f"one-action@{model}+green")
    assert isinstance(learned, NetworkScheduler)
    window = scenario.window(30, 40)
    session = Session(window, scenario.cluster, scenario.site, scenario.rules, learned.program(window))
    policy, decisions = learned.policy(), 0
    while (view := session.view()) is not None:
        answer = policy.answer(view)
        assert answer.logits.shape == view.job_id.shape
        assert answer.row == int(np.argmax(answer.logits))
        decision = policy.decide(view)
        assert isinstance(decision, Start)
        assert decision.row == answer.row
        session.apply(replace(decision, row=int(decision.row)))
        decisions += 1
    assert decisions > 5
