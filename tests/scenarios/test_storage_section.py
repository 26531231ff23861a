"""The battery of a site, as scenarios state it."""

from __future__ import annotations

from typing import Any

import pytest

from greenbatch.errors import InputError
from greenbatch.scenarios import Scenario, load_scenario

BATTERY = {"capacity_kwh": 10.0, "charge_w": 2000.0, "discharge_w": 4000.0}


def stored(**keys: Any) -> Scenario:
    """The embedded scenario, on 256 processors, with a battery."""
    overrides = {f"site.storage.{key}": value for key, value in {**BATTERY, **keys}.items()}
    return load_scenario("default", overrides={**overrides, "site.reference_processors": 64})


def test_a_battery_grows_with_the_cluster() -> None:
    scenario = stored(dispatch="peak-shaving", limit_w=500.0, self_discharge_per_day=0.02)
    assert scenario.site is not None
    storage, factor = scenario.site.storage, scenario.cluster.processors / 64
    assert storage is not None
    assert (storage.capacity_kwh, storage.charge_w, storage.discharge_w, storage.limit_w) == (
        10.0 * factor, 2000.0 * factor, 4000.0 * factor, 500.0 * factor
    )  # fmt: skip
    assert (storage.dispatch, storage.self_discharge_per_day, storage.lowest_charge) == ("peak-shaving", 0.02, 0.1)


def test_without_a_table_there_is_none() -> None:
    scenario = load_scenario("default")
    assert scenario.site is not None
    assert scenario.site.storage is None


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"capacity_kwh": None}, "site.storage.capacity_kwh: is missing"),
        ({"capacity_kwh": "much"}, "site.storage.capacity_kwh: is 'much'"),
        ({"charge_w": -1.0}, "site.storage.charge_w: is -1.0"),
        ({"size_kwh": 3.0}, "site.storage.size_kwh: unknown key"),
        ({"dispatch": "clever"}, "site.storage.dispatch: is 'clever'"),
        ({"dispatch": "peak-shaving"}, "site.storage.limit_w: is missing (give it with dispatch = peak-shaving"),
        ({"lowest_charge": 0.95}, "site.storage.highest_charge: is 0.9 (it must exceed lowest_charge"),
    ],
)
def test_a_bad_battery_is_one_line(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        stored(**keys)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
