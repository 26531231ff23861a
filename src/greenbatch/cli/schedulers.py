"""``greenbatch schedulers``: list schedulers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from greenbatch.cli.listing import print_entry

if TYPE_CHECKING:
    from greenbatch.engine.settings import Parameter

INDENT = 21


def schedulers() -> None:
    """List policies, backfillings, placements and shipped models; a scheduler is POLICY+BACKFILLING+PLACEMENT."""
    from greenbatch.engine.machine.placement import PLACEMENTS
    from greenbatch.models.find import shipped_models
    from greenbatch.policies.backfillings import BACKFILLINGS
    from greenbatch.schedulers import backfill_parameters, entries, placement_parameters

    _head("Policies: what starts next (a parameter is added as NAME:parameter=value)")
    for name, entry in sorted(entries().items()):
        _print(name, entry.summary)
        _print_parameters(entry.parameters)
    _head("\nBackfillings: which jobs may overtake a job that does not fit")
    for name, meaning in BACKFILLINGS.items():
        _print(name, meaning)
        _print_parameters(backfill_parameters(name))
    _head("\nPlacements, on clusters of nodes: which of the nodes with room a job takes; first if none is given")
    for name, placement in PLACEMENTS.items():
        _print(name, placement.meaning)
        _print_parameters(placement_parameters(name))
    _head("\nShipped models: for scenarios like the one they are named after, no backfilling")
    print(*(f"  {name.replace('/', '@')}" for name in shipped_models()), sep="\n")
    _head("\nYour own: FILE.py:NAME (a rule or policy in a file), PRESET@FOLDER (a model of greenbatch train)")


def _head(text: str) -> None:
    if text.startswith("\n"):
        print()
    print_entry("", text, column=0)


def _print_parameters(parameters: Mapping[str, Parameter]) -> None:
    for name, parameter in parameters.items():
        text = f":{name}={parameter.text(parameter.default)}  {parameter.meaning}; {parameter.span}"
        print_entry("", text, column=INDENT)


def _print(name: str, meaning: str) -> None:
    print_entry(f"  {name}", re.sub(r"[`*]", "", meaning), column=INDENT)
