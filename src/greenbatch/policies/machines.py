"""What planners that simulate the present in Python do not know of machines."""

from __future__ import annotations

import numpy as np

from greenbatch.cluster import Cluster, NodeCluster
from greenbatch.energy import Site
from greenbatch.engine.rules import Rules
from greenbatch.errors import InputError


def check_machine(name: str, cluster: Cluster, rules: Rules, site: Site | None) -> None:
    """Refuse what a planner does not know.

    Raises:
        InputError: the machine has nodes, or its power a cap, or imports have a limit for which jobs are held.
    """
    if isinstance(cluster, NodeCluster):
        fix = "use a priority rule or gas-marl-plus, or a cluster without [[cluster.groups]]"
        raise InputError("cannot place jobs on nodes yet", field=name, fix=fix)
    if rules.power_cap_w:
        fix = "use a priority rule with none, first-fit, easy or green backfilling"
        raise InputError(f"is not known to {name}", field="rules.power_cap_w", fix=fix)
    if site is not None and site.held_limit_w < np.inf:
        fix = 'use a priority rule with none, first-fit, easy or green backfilling, or over_limit = "count"'
        raise InputError(f"is hold, which is not known to {name}", field="site.grid.over_limit", fix=fix)
