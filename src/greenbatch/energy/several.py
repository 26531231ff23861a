"""Several series in one file, such as two markets or the parts of a price: which column tells them apart."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.columns import Columns
from greenbatch.energy.resample import SAME_S, own_steps
from greenbatch.energy.stamps import DATE_ONLY, hour_beside

Floats = NDArray[np.float64]
MOST_NAMED = 6
"""Series that a message names."""
MOSTLY = 0.9
"""Share of its time that a series has in equal steps."""
SHARED = 0.5
"""Share of the times of the shorter of two series, at least, that the other one has as well."""


class Several(NamedTuple):
    """What to say about a file of several series."""

    at: int
    """The sample that has the time of the one before."""
    problem: str
    fix: str


def several(
    table: Columns, time_column: str, rows: NDArray[np.int64], times_s: Floats, values: Floats
) -> Several | None:
    """Equal times with other values that the texts of other columns tell apart; None if there are none.

    A value that is stated twice, perhaps corrected, is none: the rows of each text must be a series of their own.

    Args:
        table: the file; its other columns are considered.
        time_column: the column of times.
        rows: row of the file of each sample, shape (n,).
        times_s: time of each sample, ascending, shape (n,). [s]
        values: value of each sample, shape (n,).
    """
    pair = _first_other(times_s, values)
    if pair is None:
        return None
    stamps = table.cells.get(time_column)
    if stamps is not None and all(DATE_ONLY.fullmatch(stamps[row]) for row in rows[pair : pair + 2]):
        return Several(pair + 1, "the date occurs twice", f"if another column has the hour, {hour_beside(time_column)}")
    others = {name: np.array([texts[row] for row in rows]) for name, texts in table.others.items()}
    chosen: dict[str, str] = {}
    named: list[str] = []
    part = np.arange(rows.size)
    at: int | None = pair
    while at is not None:
        name = _apart({name: texts[part] for name, texts in others.items()}, times_s[part], at)
        if name is None:
            break
        texts = others[name][part]
        chosen[name] = str(min(texts[at : at + 2]))
        known = sorted(set(texts.tolist()))
        named.append(f"{name}: {', '.join(map(_text, known[:MOST_NAMED]))}" + ", ..." * (len(known) > MOST_NAMED))
        part = part[texts == chosen[name]]
        at = _first_other(times_s[part], values[part])
    if not chosen:
        return None
    where = ", ".join(f"{_key(name)} = {_text(text)}" for name, text in chosen.items())
    problem = f"the time occurs twice with other values: the file has several series ({'; '.join(named)})"
    return Several(pair + 1, problem, f"choose one of them, such as where = {{ {where} }}")


def _apart(others: dict[str, NDArray[np.str_]], times_s: Floats, at: int) -> str | None:
    """The column whose texts in two rows stand for two series."""
    for name, texts in others.items():
        two = texts[at : at + 2]
        if two[0] == two[1]:
            continue
        first_s, second_s = (np.unique(times_s[texts == text]) for text in two)
        shared = np.intersect1d(first_s, second_s).size
        beside = shared >= SHARED * min(first_s.size, second_s.size)  # else a label of values: "moderate", "high"
        if beside and _is_series(first_s) and _is_series(second_s):
            return name
    return None


def _first_other(times_s: Floats, values: Floats) -> int | None:
    """The first of ascending samples whose time the next one has with another value."""
    same = np.diff(times_s) <= SAME_S
    other = same & ~np.isclose(values[1:], values[:-1], rtol=1e-12, atol=0.0, equal_nan=True)
    return int(np.flatnonzero(other)[0]) if other.any() else None


def _is_series(times_s: Floats) -> bool:
    """Whether ascending times are those of a series with few gaps."""
    if times_s.size < 2:
        return False
    distances_s = np.diff(times_s)
    return bool(distances_s[own_steps(distances_s)].sum() > MOSTLY * (times_s[-1] - times_s[0]))


def _key(name: str) -> str:
    """The name of a column as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    """A text as a value of TOML."""
    return json.dumps(text, ensure_ascii=False)
