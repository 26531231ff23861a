"""The real data files greenbatch knows: where they lie on this machine, and how to fetch them when the user asks.

Files are named as under the data folder, e.g. ``swf/lublin_256.swf.gz``; ``datasets.toml`` beside this module says
what each is, where it comes from and which checksum it has. Nothing here touches the network except `fetch`.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from greenbatch.errors import DataMissing, InputError, did_you_mean
from greenbatch.storage import replace_file

_CATALOG = Path(__file__).with_name("datasets.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One known data file."""

    name: str
    """Path under the data folder."""
    what: str
    terms: str
    """License or wish of the provider, as far as one is stated."""
    sha256: str
    """Checksum of the file at its origin: of a ``.gz`` as it is, otherwise of the uncompressed content."""
    urls: tuple[str, ...] = ()
    """Public origins, tried in order."""
    page: str | None = None
    """Where a person can look for it, if no address of the file itself is known."""
    made_from: str | None = None
    """The known file this one is derived from."""
    header: str = ""
    """Header of a derived file."""
    drop_ids_to: int = 0
    """Job ids up to this one are left out of a derived file."""

    @property
    def origin(self) -> str:
        """Where it comes from, for people."""
        return self.urls[0] if self.urls else (self.page or f"derived from {self.made_from}")


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
    """The user's own data folder: ``$XDG_CACHE_HOME/greenbatch/data``, by default under ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "greenbatch" / "data"


def folders() -> tuple[Path, ...]:
    """Where data files are looked for, first match wins: ``GREENBATCH_DATA`` if set, then the user's cache."""
    own = os.environ.get("GREENBATCH_DATA")
    return (*((Path(own),) if own else ()), cache_folder())


def find(name: str) -> Path:
    """Path of a data file on this machine.

    Args:
        name: path under the data folder, e.g. ``swf/lublin_256.swf.gz``.

    Raises:
        DataMissing: the file is known, but not on this machine.
        InputError: there is no such data file.
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
        force: download even if the file is already there.

    Raises:
        InputError: the name is unknown, no public address is known, the download failed or the checksum differs.
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
        fix = f"look in {entry.page} and put it under GREENBATCH_DATA as {name}"
        raise InputError("no public address of this file itself is known", file=name, fix=fix)
    return _store(cache_folder() / name, content)


def sha256(path: Path) -> str:
    """SHA-256 of a file, as hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _unknown(name: str) -> InputError:
    fix = did_you_mean(name, catalog(), then="see: greenbatch data list")
    return InputError(f"there is no data file {name!r}", field="data", fix=fix)


def _download(entry: Dataset) -> bytes:
    """The file from the first origin that has it, as it is stored: gzip."""
    import pooch

    pooch.get_logger().setLevel("ERROR")
    failures = []
    for url in entry.urls:
        with tempfile.TemporaryDirectory(prefix="greenbatch-") as folder:
            try:
                path = pooch.retrieve(url, known_hash=f"sha256:{entry.sha256}", fname="download", path=folder)
            # requests' errors are OSErrors; pooch reports a wrong checksum as a ValueError
            except (OSError, ValueError) as error:
                failures.append(f"{url}: {_short(error)}")
                continue
            content = Path(path).read_bytes()
        return content if url.endswith(".gz") else gzip.compress(content, mtime=0)
    raise InputError(
        "cannot be fetched: " + "; ".join(failures), file=entry.name, fix="try again later, or see its page"
    )


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if "hash" in text:
        return "what came has another checksum than expected"
    return text if len(text) <= 120 else text[:117] + "..."


def _derive(entry: Dataset, source: Path) -> bytes:
    """Rebuild the SDSC-SP2 jobs from a simulated schedule of them: waits and all simulator's fields removed, sorted.

    Kept are job id, submit, run time, processors (allocated and requested), requested time and user.
    """
    kept = {0, 1, 3, 4, 7, 8, 11}
    with gzip.open(source, "rt", encoding="ascii") as stream:
        rows = [line.split() for line in stream if not line.startswith(";")]
    rows = [row for row in rows if int(row[0]) > entry.drop_ids_to]
    rows.sort(key=lambda row: (int(row[1]), int(row[0])))
    lines = (" ".join(value if i in kept else "-1" for i, value in enumerate(row)) for row in rows)
    content = (entry.header + "\n".join(lines) + "\n").encode("ascii")
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise InputError("deriving it gave another checksum than expected", file=entry.name, field=entry.made_from)
    return gzip.compress(content, mtime=0)


def _store(path: Path, content: bytes) -> Path:
    """Write a file so that it is there completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)
    return path
