"""How often agents decide as rules do, on new episodes that the rules control (dissertation on RARE, §7.5.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from greenbatch.datasets.recording import Played
    from greenbatch.experiments.running.cells import Progress
    from greenbatch.models.model import Model
    from greenbatch.presets.preset import Preset
    from greenbatch.scenarios import Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pupil:
    """An agent whose decisions are compared."""

    name: str
    models: Mapping[int, Path]
    """Seed -> folder of its training."""
    rules: tuple[str, ...]
    """Rules that it is compared with."""


def agreements(
    scenario: Scenario, pupils: Sequence[Pupil], draws: Sequence[int], progress: Progress | None = None
) -> dict[str, dict[str, dict[str, Any]]]:  # fmt: skip
    """Play every rule on every draw, and ask the agents what they would have done; requires torch.

    Args:
        scenario: the question, whose jobs a generator draws.
        pupils: the agents.
        draws: numbers of the episodes.
        progress: called before every episode.

    Returns:
        Agent -> rule -> ``values``: share of the decisions with a choice in which the most probable action is the
        rule's, a list per seed with one value per draw; ``at_random``: expected share of an agent that chooses
        uniformly among the valid actions, one value per draw; ``contested``: decisions with a choice; ``decisions``.
    """
    import torch

    from greenbatch.learning.training.device import prepared

    found: dict[str, dict[str, dict[str, Any]]] = {pupil.name: {} for pupil in pupils}
    with prepared(1, torch.device("cpu")):
        for group in _of_one_view(pupils):
            _ask(scenario, group, draws, found, progress)
    return found


Asked = list[tuple[Pupil, "Preset", list["Model"]]]


def _of_one_view(pupils: Sequence[Pupil]) -> list[Asked]:
    """Agents with their models, in groups that see and may do the same."""
    from greenbatch.models.model import MODEL, load_model

    groups: dict[str, Asked] = {}
    for pupil in pupils:
        models = [load_model(folder / MODEL) for folder in pupil.models.values()]
        if models:
            preset = models[0].preset
            seen = preset.observation.model_dump_json() + preset.action.model_dump_json()
            groups.setdefault(seen, []).append((pupil, preset, models))
    return list(groups.values())


def _ask(
    scenario: Scenario, asked: Asked, draws: Sequence[int], found: dict[str, dict[str, dict[str, Any]]],
    progress: Progress | None,
) -> None:  # fmt: skip
    from greenbatch.learning.evaluation.recorded import actor_of

    actors = {pupil.name: [actor_of(model) for model in models] for pupil, _, models in asked}
    rules = list(dict.fromkeys(rule for pupil, _, _ in asked for rule in pupil.rules))
    for number, rule in enumerate(rules):
        those = [pupil for pupil, _, _ in asked if rule in pupil.rules]
        lines = {
            pupil.name: {"values": [[] for _ in actors[pupil.name]], "at_random": [], "contested": 0, "decisions": 0}
            for pupil in those
        }
        for k, draw in enumerate(draws):
            if progress is not None:
                progress(f"decisions under {rule}, draw {draw}", number * len(draws) + k, len(rules) * len(draws))
            played = rollout(scenario, asked[0][1], rule, draw)
            for pupil in those:
                _compare(lines[pupil.name], actors[pupil.name], played)
        for name, line in lines.items():
            found[name][rule] = line


def rollout(scenario: Scenario, preset: Preset, rule: str, draw: int) -> Played:
    """The decisions of a rule in a whole draw, as an agent of a preset sees them."""
    from greenbatch.datasets.recording import play, recording
    from greenbatch.scenarios.regenerate import drawn

    question = drawn(scenario, draw)
    agent = preset.model_copy(update={"training": {}})  # the scenario has the length of the episode
    (played,) = play(recording(question, agent, rule, starts=[0], jobs=len(question.workload)))
    return played


def _compare(line: dict[str, Any], actors: Sequence[Any], played: Played) -> None:
    from greenbatch.learning.evaluation import agreement
    from greenbatch.learning.networks.observations import as_batch

    batch = as_batch(played.seen)
    valid: Ints = np.add.reduceat(np.asarray(played.seen.selectable, np.int64), played.seen.queue_offsets[:-1])
    for values, actor in zip(line["values"], actors, strict=True):
        made = agreement(_chosen(actor, batch), played.actions, valid)
        values.append(made.share)
    line["at_random"].append(float((1.0 / valid[valid >= 2]).mean()))
    line["contested"] += int((valid >= 2).sum())
    line["decisions"] += len(valid)


def _chosen(actor: Any, batch: Any) -> Ints:
    """Most probable rows, shape (decisions,)."""
    import torch

    from greenbatch.learning.networks import segments

    with torch.no_grad():
        chosen: Ints = segments.arg_max(actor(batch), batch.queue_offsets, batch.selectable).numpy()
    return chosen


def with_dataset(told: Mapping[str, Mapping[str, Any]], shares: Mapping[str, float], key: str = "values") -> Floats:
    """Agreement with the rules of a dataset: mean of the rules' agreements, weighted by their shares.

    Args:
        told: rule -> what `agreements` returns for an agent.
        shares: rule -> its share of the dataset, in any unit.
        key: ``values``, shape (seeds, draws), or ``at_random``, shape (draws,).
    """
    weights = np.array(list(shares.values()))
    each = np.array([told[rule][key] for rule in shares], np.float64)
    mixed: Floats = np.tensordot(weights / weights.sum(), each, axes=1)
    return mixed
