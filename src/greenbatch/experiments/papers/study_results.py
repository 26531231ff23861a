"""Evaluate trained agents on test windows and compare them with plain rules and published figures.

Agents take their best action. A row of a result is a scheduler; for an agent it is the mean over its seeds, with an
interval over seeds and windows. Untrained cells are marked and left empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from greenbatch.experiments.papers.protocols import PROTOCOLS
from greenbatch.experiments.papers.reproduce import PUBLISHED, is_comparable, published
from greenbatch.experiments.papers.studies import Cell, Goal, Selection, Study, cells_of
from greenbatch.experiments.running.cells import Progress
from greenbatch.experiments.running.compare import compare
from greenbatch.experiments.running.frames import by_seed
from greenbatch.experiments.running.statistics import Interval, mean_interval, verdict
from greenbatch.learning.several import model_record, state_of
from greenbatch.workers import Workers

if TYPE_CHECKING:
    import polars

    from greenbatch.engine.program import Scheduler
    from greenbatch.models.scheduler import ModelScheduler
    from greenbatch.scenarios import Scenario

Windows = Mapping[str, tuple[Sequence[int], int]]
"""Kind of windows -> first jobs of the test windows, and jobs per window."""

BESIDE = ("makespan_ratio", "horizon_brown_kwh", "horizon_unfinished_share", "p95_wait_s", "utilization", "avg_wait_s",
          "avg_bounded_slowdown_under_5min", "avg_bounded_slowdown_5min_to_1h", "avg_bounded_slowdown_1h_to_4h",
          "avg_bounded_slowdown_over_4h")  # fmt: skip
"""Metrics that are always shown beside those of the papers."""
UNCOMPARABLE = ("derived trace", "not comparable")
"""Verdicts on figures whose trace, or whose definition or windows, differ from the paper's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of a result: a plain rule, or an agent with its seeds."""

    label: str
    column: str
    """Name in the paper."""
    backfill: str
    rule: str = ""
    """Plain rules: policy+backfill."""
    cell: Cell | None = None
    """Agents: one of the trainings."""
    seeds: Mapping[int, Path]
    """Seed -> folder of a finished training."""
    missing: tuple[int, ...] = ()
    """Selected seeds without a finished training."""
    knob: str = ""
    """Agents: parameters of the models."""
    away: bool = False
    """Agents: whether they were trained on another trace."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Results of one trace and kind of windows."""

    study: Study
    trace: str
    windows: str
    starts: tuple[int, ...]
    jobs: int
    entries: tuple[Entry, ...]
    rows: list[dict[str, Any]]
    """Ready for JSON, one per entry. A figure's ``values`` has one list per seed (one for a rule) with one value per
    window, in the order of the row's ``starts``, so that intervals can be recomputed."""
    frame: polars.DataFrame
    """Tidy: window, scheduler (an entry's label), seed (null for rules), metric, value."""


def results(
    study: Study, which: Selection, place: Path, *, windows: Windows | None = None, progress: Progress | None = None,
    workers: Workers | None = None,
) -> list[Result]:  # fmt: skip
    """Evaluate the finished trainings of a study, one result per trace and kind of test windows.

    Models trained without the held-out jobs are also evaluated on the published windows, in separate rows.

    Args:
        study: the paper.
        which: the selected cells; untrained ones get a row that says so.
        place: folder of the study.
        windows: test windows, instead of the study's.
        progress: called before every simulation.
        workers: number of processes, or a Ray cluster, see `compare`.
    """
    from greenbatch.scenarios import load_scenario

    made = []
    for trace in which.traces:
        scenario = load_scenario(study.traces[trace])
        for kind in ("published", "held-out") if "held-out" in which.windows else which.windows:
            starts, jobs = (windows or {}).get(kind) or test_windows(scenario, kind)
            entries = (*rule_entries(study, which, scenario), *agent_entries(study, which, place, trace, kind))
            made.append(
                result_of(study, which, scenario, trace, kind, entries, starts, jobs, progress, workers=workers)
            )
    return made


def test_windows(scenario: Scenario, kind: str) -> tuple[Sequence[int], int]:
    """First jobs and length of the test windows: the scenario's own, or the held-out ones."""
    from greenbatch.experiments.running.compare import choose_windows
    from greenbatch.learning.runs.windows import HELD_OUT_JOBS, HELD_OUT_STARTS

    return choose_windows(scenario) if kind == "published" else (HELD_OUT_STARTS, HELD_OUT_JOBS)


# ---------------------------------------------------------------- entries


def rule_entries(study: Study, which: Selection, scenario: Scenario) -> list[Entry]:
    """The paper's plain rules with the selected backfillings, the baseline and the rival."""
    made = [
        (row.column, row.policy, backfill, row.reason)
        for row in PROTOCOLS[study.name].rows
        for backfill in row.backfills
        if backfill in which.backfills or len(row.backfills) == 1
    ]
    made += [(policy, policy, "none", "not in the paper: our own rule") for policy in study.rules_beside]
    for name in (study.baseline, study.rival):
        policy, _, backfill = name.partition("+")
        made.append((policy.upper(), policy, backfill, ""))
    entries, seen = [], set()
    for column, policy, backfill, reason in made:
        spelled = f"{policy}+{backfill}"
        if spelled in seen or (scenario.site is None and backfill == "green"):
            continue
        seen.add(spelled)
        entries.append(
            Entry(label=_label(column, backfill), column=column, backfill=backfill, rule=spelled, seeds={},
                  reason=reason)
        )  # fmt: skip
    return entries


def plain_entries(rules: Iterable[str], reasons: Mapping[str, str] = MappingProxyType({})) -> list[Entry]:
    """Rules under the names that they have as schedulers, and what they are where the paper has no such row."""
    return [
        Entry(label=rule, column=rule, backfill="", rule=rule, seeds={}, reason=reasons.get(rule, "")) for rule in rules
    ]


def agent_entries(study: Study, which: Selection, place: Path, trace: str, kind: str) -> list[Entry]:
    """The selected agents on a trace, trained or not; and those of other traces if the study has them."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells_of(study, which):
        same_trace = cell.trace == trace
        tested = kind in {cell.windows, "published"}
        if tested and (same_trace or (study.across and kind == "published" and not cell.goal.terms)):
            key = (cell.trace, cell.agent, cell.goal.name, cell.backfill, cell.eta, cell.windows)
            groups.setdefault(key, []).append(cell)
    several = len(which.etas) > 1
    entries = []
    for cells in sorted(groups.values(), key=lambda cells: cells[0].trace != trace):
        first, away = cells[0], cells[0].trace != trace
        finished = {cell.seed: place / cell.folder for cell in cells if state_of(place / cell.folder) == "finished"}
        column = f"{first.agent.column} of {first.trace}" if away else first.agent.column
        more = f" ({first.goal.name})" if first.goal.terms else ""
        more += f" eta={first.eta:g}" if first.eta is not None and several else ""
        more += f", trained {first.windows}" if first.windows != kind else ""
        evaluated = (
            first.backfill,
            *(() if away or first.agent.backfills else study.other_backfills.get(first.backfill, ())),
        )
        for backfill, knob in product(evaluated, first.agent.knobs):
            other = "" if backfill == first.backfill else f", trained with {first.backfill}"
            label = _label(column + knob, backfill) + more + other
            entries.append(
                Entry(label=label, column=column, backfill=backfill, cell=first, seeds=finished, knob=knob, away=away,
                      missing=tuple(cell.seed for cell in cells if cell.seed not in finished))
            )  # fmt: skip
    return entries


def _label(column: str, backfill: str) -> str:
    return f"{column}+{backfill}"


def decider_of(entry: Entry, seed: int, scenario: Scenario) -> ModelScheduler:
    """The scheduler of an agent's seed. An agent of another trace uses the normalizers of this one, as published."""
    from greenbatch.learning.runs.folder import read_run
    from greenbatch.models.model import MODEL
    from greenbatch.models.scheduler import ModelScheduler
    from greenbatch.presets.preset import check, resolve
    from greenbatch.schedulers import scheduler

    if entry.cell is None:
        raise TypeError(f"{entry.label} is not an agent")
    folder = entry.seeds[seed]
    made = scheduler(f"{entry.cell.agent.preset}@{folder / MODEL}{entry.knob}+{entry.backfill}")
    if not isinstance(made, ModelScheduler):
        raise TypeError(f"{entry.label} is not a model")
    model = made.model
    if entry.away:
        preset = resolve(check(dict(read_run(folder).plan.preset)), scenario)
        model = replace(model, preset=preset, normalizers={})
    model.check_fits(scenario)
    return replace(made, name=f"{entry.label}, seed {seed}", model=model)


# ---------------------------------------------------------------- figures


def result_of(
    study: Study, which: Selection, scenario: Scenario, trace: str, kind: str, entries: Sequence[Entry],
    starts: Sequence[int], jobs: int, progress: Progress | None, workers: Workers | None = None,
) -> Result:  # fmt: skip
    """Simulate rules and trained agents on the windows of one trace.

    Args:
        study: the paper.
        which: the selected goals.
        scenario: the trace.
        trace: its name in the paper.
        kind: name of the windows.
        entries: the rows, among them the study's baseline.
        starts: first jobs of the windows.
        jobs: jobs per window.
        progress: called before every simulation.
        workers: number of processes, see `compare`.
    """
    frame = simulated(study, scenario, entries, starts, jobs, progress, workers)
    return result_from(study, which, trace, kind, entries, starts, jobs, frame)


def simulated(
    study: Study, scenario: Scenario, entries: Sequence[Entry], starts: Sequence[int], jobs: int,
    progress: Progress | None = None, workers: Workers | None = None,
) -> polars.DataFrame:  # fmt: skip
    """All metrics of rules and trained agents: window, scheduler (an entry's label), seed, metric, value.

    Args:
        study: the paper.
        scenario: the trace.
        entries: the rows, among them the study's baseline.
        starts: first jobs of the windows, or numbers of draws.
        jobs: jobs per window; 0 for draws.
        progress: called before every simulation.
        workers: number of processes, see `compare`.
    """
    import polars as pl

    from greenbatch.schedulers import scheduler

    deciders: dict[str, Scheduler] = {}
    names: list[tuple[str, str, int | None]] = []
    for entry in entries:
        for seed in entry.seeds or ((None,) if entry.rule else ()):
            name = entry.label if seed is None else f"{entry.label}, seed {seed}"
            deciders[name] = scheduler(entry.rule) if seed is None else decider_of(entry, seed, scenario)
            names.append((name, entry.label, seed))
    baseline = next((entry.label for entry in entries if entry.rule == study.baseline), names[0][0])
    labels = pl.DataFrame(names, {"scheduler": pl.String, "label": pl.String, "seed": pl.Int64}, orient="row")
    return (
        compare(scenario, deciders, starts, jobs, baseline, progress, workers=workers)
        .frame.join(labels, on="scheduler", maintain_order="left")
        .select("window", pl.col("label").alias("scheduler"), "seed", "metric", "value")
    )


def result_from(
    study: Study, which: Selection, trace: str, kind: str, entries: Sequence[Entry], starts: Sequence[int], jobs: int,
    frame: polars.DataFrame, beside: Sequence[str] = BESIDE,
) -> Result:  # fmt: skip
    """The result of one trace from what was simulated.

    Args:
        study: the paper.
        which: the selected goals.
        trace: its name in the paper.
        kind: name of the windows.
        entries: the rows.
        starts: first jobs of the windows, or numbers of draws.
        jobs: jobs per window; 0 for draws.
        frame: see `simulated`.
        beside: metrics beside those of the paper's tables.
    """
    goals = [goal for goal in study.goals if goal.name in which.goals]
    metrics = list(dict.fromkeys((*(m for goal in goals for m in goal.metrics.values()), *beside)))
    rows = [_row(study, trace, kind, entry, goals, metrics, frame, starts, jobs) for entry in entries]
    return Result(
        study=study, trace=trace, windows=kind, starts=tuple(starts), jobs=jobs, entries=tuple(entries), rows=rows,
        frame=frame,
    )  # fmt: skip


def _row(
    study: Study, trace: str, kind: str, entry: Entry, goals: Sequence[Goal], metrics: Sequence[str],
    frame: polars.DataFrame, starts: Sequence[int], jobs: int,
) -> dict[str, Any]:  # fmt: skip
    cell = entry.cell
    figures = {metric: figure for metric in metrics if (figure := _figure(frame, entry, metric, starts))}
    return {
        "trace": trace, "windows": kind, "starts": list(starts), "jobs": jobs, "scheduler": entry.label,
        "column": entry.column, "backfill": entry.backfill,
        "agent": None if cell is None else {
            "preset": cell.agent.preset, "knob": entry.knob, "goal": cell.goal.name, "eta": cell.eta,
            "trained_on": cell.trace, "trained_windows": cell.windows, "trained_with": cell.backfill,
            "seeds": list(entry.seeds), "not_trained": list(entry.missing),
            "trainings": [_training(seed, folder) for seed, folder in entry.seeds.items()],
        },
        "figures": figures,
        "published": _published(study, trace, kind, entry, goals, figures),
        "reason": entry.reason,
    }  # fmt: skip


def _figure(frame: polars.DataFrame, entry: Entry, metric: str, starts: Sequence[int]) -> dict[str, Any]:
    """Mean, interval and all values of a metric; empty where it is not defined in any window."""
    table = by_seed(frame, entry.label, metric)
    values = [[table[seed].get(str(start), math.nan) for start in starts] for seed in table]
    at = mean_interval(values) if values else Interval(math.nan, math.nan, math.nan, 0)
    if not at.count:
        return {}
    span = math.isfinite(at.low)
    means = np.nanmean(values, axis=1).tolist()
    return {
        "mean": at.mean, "low": at.low if span else None, "high": at.high if span else None,
        **({"by_seed": dict(zip(map(str, table), means, strict=True))} if entry.cell else {}),
        "values": [[value if math.isfinite(value) else None for value in each] for each in values],
    }  # fmt: skip


def interval_of(figure: Mapping[str, Any]) -> Interval:
    """The interval of a figure of a row."""
    low, high = (math.nan if figure[end] is None else float(figure[end]) for end in ("low", "high"))
    return Interval(figure["mean"], low, high, len(figure["values"][0]))


def _training(seed: int, folder: Path) -> dict[str, Any]:
    """Budget of a training."""
    record = model_record(folder)
    kept = ("epochs", "decisions", "minutes", "threads", "kept", "kept_epoch", "averaged")
    return {"seed": seed, **{key: record and getattr(record.training, key) for key in kept}}


def _published(
    study: Study, trace: str, kind: str, entry: Entry, goals: Sequence[Goal], figures: Mapping[str, Any]
) -> dict[str, Any]:
    """Metric -> table, figure as printed, verdict and reason; empty for windows other than the paper's.

    For agents also the number of seeds at least as good as the printed figure.
    """
    cell = entry.cell
    if kind != "published":
        return {}
    if cell is not None and (cell.backfill != entry.backfill or not _has_default_eta(study, cell)):
        return {}
    against = entry.column if cell is None or entry.away else cell.agent.against or entry.column
    found: dict[str, dict[str, Any]] = {}
    for goal in goals if cell is None else [cell.goal]:
        for table, metric in goal.metrics.items():
            wanted = "Table VII" if entry.away else table
            text = _printed(study.name).get((wanted, trace, against, entry.backfill, metric))
            if text is not None:
                derived = "" if is_comparable(study.traces[trace]) else "the trace is not the paper's"
                reason = goal.reason or derived
                word = _verdict(metric, figures.get(metric), text)
                word = UNCOMPARABLE[0] if derived else UNCOMPARABLE[1] if reason else word
                found[metric] = {"table": wanted, "value": text, "verdict": word, "reason": reason}
                if cell is not None and metric in figures:
                    found[metric]["seeds_met"] = seeds_met(metric, figures[metric], float(text))
    return found


def _has_default_eta(study: Study, cell: Cell) -> bool:
    """Whether a cell's penalty factor is the default of its agent."""
    return cell.eta in {None, study.eta(cell.agent, cell.trace)}


def _printed(name: str) -> dict[tuple[str, str, str, str, str], str]:
    more = f"{name}-trained"
    both = [*published(name), *(published(more) if (PUBLISHED / f"{more}.csv").exists() else ())]
    return {(p["table"], p["trace"], p["scheduler"], p["backfill"], p["metric"]): p["value"] for p in both}


def _verdict(metric: str, figure: Mapping[str, Any] | None, printed: str) -> str:
    """For agents: met, within noise or missed. For rules, which are deterministic: equal, better or worse."""
    if figure is None:
        return "not trained"
    if "by_seed" in figure:
        return verdict(interval_of(figure), float(printed), "higher" if _higher(metric) else "lower")
    digits, mean = len(printed.partition(".")[2]), figure["mean"]
    if f"{mean:.{digits}f}" == printed:
        return "equal"
    return "better" if (mean > float(printed)) == _higher(metric) else "worse"


def seeds_met(metric: str, figure: Mapping[str, Any], bound: float) -> int:
    """Number of an agent's seeds whose mean over the windows is at least as good as a bound."""
    means = figure["by_seed"].values()
    return sum(mean >= bound if _higher(metric) else mean <= bound for mean in means)


def _higher(metric: str) -> bool:
    from greenbatch.metrics import find

    return find(metric).better == "higher"
