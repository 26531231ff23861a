"""Scheduling policies: priority rules, green policies, their registry, and schedulers by name."""

from greenbatch.policies.registry import planner, policy, rule
from greenbatch.policies.schedulers import (
    Decider,
    entries,
    input_files,
    names,
    scheduler,
    scheduler_table,
    source_texts,
    split_schedulers,
)

__all__ = [
    "Decider",
    "entries",
    "input_files",
    "names",
    "planner",
    "policy",
    "rule",
    "scheduler",
    "scheduler_table",
    "source_texts",
    "split_schedulers",
]
