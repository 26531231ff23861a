"""``greenbatch train --seeds``: the same training with several seeds, some at a time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from greenbatch.cli.flags import Texts, items, resume_line, whole
from greenbatch.cli.listing import say
from greenbatch.cli.progress import progress_line
from greenbatch.errors import InputError, Interrupted, visible
from greenbatch.workers import Workers, several, where


def train_seeds(
    preset: str, scenario: str, out: Path, seeds: str, workers: Workers | None, *, overrides: Texts, **given: Any
) -> None:
    """Train with each seed in a folder of its own; finished trainings are kept, interrupted ones resume.

    Args:
        preset: see `train.train`, as for the rest.
        scenario: the scenario to train on.
        out: folder of the trainings.
        seeds: numbers separated by commas.
        workers: where; one after another if None.
        overrides: new values for keys of the preset.
        given: further arguments of `plan.make_plan`.

    Raises:
        InputError: a folder contains a different training, or an argument is invalid.
        KeyboardInterrupt: stopped by the user; what is finished is kept.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.learning.runs.folder import begun, check_new
    from greenbatch.learning.runs.plan import make_plan, parse_overrides
    from greenbatch.learning.several import train_several, unfinished
    from greenbatch.models.model import MODEL
    from greenbatch.scenarios import load_scenario

    numbers = [whole(text, "--seeds", 0) for text in items(seeds, "--seeds")]
    if twice := [number for number in numbers if numbers.count(number) > 1]:
        raise InputError(f"{twice[0]} occurs twice", field="--seeds", fix="give each once")
    question = load_scenario(scenario)
    given["overrides"], chosen = parse_overrides(overrides), workers or 1
    plans = {
        out / f"seed-{number}": make_plan(preset, question, **given, seed=number, command=COMMAND.get())
        for number in numbers
    }
    if out.exists() and not out.is_dir():
        raise InputError("exists and is not a folder", file=out, field="--out", fix="give another folder")
    for folder in plans:
        if not begun(folder):
            check_new(folder, force=False)
    left, done = unfinished(plans), list[Path]()
    kept = f"; {len(plans) - len(left)} are finished" if len(left) < len(plans) else ""
    say(f"training {preset} on {scenario} with {len(plans)} seed{'s' * (len(plans) > 1)}{kept}")
    try:
        with progress_line() as show:

            def watch(folder: Path, each: Mapping[str, Any]) -> None:
                show(f"{folder.name}: epoch {each['epoch']}, {each['progress']:.0%}", len(done), len(left))

            with closing(train_several(left, workers=chosen, watch=watch)) as found:
                for folder, counters in found:
                    done.append(folder)
                    best = f"; best on the validation windows: {counters.best_figure:.6g}"
                    say(f"{folder.name}: {counters.text}{best if counters.best_epoch >= 0 else ''}")
                    if several(chosen):
                        show(f"trainings {where(chosen)}", len(done), len(left))
    except KeyboardInterrupt:
        finished = f"{len(plans) - len(left) + len(done)} of {len(plans)} trainings are finished"
        raise Interrupted(finished, resume=resume_line(COMMAND.get())) from None
    (folder, plan), *_ = plans.items()
    print(f"written to {visible(str(out))}; use one as {plan.preset.name}@{folder / MODEL}+{plan.backfill}")
