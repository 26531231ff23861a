"""A browser for the tests of pages, and pages without pictures for tests that read none."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from chromium_pipe import Browser, browser, find_chromium

from greenbatch.experiments.reports import drawing


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    executable = find_chromium()
    if executable is None:
        message = "no Chromium on this machine"
        if os.environ.get("GREENBATCH_REQUIRE_DATA") == "1":
            pytest.fail(message)
        pytest.skip(message)
    with browser(executable, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made but not drawn, which takes longer than a small study."""
    monkeypatch.setattr(drawing, "_svg", lambda *_: "<svg></svg>")
