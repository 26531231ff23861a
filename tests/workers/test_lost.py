"""A command that is lost midway on a cluster is repeated: it ends with the same bytes.

One case, for a command takes long to connect to a cluster; ``python tests/lost.py`` tries every pair, and `test_ray`
what a lost node does.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).parents[1] / "lost.py"
LOSSES = {"sweep": "command"}


def test_the_command_is_lost() -> None:
    words = [f"{case}:{way}" for case, way in LOSSES.items()]
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)
    same = [f"{case}: {way} lost: the same bytes" for case, way in LOSSES.items()]
    assert done.stdout.splitlines() == same, done.stderr
