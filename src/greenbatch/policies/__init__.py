"""Who decides: priority rules, green policies, and the registry that finds them by name."""

from greenbatch.policies.registry import entries, names, planner, policy, rule, scheduler, split_schedulers

__all__ = ["entries", "names", "planner", "policy", "rule", "scheduler", "split_schedulers"]
