"""The log of a training: one JSON object a line, cut back to the checkpoint when a training is resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from greenbatch.errors import InputError


class Log:
    """A log file that is appended to.

    Args:
        file: where it lies; made if it is not there.
        length: bytes that count; what stands behind them was written after the last checkpoint, and is cut off.

    Raises:
        InputError: the file is shorter than that.
        OSError: it cannot be written.
    """

    def __init__(self, file: Path, length: int = 0) -> None:
        present = file.stat().st_size if file.exists() else 0
        if present < length:
            problem = f"has {present:,} bytes, the checkpoint counts {length:,}"
            raise InputError(problem, file=file, fix="restore the file, or train anew into another folder")
        self._stream = file.open("ab")
        self._stream.truncate(length)
        self._stream.seek(0, 2)

    @property
    def length(self) -> int:
        """Bytes written so far."""
        return self._stream.tell()

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a line; it is on disk when this returns."""
        self._stream.write((json.dumps(record, allow_nan=False) + "\n").encode())
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def read_log(file: Path) -> list[dict[str, Any]]:
    """The lines of a log; a last line that was broken off is left out.

    Raises:
        InputError: the file is missing, or another line is not JSON.
    """
    try:
        lines = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise InputError("no such file", file=file, fix="give the folder of a training") from None
    records = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            records.append(dict(json.loads(line)))
        except (ValueError, TypeError):
            raise InputError("is not a JSON object", file=file, line=number, fix="restore the file") from None
    return records


class Scalars:
    """The figures of a training for TensorBoard, where it is installed and asked for; otherwise nothing."""

    def __init__(self) -> None:
        self._writer: Any = None

    def open(self, folder: Path) -> None:
        """Write event files into a folder from now on; a second call changes nothing."""
        if self._writer is not None:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self._writer = SummaryWriter(str(folder))

    def add(self, epoch: int, figures: Mapping[str, Any]) -> None:
        """Write every number among the figures of an epoch."""
        if self._writer is None:
            return
        for name, value in figures.items():
            if isinstance(value, (int, float)):
                self._writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        """Close the event file."""
        if self._writer is not None:
            self._writer.close()
