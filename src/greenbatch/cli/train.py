"""``greenbatch train``: train a preset on a scenario, in a folder from which training can be resumed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from greenbatch.cli.flags import Natural, Positive, Switch, resume_line
from greenbatch.cli.listing import say
from greenbatch.cli.progress import LOG_S, TimeLeft, clock
from greenbatch.errors import InputError, Interrupted

if TYPE_CHECKING:
    from rich.progress import Progress

    from greenbatch.learning.counters import Counters

Record = dict[str, Any]
Texts = Annotated[list[str] | None, Parameter(name="--set", consume_multiple=True, negative="")]


def train(
    preset: str,
    *,
    scenario: str,
    out: Path,
    epochs: Positive = None,
    minutes: float | None = None,
    seed: Natural = None,
    resume: Switch = False,
    device: str = "cpu",
    backfill: str | None = None,
    windows: str = "published",
    threads: Natural = None,
    overrides: Texts = None,
    tensorboard: Switch = False,
    force: Switch = False,
) -> None:
    """Train a scheduler. Ctrl-C saves, --resume continues; the trained model is in the subfolder model/.

    Parameters
    ----------
    preset
        Observations, actions, reward, network and training: gas-marl, rlscheduler, ..., or a TOML file.
    scenario
        A shipped scenario (greenbatch scenario list) or a TOML file.
    out
        Folder for run.json, log.jsonl, checkpoint/ and model/; refused if it exists and is not empty.
    epochs
        Epochs, instead of the preset's.
    minutes
        Train for this time instead, without interruptions; results then differ between runs.
    seed
        Seed of weights, windows and actions, instead of the preset's.
    resume
        Resume the training in the folder; the other flags must be unchanged.
    device
        cpu, cuda or cuda:N.
    backfill
        Backfilling to train with, instead of the preset's.
    windows
        published: drawn as in the papers; held-out: never from jobs 2000 to 4400, which are reserved for tests.
    threads
        Threads, instead of the preset's; 0 for one per processor. Their number affects rounding and thus the result.
    overrides
        New values for keys of the preset, e.g. training.passes=4 reward.terms.bounded_slowdown=-0.01.
    tensorboard
        Also write events/ for TensorBoard, if it is installed.
    force
        Replace an earlier training in the folder.
    """
    from greenbatch.cli.app import COMMAND

    check_flags(epochs, minutes, resume=resume, force=force)
    from greenbatch.learning import runs
    from greenbatch.learning.plan import make_plan, parse_overrides
    from greenbatch.scenarios import load_scenario

    runs.read_run(out) if resume else runs.check_new(out, force=force)
    plan = make_plan(
        preset, load_scenario(scenario), overrides=parse_overrides(overrides or []), windows=windows,
        backfill=backfill, epochs=epochs, minutes=minutes, seed=seed, threads=threads, device=device,
        command=COMMAND.get(),
    )  # fmt: skip
    for note in runs.other_versions(out) if resume else ():
        print(f"note: {note}")
    earlier = _identity(out)
    total = None if minutes is not None else plan.settings.epochs
    how_long = f"{minutes:g} minutes" if minutes is not None else f"{total} epoch{'' if total == 1 else 's'}"
    say(f"training {plan.preset.name} on {scenario} for {how_long}; the first epoch may compile the engine")
    try:
        with shown(total) as display:
            counters = runs.carry_out(
                plan, out, watch=display.watch, tell=display.tell, tensorboard=tensorboard, replace_earlier=force
            )
    except KeyboardInterrupt:
        if resume or _identity(out) != earlier:
            raise Interrupted(resume=resume_line(COMMAND.get())) from None
        raise Interrupted(f"the earlier training in {out} is untouched" if runs.begun(out) else "") from None
    _print_result(counters, plan.preset.name, plan.backfill, out / runs.MODEL)


def check_flags(epochs: int | None, minutes: float | None, *, resume: bool, force: bool) -> None:
    """Refuse flags that exclude each other.

    Raises:
        InputError: both are given.
    """
    if epochs is not None and minutes is not None:
        raise InputError("end a training in two ways", field="--epochs and --minutes", fix="give one or the other")
    if resume and force:
        problem = "keep and replace an earlier training"
        raise InputError(problem, field="--resume and --force", fix="give one or the other")


def _identity(folder: Path) -> int | None:
    """Distinguishes a folder from its replacement."""
    return folder.stat().st_ino if folder.exists() else None


_HINT = " (train longer, or set training.keep=last to keep the last weights)"


def _print_result(counters: Counters, preset: str, backfill: str, model: Path) -> None:
    from greenbatch.learning.model import read_record

    epochs = "1 epoch" if counters.epoch == 1 else f"{counters.epoch:,} epochs"
    print(f"{epochs}, {counters.decisions:,} decisions, {clock(counters.elapsed_s)}")
    if counters.best_epoch >= 0:
        kind = "average of weights" if counters.best_averaged else f"epoch {counters.best_epoch}"
        terms = ", ".join(f"{name} {value:.6g}" for name, value in counters.best_terms.items())
        details = "; ".join(filter(None, (kind, terms)))
        print(f"best on the validation windows: {counters.best_figure:.6g} ({details})")
    if read_record(model).training.untrained:
        print(f"warning: the model is untrained: no epoch was better than the initial weights{_HINT}")
    print(f"written to {model.parent}; use it as {preset}@{model}+{backfill}")


class Lines:
    """Prints the figures of epochs: the first, the last, and at most one line per minute in between."""

    def __init__(self, epochs: int | None) -> None:
        self.total = "" if epochs is None else f"/{epochs}"
        self.time_left, self.printed = TimeLeft(), float("-inf")

    def line(self, record: Record) -> str:
        """The figures of an epoch, the time since the first one, and the time left."""
        time_left = self.time_left.text(record["progress"])
        return "  ".join((f"epoch {record['epoch']}{self.total}", *_figures(record), time_left))

    def watch(self, record: Record) -> None:
        """An epoch is done."""
        line, now = self.line(record), time.perf_counter()
        if record["progress"] >= 1 or now - self.printed >= LOG_S:
            self.printed = now
            print(line, flush=True)

    def tell(self, what: str, done: int, total: int) -> None:
        """Progress of other work; not printed to logs."""


class _Bar(Lines):
    """Shows a bar, and a line per validation."""

    def __init__(self, epochs: int | None, bar: Progress) -> None:
        super().__init__(epochs)
        self.bar, self.task = bar, bar.add_task("before the first epoch", total=1.0)

    def watch(self, record: Record) -> None:
        """An epoch is done."""
        text = self.line(record)
        self.bar.update(self.task, completed=record["progress"], description=text)
        if "validation" in record:
            self.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def tell(self, what: str, done: int, total: int) -> None:
        """Progress of other work."""
        self.bar.update(self.task, description=f"{what}: {done} of {total}")


@contextmanager
def shown(epochs: int | None) -> Iterator[Lines]:
    """A bar in a terminal, lines otherwise."""
    if not sys.stdout.isatty():
        yield Lines(epochs)
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
    with Progress(*columns, transient=True) as bar:
        yield _Bar(epochs, bar)


_SHOWN = (
    ("decisions_per_s", "{:,.0f} decisions/s"), ("return", "return {:.4g}"), ("kl", "KL {:.2g}"),
    ("entropy", "entropy {:.3g}"), ("validation", "validation {:.5g}"), ("validation_average", "averaged {:.5g}"),
)  # fmt: skip
"""Displayed figures of an epoch."""


def _figures(record: Record) -> list[str]:
    found = [form.format(record[name]) for name, form in _SHOWN if name in record]
    return [*found, "best so far"] if record.get("better") else found
