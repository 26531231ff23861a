"""Windows that a paper's script simulates one after the other with one stream of random numbers.

The figures of a window then depend on all windows before it, so only schedulers can be distributed over processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, cast

from greenbatch.engine.program import Program, Scheduler
from greenbatch.experiments.running.cells import Progress
from greenbatch.experiments.running.compare import compare
from greenbatch.policies.searched import Published
from greenbatch.schedulers import scheduler
from greenbatch.workers import Workers, choose, several, spread
from greenbatch.workload import Workload

if TYPE_CHECKING:
    import polars

    from greenbatch.engine.views.interface import Policy
    from greenbatch.scenarios import Scenario

WINDOW_S = 0.5
"""About what a window of a thousand jobs takes, to choose the number of processes. [s]"""


@dataclass(frozen=True, slots=True)
class InTurn:
    """`ga-published` with random numbers that go on from one simulation to the next."""

    scheduler: Scheduler
    stream: Random = field(default_factory=lambda: Random(0))  # noqa: S311  (the published stream)

    def program(self, workload: Workload) -> Program:
        """The engine's program for a window of jobs."""
        made = self.scheduler.program(workload)
        return replace(made, policy=replace(cast(Published, made.policy), stream=self.stream))

    def policy(self) -> Policy | None:
        """None: the program makes its policy."""
        return None


def in_turn(
    scenario: Scenario, specs: Sequence[str], starts: Sequence[int], progress: Progress | None = None,
    workers: Workers | None = None,
) -> polars.DataFrame:  # fmt: skip
    """All metrics of schedulers, each with one stream of random numbers for all windows: seed 0 once.

    Args:
        scenario: the question.
        specs: names of schedulers, ``ga-published`` with parameters and backfilling.
        starts: first job of each window, in the order of simulation.
        progress: called before every simulation; with several processes, after every scheduler.
        workers: number of processes, >= 1; by default one per processor if the work is long.

    Returns:
        Tidy: window, scheduler, metric, value.
    """
    import polars

    chosen = choose(workers, WINDOW_S * len(starts) * len(specs))
    there, done = partial(_windows, scenario, tuple(starts), None), {}
    with closing(spread(specs, partial(_windows, scenario, tuple(starts), progress), there, chosen)) as found:
        for spec, frame in found:
            done[spec] = frame
            if several(chosen) and progress is not None:
                progress(f"{spec} on all windows", len(done), len(specs))
    return polars.concat([done[spec] for spec in specs])


def _windows(scenario: Scenario, starts: tuple[int, ...], progress: Progress | None, spec: str) -> polars.DataFrame:
    made, jobs = {spec: InTurn(scheduler(spec))}, scenario.evaluation.jobs
    return compare(scenario, made, starts, jobs, spec, progress, workers=1).frame
