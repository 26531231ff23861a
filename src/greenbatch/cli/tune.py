"""``greenbatch tune``: search parameters of a scheduler on the training windows of a scenario."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.cli.flags import Natural, Positive, Switch, items, workers_of
from greenbatch.cli.listing import say, say_notes
from greenbatch.display import windows_text
from greenbatch.errors import InputError, visible
from greenbatch.notes import Note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from greenbatch.experiments.running.tune import Range, Tuned


def tune(
    *,
    scheduler: str,
    search: str,
    objective: str,
    scenario: str = "default",
    baseline: str = "fcfs+easy",
    windows: str = "held-out",
    count: Positive = 8,
    jobs: Positive = None,
    generations: Positive = 10,
    population: Positive = 8,
    seed: Natural = 0,
    workers: Positive = None,
    ray: str | None = None,
    out: Path | None = None,
    force: Switch = False,
) -> None:
    """Search parameters of any scheduler on the training windows of a scenario, which its evaluation does not share.

    Parameters
    ----------
    scheduler
        The scheduler, such as green-threshold or f2+green, with the parameters that stay as they are.
    search
        Parameters and ranges, separated by commas: share=0:1,limit=3600:604800. Those of a backfilling follow a plus.
    objective
        Weighted metrics, relative to the baseline, to be low in sum: horizon_cost=1,avg_bounded_slowdown=0.2.
    scenario
        A shipped scenario (greenbatch scenario list) or a TOML file.
    baseline
        The scheduler that metrics are relative to.
    windows
        held-out or published, as for greenbatch train.
    count
        Number of windows.
    jobs
        Jobs per window; by default as in the scenario's evaluation.
    generations
        Generations of the search.
    population
        Candidates of a generation, at least 4.
    seed
        Seed of the search.
    workers
        Processes that simulate windows; by default one per processor if the work is long.
    ray
        Use the machines of a Ray cluster: auto, HOST:PORT, or local for this machine. Results do not change.
    out
        Folder for tuned.json and provenance.json; without it nothing is written.
    force
        Replace an earlier result in the folder.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.cli.progress import progress_line
    from greenbatch.experiments.reports.result_folder import RECORD, result_folder, write_record
    from greenbatch.experiments.running.tune import tune as searched
    from greenbatch.provenance import provenance
    from greenbatch.scenarios import load_scenario
    from greenbatch.scenarios.sources import sources

    if windows not in {"held-out", "published"}:
        raise InputError(f"is {windows!r}", field="--windows", fix="give held-out or published")
    if (population or 8) < 4:
        raise InputError(f"is {population}", field="--population", fix="give 4 or more")
    chosen = workers_of(workers, ray)
    ranges, weights, question = _ranges(search), _weights(objective), load_scenario(scenario)

    def found() -> Tuned:
        with progress_line() as show:
            return searched(
                question, scheduler, ranges, weights, baseline=baseline, windows=count or 8, jobs=jobs,
                generations=generations or 10, population=population or 8, seed=seed or 0,
                mode="published" if windows == "published" else "held-out", workers=chosen,
                watch=lambda done, total, best: show(f"generations; lowest objective {best:.4f}", done, total),
            )  # fmt: skip

    settings = {"scheduler": scheduler, "search": search, "objective": weights, "windows": windows,
                "generations": generations, "population": population}  # fmt: skip
    if out is None:
        tuned = found()
    else:
        with result_folder(out, force=force) as folder:
            tuned = found()
            record = {"scenario": question.name, "objective_of": weights, **asdict(tuned)}
            (folder / "tuned.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
            write_record(folder, provenance(**sources(question), seed=seed, settings=settings, command=COMMAND.get()))
    beaten = f"{tuned.baseline} is better than all candidates on these windows"
    worse = [Note(beaten, level="warning")] if tuned.objective > sum(weights.values()) else []
    where = f"{RECORD} in {out}" if out else f"{RECORD} of a run with --out"
    say_notes([*worse, *question.notes], where, file=sys.stderr)  # stdout begins with the scheduler, for scripts
    print(tuned.scheduler)
    for line in _in_words(tuned, scheduler, weights):
        say(line)
    if out is not None:
        say(f"written to {visible(str(out))}")


def _in_words(tuned: Tuned, given: str, weights: Mapping[str, float]) -> list[str]:
    """What the objective is, how low it became, and for which windows that holds."""
    from greenbatch.metrics import METRICS

    total = sum(weights.values())
    parts = [f"{weight:g} * {METRICS[name].label if name in METRICS else name}" for name, weight in weights.items()]
    what = f"objective, to be low: {' + '.join(parts)}, each relative to {tuned.baseline}"
    found = f"{tuned.objective:.4f} with {tuned.scheduler}, {tuned.untuned:.4f} with {given}"
    if tuned.scheduler == given:
        found = f"{tuned.untuned:.4f} with {given} as given, which none of the candidates is better than"
    windows = windows_text(len(tuned.starts), tuned.jobs)
    return [
        what,
        f"{found}, {total:.4f} with {tuned.baseline}; {tuned.tried} candidates on {windows}, so in-sample: compare on "
        "others before you use it",
    ]


def _pairs(text: str, flag: str, example: str) -> list[tuple[str, str]]:
    pairs = [part.partition("=")[::2] for part in items(text, flag)]
    for name, value in pairs:
        if not name or not value:
            raise InputError(f"{text!r:.60} is not understood", field=flag, fix=f"write {example}")
    return pairs


def _ranges(text: str) -> tuple[Range, ...]:
    from greenbatch.experiments.running.tune import Range

    found = []
    for name, ends in _pairs(text, "--search", "share=0:1,limit=3600:86400"):
        try:
            low, high = map(float, ends.split(":"))
        except ValueError:
            low, high = 1.0, 0.0
        if not -1e300 < low < high < 1e300:
            raise InputError(f"{name}={ends} is no range", field="--search", fix="write NAME=LOWEST:HIGHEST")
        found.append(Range(name=name.removeprefix("+"), low=low, high=high, part=int(name.startswith("+"))))
    return tuple(found)


def _weights(text: str) -> dict[str, float]:
    found = {}
    for name, weight in _pairs(text, "--objective", "horizon_cost=1,avg_bounded_slowdown=0.2"):
        if name in found:
            raise InputError(f"names {name} twice", field="--objective", fix="give one weight for each metric")
        try:
            found[name] = float(weight)
        except ValueError:
            raise InputError(
                f"{weight!r:.40} is not a number", field="--objective", fix="write METRIC=WEIGHT"
            ) from None
    return found
