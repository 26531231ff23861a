"""Schedulers by name: a policy, a backfilling, and their parameters.

A scheduler is written ``policy+backfill``, each with optional parameters: ``f2+green``, ``f2+green:sigma=25000``,
``cheapest-start:psi=2:hold=5e5``. A placement on nodes can follow, and ``+charge`` if it commands storage:
``f2+easy+charge:below=0.2``. A rule of your own is named by its file, ``my_rules.py:my_rule+easy``, or by an entry
point in the group ``greenbatch.rules``. A trained model is named by its preset and its folder:
``gas-marl@runs/a/model+green``, ``gas-marl@runs/a/model:sample=1:seed=3+green``. In Python, a rule function or a policy
of your own can be passed directly.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard, overload

from greenbatch import data_catalog, provenance
from greenbatch.arguments import some_text
from greenbatch.engine.capabilities import asked, refuse
from greenbatch.engine.machine.placement import PLACEMENTS
from greenbatch.engine.program import Program
from greenbatch.engine.program import Scheduler as Simulated
from greenbatch.engine.settings import SEED, SETTINGS, WEIGHTS, Parameter
from greenbatch.engine.views.interface import Policy
from greenbatch.errors import InputError
from greenbatch.policies import registry
from greenbatch.policies.backfillings import BACKFILLINGS
from greenbatch.policies.registry import Entry
from greenbatch.schedulers.allowed import allow_typed
from greenbatch.schedulers.registered import entries, find_entry
from greenbatch.schedulers.syntax import (
    CHARGE,
    check_known,
    model_of,
    numbers,
    parse,
    split_charge,
    split_parts,
    split_schedulers,
)
from greenbatch.workload import Workload

if TYPE_CHECKING:
    from greenbatch.models.scheduler import ModelScheduler

Decider = str | Simulated | Policy | Callable[..., Any]
"""Anything accepted as a scheduler: a name, a scheduler, a policy (object or class), a rule function."""

_BACKFILL_SETTINGS: dict[str, dict[str, str]] = {
    "green": {"sigma": "threshold_j", **{name: f"weight_{name}" for name in WEIGHTS}},
}
"""Backfilling -> its parameters -> their names in the engine's settings."""


CHARGE_PARAMETERS = {name: SETTINGS[f"charge_{name}"] for name in ("below", "above", "carbon")}
"""Parameters of commands to storage, see `engine.power.ranked`."""


def backfill_parameters(name: str) -> dict[str, Parameter]:
    """The parameters of a backfilling."""
    return {key: SETTINGS[setting] for key, setting in _BACKFILL_SETTINGS.get(name, {}).items()}


def placement_parameters(name: str) -> dict[str, Parameter]:
    """The parameters of a placement."""
    return {"seed": SEED} if name == "random" else {}


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A policy with its backfilling, its placement and their parameters."""

    name: str
    entry: Entry
    parameters: dict[str, float]
    backfill: str
    settings: dict[str, float]
    placement: str = ""
    placement_seed: int = 0

    def __post_init__(self) -> None:
        """Refuse a backfilling or a placement that the policy does not go with, see ``capabilities.toml``."""
        refuse(self.name, [("policy", self.entry.row)], asked(self.backfill, self.placement), self.entry.knows)

    def program(self, workload: Workload) -> Program:
        """The engine's program for a window of jobs."""
        made = self.entry.plan(workload, **{**self.entry.defaults, **self.parameters})
        made = replace(
            made, name=self.name, settings={**(made.settings or {}), **self.settings},
            placement=self.placement or made.placement, placement_seed=self.placement_seed,
        )  # fmt: skip
        if self.backfill != "conservative":
            return replace(made, backfill=self.backfill) if self.entry.backfills else made
        from greenbatch.policies.compiled.conservative import CONSERVATIVE

        settings = {**(made.settings or {}), "tick_s": 0.0}  # reservations are wake-ups of their own
        return replace(made, decider=CONSERVATIVE, settings=settings)

    @property
    def inside(self) -> Simulated | None:
        """The trained scheduler that the policy makes use of, if any."""
        return None if self.entry.inside is None else self.entry.inside(**{**self.entry.defaults, **self.parameters})

    @property
    def is_causal(self) -> bool:
        """Whether it decides by what a batch system can know."""
        knows = self.entry.knows_future
        return knows is None or not knows(**{**self.entry.defaults, **self.parameters})

    def policy(self) -> Policy | None:
        """A new object of the policy for one simulation; None if the engine runs it."""
        return None if self.entry.maker is None else self.entry.maker()


@overload
def scheduler(decider: str, *, backfill: str | None = None, name: str | None = None) -> Scheduler | ModelScheduler: ...
@overload
def scheduler(decider: Decider, *, backfill: str | None = None, name: str | None = None) -> Simulated: ...
def scheduler(decider: Decider, *, backfill: str | None = None, name: str | None = None) -> Simulated:
    """Create a scheduler from its name, or from a rule or policy of your own.

    A Python file in the name runs. Names that come from a file go through `scheduler_table`, which refuses that.

    Args:
        decider: ``policy+backfill``; a rule function, a policy class or a policy object, registered or not; or a
            scheduler, which is returned unchanged.
        backfill: the backfilling, such as ``easy`` or ``green:sigma=25000``; ``none`` if neither this nor the name
            gives one.
        name: name of a rule or policy in results; by default its own name.

    Raises:
        InputError: an unknown policy, backfilling or parameter, an invalid combination, a folder without a model of
            the given preset, or an object that is not a rule or policy.
    """
    if isinstance(decider, str):
        allow_typed([decider])
        return _named(decider if backfill is None else f"{decider}+{backfill}")
    if _is_scheduler(decider):
        if backfill is not None:
            raise InputError("has its backfilling already", field=f"scheduler {decider!r:.60}", fix="give no backfill")
        return decider
    entry = registry.entry_of(decider, name)
    shown = f"{entry.name}+{backfill or 'none'}"
    first, charge = split_charge(f"+{backfill or 'none'}")
    backfill_name, settings = _backfilling(first.removeprefix("+") or "none", shown)
    settings |= _commands(charge, shown)
    return Scheduler(shown, entry, {}, backfill_name, settings)


def scheduler_table(deciders: Iterable[Decider] | Mapping[str, Decider] | Decider) -> dict[str, Simulated]:
    """Name in results -> scheduler, for the schedulers of a comparison.

    Python files run only if the user named them, see `allowed`.

    Args:
        deciders: a sequence of names, rules, policies and schedulers; a mapping from names of your own to them; names
            separated by commas; or a single one.

    Raises:
        InputError: there is none, two have the same name, a name is not a text, or one is not a scheduler.
    """
    if isinstance(deciders, str):
        deciders = split_schedulers(deciders)
    elif not isinstance(deciders, Iterable):
        deciders = [deciders]
    table: dict[str, Simulated] = {}
    if isinstance(deciders, Mapping):
        for name, each in deciders.items():
            given = some_text(name, "a name in schedulers")
            known = isinstance(each, str) or _is_scheduler(each)
            table[given] = _one(each) if known else scheduler(each, name=given)
    else:
        table = _by_own_names(deciders)
    if not table:
        raise InputError("names no scheduler", field="schedulers", fix="e.g. fcfs+easy,f2+green")
    return table


def _one(each: Decider) -> Simulated:
    return _named(each) if isinstance(each, str) else scheduler(each)


def _by_own_names(deciders: Iterable[Decider]) -> dict[str, Simulated]:
    table: dict[str, Simulated] = {}
    for each in deciders:
        made = _one(each)
        name = str(each if isinstance(each, str) else getattr(made, "name", type(made).__name__))
        if not (isinstance(each, str) or _is_scheduler(each)):
            name = name.removesuffix("+none")
        if name in table:
            fix = 'name each scheduler once, or give names of your own: {"mine": rule}'
            raise InputError(f"two are called {name}", field="schedulers", fix=fix)
        spelled = getattr(made, "name", name)
        if twin := next((other for other, one in table.items() if getattr(one, "name", other) == spelled), None):
            raise InputError(f"{twin} and {name} are the same", field="schedulers", fix="name each scheduler once")
        table[name] = made
    return table


def source_texts(deciders: Mapping[str, Simulated]) -> dict[str, str]:
    """Name -> source text of every user-defined rule or policy among the schedulers, if it can be found."""
    texts = {}
    for name, each in deciders.items():
        if isinstance(each, Scheduler) and not each.entry.built_in:
            source = inspect.unwrap(getattr(each.entry.source, "py_func", each.entry.source))
            with suppress(OSError, TypeError):  # typed at a prompt, or compiled
                texts[name] = inspect.getsource(getattr(source, "decide", source))
    return texts


def _is_scheduler(decider: object) -> TypeGuard[Simulated]:
    """Whether an object can be simulated directly."""
    return not isinstance(decider, type) and callable(getattr(decider, "program", None))


def _named(spec: str) -> Scheduler | ModelScheduler:
    policy, backfill, placement = split_parts(spec.strip())
    _, charge = split_charge(spec.strip())
    policy_name, given = parse(policy, spec)
    backfill_name, settings = _backfilling(backfill, spec)
    settings |= _commands(charge, spec)
    where, seed = _placement(placement, spec)
    if model := model_of(policy_name):
        from greenbatch.models.find import find_model
        from greenbatch.models.scheduler import model_scheduler, parameters_of

        spelled, preset = "+".join(filter(None, (policy, backfill, placement, charge))), model["preset"]
        loaded = find_model(preset, model["folder"], field=spelled)
        chosen = numbers(given, parameters_of(loaded), preset, spelled)
        return model_scheduler(spelled, loaded, chosen, backfill_name, settings, where, seed)
    if policy_name.endswith("@") and ".py:" not in policy_name:
        fix = f"write {policy_name}FOLDER, or the name of a shipped model: see greenbatch schedulers"
        raise InputError("names no model", field=f"scheduler {spec!r}", fix=fix)
    _refuse_preset(policy_name, spec)
    entry = find_entry(policy_name, spec)
    parameters = numbers(given, entry.parameters, policy_name, spec)
    name = "+".join(filter(None, (policy, backfill, placement, charge)))
    return Scheduler(name, entry, parameters, backfill_name, settings, where, seed)


def _refuse_preset(name: str, spec: str) -> None:
    """Refuse the name of a shipped preset that is no policy, and name its models.

    Raises:
        InputError: it is one.
    """
    from greenbatch.presets.preset import shipped_names

    if name in entries() or name not in shipped_names():
        return
    from greenbatch.models.find import shipped_models

    models = [each.replace("/", "@") for each in shipped_models() if each.startswith(f"{name}/")]
    known = f"give a model, {', '.join(models)} or" if models else "train it, and give"
    raise InputError(f"{name} is a preset", field=f"scheduler {spec!r}", fix=f"{known} {name}@FOLDER")


def _commands(text: str, spec: str) -> dict[str, float]:
    """The engine settings of commands to storage, none for an empty text."""
    if not text:
        return {}
    _, given = parse(text, spec)
    found = numbers(given, CHARGE_PARAMETERS, CHARGE, spec)
    made = {name: found.get(name, each.default) for name, each in CHARGE_PARAMETERS.items()}
    if not made["below"] < made["above"]:
        raise InputError(
            f"below is {made['below']:g}, above is {made['above']:g}", field=spec, fix="give below < above"
        )
    return {f"charge_{name}": value for name, value in made.items()}


def _placement(text: str, spec: str) -> tuple[str, int]:
    """Name and seed of a placement; empty if none is given, which leaves it to the policy."""
    if not text:
        return "", 0
    name, given = parse(text, spec)
    found = numbers(given, placement_parameters(name), name, spec)
    return name, int(found.get("seed", 0))


def input_files(deciders: Iterable[Decider]) -> dict[str, str]:
    """File name -> SHA-256 of every file that the schedulers were made from: Python files, and weights of models.

    Args:
        deciders: names, or schedulers made from names; others are made from no file.
    """
    specs = [
        each if isinstance(each, str) else str(getattr(each, "name", "")) for each in deciders
        if isinstance(each, (str, Scheduler)) or hasattr(each, "model")
    ]  # fmt: skip
    files = provenance.rule_files([spec for spec in specs if not model_of(spec)])
    for spec in filter(model_of, specs):
        if model := model_of(parse(split_parts(spec.strip())[0], spec)[0]):
            from greenbatch.models.find import weights_file

            weights = weights_file(model["preset"], model["folder"])
            files[f"{model['preset']}@{model['folder']}/{weights.name}"] = data_catalog.sha256(weights)
    return files


def _backfilling(text: str, spec: str) -> tuple[str, dict[str, float]]:
    """Name of a backfilling and the engine settings that its parameters stand for."""
    name, given = parse(text, spec)
    if name in PLACEMENTS:
        fix = f"put a backfilling before it, such as none+{text} or easy+{text}"
        raise InputError(f"{name} is a placement, the third part of a name", field=f"scheduler {spec!r}", fix=fix)
    check_known(name, list(BACKFILLINGS), "backfilling", spec)
    found = numbers(given, backfill_parameters(name), name, spec)
    return name, {_BACKFILL_SETTINGS[name][key]: value for key, value in found.items()}
