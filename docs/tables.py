"""The tables of the documentation that are generated from the code: ``python docs/tables.py`` updates the pages.

A page marks the place of a table with ``<!-- table: NAME -->`` and ``<!-- end of table -->``; `TABLES` maps the name to
the function that returns its Markdown. A test fails while a page is out of date. A policy, backfilling, metric or key
without a description in the code is an error.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from learning_tables import LEARNING
from results_tables import RESULT_TABLES
from scenario_keys import grid, section, sections, sources
from texts import NOTHING, markdown, table

from greenbatch.cli.app import VERBS
from greenbatch.energy.units import BOUNDS, CANONICAL, unit_names
from greenbatch.engine.capabilities import No, capabilities
from greenbatch.engine.machine.placement import PLACEMENTS
from greenbatch.engine.settings import Parameter
from greenbatch.metrics import METRICS, PER_JOB
from greenbatch.policies.backfillings import BACKFILLINGS
from greenbatch.scenarios import shipped_names
from greenbatch.scenarios.scenario import SHIPPED
from greenbatch.scenarios.toml import read_toml
from greenbatch.schedulers import CHARGE_PARAMETERS, backfill_parameters, entries, placement_parameters


def policies() -> str:
    """Every registered policy: what it does, its parameters, and whether it takes backfilling."""
    rows = []
    built_in = {name: entry for name, entry in entries().items() if entry.built_in}
    for name, entry in sorted(built_in.items(), key=lambda item: not item[1].backfills):
        doc = inspect.getdoc(entry.plan) if entry.parameters else entry.summary
        rows.append((f"`{name}`", _told(name, doc), _parameters(entry.parameters), "yes" if entry.backfills else "no"))
    return table(("Policy", "Order", "Parameters: defaults, ranges", "Backfilling"), rows)


def backfillings() -> str:
    """Every backfilling: which jobs may overtake, and its parameters."""
    rows = [(f"`{name}`", markdown(told), _parameters(backfill_parameters(name)))
            for name, told in BACKFILLINGS.items()]  # fmt: skip
    head = ("Backfilling", "Which jobs may overtake a job that does not fit", "Parameters: defaults, ranges")
    return table(head, rows)


CALLED = {
    "bound": "a bound", "environment": "an environment", "knowledge": "a scheduler that knows the future",
    "preset": "the agent", "search": "a search", "reward": "a term of the reward",
}  # fmt: skip
"""What messages call a part that is no scheduler's name."""


SET: dict[tuple[str, ...], str] = {
    ("follow",): "obey", ("sticky",): "sticky", ("forecast_error",): "one with errors", ("swap",): '"swap"',
    ("no_commands",): "is missing or has another dispatch", ("unmeasured",): "a job", ("no_supply",): "the scenario",
    ("no_prices",): "the scenario", ("no_carbon",): "the scenario",
    ("fixed",): "the scenario",
}  # fmt: skip
"""What messages say is set, by the part or features of a row."""


def combinations() -> str:
    """Every part of a scheduler, and with which features it goes."""
    known, kinds = capabilities(), tuple(capabilities().parts)
    # of no part by itself, or told by the rows of reasons
    alone = {
        "sticky", "reconsider", "dvfs", "contention", "pools", "swap", "due", "charge", "episodes", "partitions",
        "backfilling", "placement", "supply", "unmodelled", "no_grid", "no_prices", "no_carbon", "no_commands",
    }  # fmt: skip
    shown = [name for name in known.features if name not in alone]
    rows = []
    for kind in kinds:
        for name in known.parts.get(kind, ()):
            cells = [known.no(kind, name, feature) for feature in shown]
            if kind == "feature":  # of two features, a row names one as the part
                cells = [cell or known.no(kind, each, name) for cell, each in zip(cells, shown, strict=True)]
            rows.append((kind, f"`{name}`", *("yes" if each is None else _cell(each) for each in cells)))
    return table(("Part", "Name", *shown), rows)


def _cell(no: No) -> str:
    return no.kind + (f" (beside {no.beside})" if no.beside else "")


def features() -> str:
    """What each feature is, also those that have no column in `combinations`."""
    return table(("Feature", "What it is"), [(name, markdown(told)) for name, told in capabilities().features.items()])


def refusals() -> str:
    """Every no of the table, with its reason."""
    known, rows = capabilities(), []
    for no in known.noes:
        who = ", ".join(f"`{name}`" for name in no.names or [n for n in known.parts[no.part] if no.is_about(n)])
        who = who or f"a {no.part} of one's own"
        beside = f" (beside {no.beside})" if no.beside else ""
        called = CALLED.get(no.part, "the scheduler")
        told = known.features.get(no.names[0], "") if no.part == "feature" and no.names else called
        values = {"name": called, "part": told, "without": "it", "value": SET.get(no.names[:1], "set"),
                  "feature": " or ".join(known.features.get(each, f"`{each}`") for each in no.features),
                  "set": SET.get(no.features, "that")}  # fmt: skip
        rows.append((who, ", ".join(no.features) + beside, no.kind, markdown(no.problem.format(**values))))
    return table(("Part", "Does not go with", "Why", "What the message says"), rows)


def placements() -> str:
    """Every placement: which nodes it prefers, and its parameters."""
    rows = [(f"`{name}`", markdown(placement.meaning), _parameters(placement_parameters(name)))
            for name, placement in PLACEMENTS.items()]  # fmt: skip
    return table(("Placement", "Which of the nodes with room a job takes", "Parameters: defaults, ranges"), rows)


def charge() -> str:
    """The parameters of commands to storage by rank."""
    rows = [(f"`{name}={each.text(each.default)}`", each.span, each.meaning)
            for name, each in CHARGE_PARAMETERS.items()]  # fmt: skip
    return table(("Parameter: default", "Range", "Meaning"), rows)


def _parameters(known: Mapping[str, Parameter]) -> str:
    given = (f"`{key}={parameter.text(parameter.default)}`: {parameter.span}" for key, parameter in known.items())
    return "; ".join(given) or NOTHING


def shipped() -> str:
    """Every shipped scenario."""
    rows = [(f"`{name}`", read_toml(SHIPPED / f"{name}.toml")[0]["description"]) for name in shipped_names()]
    return table(("Scenario", "Question"), rows)


def metrics(scope: str) -> str:
    """Every metric of a scope, with its formula, range and source."""
    rows = []
    for m in METRICS.values():
        doc = _told(m.name, m.doc)
        for name, function in PER_JOB.items():  # documented once, in a table of their own
            whole = markdown(function.__doc__).replace(", shape (n,)", "")
            doc = doc.replace(f"jobs. {whole}", f"jobs, of `{name}`.")
        if m.scope == scope:
            rows.append((f"`{m.name}`", m.unit, m.better, doc))
    return table(("Metric", "Unit", "Better", "Formula, range, source"), rows)


def job_metrics() -> str:
    """What is measured of every job."""
    rows = [(f"`{name}`", _told(name, function.__doc__)) for name, function in PER_JOB.items()]
    return table(("Quantity", "Formula, range, source"), rows)


def units() -> str:
    """Every unit that a series may be declared in, and which magnitudes are plausible."""
    rows = []
    for quantity, (low, high) in BOUNDS.items():
        known = ", ".join(name if " " in name else f"`{name}`" for name in unit_names(quantity))
        rows.append((f"`{quantity}`", known, f"{low:g} to {high:g} {CANONICAL[quantity]}"))
    return table(("Quantity", "Units", "Plausible range"), rows)


def verbs() -> str:
    """The commands."""
    return table(("Command", "What it does"), ((f"`greenbatch {verb}`", line) for verb, line in VERBS.items()))


def _told(name: str, doc: str | None) -> str:
    if not doc:
        raise LookupError(f"{name} has no description")
    return markdown(doc)


TABLES: dict[str, Callable[[], str]] = {
    "policies": policies,
    "backfillings": backfillings,
    "placements": placements,
    "combinations": combinations,
    "features": features,
    "refusals": refusals,
    "charge": charge,
    "shipped-scenarios": shipped,
    **{f"scenario-{name}": partial(section, name) for name in sections()},
    "scenario-sources": sources,
    "scenario-grid": grid,
    "job-metrics": job_metrics,
    "run-metrics": partial(metrics, "run"),
    "horizon-metrics": partial(metrics, "horizon"),
    "window-metrics": partial(metrics, "window"),
    "units": units,
    "verbs": verbs,
    **LEARNING,
    **RESULT_TABLES,
}
"""Name -> the function that makes it."""

PLACE = re.compile(r"<!-- table: ([\w-]+) -->\n.*?<!-- end of table -->\n", re.DOTALL)
"""A table in a page."""


def updated(page: str) -> str:
    """The text of a page with its tables as the code has them now."""
    return PLACE.sub(lambda place: f"<!-- table: {place[1]} -->\n\n{TABLES[place[1]]()}\n<!-- end of table -->\n", page)


if __name__ == "__main__":
    for file in sorted(Path(__file__).parent.glob("*.md")):
        text = file.read_text(encoding="utf-8")
        if (now := updated(text)) != text:
            file.write_text(now, encoding="utf-8")
            print(file.name)
