"""Power in: solar, wind, time series, weather files and the synthetic site. Everything returns a `Site`."""

from greenbatch.energy.combine import combine
from greenbatch.energy.series import Series, read_series
from greenbatch.energy.site import Site
from greenbatch.energy.solar import pv
from greenbatch.energy.wind import turbine

__all__ = ["Series", "Site", "combine", "pv", "read_series", "turbine"]
