"""Safetensors files (never pickle), read against their checksum."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.files import LARGEST_BYTES, stored_bytes

Tensors = dict[str, NDArray[Any]]
"""Name -> array."""


def read_tensors(file: Path, sha256: str, *, fix: str) -> Tensors:
    """Read a safetensors file and verify its checksum.

    Raises:
        InputError: the file is missing, or its content has changed.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = stored_bytes(file, largest=LARGEST_BYTES)
    except FileNotFoundError:
        raise InputError("is missing", file=file, fix=fix) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file, fix=fix) from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise InputError("is damaged: its content is not what was written", file=file, fix=fix)
    try:
        return dict(load(content))
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise InputError(f"is damaged: {error}", file=file, fix=fix) from None
