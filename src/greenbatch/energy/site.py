"""The power supply of a cluster: how much is generated when, and what a scheduler knows in advance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import numbers
from greenbatch.display import Shown, span_text
from greenbatch.energy.forecasts import PERFECT, ForecastModel, forecast_of
from greenbatch.energy.grid import Grid
from greenbatch.energy.slots import edge_s, interval_at
from greenbatch.energy.stamps import show_date
from greenbatch.energy.storage import Storage
from greenbatch.errors import InputError, SupplyExhausted
from greenbatch.notes import Note

Floats = NDArray[np.float64]
SHORTEST_STEP_S, MOST_POWER_W = 1e-3, 1e15
"""Shortest slot [s] and largest power [W] that can be added up in floats."""
MOST_FILES = 3
"""Files of series that a message names."""
MOST_PUE = 100.0
"""Largest power usage effectiveness; more is a share in percent, or another mistake."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Site(Shown):
    """Renewable power in equal steps, constant within a step.

    Slot ``i`` covers trace time ``[origin_s + i * step_s, origin_s + (i + 1) * step_s)``. The series are read-only.

    Raises:
        InputError: a value is out of range, or the series differ in length or are not finite.
    """

    name: str
    """Name of the site, shown in results."""
    step_s: float
    """Length of a slot, > 0. [s]"""
    sources_w: Mapping[str, Floats]
    """Source ("solar", "wind", ...) -> generated power per slot, shape (n,), >= 0. [W]"""
    origin_s: float = 0.0
    """Trace time at which slot 0 starts. [s]"""
    unix_start_s: float | None = None
    """Unix time of trace time 0 on the calendar of the series, which may differ from that of the workload; None if they
    have no dates. [s]"""
    repeat: bool = False
    """Repeat the series before its first and after its last slot; otherwise a time outside of it is an error."""
    forecast_horizon_s: float = 86_400.0
    """How far ahead the supply is forecast, at least one step; beyond that the forecast repeats, as in GAS-MARL's
    simulator. [s]"""
    forecast_model: ForecastModel = PERFECT
    """What schedulers are told about renewable power within that time; energies are those of what really comes."""
    pue: float | Floats = 1.0
    """Power usage effectiveness: power of the facility per power of the cluster, without the base load, >= 1; a number
    or one per slot, shape (n,). Cooling and losses grow with the load."""
    base_load_w: float = 0.0
    """Power that the site draws besides, whatever runs: lights, network, storage; >= 0. [W]"""
    grid: Grid | None = None
    """Prices and carbon intensity of the grid and of the sources, in the same slots; None if neither is known."""
    storage: Storage | None = None
    """The battery of the site."""
    signals: Mapping[str, Floats] = field(default_factory=dict)
    """Other series in the same slots that are not sources of power, unit in the name, shape (n,)."""
    stated: tuple[int, int] | None = None
    """First slot, and the one after the last, of the dates that all series state themselves; others repeat what another
    date has. None if all do. What is usual, such as the usual price, is that of these slots."""
    notes: tuple[Note, ...] = ()
    """What was filled, scaled or assumed."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """File name -> SHA-256 of every input file."""

    def __post_init__(self) -> None:
        for name in ("sources_w", "signals"):
            series = {key: numbers(values, f"site.{key}") for key, values in getattr(self, name).items()}
            object.__setattr__(self, name, series)
        if not SHORTEST_STEP_S <= self.step_s < np.inf:
            fix = f"it must be > 0: {SHORTEST_STEP_S:g} or more, and finite"
            raise InputError(f"is {self.step_s}", field="site.step_s", fix=fix)
        for name in ("origin_s", "unix_start_s"):
            if (time_s := getattr(self, name)) is not None and not np.isfinite(time_s):
                raise InputError(f"is {time_s}", field=f"site.{name}", fix="it must be finite")
        if not self.sources_w or len({s.shape for s in self.sources_w.values()}) != 1 or not self.slots:
            raise InputError("requires at least one source, all of the same length", field="site.sources")
        if not self.forecast_horizon_s >= self.step_s:
            fix = f"it must be at least one step, {self.step_s:g} s"
            raise InputError(f"is {self.forecast_horizon_s}", field="site.forecast_horizon_s", fix=fix)
        for signal, values in self.signals.items():
            if values.shape != (self.slots,) or not np.all(np.isfinite(values)):
                fix = f"give {self.slots} finite values, one per slot"
                raise InputError("does not match the slots", field=f"site.{signal}", fix=fix)
        for source, power_w in self.sources_w.items():
            if not np.all((power_w >= 0) & (power_w <= MOST_POWER_W)):
                bad = int(np.flatnonzero(~((power_w >= 0) & (power_w <= MOST_POWER_W)))[0])
                fix = f"power must be finite and >= 0, at most {MOST_POWER_W:g} W"
                raise InputError(f"slot {bad} is {power_w[bad]}", field=f"site.{source}", fix=fix)
        if not 0 <= self.base_load_w <= MOST_POWER_W:
            fix = f"it must be >= 0, at most {MOST_POWER_W:g} W"
            raise InputError(f"is {self.base_load_w}", field="site.base_load_w", fix=fix)
        self._check_pue()
        self._check_parts()

    def _check_pue(self) -> None:
        is_series = not isinstance(self.pue, (int, float))
        pue = numbers(self.pue if is_series else [self.pue], "site.pue")
        if is_series:
            object.__setattr__(self, "pue", pue)
        if is_series and pue.shape != (self.slots,):
            fix = f"give one number, or {self.slots}, one per slot"
            raise InputError("does not match the slots", field="site.pue", fix=fix)
        if (bad := np.flatnonzero(~((pue >= 1) & (pue <= MOST_PUE)))).size:
            where = f"slot {bad[0]} is" if is_series else "is"
            raise InputError(f"{where} {pue[bad[0]]}", field="site.pue", fix=f"it must be 1 to {MOST_PUE:g}")

    def _check_parts(self) -> None:
        kinds: dict[str, type] = {"forecast_model": ForecastModel, "grid": Grid, "storage": Storage}
        for name, kind in kinds.items():
            part = getattr(self, name)
            if not isinstance(part, kind) and (part is not None or name == "forecast_model"):
                raise InputError(f"is {part!r:.60}", field=f"site.{name}", fix=f"give a {kind.__name__}")
        self.forecast_model.check_step(self.step_s)
        if self.grid is not None:
            self.grid.check_site(self.slots, self.sources_w)
            self._check_storage_keeps_limit(self.grid)

    def _check_storage_keeps_limit(self, grid: Grid) -> None:
        """Refuse storage that may lift imports above a limit for which jobs are held."""
        storage = self.storage
        if grid.over_limit != "hold" or storage is None or storage.dispatch == "greedy":
            return
        if storage.dispatch == "peak-shaving" and (storage.limit_w or 0.0) <= grid.import_limit_w:
            return
        problem = f"is hold, but storage dispatched by {storage.dispatch} may charge above the limit"
        fix = 'use greedy, peak-shaving with limit_w at most import_limit_w, or over_limit = "count"'
        raise InputError(problem, field="site.grid.over_limit", fix=fix)

    def _facts(self) -> dict[str, str]:
        sources = (f"{source} {power_w.mean() / 1e3:,.3g} kW" for source, power_w in self.sources_w.items())
        whole = span_text(self.slots * self.step_s) + (", repeated" if self.repeat else "")
        facts = {
            "site": self.name,
            "mean power": ", ".join(sources),
            "series": f"{self.slots:,} steps of {span_text(self.step_s)}, {whole}",
            "forecast": span_text(self.forecast_horizon_s),
        }
        if self.forecast_model.kind != "perfect":
            facts["forecast"] += f", {self.forecast_model.text}"
        if self.has_overhead:
            facts |= {"PUE": self.pue_text, "base load": f"{self.base_load_w / 1e3:,.4g} kW"}
        if self.grid is not None:
            facts["grid"] = ", ".join(f"{label} {value}" for label, value in list(self.grid._facts().items())[2:])
        if self.storage is not None:
            facts["storage"] = f"{self.storage.capacity_kwh:,.4g} kWh, {self.storage.dispatch}"
        return facts | ({"other series": ", ".join(self.signals)} if self.signals else {})

    @property
    def slots(self) -> int:
        """Number of slots."""
        return int(next(iter(self.sources_w.values())).shape[0])

    @property
    def end_s(self) -> float:
        """Trace time at which the last slot ends. [s]"""
        return edge_s(float(self.slots), self.origin_s, self.step_s)

    @property
    def renewable_w(self) -> Floats:
        """Power [W] of all sources together, shape (slots,)."""
        total_w: Floats = np.sum(np.stack(list(self.sources_w.values())), axis=0)
        return total_w

    @property
    def has_overhead(self) -> bool:
        """Whether the facility draws more than the cluster."""
        return bool(np.any(self.pue != 1.0)) or self.base_load_w > 0

    @property
    def pue_text(self) -> str:
        """The PUE for reports: a number, or the lowest to the highest."""
        low, high = float(np.min(self.pue)), float(np.max(self.pue))
        return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"

    @property
    def available_w(self) -> Floats:
        """Power [W] of the cluster that the sources can supply beside the rest of the facility, shape (slots,).

        ``max(0, renewable - base load) / PUE``; schedulers see the same of the renewable power that is forecast.
        """
        return self._left_w(self.renewable_w, slice(None))

    @property
    def held_limit_w(self) -> float:
        """Limit of imports for which jobs wait, infinite if they do not. [W]"""
        return np.inf if self.grid is None or self.grid.over_limit != "hold" else self.grid.import_limit_w

    def load_limit_w(self, import_w: float) -> Floats:
        """Largest power [W] of the cluster with which imports stay within a limit, shape (slots,).

        ``max(0, renewable + limit - base load) / PUE``.
        """
        return self._left_w(self.renewable_w, slice(None), import_w)

    def _left_w(self, renewable_w: Floats, rows: NDArray[np.int64] | slice, import_w: float = 0.0) -> Floats:
        """Power of the cluster that sources and some power from the grid can supply. [W]"""
        left_w = np.maximum(renewable_w - (self.base_load_w - import_w), 0.0)
        left_w /= np.broadcast_to(self.pue, self.slots)[rows]
        return left_w

    def _renewable_w(self, rows: NDArray[np.int64]) -> Floats:
        total_w: Floats = np.sum(np.stack([source_w[rows] for source_w in self.sources_w.values()]), axis=0)
        return total_w

    def slot(self, time_s: float) -> int:
        """The slot that covers a trace time.

        Raises:
            SupplyExhausted: the time is outside the series and the site does not repeat.
        """
        index = int(interval_at(time_s, self.origin_s, self.step_s))
        if self.repeat:
            return index % self.slots
        if not 0 <= index < self.slots:
            raise self.exhausted("the schedule needs", time_s)
        return index

    def exhausted(self, needs: str, *times_s: float) -> SupplyExhausted:
        """The error of a series that does not cover a time: its files, what it covers and what is needed.

        Args:
            needs: who needs more, such as ``the books need``.
            times_s: the time that is needed, or the first and the last. [s]
        """
        dated = self.unix_start_s is not None
        zero_s = self.unix_start_s or 0.0

        def shown(*edges_s: float) -> str:
            return " to ".join(show_date(zero_s + edge_s) if dated else f"{edge_s:g}" for edge_s in edges_s)

        files = ", ".join([*list(self.inputs)[:MOST_FILES], *(["..."] if len(self.inputs) > MOST_FILES else [])])
        return SupplyExhausted(
            f"the power series of site {self.name!r}{f' ({files})' if files else ''} covers "
            f"{'' if dated else 'trace seconds '}{shown(self.origin_s, self.end_s)}, but {needs} {shown(*times_s)} "
            "(give a longer series or set site.repeat = true)"
        )

    def month_at(self, number: NDArray[np.int64]) -> NDArray[np.int64]:
        """Calendar month of slots by ascending number, beyond the series too, same shape.

        Where the slots have dates and the grid a time zone, months are those of the dates, however short the series
        is that repeats; else see `Grid.month_at`.

        Raises:
            InputError: a date is not in the years 1900 to 2100.
        """
        from greenbatch.energy.stamps import utc_offsets
        from greenbatch.energy.tariff import calendar_day

        if self.grid is None:
            return np.zeros_like(number)
        if self.unix_start_s is None or not self.grid.time_zone:
            return self.grid.month_at(number)
        begins_s = self.unix_start_s + self.origin_s + number.astype(np.float64) * self.step_s
        day = (begins_s + utc_offsets(begins_s, self.grid.time_zone)) // 86_400.0
        return calendar_day(day.astype(np.int64))[0]

    @property
    def horizon_slots(self) -> int:
        """Number of slots of a forecast, including the current one; at most the whole series."""
        whole = self.forecast_horizon_s / self.step_s
        return self.slots if whole >= self.slots else int(whole + 1e-9)

    def forecast(self, time_s: float, import_w: float = 0.0) -> tuple[Floats, Floats, Floats]:
        """Forecast at a trace time: the power that schedulers expect in the slots within the horizon.

        Args:
            time_s: the time. [s]
            import_w: power from the grid to add, see `load_limit_w`. [W]

        Returns:
            Start [s], end [s] and renewable power left for the cluster [W] of each slot, shape (m,): `available_w`, of
            later slots as `forecast_model` says. Slot 0 is the current one with its full bounds; ``m`` is
            ``horizon_slots``, or fewer near the end of a series that does not repeat.

        Raises:
            SupplyExhausted: see `slot`.
        """
        first = self.slot(time_s)
        count = self.horizon_slots if self.repeat else min(self.horizon_slots, self.slots - first)
        number = interval_at(time_s, self.origin_s, self.step_s) + np.arange(count + 1.0)
        edges_s = edge_s(number, self.origin_s, self.step_s)
        ahead = first + np.arange(count)
        rows = ahead % self.slots
        if self.forecast_model.kind == "perfect":
            renewable_w = self._renewable_w(rows)
        else:
            renewable_w = forecast_of(
                self.forecast_model, self.renewable_w, ahead, step_s=self.step_s, window=self.horizon_slots,
                repeats=self.repeat,
            )  # fmt: skip
        return edges_s[:-1], edges_s[1:], self._left_w(renewable_w, rows, import_w)
