"""The report of a comparison as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.engine.outcome import Outcome
from greenbatch.errors import InputError
from greenbatch.experiments.reports.answer import TILES, WAIT, column_of
from greenbatch.experiments.reports.breakdown import breakdown_sections, gains_table
from greenbatch.experiments.reports.capacity_plots import (
    IMAGE_KEYS,
    TICKS,
    capacity_keys,
    capacity_plots,
    image_plots,
    with_capacity,
)
from greenbatch.experiments.reports.columns import DETAIL, main_columns
from greenbatch.experiments.reports.findings import summary_lines
from greenbatch.experiments.reports.first_screen import first_screen
from greenbatch.experiments.reports.gantt import RUN_TIMES, gantt_plots
from greenbatch.experiments.reports.looks import Looks, looks_of
from greenbatch.experiments.reports.notes import left_out_words, notes_of
from greenbatch.experiments.reports.outages import outage_sections
from greenbatch.experiments.reports.page import definitions, write_page
from greenbatch.experiments.reports.power_plots import power_keys, power_plots
from greenbatch.experiments.reports.queue_plots import queue_panels, queue_plot
from greenbatch.experiments.reports.radar import radar_plot
from greenbatch.experiments.reports.rivals import means_of
from greenbatch.experiments.reports.sections import Section, scheduler_keys
from greenbatch.experiments.reports.spread import READING, box_plots
from greenbatch.experiments.reports.tables import (
    class_table,
    comparison_table,
    difference_table,
    idle_words,
    record_table,
)
from greenbatch.experiments.running.frames import schedulers
from greenbatch.experiments.running.model_warnings import marked
from greenbatch.notes import Note

if TYPE_CHECKING:
    import polars

    from greenbatch.experiments.running.compare import Comparison

BOXES = 4
"""Figures whose spread is shown."""


def picture_sections(
    frame: polars.DataFrame, outcomes: Mapping[str, Outcome], looks: Looks, *, currency: str = "", example: str = ""
) -> list[Section]:
    """The sections of pictures of a comparison; those without pictures are omitted."""
    one = f"window {example}" if example else "one window"
    keys = scheduler_keys(schedulers(frame), looks)
    radar = radar_plot(frame, looks=looks, currency=currency, legend=False)
    spread = [column_of(metric, frame, currency) for metric in (WAIT, *TILES) if means_of(frame, metric)]
    found = [
        Section(
            "Objectives and queue", "", (*([radar] if radar else []), queue_plot(outcomes, looks=looks, legend=False)),
            keys=keys,
        ),
        Section(
            "Queues by partition", f"Waiting jobs of each partition in {one}.",
            tuple(queue_panels(outcomes, looks=looks)), panels=True, keys=keys,
        ),
        Section(
            "Spread over the windows", f"Each figure in every window. {READING}",
            tuple(box_plots(frame, spread[:BOXES], looks=looks)), panels=True,
        ),
        Section(
            "Power against supply",
            f"Power of the cluster in the busiest 48 hours of {one}; figures are of these hours.",
            tuple(power_plots(outcomes, panels=True)), panels=True, keys=power_keys(outcomes),
        ),
        *_where_jobs_run(outcomes, looks, one),
    ]  # fmt: skip
    return [section for section in found if section.pictures]


def _where_jobs_run(outcomes: Mapping[str, Outcome], looks: Looks, one: str) -> list[Section]:
    """Schedules; where capacity changes, capacity against use and resource images instead."""
    if not with_capacity(outcomes):
        text = (
            f"Which processors ran what in {one}. Jobs are colored by run time and lie on the lowest-numbered "
            "processors that are free."
        )
        charts = tuple(gantt_plots(outcomes, panels=True))
        return [Section("Schedules", text, charts, panels=True, keys=RUN_TIMES)]
    return [
        Section(
            "Capacity and use",
            f"Powered processors, and those in use in the color of the scheduler, in {one}.",
            tuple(capacity_plots(outcomes, panels=True, looks=looks)), panels=True, keys=capacity_keys(outcomes),
        ),
        Section(
            "Resource images",
            f"Processors and GPUs in up to {TICKS} ticks of {one} in which capacity changes and much runs. "
            "Every job has a color, the same under all schedulers. Jobs lie on the lowest units that are free at their "
            "start; what has no power is drawn on the highest free ones.",
            tuple(image_plots(outcomes, panels=True)), panels=True, keys=IMAGE_KEYS,
        ),
    ]  # fmt: skip


def write_report(
    path: str | Path,
    *,
    title: str,
    command: str,
    frame: polars.DataFrame,
    outcomes: Mapping[str, Outcome],
    baseline: str,
    notes: Sequence[Note | str] = (),
    provenance: Mapping[str, Any] | None = None,
    example: str = "",
    setting: str = "Schedulers compared",
    marks: Mapping[str, str] | None = None,
    deciders: Mapping[str, object] | None = None,
    breakdown: polars.DataFrame | None = None,
    more: Sequence[Section] = (),
    currency: str = "",
    in_words: Sequence[str] = (),
    missing: str = "",
) -> None:
    """Write the report of a comparison as one self-contained HTML file; same inputs, same bytes.

    Args:
        path: the file; replaced atomically, untouched on failure.
        title: title of the page.
        command: the command line that made it.
        frame: tidy results (window, scheduler, metric, value) of all windows.
        outcomes: scheduler -> outcome of one example window; the schedulers must be in the frame.
        baseline: the scheduler that the others are compared with.
        notes: all notes, see `notes.notes_of`.
        provenance: as in `page.write_page`.
        example: name of the example window.
        setting: title of the main table, see `Comparison.title`.
        marks: schedulers that the first screen and the summary mark, see `Comparison.marks`.
        deciders: the schedulers by name; trained models among them get a section each.
        breakdown: figures of partitions, accounts and users, see `Comparison.breakdown`.
        more: further sections, which come first.
        currency: name of the currency of the site's prices, such as ``EUR``.
        in_words: paragraphs; the first is the sentence of the first screen, the others lead the summary.
        missing: sentence on jobs that are left out, which leads the headline.

    Raises:
        InputError: the baseline or an outcome is not in the frame, there is no outcome, or the file cannot be written.
    """
    from greenbatch.experiments.reports.model_sections import model_sections

    if not outcomes:
        raise InputError("there is no example window", field="outcomes", fix="give the outcomes of one window")
    names = schedulers(frame)
    for name in outcomes:
        if name not in names:
            raise InputError(f"{name!r} has an outcome but no row in the frame", field="outcomes")
    outcomes = {name: outcomes[name] for name in names if name in outcomes}
    looks, told = looks_of(names), marked(frame, baseline, marks or {})
    cluster = next(iter(outcomes.values())).cluster
    main = main_columns(frame, currency)
    further = [column for column in DETAIL if column.metric not in {shown.metric for shown in main}]
    shown = {
        "means": comparison_table(frame, title=setting, currency=currency, idle=idle_words(cluster)),
        "gains": None if breakdown is None else gains_table(breakdown, baseline),
        "differences": difference_table(frame, baseline, currency=currency),
        "record": record_table(frame),
    }
    detail = (
        class_table(frame),
        comparison_table(frame, columns=further, title="Further figures", show_intervals=False, currency=currency),
    )
    folded = Section(
        "Further figures", "", tables=tuple(table for table in detail if table.rows and table.columns), folded=True
    )
    write_page(
        path, title=title, command=command, baseline=baseline,
        first=first_screen(
            frame, baseline, currency=currency, looks=looks, marks=marks, sentence="".join(in_words[:1]),
            missing=missing,
        ),
        summary=[*in_words[1:], *summary_lines(told[0], outcomes, told[1], currency)],
        tables=[table for table in shown.values() if table and table.rows and table.columns],
        sections=[
            *more, *picture_sections(frame, outcomes, looks, currency=currency, example=example),
            *([] if breakdown is None else breakdown_sections(breakdown, baseline, currency)),
            *([folded] if folded.tables else []), *model_sections(deciders or {}, outcomes, looks),
        ],
        notes=notes, explained=definitions(main), provenance=provenance,
        colors={**{name: look.color for name, look in looks.items()}, **_marked_colors(looks, marks or {})},
    )  # fmt: skip


def _marked_colors(looks: Looks, marks: Mapping[str, str]) -> dict[str, str]:
    """The colors of names with their marks, as `marked` writes them."""
    return {f"{name} ({mark})": looks[name].color for name, mark in marks.items() if name in looks}


def report_comparison(
    path: str | Path, comparison: Comparison, *, command: str, provenance: Mapping[str, Any],
    in_words: Sequence[str] = (),
) -> None:  # fmt: skip
    """Write the report of a comparison as one self-contained HTML file.

    Args:
        path: the file; replaced atomically, untouched on failure.
        comparison: the comparison.
        command: the command line that made it.
        provenance: as in `page.write_page`.
        in_words: see `write_report`.

    Raises:
        InputError: the file cannot be written.
    """
    scenario = comparison.scenario
    described = [Note(scenario.description, level="fact")] if scenario.description else []
    missing = "" if in_words else left_out_words(scenario.workload)
    write_report(
        path, title=comparison.title.partition(";")[0], command=command, frame=comparison.frame,
        outcomes=comparison.example, baseline=comparison.baseline, notes=[*described, *notes_of(comparison)],
        provenance=provenance,
        example=str(comparison.starts[0]), setting=comparison.title,
        marks=comparison.marks, deciders=comparison.deciders,
        breakdown=comparison.breakdown,
        more=outage_sections(scenario.workload, comparison.frame, comparison.baseline, comparison.currency),
        currency=comparison.currency, in_words=in_words, missing=missing,
    )  # fmt: skip
