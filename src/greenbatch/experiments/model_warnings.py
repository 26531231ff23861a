"""Warnings about trained models: unfamiliar scenarios, in-sample windows, untrained weights and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.experiments.model_sections import models_among

if TYPE_CHECKING:
    from greenbatch.learning.records import ModelRecord
    from greenbatch.scenarios import Scenario


def model_warnings(names: Sequence[str], scenario: Scenario, starts: Sequence[int], jobs: int) -> list[str]:
    """Warnings about the models among the schedulers, one line each.

    Args:
        names: names of the schedulers.
        scenario: the scenario they are used on.
        starts: first job of each window.
        jobs: jobs per window.
    """
    from greenbatch.learning.unlike import Question, differences
    from greenbatch.scenarios.profile import profile

    models = models_among(names)
    if not models:
        return []
    here, lines = Question(profile(scenario), jobs), []
    limited: dict[tuple[str, ...], list[str]] = {}
    for name, each in models.items():
        record = each.model.record
        training = record.training
        trained = None if record.profile is None else Question(record.profile, training.settings.jobs)
        unlike = [] if trained is None else differences(trained, here)
        if unlike:
            lines.append(f"{name}: {', '.join(unlike)}; figures may be worse than a plain rule's")
        if training.untrained:
            lines.append(f"{name}: untrained, the weights kept are those before the first epoch")
        if record.limits:
            limited.setdefault(record.limits, []).append(name)
    lines += [f"{', '.join(same)}: {'; '.join(limits)}" for limits, same in limited.items()]
    return [*lines, *familiar_windows(names, scenario, starts, jobs)]


def familiar_windows(names: Sequence[str], scenario: Scenario, starts: Sequence[int], jobs: int) -> list[str]:
    """A line for each in-sample model, i.e. trained or selected on jobs of the windows.

    Args:
        names: names of the schedulers.
        scenario: the scenario they are compared on.
        starts: first job of each window.
        jobs: jobs per window.
    """
    lines = []
    for name, each in models_among(names).items():
        record = each.model.record
        if not _same_jobs(record, scenario):
            continue
        shares = seen_shares(record, starts, jobs)
        known = shares[shares > 0]
        if not len(known):
            continue
        low, high = f"{known.min():.0%}", f"{known.max():.0%}"
        span = high if low == high else f"{low.removesuffix('%')} to {high}"
        apart = record.training.held_out_jobs
        kept = f" (jobs {apart[0]} to {apart[1]} were held out)" if apart else ""
        lines.append(
            f"{name}: in-sample, trained on {span} of the jobs of {len(known)} of {len(starts)} windows"
            f"; results on other jobs may be worse{kept}"
        )
    return lines


def seen_shares(record: ModelRecord, starts: Sequence[int], jobs: int) -> NDArray[np.float64]:
    """Share of each window's jobs that a model was or could have been trained on, shape (windows,), in [0, 1]."""
    first = np.asarray(starts, np.int64)
    count = np.zeros(len(first), np.int64)
    for begin, end in record.training.seen_jobs:
        count += np.clip(np.minimum(first + jobs, end + 1) - np.maximum(first, begin), 0, None)
    shares: NDArray[np.float64] = np.minimum(count / jobs, 1.0)
    return shares


def _same_jobs(record: ModelRecord, scenario: Scenario) -> bool:
    """Whether a scenario has the same jobs, in the same order, as a model's training; by content, not by file name."""
    then = _jobs_of(record.provenance.scenario, record.provenance.inputs)
    return then is not None and then == _jobs_of(scenario.resolved, scenario.inputs)


def _jobs_of(resolved: Mapping[str, Any], inputs: Mapping[str, str]) -> tuple[object, ...] | None:
    """What determines the jobs of a scenario: the generator or the content of the trace, and how it is read."""
    workload = resolved.get("workload")
    if not isinstance(workload, Mapping):
        return None
    trace = workload.get("dataset") or workload.get("file")
    content = inputs.get(PurePath(str(trace)).name) if trace else None
    if content is None and not workload.get("generator"):
        return None
    return (workload.get("generator"), content, workload.get("reader"), workload.get("columns"))
