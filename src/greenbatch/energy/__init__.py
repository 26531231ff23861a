"""Power in: solar, wind, time series, weather files and the synthetic site. Everything becomes a `Site`.

Data flow one way: a reader returns `Series` (one quantity in equal steps, its unit in its name), a model converts them
to power, and `combine` puts the sources on common steps and on the workload's clock. Power is constant within a slot.

::

    read_series   -> Series  -> pv, turbine, cubic_turbine, power  -> Series  -> combine -> Site
    read_weather  -> Weather -> pvwatts, weather_turbine           ->
    synthetic_irradiance, synthetic_wind -> Series ...             (or in one step: synthetic_site)

**Scenario files.** Keys of a table are the keyword arguments of the function that its ``kind`` names; ``factor`` is
not a key but processors of the cluster / ``reference_processors``, applied to areas and rated powers before rounding.

=============================== =======================================================================
``[site]``                      ``kind = "series"``: ``combine`` (align, step_s, repeat, forecast_horizon_s);
                                ``kind = "synthetic"``: ``synthetic_site`` (seed, days, step_s, area_m2,
                                rated_w, ...), with ``[site.climate]`` for ``Climate``
``[[site.sources]]``            name, the file, and by ``kind``:
``kind = "pv"``                 ``read_series`` + ``pv`` (area_m2, efficiency, round_w)
``kind = "turbine"``            ``read_series`` + ``turbine`` (rated_w, cut_in_m_s, rated_m_s, cut_out_m_s, round_w)
``kind = "cubic-turbine"``      ``read_series`` + ``cubic_turbine`` (the same keys)
``kind = "power"``              ``read_series`` + ``power`` (rated_w, round_w)
``kind = "pvwatts"``            ``read_weather`` + ``pvwatts`` (rated_w, tilt_deg, azimuth_deg, losses, ...)
``kind = "weather-turbine"``    ``read_weather`` + ``weather_turbine`` (rated_w, series, hub_height_m, ...)
=============================== =======================================================================

GAS-MARL's site, whose two files have one column per year, all labeled with the dates of another year::

    [site]
    kind = "series"
    align = "trace-start"         # slot 0 is trace time 0
    reference_processors = 256

    [[site.sources]]
    name = "solar"
    kind = "pv"
    dataset = "weather/gasmarl_irradianceS.csv.gz"
    columns = ["2016", "2017", "2018"]  # one after the other
    unit = "W/m2"
    time_kind = "ignore"          # the labels are not read
    step_s = 3600
    area_m2 = 200
    round_w = 0.01

A PV array under real weather on the trace's own dates::

    [site]
    kind = "series"
    align = "calendar"

    [[site.sources]]
    name = "solar"
    kind = "pvwatts"
    file = "USA_CA_San.Jose.epw"
    gaps = "interpolate"
    rated_w = 40_000
    tilt_deg = 30

Prices and carbon intensity of ``[site.grid]`` become a `Grid` in the slots of the site, ``Site.grid``: series by
`read_series`, perhaps as ``EXPORTS`` declares them, time-of-use tariffs by `Tariff`.
"""

from greenbatch.energy.combine import combine
from greenbatch.energy.exports import EXPORTS, Export
from greenbatch.energy.forecasts import ForecastModel
from greenbatch.energy.grid import Grid
from greenbatch.energy.pue import outside_temperature, pue_at
from greenbatch.energy.series import Series, power, read_series
from greenbatch.energy.site import MOST_PUE, Site
from greenbatch.energy.solar import pv, pvwatts
from greenbatch.energy.storage import Storage
from greenbatch.energy.synthetic import Climate, synthetic_irradiance, synthetic_site, synthetic_wind
from greenbatch.energy.tariff import Period, Tariff, calendar_months
from greenbatch.energy.weather import Weather, read_weather
from greenbatch.energy.wind import at_density, at_hub, cubic_turbine, turbine, weather_turbine

__all__ = [
    "EXPORTS",
    "MOST_PUE",
    "Climate",
    "Export",
    "ForecastModel",
    "Grid",
    "Period",
    "Series",
    "Site",
    "Storage",
    "Tariff",
    "Weather",
    "at_density",
    "at_hub",
    "calendar_months",
    "combine",
    "cubic_turbine",
    "outside_temperature",
    "power",
    "pue_at",
    "pv",
    "pvwatts",
    "read_series",
    "read_weather",
    "synthetic_irradiance",
    "synthetic_site",
    "synthetic_wind",
    "turbine",
    "weather_turbine",
]
