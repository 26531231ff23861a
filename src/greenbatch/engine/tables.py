"""Tables that stand in a file of their own beside the engine's code, such as what its settings and features mean."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def read_table(name: str) -> dict[str, Any]:
    """A table of the engine, such as ``observe/features``, read once."""
    return tomllib.loads((resources.files("greenbatch.engine") / f"{name}.toml").read_text(encoding="utf-8"))
