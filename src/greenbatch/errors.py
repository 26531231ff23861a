"""Errors caused by inputs, as one small hierarchy.

::

    GreenbatchError            one line for the user, exit code 2
    ├── InputError             a file, a flag or a value is not usable
    │   └── DataMissing        a data file that is not on this machine
    └── SupplyExhausted        the simulation ran past the end of the power series

Every message is one line that names the file, the line, the field and the fix, if they apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


class GreenbatchError(Exception):
    """Base class of all errors caused by an input. The command line prints one line and exits with code 2."""

    exit_code = 2

    def _render_traceback_(self) -> list[str]:
        """Show one line in IPython and notebooks too."""
        return [f"{type(self).__name__}: {self}"]


class InputError(GreenbatchError):
    """An input that cannot be used.

    Args:
        problem: what is wrong, in a few words, with the offending value.
        file: the file that contains it.
        line: the 1-based line in that file.
        field: the field, column, key or flag.
        fix: what the user can do.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.problem, self.file, self.line, self.field, self.fix = problem, file, line, field, fix
        place = "" if file is None else str(file) + ("" if line is None else f", line {line}") + ": "
        where = "" if field is None else f"{field}: "
        remedy = "" if fix is None else f" ({fix})"
        super().__init__(_one_line(f"{place}{where}{problem}{remedy}"))


CONTROL = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
"""Control characters, the byte order mark and what turns the direction of text, for the brackets of a regex."""
_CONTROL = re.compile(f"[{CONTROL}]")


def visible(text: str) -> str:
    """A name from a file as a terminal or a table may show it: control characters become escapes."""
    return text if text.isprintable() else _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _one_line(text: str) -> str:
    """The text on one line, with control characters escaped."""
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def did_you_mean(name: str, known: Iterable[str], *, then: str = "", otherwise: str = "") -> str:
    """A question with the known name closest to a wrong one, for the ``fix`` of an `InputError`.

    Args:
        name: the wrong name; case is ignored.
        known: names that exist.
        then: text to append in any case.
        otherwise: text to use instead of the question if no name is close.
    """
    from difflib import get_close_matches

    spelled = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), spelled, n=1, cutoff=0.5)
    return " ".join(filter(None, (f"did you mean {spelled[close[0]]}?" if close else otherwise, then)))


class DataMissing(InputError):
    """A data file that is neither in ``GREENBATCH_DATA`` nor in the user's cache."""


class Interrupted(KeyboardInterrupt):
    """Stopped by the user.

    Args:
        kept: what is kept; may be empty.
        resume: the command line that resumes the work, if there is one.
    """

    def __init__(self, kept: str = "", *, resume: str = "") -> None:
        self.kept, self.resume = f"{kept}; " if kept and resume else kept, resume
        super().__init__(f"{self.kept}resume with: {resume}" if resume else kept)


class SupplyExhausted(GreenbatchError):
    """The simulation ran past the end of the power series, and the site does not repeat it."""
