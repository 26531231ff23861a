"""A trained network where capacity follows the power decides as in the batched environment, image and all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cases_rare import agent, rare

import greenbatch as gb
from greenbatch.cluster import Cluster
from greenbatch.engine.simulate import simulate
from greenbatch.envs.batch import BatchEnv
from greenbatch.errors import InputError
from greenbatch.learning.networks import build
from greenbatch.learning.networks.observations import as_batch
from greenbatch.learning.training.rollout import Choice
from greenbatch.models.model import save_model
from greenbatch.presets.preset import Preset, resolve
from greenbatch.presets.shapes import shapes_of
from greenbatch.scenarios import Scenario
from greenbatch.scenarios.regenerate import question
from model_records import record_for

NETWORKS: dict[str, dict[str, Any]] = {
    "image and jobs": {"kind": "rare", "hidden": 32},
    "image": {"kind": "rare", "size": "medium", "hidden": 32, "sees": "image"},
    "jobs": {"kind": "rare", "hidden": 32, "sees": "jobs"},
    "memory": {"kind": "recurrent", "hidden": 40},
    "packed rows": {"kind": "context", "width": 32},
}
MACHINES: dict[str, dict[str, Any]] = {
    "all powered": {}, "less power": {"level": 0.7, "suspends": "power"}, "swaps": {"level": 0.8, "suspends": "swap"},
}  # fmt: skip


def network_of(folder: Path, spec: dict[str, Any], scenario: Scenario) -> tuple[Preset, Any]:
    """A preset and its actor with random weights, saved as a model."""
    made = resolve(agent(action={"only_fitting": True}).model_copy(update={"network": spec}), scenario)
    actor = build(spec, shapes_of(made), 5)[0]
    weights = {name: value.numpy() for name, value in actor.state_dict().items()}
    record = record_for(gb.load_scenario("default", overrides={"workload.generator.jobs": 40}))
    save_model(folder, weights, made, record, scenario=scenario)
    return made, actor


def played(scenario: Scenario, made: Preset, actor: Any) -> tuple[Any, float]:
    """First starts and value of the finished jobs in the batched environment."""
    env = BatchEnv(scenario, made, environments=1, jobs=len(scenario.workload))
    choice, seen = Choice(actor, None, simulations=1), env.reset([0])
    with torch.inference_mode():
        while len(seen.environment):
            rows, delays, _ = choice(as_batch(seen), seen.environment)
            seen, _, _ = env.step(np.column_stack([rows.numpy(), delays.numpy()]))
    return env.starts_s[0].copy(), float(env.values[0, 0])


CASES = [*((network, "swaps") for network in NETWORKS), *(("image and jobs", machine) for machine in MACHINES)]


@pytest.mark.parametrize(("network", "machine"), dict.fromkeys(CASES))
def test_a_model_decides_as_in_the_environment(tmp_path: Path, network: str, machine: str) -> None:
    scenario = rare(10, 100, seed=7, **MACHINES[machine])
    made, actor = network_of(tmp_path / "model", NETWORKS[network], scenario)
    starts, value = played(scenario, made, actor)
    assert np.isfinite(starts).sum() > 10
    learned = gb.scheduler(f"{made.name}@{tmp_path / 'model'}+none")
    outcome = simulate(scenario.workload, scenario.cluster, None, scenario.rules, learned)
    np.testing.assert_array_equal(outcome.start_s, starts)
    finished = np.isfinite(outcome.end_s)
    assert outcome.workload.value[finished].sum() == pytest.approx(value)


def test_an_image_of_another_machine_is_refused(tmp_path: Path) -> None:
    scenario = rare(10, 60)
    made, _ = network_of(tmp_path / "model", NETWORKS["image"], scenario)
    smaller, learned = rare(8, 60), gb.scheduler(f"{made.name}@{tmp_path / 'model'}")
    with pytest.raises(InputError, match="sees an image of 10 processors, the cluster has 8"):
        simulate(smaller.workload, smaller.cluster, None, smaller.rules, learned)
    cluster = Cluster.of_units(10, 12)
    with pytest.raises(InputError, match="sees an image of 10 GPUs, the cluster has 12"):
        simulate(scenario.workload, cluster, None, scenario.rules, learned)


def test_the_shipped_model_has_the_value_of_the_results_page() -> None:
    """Mean of 20 draws of `rare/10`, docs/results.md; the search played none of them."""
    scenario = gb.load_scenario("rare/10")
    made = {"rare-plus@10": 0.0, "packer": 0.0, "fcfs+first-fit": 0.0}
    for draw in range(20):
        jobs, cluster = question(scenario, draw, 0)
        for name in made:
            outcome = simulate(jobs, cluster, None, scenario.rules, gb.scheduler(name))
            made[name] += float(jobs.value[np.isfinite(outcome.end_s)].sum()) / 20
    assert {name: round(value) for name, value in made.items()} == {
        "rare-plus@10": 11_202, "packer": 11_012, "fcfs+first-fit": 10_621,
    }  # fmt: skip


@pytest.mark.parametrize("extra", ["first-fit", "easy", "none+first"])
def test_searched_numbers_take_neither_backfilling_nor_placement(extra: str) -> None:
    with pytest.raises(InputError, match=r"does not support backfilling|were found without a "):
        gb.scheduler(f"rare-plus@10+{extra}")
