"""Slurm node lists, such as ``node[001-128,130],login1`` (``man slurm.conf``, NodeName)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, product
from math import prod

from greenbatch.errors import InputError

MOST_NODES = 1_000_000
"""Nodes that a list may name; more are taken for a slip."""
_HOST = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
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
        names = tuple(listed(text))
        for name in names:
            if not _NAME.fullmatch(name):
                raise InputError(f"{name!r} is not the name of a node", fix="use letters, digits, _, - and .")
        if len(set(names)) < len(names):
            twice = next(a for a, b in pairwise(sorted(names)) if a == b)
            raise InputError(f"{twice!r} occurs twice", fix="name each node once")
    except InputError as error:
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise InputError(f"{shown!r}: {error.problem}", field=field, fix=error.fix) from None
    return names


def node_count(text: str) -> int:
    """How many names a node list stands for, without making them.

    Raises:
        InputError: as `listed`, but for the number of names.
    """
    return sum(prod(sum(len(span) for span, _ in bracket) for bracket in brackets) for _, brackets in _hosts(text))


def listed(text: str) -> Iterator[str]:
    """The names that a node list stands for, in order, whatever characters they have and however often they occur.

    Raises:
        InputError: a bracket is not closed, a range is empty or runs backward, a name is blank, or there are more than
            a million names.
    """
    if node_count(text) > MOST_NODES:
        raise InputError(f"names more than {MOST_NODES:,} nodes", fix="correct the ranges")
    for (first, *others), brackets in _hosts(text):
        numbers = ([f"{n:0{digits}}" for span, digits in bracket for n in span] for bracket in brackets)
        for chosen in product(*numbers):
            yield first + "".join(map("".join, zip(chosen, others, strict=True)))


def _hosts(text: str) -> Iterator[tuple[list[str], list[list[tuple[range, int]]]]]:
    """Of each part between commas, the texts around its brackets and the numbers in each, with their digits."""
    hosts: list[str] = _HOST.findall(text.strip())
    if ",".join(hosts) != text.strip():
        if {"[", "]"} & {*_BRACKET.sub("", text)}:
            raise InputError("has a bracket that is not closed or opened", fix="write node[001-128]")
        hosts.append("")
    if not hosts or not all(map(str.strip, hosts)):
        raise InputError("has a blank name", fix="separate names by single commas")
    for host in hosts:
        pieces = _BRACKET.split(host.strip())  # text, inside of a bracket, text, ...
        yield pieces[::2], [[_span(part.strip()) for part in inside.split(",")] for inside in pieces[1::2]]


def _span(part: str) -> tuple[range, int]:
    """The numbers of a part of a bracket, and the digits to which they are padded."""
    match = _RANGE.fullmatch(part)
    if match is None:
        raise InputError(f"{part!r} is not a number or a range", fix="write [001-128,130]")
    span = range(int(match[1]), int(match[2] or match[1]) + 1)
    if not span:
        raise InputError(f"the range {part} runs backward", fix="write the smaller number first")
    return span, len(match[1])
