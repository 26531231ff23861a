"""Options of the simulated batch system that change results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from greenbatch.engine.pools import Pools
from greenbatch.engine.settings import SETTINGS, check_choices
from greenbatch.errors import InputError

Dependencies = Literal["ignore", "obey"]
Commitment = Literal["sticky", "reconsider"]
EventRule = Literal["per_event", "per_instant", "per_kind"]
Overrun = Literal["kill", "extend"]
PredictorName = Literal["requested", "last-two", "like-jobs", "learned"]
Ties = Literal["arrival_first", "completion_first"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Options of the batch system. Defaults are for users; scenarios of papers set their own."""

    commitment: Commitment = "reconsider"
    """``sticky``: a job that was chosen stays at the head of the queue until it starts (SchedGym, GAS-MARL);
    ``reconsider``: the queue is ranked again at every event."""
    event_rule: EventRule = "per_event"
    """``per_event``: a scheduling pass after each event; ``per_instant``: after all events of the same instant;
    ``per_kind``: after all submissions of an instant, and again after all completions (IRMaSim)."""
    ties: Ties = "arrival_first"
    """Which event comes first if a job arrives at the instant at which another ends."""
    overrun: Overrun = "kill"
    """``kill``: a job that exceeds its requested time is killed; ``extend``: it continues to run."""
    dependencies: Dependencies = "ignore"
    """``ignore``: jobs are submitted as recorded; ``obey``: a job with a preceding job is submitted its think time
    after the simulated end of that one, see `engine.dependencies`."""
    tick_s: float = 0.0
    """Time between additional scheduling passes while jobs wait; 0 for none. [s]"""
    power_cap_w: float = 0.0
    """No job starts that would lift the power of the cluster above this; 0 for no cap. [W]"""
    predictor: PredictorName = "requested"
    """What predicts run times, for schedulers that use predictions: ``requested``: the requested time itself;
    ``last-two``: the mean of the user's last two jobs; ``like-jobs``: the median of the user's last jobs of the same
    request; ``learned``: distributions learned from all jobs that have ended."""
    pools: Pools | None = None
    """Pools of jobs and suspension, for machines whose capacity follows the power."""
    backfill_depth: int = 0
    """How many waiting jobs the scheduler looks at, those that were submitted first, like Slurm's
    ``bf_max_job_test``; 0 for all. With long queues it bounds the time of a decision, and it changes results."""
    dvfs_level: int = 0
    """DVFS level at which jobs start unless the policy chooses one, see `Cluster.dvfs`; 0 for the highest."""

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            InputError: an option is not one of its choices, or a number is out of range.
        """
        check_choices(self, "rules")
        for name in ("dvfs_level", "backfill_depth"):
            if not (isinstance(value := getattr(self, name), int) and value >= 0):
                raise InputError(f"is {value!r}", field=f"rules.{name}", fix="give a whole number >= 0")
        for name in ("tick_s", "power_cap_w"):
            value = getattr(self, name)
            try:
                SETTINGS[name].check(name, value, field="rules")
            except TypeError:
                raise InputError(f"is {value!r}", field=f"rules.{name}", fix="give a number") from None
