"""A scenario: jobs, machine, power supply and rules, ready to simulate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.arguments import file_path, whole_number
from greenbatch.cluster import Cluster
from greenbatch.display import Shown, span_text, windows_fact
from greenbatch.engine.rules import Rules
from greenbatch.errors import InputError, did_you_mean
from greenbatch.notes import Note, ordered, warnings_fact
from greenbatch.scenarios.pooled import request_notes
from greenbatch.scenarios.sharing import shared
from greenbatch.scenarios.toml import Place, overridden, read_toml

if TYPE_CHECKING:
    from greenbatch.energy import Site
    from greenbatch.scenarios.origin import Origin
    from greenbatch.scenarios.schema import ScenarioFile
    from greenbatch.workload import Workload

SHIPPED = Path(__file__).with_name("shipped")
"""Folder of the shipped scenarios."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The windows and schedulers of a comparison."""

    starts: tuple[int, ...] | None
    """First job of each window, or number of each draw; None for random windows."""
    windows: int
    """Number of random windows, >= 1; used if ``starts`` is None."""
    jobs: int
    """Jobs per window, >= 1; 0 for draws: all jobs of the generator, see `Scenario.draw`."""
    seed: int
    """Seed of random windows, >= 0."""
    schedulers: tuple[str, ...]
    """Schedulers to compare, each ``policy+backfill``."""
    baseline: str
    """The one of ``schedulers`` that the others are compared with."""
    planners: tuple[str, ...]
    """Planners that are compared by default; none without a site, and on nodes and GPUs, which they do not know."""
    cut: Mapping[str, float]
    """Warm-up and cool-down: the fields of ``metrics.Cut``."""
    horizon: float
    """Span over which energy is compared, in makespans of fcfs+easy: the factor of ``metrics.horizon_of``."""
    cover_record: bool
    """Whether the horizon reaches at least the end of the recorded schedule."""
    comparable: bool
    """False if results must not be compared to published figures."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Scenario(Shown):
    """Everything a simulation requires, and the description it was built from."""

    name: str
    """Name, shown in results."""
    description: str
    """Description in whole sentences, shown in reports; empty if other jobs or another machine were given."""
    workload: Workload
    """All jobs, on the scenario's clock, sorted by id."""
    cluster: Cluster
    """The machine."""
    site: Site | None
    """The power supply; None if there is none, and then no energy is computed."""
    rules: Rules
    """Options of the batch system that change results."""
    evaluation: Evaluation
    """The windows and schedulers of a comparison."""
    resolved: Mapping[str, Any]
    """The scenario file with defaults and overrides filled in, for provenance."""
    remarks: tuple[Note, ...] = ()
    """Notes on how its parts were put together."""

    def _facts(self) -> dict[str, str]:
        jobs, evaluation = self.workload, self.evaluation
        span_s = float(jobs.submit_s.max() - jobs.submit_s.min()) if len(jobs) else 0.0
        count = evaluation.windows if evaluation.starts is None else len(evaluation.starts)
        facts = {
            "scenario": self.name, **warnings_fact(self.notes), "jobs": f"{len(jobs):,}",
            "processors": f"{self.cluster.processors:,}", "span": span_text(span_s),
        }  # fmt: skip
        if self.cluster.on_nodes:
            groups = self.cluster.groups
            shown = ", ".join(f"{g.count:,} x {g.name}" for g in groups[:4])
            facts["nodes"] = shown if len(groups) <= 4 else f"{shown}, … ({len(groups)} groups)"
        if span_s:
            work_s = float(jobs.run_time_s @ jobs.processors)
            facts["load"] = f"{work_s / (span_s * self.cluster.capacity):.0%}"
        return facts | {
            "site": "none" if self.site is None else ", ".join(self.site.sources_w),
            "windows": windows_fact(count, evaluation.jobs),
            "schedulers": ", ".join(evaluation.schedulers),
        }

    @property
    def features(self) -> dict[str, object]:
        """The features of the table of what works with what that it has, see ``capabilities.toml``."""
        from greenbatch.engine.capabilities import features_of

        return features_of(self.workload, self.cluster, self.site, self.rules)

    @property
    def inputs(self) -> dict[str, str]:
        """File name -> SHA-256 of every input file."""
        return {**self.workload.sources, **self.cluster.sources, **(self.site.inputs if self.site is not None else {})}

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was repaired, dropped, filled in or assumed while reading the inputs, by consequence."""
        of_jobs = (*self.workload.notes, *request_notes(self.workload, self.cluster, self.rules))
        return ordered(
            (*self.remarks, *of_jobs, *self.cluster.notes, *(self.site.notes if self.site is not None else ()))
        )

    @property
    def has_episodes(self) -> bool:
        """Whether windows are episodes (``rules.pools.episode_s``), which may end before the last of their jobs."""
        return self.rules.pools is not None and self.rules.pools.episode_s > 0

    def window(self, start: int = 0, jobs: int | None = None) -> Workload:
        """A window of consecutive jobs; where runs are episodes (``rules.pools.episode_s``), of those submitted in one.

        Args:
            start: 0-based index of the first job, after filtering, in order of job id.
            jobs: number of jobs, at most; by default all jobs from ``start`` on.

        Raises:
            InputError: the window extends beyond the trace, or an argument is not a whole number.
        """
        window = self.workload.take(self.rows(start, jobs))
        if self.rules.pools is None or not self.has_episodes:
            return window
        return window.take(window.submit_s < window.submit_s.min() + self.rules.pools.episode_s)

    def rows(self, start: int = 0, jobs: int | None = None) -> slice:
        """The rows of the workload that a window is taken from; arguments and errors as of `window`."""
        total, start = len(self.workload), whole_number(start, "start")
        count = max(total - start, 1) if jobs is None else whole_number(jobs, "jobs")
        if not 1 <= count <= total:
            raise InputError(f"is {count}", field="jobs", fix=f"{self.name} has {total} jobs; give 1 to {total}")
        if not 0 <= start <= total - count:
            problem = f"is {start}, but a window of {count} jobs must lie within the {total} jobs of {self.name}"
            raise InputError(problem, field="start", fix=f"the largest start is {total - count}")
        return slice(start, start + count)

    def random_starts(self, windows: int, jobs: int, seed: int) -> tuple[int, ...]:
        """First jobs of random windows: distinct, uniform over the trace, in ascending order; fixed by the seed.

        Raises:
            InputError: there are fewer different windows, or an argument is not a whole number.
        """
        import numpy as np

        total, windows, jobs = len(self.workload), whole_number(windows, "windows"), whole_number(jobs, "jobs")
        possible = total - jobs + 1
        if not 1 <= windows <= possible:
            fix = f"there are {possible} different ones" if possible > 0 else f"give at most {total} jobs"
            fix += f"; starts 0 with jobs {total} is the whole trace"
            raise InputError(f"{windows} windows of {jobs} jobs", field="windows", fix=fix)
        random = np.random.default_rng(whole_number(seed, "seed", lowest=0))
        drawn = random.choice(possible, size=windows, replace=False)
        return tuple(int(start) for start in np.sort(drawn))


def shipped_names() -> tuple[str, ...]:
    """Names of the shipped scenarios, the default first, those of papers last."""
    found = sorted(file.relative_to(SHIPPED).with_suffix("").as_posix() for file in SHIPPED.rglob("*.toml"))
    return tuple(sorted(found, key=lambda name: ("/" in name, name != "default", name)))


def scenario_path(name_or_path: str | Path) -> Path:
    """The file of a scenario, by name or path.

    Raises:
        InputError: there is no such scenario.
    """
    given = file_path(name_or_path, "scenario", what="the name of a scenario, or its file")
    text = name_or_path if isinstance(name_or_path, str) else str(given)
    if text in shipped_names():
        return SHIPPED / f"{text}.toml"
    if text.endswith(".toml") or Path(text).is_file():
        return Path(text)
    fix = did_you_mean(text, shipped_names(), then="see: greenbatch scenario list; or give a file NAME.toml")
    raise InputError(f"there is no scenario {text!r}", field="scenario", fix=fix)


def datasets_of(name_or_path: str | Path) -> list[str]:
    """Names of the known data files that a scenario reads, each once.

    Raises:
        InputError: there is no such scenario, or it cannot be read.
    """

    def found(section: Any) -> Iterator[str]:
        for key, value in section.items() if isinstance(section, Mapping) else enumerate(section):
            if key == "dataset" and isinstance(value, str):
                yield value
            elif isinstance(value, (Mapping, list)):
                yield from found(value)

    return list(dict.fromkeys(found(read_toml(scenario_path(name_or_path))[0])))


def read_scenario(
    name_or_path: str | Path, *, overrides: Mapping[str, Any] | None = None
) -> tuple[ScenarioFile, Path, dict[Place, int]]:
    """Read and check a scenario's description without reading any data; also its file and the line of every key.

    Args:
        name_or_path: name of a shipped scenario, or a TOML file.
        overrides: dotted key -> value, e.g. ``{"cluster.processors": 512}``, which replaces the file's. None removes a
            key.

    Raises:
        InputError: there is no such scenario, or it is not valid.
    """
    from greenbatch.scenarios.check import check
    from greenbatch.scenarios.schema import ScenarioFile

    file = scenario_path(name_or_path)
    raw, lines = read_toml(file)
    raw = overridden(raw, overrides or {}, file=file)
    for key in overrides or {}:
        lines.pop(tuple(key.split(".")), None)
    return check(raw, ScenarioFile, file=file, lines=lines), file, lines


_FLAGS = {
    "workload.file": "--trace", "workload.dataset": "--trace", "cluster.processors": "--processors",
    "cluster.file": "--cluster", "cluster.capacity": "--capacity",
}  # fmt: skip
"""Keys that a flag or an argument of `load_scenario` sets instead of the file."""
_OF_A_MACHINE = tuple(
    f"cluster.{key}"
    for key in (
        "processors",
        "processors_per_machine",
        "idle_power_per_machine_w",
        "groups",
        "reference_gflops",
        "gpus",
        "capacity",
    )
)
"""Keys that describe the machine that ``--cluster`` replaces."""


def load_scenario(
    name_or_path: str | Path,
    *,
    trace: str | Path | None = None,
    cluster: str | Path | None = None,
    processors: int | None = None,
    capacity: str | Path | None = None,
    strict: bool = False,
    overrides: Mapping[str, Any] | None = None,
    like: Scenario | None = None,
) -> Scenario:
    """Read a scenario and all files it refers to.

    Args:
        name_or_path: name of a shipped scenario (``greenbatch scenario list``), or a TOML file.
        trace: a trace to use instead of the scenario's jobs: a path, or a name in ``greenbatch data list``.
        cluster: a file that describes nodes, instead of the scenario's machine: a ``slurm.conf``, a platform of
            IRMaSim (JSON) or node groups in TOML. The scenario's choice of ``contention`` is kept.
        processors: machine size, instead of the scenario's; for pools only.
        capacity: a table of the powered processors and GPUs over time (CSV), instead of the scenario's capacity.
        strict: refuse what would otherwise be repaired or dropped while reading the trace.
        overrides: dotted key -> value, which replaces the scenario file's; None removes a key.
        like: what the same arguments with other overrides returned; what is equal is shared with it rather than read
            again or held twice.

    Raises:
        InputError: something is missing or cannot be used; one line that says what, where and how to fix it.
    """
    import numpy as np

    from greenbatch.scenarios.build import build_pool, build_rules, build_site, build_workload
    from greenbatch.scenarios.build_nodes import build_nodes, jobs_on_nodes
    from greenbatch.scenarios.build_powered import capacity_table, with_capacity
    from greenbatch.scenarios.origin import Origin

    given: dict[str, Any] = dict(overrides or {})
    outside: dict[str, Path] = {}
    if trace is not None:
        without = {"workload.generator": None, "evaluation.draws": None}  # draws are of a generator
        given = without | given | _trace_keys(trace)
        outside["workload"] = Path()
    if cluster is not None:
        given |= {**dict.fromkeys(_OF_A_MACHINE), "cluster.file": str(cluster)}
        outside["cluster"] = Path()
    if capacity is not None:
        given["cluster.capacity"] = {"kind": "series", "file": str(capacity)}
        outside["capacity"] = Path()
    if processors is not None:
        given["cluster.processors"] = processors
    given = {key: value.item() if isinstance(value, np.generic) else value for key, value in given.items()}
    try:
        section, file, lines = read_scenario(name_or_path, overrides=given)
    except InputError as error:
        keys = given.keys() - (overrides or {}).keys()
        pools = {"processors": processors, "capacity": capacity}
        raise _of_flag(error, keys, [flag for flag, value in pools.items() if value is not None]) from None
    origin = Origin(file, lines, outside)
    rules = build_rules(section.rules, origin)
    table = capacity_table(section.cluster, rules.pools, origin)
    _check_pools(section, rules, origin)
    nodes = None if section.cluster.pooled else build_nodes(section.cluster, origin)
    stated = None if section.cluster.processors == "trace" else section.cluster.processors
    resolved = section.model_dump(mode="json", exclude_none=True)
    if like is not None and all(resolved[part] == like.resolved[part] for part in ("workload", "cluster")):
        workload = like.workload
    else:
        workload = build_workload(
            section.workload, origin, processors=stated if nodes is None else nodes.processors, strict=strict,
            nodes=nodes,
        )  # fmt: skip
        workload = workload if nodes is None else jobs_on_nodes(workload, nodes, strict=strict)
    machine: Cluster = build_pool(section.cluster, workload, origin, table) if nodes is None else nodes
    site = build_site(section, workload, machine, origin)
    if section.cluster.powered:
        machine = with_capacity(machine, section.cluster, table, rules.pools, workload, site, origin)
    evaluation = section.evaluation
    borrowed = trace is not None and cluster is None and name_or_path == "default"
    return Scenario(
        name=section.name,
        description="" if outside or processors is not None else " ".join(section.description.split()),
        workload=workload,
        cluster=machine if like is None else shared(machine, like.cluster),
        site=site if like is None else shared(site, like.site),
        rules=rules,
        evaluation=Evaluation(
            starts=evaluation.starts if evaluation.draws is None else tuple(range(evaluation.draws)),
            windows=evaluation.windows,
            jobs=0 if evaluation.draws else len(workload) if evaluation.jobs == "all" else evaluation.jobs,
            seed=evaluation.seed,
            schedulers=section.schedulers,
            baseline=evaluation.baseline or section.schedulers[0],
            planners=section.planners,
            cut=evaluation.cut.model_dump(),
            horizon=evaluation.horizon,
            cover_record=bool(evaluation.cover_record),
            comparable=evaluation.comparable,
        ),
        resolved=resolved,
        remarks=(*([_borrowed(str(trace), machine, site)] if borrowed else []), *_idle_twice(workload, machine)),
    )


def _borrowed(trace: str, cluster: Cluster, site: Site | None) -> Note:
    """A warning that a trace runs on the machine and the site of the default scenario, which are not its own."""
    place = f"{cluster.processors:,} processors" + (f", site {site.name}" if site else "")
    what = f"{trace} runs on the machine of scenario default: {place}; scenario plain simulates the jobs only"
    return Note(what, level="warning")


def _idle_twice(workload: Workload, cluster: Cluster) -> list[Note]:
    """A warning that measured power includes idle power, which the machine counts beside it."""
    from greenbatch.workload.plausible_power import WITH_IDLE

    measured = sum(note.count for note in workload.notes if WITH_IDLE in note.what)
    if not measured or cluster.idle_power_w == 0.0:
        return []
    pool = not cluster.on_nodes
    key = "cluster.idle_power_per_machine_w" if pool else "static_power_w in [[cluster.groups]]"
    what = (
        f"idle power of busy nodes counts twice: measured power includes it, and {cluster.idle_power_w:,.0f} W of the "
        f"idle machine are counted beside it ({key} = 0 counts none, as if idle nodes were off; the truth is between)"
    )
    return [Note(what, measured, level="warning", shares=((measured / len(workload), "jobs"),))]


def _of_flag(error: InputError, keys: Set[str], of_pools: Sequence[str]) -> InputError:
    """The error of a scenario's description, blamed on the flag that caused it, if one did.

    Args:
        error: the error.
        keys: keys that flags set.
        of_pools: given flags that are for pools.
    """
    if error.field in keys and (flag := _FLAGS.get(error.field or "")):
        return InputError(error.problem, field=flag, fix=error.fix)
    for flag in of_pools:
        if error.problem.startswith(f"found {flag} beside"):
            return InputError("is for a pool", field=f"--{flag}", fix="leave it out: nodes state theirs")
    return error


def _check_pools(section: ScenarioFile, rules: Rules, origin: Origin) -> None:
    """Refuse pools of jobs on a machine that has none.

    Raises:
        InputError: it has none.
    """
    from greenbatch.engine.capabilities import refuse

    if rules.pools is None or section.cluster.powered:
        return
    if "cluster" in origin.outside:
        problem = f"describes nodes, and the pools of {section.name} are for processors and GPUs that are switched off"
        raise InputError(problem, field="--cluster", fix="leave it out, or choose a scenario without [rules.pools]")
    with origin.blame("rules"):
        refuse("", (), {"pools": True, "fixed": True})


def _trace_keys(trace: str | Path) -> dict[str, Any]:
    from greenbatch import data_catalog

    if str(trace) in data_catalog.catalog() and not Path(trace).exists():
        return {"workload.dataset": str(trace), "workload.file": None}
    return {"workload.file": str(trace), "workload.dataset": None}
