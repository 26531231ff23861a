"""The log of a training: one JSON object per line, truncated to the checkpoint when the training resumes.

The first line is the version of the layout, ``{"format": 2}``; each other line has the figures of an epoch. Layout 1
has no version line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from greenbatch.errors import InputError
from greenbatch.files import LARGEST_BYTES, stored_bytes
from greenbatch.models.versioned import checked, read_table
from greenbatch.scenarios.section import Natural, Section

FORMAT = 2
"""Version of the layout of ``log.jsonl``."""
_FIX = "restore the file"


class Line(Section):
    """The figures of an epoch: those that readers rely on, and any further number or word by name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, bool | float | str]

    epoch: Natural
    """Epochs completed."""
    delays: Annotated[tuple[Natural, ...], Field(strict=False)] = ()
    """How often each delay was chosen in the epoch."""

    @model_validator(mode="after")
    def _chosen_in_an_epoch(self) -> Line:
        if self.delays and not self.epoch:
            raise ValueError("delays were chosen before the first epoch, which is impossible")
        return self


class Log:
    """A log file that is appended to.

    Args:
        file: the file; created if it does not exist.
        length: bytes to keep; the rest was written after the last checkpoint and is truncated.

    Raises:
        InputError: the file is shorter than ``length``.
        OSError: it cannot be written.
    """

    def __init__(self, file: Path, length: int = 0) -> None:
        present = file.stat().st_size if file.exists() else 0
        if present < length:
            problem = f"has {present:,} bytes, fewer than the {length:,} recorded in the checkpoint"
            raise InputError(problem, file=file, fix="restore the file, or train again into another folder")
        self._stream = file.open("ab")
        self._stream.truncate(length)
        self._stream.seek(0, 2)
        if not length:
            self.append({"format": FORMAT})

    @property
    def length(self) -> int:
        """Bytes written so far."""
        return self._stream.tell()

    def append(self, record: Mapping[str, Any]) -> None:
        """Append a line; it is on disk when the call returns."""
        self._stream.write((json.dumps(record, allow_nan=False) + "\n").encode())
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def read_log(file: Path) -> list[dict[str, Any]]:
    """The figures of each epoch, see `Line`; an incomplete last line is ignored.

    Raises:
        InputError: the file is missing or in a later layout, or a line is damaged.
    """
    try:
        lines = stored_bytes(file, largest=LARGEST_BYTES).split(b"\n")
    except FileNotFoundError:
        raise InputError("no such file", file=file, fix="give the folder of a training") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file, fix=_FIX) from None
    records = []
    for number, line in enumerate(lines[:-1], 1):
        figures = read_table(line)
        if figures is None:
            raise InputError("is not a JSON object", file=file, line=number, fix=_FIX)
        if number == 1 and "format" in figures:
            if type(figures["format"]) is not int or figures["format"] != FORMAT:
                problem = f"has layout {str(figures['format'])[:20]}, this version of greenbatch reads 1 and {FORMAT}"
                raise InputError(problem, file=file, line=1, fix="use the version that wrote it")
            continue
        checked(Line, figures, file=file, fix=_FIX, line=number)
        records.append(figures)
    return records


_WRITTEN = "written.txt"
"""In the folder of TensorBoard's files: the names of those that trainings wrote."""


def written_events(folder: Path) -> list[str]:
    """The files that trainings wrote into a folder for TensorBoard."""
    try:
        names = stored_bytes(folder / _WRITTEN).decode().splitlines()
    except (InputError, OSError, ValueError):
        return []
    return [_WRITTEN, *(name for name in names if name == Path(name).name and name != "..")]


class Scalars:
    """Writes the figures of a training for TensorBoard, if requested and installed."""

    def __init__(self) -> None:
        self._writer: Any = None

    def open(self, folder: Path) -> None:
        """Start writing event files into a folder; further calls have no effect."""
        if self._writer is not None:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        there = {file.name for file in folder.iterdir()} if folder.is_dir() else {_WRITTEN}
        self._writer = SummaryWriter(str(folder))
        new = sorted({file.name for file in folder.iterdir()} - there)
        with (folder / _WRITTEN).open("a", encoding="utf-8") as names:
            names.writelines(f"{name}\n" for name in new)

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
