"""The program that a scheduler gives to the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.decide import Ranking
from greenbatch.engine.dependencies import follow_others
from greenbatch.engine.machine.placement import PLACEMENTS
from greenbatch.engine.reads import may_read
from greenbatch.engine.records import Ints
from greenbatch.engine.rules import Rules
from greenbatch.engine.settings import SETTINGS
from greenbatch.engine.tables import read_table
from greenbatch.engine.views.interface import Policy, Queue
from greenbatch.errors import InputError, did_you_mean
from greenbatch.workload import Outage, Workload

BACKFILL_MEANINGS: dict[str, str] = read_table("settings")["backfillings"]
"""Description of each backfilling: what may start ahead of a job that does not fit, with its source; as in `codes`."""
BACKFILLS = {name: code for code, name in enumerate(BACKFILL_MEANINGS)}
"""Backfilling around a blocked job, by name; see `engine.backfill`."""


def beside(backfill: str) -> tuple[str, str]:
    """A backfilling, and the placement that may follow it, as in ``easy+worst-fit``; empty if none does."""
    name, _, placement = backfill.partition("+")
    return name, placement


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPolicy:
    """A compiled policy that considers all waiting jobs at every decision, rather than scoring them one by one."""

    name: str
    begin: Callable[[Workload, Cluster, Rules], Any]
    """Creates the decider for a window of jobs: parameters and memory, see `engine.decide`. A field ``rule`` gets the
    program's rule."""
    learn: Callable[[Any, Workload, Cluster, Rules], Any] | None = None
    """The decider once more jobs are known, ``(decider, jobs so far, cluster, rules)``, for policies that ``begin``
    derives from the window; None if ``begin`` only reads its size."""
    of_rows: Callable[[Any, Workload, Cluster, Ints], Any] | None = None
    """The decider for the jobs of a view, ``(decider, waiting and running jobs, cluster, before)``, for policies that
    keep something of each job; ``before`` is the row that each had at the view before, -1 if none. None for others."""
    wakes_at_supply_changes: bool = False
    """Whether a decision is also due at every change of supply."""
    knows: tuple[str, ...] = ()
    """Features that it knows, for a policy without a row of its own in ``capabilities.toml``."""
    ahead_s: float = 0.0
    """How long after now the latest start that it considers may be, for the size of the forecast. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A scheduler as the engine runs it."""

    name: str
    backfill: str = "none"
    placement: str = "first"
    """Which nodes a job takes, see `machine.placement.PLACEMENTS`; a pool has none to choose from."""
    placement_seed: int = 0
    spans: bool = False
    """Every job takes processors of any nodes, whatever it asks for."""
    policy: Callable[[Program, Workload, Cluster, Site | None, Rules], Policy] | None = None
    """Creates the Python object that decides, for policies made for a machine or for a window of jobs; it gets the
    program with the scheduler's backfilling and settings."""
    row: str = ""
    """Its row in ``capabilities.toml``; by default the name of its decider, or ``rule``."""
    decider: CompiledPolicy | None = None
    """Decides instead of a priority rule, whose scores it may use."""
    score: Callable[[Queue], Any] | None = None
    """Priority rule over the queue's columns, lowest first."""
    fixed: bool = True
    """The score of a job never changes, so it is computed once."""
    compiled: Callable[[Queue], Any] | None = None
    """The rule as machine code, for scores that change; None: run it as plain Python."""
    settings: dict[str, float] | None = None
    """Settings that override the engine's defaults and the scenario's rules, see `engine.settings.SETTINGS`."""
    parts: tuple[tuple[str, str], ...] = ()
    """Further rows of ``capabilities.toml``, kind and name of each, such as what an agent sees."""
    predictor: str | None = None
    """What predicts run times, see `engine.prediction`; by default as the scenario's rules say."""
    charges: bool = False
    """Whether the policy commands storage, see `interface.Charge`: it is also asked while no job waits, and at every
    change of supply."""
    outages: tuple[Outage, ...] = ()
    """Times in which no job may run."""

    def __post_init__(self) -> None:
        """Refuse unknown names and values out of range."""
        if self.backfill not in BACKFILLS:
            fix = "known: " + ", ".join(BACKFILLS)
            raise InputError(f"no backfill is called {self.backfill!r}", field=self.name, fix=fix)
        if self.placement not in PLACEMENTS:
            fix = did_you_mean(self.placement, PLACEMENTS, otherwise="known: " + ", ".join(PLACEMENTS))
            raise InputError(f"no placement is called {self.placement!r}", field=self.name, fix=fix)
        for setting, value in (self.settings or {}).items():
            if setting not in SETTINGS:
                fix = did_you_mean(setting, SETTINGS, then="known: " + ", ".join(SETTINGS))
                raise InputError(f"no setting is called {setting!r}", field=self.name, fix=fix)
            SETTINGS[setting].check(setting, value, field=self.name)

    @property
    def knows(self) -> tuple[str, ...]:
        """Features that its policy says it knows."""
        return () if self.decider is None else self.decider.knows


class Scheduler(Protocol):
    """Anything that can be simulated by name."""

    def program(self, workload: Workload) -> Program:
        """The program for a window of jobs."""

    def policy(self) -> Policy | None:
        """A new Python object that decides in one simulation; None if the engine runs the program itself."""


def with_scores_of_now(program: Program, workload: Workload, rules: Rules) -> Program:
    """The program; without scores in advance if submissions or predictions, on which they may depend, are not known."""
    if program.score is None or not program.fixed:
        return program
    is_predicted = (program.predictor or rules.predictor) != "requested" and may_read(program.score, "predicted")
    return replace(program, fixed=False) if is_predicted or follow_others(workload, rules) else program


def charges_by_rank(program: Program) -> bool:
    """Whether the engine commands storage for a program, see `power.ranked`."""
    return "charge_below" in (program.settings or {})


def decider_of(program: Program, workload: Workload, cluster: Cluster, rules: Rules) -> Any:
    """The decider of a program for a window of jobs; its rule is the compiled one, or none."""
    from greenbatch.engine.entry_points import no_rule

    rule = program.compiled or no_rule()
    if program.decider is None:
        return Ranking(rule)
    decider = program.decider.begin(workload, cluster, rules)
    return decider._replace(rule=rule) if "rule" in decider._fields else decider
