"""One small simulation of each compiled kind of engine: machine x supply x decider, and the ways to drive one.

``python kinds.py`` prints their digests as JSON. With ``NUMBA_DISABLE_JIT=1`` all runs as plain Python, and must give
the same bytes: `test_kinds` compares. A new machine, supply or decider is a line here; most pairs need none, for a part
is compiled from the same text in all of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cases import workload
from digests import CLUSTER, SITE, digest, random_jobs
from plain import Job

sys.path.append(str(Path(__file__).parents[1] / "rare"))

from cases_rare import rare

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.energy import ForecastModel, Grid, Storage
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Charge, Start, Wait
from greenbatch.engine.views.session import Session
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

GROUPS = (
    NodeGroup(name="a", count=2, processors=3, static_power_w=60.0, idle_fraction=0.5, power_per_processor_w=9.0),
    NodeGroup(name="b", count=1, processors=4, static_power_w=40.0, idle_fraction=0.5, power_per_processor_w=7.0,
              speed=1.25),
)  # fmt: skip
BOOTS = {"boot_s": 3.0, "boot_energy_j": 150.0, "shutdown_s": 2.0, "shutdown_energy_j": 40.0, "min_on_s": 4.0}
BATTERY = Storage(capacity_kwh=1e-3, charge_w=70.0, discharge_w=60.0, charge_efficiency=0.9)
PRICE = Grid(
    currency="EUR", import_price=np.array([0.3, 0.1, -0.2, 0.2, 0.15]),
    carbon_g_per_kwh=np.array([50.0, 700.0, 90.0, 300.0, 20.0]),
)  # fmt: skip
MACHINES = {
    "pool": CLUSTER,
    "nodes": Cluster.of_nodes(GROUPS),
    "booting nodes": Cluster.of_nodes(tuple(replace(each, **BOOTS) for each in GROUPS), power_on="on-demand"),
}
SUPPLIES = {
    "none": None,
    "sun": SITE,
    "overhead": replace(SITE, pue=1.25, base_load_w=15.0),
    "noise": replace(SITE, forecast_model=ForecastModel(sigma=0.5, seed=3)),
    "persistence": replace(SITE, step_s=10_800.0, origin_s=0.0, forecast_horizon_s=86_400.0,
                           sources_w={"all": np.tile([0.0, 40.0, 150.0, 90.0, 20.0, 0.0, 70.0, 10.0], 3)},
                           forecast_model=ForecastModel(kind="persistence")),
    "storage": replace(SITE, grid=PRICE, storage=BATTERY),
    "arbitrage": replace(SITE, grid=PRICE, storage=replace(BATTERY, dispatch="price-arbitrage")),
    "commanded storage": replace(SITE, grid=PRICE, storage=replace(BATTERY, dispatch="scheduler")),
    "limit": replace(SITE, grid=replace(PRICE, import_limit_w=200.0, over_limit="hold")),
}  # fmt: skip
RULES = (
    Rules(),
    Rules(commitment="sticky", event_rule="per_instant", ties="completion_first", overrun="extend", tick_s=6.0),
)
RUNS = (
    ("pool", "sun", ("fcfs+easy", "f2+green:sigma=300", "wfp3+first-fit", "slurm-multifactor:age=10:fairshare=100+easy",
                     "sjf+conservative", "lptpn:sigma=300", "lptpn-published:sigma=300", "ga:evaluations=60+easy",
                     "cheapest-start:horizon=60:tick=7:short=6:hold=900", "rolling:futures=1:horizon=3600",
                     "foresee:horizon=60:tick=7:slowdown=900:limit=40")),
    ("pool", "overhead", ("fcfs+easy", "f2+green:sigma=300")),
    ("pool", "noise", ("fcfs+easy", "f2+green:sigma=300")),
    ("pool", "persistence", ("f2+green:sigma=300",)),
    ("pool", "storage", ("fcfs+easy", "f2+green:sigma=300", "cheapest-start:horizon=60:tick=7:hold=900:cost=1")),
    ("pool", "arbitrage", ("fcfs+easy",)),
    ("pool", "commanded storage", ("f2+easy+charge", "cheapest-start:horizon=60:tick=7:hold=900+charge:carbon=0.2")),
    ("pool", "limit", ("fcfs+easy", "f2+green:sigma=300")),
    ("nodes", "none", ("fcfs+easy", "min-min", "eq1", "fcfs+conservative")),
    ("nodes", "sun", ("f2+green:sigma=300", "sjf+easy+worst-fit",
                      "green-threshold:tick=7:limit=60", "foresee:horizon=60:tick=7:slowdown=900:limit=40")),
    ("nodes", "storage", ("fcfs+easy",)),
    ("booting nodes", "none", ("fcfs+easy", "sjf+first-fit")),
)  # fmt: skip
"""Machine, supply, schedulers."""


def jobs_of(seed: int, unit_s: float = 1.0) -> Workload:
    """Random jobs, with a second of `random_jobs` made longer."""
    jobs = random_jobs(seed, 20)
    return workload([Job(*(unit_s * time_s for time_s in each[:3]), *each[3:]) for each in jobs])


def run(machine: str, supply: str, name: str) -> list[Any]:
    """Outcomes under both sets of rules."""
    unit_s = 1800.0 if supply == "persistence" else 1.0
    return [
        simulate(jobs_of(seed, unit_s), MACHINES[machine], SUPPLIES[supply], rules, scheduler(name))
        for seed, rules in enumerate(RULES)
    ]


def powered() -> list[Any]:
    """Capacity that follows the power, with suspensions."""
    where = rare(ticks=60, level=0.7)
    return [
        simulate(where.workload, where.cluster, None, where.rules, scheduler(name)) for name in ("fcfs", "hvf", "sjf")
    ]


def driven(machine: str, supply: str, rules: Rules) -> list[Any]:
    """A run that is driven from outside, with delays and commands to storage."""
    charges, random = supply == "commanded storage", np.random.default_rng(9)
    program = Program(name="x", backfill="easy", charges=charges)
    session = Session(jobs_of(5), MACHINES[machine], SUPPLIES[supply], rules, program)
    last_s = -np.inf
    while (view := session.view()) is not None:
        if charges and view.now_s > last_s:
            last_s = view.now_s
            session.apply(Charge(float(random.choice([-50.0, 0.0, 20.0, 90.0]))))
        elif len(view.job_id) == 0:
            session.apply(Wait())
        else:
            row = int(random.integers(len(view.job_id)))
            delayed = machine == "pool" and random.random() < 0.2
            session.apply(Start.after_seconds(row, float(random.integers(9))) if delayed else Start(row))
    return [session.outcome()]


KINDS: dict[str, Callable[[], list[Any]]] = {
    **{f"{machine}, {supply}: {name}": partial(run, machine, supply, name)
       for machine, supply, names in RUNS for name in names},
    **{f"{machine}, {supply}: driven": partial(driven, machine, supply, rules)
       for machine, supply, rules in (("pool", "sun", RULES[1]), ("pool", "commanded storage", RULES[0]),
                                      ("nodes", "none", RULES[0]))},
    "capacity that follows the power": powered,
}  # fmt: skip
"""What is compiled for -> its outcomes."""


def digests() -> dict[str, list[str]]:
    """Digests of all kinds."""
    return {name: [digest(outcome) for outcome in make()] for name, make in KINDS.items()}


if __name__ == "__main__":
    print(json.dumps(digests()))
