"""Power in: solar, wind, time series, weather files and the synthetic site. Everything returns a `Site`."""

from greenbatch.energy.site import Site

__all__ = ["Site"]
