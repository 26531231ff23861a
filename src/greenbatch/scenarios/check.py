"""Check raw TOML against a schema such as `ScenarioFile`, and report all problems at once, with lines and fixes.

`problems` does the same for other schemas, such as presets and their training settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from greenbatch.errors import InputError, did_you_mean
from greenbatch.scenarios.toml import Place, line_of

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

_MOST_SHOWN = 5

_FIXES = {
    "missing": "add it",
    "string_type": 'give a string in quotes: "..."',
    "int_type": "give a whole number, without quotes",
    "float_type": "give a number, without quotes",
    "bool_type": "give true or false",
    "tuple_type": "give an array: [...]",
    "dict_type": "make it a table",
    "model_type": "make it a table",
    "model_attributes_type": "make it a table",
    "finite_number": "give a finite number",
    "string_unicode": "rename the file, or work in a UTF-8 locale",
    "string_too_short": "give a string that is not empty",
    "too_short": "give at least one",
}
"""Type of a pydantic error -> what the user can do."""


Checked = TypeVar("Checked", bound="BaseModel")


def check(raw: Mapping[str, Any], schema: type[Checked], *, file: str | Path, lines: Mapping[Place, int]) -> Checked:
    """Check the content of a file and fill in defaults.

    Args:
        raw: content of the file.
        schema: `ScenarioFile`, or the schema of a part of it that stands in a file of its own.
        file: its name, for messages.
        lines: line of every key, from `read_toml`.

    Raises:
        InputError: a key is missing, unknown, of the wrong type or out of range. One message lists all problems.
    """
    from pydantic import ValidationError

    try:
        return schema.model_validate(raw)
    except ValidationError as error:
        found = problems(error, raw, schema, file=file, lines=lines)
    raise found[0] if len(found) == 1 else _together(found, file)


def problems(
    refused: ValidationError,
    raw: Mapping[str, Any],
    schema: type[BaseModel],
    *,
    file: str | Path | None,
    lines: Mapping[Place, int],
    within: Place = (),
) -> list[InputError]:
    """One `InputError` per invalid place, in order of lines.

    Args:
        refused: pydantic's error.
        raw: the content that was checked.
        schema: the schema it was checked against.
        file: name of the file, for messages.
        lines: line of every key, from `read_toml`.
        within: place of the content in the file.
    """
    by_place: dict[Place, list[ErrorDetails]] = {}
    for error in refused.errors(include_url=False):
        by_place.setdefault(_place(error["loc"], raw, error["type"] == "missing"), []).append(error)
    found = []
    for place, alternatives in by_place.items():
        # Pydantic does not count invalid items.
        inside = any(other[: len(place)] == place and other != place for other in by_place)
        if inside and alternatives[0]["type"] == "too_short":
            continue
        made = [_input_error(error, place, schema, file, lines, within) for error in alternatives]
        fixes = dict.fromkeys(error.fix for error in made if error.fix)
        made[0] = InputError(
            made[0].problem, file=file, line=made[0].line, field=made[0].field, fix=", or ".join(fixes) or None
        )
        found.append(made[0])
    return sorted(found, key=lambda error: error.line or 0)


def _input_error(
    error: ErrorDetails,
    place: Place,
    schema: type[BaseModel],
    file: str | Path | None,
    lines: Mapping[Place, int],
    within: Place,
) -> InputError:
    kind, context = error["type"], error.get("ctx", {})
    known_at, place = place[:-1], within + place
    field = _dotted(place)
    line = line_of(place, lines)
    if kind == "extra_forbidden":
        problem, fix = _unknown(place, _known_keys(known_at, schema))
        return InputError(problem, file=file, line=line, field=field, fix=fix)
    if kind == "missing":
        return InputError("is missing", file=file, line=line, field=field, fix="add it")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tag = str(context["discriminator"]).strip("'")
        place, field = (*place, tag), f"{field}.{tag}"
        line = line_of(place, lines)
        if kind == "union_tag_not_found":
            return InputError(
                "is missing", file=file, line=line, field=field, fix="add it; see: greenbatch scenario schema"
            )
        fix = f"use one of {context['expected_tags']}"
        return InputError(f"is {_short(context['tag'])}", file=file, line=line, field=field, fix=fix)
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if kind == "value_error":
        problem, _, fix = message.partition("; ")
        return InputError(problem, file=file, line=line, field=field, fix=fix or None)
    fix = _FIXES.get(kind, f"it must be {message[:1].lower()}{message[1:]}")
    if kind == "string_pattern_mismatch":
        control = "x00" in context["pattern"]  # the pattern of all strings in a scenario
        fix = "leave out line breaks and other control characters" if control else f"it must match {context['pattern']}"
    return InputError(f"is {_short(error['input'])}", file=file, line=line, field=field, fix=fix)


def _unknown(place: Place, known: Sequence[str]) -> tuple[str, str]:
    """Problem and fix of a key that a table does not have; ``known`` are those of its other kinds too."""
    name, otherwise = str(place[-1]), "use one of " + ", ".join(known) if known else "remove it"
    if name in known:
        return f"is no key of this kind of {_dotted(place[:-1])}", "remove it, or choose another kind"
    return "unknown key", did_you_mean(name, known, otherwise=otherwise)


def _together(found: Sequence[InputError], file: str | Path) -> InputError:
    shown = [
        (f"line {e.line}: " if e.line else "") + f"{e.field}: {e.problem}" + (f" ({e.fix})" if e.fix else "")
        for e in found[:_MOST_SHOWN]
    ]
    more = [f"and {len(found) - _MOST_SHOWN} more"] if len(found) > _MOST_SHOWN else []
    return InputError(
        f"{len(found)} problems: " + "; ".join([*shown, *more]), file=file, fix="see: greenbatch scenario schema"
    )


def _place(loc: Sequence[str | int], raw: Any, absent: bool) -> Place:
    """Pydantic's path without the names of union members, which do not occur in the file."""
    place: list[str | int] = []
    for at, step in enumerate(loc):
        inside = (isinstance(raw, Mapping) and step in raw) or (
            isinstance(raw, (list, tuple)) and isinstance(step, int) and step < len(raw)
        )
        if inside:
            raw = raw[step]
            place.append(step)
        elif absent and at == len(loc) - 1:
            place.append(step)
    return tuple(place)


def _dotted(place: Place) -> str:
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text or "scenario"


def _known_keys(place: Place, root: type[BaseModel]) -> list[str]:
    """Keys that a schema allows at a place, of all kinds if there are several."""
    schema = _schema(root)
    nodes = [schema]
    for step in place:
        nodes = [inner for node in nodes for inner in _inside(node, step, schema)]
    return list(dict.fromkeys(key for node in nodes for key in node.get("properties", {})))


@cache
def _schema(root: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema without descriptions, for which the source would be read."""
    from pydantic.json_schema import GenerateJsonSchema

    return root.model_json_schema(schema_generator=GenerateJsonSchema)


def _inside(node: Mapping[str, Any], step: str | int, schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    inner = node.get("items") if isinstance(step, int) else node.get("properties", {}).get(step)
    if inner is None:
        inner = next(iter(node.get("patternProperties", {}).values()), None)
    found: list[dict[str, Any]] = []
    stack = [inner] if inner else []
    while stack:
        option = stack.pop(0)
        if "$ref" in option:
            stack.append(schema["$defs"][option["$ref"].rpartition("/")[2]])
            continue
        stack += [*option.get("anyOf", ()), *option.get("oneOf", ()), *option.get("allOf", ())]
        found.append(option)
    return found


def _short(value: object) -> str:
    """A value for a message, as TOML writes it, shortened."""
    try:
        text = str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, date) else repr(value)
    except (ValueError, RecursionError):
        text = "a value too long to show"
    return text if len(text) <= 60 else text[:57] + "..."
