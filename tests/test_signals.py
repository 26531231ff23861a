"""Twelve signals at random instants over compare, tune, train --seeds and whatif; ``make kills`` tries forty."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("signals.py")


def test_no_process_is_left_and_the_bytes_are_the_same() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--instants", "12"], capture_output=True, text=True, check=False
    )
    verbs = ("compare", "tune", "seeds", "whatif")
    told = "".join(rf"{verb}: [1-3] of 3 signals, nothing left, the same bytes\n" for verb in verbs)
    assert re.fullmatch(told, done.stdout), done.stdout + done.stderr
