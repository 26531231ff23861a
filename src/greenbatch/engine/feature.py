"""What a feature of an observation is; ``observe/features.toml`` lists them in the order of their codes."""

from __future__ import annotations

from typing import NamedTuple

from greenbatch.engine.tables import read_table


class Feature(NamedTuple):
    """A named quantity that the engine can compute."""

    unit: str
    meaning: str
    """Formula, range and source."""


def features_in(rows: str) -> dict[str, Feature]:
    """Name -> feature of one kind of rows, in the order of their codes."""
    return {name: Feature(*told) for name, told in read_table("observe/features")[rows].items()}
