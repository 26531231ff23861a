"""Covariance matrix adaptation (CMA-ES): minimize an objective from its values alone.

Source: Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772 (2016), Fig. 6 with the default settings of
its Table 1 (without negative weights). The diagonal form: Ros and Hansen, "A Simple Modification in CMA-ES Achieving
Linear Time and Space Complexity", PPSN X (2008), section 3. Why not a library: docs/decisions/0022.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass
class Evolution:
    """A normal distribution over n numbers, updated by generations of ``population`` points."""

    mean: Floats
    """Center, shape (n,)."""
    sigma: float
    """Overall step, > 0."""
    population: int
    covariance: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """Shape (n, n); the identity if not given."""
    path_sigma: Floats = field(default_factory=lambda: np.zeros(0))
    path_covariance: Floats = field(default_factory=lambda: np.zeros(0))
    generation: int = 0
    diagonal: bool = False
    """Adapt the variances only, (n + 2) / 3 times as fast."""

    def __post_init__(self) -> None:
        n = len(self.mean)
        self.covariance = self.covariance if self.covariance.size else np.eye(n)
        self.path_sigma = self.path_sigma if self.path_sigma.size else np.zeros(n)
        self.path_covariance = self.path_covariance if self.path_covariance.size else np.zeros(n)
        parents = self.population // 2
        weights = np.log(self.population / 2 + 0.5) - np.log(np.arange(1, parents + 1))
        self._weights: Floats = weights / weights.sum()
        self._mass = float(1.0 / (self._weights**2).sum())
        self._rate_sigma = (self._mass + 2) / (n + self._mass + 5)
        self._rate_path = (4 + self._mass / n) / (n + 4 + 2 * self._mass / n)
        faster = (n + 2) / 3 if self.diagonal else 1.0
        self._rate_one = min(1.0, faster * 2 / ((n + 1.3) ** 2 + self._mass))
        rank = faster * 2 * (self._mass - 2 + 1 / self._mass) / ((n + 2) ** 2 + self._mass)
        self._rate_rank = min(1 - self._rate_one, rank)
        self._damping = 1 + 2 * max(0.0, np.sqrt((self._mass - 1) / (n + 1)) - 1) + self._rate_sigma
        self._length = np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))

    def ask(self, random: np.random.Generator) -> Floats:
        """Sample a generation of points, shape (population, n); deterministic given the generator."""
        values, self._axes = np.linalg.eigh((self.covariance + self.covariance.T) / 2)
        self._scales = np.sqrt(np.maximum(values, 1e-20))
        self._steps: Floats = (random.standard_normal((self.population, len(self.mean))) * self._scales) @ self._axes.T
        points: Floats = self.mean + self.sigma * self._steps
        return points

    def tell(self, values: Floats) -> None:
        """Update from the values of the last generation's points, shape (population,); NaN counts as the largest."""
        best = np.argsort(np.where(np.isnan(values), np.inf, values), kind="stable")[: len(self._weights)]
        steps = self._steps[best]
        step = self._weights @ steps
        self.mean = self.mean + self.sigma * step
        whitened = self._axes @ ((self._axes.T @ step) / self._scales)
        fade = 1 - self._rate_sigma
        self.path_sigma = fade * self.path_sigma + np.sqrt((1 - fade**2) * self._mass) * whitened
        length = np.linalg.norm(self.path_sigma)
        n = len(self.mean)
        steady = length / np.sqrt(1 - fade ** (2 * (self.generation + 1))) < (1.4 + 2 / (n + 1)) * self._length
        keep = 1 - self._rate_path
        self.path_covariance = keep * self.path_covariance + steady * np.sqrt((1 - keep**2) * self._mass) * step
        self.covariance = (
            (1 - self._rate_one - self._rate_rank) * self.covariance
            + self._rate_one * np.outer(self.path_covariance, self.path_covariance)
            + self._rate_rank * (steps.T * self._weights) @ steps
        )
        if self.diagonal:
            self.covariance = np.diag(np.diag(self.covariance))
        self.sigma = float(self.sigma * np.exp(self._rate_sigma / self._damping * (length / self._length - 1)))
        self.generation += 1
