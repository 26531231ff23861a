"""Schema of scenario files: every section and key, with its unit, range and default.

Checks, defaults, ``greenbatch scenario schema`` (JSON schema) and provenance are all derived from it.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pydantic import AfterValidator, Field, create_model, model_validator

from greenbatch.engine.pools import Pools
from greenbatch.engine.rules import Rules
from greenbatch.engine.settings import SETTINGS, plain
from greenbatch.scenarios.cluster_schema import ClusterSection
from greenbatch.scenarios.keys import keys
from greenbatch.scenarios.section import (
    Count,
    Natural,
    Naturals,
    NotNegative,
    Positive,
    Section,
    Seed,
    Text,
    Texts,
    need_one_of,
)
from greenbatch.scenarios.site_schema import NoSite, SeriesSite, SyntheticSite
from greenbatch.workload.sacct import Requeued, SharedNodes
from greenbatch.workload.valued import on_pool, rare

Jobs = Annotated[int, Field(ge=1, le=10_000_000)]
Machine = Annotated[int, Field(ge=1, le=10_000_000)]
Operations = Annotated[float, Field(gt=0, le=1e18)]
Gap = Annotated[float, Field(gt=0, le=1e6)]
Ticks = Annotated[int, Field(ge=1, le=10_000_000)]


class LublinGenerator(Section):
    """Jobs from the model of Lublin & Feitelson 2003, with sizes scaled to the machine."""

    model: Literal["lublin"]
    jobs: Jobs = 10_000
    """Number of jobs."""
    seed: Seed = 0
    """Seed of the random numbers."""
    processors: Machine = 256
    """Machine size that job sizes are generated for."""
    types: Annotated[tuple[Literal["combined", "batch", "interactive"], ...], Field(strict=False, min_length=1)] = (
        "combined",
    )
    """Types of jobs to mix, each an independent stream."""
    gap_factor: Gap = 1.0
    """Stretches every gap between submissions; 0.5 doubles the load."""


class CirneGenerator(Section):
    """Jobs like those of Cirne & Berman 2001, fitted to a published trace of the model."""

    model: Literal["cirne"]
    jobs: Jobs = 10_000
    """Number of jobs."""
    seed: Seed = 0
    """Seed of the random numbers."""
    processors: Machine = 128
    """Machine size; the fit is for 128."""
    gap_factor: Gap = 1.0
    """Stretches every gap between submissions; 0.5 doubles the load."""
    user_estimates: bool = False
    """Use requested times from the model instead of exact ones."""


class JannGenerator(Section):
    """Jobs like those of Jann et al. 1997 on 322 processors, fitted to a published trace of the model."""

    model: Literal["jann"]
    jobs: Jobs = 10_000
    """Number of jobs."""
    seed: Seed = 0
    """Seed of the random numbers."""
    gap_factor: Gap = 1.0
    """Stretches every gap between submissions; 0.5 doubles the load."""


class ProfileSection(Section):
    """A kind of jobs."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$", max_length=100)]
    """Name of the profile: begins with a letter; letters, digits, ``_``, ``-`` and ``.``."""
    processors: Machine
    """Processors, on one node."""
    operations: Operations
    """Floating-point operations of each processor."""
    requested_time_s: Positive | None = None
    """Requested time; by default the run time on a processor of speed 1. [s]"""
    memory_mb: NotNegative = 0.0
    """Memory of each processor. [MB]"""
    memory_volume_mb: NotNegative = 0.0
    """Data that each processor moves from and to memory, for contention. [MB]"""
    requested_energy_j: NotNegative = 0.0
    """Energy that the user expects each processor to use. [J]"""


class ProfilesGenerator(Section):
    """Jobs of a few kinds, submitted at equal intervals."""

    model: Literal["profiles"]
    jobs: Jobs
    """Number of jobs."""
    order: Annotated[str, Field(min_length=1, max_length=100_000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]
    """Names of profiles in the order of submission; a number before a name repeats it (``10 A 10 B``). Repeated from
    the beginning until all jobs are made."""
    shuffle_seed: Seed | None = None
    """Shuffles the jobs; by default they keep the order."""
    gap_s: NotNegative = 0.0
    """Time between two submissions. [s]"""
    reference_gflops: Positive | None = None
    """Peak of a processor of speed 1, which turns operations into run times; by default the cluster's, else 3.
    [Gflop/s]"""
    profiles: Annotated[tuple[ProfileSection, ...], Field(strict=False, min_length=1)]


if TYPE_CHECKING:
    ToPoolSection = Section

    class RareGenerator(Section):
        """See below."""

        model: Literal["rare"]

else:
    RareGenerator = create_model(
        "RareGenerator",
        __base__=Section,
        __doc__="Jobs with value and QoS (RARE, section 4.4): see ``workload.rare``.",
        model=(Literal["rare"], ...),
        ticks=(Ticks, 2_000),
        seed=(Seed, 0),
        **keys(rare),
    )
    ToPoolSection = create_model(
        "ToPoolSection",
        __base__=Section,
        __doc__="Makes a trace into jobs with value and QoS on the small machine: see ``workload.on_pool``.",
        seed=(Seed, 0),
        **keys(on_pool, but=frozenset({"processors"})),
    )

Generator = Annotated[
    LublinGenerator | CirneGenerator | JannGenerator | ProfilesGenerator | RareGenerator, Field(discriminator="model")
]


class NoPower(Section):
    """Job power is unknown: no energy is computed."""

    kind: Literal["none"]


class TracePower(Section):
    """Job power recorded in the trace."""

    kind: Literal["trace"]


class MeasuredPower(Section):
    """Job power recorded in the trace; missing values estimated from measured jobs: see ``workload.measured_power``."""

    kind: Literal["measured"]


class PerProcessorPower(Section):
    """Processors x a random integer [W], uniform and seeded (GAS-MARL Eq. 16)."""

    kind: Literal["per-processor"]
    seed: Seed = 0
    """Seed of the random numbers."""
    low_w: Annotated[int, Field(ge=0, le=1_000_000)] = 5
    """Lowest power of a processor, inclusive. [W]"""
    high_w: Annotated[int, Field(ge=0, le=1_000_000)] = 50
    """Highest power of a processor, inclusive. [W]"""


class PerUnitPower(Section):
    """Processors and GPUs x a power (RARE, Eq. 4.1)."""

    kind: Literal["per-unit"]
    unit_w: NotNegative = 0.0
    """What a busy processor or GPU draws above idle: p_full - p_idle. [W]"""


class ListPower(Section):
    """Processors x the number on line k of a file [W], for the k-th job line of the trace."""

    kind: Literal["list"]
    file: Text | None = None
    """A path, relative to the scenario file."""
    dataset: Text | None = None
    """A file by its name in ``greenbatch data list``."""

    @model_validator(mode="after")
    def _source(self) -> ListPower:
        need_one_of(self, "file", "dataset")
        return self


Power = Annotated[
    NoPower | TracePower | MeasuredPower | PerProcessorPower | PerUnitPower | ListPower, Field(discriminator="kind")
]


class WorkloadSection(Section):
    """Source of the jobs. Without ``file``, ``dataset`` and ``generator``, give a trace on the command line."""

    file: Text | None = None
    """A trace: a path, relative to the scenario file; for PM100 and F-DATA also a folder."""
    dataset: Text | None = None
    """A trace by its name in ``greenbatch data list``."""
    generator: Generator | None = None
    reader: Literal["default", "papers"] = "default"
    """What to do with lines of an SWF trace that cannot be simulated: see ``workload.SWF_RULES``."""
    limit: Count | None = None
    """Number of job lines of an SWF trace to read; all by default."""
    time_zone: Text | None = None
    """Zone of the local times of an sacct dump, F-DATA or a table (IANA name)."""
    unix_start_s: Annotated[float, Field(ge=0, le=1e11)] | None = None
    """Unix time of time 0 of a table or of generated jobs, or of an SWF trace instead of the date in its header. [s]"""
    reference_gflops: Positive | None = None
    """Peak of a processor of speed 1, which turns the operations of a workload of IRMaSim (JSON) into run times; by
    default the cluster's, else 3. [Gflop/s]"""
    columns: Annotated[dict[Text, Text], Field(min_length=1)] | None = None
    """Column of a table -> column of a ``Workload``."""
    requeued: Requeued | None = None
    """What is kept of a job of an sacct dump that was requeued: its last run, the default, or every run as a job."""
    shared_nodes: SharedNodes | None = None
    """What is done with the energies of jobs of an sacct dump that shared nodes: split by processors, if they are those
    of the nodes, or kept, if they are those of the jobs; by default that is judged by the energies."""
    most_node_w: Positive | None = None
    """Highest plausible power of a node, for measured power; more is left out. By default 20 kW, or 20 times the median
    of the other jobs above 5 kW. [W]"""
    clock_origin: Literal["trace", "first-job"] = "trace"
    """``trace``: times as in the trace; ``first-job``: shifted so that the first job line is submitted at 0."""
    to_pool: ToPoolSection | None = None
    power: Power = TracePower(kind="trace")

    @model_validator(mode="after")
    def _source(self) -> WorkloadSection:
        if self.to_pool is not None and self.generator is not None:
            raise ValueError("found to_pool beside generator; it is for traces: leave it out")
        if any(source is not None for source in (self.file, self.dataset, self.generator)):
            need_one_of(self, "file", "dataset", "generator")
        return self


class CutSection(Section):
    """Warm-up and cool-down: jobs that are scheduled but not counted in per-job metrics."""

    first_jobs: Natural = 0
    last_jobs: Natural = 0
    first_s: NotNegative = 0.0
    last_s: NotNegative = 0.0


PLAIN, PLANNING = ("fcfs+easy", "sjf+easy", "f2+easy"), ("foresee",)
"""Schedulers that are compared by default, and those beside them where there is power to plan with."""


def _default(section: Section, name: str) -> Any:
    return type(section).model_fields[name].default


class EvaluationSection(Section):
    """The windows and schedulers of ``compare``."""

    starts: Naturals | None = None
    """First job of each window, 0-based, after filtering, in order of job id."""
    windows: Annotated[int, Field(ge=1, le=100_000)] = 10
    """Number of random windows, if no starts are given."""
    jobs: Count | Literal["all"] = 1024
    """Jobs per window; "all" with ``starts = [0]``."""
    draws: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Instead of windows: all jobs of a generator, drawn with this many seeds: its own, the next one, and so on."""
    seed: Seed = 0
    """Seed of random windows; a random scheduler has its own, ``random:seed=1``."""
    schedulers: Texts | None = None
    """Schedulers to compare, each ``policy+backfill``; by default ``fcfs+easy``, ``sjf+easy``, ``f2+easy`` and, for a
    pool of processors alone with a site, ``foresee``."""
    baseline: Text | None = None
    """Scheduler that the others are compared to; by default the first one."""
    cut: CutSection = CutSection()
    horizon: Annotated[float, Field(gt=0, le=1000)] = 2.0
    """Span over which energy is compared, from the first submission, in makespans of fcfs+easy on the same window."""
    cover_record: bool | None = None
    """Extend the horizon to the end of the recorded schedule, if that is later; by default not."""
    comparable: bool = True
    """False if results must not be compared to published figures; the description says why."""

    @model_validator(mode="after")
    def _draws(self) -> EvaluationSection:
        chosen = [name for name in ("starts", "windows", "jobs") if getattr(self, name) != _default(self, name)]
        if self.draws is not None and chosen:
            raise ValueError(f"found draws and {chosen[0]}; give one or the other")
        return self

    @model_validator(mode="after")
    def _baseline(self) -> EvaluationSection:
        if self.schedulers and self.baseline is not None and self.baseline not in self.schedulers:
            raise ValueError(f"the baseline {self.baseline!r} is not among the schedulers; add it to them")
        return self


def _number(name: str) -> Any:
    """A number in the range of one of the engine's settings."""

    def check(value: float) -> float:
        if not SETTINGS[name].takes(value):
            raise ValueError(f"is {plain(value)}; give {SETTINGS[name].span}")
        return value

    return Annotated[float, AfterValidator(check)]


_NUMBERS = {name: _number(name) for name in ("tick_s", "power_cap_w")}
_NUMBERS["dvfs_level"] = Annotated[int, Field(ge=0, le=15)]
_NUMBERS["backfill_depth"] = Natural

if TYPE_CHECKING:
    RulesSection = Section
else:
    PoolsSection = create_model(
        "PoolsSection",
        __base__=Section,
        __doc__="Pools of jobs and suspension, for a machine with GPUs or capacity: see ``engine.pools.Pools``.",
        **keys(Pools),
    )
    _NUMBERS["pools"] = PoolsSection | None
    RulesSection = create_model(
        "RulesSection",
        __base__=Section,
        __doc__="Options of the batch system that change results: see ``engine.rules.Rules``.",
        **{f.name: (_NUMBERS.get(f.name, get_type_hints(Rules)[f.name]), f.default) for f in fields(Rules)},
    )


Site = Annotated[NoSite | SeriesSite | SyntheticSite, Field(discriminator="kind")]


class ScenarioFile(Section):
    """A scenario: jobs, machine, power supply, rules, and the evaluation of schedulers."""

    name: Text
    description: Annotated[str, Field(max_length=10_000)] = ""
    workload: WorkloadSection
    cluster: ClusterSection = ClusterSection()
    site: Site = NoSite(kind="none")
    rules: RulesSection = RulesSection()
    evaluation: EvaluationSection = EvaluationSection()

    @model_validator(mode="after")
    def _baseline(self) -> ScenarioFile:
        """Stated schedulers are checked where they stand."""
        generator = self.workload.generator
        if self.evaluation.draws is not None and not hasattr(generator, "gap_factor"):
            raise ValueError("evaluation.draws: requires a generator with a seed; give starts or windows instead")
        baseline = self.evaluation.baseline
        if baseline is not None and baseline not in self.schedulers:
            known = ", ".join(self.schedulers)
            problem = f"evaluation.baseline: {baseline!r} is not among the default schedulers, {known}"
            raise ValueError(f"{problem}; name it in evaluation.schedulers")
        return self

    @property
    def planners(self) -> tuple[str, ...]:
        """Planners to compare by default: on a pool of processors alone, where there is power to plan with."""
        return PLANNING if self.cluster.pooled and not self.cluster.powered and self.site.kind != "none" else ()

    @property
    def schedulers(self) -> tuple[str, ...]:
        """Schedulers to compare."""
        return self.evaluation.schedulers or PLAIN + self.planners
