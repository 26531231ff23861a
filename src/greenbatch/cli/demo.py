"""``greenbatch demo``: schedulers compared on the embedded scenario."""

from __future__ import annotations

from pathlib import Path

from greenbatch.cli.flags import Switch


def demo(*, out: Path = Path("greenbatch-demo"), force: Switch = False) -> None:
    """Compare schedulers on the embedded scenario: a table here, a report with pictures in the folder. No data needed.

    Parameters
    ----------
    out
        Folder for the results; refused if it exists and is not empty.
    force
        Replace an earlier result in the folder.
    """
    from greenbatch.cli.compare import run_comparison

    run_comparison(out, "default", force=force)
