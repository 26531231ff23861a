"""From checked sections to the things they describe: jobs, machines, power supply."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch import datasets
from greenbatch.cluster import Cluster
from greenbatch.errors import DataMissing, InputError

if TYPE_CHECKING:
    from greenbatch.energy import Series, Site
    from greenbatch.scenarios.schema import ClusterSection, Generator, ScenarioFile, WorkloadSection
    from greenbatch.scenarios.site_schema import SeriesSite, Source
    from greenbatch.workload import Workload

_READER_KEYS = (
    "columns", "unit", "time_kind", "time_column", "time_zone", "time_format", "label", "step_s", "gaps",
    "longest_step_s", "unsorted", "duplicates", "negative", "missing", "delimiter",
)  # fmt: skip
_POWER_KEYS = {
    "pv": ("area_m2", "efficiency", "round_w"),
    "turbine": ("rated_w", "cut_in_m_s", "rated_m_s", "cut_out_m_s", "round_w"),
}


def build_workload(
    section: WorkloadSection, *, folder: Path, trace_folder: Path, processors: int | None, strict: bool
) -> Workload:
    """Read or generate the jobs, put them on the scenario's clock and give them power.

    Args:
        section: ``[workload]``.
        folder: folder of the scenario file; relative paths start there.
        trace_folder: the same for the trace: the working folder, if the trace was given on the command line.
        processors: machine size, where the scenario or the command line says one.
        strict: refuse what would otherwise be repaired or dropped.

    Raises:
        InputError: there is no trace, or it cannot be used.
    """
    from greenbatch.workload import shift_to_origin

    if section.generator is not None:
        workload = _generated(section.generator)
    else:
        workload = _trace(section, trace_folder, processors, strict)
    if section.clock_origin == "first-job":
        workload = shift_to_origin(workload)
    return _powered(workload, section, folder)


def build_cluster(section: ClusterSection, workload: Workload) -> Cluster:
    """The machine, as large as the scenario or the trace says.

    Raises:
        InputError: neither says how large.
    """
    size = workload.machine_processors if section.processors == "trace" else section.processors
    if size is None:
        raise InputError(
            "the trace does not say how large the machine is", file=workload.name, field="cluster.processors",
            fix="give --processors, or set it in the scenario",
        )  # fmt: skip
    return Cluster.pooled(
        size,
        processors_per_machine=section.processors_per_machine,
        idle_power_per_machine_w=section.idle_power_per_machine_w,
    )


def build_site(scenario: ScenarioFile, workload: Workload, cluster: Cluster, *, folder: Path) -> Site | None:
    """The power supply on the workload's clock; None where the scenario has none.

    Raises:
        InputError: a series cannot be used, or does not fit to the trace.
    """
    section = scenario.site
    if section.kind == "none":
        return None
    factor = 1.0 if section.reference_processors is None else cluster.processors / section.reference_processors
    return _series_site(section, workload, factor, folder)


def locate(file: str | None, dataset: str | None, *, folder: Path) -> Path:
    """Path of a file that a scenario names, by path or as a known data file.

    Raises:
        InputError: it is not there.
    """
    if dataset is not None:
        return datasets.find(dataset)
    path = folder / Path(file or "").expanduser()
    if not path.exists():
        raise DataMissing("no such file", file=path, fix="check the path; it is relative to the scenario file")
    return path


def _trace(section: WorkloadSection, folder: Path, processors: int | None, strict: bool) -> Workload:
    from greenbatch import workload as room

    if section.file is None and section.dataset is None:
        problem, fix = "the scenario names no trace", "give --trace FILE, or set workload.file in the scenario"
        raise InputError(problem, field="workload.file", fix=fix)
    return room.read_workload(
        locate(section.file, section.dataset, folder=folder),
        strict=strict,
        processors=processors,
        limit=section.limit,
        repairs=None if section.reader == "default" else room.SWF_RULES[section.reader],
        time_zone=section.time_zone,
        unix_start_s=section.unix_start_s,
        columns=section.columns,
    )


def _generated(section: Generator) -> Workload:
    raise NotImplementedError


def _powered(workload: Workload, section: WorkloadSection, folder: Path) -> Workload:
    import numpy as np

    from greenbatch.workload import per_processor_power, power_list

    power = section.power
    if power.kind == "none":
        return workload.with_columns(power_w=np.full(len(workload), np.nan))
    if power.kind == "per-processor":
        return per_processor_power(workload, power.seed, power.low_w, power.high_w)
    if power.kind == "list":
        return power_list(workload, locate(power.file, power.dataset, folder=folder))
    return workload


def _series_site(section: SeriesSite, workload: Workload, factor: float, folder: Path) -> Site:
    from greenbatch.energy import combine

    return combine(
        section.name,
        {source.name: _power(source, factor, folder) for source in section.sources},
        align=section.align,
        unix_start_s=workload.unix_start_s,
        step_s=section.step_s,
        repeat=section.repeat,
        forecast_horizon_s=section.forecast_horizon_s,
    )


def _power(source: Source, factor: float, folder: Path) -> Series:
    from greenbatch.energy import pv, read_series, turbine

    reading: dict[str, Any] = {key: getattr(source, key) for key in _READER_KEYS}
    series = read_series(locate(source.file, source.dataset, folder=folder), name=source.name, **reading)
    if source.kind == "power":
        return replace(series, values=series.values * factor)
    parameters = {key: getattr(source, key) for key in _POWER_KEYS[source.kind]}
    convert = pv if source.kind == "pv" else turbine
    return convert(series, factor=factor, **parameters)
