"""Off-policy training in a folder: what it writes, and that it resumes to the same bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from off_policy import off_policy_plan
from tiny import weights_of

import greenbatch as gb
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.learning.networks import build, bytes_of, fitting
from greenbatch.learning.offpolicy.behavior import Exploring, Recorded, play_loads
from greenbatch.learning.offpolicy.loop import FILL, OffPolicySetup
from greenbatch.learning.offpolicy.loop import train as train_off_policy
from greenbatch.learning.runs.checkpoint import load_checkpoint
from greenbatch.learning.runs.folder import CHECKPOINT, LOG, MODEL, RUN
from greenbatch.learning.runs.log import read_log
from greenbatch.learning.runs.plan import Plan, make_plan
from greenbatch.learning.trainers import train_or_search
from greenbatch.learning.training.rollout import play
from greenbatch.metrics import evaluate
from greenbatch.models.model import LARGEST_BYTES, load_model
from greenbatch.presets.preset import preset
from greenbatch.presets.shapes import Shapes
from greenbatch.presets.training import read_training
from greenbatch.scenarios import load_scenario

TIMES = {"elapsed_s", "decisions_per_s", "steps_per_minute"}


def figures(run: Path) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key not in TIMES} for line in read_log(run / LOG)]


def state_of(run: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    tensors, state = load_checkpoint(run / CHECKPOINT)
    return {name: value.tobytes() for name, value in tensors.items()}, {**state, "elapsed_s": 0, "log_bytes": 0}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Plan, Path]:
    """A finished training of RARE's network, chosen through the trainers' common door."""
    place = tmp_path_factory.mktemp("finished")
    plan = off_policy_plan(place, overrides={"network": {"kind": "rare", "hidden": 32}})
    train_or_search(plan, place / "run", watch=lambda _: None)
    return plan, place / "run"


def test_the_folder_is_that_of_every_training(finished):
    plan, run = finished
    assert sorted(file.name for file in run.iterdir()) == [CHECKPOINT, LOG, MODEL, RUN]
    lines = read_log(run / LOG)
    assert [line["epoch"] for line in lines] == [0, 1, 2, 3, 4, 4]
    assert lines[-1]["done"]
    made = plan.settings.off_policy
    assert [line["steps"] for line in lines[1:5]] == [6, 12, 18, 24]
    assert lines[4]["stored"] == made.buffer
    epsilons = [line["epsilon"] for line in lines[1:5]]
    assert epsilons[0] == 1.0
    assert epsilons == sorted(epsilons, reverse=True)
    before = sum(line["decisions"] for line in lines[1:4])
    assert epsilons[3] == pytest.approx(max(0.1, 1.0 - 0.9 * before / made.epsilon_decisions))
    for line in lines[1:5]:
        before_the_first = line["accrued_bounded_slowdown"] + line["return"]
        assert before_the_first == pytest.approx(1 / 12)  # one of twelve jobs has come, at a slowdown of 1
    record = load_model(run / MODEL).record
    assert record.training.decisions == sum(line["decisions"] for line in lines[1:5])
    assert record.training.settings.off_policy == made


def test_the_model_schedules_as_the_actor_does(finished):
    """Through the ONNX graph, on a validation window."""
    plan, run = finished
    model, setup = load_model(run / MODEL), OffPolicySetup(plan, torch.device("cpu"))
    assert setup.validate(model.weights).figure == model.record.validation.figure
    scenario = plan.scenario
    start = int(setup.validation_starts[0])
    agent = gb.scheduler(f"small-off-policy@{run / MODEL}")
    outcome = simulate(scenario.window(start, 12), scenario.cluster, scenario.site, scenario.rules, agent)
    env = setup.environment(12, 1)
    setup.learner.actor.load_state_dict({name: torch.from_numpy(value) for name, value in model.weights.items()})
    _, terms = play(env, [start], setup.learner.actor)
    assert evaluate(outcome)["avg_bounded_slowdown"] == pytest.approx(terms[0, 0])


class Stop(KeyboardInterrupt):
    """Ctrl-C."""


@pytest.mark.parametrize("epoch", [0, 3])
def test_interrupted_and_resumed_it_ends_with_the_same_bytes(finished, tmp_path, epoch):
    plan, run = finished

    def watch(record: dict[str, Any]) -> None:
        if record["epoch"] == epoch:
            raise Stop

    with pytest.raises(Stop):
        train_off_policy(plan, tmp_path / "run", watch=watch)
    assert load_model(tmp_path / "run" / MODEL).record.training.epochs == epoch
    train_off_policy(plan, tmp_path / "run")
    assert weights_of(tmp_path / "run") == weights_of(run)
    assert state_of(tmp_path / "run") == state_of(run)
    assert figures(tmp_path / "run") == figures(run)


def test_what_resumes_has_the_buffer_that_was_left(finished):
    """The last 120 transitions of windows repeated from the recorded actions."""
    plan, run = finished
    setup = OffPolicySetup(plan, torch.device("cpu"))
    for number in (FILL, 1, 2, 3, 4):
        tensors = load_checkpoint(run / CHECKPOINT).tensors
        numbers, lengths = tensors["replay/numbers"].tolist(), tensors["replay/lengths"]
        assert sum(lengths[1:]) < plan.settings.off_policy.buffer <= sum(lengths)
        assert number in numbers or number < numbers[0]
    rows = np.split(tensors["replay/rows"].astype(np.int64), np.cumsum(lengths)[:-1])
    for number, asked in zip(numbers, rows, strict=True):
        setup.collect(number, Recorded(asked))
    assert len(setup.replay) == plan.settings.off_policy.buffer
    assert setup.replay.total == sum(lengths)


LEARNS = {
    "training.windows": 8, "training.jobs": 20, "training.gamma": 1.0, "training.actor_lr": 3e-3,
    "training.critic_lr": 3e-3, "training.validation.windows": 8, "training.validation.jobs": 20,
    "training.off_policy.loss": "exponential", "training.off_policy.buffer": 8000, "training.off_policy.steps": 40,
    "training.off_policy.batch": 64, "training.off_policy.warm_up_steps": 40, "training.off_policy.fill_windows": 24,
    "training.off_policy.n_step": 20, "training.off_policy.tau": 0.05, "training.off_policy.popart_rate": 0.01,
    "training.validation.every": 4,
}  # fmt: skip


def test_it_becomes_better_than_the_untrained_masked_agent(tmp_path):
    """On the validation windows: about 83, against 92 of the untrained policy and 613 of its best actions."""
    plan = off_policy_plan(tmp_path, overrides=LEARNS)
    setup = OffPolicySetup(plan, torch.device("cpu"))
    starts = 3 * setup.validation_starts.tolist()  # each with other draws
    untrained = [
        setup.preset.reward.terms["accrued_bounded_slowdown"] * played.terms.mean()
        for played in play_loads(
            setup.environment(20, len(starts)), starts, setup.tables,
            Exploring(setup.learner.agent.actor, 0.0, torch.Generator().manual_seed(0)),
        )
    ]  # fmt: skip
    train_off_policy(plan, tmp_path / "run")
    reached = load_model(tmp_path / "run" / MODEL).record.validation.figure
    assert reached > np.mean(untrained)
    assert reached > 0.5 * read_log(tmp_path / "run" / LOG)[0]["validation"]  # of its best actions at the beginning


@pytest.mark.parametrize(("overrides", "message"), [
    ({"training.off_policy.memory_gb": 1e-5}, "training.off_policy.buffer: needs"),
    ({"training.clip": 0.1}, "training.clip: has no effect on an off-policy training"),
    ({"training.off_policy.schedulers": ["qsjf+none"]}, "qsjf"),
    ({"training.off_policy.dataset": "nowhere"}, "nowhere"),
    ({"action.delays": [{"kind": "none"}, {"kind": "seconds", "amount": 60.0}], "settings.sticky": 1},
     "off-policy training has values of rows alone"),
])  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line_before_anything_is_written(overrides, message, tmp_path):
    plan = off_policy_plan(tmp_path, overrides=overrides)
    with pytest.raises(InputError) as caught:
        train_off_policy(plan, tmp_path / "run")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("network", "units"), [
    ({"kind": "rare", "size": "small"}, 100), ({"kind": "rare", "size": "medium"}, 1200),
    ({"kind": "rare", "size": "large", "hidden": 1024, "layers": 9}, 10),
    ({"kind": "rare", "sees": "both", "size": "small"}, 20_000), ({"kind": "recurrent"}, 1200),
    ({"kind": "recurrent"}, 20_000), ({"kind": "recurrent", "hidden": 1024, "layers": 8}, 10),
])  # fmt: skip
def test_the_fix_for_too_many_weights_names_a_network_that_fits(network, units):
    """Every value of the fix is followed: its network has few enough weights."""
    shapes = Shapes(queue=("wait",) * 9, queue_rows=11, empty=(0.0,) * 9, extras=1, image=(48, 2 * units))

    def size(spec):
        with torch.device("meta"):  # no numbers, which would fill the memory
            return bytes_of(build(spec, shapes, 0)[0])

    assert size(network) > LARGEST_BYTES
    fix = fitting(network, shapes, LARGEST_BYTES)
    key, values = re.findall(r"network\.(\w+)", fix)[0], re.findall(r'"(\w+)"|most (\d+)', fix)
    assert values
    for word, number in values:
        assert size({**network, key: word or int(number)}) <= LARGEST_BYTES


def test_a_network_that_is_too_large_is_refused_with_the_sizes_that_fit(tmp_path):
    plan = make_plan("rare", load_scenario("rare/100"), overrides={"training.off_policy.buffer": 1000})
    with pytest.raises(InputError) as caught:
        train_off_policy(plan, tmp_path / "run")
    assert 'give network.size = "medium" or "large"' in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("table", "message"), [
    ({"online": False}, "there is nothing to learn from"),
    ({"online_from": 3}, "there is nothing to learn from"),
    ({"schedulers": ["sjf+none"]}, "fill_windows is 0"),
    ({"schedulers": ["sjf+none"], "fill_windows": 2, "shares": [1.0, 2.0]}, "give one of each"),
    ({"epsilon": 0.05}, "epsilon_final is above"),
    ({"temperature": 0.0}, "cannot be learned"),
    ({"loss": "sac"}, "loss"),
    ({"critics": 0}, "critics"),
])  # fmt: skip
def test_keys_that_contradict_each_other_are_refused(table, message):
    with pytest.raises(InputError, match=message):
        read_training({"off_policy": table})


def test_a_search_is_not_off_policy():
    with pytest.raises(InputError, match="either a search or off-policy"):
        read_training({"off_policy": {}, "search": {}})


RARE = {
    "rare": ("binary", 1, True, 20_000, True), "rare-clone": ("clone", 1, False, 0, False),
    "rare-offline": ("binary", 2, False, 0, False), "rare-online": ("soft", 2, True, 0, True),
    "rare-offline-online": ("exponential", 2, True, 20_000, True),
}  # fmt: skip


@pytest.mark.parametrize("name", RARE)
def test_the_shipped_presets_have_the_published_numbers(name):
    """Tables A.2 and A.4."""
    made = read_training(preset(name).training)
    own = made.off_policy
    assert (own.loss, own.critics, own.popart, own.warm_up_steps, own.online) == RARE[name]
    assert (own.batch, made.gamma, made.actor_lr, made.critic_lr) == (1024, 0.99, 1e-4, 1e-4)
    assert own.buffer == (50_000 if name == "rare-online" else 1_750_000)
    assert preset(name).network == {"kind": "rare", "size": "small", "hidden": 512}
