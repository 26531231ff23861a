"""Tests of the engine run as plain Python, which costs no compilation, unless they are marked ``compiled``."""

from __future__ import annotations

from pathlib import Path

import pytest

WRAPS = "ignore:overflow encountered in scalar (multiply|add):RuntimeWarning"
"""Random numbers are products modulo 2**64, of which NumPy warns where they are not compiled."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them ``plain``."""
    for item in items:
        if item.path.parent == Path(__file__).parent and not item.get_closest_marker("compiled"):
            item.add_marker("plain")
            item.add_marker(pytest.mark.filterwarnings(WRAPS))
