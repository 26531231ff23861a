"""Which tests run as plain Python, where they find real data, and Ctrl-C for tests that run in the background."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from cpu_seconds import CpuSeconds


def pytest_configure(config: pytest.Config) -> None:
    """Print where CPU time goes."""
    config.pluginmanager.register(CpuSeconds())


PLAIN = {"cli", "datasets", "engine"}
"""Folders whose tests run as plain Python, which costs no compilation, unless they are marked ``compiled``."""
WRAPS = "ignore:overflow encountered in scalar (multiply|add):RuntimeWarning"
"""Random numbers are products modulo 2**64, of which NumPy warns where they are not compiled."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is plain, and begin with what takes long, so that no process is left with it at the end."""
    for item in items:
        if item.path.parent.name in PLAIN and not item.get_closest_marker("compiled"):
            item.add_marker("plain")
        if item.get_closest_marker("plain"):
            item.add_marker(pytest.mark.filterwarnings(WRAPS))
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_sessionstart() -> None:
    """Hear Ctrl-C, here and in child processes, although a shell ignores it for jobs in the background."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> int:
    """The engine gives up after so few decisions that change nothing; thousands take long as plain Python."""
    patience = 300
    monkeypatch.setattr("greenbatch.engine.state.PATIENCE", patience)
    return patience


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
