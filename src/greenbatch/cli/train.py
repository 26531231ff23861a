"""``greenbatch train``: train a preset on a scenario, in a folder from which training can be resumed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.cli.flags import Natural, Positive, Switch, Texts, check_training_flags, resume_line, workers_of
from greenbatch.cli.listing import say, say_notes
from greenbatch.cli.progress import clock
from greenbatch.errors import InputError, Interrupted, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from greenbatch.learning.runs.counters import Counters
    from greenbatch.learning.runs.plan import Plan


def train(
    preset: str,
    *,
    scenario: str,
    out: Path,
    epochs: Positive = None,
    minutes: float | None = None,
    seed: Natural = None,
    seeds: str | None = None,
    workers: Positive = None,
    ray: str | None = None,
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
    seeds
        Train once with each of these seeds, separated by commas; in folders seed-0, seed-1, ... of --out.
    workers
        With --seeds, trainings at a time; in a search, processes that evaluate candidates. Results do not change.
    ray
        Use the machines of a Ray cluster: auto, HOST:PORT, or local for this machine. Results do not change.
    resume
        Resume the training in the folder; the other flags must be unchanged.
    device
        cpu, cuda or cuda:N.
    backfill
        Backfilling to train with, and after it a placement (easy+worst-fit), instead of the preset's.
    windows
        published: drawn as in the papers; held-out: never from jobs 2000 to 4400, which are reserved for tests.
    threads
        Threads, instead of the preset's; 0 for one per processor. Their number affects rounding and thus the result.
    overrides
        New values for keys of the preset, e.g. training.passes=4 reward.terms.avg_bounded_slowdown=-0.01.
    tensorboard
        Also write events/ for TensorBoard, if it is installed.
    force
        Replace an earlier training in the folder.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.cli.training_progress import training_progress

    check_training_flags(epochs, minutes, resume=resume, force=force)
    given: dict[str, Any] = {
        "overrides": overrides, "windows": windows, "backfill": backfill, "epochs": epochs, "minutes": minutes,
        "threads": threads, "device": device,
    }  # fmt: skip
    if seeds is not None:
        from greenbatch.cli.train_seeds import train_seeds

        alone = {"--seed": seed, "--force": force, "--tensorboard": tensorboard}
        if clash := [flag for flag, value in alone.items() if value is not None and value is not False]:
            raise InputError(f"is for a single training, not for --seeds {seeds}", field=clash[0], fix="leave it out")
        train_seeds(preset, scenario, out, seeds, workers_of(workers, ray), **given)
        return
    from greenbatch.experiments.reports.cautions import slow_node_notes
    from greenbatch.learning.runs.folder import begun, check_new, other_versions, read_run
    from greenbatch.learning.runs.plan import make_plan, parse_overrides
    from greenbatch.learning.trainers import train_or_search
    from greenbatch.models.model import MODEL
    from greenbatch.scenarios import load_scenario

    read_run(out) if resume else check_new(out, force=force)
    given["overrides"] = parse_overrides(overrides)
    plan = make_plan(preset, load_scenario(scenario), **given, seed=seed, command=COMMAND.get())
    for note in other_versions(out) if resume else ():
        print(f"note: {note}")
    earlier = _identity(out)
    total = None if minutes is not None else plan.settings.epochs
    how_long = f"{minutes:g} minutes" if minutes is not None else f"{total} epoch{'' if total == 1 else 's'}"

    def started() -> None:
        say_notes([*slow_node_notes(plan.scenario), *plan.scenario.notes], f"{MODEL}/model.json in {out}")
        own = plan.settings.off_policy
        if own is not None and own.dataset:
            instead = f", instead of windows under {', '.join(own.schedulers)}" if own.schedulers else ""
            say(f"{own.dataset} fills the buffer{instead}")
        say(f"training {plan.preset.name} on {scenario} for {how_long}; the first epoch may compile the engine")

    try:
        with training_progress(total) as display:
            counters = train_or_search(
                plan,
                out,
                watch=display.watch,
                tell=display.tell,
                started=started,
                tensorboard=tensorboard,
                replace_earlier=force,
                workers=workers_of(workers, ray),
            )
    except KeyboardInterrupt:
        if resume or _identity(out) != earlier:
            raise Interrupted(resume=resume_line(COMMAND.get())) from None
        raise Interrupted(f"the earlier training in {out} is untouched" if begun(out) else "") from None
    _print_result(counters, plan, out / MODEL)


def _identity(folder: Path) -> int | None:
    """Distinguishes a folder from its replacement."""
    return folder.stat().st_ino if folder.exists() else None


_HINT = " (train longer, or set training.keep=last to keep the last weights)"


_ALLOW = "train longer, or give a bound that can be kept; log.jsonl has the mean of every epoch"


def _promises(counters: Counters, plan: Plan) -> Iterator[str]:
    """For each constraint of a training, whether the model keeps it."""
    of_model = plan.settings.keep == "best" and counters.best_epoch >= 0
    for name, constraint in plan.settings.constraints.items():
        if not of_model:
            fix = "validate, and set training.keep=best"
            yield f"warning: nothing says whether the model keeps {name} {constraint.text} ({fix})"
            continue
        value = counters.best_terms[name]
        found = f"on the validation windows: {name} {value:.6g}, {constraint.text}"
        broken = constraint.excess(value) > 0
        yield f"warning: a limit is not kept {found} ({_ALLOW})" if broken else f"a limit is kept {found}"


def _work(counters: Counters, plan: Plan) -> str:
    """What a training has simulated or, if it has not, how often it has learned."""
    own = plan.settings.off_policy
    if own is not None and not counters.decisions:
        return f"{counters.epoch * own.steps:,} gradient steps on recorded decisions"
    return "1 decision" if counters.decisions == 1 else f"{counters.decisions:,} decisions"


def _print_result(counters: Counters, plan: Plan, model: Path) -> None:
    from greenbatch.models.model import read_record

    epochs = "1 epoch" if counters.epoch == 1 else f"{counters.epoch:,} epochs"
    print(f"{epochs}, {_work(counters, plan)}, {clock(counters.elapsed_s)}")
    if counters.best_epoch >= 0:
        kind = "average of weights" if counters.best_averaged else f"epoch {counters.best_epoch}"
        terms = ", ".join(f"{name} {value:.6g}" for name, value in counters.best_terms.items())
        details = "; ".join(filter(None, (kind, terms)))
        print(f"best on the validation windows: {counters.best_figure:.6g} ({details})")
    for line in _promises(counters, plan):
        say(line)
    if read_record(model).training.untrained:
        print(f"warning: the model is untrained, its weights are the initial ones{_HINT}")
    print(f"written to {visible(str(model.parent))}; use it as {plan.preset.name}@{model}+{plan.backfill}")
