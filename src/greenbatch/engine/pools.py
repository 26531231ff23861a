"""Rules of a machine whose capacity follows the power: pools of jobs, suspension, and the end of a run.

Each is a reading of RARE (dissertation, chapters 3 to 5), which is silent on many of them; the defaults impose nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args, get_type_hints

from greenbatch.engine.settings import A_YEAR_S, check_choices
from greenbatch.errors import InputError

Admission = Literal["fifo", "qos"]
Suspends = Literal["never", "power", "swap"]
Victim = Literal["lowest-value", "latest-due", "shortest-remaining", "longest-remaining", "latest-start"]
Loses = Literal["nothing", "checkpoint", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """Pools of jobs and suspension, for a cluster with `Cluster.powered`.

    Raises:
        InputError: an option is not one of its choices, or a number is out of range.
    """

    ready: int = 0
    """Most jobs that can be chosen at a time; 0 for all that wait."""
    waiting: int = 0
    """Most jobs that wait until they are ready: further ones are rejected; 0 for no limit."""
    suspended: int = 0
    """Most suspended jobs for policies that suspend; 0 for no limit."""
    admission: Admission = "fifo"
    """Which waiting job becomes ready first: ``fifo``: the first submitted; ``qos``: that of the highest QoS."""
    largest_request: int = 0
    """Jobs that ask for more processors or more GPUs are rejected; 0 for no limit."""
    longest_request_s: float = 0.0
    """Jobs that request a longer time are rejected; 0 for no limit. [s]"""
    actions_per_tick: int = 0
    """Most jobs that are started or suspended in one tick; 0 for no limit."""
    tick_s: float = 1.0
    """Length of a tick: after the last action of one, decisions are due again at the next. [s]"""
    horizon_s: float = 0.0
    """How far ahead the capacity is known; 0 for its whole series. [s]"""
    end_s: float = 0.0
    """End of the run: what has not finished by then remains as it is; 0 for the end of the last job. [s]"""
    episode_s: float = 0.0
    """The same as a time after the first submission, for windows that all last equally long, instead of ``end_s``;
    0 for none. [s]"""
    suspends: Suspends = "never"
    """``never``: a job starts only if the known capacity lasts until it ends; ``power``: jobs start if they fit now;
    ``swap``: policies may also suspend jobs for others of higher value. Under each of them, jobs are suspended while
    more is in use than is powered."""
    victim: Victim = "lowest-value"
    """Which running job is suspended first; among equals, the latest to start, then the highest job number."""
    loses: Loses = "nothing"
    """What a suspended job loses: ``nothing`` (suspended in memory); ``checkpoint``: the work since its last
    checkpoint; ``all``: it starts again from the beginning of this span."""
    checkpoint_s: float = 0.0
    """Time between checkpoints, from when work begins in a span. [s]"""
    failures_per_processor_year: float = 0.0
    """Failures of a processor in a year, at random: the job on it is suspended and loses work as ``loses`` says."""
    failure_seed: int = 0
    """Seed of the failures."""
    suspend_s: float = 0.0
    """Time that a job takes to be suspended, before it works on when it resumes; once for each suspension. [s]"""
    resume_s: float = 0.0
    """Time that a job takes to resume, in the same way. [s]"""

    def __post_init__(self) -> None:
        check_choices(self, "rules.pools")
        for name, kind in get_type_hints(Pools).items():
            value, field = getattr(self, name), f"rules.pools.{name}"
            if kind is int and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
                raise InputError(f"is {value!r}", field=field, fix="give a whole number >= 0")
            if kind is float and not (isinstance(value, int | float) and 0 <= value < math.inf):
                raise InputError(f"is {value!r}", field=field, fix="give a number >= 0")
        if self.tick_s == 0:
            raise InputError("is 0", field="rules.pools.tick_s", fix="give the length of a tick, > 0")
        if (self.loses == "checkpoint") != (self.checkpoint_s > 0):
            fix = 'give checkpoint_s > 0 together with loses = "checkpoint"'
            raise InputError(f"is {self.checkpoint_s:g}", field="rules.pools.checkpoint_s", fix=fix)
        if self.end_s and self.episode_s:
            problem, fix = f"is {self.episode_s:g}, and end_s is {self.end_s:g}", "give one of them"
            raise InputError(problem, field="rules.pools.episode_s", fix=fix)
        if self.failures_per_processor_year and self.loses == "nothing":
            problem, fix = "loses nothing, although processors fail", 'use loses = "checkpoint" or "all"'
            raise InputError(problem, field="rules.pools.loses", fix=fix)

    def end_of(self, begin_s: float) -> float:
        """End of a run whose first job is submitted at a time; infinite if it lasts until the last job ends. [s]"""
        return begin_s + self.episode_s if self.episode_s else self.end_s or math.inf

    def counts(self, begin_s: float) -> dict[str, float]:
        """The fields of `capacity.varying.CapacityCounts` that the options set, for a run that begins at a time. [s]"""
        from greenbatch.engine.capacity.varying import NO_LIMIT

        most = {
            "ready_limit": self.ready, "wait_limit": self.waiting, "suspend_limit": self.suspended,
            "largest_request": self.largest_request, "actions_limit": self.actions_per_tick,
        }  # fmt: skip
        return {
            **{name: value or NO_LIMIT for name, value in most.items()},
            **{name: getattr(self, name) or math.inf for name in ("longest_request_s", "horizon_s")},
            **{name: getattr(self, name) for name in ("tick_s", "failure_seed", "suspend_s", "resume_s")},
            "by_qos": self.admission == "qos",
            "end_s": self.end_of(begin_s),
            "suspends": get_args(Suspends).index(self.suspends),
            "victim": get_args(Victim).index(self.victim),
            "failure_rate": self.failures_per_processor_year / A_YEAR_S,
            "checkpoint_s": {"nothing": 0.0, "checkpoint": self.checkpoint_s, "all": math.inf}[self.loses],
        }
