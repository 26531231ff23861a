"""The command line app and its verbs, which are loaded on use."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from importlib.metadata import version
from inspect import signature

import cyclopts

from greenbatch.errors import GreenbatchError, InputError

VERBS: dict[str, str] = {
    "demo": "Compare schedulers on the embedded scenario: table and report, no data needed.",
    "simulate": "Replay a workload under one scheduler; write its schedule, power and metrics.",
    "train": "Train a scheduler by reinforcement learning or search; training can be resumed.",
    "record": "Record decisions of schedulers or logs for offline reinforcement learning.",
    "estimate": "Estimate from recorded decisions what a model is worth, and how often it decides the same.",
    "tune": "Search parameters of any scheduler on the training windows of a scenario.",
    "export": "Write a trained model as an ONNX file, for other programs.",
    "retrain": "Retrain a model from its record and compare it with the original.",
    "compare": "Compare schedulers on the same windows: table, statistics, report.",
    "results": "Show single runs of a comparison, also while it is running; select some by a condition.",
    "whatif": "What other schedulers would have done with recorded jobs: money, carbon and waiting.",
    "bound": "Bound what any scheduler can reach on the windows of a scenario.",
    "schedulers": "List policies, backfillings and models by name.",
    "reproduce": "Compute a paper's tables and compare them with the published figures.",
    "scenario": "List, show and describe scenarios.",
    "cluster": "List node types, and show the cluster that a file describes.",
    "data": "List, download and locate data files.",
}
"""Verb -> help line. Verb ``v`` is the function or app ``v`` of module ``greenbatch.cli.v``, loaded when it is used."""

COMPLETION = ("--install-completion", "Let bash, zsh or fish complete commands and flags.")
"""A command spelled as a flag, and its help line."""

ALLOW = "--allow"
"""With every verb: a Python file that may run although a scenario, preset, dataset or model names it, not the user."""

COMMAND: ContextVar[tuple[str, ...]] = ContextVar("COMMAND", default=())
"""The current command line, for provenance."""


def build() -> cyclopts.App:
    """The app, with every verb registered by import path."""
    app = cyclopts.App(
        name="greenbatch",
        help="Green-aware batch scheduling for HPC: simulate, compare and reproduce schedulers on a cluster powered by "
        "sun, wind and grid. Python files named in other files run only with --allow FILE.py.",
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


def run(arguments: Sequence[str]) -> None:
    """Run a command line.

    Args:
        arguments: arguments without the program's name.

    Raises:
        GreenbatchError: the command line is invalid, or the verb raises it.
    """
    app = build()
    COMMAND.set(("greenbatch", *arguments))
    if any(".py" in word or word.startswith(ALLOW) for word in arguments):
        arguments = _allowing(arguments)
    from greenbatch.files import pipes_kept

    try:
        with pipes_kept():
            app(list(arguments))
    except cyclopts.CycloptsError as error:
        words = " ".join(("greenbatch", *(error.command_chain or ()), "--help"))
        raise GreenbatchError(f"{str(error).rstrip('.')} (see: {words})") from None
    except InputError as error:
        if error.file is not None or (flag := _flag(app, arguments, error.field)) is None:
            raise
        raise InputError(error.problem, field=flag, fix=error.fix) from None


def _allowing(arguments: Sequence[str]) -> list[str]:
    """The arguments without ``--allow FILE.py``; the Python files that they name may run.

    Raises:
        InputError: what follows ``--allow`` is not the name of a Python file.
    """
    from greenbatch.schedulers.allowed import allow, allow_typed

    words = iter(arguments)
    left: list[str] = []
    for word in words:
        flag, equals, file = word.partition("=")
        if flag != ALLOW:
            left.append(word)
            continue
        file = file if equals else next(words, "")
        if not file.endswith(".py"):
            raise InputError(f"is {file[:60]!r}", field=ALLOW, fix="give a Python file, FILE.py")
        allow(file)
    allow_typed(left)
    return left


def _flag(app: cyclopts.App, arguments: Sequence[str], name: str | None) -> str | None:
    """The flag of an argument of a function in Python, where the command line has one of that name."""
    command = app.parse_args(list(arguments), print_error=False, exit_on_error=False)[0]
    found = signature(command).parameters.get(name or "")
    return f"--{found.name.replace('_', '-')}" if found is not None and found.kind is found.KEYWORD_ONLY else None
