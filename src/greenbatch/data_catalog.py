"""The catalog of real data files: finding them on this machine, and downloading them on request.

A file is named by its path under the data folder, e.g. ``swf/lublin_256.swf.gz``; ``data_catalog.toml`` next to this
module gives its description, origin and checksum. Only `fetch` accesses the network.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from greenbatch.errors import DataMissing, InputError, did_you_mean
from greenbatch.storage import replace_file, user_cache

_CATALOG = Path(__file__).with_name("data_catalog.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One known data file."""

    name: str
    """Path under the data folder."""
    what: str
    terms: str
    """License or terms of the provider, if stated."""
    sha256: str
    """SHA-256 of the file at its origin: of the ``.gz`` itself, otherwise of the uncompressed content."""
    urls: tuple[str, ...] = ()
    """Public origins, tried in order."""
    page: str | None = None
    """Web page to look for the file, if it has no public URL."""
    made_from: str | None = None
    """The data file this one is derived from."""
    header: str = ""
    """Header of a derived file."""
    drop_ids_to: int = 0
    """A derived file leaves out job ids up to this one."""

    @property
    def origin(self) -> str:
        """Origin of the file, for people."""
        return (
            f"from {self.urls[0] if self.urls else self.page}" if not self.made_from else f"made from {self.made_from}"
        )


@cache
def catalog() -> dict[str, Dataset]:
    """All known data files by name."""
    with _CATALOG.open("rb") as stream:
        raw = tomllib.load(stream)
    return {
        name: Dataset(
            name=name,
            what=entry["what"],
            terms=entry["terms"],
            sha256=entry["sha256"],
            urls=tuple(entry.get("url", ())),
            page=entry.get("page"),
            made_from=entry.get("from"),
            header=entry.get("header", ""),
            drop_ids_to=entry.get("drop_ids_to", 0),
        )
        for name, entry in raw.items()
    }


def cache_folder() -> Path:
    """The user's own data folder, see `storage.user_cache`."""
    return user_cache("data")


def folders() -> tuple[Path, ...]:
    """Folders searched for data files, in order: ``GREENBATCH_DATA`` if set, then the user's cache."""
    own = os.environ.get("GREENBATCH_DATA")
    return (*((Path(own),) if own else ()), cache_folder())


def absent(names: Iterable[str]) -> list[str]:
    """Those of some data files that are not on this machine, each once.

    Raises:
        InputError: no such data file exists.
    """
    missing = []
    for name in dict.fromkeys(names):
        try:
            find(name)
        except DataMissing:
            missing.append(name)
    return missing


def need(names: Iterable[str]) -> None:
    """Refuse to begin while data files are missing; names all of them.

    Raises:
        DataMissing: they are in the catalog, but not on this machine.
    """
    if missing := absent(names):
        problem = "this data file is not" if len(missing) == 1 else "these data files are not"
        fix = f"run: greenbatch data fetch {' '.join(missing)}"
        raise DataMissing(f"{problem} on this machine", file=", ".join(missing), fix=fix)


def find(name: str) -> Path:
    """Path of a data file on this machine.

    Args:
        name: path under the data folder, e.g. ``swf/lublin_256.swf.gz``.

    Raises:
        DataMissing: the file is in the catalog, but not on this machine.
        InputError: no such data file exists.
    """
    parts = PurePosixPath(name).parts
    if name and "\0" not in name and ".." not in parts and not PurePosixPath(name).is_absolute():
        for folder in folders():
            if (folder / name).is_file():
                return folder / name
    if name not in catalog():
        raise _unknown(name)
    looked = " and ".join(str(folder) for folder in folders())
    raise DataMissing(
        "this data file is not on this machine", file=name, fix=f"run: greenbatch data fetch {name}; looked in {looked}"
    )


def fetch(name: str, *, force: bool = False) -> Path:
    """Download a known data file into the user's cache, check it, and return its path.

    Args:
        name: path under the data folder.
        force: download even if the file already exists.

    Raises:
        InputError: the name is unknown, the file has no public URL, the download failed, or the checksum differs.
    """
    if name not in catalog():
        raise _unknown(name)
    if not force:
        try:
            return find(name)
        except DataMissing:
            pass
    entry = catalog()[name]
    if entry.made_from is not None:
        content = _derive(entry, fetch(entry.made_from, force=force))
    elif entry.urls:
        content = _download(entry)
    else:
        fix = f"get it from {entry.page} and save it under GREENBATCH_DATA as {name}"
        raise InputError("this file has no public URL", file=name, fix=fix)
    return _store(cache_folder() / name, content)


def sha256(path: Path) -> str:
    """SHA-256 of a file, as hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _unknown(name: str) -> InputError:
    fix = did_you_mean(name, catalog(), then="see: greenbatch data list")
    return InputError(f"there is no data file {name!r}", field="data", fix=fix)


def _download(entry: Dataset) -> bytes:
    """Download the file from the first origin that has it; return it gzipped, as it is stored."""
    import pooch

    pooch.get_logger().setLevel("ERROR")
    failures = []
    for url in entry.urls:
        with tempfile.TemporaryDirectory(prefix="greenbatch-") as folder:
            try:
                path = pooch.retrieve(url, known_hash=f"sha256:{entry.sha256}", fname="download", path=folder)
            # requests raises OSErrors; pooch raises ValueError for a wrong checksum
            except (OSError, ValueError) as error:
                failures.append(f"{url}: {_short(error)}")
                continue
            content = Path(path).read_bytes()
        return content if url.endswith(".gz") else gzip.compress(content, mtime=0)
    raise InputError("download failed: " + "; ".join(failures), file=entry.name, fix="try again later")


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if "hash" in text:
        return "the downloaded file has a different checksum than expected"
    return text if len(text) <= 120 else text[:117] + "..."


def _derive(entry: Dataset, source: Path) -> bytes:
    """Rebuild the SDSC-SP2 jobs from a simulated schedule: remove waits and the simulator's fields, and sort.

    Keeps job id, submit time, run time, processors (allocated and requested), requested time and user.
    """
    kept = {0, 1, 3, 4, 7, 8, 11}
    with gzip.open(source, "rt", encoding="ascii") as stream:
        rows = [line.split() for line in stream if not line.startswith(";")]
    rows = [row for row in rows if int(row[0]) > entry.drop_ids_to]
    rows.sort(key=lambda row: (int(row[1]), int(row[0])))
    lines = (" ".join(value if i in kept else "-1" for i, value in enumerate(row)) for row in rows)
    content = (entry.header + "\n".join(lines) + "\n").encode("ascii")
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise InputError("the derived file has a different checksum", file=entry.name, field=entry.made_from)
    return gzip.compress(content, mtime=0)


def _store(path: Path, content: bytes) -> Path:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)
    return path
