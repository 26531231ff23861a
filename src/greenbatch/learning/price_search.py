"""The search for the prices of a planner: what candidates are worth on windows under the weather of several years."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.priced import compiled_priced_batch
from greenbatch.engine.prices import LAG, LARGEST_WEIGHT, NUMBERS, PRICES, WEIGHTS
from greenbatch.engine.simulate import simulate, unheld_schedule
from greenbatch.envs.preset import PRICES_KIND, Action, Observation, Preset, resolve
from greenbatch.envs.simulations import Simulations
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.learning.model import BOUND
from greenbatch.learning.onnx_builder import Weights
from greenbatch.learning.plan import Plan
from greenbatch.learning.priced import BASELINE, program_of, unheld_rule
from greenbatch.learning.search import Record, Searching
from greenbatch.policies import scheduler
from greenbatch.scenarios import Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TERMS = ("renewable_utilization", "bounded_slowdown", "makespan")
"""What is known of a candidate on a window."""
HEAD_STEP = 0.25
"""First step of a head's weight."""
LEEWAY = 0.1
"""How far below the makespan bound the lag begins, beyond which holding gets dear."""
YEAR_S = 365 * 86_400
FAR, FAR_PRICE = 6.0, 1e-4
"""Steps from the beginning beyond which a number of a candidate costs something, and what each further step costs."""


def initial_point() -> Floats:
    """The numbers with which a search begins, in its own units: 0."""
    return np.zeros(WEIGHTS)


def numbers_of(point: Floats, makespan_bound: float) -> Floats:
    """The model at a point of the search for a makespan bound, cut to what makes sense, shape (WEIGHTS,)."""
    made = point * HEAD_STEP
    for k, number in enumerate(NUMBERS.values()):
        begin = makespan_bound - LEEWAY if k == LAG else number.initial
        made[k] = min(max(begin + number.step * point[k], number.lowest), number.highest)
    made[PRICES:] = np.clip(made[PRICES:], -LARGEST_WEIGHT, LARGEST_WEIGHT)
    return np.ascontiguousarray(made)


class Trial:
    """Windows of one scenario on which candidates are tried.

    Args:
        scenario: jobs, machine and power supply.
        preset: the planner's, with the engine's settings.
        jobs: jobs of a window.
        count: most windows of a trial.
        threads: threads that share the windows of a candidate; the result is the same for any number.
    """

    def __init__(self, scenario: Scenario, preset: Preset, jobs: int, count: int, threads: int) -> None:
        self.scenario, self.jobs = scenario, jobs
        self._store = Simulations(scenario, program_of(preset), count, jobs, TERMS)
        self._run = compiled_priced_batch()
        self._pool = ThreadPoolExecutor(threads)
        self._threads = threads
        self._baseline: dict[int, float] = {}
        self._shown: list[int] = []
        self._unheld: Floats = np.zeros((0, 0, 4))

    def __call__(self, numbers: Floats, starts: Ints, shifts_s: Ints) -> Floats:
        """Utilization, slowdown and makespan relative to F2 with backfilling, shape (windows, 3).

        All NaN where the candidate holds jobs of some window until the power series ends.

        Args:
            numbers: the candidate, shape (WEIGHTS,).
            starts: first job of each window.
            shifts_s: how much later in the power series each window begins. [s]
        """
        batch = self._store.batch
        self._store.load(starts)
        batch.set.supply_origin_s[: len(starts)] -= shifts_s
        shares = np.array_split(np.arange(len(starts), dtype=np.int64), min(self._threads, len(starts)))
        others = (numbers, self.unheld(starts), self._store.terms)
        for done in [self._pool.submit(self._run, batch, share, *others) for share in shares]:
            done.result()
        clock = batch.clock[: len(starts)]
        if (clock["status"] != 0).any() or (clock["started"] < self.jobs).any():
            return np.full((len(starts), len(TERMS)), np.nan)
        found: Floats = batch.values[: len(starts)].copy()
        found[:, 2] *= batch.tally["window_work_s"][: len(starts)]
        found[:, 2] /= [self.baseline_s(int(start)) for start in starts]
        return found

    def baseline_s(self, start: int) -> float:
        """Makespan of ``f2+easy-schedgym`` on a window. [s]"""
        if start not in self._baseline:
            question = self.scenario
            window = question.window(start, self.jobs)
            outcome = simulate(window, question.cluster, None, question.rules, scheduler(BASELINE))
            self._baseline[start] = float(outcome.end_s.max() - window.submit_s.min())
        return self._baseline[start]

    def unheld(self, starts: Ints) -> Floats:
        """What the lag is measured by on the windows, see `engine.unheld`: kept for the candidates that follow."""
        if self._shown != starts.tolist():
            question = self.scenario
            windows = [question.window(int(start), self.jobs) for start in starts]
            self._unheld = np.stack(
                [unheld_schedule(each, question.cluster, question.rules, unheld_rule(each)) for each in windows]
            )
            self._shown = starts.tolist()
        return self._unheld


def objective(found: Floats, terms: Mapping[str, float], aim: float, most: float, slowdown: float) -> float:
    """What is to be small: utilization lost, and what goes beyond the makespan and the slowdown that are allowed.

    Args:
        found: of every window, shape (windows, 3), see `Trial`; NaN makes the objective NaN.
        terms: weight of each of `TERMS` in the reward.
        aim: makespan relative to F2 with backfilling that costs nothing, on the mean.
        most: makespan ratio of a single window that costs nothing; the excess counts on the mean.
        slowdown: mean bounded slowdown that costs nothing.
    """
    utilization, bounded, ratio = found.mean(axis=0)
    beyond = max(ratio - aim, 0.0) + np.maximum(found[:, 2] - most, 0.0).mean()
    counted = utilization, max(bounded - slowdown, 0.0), beyond
    return -float(np.dot(counted, [terms[name] for name in TERMS]))


class PriceSearch(Searching):
    """One model for each makespan that the preset's ``makespan_bound`` lists."""

    def __init__(self, plan: Plan) -> None:
        check(plan)
        made = plan.settings
        super().__init__(plan, initial_point(), stages=1 if made.search is None else len(made.search.makespan_bound))
        self.trial = Trial(plan.scenario, plan.preset, made.jobs, made.windows, plan.threads)

    def tried(self, stage: int, starts: Ints, random: np.random.Generator) -> tuple[Floats, Record]:
        """Objectives of a generation. Fixed windows take the years of weather in turn, others a drawn one."""
        count, years = len(starts), self.search.years
        year = np.arange(count) % years if self.search.fixed_windows else random.integers(0, years, count)
        shifts_s = year * YEAR_S
        points = self.evolution.ask(random)
        makespan_bound = self.search.makespan_bound[stage]
        found = np.array([self.trial(numbers_of(point, makespan_bound), starts, shifts_s) for point in points])
        limits = self.search.aim[stage], self.search.most[stage], self.search.slowdown[stage]
        far = FAR_PRICE * np.maximum(np.abs(points) - FAR, 0.0).sum(axis=1)
        terms = self.plan.preset.reward.terms
        values: Floats = np.array([objective(each, terms, *limits) for each in found]) + far
        if np.isnan(values).all():
            raise GreenbatchError(
                f"no candidate of generation {self.counters.epoch + 1} starts all jobs before the power series ends "
                "(give a longer series, set site.repeat = true, or ask for fewer training.search.years)"
            )
        best = found[int(np.nanargmin(values))]
        figures = dict(zip(TERMS, best.mean(axis=0).tolist(), strict=True))
        return values, {"makespan_bound": makespan_bound, "return": float(-np.nanmean(values)), **figures}

    def center(self, stage: int) -> dict[str, Floats]:
        """The numbers of the bound."""
        makespan_bound = self.search.makespan_bound[stage]
        return {f"{BOUND}{makespan_bound:g}": numbers_of(self.evolution.mean, makespan_bound)}

    def weights(self) -> Weights:
        """Numbers of every bound that was begun."""
        return {name: numbers.astype(np.float32) for name, numbers in self.found.items()}


def check(plan: Plan) -> None:
    """Refuse what cannot be planned.

    Raises:
        InputError: the network is not found by a search, the planner is never woken or looks at some jobs only, another
            than the last center is to be kept, the reward has other terms, or there is no power supply.
    """
    kind = plan.preset.network.get("kind")
    if kind != PRICES_KIND:
        fix = "leave out training.search: it finds networks of kind prices or linear"
        raise InputError(f"is {kind!r}", field="network.kind", fix=fix)
    made = resolve(plan.preset, plan.scenario)
    unused = {
        "network": set(plan.preset.network) == {"kind"}, "observation": made.observation == Observation(),
        "action": made.action == Action(), "training.validation": not plan.settings.validation.windows,
    }  # fmt: skip
    for field, fine in unused.items():
        if not fine:
            problem = "a planner with prices sees and does what engine.priced lists, and is not validated"
            raise InputError(
                problem, field=field, fix='leave it out; [network] has kind = "prices" alone, validation no windows'
            )
    if not plan.preset.settings.get("tick_s", plan.scenario.rules.tick_s) > 0:
        problem = f"{plan.preset.name} holds jobs, so it must be asked again although nothing happens"
        raise InputError(problem, field="settings.tick_s", fix="set it to 1800")
    if plan.backfill != "none":
        problem = f"{plan.preset.name} looks at every waiting job, so it takes no backfilling"
        raise InputError(problem, field="--backfill", fix="leave it out, or give none")
    if plan.settings.keep != "last":
        problem = f"{plan.preset.name} keeps the center of the last generation"
        raise InputError(problem, field="training.keep", fix='set it to "last"')
    if set(plan.preset.reward.terms) != set(TERMS):
        problem = f"{plan.preset.name} is searched for by " + ", ".join(TERMS)
        raise InputError(problem, field="reward.terms", fix="give each of them a weight, and no other")
    if plan.scenario.site is None:
        problem = f"{plan.preset.name} needs a power supply, {plan.scenario.name} has none"
        raise InputError(problem, field="site", fix="use a scenario with a site")
