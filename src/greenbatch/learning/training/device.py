"""Device, threads and precision mode of a training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from greenbatch.errors import InputError

LARGEST_ERROR = 4e-6
"""Maximum relative error of a matrix product for a precision mode to count as float32; bfloat16 has about 1e-3."""


def device_of(name: str) -> torch.device:
    """The device of a name: ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        InputError: this machine has no such device, or torch was built without support for it.
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
    """Configure torch for a training and restore its settings afterwards.

    On a CPU, results are then byte-identical for the same number of threads; the faster kernels of precision mode
    ``medium`` are used only if a test at startup shows that they still compute in float32.
    """
    switch: Any = torch.utils.deterministic  # a module whose attribute is a property
    before = (torch.get_num_threads(), torch.get_float32_matmul_precision())
    deterministic, fill = torch.get_deterministic_debug_mode(), switch.fill_uninitialized_memory
    torch.set_num_threads(threads)
    if device.type == "cpu":
        torch.set_float32_matmul_precision("medium" if _is_exact("medium") else "highest")
        torch.set_deterministic_debug_mode("error")  # its twin `use_deterministic_algorithms` loads torch's compiler
        switch.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.set_float32_matmul_precision(before[1])
        torch.set_deterministic_debug_mode(deterministic)
        switch.fill_uninitialized_memory = fill


@cache
def _is_exact(mode: str) -> bool:
    """Whether matrix products in a precision mode have float32 accuracy, on shapes used in training."""
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
