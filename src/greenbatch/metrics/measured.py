"""An outcome prepared for the metrics: which jobs count, and intermediate results that several metrics share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from greenbatch.engine.outcome import Outcome
from greenbatch.errors import InputError
from greenbatch.metrics.energy_use import EnergyUse, energy_use
from greenbatch.metrics.jobs import PER_JOB, Floats, Mask, run_s
from greenbatch.metrics.shares import Shares, slot_numbers

if TYPE_CHECKING:
    from greenbatch.engine.accounts import Books, Segments


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Warm-up and cool-down: jobs that are scheduled but not counted in per-job metrics.

    A job is left out if any of the four rules names it. Machine and energy metrics always cover the whole schedule.

    Raises:
        InputError: a value is negative or not finite.
    """

    first_jobs: int = 0
    """Number of jobs to leave out at the start, in order of submission, >= 0."""
    last_jobs: int = 0
    """Number of jobs to leave out at the end, in order of submission, >= 0."""
    first_s: float = 0.0
    """Leave out jobs submitted less than this after the first submission, >= 0. [s]"""
    last_s: float = 0.0
    """Leave out jobs submitted less than this before the last submission, >= 0. [s]"""

    def __post_init__(self) -> None:
        for name in ("first_jobs", "last_jobs", "first_s", "last_s"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"is {getattr(self, name)}", field=f"cut.{name}", fix="it must be >= 0")

    def jobs(self, outcome: Outcome) -> Mask:
        """Mask of the jobs that count, shape (n,).

        Raises:
            InputError: no job is left.
        """
        submit = outcome.workload.submit_s
        n = len(submit)
        rank = np.empty(n, dtype=np.int64)
        rank[np.argsort(submit, kind="stable")] = np.arange(n)
        kept = (rank >= self.first_jobs) & (rank < n - self.last_jobs)
        if n:
            # A length of 0 s cuts nothing, so that the first and last job are kept.
            kept &= (submit - submit.min() >= self.first_s) & (submit.max() - submit >= self.last_s)
            if not kept.any():
                raise InputError(
                    f"leaves none of {n} jobs", field="cut", fix="shorten warm-up and cool-down or take a longer window"
                )
        return kept


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One outcome, the jobs that count, and cached intermediate results."""

    outcome: Outcome
    jobs: Mask
    """Mask of the jobs that count in per-job metrics, all of them finished, shape (n,)."""
    _per_job: dict[str, Floats] = field(default_factory=dict, init=False, repr=False)
    _books: dict[tuple[float | None, float | None], Books] = field(default_factory=dict, init=False, repr=False)
    _pieces: dict[tuple[float | None, float | None], Segments] = field(default_factory=dict, init=False, repr=False)
    shares: dict[object, Shares] = field(default_factory=dict, init=False, repr=False)
    """What `money.shares_over` found so far, by horizon."""

    def per_job(self, name: str) -> Floats:
        """A per-job metric (a key of `PER_JOB`) of all jobs, shape (n,)."""
        if name not in self._per_job:
            shared = FROM_ENERGY_USE.get(name)
            self._per_job[name] = shared(self) if shared else PER_JOB[name](self.outcome)
        return self._per_job[name]

    @cached_property
    def first_submit_s(self) -> float:
        """Earliest submission [s], NaN without jobs."""
        return float(self.outcome.workload.submit_s.min(initial=np.inf)) if len(self.jobs) else np.nan

    @cached_property
    def last_end_s(self) -> float:
        """Latest end, or the end of the run if jobs are left then [s]; NaN without jobs."""
        return self.outcome.last_s

    @property
    def has_power(self) -> bool:
        """Whether the power of every job is known, from the trace or from its nodes."""
        cluster = self.outcome.cluster
        modelled = cluster.knows_power
        return bool(len(self.jobs)) and (modelled or bool(np.isfinite(self.outcome.workload.power_w).all()))

    @cached_property
    def energy_j(self) -> float:
        """Energy of the facility from the first start to the last end; NaN without job power, or without site on a
        pool. [J]
        """
        return self.it_energy_j if self.books is None else self.books.load_j

    @cached_property
    def it_energy_j(self) -> float:
        """Energy of the cluster alone, without that of the facility around it; NaN as for `energy_j`. [J]"""
        site = self.outcome.site
        if self.books is not None and site is not None and not site.has_overhead:
            return self.books.load_j
        if not self.has_power or (site is None and not self.outcome.cluster.on_nodes):
            return np.nan
        return float(np.diff(self.outcome.profile_time_s) @ self.outcome.profile_load_w[:-1])

    @cached_property
    def energy_use(self) -> EnergyUse:
        """Energy by node and by job."""
        return energy_use(self.outcome)

    @cached_property
    def books(self) -> Books | None:
        """Energy from the first start to the last end, first boots and last shutdowns of nodes included; None without a
        site or without job power.
        """
        return self.books_over()

    def books_over(self, start_s: float | None = None, end_s: float | None = None) -> Books | None:
        """Energy over a given interval, including idle power before and after the schedule; None as for `books`."""
        if self.outcome.site is None or not self.has_power:
            return None
        if (start_s, end_s) not in self._books:
            from greenbatch.engine.accounts import books  # compiled code: load Numba only if energy is needed

            self._books[start_s, end_s] = books(self.outcome, start_s, end_s)
        return self._books[start_s, end_s]

    def pieces(self, start_s: float | None = None, end_s: float | None = None) -> Segments:
        """Load, supply and storage over an interval, by default from the first start to the last end."""
        if (start_s, end_s) not in self._pieces:
            from greenbatch.engine.accounts import power_segments

            self._pieces[start_s, end_s] = power_segments(self.outcome, start_s, end_s)
        return self._pieces[start_s, end_s]

    def import_w(self, start_s: float, end_s: float) -> Floats | None:
        """Mean power from the grid in each slot that an interval touches, shape (m,); None without a grid or power."""
        site = self.outcome.site
        if site is None or site.grid is None or not self.has_power:
            return None
        pieces = self.pieces(start_s, end_s)
        if not pieces.start_s.size:
            return np.zeros(0)
        slot = slot_numbers(site, pieces)
        energy_j = np.bincount(slot - slot[0], weights=pieces.import_w * (pieces.end_s - pieces.start_s))
        return np.asarray(energy_j / site.step_s)


FROM_ENERGY_USE: Mapping[str, Callable[[Measured], Floats]] = {
    "energy_j": lambda run: run.energy_use.job_j,
    "edp_js": lambda run: run.per_job("energy_j") * run_s(run.outcome),
}
"""Per-job metrics that share the energy by node and by job, which takes long to compute."""


def measure(outcome: Outcome, cut: Cut | None = None) -> Measured:
    """Prepare an outcome for the metric functions.

    Raises:
        InputError: the cut leaves no job.
    """
    counted = (cut or Cut()).jobs(outcome)
    return Measured(outcome=outcome, jobs=counted if outcome.stays is None else counted & np.isfinite(outcome.end_s))
