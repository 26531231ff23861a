"""What a sweep says in words: findings, and what stays fixed."""

# ruff: noqa: RUF001 - typographic minus signs are meant for the reader.

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from greenbatch.experiments.reports.columns import main_columns
from greenbatch.experiments.reports.findings import BROWN, listed
from greenbatch.experiments.running.statistics import intervals

if TYPE_CHECKING:
    from greenbatch.energy import ForecastModel
    from greenbatch.experiments.running.sweep import Sweep

FORECAST = "site.forecast"
FOUND = {"horizon_cost": "cost", BROWN: "brown energy", "energy_kwh": "energy", "avg_bounded_slowdown": "slowdown"}
"""Figures in a finding, those of them that the main table has -> their names."""
SAME = "unchanged"
MEANINGS = {
    f"{FORECAST}.sigma": "error of the forecast a day ahead, sigma",
    f"{FORECAST}.bias": "relative error of the mean forecast, bias",
    f"{FORECAST}.correlation_h": "time over which errors of the forecast persist",
    f"{FORECAST}.days": "past days that the forecast averages",
    f"{FORECAST}.kind": "kind of forecast",
    f"{FORECAST}.seed": "seed of the error of the forecast",
}
"""Key -> what it is, for an axis; other keys are shown as they are."""
UNITS = {"w": "W", "wh": "Wh", "kwh": "kWh", "j": "J", "s": "s", "h": "h", "m2": "m²", "m": "m", "c": "°C", "ms": "m/s"}
"""Last part of a name -> unit."""


def axis_of(key: str) -> str:
    """Label of the axis of a key's values: what it means, with its unit where that is known."""
    unit = "days" if key.endswith(".days") else UNITS.get(key.rpartition("_")[2], "") if "_" in key else ""
    return MEANINGS.get(key, key) + (f" [{unit}]" if unit else "")


def sweep_findings(sweep: Sweep) -> list[str]:
    """A sentence per scheduler on the change of its figures from the first to the last value; then how far to trust it.

    Numbers are ordered.
    """
    texts, setting = list(sweep.comparisons), sweep.setting
    if setting.numeric:
        texts.sort(key=lambda text: float(setting.values[text]))
    if len(texts) < 2:
        return []
    ends = [sweep.comparisons[text].frame for text in (texts[0], texts[-1])]
    metrics = [column.metric for column in main_columns(sweep.frame) if column.metric in FOUND]
    tables = {metric: [intervals(frame, metric) for frame in ends] for metric in sorted(metrics, key=list(FOUND).index)}
    lines = []
    for name in sweep.schedulers:
        changes = {FOUND[metric]: told for metric, (first, last) in tables.items()
                   if (told := _change(first[name].mean, last[name].mean))}  # fmt: skip
        if changes:
            moved = [f"{what} {change}" for what, change in changes.items() if change != SAME]
            lines.append(f"{name}: {listed(moved) if moved else SAME} from {setting.key} = {texts[0]} to {texts[-1]}.")
    return [*lines, *_doubt(sweep)] if lines else []


def _change(first: float, last: float) -> str:
    """A relative change in words; empty if undefined."""
    if not (math.isfinite(first) and math.isfinite(last)) or first <= 0:
        return ""
    change = last / first - 1
    if abs(change) < 5e-4:
        return SAME
    return f"{change:+.{0 if abs(change) >= 0.01 else 1}%}".replace("-", "−")


def _doubt(sweep: Sweep) -> list[str]:
    one = ["one window of jobs"] if len(sweep.first.starts) == 1 else []
    erring = sweep.setting.key != f"{FORECAST}.seed" and any(each.kind == "error" for each in forecasts(sweep).values())
    one += ["one seed of the forecast's error"] if erring else []
    return [f"These changes are those of {listed(one)}: others may differ."] if one else []


def forecasts(sweep: Sweep) -> dict[str, ForecastModel]:
    """Text of a value -> how the power to come is known, where there is a power supply."""
    sites = {text: each.scenario.site for text, each in sweep.comparisons.items()}
    return {text: site.forecast_model for text, site in sites.items() if site is not None}


def fixed_lines(sweep: Sweep) -> list[str]:
    """A line on the other keys of the forecast, which all values share, if one of its keys is swept."""
    table, _, swept = sweep.setting.key.rpartition(".")
    models = [asdict(model) for model in forecasts(sweep).values()]
    if table != FORECAST or not models:
        return []
    kinds = {model["kind"] for model in models}
    unread = {"days"} if "climatology" not in kinds else set()
    same = {name: value for name, value in models[0].items()
            if name not in {swept, *unread} and all(model[name] == value for model in models)}  # fmt: skip
    return [f"For all values, {FORECAST} has " + ", ".join(f"{name} = {value}" for name, value in same.items()) + "."]
