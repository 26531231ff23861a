"""Reading and writing files: bytes with their hash, gzip detected from the content."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from greenbatch.errors import InputError
from greenbatch.storage import replace_file

_OTHER_ARCHIVES = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd"}


def read_bytes(file: str | Path) -> tuple[bytes, str]:
    """The content of a file, decompressed if it is gzip, and the SHA-256 of the file on disk.

    Raises:
        InputError: the file cannot be read, is empty, or is a broken or unsupported archive.
    """
    path = Path(file)
    with _readable(path):
        stored = path.read_bytes()
    if not stored:
        raise InputError("is empty", file=path, fix="give a file with data in it")
    for magic, kind in _OTHER_ARCHIVES.items():
        if stored.startswith(magic):
            raise InputError(f"is a {kind} archive", file=path, fix="unpack it, or compress it with gzip")
    return _gunzip(stored, path), hashlib.sha256(stored).hexdigest()


def first_bytes(path: Path, count: int) -> bytes:
    """The first bytes of a file on disk; empty for anything but a file, whose reading would use it up.

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
    with _readable(path), path.open("rb") as stored:
        return hashlib.file_digest(stored, "sha256").hexdigest()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Refuse a path that cannot be read in one line that says why."""
    try:
        if path.is_char_device():  # /dev/zero has no end
            raise InputError("is a device", file=path, fix="give a file, or a pipe such as /dev/stdin")
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


def _gunzip(stored: bytes, path: Path) -> bytes:
    if not stored.startswith(b"\x1f\x8b"):
        if path.name.endswith(".gz"):
            raise InputError("is named .gz but is not gzip", file=path, fix="rename it, or compress it with gzip")
        return stored
    try:
        content = gzip.decompress(stored)
    except EOFError:
        raise InputError("the gzip file is truncated", file=path, fix="download or copy the file again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"broken gzip: {error}", file=path, fix="download or copy the file again") from None
    if not content:
        raise InputError("is empty", file=path, fix="give a file with data in it")
    return content
