"""A bound for whole logs and any site: jobs cut up freely, each done within a stated time.

What jobs have drawn until an instant is at least what must be done by then for all to end in time, and at most what
could be done if each ran from its submission on. Between these two curves, a linear program divides their energy over
the slots of the supply: what it takes from the grid, pays or emits, no schedule beats. In each slot

    imports - surplus = PUE * (idle energy + energy of jobs) + base load - own generation + what storage takes or gives.

Each schedule that keeps the time solves this program, so its optimum is a lower bound: that one processor works on one
job, that jobs are not interrupted, and that nobody knows the future are left out. Within a slot, power may vary, and
imports are at least those of its mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.energy.slots import interval_at
from greenbatch.engine.capabilities import features_of, refuse
from greenbatch.engine.machine.dvfs import levels_of
from greenbatch.engine.power.costs import costs_of
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import work_s
from greenbatch.errors import InputError
from greenbatch.workload import Workload

Floats = NDArray[np.float64]
Aim = Literal["brown", "cost", "carbon"]
"""What is bounded: energy from the grid, its cost less what surplus earns, or emissions."""

JOULES_PER_KWH = 3.6e6
MARGIN = 1e-6
"""Subtracted from a bound against rounding, as a share of what all energy would take, pay or emit."""
_LEAVES_OUT = ("waiting", "largest_request", "longest_request_s", "end_s", "episode_s")
"""Options of pools that reject jobs or end a run before they have ended."""
MOST_SLOTS = 400_000
"""Largest number of slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FluidBound:
    """What no schedule can beat whose jobs all end in time, over one span; demand charges are left out."""

    brown_kwh: float
    """Least energy from the grid. [kWh]"""
    cost: float
    """Least cost of energy, NaN without prices; below 0 if surplus earns more. [currency of the site]"""
    carbon_kg: float
    """Least emissions, NaN without intensities. [kg]"""
    within_s: float
    """Each job ends at most so long after its submission and its run time. [s]"""
    first_s: float
    """Begin of the span: the first submission. [s]"""
    last_s: float
    """End of the span: when the last job has to be done. [s]"""


def fluid_bound(
    workload: Workload, cluster: Cluster, site: Site, rules: Rules, *, within_s: float
) -> FluidBound:  # fmt: skip
    """Bounds on brown energy, cost and emissions of all schedules whose jobs end in time.

    Args:
        workload: the jobs; whole logs take seconds.
        cluster: a pool or nodes.
        site: the supply, with prices, PUE, base load and storage, or some of them.
        rules: how the batch system reacts; only whether jobs are killed at their requested time matters.
        within_s: each job ends at most so long after its submission and its run time at speed 1, which is at most its
            request if jobs are killed, >= 0. [s]

    Raises:
        InputError: a feature that the bound does not know, see ``capabilities.toml``, an unknown power, no schedule
            can end all jobs in time, or there are over `MOST_SLOTS` slots.
        SupplyExhausted: the power series ends before.
    """
    refuse("a bound", [("bound", "fluid")], features_of(workload, cluster, site, rules))
    given = [name for name in _LEAVES_OUT if rules.pools is not None and getattr(rules.pools, name)]
    if given:
        problem, fix = "may leave jobs out, and a bound counts the work of all", "set it to 0"
        raise InputError(problem, field=f"rules.pools.{given[0]}", fix=fix)
    if not 0.0 <= within_s < np.inf:
        raise InputError(f"is {within_s:g}", field="within_s", fix="give a finite time >= 0")
    jobs = _jobs_of(workload, cluster, rules, within_s)
    first_s, last_s = float(workload.submit_s.min()), float(jobs.due_s.max())
    edge_s, slot = _slots(site, first_s, last_s)
    program = _Program(jobs, cluster, site, edge_s, slot)
    grid, found = site.grid, dict.fromkeys(get_args(Aim), float("nan"))
    known = {"brown": True, "cost": grid is not None and grid.has_money,
             "carbon": grid is not None and grid.has_carbon}  # fmt: skip
    for aim in found:
        if known[aim]:
            found[aim] = program.least(aim)
    return FluidBound(
        brown_kwh=found["brown"], cost=found["cost"], carbon_kg=found["carbon"] / 1e3, within_s=within_s,
        first_s=first_s, last_s=last_s,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Jobs:
    """Jobs as energy that flows, columns of shape (n,)."""

    submit_s: Floats
    due_s: Floats
    energy_j: Floats
    """The least that each can use. [J]"""
    power_w: Floats
    """The most that each can draw. [W]"""
    most_w: float
    """The most that all processors together can draw for jobs. [W]"""

    def done_j(self, time_s: Floats) -> tuple[Floats, Floats]:
        """Energy that must be used until some times, and energy that can be, each of their shape. [J]"""
        length_s = self.energy_j / self.power_w
        most = _ramps(time_s, self.submit_s, self.submit_s + length_s, self.power_w)
        least = _ramps(time_s, self.due_s - length_s, self.due_s, self.power_w)
        slack_j = 1e-9 * float(self.energy_j.sum())  # rounding of sums over all jobs
        return np.minimum(least - slack_j, most).clip(0.0), most + slack_j


def _ramps(time_s: Floats, from_s: Floats, to_s: Floats, power_w: Floats) -> Floats:
    """Sum over jobs of what each has used at some times if it draws its power from one time to another."""
    total = np.zeros(len(time_s))
    for sign, begin_s in ((1.0, from_s), (-1.0, to_s)):
        order = np.argsort(begin_s)
        watts = np.append(0.0, np.cumsum(power_w[order]))
        moments = np.append(0.0, np.cumsum(power_w[order] * (begin_s[order] - time_s[0])))
        count = np.searchsorted(begin_s[order], time_s)
        total += sign * (watts[count] * (time_s - time_s[0]) - moments[count])
    return total


def _jobs_of(workload: Workload, cluster: Cluster, rules: Rules, within_s: float) -> _Jobs:
    """The least energy and the largest power of each job, wherever it runs; idle nodes are counted apart."""
    run_s, own_w = work_s(workload, cluster, rules), np.nan_to_num(workload.power_w)
    frugal = min(each.power / each.speed for each in levels_of(cluster))  # policies may choose the level of each job
    processors = workload.processors.astype(np.float64)
    fastest = max(group.speed for group in cluster.groups) if cluster.on_nodes else 1.0
    least_w, most_w = own_w.copy(), own_w.copy()
    if cluster.on_nodes:
        modelled, gpus = own_w == 0.0, np.maximum(workload.gpus, 0)
        each_w = np.array([processors * g.power_per_processor_w + gpus * g.power_per_gpu_w for g in cluster.groups])
        least_w[modelled], most_w[modelled] = each_w.min(axis=0)[modelled], each_w.max(axis=0)[modelled]
    machines_w = cluster.machine_power_per_processor_w * processors
    least_w, most_w = least_w * frugal + machines_w, np.maximum(most_w + machines_w, 1e-9)
    killed_s = np.minimum(run_s, workload.requested_time_s) if rules.overrun == "kill" else run_s
    energy_j = least_w * killed_s / fastest
    due_s = workload.submit_s + killed_s + within_s
    all_w = float((most_w / processors).max()) * cluster.processors
    return _Jobs(workload.submit_s.astype(np.float64), due_s, np.maximum(energy_j, 0.0), most_w, all_w)


def _slots(site: Site, first_s: float, last_s: float) -> tuple[Floats, NDArray[np.int64]]:
    """Edges of the slots from one time to another, shape (k + 1,) [s], and which of the site's each is, shape (k,)."""
    if not site.repeat and not (site.origin_s <= first_s and last_s <= site.end_s):
        raise site.exhausted("the bound needs", first_s, last_s)
    begin, end = (int(interval_at(each, site.origin_s, site.step_s)) for each in (first_s, last_s))
    if end - begin > MOST_SLOTS:
        fix = f"bound a part of the log: at most {MOST_SLOTS:,} slots of {site.step_s:g} s"
        raise InputError(f"lasts {(last_s - first_s) / site.step_s:,.0f} slots", field="the log", fix=fix)
    inner_s = site.origin_s + np.arange(begin + 1, end + 1) * site.step_s
    edge_s = np.concatenate([[first_s], inner_s[(inner_s > first_s) & (inner_s < last_s)], [last_s]])
    middle_s = (edge_s[1:] + edge_s[:-1]) / 2
    return edge_s, np.floor((middle_s - site.origin_s) / site.step_s).astype(np.int64) % site.slots


def _wasted_w(jobs: _Jobs, cluster: Cluster) -> float:
    """The most that a machine may draw beyond what it must, which earns money at negative prices. [W]

    A pool that is always on draws nothing that it does not have to.
    """
    if not cluster.on_nodes and cluster.powered is None and not cluster.machine_processors:
        return 0.0
    switching_w = [
        energy_j / length_s if length_s > 0.0 else 0.0 for g in cluster.groups
        for energy_j, length_s in ((g.boot_energy_j, g.boot_s), (g.shutdown_energy_j, g.shutdown_s))
    ]  # fmt: skip
    nodes_w = sum(g.count * max(g.static_power_w, *switching_w) for g in cluster.groups)
    return jobs.most_w + nodes_w


class _Program:
    """The linear program of a span of k slots, in kWh; see `scipy.optimize.linprog`.

    Variables, k of each: energy of jobs, its sum so far, imports, own surplus, what the machine draws beyond what it
    must; and with storage what it takes, what it gives, what is in it at the end, and what it gives that is surplus.
    """

    def __init__(self, jobs: _Jobs, cluster: Cluster, site: Site, edge_s: Floats, slot: NDArray[np.int64]) -> None:
        from scipy import sparse

        k, hours = len(slot), np.diff(edge_s) / 3600.0
        pue = np.broadcast_to(site.pue, (site.slots,))[slot]
        idle_w = float(cluster.idle_levels_w.min()) if cluster.powered is not None else cluster.first_power_w
        self.own_kwh = site.renewable_w[slot] * hours / 1e3
        fixed_kwh = (pue * idle_w + site.base_load_w) * hours / 1e3
        least_j, most_j = jobs.done_j(edge_s[1:])
        least_j[-1] = most_j[-1] = float(jobs.energy_j.sum())
        wasted_kwh = pue * _wasted_w(jobs, cluster) * hours / 1e3
        below = [np.zeros(k), least_j / JOULES_PER_KWH, np.zeros(k), np.zeros(k), np.zeros(k)]
        above = [jobs.most_w * hours / 1e3, most_j / JOULES_PER_KWH, np.full(k, np.inf), self.own_kwh, wasted_kwh]
        one, none = sparse.identity(k, format="csr"), sparse.csr_matrix((k, k))
        step = one - sparse.eye(k, k=-1, format="csr")
        rows = [[one, -step, none, none, none], [sparse.diags(pue), none, -one, one, one]]
        right = [np.zeros(k), self.own_kwh - fixed_kwh]
        self.stored = storage = site.storage if site.storage is not None and site.storage.capacity_kwh > 0 else None
        if storage is not None:
            usable_kwh = storage.capacity_kwh * (storage.highest_charge - storage.lowest_charge)
            initial = storage.lowest_charge if storage.initial_charge is None else storage.initial_charge
            most_kwh = [storage.charge_w * hours / 1e3, storage.discharge_w * hours / 1e3]
            above += [*most_kwh, np.full(k, usable_kwh), most_kwh[1]]
            below += [np.zeros(k)] * 4
            rows[0] += [none] * 4
            rows[1] += [one, -one, none, one]
            into, out_of = -storage.charge_efficiency * one, one / storage.discharge_efficiency
            rows.append([none] * 5 + [into, out_of, step, none])
            right.append(np.append(storage.capacity_kwh * (initial - storage.lowest_charge), np.zeros(k - 1)))
        self.rows, self.right = sparse.bmat(rows, format="csr"), np.concatenate(right)
        self.bounds = np.stack([np.concatenate(below), np.concatenate(above)], axis=1)
        self.costs, self.slot, self.size = costs_of(site), slot, k
        self.all_kwh = float(jobs.energy_j.sum()) / JOULES_PER_KWH * float(pue.max()) + float(fixed_kwh.sum())

    def least(self, aim: Aim) -> float:
        """The least energy from the grid [kWh], cost, or emissions [g].

        Raises:
            InputError: no schedule can end all jobs in time.
        """
        from scipy.optimize import linprog

        k, costs, slot = self.size, self.costs, self.slot
        imports, sold, own = np.ones(k), np.zeros(k), np.zeros(k)
        if aim == "cost":
            imports, sold = costs.import_price_per_kwh[slot], costs.export_price_per_kwh[slot]
            own = costs.own_price_per_kwh[slot]
        elif aim == "carbon":
            imports, own = costs.carbon_g_per_kwh[slot], costs.own_g_per_kwh[slot]
        weights = [np.zeros(2 * k), imports, -(sold + own), np.zeros(k)]
        if self.stored is not None:
            weights += [np.zeros(3 * k), -sold]
        found: Any = linprog(
            np.concatenate(weights), A_eq=self.rows, b_eq=self.right, bounds=self.bounds, method="highs"
        )
        if found.x is None:
            problem = "is too short: no schedule ends all jobs in time"
            raise InputError(problem, field="within_s", fix="give a longer time")
        margin = MARGIN * self.all_kwh * float(np.abs(imports).max(initial=0.0))
        return float(found.fun + own @ self.own_kwh - margin)
