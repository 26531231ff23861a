"""Slurm node lists, such as ``node[001-128,130],login1`` (``man slurm.conf``, NodeName)."""

from __future__ import annotations

import re
from itertools import pairwise, product
from math import prod

from greenbatch.errors import InputError

MOST_NODES = 1_000_000
"""Nodes that a list may name; more are taken for a slip."""
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_.\-]+", re.ASCII)


def node_list(text: str, field: str = "node list") -> tuple[str, ...]:
    """The names that a Slurm node list stands for, in order.

    Names are separated by commas. A bracket lists numbers and ranges, zero-padded as written; a name may hold several:
    ``rack[1-2]node[01-10]``.

    Args:
        text: the list.
        field: the key that holds it, for messages.

    Raises:
        InputError: a bracket is not closed, a range is empty or runs backward, a name is blank, has other characters
            than letters, digits, ``_``, ``-`` and ``.``, or occurs twice, or there are more than a million names.
    """
    try:
        return _names(text)
    except InputError as error:
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise InputError(f"{shown!r}: {error.problem}", field=field, fix=error.fix) from None


def _names(text: str) -> tuple[str, ...]:
    names: list[str] = []
    for part in _parts(text):
        pieces = _BRACKET.split(part)  # text, inside of a bracket, text, ...
        if any(mark in piece for piece in pieces[::2] for mark in "[]"):
            raise InputError(f"{part!r} has a bracket that is not closed or opened", fix="write node[001-128]")
        choices = [(piece,) if k % 2 == 0 else _numbers(piece) for k, piece in enumerate(pieces)]
        if len(names) + prod(map(len, choices)) > MOST_NODES:
            raise InputError(f"names more than {MOST_NODES:,} nodes", fix="correct the ranges")
        names += map("".join, product(*choices))
    for name in names:
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r} is not the name of a node", fix="use letters, digits, _, - and .")
    if len(set(names)) < len(names):
        ordered = sorted(names)
        twice = next(a for a, b in pairwise(ordered) if a == b)
        raise InputError(f"{twice!r} occurs twice", fix="name each node once")
    return tuple(names)


def _parts(text: str) -> list[str]:
    """The text split at the commas outside of brackets."""
    parts, depth = [""], 0
    for mark in text.strip():
        depth += (mark == "[") - (mark == "]")
        if mark == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += mark
    parts = [part.strip() for part in parts]
    if "" in parts:
        raise InputError("has a blank name", fix="separate names by single commas")
    return parts


def _numbers(inside: str) -> tuple[str, ...]:
    """The numbers of one bracket, zero-padded as written."""
    numbers: list[str] = []
    for part in inside.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise InputError(f"{part!r} is not a number or a range", fix="write [001-128,130]")
        first, last = match[1], match[2] or match[1]
        low, high = int(first), int(last)
        if low > high:
            raise InputError(f"the range {part} runs backward", fix="write the smaller number first")
        if high - low >= MOST_NODES:
            raise InputError(f"names more than {MOST_NODES:,} nodes", fix="correct the ranges")
        numbers += (f"{number:0{len(first)}}" for number in range(low, high + 1))
    return tuple(numbers)
