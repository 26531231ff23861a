"""A signal of each kind over commands that share out windows, and trainings; ``make kills`` tries forty over four."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("signals.py")
VERBS = ("whatif", "seeds")
SEED = "61"
"""Draws SIGTERM, SIGHUP, SIGINT and SIGKILL: to the command alone and to all processes, early and late."""


def test_no_process_is_left_and_the_bytes_are_the_same() -> None:
    words = [*VERBS, "--instants", "4", "--seed", SEED]
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)
    told = "".join(rf"{verb}: [12] of 2 signals, nothing left, the same bytes\n" for verb in VERBS)
    assert re.fullmatch(told, done.stdout), done.stdout + done.stderr
