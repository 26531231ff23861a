"""Dispatch of storage: how much power a battery is asked to take or give in a piece of a slot, by a named rule.

``greedy`` takes all surplus, and gives whenever the load exceeds renewable power: Venkataswamy (2023), Algorithm 5, in
energy instead of power per step and with its branches the right way round. As printed, the branch for a battery that
serves the load is taken if it cannot, the battery is drained by the whole need even beyond empty, and the charging rate
is not limited. ``peak-shaving`` gives what exceeds a limit on imports, takes surplus, and refills from the grid below
the limit. ``price-arbitrage`` follows a plan, see `power.arbitrage`. ``scheduler`` does what the scheduler commanded
last (`interface.Charge`), and serves the load at most.
"""

from __future__ import annotations

from greenbatch.machine_code.compile import compiled_small

GREEDY, PEAK_SHAVING, PRICE_ARBITRAGE, SCHEDULER = range(4)
"""Codes of the rules."""
NAMES = {"greedy": GREEDY, "peak-shaving": PEAK_SHAVING, "price-arbitrage": PRICE_ARBITRAGE, "scheduler": SCHEDULER}
"""`energy.Storage.dispatch` -> code."""


@compiled_small
def asked_w(rule: int, peak_w: float, command_w: float, net_w: float) -> float:
    """Power that the battery is asked to take, < 0 to give, until the slot ends, by a rule without a plan. [W]

    Args:
        rule: its code.
        peak_w: limit on imports of ``peak-shaving``. [W]
        command_w: what the scheduler commanded last. [W]
        net_w: load of the facility less renewable power. [W]
    """
    if rule == GREEDY:
        return -net_w
    if rule == PEAK_SHAVING:
        return peak_w - net_w
    return max(command_w, -max(net_w, 0.0))
