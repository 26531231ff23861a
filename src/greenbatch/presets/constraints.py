"""The keys of a preset's ``[training.constraints]`` and ``[training.controller]``: promises that a training keeps.

Source: CoCoRL (dissertation, chapter 6), after PID-Lagrangian methods (Stooke, Achiam, Abbeel 2020, arXiv:2007.03964).
Defaults marked (Table A.3) or (section 6.6.5) are CoCoRL's; those marked (safe-rlpyt) are of the library whose
arguments Table A.3 lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from greenbatch.errors import InputError, did_you_mean
from greenbatch.scenarios.section import Count, NotNegative, Positive, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from greenbatch.presets.preset import Reward

Bound = Annotated[float, Field(ge=-1e12, le=1e12)]
Smoothing = Annotated[float, Field(ge=0, lt=1)]


class Constraint(Section):
    """A bound on the mean of a reward term over episodes; the table's key is the term."""

    at_most: Bound | None = None
    """Largest mean that is allowed, in the term's unit."""
    at_least: Bound | None = None
    """Smallest mean that is allowed, in the term's unit, instead of ``at_most``."""
    scale: Positive | None = None
    """Factor of the cost and of its bound, for the multiplier and the critic of the cost; by default 1 over the bound,
    so that errors are relative."""

    @model_validator(mode="before")
    @classmethod
    def _says_which(cls, given: object) -> object:
        if isinstance(given, int | float | str):
            raise ValueError(f"{given!r} does not say of which side it is a bound; give at_most or at_least below it")
        return given

    @model_validator(mode="after")
    def _one_bound(self) -> Constraint:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("a constraint has one bound; give either at_most or at_least")
        return self

    @property
    def sign(self) -> float:
        """Factor that makes the term a cost: -1 if it must not be too small."""
        return 1.0 if self.at_least is None else -1.0

    @property
    def bound(self) -> float:
        """The bound of the term."""
        return float(self.at_most if self.at_least is None else self.at_least)  # type: ignore[arg-type]  # one is given

    @property
    def factor(self) -> float:
        """Factor that makes a cost of the term, in the unit of the multiplier."""
        return self.sign * (1.0 / (abs(self.bound) or 1.0) if self.scale is None else self.scale)

    @property
    def text(self) -> str:
        """The bound in words, ``at most 1200``."""
        return f"at {'most' if self.at_least is None else 'least'} {self.bound:.6g}"

    def excess(self, mean: float) -> float:
        """How far a mean of the term is beyond the bound, >= 0, relative to it (to 1 if it is 0)."""
        return max(self.sign * (mean - self.bound), 0.0) / (abs(self.bound) or 1.0)


class Controller(Section):
    """How the multiplier of a cost follows from its past: proportional, integral and derivative control."""

    form: Literal["corrected", "published"] = "corrected"
    """``corrected``: gains count once and terms are smoothed, as in Stooke et al. and safe-rlpyt; ``published``:
    Algorithm 7, which multiplies the proportional and the derivative term by their gains twice and smooths nothing."""
    proportional: NotNegative = 2.0
    """Gain K_P (section 6.6.5)."""
    integral: NotNegative = 1.0
    """Gain K_I (section 6.6.5)."""
    derivative: NotNegative = 1.0
    """Gain K_D (section 6.6.5)."""
    initial: NotNegative = 1.0
    """Integral term, and with it the multiplier, at first (safe-rlpyt); of the published form 0."""
    smoothing: Smoothing = 0.95
    """Share of the old average in the exponential average of errors (Table A.3)."""
    cost_smoothing: Smoothing = 0.9
    """The same of costs, for the derivative (Table A.3)."""
    delay: Count = 15
    """Epochs over which the derivative looks back (Table A.3)."""
    largest: Positive = 100.0
    """Largest multiplier (safe-rlpyt)."""


def with_costs(reward: Reward, constraints: Mapping[str, Constraint]) -> Reward:
    """A reward that also knows the terms of constraints, with weight 0 unless it has one.

    Raises:
        InputError: there is no such term.
    """
    from greenbatch.engine.observe.reward_terms import TERMS

    for name in constraints:
        if name not in TERMS:
            fix = did_you_mean(name, TERMS, then="known: " + ", ".join(TERMS))
            raise InputError(f"{name!r} is not a reward term", field="training.constraints", fix=fix)
    return reward.model_copy(
        update={"terms": {**reward.terms, **{name: 0.0 for name in constraints if name not in reward.terms}}}
    )
