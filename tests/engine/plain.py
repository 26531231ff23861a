"""Batch scheduling written a second time, slowly and without the engine: lists, dictionaries, one second at a time.

Only what the documents say is shared with the engine, no code: EASY after Mu'alem & Feitelson 2001, the variants
after the GAS-MARL paper and notes on its simulator, ties as `engine.events` states them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

INFINITE = float("inf")


class Job(NamedTuple):
    """A job; its number is its row in the workload."""

    submit_s: float
    run_s: float
    requested_s: float
    processors: int
    power_w: float = 0.0


class Supply(NamedTuple):
    """Renewable power: slots of ``step_s`` seconds that begin at ``origin_s`` and repeat.

    ``foreseen`` slots, at most the whole series, are forecast; beyond that the forecast repeats.
    """

    renewable_w: list[float]
    step_s: float
    origin_s: float
    foreseen: int

    def begin_s(self, slot: int) -> float:
        return self.origin_s + slot * self.step_s

    def slot(self, time_s: float) -> int:
        """The slot that has begun while the next one has not."""
        near = int((time_s - self.origin_s) // self.step_s)
        return next(
            slot for slot in (near - 1, near, near + 1) if self.begin_s(slot) <= time_s < self.begin_s(slot + 1)
        )

    def forecast_w(self, now_s: float, time_s: float) -> float:
        current, slot = self.slot(now_s), self.slot(time_s)
        return self.renewable_w[
            (current + (slot - current) % min(self.foreseen, len(self.renewable_w))) % len(self.renewable_w)
        ]


class Prices(NamedTuple):
    """What `cheapest-start` weighs: see its docstring."""

    hold_j: float
    idle_w: float
    reserve: float
    short_s: float
    horizon_s: float
    tick_s: float


class Events:
    """The order of events, for simulators that know when their running jobs end."""

    jobs: Any
    per_instant: bool
    completion_first: bool
    now_s: float
    waiting: list[int]
    running: list[int]
    start_s: dict[int, float]
    coming: list[int]
    early: bool

    def end_s(self, j: int) -> float:
        """End of a running job."""
        return self.requested_end_s(j)

    def requested_end_s(self, j: int) -> float:
        """Start + requested time of a running job."""
        return float(self.start_s[j] + self.jobs[j].requested_s)

    def one_event(self, wake_s: float) -> None:
        """Arrivals come before completions (or after), completions in order of starting, both before a wake-up."""
        arrival_s = self.jobs[self.coming[0]].submit_s if self.coming else INFINITE
        ending = min(self.running, key=self.end_s, default=None)
        completion_s = INFINITE if ending is None else self.end_s(ending)
        arrives = arrival_s < completion_s or (arrival_s == completion_s and not self.completion_first)
        if arrives and arrival_s <= wake_s:
            self.now_s = max(self.now_s, arrival_s)
            self.waiting.append(self.coming.pop(0))
        elif ending is not None and completion_s <= wake_s:
            self.now_s = max(self.now_s, completion_s)
            self.running.remove(ending)
            self.early |= self.requested_end_s(ending) != self.now_s
        else:
            assert wake_s < INFINITE
            self.now_s = wake_s

    def events(self, wake_s: float = INFINITE) -> None:
        self.one_event(wake_s)
        while self.per_instant and (
            (self.coming and self.jobs[self.coming[0]].submit_s <= self.now_s)
            or any(self.end_s(j) <= self.now_s for j in self.running)
        ):
            self.one_event(INFINITE)


@dataclass
class Machine(Events):
    """The batch system: who waits, who runs, and what has been."""

    jobs: list[Job]
    processors: int
    score: Callable[[Job, float], float]
    backfill: str = "none"
    per_instant: bool = False
    completion_first: bool = False
    kill: bool = True
    sticky: bool = False
    idle_w: float = 0.0
    supply: Supply | None = None
    threshold_j: float = INFINITE
    prices: Prices | None = None
    now_s: float = 0.0
    waiting: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)  # in order of starting
    start_s: dict[int, float] = field(default_factory=dict)
    first_reservation_s: dict[int, float] = field(default_factory=dict)
    early: bool = False

    def __post_init__(self) -> None:
        self.coming = sorted(range(len(self.jobs)), key=lambda j: (self.jobs[j].submit_s, j))

    def end_s(self, j: int) -> float:
        job = self.jobs[j]
        return self.start_s[j] + (min(job.run_s, job.requested_s) if self.kill else job.run_s)

    @property
    def free(self) -> int:
        return self.processors - sum(self.jobs[j].processors for j in self.running)

    def fits(self, j: int) -> bool:
        return self.jobs[j].processors <= self.free

    def start(self, j: int) -> None:
        assert self.fits(j)
        self.waiting.remove(j)
        self.running.append(j)
        self.start_s[j] = self.now_s

    def next_supply_change_s(self) -> float:
        if self.supply is None:
            return INFINITE
        return self.supply.begin_s(self.supply.slot(self.now_s) + 1)

    def reservation(self, head: int) -> tuple[float, int]:
        """When the head can start by requested ends, and the processors it will leave over then."""
        need, ends = self.jobs[head].processors, {j: max(self.now_s, self.requested_end_s(j)) for j in self.running}

        def free_at(time_s: float) -> int:
            return self.free + sum(self.jobs[j].processors for j in self.running if ends[j] <= time_s)

        shadow_s = min(t for t in [self.now_s, *ends.values()] if free_at(t) >= need)
        self.first_reservation_s.setdefault(head, shadow_s)
        return shadow_s, free_at(shadow_s) - need

    def fill(self, head: int, shadow_s: float, spare: int) -> None:
        """Start what may start in front of the blocked head."""
        candidates = [j for j in self.waiting if j != head]
        if self.backfill in ("green", "easy-green-order"):
            candidates.sort(key=lambda j: self.jobs[j].power_w * self.jobs[j].requested_s * self.jobs[j].processors)
        for j in candidates:
            end_s = self.now_s + self.jobs[j].requested_s
            if not self.fits(j):
                continue
            if self.backfill == "easy":
                if end_s <= shadow_s or self.jobs[j].processors <= spare:
                    self.start(j)
                    if end_s > shadow_s:
                        spare -= self.jobs[j].processors
            elif end_s < shadow_s and (self.backfill != "green" or self.extra_brown_j(j) < self.threshold_j):
                self.start(j)

    def extra_brown_j(self, j: int, start_s: float | None = None) -> float:
        """Brown energy with a job that starts now (or later) less brown energy without, by whole seconds."""
        assert self.supply is not None
        extra_j = 0.0
        for second in range(int(self.jobs[j].requested_s)):
            time_s = (self.now_s if start_s is None else start_s) + second
            load_w = self.idle_w + sum(self.jobs[r].power_w for r in self.running if self.requested_end_s(r) > time_s)
            green_w = self.supply.forecast_w(self.now_s, time_s)
            extra_j += max(0.0, load_w + self.jobs[j].power_w - green_w) - max(0.0, load_w - green_w)
        return extra_j

    def head(self) -> int:
        return min(self.waiting, key=lambda j: self.score(self.jobs[j], self.now_s))

    def wake_s(self) -> float:
        if self.waiting and self.prices is not None:
            return (self.now_s // self.prices.tick_s + 1) * self.prices.tick_s
        return self.next_supply_change_s() if self.waiting and self.backfill in ("green", "scan") else INFINITE

    def goes_on(self) -> bool:
        """Whether jobs wait or will come."""
        return bool(self.waiting or self.coming)

    def run(self) -> list[float]:
        """Simulate; the start of each job. [s]"""
        if self.backfill == "conservative":
            return self.run_conservative()
        while self.goes_on():
            if self.waiting and self.sticky:
                self.commit(self.head())
                continue
            self.events(self.wake_s())
            if self.backfill == "scan":
                self.scan()
                continue
            if self.prices is not None:
                while self.start_cheapest(self.prices):
                    pass
                continue
            while not self.sticky and self.waiting:
                head = self.head()
                if not self.fits(head):
                    shadow = self.reservation(head)
                    if self.backfill != "none":
                        self.fill(head, *shadow)
                    break
                self.start(head)
        return [self.start_s[j] for j in range(len(self.jobs))]

    def commit(self, head: int) -> None:
        """Sticky: the head starts next, whatever comes; only true EASY looks at its reservation again."""
        shadow = None
        while not self.fits(head):
            if shadow is None or self.backfill == "easy":
                shadow = self.reservation(head)
            if self.backfill != "none":
                self.fill(head, *shadow)
            self.events(self.wake_s())
        self.start(head)

    def scan(self) -> None:
        """LPTPN: all jobs in order of score start if they fit and cost little brown energy."""
        started = False
        for j in sorted(self.waiting, key=lambda j: self.score(self.jobs[j], self.now_s)):
            if self.fits(j) and self.extra_brown_j(j) < self.threshold_j:
                self.start(j)
                started = True
        if self.waiting and not started and not self.running:
            self.start(self.head())

    def free_at(self, time_s: float) -> int:
        """Free processors now, or later by requested ends."""
        if time_s <= self.now_s:
            return self.free
        return self.free + sum(self.jobs[j].processors for j in self.running if self.requested_end_s(j) <= time_s)

    def start_cheapest(self, prices: Prices) -> bool:
        """Start the first job for which no later half-hour is cheaper; the first that is held reserves its own."""
        assert self.supply is not None
        reserved: tuple[float, float, int] | None = None
        last_s = self.supply.begin_s(self.supply.slot(self.now_s)) + prices.horizon_s
        for j in sorted(self.waiting, key=lambda j: self.score(self.jobs[j], self.now_s)):
            job = self.jobs[j]
            price = prices.hold_j / max(job.requested_s, 10.0) + prices.idle_w * job.processors
            need = job.processors
            if job.requested_s > prices.short_s:
                need = min(need + math.ceil(prices.reserve * self.processors), self.processors)
            if need > self.free and reserved is not None:
                continue
            costs = {}
            times = [self.now_s]
            while (after_s := (times[-1] // prices.tick_s + 1) * prices.tick_s) <= last_s:
                times.append(after_s)
            for at_s in times:
                room = self.free_at(at_s)
                if reserved is not None and at_s < reserved[1] and reserved[0] < at_s + job.requested_s:
                    room = min(room, self.free_at(max(at_s, reserved[0])) - reserved[2])
                if room >= need:
                    costs[at_s] = self.extra_brown_j(j, at_s) + (at_s - self.now_s) * price
            best_s = min(costs, key=lambda at_s: costs[at_s], default=None)
            if best_s == self.now_s:
                self.start(j)
                return True
            if best_s is not None and reserved is None:
                reserved = (best_s, best_s + job.requested_s, job.processors)
        return False

    def run_conservative(self) -> list[float]:
        """Every job reserves the earliest slot when it comes; an end that was not expected moves reservations forward.

        A job that is past its requested end is expected to need as long again as it is late, at least a minute.
        """
        reserved: dict[int, float] = {}

        def earliest_s(j: int) -> float:
            taken = [(max(reserved[k], self.now_s), self.jobs[k]) for k in self.waiting if k in reserved and k != j]
            busy = [(begin_s, begin_s + job.requested_s, job.processors) for begin_s, job in taken]
            for k in self.running:
                late_s = self.now_s - self.requested_end_s(k)
                end_s = self.requested_end_s(k) if late_s <= 0 else self.now_s + max(60.0, late_s)
                busy.append((self.now_s, end_s, self.jobs[k].processors))

            def fits(at_s: float) -> bool:
                instants = [at_s, *(b for b, _, _ in busy if at_s < b < at_s + self.jobs[j].requested_s)]
                room = self.processors - self.jobs[j].processors
                return all(sum(p for b, e, p in busy if b <= t < e) <= room for t in instants)

            return min(t for t in [self.now_s, *(e for _, e, _ in busy if e > self.now_s)] if fits(t))

        while self.goes_on():
            self.early = False
            self.events(min((reserved[j] for j in self.waiting if reserved[j] > self.now_s), default=INFINITE))
            if self.early or any(self.requested_end_s(k) < self.now_s for k in self.running):
                for j in sorted(self.waiting, key=lambda j: self.score(self.jobs[j], self.now_s)):
                    if j in reserved:
                        reserved[j] = earliest_s(j)
            for j in self.waiting:
                if j not in reserved:
                    reserved[j] = self.first_reservation_s[j] = earliest_s(j)
            for j in list(self.waiting):
                if reserved[j] <= self.now_s and self.fits(j):
                    self.start(j)
        return [self.start_s[j] for j in range(len(self.jobs))]


def conservative(jobs: list[Job], processors: int) -> list[float]:
    """Conservative backfilling where every request is exact: each job takes the first slot that fits, for good."""
    placed: list[tuple[float, float, int]] = []
    start_s = [0.0] * len(jobs)
    for j in sorted(range(len(jobs)), key=lambda j: (jobs[j].submit_s, j)):
        job = jobs[j]

        def fits(begin_s: float, job: Job = job) -> bool:
            instants = [begin_s, *(b for b, _, _ in placed if begin_s < b < begin_s + job.requested_s)]
            return all(sum(p for b, e, p in placed if b <= t < e) + job.processors <= processors for t in instants)

        start_s[j] = min(t for t in [job.submit_s, *(e for _, e, _ in placed if e > job.submit_s)] if fits(t))
        placed.append((start_s[j], start_s[j] + job.requested_s, job.processors))
    return start_s
