"""``greenbatch retrain``: models trained once more from their own record, and compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.errors import InputError

if TYPE_CHECKING:
    from greenbatch.experiments.retrained import Retrained


def retrain(*models: str, out: Path, scenario: str | None = None) -> None:
    """Train models that come with greenbatch, or your own, anew from their record, and compare the metrics.

    An interrupted retraining goes on where it was when the same command is given again.

    Parameters
    ----------
    models
        PRESET/NAME of a model that comes with greenbatch, or the folder of a model; all shipped ones if none is given.
    out
        Folder for the trainings, one folder each.
    scenario
        The scenario that your own model was trained on: a TOML file, unless it is one that comes with greenbatch.
    """
    from greenbatch.cli.app import COMMAND
    from greenbatch.cli.train import Lines
    from greenbatch.experiments.retrained import choose
    from greenbatch.experiments.retrained import retrain as run

    chosen = choose(models)
    if not chosen:
        raise InputError("no model comes with this version", field="models", fix="give the folder of a model")
    for name, folder in chosen.items():
        print(name)
        show(run(name, folder, out / name.strip("/").replace("/", "-"), Lines(None).watch, COMMAND.get(), scenario))


def show(found: Retrained) -> None:
    """Print a model beside the one trained anew."""
    same = "the same weights" if found.same_weights else f"weights differ by up to {found.largest_difference:.3g}"
    print(f"{found.name}: {same}")
    for metric, (shipped, anew) in found.figures.items():
        print(f"  {metric:28s} {shipped:12.6g} {anew:12.6g}")
