"""``greenbatch retrain``: retrain models from their records and compare them with the originals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.errors import InputError

if TYPE_CHECKING:
    from greenbatch.experiments.running.retrained import Retrained


def retrain(*models: str, out: Path, scenario: str | None = None) -> None:
    """Retrain models from their records and compare them with the originals.

    The same command resumes an interrupted retraining.

    Parameters
    ----------
    models
        PRESET/NAME of a shipped model, or the folder of a training or model; every shipped model if none is given.
    out
        Folder for the trainings, one subfolder each.
    scenario
        TOML file of the scenario your own model was trained on, unless it is a shipped scenario.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.cli.training_progress import training_progress
    from greenbatch.experiments.running.retrained import choose
    from greenbatch.experiments.running.retrained import retrain as run

    chosen = choose(models)
    if not chosen:
        raise InputError("this version has no shipped models", field="models", fix="give the folder of a model")
    for name, folder in chosen.items():
        print(name)
        with training_progress(None) as display:
            found = run(name, folder, out / name.strip("/").replace("/", "-"), display.watch, COMMAND.get(), scenario)
        show(found)


def show(found: Retrained) -> None:
    """Print the figures of a model and of the retrained one."""
    same = "the same weights" if found.same_weights else f"weights differ by up to {found.largest_difference:.3g}"
    print(f"{found.name}: {same}")
    for metric, (original, retrained) in found.figures.items():
        print(f"  {metric:28s} {original:12.6g} {retrained:12.6g}")
