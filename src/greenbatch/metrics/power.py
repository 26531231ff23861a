"""Per-run metrics of power and energy; NaN if the scenario has no site or the jobs have no power.

All energies cover the interval of GAS-MARL Eq. 4: from the first start to the last end, idle power included. That
interval depends on the scheduler, so compare schedulers on brown energy over a horizon (`horizon`, `window`).
"""

from __future__ import annotations

import numpy as np

from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.metrics.jobs import run_s
from greenbatch.metrics.machine import makespan_s
from greenbatch.metrics.measured import Measured
from greenbatch.metrics.registry import metric


@metric("energy", "kWh")
def energy_kwh(run: Measured) -> float:
    """Energy used by the facility, ``integral of P_C``. [kWh], >= 0. Source: GAS-MARL Eqs. 1 and 4 (denominator).

    P_C is the power of the cluster, or ``PUE * power of the cluster + base load`` of a site that states them.
    """
    return run.energy_j / JOULES_PER_KWH


@metric("energy of the cluster alone", "kWh")
def it_energy_kwh(run: Measured) -> float:
    """Energy used by the cluster without the facility around it. [kWh], >= 0.

    The same as `energy_kwh` unless the site states a PUE or a base load. Not in the papers.
    """
    return run.it_energy_j / JOULES_PER_KWH


@metric("power usage effectiveness", "-")
def pue(run: Measured) -> float:
    """Energy of the facility over that of the cluster, base load included. [-], >= 1; NaN if the cluster uses none.

    ``energy_kwh / it_energy_kwh``. Source: ISO/IEC 30134-2, over the run instead of a year.
    """
    return run.energy_j / run.it_energy_j if run.it_energy_j > 0 else np.nan


@metric("energy-delay product", "J s")
def edp_js(run: Measured) -> float:
    """Energy x makespan. [J s], >= 0. Source: InEPS (López et al. 2025), section 3.3.3."""
    return run.energy_j * makespan_s(run)


@metric("energy of the jobs", "kWh")
def jobs_energy_kwh(run: Measured) -> float:
    """Energy that the jobs cause, all jobs of the window together. [kWh], >= 0.

    ``sum(energy of each job)``: on nodes with their static power, on a pool without its constant idle power. With
    `idle_energy_kwh` it adds up to `it_energy_kwh`. Not in the papers.
    """
    return float(run.per_job("energy_j").sum()) / JOULES_PER_KWH if run.has_power else np.nan


@metric("idle energy", "kWh")
def idle_energy_kwh(run: Measured) -> float:
    """Energy of nodes while nothing runs on them, and of a pool's constant idle power. [kWh], >= 0.

    ``sum over nodes of integral of idle power``, from the first start to the last end; with boots and shutdowns, if
    nodes boot on demand. Not in the papers.
    """
    if np.isnan(run.energy_j):
        return np.nan
    return float(run.energy_use.idle_j.sum()) / JOULES_PER_KWH


@metric("renewable energy used", "kWh", "higher")
def renewable_used_kwh(run: Measured) -> float:
    """Renewable energy used by the cluster, ``integral of min(P_GT, P_C)``. [kWh], >= 0.

    Source: GAS-MARL Eqs. 3 and 4 (numerator).
    """
    return np.nan if run.books is None else run.books.renewable_used_j / JOULES_PER_KWH


@metric("renewable energy curtailed", "kWh", "neither")
def renewable_curtailed_kwh(run: Measured) -> float:
    """Renewable energy generated and not used, ``integral of max(0, P_GT - P_C)``. [kWh], >= 0.

    It grows with the length of the schedule. Source: complement of GAS-MARL Eq. 3.
    """
    return np.nan if run.books is None else run.books.curtailed_j / JOULES_PER_KWH


@metric("brown energy", "kWh")
def brown_kwh(run: Measured) -> float:
    """Energy from the grid, ``integral of max(0, P_C - P_GT)``. [kWh], >= 0.

    Source: GAS-MARL section 3.1, hybrid power supply.
    """
    return np.nan if run.books is None else run.books.grid_j / JOULES_PER_KWH


@metric("brown energy relative to the jobs' energy", "-")
def brown_energy_ratio(run: Measured) -> float:
    """Energy from the grid over the energy of the jobs alone. [-], >= 0; NaN if the jobs use no energy.

    ``integral of max(0, P_C - P_GT) / sum(power * run)``. Idle power counts in the numerator only, so the value can
    exceed 1; the denominator is the same for all schedulers. Not in the papers.
    """
    if run.books is None:
        return np.nan
    jobs_j = float(np.sum(run.outcome.workload.power_w * run_s(run.outcome)))
    return run.books.grid_j / jobs_j if jobs_j > 0 else np.nan


@metric("renewable utilization", "-", "higher")
def renewable_utilization(run: Measured) -> float:
    """Renewable share of the energy used, from the first start to the last end. [-], in [0, 1].

    ``integral of min(P_GT, P_C) / integral of P_C``; 1 if no energy is used, as in the published code. Stretching the
    schedule alone raises it, through idle power: always compare the makespan too. Source: GAS-MARL Eq. 4.
    """
    if run.books is None:
        return np.nan
    return run.books.renewable_used_j / run.books.load_j if run.books.load_j > 0 else 1.0


@metric("peak power", "W")
def peak_power_w(run: Measured) -> float:
    """Highest power of the cluster alone, idle power included, ``max P_C``. [W], >= 0. Source: GAS-MARL Eq. 1."""
    return float(run.outcome.profile_load_w.max(initial=0.0)) if run.has_power else np.nan
