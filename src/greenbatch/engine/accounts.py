"""Energy of a finished simulation over any interval, computed from its power profile.

The profile, with the commands to storage, is replayed through `power.protocol.flow`, the function that also counts
energy during a run if `RuleSet.accrue` is set (`events.accrue`). Intervals are visited in time order.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from greenbatch.engine.observe.stacked import fork
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.power import supply  # noqa: F401  (registers the supply of a site)
from greenbatch.engine.power.balance import COLUMNS
from greenbatch.engine.power.protocol import LEFT_THE_SERIES, Power, command, flow, power_of
from greenbatch.engine.records import Floats, Ledger, dtype_of, table_of
from greenbatch.errors import InputError
from greenbatch.machine_code.compile import entry
from greenbatch.machine_code.references import by_reference


class Books(NamedTuple):
    """Energies of an interval, see `engine.records.Ledger`. [J]"""

    load_j: float
    renewable_j: float
    renewable_used_j: float
    curtailed_j: float
    grid_j: float
    charged_j: float = 0.0
    charged_renewable_j: float = 0.0
    discharged_j: float = 0.0
    discharged_renewable_j: float = 0.0
    cost: float = 0.0
    """In the currency of the site, 0 without prices."""
    carbon_g: float = 0.0
    """CO2 equivalent, 0 without intensities. [g]"""


class Segments(NamedTuple):
    """Intervals over which load and supply are constant, in time order, each of shape (m,)."""

    start_s: Floats
    end_s: Floats
    load_w: Floats
    renewable_w: Floats
    renewable_used_w: Floats
    """By the load, at once or out of storage."""
    import_w: Floats
    surplus_w: Floats
    """Renewable power that is neither used nor stored."""
    stored_j: Floats
    """Energy in storage at the end of each interval."""


def replay_profile(
    power: Power, time_s: Floats, load_w: Floats, command_w: Floats, first_w: float, start_s: float, end_s: float,
    ledger: Ledger, rows: Floats,
) -> int:  # fmt: skip
    """Enter the energy of a load profile over an interval in a ledger; return the number of pieces, see `flow`.

    Before the first instant of the profile the load is ``first_w`` and storage rests; after the last one both stay as
    they are then. ``command_w`` is empty if nobody commands storage.
    """
    n, power = time_s.shape[0], by_reference(power)
    at_s, k, count = start_s, np.searchsorted(time_s, start_s, side="right"), 0
    while at_s < end_s:
        next_s = min(end_s, time_s[k]) if k < n else end_s
        load = load_w[k - 1] if k > 0 else first_w
        if command_w.shape[0] > 0:
            command(power, command_w[k - 1] if k > 0 else 0.0)
        pieces = flow(power, load, at_s, next_s, ledger, rows, count)
        if pieces == LEFT_THE_SERIES:
            return LEFT_THE_SERIES
        count += pieces
        at_s = next_s
        while k < n and time_s[k] <= at_s:
            k += 1
    return count


@cache
def _compiled_replay(power: Any) -> Any:
    column, ledger = types.Array(types.float64, 1, "C"), numba.from_dtype(dtype_of(Ledger))
    pieces = types.Array(types.float64, 2, "C")
    signature = types.int64(power, *[column] * 3, *[types.float64] * 3, ledger, pieces)
    return entry("replay", replay_profile, signature, told=False)


def _replay(outcome: Outcome, start_s: float, end_s: float, *, pieces: bool = False) -> tuple[Any, Floats]:
    """Ledger of an interval and, on request, its pieces (see `power.balance.enter`), shape (m, 8)."""
    site = outcome.site
    if site is not None and not site.repeat and end_s > start_s and (start_s < site.origin_s or end_s > site.end_s):
        raise site.exhausted("the books need", start_s, end_s)
    power = power_of(site)
    run = _compiled_replay(numba.typeof(power))
    profile = tuple(np.ascontiguousarray(column) for column in _profile(outcome))
    given = (*profile, float(outcome.cluster.first_power_w), start_s, end_s)
    ledger, rows = table_of(Ledger, 2), np.zeros((0, COLUMNS))
    count = run(fork(power), *given, ledger[0], rows)
    if pieces:
        rows = np.empty((count, COLUMNS))
        run(power, *given, ledger[1], rows)
    return ledger[0], rows


def _profile(outcome: Outcome) -> tuple[Floats, Floats, Floats]:
    """Times, load and commands of the profile, and of what idles before and after where capacity follows the power."""
    time_s, load_w = outcome.profile_time_s, outcome.profile_load_w
    command_w = np.zeros(0) if outcome.profile_command_w is None else outcome.profile_command_w
    if outcome.cluster.powered is None or not time_s.size:
        return time_s, load_w, command_w
    levels, idle_w = outcome.cluster.capacity_levels, outcome.cluster.idle_levels_w
    before, after = levels.time_s < time_s[0], levels.time_s > time_s[-1]
    around = [np.count_nonzero(before), np.count_nonzero(after)]
    return (
        np.concatenate([levels.time_s[before], time_s, levels.time_s[after]]),
        np.concatenate([idle_w[before], load_w, idle_w[after]]),
        np.pad(command_w, around, "edge") if command_w.size else command_w,
    )


def _span(outcome: Outcome, start_s: float | None, end_s: float | None) -> tuple[float, float]:
    profile_s, last_s = outcome.profile_time_s, end_s
    first_s = (profile_s[0] if profile_s.size else outcome.last_s) if start_s is None else start_s
    if last_s is None:  # jobs may still run at the end of a run, and the profile ends before
        last_s = profile_s[-1] if outcome.stays is None else max(outcome.last_s, first_s)
    first_s, last_s = float(first_s), float(last_s)
    for time_s in (first_s, last_s):
        if not np.isfinite(time_s):
            raise InputError(f"from {first_s} to {last_s} s", field="books", fix="give finite times")
    return first_s, last_s


def power_segments(outcome: Outcome, start_s: float | None = None, end_s: float | None = None) -> Segments:
    """Load and supply over time, by default from the first start to the last end.

    Raises:
        InputError: a time is not finite.
        SupplyExhausted: the interval leaves a power series that does not repeat.
    """
    _, rows = _replay(outcome, *_span(outcome, start_s, end_s), pieces=True)
    return Segments(*(np.ascontiguousarray(column) for column in rows.T))


def books(outcome: Outcome, start_s: float | None = None, end_s: float | None = None) -> Books:
    """Energy over an interval, by default from the first start to the last end. [J]

    Outside the schedule the cluster is idle; nodes that are switched on at their first use draw nothing before it.

    Raises:
        InputError: a time is not finite.
        SupplyExhausted: the interval leaves a power series that does not repeat.
    """
    ledger, _ = _replay(outcome, *_span(outcome, start_s, end_s))
    return Books(*(float(getattr(ledger, name)) for name in Books._fields))
