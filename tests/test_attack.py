"""Some of the attacks of ``attack.py``, one of each kind and quick ones; ``make kills`` tries all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import attack

SCRIPT = Path(__file__).with_name("attack.py")
CHOSEN = (
    "train, no file above 60000 bytes", "simulate, no home", "compare, queue.py in the current folder",
    "simulate, the hidden folder/new is a link", "train, a preset names code", "whatif, jobs are names",
)  # fmt: skip


def test_attacks_of_every_kind_fail() -> None:
    assert set(CHOSEN) <= set(attack.attacks())
    done = subprocess.run([sys.executable, str(SCRIPT), *CHOSEN], capture_output=True, text=True, check=False)
    assert f"{len(CHOSEN)} attacks, 0 succeeded" in done.stdout, done.stdout + done.stderr
