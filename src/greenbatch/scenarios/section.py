"""Base class and value types shared by all tables of a scenario file."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from greenbatch.errors import CONTROL

Text = Annotated[str, Field(min_length=1, max_length=4096, pattern=rf"^[^{CONTROL}]*$")]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Natural = Annotated[int, Field(ge=0, le=1_000_000_000)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[float, Field(gt=0, le=1e12)]
NotNegative = Annotated[float, Field(ge=0, le=1e12)]
Texts = Annotated[tuple[Text, ...], Field(strict=False, min_length=1)]
Naturals = Annotated[tuple[Natural, ...], Field(strict=False, min_length=1)]
Numbers = Annotated[tuple[float, ...], Field(strict=False)]


class Section(BaseModel):
    """A table of a scenario file; refuses unknown keys, wrong types, NaN and infinity."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def need_one_of(section: Section, *names: str) -> None:
    """Check that a table has exactly one of the given keys.

    Raises:
        ValueError: it has none or several; pydantic adds the place.
    """
    given = [name for name in names if getattr(section, name) is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise ValueError(f"found {found}; give exactly one of {', '.join(names)}")


class OfFile(Section):
    """A table that names a file."""

    file: Text | None = None
    """A path, relative to the scenario file."""
    dataset: Text | None = None
    """A file by its name in ``greenbatch data list``."""

    @model_validator(mode="after")
    def _file(self) -> OfFile:
        need_one_of(self, "file", "dataset")
        return self
