"""Power usage effectiveness (PUE) by outside temperature: cooling draws more on hot days."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.series import Series
from greenbatch.energy.site import MOST_PUE
from greenbatch.energy.weather import Weather
from greenbatch.errors import InputError

Floats = NDArray[np.float64]


def outside_temperature(content: Weather | Series) -> Series:
    """The temperature of a weather file, the one nearest to the ground, or a series that is a temperature. [degC]

    Raises:
        InputError: there is no temperature.
    """
    if isinstance(content, Series):
        content.needs("temperature_c", user="the PUE")
        return content
    found = content.lowest("temperature_c")
    if found is None:
        fix = "give a file with the outside temperature; this one has " + ", ".join(content.series)
        raise InputError("has no temperature, which the PUE depends on", file=content.name, fix=fix)
    return found


def pue_at(temperature_c: Floats, *, temperatures_c: Sequence[float], values: Sequence[float]) -> Floats:
    """PUE at outside temperatures: linear between the points of a table, constant below the first and above the last.

    Two points are a linear law. A ratio of yearly energies is one point: give that as a number instead.

    Args:
        temperature_c: outside temperatures, shape (n,). [degC]
        temperatures_c: temperatures of the table, at least two, ascending. [degC]
        values: PUE at each of them, 1 to 100.

    Returns:
        The PUE at each outside temperature, shape (n,).

    Raises:
        InputError: the table is not such a one.
    """
    at_c, known = np.asarray(temperatures_c, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if at_c.size < 2 or not np.all(np.diff(at_c) > 0):
        fix = "give at least two temperatures in ascending order"
        raise InputError(f"is {list(temperatures_c)}", field="site.pue.temperatures_c", fix=fix)
    if known.shape != at_c.shape:
        fix = f"give one for each of the {at_c.size} temperatures"
        raise InputError(f"has {known.size} values", field="site.pue.values", fix=fix)
    if not np.all((known >= 1) & (known <= MOST_PUE)):
        raise InputError(f"is {list(values)}", field="site.pue.values", fix=f"each must be 1 to {MOST_PUE:g}")
    return np.interp(temperature_c, at_c, known)
