"""``greenbatch reproduce``: published tables beside ours."""

from __future__ import annotations

from pathlib import Path

from greenbatch.cli.flags import Switch


def reproduce(protocol: str, *, json: Switch = False, out: Path | None = None, force: Switch = False) -> None:
    """Compute the tables of a paper, cell by cell beside the published figures.

    Parameters
    ----------
    protocol
        gas-marl or rlscheduler.
    json
        Print the cells as JSON instead of a table.
    out
        Folder for cells.json and a report; nothing is written without it.
    force
        Replace an earlier result in the folder.
    """
    raise NotImplementedError(protocol, json, out, force)
