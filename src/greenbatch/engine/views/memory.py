"""What a scheduler driven from views remembers from one view to the next, in memory and in a file."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import TypeAdapter

from greenbatch.cluster import Cluster
from greenbatch.engine.observe.stacked import leaves, rebuilt
from greenbatch.engine.program import Program, decider_of
from greenbatch.engine.records import Clock, dtype_of, table_of
from greenbatch.engine.rules import Rules
from greenbatch.engine.views.interface import Policy, View
from greenbatch.errors import InputError
from greenbatch.files import LARGEST_BYTES, check_unpacked, stored_bytes
from greenbatch.storage import replace_file
from greenbatch.workload import Workload


class Waited:
    """What is remembered of a waiting job."""

    job_id: int
    promised_s: float
    planned_s: float
    score: float


class Ran:
    """What is remembered of a running job."""

    job_id: int
    end_s: float
    """Requested end."""


class Known:
    """A job submitted so far: what it asks for, columns of `Workload`."""

    job_id: int
    submit_s: float
    requested_time_s: float
    processors: int
    power_w: float
    partition: int
    nodes: int
    gpus: int
    exclusive: int
    requested_memory_kb: float
    memory_volume_mb: float
    requested_energy_j: float
    value: float
    qos: float


SUSPENDS = -1
"""Instead of the number of a job that starts, that one is suspended."""


@dataclass
class Memory:
    """What a scheduler remembers from one view to the next."""

    clock: Any = field(default_factory=lambda: table_of(Clock, 1))
    """The clock at the last view: the committed job and its reservation."""
    committed_id: int = -1
    waited: Any = field(default_factory=lambda: table_of(Waited, 0))
    """The waiting jobs, in the order of the queue."""
    ran: Any = field(default_factory=lambda: table_of(Ran, 0))
    known: Any = field(default_factory=lambda: table_of(Known, 0))
    """All jobs so far, if the policy learns from them."""
    partitions: dict[str, str] = field(default_factory=dict)
    """Number of a partition of these, as text -> its name."""
    answers: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    """Jobs that start at this instant and have not been started yet, each with its nodes and its processors there; or
    `SUSPENDS`."""
    command_w: float = np.nan
    """Command to storage that has not been given as an answer yet, NaN for none. [W]"""
    wake_s: float = np.inf
    """When to be asked again."""
    longest_s: float = 0.0
    """Longest requested time so far."""
    seen_s: float = -np.inf
    """Time of the last view."""
    asked_s: float = np.nan
    """Instant whose decisions have been made, NaN if they have all been given as answers."""
    rows: list[int] = field(default_factory=list)
    """Jobs of the last view, in the order of its state, for policies that keep something of each."""
    draws: int = 0
    """Random placements so far."""
    rests: bool = False
    """As many jobs have been started or suspended at this instant as a tick allows."""
    spare_gpus: int = 0
    """GPUs that the reservation of the committed job leaves, as the clock's ``spare`` processors."""
    is_plain: bool = True
    """All jobs so far ask for processors of any nodes only."""


FORMAT = 2
"""Number of the format of saved memories; without a number it is 0. Those below 2 have no records of policies, and
nothing of where capacity follows the power."""
_STORED = np.ndarray | np.record
_TABLES = {"clock": Clock, "waited": Waited, "ran": Ran, "known": Known}


def known_jobs(view: View, rows: Any) -> Any:
    """What some waiting jobs ask for, in rows of a view."""
    shown = {"job_id": view.job_id, **view.queue._asdict(), **view.attributes._asdict()}
    known = table_of(Known, rows.size)
    for name in known.dtype.names:
        column = shown[name][rows]
        known[name] = np.where(np.isnan(column), -1, column) if known[name].dtype.kind == "i" else column
    known["power_w"][known["power_w"] == 0.0] = np.nan
    return known


def workload_of(memory: Memory) -> Workload:
    """The jobs so far, as far as they are known: requested times stand for run times."""
    columns = {name: np.array(memory.known[name]) for name in memory.known.dtype.names}
    names = {int(number): name for number, name in memory.partitions.items()}
    return Workload.from_columns(
        "known", {**columns, "run_time_s": columns["requested_time_s"]}, names={"partition": names} if names else {}
    )


def _stated(cluster: Cluster) -> str:
    """A cluster in words, without the files that it was read from; as in files of memory of version 0.1."""
    of_nodes = ("contention", "power_on", "dvfs", "priority")
    of_pools = ("machine_processors",) if cluster.machine_processors else ()
    kind, names = ("NodeCluster", of_nodes) if cluster.on_nodes else ("Cluster", of_pools)
    values = ", ".join(f"{name}={getattr(cluster, name)!r}" for name in ("groups", *names))
    return f"{kind}({values}{', notes=(), sources={}' * cluster.on_nodes})"


def write_memory(file: str | Path, driver: Any, decider: Any) -> None:
    """Save what a scheduler remembers and what it was made for.

    Args:
        file: the file, ``.npz``; replaced atomically.
        driver: the scheduler, an `engine.views.driver.ViewDriver`.
        decider: the state of its compiled policy, None before the first view.

    Raises:
        InputError: the file cannot be written, or the policy's ``memory()`` is not JSON.
    """
    memory, program, policy = driver.memory, driver.program, cast(Any, driver.policy)
    plain = {name: value for name, value in vars(memory).items() if name not in _TABLES}
    plain |= {"format": FORMAT, "program": program.name, "cluster": _stated(driver.cluster)}
    plain |= {"rules": asdict(driver.rules), "begun": decider is not None}
    plain["policy"] = policy.memory() if hasattr(policy, "memory") else None
    arrays = {name: np.asarray(getattr(memory, name)) for name in _TABLES}
    learned = {f"decider.{name}": np.asarray(each) for name, each in leaves(decider) if isinstance(each, _STORED)}
    packed = io.BytesIO()
    try:
        text = json.dumps(plain)
    except (TypeError, ValueError) as error:
        problem, fix = f"memory() returned what is not JSON: {error}", "return numbers, texts, lists and dictionaries"
        raise InputError(problem, field=program.name, fix=fix) from None
    cast(Any, np.savez)(packed, plain=np.array(text), **arrays, **learned)
    try:
        replace_file(Path(file), packed.getvalue())
    except OSError as error:
        fix = "give a file in a folder that exists and can be written to"
        raise InputError(f"cannot be written: {error.strerror}", file=str(file), fix=fix) from None


def read_memory(file: str | Path, driver: Any) -> tuple[Memory, Any]:
    """What `write_memory` saved: the memory and the state of the compiled policy. The Python object recalls its own.

    Raises:
        InputError: the file does not belong to this scheduler, cluster or rules, or is damaged.
    """
    number, problem = 0, ""
    try:
        content = stored_bytes(Path(file), largest=LARGEST_BYTES)
        unpacked = sum(each.file_size for each in zipfile.ZipFile(io.BytesIO(content)).infolist())
        check_unpacked(unpacked, len(content), Path(file))
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            arrays = dict(found)
        plain = json.loads(str(arrays.pop("plain")))
        number = int(plain.pop("format", 0))
        saved = {name: plain.pop(name) for name in ("program", "policy", "begun", "cluster", "rules")}
        tables = {name: arrays[name].astype(dtype_of(layout)) for name, layout in _TABLES.items()}
        memory = TypeAdapter(Memory).validate_python({**tables, **plain})
    except Exception as error:  # noqa: BLE001  (a damaged archive raises anything)
        problem = f"cannot be read, {type(error).__name__}: {' '.join(str(error).split())}"
    if number > FORMAT:
        newer = f"has format {number} of a newer version, this one reads formats up to {FORMAT}"
        raise InputError(newer, file=str(file), fix="load it with that version, or start without a memory")
    if problem:
        raise InputError(problem, file=str(file), fix="use another copy, or start without a memory")
    program, cluster, rules = driver.program, driver.cluster, driver.rules
    if saved["program"] != program.name:
        known = saved["program"]
        raise InputError(f"is the memory of {known}", file=str(file), fix=f"load it with {known}")
    if saved["cluster"] != _stated(cluster):
        raise InputError("was saved with another cluster", file=str(file), fix="load it with that cluster")
    known_rules = asdict(Rules()) | saved["rules"]  # of rules that are newer, the default held
    if differ := [name for name, value in asdict(rules).items() if known_rules[name] != value]:
        problem = "was saved with " + ", ".join(f"{name} = {known_rules[name]!r}" for name in differ)
        raise InputError(problem, file=str(file), fix="load it with those rules")
    decider = decider_of(program, workload_of(memory), cluster, rules) if saved["begun"] else None
    decider = _restored(decider, arrays, program, file)
    _recall(driver.policy, saved["policy"], program)
    return memory, decider


def _restored(decider: Any, arrays: dict[str, Any], program: Program, file: str | Path) -> Any:
    """A decider with what was saved of it."""
    of_rows, others = getattr(program.decider, "of_rows", None) is not None, {}
    for name, each in leaves(decider):
        if isinstance(each, _STORED):
            kept = arrays.get(f"decider.{name}")
            if kept is None and isinstance(each, np.record):  # as in older formats
                continue
            if kept is None or (kept.shape != each.shape and not of_rows):
                problem = f"does not fit {program.name} on this cluster"
                raise InputError(problem, file=str(file), fix="load it with the cluster it was saved for")
            if isinstance(each, np.record):
                for column in cast(Any, each.dtype.names):
                    each[column] = kept[column]
            elif kept.shape == each.shape:
                each[...] = kept
            else:  # of the jobs of the last view, see `Memory.rows`
                others[id(each)] = kept
    return rebuilt(decider, lambda each: others.get(id(each), each))


def _recall(policy: Policy | None, memory: Any, program: Program) -> None:
    if not hasattr(policy, "recall"):
        return
    try:
        cast(Any, policy).recall(memory)
    except InputError:
        raise
    except Exception as error:
        problem = f"recall failed, {type(error).__name__}: {error}"
        raise InputError(problem, field=program.name, fix="take back what memory() returned") from error
