"""Reading a dataset, and whether it fits a scenario and a preset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.datasets.columns import BESIDE, columns_of, increments
from greenbatch.datasets.schema import FIX, RECORD, DatasetRecord, content_of, digest_of
from greenbatch.datasets.tables import Arrays, Tables, valid_rows
from greenbatch.errors import InputError
from greenbatch.files import parquet_schema, read_bytes, sha256_of
from greenbatch.models.versioned import record_of
from greenbatch.presets.preset import Preset, check, preset, resolve
from greenbatch.presets.shapes import shapes_of
from greenbatch.provenance import differences
from greenbatch.scenarios import Scenario

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """N decisions of E episodes, episode after episode."""

    folder: Path
    record: DatasetRecord
    """All of ``dataset.json``."""
    preset: Preset
    """As recorded, with every normalizer as a number."""
    observations: Arrays
    """Tables by name, shape (N, ...), padded with zeros: ``queue`` with ``queued`` valid rows, ``running`` with
    ``busy``, ``supply``, ``slot``, ``state``, ``image`` as bits."""
    masks: Bools
    """Rows that may be chosen, shape (N, rows)."""
    actions: Ints
    """Chosen rows, shape (N,)."""
    rewards: Floats
    """Shape (N,)."""
    increments: dict[str, Floats]
    """Change of each reward term until the next decision, shape (N,)."""
    terminals: Bools
    """Last decision of an episode that ends because all jobs have, shape (N,)."""
    timeouts: Bools
    """Last decision of an episode that ends at a given time, shape (N,)."""
    time_s: Floats
    """Shape (N,). [s]"""
    schedulers: Ints
    """Number of the scheduler of each decision in ``record.schedulers``, shape (N,)."""
    offsets: Ints
    """Where each episode begins, shape (E + 1,)."""

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def episodes(self) -> list[slice]:
        """The decisions of each episode."""
        return [slice(int(first), int(last)) for first, last in zip(self.offsets, self.offsets[1:], strict=False)]


def read(folder: str | Path) -> Dataset:
    """Read a dataset.

    All of it is in memory then: a decision takes as much as its padded tables.

    Raises:
        InputError: a file is missing, damaged or in a later layout, or the decisions do not fit the preset.
    """
    place = Path(folder)
    record = read_record(place)
    made = check(record.preset, file=place / RECORD)
    shapes = shapes_of(made)
    tables = Tables(shapes, record.jobs)
    columns, terms = columns_of(shapes, tables.fields), increments(made.reward.terms)
    if sum(part.decisions for part in record.parts) != record.decisions:
        raise InputError("is not the sum of the parts", file=place / RECORD, field="decisions", fix=FIX)
    seen: Arrays = {
        name: np.zeros((record.decisions, *field.shape), field.dtype) for name, field in tables.fields.items()
    }
    beside: Arrays = {name: np.zeros(record.decisions, kind) for name, kind in BESIDE.items()}
    beside |= {name: np.zeros(record.decisions) for name in terms.values()}
    at = 0
    for frame in _parts(place, record, [*beside, *columns]):
        part = slice(at, at := at + len(frame))
        for name, target in beside.items():
            _copy(frame, name, target[part], place)
        for name, (table, k) in columns.items():
            _copy(frame, name, seen[table][part] if k is None else seen[table][part][..., k], place)
    dataset = Dataset(
        folder=place, record=record, preset=made, observations=seen, masks=seen["selectable"],
        actions=beside["action"], rewards=beside["reward"],
        increments={term: beside[name] for term, name in terms.items()}, terminals=beside["terminal"],
        timeouts=beside["truncated"], time_s=beside["time_s"], schedulers=beside["scheduler"],
        offsets=_offsets(beside["episode"], beside["step"], place),
    )  # fmt: skip
    _check_values(dataset)
    _check_counts(dataset, int(beside["episode"][-1]) + 1)
    return dataset


def read_record(folder: str | Path) -> DatasetRecord:
    """Read the description of a dataset alone.

    Raises:
        InputError: the file is missing, damaged or in a later layout.
    """
    file = Path(folder) / RECORD
    content, _ = read_bytes(file)
    return record_of(DatasetRecord, content, file=file, what="the description of a dataset", fix=FIX)


def _copy(frame: pl.DataFrame, name: str, target: NDArray[Any], folder: Path) -> None:
    """Copy a column.

    Raises:
        InputError: it has no value somewhere, or is of another type or shape than the preset's.
    """
    found = frame[name].to_numpy()
    fits = found.size == target.size and np.can_cast(found.dtype, target.dtype, "safe")
    if not fits or frame[name].null_count():
        problem = f"is {frame[name].dtype}, or has no value somewhere"
        raise InputError(problem, file=folder, field=name, fix="the preset observes something else; record it again")
    target[...] = found.reshape(target.shape)


def _parts(folder: Path, record: DatasetRecord, columns: list[str]) -> Iterator[pl.DataFrame]:
    """The files of a dataset, one by one.

    Raises:
        InputError: one is missing, damaged, or has other columns than the preset.
    """
    import polars as pl

    for part in record.parts:
        file = folder / part.file
        if sha256_of(file) != part.sha256:
            raise InputError("is damaged: its checksum is another one", file=file, fix=FIX)
        try:
            parquet_schema(file, file)
            frame = pl.read_parquet(file)
        except (pl.exceptions.PolarsError, OSError):
            raise InputError("is damaged: it is not a Parquet file", file=file, fix=FIX) from None
        if missing := [name for name in columns if name not in frame.columns]:
            raise InputError("is missing", file=file, field=missing[0], fix="the preset observes it; record again")
        if len(frame) != part.decisions:
            raise InputError(f"has {len(frame)} decisions, not {part.decisions}", file=file, fix=FIX)
        yield frame


def _offsets(episode: Ints, step: Ints, folder: Path) -> Ints:
    """Where each episode begins.

    Raises:
        InputError: decisions are missing, or not in order.
    """
    begins = np.flatnonzero(step == 0)
    offsets = np.append(begins, len(step))
    counted = np.arange(len(step)) - np.repeat(begins, np.diff(offsets)) if step[0] == 0 else None
    if counted is None or (step != counted).any() or ((np.diff(episode) > 0) != (step[1:] == 0)).any():
        raise InputError("are not complete and in order", file=folder, field="episode and step", fix=FIX)
    return offsets


def _check_values(dataset: Dataset) -> None:
    """Refuse numbers that are not finite, actions that are not allowed, and episodes without an end.

    Raises:
        InputError: names the column and the first such decision.
    """
    seen, count = dataset.observations, len(dataset)
    rows = np.minimum(dataset.actions, dataset.masks.shape[1] - 1)
    inside = valid_rows(seen["queued"].astype(np.int64), dataset.masks.shape[1])
    allowed = dataset.masks[np.arange(count), rows] & inside[np.arange(count), rows] & (rows == dataset.actions)
    ends = np.zeros(count, np.bool_)
    ends[dataset.offsets[1:] - 1] = True
    numbers = {"reward": dataset.rewards, "time_s": dataset.time_s}
    numbers |= {f"increment.{term}": each for term, each in dataset.increments.items()}
    numbers |= {name: seen[name].reshape(count, -1) for name in ("queue", "running", "supply", "state")}
    known, finite = len(dataset.record.schedulers), "is not a finite number"
    wrong = [
        *((name, finite, ~np.isfinite(each).reshape(count, -1).all(1)) for name, each in numbers.items()),
        ("action", "is a row that may not be chosen", ~allowed),
        ("terminal or truncated", "is not set at ends alone", (dataset.terminals ^ dataset.timeouts) != ends),
        ("scheduler", "is not in dataset.json", (dataset.schedulers < 0) | (dataset.schedulers >= known)),
        ("time_s", "is earlier than before", _goes_back(dataset)),
    ]
    for field, problem, where in wrong:
        if where.any():
            at = f"decision {int(np.argmax(where))}"
            raise InputError(f"{problem} at {at}", file=dataset.folder, field=field, fix=FIX)


def _check_counts(dataset: Dataset, episodes: int) -> None:
    """Refuse a description that has fewer episodes, or other decisions of a scheduler, than the files.

    Raises:
        InputError: names the entry.
    """
    record, file = dataset.record, dataset.folder / RECORD
    if not episodes <= len(record.starts) == sum(each.episodes for each in record.schedulers):
        raise InputError("do not have one job for each episode", file=file, field="starts", fix=FIX)
    counted = np.bincount(dataset.schedulers, minlength=len(record.schedulers))
    for each, count in zip(record.schedulers, counted.tolist(), strict=True):
        if each.decisions != count:
            problem = f"says {each.decisions:,} decisions of {each.name}, the files have {count:,}"
            raise InputError(problem, file=file, field="schedulers", fix=FIX)


def _goes_back(dataset: Dataset) -> Bools:
    """Decisions that are earlier than the one before them in their episode, shape (N,)."""
    earlier = np.diff(dataset.time_s, prepend=-np.inf) < 0
    earlier[dataset.offsets[:-1]] = False
    return np.asarray(earlier)


def check_fits(dataset: Dataset, scenario: Scenario, preset_: Preset | str) -> None:
    """Check that decisions were recorded on a scenario with what a preset observes, does and is rewarded for.

    Raises:
        InputError: names the first key that differs.
    """
    record, file = dataset.record, dataset.folder / RECORD
    if record.scenario_sha256 != digest_of(scenario):
        then, now = content_of(record.resolved, record.inputs), content_of(scenario.resolved, scenario.inputs)
        key = next(iter(differences(then, now)), "scenario")
        problem = f"was recorded on {record.scenario}, which differs from {scenario.name} in {key}"
        fix = "give the scenario and the trace that were recorded, or record this one"
        raise InputError(problem, file=file, field="scenario", fix=fix)
    check_agent(dataset, resolve(preset(preset_) if isinstance(preset_, str) else preset_, scenario))


def check_agent(dataset: Dataset, made: Preset, parts: Sequence[str] = ("observation", "action", "reward")) -> None:
    """Check that decisions are those of an agent of a preset.

    Args:
        dataset: the decisions.
        made: the preset, with every normalizer as a number.
        parts: tables of the preset that have to be the same.

    Raises:
        InputError: names the first key that differs.
    """
    record, now = dataset.record, made.model_dump(mode="json")
    for part in parts:
        if record.preset[part] != now[part]:
            key = next(iter(differences(record.preset[part], now[part], part)), part)
            problem = f"was recorded with {record.preset['name']}, which differs from {made.name} in {key}"
            raise InputError(problem, file=dataset.folder / RECORD, field="preset", fix=f"record it with {made.name}")
