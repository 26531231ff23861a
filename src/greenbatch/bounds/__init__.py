"""What no schedule can beat: bounds on renewable utilization and brown energy of a window.

The main path, file by file::

    problem    a window as arrays over jobs and over intervals of time
    starts     the starts that a price can make cheapest, and what jobs cost there
    prices     prices of brown energy and of processors, found by ascent
    oracle     the bound that prices prove, over all first starts and last ends
"""

from greenbatch.bounds.oracle import Bound, oracle_bound, oracle_bounds

__all__ = ["Bound", "oracle_bound", "oracle_bounds"]
