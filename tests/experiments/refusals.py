"""Commands that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenbatch.cli import main


def refused(words: list[str], capsys: pytest.CaptureFixture[str], empty: Path) -> str:
    """The line that ``greenbatch reproduce`` says instead, which is one; the current folder stays empty."""
    assert main(["reproduce", *words]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert not list(empty.iterdir())
    return line
