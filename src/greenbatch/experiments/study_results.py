"""What trained agents are worth: every seed on the test windows of its kind, beside plain rules and published figures.

Agents take their best action. A row of a result is a scheduler; for an agent it is the mean over its seeds. What was
not trained is said to be so, and stays empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.experiments.compare import Progress, compare
from greenbatch.experiments.reproduce import PROTOCOLS, PUBLISHED, is_comparable, published
from greenbatch.experiments.statistics import seed_interval
from greenbatch.experiments.studies import Cell, Goal, Study, Wanted, cells_of, model_record, state_of

if TYPE_CHECKING:
    import polars

    from greenbatch.engine.program import Scheduler
    from greenbatch.learning.learned import LearnedScheduler
    from greenbatch.learning.priced import PricedScheduler
    from greenbatch.scenarios import Scenario

Windows = Mapping[str, tuple[Sequence[int], int]]
"""Kind of windows -> first jobs of the test windows, and their length."""

BESIDE = ("makespan_ratio", "common_horizon_brown_kwh", "p95_wait_s", "utilization", "avg_wait_s",
          "avg_bounded_slowdown_under_5min", "avg_bounded_slowdown_5min_to_1h", "avg_bounded_slowdown_1h_to_4h",
          "avg_bounded_slowdown_over_4h")  # fmt: skip
"""What stands beside the figures of the papers, always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of a result: a plain rule, or an agent with its seeds."""

    label: str
    column: str
    """As the paper names it."""
    backfill: str
    rule: str = ""
    """Of a plain rule: how it is spelled."""
    cell: Cell | None = None
    """Of an agent: one of its trainings."""
    seeds: Mapping[int, Path]
    """Seed -> folder of a finished training."""
    missing: tuple[int, ...] = ()
    """Seeds that are asked for and not trained."""
    knob: str = ""
    """Of an agent: parameters of its models."""
    away: bool = False
    """Of an agent: it was trained on another trace."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One trace and kind of windows: rows, and the figures of every window."""

    study: Study
    trace: str
    windows: str
    starts: tuple[int, ...]
    jobs: int
    entries: tuple[Entry, ...]
    rows: list[dict[str, Any]]
    """Ready for JSON, one for each entry."""
    frame: polars.DataFrame
    """Tidy: window, scheduler (an entry's label), metric, value; agents as the mean over their seeds."""


def results(
    study: Study, which: Wanted, place: Path, *, windows: Windows | None = None, progress: Progress | None = None
) -> list[Result]:
    """Evaluate what is trained of a study, one result for each trace and kind of test windows.

    What is trained without the held-out jobs is evaluated on the published windows too, in rows of its own.

    Args:
        study: the paper.
        which: what is asked for; what of it is not trained gets a row that says so.
        place: folder of the study.
        windows: other test windows than the study's.
        progress: told before every simulation.
    """
    from greenbatch.scenarios import load_scenario

    made = []
    for trace in which.traces:
        scenario = load_scenario(study.traces[trace])
        for kind in ("published", "held-out") if "held-out" in which.windows else which.windows:
            starts, jobs = (windows or {}).get(kind) or test_windows(scenario, kind)
            entries = (*rule_entries(study, which, scenario), *agent_entries(study, which, place, trace, kind))
            made.append(_result(study, which, scenario, trace, kind, entries, starts, jobs, progress))
    return made


def test_windows(scenario: Scenario, kind: str) -> tuple[Sequence[int], int]:
    """First jobs and length of the test windows: the scenario's own, or the held-out ones."""
    from greenbatch.experiments.compare import choose_windows
    from greenbatch.learning.windows import HELD_OUT_JOBS, HELD_OUT_STARTS

    return choose_windows(scenario) if kind == "published" else (HELD_OUT_STARTS, HELD_OUT_JOBS)


# ---------------------------------------------------------------- entries


def rule_entries(study: Study, which: Wanted, scenario: Scenario) -> list[Entry]:
    """The paper's plain rules with the backfillings that are asked for, and what everything is measured by."""
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


def agent_entries(study: Study, which: Wanted, place: Path, trace: str, kind: str) -> list[Entry]:
    """The agents that are asked for, on a trace, trained or not; and those of other traces where the study has them."""
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


def decider_of(entry: Entry, seed: int, scenario: Scenario) -> LearnedScheduler | PricedScheduler:
    """The scheduler of an agent's seed; that of another trace sees this one by this one's normalizers, as published."""
    from greenbatch.envs.preset import check, resolve
    from greenbatch.learning import runs
    from greenbatch.learning.learned import LearnedScheduler
    from greenbatch.learning.priced import PricedScheduler
    from greenbatch.policies import scheduler

    if entry.cell is None:
        raise TypeError(f"{entry.label} is not an agent")
    folder = entry.seeds[seed]
    made = scheduler(f"{entry.cell.agent.preset}@{folder / runs.MODEL}{entry.knob}+{entry.backfill}")
    if not isinstance(made, (LearnedScheduler, PricedScheduler)):
        raise TypeError(f"{entry.label} is not a model")
    model = made.model
    if entry.away:
        preset = resolve(check(dict(runs.read_run(folder)["plan"]["preset"])), scenario)
        model = replace(model, preset=preset, normalizers={})
    model.check_fits(scenario)
    return replace(made, name=f"{entry.label}, seed {seed}", model=model)


# ---------------------------------------------------------------- figures


def _result(
    study: Study, which: Wanted, scenario: Scenario, trace: str, kind: str, entries: Sequence[Entry],
    starts: Sequence[int], jobs: int, progress: Progress | None,
) -> Result:  # fmt: skip
    import polars as pl

    from greenbatch.policies import scheduler

    label_of: dict[str, str] = {}
    deciders: dict[str, Scheduler] = {}
    for entry in entries:
        for seed in entry.seeds or ((None,) if entry.rule else ()):
            name = entry.label if seed is None else f"{entry.label}, seed {seed}"
            deciders[name] = scheduler(entry.rule) if seed is None else decider_of(entry, seed, scenario)
            label_of[name] = entry.label
    baseline = next(entry.label for entry in entries if entry.rule == study.baseline)
    frame = compare(scenario, deciders, starts, jobs, baseline, progress).frame
    goals = [goal for goal in study.goals if goal.name in which.goals]
    means = frame.group_by("scheduler", "metric").agg(pl.col("value").mean())
    value = {(name, metric): figure for name, metric, figure in means.iter_rows()}
    asked = list(dict.fromkeys((*(m for goal in goals for m in goal.metrics.values()), *BESIDE)))
    rows = [_row(study, trace, kind, entry, goals, asked, value) for entry in entries]
    labels = pl.DataFrame({"scheduler": list(label_of), "label": list(label_of.values())})
    merged = (
        frame.join(labels, on="scheduler").group_by("window", "label", "metric", maintain_order=True)
        .agg(pl.col("value").mean()).rename({"label": "scheduler"})
    )  # fmt: skip
    return Result(
        study=study, trace=trace, windows=kind, starts=tuple(starts), jobs=jobs, entries=tuple(entries), rows=rows,
        frame=merged,
    )  # fmt: skip


def _row(
    study: Study, trace: str, kind: str, entry: Entry, goals: Sequence[Goal], asked: Sequence[str],
    value: Mapping[tuple[str, str], float | None],
) -> dict[str, Any]:  # fmt: skip
    cell = entry.cell
    names = [f"{entry.label}, seed {seed}" for seed in entry.seeds] if cell else [entry.label]
    figures: dict[str, Any] = {}
    for metric in asked:
        by_seed = [value.get((name, metric)) for name in names]
        defined = [figure for figure in by_seed if figure is not None]
        if defined:
            at = seed_interval(defined)
            span = at.count > 1
            figures[metric] = {
                "mean": at.mean, "low": at.low if span else None, "high": at.high if span else None,
                **({"by_seed": dict(zip(map(str, entry.seeds), by_seed, strict=True))} if cell else {}),
            }  # fmt: skip
    return {
        "trace": trace, "windows": kind, "scheduler": entry.label, "column": entry.column, "backfill": entry.backfill,
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


def _training(seed: int, folder: Path) -> dict[str, Any]:
    """What a training cost."""
    told = model_record(folder)["training"]
    kept = ("epochs", "decisions", "minutes", "threads", "kept", "kept_epoch", "averaged")
    return {"seed": seed, **{key: told.get(key) for key in kept}}


def _published(
    study: Study, trace: str, kind: str, entry: Entry, goals: Sequence[Goal], figures: Mapping[str, Any]
) -> dict[str, Any]:
    """Metric -> table, figure as printed, verdict and reason; nothing for windows that are not the paper's."""
    cell = entry.cell
    if kind != "published":
        return {}
    if cell is not None and (cell.backfill != entry.backfill or not _as_asked(study, cell)):
        return {}
    against = entry.column if cell is None or entry.away else cell.agent.against or entry.column
    found = {}
    for goal in goals if cell is None else [cell.goal]:
        for table, metric in goal.metrics.items():
            wanted = "Table VII" if entry.away else table
            text = _printed(study.name).get((wanted, trace, against, entry.backfill, metric))
            if text is not None:
                derived = "" if is_comparable(study.traces[trace]) else "the trace is not the paper's"
                reason = goal.reason or derived
                verdict = "not comparable" if reason else _verdict(metric, figures.get(metric), text)
                found[metric] = {"table": wanted, "value": text, "verdict": verdict, "reason": reason}
    return found


def _as_asked(study: Study, cell: Cell) -> bool:
    """Whether a cell's penalty factor is the usual one of its agent."""
    return cell.eta in {None, study.eta(cell.agent, cell.trace)}


def _printed(name: str) -> dict[tuple[str, str, str, str, str], str]:
    more = f"{name}-trained"
    both = [*published(name), *(published(more) if (PUBLISHED / f"{more}.csv").exists() else ())]
    return {(p["table"], p["trace"], p["scheduler"], p["backfill"], p["metric"]): p["value"] for p in both}


def _verdict(metric: str, figure: Mapping[str, Any] | None, printed: str) -> str:
    from greenbatch.metrics import find

    if figure is None:
        return "not trained"
    digits, mean = len(printed.partition(".")[2]), figure["mean"]
    if f"{mean:.{digits}f}" == printed:
        return "equal"
    return "better" if (mean > float(printed)) == (find(metric).better == "higher") else "worse"
