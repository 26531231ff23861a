"""Digests of small simulations of every discipline and backfilling, to compare processes and modes byte by byte.

``python digests.py`` prints them as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from cases import site, workload
from plain import Job, Supply

from greenbatch.cluster import Cluster
from greenbatch.engine.accounts import books, power_segments
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Start, View, Wait
from greenbatch.engine.views.session import Session
from greenbatch.schedulers import scheduler

CLUSTER = Cluster.pooled(8, processors_per_machine=4, idle_power_per_machine_w=30.0)
BACKFILLS = ("none", "easy", "easy-schedgym", "easy-green-order", "conservative", "green:sigma=300")
SCANS = (
    "lptpn:sigma=300+none",
    "lptpn-published:sigma=300+none",
    "cheapest-start:horizon=60:tick=7:short=6:hold=900+none",
)


def random_jobs(seed: int, count: int = 40) -> list[Job]:
    """Jobs with ties in submission, and exact, over- and under-estimated requests."""
    random = np.random.default_rng(seed)
    submit_s = np.cumsum(random.integers(0, 4, count))
    run_s = random.integers(1, 15, count)
    requested_s = np.maximum(1, run_s + random.choice([0, 0, 5, -4], count))
    processors, power_w = random.integers(1, 9, count), random.integers(0, 60, count)
    return [Job(*map(float, job[:3]), int(job[3]), float(job[4]))
            for job in zip(submit_s, run_s, requested_s, processors, power_w, strict=True)]  # fmt: skip


SITE = site(Supply([0.0, 40.0, 150.0, 90.0, 20.0], 11.0, -4.0, 3))


def small_runs(every: int = 1) -> Iterator[tuple[str, Any]]:
    """Name and outcome of every case, or of one in some of them."""
    policies = ("f2", "random:seed=3")
    for number, name in enumerate([*map("+".join, product(policies, BACKFILLS)), *SCANS]):
        choices = list(product(("sticky", "reconsider"), ("per_event", "per_instant")))
        for commitment, event_rule in choices[number % every :: every]:
            rules: Any = {"commitment": commitment, "event_rule": event_rule, "tick_s": 6.0 * (number % 3 == 0)}
            rules["overrun"] = "kill" if number % 2 else "extend"
            jobs = workload(random_jobs(number))
            yield f"{name} {rules}", simulate(jobs, CLUSTER, SITE, Rules(**rules), scheduler(name))
    for backfill, commitment in product(("none", "easy", "green"), ("sticky", "reconsider")):
        yield f"delays {backfill} {commitment}", delayed(backfill, commitment)


def delayed(backfill: str, commitment: Any) -> Any:
    """A run driven from outside, with delays of all kinds."""
    random = np.random.default_rng(9)
    session = Session(
        workload(random_jobs(5)), CLUSTER, SITE, Rules(commitment=commitment), Program(name="x", backfill=backfill)
    )
    while (view := session.view()) is not None:
        session.apply(random_decision(view, random))
    return session.outcome()


def random_decision(view: View, random: np.random.Generator) -> Start | Wait:
    row = int(random.integers(len(view.job_id)))
    kind = random.integers(5)
    if kind == 0 and (len(view.running.job_id) > 0):
        return Wait()
    if kind == 1:
        return Start.after_releases(row, int(random.integers(4)))
    return Start.after_seconds(row, float(random.integers(9))) if kind == 2 else Start(row)


def digest(outcome: Any) -> str:
    """Hash of everything a simulation leaves behind."""
    sha = hashlib.sha256()
    for column in (outcome.start_s, outcome.end_s, outcome.promised_start_s, outcome.profile_time_s,
                   outcome.profile_load_w, *power_segments(outcome)[:5]):  # fmt: skip
        sha.update(np.ascontiguousarray(column).tobytes())
    found = books(outcome)
    numbers = [outcome.decisions, outcome.killed, *found[:5], found.cost]
    sha.update(np.array(numbers, dtype=np.float64).tobytes())
    return sha.hexdigest()


def digests(every: int = 1) -> dict[str, str]:
    """Name of each case -> its digest."""
    return {name: digest(outcome) for name, outcome in small_runs(every)}


if __name__ == "__main__":
    print(json.dumps(digests()))
