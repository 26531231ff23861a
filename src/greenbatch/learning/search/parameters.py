"""The search for parameters of a built-in policy, on workloads of a scenario's generator.

``[network] kind = "policy"`` names the policy, and ``[network.search]`` what is searched: a parameter, where the search
begins, and its first step. Each generation plays new workloads; all of its candidates play the same.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.outcome import STATES
from greenbatch.engine.simulate import run_program
from greenbatch.errors import InputError
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.search.loop import Candidate, Record, Searching
from greenbatch.models.onnx_builder import Weights
from greenbatch.models.parameters import policy_program
from greenbatch.models.policy_numbers import NUMBERS, searched_of
from greenbatch.presets.preset import VALUE, Preset
from greenbatch.scenarios import Scenario
from greenbatch.scenarios.regenerate import OF_TRAININGS, regenerated

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FAR, FAR_PRICE = 6.0, 1e-3
"""Steps from the beginning after which a candidate is penalized, and the penalty per further step."""
FINISHED = STATES.index("finished")


def numbers_at(point: Floats, preset: Preset) -> Floats:
    """The parameters at a point of the search, clipped to their ranges, of the same shape."""
    searched = searched_of(preset)
    begin, step, lowest, highest = np.array([(s.begin, s.step, s.lowest, s.highest) for s in searched], np.float64).T
    return np.asarray(np.clip(begin + step * point, lowest, highest))


def value_of(world: Scenario, preset: Preset, numbers: Floats) -> float:
    """Value of the jobs that finish in a workload, relative to that of all its jobs."""
    program = policy_program(preset, numbers, world.workload, preset.name)
    outcome = run_program(world.workload, world.cluster, world.site, world.rules, program)
    stays, value = outcome.stays, np.nan_to_num(world.workload.value)
    if stays is None or not value.sum() > 0.0:
        problem = "has jobs without value, or a machine whose capacity does not follow the power"
        raise InputError(problem, field=world.name, fix="use a scenario such as rare/10")
    return float(value[stays.state == FINISHED].sum() / value.sum())


class ParameterSearch(Searching):
    """Searches for the parameters with the highest mean value ratio."""

    def __init__(self, plan: Plan) -> None:
        check(plan)
        super().__init__(plan, np.zeros(len(searched_of(plan.preset))))
        self._pool = ThreadPoolExecutor(plan.threads)
        self._worlds: dict[int, Scenario] = {}
        """Workloads of the generation, by number."""
        self._origin = OF_TRAININGS + plan.settings.seed * plan.settings.epochs * plan.settings.windows

    def tried(self, stage: int, starts: Ints, random: np.random.Generator) -> tuple[Floats, Record]:
        """Negative value ratios of a generation, on workloads that no other generation plays."""
        del stage, starts
        made = self.settings
        first = self._origin + self.counters.epoch * made.windows
        draws = tuple(range(first, first + made.windows))
        points = self.evolution.ask(random)
        numbers = [tuple(numbers_at(point, self.plan.preset).tolist()) for point in points]
        found = np.array(self.played([Candidate(place, each, draws) for place, each in enumerate(numbers)]))
        ratios = found.mean(axis=1)
        far = FAR_PRICE * np.maximum(np.abs(points) - FAR, 0.0).sum(axis=1)
        return far - ratios, {"return": float(ratios.mean()), "best_return": float(ratios.max())}

    def evaluated(self, candidate: Candidate) -> Floats:
        """Value ratios of a candidate on its workloads, shape (windows,)."""
        if self._worlds.keys() != {*candidate.windows}:
            self._worlds = {draw: regenerated(self.plan.scenario, draw) for draw in candidate.windows}
        preset, numbers = self.plan.preset, np.array(candidate.numbers)
        worlds = [self._worlds[draw] for draw in candidate.windows]
        return np.array(list(self._pool.map(lambda world: value_of(world, preset, numbers), worlds)))

    def center(self, stage: int) -> dict[str, Floats]:
        """The center, averaged over the last generations."""
        del stage
        numbers = numbers_at(self.evolution.mean, self.plan.preset)
        if NUMBERS in self.found and self.search.memory > 1:
            numbers = self.found[NUMBERS] + (numbers - self.found[NUMBERS]) / self.search.memory
        return {NUMBERS: numbers}

    def weights(self) -> Weights:
        """The parameters found so far."""
        return {NUMBERS: self.found[NUMBERS].astype(np.float32)}


def check(plan: Plan) -> None:
    """Refuse a plan that is not for parameters of a policy.

    Raises:
        InputError: the reward is not the value of jobs, or the scenario's jobs are not drawn with a seed.
    """
    searched_of(plan.preset)
    if set(plan.preset.reward.terms) != {VALUE}:
        problem = f"{plan.preset.name} is optimized for the value of the jobs that finish"
        raise InputError(problem, field="reward.terms", fix=f"give {VALUE} = 1.0 and no other term")
    regenerated(plan.scenario, 1)
