"""``greenbatch compare``: compare schedulers on the same windows."""

from __future__ import annotations

import json as encoder
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.cli.flags import Natural, Positive, Switch, interrupted, items, workers_of
from greenbatch.cli.flags import whole as whole_number
from greenbatch.cli.listing import say, say_notes, say_what_is_there
from greenbatch.cli.progress import progress_line
from greenbatch.errors import InputError, visible
from greenbatch.notes import Note
from greenbatch.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from greenbatch.experiments.running.compare import Comparison
    from greenbatch.scenarios import Scenario


def compare(
    *,
    out: Path | None = None,
    scenario: str = "default",
    schedulers: str | None = None,
    baseline: str | None = None,
    windows: Positive = None,
    jobs: Positive = None,
    seed: Natural = None,
    starts: str | None = None,
    whole: Switch = False,
    trace: str | None = None,
    cluster: str | None = None,
    processors: Positive = None,
    capacity: str | None = None,
    workers: Positive = None,
    ray: str | None = None,
    json: Switch = False,
    resume: Switch = False,
    outages: Switch = False,
    sweep: str | None = None,
    strict: Switch = False,
    force: Switch = False,
) -> None:
    """Compare schedulers on the same windows: table in the terminal, Markdown, LaTeX, Parquet and report.html.

    Parameters
    ----------
    out
        Folder for the results; refused if it exists and is not empty. Optional with --json.
    scenario
        A shipped scenario (greenbatch scenario list) or a TOML file.
    schedulers
        Names separated by commas, each policy+backfill; by default the scenario's.
    baseline
        Scheduler that the others are compared with; by default the scenario's, or the first.
    windows
        Number of random windows, instead of the scenario's windows.
    jobs
        Jobs per window.
    seed
        Seed of random windows. A random scheduler has its own: random:seed=1.
    starts
        First jobs of the windows, separated by commas, instead of random ones.
    whole
        Take the whole trace as one window.
    trace
        Jobs instead of the scenario's: SWF, sacct, CSV, Parquet, PM100, F-DATA, or a name in greenbatch data list.
    cluster
        Nodes to use instead of the scenario's machine: a slurm.conf, a platform JSON or node groups in TOML.
    processors
        Size of a pool of processors, instead of the scenario's machine size.
    capacity
        Powered processors and GPUs over time (CSV: time_s, processors, gpus), instead of the scenario's capacity.
    workers
        Processes that simulate windows; by default one per processor if the work is long. Results do not change.
    ray
        Use the machines of a Ray cluster: auto, HOST:PORT, or local for this machine. Results do not change.
    json
        Print means, intervals, differences and warnings as one JSON object instead of the table.
    resume
        Resume the interrupted comparison in the folder; the other flags must be unchanged.
    outages
        Also simulate every scheduler with the outages that the record shows, in which no job may run.
    sweep
        Compare for several values of a key of the scenario: KEY=VALUE,VALUE,... (forecast.sigma=0,0.2,0.4).
    strict
        Refuse a trace with records that would be repaired or dropped.
    force
        Replace an earlier result in the folder.
    """
    if starts is not None and (windows is not None or seed is not None):
        problem = "select random windows, --starts given ones"
        raise InputError(problem, field="--windows and --seed", fix="give one or the other")
    if whole and (starts, windows, jobs, seed) != (None, None, None, None):
        problem = "is the whole trace as one window"
        raise InputError(problem, field="--whole", fix="leave out --starts, --windows, --jobs and --seed")
    check_flags(out, json=json, resume=resume, force=force, outages=outages, sweep=sweep)
    first = None if starts is None else [whole_number(text, "--starts", 0) for text in items(starts, "--starts")]
    given: dict[str, Any] = {
        "schedulers": schedulers, "baseline": baseline, "workers": workers_of(workers, ray), "json": json,
        "resume": resume, "force": force,
        "inputs": {"trace": trace, "cluster": cluster, "processors": processors, "capacity": capacity,
                   "strict": strict},
        "windows": {"starts": first, "windows": windows, "jobs": jobs, "seed": seed, "whole": whole},
    }  # fmt: skip
    if sweep is None:
        run_comparison(out, scenario, outages=outages, **given)
        return
    from greenbatch.cli.compare_sweep import run_sweep

    run_sweep(out, scenario, sweep, **given)


def check_flags(
    out: Path | None, *, resume: bool, force: bool, json: bool = False, outages: bool = False, sweep: str | None = None
) -> None:  # fmt: skip
    """Refuse flags of a comparison that exclude each other.

    Raises:
        InputError: names them.
    """
    if out is None and (resume or force or not json):
        raise InputError("is missing", field="--out", fix="give --out FOLDER; only --json works without")
    if sweep is not None and outages:
        raise InputError("cannot be combined yet", field="--sweep and --outages", fix="give one or the other")
    if resume and force:
        problem = "keep and replace an earlier comparison"
        raise InputError(problem, field="--resume and --force", fix="give one or the other")


def run_comparison(
    out: Path | None,
    scenario: str,
    *,
    schedulers: str | None = None,
    baseline: str | None = None,
    windows: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    workers: Workers | None = None,
    json: bool = False,
    resume: bool = False,
    outages: bool = False,
    force: bool = False,
    defaults: Callable[[Scenario], Sequence[str]] | None = None,
    in_words: Callable[[Comparison], Sequence[str]] = lambda _: (),
) -> None:
    """Compare, write the results and print them. Defaults are taken from the scenario.

    ``windows`` and ``inputs`` are arguments of `choose_windows` and `load_scenario`. Not flags of ``compare``:
    ``defaults`` names the schedulers if none are given, the first being the baseline; ``in_words`` tells the answer in
    the report and at the end of what is printed.

    Raises:
        InputError: a flag is invalid, or the folder contains no comparison to resume; nothing is written.
        KeyboardInterrupt: stopped by the user; the finished windows are written.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.experiments.reports.outputs import comparison_record, write_comparison
    from greenbatch.experiments.reports.result_folder import result_folder
    from greenbatch.experiments.running.compare import choose_schedulers, choose_windows
    from greenbatch.experiments.running.compare import compare as run
    from greenbatch.experiments.running.pieces import Pieces, resumed
    from greenbatch.scenarios import load_scenario
    from greenbatch.schedulers import scheduler_table, with_outages
    from greenbatch.workload import outages as recorded_outages

    with ExitStack() as opened:
        folder = None if out is None else opened.enter_context(result_folder(out, force=force or resume))
        question = load_scenario(scenario, **(inputs or {}))
        names, base, told = choose_schedulers(question, schedulers, baseline, defaults)
        first, length = choose_windows(question, **(windows or {}))
        deciders = scheduler_table(names)
        if outages:
            deciders = with_outages(deciders, tuple(recorded_outages(question.workload)))
        record = comparison_record(
            question, tuple(deciders), base, first, length, seed=(windows or {}).get("seed"),
            command=COMMAND.get(),
        )  # fmt: skip
        pieces = opened.enter_context(Pieces(out, record, force=force))
        finished = resumed(pieces, record, resume=resume)
        say_what_is_there(pieces)
        with progress_line() as show:
            comparison = run(
                question, deciders, first, length, base, show, keep_finished=True, keep_schedulers=not resume,
                finished=finished, workers=workers, keep=pieces.keep,
            )  # fmt: skip
            by_all = len(comparison.deciders) == len(deciders)
            parts = (comparison.starts, first, "windows") if by_all else (comparison.deciders, deciders, "schedulers")
            done = f"{len(parts[0])} of {len(parts[1])} {parts[2]}"
            if comparison.interrupted:
                told = [Note(f"{done}; interrupted", level="warning"), *told]
            comparison = replace(comparison, warnings=(*told, *comparison.warnings))
            words, drawn = in_words(comparison), True  # or not requested
            if folder is not None:
                record["settings"]["starts"] = list(comparison.starts) if by_all else []
                show("drawing the report", len(first), len(first))
                drawn = write_comparison(comparison, folder, record, words)
    pieces.remove()
    print_comparison(comparison, json=json, in_words=words)
    if out is not None and not json:
        print(f"written to {visible(str(out))}")
    if comparison.interrupted or not drawn:
        raise interrupted(done, drawn=drawn, written=out is not None, command=COMMAND.get())


def print_comparison(comparison: Comparison, *, json: bool = False, in_words: Sequence[str] = ()) -> None:
    """Print notes, the tables and the answer; or one JSON object."""
    if json:
        from greenbatch.experiments.reports.summary import summary

        told = {"answer": list(in_words)} if in_words else {}
        print(encoder.dumps({**told, **summary(comparison)}, indent=2, allow_nan=False))
        return
    from rich.console import Console

    from greenbatch.experiments.reports.breakdown import gains_table
    from greenbatch.experiments.reports.columns import terminal_columns
    from greenbatch.experiments.reports.findings import headlines
    from greenbatch.experiments.reports.notes import left_out_words, notes_of
    from greenbatch.experiments.reports.outages import outage_table
    from greenbatch.experiments.reports.outputs import REPORT
    from greenbatch.experiments.reports.tables import comparison_table, idle_words, record_table
    from greenbatch.experiments.reports.terminal import TerminalTable
    from greenbatch.experiments.running.model_warnings import marked

    frame, baseline = comparison.frame, comparison.baseline
    say_notes(notes_of(comparison), REPORT)
    idle = idle_words(comparison.scenario.cluster)
    main = comparison_table(
        frame, columns=terminal_columns(frame, comparison.currency), title=comparison.title, idle=idle
    )
    own = (
        gains_table(comparison.breakdown, baseline),
        record_table(frame),
        outage_table(frame, baseline, comparison.currency),
    )
    for table in (main, *own):
        if table is not None:
            Console().print(TerminalTable(table))
    missing = "" if in_words else left_out_words(comparison.scenario.workload)
    found = headlines(*marked(frame, baseline, comparison.marks), comparison.currency, idle=idle)
    for line in (*filter(None, [missing]), *found, *in_words):
        say(line)
