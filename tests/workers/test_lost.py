"""What is lost midway on a cluster is done again: a sweep, a search and trainings end with the same bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "lost.py"
WAYS = ("on two nodes", "a process killed", "a node killed", "the command killed")


def test_a_process_a_node_and_the_command_are_lost() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "sweep", "search", "trainings"], capture_output=True, text=True, check=False
    )
    same = ", ".join(f"{way}: the same bytes" for way in WAYS)
    assert done.stdout.splitlines() == [f"{name}: {same}" for name in ("sweep", "search", "trainings")], done.stderr
