"""A scenario with other jobs from its generator."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from greenbatch.cluster import Cluster
from greenbatch.errors import InputError
from greenbatch.scenarios.scenario import Scenario
from greenbatch.workload import Workload

OF_TRAININGS = 1_000_000
"""Draws from this number on are those of trainings and searches; comparisons begin at 0."""


def drawn(scenario: Scenario, number: int) -> Scenario:
    """The scenario with the jobs, and an intermittent capacity, of other seeds: its own plus a number.

    Raises:
        InputError: the jobs are not drawn by a generator with a seed.
    """
    return regenerated(scenario, number) if number else scenario


def question(scenario: Scenario, start: int, jobs: int) -> tuple[Workload, Cluster]:
    """The jobs and the machine of a window of an evaluation; of a whole draw, if there are 0 jobs per window."""
    if jobs:
        return scenario.window(start, jobs), scenario.cluster
    made = drawn(scenario, start)
    return made.workload, made.cluster


def regenerated(scenario: Scenario, shift: int, gap_factor: float = 1.0) -> Scenario:
    """The scenario with jobs and powers of jobs drawn with other seeds.

    Args:
        scenario: the scenario, whose jobs a generator draws.
        shift: added to its seeds.
        gap_factor: every gap between submissions is multiplied by this; 0.5 doubles the load.

    Raises:
        InputError: the jobs are not drawn by a generator with a seed and a factor of gaps.
    """
    from greenbatch.scenarios.build import build_workload
    from greenbatch.scenarios.build_nodes import jobs_on_nodes
    from greenbatch.scenarios.build_powered import with_capacity
    from greenbatch.scenarios.check import check
    from greenbatch.scenarios.origin import Origin
    from greenbatch.scenarios.schema import ScenarioFile

    resolved: dict[str, Any] = deepcopy(dict(scenario.resolved))
    generator = resolved["workload"].get("generator", {})
    if "gap_factor" not in generator:
        fix = 'use a scenario with workload.generator.model = "lublin", "cirne", "jann" or "rare", such as rare/10'
        raise InputError(f"{scenario.name} has no generator with a seed", field="workload.generator", fix=fix)
    generator["gap_factor"] *= gap_factor
    capacity = resolved["cluster"].get("capacity", {})
    for drawn in (generator, resolved["workload"]["power"], capacity):
        if "seed" in drawn:
            drawn["seed"] += shift
    section, cluster = check(resolved, ScenarioFile, file=scenario.name, lines={}), scenario.cluster
    workload = build_workload(
        section.workload, Origin(Path(scenario.name), {}), processors=cluster.processors, strict=False
    )
    if cluster.on_nodes:
        workload = jobs_on_nodes(workload, cluster, strict=False)
    if cluster.powered is not None and "seed" in capacity:
        pools = scenario.rules.pools
        cluster = with_capacity(
            cluster, section.cluster, None, pools, workload, scenario.site, Origin(Path(scenario.name), {})
        )
    return replace(scenario, workload=workload, cluster=cluster, resolved=resolved)
