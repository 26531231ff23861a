"""Levels that renewable power and a battery can supply (RARE, Eq. 4.1-4.2 and Algorithm 5)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.energy import Site, Storage
from greenbatch.energy.powered import powered_levels

NEEDED_W = np.arange(5) * 100.0
BATTERY = Storage(
    capacity_kwh=0.1, charge_w=100.0, discharge_w=1e6, charge_efficiency=1.0, discharge_efficiency=1.0,
    lowest_charge=0.0, highest_charge=1.0,
)  # fmt: skip


def site(watts: list[float], battery: Storage | None = None) -> Site:
    return Site(name="s", step_s=3600.0, sources_w={"sun": np.array(watts)}, storage=battery)


def test_without_a_battery_the_levels_are_rounded_down() -> None:
    start_s, level, _ = powered_levels(site([0, 99, 100, 350, 900]), NEEDED_W, 5 * 3600.0)
    assert level.tolist() == [0, 0, 1, 3, 4]
    assert start_s.tolist() == [0, 3600, 7200, 10800, 14400]


def test_battery_by_hand() -> None:
    """99 Wh are stored; then 100 W last for one hour with 1 W of sun, and not for another."""
    _, level, _ = powered_levels(site([99, 1, 1], BATTERY), NEEDED_W, 3 * 3600.0)
    assert level.tolist() == [0, 1, 0]


def test_limits_of_power_and_losses() -> None:
    slow = replace(BATTERY, charge_w=50.0)
    assert powered_levels(site([99, 1], slow), NEEDED_W, 7200.0)[1].tolist() == [0, 0]
    lossy = replace(BATTERY, charge_efficiency=0.9, discharge_efficiency=0.9)
    assert powered_levels(site([99, 1], lossy), NEEDED_W, 7200.0)[1].tolist() == [0, 0]
    assert powered_levels(site([99, 20], lossy), NEEDED_W, 7200.0)[1].tolist() == [0, 1]


def test_facility_and_repetition() -> None:
    over = replace(site([250.0]), pue=1.25, base_load_w=100.0, repeat=True)
    assert powered_levels(over, NEEDED_W, 3 * 3600.0)[1].tolist() == [1, 1, 1]


@given(st.lists(st.floats(0, 600), min_size=1, max_size=30), st.floats(0.5, 1.0))
def test_nothing_comes_from_nowhere(watts: list[float], efficiency: float) -> None:
    battery = replace(BATTERY, charge_efficiency=efficiency, discharge_efficiency=efficiency)
    _, level, _ = powered_levels(site(watts, battery), NEEDED_W, len(watts) * 3600.0)
    _, alone, _ = powered_levels(site(watts), NEEDED_W, len(watts) * 3600.0)
    assert (level >= alone).all()
    assert (np.cumsum(NEEDED_W[level]) <= np.cumsum(watts) + 1e-6).all()
