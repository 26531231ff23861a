"""A small question and a small training, for tests of the loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import greenbatch as gb
from greenbatch.learning.runs.checkpoint import load_checkpoint
from greenbatch.learning.runs.folder import CHECKPOINT
from greenbatch.learning.runs.plan import Plan, make_plan

SCENARIO = """\
name = "tiny"
[workload.generator]
model = "lublin"
jobs = 200
seed = 3
gap_factor = 0.3
processors = 16
[workload.power]
kind = "per-processor"
[cluster]
processors = 16
[site]
kind = "synthetic"
days = 20
area_m2 = 20
rated_w = 700
repeat = true
[rules]
commitment = "sticky"
[evaluation]
starts = [80]
jobs = 60
schedulers = ["fcfs+easy"]
"""
SMALL: dict[str, Any] = {
    "training.windows": 3,
    "training.jobs": 10,
    "training.passes": 2,
    "training.critic_passes": 2,
    "training.minibatch": 16,
    "training.target_kl": 0.0,
    "training.validation.windows": 2,
    "training.validation.jobs": 12,
    "training.validation.every": 2,
}
"""A training of a second."""


def tiny_plan(folder: Path, *, epochs: int = 4, overrides: dict[str, Any] | None = None, **given: Any) -> Plan:
    """RLScheduler's preset on a small question, one thread."""
    file = folder / "tiny.toml"
    file.write_text(SCENARIO)
    given = {"threads": 1, "epochs": epochs, **given}
    return make_plan("rlscheduler", gb.load_scenario(file), overrides={**SMALL, **(overrides or {})}, **given)


def weights_of(run: Path) -> bytes:
    """The trained actor's file."""
    return (run / "model" / "actor.safetensors").read_bytes()


def resumed_as_whole(plan: Plan, place: Path, train: Callable[..., object]) -> dict[str, bytes]:
    """Tensors of a training that was not interrupted; one stopped after two epochs and resumed must have the same."""
    train(plan, place / "whole")

    def stop(record: dict[str, Any]) -> None:
        if record["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(plan, place / "cut", watch=stop)
    train(plan, place / "cut")
    whole, cut = (load_checkpoint(place / name / CHECKPOINT)[0] for name in ("whole", "cut"))
    tensors = {name: value.tobytes() for name, value in whole.items()}
    assert tensors == {name: value.tobytes() for name, value in cut.items()}
    return tensors
