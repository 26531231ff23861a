"""What several tests of the engine share."""

from __future__ import annotations

import pytest


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> int:
    """The engine gives up after so few decisions that change nothing; thousands take long as plain Python."""
    patience = 300
    for module in ("step", "program"):
        monkeypatch.setattr(f"greenbatch.engine.{module}.PATIENCE", patience)
    return patience
