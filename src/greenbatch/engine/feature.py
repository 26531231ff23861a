"""What a feature of an observation is; ``observe/features.toml`` lists them in the order of their codes."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any, NamedTuple


class Feature(NamedTuple):
    """A named quantity that the engine can compute."""

    unit: str
    meaning: str
    """Formula, range and source."""


@cache
def read_table(name: str) -> dict[str, Any]:
    """A table of descriptions beside the functions that compute what they describe, read once."""
    text = (resources.files("greenbatch.engine.observe") / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def features_in(rows: str) -> dict[str, Feature]:
    """Name -> feature of one kind of rows, in the order of their codes."""
    return {name: Feature(*told) for name, told in read_table("features")[rows].items()}
