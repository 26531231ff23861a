"""``greenbatch train`` as users meet it: results, bad flags, Ctrl-C and resuming."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from greenbatch.cli import main
from greenbatch.models.model import load_model

RUN = "import sys; from greenbatch.cli import main; sys.exit(main(sys.argv[1:]))"
SCENARIO = """\
name = "small"
[workload.generator]
model = "lublin"
jobs = 120
seed = 3
gap_factor = 0.3
processors = 16
[workload.power]
kind = "per-processor"
[cluster]
processors = 16
[evaluation]
starts = [60]
jobs = 30
schedulers = ["fcfs+easy"]
"""
SET = (
    "--set", "training.windows=3", "training.jobs=10", "training.passes=2", "training.critic_passes=2",
    "training.validation.windows=2", "training.validation.jobs=12", "training.validation.every=2",
)  # fmt: skip
BASE = ("train", "rlscheduler", "--scenario", "small.toml", "--threads", "1", *SET)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SCENARIO)
    return tmp_path


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {f.relative_to(folder).as_posix(): f.read_bytes() if f.is_file() else None for f in folder.rglob("*")}


@pytest.fixture
def refused(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command line that must be refused; its one line on stderr."""

    def run(*arguments: str) -> str:
        before = snapshot(here)
        code = main(arguments)
        out, err = capsys.readouterr()
        assert code == 2, (out, err)
        assert out == ""
        assert err.startswith("greenbatch: ")
        assert err.count("\n") == 1, err
        assert "Traceback" not in out + err
        assert snapshot(here) == before, "something was left behind"
        return err

    return run


def test_train_writes_a_model_and_says_how_to_use_it(here: Path, capsys: pytest.CaptureFixture[str]):
    assert main([*BASE, "--out", "run", "--epochs", "2", "--seed", "5", "--backfill", "easy"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines.pop(0) == "training rlscheduler on small.toml for 2 epochs; the first epoch may compile the engine"
    assert [line.split("  ")[0] for line in lines[:3]] == ["epoch 0/2", "epoch 2/2", "epoch 2/2"], "within a minute"
    assert re.search(r"decisions/s  return -[\d.]+  KL .*  entropy [\d.]+", lines[1])
    assert re.search(r"validation -[\d.]+", "".join(lines[1:3]))
    assert re.search(r"best on the validation windows: -[\d.]+ \(epoch \d; avg_bounded_slowdown [\d.]+\)", out)
    assert lines[-1] == "written to run; use it as rlscheduler@run/model+easy"
    model = load_model(here / "run" / "model")
    assert model.backfill == "easy"
    assert model.record.training.seed == 5
    assert model.record.training.settings.windows == 3
    assert model.record.provenance.run.command[:3] == ("greenbatch", "train", "rlscheduler")
    record = json.loads((here / "run" / "run.json").read_text())
    assert record["plan"]["backfill"] == "easy"
    assert record["plan"]["training"]["epochs"] == 2


def test_a_person_sees_a_bar_and_a_line_for_every_validation(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    narrow = ("training.filter.kind=median", "training.filter.samples=60")
    assert main([*BASE, *narrow, "--out", "run", "--epochs", "3"]) == 0
    out = capsys.readouterr().out
    assert "\x1b[" in out
    assert re.search(r"epoch 2/3  [\d,]+ decisions/s .* validation -[\d.]+", out)
    assert out.rstrip().endswith("written to run; use it as rlscheduler@run/model+none")


def test_an_untrained_best_model_is_reported(here: Path, capsys: pytest.CaptureFixture[str]):
    assert main([*BASE, "training.actor_lr=1e-12", "--out", "run", "--epochs", "2"]) == 0
    assert "\nwarning: the model is untrained, its weights are the initial ones" in (capsys.readouterr().out)
    training = load_model(here / "run" / "model").record.training
    assert (training.untrained, training.kept_epoch, training.epochs) == (True, 0, 2)
    words = ["--scheduler", "rlscheduler@run/model+none", "--start", "60", "--jobs", "30", "--out", "result"]
    assert main(["simulate", "--scenario", "small.toml", *words]) == 0
    warning = "warning: rlscheduler@run/model+none: untrained, its weights are those that training began with"
    assert warning in capsys.readouterr().out
    assert main([*BASE, "training.keep=last", "--out", "last", "--epochs", "1"]) == 0
    assert "untrained" not in capsys.readouterr().out


def test_limits_are_said_to_be_kept_or_not(here: Path, capsys: pytest.CaptureFixture[str]):
    limits = ["training.constraints.avg_wait_s.at_most=0.001", "training.constraints.utilization.at_least=0.01"]
    assert main([*BASE, *limits, "training.jobs=30", "--out", "run", "--epochs", "1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(r"epoch 1/1 .* avg_wait_s [\d.e+]+ x 100 utilization 0\.\d+ x 0 ", out)
    says = (
        r"warning: a limit is not kept on the validation windows: avg_wait_s [\d.]+, at most 0\.001 \(train longer, or"
    )
    assert re.search(says, out)
    assert re.search(r"a limit is kept on the validation windows: utilization 0\.\d+, at least 0\.01 ", out)
    assert main([*BASE, *limits, "training.keep=last", "--out", "last", "--epochs", "1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("warning: nothing says whether the model keeps") == 2


def test_a_trained_model_schedules(here: Path, capsys: pytest.CaptureFixture[str]):
    assert main([*BASE, "--out", "run", "--epochs", "1"]) == 0
    capsys.readouterr()
    arguments = ["--scheduler", "rlscheduler@run/model+none", "--start", "60", "--jobs", "30", "--out", "result"]
    assert main(["simulate", "--scenario", "small.toml", *arguments]) == 0, capsys.readouterr().err
    assert json.loads((here / "result" / "metrics.json").read_text())["jobs"] == 30


TRAIN = ("train", "rlscheduler", "--scenario", "small.toml", "--out", "run")
BAD = [
    (("train",), "requires an argument|--scenario|PRESET"),
    (("train", "rlscheduler", "--out", "run"), "--scenario"),
    (("train", "rlscheduler", "--scenario", "small.toml"), "--out"),
    (("train", "rlschedular", *TRAIN[2:]), "there is no preset 'rlschedular' .*did you mean rlscheduler"),
    (("train", "gone.toml", *TRAIN[2:]), "gone.toml: cannot be read"),
    (("train", "rlscheduler", "--scenario", "gone.toml", "--out", "run"), "gone.toml"),
    (("train", "gas-marl", *TRAIN[2:]), "gas-marl needs a power supply"),
    ((*TRAIN, "--epochs", "0"), "--epochs: is 0"),
    ((*TRAIN, "--epochs", "ten"), "--epochs: 'ten' is not a whole number"),
    ((*TRAIN, "--minutes", "soon"), "--minutes"),
    ((*TRAIN, "--minutes", "-1"), "--minutes: is -1"),
    ((*TRAIN, "--minutes", "nan"), "--minutes: is nan"),
    ((*TRAIN, "--epochs", "3", "--minutes", "3"), "--epochs and --minutes: .*one or the other"),
    ((*TRAIN, "--seed", "-1"), "--seed: is -1"),
    ((*TRAIN, "--seed", str(2**63)), "more than 64 bits hold"),
    ((*TRAIN, "--threads", "-1"), "--threads: is -1"),
    ((*TRAIN, "--device", "tpu"), "--device: is 'tpu' .*cpu, cuda"),
    ((*TRAIN, "--windows", "all"), "--windows: is 'all' .*published or held-out"),
    ((*TRAIN, *SET, "training.jobs=121"), "no training window of 121 jobs"),
    ((*TRAIN, "--windows", "held-out", *SET), "--windows: small has 120 jobs; jobs 2000 to 4400 are held out"),
    ((*TRAIN, "--backfill", "greedy", *SET), "backfill: is 'greedy'"),
    ((*TRAIN, "--set", "training.passs=4"), "training.passs: unknown key .*did you mean passes"),
    ((*TRAIN, "--set", "training.passes=many"), "training.passes: is 'many' .*whole number"),
    ((*TRAIN, "--set"), "--set: has no values .*key=value"),
    ((*TRAIN, "--set", "reward.terms.brown_kwh=-1"), "reward.terms.brown_kwh: needs a power supply, small has none"),
    ((*TRAIN, "--set", "passes"), "--set: is 'passes' .*key=value"),
    ((*TRAIN, "--set", "name.x=4"), "name.x: is not a key of a table"),
    ((*TRAIN, "--set", "reward.terms.beauty=4"), "'beauty' is not known"),
    ((*TRAIN, *SET, "network.kind=mind"), "no such network: 'mind'"),
    ((*TRAIN, "--resume"), "there is no training to resume .*leave out --resume"),
    ((*TRAIN, "--resume", "--force"), "--resume and --force"),
    ((*TRAIN[:-1], "small.toml"), "exists and is not a folder"),
    ((*TRAIN[:-1], "full"), "exists and is not empty .*--resume .*--force"),
    ((*TRAIN[:-1], "strange", "--force"), "run.json: was not written by greenbatch train"),
    ((*TRAIN[:-1], "theirs", "--force"), "holds model, which greenbatch train did not write"),
    ((*TRAIN[:-1], "small.toml/below", *SET), "--out"),
    ((*TRAIN, "stray"), "stray"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_command_lines(refused: Callable[..., str], here: Path, arguments: tuple[str, ...], message: str):
    (here / "full").mkdir()
    (here / "full" / "notes.txt").write_text("mine")
    (here / "strange" / "model").mkdir(parents=True)
    (here / "strange" / "model" / "precious").write_text("mine")
    (here / "strange" / "run.json").write_text("{}")
    (here / "theirs" / "model").mkdir(parents=True)
    assert re.search(message, refused(*arguments))


def test_cuda_where_there_is_none(refused: Callable[..., str]):
    import torch

    there = torch.cuda.device_count()
    name, message = (f"cuda:{there}", "number them from 0") if there else ("cuda", "no CUDA device here")
    assert message in refused(*TRAIN, "--device", name)


def test_without_torch_it_says_how_to_install_it(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "torch" else find(name, *a))
    expected = 'greenbatch: training requires torch, which is not installed (pip install "greenbatch[learn]")\n'
    assert refused(*TRAIN) == expected


def test_force_replaces_a_training_and_nothing_else(here: Path, capsys: pytest.CaptureFixture[str]):
    assert main([*BASE, "--out", "run", "--epochs", "1"]) == 0
    (here / "run" / "notes.txt").write_text("mine")
    assert main([*BASE, "--out", "run", "--epochs", "1", "--seed", "3"]) == 2
    assert "--force to replace it" in capsys.readouterr().err
    assert main([*BASE, "--out", "run", "--epochs", "1", "--seed", "3", "--force"]) == 0
    assert load_model(here / "run" / "model").record.training.seed == 3
    assert (here / "run" / "notes.txt").read_text() == "mine"
    before = snapshot(here)
    assert main([*BASE, "--out", "run", "--epochs", "1", "--force", "--backfill", "greedy"]) == 2
    assert snapshot(here) == before


def test_other_settings_are_not_resumed(here: Path, refused: Callable[..., str], capsys: pytest.CaptureFixture[str]):
    assert main([*BASE, "--out", "run", "--epochs", "1"]) == 0
    capsys.readouterr()
    for extra, message in (
        (("--epochs", "2"), "training.epochs: is 2, the training in run was started with 1"),
        (("--epochs", "1", "--seed", "9"), "training.seed: is 9"),
        (("--epochs", "1", "--backfill", "easy"), 'backfill: is "easy"'),
        (("--minutes", "1"), "limit|epochs"),
    ):
        assert re.search(message, refused(*BASE, "--out", "run", "--resume", *extra))


def test_keys_without_effect_on_the_weights_may_change(
    here: Path, refused: Callable[..., str], capsys: pytest.CaptureFixture[str]
):
    run = (*BASE, "--out", "run", "--epochs", "1")
    assert main([*run]) == 0
    evaluation = 'schedulers = ["sjf"]\nbaseline = "sjf"\n'
    changed = SCENARIO.replace('schedulers = ["fcfs+easy"]\n', evaluation)
    (here / "small.toml").write_text('description = "Of another day."\n' + changed)
    assert main([*run, "--resume"]) == 0
    (here / "small.toml").write_text(changed.replace("gap_factor = 0.3", "gap_factor = 0.4"))
    capsys.readouterr()
    assert "gap_factor: is 0.4" in refused(*run, "--resume")


def test_ctrl_c_saves_and_resume_ends_with_the_same_weights(here: Path):
    command = [*BASE, "--out", "run", "--epochs", "10"]
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    log = here / "run" / "log.jsonl"
    deadline = time.monotonic() + 120
    while not (log.exists() and log.read_bytes().count(b"\n") >= 4) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("greenbatch: interrupted; resume with: greenbatch train rlscheduler")
    assert err.splitlines()[-1].endswith("--out run --epochs 10 --resume")
    model = load_model(here / "run" / "model").record.training
    assert not model.finished
    assert 1 <= model.epochs < 10
    assert main([*command, "--resume"]) == 0
    assert main([*BASE, "--out", "whole", "--epochs", "10"]) == 0
    ours, theirs = (here / name / "model" / "actor.safetensors" for name in ("whole", "run"))
    assert ours.read_bytes() == theirs.read_bytes()


def test_several_seeds_are_trainings_of_their_own(here: Path, capsys: pytest.CaptureFixture[str]):
    """Two at a time, then the rest; a finished one is kept, and each is the training with its seed alone."""
    assert main([*BASE, "--epochs", "1", "--seeds", "0,3", "--workers", "2", "--out", "all"]) == 0
    before = (here / "all" / "seed-3" / "log.jsonl").stat().st_mtime_ns
    capsys.readouterr()
    assert main([*BASE, "--epochs", "1", "--seeds", "0,3,1", "--out", "all"]) == 0
    told = capsys.readouterr().out
    assert "with 3 seeds; 2 are finished" in told
    assert "seed-1: 1 epoch, " in told
    assert (here / "all" / "seed-3" / "log.jsonl").stat().st_mtime_ns == before
    assert main([*BASE, "--epochs", "1", "--seed", "3", "--out", "alone"]) == 0
    weights = Path("model", "actor.safetensors")
    assert (here / "all" / "seed-3" / weights).read_bytes() == (here / "alone" / weights).read_bytes()
    assert main([*BASE, "--epochs", "2", "--seeds", "0,3", "--out", "all"]) == 2
    assert "seed-0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seeds", "0,0"), "--seeds: '0' occurs twice"),
        (("--seeds", "0,00"), "--seeds: 0 occurs twice"),
        (("--seeds", "0,-1"), "--seeds: is -1"),
        (("--seeds", ""), "--seeds: '' has an empty part"),
        (("--seeds", "0,1", "--seed", "2"), "--seed: is for a single training, not for --seeds 0,1"),
        (("--seeds", "0,1", "--seed", "0"), "--seed: is for a single training, not for --seeds 0,1"),
        (("--seeds", "0,1", "--force"), "--force: is for a single training"),
        (("--workers", "2"), "--workers and --ray: distribute the candidates of a search, and rlscheduler is trained"),
    ],
)
def test_what_several_seeds_exclude(refused: Callable[..., str], arguments: tuple[str, ...], message: str):
    assert message in refused(*BASE, "--epochs", "1", "--out", "x", *arguments)
