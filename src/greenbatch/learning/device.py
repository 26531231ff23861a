"""The machine that trains: its device, threads and precision mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from greenbatch.errors import InputError

LARGEST_ERROR = 4e-6
"""Relative error of a matrix product up to which a precision mode counts as float32; bfloat16 is near 1e-3."""


def device_of(name: str) -> torch.device:
    """The device that a name means: ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        InputError: there is no such device on this machine, or torch was built without it.
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"is {name!r}", field="--device", fix="give cpu, cuda or cuda:N") from None
    if device.type not in {"cpu", "cuda"}:
        raise InputError(f"is {name!r}", field="--device", fix="give cpu, cuda or cuda:N")
    if device.type == "cuda":
        if not torch.cuda.is_available():
            problem = "is cuda, but torch finds no CUDA device here"
            raise InputError(problem, field="--device", fix="leave it out to train on the CPU")
        if (device.index or 0) >= torch.cuda.device_count():
            problem = f"is {name}, but there are {torch.cuda.device_count()} CUDA devices"
            raise InputError(problem, field="--device", fix="number them from 0")
    return device


@contextmanager
def prepared(threads: int, device: torch.device) -> Iterator[None]:
    """Set up torch for a training, and put its settings back afterwards.

    On a CPU results are then the same bytes for the same number of threads; the faster kernels of precision mode
    ``medium`` are taken where a test at start-up shows that they still compute in float32.
    """
    switch: Any = torch.utils.deterministic  # a module whose attribute is a property
    before = (torch.get_num_threads(), torch.get_float32_matmul_precision())
    deterministic, fill = torch.are_deterministic_algorithms_enabled(), switch.fill_uninitialized_memory
    torch.set_num_threads(threads)
    if device.type == "cpu":
        torch.set_float32_matmul_precision("medium" if _is_exact("medium") else "highest")
        torch.use_deterministic_algorithms(True)
        switch.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.set_float32_matmul_precision(before[1])
        torch.use_deterministic_algorithms(deterministic)
        switch.fill_uninitialized_memory = fill


def _is_exact(mode: str) -> bool:
    """Whether matrix products in a precision mode are float32 to rounding, on shapes as in training."""
    generator = torch.Generator().manual_seed(0)
    previous = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision(mode)
        for rows, inner, columns in ((4096, 8, 64), (4096, 64, 128), (1000, 128, 64), (256, 2760, 64)):
            left = torch.randn(rows, inner, generator=generator)
            right = torch.randn(inner, columns, generator=generator)
            exact = left.double() @ right.double()
            error = ((left @ right).double() - exact).abs().max() / exact.abs().max()
            if not float(error) < LARGEST_ERROR:
                return False
    finally:
        torch.set_float32_matmul_precision(previous)
    return True
