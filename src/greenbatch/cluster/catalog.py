"""Node types that really exist, each with the record of its measurement: ``catalog.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from greenbatch.errors import InputError, did_you_mean

FILE = Path(__file__).with_name("catalog.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """A measured server.

    The power model is a straight line through two measurements: the idle node, and the node with all processors busy.
    """

    name: str
    """Name in the catalog."""
    description: str
    """Vendor and model, processors, year of the measurement."""
    processors: int
    """Cores of the node."""
    memory_gb: float | None
    """Memory as measured; None if it was not quoted. [GB]"""
    idle_w: float
    """Measured power at active idle. [W]"""
    full_w: float
    """Measured power at 100% of the benchmark's load. [W]"""
    record: str
    """Record of the measurement, such as a SPECpower_ssj2008 result."""
    quoted_by: str
    """Where the record was read."""

    def power_keys(self, processors: int | None = None) -> dict[str, Any]:
        """Values of a `NodeGroup` that say what the node draws.

        Args:
            processors: processors as the cluster counts them (Slurm may count threads); by default the cores.
        """
        each_w = (self.full_w - self.idle_w) / (self.processors if processors is None else processors)
        source = f"{self.record}: idle and full load measured, power per processor derived"
        return {
            "static_power_w": self.idle_w, "idle_fraction": 1.0, "power_per_processor_w": each_w, "source": source
        }  # fmt: skip

    def group_keys(self) -> dict[str, Any]:
        """Values of a `NodeGroup`, to be completed by name and count. Speed is not among them: it stays 1."""
        memory = {} if self.memory_gb is None else {"memory_gb": self.memory_gb}
        return {"processors": self.processors, **memory, **self.power_keys()}


@cache
def node_types() -> Mapping[str, NodeType]:
    """Name -> node type, in the order of the catalog."""
    content = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: NodeType(name=name, memory_gb=entry.pop("memory_gb", None), **entry) for name, entry in content.items()
    }


def node_type(name: str) -> NodeType:
    """A node type by name.

    Raises:
        InputError: there is none of that name.
    """
    known = node_types()
    if name not in known:
        fix = did_you_mean(name, known, then="see: greenbatch cluster list")
        raise InputError(f"there is no node type {name!r:.60}", field="cluster.type", fix=fix)
    return known[name]
