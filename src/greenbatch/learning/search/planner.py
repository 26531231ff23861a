"""The search for the weights of the look-ahead planner, on windows with the weather of several years."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.capabilities import asked, refuse
from greenbatch.engine.dependencies import follow_others
from greenbatch.engine.machine.placement import PLACEMENTS
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.power.protocol import Weights as Joule
from greenbatch.engine.simulate import run_program, simulate
from greenbatch.envs.simulations import Simulations
from greenbatch.errors import GreenbatchError, InputError, SupplyExhausted, did_you_mean
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.runs.windows import training_starts
from greenbatch.learning.search.loop import Candidate, Record, Searching, search_settings
from greenbatch.metrics import evaluate
from greenbatch.models.find import named_model
from greenbatch.models.model import BOUND, load_model
from greenbatch.models.onnx_builder import Weights
from greenbatch.models.planner import BASELINE, baseline_rule, numbers_at, parameters_of, program_of
from greenbatch.policies.compiled.lookahead.baseline import baseline_progress
from greenbatch.policies.compiled.lookahead.plan import compiled_run_many, lookahead_policy
from greenbatch.policies.compiled.lookahead.planner import new_lookahead
from greenbatch.policies.compiled.lookahead.weights import (
    HEAD_WEIGHT,
    LAG,
    WEIGHTS,
    numbers_of_model,
    unit_of_power,
)
from greenbatch.presets.preset import JOULE, Action, Observation, Preset, kinds_of, resolve
from greenbatch.scenarios import Scenario
from greenbatch.scenarios.regenerate import regenerated
from greenbatch.schedulers import scheduler

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GOALS = ("renewable_utilization", "brown_kwh")
"""Reward terms of which a preset has one: what is optimized."""
WEIGHED = ("brown_kwh", "energy_cost", "carbon_kg")
"""Reward terms of which a preset may have several instead, see `learning.search.weighed`."""
LIMITED = ("avg_bounded_slowdown", "makespan_area_ratio")
"""Further reward terms of a candidate on a window; the objective counts the last relative to `BASELINE` instead."""
FIGURES = ("avg_bounded_slowdown", "makespan_ratio")
"""Figures of a candidate on a window after its goal, as in the log; the makespan is relative to `BASELINE`."""
HEAD_STEP = HEAD_WEIGHT.step
"""Initial step of a head's weight."""
LEEWAY = 0.1
"""How far below the makespan bound the lag limit starts, above which holding jobs becomes expensive."""
YEAR_S = 365 * 86_400
FAR, FAR_PRICE = 6.0, 1e-4
"""Steps from the initial point beyond which a weight is penalized, and the penalty per further step."""


def initial_point(count: int = WEIGHTS) -> Floats:
    """The initial point of a search for some weights, in its own units: 0."""
    return np.zeros(count)


def numbers_of(point: Floats, makespan_bound: float) -> Floats:
    """The planner's weights at a point of the search for a makespan bound, clipped to range, of the same shape."""
    initial, step, lowest, highest = _scales(len(point), makespan_bound)
    return np.ascontiguousarray(np.clip(initial + step * point, lowest, highest))


def point_of(numbers: Floats, makespan_bound: float) -> Floats:
    """The point of the search at which a planner has some weights, the inverse of `numbers_of`."""
    initial, step, _, _ = _scales(len(numbers), makespan_bound)
    return np.asarray((numbers - initial) / step)


def _scales(count: int, makespan_bound: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Initial value, step, and lowest and highest value of each weight."""
    known = numbers_of_model(chooses_nodes=count > WEIGHTS).values()
    initial, step, lowest, highest = np.array([each[1:] for each in known], np.float64).T[:, :count]
    initial[LAG] = makespan_bound - LEEWAY
    return initial, step, lowest, highest


def begin_of(plan: Plan) -> Floats:
    """Where a search begins: the weights of the model ``training.search.begin``, or those of no model.

    A model that does not choose nodes has the initial values of the weights for it.

    Raises:
        InputError: there is no such model, or it is not one of the planner.
    """
    search = plan.settings.search
    begin = initial_point(len(numbers_of_model(chooses_nodes=plan.preset.chooses_nodes)))
    if search is None or not search.begin:
        return begin
    model = load_model(named_model(search.begin))
    if not model.preset.is_planner:
        problem = f"is a model of {model.preset.name}, not of a planner"
        raise InputError(problem, field="training.search.begin", fix="give a model of gas-marl-plus")
    first = search.makespan_bound[0]
    bound = parameters_of(model)["makespan_bound"]
    found = point_of(numbers_at(model, min(max(first, bound.lowest), bound.highest)), first)
    shared = min(len(begin), len(found))
    begin[:shared] = found[:shared]
    return begin


class Trial:
    """Evaluates candidates on windows of one scenario.

    Args:
        scenario: jobs, machine and power supply.
        preset: the planner's, with the engine's settings.
        jobs: jobs of a window.
        count: maximum number of windows per evaluation.
        threads: threads that share the windows of a candidate; the result does not depend on their number.
        placement: on nodes, which ones a job takes.
    """

    def __init__(
        self, scenario: Scenario, preset: Preset, jobs: int, count: int, threads: int, placement: str = "first"
    ) -> None:
        self.scenario, self.jobs, self.placement, self.fill = scenario, jobs, placement, preset.fill
        self.goals = goals_of(preset)
        self.program = replace(program_of(preset), placement=placement)
        self.joule = Joule(*preset.joule)
        self.follows = follow_others(scenario.workload, scenario.rules) > 0
        self.outcomes: dict[int, Outcome] = {}
        """Of each window of the last candidate, where jobs follow others."""
        self._store = Simulations(scenario, self.program, count, jobs, (*self.goals, *LIMITED))
        self._run = compiled_run_many(self._store.batch_type)
        self._pool = ThreadPoolExecutor(threads)
        self._threads = threads
        self._baseline: dict[int, float] = {}
        self._shown: list[int] = []
        self._progress: Floats = np.zeros((0, 0, 4))

    def __call__(self, numbers: Floats, starts: Ints, shifts_s: Ints) -> Floats:
        """The goal, slowdown, and makespan relative to F2 with backfilling, shape (windows, 3).

        All NaN if the candidate holds jobs of any window until the power series ends.

        Args:
            numbers: the candidate, shape (WEIGHTS,) or (NODE_WEIGHTS,).
            starts: first job of each window.
            shifts_s: how much later in the power series each window begins. [s]
        """
        if self.follows:
            return self._simulated(numbers, starts, shifts_s)
        batch = self._store.batch
        self._store.load(starts)
        batch.states.power.slots.origin_s[: len(starts)] -= shifts_s
        progress, terms, processors = self.progress(starts), self._store.terms, self.scenario.cluster.processors
        unit = unit_of_power(self.scenario.workload, self.scenario.cluster)
        work = [
            (batch, share, new_lookahead(numbers, progress[0], processors, unit, self.fill, joule), progress, terms)
            for joule, some in self.joules(len(starts))
            for share in np.array_split(some, min(self._threads, len(some)))
        ]
        for done in [self._pool.submit(self._run, *each) for each in work]:
            done.result()
        clock = batch.states.clock[: len(starts)]
        found: Floats = batch.values[: len(starts)].copy()
        if (clock["status"] != 0).any() or (clock["started"] < self.jobs).any():
            return np.full_like(found, np.nan)
        found[:, -1] *= batch.totals["window_work_s"][: len(starts)]
        found[:, -1] /= [self.baseline_s(int(start)) for start in starts]
        return found

    def _simulated(self, numbers: Floats, starts: Ints, shifts_s: Ints) -> Floats:
        """The same one by one, for jobs that follow others: a planner learns of their submissions as they come."""
        where, found = self.scenario, np.full((len(starts), len(self.goals) + len(LIMITED)), np.nan)
        for b, joule in ((b, joule) for joule, some in self.joules(len(starts)) for b in some.tolist()):
            window, site = where.window(int(starts[b]), self.jobs), where.site
            site = site and replace(site, origin_s=site.origin_s - float(shifts_s[b]))
            decider = lookahead_policy(numbers, baseline_rule(window, self.placement), self.fill, joule)
            program = replace(self.program, decider=decider)
            try:
                outcome = run_program(window, where.cluster, site, where.rules, program)
            except SupplyExhausted:
                return np.full_like(found, np.nan)
            metrics, self.outcomes[b] = evaluate(outcome), outcome
            found[b] = [metrics[name] for name in (*self.goals, *LIMITED)]
            found[b, -1] = metrics["makespan_s"] / self.baseline_s(int(starts[b]))
        return found

    def joules(self, count: int) -> list[tuple[Joule, Ints]]:
        """What a joule weighs, and the windows in which it does."""
        return [(self.joule, np.arange(count, dtype=np.int64))]

    def baseline_s(self, start: int) -> float:
        """Makespan of ``f2+easy-schedgym`` on a window. [s]"""
        if start not in self._baseline:
            question = self.scenario
            window = question.window(start, self.jobs)
            outcome = simulate(window, question.cluster, None, question.rules, scheduler(BASELINE))
            self._baseline[start] = float(outcome.end_s.max() - window.submit_s.min())
        return self._baseline[start]

    def progress(self, starts: Ints) -> Floats:
        """Baseline progress on the windows, see `lookahead.baseline`; cached for the following candidates."""
        if self._shown != starts.tolist():
            question = self.scenario
            windows = [question.window(int(start), self.jobs) for start in starts]
            self._progress = np.stack(
                [
                    baseline_progress(each, question.cluster, question.rules, baseline_rule(each, self.placement))
                    for each in windows
                ]
            )
            self._shown = starts.tolist()
        return self._progress


def goals_of(preset: Preset) -> tuple[str, ...]:
    """The terms that a preset optimizes: one of `GOALS`, or some of `WEIGHED`."""
    return tuple(name for name in dict.fromkeys((*GOALS, *WEIGHED)) if name in preset.reward.terms)


def is_weighed(preset: Preset) -> bool:
    """Whether a planner is optimized for more than energy."""
    return goals_of(preset) not in [(goal,) for goal in GOALS]


def objective(found: Floats, terms: Mapping[str, float], aim: float, most: float, slowdown: float) -> float:
    """Objective to minimize: minus the weighted goal, plus penalties for exceeding limits on makespan and slowdown.

    Args:
        found: the goal and `FIGURES` of each window, shape (windows, 3); NaN makes the objective NaN.
        terms: weight of one of `GOALS` and each of `LIMITED` in the reward.
        aim: limit on the mean makespan relative to F2 with backfilling.
        most: limit on the makespan ratio of a single window; the mean excess is penalized.
        slowdown: limit on the mean bounded slowdown.
    """
    goal, bounded, ratio = found.mean(axis=0)
    beyond = max(ratio - aim, 0.0) + np.maximum(found[:, 2] - most, 0.0).mean()
    counted = goal, max(bounded - slowdown, 0.0), beyond
    names = next(name for name in GOALS if name in terms), *LIMITED
    return -float(np.dot(counted, [terms[name] for name in names]))


class PlannerSearch(Searching):
    """One model for each entry of the preset's ``makespan_bound``."""

    def __init__(self, plan: Plan) -> None:
        check(plan)
        made = plan.settings
        self.begin = begin_of(plan)
        super().__init__(plan, self.begin, stages=1 if made.search is None else len(made.search.makespan_bound))
        scenarios = [_worlds(each, plan) for each in (plan.scenario, *plan.beside)]
        worlds = [(number, world) for row in zip(*scenarios, strict=True) for number, world in enumerate(row)]
        if made.windows < len(worlds):
            problem, fix = f"is {made.windows}, for {len(worlds)} workloads", f"give at least {len(worlds)}"
            raise InputError(problem, field="training.windows", fix=fix)
        self.dealt = [np.arange(first, made.windows, len(worlds)) for first in range(len(worlds))]
        self.scenario_of = np.array([worlds[k % len(worlds)][0] for k in range(made.windows)])
        self.trials = [self.trial(world, len(some)) for (_, world), some in zip(worlds, self.dealt, strict=True)]
        shortest = min((world for _, world in worlds), key=lambda world: len(world.workload))
        self.starts = training_starts(shortest, made.jobs, plan.windows)

    def trial(self, world: Scenario, count: int) -> Trial:
        """What evaluates candidates on some windows of a scenario."""
        plan = self.plan
        return Trial(world, plan.preset, plan.settings.jobs, count, plan.threads, self.search.placement)

    def figures(self) -> tuple[str, ...]:
        """Names of the figures of a candidate on a window."""
        return (*goals_of(self.plan.preset), *FIGURES)

    def tried(self, stage: int, starts: Ints, random: np.random.Generator) -> tuple[Floats, Record]:
        """Objectives of a generation. Fixed windows cycle through the years of weather, drawn windows sample a year."""
        count, years = len(starts), self.search.years
        year = np.arange(count) % years if self.search.fixed_windows else random.integers(0, years, count)
        shifts_s = year * YEAR_S
        points = self.evolution.ask(random)
        makespan_bound = self.search.makespan_bound[stage]
        numbers = [tuple(numbers_of(point, makespan_bound).tolist()) for point in points]
        windows, shifts = tuple(starts.tolist()), tuple(shifts_s.tolist())
        found = np.array(self.played([Candidate(place, each, windows, shifts) for place, each in enumerate(numbers)]))
        far = FAR_PRICE * np.maximum(np.abs(points - self.begin) - FAR, 0.0).sum(axis=1)
        values: Floats = np.array([self._objective(stage, each) for each in found]) + far
        if np.isnan(values).all():
            raise GreenbatchError(
                f"no candidate of generation {self.counters.epoch + 1} starts all jobs before the power series ends "
                "(give a longer series, set site.repeat = true, or ask for fewer training.search.years)"
            )
        best = found[int(np.nanargmin(values))]
        figures = dict(zip(self.figures(), best.mean(axis=0).tolist(), strict=True))
        return values, {"makespan_bound": makespan_bound, "return": float(-np.nanmean(values)), **figures}

    def evaluated(self, candidate: Candidate) -> Floats:
        """Figures of a candidate on all windows, which are dealt to the workloads in turn: shape (windows, 3)."""
        numbers, starts, shifts_s = np.array(candidate.numbers), np.array(candidate.windows), np.array(candidate.more)
        found = np.empty((len(starts), len(self.figures())))
        for trial, some in zip(self.trials, self.dealt, strict=True):
            found[some] = trial(numbers, starts[some], shifts_s[some])
        return found

    def _objective(self, stage: int, found: Floats) -> float:
        """The mean of `objective` over the scenarios."""
        limits = self.search.aim[stage], self.search.most[stage], self.search.slowdown[stage]
        terms = self.plan.preset.reward.terms
        each = [
            objective(found[self.scenario_of == number], terms, *limits) for number in range(1 + len(self.plan.beside))
        ]
        return float(np.mean(each))

    def center(self, stage: int) -> dict[str, Floats]:
        """The weights for the bound of a stage: the center, or the mean of the last ones."""
        makespan_bound = self.search.makespan_bound[stage]
        name, numbers = f"{BOUND}{makespan_bound:g}", numbers_of(self.evolution.mean, makespan_bound)
        if name in self.found and self.search.memory > 1:
            numbers = self.found[name] + (numbers - self.found[name]) / self.search.memory
        return {name: numbers}

    def weights(self) -> Weights:
        """Weights for each bound begun so far."""
        return {name: numbers.astype(np.float32) for name, numbers in self.found.items()}


def _worlds(scenario: Scenario, plan: Plan) -> list[Scenario]:
    """A scenario with each of the workloads that a training sees."""
    search = search_settings(plan)
    count, factors = search.workloads, search.gap_factors
    if not count:
        return [scenario]
    shift = plan.settings.seed * count
    return [regenerated(scenario, shift + number, factors[number % len(factors)]) for number in range(count)]


def check(plan: Plan) -> None:
    """Check that a plan is a valid search for a look-ahead planner.

    Raises:
        InputError: the network has other keys than its kind, the planner has no tick, a backfilling,
            validation windows or other reward terms, ``keep`` is not ``last``, or there is no power supply.
    """
    made, kind = resolve(plan.preset, plan.scenario), plan.preset.network["kind"]
    unused = {
        "network": set(plan.preset.network) <= {"kind", "fill", *JOULE},
        "observation": made.observation == Observation(),
        "action": made.action == Action(), "training.validation": not plan.settings.validation.windows,
    }  # fmt: skip
    for field, fine in unused.items():
        if not fine:
            problem = (
                "has no effect on the look-ahead planner: its inputs and actions are fixed, and it is not validated"
            )
            fix = f'leave it out; [network] has kind = "{kind}" and fill alone, validation no windows'
            raise InputError(problem, field=field, fix=fix)
    if not plan.preset.settings.get("tick_s", plan.scenario.rules.tick_s) > 0:
        problem = f"{plan.preset.name} holds jobs, so it requires decisions between events"
        raise InputError(problem, field="settings.tick_s", fix="set it to 1800")
    if plan.settings.keep != "last":
        problem = f"{plan.preset.name} keeps the center of the last generation"
        raise InputError(problem, field="training.keep", fix='set it to "last"')
    goals = goals_of(plan.preset)
    if set(plan.preset.reward.terms) != {*goals, *LIMITED} or goals not in [*((goal,) for goal in GOALS), WEIGHED]:
        of = f"{' or '.join(GOALS)} (or {', '.join(WEIGHED)} together)"
        problem = f"{plan.preset.name} is optimized for {of}, {', '.join(LIMITED)}"
        raise InputError(problem, field="reward.terms", fix="give a weight for each of them and no other terms")
    search = plan.settings.search
    if search is not None and search.placement not in PLACEMENTS:
        fix = did_you_mean(search.placement, PLACEMENTS, then="known: " + ", ".join(PLACEMENTS))
        raise InputError(f"is {search.placement!r}", field="training.search.placement", fix=fix)
    placement = "" if search is None or search.placement == "first" else search.placement
    refuse("--backfill", kinds_of(plan.preset), asked(plan.backfill))
    refuse("training.search.placement", kinds_of(plan.preset), asked("none", placement))
