"""``greenbatch demo``: compare schedulers on the embedded scenario."""

from __future__ import annotations

from pathlib import Path

from greenbatch.cli.flags import Positive, Switch


def demo(
    *, out: Path = Path("greenbatch-demo"), workers: Positive = None, resume: Switch = False, force: Switch = False
) -> None:
    """Compare schedulers on the embedded scenario: a table here, a report with pictures in the folder. No data needed.

    Parameters
    ----------
    out
        Folder for the results; refused if it exists and is not empty.
    workers
        Processes that simulate windows; by default one per processor if the work is long. Results do not change.
    resume
        Resume the interrupted demo in the folder.
    force
        Replace an earlier result in the folder.
    """
    from greenbatch.cli.compare import check_flags, run_comparison

    check_flags(out, resume=resume, force=force)
    run_comparison(out, "default", workers=workers, resume=resume, force=force)
