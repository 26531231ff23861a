"""``greenbatch compare --sweep``: the same comparison for several values of a key of the scenario."""

from __future__ import annotations

import json as encoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.cli.flags import interrupted
from greenbatch.cli.listing import say, say_notes, say_what_is_there
from greenbatch.cli.progress import progress_line
from greenbatch.errors import InputError, visible
from greenbatch.workers import Workers

if TYPE_CHECKING:
    from greenbatch.experiments.running.sweep import Setting, Sweep
    from greenbatch.scenarios import Scenario


def run_sweep(
    out: Path | None,
    scenario: str,
    text: str,
    *,
    schedulers: str | None = None,
    baseline: str | None = None,
    windows: Mapping[str, Any],
    inputs: Mapping[str, Any],
    workers: Workers | None = None,
    json: bool = False,
    resume: bool = False,
    force: bool = False,
    defaults: Callable[[Scenario], Sequence[str]] | None = None,
    unit_cost: float | None = None,
) -> None:
    """Compare for every value, write the results and print them. Windows and defaults are those of the first value.

    ``windows``, ``inputs`` and ``defaults`` are as in `compare.run_comparison`. With ``unit_cost``, the cost of a unit
    of the key, also print when larger values have paid for themselves.

    Raises:
        InputError: a flag or a value is invalid, or the folder contains no such sweep to resume; nothing is written.
        KeyboardInterrupt: stopped by the user; the finished values and windows are written.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.experiments.reports.payback import check_payback
    from greenbatch.experiments.reports.result_folder import result_folder
    from greenbatch.experiments.reports.sweeps import sweep_record, write_sweep
    from greenbatch.experiments.running.compare import choose_schedulers, choose_windows
    from greenbatch.experiments.running.pieces import Pieces, resumed
    from greenbatch.experiments.running.sweep import read_setting, sweep
    from greenbatch.scenarios import load_scenario
    from greenbatch.schedulers import scheduler_table

    chosen = read_setting(text)
    with ExitStack() as opened:
        folder = None if out is None else opened.enter_context(result_folder(out, force=force or resume))
        questions: dict[str, Scenario] = {}
        for value in chosen.values:
            with naming_the_flag(chosen, value):
                keys = {**inputs.get("overrides", {}), **chosen.overrides(value)}
                like = next(iter(questions.values()), None)
                questions[value] = load_scenario(scenario, **{**inputs, "overrides": keys}, like=like)
        question = next(iter(questions.values()))
        names, base, told = choose_schedulers(question, schedulers, baseline, defaults)
        first, length = choose_windows(question, **windows)
        deciders = scheduler_table(names)
        record = sweep_record(
            chosen, questions, tuple(deciders), base, first, length, seed=windows.get("seed"),
            command=COMMAND.get(),
        )  # fmt: skip
        if unit_cost is not None:
            check_payback(chosen, question)
        pieces = opened.enter_context(Pieces(out, record, force=force))
        finished = resumed(pieces, record, resume=resume)
        say_what_is_there(pieces)

        with progress_line() as show:
            made = sweep(
                chosen, questions, deciders, first, length, base, show, keep_finished=True,
                finished=finished, workers=workers, keep=pieces.keep,
            )  # fmt: skip
            noted = {text: replace(each, warnings=(*told, *each.warnings)) for text, each in made.comparisons.items()}
            made = replace(made, comparisons=noted)
            done = sum(len(each.starts) for each in made.comparisons.values())
            total = len(first) * len(chosen.values)
            partial = (f"{done} of {total} windows of all values; interrupted",) if done < total else ()
            drawn = True  # or not requested
            if folder is not None:
                show("drawing the report", total, total)
                drawn = write_sweep(made, folder, record, partial, unit_cost)
    pieces.remove()
    print_sweep(made, partial, json=json, unit_cost=unit_cost)
    if out is not None and not json:
        print(f"written to {visible(str(out))}")
    if partial or not drawn:
        raise interrupted(f"{done} of {total} windows", drawn=drawn, written=out is not None, command=COMMAND.get())


@contextmanager
def naming_the_flag(chosen: Setting, value: str) -> Iterator[None]:
    """An invalid value is one of the flag, not of the scenario file."""
    try:
        yield
    except InputError as error:
        own = isinstance(error.field, str) and error.field == chosen.key.rpartition(".")[2]  # raised while building
        place, key = f"{error.field}.", f"{chosen.key}."
        if not (own or place.startswith(key) or key.startswith(place)):
            raise
        problem = error.problem if own or error.field == chosen.key else f"{error.field}: {error.problem}"
        raise InputError(f"{chosen.key}={value}: {problem}", field="--sweep", fix=error.fix) from None


def print_sweep(
    made: Sweep, partial: Sequence[str] = (), *, json: bool = False, unit_cost: float | None = None
) -> None:  # fmt: skip
    """Print notes, a table per figure, the payback, the findings and the answer; or one JSON object."""
    from greenbatch.experiments.reports.notes import notes_of_sweep
    from greenbatch.experiments.reports.outputs import REPORT
    from greenbatch.experiments.reports.payback import payback_tables
    from greenbatch.experiments.reports.sweep_lines import fixed_lines, sweep_findings
    from greenbatch.experiments.reports.sweep_screen import sweep_words
    from greenbatch.experiments.reports.sweeps import shown_columns, sweep_summary, sweep_table

    if json:
        print(encoder.dumps(sweep_summary(made, unit_cost), indent=2, allow_nan=False))
        return
    from rich.console import Console

    from greenbatch.experiments.reports.terminal import TerminalTable

    say_notes(notes_of_sweep(made), REPORT)
    for line in fixed_lines(made):
        say(f"note: {line}")
    for column in shown_columns(made)[:5]:
        Console().print(TerminalTable(sweep_table(made, column, partial=partial)))
    for table in payback_tables(made, unit_cost):
        Console().print(TerminalTable(table))
    for line in (*sweep_findings(made), *sweep_words(made, unit_cost)):
        say(line)
