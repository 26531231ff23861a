"""Jobs on nodes written a second time, slowly and without the engine: lists of parts, recounted at every question.

Only what the documents say is shared with the engine, no code. The one question is `Machine.place`: on which nodes a
job has room in some *situations*, each a list of the parts of jobs that occupy nodes at one instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from plain import Events

INFINITE = float("inf")
UNLIMITED_KB = 10**15


class Node(NamedTuple):
    """A node."""

    processors: int
    gpus: int = 0
    memory_kb: int = UNLIMITED_KB
    speed: float = 1.0
    partitions: frozenset[str] = frozenset()
    full_w: float = 0.0


class Job(NamedTuple):
    """A job; its number is its row in the workload."""

    submit_s: float
    run_s: float
    requested_s: float
    processors: int
    nodes: int = 0
    """0: processors of any nodes."""
    gpus: int = 0
    memory_kb: int = 0
    """Of each processor."""
    exclusive: bool = False
    partition: str = ""


class Part(NamedTuple):
    """What a job takes of one node."""

    job: int
    node: int
    processors: int
    """Processors that work."""
    taken: int
    """Processors that nobody else can use: all of a node that is used exclusively."""
    gpus: int
    memory_kb: int


class Stay(NamedTuple):
    """Parts of a job on nodes from one instant to another."""

    from_s: float
    to_s: float
    parts: list[Part]


Situation = list[Part]

KEYS: dict[str, Callable[[Node, list[Part]], float]] = {
    "best-fit": lambda node, here: node.processors - taken(node, here)[0],
    "worst-fit": lambda node, here: taken(node, here)[0] - node.processors,
    "pack": lambda node, here: (node.processors - taken(node, here)[0]) / node.processors,
    "spread": lambda node, here: len(here),
    "high-mem": lambda node, here: taken(node, here)[2] - node.memory_kb,
}
"""Placements whose order changes with what runs: the node with the lowest key goes first."""
FIXED: dict[str, Callable[[Node], float]] = {
    "first": lambda node: 0.0,
    "high-total-cores": lambda node: -node.processors,
    "low-power": lambda node: node.full_w,
}
"""Placements whose order never changes."""


def taken(node: Node, here: list[Part]) -> tuple[int, int, int]:
    """Processors, GPUs and memory of a node that parts of jobs take."""
    return sum(p.taken for p in here), sum(p.gpus for p in here), sum(p.memory_kb for p in here)


@dataclass
class Machine(Events):
    """The batch system: who waits, who runs where, and what has been."""

    jobs: list[Job]
    nodes: list[Node]
    score: Callable[[Job, float], float]
    backfill: str = "none"
    placement: str = "first"
    per_instant: bool = False
    completion_first: bool = False
    kill: bool = True
    sticky: bool = False
    now_s: float = 0.0
    waiting: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)  # in order of starting
    start_s: dict[int, float] = field(default_factory=dict)
    ends_s: dict[int, float] = field(default_factory=dict)
    parts: dict[int, list[Part]] = field(default_factory=dict)
    reserved: dict[int, Stay] = field(default_factory=dict)
    first_reservation_s: dict[int, float] = field(default_factory=dict)
    early: bool = False

    def __post_init__(self) -> None:
        self.coming = sorted(range(len(self.jobs)), key=lambda j: (self.jobs[j].submit_s, j))
        self.most_gpus = max(1, *(node.gpus for node in self.nodes))
        self.team = self.teams()
        self.counts_only = all(
            self.chunks(job)[1] is None and not job.exclusive and not job.memory_kb and self.usable(job) == self.usable(
                self.jobs[0]) == list(range(len(self.nodes))) for job in self.jobs
        )  # fmt: skip

    # ------------------------------------------------------------ what a job asks for

    def chunks(self, job: Job) -> tuple[int, list[int] | None]:
        """Number of chunks, and the processors of each if each is on a node of its own."""
        number = job.nodes
        if number == 0 and job.gpus > 0:  # as few nodes as have enough GPUs
            number = -(-job.gpus // self.most_gpus)
        if number == 0:
            return job.processors, None
        number = min(number, job.processors)
        return number, [job.processors // number + (k < job.processors % number) for k in range(number)]

    def usable(self, job: Job) -> list[int]:
        return [n for n, node in enumerate(self.nodes)
                if not job.partition or not node.partitions or job.partition in node.partitions]  # fmt: skip

    def teams(self) -> list[int]:
        """A number for each job; jobs of different numbers can never meet on a node, not even through a third one."""
        names = sorted({name for node in self.nodes for name in node.partitions})
        sets = [set(node.partitions) or set(names) for node in self.nodes]
        sets += [set(names)] * any(not job.partition for job in self.jobs)
        team = {name: k for k, name in enumerate(names)}
        for _ in names:
            for linked in sets:
                lowest = min((team[name] for name in linked), default=0)
                team.update(dict.fromkeys(linked, lowest))
        return [team.get(job.partition, 0) for job in self.jobs]

    def room(self, job: Job, n: int, situation: Iterable[Part]) -> int:
        """Chunks of a job that a node has room for."""
        node, here = self.nodes[n], [part for part in situation if part.node == n]
        used = taken(node, here)
        processors, gpus, memory_kb = node.processors - used[0], node.gpus - used[1], node.memory_kb - used[2]
        number, sizes = self.chunks(job)
        if job.exclusive and here:
            return 0
        if sizes is not None:  # every node has room for the largest chunk
            fits = processors >= max(sizes) and gpus >= -(-job.gpus // number)
            return int(fits and memory_kb >= max(sizes) * job.memory_kb)
        if job.memory_kb:
            processors = min(processors, memory_kb // job.memory_kb)
        return max(0, processors)

    # ------------------------------------------------------------ the one question

    def place(self, j: int, order: Sequence[int], situations: Sequence[Situation]) -> list[Part] | None:
        """The parts of a job on the first nodes of an order that have room in all situations; None if too few have."""
        job, parts = self.jobs[j], []
        number, sizes = self.chunks(job)
        left, gpus = number, -(-job.gpus // number)
        for n in order:
            if left == 0:
                break
            if n not in self.usable(job):
                continue
            room = min(self.room(job, n, situation) for situation in situations)
            if room <= 0:
                continue
            processors = min(room, left) if sizes is None else sizes[number - left]
            memory_kb = job.memory_kb * (processors if sizes is None else max(sizes))
            node = self.nodes[n]
            whole = Part(j, n, processors, node.processors, node.gpus, node.memory_kb)
            parts.append(whole if job.exclusive else Part(j, n, processors, processors, gpus, memory_kb))
            left -= processors if sizes is None else 1
        return parts if left == 0 else None

    def hold(self, parts: list[Part]) -> list[Part]:
        """What a reservation keeps: on every node of a job that asks for nodes, room for its largest chunk."""
        if not parts or self.chunks(self.jobs[parts[0].job])[1] is None:
            return parts
        largest = max(part.processors for part in parts)
        return [part._replace(taken=max(part.taken, largest)) for part in parts]

    def fixed_order(self) -> list[int]:
        key = FIXED.get(self.placement, FIXED["first"])
        return sorted(range(len(self.nodes)), key=lambda n: key(self.nodes[n]))

    def order(self) -> list[int]:
        """The nodes in the order of the placement now."""
        if self.placement in FIXED:
            return self.fixed_order()
        key, now = KEYS[self.placement], self.now()
        return sorted(
            range(len(self.nodes)), key=lambda n: key(self.nodes[n], [part for part in now if part.node == n])
        )  # fmt: skip

    # ------------------------------------------------------------ what runs

    def end_s(self, j: int) -> float:
        return self.ends_s[j]

    def now(self) -> Situation:
        return [part for j in self.running for part in self.parts[j]]

    def start(self, j: int, parts: list[Part] | None) -> None:
        assert parts is not None
        self.waiting.remove(j)
        self.running.append(j)
        self.start_s[j], self.parts[j] = self.now_s, parts
        self.reserved.pop(j, None)
        run_s = self.jobs[j].run_s / min(self.nodes[part.node].speed for part in parts)
        self.ends_s[j] = self.now_s + (min(run_s, self.jobs[j].requested_s) if self.kill else run_s)

    # ------------------------------------------------------------ none, first-fit, EASY

    def run(self) -> None:
        """Simulate."""
        if self.backfill == "conservative":
            self.run_conservative()
            return
        while self.waiting or self.coming:
            if self.waiting and self.sticky:
                self.commit(self.ranked(self.waiting)[0])
                continue
            self.events()
            for team in sorted(set(self.team)):
                self.decide([j for j in self.waiting if self.team[j] == team])
        while self.running:
            self.events()

    def ranked(self, jobs: Iterable[int]) -> list[int]:
        return sorted(jobs, key=lambda j: (self.score(self.jobs[j], self.now_s), self.jobs[j].submit_s, j))

    def decide(self, queue: list[int]) -> None:
        """Start jobs in order of score until one does not fit, then what may overtake it."""
        for head in self.ranked(queue):
            parts = self.place(head, self.order(), [self.now()])
            if parts is not None:
                self.start(head, parts)
            elif self.backfill in ("none", "easy"):
                if self.backfill == "easy":
                    self.overtake(head, queue)
                else:
                    self.reservation(head)
                return

    def commit(self, head: int) -> None:
        """Sticky: the head starts next, whatever comes; only what may overtake it starts before."""
        while (parts := self.place(head, self.order(), [self.now()])) is None:
            if self.backfill == "easy":
                self.overtake(head, list(self.waiting))
            else:
                self.reservation(head)
            if self.backfill == "first-fit":
                for j in self.ranked(self.waiting):
                    if (others := self.place(j, self.order(), [self.now()])) is not None:
                        self.start(j, others)
            self.events()
        self.start(head, parts)

    def reservation(self, head: int) -> tuple[float, Situation]:
        """The earliest instant at which the head has room by requested ends, and what is taken then, the head included.

        If all that jobs ask for is processors of any nodes, their number is all that counts.
        """
        end_s = {j: max(self.now_s, self.requested_end_s(j)) for j in self.running}
        for time_s in sorted({self.now_s, *end_s.values()}):
            then = [part for j in self.running if end_s[j] > time_s for part in self.parts[j]]
            if (parts := self.place(head, self.fixed_order(), [then])) is not None:
                self.first_reservation_s.setdefault(head, time_s)
                return time_s, then + self.hold(parts)
        raise AssertionError("a job that never fits")

    def overtake(self, head: int, queue: list[int]) -> None:
        """Candidates in order of submission: those that end by the reservation, or leave its nodes alone."""
        shadow_s, then = self.reservation(head)
        for j in queue:
            if j == head or j in self.start_s:
                continue
            if self.now_s + self.jobs[j].requested_s <= shadow_s:
                parts = self.place(j, self.order(), [self.now()])
            elif self.counts_only:
                leaves = self.jobs[j].processors <= self.left(then)
                parts = self.place(j, self.order(), [self.now()]) if leaves else None
                then += parts or []
            else:
                parts = self.place(j, self.order(), [self.now(), then])
                then += parts or []
            if parts is not None:
                self.start(j, parts)

    # ------------------------------------------------------------ conservative

    def stays(self, but: int) -> list[Stay]:
        """Who is where, and until when: running jobs and reservations, except that of one job.

        A job that is past its requested end is expected to need as long again as it is late, at least a minute.
        """
        found = []
        for j in self.running:
            late_s = self.now_s - self.requested_end_s(j)
            end_s = self.requested_end_s(j) if late_s <= 0 else self.now_s + max(60.0, late_s)
            found.append(Stay(self.now_s, end_s, self.parts[j]))
        for j, stay in self.reserved.items():
            if j != but:
                from_s = max(stay.from_s, self.now_s)
                found.append(Stay(from_s, from_s + self.jobs[j].requested_s, stay.parts))
        return found

    def situations(self, j: int, from_s: float, stays: list[Stay]) -> list[Situation]:
        """What others occupy at each instant from a time on at which something begins while the job would run."""
        to_s = from_s + self.jobs[j].requested_s
        instants = {from_s, *(stay.from_s for stay in stays if from_s < stay.from_s < to_s)}
        return [[p for stay in stays if stay.from_s <= t < stay.to_s for p in stay.parts] for t in sorted(instants)]

    def plan(self, j: int) -> Stay:
        """The earliest reservation that delays no other; nodes in the fixed order of the placement."""
        stays = self.stays(but=j)
        for time_s in sorted({self.now_s, *(stay.to_s for stay in stays if stay.to_s > self.now_s)}):
            situations, parts = self.situations(j, time_s, stays), None
            if not self.counts_only:
                parts = self.place(j, self.fixed_order(), situations)
            elif self.jobs[j].processors <= min(self.left(situation) for situation in situations):
                parts = [Part(j, 0, *[self.jobs[j].processors] * 2, 0, 0)]  # the node does not matter
            if parts is not None:
                return Stay(time_s, time_s + self.jobs[j].requested_s, self.hold(parts))
        raise AssertionError("a job that never fits")

    def left(self, situation: Situation) -> int:
        return sum(node.processors for node in self.nodes) - sum(part.processors for part in situation)

    def run_conservative(self) -> None:
        """Every job reserves nodes when it comes; an end that was not expected moves reservations forward."""
        while self.waiting or self.coming or self.running:
            self.early = False
            due_s = [stay.from_s for stay in self.reserved.values() if stay.from_s > self.now_s]
            self.events(min(due_s, default=INFINITE))
            if self.early or any(self.requested_end_s(j) < self.now_s for j in self.running):
                for j in self.ranked(self.reserved):
                    self.reserved[j] = self.plan(j)
            for j in self.waiting:
                if j not in self.reserved:
                    self.reserved[j] = self.plan(j)
                    self.first_reservation_s[j] = self.reserved[j].from_s
            for j in list(self.waiting):
                if self.reserved[j].from_s <= self.now_s:
                    beside = [] if self.counts_only else self.situations(j, self.now_s, self.stays(but=j))
                    parts = self.place(j, self.order(), [self.now(), *beside])
                    if parts is not None:
                        self.start(j, parts)
