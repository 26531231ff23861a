"""``greenbatch record``: write what schedulers, or the logs of a site, did as decisions of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from greenbatch.cli.flags import Natural, Positive, Switch, Texts
from greenbatch.cli.listing import say_notes
from greenbatch.errors import InputError, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy import int64
    from numpy.typing import NDArray

    from greenbatch.datasets.schema import DatasetRecord
    from greenbatch.experiments.reports.tables import Table
    from greenbatch.notes import Note
    from greenbatch.scenarios import Scenario


def record(
    preset: str,
    *,
    schedulers: str,
    out: Path,
    scenario: str = "default",
    mix: str | None = None,
    decisions: Positive = None,
    jobs: Positive = None,
    episode_s: Annotated[float | None, Parameter(name="--episode-s")] = None,
    windows: str = "all",
    trace: str | None = None,
    processors: Positive = None,
    capacity: str | None = None,
    seed: Natural = 0,
    threads: Natural = 0,
    overrides: Texts = None,
    strict: Switch = False,
    force: Switch = False,
) -> None:
    """Record what schedulers or logs did as observations, actions and rewards of a preset's agent, for offline RL.

    Parameters
    ----------
    preset
        Observations, actions and rewards: rare-offline, rlscheduler, ..., or a TOML file.
    schedulers
        Separated by commas, such as qos+none,sjf+none; as-recorded repeats the starts of the trace.
    out
        Folder for dataset.json and the decisions as Parquet; refused if it exists and is not empty.
    scenario
        A shipped scenario (greenbatch scenario list) or a TOML file.
    mix
        Shares of the decisions, one number for each scheduler, separated by commas; by default equal ones.
    decisions
        Least number of decisions, in windows drawn at random; by default the trace is covered once.
    jobs
        Jobs per window, by default as the preset trains.
    episode_s
        Where capacity follows the power: length of windows, by default the scenario's, else as the preset trains. [s]
    windows
        all, or published or held-out, as for greenbatch train.
    trace
        Jobs instead of the scenario's: SWF, sacct, CSV, Parquet, PM100, F-DATA, or a name in greenbatch data list.
    processors
        Size of a pool of processors, instead of the scenario's machine size.
    capacity
        Powered processors and GPUs over time (CSV: time_s, processors, gpus), instead of the scenario's capacity.
    seed
        Seed of the windows that are drawn.
    threads
        Threads; 0 for one per processor. The result does not depend on it.
    overrides
        New values for keys of the preset, e.g. observation.image.ticks=0.
    strict
        Refuse a trace with records that would be repaired or dropped.
    force
        Replace an earlier result in the folder.
    """
    from rich.console import Console

    from greenbatch import schedulers as known
    from greenbatch.cli.app import COMMAND
    from greenbatch.cli.progress import progress_line
    from greenbatch.datasets import recording, write
    from greenbatch.experiments.reports.result_folder import RECORD, result_folder, write_record
    from greenbatch.experiments.reports.terminal import TerminalTable
    from greenbatch.learning.runs.plan import make_plan, parse_overrides, threads_of
    from greenbatch.provenance import provenance
    from greenbatch.scenarios import load_scenario
    from greenbatch.scenarios.sources import sources

    shares = None if mix is None else _numbers(mix)
    if episode_s is not None and not episode_s > 0:
        raise InputError(f"is {episode_s:g}", field="--episode-s", fix="give seconds, above 0")
    with result_folder(out, force=force) as folder:
        question = load_scenario(scenario, trace=trace, processors=processors, capacity=capacity, strict=strict)
        made = make_plan(preset, question, overrides=parse_overrides(overrides)).preset
        planned = recording(
            question, made, schedulers, shares=shares, decisions=decisions, jobs=jobs, episode_s=episode_s,
            starts=_possible(windows, question), seed=seed or 0, threads=threads_of(threads or 0),
        )  # fmt: skip
        what, total = ("decisions", decisions) if decisions else ("windows", len(planned.starts))
        with progress_line() as show:
            done = write(planned, folder, lambda so_far: show(f"{what} recorded", min(so_far, total), total))
        size = sum(file.stat().st_size for file in folder.iterdir())
        settings = {"preset": made.name, "schedulers": schedulers, "mix": mix, "decisions": decisions, "jobs": jobs,
                    "episode_s": episode_s, "windows": windows, "strict": strict}  # fmt: skip
        own = sources(question, known.input_files(list(planned.schedulers)))
        write_record(folder, provenance(**own, settings=settings, seed=seed, command=COMMAND.get()))
    Console().print(TerminalTable(_table(done)))
    say_notes([*_notes(done, question), *question.notes], f"{RECORD} in {out}")
    print(
        f"{done.decisions:,} decisions of {len(done.starts):,} episodes, {size / 1e6:.3g} MB, "
        f"written to {visible(str(out))}"
    )


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{text[:60]!r} is not numbers", field="--mix", fix="write 25,25,50") from None


def _possible(windows: str, scenario: Scenario) -> Callable[[int], NDArray[int64]] | None:
    """First jobs of the windows that may be recorded, from their number of jobs; None for all of the trace."""
    from greenbatch.learning.runs.windows import training_starts

    if windows == "all":
        return None
    if windows == "published":
        return lambda jobs: training_starts(scenario, jobs, "published")
    if windows == "held-out":
        return lambda jobs: training_starts(scenario, jobs, "held-out")
    raise InputError(f"is {windows!r}", field="--windows", fix="give all, published or held-out")


def _table(done: DatasetRecord) -> Table:
    """What was recorded of each scheduler."""
    from greenbatch.experiments.reports.tables import Cell, Table

    heads = ("Episodes", "Decisions", "With a choice", "Mean return")
    rows = [
        (each.name, (Cell(f"{each.episodes:,}"), Cell(f"{each.decisions:,}"), Cell(f"{each.choices:,}"),
                     Cell("" if each.mean_return is None else f"{each.mean_return:.6g}")))
        for each in done.schedulers
    ]  # fmt: skip
    title = f"{done.scenario}: decisions of {done.preset['name']}"
    return Table(title, tuple((head, "", head) for head in heads), tuple(rows))


_COUNTS = {
    "late": "starts are later than in the schedule, because jobs do not fit before or are not seen",
    "unseen": "of them are beyond the rows that the preset sees",
    "left": "starts of the schedule have not come by the end of their window",
    "held": "times nothing started although the preset does not allow to wait; these are no decisions",
}
"""Field of `SchedulerRecord` -> what is counted."""


def _notes(done: DatasetRecord, scenario: Scenario) -> list[Note]:
    """What the decisions do not show, or show differently."""
    from numpy import isnan

    from greenbatch.datasets.recording import RECORDED
    from greenbatch.notes import Note

    totals = {name: sum(getattr(each, name) for each in done.schedulers) for name in _COUNTS}
    lines = [f"{totals[name]:,} {what}" for name, what in _COUNTS.items() if totals[name]]
    unknown = int(isnan(scenario.workload.recorded_wait_s).sum())
    if unknown and any(each.name == RECORDED for each in done.schedulers):
        lines.append(f"{unknown:,} jobs have no recorded start; they start as soon as they can")
    return [Note(line, level="change") for line in lines]
