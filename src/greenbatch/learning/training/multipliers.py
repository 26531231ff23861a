"""Lagrange multipliers of constraints under PID control, one per cost.

An epoch's mean costs J and their bounds d give errors e = J - d, and those the multipliers that weigh the costs'
advantages in the next update. Source: CoCoRL (dissertation, section 6.4.2, Algorithm 7); Stooke, Achiam, Abbeel 2020,
Algorithm 2, whose reading of the gains is the corrected form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from greenbatch.models.tensors import Tensors
from greenbatch.presets.constraints import Constraint, Controller

Floats = NDArray[np.float64]


class Multipliers:
    """Multipliers of K constraints.

    Corrected, with averages over epochs written as <>:

    * I <- min(max(I + K_I e, 0), largest), at first ``initial``
    * D = max(<J> - <J> ``delay`` epochs ago, 0)
    * multiplier = min(max(K_P <e> + I + K_D D, 0), largest)

    The averages begin with the first epoch's values, so that nothing kicks at the start. Published (Algorithm 7):
    P = K_P e, I <- max(I + e, 0), D = K_D max(J - J before, 0), multiplier = max(K_P P + K_I I + K_D D, 0), where the
    cost before the first epoch is 0.
    """

    def __init__(self, constraints: Mapping[str, Constraint], controller: Controller) -> None:
        self.controller = controller
        self.names = tuple(constraints)
        """Terms that are costs."""
        self.scales: Floats = np.array([each.factor for each in constraints.values()])
        """Factors that make costs of the terms, shape (K,)."""
        self.bounds: Floats = np.array([each.bound for each in constraints.values()])
        """Bounds of the terms, shape (K,)."""
        published = controller.form == "published"
        first = np.full(len(self.names), 0.0 if published else controller.initial)
        self.integral: Floats = first.copy()
        """Integral terms, shape (K,)."""
        self.values: Floats = first.copy()
        """Current multipliers, shape (K,)."""
        self._error = np.zeros(len(self.names))
        self._costs = np.zeros((0, len(self.names)))  # averages of the last epochs, the latest one last

    def __len__(self) -> int:
        """Number of constraints."""
        return len(self.names)

    def update(self, means: Floats) -> Floats:
        """The multipliers after an epoch.

        Args:
            means: mean of each term over the epoch's episodes, shape (K,).
        """
        costs = self.scales * means
        errors = self.scales * (means - self.bounds)
        step = self._published if self.controller.form == "published" else self._corrected
        self.values = np.maximum(step(costs, errors), 0.0)
        return self.values

    def _corrected(self, costs: Floats, errors: Floats) -> Floats:
        made, begun = self.controller, len(self._costs) > 0
        self.integral = np.clip(self.integral + made.integral * errors, 0.0, made.largest)
        self._error = made.smoothing * self._error + (1 - made.smoothing) * errors if begun else errors
        average = made.cost_smoothing * self._costs[-1] + (1 - made.cost_smoothing) * costs if begun else costs
        self._costs = np.vstack([self._costs, average])[-(made.delay + 1) :]
        rise = np.maximum(average - self._costs[0], 0.0)
        weighed: Floats = made.proportional * self._error + self.integral + made.derivative * rise
        return np.minimum(weighed, made.largest)

    def _published(self, costs: Floats, errors: Floats) -> Floats:
        made = self.controller
        before = self._costs[-1] if len(self._costs) else np.zeros(len(self))
        proportional = made.proportional * errors
        self.integral = np.maximum(self.integral + errors, 0.0)
        derivative = made.derivative * np.maximum(costs - before, 0.0)
        self._costs = costs[None]
        result: Floats = made.proportional * proportional + made.integral * self.integral + made.derivative * derivative
        return result

    def arrays(self) -> Tensors:
        """The state, for a checkpoint."""
        return {
            "integral": self.integral, "values": self.values, "error": self._error, "costs": self._costs.copy(),
        }  # fmt: skip

    def restore(self, arrays: Tensors) -> None:
        """Resume from what `arrays` gave.

        Raises:
            ValueError: the state is of other constraints.
        """
        count = len(self)
        shapes = [np.shape(arrays[name]) for name in ("integral", "values", "error")]
        if shapes != [(count,)] * 3 or np.shape(arrays["costs"])[1:] != (count,):
            raise ValueError("the multipliers are of other constraints")
        self.integral, self.values, self._error, self._costs = (
            np.array(arrays[name], np.float64) for name in ("integral", "values", "error", "costs")
        )


def lagrangian(advantages: Sequence[Floats], multipliers: Floats) -> Floats:
    """(A - sum over k of m_k C_k) / (1 + sum of m_k), shape (N,): what the policy ascends (Algorithm 8, line 17).

    Dividing by the sum of the weights keeps the size of a step (Stooke et al. 2020, section 5.2).

    Args:
        advantages: of the reward, then of each cost, K + 1 arrays of shape (N,).
        multipliers: shape (K,).
    """
    reward, *costs = advantages
    weighed = sum((weight * cost for weight, cost in zip(multipliers, costs, strict=True)), np.zeros(len(reward)))
    result: Floats = (reward - weighed) / (1.0 + multipliers.sum())
    return result
