"""TOML files: reading with the line of every key, so that errors can name it, and writing with comments."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.errors import InputError, visible
from greenbatch.files import stored_bytes

if TYPE_CHECKING:
    from tomlkit.container import Container
    from tomlkit.items import Table

Place = tuple[str | int, ...]
"""Path of a value from the top: keys, and positions in arrays of tables."""

_KEY = re.compile(r"""\s*([A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')\s*""")
_TOKEN = re.compile(r"""#|\"{3}|'{3}|"(?:[^"\\]|\\.)*"|'[^']*'|[\[\]{}]""")
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_LARGEST_BYTES = 1_000_000


def read_toml(file: Path) -> tuple[dict[str, Any], dict[Place, int]]:
    """Content of a TOML file, and the line of every table and key.

    Raises:
        InputError: the file cannot be read, or is not TOML; names the line.
    """
    try:
        raw = stored_bytes(file, largest=_LARGEST_BYTES)
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(problem, file=file, fix="check the path; see: greenbatch scenario list") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError("is not UTF-8 text", file=file, line=line, fix="save it as UTF-8") from None
    try:
        content = tomllib.loads(text)
    except RecursionError:
        raise InputError("is nested too deeply", file=file, fix="a scenario nests tables at most two deep") from None
    except ValueError as error:  # TOMLDecodeError, or a number too long for Python
        at = _AT.search(str(error))
        where = int(at[1]) if at and at[1] else None
        other = "give a scenario or a site in TOML; jobs are given with --trace, machines with --cluster"
        fix = "correct it" if file.suffix == ".toml" else other
        raise InputError(f"is not TOML: {_AT.sub('', str(error))}", file=file, line=where, fix=fix) from None
    lines = key_lines(text)
    for place in _unprintable(content):
        fix = "leave out line breaks and other control characters"
        field = ".".join(map(visible, map(str, place)))
        raise InputError("has control characters", file=file, line=line_of(place, lines), field=field, fix=fix)
    return content, lines


def _unprintable(value: Any, place: Place = ()) -> Iterator[Place]:
    """Places of keys and texts with control characters; texts may have several lines."""
    text = value.replace("\n", " ").replace("\t", " ") if isinstance(value, str) else ""
    if visible(text) != text or visible(key := "".join(map(str, place[-1:]))) != key:
        yield place
    for part, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _unprintable(each, (*place, part))


def key_lines(text: str) -> dict[Place, int]:
    """1-based line of every table header and every key at the beginning of a line, in a valid TOML text."""
    lines: dict[Place, int] = {}
    table: Place = ()
    counts: dict[Place, int] = {}
    depth, fence = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        rest = line
        if not fence and depth == 0:
            stripped = line.strip()
            if stripped.startswith("["):
                table = _header(stripped, counts)
                lines.setdefault(table, number)
                continue
            keys, rest = _keys(line)
            if keys:
                for upto in range(1, len(keys) + 1):
                    lines.setdefault((*table, *keys[:upto]), number)
        depth, fence = _after(rest, depth, fence)
    return lines


def line_of(place: Place, lines: Mapping[Place, int]) -> int | None:
    """Line of a place, or of the nearest table or key that contains it."""
    for upto in range(len(place), 0, -1):
        if place[:upto] in lines:
            return lines[place[:upto]]
    return None


def overridden(
    tables: Mapping[str, Any], overrides: Mapping[str, Any], *, file: str | Path | None = None
) -> dict[str, Any]:
    """A copy of nested tables with the values at dotted keys replaced, e.g. ``{"cluster.processors": 512}``.

    A value replaces a whole table or key; None removes the key; missing tables are added.

    Raises:
        InputError: a key lies within something that is not a table.
    """
    made = copy.deepcopy(dict(tables))
    for dotted, value in overrides.items():
        *place, last = dotted.split(".")
        table: Any = made
        for key in place:
            table = table.setdefault(key, {}) if isinstance(table, dict) else None
        if not isinstance(table, dict):
            problem, fix = "is not a key of a table", "correct the override"
            raise InputError(problem, file=file, field=dotted, fix=fix)
        if value is None:
            table.pop(last, None)
        else:
            table[last] = value
    return made


def write_toml(content: Mapping[str, Any], comment: Callable[[Place], str]) -> str:
    """Nested tables as TOML; ``comment(place)`` is added after every value that is not a table."""
    import tomlkit

    return tomlkit.dumps(_filled(tomlkit.document(), content, (), comment)).strip() + "\n"


def _filled(table: Container | Table, content: Mapping[str, Any], place: Place, comment: Callable[[Place], str]) -> Any:
    """Add values, and then tables, to a tomlkit table, and return it."""
    import tomlkit

    for key, value in sorted(content.items(), key=lambda pair: _is_table(pair[1])):
        here = (*place, key)
        if isinstance(value, Mapping):
            table.add(key, _filled(tomlkit.table(), value, here, comment))
        elif _is_table(value):
            inner = (_filled(tomlkit.table(), each, (*here, k), comment) for k, each in enumerate(value))
            table.add(key, tomlkit.aot())
            for each in inner:
                table[key].append(each)
        else:
            item = tomlkit.item(value)
            if note := comment(here):
                item.comment(note)
                item.trivia.comment_ws = "  "
            table.add(key, item)
    return table


def _header(stripped: str, counts: dict[Place, int]) -> Place:
    """The place that a header line opens; items of arrays of tables are numbered."""
    many = stripped.startswith("[[")
    keys, _ = _keys(stripped.lstrip("["), end="]")
    place: Place = ()
    for key in keys:
        place = (*place, key)
        if place in counts and (len(place) < len(keys) or not many):
            place = (*place, counts[place])
    if many:
        counts[place] = counts.get(place, -1) + 1
        place = (*place, counts[place])
    return place


def _keys(line: str, *, end: str = "=") -> tuple[list[str], str]:
    """The dotted key at the beginning of a line, and the rest of the line; no keys if there is none."""
    keys: list[str] = []
    at = 0
    while match := _KEY.match(line, at):
        key, at = match[1], match.end()
        keys.append(key[1:-1] if key[0] in "\"'" else key)
        if line[at : at + 1] == end:
            return keys, line[at + 1 :]
        if line[at : at + 1] != ".":
            break
        at += 1
    return [], line


def _after(text: str, depth: int, fence: str) -> tuple[int, str]:
    """Bracket depth and open multi-line quote after a piece of a line."""
    at = 0
    while at < len(text):
        if fence:
            closed = text.find(fence, at)
            if closed < 0:
                return depth, fence
            at, fence = closed + 3, ""
            continue
        token = _TOKEN.search(text, at)
        if token is None or token[0] == "#":
            break
        at = token.end()
        if token[0] in ('"""', "'''"):
            fence = token[0]
        elif token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
    return depth, fence


def _is_table(value: object) -> bool:
    listed = isinstance(value, (list, tuple)) and value
    return isinstance(value, Mapping) or bool(listed and all(isinstance(item, Mapping) for item in listed))
