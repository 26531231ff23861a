"""Files as providers export them: what `series.read_series` has to be told about each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Export = Literal["entso-e", "entso-e-gui", "smard", "ercot", "electricity-maps", "electricity-maps-direct", "watttime"]

_ENTSO_E: dict[str, Any] = {
    "unit": "EUR/MWh",
    "time_column": "MTU (CET/CEST)",
    "time_kind": "local",
    "time_zone": "Europe/Brussels",
    "clock_changes": "fill",  # older files have an empty row for the hour that the clocks skip
    "longest_step_s": 3600.0,  # quarter hours since October 2025, hours before
}
_ELECTRICITY_MAPS: dict[str, Any] = {"unit": "g/kWh", "time_column": "Datetime (UTC)", "time_kind": "utc"}

EXPORTS: Mapping[str, Mapping[str, Any]] = {
    "entso-e": {
        **_ENTSO_E,
        "columns": ["Day-ahead Price [EUR/MWh]"],
        "time_format": "%d.%m.%Y %H:%M...",
    },
    "entso-e-gui": {
        **_ENTSO_E,
        "columns": ["Day-ahead Price (EUR/MWh)"],
        "time_format": "%d/%m/%Y %H:%M:%S...",
    },
    "smard": {
        "columns": ["Deutschland/Luxemburg [€/MWh] Originalauflösungen"],
        "unit": "EUR/MWh",
        "time_column": "Datum von",
        "time_kind": "local",
        "time_zone": "Europe/Berlin",
        "time_format": "%d.%m.%Y %H:%M",
        "longest_step_s": 3600.0,
        "delimiter": ";",
        "decimal": ",",
    },
    "ercot": {
        "columns": ["Settlement Point Price"],
        "unit": "USD/MWh",
        "time_columns": ["Delivery Date", "Hour Ending"],
        "repeated_column": "Repeated Hour Flag",
        "time_kind": "local",
        "time_zone": "America/Chicago",
        "time_format": "%m/%d/%Y %H:%M",
        "label": "end",
    },
    "electricity-maps": {**_ELECTRICITY_MAPS, "columns": ["Carbon Intensity gCO₂eq/kWh (LCA)"]},
    "electricity-maps-direct": {**_ELECTRICITY_MAPS, "columns": ["Carbon Intensity gCO₂eq/kWh (direct)"]},
    "watttime": {"columns": ["value"], "unit": "lb/MWh", "time_column": "point_time", "time_kind": "offset"},
}
"""Name -> arguments of `series.read_series`.

``entso-e``: day-ahead prices of the transparency platform until 2024, "01.01.2023 00:00 - 01.01.2023 01:00";
``entso-e-gui``: those of the platform since, "01/01/2025 00:00:00 - 01/01/2025 01:00:00" in ``GUI_ENERGY_PRICES_...``;
``smard``: day-ahead prices of Germany's SMARD, "Originalauflösungen"; ``ercot``: day-ahead prices of settlement points
in Texas;
``electricity-maps``: life-cycle carbon intensity of a zone, ``electricity-maps-direct`` that of burning alone;
``watttime``: marginal emissions of a region.
"""

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "Carbon Intensity gCO₂eq/kWh (LCA)": (
        "Carbon intensity gCO₂eq/kWh (Life cycle)", "Carbon intensity gCO₂eq/kWh (LCA)",
        "Carbon Intensity gCO₂eq/kWh (Life cycle)",
    ),
    "Carbon Intensity gCO₂eq/kWh (direct)": (
        "Carbon intensity gCO₂eq/kWh (direct)", "Carbon intensity gCO₂eq/kWh (Direct)",
        "Carbon Intensity gCO₂eq/kWh (Direct)",
    ),
    "Delivery Date": ("DeliveryDate",),
    "Hour Ending": ("HourEnding",),
    "Repeated Hour Flag": ("RepeatedHourFlag", "DSTFlag"),
    "Settlement Point Price": ("SettlementPointPrice",),
}  # fmt: skip
"""Column of an export -> its names in files of other years."""
