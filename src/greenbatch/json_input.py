"""JSON files written by others: values that know their place, so that an error names the file and the path."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any

from greenbatch.errors import InputError, did_you_mean
from greenbatch.files import decode, read_bytes

REQUIRED: Any = object()
"""Default of a field that must be there."""
_KINDS: Mapping[type, str] = {
    dict: "an object", list: "an array", str: "a text", bool: "true or false", int: "a number", float: "a number",
    type(None): "null",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Json:
    """A value of a JSON file, its path in the file, such as ``jobs[3].res``, and the file."""

    value: Any
    path: str
    file: Path

    def refuse(self, problem: str, fix: str) -> InputError:
        """An error about this value, to be raised."""
        return InputError(problem, file=self.file, field=self.path or None, fix=fix)

    def table(self) -> dict[str, Json]:
        """The fields of an object.

        Raises:
            InputError: it is not an object.
        """
        self._must_be(dict)
        dot = "." if self.path else ""
        return {key: Json(value, f"{self.path}{dot}{key}", self.file) for key, value in self.value.items()}

    def rows(self) -> list[Json]:
        """The items of an array that is not empty.

        Raises:
            InputError: it is not an array, or empty.
        """
        self._must_be(list)
        if not self.value:
            raise self.refuse("is empty", "list at least one")
        return [Json(value, f"{self.path}[{k}]", self.file) for k, value in enumerate(self.value)]

    def field(self, key: str, default: Any = REQUIRED) -> Json:
        """A field of an object, or the default.

        Raises:
            InputError: it is not an object, or the field is missing and has no default.
        """
        fields = self.table()
        if key in fields:
            return fields[key]
        missing = Json(default, f"{self.path}{'.' if self.path else ''}{key}", self.file)
        if default is REQUIRED:
            raise missing.refuse("is missing", "add it")
        return missing

    def choice(self, known: Mapping[str, Json], what: str) -> Json:
        """The entry that this text names.

        Raises:
            InputError: it is not a text, or names none of them.
        """
        name = self.text()
        if name not in known:
            fix = did_you_mean(name, known, otherwise="use one of " + ", ".join(sorted(known)[:10]) or "define it")
            raise self.refuse(f"there is no {what} {name!r:.60}", fix)
        return known[name]

    def text(self) -> str:
        """A text that is not blank and can be printed.

        Raises:
            InputError: it is not one.
        """
        self._must_be(str)
        if not self.value.strip() or not self.value.isprintable():
            raise self.refuse(f"is {self._short()}", "give a text that is not blank, without control characters")
        return str(self.value)

    def number(self, lowest: float = -inf, highest: float = 1e18, *, above: float = -inf) -> float:
        """A finite number in a range.

        Raises:
            InputError: it is not a number, not finite, or outside ``lowest`` to ``highest``, or not above ``above``.
        """
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise self.refuse(f"is {self._short()}", "give a number, without quotes")
        if not (isfinite(self.value) and lowest <= self.value <= highest and self.value > above):
            bounds = [f"> {above:g}"] * (above > -inf) + [f">= {lowest:g}"] * (lowest > -inf) + [f"<= {highest:g}"]
            raise self.refuse(f"is {self._short()}", f"it must be finite and {' and '.join(bounds)}")
        return float(self.value)

    def whole(self, lowest: int, highest: int = 10_000_000) -> int:
        """A whole number in a range; 4.0 is one.

        Raises:
            InputError: it is not one.
        """
        number = self.number(lowest, highest)
        if number != int(number):
            raise self.refuse(f"is {self._short()}", "give a whole number")
        return int(number)

    def _must_be(self, kind: type) -> None:
        if not isinstance(self.value, kind):
            raise self.refuse(f"is {self._short()}", f"give {_KINDS[kind]}")

    def _short(self) -> str:
        text = json.dumps(self.value) if not isinstance(self.value, (dict, list)) else _KINDS[type(self.value)]
        return text if len(text) <= 40 else text[:37] + "..."


def read_json(path: Path) -> tuple[Json, str]:
    """The content of a JSON file, plain or gzip, and the SHA-256 of the file.

    Raises:
        InputError: the file cannot be read, or is not JSON; the message names the line.
    """
    content, sha256 = read_bytes(path)
    try:
        return Json(json.loads(decode(content, path)), "", path), sha256
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", file=path, line=error.lineno, fix="correct it") from None
    except RecursionError:
        raise InputError("is nested too deeply", file=path, fix="give a platform or workload file") from None
    except ValueError:  # a whole number with more digits than Python converts
        raise InputError("has a number that is too long", file=path, fix="correct it") from None


def looks_like_json(content: bytes) -> bool:
    """Whether a file begins like a JSON object or array of objects."""
    start = content[:1000].removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith((b"{", b'["', b"[{"))


def distinct(items: Iterable[Json]) -> None:
    """Check that texts differ.

    Raises:
        InputError: two are the same.
    """
    seen: dict[str, str] = {}
    for each in items:
        name = each.text()
        if name in seen:
            raise each.refuse(f"{name!r:.60} occurs twice", f"the first is {seen[name]}; name each once")
        seen[name] = each.path
