"""The search for the weights of a look-ahead planner of cost and carbon, for one preference or for many in one model.

Windows have preferences in turn: weights of brown energy, cost and carbon, which the planner weighs joules by. What is
minimized is the weighed mean of the three over the horizon of the window, each relative to F2 with backfilling. What an
idle machine uses after the schedule is part of the horizon, so that long schedules are not charged for it. Storage goes
on over the whole horizon, before the first start and after the last end as well, so there the profile is replayed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.energy import Site
from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.engine.accounts import books
from greenbatch.engine.capabilities import features_of, refuse
from greenbatch.engine.log import drain, new_readings
from greenbatch.engine.observe.stacked import row
from greenbatch.engine.outcome import Outcome, outcome_of
from greenbatch.engine.power.costs import costs_of, rates_of
from greenbatch.engine.power.protocol import Weights as Joule
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.learning.search.planner import FIGURES, LIMITED, WEIGHED, Floats, Ints, PlannerSearch, Trial, objective
from greenbatch.metrics.horizon import FACTOR
from greenbatch.models.planner import BASELINE
from greenbatch.scenarios import Scenario
from greenbatch.schedulers import scheduler

SHARE = "weighed_share"
"""Figure of a candidate on a window: brown energy, cost and carbon relative to `BASELINE`, weighed."""
FEW = 1e-9
"""Amounts of the baseline below this cannot be compared with."""


class Idle:
    """What an idle machine takes from the grid, pays and emits: totals from the origin of the series to a time."""

    def __init__(self, site: Site, idle_w: float) -> None:
        self.site = site
        drawn_w = np.broadcast_to(site.pue, (site.slots,)) * idle_w + site.base_load_w
        brown_w, own_w = np.maximum(drawn_w - site.renewable_w, 0.0), np.minimum(drawn_w, site.renewable_w)
        rates, sold_w = rates_of(costs_of(site)), site.renewable_w - own_w
        cost = brown_w * rates[:, 0] + own_w * rates[:, 2] - sold_w * rates[:, 1]
        carbon_g = brown_w * rates[:, 3] + own_w * rates[:, 4]
        each = np.stack([brown_w / JOULES_PER_KWH, cost, carbon_g / 1e3], axis=1) * site.step_s
        self.totals: Floats = np.concatenate([np.zeros((1, 3)), np.cumsum(each, axis=0)])

    def until(self, time_s: Floats) -> Floats:
        """Totals in the units of `WEIGHED`, shape (times, 3)."""
        lap, slot = np.divmod((time_s - self.site.origin_s) / self.site.step_s, self.site.slots)
        edges = np.arange(len(self.totals), dtype=np.float64)
        inside = np.stack([np.interp(slot, edges, column) for column in self.totals.T], axis=1)
        return np.asarray(lap[:, None] * self.totals[-1] + inside)


class Reference(NamedTuple):
    """The baseline on a window."""

    amounts: Floats
    """Brown energy, cost and carbon over the horizon, in the units of `WEIGHED`."""
    rest: Floats
    """The same of an idle machine."""
    slowdown: float
    begin_s: float
    """The horizon. [s]"""
    end_s: float


def _amounts(outcome: Outcome, begin_s: float, end_s: float) -> Floats:
    """Brown energy, cost and carbon of an interval, in the units of `WEIGHED`."""
    account = books(outcome, begin_s, end_s)
    return np.array([account.grid_j / JOULES_PER_KWH, account.cost, account.carbon_g / 1e3])


class WeighedTrial(Trial):
    """Evaluates candidates on windows with preferences, see `Trial`."""

    preferences: Floats
    """Weights of brown energy, cost and carbon of the windows in turn, shape (k, 3), each with the sum 1."""

    def prepare(self, preferences: Floats) -> None:
        """Set the preferences.

        Raises:
            InputError: the site has no grid, or a preference weighs nothing.
        """
        if not preferences.any(axis=1).all():
            fix = "give weights of brown energy, cost and carbon, at least one above 0"
            raise InputError("weighs nothing", field="training.search.preferences", fix=fix)
        where = self.scenario
        refuse("the search", [("search", "weighed")], features_of(None, where.cluster, where.site, where.rules))
        self.preferences = preferences / preferences.sum(axis=1, keepdims=True)
        self._references: dict[int, Reference] = {}
        assert self.scenario.site is not None  # noqa: S101  (refused above)
        self._idle = Idle(self.scenario.site, self.scenario.cluster.rest_power_w)

    def joules(self, count: int) -> list[tuple[Joule, Ints]]:
        """The preferences, each with its windows."""
        which = np.arange(count) % len(self.preferences)
        return [(Joule(*each.tolist()), np.flatnonzero(which == k)) for k, each in enumerate(self.preferences[:count])]

    def __call__(self, numbers: Floats, starts: Ints, shifts_s: Ints) -> Floats:
        """`SHARE`, slowdown relative to the mean of the baseline, and makespan relative to it, shape (windows, 3)."""
        if shifts_s.any():
            problem = "moves the supply under the baseline, which is known for one year"
            raise InputError(problem, field="training.search.years", fix="use 1")
        found = super().__call__(numbers, starts, shifts_s)
        known = [self.reference(int(start)) for start in starts]
        if np.isnan(found).any():
            return np.full((len(starts), 3), np.nan)
        if self.follows or self._idle.site.storage is not None:
            amounts = np.stack(
                [_amounts(self._outcome(b, int(starts[b])), each.begin_s, each.end_s) for b, each in enumerate(known)]
            )
        else:
            batch = self._store.batch
            end_s, begin_s = batch.totals["largest_end_s"][: len(starts)], self._store.starts_s()[: len(starts)]
            amounts = np.stack([each.rest for each in known]) - self._idle.until(end_s)
            amounts += self._idle.until(begin_s.min(axis=1))
            amounts += found[:, : len(WEIGHED)]
        relative = amounts / np.maximum(np.stack([each.amounts for each in known]), FEW)
        weights = self.preferences[np.arange(len(starts)) % len(self.preferences)]
        share = (relative * weights).sum(axis=1)
        slowdown = found[:, -2] / np.mean([each.slowdown for each in known])
        return np.stack([share, slowdown, found[:, -1]], axis=1)

    def _outcome(self, b: int, start: int) -> Outcome:
        """The outcome of a candidate on a window."""
        if self.follows:
            return self.outcomes[b]
        where, window = self.scenario, self.scenario.window(start, self.jobs)
        state, readings = row(self._store.batch, b), new_readings(self.jobs, where.cluster.first_power_w)
        drain(state, readings)
        given = window, where.cluster, where.site, where.rules
        return outcome_of(state, readings, self.program.name, *given)

    def reference(self, start: int) -> Reference:
        """`BASELINE` on a window; cached."""
        if start not in self._references:
            question = self.scenario
            window = question.window(start, self.jobs)
            outcome = simulate(window, question.cluster, question.site, question.rules, scheduler(BASELINE))
            begin_s = float(window.submit_s.min())
            end_s = begin_s + FACTOR * (float(outcome.end_s.max()) - begin_s)
            run_s = np.maximum(outcome.end_s - outcome.start_s, 10.0)
            slowdown = np.maximum((outcome.end_s - outcome.workload.submit_s) / run_s, 1.0).mean()
            amounts = _amounts(outcome, begin_s, end_s)
            if (amounts[self.preferences.any(axis=0)] <= FEW).any():
                problem = f"{BASELINE} has no brown energy, cost or carbon to save on the window of job {start}"
                fix = "weigh only what the site states, or train on other windows"
                raise InputError(problem, field="training.search.preferences", fix=fix)
            first, last = self._idle.until(np.array([begin_s, end_s]))
            self._references[start] = Reference(amounts, last - first, float(slowdown), begin_s, end_s)
        return self._references[start]


class WeighedSearch(PlannerSearch):
    """A search for one model of all preferences, or for one of a single preference."""

    def trial(self, world: Scenario, count: int) -> Trial:
        """What evaluates candidates on some windows of a scenario."""
        plan = self.plan
        made = WeighedTrial(world, plan.preset, plan.settings.jobs, count, plan.threads, self.search.placement)
        made.prepare(np.array(self.search.preferences or (plan.preset.joule,), dtype=np.float64))
        return made

    def figures(self) -> tuple[str, ...]:
        """Names of the figures of a candidate on a window."""
        return (SHARE, *FIGURES)

    def _objective(self, stage: int, found: Floats) -> float:
        """The mean share and what exceeds the limits, see `objective`."""
        limits = self.search.aim[stage], self.search.most[stage], self.search.slowdown[stage]
        terms = {name: self.plan.preset.reward.terms[name] for name in LIMITED}
        return objective(found, {"brown_kwh": -1.0, **terms}, *limits)
