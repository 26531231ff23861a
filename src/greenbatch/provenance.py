"""The provenance of a result: inputs, settings and versions, so that it can be reproduced.

The same inputs and software give the same provenance, except for the part ``run``, which names the command line and the
machine. There are no time stamps, so that equal results are equal files.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from greenbatch import data_catalog

_PACKAGES = ("greenbatch", "llvmlite", "matplotlib", "numba", "numpy", "onnxruntime", "polars", "pvlib")


def provenance(
    *,
    scenario: Mapping[str, Any],
    inputs: Mapping[str, str],
    notes: Sequence[str] = (),
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    command: Sequence[str] = (),
) -> dict[str, Any]:
    """The provenance of a result, ready for JSON.

    Args:
        scenario: the scenario, with defaults filled in.
        inputs: file name -> SHA-256 of every input file.
        notes: what was repaired, dropped, filled in or assumed while reading the inputs.
        seed: seed of all random numbers of the run.
        settings: settings of the command besides the scenario: schedulers, window, ...
        command: the command line.
    """
    return {
        "settings": dict(settings or {}),
        "seed": seed,
        "inputs": dict(sorted(inputs.items())),
        "notes": list(notes),
        "scenario": dict(scenario),
        "versions": versions(),
        "source_sha256": source_sha256(),
        "run": {
            "command": list(command),
            "python": sys.version.split()[0],
            "platform": platform.platform(),
            "machine": platform.machine(),
        },
    }


def rule_files(schedulers: Sequence[str]) -> dict[str, str]:
    """File name -> SHA-256 of every Python file in the schedulers' names, as in ``my_rules.py:my_rule+easy``."""
    files = {Path(head + ".py") for name in schedulers for head, found, _ in [name.partition(".py:")] if found}
    return {file.name: data_catalog.sha256(file) for file in sorted(files)}


@cache
def versions() -> dict[str, str]:
    """Versions of greenbatch and of all libraries that can change a result; libraries not installed are left out."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def source_sha256() -> str:
    """SHA-256 of all source files of the installed package."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for file in sorted([*root.rglob("*.py"), *root.rglob("*.toml")], key=lambda f: f.relative_to(root).as_posix()):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


LATER = {
    "over_limit": "count", "power_cap_w": 0.0, "backfill_depth": 0, "dvfs_level": 0, "predictor": "requested",
    "dependencies": "ignore",
}  # fmt: skip
"""Keys that older records lack, and the value that stands for it."""


def differences(old: Mapping[str, Any], new: Mapping[str, Any], within: str = "") -> dict[str, tuple[Any, Any]]:
    """Dotted key -> (old, new) wherever two nested tables differ, in the order of the keys; a missing key is None.

    Keys that older records lack (`LATER`) do not differ if the new table has the value that stands for that.

    Args:
        old: a table, as read from JSON.
        new: another one.
        within: dotted key of the tables, for those inside others.
    """
    found: dict[str, tuple[Any, Any]] = {}
    for part in dict.fromkeys((*old, *new)):
        key, then, now = f"{within}.{part}" if within else part, old.get(part), new.get(part)
        if isinstance(then, Mapping) and isinstance(now, Mapping):
            found |= differences(then, now, key)
        elif then != now and not (then is None and LATER.get(part) == now):
            found[key] = then, now
    return found
