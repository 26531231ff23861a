"""A browser for the tests of pages."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from chromium_pipe import Browser, browser, find_chromium


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
