"""``greenbatch compare``: schedulers side by side on the same windows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.cli.flags import Natural, Positive, Switch, items, whole
from greenbatch.cli.progress import progress_line
from greenbatch.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenbatch.experiments.compare import Comparison


def compare(
    *,
    out: Path,
    scenario: str = "default",
    schedulers: str | None = None,
    baseline: str | None = None,
    windows: Positive = None,
    jobs: Positive = None,
    seed: Natural = None,
    starts: str | None = None,
    trace: str | None = None,
    processors: Positive = None,
    workers: Positive = None,
    strict: Switch = False,
    force: Switch = False,
) -> None:
    """Compare schedulers on the same windows: table in the terminal, Markdown, LaTeX, Parquet and report.html.

    Parameters
    ----------
    out
        Folder for the results; refused if it exists and is not empty.
    scenario
        A shipped scenario (greenbatch scenario list) or a TOML file.
    schedulers
        Names separated by commas, each policy+backfill; the scenario's own if not given.
    baseline
        Scheduler that the others are compared to; the first one if not given.
    windows
        Number of random windows, instead of the scenario's windows.
    jobs
        Jobs of a window.
    seed
        Seed of random windows; a random scheduler has its own, random:seed=1.
    starts
        First jobs of the windows, separated by commas, instead of random ones.
    trace
        Jobs to use instead of the scenario's: a file, or a name in greenbatch data list.
    processors
        Machine size, instead of the scenario's.
    workers
        Processes that simulate windows, instead of one per processor where the work is long. Results stay the same.
    strict
        Refuse what would otherwise be repaired or dropped while the trace is read.
    force
        Replace an earlier result in the folder.
    """
    if starts is not None and (windows is not None or seed is not None):
        problem = "are random windows, --starts are given ones"
        raise InputError(problem, field="--windows and --seed", fix="give one or the other")
    run_comparison(
        out, scenario, schedulers=schedulers, baseline=baseline, windows=windows, jobs=jobs, seed=seed,
        starts=None if starts is None else [whole(text, "--starts", 0) for text in items(starts, "--starts")],
        trace=trace, processors=processors, workers=workers, strict=strict, force=force,
    )  # fmt: skip


def run_comparison(
    out: Path,
    scenario: str,
    *,
    schedulers: str | None = None,
    baseline: str | None = None,
    windows: int | None = None,
    jobs: int | None = None,
    seed: int | None = None,
    starts: Sequence[int] | None = None,
    trace: str | None = None,
    processors: int | None = None,
    workers: int | None = None,
    strict: bool = False,
    force: bool = False,
) -> None:
    """Compare, write the results and print the table; what is not given is taken from the scenario.

    Raises:
        InputError: something is not usable; nothing is written.
        KeyboardInterrupt: stopped by the user; the windows that were finished are written.
    """
    from greenbatch.cli.output import result_folder
    from greenbatch.experiments.compare import choose_baseline, choose_windows
    from greenbatch.experiments.compare import compare as run
    from greenbatch.experiments.model_warnings import model_warnings
    from greenbatch.policies import split_schedulers
    from greenbatch.scenarios import load_scenario

    with result_folder(out, force=force) as folder:
        question = load_scenario(scenario, trace=trace, processors=processors, strict=strict)
        own = question.evaluation
        names = own.schedulers if schedulers is None else tuple(split_schedulers(schedulers))
        first, length = choose_windows(question, starts=starts, windows=windows, jobs=jobs, seed=seed)
        base = choose_baseline(question, names, baseline)
        with progress_line() as show:
            comparison = run(question, names, first, length, base, show, keep_finished=True, workers=workers)
        models = model_warnings(names, question, comparison.starts, length)
        write_comparison(comparison, folder, models, seed=own.seed if seed is None else seed)
    print_comparison(comparison, models)
    print(f"written to {out}")
    if len(comparison.starts) < len(first):
        raise KeyboardInterrupt(f"the {len(comparison.starts)} finished of {len(first)} windows are kept in {out}")


def write_comparison(comparison: Comparison, folder: Path, models: Sequence[str], *, seed: int) -> None:
    """Write results.parquet (tidy), table.md, table.tex, report.html and provenance.json.

    Args:
        comparison: what was compared.
        folder: where to.
        models: what must be known of the models among the schedulers, see `model_warnings`.
        seed: of random windows.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.cli.output import write_record
    from greenbatch.experiments.report import write_report
    from greenbatch.experiments.tables import comparison_table, difference_table, write
    from greenbatch.policies import input_files
    from greenbatch.provenance import provenance

    scenario, frame, baseline = comparison.scenario, comparison.frame, comparison.baseline
    settings = {
        "schedulers": list(comparison.schedulers), "baseline": baseline, "starts": list(comparison.starts),
        "jobs": comparison.jobs,
    }  # fmt: skip
    record = provenance(
        scenario=scenario.resolved,
        inputs={**scenario.inputs, **input_files(comparison.schedulers)},
        notes=scenario.notes,
        settings=settings,
        seed=seed,
        command=COMMAND.get(),
    )
    frame.write_parquet(folder / "results.parquet")
    tables = [comparison_table(frame), difference_table(frame, baseline)]
    for form, suffix in (("markdown", "md"), ("latex", "tex")):
        text = "\n".join(write(table, form) for table in tables if table.rows)
        (folder / f"table.{suffix}").write_text(text, encoding="utf-8")
    write_report(
        folder / "report.html", title=f"greenbatch: {scenario.name}", command=" ".join(COMMAND.get()), frame=frame,
        outcomes=comparison.example, baseline=baseline, notes=[scenario.description],
        provenance=record, example=str(comparison.starts[0]), warnings=models,
    )  # fmt: skip
    write_record(folder, record)


def print_comparison(comparison: Comparison, models: Sequence[str]) -> None:
    """What must be known of the models, the table, and a warning for every gain by a stretched schedule."""
    from rich.console import Console

    from greenbatch.experiments.tables import TERMINAL, comparison_table, to_rich, warning_lines

    console = Console()
    for line in models:
        console.print(f"warning: {line}", markup=False, highlight=False)
    console.print(to_rich(comparison_table(comparison.frame, columns=TERMINAL, title=comparison.scenario.name)))
    for line in warning_lines(comparison.frame, comparison.baseline):
        console.print(f"warning: {line}", markup=False, highlight=False)
