"""Nodes of which only some processors are powered, written a second time without the engine: levels and suspension.

Jobs are suspended while more is in use than is powered, the latest first start first, and lose nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nodes_plain import INFINITE, Machine, Part, Situation, Stay


@dataclass
class PoweredMachine(Machine):
    """A batch system whose jobs may have several spans."""

    levels: list[tuple[float, int, int]] = field(default_factory=list)
    """Begin, processors and GPUs of each level."""
    cost_s: float = 0.0
    """Time to be suspended and to resume."""
    suspends: bool = True
    """Jobs start although it is known that less will be powered; else conservative backfilling waits."""
    key: list[float] = field(default_factory=list)
    """The order in which jobs overtake that must end before the reservation, for such backfillings."""
    suspended: list[int] = field(default_factory=list)  # the oldest suspension first
    begun_s: dict[int, float] = field(default_factory=dict)
    asked_s: dict[int, float] = field(default_factory=dict)
    """What is left of the requested time of a job when its span begins."""
    ran_s: dict[int, float] = field(default_factory=dict)
    """What is left of its run time then."""
    times: dict[int, int] = field(default_factory=dict)
    """Suspensions."""
    spans: list[tuple[int, float, float, list[Part]]] = field(default_factory=list)
    """Job, begin, end and parts, in order of their ends."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.team = [0] * len(self.jobs)  # what is powered is for all partitions together

    # ------------------------------------------------------------ what is powered

    def level(self, time_s: float) -> tuple[int, int]:
        return next((p, g) for from_s, p, g in reversed(self.levels) if from_s <= time_s or from_s == self.levels[0][0])

    def later(self) -> set[float]:
        return {from_s for from_s, *_ in self.levels if from_s > self.now_s}

    def expected(self, time_s: float) -> tuple[int, int]:
        """What is counted on at a time: where jobs are suspended, what was there once from now on is there again."""
        known = [self.now_s, *(from_s for from_s in self.later() if from_s <= time_s)] if self.suspends else [time_s]
        processors, gpus = zip(*map(self.level, known), strict=True)
        return max(processors), max(gpus)

    def own(self, j: int) -> tuple[int, int]:
        """Processors and GPUs that a job takes."""
        number, sizes = self.chunks(self.jobs[j])
        return self.jobs[j].processors, 0 if sizes is None else number * -(-self.jobs[j].gpus // number)

    def spare(self, j: int, situation: Situation, time_s: float) -> tuple[int, int]:
        """What a job leaves of what is powered at a time; below 0 if it has no room."""
        (processors, gpus), (own, own_gpus) = self.level(time_s), self.own(j)
        used, used_gpus = sum(part.taken for part in situation), sum(part.gpus for part in situation)
        return processors - used - own, gpus - used_gpus - own_gpus

    def place_now(self, j: int, *others: Situation) -> list[Part] | None:
        if min(self.spare(j, self.now(), self.now_s)) < 0:
            return None
        return self.place(j, self.order(), [self.now(), *others])

    # ------------------------------------------------------------ what runs

    def requested_end_s(self, j: int) -> float:
        return self.begun_s[j] + self.asked_s[j]

    def start(self, j: int, parts: list[Part] | None) -> None:
        assert parts is not None
        self.asked_s[j], self.ran_s[j], self.times[j] = self.jobs[j].requested_s, self.jobs[j].run_s, 0
        self.waiting.remove(j)
        self.reserved.pop(j, None)
        self.start_s[j] = self.now_s
        self.begin(j, parts)

    def begin(self, j: int, parts: list[Part]) -> None:
        self.running.append(j)
        self.begun_s[j], self.parts[j] = self.now_s, parts
        self.ends_s[j] = self.now_s + min(self.ran_s[j], self.asked_s[j])

    def suspend(self, j: int) -> None:
        self.spans.append((j, self.begun_s[j], self.now_s, self.parts[j]))
        left_of_cost_s = self.cost_s * (self.times[j] > 0) - (self.now_s - self.begun_s[j])
        more_s = self.cost_s - max(left_of_cost_s, 0.0)
        self.ran_s[j] += self.begun_s[j] - self.now_s + more_s
        self.asked_s[j] += self.begun_s[j] - self.now_s + more_s
        self.running.remove(j)
        self.suspended.append(j)
        self.times[j] += 1

    def power(self) -> None:
        """Suspend what is too much now, then let resume what fits."""
        while any(
            sum(getattr(part, name) for part in self.now()) > most
            for name, most in zip(("taken", "gpus"), self.level(self.now_s), strict=True)
        ):
            self.suspend(max(self.running, key=lambda j: (self.start_s[j], j)))
        for j in list(self.suspended):
            if (parts := self.place_now(j)) is not None:
                self.suspended.remove(j)
                self.begin(j, parts)

    def run(self) -> None:
        while self.waiting or self.coming or self.running or self.suspended:
            before = {j: self.parts[j] for j in self.running}
            due_s = [stay.from_s for stay in self.reserved.values() if stay.from_s > self.now_s]
            self.events(min([*self.later(), *due_s], default=INFINITE))
            self.spans += [(j, self.begun_s[j], self.ends_s[j], parts) for j, parts in before.items()
                           if j not in self.running]  # fmt: skip
            self.power()
            if self.backfill == "conservative":
                self.reserve_all()
            else:
                self.decide(list(self.waiting))

    # ------------------------------------------------------------ none, first-fit, EASY

    def decide(self, queue: list[int]) -> None:
        for head in self.ranked(queue):
            if (parts := self.place_now(head)) is not None:
                self.start(head, parts)
            elif self.backfill != "first-fit":
                if self.backfill != "none":
                    self.overtake(head, queue)
                else:
                    self.reserve(head)
                return

    def reserve(self, head: int) -> tuple[float, Situation, tuple[int, int]]:
        """As `reservation`, at ends and levels, and what the head leaves of what is powered then."""
        end_s = {j: max(self.now_s, self.requested_end_s(j)) for j in self.running}
        for time_s in sorted({self.now_s, *end_s.values(), *self.later()}):
            then = [part for j in self.running if end_s[j] > time_s for part in self.parts[j]]
            spare, parts = self.spare(head, then, time_s), self.place(head, self.fixed_order(), [then])
            if parts is not None and min(spare) >= 0:
                self.first_reservation_s.setdefault(head, time_s)
                return time_s, then + self.hold(parts), spare
        raise AssertionError("a job that never fits")

    def overtake(self, head: int, queue: list[int]) -> None:
        shadow_s, then, spare = self.reserve(head)
        for j in sorted(queue, key=lambda j: self.key[j]) if self.key else queue:
            if j == head or j in self.start_s or (self.key and self.now_s + self.jobs[j].requested_s >= shadow_s):
                continue
            outlives, own = self.now_s + self.jobs[j].requested_s > shadow_s, self.own(j)
            if outlives and (own[0] > spare[0] or own[1] > spare[1]):
                continue
            parts = self.place_now(j, *[then] * (outlives and not self.counts_only))
            if parts is None:
                continue
            if outlives:
                then, spare = then + parts, (spare[0] - own[0], spare[1] - own[1])
            self.start(j, parts)

    # ------------------------------------------------------------ conservative

    def takes(self, j: int) -> tuple[int, int]:
        """Processors and GPUs of a running job, or of a reservation."""
        if j not in self.running:
            return self.own(j)
        return sum(part.taken for part in self.parts[j]), sum(part.gpus for part in self.parts[j])

    def stays_powered(self, j: int, time_s: float, others: list[tuple[Stay, tuple[int, int]]]) -> bool:
        """Whether a job that starts at a time keeps within what is expected to be powered, beside the others."""
        to_s = time_s + self.jobs[j].requested_s
        begins = {*(stay.from_s for stay, _ in others), *self.later()}
        for at_s in {time_s, *(begin_s for begin_s in begins if time_s < begin_s < to_s)}:
            here = [own for stay, own in others if stay.from_s <= at_s < stay.to_s]
            used = [sum(own) for own in zip(*here, self.own(j), strict=True)]
            if any(each > most for each, most in zip(used, self.expected(at_s), strict=True)):
                return False
        return True

    def plan(self, j: int) -> Stay:
        """As on nodes that are all powered, at ends and levels, within what is expected to be powered.

        Where jobs ask for processors of any nodes only, that is all that counts.
        """
        stays = self.stays(but=j)
        who = [*self.running, *(k for k in self.reserved if k != j)]  # in the order of `stays`
        others = [(stay, self.takes(k)) for stay, k in zip(stays, who, strict=True)]
        for time_s in sorted({self.now_s, *(stay.to_s for stay in stays if stay.to_s > self.now_s), *self.later()}):
            parts: list[Part] | None = [Part(j, 0, *[self.jobs[j].processors] * 2, 0, 0)]  # the node does not matter
            if not self.counts_only:
                parts = self.place(j, self.fixed_order(), self.situations(j, time_s, stays))
            if parts is not None and self.stays_powered(j, time_s, others):
                return Stay(time_s, time_s + self.jobs[j].requested_s, self.hold(parts))
        raise AssertionError("a job that never fits")

    def reserve_all(self) -> None:
        """Since what is powered changes, all reservations are made anew at every event; then those due start."""
        for j in [*self.ranked(self.reserved), *(j for j in self.waiting if j not in self.reserved)]:
            self.reserved[j] = self.plan(j)
            self.first_reservation_s.setdefault(j, self.reserved[j].from_s)
        for j in list(self.waiting):
            if self.reserved[j].from_s <= self.now_s:
                beside = [] if self.counts_only else self.situations(j, self.now_s, self.stays(but=j))
                self.start(j, self.place(j, self.order(), [self.now(), *beside]))
