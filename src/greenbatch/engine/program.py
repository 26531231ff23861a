"""The program that a scheduler gives to the engine, and the setup and result of a simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine import state as st
from greenbatch.engine.interface import Policy
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.settings import SETTINGS
from greenbatch.errors import GreenbatchError, InputError, SupplyExhausted, did_you_mean
from greenbatch.workload import Workload

BACKFILLS: dict[str, int] = {
    "none": st.NONE,
    "easy": st.EASY,
    "easy-schedgym": st.EASY_SCHEDGYM,
    "easy-green-order": st.EASY_GREEN_ORDER,
    "conservative": st.CONSERVATIVE,
    "green": st.GREEN,
}
"""Backfilling by name; see `engine.backfill` and `engine.conservative`."""

BACKFILL_MEANINGS: dict[str, str] = {
    "none": "No backfilling: the first job in the queue starts when it fits.",
    "easy": "True EASY (Mu'alem & Feitelson 2001): a candidate may start if it ends by the shadow time or uses only "
    "spare processors, which are those free at the shadow time after *all* requested ends up to it, less those of the "
    "head; candidates in order of submission.",
    "easy-schedgym": "The variant of SchedGym and GAS-MARL: a candidate must end strictly before the reservation, "
    "there are no spare processors, and the reservation of a sticky job is never updated.",
    "easy-green-order": "``easy-schedgym`` with candidates in the order of GAS-MARL Eq. 15 (text after Table 3).",
    "conservative": "Every job gets a reservation at submission, and no reservation is moved later (Mu'alem & "
    "Feitelson 2001).",
    "green": "GAS-MARL Algorithm 2: as ``easy-green-order``, but a candidate's estimated extra brown energy must be "
    "below a threshold (sigma = 50 kJ).",
}
"""Description of each backfilling: what may start ahead of a job that does not fit, with its source."""


def _no_inputs(_: Workload, __: Cluster, ___: Rules) -> tuple[Any, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Compiled code that makes every decision of a simulation: for policies that consider all waiting jobs.

    It is written with the functions of the engine and moves the clock through them.
    """

    name: str
    """Unique among the entry points of the engine."""
    run: Callable[..., None]
    """Simulates a state to the end, ``(state, *inputs)``; not compiled yet."""
    types: tuple[Any, ...] = ()
    """Numba types of the inputs."""
    inputs: Callable[[Workload, Cluster, Rules], tuple[Any, ...]] = _no_inputs
    """Further arguments of ``run`` for a window of jobs."""
    wakes_at_supply_changes: bool = False
    """Whether a decision is also due at every change of supply."""
    ahead_s: float = 0.0
    """How long after now the latest start that it considers may be, for the size of the forecast. [s]"""
    allocates: bool = False
    """Whether ``run`` creates arrays, see `compile.machine_code`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A scheduler as the engine runs it."""

    name: str
    backfill: str = "none"
    decider: Pass | None = None
    """Decides instead of a priority rule, whose scores it may use."""
    score: Callable[[st.Queue], Any] | None = None
    """Priority rule over the queue's columns, lowest first."""
    fixed: bool = True
    """The score of a job never changes, so it is computed once."""
    compiled: Callable[[st.Queue], Any] | None = None
    """The rule as machine code, for scores that change; None: run it as plain Python."""
    settings: dict[str, float] | None = None
    """Settings that override the engine's defaults and the scenario's rules, see `engine.settings.SETTINGS`."""
    needs_site: bool = False

    def __post_init__(self) -> None:
        """Refuse unknown names and values out of range."""
        if self.backfill not in BACKFILLS:
            fix = "known: " + ", ".join(BACKFILLS)
            raise InputError(f"no backfill is called {self.backfill!r}", field=self.name, fix=fix)
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


def queue_now(state: st.State) -> st.Queue:
    """Copies of the waiting jobs of a simulation."""
    c = state.clock
    jobs = state.jobs[state.queue[c.first : c.last].job]
    return st.Queue(
        float(c.now_s), float(c.free), float(state.set.processors), jobs.submit_s, c.now_s - jobs.submit_s,
        jobs.requested_s, jobs.processors.astype(np.float64), jobs.power_w, jobs.user.astype(np.float64),
    )  # fmt: skip


def queue_of(workload: Workload, cluster: Cluster) -> st.Queue:
    """All jobs of a workload as if waiting at time 0, for rules with fixed scores; copies, because rules may write."""
    return st.Queue(
        0.0, float(cluster.processors), float(cluster.processors), workload.submit_s.copy(), -workload.submit_s,
        workload.requested_time_s.copy(), workload.processors.astype(np.float64), np.nan_to_num(workload.power_w),
        workload.user.astype(np.float64),
    )  # fmt: skip


def prepare(workload: Workload, cluster: Cluster, site: Site | None, rules: Rules, program: Program) -> st.State:
    """Check that the parts fit together and set up the state of a simulation.

    Raises:
        InputError: no jobs, a job larger than the cluster, required power missing, a NaN score.
    """
    if len(workload) == 0:
        raise InputError("has no jobs", field=workload.name, fix="choose a window with jobs")
    largest = int(np.argmax(workload.processors))
    if workload.processors[largest] > cluster.processors:
        raise InputError(
            f"job {workload.job_id[largest]} needs {workload.processors[largest]} processors, the cluster has "
            f"{cluster.processors}", field="processors", fix="give a larger cluster or drop the job",
        )  # fmt: skip
    green = program.backfill == "green" or program.needs_site
    if green and site is None:
        raise InputError(f"{program.name} needs a power supply", field="site", fix="use a scenario with a site")
    powered = green or site is not None or program.backfill == "easy-green-order"
    if powered and np.isnan(workload.power_w).any():
        job = workload.job_id[np.isnan(workload.power_w)][0]
        raise InputError(f"job {job} has no power", field="power_w", fix="set workload.power in the scenario")
    settings: dict[str, float] = {
        "wake_at_supply": program.decider is not None and program.decider.wakes_at_supply_changes,
        "backfill": BACKFILLS[program.backfill],
        "ranking": st.BY_ARRIVAL,
        "threshold_j": SETTINGS["threshold_j"].default,
        **(program.settings or {}),
    }
    score = None
    if program.score is not None and not program.fixed:
        settings["ranking"] = st.BY_RULE
    elif program.score is not None:
        score = scores_of(program, queue_of(workload, cluster), float(workload.submit_s.min()))
        order = np.argsort(workload.submit_s, kind="stable")
        submit_s, by_arrival = workload.submit_s[order], score[order]
        twins = submit_s[1:] == submit_s[:-1]  # a sticky queue can have them in a different order
        moves = (by_arrival[1:] < by_arrival[:-1]) | (twins & (by_arrival[1:] != by_arrival[:-1]))
        settings["ranking"] = st.BY_SCORE if moves.any() else st.BY_ARRIVAL
    ahead_s = 0.0 if program.decider is None else program.decider.ahead_s
    state = st.new_state(workload, cluster, site, rules, settings, ahead_s)
    if score is not None:
        state.jobs.score = score
    return state


def scores_of(program: Program, queue: st.Queue, now_s: float) -> Any:
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


def refuse_scores(name: str, now_s: float) -> NoReturn:
    """Raise the error for a rule that did not score every job.

    Raises:
        InputError: always.
    """
    problem = f"returned NaN, or not one score per waiting job, at {now_s:g} s"
    raise InputError(problem, field=name, fix="return one number per waiting job")


START_ONE = "when nothing runs and no job will arrive, a policy must start one that waits"
"""What to do about jobs that wait forever."""


def check(state: st.State, name: str, site: Site | None) -> None:
    """Raise the error of a failed run, if any.

    Raises:
        SupplyExhausted: the clock left the power series.
        InputError: a rule returned NaN.
    """
    if state.clock.status == st.BAD_SCORE:
        refuse_scores(name, float(state.clock.now_s))
    if state.clock.status == st.SUPPLY_EXHAUSTED and site is not None:
        site.slot(float(state.clock.now_s))
        raise SupplyExhausted(f"the forecast of site {site.name!r} ends before {state.clock.now_s:g} s")
    if np.isnan(state.jobs.start_s).any():
        left = int(np.isnan(state.jobs.start_s).sum())
        raise GreenbatchError(f"{name} left {left} jobs waiting forever ({START_ONE})")


def outcome_of(
    state: st.State, name: str, workload: Workload, cluster: Cluster, site: Site | None, rules: Rules
) -> Outcome:
    """The outcome of a finished simulation."""
    steps = state.profile[: state.clock.steps]
    return Outcome(
        scheduler=name, workload=workload, cluster=cluster, site=site, rules=rules,
        start_s=np.ascontiguousarray(state.jobs.start_s), end_s=np.ascontiguousarray(state.jobs.end_s),
        promised_start_s=np.ascontiguousarray(state.jobs.promised_s),
        profile_time_s=np.ascontiguousarray(steps.time_s), profile_load_w=np.ascontiguousarray(steps.load_w),
        decisions=int(state.clock.decisions),
        killed=int(np.count_nonzero(state.jobs.run_s < workload.run_time_s / cluster.speed)),
    )  # fmt: skip
