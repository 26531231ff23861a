"""What a feature of an observation is; `features` and `pair_features` list them."""

from __future__ import annotations

from typing import NamedTuple


class Feature(NamedTuple):
    """A named quantity that the engine can compute."""

    unit: str
    meaning: str
    """Formula, range and source."""
