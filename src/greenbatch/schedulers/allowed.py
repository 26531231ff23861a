"""Which Python files may run: those that the user named, on the command line or in Python, never those of other files.

A scenario, a preset, a dataset or a model may come from a stranger, and each can name a scheduler ``FILE.py:NAME``.
This is the one place that says whether such a file is loaded.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping

from greenbatch.errors import InputError

_ALLOWED: set[str] = set()
"""Real paths of the files."""


def allow(*named: str | os.PathLike[str]) -> None:
    """Let Python files run, for the rest of this process, whoever names them.

    Args:
        named: files ``FILE.py``.
    """
    _ALLOWED.update(os.path.realpath(each) for each in named)


def allowed() -> tuple[str, ...]:
    """The files that may run, for another process that does the work of this one."""
    return tuple(sorted(_ALLOWED))


def allow_typed(texts: object) -> None:
    """Let those files run that the user typed as schedulers, ``FILE.py:NAME``, alone, in lists or as ``key=value``.

    Args:
        texts: a text, several, or texts by name; what is not a text names no file.
    """
    found = [texts] if isinstance(texts, str) or not isinstance(texts, Iterable) else texts
    for text in found.values() if isinstance(found, Mapping) else found:
        for part in re.split(r"""[,"'\[\]]""", text) if isinstance(text, str) else ():
            head, stop, _ = part.strip().partition(".py:")
            if stop:
                allow(f"{head}.py", f"{head.rpartition('=')[2]}.py")


def check_allowed(file: str) -> None:
    """Refuse a Python file that the user did not name.

    Raises:
        InputError: the file may not run.
    """
    if os.path.realpath(file) not in _ALLOWED:
        fix = f"read it first; if it may run, add --allow {shlex.quote(file)}, in Python schedulers.allow({file!r})"
        raise InputError("is code that another file names, so it is not run", file=file, fix=fix)
