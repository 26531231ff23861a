"""One piece of the energy balance: load, renewable power and storage are constant, and the grid supplies the rest.

What is stored is paid for, and its emissions are counted, when it is charged.
"""

from __future__ import annotations

from typing import NamedTuple

from greenbatch.engine.records import Floats, Ledger
from greenbatch.machine_code.compile import compiled_small

Pieces = Floats
"""Pieces of an interval, shape (m, COLUMNS), see `enter`."""
COLUMNS = 8
"""Columns of ``rows``, see `enter`."""


class Stored(NamedTuple):
    """What storage does in a piece."""

    bus_w: float
    """Power that it takes, < 0 if it gives. [W]"""
    green: float
    """Renewable share of what it gives."""
    left_j: float
    """Energy in it at the end. [J]"""


class Rates(NamedTuple):
    """What energy costs and emits in a slot, per joule."""

    grid: float
    """Price of imports."""
    surplus: float
    """Revenue of surplus that is sold, >= 0."""
    renewable: float
    """Price of own renewable energy that is used or stored."""
    grid_g: float
    """Emissions of imports. [g/J]"""
    renewable_g: float
    """Life-cycle emissions of own renewable energy that is used or stored. [g/J]"""


NO_STORAGE = Stored(0.0, 0.0, 0.0)
NO_RATES = Rates(0.0, 0.0, 0.0, 0.0, 0.0)


@compiled_small
def enter(
    ledger: Ledger, from_s: float, to_s: float, load_w: float, renewable_w: float, stored: Stored, rates: Rates,
    rows: Pieces, count: int,
) -> int:  # fmt: skip
    """Add a piece to the ledger; return the number of pieces.

    Renewable power serves the load first, then storage; what is left of it, and of what storage gives, is surplus.
    ``rows`` gets (start, end, load,
    renewable, renewable used by the load, import, surplus, energy in storage) unless it has no rows.
    """
    seconds = to_s - from_s
    charge_w, discharge_w = max(stored.bus_w, 0.0), max(-stored.bus_w, 0.0)
    direct_w = min(load_w, renewable_w)
    into_w = min(charge_w, renewable_w - direct_w)
    served_w = min(discharge_w, load_w - direct_w)
    used_w = direct_w + stored.green * served_w
    import_w = (load_w - direct_w - served_w) + (charge_w - into_w)
    surplus_w = (renewable_w - direct_w - into_w) + (discharge_w - served_w)
    if rows.shape[0] > 0:
        rows[count, 0], rows[count, 1], rows[count, 2], rows[count, 3] = from_s, to_s, load_w, renewable_w
        rows[count, 4], rows[count, 5], rows[count, 6], rows[count, 7] = used_w, import_w, surplus_w, stored.left_j
    ledger.load_j += load_w * seconds
    ledger.renewable_j += renewable_w * seconds
    ledger.renewable_used_j += used_w * seconds
    ledger.curtailed_j += surplus_w * seconds
    ledger.grid_j += import_w * seconds
    ledger.charged_j += charge_w * seconds
    ledger.charged_renewable_j += into_w * seconds
    ledger.discharged_j += discharge_w * seconds
    ledger.discharged_renewable_j += stored.green * served_w * seconds
    taken_w = direct_w + into_w
    ledger.cost += (import_w * rates.grid + taken_w * rates.renewable - surplus_w * rates.surplus) * seconds
    ledger.carbon_g += (import_w * rates.grid_g + taken_w * rates.renewable_g) * seconds
    return count + 1
