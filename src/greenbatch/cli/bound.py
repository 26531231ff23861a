"""``greenbatch bound``: what no schedule of a scenario's windows can beat."""

from __future__ import annotations

import json as encoder
import sys
from pathlib import Path
from typing import Any

from greenbatch.cli.flags import Positive, Switch, items, workers_of
from greenbatch.cli.flags import whole as whole_number
from greenbatch.cli.listing import say_notes
from greenbatch.cli.progress import progress_line
from greenbatch.errors import InputError, visible


def bound(
    *,
    scenario: str,
    makespan: str | None = None,
    within: str | None = None,
    reference: str | None = None,
    windows: str | None = None,
    starts: str | None = None,
    jobs: Positive = None,
    whole: Switch = False,
    trace: str | None = None,
    workers: Positive = None,
    ray: str | None = None,
    out: Path | None = None,
    json: Switch = False,
    force: Switch = False,
) -> None:
    """Bound what any schedule of a scenario's windows can reach, known or unknown.

    By default their renewable utilization and brown energy, by makespan; with --within, brown energy, cost and carbon
    of any machine and supply, also for whole logs.

    Parameters
    ----------
    scenario
        A shipped scenario (greenbatch scenario list) or a TOML file; without --within, a pool of processors.
    makespan
        Largest makespans relative to the reference, separated by commas; by default 1.0,1.1,1.25,1.5,1.75,2.0.
    within
        Hours: each job ends at most so long after its submission and run time. Jobs may be cut up freely.
    reference
        What makespans are relative to, instead of f2+easy-schedgym; or with --within beside it, instead of f2+easy.
    windows
        published (the scenario's, the default), held-out (those that trained agents are tested on), or both.
    starts
        First jobs of the windows, separated by commas, instead of the scenario's.
    jobs
        Jobs per window.
    whole
        One window of the whole trace.
    trace
        A trace to use instead of the scenario's: a file, or a name in "greenbatch data list".
    workers
        Processes that compute windows; by default one.
    ray
        Use the machines of a Ray cluster: auto, HOST:PORT, or local for this machine. Results do not change.
    out
        Folder for bounds.json, table.md and provenance.json; without it nothing is written.
    json
        Print the bounds of every window as JSON instead of the table.
    force
        Replace an earlier result in the folder.
    """
    from rich.console import Console

    from greenbatch.cli.app import COMMAND
    from greenbatch.engine.capabilities import features_of, refuse
    from greenbatch.experiments.reports.bounds import bounds_table, span_table, write_bounds
    from greenbatch.experiments.reports.result_folder import result_folder
    from greenbatch.experiments.reports.terminal import TerminalTable
    from greenbatch.experiments.running.bounds import FIRST, RATIOS, REFERENCE, bound_rows, span_bounds, window_bounds
    from greenbatch.experiments.running.compare import choose_windows
    from greenbatch.learning.runs.windows import HELD_OUT_JOBS, HELD_OUT_STARTS
    from greenbatch.scenarios import load_scenario

    if windows is not None and (windows not in KINDS or starts is not None or jobs is not None or whole):
        fix = f"give {', '.join(KINDS)}, without --starts, --jobs and --whole"
        raise InputError(f"is {windows!r}", field="--windows", fix=fix)
    if whole and (starts is not None or jobs is not None):
        raise InputError("is the only window", field="--whole", fix="leave out --starts and --jobs")
    if within is not None and makespan is not None:
        raise InputError("is another bound than that of --within", field="--makespan", fix="give one of them")
    within_s = None if within is None else _number(within, "--within") * 3600.0
    ratios = RATIOS if makespan is None else [_number(text, "--makespan") for text in items(makespan, "--makespan")]
    question, chosen = load_scenario(scenario, trace=trace), workers_of(workers, ray) or 1
    given = None if starts is None else [whole_number(text, "--starts", 0) for text in items(starts, "--starts")]
    known = features_of(None, question.cluster, question.site, question.rules)  # jobs are asked about by windows
    refuse("a bound", [("bound", "oracle" if within_s is None else "fluid")], known)
    first, length = choose_windows(question, starts=given, jobs=jobs, whole=whole)
    if windows == "held-out":
        first, length = HELD_OUT_STARTS, HELD_OUT_JOBS
    elif windows == "both":
        first = (*first, *(start for start in HELD_OUT_STARTS if start not in first))

    def computed() -> tuple[Any, Any, dict[str, Any]]:
        if within_s is not None:
            spans = span_bounds(question, first, length, within_s, reference=reference or FIRST)
            grid = question.site and question.site.grid
            return spans, span_table(spans, grid.currency if grid else ""), {"within_s": within_s}
        with progress_line() as show:
            bounds = window_bounds(
                question, first, length, ratios, reference=reference or REFERENCE, progress=show, workers=chosen
            )
        return bounds, bounds_table(bounds), {"makespan": list(dict.fromkeys(each.makespan_ratio for each in bounds))}

    if out is None:
        found, table, _ = computed()
    else:
        with result_folder(out, force=force) as folder:
            found, table, settings = computed()
            write_bounds(found, table, settings, question, folder, COMMAND.get())
    say_notes(question.notes, "provenance.json of a run with --out", file=sys.stderr if json else None)
    if json:
        print(encoder.dumps(bound_rows(found), indent=2, allow_nan=False))
        return
    Console().print(TerminalTable(table))
    if out is not None:
        print(f"written to {visible(str(out))}")


KINDS = ("published", "held-out", "both")
"""Kinds of windows."""


def _number(text: str, flag: str) -> float:
    try:
        return float(text)
    except ValueError:
        fix = "give hours, such as 24" if flag == "--within" else "give numbers > 0, such as 1.0,1.25,1.5"
        raise InputError(f"{text[:40]!r} is not a number", field=flag, fix=fix) from None
