"""Schema of ``[site.grid]``: prices, the demand charge, carbon intensity and the limit of the grid connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model, model_validator

from greenbatch import energy
from greenbatch.scenarios.keys import arguments, keys
from greenbatch.scenarios.section import NotNegative, OfFile, Positive, Section, Text


class ConstantValue(Section):
    """The same value all the time."""

    kind: Literal["constant"]
    value: float
    """The value, in the unit."""
    unit: Text
    """Unit of the value: see [units](power-in.md#units)."""


class _OfExport(OfFile):
    @model_validator(mode="before")
    @classmethod
    def _export(cls, given: Any) -> Any:
        """What the format says, and the keys that are given instead."""
        if isinstance(given, dict) and isinstance(name := given.get("format"), str) and name in energy.EXPORTS:
            said = dict(energy.EXPORTS[name])
            replaced: set[str] = set()
            if given.get("time_kind", said["time_kind"]) != said["time_kind"]:  # then the format's zone means nothing
                replaced |= {"time_zone", "clock_changes", "repeated_column"}
            if given.keys() & {"time_column", "time_columns"}:
                replaced |= {"time_column", "time_columns", "repeated_column"}
            said = {key: value for key, value in said.items() if key not in replaced}
            return {**said, **given}
        return given

    format: energy.Export | None = None
    """A provider whose exports have known columns, unit and stamps; then these need not be given. Keys that are given
    as well count instead of the format's."""


if TYPE_CHECKING:

    class PeriodSection(Section):
        """A period."""

        value: float

    class SeriesValue(_OfExport):
        """Values from a file."""

        kind: Literal["series"]
        unit: str

else:
    PeriodSection = create_model(
        "PeriodSection",
        __base__=Section,
        __doc__="Months, days and hours with one price. Every hour of the year belongs to one period.",
        **keys(energy.Period, but=frozenset()),
    )
    SeriesValue = create_model(
        "SeriesValue",
        __base__=_OfExport,
        __doc__="A column of a table, read like that of a source of kind ``power``.",
        kind=(Literal["series"], ...),
        **keys(energy.read_series),
    )


class CalendarValue(Section):
    """A time-of-use tariff: prices by month, day of the week, holiday and hour of local time."""

    kind: Literal["calendar"]
    unit: Text
    """Unit of the values: see [units](power-in.md#units)."""
    periods: Annotated[tuple[PeriodSection, ...], Field(strict=False, min_length=1)]
    holidays: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    """Dates of holidays: "2024-12-25", or "12-25" in every year."""


Price = Annotated[ConstantValue | CalendarValue | SeriesValue, Field(discriminator="kind")]
Carbon = Annotated[ConstantValue | SeriesValue, Field(discriminator="kind")]


class GridSection(Section):
    """The grid connection: what energy costs, and how much carbon it causes."""

    currency: Text | None = None
    """Currency of all results; by default that of the prices."""
    rates: dict[Text, Positive] = Field(default_factory=dict)
    """Other currencies -> what one unit of each is worth in the site's currency. Without a rate, a second currency is
    refused."""
    time_zone: Text | None = None
    """Zone of the calendar: the hours of tariffs and the months of the demand charge (an IANA name or a fixed
    offset)."""
    price: Price | None = None
    """Price of a kWh from the grid; by default 0."""
    feed_in: Price | None = None
    """What the grid pays for a kWh fed in; by default 0."""
    source_price: dict[Text, Price] = Field(default_factory=dict)
    """Source -> what a kWh that it generates costs; by default 0."""
    demand_charge: NotNegative | None = None
    """Price of a kW of the highest import of each calendar month; by default 0. [currency/kW]"""
    carbon: Carbon | None = None
    """Average carbon intensity of imports."""
    marginal: Carbon | None = None
    """Marginal carbon intensity of imports."""
    source_g_per_kwh: dict[Text, NotNegative] = Field(default_factory=dict)
    """Source -> life-cycle carbon of a kWh that it generates; by default 0. [g/kWh]"""
    import_limit_w: Positive | None = None
    """Largest power that the grid supplies; by default unlimited. [W]"""
    over_limit: Literal["count", "hold"] = "count"
    """``count``: what exceeds the limit is only counted; ``hold``: jobs wait until they fit under it, see
    [the limit of the grid connection](power-in.md#the-limit-of-the-grid-connection)."""


def reading(section: SeriesValue) -> dict[str, Any]:
    """Arguments of `energy.read_series` from a table."""
    return arguments(energy.read_series, section)
