"""Conversion of local wall-clock times to Unix time, including the repeated hour when daylight saving ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError

_SLOT_S = 900
"""UTC offsets change only on quarter hours of wall time. [s]"""


@dataclass(frozen=True, slots=True)
class UnixTimes:
    """Both readings of local times; they differ only in the repeated hour (and in the hour that does not exist)."""

    first_s: NDArray[np.float64]
    """Read as before the clocks go back. Unix [s]"""
    second_s: NDArray[np.float64]
    """Read as after the clocks go back. Unix [s]"""

    @property
    def repeated(self) -> NDArray[np.bool_]:
        """Times in the hour that occurs twice."""
        return self.second_s > self.first_s

    @property
    def skipped(self) -> NDArray[np.bool_]:
        """Times in the hour that does not exist."""
        return self.second_s < self.first_s

    def not_before(self, earliest_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """The first reading, or the second if the first is earlier than ``earliest_s``."""
        return np.where(self.repeated & (self.first_s < earliest_s), self.second_s, self.first_s)


def zone(name: str) -> ZoneInfo:
    """The IANA time zone of that name.

    Raises:
        InputError: no such time zone exists.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        fix = "give an IANA name such as Europe/Paris or UTC"
        raise InputError(f"{name!r} is not a time zone", field="time_zone", fix=fix) from None


def unix_times(wall_s: NDArray[np.float64], local: NDArray[np.bool_], tz: ZoneInfo | None) -> UnixTimes:
    """Unix times of wall-clock times given in seconds as if they were UTC, shape (n,).

    Times that are not local are returned unchanged, and so is NaN. Without a time zone, local times are taken as UTC.
    """
    convert = local & ~np.isnan(wall_s)
    if tz is None or not convert.any():
        return UnixTimes(wall_s, wall_s)
    slots, which = np.unique((wall_s[convert] // _SLOT_S).astype(np.int64), return_inverse=True)
    offsets = np.array([_offsets(int(slot) * _SLOT_S, tz) for slot in slots])[which]
    readings = []
    for k in (0, 1):
        unix_s = wall_s.copy()
        unix_s[convert] -= offsets[:, k]
        readings.append(unix_s)
    return UnixTimes(*readings)


def _offsets(wall_s: int, tz: ZoneInfo) -> tuple[float, float]:
    wall = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None) + timedelta(seconds=wall_s)
    offsets = (wall.replace(tzinfo=tz, fold=fold).utcoffset() for fold in (0, 1))
    before, after = (0.0 if offset is None else offset.total_seconds() for offset in offsets)
    return before, after
