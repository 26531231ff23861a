"""``greenbatch schedulers``: who can decide."""

from __future__ import annotations

import re
import textwrap

INDENT = 21


def schedulers() -> None:
    """List policies, backfillings and the models that come with greenbatch; a scheduler is POLICY+BACKFILLING."""
    from greenbatch.engine.program import BACKFILL_MEANINGS
    from greenbatch.learning.learned import shipped_models
    from greenbatch.policies import entries

    print("Policies: what starts next")
    for name, entry in sorted(entries().items()):
        _print(":".join([name, *(f"{key}={value:g}" for key, value in entry.parameters.items())]), entry.summary)
    print("\nBackfillings: what may go ahead of a job that does not fit")
    for name, meaning in BACKFILL_MEANINGS.items():
        _print(name, meaning)
    print("\nModels that come with greenbatch: for scenarios like the one they are named after, no backfilling")
    print(*(f"  {name.replace('/', '@')}" for name in shipped_models()), sep="\n")
    print("\nYour own: FILE.py:NAME (a rule or policy in a file), PRESET@FOLDER (a model of greenbatch train)")


def _print(name: str, meaning: str) -> None:
    lines = textwrap.wrap(re.sub(r"[`*]", "", meaning), 79, break_long_words=False) or [""]
    head = f"  {name}"
    print(f"{head:{INDENT}}{lines.pop(0)}".rstrip() if len(head) < INDENT else head)
    for line in lines:
        print(" " * INDENT + line)
