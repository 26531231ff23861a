"""Checkpoints of a training, written atomically.

A folder contains ``state.json`` and the file of tensors it names (safetensors, never pickle) with its SHA-256. A new
checkpoint replaces the folder as a whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.files import stored_bytes
from greenbatch.learning.runs.records import CHECKPOINT_FORMAT, CheckpointRecord
from greenbatch.models.tensors import Tensors, read_tensors
from greenbatch.models.versioned import record_of
from greenbatch.storage import replacement

STATE = "state.json"
_SUFFIX = ".safetensors"
FIX = "train again into another folder, or use --force"
"""The remedy for a checkpoint that cannot be resumed."""


class Checkpoint(NamedTuple):
    """The content of a checkpoint."""

    tensors: Tensors
    """Name -> array."""
    state: dict[str, Any]
    """Everything else, ready for JSON."""


def save_checkpoint(folder: Path, name: str, tensors: Mapping[str, NDArray[Any]], state: Mapping[str, Any]) -> None:
    """Write a checkpoint, replacing an earlier one.

    Args:
        folder: the target folder; created if it does not exist.
        name: name of the tensors' file without suffix, e.g. ``epoch-000012``.
        tensors: name -> array.
        state: everything else, ready for JSON.

    Raises:
        OSError: the disk is full or not writable; the earlier checkpoint is untouched.
    """
    from safetensors.numpy import save

    content = save({key: np.asarray(value, order="C") for key, value in tensors.items()})
    file, digest = f"{name}{_SUFFIX}", hashlib.sha256(content).hexdigest()
    record = {"format": CHECKPOINT_FORMAT, "tensors": file, "sha256": digest, "state": dict(state)}
    with replacement(folder, lambda old: {file, *parts(old)}) as made:
        (made.folder / file).write_bytes(content)
        (made.folder / STATE).write_text(json.dumps(record, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        made.deliver()


def parts(folder: Path) -> Collection[str]:
    """The files of the checkpoint in a folder, by its record."""
    try:
        return [STATE, _record(folder).tensors]
    except (InputError, OSError):
        return [STATE]


def load_checkpoint(folder: Path) -> Checkpoint:
    """Load the checkpoint in a folder.

    Raises:
        InputError: it is missing, damaged or in an unknown layout.
    """
    file = folder / STATE
    try:
        record = _record(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError("there is no checkpoint", file=file, fix="leave out --resume") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file, fix=FIX) from None
    return Checkpoint(read_tensors(folder / record.tensors, record.sha256, fix=FIX), record.state)


def _record(folder: Path) -> CheckpointRecord:
    file = folder / STATE
    return record_of(CheckpointRecord, stored_bytes(file), file=file, what="the record of a checkpoint", fix=FIX)
