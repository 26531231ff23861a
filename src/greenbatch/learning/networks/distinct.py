"""Distinct rows of a table: rows that recur are encoded once.

Waiting jobs look the same in many decisions: waits end at their normalizer's ceiling, and nights are alike. In a queue
of 480 rows, 256 decisions of an epoch have 2.5 rows for each distinct one. Rows are compared bit by bit, so nothing is
approximated.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba as _numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from greenbatch.machine_code.compile import entry

types: Any = _numba.types

_BITS, _MURMUR = 0xFFFFFFFF, 0x5BD1E995
"""Bits of a hash, and the factor of MurmurHash2: their product is less than 2^63."""
WORTH = 0.9
"""Share of distinct rows up to which encoding them once pays for gathering."""


def distinct(rows: Tensor) -> tuple[Tensor, Tensor] | None:
    """Distinct rows and where they are; None if few recur.

    Args:
        rows: float32 (Q, k) on a CPU.

    Returns:
        The first of each group of equal rows (U, k), in the order in which they occur, and int64 (Q,): which of them
        every row is. None if U is above `WORTH` of Q.
    """
    count = rows.shape[0]
    words = np.ascontiguousarray(rows.numpy()).view(np.int32)
    number, first = np.empty(count, np.int64), np.empty(count, np.int64)
    table = np.full(2 << count.bit_length(), -1)
    found = _compiled()(words, table, first, number)
    if found > WORTH * count:
        return None
    return rows[torch.from_numpy(first[:found])], torch.from_numpy(number)


@cache
def _compiled() -> Any:
    whole = types.Array(types.int64, 1, "C")
    kinds = types.Array(types.int32, 2, "C"), whole, whole, whole
    return entry("distinct-rows", _numbered, types.int64(*kinds), told=False)


def _numbered(
    words: NDArray[np.int32], table: NDArray[np.int64], first: NDArray[np.int64], number: NDArray[np.int64]
) -> int:
    """Number equal rows of words by an open hash table whose length is a power of 2; return how many there are."""
    found, last = 0, table.shape[0] - 1
    for row in range(words.shape[0]):
        mixed = np.int64(0)
        for column in range(words.shape[1]):
            mixed = (mixed ^ (np.int64(words[row, column]) & _BITS)) * _MURMUR & _BITS
            mixed ^= mixed >> 15
        slot = mixed & last
        while True:
            at = table[slot]
            if at < 0:
                table[slot], first[found], number[row] = found, row, found
                found += 1
                break
            same = True
            for column in range(words.shape[1]):
                same &= words[row, column] == words[first[at], column]
            if same:
                number[row] = at
                break
            slot = (slot + 1) & last
    return found
