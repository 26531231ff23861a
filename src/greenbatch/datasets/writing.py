"""Writing a dataset: ``dataset.json`` and Parquet files of decisions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.datasets.columns import columns_of, increments
from greenbatch.datasets.recording import Played, Recording, play
from greenbatch.datasets.schema import DATASET_FORMAT, FIX, KIND, RECORD, DatasetRecord, digest_of
from greenbatch.datasets.tables import Arrays, Tables
from greenbatch.files import sha256_of, write_parquet
from greenbatch.models.versioned import record_of
from greenbatch.presets.shapes import shapes_of
from greenbatch.provenance import versions

if TYPE_CHECKING:
    import polars as pl

Bools = NDArray[np.bool_]


def write(made: Recording, folder: Path, tell: Callable[[int], None] | None = None) -> DatasetRecord:
    """Record into an empty folder; whoever gives it shows it only once it is complete.

    Args:
        made: what is recorded.
        folder: the folder.
        tell: called with the number of decisions so far, or of episodes without a number of decisions.

    Raises:
        InputError: a scheduler cannot be simulated on the scenario.
        OSError: the folder cannot be written.
    """
    env, totals = made.env, _Totals(len(made.schedulers))
    shapes = shapes_of(env.preset)
    tables = Tables(shapes, env.jobs)
    columns, is_cut = columns_of(shapes, tables.fields), _ends_at_a_time(made)
    parts: list[dict[str, Any]] = []
    for played in play(made, tell):
        file = folder / f"part-{len(parts):05}.parquet"
        found = tables.arrays(played.seen)
        totals.add(played, found["selectable"])
        if len(played.actions):
            write_parquet(_frame(_decisions(made, played, found, columns, is_cut)), file, compression="zstd")
            parts.append({"file": file.name, "decisions": len(played.actions), "sha256": sha256_of(file)})
    record = {
        "format": DATASET_FORMAT, "kind": KIND, "greenbatch": versions()["greenbatch"],
        "scenario": env.scenario.name, "scenario_sha256": digest_of(env.scenario),
        "resolved": dict(env.scenario.resolved), "inputs": dict(sorted(env.scenario.inputs.items())),
        "preset": env.preset.model_dump(mode="json"), "jobs": env.jobs, "episode_s": env.episode_s, "seed": made.seed,
        "schedulers": totals.records(made), "starts": totals.starts, "decisions": sum(p["decisions"] for p in parts),
        "parts": parts,
    }  # fmt: skip
    text = json.dumps(record, indent=2, allow_nan=False) + "\n"
    checked = record_of(DatasetRecord, text.encode(), file=folder / RECORD, what="a dataset", fix=FIX)
    (folder / RECORD).write_text(text, encoding="utf-8")
    return checked


def _ends_at_a_time(made: Recording) -> bool:
    pools = made.env.scenario.rules.pools
    return bool(made.env.episode_s or (pools is not None and pools.end_s))


def _decisions(
    made: Recording, played: Played, found: Arrays, columns: Mapping[str, tuple[str, int | None]], is_cut: bool
) -> dict[str, NDArray[Any]]:  # fmt: skip
    """The columns of a file."""
    lengths = np.diff(played.offsets)
    last = np.zeros(len(played.actions), np.bool_)
    last[played.offsets[1:][lengths > 0] - 1] = True
    step = np.arange(len(last)) - np.repeat(played.offsets[:-1], lengths)
    terms = {name: played.increments[:, k] for k, name in enumerate(increments(made.env.terms).values())}
    return {
        "episode": np.repeat(played.episode, lengths).astype(np.uint32), "step": step.astype(np.uint32),
        "time_s": played.time_s, "scheduler": np.repeat(played.scheduler, lengths).astype(np.uint16),
        "action": played.actions.astype(np.uint32), "allowed": found["selectable"].sum(1).astype(np.uint32),
        "reward": played.rewards, **terms, "terminal": last & (not is_cut), "truncated": last & is_cut,
        **{name: _flat(found[table] if k is None else found[table][..., k]) for name, (table, k) in columns.items()},
    }  # fmt: skip


def _flat(values: NDArray[Any]) -> NDArray[Any]:
    """One row of values for each decision."""
    return values if values.ndim == 1 else values.reshape(len(values), -1)


class _Totals:
    """What `SchedulerRecord` counts."""

    COUNTS = ("episodes", "decisions", "choices", "late", "unseen", "left", "held")

    def __init__(self, schedulers: int) -> None:
        self.counts = {name: np.zeros(schedulers, np.int64) for name in self.COUNTS}
        self.returns = np.zeros(schedulers)
        self.starts: list[int] = []

    def add(self, played: Played, selectable: Bools) -> None:
        own, lengths = played.scheduler, np.diff(played.offsets)
        choices = np.add.reduceat(np.append(selectable.sum(1) > 1, False), played.offsets[:-1]) * (lengths > 0)
        rewards = np.bincount(np.repeat(np.arange(len(own)), lengths), played.rewards, len(own))
        added = {"episodes": np.ones(len(own), np.int64), "decisions": lengths, "choices": choices}
        for name, total in self.counts.items():
            np.add.at(total, own, added[name] if name in added else getattr(played, name))
        np.add.at(self.returns, own, rewards)
        self.starts += played.start.tolist()

    def records(self, made: Recording) -> list[dict[str, Any]]:
        """One for each scheduler."""
        return [
            {"name": name, "share": float(made.shares[k]), **{each: int(n[k]) for each, n in self.counts.items()},
             "mean_return": float(self.returns[k] / self.counts["episodes"][k]) if self.counts["episodes"][k] else None}
            for k, name in enumerate(made.schedulers)
        ]  # fmt: skip


def _frame(found: Mapping[str, NDArray[Any]]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame([pl.Series(name, np.ascontiguousarray(values)) for name, values in found.items()])
