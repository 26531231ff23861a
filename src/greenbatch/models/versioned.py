"""JSON files that carry the version of their layout: one type per file, validated on reading, with its upgrades.

Files of earlier layouts are converted to the current one; later ones are refused. Unknown keys are refused too, so a
new key requires a new version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import ValidationError

from greenbatch.errors import InputError
from greenbatch.scenarios.check import problems
from greenbatch.scenarios.section import Section

Table = dict[str, Any]


class Versioned(Section):
    """A file in its current layout, with the version under the key ``format``."""

    upgrades: ClassVar[tuple[Callable[[Table], Table], ...]] = ()
    """Conversions to the next layout, from layout 1 on."""
    first_has_version: ClassVar[bool] = True
    """Whether files of layout 1 state their version."""


Record = TypeVar("Record", bound=Versioned)


def read_table(content: bytes) -> Table | None:
    """Parse a JSON object of finite numbers; None if the content is anything else."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        made = json.loads(content, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    return made if isinstance(made, dict) else None


def record_of(kind: type[Record], content: bytes, *, file: Path, what: str, fix: str) -> Record:
    """Parse a record in the current or an earlier layout.

    Args:
        kind: its type.
        content: content of the file.
        file: name of the file, for messages.
        what: description of the record, for messages.
        fix: remedy if it is damaged, for messages.

    Raises:
        InputError: it is damaged or in a later layout; names the field.
    """
    raw = read_table(content)
    if raw is None:
        raise InputError(f"is damaged: it is not {what}", file=file, fix=fix)
    newest = len(kind.upgrades) + 1
    layout = raw.get("format", None if kind.first_has_version else 1)
    if layout is None:
        raise InputError(f"is damaged: it is not {what}", file=file, fix=fix)
    if type(layout) is not int or not 1 <= layout <= newest:
        known = " and ".join(str(each) for each in range(1, newest + 1))
        problem = f"has layout {str(layout)[:20]}, this version of greenbatch reads {known}"
        raise InputError(problem, file=file, fix="use the version that wrote it, or train again")
    for upgrade in kind.upgrades[layout - 1 :]:
        raw = upgrade(raw)
    return checked(kind, raw, file=file, fix=fix)


Schema = TypeVar("Schema", bound=Section)


def checked(kind: type[Schema], raw: Mapping[str, Any], *, file: Path, fix: str, line: int | None = None) -> Schema:
    """Validate a table against its type.

    Raises:
        InputError: names the first field that is missing, unknown, of the wrong type or out of range.
    """
    try:
        return kind.model_validate(raw)
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise InputError("is damaged: it is nested too deeply", file=file, fix=fix) from None
        first = problems(error, raw, kind, file=file, lines={})[0]
    known = first.fix is not None and first.problem not in {"is missing", "unknown key"}
    remedy = f"{first.fix}; or {fix}" if known else fix
    raise InputError(first.problem, file=file, line=line, field=first.field, fix=remedy)
