"""What a model's record says of how it was trained."""

from __future__ import annotations

from typing import Any

from greenbatch.learning import windows
from greenbatch.learning.counters import Counters
from greenbatch.learning.runs import Plan
from greenbatch.provenance import provenance


def training_record(plan: Plan, counters: Counters, *, kept: str, averaged: bool) -> dict[str, Any]:
    """The tables ``training`` and ``provenance`` of ``model.json``.

    Args:
        plan: what was trained.
        counters: how far it came.
        kept: which weights became the model, ``best`` on the validation windows or ``last``.
        averaged: they are an average.
    """
    settings, best = plan.settings, kept == "best"
    held_out = [windows.HELD_OUT.start, windows.HELD_OUT.stop - 1] if plan.windows == "held-out" else []
    return {
        "training": {
            "scenario": plan.scenario.name,
            "windows": plan.windows,
            "held_out_jobs": held_out,
            "backfill": plan.backfill,
            "seed": settings.seed,
            "threads": plan.threads,
            "device": plan.device,
            "epochs": counters.epoch,
            "kept": kept,
            "kept_epoch": counters.best_epoch if best else counters.epoch,
            "averaged": averaged,
            "finished": counters.done,
            "decisions": counters.decisions,
            "minutes": round(counters.elapsed_s / 60, 3),
            "settings": settings.model_dump(mode="json"),
        },
        "provenance": provenance(
            scenario=plan.scenario.resolved, inputs=plan.scenario.inputs, notes=plan.scenario.notes,
            settings={"preset": plan.preset.name}, seed=settings.seed, command=plan.command,
        ),
    }  # fmt: skip
