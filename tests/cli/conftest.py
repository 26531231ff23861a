"""Command lines are tested with a compiled engine: on a new machine it reports once that it compiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from small import SMALL

from greenbatch.engine.entry_points import part


@pytest.fixture(scope="session", autouse=True)
def _compiled_engine() -> None:
    for name in ("priority", "no-rule", "conservative", "advance", "place"):
        part(name)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, entered, with the scenario small.toml."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path
