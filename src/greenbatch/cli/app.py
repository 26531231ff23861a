"""The command line app, and the one place where errors become one line and an exit code.

Exit codes: 0 done; 2 the input or the machine is at fault, one line on stderr says how; 130 interrupted by Ctrl-C,
141 the reader of the output went away, 143 a termination signal.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from importlib.metadata import version
from typing import Any

import cyclopts

from greenbatch.errors import GreenbatchError

VERBS: dict[str, str] = {
    "demo": "Compare schedulers on the embedded scenario: table and report, no data needed.",
    "simulate": "Replay a workload under one scheduler; write its schedule, power and metrics.",
    "train": "Train a scheduler, by learning or search; resumable, and used wherever a scheduler is named.",
    "export": "Write a trained model as an ONNX file, for other programs.",
    "retrain": "Train a model again from its own record, and compare the two.",
    "compare": "Put schedulers side by side on the same windows: table, statistics, report.",
    "schedulers": "List policies, backfillings and models by name.",
    "reproduce": "Compute a paper's tables, side by side with the published figures.",
    "scenario": "List, show and describe scenarios.",
    "data": "List, fetch and locate the real data files.",
}
"""Verb -> help line. Verb ``v`` is the function or app ``v`` of module ``greenbatch.cli.v``, loaded when it is used."""

COMPLETION = ("--install-completion", "Let bash, zsh or fish complete commands and flags.")
"""A command that is spelled as a flag, and its help line."""

COMMAND: ContextVar[tuple[str, ...]] = ContextVar("COMMAND", default=())
"""The command line that runs, for provenance."""


def build() -> cyclopts.App:
    """The app, with every verb registered by import path."""
    app = cyclopts.App(
        name="greenbatch",
        help="Green-aware batch scheduling for HPC: simulate, compare and reproduce schedulers on a cluster powered by "
        "sun, wind and grid.",
        version=lambda: version("greenbatch"),
        help_format="plaintext",
        result_action="return_value",
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
    )
    for verb, line in VERBS.items():
        app.command(f"greenbatch.cli.{verb}:{verb}", name=verb, help=line)
    flag, line = COMPLETION
    app.command("greenbatch.cli.completion:install_completion", name=flag, help=line)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; errors are printed as one line on stderr, never as a traceback.

    Args:
        argv: arguments without the program's name; those of the process if not given.
    """
    app = build()
    if sys.stdout is None:  # closed by the caller
        sys.stdout = io.StringIO()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    arguments = list(sys.argv[1:] if argv is None else argv)
    COMMAND.set(("greenbatch", *arguments))
    heard: list[int] = []
    previous = _on_signals(heard)
    try:
        app(arguments)
        sys.stdout.flush()
    except tuple(kind for kind, _, _ in _REPORTS) as error:
        return _report(error)
    except Exception:
        if signal.SIGINT in heard:  # a compiler that is interrupted raises an error of its own
            return _report(KeyboardInterrupt())
        raise
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return 0


def _usage(error: Any) -> str:
    words = " ".join(("greenbatch", *(error.command_chain or ()), "--help"))
    return f"{str(error).rstrip('.')} (see: {words})"


def _machine(error: Any) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error} (check free space and permissions)"


_REPORTS: tuple[tuple[type[BaseException], int, Callable[[Any], str]], ...] = (
    (KeyboardInterrupt, 130, lambda error: f"interrupted; {error}" if str(error) else "interrupted"),
    (GreenbatchError, 2, str),
    (cyclopts.CycloptsError, 2, _usage),
    (BrokenPipeError, 141, lambda _: ""),
    (OSError, 2, _machine),
    (MemoryError, 2, lambda _: "out of memory (take fewer jobs: --jobs or workload.limit; to train, fewer windows)"),
)
"""Kind of error, exit code, and what to say; the first match counts, an empty text is not printed."""


def _report(error: BaseException) -> int:
    code, say = next((code, say) for kind, code, say in _REPORTS if isinstance(error, kind))
    if isinstance(error, BrokenPipeError):
        # Nothing more may be flushed to the closed pipe when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if message := " ".join(say(error).split()):
        print(f"greenbatch: {message}", file=sys.stderr)
    return code


def _on_signals(heard: list[int]) -> dict[int, Any]:
    """Let Ctrl-C and a termination signal unwind the program, so that it leaves nothing half-written behind.

    Args:
        heard: gets the numbers of the signals that came.

    Returns:
        The handlers that were there before.
    """

    def stop(number: int, _: object) -> None:
        heard.append(number)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    wanted = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is to be ignored
        wanted.append(signal.SIGINT)
    try:
        return {number: signal.signal(number, stop) for number in wanted}
    except ValueError:  # not the main thread
        return {}
