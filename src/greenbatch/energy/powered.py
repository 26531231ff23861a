"""How much of a machine the power of a site can supply: renewable power and the battery, without the grid.

Source: RARE (dissertation), Eq. 4.1-4.2 and Algorithm 5. Its battery is mended: it has losses and limits of power, is
charged by what is left over, and gives at most what it holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.site import Site
from greenbatch.energy.slots import edge_s
from greenbatch.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def powered_levels(site: Site, needed_w: Floats, until_s: float) -> tuple[Floats, Ints, Floats]:
    """The highest level of a machine that can be supplied in each slot, from the first slot to a time.

    Level k is supplied in a slot if renewable power and the battery together last for it through the whole slot. What
    renewable power is left over charges the battery; what is missing, the battery gives.

    Args:
        site: renewable power, battery, and what the facility draws besides the cluster.
        needed_w: power of the cluster at each level, ascending, ``needed_w[0] = 0``, shape (levels,). [W]
        until_s: end of the last slot, at least; earlier if the series ends and does not repeat. [s]

    Returns:
        Begin of each slot [s], its level, and what the battery holds at its begin [J]; all of shape (slots,).

    Raises:
        InputError: the powers do not ascend from 0.
    """
    if needed_w[0] != 0 or np.any(np.diff(needed_w) < 0) or not np.isfinite(needed_w).all():
        raise InputError("do not ascend from 0", field="needed_w", fix="give the power of each level")
    count = max(int(np.ceil((until_s - site.origin_s) / site.step_s)), 1)
    count = count if site.repeat else min(count, site.slots)
    slot = np.arange(count) % site.slots
    pue = np.broadcast_to(np.asarray(site.pue, np.float64), (site.slots,))[slot]
    own_w = site.renewable_w[slot] - site.base_load_w
    starts_s = np.asarray(edge_s(np.arange(count, dtype=np.float64), site.origin_s, site.step_s))
    battery, step_s = site.storage, site.step_s
    if battery is None:
        supplied_w = np.maximum(own_w, 0.0) / pue
        return starts_s, np.searchsorted(needed_w, supplied_w, side="right") - 1, np.zeros(count)
    levels, stored_j = np.empty(count, dtype=np.int64), np.full(count + 1, battery.initial_j)
    for k in range(count):
        levels[k], stored_j[k + 1] = supplied(needed_w, own_w[k], pue[k], battery, stored_j[k], step_s)
    return starts_s, levels, stored_j[:-1]


def supplied(needed_w: Floats, own_w: float, pue: float, battery: Any, stored_j: float, step_s: float) -> Any:
    """The level that is supplied in a slot, and what the battery holds at its end. [J]

    Args:
        needed_w: power of the cluster at each level, ascending from 0. [W]
        own_w: renewable power less the base load. [W]
        pue: power of the facility without its base load per power of the cluster.
        battery: an `energy.storage.Storage`, or the same figures in compiled code.
        stored_j: what it holds at the begin. [J]
        step_s: length of the slot. [s]
    """
    stored_j *= np.exp(-battery.loss_per_s * step_s)
    gives_w = min(battery.discharge_w, stored_j * battery.discharge_efficiency / step_s)
    level = np.searchsorted(needed_w, max(own_w + gives_w, 0.0) / pue, side="right") - 1
    left_w = own_w - needed_w[level] * pue
    if left_w >= 0.0:
        into_w = min(left_w, battery.charge_w) * battery.charge_efficiency
        return level, min(stored_j + into_w * step_s, battery.usable_j)
    return level, max(stored_j + max(left_w, -gives_w) / battery.discharge_efficiency * step_s, 0.0)
