"""Where tests find real data, what happens when it is not there, and Ctrl-C for tests that run in the background.

Files that take long come first, so that no process is left with one of them at the end.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

LONG = (
    "test_kills.py", "test_lost.py", "test_import_limit.py", "test_driven_nodes.py", "test_charge.py", "test_fuzz.py",
    "test_examples.py", "test_training_loop.py", "test_cost_aware.py", "test_reproduce.py", "test_published_genetic.py",
    "test_whatif.py",
)  # fmt: skip
"""Names of the files that take a minute or more, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long; the others stay in order, as do the tests of each file."""
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONG)))


def pytest_sessionstart() -> None:
    """Hear Ctrl-C, here and in child processes, although a shell ignores it for jobs in the background."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _finder(variable: str, default: str) -> Callable[[str], Path]:
    root = Path(os.environ.get(variable, default)).resolve()

    def find(name: str) -> Path:
        path = root / name
        if not path.exists():
            message = f"{name} is not under {variable} ({root})"
            if os.environ.get("GREENBATCH_REQUIRE_DATA") == "1":
                pytest.fail(message)
            pytest.skip(message)
        return path

    return find


@pytest.fixture(scope="session")
def greenbatch_data() -> Callable[[str], Path]:
    """Find a real data file, e.g. ``greenbatch_data("swf/Jann.swf.gz")``."""
    return _finder("GREENBATCH_DATA", "../shared/data")


@pytest.fixture(scope="session")
def greenbatch_reference() -> Callable[[str], Path]:
    """Find a golden result, e.g. ``greenbatch_reference("gas-marl/golden.csv")``."""
    return _finder("GREENBATCH_REFERENCE", "../shared/reference")
