"""Compiled code does what plain Python does, to the last bit, for each kind of engine that is compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from digests import digest
from kinds import KINDS

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def plain() -> dict[str, list[str]]:
    """The digests of plain Python."""
    script, env = Path(__file__).with_name("kinds.py"), {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_code_gives_the_bytes_of_plain_python(kind: str, plain: dict[str, list[str]]) -> None:
    assert [digest(outcome) for outcome in KINDS[kind]()] == plain[kind]
