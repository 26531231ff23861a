"""One piece of the energy balance: load and renewable power are constant, and the grid supplies the rest."""

from __future__ import annotations

from greenbatch.engine.compile import compiled_small
from greenbatch.engine.records import Floats, Ledger


@compiled_small
def enter(
    ledger: Ledger, from_s: float, to_s: float, load_w: float, renewable_w: float, rows: Floats, count: int
) -> int:  # fmt: skip
    """Add a piece to the ledger, renewable power first; return the number of pieces.

    ``rows`` gets (start, end, load, renewable, renewable used) unless it has no rows.
    """
    seconds, used_w = to_s - from_s, min(load_w, renewable_w)
    if rows.shape[0] > 0:
        rows[count, 0], rows[count, 1] = from_s, to_s
        rows[count, 2], rows[count, 3], rows[count, 4] = load_w, renewable_w, used_w
    ledger.load_j += load_w * seconds
    ledger.renewable_j += renewable_w * seconds
    ledger.renewable_used_j += used_w * seconds
    ledger.curtailed_j += (renewable_w - used_w) * seconds
    ledger.grid_j += (load_w - used_w) * seconds
    return count + 1
