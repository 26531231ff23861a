"""Schema of ``[site]``, the power supply, except for its grid: see `grid_schema`.

The keys of a table are the keyword arguments of the functions in `greenbatch.energy` that belong to its ``kind``, with
their types and defaults. The tables are generated from the signatures, so they cannot diverge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import Discriminator, Field, Tag, create_model, model_validator

from greenbatch import energy
from greenbatch.display import docstring
from greenbatch.scenarios.grid_schema import GridSection
from greenbatch.scenarios.keys import arguments, keys
from greenbatch.scenarios.section import Count, NotNegative, Numbers, OfFile, Section, Text


@dataclass(frozen=True, slots=True)
class Kind:
    """How to build a source of one kind: read a file, then convert its content to power."""

    read: Callable[..., Any]
    convert: Callable[..., energy.Series]

    def reading(self, source: Section) -> dict[str, Any]:
        """Arguments of the reader, from the table of a source."""
        return arguments(self.read, source)

    def converting(self, source: Section) -> dict[str, Any]:
        """Arguments of the model, from the table of a source."""
        return arguments(self.convert, source)


PUE_KINDS: dict[str, Callable[..., energy.Weather | energy.Series]] = {
    "weather": energy.read_weather,
    "series": energy.read_series,
}
"""``kind`` of a PUE by temperature -> how the file with the outside temperature is read."""
KINDS: dict[str, Kind] = {
    "pv": Kind(energy.read_series, energy.pv),
    "turbine": Kind(energy.read_series, energy.turbine),
    "cubic-turbine": Kind(energy.read_series, energy.cubic_turbine),
    "power": Kind(energy.read_series, energy.power),
    "pvwatts": Kind(energy.read_weather, energy.pvwatts),
    "weather-turbine": Kind(energy.read_weather, energy.weather_turbine),
}
"""``kind`` of a source -> its functions."""


class _Source(OfFile):
    name: Text
    """Name of the source: "solar", "wind", ..."""


class PueByTemperature(OfFile):
    """PUE by outside temperature, which a file states."""

    kind: str
    temperatures_c: Numbers
    """Outside temperatures, at least two, ascending. [degC]"""
    values: Numbers
    """PUE at each of them, >= 1: linear between them, constant below the first and above the last."""

    def read(self, path: Path) -> energy.Series:
        """The outside temperature in the file."""
        read = PUE_KINDS[self.kind]
        return energy.outside_temperature(read(path, **arguments(read, self)))


PUE = Annotated[float, Field(ge=1, le=energy.MOST_PUE)]
_PUE = "Power usage effectiveness: power of the facility without its base load per power of the cluster; by default 1."


class _Site(Section):
    name: Text = "site"
    base_load_w: NotNegative | None = None
    """Power that the site draws besides, whatever runs: lights, network, storage; by default 0. [W]"""
    reference_processors: Count | None = None
    """Cluster size that areas and rated powers refer to; they are scaled in proportion. By default not scaled."""


class NoSite(Section):
    """No power supply: no energy is computed."""

    kind: Literal["none"]


if TYPE_CHECKING:

    class SeriesSite(_Site):
        """Sources from files."""

        kind: Literal["series"]
        forecast: Section | None
        grid: GridSection | None
        storage: Section | None
        sources: tuple[Any, ...]
        pue: float | PueByTemperature | None

    class SyntheticSite(_Site):
        """Sun and wind generated from a seed."""

        kind: Literal["synthetic"]
        forecast: Section | None
        grid: GridSection | None
        storage: Section | None
        climate: Section
        pue: float | None

else:
    _SOURCES = tuple(
        create_model(
            "".join(word.capitalize() for word in kind.split("-")) + "Source",
            __base__=_Source,
            __doc__=docstring(how.convert).partition("\n")[0],
            kind=(Literal[kind], ...),
            **keys(how.read),
            **keys(how.convert),
        )
        for kind, how in KINDS.items()
    )
    _PUES = tuple(
        create_model(
            f"{kind.capitalize()}Pue",
            __base__=PueByTemperature,
            __doc__=f"PUE by the outside temperature in a {file}, read like that of a source of kind ``{like}``.",
            kind=(Literal[kind], ...),
            **keys(PUE_KINDS[kind]),
        )
        for kind, file, like in (("weather", "weather file", "pvwatts"), ("series", "table", "power"))
    )
    _ByTemperature = Annotated[Union[_PUES], Field(discriminator="kind"), Tag("table")]  # noqa: UP007
    _AnyPue = Annotated[
        Annotated[PUE, Tag("number")] | _ByTemperature,
        Discriminator(lambda given: "table" if isinstance(given, (dict, Section)) else "number"),
    ]
    _Any = Annotated[Union[_SOURCES], Field(discriminator="kind")]  # noqa: UP007  # a tuple of types takes no |

    ForecastSection = create_model(
        "ForecastSection",
        __base__=Section,
        __doc__="What schedulers are told about renewable power to come; without this table the truth.",
        **keys(energy.ForecastModel),
    )
    _FORECAST = (ForecastSection | None, None)

    StorageSection = create_model(
        "StorageSection", __base__=Section, __doc__="A battery; without this table there is none.",
        **keys(energy.Storage),
    )  # fmt: skip
    _STORAGE = (StorageSection | None, None)

    class _Named(_Site):
        @model_validator(mode="after")
        def _names(self):
            names = [source.name for source in self.sources]
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"the source name {twice[0]!r} occurs twice; give each source its own")
            return self

    SeriesSite = create_model(
        "SeriesSite",
        __base__=_Named,
        __doc__="Sources from files.",
        kind=(Literal["series"], ...),
        sources=(Annotated[tuple[_Any, ...], Field(strict=False, min_length=1)], ...),
        pue=(_AnyPue | None, Field(None, description=_PUE)),
        forecast=_FORECAST,
        grid=(GridSection | None, None),
        storage=_STORAGE,
        **keys(energy.combine),
    )
    ClimateSection = create_model(
        "ClimateSection",
        __base__=Section,
        __doc__="Climate of a place; the defaults are San Francisco's.",
        **keys(energy.Climate),
    )
    SyntheticSite = create_model(
        "SyntheticSite",
        __base__=_Site,
        __doc__="Sun and wind generated from a seed, without any file, for GAS-MARL's panel and turbine.",
        kind=(Literal["synthetic"], ...),
        climate=(ClimateSection, ClimateSection()),
        pue=(PUE | None, Field(None, description=_PUE)),
        forecast=_FORECAST,
        grid=(GridSection | None, None),
        storage=_STORAGE,
        **keys(energy.synthetic_site),
    )


def synthetic_arguments(section: SyntheticSite) -> dict[str, Any]:
    """Arguments of `energy.synthetic_site` from the table."""
    return {**arguments(energy.synthetic_site, section), "climate": energy.Climate(**section.climate.model_dump())}


def combine_arguments(section: SeriesSite) -> dict[str, Any]:
    """Arguments of `energy.combine` from the table."""
    return arguments(energy.combine, section)
