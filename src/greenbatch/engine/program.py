"""The program that a scheduler gives to the engine, and the setup and result of a simulation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol, cast

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine import codes
from greenbatch.engine.decide import Ranking
from greenbatch.engine.dependencies import follow_others
from greenbatch.engine.import_limit import is_limited, periods_of_patience
from greenbatch.engine.interface import Attributes, Policy, Predicted, Queue
from greenbatch.engine.log import Readings
from greenbatch.engine.machine.dvfs import levels_of
from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.machine.placement import PLACEMENTS
from greenbatch.engine.machine.powered import Powered
from greenbatch.engine.outcome import Outcome, Switching, placements_of, stays_of, switching_of
from greenbatch.engine.power.protocol import is_commanded
from greenbatch.engine.prediction.protocol import SHORT_S, predicts
from greenbatch.engine.rules import Rules
from greenbatch.engine.settings import SETTINGS
from greenbatch.engine.shortage import refuse_shortage
from greenbatch.engine.state import State, attributes_of
from greenbatch.engine.step import MOST_CHARGES, PATIENCE
from greenbatch.errors import GreenbatchError, InputError, SupplyExhausted, did_you_mean
from greenbatch.workload import Outage, Workload

BACKFILLS: dict[str, int] = {
    "none": codes.NONE,
    "easy": codes.EASY,
    "easy-schedgym": codes.EASY_SCHEDGYM,
    "easy-green-order": codes.EASY_GREEN_ORDER,
    "green": codes.GREEN,
    "first-fit": codes.FIRST_FIT,
    "easy-irmasim": codes.EASY_IRMASIM,
}
"""Backfilling around a blocked job, by name; see `engine.backfill`."""

BACKFILL_MEANINGS: dict[str, str] = {
    "none": "No backfilling: the first job in the queue starts when it fits.",
    "easy": "True EASY (Mu'alem & Feitelson 2001): a candidate may start if it ends by the shadow time or uses only "
    "spare processors, which are those free at the shadow time after *all* requested ends up to it, less those of the "
    "head; candidates in order of submission.",
    "easy-schedgym": "The variant of SchedGym and GAS-MARL: a candidate must end strictly before the reservation, "
    "there are no spare processors, and the reservation of a sticky job is never updated.",
    "easy-green-order": "``easy-schedgym`` with candidates in the order of GAS-MARL Eq. 15 (text after Table 3).",
    "green": "GAS-MARL Algorithm 2: as ``easy-green-order``, but a candidate's estimated extra brown energy must be "
    "below a threshold (sigma = 50 kJ).",
    "first-fit": "List scheduling: every waiting job that fits starts, in the order of the policy; no reservation, so "
    "wide jobs can starve.",
    "easy-irmasim": "The variant of IRMaSim: while the first job waits, a later one may start on an empty node, or on "
    "a node where it does not delay the first job beyond the earliest requested end that frees enough processors.",
}
"""Description of each backfilling: what may start ahead of a job that does not fit, with its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A compiled policy that considers all waiting jobs at every decision, rather than scoring them one by one."""

    name: str
    begin: Callable[[Workload, Cluster, Rules], Any]
    """Creates the decider for a window of jobs: parameters and memory, see `engine.decide`. A field ``rule`` gets the
    program's rule."""
    learn: Callable[[Any, Workload, Cluster, Rules], Any] | None = None
    """The decider once more jobs are known, ``(decider, jobs so far, cluster, rules)``, for policies that ``begin``
    derives from the window; None if ``begin`` only reads its size."""
    wakes_at_supply_changes: bool = False
    """Whether a decision is also due at every change of supply."""
    on_nodes: bool = False
    """Whether it can place jobs on nodes; otherwise the machine must be a pool."""
    on_powered: bool = False
    """Whether it knows GPUs, pools of jobs and a capacity that follows the power."""
    reserves_nodes: bool = False
    """Whether it reserves nodes by requested ends, which does not allow for boots."""
    knows_import_limit: bool = False
    """Whether it starts jobs as `limits.can_start` allows, so that a limit of the grid connection can hold them."""
    driven_on_nodes: bool = True
    """Whether a view shows all that it needs of nodes; False if it remembers reservations of them by row of the job."""
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
    decider: Pass | None = None
    """Decides instead of a priority rule, whose scores it may use."""
    score: Callable[[Queue], Any] | None = None
    """Priority rule over the queue's columns, lowest first."""
    fixed: bool = True
    """The score of a job never changes, so it is computed once."""
    compiled: Callable[[Queue], Any] | None = None
    """The rule as machine code, for scores that change; None: run it as plain Python."""
    settings: dict[str, float] | None = None
    """Settings that override the engine's defaults and the scenario's rules, see `engine.settings.SETTINGS`."""
    needs_site: bool = False
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


class Scheduler(Protocol):
    """Anything that can be simulated by name."""

    def program(self, workload: Workload) -> Program:
        """The program for a window of jobs."""
        ...

    def policy(self) -> Policy | None:
        """A new Python object that decides in one simulation; None if the engine runs the program itself."""
        ...


def with_scores_of_now(program: Program, workload: Workload, rules: Rules) -> Program:
    """The program; without scores in advance if some submissions, on which they may depend, are not known."""
    is_early = program.score is not None and program.fixed
    return replace(program, fixed=False) if is_early and follow_others(workload, rules) else program


def charges_by_rank(program: Program) -> bool:
    """Whether the engine commands storage for a program, see `power.ranked`."""
    return "charge_below" in (program.settings or {})


def uses_attributes(rule: Callable[..., Any]) -> bool:
    """Whether a rule's code names an attribute of jobs; if in doubt, it may."""
    code = getattr(inspect.unwrap(getattr(rule, "py_func", rule)), "__code__", None)
    return code is None or "attributes" in code.co_names


def uses_predicted(rule: Callable[..., Any]) -> bool:
    """Whether a rule's code names a prediction; if in doubt, it may."""
    code = getattr(inspect.unwrap(getattr(rule, "py_func", rule)), "__code__", None)
    return code is None or "predicted" in code.co_names


def queue_now(state: State) -> Queue:
    """Copies of the waiting jobs of a simulation."""
    c, totals = state.clock, state.machine.totals
    jobs = state.jobs[state.queue.job[c.first : c.last]]
    return Queue(
        float(c.now_s), float(totals.free), float(totals.processors), jobs["submit_s"], c.now_s - jobs["submit_s"],
        jobs["requested_s"], jobs["processors"].astype(np.float64), jobs["power_w"], jobs["user"].astype(np.float64),
        Attributes(*np.ascontiguousarray(state.attributes[state.queue.job[c.first : c.last]].T)),
        _predicted(state, jobs["requested_s"]),
    )  # fmt: skip


def _predicted(state: State, requested_s: Any) -> Predicted:
    """Copies of what is predicted of the waiting jobs."""
    if not predicts(state.predictor):
        return predicted_by_requests(requested_s)
    c, known = state.clock, cast(Any, state.predictor.jobs)
    rows = known[state.queue.job[c.first : c.last]]
    return Predicted(*(np.array(rows[name]) for name in Predicted._fields))


def predicted_by_requests(requested_s: Any) -> Predicted:
    """What requested times predict."""
    median_s, low_s, high_s, mean_s = (requested_s.copy() for _ in range(4))
    return Predicted(median_s, low_s, high_s, mean_s, 1.0 / np.maximum(requested_s, SHORT_S))


def queue_of(workload: Workload, cluster: Cluster, *, attributes: bool) -> Queue:
    """All jobs of a workload as if waiting at time 0, for rules with fixed scores; copies, because rules may write."""
    return Queue(
        0.0, float(cluster.processors), float(cluster.processors), workload.submit_s.copy(), -workload.submit_s,
        workload.requested_time_s.copy(), workload.processors.astype(np.float64),
        np.where(np.isnan(workload.power_w), 0.0, workload.power_w), workload.user.astype(np.float64),
        Attributes(*(attributes_of(workload).T.copy() if attributes else np.zeros((len(Attributes._fields), 0)))),
        predicted_by_requests(workload.requested_time_s),
    )  # fmt: skip


def decider_of(program: Program, workload: Workload, cluster: Cluster, rules: Rules) -> Any:
    """The decider of a program for a window of jobs; its rule is the compiled one, or none."""
    from greenbatch.engine.entry_points import no_rule

    rule = program.compiled or no_rule()
    if program.decider is None:
        return Ranking(rule)
    decider = program.decider.begin(workload, cluster, rules)
    return decider._replace(rule=rule) if "rule" in decider._fields else decider


def scores_of(program: Program, queue: Queue, now_s: float) -> Any:
    """Scores of the jobs in a queue by a rule in plain Python, shape (q,).

    Raises:
        InputError: the rule does not return one number per job.
    """
    rule: Any = program.score
    with np.errstate(divide="ignore"):
        given = rule(queue)
    try:
        scores = np.asarray(given, dtype=None if np.iscomplexobj(given) else np.float64)
    except (TypeError, ValueError):
        refuse_scores(program.name, now_s)
    if scores.dtype != np.float64 or scores.shape != queue.submit_s.shape or np.isnan(scores).any():
        refuse_scores(program.name, now_s)
    return scores


@contextmanager
def rule_may_fail(program: Program) -> Iterator[None]:
    """Turn the error of a compiled rule into one line: nothing else can raise in compiled code.

    Raises:
        InputError: the rule failed.
    """
    try:
        yield
    except Exception as error:
        if program.compiled is None:
            raise
        raise InputError(f"{type(error).__name__}: {error}", field=program.name, fix="fix the rule") from error


def refuse_scores(name: str, now_s: float) -> NoReturn:
    """Raise the error for a rule that did not score every job.

    Raises:
        InputError: always.
    """
    problem = f"returned NaN, or not one score per waiting job, at {now_s:g} s"
    raise InputError(problem, field=name, fix="return one number per waiting job")


_START_ONE = "when nothing runs and no job will arrive, a policy must start one that waits"
"""What to do about jobs that wait forever."""


def patience(state: State) -> int:
    """Largest number of decisions in a row that change nothing."""
    return max(PATIENCE, int(state.power.slots.count) * periods_of_patience(state.power))


def waits_forever(
    state: State, name: str, workload: Workload | None = None, cluster: Cluster | None = None
) -> GreenbatchError:  # fmt: skip
    """The error for a policy that starts none of the waiting jobs.

    Raises:
        InputError: the machine is too small for one of them for ever.
    """
    if workload is not None and cluster is not None:
        refuse_shortage(state, workload, cluster)
    waiting, fix = int(state.clock.last - state.clock.first), _START_ONE
    return GreenbatchError(
        f"{name} left {waiting} jobs waiting forever: {patience(state)} decisions changed nothing ({fix})"
    )


def refuse_command(name: str, site: Site | None, *, field: str = "site.storage") -> NoReturn:
    """Raise the error for a command without storage that the scheduler commands.

    Raises:
        InputError: always.
    """
    if site is None or site.storage is None:
        fix = 'give storage with dispatch = "scheduler"'
        raise InputError(f"is missing, and {name} commands storage", field=field, fix=fix)
    problem = f"is {site.storage.dispatch}, and {name} commands storage"
    raise InputError(problem, field="site.storage.dispatch", fix='use dispatch = "scheduler"')


def check(
    state: State, name: str, site: Site | None, workload: Workload | None = None, cluster: Cluster | None = None
) -> None:  # fmt: skip
    """Raise the error of a failed run, if any; with jobs and machine it can name those that are too large.

    Raises:
        SupplyExhausted: the clock left the power series.
        InputError: a rule returned NaN, or there is no storage to command.
        GreenbatchError: the policy left jobs waiting, or never stopped to command storage.
    """
    if state.clock.status == codes.STUCK and is_limited(state.power) and not state.clock.running:
        refuse_draw(state, name, "site.grid.import_limit_w", "the limit")
    if state.clock.status == codes.STUCK:
        raise waits_forever(state, name, workload, cluster)
    if state.clock.status == codes.NOT_COMMANDED:
        refuse_command(name, site)
    if state.clock.status == codes.CHARGES_FOREVER:
        problem = f"{name} commanded storage over {MOST_CHARGES} times in a row at {state.clock.now_s:g} s"
        raise GreenbatchError(f"{problem} (after a Charge, start a job or wait)")
    if state.clock.status == codes.BAD_SCORE:
        refuse_scores(name, float(state.clock.now_s))
    if state.clock.status == codes.SUPPLY_EXHAUSTED and site is not None:
        site.slot(float(state.clock.now_s))
        raise SupplyExhausted(f"the forecast of site {site.name!r} ends before {state.clock.now_s:g} s")
    left = state.jobs.shape[0] - int(state.clock.started)
    if isinstance(state.machine, Powered):
        left = 0 if np.isfinite(state.machine.counts.end_s) else left - int(state.machine.counts.rejected)
    if left and state.rules.power_cap_w > 0.0:
        refuse_draw(state, name, "rules.power_cap_w", "the cap")
    if left and workload is not None and cluster is not None:
        refuse_shortage(state, workload, cluster)
    if left:
        raise GreenbatchError(f"{name} left {left} jobs waiting forever ({_START_ONE})")


def refuse_draw(state: State, name: str, field: str, limit: str) -> NoReturn:
    """Raise the error for jobs whose power is never allowed on the nodes that they get.

    Raises:
        InputError: always.
    """
    left = state.jobs.shape[0] - int(state.clock.started)
    problem = f"leaves {left} jobs waiting forever, because those nodes that {name} gives them draw too much"
    raise InputError(problem, field=field, fix=f"raise {limit}, or use a placement such as low-power")


def outcome_of(
    state: State, readings: Readings, name: str, workload: Workload, cluster: Cluster, site: Site | None, rules: Rules
) -> Outcome:
    """The outcome of a finished simulation; its jobs were submitted as simulated."""
    read = readings.columns
    if len(state.feedback):
        workload = workload.with_columns(submit_s=np.array(cast(Any, state.jobs)["submit_s"]))
    steps, chosen, started = (int(each) for each in read.counts)
    start_s = state.machine.demands["begin_s"].copy() if isinstance(state.machine, Nodes) else read.start_s
    stays = stays_of(state.machine, readings.placed) if isinstance(state.machine, Powered) else None
    return Outcome(
        scheduler=name, workload=workload, cluster=cluster, site=site, rules=rules,
        start_s=start_s, end_s=read.end_s, promised_start_s=read.promised_s,
        profile_time_s=read.profile_time_s[:steps], profile_load_w=read.profile_load_w[:steps],
        profile_command_w=read.profile_command_w[:steps] if is_commanded(state.power) else None,
        decisions=chosen, killed=_killed(state, workload, cluster),
        placements=placements_of(readings.placed, cluster), stays=stays,
        switching=_switching(state, readings), dvfs_level=_levels(state, cluster), start_order=read.order[:started],
    )  # fmt: skip


def _levels(state: State, cluster: Cluster) -> Any:
    if not isinstance(state.machine, Nodes) or len(levels_of(cluster)) == 1:
        return None
    demands: Any = state.machine.demands
    return demands["dvfs_level"].copy()


def _switching(state: State, readings: Readings) -> Switching | None:
    if not isinstance(state.machine, Nodes) or not state.machine.counts.on_demand:
        return None
    return switching_of(state.machine.nodes, readings.switched)


def _killed(state: State, workload: Workload, cluster: Cluster) -> int:
    if isinstance(state.machine, Nodes):
        return int(state.machine.counts.killed)
    if isinstance(state.machine, Powered):  # the rest of a suspended job is less than its run time
        return int(np.count_nonzero(workload.requested_time_s < workload.run_time_s)) if state.rules.kill else 0
    return int(np.count_nonzero(state.jobs["run_s"] < workload.run_time_s / cluster.speed))
