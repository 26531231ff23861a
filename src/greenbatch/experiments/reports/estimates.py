"""What recorded decisions say about a model, as tables, sentences and files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from greenbatch.datasets import Dataset
from greenbatch.experiments.reports.result_folder import write_record
from greenbatch.experiments.reports.tables import Cell, Table, write
from greenbatch.experiments.running.estimates import CLOSE, LOW, MODEL, Estimates, Recorded, Value
from greenbatch.learning.evaluation import Estimate
from greenbatch.learning.evaluation.estimate import FEW_EPISODES
from greenbatch.notes import Note

AGREEMENT = (
    ("Agreement where there is a choice", "%", "Agreement"), ("at random", "%", "at random"),
    ("choices", "", "choices"), ("Agreement in all decisions", "%", "of all"), ("decisions", "", "decisions"),
    ("Mean return", "", "Return"), ("discounted", "", "discounted"),
)  # fmt: skip
VALUE = (
    ("Discounted value", "", "Value"), ("Interval", "", "Interval"), ("Episodes", "", "Episodes"),
    ("effective", "", "effective"), ("Return", "", "Return"),
)  # fmt: skip
IMPORTANCE, FITTED = "importance sampling", "fitted Q evaluation"
"""Rows of the table of values."""


def _is_drifting(found: Estimates) -> bool:
    from greenbatch.learning.evaluation.fitted import DRIFTING

    return abs(found.fitted.drift) > DRIFTING * abs(found.fitted.estimate.value)


_REASONS: tuple[tuple[Callable[[Estimates], bool], Callable[[Estimates], str]], ...] = (
    (lambda it: it.paced,
     lambda _: "jobs of the log start when its site let them, those of the model as soon as they fit, and when is no "
               "decision of this preset"),
    (_is_drifting, lambda _: "it had not settled; give more --steps"),
    (lambda it: it.fitted.explained < LOW,
     lambda it: f"the critics explain {_percent(it.fitted.explained)} % of the variance of their targets"),
    (lambda it: it.whole.agreement is not None and it.whole.agreement.share < LOW,
     lambda it: f"the policy agrees with {_percent(_share(it.whole))} % of the recorded choices, so the record says "
                "little about what it comes to"),
    (lambda it: it.fitted.estimate.effective < FEW_EPISODES,
     lambda it: f"the record has {it.whole.value.episodes:,} first decisions, too few for what they are worth"),
)  # fmt: skip
"""Whether a reason holds -> the reason."""
_UNKNOWN = (
    "no diagnostic shows why; likely the policy comes to states that the record lacks, or the value depends on what is "
    "not observed, such as the time left"
)


def agreement_table(found: Estimates) -> Table:
    """Agreement and recorded value, a row for each scheduler of the dataset, then all of them."""
    rows = {**found.schedulers, "all": found.whole} if len(found.schedulers) > 1 else found.schedulers
    return Table(
        title=f"{found.scenario}: recorded decisions, and how often {_name(found)} decides the same",
        columns=AGREEMENT, rows=tuple((name, _agreement_cells(each)) for name, each in rows.items()),
    )  # fmt: skip


def _agreement_cells(each: Recorded) -> tuple[Cell, ...]:
    found, value = each.agreement, (Cell(_number(each.value.total)), Cell(_number(each.value.discounted)))
    if found is None or each.at_random is None:
        return (*(Cell("–"),) * 5, *value)  # noqa: RUF001 - a dash for the reader
    return (
        Cell(_percent(found.share)), Cell(_percent(each.at_random)), Cell(f"{found.contested:,}"),
        Cell(_percent(found.share_of_all)), Cell(f"{found.decisions:,}"), *value,
    )  # fmt: skip


def value_table(found: Estimates) -> Table:
    """What the model is worth by each way to estimate it, and by simulation; then the simulated schedulers."""
    rows = [(IMPORTANCE, _estimate_cells(found.importance)), (FITTED, _estimate_cells(found.fitted.estimate))]
    if found.simulated_model is not None:
        rows.append((f"{MODEL}, simulated", _value_cells(found.simulated_model)))
    rows += [(f"{name}, simulated", _value_cells(each)) for name, each in (found.simulated or {}).items()]
    return Table(
        title=f"{found.scenario}: estimated value of {_name(found)}, discount {_discount(found)}", columns=VALUE,
        rows=tuple(rows), corner="By", notes=tuple(sentences(found)),
    )  # fmt: skip


def _discount(found: Estimates) -> str:
    return f"{found.gamma:g} every {found.gamma_s:g} s" if found.gamma_s else f"{found.gamma:g}"


def _estimate_cells(each: Estimate | None) -> tuple[Cell, ...]:
    if each is None:
        return (*(Cell("–"),) * 4, Cell(""))  # noqa: RUF001 - a dash for the reader
    return (
        Cell(_number(each.value)), Cell(f"{_number(each.low)} to {_number(each.high)}"), Cell(f"{each.episodes:,}"),
        Cell(f"{each.effective:.1f}"), Cell(""),
    )  # fmt: skip


def _value_cells(each: Value) -> tuple[Cell, ...]:
    return (Cell(_number(each.discounted)), Cell(""), Cell(f"{each.episodes:,}"), Cell(""), Cell(_number(each.total)))


def sentences(found: Estimates) -> list[str]:
    """What the figures rest on, cautions, and whether the estimate holds."""
    fitted, gap = found.fitted, found.fitted.gap
    lines = [
        f"Fitted Q evaluation: {found.steps:,} steps; residual {fitted.residual:.3g}, explained "
        f"{_percent(fitted.explained)} % of the variance of the targets, drift {fitted.drift:.3g}, gap to the "
        f"simulated value {'unknown without --simulate' if gap is None else f'{gap:.3g}'}."
    ]
    if fitted.estimate.caution:
        lines.append(f"Caution: fitted Q evaluation {fitted.estimate.caution}.")
    if found.importance is None:
        lines.append(f"No importance sampling: the policy {found.without_importance}.")
    elif found.importance.caution:
        lines.append(f"Caution: importance sampling {_of_importance(found.importance.caution)}.")
    lines += _beyond(found)
    if found.simulated_model is not None:
        lines.append(verdict(found, found.simulated_model))
    return lines


def _of_importance(caution: str) -> str:
    return caution if caution.startswith("rests") else f"is doubtful, {caution}"


def _beyond(found: Estimates) -> list[str]:
    """A caution if the discount leaves out most of an episode."""
    usual = found.whole.agreement.decisions / found.whole.value.episodes if found.whole.agreement else 0.0
    horizon = 1.0 / (1.0 - found.to_next) if found.to_next < 1 else math.inf
    if horizon >= LOW * usual:
        return []
    return [
        f"Caution: a discount of {_discount(found)} counts about {horizon:,.0f} decisions, and episodes have "
        f"{usual:,.0f}: the value is that of their beginnings."
    ]


def verdict(found: Estimates, truth: Value) -> str:
    """Whether fitted Q evaluation is close to the simulated value, and the likely reasons if not."""
    value, distance = found.fitted.estimate.value, found.distance
    told = f"Fitted Q evaluation gives {_number(value)}, the simulation {_number(truth.discounted)}: "
    is_close = value == truth.discounted if distance is None else abs(distance) <= CLOSE
    off = "" if distance is None else f" ({100 * abs(distance):.1f} % {'above' if distance > 0 else 'below'})"
    if is_close:
        return f"{told}within {100 * CLOSE:g} %{off}."
    reasons = [say(found) for holds, say in _REASONS if holds(found)] or [_UNKNOWN]
    return f"{told}not within {100 * CLOSE:g} %{off}: {'; '.join(reasons)}."


def estimates_json(found: Estimates) -> dict[str, Any]:
    """All figures, ready for JSON."""

    def value(each: Value | None) -> dict[str, Any] | None:
        return None if each is None else each._asdict()

    def recorded(each: Recorded) -> dict[str, Any]:
        agreed = None if each.agreement is None else each.agreement._asdict()
        return {"agreement": agreed, "at_random": each.at_random, "value": value(each.value)}

    simulated = None if found.simulated is None else {name: value(each) for name, each in found.simulated.items()}
    return {
        "model": found.model, "dataset": found.dataset, "scenario": found.scenario, "sampled": found.sampled,
        "behavior": found.behavior or None, "gamma": found.gamma, "gamma_s": found.gamma_s, "steps": found.steps,
        "seed": found.seed,
        "schedulers": {name: recorded(each) for name, each in found.schedulers.items()},
        "all": recorded(found.whole), "importance": None if found.importance is None else asdict(found.importance),
        "fitted": asdict(found.fitted), "simulated": simulated, "simulated_model": value(found.simulated_model),
        "distance": found.distance, "sentences": sentences(found),
    }  # fmt: skip


def write_estimates(
    found: Estimates, dataset: Dataset, folder: Path, command: Sequence[str], notes: Sequence[Note] = ()
) -> None:  # fmt: skip
    """Write estimate.json, table.md and provenance.json, which has the notes of the scenario that is simulated."""
    from greenbatch.data_catalog import sha256
    from greenbatch.datasets.schema import RECORD
    from greenbatch.models.records import ACTOR
    from greenbatch.provenance import provenance

    text = json.dumps(estimates_json(found), indent=2, allow_nan=False)
    (folder / "estimate.json").write_text(text + "\n", encoding="utf-8")
    tables = "\n\n".join(write(made(found), "markdown") for made in (agreement_table, value_table))
    (folder / "table.md").write_text(tables + "\n", encoding="utf-8")
    files = [dataset.folder / RECORD, *(Path(each) / ACTOR for each in (found.model, found.behavior) if each)]
    inputs = {str(file): sha256(file) for file in files}
    settings = {"gamma": found.gamma, "gamma_s": found.gamma_s, "steps": found.steps, "sampled": found.sampled}
    record = provenance(scenario=dataset.record.resolved, inputs={**dataset.record.inputs, **inputs},
                        notes=[str(note) for note in notes], settings=settings, seed=found.seed,
                        command=command)  # fmt: skip
    write_record(folder, record)


def _name(found: Estimates) -> str:
    return f"{found.model}{' (sampled)' if found.sampled else ''}"


def _share(each: Recorded) -> float:
    return math.nan if each.agreement is None else each.agreement.share


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _number(value: float) -> str:
    return f"{value:,.6g}"
