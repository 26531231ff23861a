"""Scheduling policies: priority rules, green policies, and their registry."""

from greenbatch.policies import (  # noqa: F401  (registers them)
    energy_aware,
    foresee,
    green,
    green_threshold,
    min_min,
    recorded,
    rules,
    searched,
    slurm,
    valued,
)
from greenbatch.policies.registry import planner, policy, rule

__all__ = ["planner", "policy", "rule"]
