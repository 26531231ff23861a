"""ASCII replacements for characters that the terminal's encoding lacks."""

# ruff: noqa: RUF001

from __future__ import annotations

import codecs
import unicodedata

_TEXTS = {
    "×": "x", "–": "-", "—": "-", "−": "-", "…": "...", "·": "*", "→": "->", "≥": ">=", "≤": "<=", "≈": "~", "±": "+-",
    "²": "^2", "³": "^3", "§": "section ", "°": "deg", "µ": "u", "ß": "ss",
}  # fmt: skip


def nearest(character: str) -> str:
    """ASCII text for a character: ``x`` for ``×``, ``-`` and ``|`` for lines, ``e`` for ``é``, an escape for others."""
    if character in _TEXTS:
        return _TEXTS[character]
    if "\u2500" <= character <= "\u257f":  # lines
        name = unicodedata.name(character)
        straight = " AND " not in name
        return "-" if straight and "HORIZONTAL" in name else "|" if straight and "VERTICAL" in name else "+"
    base = "".join(each for each in unicodedata.normalize("NFKD", character) if not unicodedata.combining(each))
    return base if base.isascii() else character.encode("ascii", "backslashreplace").decode()


def register() -> str:
    """Register `nearest` as an error handler of codecs and return its name."""

    def encode(error: UnicodeError) -> tuple[str | bytes, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        first = error.object[error.start]
        if "\udc80" <= first <= "\udcff":  # an undecodable byte of a file name: keep it
            return first.encode("ascii", "surrogateescape"), error.start + 1
        return nearest(first), error.start + 1

    codecs.register_error("greenbatch.ascii", encode)
    return "greenbatch.ascii"
