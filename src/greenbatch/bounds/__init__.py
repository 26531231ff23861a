"""What no schedule can beat: bounds on renewable utilization and brown energy of a window.

The main path, file by file::

    problem    a window as arrays over jobs and over intervals of time
    starts     the starts that a price can make cheapest, and what jobs cost there
    prices     prices of brown energy and of processors, found by ascent
    oracle     the bound that prices prove, over all first starts and last ends
    fluid      another bound, for whole logs and any site: jobs cut up freely, each done within a stated time
"""

from greenbatch.bounds.fluid import FluidBound, fluid_bound
from greenbatch.bounds.oracle import Bound, oracle_bound, oracle_bounds

__all__ = ["Bound", "FluidBound", "fluid_bound", "oracle_bound", "oracle_bounds"]
