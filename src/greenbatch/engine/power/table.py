"""What a power supply is made of: one table of all its series, and records of what does not change from slot to slot.

One table, because each array of a state is passed at each step of an environment. A site with nothing but sources that
are forecast as they come, as those of most papers, has its first row only.
"""

from __future__ import annotations

from typing import NamedTuple

from greenbatch.engine.power.storage import Battery, StateOfCharge
from greenbatch.engine.records import Floats, Slots, shared
from greenbatch.machine_code.compile import compiled_small

SUPPLY_W, RENEWABLE_W, PUE, ALLOWED_W = range(4)
"""Rows of `PowerSupply.series`: power of the cluster that renewable power can supply, `energy.Site.available_w` [W];
renewable power [W]; power of the facility without its base load per power of the cluster, >= 1; largest load of the
cluster [W]."""
RATES, WEIGHED, RELATIVE = 4, 9, 12
"""The first of the rows of `balance.Rates` (five), of what a joule weighs in `arbitrage` (three), and of what one costs
and emits relative to the usual price and intensity, see `costs.relative_to_usual` (four)."""
EXPECTED_W, RANDOM, LEADS = 16, 17, 18
"""Renewable power expected a day before each slot, NaN where there is no past [W]; `energy.forecasts.random_series`;
and the first of the three rows of `energy.forecasts.leads`, by the number of slots ahead."""
ROWS = 21
PERFECT, REMEMBERED, ERRING = range(3)
"""Kinds of forecasts: the truth, the same slot of the day in the past, the truth with an error."""


class Terms:
    """What holds for all slots of a supply."""

    base_load_w: float
    """Base load of the facility."""
    import_w: float
    """Limit of imports that jobs are held for, infinite if there is none."""
    always_w: float
    """Load of the cluster that the limit allows in any slot."""
    forecast: int
    """Kind of the forecast."""
    slots_a_day: int
    """Of a remembered one."""
    priced: int
    """1 if energy costs or emits anything."""
    dispatch: int
    """Code of the rule by which storage is charged, see `power.dispatch`."""
    peak_w: float
    """Limit on imports for ``peak-shaving``."""
    wear: float
    """Cost of a joule that the battery gives, for its ageing."""


@shared("series", "terms", "battery")
class PowerSupply(NamedTuple):
    """The supply of a site; without a site, the grid alone, with no slots."""

    slots: Slots
    series: Floats
    """Shape (1 or `ROWS`, slots)."""
    terms: Terms
    battery: Battery
    charge: StateOfCharge
    plan: Floats
    """Buffers of ``price-arbitrage``, see `power.arbitrage`; shape (0, 0) for other rules."""


@compiled_small
def served_w(power: PowerSupply, slot: int, load_w: float) -> tuple[float, float]:
    """What is drawn for a load of the cluster, and what really is renewable, in a slot of the series. [W]

    Renewable power serves the whole facility.
    """
    if power.series.shape[0] == 1:
        return load_w, power.series[SUPPLY_W, slot]
    return power.series[PUE, slot] * load_w + power.terms.base_load_w, power.series[RENEWABLE_W, slot]
