"""Dispatch of storage: how much power a battery is asked to take or give in a piece of a slot, by a named rule.

``greedy`` takes all surplus, and gives whenever the load exceeds renewable power: Venkataswamy (2023), Algorithm 5, in
energy instead of power per step and with its branches the right way round. As printed, the branch for a battery that
serves the load is taken if it cannot, the battery is drained by the whole need even beyond empty, and the charging rate
is not limited. ``peak-shaving`` gives what exceeds a limit on imports, takes surplus, and refills from the grid below
the limit. ``price-arbitrage`` follows a plan, see `power.arbitrage`. ``scheduler`` does what the scheduler commanded
last (`interface.Charge`), and serves the load at most.

One type for all rules: a type each would compile the simulator once more for each.
"""

from __future__ import annotations

from typing import NamedTuple

from greenbatch.engine.compile import compiled_small
from greenbatch.engine.power.arbitrage import Arbitrage, Here, arbitrage_w
from greenbatch.engine.power.storage import Battery, Charge
from greenbatch.engine.records import Floats, Ints, shared

GREEDY, PEAK_SHAVING, PRICE_ARBITRAGE, SCHEDULER = range(4)
"""Codes of the rules."""
NAMES = {"greedy": GREEDY, "peak-shaving": PEAK_SHAVING, "price-arbitrage": PRICE_ARBITRAGE,
         "scheduler": SCHEDULER}  # fmt: skip
"""`energy.Storage.dispatch` -> code."""


@shared("rule", "limit_w")
class Dispatch(NamedTuple):
    """A rule and its parameters."""

    rule: Ints
    """Code, shape (1,)."""
    limit_w: Floats
    """Limit on imports, for ``peak-shaving``, shape (1,). [W]"""
    arbitrage: Arbitrage
    """Plan of ``price-arbitrage``."""


@compiled_small
def asked_w(dispatch: Dispatch, battery: Battery, charge: Charge, here: Here) -> float:
    """Power that the battery is asked to take, < 0 to give, until the slot ends. [W]"""
    rule = dispatch.rule[0]
    if rule == GREEDY:
        return -here.net_w
    if rule == PEAK_SHAVING:
        return float(dispatch.limit_w[0] - here.net_w)
    if rule == SCHEDULER:
        return max(charge.command_w, -max(here.net_w, 0.0))
    return float(arbitrage_w(dispatch.arbitrage, battery, charge, here))
