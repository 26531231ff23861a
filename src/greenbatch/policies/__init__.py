"""Who decides: priority rules, green policies, the registry of both, and schedulers spelled by name."""

from greenbatch.policies.registry import planner, policy, rule
from greenbatch.policies.schedulers import entries, input_files, names, scheduler, split_schedulers

__all__ = ["entries", "input_files", "names", "planner", "policy", "rule", "scheduler", "split_schedulers"]
