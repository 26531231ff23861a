"""The tables of learning: what can be seen, done and rewarded, what ships, and every key of ``[training]``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, get_origin

from pydantic import BaseModel
from texts import NOTHING, attributes, markdown, table

from greenbatch.engine.feature import Feature
from greenbatch.engine.observe import features, pair_features
from greenbatch.engine.observe.reward_terms import TERMS
from greenbatch.experiments.papers.studies import STUDIES
from greenbatch.metrics import METRICS
from greenbatch.presets import preset, scales, training


def feature_table(known: Mapping[str, Feature]) -> str:
    """Features of one kind of rows."""
    rows = ((f"`{name}`", feature.unit, markdown(feature.meaning)) for name, feature in known.items())
    return table(("Feature", "Unit", "Meaning"), rows)


def normalizers() -> str:
    """Scales that depend on the scenario, as `presets.scales.scales_of` documents them."""
    doc = markdown(scales.scales_of.__doc__)
    found = re.findall(r"`([a-z_*]+)`: (.+?)(?= `[a-z_*]+`: | Raises:|$)", doc)
    return table(("Scale", "Value"), ((f"`{name}`", text[:1].upper() + text[1:]) for name, text in found))


def terms() -> str:
    """Terms of rewards."""
    rows = (
        (f"`{name}`", METRICS[term.metric].unit if term.metric else term.unit, markdown(term.so_far))
        for name, term in TERMS.items()
    )
    return table(("Term", "Unit", "Value during a simulation"), rows)


def presets() -> str:
    """Every shipped preset."""
    rows = []
    for name in preset.shipped_names():
        made = preset.preset(name)
        network = made.network.get("kind", NOTHING)
        rows.append((f"`{name}`", markdown(made.description), f"`{network}`", f"`{made.backfill}`"))
    return table(("Preset", "Description", "Network", "Backfilling"), rows)


def keys(kind: type[BaseModel], first: str = "") -> str:
    """Every key of a table of a preset, those of the tables inside it with dots."""
    return table(("Key", "Default", "Meaning"), _rows(kind, first))


def _rows(kind: type[BaseModel], first: str) -> list[tuple[str, str, str]]:
    meanings, rows = attributes(kind), []
    for name, field in kind.model_fields.items():
        inner = _table_of(field.annotation)
        if inner is not None and inner is not kind:
            named = f"{name}.TERM" if get_origin(field.annotation) is dict else name
            rows += _rows(inner, f"{first}{named}.")
            continue
        default = field.get_default(call_default_factory=True)
        shown = NOTHING if field.is_required() or default is None else f"`{json.dumps(default, default=str)}`"
        meaning = meanings.get(name) or PLAIN[name]
        rows.append((f"`{first}{name}`", "required" if field.is_required() else shown, meaning))
    return rows


PLAIN = {
    "epochs": "Rounds of rollouts, each followed by an update.",
    "gamma": "Discount of rewards.",
    "gae_lambda": "Lambda of generalized advantage estimation.",
    "clip": "PPO's bound on the ratio of probabilities.",
    "jobs": "Jobs per window.",
    "actor_lr": "Learning rate of the actor (Adam).",
    "critic_lr": "Learning rate of the critic (Adam).",
    "lr_schedule": "Schedule of the learning rates: `constant`, `linear` or `cosine`.",
    "seed": "Seed of weights, windows and actions.",
    "kind": "`none`, or `median`: windows whose metric lies in (median, 2 x mean).",
    "curriculum": "Stages: from fraction `start` of the training on, `jobs` per window or `weights` of reward terms.",
}
"""Keys whose names say nearly all."""


def _table_of(annotation: Any) -> type[BaseModel] | None:
    """The table that a key holds, if it holds one."""
    options = (annotation, *getattr(annotation, "__args__", ()))
    found = [kind for kind in options if isinstance(kind, type) and issubclass(kind, BaseModel)]
    many = getattr(annotation, "__origin__", None) is tuple
    return found[0] if found and not many else None


def studies() -> str:
    """What ``greenbatch reproduce PROTOCOL --train`` trains."""
    there, rows = preset.shipped_names(), []
    for name, study in STUDIES.items():
        agents = ", ".join(f"`{agent.preset}`" for agent in study.agents if agent.preset in there)
        goals = {goal.name: f"`{goal.name}` ({', '.join(goal.metrics)})" for goal in study.goals}
        backfills = {backfill: f"`{backfill}`" for backfill in study.backfills}
        rows.append((f"`{name}`", agents, ", ".join(study.usual_traces),
                     _usual(goals, study.usual_goals), _usual(backfills, study.usual_backfills)))  # fmt: skip
    return table(("Protocol", "Agents", "Traces", "Goals", "Backfilling"), rows)


def _usual(told: Mapping[str, str], usual: Sequence[str]) -> str:
    more = [text for name, text in told.items() if name not in usual]
    return ", ".join(told[name] for name in usual) + (f"; if asked for {', '.join(more)}" if more else "")


LEARNING: dict[str, Callable[[], str]] = {
    "queue-features": partial(feature_table, features.QUEUE_FEATURES),
    "pair-features": partial(feature_table, pair_features.PAIR_FEATURES),
    "running-features": partial(feature_table, features.RUNNING_FEATURES),
    "supply-features": partial(feature_table, features.SUPPLY_FEATURES),
    "state-features": partial(feature_table, features.STATE_FEATURES),
    "normalizers": normalizers,
    "reward-terms": terms,
    "presets": presets,
    "training-keys": partial(keys, training.TrainingSettings),
    "studies": studies,
}
"""Name -> the function that makes it."""
