"""Green-aware batch scheduling for HPC: simulate, compare and reproduce.

A `Workload`, a `Cluster` and a `Site` make a `Scenario`. A scheduler (``policy+backfill``) turns a window of it into an
`Outcome`, and `evaluate` computes its metrics. The main functions are `simulate`, `compare` and `reproduce`.

Example::

    import greenbatch as gb

    scenario = gb.load_scenario("default")
    outcome = gb.simulate(scenario, "f2+green", start=0, jobs=1024)
    print(gb.evaluate(outcome)["renewable_utilization"])
"""

from __future__ import annotations

TYPE_CHECKING = False  # not from typing: Ctrl-C must be handled before anything else is loaded
if TYPE_CHECKING:
    from typing import Any

    from greenbatch.cluster import Cluster, DvfsLevel, NodeGroup
    from greenbatch.energy import Site
    from greenbatch.engine.rules import Rules
    from greenbatch.engine.views.interface import Charge, Policy, Queue, Start, Suspend, View, Wait
    from greenbatch.errors import GreenbatchError, InputError
    from greenbatch.experiments.notebook import Comparison, Outcome, compare, simulate
    from greenbatch.experiments.papers.reproduce import reproduce
    from greenbatch.experiments.running.model_warnings import ModelWarning
    from greenbatch.metrics import evaluate
    from greenbatch.policies import policy, rule
    from greenbatch.scenarios import Scenario, load_scenario
    from greenbatch.schedulers import scheduler
    from greenbatch.workload import Workload, read_workload

__version__ = "0.1.0"

_MODULES = {
    "cluster": ("Cluster", "DvfsLevel", "NodeGroup"),
    "energy": ("Site",),
    "engine.rules": ("Rules",),
    "engine.views.interface": ("Charge", "Policy", "Queue", "Start", "Suspend", "View", "Wait"),
    "errors": ("GreenbatchError", "InputError"),
    "experiments.notebook": ("Comparison", "Outcome", "compare", "simulate"),
    "experiments.papers.reproduce": ("reproduce",),
    "experiments.running.model_warnings": ("ModelWarning",),
    "metrics": ("evaluate",),
    "policies": ("policy", "rule"),
    "scenarios": ("Scenario", "load_scenario"),
    "schedulers": ("scheduler",),
    "workload": ("Workload", "read_workload"),
}
_PUBLIC = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Charge",
    "Cluster",
    "Comparison",
    "DvfsLevel",
    "GreenbatchError",
    "InputError",
    "ModelWarning",
    "NodeGroup",
    "Outcome",
    "Policy",
    "Queue",
    "Rules",
    "Scenario",
    "Site",
    "Start",
    "Suspend",
    "View",
    "Wait",
    "Workload",
    "compare",
    "evaluate",
    "load_scenario",
    "policy",
    "read_workload",
    "reproduce",
    "rule",
    "scheduler",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that ``import greenbatch`` is fast."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'greenbatch' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"greenbatch.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
