"""On a month of real jobs, prices and carbon, schedulers that weigh money or carbon pay or emit less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

import greenbatch as gb

FILES = (
    "swf/HPC2N-2002-2.2-cln.swf.gz", "weather/gasmarl_irradianceS.csv.gz", "weather/gasmarl_windspeedS.csv.gz",
    "price/sustaincluster_US-TEX-ERCO_2022_price_local_hourly.csv.gz",
    "carbon/sustaincluster_US-TEX-ERCO_2022_carbon_hourly.csv.gz",
)  # fmt: skip


def test_a_scheduler_that_weighs_money_pays_less(greenbatch_data: Callable[[str], Path]) -> None:
    for file in FILES:
        greenbatch_data(file)
    scenario = gb.load_scenario(Path(__file__).parent / "ercot.toml")
    names = {
        "brown": "cheapest-start:psi=40:reserve=0", "cost": "cheapest-start:psi=40:reserve=0:brown=0:cost=1",
        "carbon": "cheapest-start:psi=40:reserve=0:brown=0:carbon=1",
        "brown, longer": "foresee", "cost, longer": "foresee:brown=0:cost=1",
    }  # fmt: skip
    frame = gb.compare(scenario, list(names.values())).frame

    def measured(metric: str) -> dict[str, float]:
        rows = frame.filter(pl.col("metric") == metric)
        by_name = dict(zip(rows["scheduler"], rows["value"], strict=True))
        return {kind: by_name[name] for kind, name in names.items()}

    usd, brown_kwh, work_left = (measured(f"horizon_{each}") for each in ("cost", "brown_kwh", "unfinished_share"))
    carbon_kg = measured("horizon_carbon_kg")
    assert set(work_left.values()) == {0.0}
    assert usd["cost"] < 0.9 * usd["brown"]
    assert usd["cost, longer"] < 0.95 * usd["brown, longer"]
    assert brown_kwh["brown"] < brown_kwh["cost"]
    assert carbon_kg["carbon"] < 0.98 * carbon_kg["brown"]
