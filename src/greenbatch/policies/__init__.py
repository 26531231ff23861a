"""Scheduling policies: priority rules, green policies, and their registry."""

from greenbatch.policies import green, recorded, rules, slurm  # noqa: F401  (importing them registers their policies)
from greenbatch.policies.registry import planner, policy, rule

__all__ = ["planner", "policy", "rule"]
