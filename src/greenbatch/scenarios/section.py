"""Base class and value types shared by all tables of a scenario file."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from textwrap import dedent
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import GenerateJsonSchema

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

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    @classmethod
    def model_json_schema(cls, **options: Any) -> dict[str, Any]:  # type: ignore[override]  # the same by keyword
        """The JSON schema of the table; the text below each key in the source is its description."""
        return super().model_json_schema(**{"schema_generator": _Described} | options)


class _Described(GenerateJsonSchema):
    """Reads the source for descriptions, as pydantic does with ``use_attribute_docstrings``, but only for a schema.

    Every command builds the tables; reading the source for each of them takes longer than all else there.
    """

    def model_schema(self, schema: Any) -> dict[str, Any]:
        found = super().model_schema(schema)
        for made in reversed(schema["cls"].__mro__):
            for key, text in _descriptions(made) if made.__module__.startswith("greenbatch.") else ():
                if key in found["properties"]:
                    found["properties"][key].setdefault("description", text)
        return found


def _descriptions(made: type) -> list[tuple[str, str]]:
    """Each key of a class with the string below it; none for a class without source."""
    try:
        body = ast.parse(dedent(inspect.getsource(made))).body[0].body  # type: ignore[attr-defined]
    except (OSError, TypeError):
        return []
    return [
        (key.target.id, inspect.cleandoc(text.value.value))
        for key, text in pairwise(body)
        if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name)
        and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    ]  # fmt: skip


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
