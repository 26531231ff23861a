"""The training loop: what it draws, keeps and writes; interrupted or not, it ends with the same bytes."""

from __future__ import annotations

import itertools
import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from tiny import tiny_plan, weights_of

import greenbatch as gb
import kill_resume
from greenbatch.envs.batch import BatchEnv
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.learning.runs import windows
from greenbatch.learning.runs.checkpoint import load_checkpoint, save_checkpoint
from greenbatch.learning.runs.folder import CHECKPOINT, LOG, MODEL, RUN, check_same, other_versions
from greenbatch.learning.runs.log import read_log
from greenbatch.learning.runs.plan import Plan, make_plan, parse_overrides
from greenbatch.learning.training.loop import TrainingSetup, train
from greenbatch.models.model import load_model
from greenbatch.presets.preset import preset

ROOT = Path(__file__).parents[2]
TIMES = {"elapsed_s", "decisions_per_s"}


def figures(run: Path) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key not in TIMES} for line in read_log(run / LOG)]


def state_of(run: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    tensors, state = load_checkpoint(run / CHECKPOINT)
    return {name: value.tobytes() for name, value in tensors.items()}, {**state, "elapsed_s": 0, "log_bytes": 0}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Plan, Path]:
    """A finished training with everything switched on."""
    place = tmp_path_factory.mktemp("finished")
    plan = full_plan(place)
    train(plan, place / "run")
    return plan, place / "run"


def full_plan(place: Path, **given: Any) -> Plan:
    return tiny_plan(
        place, overrides={
            "training.swa.start": 0.5, "training.lr_schedule": "linear", "training.entropy": 0.01,
            "training.filter.kind": "median", "training.filter.samples": 60, "training.curriculum": [
                {"start": 0.0, "jobs": 8}, {"start": 0.5, "jobs": 12, "weights": {"avg_bounded_slowdown": -2.0}},
            ],
        }, **given,
    )  # fmt: skip


def test_a_run_folder_holds_everything(finished):
    _, run = finished
    assert sorted(file.name for file in run.iterdir()) == [CHECKPOINT, LOG, MODEL, RUN]
    record = json.loads((run / RUN).read_text())
    assert record["plan"]["training"]["windows"] == 3
    assert record["plan"]["windows"] == "published"
    assert record["plan"]["scenario"]["cluster"]["processors"] == 16
    assert set(record["provenance"]["versions"]) >= {"greenbatch", "numpy"}
    lines = read_log(run / LOG)
    assert [line["epoch"] for line in lines] == [0, 1, 2, 3, 4, 4]
    assert ["validation" in line for line in lines] == [True, False, True, False, True, False]
    assert lines[-1]["done"]
    assert [line["jobs"] for line in lines[1:5]] == [8, 8, 12, 12]
    assert [line["actor_lr"] for line in lines[1:5]] == pytest.approx([1e-3, 0.75e-3, 0.5e-3, 0.25e-3])
    for line in lines[1:5]:
        assert sum(line["delays"]) == line["decisions"] > 0
        weight = -1.0 if line["jobs"] == 8 else -2.0
        assert line["return"] == pytest.approx(weight * line["avg_bounded_slowdown"], rel=1e-12)


def test_the_model_is_the_best_on_the_validation_windows(finished):
    plan, run = finished
    model, lines = load_model(run / MODEL), read_log(run / LOG)
    seen = [line["validation"] for line in lines if "validation" in line]
    assert model.record.validation.figure == max(*seen, lines[-1]["validation_average"])
    assert model.record.validation.terms.keys() == {"avg_bounded_slowdown"}
    assert model.record.validation.figure == -model.record.validation.terms["avg_bounded_slowdown"]
    assert model.record.training.epochs == 4
    assert model.record.training.finished
    assert model.record.training.decisions == sum(line.get("decisions", 0) for line in lines)
    assert model.record.provenance.seed == 0
    setup = TrainingSetup(plan, torch.device("cpu"))
    assert setup.validate(model.weights).figure == model.record.validation.figure
    tests = set(range(80, 140))
    checked = windows.jobs_of(np.array(model.record.validation.starts), model.record.validation.jobs)
    assert not tests & set(checked.tolist())


def test_the_same_plan_gives_the_same_bytes(finished, tmp_path):
    _, run = finished
    train(full_plan(tmp_path), tmp_path / "again")
    assert weights_of(tmp_path / "again") == weights_of(run)
    assert state_of(tmp_path / "again") == state_of(run)
    assert figures(tmp_path / "again") == figures(run)
    train(full_plan(tmp_path, seed=1), tmp_path / "other")
    assert weights_of(tmp_path / "other") != weights_of(run)


def test_the_first_phase_draws_from_windows_that_the_filter_leaves(finished):
    plan, _ = finished
    setup = TrainingSetup(plan, torch.device("cpu"))
    all_starts = windows.training_starts(plan.scenario, 8, "published")
    metric = windows.sjf_metric(plan.scenario, 8, "none", "avg_bounded_slowdown")
    expected = windows.filtered(all_starts, 60, 0, metric)
    assert setup.training_starts(0.0).tolist() == expected.starts.tolist()
    assert 0 < len(expected.starts) < 30
    assert setup.training_starts(0.49).tolist() == expected.starts.tolist()
    assert setup.training_starts(0.5).tolist() == windows.training_starts(plan.scenario, 12, "published").tolist()


class Stop(KeyboardInterrupt):
    """Ctrl-C."""


def train_until(epoch: int, plan: Plan, folder: Path) -> None:
    """Train, and interrupt it after an epoch."""

    def watch(record: dict[str, Any]) -> None:
        if record["epoch"] == epoch:
            raise Stop

    with pytest.raises(Stop):
        train(plan, folder, watch=watch)


@pytest.mark.parametrize("epoch", [0, 2, 4])
def test_interrupted_and_resumed_it_ends_with_the_same_bytes(finished, tmp_path, epoch):
    _, run = finished
    here, plan = tmp_path / "run", full_plan(tmp_path)

    train_until(epoch, plan, here)
    assert load_model(here / MODEL).record.training.epochs == epoch
    assert read_log(here / LOG)[-1]["epoch"] == epoch
    train(plan, here)
    assert weights_of(here) == weights_of(run)
    assert state_of(here) == state_of(run)
    assert figures(here) == figures(run)


SWA = {
    "network.kind": "ineps", "training.keep": "last", "training.validation.windows": 0, "training.passes": 1,
    "training.swa.start": 0.5, "training.swa.every": 2, "training.swa.anneal": 0.25, "training.swa.lr": 0.2,
}  # fmt: skip
"""InEPS's network; every second epoch of the second half is averaged, at a falling learning rate."""


def averaged_plan(place: Path) -> Plan:
    return tiny_plan(place, epochs=8, overrides=SWA)


@pytest.fixture(scope="module")
def averaged(tmp_path_factory) -> tuple[Path, list[dict[str, np.ndarray]]]:
    """A finished training with averaging, and the actor's weights after each of its epochs."""
    place = tmp_path_factory.mktemp("averaged")
    weights: list[dict[str, np.ndarray]] = []

    def watch(record: dict[str, Any]) -> None:
        if record["epoch"] == len(weights) + 1:
            tensors = load_checkpoint(place / "run" / CHECKPOINT).tensors
            weights.append({k.removeprefix("actor/"): v for k, v in tensors.items() if k.startswith("actor/")})

    train(averaged_plan(place), place / "run", watch=watch)
    return place / "run", weights


def test_the_model_is_the_mean_of_the_averaged_epochs(averaged):
    """Epochs 5 to 8 begin in the second half; every second one is averaged."""
    run, weights = averaged
    assert len(weights) == 8
    model = load_model(run / MODEL)
    assert model.record.training.averaged
    for name, value in model.weights.items():
        mean = np.mean([weights[5][name].astype(np.float64), weights[7][name].astype(np.float64)], axis=0)
        np.testing.assert_array_equal(value, mean.astype(np.float32), err_msg=name)
        assert not np.array_equal(value, weights[7][name])


def test_only_the_actors_rate_anneals(averaged, tmp_path):
    run, _ = averaged
    factors = [1.0, 1.0, 1.0, 1.0, 1.0, 0.6, 0.2, 0.2]
    assert [line["actor_lr"] for line in read_log(run / LOG)[1:9]] == pytest.approx([1e-3 * each for each in factors])
    setup = TrainingSetup(averaged_plan(tmp_path), torch.device("cpu"))
    assert len({setup.numbers(epoch / 8).critic_rate for epoch in range(9)}) == 1


@pytest.mark.parametrize("epoch", [4, 6])
def test_interrupted_while_weights_are_averaged_it_ends_with_the_same_bytes(averaged, tmp_path, epoch):
    run, _ = averaged
    here, plan = tmp_path / "run", averaged_plan(tmp_path)

    train_until(epoch, plan, here)
    train(plan, here)
    assert weights_of(here) == weights_of(run)
    assert state_of(here) == state_of(run)
    assert figures(here) == figures(run)


def test_a_finished_training_stays_as_it_is(finished, tmp_path):
    plan, run = finished
    before = {
        file: (run / file).read_bytes() for file in (LOG, f"{MODEL}/actor.safetensors", f"{CHECKPOINT}/state.json")
    }
    train(plan, run)
    assert {file: (run / file).read_bytes() for file in before} == before


def test_kill_9_at_random_moments():
    """A training on-policy, a search, and a training off-policy."""
    names = ("ineps", "ineps-plus-edp", "off-policy")
    words = [*names, "--kills", "2", "--epochs", "3", "--seed", "1"]
    command = [sys.executable, str(ROOT / "tests" / "kill_resume.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in names:
        assert f"{name}: all final weights are those of the uninterrupted training" in done.stdout


def test_a_difference_after_a_kill_would_be_seen(averaged, tmp_path):
    run, _ = averaged
    assert kill_resume.same(run, run)
    other = tmp_path / "run"
    shutil.copytree(run, other)
    tensors, state = load_checkpoint(other / CHECKPOINT)
    last = sorted(tensors)[-1]
    tensors[last] = np.nextafter(tensors[last], np.inf, dtype=tensors[last].dtype)
    save_checkpoint(other / CHECKPOINT, "epoch-000008", tensors, state)
    assert not kill_resume.same(run, other)


def test_a_full_disk_loses_nothing(finished, tmp_path):
    _, run = finished
    here, plan = tmp_path / "run", full_plan(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def watch(record: dict[str, Any]) -> None:
        if record["epoch"] == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, before[1]))

    try:
        with pytest.raises(InputError, match=r"too large \(free some space, then give --resume"):
            train(plan, here, watch=watch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert load_checkpoint(here / CHECKPOINT).state["epoch"] == 2
    assert not [file for file in here.rglob("*") if file.name.endswith(".part")]
    train(plan, here)
    assert weights_of(here) == weights_of(run)
    assert figures(here) == figures(run)


def test_only_the_same_plan_is_resumed(finished, tmp_path):
    _, run = finished
    check_same(run, full_plan(tmp_path))
    for given, message in (
        ({"epochs": 9}, r"^training.epochs: is 9, the training in .* was started with 4 \(give the same value"),
        ({"seed": 3}, r"^training.seed: is 3"),
        ({"threads": 2}, r"^training.threads: is 2|^threads: is 2"),
        ({"backfill": "easy"}, r'^backfill: is "easy", .* with "none"'),
        ({"windows": "held-out"}, r'^windows: is "held-out"'),
        ({"minutes": 3.0}, r'^limit: is "minutes"'),
    ):
        with pytest.raises(InputError, match=message):
            train(full_plan(tmp_path, **given), run)


def test_another_number_of_minutes_is_another_training(tmp_path):
    train(tiny_plan(tmp_path, minutes=0.001), tmp_path / "run")
    check_same(tmp_path / "run", tiny_plan(tmp_path, minutes=0.001))
    with pytest.raises(InputError, match=r"^minutes: is 3.0, the training in .* was started with 0.001"):
        check_same(tmp_path / "run", tiny_plan(tmp_path, minutes=3.0))


def test_version_changes_are_reported(finished, tmp_path):
    _, run = finished
    assert other_versions(run) == []
    record = json.loads((run / RUN).read_text())
    record["provenance"]["source_sha256"] = "0" * 64
    (tmp_path / RUN).write_text(json.dumps(record))
    assert other_versions(tmp_path) == ["started with a different version of greenbatch's source"]
    record["provenance"]["versions"]["numpy"] = "1.0"
    (tmp_path / RUN).write_text(json.dumps(record))
    (line,) = other_versions(tmp_path)
    assert line == f"started with numpy 1.0, resumes with {np.__version__}"


def test_a_damaged_checkpoint_is_one_line(finished, tmp_path):
    here, plan = tmp_path / "run", tiny_plan(tmp_path, epochs=1)
    train(plan, here)
    (tensors,) = (here / CHECKPOINT).glob("*.safetensors")
    content = tensors.read_bytes()
    tensors.write_bytes(content[:-8])
    with pytest.raises(InputError, match=r"safetensors: is damaged: .*--force"):
        train(plan, here)
    tensors.write_bytes(content)
    (here / LOG).write_text("")
    with pytest.raises(InputError, match=r"log.jsonl: has 0 bytes"):
        train(plan, here)


def test_checkpoints_of_other_networks_are_refused(finished, tmp_path):
    _, run = finished
    here, plan = (
        tmp_path / "run",
        tiny_plan(tmp_path, epochs=1, overrides={"training.advantage": "group", "training.rollouts": 2}),
    )
    train(plan, here)
    state = json.loads((run / CHECKPOINT / "state.json").read_text())
    state["state"]["surplus"] = 1
    for file in (here / CHECKPOINT).iterdir():
        file.unlink()
    (here / CHECKPOINT / state["tensors"]).write_bytes((run / CHECKPOINT / state["tensors"]).read_bytes())
    (here / CHECKPOINT / "state.json").write_text(json.dumps(state))
    with pytest.raises(InputError, match=r"state\.json: surplus: unknown key"):
        train(plan, here)
    del state["state"]["surplus"]
    tensors = load_file(here / CHECKPOINT / state["tensors"])
    tensors.pop(next(name for name in tensors if name.startswith("actor/")))
    save_checkpoint(here / CHECKPOINT, "other", tensors, state["state"])
    with pytest.raises(InputError, match=r"state\.json: does not contain this training's networks"):
        train(plan, here)


@pytest.mark.parametrize(("changes", "part"), [({"averaged": 3}, "average"), ({"best_epoch": -1}, "best")])
def test_counters_that_do_not_fit_the_tensors_are_refused(tmp_path, changes, part):
    here, plan = tmp_path / "run", tiny_plan(tmp_path, epochs=1)
    train(plan, here)
    state = json.loads((here / CHECKPOINT / "state.json").read_text())
    state["state"].update(changes)
    (here / CHECKPOINT / "state.json").write_text(json.dumps(state))
    with pytest.raises(InputError, match=rf"state\.json: does not match the weights in {part}"):
        train(plan, here)


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"backfill": "nope"}, "backfill: is 'nope'"),
    ({"training.jobs": 500}, {}, "no training window of 500 jobs"),
    ({"training.validation.jobs": 150}, {}, "validation windows of 150 jobs"),
    ({"network.kind": "nope"}, {}, "no such network"),
    ({"training.curriculum": [{"start": 0.0, "weights": {"beauty": 1.0}}]}, {}, "the reward has no term 'beauty'"),
    ({"training.curriculum": [{"start": 0.5, "jobs": 1000}]}, {}, "no training window of 1000 jobs"),
    ({"training.filter.kind": "median", "training.filter.metric": "beauty"}, {}, "unknown metric 'beauty'"),
    (
        {"network.kind": "rare", "network.hidden": 1024, "network.layers": 8},
        {},
        "bytes of weights",
    ),
    ({}, {"device": "tpu"}, "--device: is 'tpu'"),
    ({"observation.queue.columns": [{"feature": "wait"}]}, {}, "observation.queue.empty: has 8 numbers for 1 columns"),
]


@pytest.mark.parametrize(("overrides", "given", "message"), REFUSED)
def test_what_does_not_fit_is_refused_before_anything_is_written(tmp_path, overrides, given, message):
    if overrides.get("network.kind") == "context":
        overrides = {
            **overrides,
            "network": {key.partition(".")[2]: v for key, v in overrides.items() if "network" in key},
        }
    with pytest.raises(InputError, match=message):
        train(tiny_plan(tmp_path, overrides=overrides, **given), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_training_that_diverges_says_so_and_keeps_the_last_finite_state(tmp_path):
    plan = tiny_plan(
        tmp_path, overrides={"training.critic_lr": 1e12, "training.critic_passes": 30, "training.grad_clip": 0.0}
    )
    with pytest.raises(GreenbatchError, match=r"diverged in epoch \d+: .*training.critic_lr lower"):
        train(plan, tmp_path / "run")
    saved = load_checkpoint(tmp_path / "run" / CHECKPOINT)
    assert all(np.isfinite(value).all() for value in saved.tensors.values())


def test_patience_ends_a_training(tmp_path):
    plan = tiny_plan(tmp_path, epochs=50, overrides={
        "training.actor_lr": 1e-12, "training.validation.every": 1, "training.patience": 3,
    })  # fmt: skip
    state = train(plan, tmp_path / "run")
    assert state.counters.epoch == 3
    assert state.counters.done
    assert load_model(tmp_path / "run" / MODEL).record.training.kept_epoch == 0


def test_minutes_end_a_training(tmp_path):
    state = train(tiny_plan(tmp_path, minutes=0.005), tmp_path / "run")
    assert state.counters.done
    assert state.counters.elapsed_s >= 0.3
    assert state.counters.epoch >= 1


def test_held_out_windows_are_trained_on_elsewhere(tmp_path, monkeypatch):
    question = gb.load_scenario("default")
    plan = make_plan(
        "rlscheduler", question, overrides={"training.validation.windows": 4}, windows="held-out", threads=1
    )
    setup = TrainingSetup(plan, torch.device("cpu"))
    trained = windows.jobs_of(setup.training_starts(0.0), 256)
    checked = windows.jobs_of(setup.validation_starts, 256)
    assert not np.intersect1d(trained, np.concatenate((checked, np.array(windows.HELD_OUT)))).size


def test_keys_and_values_of_the_command_line():
    assert parse_overrides(["training.passes=4", "a.b = -0.5", "network.kind=kernel", "x=[1, 2]", 'y="4"']) == {
        "training.passes": 4, "a.b": -0.5, "network.kind": "kernel", "x": [1, 2], "y": "4",
    }  # fmt: skip
    for text in ("passes", "=4", "a.=4", "passes="):
        with pytest.raises(InputError, match=r"--set: is .*write key=value"):
            parse_overrides([text])


# ---------------------------------------------------------------- the optimum of small questions


JOBS = "submit_s,run_time_s,processors\n0,3000,6\n0,200,5\n0,900,3\n0,60,8\n0,2000,2\n0,30,4\n"
QUESTION = """\
name = "six"
[workload]
file = "six.csv"
[workload.power]
kind = "per-processor"
seed = 5
[cluster]
processors = 8
processors_per_machine = 8
idle_power_per_machine_w = 50
[site]
kind = "synthetic"
days = 3
area_m2 = 4
rated_w = 100
repeat = true
[rules]
commitment = "sticky"
event_rule = "per_instant"  # all jobs that come at once are there to choose from
"""


def best_by_enumeration(env: BatchEnv) -> tuple[float, int]:
    """The largest reward of all sequences of actions, and how many there are: those of one length at a time."""
    best, leaves, sequences = -np.inf, 0, [()]
    while sequences:
        seen, totals = env.reset([0] * len(sequences)), np.zeros(len(sequences))
        for actions in zip(*sequences, strict=True):
            here = seen.environment.copy()
            seen, rewards, _ = env.step(np.array([actions[number] for number in here]))
            totals[here] += rewards
        going = seen.environment.tolist()
        ended = np.delete(totals, going)
        best, leaves = max(best, ended.max(initial=-np.inf)), leaves + len(ended)
        rows = [seen.selectable[low:high] for low, high in itertools.pairwise(seen.queue_offsets)]
        sequences = [
            (*sequences[number], pair)
            for number, each, delays in zip(going, rows, seen.delays, strict=True)
            for pair in itertools.product(np.flatnonzero(each).tolist(), np.flatnonzero(delays).tolist())
        ]
    return best, leaves


def small_question(folder: Path, jobs: int) -> Any:
    (folder / "six.toml").write_text(QUESTION)
    (folder / "six.csv").write_text("\n".join(JOBS.split("\n")[: jobs + 1]) + "\n")
    return gb.load_scenario(folder / "six.toml")


GROUPS = {
    "training.windows": 1, "training.rollouts": 32, "training.advantage": "group", "training.passes": 4,
    "training.minibatch": 0, "training.grad_clip": 1.0, "training.target_kl": 0.0, "training.actor_lr": 0.01,
    "training.validation.windows": 1, "training.validation.every": 5, "training.keep": "best",
}  # fmt: skip


SINGLES = {
    **GROUPS,
    "training.windows": 32,
    "training.rollouts": 1,
    "training.advantage": "gae",
    "training.critic_lr": 0.01,
    "training.critic_passes": 4,
}


@pytest.fixture(scope="module")
def six(tmp_path_factory) -> tuple[Any, float, int]:
    """Six jobs, the largest reward of their orders, and the number of orders."""
    question = small_question(tmp_path_factory.mktemp("six"), 6)
    return question, *best_by_enumeration(BatchEnv(question, "rlscheduler", environments=720, jobs=6))


@pytest.mark.parametrize(("way", "epochs"), [(GROUPS, 25), (SINGLES, 15)], ids=["group", "gae"])
def test_the_best_order_of_six_jobs_is_learned(six, tmp_path, way, epochs):
    question, best, leaves = six
    first_come = float(gb.evaluate(gb.simulate(question, "fcfs+none"))["avg_bounded_slowdown"])
    assert leaves == 720
    assert -best < 0.5 * first_come  # there is something to learn
    overrides = {**way, "training.jobs": 6, "training.validation.jobs": 6}
    plan = make_plan("rlscheduler", question, overrides=overrides, epochs=epochs, threads=1)
    state = train(plan, tmp_path / "run")
    assert state.counters.best_figure <= best + 1e-9
    assert state.counters.best_figure >= best - 0.01 * abs(best)
    assert read_log(tmp_path / "run" / LOG)[0]["validation"] < best - 0.05 * abs(best)


def test_the_best_jobs_and_delays_are_learned(tmp_path):
    question = small_question(tmp_path, 4)
    raw = preset("gas-marl").model_dump(mode="json")
    raw["action"]["delays"] = [{"kind": "none"}, {"kind": "seconds", "amount": 3600}, {"kind": "releases", "amount": 1}]
    overrides = {
        **GROUPS, "training.jobs": 4, "training.validation.jobs": 4, "training.actor_lr": 0.003,
        "action": raw["action"], "reward.terms": {"renewable_utilization": 1.0, "avg_bounded_slowdown": -0.001},
        "network": {"kind": "context"}, "backfill": "none",
    }  # fmt: skip
    plan = make_plan("gas-marl", question, overrides=overrides, epochs=10, threads=1)
    best, leaves = best_by_enumeration(BatchEnv(question, plan.preset, environments=3000, jobs=4, backfill="none"))
    assert leaves >= 500
    state = train(plan, tmp_path / "run")
    assert best - 0.01 * abs(best) <= state.counters.best_figure <= best + 1e-9
    assert read_log(tmp_path / "run" / LOG)[0]["validation"] < best - 0.05 * abs(best)
