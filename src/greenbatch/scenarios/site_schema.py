"""``[site]``: where the power comes from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from greenbatch.scenarios.section import Count, Numbers, Positive, Section, Text, Texts, need_one_of


class _SeriesFile(Section):
    """A column of a CSV or Parquet file; the keys are the arguments of ``energy.series.read_series``."""

    name: Text
    """Name of the source: "solar", "wind", ..."""
    file: Text | None = None
    """A path, relative to the scenario file."""
    dataset: Text | None = None
    """A file by its name in ``greenbatch data list``."""
    columns: Texts
    """One column; or several that follow each other in time, with time_kind = "ignore"."""
    unit: Text
    """The unit in the file: W, kW, MW, W/m2, m/s, km/h, ..."""
    time_kind: Literal["elapsed", "unix", "utc", "local", "offset", "ignore"]
    time_column: Text | None = None
    time_zone: Text | None = None
    time_format: Text | None = None
    label: Literal["start", "middle", "end"] = "start"
    """Whether a time stamp marks the start, middle or end of its interval."""
    step_s: Positive | None = None
    gaps: Literal["refuse", "interpolate", "hold"] = "refuse"
    longest_step_s: Positive | None = None
    unsorted: Literal["refuse", "sort"] = "refuse"
    duplicates: Literal["refuse", "first", "last"] = "refuse"
    negative: Literal["refuse", "zero"] = "refuse"
    missing: Numbers = ()
    """Numbers that mean "no value", such as -9999."""
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","

    @model_validator(mode="after")
    def _source(self) -> _SeriesFile:
        need_one_of(self, "file", "dataset")
        return self


class PvSource(_SeriesFile):
    """Photovoltaics from irradiance (GAS-MARL Eq. 17)."""

    kind: Literal["pv"]
    area_m2: Positive = 200.0
    efficiency: Annotated[float, Field(gt=0, le=1)] = 0.2
    round_w: Positive | None = None
    """Round the power to this many watts."""


class TurbineSource(_SeriesFile):
    """A wind turbine from the wind speed at its hub (GAS-MARL Eq. 18)."""

    kind: Literal["turbine"]
    rated_w: Positive = 7200.0
    cut_in_m_s: Annotated[float, Field(ge=0, le=200)] = 2.5
    rated_m_s: Annotated[float, Field(gt=0, le=200)] = 15.0
    cut_out_m_s: Annotated[float, Field(gt=0, le=200)] = 30.0
    round_w: Positive | None = None
    """Round the power to this many watts."""


class PowerSource(_SeriesFile):
    """Power as it is in the file."""

    kind: Literal["power"]


Source = Annotated[PvSource | TurbineSource | PowerSource, Field(discriminator="kind")]


class _Site(Section):
    forecast_horizon_s: Positive = 86_400.0
    """How far ahead supply is known; later slots repeat the forecast."""
    reference_processors: Count | None = None
    """Cluster size that the sources are meant for: they grow in proportion to the cluster. Without it: as given."""


class NoSite(Section):
    """No power supply: no energy is computed."""

    kind: Literal["none"]


class SeriesSite(_Site):
    """Sources from files."""

    kind: Literal["series"]
    name: Text = "site"
    align: Literal["trace-start", "calendar"] = "trace-start"
    """Where trace time 0 falls: where the series begin, or at the trace's own date and hour."""
    step_s: Positive | None = None
    """Length of a slot; the shortest step of the sources without."""
    repeat: bool = False
    """Start over at the end of the series; otherwise a clock outside of it is an error."""
    sources: Annotated[tuple[Source, ...], Field(strict=False, min_length=1)]

    @model_validator(mode="after")
    def _names(self) -> SeriesSite:
        names = [source.name for source in self.sources]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"the source name {twice[0]!r} occurs twice; give each source its own")
        return self
