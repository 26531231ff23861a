"""Killed at any step, every command leaves the old or the new result, and its next run succeeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).with_name("kills.py")
CASES = ("simulate --force, no exchange", "compare --force", "train --resume", "export --force")
"""A folder, one with pieces, a training and a file, replaced or resumed; ``make kills`` tries all commands."""


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    """Result of every case, in a process of its own, which forks before any thread has begun."""
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # each killed child would load compiled code anew
    done = subprocess.run([sys.executable, str(SCRIPT), *CASES], capture_output=True, text=True, check=False, env=plain)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    return {line["case"]: line for line in lines}


@pytest.mark.parametrize("case", CASES)
def test_a_kill_leaves_the_old_or_the_new(found: dict[str, dict[str, Any]], case: str) -> None:
    assert found[case]["problems"] == []
    assert found[case]["kills"] >= 4
