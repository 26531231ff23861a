"""The documentation is built with the settings of ``make docs``, on one page; a warning is an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    # one page is read, resolved and written as all are, without navigation and search index anew for each
    options = ["-b", "singlehtml", "-W", "--keep-going", "-q"]
    command = [sys.executable, "-m", "sphinx", *options, "docs", str(tmp_path / "html")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    assert (tmp_path / "html" / "index.html").exists()
