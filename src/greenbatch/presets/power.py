"""The power that a preset needs to know for its rewards and features to mean anything."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from greenbatch.engine.capabilities import refuse
from greenbatch.engine.observe.reward_terms import ACCRUED_COST, FINISHED_VALUE, TERMS
from greenbatch.errors import InputError

if TYPE_CHECKING:
    from greenbatch.presets.preset import Preset
    from greenbatch.scenarios import Scenario

OF_SUPPLY = frozenset(("renewable_utilization", "brown_energy_ratio", "brown_kwh"))
"""Reward terms that are undefined without a power supply."""
OF_ENERGY = frozenset(("energy_kwh", "edp_js", "edp_steps_js", "peak_power_w"))
"""Reward terms that are undefined if the power of the cluster is not known."""
OF_MONEY = frozenset(("energy_cost", "energy_cost_per_kwh"))
"""Reward terms that are undefined without prices."""
OF_CARBON = frozenset(("carbon_kg",))
"""Reward terms that are undefined without carbon intensities."""
OF_POOLS = frozenset(name for name, term in TERMS.items() if FINISHED_VALUE <= term.code <= ACCRUED_COST)
"""Reward terms of value and lateness, which are 0 where capacity does not follow the power."""
KINDS = {"supply": OF_SUPPLY, "money": OF_MONEY, "carbon": OF_CARBON, "energy": OF_ENERGY, "value": OF_POOLS}
"""Kind of reward in ``capabilities.toml`` -> its terms."""
OF_NODES = frozenset((
    "static_power", "dynamic_power", "energy_estimate", "energy_of_others", "added_energy", "relative_energy",
    "relative_tail", "relative_load_tail", "relative_progress", "relative_load_progress",
))  # fmt: skip
"""Features of pairs that are 0 on nodes that draw nothing."""
FIX = "give static_power_w and power_per_processor_w of the groups"


def check_reward(made: Preset, scenario: Scenario, costs: Iterable[str] = ()) -> None:
    """Refuse to train for a reward, or to constrain a cost, that is always 0.

    Args:
        made: the preset.
        scenario: the scenario to train on.
        costs: terms that are constrained.

    Raises:
        InputError: all weights are 0, in the curriculum too, or a term is undefined without a power supply or power.
    """
    stages = made.training.get("curriculum", ())
    later = [stage.get("weights", {}) for stage in stages if isinstance(stage, dict)]
    weights = [made.reward.terms, *(each for each in later if isinstance(each, dict))]
    if not any(value for each in weights for value in each.values()):
        raise InputError("all weights are 0", field="reward.terms", fix="give at least one that is not 0")
    lacks = (name for name in scenario.features if name.startswith("no_") or name in ("unmodelled", "fixed"))
    features = dict.fromkeys(lacks, scenario.name)
    fields = {name: f"training.constraints.{name}" for name in costs}
    fields |= {name: f"reward.terms.{name}" for each in weights for name, value in each.items() if value}
    for name, field in fields.items():
        refuse(field, [("reward", kind) for kind, names in KINDS.items() if name in names], features)


def check_features(made: Preset, scenario: Scenario, file: Path | None = None) -> None:
    """Refuse features of the power of nodes where nodes and jobs draw nothing.

    Args:
        made: the preset.
        scenario: the scenario.
        file: the model that was trained with the preset, if any.

    Raises:
        InputError: the preset observes such features, and they are all 0.
    """
    if problem := nothing_to_weigh(made, scenario):
        raise InputError(f"{made.name} {problem}", file=file, field=None if file else "cluster.groups", fix=FIX)


def nothing_to_weigh(made: Preset, scenario: Scenario) -> str:
    """Why features of the power of nodes are all 0, the end of a sentence; empty if they are not, or not observed."""
    cluster = scenario.cluster
    seen = [column.feature for column in made.observation.queue.columns if column.feature in OF_NODES]
    if not seen or not cluster.on_nodes:
        return ""
    draws = any(group.static_power_w > 0 or group.power_per_processor_w > 0 for group in cluster.groups)
    if draws or (np.nan_to_num(scenario.workload.power_w) > 0).any():
        return ""
    return f"weighs energies of nodes ({seen[0]}, ...), and the nodes and jobs of {scenario.name} draw nothing"
