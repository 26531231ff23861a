"""``greenbatch estimate``: what recorded decisions say about a model."""

from __future__ import annotations

import json as encoder
import sys
from pathlib import Path

from greenbatch.cli.flags import Natural, Positive, Switch
from greenbatch.cli.listing import say_notes
from greenbatch.cli.progress import progress_line
from greenbatch.errors import InputError, visible


def estimate(
    model: str,
    *,
    dataset: Path,
    behavior: str | None = None,
    sampled: Switch = False,
    simulate: Switch = False,
    scenario: str | None = None,
    trace: str | None = None,
    gamma: float | None = None,
    steps: Positive = None,
    seed: Natural = 0,
    threads: Natural = 1,
    out: Path | None = None,
    json: Switch = False,
    force: Switch = False,
) -> None:
    """Estimate from recorded decisions how often a model decides the same, and what its policy is worth.

    Parameters
    ----------
    model
        The folder of a training or of a model, or PRESET@FOLDER: a network.
    dataset
        The folder of a dataset (greenbatch record).
    behavior
        A model of what was recorded, such as a clone, whose probabilities importance sampling divides by.
    sampled
        Evaluate the policy that draws its actions, instead of the most probable ones.
    simulate
        Also simulate the model and the recorded schedulers on the dataset's windows, and check the estimate.
    scenario
        For --simulate: the scenario that was recorded, by default a shipped one of its name.
    trace
        For --simulate: the trace that was recorded instead of the scenario's.
    gamma
        Discount of a decision, 0 to 1, by default that of the model's training.
    steps
        Gradient steps of fitted Q evaluation, by default as many as the discount requires.
    seed
        Seed of critics, samples and intervals.
    threads
        Threads; 0 for one per processor. Small networks are fastest with one.
    out
        Folder for estimate.json, table.md and provenance.json; without it nothing is written.
    json
        Print all figures as JSON instead of the tables.
    force
        Replace an earlier result in the folder.
    """
    from rich.console import Console

    from greenbatch.cli.app import COMMAND
    from greenbatch.datasets import read
    from greenbatch.experiments.reports.estimates import agreement_table, estimates_json, value_table, write_estimates
    from greenbatch.experiments.reports.result_folder import result_folder
    from greenbatch.experiments.reports.terminal import TerminalTable
    from greenbatch.experiments.running.estimates import Estimates, estimates
    from greenbatch.learning.runs.plan import threads_of
    from greenbatch.learning.trainers import need_torch
    from greenbatch.models.find import named_model
    from greenbatch.models.model import load_model
    from greenbatch.scenarios import load_scenario
    from greenbatch.scenarios.scenario import shipped_names

    if not simulate and (scenario or trace):
        flag = "--scenario" if scenario else "--trace"
        raise InputError("is for simulations", field=flag, fix="give --simulate too, or leave it out")
    need_torch("greenbatch estimate")
    loaded = load_model(named_model(model))
    acted = None if behavior is None else load_model(named_model(behavior))
    record = read(dataset)
    if simulate and scenario is None and record.record.scenario not in shipped_names():
        problem = f"requires the scenario {record.record.scenario}, which is not shipped"
        raise InputError(problem, field="--simulate", fix="give --scenario, and --trace if the record had one")

    question = load_scenario(scenario or record.record.scenario, trace=trace) if simulate else None
    notes = () if question is None else question.notes

    def computed() -> Estimates:
        with progress_line() as show:
            return estimates(
                loaded, record, behavior=acted, sampled=sampled, scenario=question, gamma=gamma, steps=steps,
                seed=seed or 0, threads=threads_of(1 if threads is None else threads), tell=show,
            )  # fmt: skip

    if out is None:
        found = computed()
    else:
        with result_folder(out, force=force) as folder:
            found = computed()
            write_estimates(found, record, folder, COMMAND.get(), notes)
    say_notes(notes, "provenance.json of a run with --out", file=sys.stderr if json else None)
    if json:
        print(encoder.dumps(estimates_json(found), indent=2, allow_nan=False))
        return
    for made in (agreement_table, value_table):
        Console().print(TerminalTable(made(found)))
    if out is not None:
        print(f"written to {visible(str(out))}")
