"""The scenario file as the origin of values: the base of relative paths, and the file that errors name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from greenbatch import data_catalog
from greenbatch.errors import DataMissing, InputError
from greenbatch.scenarios.toml import Place, line_of


@dataclass(frozen=True, slots=True)
class Origin:
    """The scenario file: the base of relative paths, and the file that errors name."""

    file: Path
    lines: Mapping[Place, int]
    outside: Mapping[str, Path] = field(default_factory=dict)
    """Section -> base of the relative path to its file, if that is not given in the scenario file."""

    @contextmanager
    def blame(self, *place: str | int) -> Iterator[None]:
        """Add the scenario file, a table in it and the table's line to errors that name no file (context manager)."""
        try:
            yield
        except InputError as error:
            if error.file is not None or type(error) is not InputError:
                raise
            table = ".".join(str(step) for step in place if isinstance(step, str))
            inside = (error.field or "").rpartition(".")[2]
            field = f"{table}.{inside}".strip(".") if (inside,) != place[:1] else table
            line = line_of((*place, inside), self.lines)
            raise InputError(error.problem, file=self.file, line=line, field=field or None, fix=error.fix) from None

    def locate(self, file: str | None, dataset: str | None, section: str = "") -> Path:
        """Path of a file that the scenario refers to, by path or as a known data file.

        Raises:
            InputError: the file does not exist.
        """
        if dataset is not None:
            return data_catalog.find(dataset)
        path = self.outside.get(section, self.file.parent) / Path(file or "").expanduser()
        try:
            if path.exists():
                return path
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=path, fix="check the path") from None
        fix = "check the path" if section in self.outside else "check the path; it is relative to the scenario file"
        raise DataMissing("no such file", file=path, fix=fix)
