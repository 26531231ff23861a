"""GAS-MARL's genetic algorithm as its authors coded it, for reproducing the GA columns of Tables 3 and 4.

Source: Chen et al., "GAS-MARL", §5.3, and its code. All jobs that wait together are a batch: an order of them is
searched for once and executed to the end. The code departs from what a planner should do, and the figures depend on it:

- jobs that arrive meanwhile wait for the whole batch, which can hold hundreds of jobs; they can only be backfilled;
- in the fitness, the slowdown of the batch is divided by the jobs of the *window*, so it counts too little;
- all four orders that the search begins with put large jobs first, which is worst for slowdown;
- in a plan, the reservation of a blocked job adds the processors of the *first* running job at every end;
- in a plan, a change of supply lets the clock jump to the next end, where candidates are tried before the release;
- in a plan, a candidate must also fit on the processors that are free *now*;
- the fitness sees the true renewable power, beyond any forecast, so it is not causal;
- a population of 30 has 60 members from the second generation on.
"""

from __future__ import annotations

from random import Random

import numpy as np

from greenbatch.energy import Site
from greenbatch.engine.program import Program
from greenbatch.engine.records import Floats, Slots, record_of, table_of
from greenbatch.engine.settings import SETTINGS
from greenbatch.engine.views.interface import Decision, Start, View
from greenbatch.policies.compiled.published_plans import EASY, GREEN, NO_BACKFILL, Batch, Planned, fitness_of
from greenbatch.policies.orders import Order, large_first, order_crossover, rank_of, swap, swap_blocks
from greenbatch.workload import Workload

BACKFILLS = {"none": NO_BACKFILL, "easy-schedgym": EASY, "green": GREEN}
"""The backfillings of the published code, and what they are in a plan."""
POPULATION, GENERATIONS, ELITES = 30, 30, 10
MUTANTS, PAIRS = 15, 10
"""Of each generation: children by swaps, as many by blocks, and pairs of children by crossover."""
MOST_SWAPS, LONGEST_BLOCK = 5, 10


class PublishedGenetic:
    """The genetic algorithm as a policy."""

    def __init__(
        self, stream: Random, eta: float, backfill: int, threshold_j: float, jobs: int, site: Site
    ) -> None:  # fmt: skip
        """Begin without a batch.

        Args:
            stream: the random numbers, which go on from batch to batch.
            eta: price of slowdown.
            backfill: kind of backfilling in plans.
            threshold_j: brown energy below which a job may be backfilled. [J]
            jobs: jobs of the window.
            site: the power supply.
        """
        self._stream, self._eta, self._backfill, self._threshold_j = stream, eta, backfill, threshold_j
        self._jobs, self._supply_w = jobs, np.ascontiguousarray(site.available_w, dtype=np.float64)
        self._slots = record_of(
            Slots, step_s=site.step_s, origin_s=site.origin_s, count=site.slots, forecast=site.horizon_slots
        )  # fmt: skip
        self._batch: list[int] = []
        self.evaluations = 0
        """Number of plans priced so far."""

    def decide(self, view: View) -> Decision:
        """Start the next job of the batch that still waits; search for the order of a new batch if there is none."""
        rows = {int(number): row for row, number in enumerate(view.job_id)}
        while self._batch and self._batch[0] not in rows:
            self._batch.pop(0)  # it was backfilled
        if not self._batch:
            self._batch = [int(view.job_id[position]) for position in self._best(view)]
        return Start(rows[self._batch.pop(0)])

    def _best(self, view: View) -> Order:
        """The best order of the last generation."""
        count, stream = len(view.job_id), self._stream
        if count == 1:
            return [0]
        batch = self._batch_of(view)
        for _ in range(2):  # the code shuffles twice, and keeps the second orders
            shuffled = [_shuffled(count, stream) for _ in range(POPULATION - 4)]
        population = large_first(view.queue) + shuffled
        fitness = self._fitness(batch, population)
        for _ in range(GENERATIONS):
            ranked = [population[k] for k in np.argsort(-fitness, kind="stable")]
            population = _next_generation(ranked, stream)
            fitness = self._fitness(batch, population)
        return population[int(np.argmax(fitness))]

    def _fitness(self, batch: Batch, population: list[Order]) -> Floats:
        self.evaluations += len(population)
        return fitness_of(batch, np.array(population))

    def _batch_of(self, view: View) -> Batch:
        queue, running = view.queue, view.running
        key, column = queue.submit_s, np.ascontiguousarray
        if self._backfill == GREEN:
            key = queue.power_w * queue.requested_time_s * queue.processors
        ends = table_of(Planned, len(running.job_id))
        ends["end_s"], ends["power_w"] = running.expected_end_s, running.power_w
        ends["processors"] = running.processors
        return Batch(
            now_s=view.now_s, wait_s=column(queue.wait_s), requested_s=column(queue.requested_time_s),
            power_w=column(queue.power_w), processors=queue.processors.astype(np.int64), key=column(key),
            by_key=np.argsort(key, kind="stable"), running=ends,
            free=int(queue.free_processors), base_power_w=float(view.nodes.idle_power_w.sum()), slots=self._slots,
            supply_w=self._supply_w, backfill=self._backfill, threshold_j=self._threshold_j, eta=self._eta,
            window=float(self._jobs),
        )  # fmt: skip


def _shuffled(count: int, stream: Random) -> Order:
    order = list(range(count))
    stream.shuffle(order)
    return order


def _next_generation(ranked: list[Order], stream: Random) -> list[Order]:
    """The best as they are, mutants of two kinds, and pairs of children; random numbers in the order of the code."""
    made = [order.copy() for order in ranked[:ELITES]]
    for mutate in [_by_swaps] * MUTANTS + [_by_blocks] * MUTANTS:
        child = ranked[rank_of(stream.random())].copy()
        mutate(child, stream)
        made.append(child)
    for _ in range(PAIRS):
        one, other = rank_of(stream.random()), rank_of(stream.random())
        first, last = sorted(stream.sample(range(len(ranked[0])), 2))
        a, b = ranked[one], ranked[other + (one == other)]
        made += [order_crossover(a, b, first, last), order_crossover(b, a, first, last)]
    return made


def _by_swaps(order: Order, stream: Random) -> None:
    for _ in range(stream.randint(1, MOST_SWAPS)):
        swap(order, stream.randint(0, len(order) - 1), stream.randint(0, len(order) - 1))


def _by_blocks(order: Order, stream: Random) -> None:
    count = len(order)
    length = stream.randint(1, min(count // 2, LONGEST_BLOCK))
    first = stream.randint(0, count - 2 * length)
    swap_blocks(order, length, first, stream.randint(first + length, count - length))


def published_genetic(
    stream: Random, eta: float, program: Program, workload: Workload, site: Site | None
) -> PublishedGenetic:  # fmt: skip
    """The policy for a window of jobs, with a supply and a backfilling of `BACKFILLS`: the table refuses others."""
    assert site is not None  # noqa: S101
    threshold_j = (program.settings or {}).get("threshold_j", SETTINGS["threshold_j"].default)
    return PublishedGenetic(stream, eta, BACKFILLS[program.backfill], threshold_j, len(workload), site)
