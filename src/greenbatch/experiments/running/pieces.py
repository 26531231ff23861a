"""Finished cells of a comparison that is running, in a folder beside its result: Parquet pieces, readable at any time.

A comparison that is killed loses at most the last seconds: the same command uses the pieces. The folder is removed once
the result is delivered.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.errors import InputError
from greenbatch.experiments.running.cells import Cell, Figures
from greenbatch.experiments.running.finished import COLUMNS, DECIDE, RECORD, finished_cells, other_than
from greenbatch.experiments.running.sweep import Setting
from greenbatch.files import parquet_schema, sha256_of, stored_bytes
from greenbatch.models.versioned import read_table
from greenbatch.storage import PREFIX, check_own, replace_file

if TYPE_CHECKING:
    import polars

SUFFIX = ".cells"
"""What the name of the folder has after that of the result."""
EVERY_S = 2.0
"""How long a finished cell waits for others to share its piece; 0 to write each at once. [s]"""
RECORD_OF_PIECES, _PIECE, _TOOL = "record.json", "cells-{:06}-{}.parquet", "greenbatch"
_NAME = re.compile(r"cells-(\d{6,})-([0-9a-f]{16})")
"""The name of a piece: its number and a checksum, because reading a damaged piece can end the process."""


def beside(out: Path) -> Path:
    """The folder of the pieces of a result."""
    place = out if out.name not in {"", ".."} else out.resolve()
    return place.parent / f"{place.name}{SUFFIX}"


def pieces_in(folder: Path) -> list[Path]:
    """The pieces in a folder, in order; files of other names are the user's."""
    return sorted(file for file in folder.glob("cells-*.parquet") if _NAME.fullmatch(file.stem))


class Pieces:
    """The pieces of one comparison or sweep; a context that stops writing at its end.

    Whoever writes holds the lock of the result's folder, so that there is one writer.
    """

    def __init__(self, out: Path | None, wanted: Mapping[str, Any], *, force: bool = False) -> None:
        """Read the pieces that there are.

        Args:
            out: folder of the result; None to keep nothing.
            wanted: provenance of all of it.
            force: discard pieces of a different comparison.

        Raises:
            InputError: the folder has pieces of a different comparison or is not one of pieces, or one is damaged.
        """
        self.out, self.folder = out, None if out is None else beside(out)
        self._record = {"tool": _TOOL, **json.loads(json.dumps({key: wanted[key] for key in DECIDE}))}
        self._lock, self._waiting = threading.Lock(), dict[Cell, Figures]()
        self._timer: threading.Timer | None = None
        self._error: InputError | None = None
        self.finished = self._read(force)
        self._written = bool(self.finished)

    @property
    def cells(self) -> int:
        """Number of all cells."""
        settings = self._record["settings"]
        return len(settings["starts"]) * len(settings.get("sweep", {"values": [""]})["values"])

    def keep(self, cell: Cell, figures: Figures) -> None:
        """Write a finished cell within `EVERY_S`.

        Raises:
            InputError: an earlier one could not be written.
        """
        if self._error is not None:
            raise self._error
        if self.folder is None:
            return
        with self._lock:
            self._waiting[cell] = figures
            if self._timer is None and EVERY_S > 0:
                self._timer = threading.Timer(EVERY_S, self._in_time)
                self._timer.daemon = True
                self._timer.start()
        if EVERY_S <= 0:
            self._write()

    def remove(self) -> None:
        """Remove the folder, because the result has all cells."""
        if self.folder is None:
            return
        for file in (*pieces_in(self.folder), self.folder / RECORD_OF_PIECES):
            file.unlink(missing_ok=True)
        for left in self.folder.glob(f"{PREFIX}*"):  # of a writer that was killed
            shutil.rmtree(left)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def __enter__(self) -> Pieces:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop writing; after an error, what waits is written if earlier cells are, so that nothing is lost."""
        with self._lock:  # waits for a piece that is being written
            timer, self._timer = self._timer, None
            if kind is None or not self._written:
                self._waiting = {}
        if timer is not None:
            timer.cancel()
        if self._error is None:
            self._write()

    def _in_time(self) -> None:
        try:
            self._write()
        except InputError as error:
            self._error = error
        except KeyboardInterrupt:  # polars raises it in every thread; what waits is written after the main one heard it
            pass

    def _write(self) -> None:
        """Write a piece of the cells that wait.

        Raises:
            InputError: it cannot be written.
        """
        with self._lock:
            cells, self._waiting, self._timer = self._waiting, {}, None
            if not cells or self.folder is None:
                return
            try:
                if not (self.folder / RECORD_OF_PIECES).exists():
                    self.folder.mkdir(exist_ok=True)
                    replace_file(self.folder / RECORD_OF_PIECES, json.dumps(self._record, indent=2).encode())
                last = max((int(file.stem.split("-")[1]) for file in pieces_in(self.folder)), default=0)
                stream = io.BytesIO()
                _frame(cells, _setting(self._record)).write_parquet(stream)
                content = stream.getvalue()
                name = _PIECE.format(last + 1, hashlib.sha256(content).hexdigest()[:16])
                replace_file(self.folder / name, content)
                self._written = True
            except KeyboardInterrupt:
                self._waiting = {**cells, **self._waiting}
                raise
            except OSError as error:
                problem, fix = f"cannot be written: {error.strerror}", "free some space, then repeat the command"
                raise InputError(problem, file=self.folder, field="--out", fix=fix) from None

    def _read(self, force: bool) -> dict[Cell, Figures]:
        if self.folder is None or not self.folder.exists():
            return {}
        check_own(self.folder.parent, [self.folder.name])
        check_own(self.folder, [RECORD_OF_PIECES, *(file.name for file in pieces_in(self.folder))])
        try:
            record = read_record(self.folder / RECORD_OF_PIECES)
        except InputError:
            if self.folder.is_dir() and all(file.name.startswith(PREFIX) for file in self.folder.iterdir()):
                return {}  # killed before it was filled
            raise
        starts = record["settings"].pop("starts")
        del record["tool"]
        if difference := other_than(record, starts, self._record):
            if force:
                self.remove()
                return {}
            problem = f"has finished windows of a different comparison; {difference}"
            fix = "repeat its flags, give another --out, or --force to discard them"
            raise InputError(problem, file=self.folder, field="--out", fix=fix)
        sweep, schedulers = _setting(record), record["settings"]["schedulers"]
        texts = {} if sweep is None else {sweep.shown(text): text for text in sweep.values}
        found: dict[Cell, Figures] = {}
        for file in pieces_in(self.folder):
            by = ["window"] if sweep is None else [sweep.key, "window"]
            for part in read_piece(file).partition_by(by, maintain_order=True):
                value = "" if sweep is None else texts[part[sweep.key][0]]
                figures = _figures(part)
                if [name for name, _ in figures.names] != schedulers:
                    raise _damaged(file)
                found[Cell(value, int(part["window"][0]))] = figures
        return found


def resumed(pieces: Pieces, wanted: Mapping[str, Any], *, resume: bool) -> dict[Cell, Figures]:
    """The finished cells of a result: its pieces and, to resume an interrupted one, what it contains.

    Args:
        pieces: the pieces.
        wanted: provenance of all of it.
        resume: whether the result itself is to be resumed; if there is none, pieces will do.

    Raises:
        InputError: see `finished.finished_windows`.
    """
    if resume and pieces.out is not None and ((pieces.out / RECORD).exists() or not pieces.finished):
        return finished_cells(pieces.out, wanted) | pieces.finished
    return pieces.finished


def read_record(file: Path) -> dict[str, Any]:
    """The provenance of a comparison or of its pieces, which has the entries `finished.DECIDE`.

    Raises:
        InputError: it is none.
    """
    try:
        record: Any = read_table(stored_bytes(file))
        if record["tool"] != _TOOL or not isinstance(record["settings"]["starts"], list):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        fix = "move its folder away, or give another --out"
        raise InputError("is not that of a comparison", file=file, fix=fix) from None
    return record  # type: ignore[no-any-return]


def read_piece(file: Path) -> polars.DataFrame:
    """The rows of a piece, or of ``results.parquet``.

    Raises:
        InputError: it is damaged.
    """
    import polars

    try:
        parquet_schema(file, file)
        if (piece := _NAME.fullmatch(file.stem)) and not sha256_of(file).startswith(piece[2]):
            raise ValueError
        frame = polars.read_parquet(file)
        if [(name, str(kind)) for name, kind in frame.schema.items()][-4:] != COLUMNS:
            raise ValueError
        frame["window"].cast(polars.Int64)
    except (OSError, ValueError, polars.exceptions.PolarsError):
        raise _damaged(file) from None
    return frame


def _damaged(file: Path) -> InputError:
    return InputError("is damaged", file=file, field="--out", fix="remove it: its windows are simulated again")


def _setting(record: Mapping[str, Any]) -> Setting | None:
    """What is swept; None in a comparison."""
    sweep = record["settings"].get("sweep")
    return None if sweep is None else Setting(key=sweep["key"], values=sweep["values"])


def _frame(cells: Mapping[Cell, Figures], sweep: Setting | None) -> polars.DataFrame:
    """The rows of cells, as in ``results.parquet``."""
    import polars

    parts = []
    for cell, figures in cells.items():
        lengths = [len(metrics) for _, metrics in figures.names]
        schedulers = polars.Series("scheduler", [name for name, _ in figures.names])
        columns = {
            "window": polars.Series([str(cell.start)]).new_from_index(0, sum(lengths)),
            "scheduler": schedulers.repeat_by(polars.Series(lengths)).explode(),
            "metric": polars.Series([name for _, metrics in figures.names for name in metrics], dtype=polars.String),
            "value": polars.Series(figures.values, nan_to_null=True),
        }
        kind = polars.Float64 if sweep is not None and sweep.numeric else polars.String
        value = [] if sweep is None else [polars.lit(sweep.shown(cell.value), kind).alias(sweep.key)]
        parts.append(polars.DataFrame(columns).select(*value, polars.all()))
    return polars.concat(parts)


def _figures(part: polars.DataFrame) -> Figures:
    names: dict[str, list[str]] = {}
    for scheduler, metric in part.select("scheduler", "metric").iter_rows():
        names.setdefault(scheduler, []).append(metric)
    values = part["value"].cast(float).fill_null(float("nan")).to_numpy()
    return Figures(tuple((name, tuple(metrics)) for name, metrics in names.items()), values)
