"""``greenbatch data``: the real data files, where they are, and how to get them."""

from __future__ import annotations

import sys

import cyclopts

from greenbatch.cli.flags import Switch
from greenbatch.cli.listing import print_entry

INDENT = 4
data = cyclopts.App(name="data", help="List, download and locate data files.")


@data.command(name="list")
def list_() -> None:
    """Print every known data file, whether it is on this machine, which scenarios need it, and its terms."""
    from greenbatch import data_catalog
    from greenbatch.scenarios.scenario import datasets_of, shipped_names

    needed: dict[str, list[str]] = {}
    for scenario in shipped_names():
        for name in datasets_of(scenario):
            needed.setdefault(name, []).append(scenario)
    for name, entry in data_catalog.catalog().items():
        here = "absent" if data_catalog.absent([name]) else "here"
        print(f"{name}  [{here}]")
        by_hand = "" if entry.urls or entry.made_from else " (to be downloaded by hand)"
        users = f"for {', '.join(needed[name])}" if name in needed else ""
        for line in filter(None, (entry.what, users, f"{entry.origin}{by_hand}", f"terms: {entry.terms}")):
            print_entry("", line, column=INDENT)


@data.command
def fetch(*names: str, force: Switch = False) -> None:
    """Download data files into the user's cache, each checked against its checksum.

    Parameters
    ----------
    names
        Names as `greenbatch data list` prints them.
    force
        Download files again even if they exist.
    """
    from greenbatch import data_catalog
    from greenbatch.errors import InputError

    if not names:
        raise InputError("no name given", field="data fetch", fix="see: greenbatch data list")
    for name in names:
        if sys.stderr.isatty():
            print(f"{name} ...", file=sys.stderr)
        print(data_catalog.fetch(name, force=force))


@data.command
def path(name: str | None = None) -> None:
    """Print where a data file is, or the folders that are searched.

    Parameters
    ----------
    name
        Name as `greenbatch data list` prints it.
    """
    from greenbatch import data_catalog

    if name is None:
        for folder in data_catalog.folders():
            print(folder)
    else:
        print(data_catalog.find(name))
