"""The accounting dump of an invented site, as ``sacct`` prints it: four partitions, GPUs, users of several accounts."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

FIELDS = (
    "JobIDRaw|JobID|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS"
    "|AllocCPUS|AllocNodes|ReqMem|AllocTRES|ConsumedEnergyRaw|NodeList"
)
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)


@dataclass(frozen=True)
class Partition:
    nodes: int
    processors: int
    """Per node."""
    memory_gb: int
    """Per node, in units of 1024^3 bytes."""
    gpus: int = 0
    """Per node."""
    share: float = 0.25
    """Of all jobs."""


PARTITIONS = {
    "cpu": Partition(6, 32, 128, share=0.55),
    "bigmem": Partition(2, 64, 1024, share=0.1),
    "gpu": Partition(4, 32, 256, gpus=4, share=0.2),
    "debug": Partition(2, 32, 128, share=0.15),
}
PROCESSORS = sum(p.nodes * p.processors for p in PARTITIONS.values())


def watts(user: int) -> float:
    """Power of one processor of a user's jobs."""
    return 4.0 + 1.5 * (user % 5)


def dump(
    jobs: int = 400,
    seed: int = 1,
    days: float | None = None,
    measured: float = 0.6,
    outage: tuple[float, float] | None = None,
) -> str:
    """The dump: every job starts first come, first served in its partition, as soon as it fits.

    Args:
        jobs: number of jobs.
        seed: of the random numbers.
        days: span of the submissions; by default 130 jobs a day.
        measured: share of the jobs whose energy was measured.
        outage: begin and end of a time in which nothing starts or runs [h]: jobs that would run in it start after it.
    """
    random = np.random.default_rng(seed)
    names = list(PARTITIONS)
    ends: dict[str, list[tuple[float, int, int]]] = {name: [] for name in names}
    free = {name: [p.nodes * p.processors, p.nodes * p.gpus] for name, p in PARTITIONS.items()}
    clock = dict.fromkeys(names, 0.0)
    lines = [FIELDS]
    submissions = np.sort(random.uniform(0, (days or jobs / 130) * 86_400, jobs)).round()
    for number, submit_s in enumerate(submissions, start=7001):
        name = names[random.choice(len(names), p=[p.share for p in PARTITIONS.values()])]
        part, user = PARTITIONS[name], int(min(random.zipf(1.6), 15))
        nodes = int(min(2 ** random.integers(0, 3), part.nodes)) if random.random() < 0.3 else 1
        processors = nodes * (part.processors if nodes > 1 else int(2 ** random.integers(0, 6)))
        gpus = nodes * int(random.integers(1, part.gpus + 1)) if part.gpus else 0
        limit_min = int(random.choice([30, 120, 480, 1440], p=[0.4, 0.3, 0.2, 0.1])) if name != "debug" else 30
        run_s = max(1, round(limit_min * 60 * random.beta(1.2, 2.5)))
        now_s = clock[name] = max(clock[name], float(submit_s))
        while True:
            while ends[name] and ends[name][0][0] <= now_s:
                _, back, cards = heapq.heappop(ends[name])
                free[name][0] += back
                free[name][1] += cards
            blocked = outage and now_s < outage[1] * 3600 and now_s + run_s > outage[0] * 3600
            if blocked:
                now_s = max(now_s, outage[1] * 3600)
            elif free[name][0] >= processors and free[name][1] >= gpus:
                break
            else:
                now_s = ends[name][0][0]
        clock[name] = now_s
        free[name][0] -= processors
        free[name][1] -= gpus
        heapq.heappush(ends[name], (now_s + run_s, processors, gpus))
        energy = round(watts(user) * processors * run_s) if random.random() < measured else 0
        memory = nodes * max(1, part.memory_gb * processors // (nodes * part.processors))
        tres = f"billing={processors},cpu={processors},mem={memory}G,node={nodes}" + f",gres/gpu={gpus}" * bool(gpus)
        hosts = f"{name}{1:02}" if nodes == 1 else f"{name}[01-{nodes:02}]"
        qos = "high" if user == 2 else "normal"
        cells = [
            number, number, f"u{user:02}", f"group{user % 4}", name, qos, "COMPLETED", stamp(submit_s),
            stamp(submit_s), stamp(now_s), stamp(now_s + run_s), run_s, limit_min, processors, processors, nodes,
            f"{memory}G", tres, energy, hosts,
        ]  # fmt: skip
        lines.append("|".join(map(str, cells)))
    return "\n".join(lines) + "\n"


def stamp(time_s: float) -> str:
    """A time as ``sacct`` prints it under ``TZ=UTC``."""
    return datetime.fromtimestamp(BEGIN.timestamp() + time_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def slurm_conf() -> str:
    """The ``slurm.conf`` of the site."""
    lines = ["ClusterName=site", "PriorityType=priority/multifactor", "PriorityWeightAge=1000",
             "PriorityWeightFairshare=5000", "PriorityWeightPartition=2000"]  # fmt: skip
    for name, part in PARTITIONS.items():
        gpus = f" Gres=gpu:{part.gpus}" if part.gpus else ""
        memory_mb = part.memory_gb * 1024
        lines.append(f"NodeName={name}[01-{part.nodes:02}] CPUs={part.processors} RealMemory={memory_mb}{gpus}")
        factor = 10 if name == "debug" else 1
        lines.append(f"PartitionName={name} Nodes={name}[01-{part.nodes:02}] State=UP PriorityJobFactor={factor}")
    return "\n".join(lines) + "\n"
