"""The columns of a file of decisions: one for each feature of an observation's tables, and those beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from greenbatch.datasets.tables import Field
from greenbatch.presets.shapes import Shapes

BESIDE: dict[str, type[np.generic]] = {
    "episode": np.int64,
    "step": np.int64,
    "time_s": np.float64,
    "scheduler": np.int64,
    "action": np.int64,
    "allowed": np.int64,
    "reward": np.float64,
    "terminal": np.bool_,
    "truncated": np.bool_,
}
"""Columns that every file has -> their type in memory; files may have smaller whole numbers."""


def increments(terms: Iterable[str]) -> dict[str, str]:
    """Term of the reward -> its column."""
    return {term: f"increment.{term}" for term in terms}


def _names(columns: tuple[str, ...], table: str) -> list[str]:
    """Names of the columns of a table; a feature that occurs again is numbered."""
    return [
        f"{table}.{name}" + (f".{before}" if (before := columns[:k].count(name) + 1) > 1 else "")
        for k, name in enumerate(columns)
    ]


def columns_of(shapes: Shapes, fields: Mapping[str, Field]) -> dict[str, tuple[str, int | None]]:
    """Column of a file -> the array that it is from, and which feature of it; those without values are left out."""
    found: dict[str, tuple[str, int | None]] = {}
    for table in ("queue", "running", "supply", "state"):
        if fields[table].bytes:
            names = _names(getattr(shapes, table), table)
            found |= {name: (table, feature) for feature, name in enumerate(names)}
    whole = ("queued", "selectable", "busy", "slot", "image")
    return found | {name: (name, None) for name in whole if fields[name].bytes}
