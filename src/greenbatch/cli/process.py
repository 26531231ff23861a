"""Entry point of the command line: signals, streams, errors and exit codes. Handlers are installed before imports.

Exit codes: 0 done; 2 invalid input or a problem of the machine, described in one line on stderr; 130 interrupted by
Ctrl-C; 141 the reader of the output closed it; 143 a termination signal; 129 the terminal was closed.

A command that was told to end ends within `GRACE_S`, whatever it does: files are whole at any moment, and work can be
resumed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

REPEAT_S, GRACE_S = 3.0, 7.0
"""How long after a signal it is repeated, which skips what is not needed to resume, and the command is ended. [s]"""
_OUT_OF_MEMORY = "out of memory (use fewer jobs: --jobs or workload.limit; to train, fewer windows)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; errors are printed as one line on stderr, without a traceback.

    Args:
        argv: arguments without the program's name; by default those of the process.
    """
    heard: list[int] = []
    hook = sys.unraisablehook
    before: dict[int, Any] = {}
    try:
        before = _on_signals(heard)
        if argv is None:
            os.environ["MPLBACKEND"] = "agg"  # notebooks set another one, which this Python may lack
            _watch(tuple(before))
        _open_streams()
        from greenbatch.cli.app import run

        run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return 0
    except BaseException as error:  # noqa: BLE001  (our own bugs are raised again)
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
    """Exit code and message for the error that ended a command. Our own bugs are raised again."""
    from greenbatch.errors import GreenbatchError

    if heard and heard[0] != signal.SIGINT:
        return 128 + heard[0], ""
    if heard or isinstance(error, KeyboardInterrupt):  # interrupted code may raise an error of its own
        return 130, _stopped(error)
    if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):  # rich exits with 1
        return 141, ""
    if isinstance(error, GreenbatchError):
        return error.exit_code, str(error)
    if message := _of_machine(error):
        return 2, message
    raise error


def _of_machine(error: BaseException) -> str:
    """What to say of an error of the machine rather than of this program; empty for other errors."""
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error} (check free space and permissions)"
    return _OUT_OF_MEMORY if isinstance(error, MemoryError) else ""


def _stopped(error: BaseException) -> str:
    """What to say after Ctrl-C. In a terminal, the command that resumes is a line of its own, to be copied."""
    from greenbatch.errors import Interrupted

    if isinstance(error, Interrupted) and error.resume and sys.stderr.isatty():
        return f"interrupted; {error.kept}resume with:\n{error.resume}"
    text = str(error) if isinstance(error, KeyboardInterrupt) else ""
    return f"interrupted; {text}" if text else "interrupted"


def _say(message: str) -> None:
    from greenbatch.cli.listing import say

    first, _, command = message.partition("\n")
    with suppress(OSError):
        if first:
            say(f"greenbatch: {first}", file=sys.stderr)
        if command:  # not wrapped
            print(command, file=sys.stderr, flush=True)


def _on_signals(heard: list[int]) -> dict[int, Any]:
    """Let Ctrl-C and termination signals unwind the program, so that no output is left half-written.

    Args:
        heard: receives the numbers of caught signals.

    Returns:
        The previous handlers.
    """

    def stop(number: int, _: object) -> None:
        heard.append(number)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    def once_more(lost: Any) -> None:
        """Repeat an interruption that was lost because Python could not raise it, as in a destructor."""
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


def _watch(numbers: Collection[int]) -> None:
    """End this process `GRACE_S` after a signal, even if it waits for other code and cannot hear it.

    Args:
        numbers: the signals that are heard; none outside of the main thread.
    """
    if not numbers:
        return
    ends, hears = os.pipe()
    os.set_blocking(hears, False)
    signal.set_wakeup_fd(hears, warn_on_full_buffer=False)

    def watch() -> None:
        while (number := os.read(ends, 1)[0]) not in numbers:
            pass
        time.sleep(REPEAT_S)
        if callable(signal.getsignal(number)):
            os.kill(os.getpid(), number)
        time.sleep(GRACE_S - REPEAT_S)
        with suppress(OSError):
            os.write(2, f"greenbatch: interrupted; forced to stop after {GRACE_S:g} s\n".encode())
        os._exit(128 + number)

    threading.Thread(target=watch, daemon=True).start()


def _open_streams() -> None:
    """Make output streams usable in any locale, and if the caller closed them."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(_nowhere(number), "w", encoding="utf-8"))
    from greenbatch.cli.ascii import register

    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # not a stream of the process
            stream.reconfigure(errors=register())  # type: ignore[union-attr]


def _nowhere(number: int) -> int:
    """A descriptor of the null device, which a closed one is too: else the next opened file would receive output."""
    opened = os.open(os.devnull, os.O_WRONLY)
    try:
        os.fstat(number)
    except OSError:
        os.dup2(opened, number)
    return opened


def _settle(stream: Any) -> None:
    """Flush a stream, or discard its output if that fails, so that Python reports no error at exit."""
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            stream.flush()
