"""A small platform of IRMaSim, and what is wrong with others."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

CONSTANTS = {"b": -1.85e-05, "c": 32000, "da": 1.75, "db": 2000, "dc": 50000, "dd": 6000}
PLATFORM: dict[str, Any] = {
    "platform": {
        "here": {
            "id": "here",
            "model_name": "modelV1",
            "clusters": [{"id": "cluster0", "nodes": [{"type": "fast", "number": 2}, {"type": "big", "number": 1}]}],
        }
    },
    "node": {
        "fast": {"id": "fast", "processors": [{"type": "p", "number": 1}], "memory": {"capacity": 32}},
        "big": {"id": "big", "processors": [{"type": "q", "number": 2}], "memory": {"capacity": 32}},
    },
    "processor": {
        "p": {
            "cores": 8, "clock_rate": 4.2, "dpflops_per_cycle": 2, "static_power": 68.81, "dynamic_power": 6.49,
            "min_power": 0.25, **CONSTANTS,
        },
        "q": {
            "cores": 24, "clock_rate": 3.0, "dpflops_per_cycle": 1, "static_power": 35.0, "dynamic_power": 3.5,
            "min_power": 0.5,
        },
    },
}  # fmt: skip
ABSENT = object()


def changed(content: Any, path: str, value: Any) -> Any:
    """A copy with the value at a dotted path (numbers are positions) replaced, or removed if it is ABSENT."""
    copied = copy.deepcopy(content)
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place = copied
    for step in steps:
        place = place[step]
    if value is ABSENT:
        del place[last]
    else:
        place[last] = value
    return copied


def written(folder: Path, content: Any, name: str = "platform.json") -> Path:
    """The content as a JSON file."""
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path
