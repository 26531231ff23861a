"""Command lines are tested with a compiled engine: on a new machine it tells, once, that it compiles."""

from __future__ import annotations

import pytest

from greenbatch.engine.loop import part


@pytest.fixture(scope="session", autouse=True)
def _compiled_engine() -> None:
    for name in ("priority", "no-rule", "conservative", "scan", "scan-published", "plan"):
        part(name)
