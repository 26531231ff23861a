"""Warnings about trained models, searched parameters and knowledge: unfamiliar scenarios, in-sample windows, untrained
weights, the future, and what was found on jobs that nobody tuned on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.models.searched import outside, searched_on
from greenbatch.notes import Note, ordered
from greenbatch.scenarios.profile import Profile, profile

if TYPE_CHECKING:
    import polars

    from greenbatch.models.records import ModelRecord
    from greenbatch.models.scheduler import ModelScheduler
    from greenbatch.scenarios import Scenario

UNLIKE = "this scenario is unlike the one it was trained on"
UNSEARCHED = "this scenario is unlike those its parameters were searched on"
WORSE = "possibly worse than plain rules"
IN_SAMPLE, NOT_CAUSAL = "in-sample", "not causal"
ELSEWHERE: Mapping[str, str] = {
    "foresee": "on eight whole logs that nobody tuned it on, it kept its saving, 14 to 34% of the grid energy of "
    "f2+easy, but not its slowdown: 1.0 to 1.5 times that of f2+easy, and 12 and 50 times on two machines without a "
    "queue",
    "cost-aware-plus": "on ten windows of HPC2N that it was not tested on before, it kept its saving, but held a burst"
    " of short jobs that request hours for 21 h: bounded slowdown 594 against 10.3 of the baseline",
}
"""Policy or preset -> what it did on jobs that nobody tuned it on, see docs/results.md."""


class ModelWarning(UserWarning):
    """A warning about a trained model, see `model_warnings`."""


def model_warnings(
    schedulers: Mapping[str, object], scenario: Scenario, starts: Sequence[int], jobs: int
) -> list[Note]:  # fmt: skip
    """Warnings about the models and the policies with searched parameters among the schedulers.

    Args:
        schedulers: the schedulers by name.
        scenario: the scenario they are used on.
        starts: first job of each window.
        jobs: jobs per window.
    """
    records, policies = _records(schedulers), _policies(schedulers)
    told = [
        (name, f"{NOT_CAUSAL}, it knows the future, which no scheduler can; it shows what knowing would be worth")
        for name in not_causal(schedulers)
    ]
    if records or any(map(searched_on, policies.values())):
        told += _unlike(records, policies, scenario, jobs)
        for name, shares in in_sample(schedulers, scenario, starts, jobs).items():
            told.append((name, _told(records[name], shares)))
        told += _nothing_to_weigh(schedulers, scenario)
    known = policies | {name: record.preset["name"] for name, record in records.items()}
    told += [(name, ELSEWHERE[kind]) for name, kind in known.items() if kind in ELSEWHERE]
    return list(ordered(Note(text, level="warning", of=(name,)) for name, text in told))


def _unlike(
    records: Mapping[str, ModelRecord], policies: Mapping[str, str], scenario: Scenario, jobs: int
) -> Iterator[tuple[str, str]]:
    """Names of schedulers, and how the scenario differs from what they are for; then what is wrong with each model."""
    from greenbatch.models.differences import Question, differences

    here = Question(profile(scenario), jobs)
    for name, policy in policies.items():
        if apart := outside(policy, here):
            yield name, f"{UNSEARCHED}: {apart}; {WORSE}"
    for name, record in records.items():
        training = record.training
        trained = None if record.profile is None else Question(record.profile, training.settings.jobs)
        unlike = [] if trained is None else differences(trained, here)
        if unlike:
            yield name, f"{UNLIKE}: {'; '.join(unlike)}; {WORSE}"
        if training.untrained:
            yield name, "untrained, its weights are those that training began with"
        for term, constraint in training.settings.constraints.items():
            value = record.validation.terms.get(term, math.nan)
            if constraint.excess(value) > 0:
                yield name, f"it did not keep a limit of its training: {term} {value:.4g}, {constraint.text}"
        if record.limits:
            yield name, "; ".join(record.limits)


def _nothing_to_weigh(schedulers: Mapping[str, object], scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Names of models whose preset weighs what the scenario does not have."""
    from greenbatch.presets.power import FIX, nothing_to_weigh

    for name, each in models_among(schedulers).items():
        if problem := nothing_to_weigh(each.model.preset, scenario):
            yield name, f"{problem}; {FIX}"


def in_sample(
    schedulers: Mapping[str, object], scenario: Scenario, starts: Sequence[int], jobs: int
) -> dict[str, NDArray[np.float64]]:
    """The in-sample models: those whose training or validation could have drawn jobs of the windows.

    Args:
        schedulers: the schedulers by name.
        scenario: the scenario they are used on.
        starts: first job of each window.
        jobs: jobs per window.

    Returns:
        Name of a model -> `seen_shares`, not all 0.
    """
    known = {name: record for name, record in _records(schedulers).items() if _same_jobs(record, scenario)}
    shares = {name: seen_shares(record, starts, jobs) for name, record in known.items()}
    return {name: each for name, each in shares.items() if each.any()}


def not_causal(schedulers: Mapping[str, object]) -> list[str]:
    """Names of the schedulers that know the future."""
    return [name for name, each in schedulers.items() if not getattr(each, "is_causal", True)]


def marks(
    schedulers: Mapping[str, object], scenario: Scenario, starts: Sequence[int], jobs: int
) -> dict[str, str]:  # fmt: skip
    """Name of a scheduler whose figures need a mark -> the mark; arguments as of `in_sample`."""
    seen = dict.fromkeys(in_sample(schedulers, scenario, starts, jobs), IN_SAMPLE)
    return seen | dict.fromkeys(not_causal(schedulers), NOT_CAUSAL)


def marked(frame: polars.DataFrame, baseline: str, marks: Mapping[str, str]) -> tuple[polars.DataFrame, str]:
    """A tidy frame and its baseline with the marks in the names, for sentences and key figures.

    Schedulers that are not causal are left out, unless one is the baseline: nobody can choose them.
    """
    left = [name for name, mark in marks.items() if mark == NOT_CAUSAL and name != baseline]
    names = {name: f"{name} ({mark})" for name, mark in marks.items()}
    frame = frame.filter(~frame["scheduler"].is_in(left))
    return frame.with_columns(frame["scheduler"].replace(names)), names.get(baseline, baseline)


def _told(record: ModelRecord, shares: NDArray[np.float64]) -> str:
    """The shares of an in-sample model in words."""
    seen = shares[shares > 0]
    low, high = (max(round(100 * share), 1) for share in (seen.min(), seen.max()))
    span = f"{high}%" if low == high else f"{low} to {high}%"
    apart = record.training.held_out_jobs
    where = "the window" if len(shares) == 1 else f"{len(seen)} of {len(shares)} windows"
    unseen = f" (jobs {apart[0]} to {apart[1]} were held out)" if apart else ""
    drawn = f"in-sample, {span} of the jobs in {where} could have been drawn in training"
    return f"{drawn}; it may be worse on other jobs{unseen}"


def seen_shares(record: ModelRecord, starts: Sequence[int], jobs: int) -> NDArray[np.float64]:
    """Share of each window's jobs that could have been drawn in a model's training, shape (windows,), in [0, 1].

    Of the draws of a generator (0 jobs per window) only the first, number 0, has the jobs that windows are drawn from.
    """
    first = np.asarray(starts, np.int64)
    if not jobs:
        seen = sum(end + 1 - begin for begin, end in record.training.seen_jobs)
        total = seen if record.profile is None else record.profile.jobs
        return np.where(first == 0, seen / max(total, 1), 0.0)
    count = np.zeros(len(first), np.int64)
    for begin, end in record.training.seen_jobs:
        count += np.clip(np.minimum(first + jobs, end + 1) - np.maximum(first, begin), 0, None)
    shares: NDArray[np.float64] = np.minimum(count / jobs, 1.0)
    return shares


def models_among(schedulers: Mapping[str, object]) -> dict[str, ModelScheduler]:
    """The trained models among the schedulers and inside them, by name."""
    inside = {name: getattr(each, "inside", None) or each for name, each in schedulers.items()}
    if not any(hasattr(each, "model") for each in inside.values()):  # spares rules the imports
        return {}
    from greenbatch.models.scheduler import ModelScheduler

    return {name: each for name, each in inside.items() if isinstance(each, ModelScheduler)}


def _policies(schedulers: Mapping[str, object]) -> dict[str, str]:
    """Name of each scheduler that is a policy of the registry -> name of the policy."""
    from greenbatch.schedulers.build import Scheduler

    return {name: each.entry.name for name, each in schedulers.items() if isinstance(each, Scheduler)}


def _records(schedulers: Mapping[str, object]) -> dict[str, ModelRecord]:
    return {name: each.model.record for name, each in models_among(schedulers).items()}


def _same_jobs(record: ModelRecord, scenario: Scenario) -> bool:
    """Whether a scenario has the same jobs as a model's training: the same generator or file, or the same key figures.

    How the file is read, its name and its compression may differ.
    """
    then = _source_of(record.provenance.scenario, record.provenance.inputs)
    if then is not None and then == _source_of(scenario.resolved, scenario.inputs):
        return True
    if record.profile is None or record.profile.jobs != len(scenario.workload):
        return False
    return bool(np.allclose(_job_figures(record.profile), _job_figures(profile(scenario)), rtol=1e-5, atol=0.0))


def _source_of(resolved: Mapping[str, Any], inputs: Mapping[str, str]) -> object:
    """Where the jobs of a scenario come from: the generator or the content of the trace; None if unknown."""
    workload = resolved.get("workload")
    if not isinstance(workload, Mapping):
        return None
    trace = workload.get("dataset") or workload.get("file")
    return inputs.get(PurePath(str(trace)).name) if trace else workload.get("generator")


def _job_figures(known: Profile) -> list[float]:
    """Key figures that depend on the jobs alone; work per second is the load times the processors."""
    load = math.nan if known.load is None else known.load
    return [known.median_run_time_s, known.short_jobs, known.median_request, load * known.processors]
