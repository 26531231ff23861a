"""What schedulers are told about renewable power to come: the truth, yesterday's weather, or the truth with an error.

Every function here is about renewable power; what is left of it for the cluster follows in `site`. The current slot is
measured and therefore known. The engine compiles `erring_w` and reads the same tables, so that a forecast is the same
number in a compiled simulation and in a view, see `engine.power.ahead`.

The error of kind ``error`` is built from one random series y, a value per slot with mean 0, variance 1 and correlation
``c(h)`` between slots h hours apart. Seen from slot i, the forecast of slot t = i + h is::

    truth(t) (1 + bias) exp(s(h) z - s(h)^2 / 2)
    z = (y(t) - c(h) y(i)) / sqrt(1 - c(h)^2)
    s(h) = sigma sqrt(h / 24)

z is the part of y(t) that y(i) does not tell, and has variance 1. So the error vanishes as the slot comes closer, and
neither neighboring slots nor successive forecasts of one slot jump: z seen from i and from j > i, both of t, are
correlated by ``sqrt((1 - c(t - j)^2) / (1 - c(t - i)^2))``, and z of neighboring slots nearly by c.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import read_only, whole_number
from greenbatch.energy.randomness import circular, normals
from greenbatch.errors import InputError, did_you_mean

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Kind = Literal["perfect", "persistence", "climatology", "error"]

DAY_S = 86_400.0
LONGEST_GROWTH_S = 10 * DAY_S
"""Lead beyond which the error grows no more. [s]"""
_STREAM = 3
"""Stream of random numbers; sun and wind of the same seed use 0 to 2."""
_PER_UNIT, _LARGEST = 64.0, 64.0
POWERS: Floats = read_only(np.exp(np.arange(-_LARGEST * _PER_UNIT, _LARGEST * _PER_UNIT + 1.0) / _PER_UNIT))
"""``e^x`` for x from -64 to 64 in steps of 1/64, shape (8193,)."""
_RANGES = {
    "sigma": (0.0, 3.0, ""),
    "bias": (-1.0, 10.0, ": 0.1 is 10% too much"),
    "correlation_h": (1e-3, 8760.0, " hours"),
}
_WHOLE = {"seed": (0, 2**63 - 1), "days": (1, 366)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastModel:
    """How schedulers know the renewable power to come. What really comes is what counts in all energies.

    Raises:
        InputError: a value is out of range, or there is no such kind.
    """

    kind: Kind | None = None
    """``perfect``: the truth. ``persistence``: the power 24 h before. ``climatology``: the mean of the same slot of the
    day over the past ``days``. ``error``: the truth with an error. By default ``error`` if ``sigma`` or ``bias`` is not
    0, else ``perfect``. Other kinds ignore the keys of an error."""
    sigma: float = 0.0
    """Error: standard deviation of the logarithm of the forecast 24 hours ahead, 0 to 3. It grows with the square root
    of the time ahead, up to ten days; the mean forecast is not affected."""
    bias: float = 0.0
    """Error: relative error of the mean forecast of every slot but the current one, -1 to 10."""
    correlation_h: float = 12.0
    """Error: after how many hours the errors of two slots are nearly independent (correlation 1/e), 0.001 to 8760.
    [h]"""
    seed: int = 0
    """Error: seed of the random numbers."""
    days: int = 30
    """Climatology: number of past days, 1 to 366."""

    def __post_init__(self) -> None:
        field = "site.forecast"
        if self.kind is None:
            object.__setattr__(self, "kind", "error" if self.sigma != 0 or self.bias != 0 else "perfect")
        if self.kind not in get_args(Kind):
            names = get_args(Kind)
            fix = did_you_mean(str(self.kind), names, then="use " + ", ".join(names))
            raise InputError(f"is {self.kind!r:.60}", field=f"{field}.kind", fix=fix)
        for name, (low, high, unit) in _RANGES.items():
            value: Any = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not low <= value <= high:
                fix = f"give a number from {low:g} to {high:g}{unit}"
                raise InputError(f"is {value!r:.60}", field=f"{field}.{name}", fix=fix)
        for name, (lowest, most) in _WHOLE.items():
            number = whole_number(getattr(self, name), f"{field}.{name}", lowest=lowest)
            if number > most:
                raise InputError(f"is {number}", field=f"{field}.{name}", fix=f"give at most {most}")

    @property
    def text(self) -> str:
        """The kind and what it depends on, in a few words."""
        if self.kind == "error":
            bias = f", bias {self.bias:+.0%}" if self.bias else ""
            memory = f"correlated over {self.correlation_h:g} h"
            return f"error of {self.sigma:g} a day ahead{bias}, {memory}, seed {self.seed}"
        past = f"mean of the past {self.days} days"
        return {"persistence": "yesterday's power", "climatology": past}.get(str(self.kind), "perfect")

    @property
    def past_days(self) -> int:
        """Number of past days that it averages, 0 if it does not look at the past."""
        return {"persistence": 1, "climatology": self.days}.get(str(self.kind), 0)

    def check_step(self, step_s: float) -> None:
        """Refuse slots that do not divide a day, where the past is to be read by the slot of the day.

        Raises:
            InputError: they do not.
        """
        slots = DAY_S / step_s
        if self.past_days and (slots < 0.5 or abs(slots - round(slots)) > 1e-9 * slots):
            problem = f"is {self.kind!r}, but steps of {step_s:g} s do not divide a day"
            raise InputError(problem, field="site.forecast.kind", fix="give site.step_s that does, such as 3600")


PERFECT = ForecastModel()


def slots_a_day(step_s: float) -> int:
    """Number of slots of a day."""
    return round(DAY_S / step_s)


def daily_means(power_w: Floats, rows: Indices, *, step_s: float, days: int, repeats: bool) -> Floats:
    """Mean power [W] of the same slot of the day over the days before each row, NaN where there is no day before.

    A series that repeats also has its last days before its first one. All that is read is a day or more before the row.

    Args:
        power_w: renewable power per slot, shape (slots,). [W]
        rows: slots.
        step_s: length of a slot, which divides a day. [s]
        days: largest number of days.
        repeats: whether the series repeats.
    """
    a_day, total_w, found = slots_a_day(step_s), np.zeros(rows.shape), np.zeros(rows.shape)
    for day in range(1, days + 1):
        before = rows - day * a_day
        if repeats:
            total_w += power_w[before % power_w.size]
            found += 1.0
        elif (known := before >= 0).any():
            total_w[known] += power_w[before[known]]
            found[known] += 1.0
        else:
            break
    mean_w: Floats = np.divide(total_w, found, out=np.full(rows.shape, np.nan), where=found > 0)
    return mean_w


@lru_cache(maxsize=8)
def random_series(count: int, step_s: float, correlation_h: float, seed: int) -> Floats:
    """The series y of the module's docstring, one value per slot, shape (count,); it is a circle."""
    return read_only(circular(normals(seed, _STREAM, count), float(np.exp(-step_s / (3600.0 * correlation_h)))))


@lru_cache(maxsize=8)
def leads(model: ForecastModel, step_s: float, count: int, window: int) -> Floats:
    """What the error of a forecast depends on, by the number of slots ahead, shape (window, 3).

    The exponent of `erring_w` is column 0 x y(t) - column 1 x y(i), its factor column 2; row 0 belongs to no forecast.

    Args:
        model: the model.
        step_s: length of a slot. [s]
        count: slots of the series.
        window: slots of a forecast, at most ``count``.
    """
    ahead = np.arange(window, dtype=np.float64)
    deviation = model.sigma * np.sqrt(np.minimum(ahead * step_s, LONGEST_GROWTH_S) / DAY_S)
    memory = float(np.exp(-step_s / (3600.0 * model.correlation_h)))
    shared = (memory**ahead + memory ** (count - ahead)) / (1.0 + memory**count)
    scale = deviation / np.sqrt(np.maximum(1.0 - shared**2, 1e-12))
    factor = (1.0 + model.bias) * np.exp(-(deviation**2) / 2.0)
    return read_only(np.column_stack([scale, scale * shared, factor]))


def erring_w(power_w: Any, there: Any, here: Any, of_there: Any, of_here: Any, factor: Any, powers: Floats) -> Any:
    """The forecast of power with an error [W]; scalars, or arrays of one shape.

    Its exponential is read from a table and a polynomial, to 2e-10, because those of libraries differ in the last bit.

    Args:
        power_w: the truth. [W]
        there: y of the slot.
        here: y of the current slot.
        of_there: column 0 of `leads`.
        of_here: column 1.
        factor: column 2.
        powers: `POWERS`.
    """
    exponent = np.minimum(np.maximum(of_there * there - of_here * here, -63.0), 63.0)
    step = np.floor(exponent * 64.0 + 0.5)
    rest = exponent - step / 64.0
    power = powers[np.int64(step) + 4096]
    return power_w * factor * (power * (1.0 + rest * (1.0 + rest * (0.5 + rest / 6.0))))


def forecast_of(
    model: ForecastModel, power_w: Floats, rows: Indices, *, step_s: float, window: int, repeats: bool
) -> Floats:  # fmt: skip
    """The forecast [W] of successive slots, of which the first is the current one and known.

    Args:
        model: the model.
        power_w: renewable power of the whole series, shape (slots,). [W]
        rows: number of each slot in it, before or after its ends if it repeats, shape (m,).
        step_s: length of a slot. [s]
        window: slots of a forecast, see `Site.horizon_slots`.
        repeats: whether the series repeats.

    Returns:
        Renewable power, shape (m,). [W]
    """
    count = power_w.size
    shown_w: Floats = power_w[rows % count]
    later = rows[1:]
    if model.past_days:
        known = later - np.arange(later.size) // slots_a_day(step_s) * slots_a_day(step_s)
        mean_w = daily_means(power_w, known, step_s=step_s, days=model.past_days, repeats=repeats)
        shown_w[1:] = np.where(np.isnan(mean_w), shown_w[0], mean_w)
    elif model.kind == "error":
        random = random_series(count, step_s, model.correlation_h, model.seed)
        of_there, of_here, factor = leads(model, step_s, count, window)[1 : rows.size].T
        there, here = random[later % count], random[rows[0] % count]
        shown_w[1:] = erring_w(shown_w[1:], there, here, of_there, of_here, factor, POWERS)
    return shown_w
