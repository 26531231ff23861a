"""What works with what: the table ``capabilities.toml``, and the functions that refuse from it.

`refuse_run` is asked before a simulation begins and by comparisons, `refuse_program` by drivers of views; `refuse` by
names of schedulers, models, presets and their rewards, environments, searches and bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.dependencies import obeyed_text
from greenbatch.engine.program import Program, charges_by_rank
from greenbatch.engine.rules import Rules
from greenbatch.engine.tables import read_table
from greenbatch.errors import InputError
from greenbatch.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class No:
    """Parts that do not go with some features."""

    part: str
    """Which kind of part: a key of ``[parts]``."""
    features: tuple[str, ...]
    problem: str
    fix: str
    kind: str = "to do"
    """``by definition``, ``physics`` or ``to do``."""
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
        """Why a part does not go with a feature; None if it does, or else what holds always before what is `beside`."""
        noes = [no for no in self.noes if no.part == kind and no.is_about(name) and feature in no.features]
        return min(noes, key=lambda no: bool(no.beside), default=None)


@cache
def capabilities() -> Capabilities:
    """The table, read once."""
    raw = read_table("capabilities")
    parts = {kind: tuple(names) for kind, names in raw["parts"].items()}
    return Capabilities(raw["features"], parts, tuple(no for row in raw["no"] for no in _noes(row, parts)))


def _noes(row: dict[str, Any], kinds: Mapping[str, tuple[str, ...]]) -> Iterator[No]:
    """One for each kind of part in a row."""
    told: dict[str, Any] = {key: text for key, text in row.items() if isinstance(text, str)}
    for kind in (key for key in row if key in kinds):
        which = row[kind] if isinstance(row[kind], dict) else {"names": row[kind]}
        own: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in which.items()}
        own |= {"but": kinds[kind]} if own.get("but") == "all" else {}
        yield No(part=kind, features=tuple(row["with"]), **{**told, **own})


def features_of(
    workload: Workload | None, cluster: Cluster, site: Site | None, rules: Rules, *, outages: bool = False
) -> dict[str, object]:  # fmt: skip
    """The features that a simulation has -> what is set, for messages; without a workload, those that need no jobs."""
    powered, pools, grid = cluster.powered is not None, rules.pools, None if site is None else site.grid
    found = {
        "nodes": cluster.on_nodes,
        "boots": cluster.on_nodes and cluster.power_on == "on-demand",
        "capacity": cluster.follows_power,
        "site_capacity": powered and cluster.capacity_levels.until_s < np.inf,
        "kept_battery": "" if site is None or site.storage is None else site.storage.dispatch.removeprefix("greedy"),
        "gpus": powered and not cluster.follows_power,
        "pools": pools is not None,
        "swap": pools is not None and pools.suspends == "swap",
        "power_cap": rules.power_cap_w,
        "import_limit": site is not None and site.held_limit_w < np.inf,
        "overhead": site is not None and site.has_overhead,
        "storage": site is not None and site.storage is not None,
        "outages": outages,
        "forecast_error": "" if site is None or site.forecast_model.kind == "perfect" else site.forecast_model.kind,
        "dvfs": rules.dvfs_level,
        "depth": rules.backfill_depth,
        "contention": cluster.contention != "none",
        "operations": cluster.contention == "irmasim-v1",
        "sticky": rules.commitment if rules.commitment == "sticky" else "",
        "pool": not cluster.on_nodes,
        "fixed": not powered,
        "own_machine": type(cluster) is not Cluster,
        "own_supply": site is not None and type(site) is not Site,
        "supply": site is not None,
        "no_supply": site is None,
        "no_grid": grid is None,
        "no_prices": grid is None or not grid.has_money,
        "no_carbon": grid is None or not grid.has_carbon,
        "no_commands": no_commands(site),
        "unmodelled": not cluster.knows_power,
        "commits": rules.commitment == "sticky",
    }
    if workload is not None:
        unmeasured = workload.job_id[np.isnan(workload.power_w)]
        found |= {
            "due": powered and bool(np.isfinite(workload.qos).any()),
            "follow": obeyed_text(workload, rules),
            "unmeasured": f"job {unmeasured[0]}" if unmeasured.size else "",
        }
    return {name: value for name, value in found.items() if value}


def no_commands(site: Site | None) -> str:
    """Why no scheduler can command storage, the beginning of a sentence; empty if it can."""
    if site is None or site.storage is None:
        return "is missing"
    return "" if site.storage.dispatch == "scheduler" else f"has dispatch = {site.storage.dispatch}"


def with_settings(features: Mapping[str, object], settings: Mapping[str, float]) -> dict[str, object]:
    """The features once the settings of a scheduler or an agent have replaced rules."""
    sticky = settings.get("sticky", "commits" in features)
    return {**features, "commits": bool(sticky), "reconsider": not sticky}


def asked(backfilling: str, placement: str = "") -> dict[str, object]:
    """What the name of a scheduler adds to a policy, as features; a backfilling is one by its own name, too."""
    some = backfilling if backfilling != "none" else ""
    return {"backfilling": some, backfilling: backfilling, "placement": placement}


def parts_of(program: Program, predictor: str = "requested") -> list[tuple[str, str]]:
    """The parts of a scheduler: kind and name of each; whether it plans with the whole window is one."""
    decider = program.decider
    policy = program.row or ("rule" if decider is None else decider.name)
    plans = [("plan", "window")] if decider is not None and decider.learn is not None else []
    named = [("backfilling", program.backfill), ("placement", program.placement)]
    return [("policy", policy), *plans, *named, ("predictor", program.predictor or predictor), *program.parts]


@cache
def _noes_among(features: frozenset[str]) -> tuple[No, ...]:
    """The rows that say no to one of some features, in order: a window of jobs is simulated in milliseconds."""
    able = (no for no in capabilities().noes if not no.beside or no.beside in features)
    return tuple(no for no in able if not features.isdisjoint(no.features))


def first_no(
    parts: Iterable[tuple[str, str]], features: Mapping[str, object], knows: Sequence[str] = ()
) -> tuple[No, str, str] | None:
    """The first no that is about some parts, with the part and the feature; None if all goes together.

    Args:
        parts: kind and name of each part; the features are parts as well.
        features: see `features_of`; those without a value are not there.
        knows: features that the policy says it knows.
    """
    features = {name: value for name, value in features.items() if value}
    all_parts = [*parts, *(("feature", name) for name in features)]
    return next((
        (no, name, feature)
        for no in _noes_among(frozenset(features)) for feature in no.features if feature in features
        for kind, name in all_parts if kind == no.part and no.is_about(name)
        if not (kind == "policy" and feature in knows)
    ), None)  # fmt: skip


def refuse(
    told: str, parts: Iterable[tuple[str, str]], features: Mapping[str, object], knows: Sequence[str] = ()
) -> None:
    """Refuse parts that do not go together, before anything runs.

    Args:
        told: what messages call the parts, such as the name of the scheduler.
        parts: see `first_no`.
        features: see `features_of`.
        knows: see `first_no`.

    Raises:
        InputError: a part does not go with a feature.
    """
    if (found := first_no(parts, features, knows)) is None:
        return
    (no, name, feature), known = found, capabilities().features
    values = {
        "name": told, "part": known.get(name, told), "feature": known.get(feature, feature), "set": features[feature],
        "value": features.get(name, ""),
    }  # fmt: skip
    raise InputError(no.problem.format(**values), field=no.field or told, fix=no.fix.format(**values))


def refuse_run(program: Program, workload: Workload, cluster: Cluster, site: Site | None, rules: Rules) -> None:
    """`refuse` for a scheduler on a window of jobs."""
    refuse_program(program, features_of(workload, cluster, site, rules, outages=bool(program.outages)), rules.predictor)


def refuse_program(program: Program, features: Mapping[str, object], predictor: str = "requested") -> None:
    """`refuse` for a scheduler."""
    own = {program.backfill: program.backfill, "charge": charges_by_rank(program)}
    features = {**with_settings(features, program.settings or {}), **own}
    refuse(program.name, parts_of(program, predictor), features, program.knows)
