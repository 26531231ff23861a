"""Build the jobs, machine and power supply that the checked sections of a scenario describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from greenbatch.cluster import Cluster
from greenbatch.engine.pools import Pools
from greenbatch.engine.rules import Rules
from greenbatch.errors import InputError
from greenbatch.scenarios.origin import Origin

if TYPE_CHECKING:
    from greenbatch.energy import Series, Site
    from greenbatch.energy.site import Floats
    from greenbatch.scenarios.capacity_file import CapacityTable
    from greenbatch.scenarios.cluster_schema import CapacitySection, ClusterSection
    from greenbatch.scenarios.schema import Generator, ScenarioFile, WorkloadSection
    from greenbatch.scenarios.section import Section
    from greenbatch.scenarios.site_schema import SeriesSite, SyntheticSite
    from greenbatch.workload import Workload


def build_workload(
    section: WorkloadSection,
    origin: Origin,
    *,
    processors: int | None,
    strict: bool,
    nodes: Cluster | None = None,
) -> Workload:
    """Read or generate the jobs, put them on the scenario's clock and assign their power.

    Args:
        section: ``[workload]``.
        origin: the scenario file.
        processors: machine size, if the scenario or the command line gives one.
        strict: refuse what would otherwise be repaired or dropped.
        nodes: the machine, if it has nodes: the peak of its processor of speed 1 and the time limits of its partitions
            stand for what jobs do not state.

    Raises:
        InputError: there is no trace, or it cannot be used.
    """
    from greenbatch.cluster.groups import reference_of
    from greenbatch.workload import shift_to_origin

    reference_gflops = None if nodes is None else reference_of(nodes)
    if section.generator is not None:
        with origin.blame("workload", "generator"):
            workload = replace(_generated(section.generator, reference_gflops), unix_start_s=section.unix_start_s)
    else:
        size = None if section.to_pool is not None else processors  # else jobs of the trace's machine are dropped
        workload = _trace(section, origin, size, strict, nodes)
    if section.clock_origin == "first-job":
        workload = shift_to_origin(workload)
    if section.to_pool is not None:
        with origin.blame("workload", "to_pool"):
            workload = _to_pool(section.to_pool, workload, processors)
    with origin.blame("workload", "power"):
        return _powered(workload, section, origin)


def build_pool(
    section: ClusterSection, workload: Workload, origin: Origin, table: CapacityTable | None = None
) -> Cluster:
    """The machine as a pool, with the size given by the scenario or the trace, else by a table of its capacity.

    Raises:
        InputError: neither gives a size.
    """
    size = workload.machine_processors if section.processors == "trace" else section.processors
    gpus = section.gpus
    if table is not None:
        size = int(table.processors.max()) if size is None else size
        gpus = int(table.gpus.max()) if gpus is None and table.gpus is not None else gpus
    if size is None:
        raise InputError(
            "the trace does not state the machine size", file=workload.name, field="cluster.processors",
            fix="give --processors, or set it in the scenario",
        )  # fmt: skip
    with origin.blame("cluster"):
        pool = Cluster.pooled(
            size, processors_per_machine=section.processors_per_machine,
            idle_power_per_machine_w=section.idle_power_per_machine_w, power_on=section.power_on or "always",
        )  # fmt: skip
        if not section.powered:
            return pool
        return Cluster.of_units(
            size, gpus or 0, idle_power_w=pool.idle_power_w, power_on=pool.power_on,
            processors_per_machine=pool.machine_processors,
        )  # fmt: skip


def build_rules(section: Section, origin: Origin) -> Rules:
    """The options of the batch system.

    Raises:
        InputError: an option of the pools is out of range.
    """
    given = section.model_dump()
    if (pools := given.pop("pools")) is not None:
        with origin.blame("rules", "pools"):
            given["pools"] = Pools(**pools)
    return Rules(**given)


def build_site(scenario: ScenarioFile, workload: Workload, cluster: Cluster, origin: Origin) -> Site | None:
    """The power supply on the workload's clock; None if the scenario has none.

    Raises:
        InputError: a series cannot be used, or does not match the trace.
    """
    from greenbatch import energy
    from greenbatch.scenarios.build_grid import grid_series, with_grid
    from greenbatch.scenarios.site_schema import synthetic_arguments

    section = scenario.site
    if section.kind == "none":
        return None
    prices = grid_series(section.grid, origin)
    factor = 1.0 if section.reference_processors is None else cluster.processors / section.reference_processors
    if section.kind == "series":
        site = _series_site(section, workload, factor, origin, prices, scenario.evaluation.horizon)
    else:
        with origin.blame("site"):
            site = energy.synthetic_site(
                name=section.name,
                factor=factor,
                unix_start_s=workload.unix_start_s,
                signals=prices,
                until_s=_last_end_s(workload) if len(workload) else None,
                **synthetic_arguments(section),
            )
    site = _with_storage(with_grid(site, section.grid, prices, origin), section, factor, origin)
    return _with_forecast(_with_overhead(site, section, origin), section, scenario.cluster.capacity, origin)


def _trace(
    section: WorkloadSection, origin: Origin, processors: int | None, strict: bool, nodes: Cluster | None
) -> Workload:
    from greenbatch.cluster.groups import reference_of
    from greenbatch.workload import SWF_RULES, read_workload
    from greenbatch.workload.readers import trace_format

    if section.file is None and section.dataset is None:
        fix = "give --trace FILE (in Python: trace=), or set workload.file in the scenario"
        raise InputError("the scenario names no trace", field="workload.file", fix=fix)
    path = origin.locate(section.file, section.dataset, "workload")
    kind = None if nodes is None else trace_format(path, columns=section.columns is not None)
    return read_workload(
        path,
        strict=strict,
        processors=processors,
        limit=section.limit,
        repairs=None if section.reader == "default" else SWF_RULES[section.reader],
        time_zone=section.time_zone,
        unix_start_s=section.unix_start_s,
        columns=section.columns,
        requeued=section.requeued,
        shared_nodes=section.shared_nodes,
        most_node_w=section.most_node_w,
        reference_gflops=section.reference_gflops or (reference_of(nodes) if nodes and kind == "irmasim" else None),
        partition_limits_s=_limits_s(nodes) if nodes and kind == "sacct" else None,
    )


def _limits_s(nodes: Cluster) -> dict[str, float]:
    """Partition -> longest time that its jobs may request, of a machine whose partitions state it. [s]"""
    return {} if nodes.priority is None else {each.name: each.max_time_s for each in nodes.priority.partitions}


def _to_pool(section: Section, workload: Workload, processors: int | None) -> Workload:
    from greenbatch.workload import on_pool

    if processors is None:
        fix = "set cluster.processors to a number, or give --processors"
        raise InputError("needs the size of the small machine", fix=fix)
    return on_pool(workload, processors=processors, **section.model_dump())


def _generated(section: Generator, reference_gflops: float | None) -> Workload:
    from greenbatch import workload as room

    given = section.model_dump(exclude={"model", "types", "profiles"})
    if section.model == "rare":
        return room.rare(**given)
    if section.model == "profiles":
        kinds = [room.JobProfile(**profile.model_dump()) for profile in section.profiles]
        reference = section.reference_gflops or reference_gflops or room.REFERENCE_GFLOPS
        return room.profile_jobs(kinds, **{**given, "reference_gflops": reference})
    if section.model == "lublin":
        return room.lublin(**given, types=room.for_machine(section.processors, *section.types))
    return {"cirne": room.cirne, "jann": room.jann}[section.model](**given)


def _powered(workload: Workload, section: WorkloadSection, origin: Origin) -> Workload:
    import numpy as np

    from greenbatch.notes import Note, shares_of
    from greenbatch.workload import measured_power, per_processor_power, per_unit_power, power_list

    power = section.power
    if power.kind == "trace":
        return workload
    if power.kind == "measured":
        return measured_power(workload)
    if power.kind == "none":
        used, powered = "jobs have no power", workload.with_columns(power_w=np.full(len(workload), np.nan))
    elif power.kind == "per-processor":
        used = f"{power.low_w} to {power.high_w} W per processor, drawn with seed {power.seed}"
        powered = per_processor_power(workload, power.seed, power.low_w, power.high_w)
    elif power.kind == "per-unit":
        used, powered = f"{power.unit_w:g} W per processor and GPU", per_unit_power(workload, power.unit_w)
    else:
        file = origin.locate(power.file, power.dataset)
        used, powered = f"power per processor from {file.name}", power_list(workload, file)
    recorded = np.isfinite(workload.power_w)
    if not recorded.any():
        return powered
    note = Note(
        f"recorded power replaced by the scenario's ({used})", int(np.count_nonzero(recorded)), about="power_w",
        level="change", shares=shares_of(recorded),
    )  # fmt: skip
    return replace(powered, notes=(*powered.notes, note))


def _series_site(
    section: SeriesSite, workload: Workload, factor: float, origin: Origin, prices: Mapping[str, Series],
    horizon: float,
) -> Site:  # fmt: skip
    from greenbatch.energy import combine
    from greenbatch.scenarios.site_schema import PueByTemperature, combine_arguments

    sources, signals = {}, dict(prices)
    for index, source in enumerate(section.sources):
        with origin.blame("site", "sources", index):
            sources[source.name] = _power(source, factor, origin)
    if isinstance(pue := section.pue, PueByTemperature):
        with origin.blame("site", "pue"):
            signals["temperature_c"] = pue.read(origin.locate(pue.file, pue.dataset))
    with origin.blame("site"):
        given = combine_arguments(section)
        site = combine(
            section.name, sources, unix_start_s=workload.unix_start_s, signals=signals,
            until_s=_last_end_s(workload) if len(workload) else None, **given,
        )  # fmt: skip
    by_dates = given["align"] == "calendar"  # then each series repeats by its own dates
    return site if by_dates else _with_repeat_note(site, {**sources, **signals}, workload, horizon)


def _last_end_s(workload: Workload) -> float:
    """Trace time at which the last job ends if none waits. [s]"""
    import numpy as np

    return float(np.nanmax(workload.submit_s + workload.run_time_s))


def _with_repeat_note(site: Site, every: Mapping[str, Series], workload: Workload, horizon: float) -> Site:
    """The site with a note that names the series that end first, if the horizon of the whole trace reaches further."""
    from greenbatch.energy.stamps import show_date
    from greenbatch.notes import Note

    if not site.repeat or site.unix_start_s is None or not len(workload):
        return site
    first_s = float(workload.submit_s.min())
    last_s = first_s + horizon * (_last_end_s(workload) - first_s)
    if last_s <= site.end_s:
        return site
    ends_s = {key: series.end_s - site.unix_start_s for key, series in every.items() if series.clock == "unix"}
    names = [key for key, end_s in ends_s.items() if abs(end_s - site.end_s) < site.step_s] or ["the supply"]
    verb = "end" if len(names) > 1 else "ends"
    begin, end = (show_date(site.unix_start_s + edge_s) for edge_s in (site.origin_s, site.end_s))
    again = f"{', '.join(names)} {verb} {end}; later, all series are used again from {begin} on"
    share = (last_s - max(site.end_s, first_s)) / (last_s - first_s)
    return replace(site, notes=(*site.notes, Note(again, level="warning", shares=((share, "hours"),))))


def _with_overhead(site: Site, section: SeriesSite | SyntheticSite, origin: Origin) -> Site:
    """The site with its PUE and base load, and a note on them, if it states any."""
    from greenbatch.energy import pue_at
    from greenbatch.notes import Note
    from greenbatch.scenarios.site_schema import PueByTemperature

    if section.pue is None and section.base_load_w is None:
        return site
    law, base_load_w, by = section.pue or 1.0, section.base_load_w or 0.0, ""
    if isinstance(law, PueByTemperature):
        temperature_c = site.signals["temperature_c"]
        by = f" by temperature ({temperature_c.min():.1f} to {temperature_c.max():.1f} degC)"
        with origin.blame("site", "pue"):
            pue: float | Floats = pue_at(temperature_c, temperatures_c=law.temperatures_c, values=law.values)
    else:
        pue = law
    with origin.blame("site"):
        facility = replace(site, pue=pue, base_load_w=base_load_w)
    note = f"energies are the facility's: PUE {facility.pue_text}{by} x cluster + {base_load_w / 1e3:g} kW base load"
    return replace(facility, notes=(*site.notes, Note(note, level="fact")))


def _with_storage(site: Site, section: SeriesSite | SyntheticSite, factor: float, origin: Origin) -> Site:
    """The site with its battery, which grows with the cluster as the sources do."""
    from greenbatch.energy import Storage

    if section.storage is None:
        return site
    with origin.blame("site", "storage"):
        storage = Storage(**section.storage.model_dump()).scaled(factor)
    with origin.blame("site", "grid"):  # whose limit it has to keep
        return replace(site, storage=storage)


def _with_forecast(
    site: Site, section: SeriesSite | SyntheticSite, capacity: CapacitySection | None, origin: Origin
) -> Site:  # fmt: skip
    """The site with its forecast, and a note on it if it is not perfect."""
    from greenbatch.energy import ForecastModel
    from greenbatch.notes import Note

    if section.forecast is None:
        return site
    with origin.blame("site", "forecast"):
        model = ForecastModel(**section.forecast.model_dump())
        told = replace(site, forecast_model=model)
    note = f"schedulers are told a forecast, energies are those of what comes: {model.text}"
    if capacity is not None and capacity.kind != "constant":
        follows = capacity.kind == "power"
        note += f"; what will be powered {'follows from it' if follows else 'is stated, and known as it comes'}"
    return told if model.kind == "perfect" else replace(told, notes=(*site.notes, Note(note, level="change")))


def _power(source: Section, factor: float, origin: Origin) -> Series:
    from greenbatch.scenarios.site_schema import KINDS

    raw = source.model_dump(include={"kind", "file", "dataset"})
    how = KINDS[raw["kind"]]
    content = how.read(origin.locate(raw["file"], raw["dataset"]), **how.reading(source))
    return how.convert(content, factor=factor, **how.converting(source))
