"""What surrounds every command: signals, streams, errors as one line, exit codes. Handlers stand before imports begin.

Exit codes: 0 done; 2 the input or the machine is at fault, one line on stderr says how; 130 interrupted by Ctrl-C,
141 the reader of the output went away, 143 a termination signal, 129 the terminal was closed.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; errors are printed as one line on stderr, never as a traceback.

    Args:
        argv: arguments without the program's name; those of the process if not given.
    """
    heard: list[int] = []
    hook = sys.unraisablehook
    before: dict[int, Any] = {}
    try:
        before = _on_signals(heard)
        _open_streams()
        from greenbatch.cli.app import run

        run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return 0
    except BaseException as error:  # noqa: BLE001  (what is our fault is raised again)
        code, message = _outcome(error, heard)
        _say(message)
        return code
    finally:
        _settle(sys.stdout)
        _settle(sys.stderr)
        sys.unraisablehook = hook
        if signal.SIGALRM in before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if argv is None:  # this process ends here: another Ctrl-C ends it at once
            before = dict.fromkeys(before, signal.SIG_DFL)
        for number, handler in before.items():
            signal.signal(number, handler)


def _outcome(error: BaseException, heard: list[int]) -> tuple[int, str]:
    """Exit code and line for what ended a command. An error that is our fault is raised again."""
    from greenbatch.errors import GreenbatchError

    if heard and heard[0] != signal.SIGINT:
        return 128 + heard[0], ""
    if heard or isinstance(error, KeyboardInterrupt):  # who is interrupted may raise an error of its own
        text = str(error) if isinstance(error, KeyboardInterrupt) else ""
        return 130, f"interrupted; {text}" if text else "interrupted"
    if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):  # rich exits with 1
        return 141, ""
    if isinstance(error, GreenbatchError):
        return error.exit_code, str(error)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return 2, f"{place}{error.strerror or error} (check free space and permissions)"
    if isinstance(error, MemoryError):
        return 2, "out of memory (take fewer jobs: --jobs or workload.limit; to train, fewer windows)"
    raise error


def _say(message: str) -> None:
    if line := " ".join(message.split()):
        with suppress(OSError):
            print(f"greenbatch: {line}", file=sys.stderr, flush=True)


def _on_signals(heard: list[int]) -> dict[int, Any]:
    """Let Ctrl-C and termination signals unwind the program, so that it leaves nothing half-written behind.

    Args:
        heard: gets the numbers of the signals that came.

    Returns:
        The handlers that were there before.
    """

    def stop(number: int, _: object) -> None:
        heard.append(number)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    def once_more(lost: Any) -> None:
        """An interruption that came where Python can raise nothing, as in a destructor, comes again a little later."""
        if heard and lost.exc_type in (KeyboardInterrupt, SystemExit):
            found.setdefault(signal.SIGALRM, signal.signal(signal.SIGALRM, lambda *_: stop(heard.pop(), None)))
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        else:
            hook(lost)

    hook = sys.unraisablehook
    found: dict[int, Any] = {}
    with suppress(ValueError):  # not the main thread
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # not where it is ignored
                found[number] = signal.signal(number, stop)
        sys.unraisablehook = once_more
    return found


def _open_streams() -> None:
    """Give what is printed somewhere to go, in any locale and with streams that the caller closed."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(_nowhere(number), "w", encoding="utf-8"))
    from greenbatch.cli.ascii import register

    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # not a stream of the process
            stream.reconfigure(errors=register())  # type: ignore[union-attr]


def _nowhere(number: int) -> int:
    """A closed descriptor, opened to nowhere: else the next file that is opened would get what is printed."""
    with suppress(OSError):
        os.fstat(number)
        return os.open(os.devnull, os.O_WRONLY)
    opened = os.open(os.devnull, os.O_WRONLY)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    return number


def _settle(stream: Any) -> None:
    """Let nothing be left for Python to print when it exits: there it could only complain."""
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            stream.flush()
