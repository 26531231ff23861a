"""Random numbers that are the same on every machine: raw bits of PCG64, which NumPy promises never to change."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def normals(seed: int, stream: int, count: int) -> Floats:
    """Standard normal numbers, each by inversion of 53 raw bits; the streams of a seed are independent."""
    bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(stream,))).random_raw(count)
    return scores((np.asarray(bits >> np.uint64(11), dtype=np.float64) + 0.5) * 2.0**-53)


def scores(probability: Floats) -> Floats:
    """The normal score of each probability."""
    inverse = NormalDist().inv_cdf
    return np.array([inverse(p) for p in probability.tolist()])


def autoregressive(noise: Floats, memory: float) -> Floats:
    """``x[i] = memory x[i-1] + sqrt(1 - memory^2) noise[i]``, with variance 1 from the first value on."""
    fresh, before = sqrt(1 - memory**2), 0.0
    values = []
    for i, shock in enumerate(noise.tolist()):
        before = memory * before + fresh * shock if i else shock
        values.append(before)
    return np.array(values)


def circular(noise: Floats, memory: float) -> Floats:
    """The same recursion on a circle: the value before the first is the last one; variance 1.

    Values ``h`` steps apart of ``n`` are correlated by ``(memory^h + memory^(n - h)) / (1 + memory^n)``.

    Args:
        noise: n independent standard normal numbers.
        memory: 0 to less than 1, such that memory^n < 1.
    """
    fresh, before, count = sqrt(1 - memory**2), 0.0, noise.size
    values = []
    for shock in noise.tolist():
        before = memory * before + fresh * shock
        values.append(before)
    round_once = memory**count
    closing = before / (1 - round_once) * memory ** np.arange(1.0, count + 1.0)
    found: Floats = (np.array(values) + closing) * sqrt((1 - round_once) / (1 + round_once))
    return found
