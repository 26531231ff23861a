"""``greenbatch reproduce``: compute published tables and compare."""

from __future__ import annotations

import json as encoder
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.cli.flags import Natural, Positive, Switch, Texts, given_flags, items, whole, workers_of
from greenbatch.cli.listing import say, say_notes
from greenbatch.cli.progress import progress_line
from greenbatch.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenbatch.cli.reproduce_own import OwnStudy
    from greenbatch.cli.reproduce_trained import TrainingFlags
    from greenbatch.scenarios import Scenario

STUDIES = {"cost-aware": "reproduce_cost_aware", "rare": "reproduce_rare", "cocorl": "reproduce_cocorl",
           "offline": "reproduce_offline"}  # fmt: skip
"""Studies that are no protocols, because their papers' figures are of other data, and their modules."""


def reproduce(
    protocol: str,
    *,
    json: Switch = False,
    traces: str | None = None,
    starts: str | None = None,
    sigma: float | None = None,
    out: Path | None = None,
    workers: Positive = None,
    ray: str | None = None,
    force: Switch = False,
    train: Switch = False,
    trained: Path | None = None,
    epochs: Positive = None,
    minutes: float | None = None,
    seeds: str | None = None,
    presets: str | None = None,
    goals: str | None = None,
    backfills: str | None = None,
    windows: str | None = None,
    eta: str | None = None,
    mixes: str | None = None,
    threads: Natural = None,
    overrides: Texts = None,
) -> None:
    """Compute a paper's tables and compare each cell with the published one; with --train the learned columns too.

    Parameters
    ----------
    protocol
        gas-marl, rlscheduler, ineps, cost-aware, rare, cocorl or offline.
    json
        Print the cells as JSON instead of a table.
    traces
        Only these traces of the paper, separated by commas; of rare, cocorl, offline: settings, e.g. 50-fixed5.
    starts
        First jobs of windows, separated by commas, instead of the paper's; of rare and offline: numbers of draws.
    sigma
        Threshold of brown energy, instead of the paper's 50000. [J]
    out
        Folder for the results; without it nothing is written. With --train it contains the trainings and results/.
    workers
        Processes for windows and --train; by default one per processor for long tests. Results do not change.
    ray
        Use the machines of a Ray cluster: auto, HOST:PORT, or local for this machine. Results do not change.
    force
        Replace an earlier result in the folder.
    train
        Train the agents of the paper's learned columns in --out and evaluate them. Interrupted runs resume.
    trained
        Folder of an earlier --train: evaluate its models without training.
    epochs
        Epochs per training, instead of the preset's.
    minutes
        Minutes per training, instead of a number of epochs.
    seeds
        Seeds of each cell, separated by commas; by default 0,1,2, for ineps, cocorl and offline 0,1,2,3,4.
    presets
        Only these agents, separated by commas: gas-marl, maskable-ppo, gas-marl-plus, rlscheduler, cost-aware, ...
    goals
        Goals of RLScheduler: bounded-slowdown, utilization (the default: both), fairness, slowdown, wait.
    backfills
        Backfillings that agents are trained and evaluated with: none, easy-schedgym, green; cost-aware: none, easy.
    windows
        published, held-out (tested on jobs not trained on) or both (default); gas-marl: also fresh (generated jobs).
    eta
        Penalty factors of GAS-MARL's reward, separated by commas, instead of the paper's for each trace.
    mixes
        Datasets that agents of offline learn from: combo, qos (the default: both), qos-sjf, combo-first-fit.
    threads
        Threads per training, instead of the preset's; 0 for one per processor.
    overrides
        New values for keys of the presets, as in greenbatch train.
    """
    chosen = workers_of(workers, ray)
    if train or trained is not None:
        from greenbatch.cli.reproduce_trained import TrainingFlags

        if others := given_flags(starts=starts, sigma=sigma):
            flag = "--train" if train else "--trained"
            raise InputError(f"cannot be combined with {others}", field=flag, fix=f"leave out {others}")
        if train and (trained is not None or out is None):
            raise InputError("requires --out and excludes --trained", field="--train", fix="give --train --out FOLDER")
        trainings = given_flags(epochs=epochs, minutes=minutes, threads=threads, set=overrides)
        if trained is not None and trainings:
            problem = f"trains nothing, so there is no use for {trainings}"
            raise InputError(problem, field="--trained", fix=f"leave out {trainings}, or give --train --out")
        flags = TrainingFlags(
            traces=traces, seeds=seeds, presets=presets, goals=goals, backfills=backfills, windows=windows, eta=eta,
            mixes=mixes, epochs=epochs, minutes=minutes, threads=threads, overrides=overrides, workers=chosen,
        )  # fmt: skip
        _with_agents(protocol, flags, out=out, trained=trained, json=json, force=force)
        return
    if of_training := given_flags(
        epochs=epochs, minutes=minutes, seeds=seeds, presets=presets, goals=goals, backfills=backfills,
        windows=windows, eta=eta, mixes=mixes, threads=threads, set=overrides,
    ):  # fmt: skip
        raise InputError("for training only", field=of_training, fix="give --train, or --trained FOLDER")
    given = None if starts is None else [whole(text, "--starts", 0) for text in items(starts, "--starts")]
    if protocol in STUDIES:
        from greenbatch.cli.reproduce_own import play_rules
        from greenbatch.cli.reproduce_trained import TrainingFlags

        own = _own(protocol, TrainingFlags())
        play_rules(own, traces=traces, starts=given, sigma=sigma, workers=chosen, out=out, json=json, force=force)
        return
    from greenbatch.cli.app import COMMAND
    from greenbatch.experiments.papers.outputs import write_cells
    from greenbatch.experiments.papers.protocols import PROTOCOLS
    from greenbatch.experiments.papers.reproduce import reproduce as run
    from greenbatch.experiments.reports.result_folder import result_folder
    from greenbatch.provenance import provenance
    from greenbatch.scenarios import load_scenario
    from greenbatch.scenarios.sources import sources_of

    names = None if traces is None else items(traces, "--traces")

    def computed() -> tuple[list[dict[str, Any]], dict[str, Scenario]]:
        with progress_line() as show:
            made = run(protocol, traces=names, starts=given, sigma=sigma, workers=chosen, progress=show)
        traces = PROTOCOLS[protocol].traces
        return made, {trace: load_scenario(traces[trace]) for trace in names or traces}

    if out is None:
        cells, scenarios = computed()
    else:
        with result_folder(out, force=force) as folder:
            cells, scenarios = computed()
            settings = {"protocol": protocol, "traces": names, "starts": given, "sigma": sigma}
            record = provenance(**sources_of(scenarios), settings=settings, command=COMMAND.get())
            write_cells(protocol, cells, folder, record)
    every = (note for each in scenarios.values() for note in each.notes)
    say_notes(every, "report.html" if out else "report.html of a run with --out", file=sys.stderr if json else None)
    if json:
        print(encoder.dumps(cells, indent=2, allow_nan=False))
        return
    for line in PROTOCOLS[protocol].readings:
        say(f"note: {line}")
    print_cells(cells)


def _own(protocol: str, flags: TrainingFlags) -> OwnStudy:
    """What is its own about a study of `STUDIES`."""
    from importlib import import_module

    made: OwnStudy = import_module(f"greenbatch.cli.{STUDIES[protocol]}").own_study(flags)
    return made


def _with_agents(
    protocol: str, flags: TrainingFlags, *, out: Path | None, trained: Path | None, json: bool, force: bool
) -> None:  # fmt: skip
    """Train and test agents by the kind of the study."""
    from greenbatch.cli.reproduce_fresh import PROTOCOL, WINDOWS, reproduce_fresh
    from greenbatch.cli.reproduce_orders import reproduce_orders
    from greenbatch.cli.reproduce_own import play_agents
    from greenbatch.cli.reproduce_trained import reproduce_trained
    from greenbatch.experiments.papers.order_studies import ORDER_STUDIES

    if protocol in STUDIES:
        play_agents(_own(protocol, flags), flags, out=out, trained=trained, json=json, force=force)
    elif (protocol, flags.windows) == (PROTOCOL, WINDOWS):
        reproduce_fresh(flags, out=out, trained=trained, json=json, force=force)
    elif protocol in ORDER_STUDIES:
        reproduce_orders(ORDER_STUDIES[protocol], flags, out=out, trained=trained, json=json, force=force)
    else:
        reproduce_trained(protocol, flags, out=out, trained=trained, json=json, force=force)


def print_cells(cells: Sequence[dict[str, Any]]) -> None:
    """Print the cells as tables, one per table and trace of the paper, then the reasons and the summary."""
    from rich.console import Console

    from greenbatch.experiments.papers.cells import reproduction_tables
    from greenbatch.experiments.papers.reproduce import name_of, summary
    from greenbatch.experiments.reports.terminal import TerminalTable

    console = Console()
    for table in reproduction_tables([{**cell, "reason": ""} for cell in cells]):  # reasons follow below
        console.print(TerminalTable(table))
    reasons: dict[str, list[str]] = {}
    for cell in cells:
        if cell["reason"]:
            reasons.setdefault(cell["reason"], []).append(name_of(cell))
    for reason, names in reasons.items():
        say(f"{'; '.join(dict.fromkeys(names))}: {reason}")  # a name may hold a comma
    say(summary(cells)["text"])
