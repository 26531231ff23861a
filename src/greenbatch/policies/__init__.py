"""Scheduling policies: priority rules, green policies, and their registry."""

from greenbatch.policies import energy_aware, foresee, green, min_min, recorded, rules, slurm  # noqa: F401  (registers them)
from greenbatch.policies.registry import planner, policy, rule

__all__ = ["planner", "policy", "rule"]
