"""Build the grid connection that ``[site.grid]`` describes, in the slots of a site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from greenbatch.display import span_text
from greenbatch.energy import Grid, Period, Series, Site, Tariff, calendar_months, read_series
from greenbatch.energy.stamps import show, zone
from greenbatch.energy.units import (
    CURRENCIES,
    Quantity,
    Unit,
    bounds,
    internal_unit,
    unit_named,
    unit_names,
    wrong_magnitude,
)
from greenbatch.errors import InputError
from greenbatch.notes import Note
from greenbatch.scenarios.grid_schema import CalendarValue, ConstantValue, SeriesValue, reading
from greenbatch.scenarios.toml import Place

if TYPE_CHECKING:
    from greenbatch.energy.grid import Floats, Months
    from greenbatch.scenarios.grid_schema import GridSection
    from greenbatch.scenarios.origin import Origin

    Value = ConstantValue | CalendarValue | SeriesValue

PLACE = ("site", "grid")
_METER_S = 3600.0
"""Longest slot whose mean power is about what a meter bills. [s]"""
_WHAT: dict[Quantity, str] = {"price_per_kwh": "prices", "carbon_g_per_kwh": "carbon intensity"}


def grid_series(section: GridSection | None, origin: Origin) -> dict[str, Series]:
    """Series of prices and carbon that files state, by table; for `energy.combine` as signals.

    Raises:
        InputError: a file cannot be used, or holds another quantity.
    """
    found = {}
    for name, place, value, quantity in _values(section):
        if isinstance(value, SeriesValue):
            with origin.blame(*place):
                _unit(value, quantity)
                found[name] = read_series(origin.locate(value.file, value.dataset), **reading(value))
    return found


def with_grid(site: Site, section: GridSection | None, series: Mapping[str, Series], origin: Origin) -> Site:
    """The site with its grid, and notes on it; the series are among the signals of the site.

    Raises:
        InputError: prices have several currencies, or a tariff does not cover the year exactly once, or has no dates.
    """
    if section is None:
        return site
    with origin.blame(*PLACE):
        _check_zone(section)
    currency, notes = _currency(section, origin)
    columns: dict[str, Floats] = {}
    for name, place, value, quantity in _values(section):
        with origin.blame(*place):
            columns[name] = _column(value, site, section, quantity, origin, place)
            own = unit_named(value.unit).currency
            if own != currency and quantity == "price_per_kwh":
                columns[name] = columns[name] * section.rates[own]
    prices = {source: columns[f"grid.source_price.{source}"] for source in section.source_price}
    nothing = np.zeros(1)
    with origin.blame(*PLACE):
        grid = Grid(
            currency=currency,
            import_price=columns.get("grid.price", np.zeros(site.slots)),
            export_price=columns.get("grid.feed_in", nothing),
            source_price=prices,
            demand_charge=section.demand_charge or 0.0,
            month=_months(site, section),
            time_zone=section.time_zone or "",
            carbon_g_per_kwh=columns.get("grid.carbon"),
            marginal_g_per_kwh=columns.get("grid.marginal"),
            source_g_per_kwh=section.source_g_per_kwh,
            import_limit_w=section.import_limit_w or np.inf,
            over_limit=section.over_limit,
        )
        signals = {key: values for key, values in site.signals.items() if key not in series}
        return replace(site, grid=grid, signals=signals, notes=(*site.notes, *notes, *_calendar_notes(site, section)))


def _values(section: GridSection | None) -> Iterator[tuple[str, Place, Value, Quantity]]:
    """Name, place in the file, table and quantity of every value that may change with time."""
    if section is None:
        return
    for key in ("price", "feed_in", "carbon", "marginal"):
        if (value := getattr(section, key)) is not None:
            quantity: Quantity = "carbon_g_per_kwh" if key in {"carbon", "marginal"} else "price_per_kwh"
            yield f"grid.{key}", (*PLACE, key), value, quantity
    for source, value in section.source_price.items():
        yield f"grid.source_price.{source}", (*PLACE, "source_price", source), value, "price_per_kwh"


def _currency(section: GridSection, origin: Origin) -> tuple[str, list[Note]]:
    """The site's currency, and notes on what is converted."""
    for code in [*([section.currency] if section.currency else []), *section.rates]:
        if code not in CURRENCIES:
            with origin.blame(*PLACE, "rates" if code in section.rates else "currency"):
                raise InputError(f"unknown currency {code!r}", fix="use one of " + ", ".join(CURRENCIES))
    used: dict[str, str] = {}
    for name, place, value, quantity in _values(section):
        with origin.blame(*place):
            unit = _unit(value, quantity)
        if unit.currency:
            used.setdefault(unit.currency, name)
    own = [code for code in used if code not in section.rates]
    currency = section.currency or (own or [""])[0]
    with origin.blame(*PLACE, "rates"):
        if currency in section.rates:
            raise InputError(f"{currency} is the currency of the site", fix="leave its rate out")
        if other := [code for code in own if code != currency]:
            first = used.get(currency)
            problem = f"{used[other[0]]} is in {other[0]}, " + (
                f"{first} in {currency}" if first else f"the site in {currency}"
            )
            fix = f"use one currency, or state what a {other[0]} is worth: rates = {{ {other[0]} = ... }}"
            raise InputError(problem, fix=fix)
        if used and not currency:
            raise InputError("no price is in the currency of the site", fix='state it, for instance currency = "EUR"')
    other = [code for code in used if code != currency]
    converted = (f"{used[code]}: {code} x {section.rates[code]:g} = {currency}" for code in other)
    return currency, [Note(each, level="fact") for each in converted]


def _unit(value: Value, quantity: Quantity) -> Unit:
    """The unit of a table, of the quantity that it must hold."""
    unit = unit_named(value.unit)
    if unit.quantity != quantity:
        fix = "use one of " + ", ".join(unit_names(quantity))
        raise InputError(f"{value.unit!r} is not a unit of {_WHAT[quantity]}", field="unit", fix=fix)
    return unit


def _column(value: Value, site: Site, section: GridSection, quantity: Quantity, origin: Origin, place: Place) -> Floats:
    """The value in each slot, in the internal unit, shape (slots,)."""
    name = ".".join(str(step) for step in place[1:])
    if isinstance(value, SeriesValue):
        return site.signals[name]
    unit = unit_named(value.unit)
    if unit.quantity != quantity:
        fix = "give one of " + (
            "EUR/kWh, EUR/MWh, ..." if quantity == "price_per_kwh" else "g/kWh, kg/MWh, lb/MWh, ..."
        )
        raise InputError(f"{value.unit!r} is not a unit of {name}", field="unit", fix=fix)
    if isinstance(value, ConstantValue):
        _check([value.value], unit, "value")
        return np.full(site.slots, value.value * unit.scale)
    periods = []
    for k, given in enumerate(value.periods):
        with origin.blame(*place, "periods", k):
            periods.append(Period(**given.model_dump()))
            _check([given.value], unit, "value", alone=False)
    _check([period.value for period in periods], unit, "periods")
    tariff = Tariff(periods=periods, time_zone=section.time_zone or "", holidays=value.holidays)
    return tariff.prices(_start_s(site), site.step_s, site.slots) * unit.scale


def _check(values: list[float], unit: Unit, field: str, *, alone: bool = True) -> None:
    """Refuse what is not plausible in a unit: any value, or all together."""
    scaled = np.array(values) * unit.scale
    low, high = bounds(unit.quantity, unit.currency)
    known = internal_unit(unit.quantity, unit.currency)
    if not np.all((scaled >= low) & (scaled <= high)):
        fix = f"plausible: {low:g} to {high:g}; check the unit"
        raise InputError(f"{scaled[0]:.10g} {known} is not plausible", field=field, fix=fix)
    if alone and (wrong := wrong_magnitude(scaled, unit.quantity, unit.currency)):
        raise InputError(wrong[0], field=field, fix=wrong[1])


def _months(site: Site, section: GridSection) -> Months:
    if not section.demand_charge and (site.unix_start_s is None or section.time_zone is None):
        return np.zeros(1, dtype=np.int64)
    return calendar_months(_start_s(site), site.step_s, site.slots, section.time_zone or "")


def _check_zone(section: GridSection) -> None:
    """Refuse a time zone that does not exist, or is missing although something follows local time."""
    if section.time_zone is not None:
        zone(section.time_zone)
        return
    tariff = any(isinstance(value, CalendarValue) for _, _, value, _ in _values(section))
    if tariff or section.demand_charge:
        what = "the hours of a tariff" if tariff else "the months of a demand charge"
        fix = 'give an IANA name such as "Europe/Berlin", or an offset such as "+01:00"'
        raise InputError(f"is missing, {what} require it", field="time_zone", fix=fix)


def _start_s(site: Site) -> float:
    """Unix time at which the first slot starts."""
    if site.unix_start_s is None:
        fix = "set workload.unix_start_s, give a trace with a date, or series with dates"
        raise InputError("neither the workload nor a series has a date, which a calendar requires", fix=fix)
    return site.unix_start_s + site.origin_s


def _calendar_notes(site: Site, section: GridSection) -> Iterator[Note]:
    uses = [value for _, _, value, _ in _values(section) if isinstance(value, CalendarValue)]
    if site.unix_start_s is not None and (uses or section.demand_charge):
        zero = f"{show(site.unix_start_s, unix=True)} ({section.time_zone})"
        yield Note(f"tariffs by the calendar: trace time 0 is {zero}", level="fact")
    if section.demand_charge and site.step_s > _METER_S:
        step = span_text(site.step_s)
        what = (
            f"the demand charge is for means over slots of {step}, so shorter peaks cost nothing, and a slot belongs "
            "to the month in which it begins; series with shorter steps, or site.step_s, tell more"
        )
        yield Note(what, about="grid.demand_charge", level="change")
