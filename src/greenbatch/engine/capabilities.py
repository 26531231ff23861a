"""What works with what: the table ``capabilities.toml``, and the one function that refuses from it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.errors import InputError

WITHOUT = {"capacity": "the capacity", "gpus": "cluster.gpus"}
"""What a machine without a feature lacks, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class No:
    """Parts of schedulers that do not go with some features."""

    part: str
    """Which kind of part: policy, backfilling, placement, or another feature."""
    features: tuple[str, ...]
    kind: str
    """``by definition``, ``physics`` or ``to do``."""
    problem: str
    fix: str
    names: tuple[str, ...] = ()
    """The parts; if there are none, all but ``but``."""
    but: tuple[str, ...] = ()
    beside: str = ""
    """Only together with this feature."""
    field: str = ""
    """What the message names; by default the scheduler."""

    def is_about(self, name: str) -> bool:
        """Whether it names a part."""
        return name in self.names if self.names else name not in self.but


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The table."""

    features: dict[str, str]
    """Name -> what it is."""
    parts: dict[str, tuple[str, ...]]
    """Kind of part -> names."""
    noes: tuple[No, ...]

    def no(self, kind: str, name: str, feature: str) -> No | None:
        """Why a part does not go with a feature; None if it does."""
        noes = (no for no in self.noes if no.part == kind and no.is_about(name))
        return next((no for no in noes if feature in no.features), None)


@cache
def capabilities() -> Capabilities:
    """The table, read once."""
    text = (resources.files("greenbatch.engine") / "capabilities.toml").read_text(encoding="utf-8")
    raw = tomllib.loads(text)
    parts = {kind: tuple(names) for kind, names in raw["parts"].items()}
    return Capabilities(raw["features"], parts, tuple(map(_no, raw["no"])))


def _no(row: dict[str, Any]) -> No:
    fields: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in row.items()}
    return No(**fields)


def features_of(cluster: Cluster, site: Site | None, rules: Rules, program: Program) -> dict[str, object]:
    """The features that a simulation has -> what is set, for messages."""
    powered = cluster.powered is not None
    found = {
        "nodes": cluster.on_nodes,
        "boots": cluster.power_on == "on-demand",
        "capacity": cluster.follows_power,
        "gpus": powered and not cluster.follows_power,
        "power_cap": rules.power_cap_w,
        "import_limit": site is not None and site.held_limit_w < np.inf,
        "outages": bool(program.outages),
        "dvfs": rules.dvfs_level,
        "contention": cluster.contention != "none",
        "sticky": rules.commitment if powered and rules.commitment == "sticky" else "",
    }
    return {name: value for name, value in found.items() if value}


def _parts_of(program: Program, features: dict[str, object]) -> Iterator[tuple[str, str]]:
    yield "policy", program.row or ("rule" if program.decider is None else program.decider.name)
    yield "backfilling", program.backfill
    yield "placement", program.placement
    for name in features:
        yield "feature", name


def first_no(program: Program, features: dict[str, object]) -> tuple[No, str, str] | None:
    """The first no that is about a simulation, with the part and the feature; None if all goes together."""
    knows, parts = () if program.decider is None else program.decider.knows, list(_parts_of(program, features))
    found = (
        (no, name, feature)
        for no in capabilities().noes if not no.beside or no.beside in features
        for kind, name in parts if kind == no.part and no.is_about(name)
        for feature in no.features if feature in features and not (kind == "policy" and feature in knows)
    )  # fmt: skip
    return next(found, None)


def refuse(program: Program, features: dict[str, object]) -> None:
    """Refuse a simulation whose parts do not go together.

    Args:
        program: what the scheduler gives.
        features: see `features_of`.

    Raises:
        InputError: a part does not go with a feature.
    """
    if (found := first_no(program, features)) is None:
        return
    no, name, feature = found
    values = {"name": program.name, "feature": capabilities().features[feature], "without": WITHOUT.get(feature, ""),
              "value": features.get(name, "")}  # fmt: skip
    raise InputError(no.problem.format(**values), field=no.field or program.name, fix=no.fix.format(**values))
