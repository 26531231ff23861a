"""Reading and writing files: bytes with their hash, gzip detected from the content.

Every reader is bounded: files may come from strangers. Devices are refused, pipes must have a writer, and no file, pipe
or unpacked content may exceed a size.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import select
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.errors import InputError
from greenbatch.storage import replace_file

if TYPE_CHECKING:
    import polars

_OTHER_ARCHIVES = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd"}

LARGEST_BYTES, LARGEST_PIPE_BYTES, LARGEST_RECORD_BYTES = 2**33, 2**31, 2**26
"""Upper limits on the size of a file, of what a pipe delivers, and of a record in JSON. [byte]"""
_UNPACKED_BYTES, _UNPACKED_RATIO = 2**28, 100
"""What may be unpacked in any case [byte], and how many times the size of a packed file; text reaches 10 to 30."""
_PARQUET_RATIO = 1000
_PIECE_BYTES = 2**24
_WRITER_S = 20.0
"""How long to wait for the writer of a pipe. [s]"""

_PIPES: ContextVar[dict[tuple[int, int], bytes] | None] = ContextVar("_PIPES", default=None)
"""Device and number of a pipe -> what it delivered, as it can be read only once."""


@contextmanager
def pipes_kept() -> Iterator[None]:
    """Within this context, a pipe can be read several times, as a file."""
    before = _PIPES.set({} if (kept := _PIPES.get()) is None else kept)
    try:
        yield
    finally:
        _PIPES.reset(before)


def stored_bytes(path: Path, *, largest: int = LARGEST_RECORD_BYTES, pipes: bool = False) -> bytes:
    """The content of a file as it is stored.

    Args:
        path: the file.
        largest: upper limit on its size. [byte]
        pipes: accept a pipe that somebody writes to.

    Raises:
        InputError: it is a device, a pipe that is not accepted or has no writer, or too large.
        OSError: it cannot be opened or read.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)) as stream:
        found = os.fstat(stream.fileno())
        if stat.S_ISFIFO(found.st_mode) and pipes:
            return _piped(stream, found, path)
        if not stat.S_ISREG(found.st_mode):
            kind = "pipe" if stat.S_ISFIFO(found.st_mode) else "device"
            raise InputError(f"is a {kind}", file=path, fix="give a file" + ", or a pipe such as /dev/stdin" * pipes)
        content = b"" if found.st_size > largest else stream.read(largest + 1)
    if (size := max(found.st_size, len(content))) > largest:
        raise InputError(f"has {size:,} bytes, more than {largest:,}", file=path, fix="check that it is the right file")
    return content


def _piped(stream: io.BufferedReader, found: os.stat_result, path: Path) -> bytes:
    """All that a pipe delivers."""
    kept, key = _PIPES.get(), (found.st_dev, found.st_ino)
    if kept is not None and key in kept:
        return kept[key]
    content = _first_byte(stream.fileno(), path)
    os.set_blocking(stream.fileno(), True)
    content += stream.read(LARGEST_PIPE_BYTES + 1)
    if len(content) > LARGEST_PIPE_BYTES:
        problem = f"is a pipe that delivers more than {LARGEST_PIPE_BYTES:,} bytes"
        raise InputError(problem, file=path, fix="write it into a file")
    if kept is not None:
        kept[key] = content
    return content


def _first_byte(handle: int, path: Path) -> bytes:
    """Wait for the writer of a pipe; what it has written by then, at most one byte."""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    for _ in range(int(_WRITER_S)):
        if waiting.poll(1000):
            return b""
        try:
            if found := os.read(handle, 1):
                return found
        except BlockingIOError:  # it has a writer, which may take its time
            return b""
    fix = "start its writer first, or give a file"
    raise InputError(f"is a pipe that nobody writes to within {_WRITER_S:g} s", file=path, fix=fix)


def check_regular(path: Path) -> None:
    """Refuse what a library would read without end: anything but a file.

    Raises:
        InputError: it is a device or a pipe.
        OSError: there is no such file.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise InputError("is not a file", file=path, fix="give a file")


def check_unpacked(size: int, packed: int, path: Path, *, ratio: int = _UNPACKED_RATIO) -> None:
    """Refuse a file that unpacks to far more than it stores.

    Args:
        size: unpacked size, so far. [byte]
        packed: size of what it was unpacked from. [byte]
        path: the file.
        ratio: largest ratio of the two, where more is unpacked than is accepted in any case.

    Raises:
        InputError: it is too large.
    """
    if size > _UNPACKED_BYTES and size > min(ratio * packed, LARGEST_BYTES):
        problem = f"unpacks {packed:,} bytes to more than {size - 1:,}"
        raise InputError(problem, file=path, fix="check where it is from; if it is right, unpack it first")


def parquet_schema(source: Path | io.BytesIO, path: Path) -> dict[str, Any]:
    """The columns of a Parquet file: name -> type. To be called before the file is read.

    Args:
        source: the file, or its content.
        path: the file, for messages.

    Raises:
        InputError: it is a device or a pipe, or a few bytes stand for a table too large to be read.
        polars.exceptions.PolarsError: it is no Parquet file.
        OSError: it cannot be read.
    """
    import polars

    if isinstance(source, Path):
        check_regular(source)
    schema = dict(polars.read_parquet_schema(source))
    rows = polars.scan_parquet(source).select(polars.len()).collect().item()
    packed = source.stat().st_size if isinstance(source, Path) else source.getbuffer().nbytes
    check_unpacked(8 * rows * len(schema), packed, path, ratio=_PARQUET_RATIO)
    return schema


def read_bytes(file: str | Path) -> tuple[bytes, str]:
    """The content of a file, decompressed if it is gzip, and the SHA-256 of the file on disk.

    Raises:
        InputError: the file cannot be read, is empty, or is a broken or unsupported archive.
    """
    path = Path(file)
    with _readable(path):
        stored = stored_bytes(path, largest=LARGEST_BYTES, pipes=True)
    if not stored:
        raise InputError("is empty", file=path, fix="give a file with data in it")
    for magic, kind in _OTHER_ARCHIVES.items():
        if stored.startswith(magic):
            raise InputError(f"is a {kind} archive", file=path, fix="unpack it, or compress it with gzip")
    return _gunzip(stored, path), hashlib.sha256(stored).hexdigest()


def first_bytes(path: Path, count: int) -> bytes:
    """The first bytes of a file on disk; empty for anything but a file.

    Raises:
        InputError: the file cannot be read.
    """
    with _readable(path):
        if path.exists() and not path.is_file():
            return b""
        with path.open("rb") as stored:
            return stored.read(count)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, read in blocks.

    Raises:
        InputError: the file cannot be read.
    """
    with _readable(path):
        check_regular(path)
        with path.open("rb") as stored:
            return hashlib.file_digest(stored, "sha256").hexdigest()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Refuse a path that cannot be read in one line that says why."""
    try:
        yield
    except IsADirectoryError:
        raise InputError("is a folder", file=path, fix="give the file itself") from None
    except FileNotFoundError:
        raise InputError("no such file", file=path, fix="check the path") from None
    except PermissionError:
        raise InputError("cannot be read: permission denied", file=path, fix="add read permission") from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", file=path, fix="check the path") from None


def decode(content: bytes, file: str | Path, *, latin_1: bool = False) -> str:
    """Decode the content of a text file, which must be UTF-8 (a byte-order mark is dropped).

    Args:
        content: the bytes.
        file: the file, for messages.
        latin_1: decode as Latin-1 if it is not UTF-8, instead of refusing it (place names in weather files).

    Raises:
        InputError: the bytes are not UTF-8 text; the message names the line.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if not latin_1:
            line = content.count(b"\n", 0, error.start) + 1
            problem = f"byte {content[error.start]:#04x} is not UTF-8 text"
            raise InputError(problem, file=file, line=line, fix="save the file as UTF-8") from None
        text = content.decode("latin-1")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError("is not a text file", file=file, line=line, fix="save the file as UTF-8 text")
    return text


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically; ``*.gz`` is compressed, always to the same bytes.

    Raises:
        InputError: the folder does not exist or is not writable.
    """
    if path.name.endswith(".gz"):
        content = gzip.compress(content, compresslevel=6, mtime=0)
    try:
        replace_file(path, content)
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
        raise InputError(problem, file=path, fix="give a file in an existing, writable folder") from None


def write_parquet(frame: polars.DataFrame, file: Path, **options: Any) -> None:
    """Write a data frame; polars itself hides that a disk is full.

    Raises:
        OSError: it cannot be written.
    """
    content = io.BytesIO()
    frame.write_parquet(content, **options)
    file.write_bytes(content.getbuffer())


def _gunzip(stored: bytes, path: Path) -> bytes:
    if not stored.startswith(b"\x1f\x8b"):
        if path.name.endswith(".gz"):
            raise InputError("is named .gz but is not gzip", file=path, fix="rename it, or compress it with gzip")
        return stored
    try:
        content = b"".join(_unpacked(stored, path))
    except EOFError:
        raise InputError("the gzip file is truncated", file=path, fix="download or copy the file again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"broken gzip: {error}", file=path, fix="download or copy the file again") from None
    if not content:
        raise InputError("is empty", file=path, fix="give a file with data in it")
    return content


def _unpacked(stored: bytes, path: Path) -> Iterator[bytes]:
    """The content of a gzip file, in pieces."""
    source, size = io.BytesIO(stored), 0
    with gzip.GzipFile(fileobj=source) as stream:
        while piece := stream.read(_PIECE_BYTES):
            size += len(piece)
            check_unpacked(size, source.tell(), path)
            yield piece
