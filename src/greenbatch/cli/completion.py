"""``greenbatch --install-completion``: shell completion of commands and flags."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from greenbatch.errors import InputError

Shell = Literal["bash", "zsh", "fish"]

_STARTUP: dict[str, str] = {"bash": "~/.bashrc", "zsh": "~/.zshrc"}
"""Start-up files that get a line; fish requires none."""


def install_completion(shell: Shell | None = None) -> None:
    """Install shell completion; for bash and zsh, load it from ~/.bashrc or ~/.zshrc.

    Parameters
    ----------
    shell
        The shell; by default the one that runs this command.
    """
    from greenbatch.cli.app import build

    name = shell or _running_shell()
    try:
        script = build().install_completion(shell=name)
    except (OSError, RuntimeError) as error:  # without a home
        problem = f"cannot be written: {getattr(error, 'strerror', None) or error}"
        file = getattr(error, "filename", None)
        raise InputError(problem, file=file, field="--install-completion", fix="make it writable") from None
    loaded = f", loaded by {_STARTUP[name]}" if name in _STARTUP else ""
    print(f"written to {_short(script)}{loaded}; start a new {name} to use it")


def _running_shell() -> Shell:
    from cyclopts.completion import detect_shell
    from cyclopts.completion.detect import ShellDetectionError

    try:
        found = detect_shell()
    except ShellDetectionError:
        found = "powershell"
    if found == "powershell":
        problem, fix = "cannot tell which shell this is", "add bash, zsh or fish to the command"
        raise InputError(problem, field="--install-completion", fix=fix)
    return found


def _short(path: Path) -> str:
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)
