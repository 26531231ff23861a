"""Devices, threads and precision: chosen, refused in one line, and put back afterwards."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from greenbatch.errors import InputError
from greenbatch.learning.runs.plan import threads_of
from greenbatch.learning.training.device import LARGEST_ERROR, device_of, prepared

CPU = torch.device("cpu")


def test_threads():
    assert threads_of(3) == 3
    assert threads_of(0) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("name", ["", "gpu", "cuda:x", "meta", "mps", "cuda:99"])
def test_devices_that_are_not_there(name: str):
    with pytest.raises(InputError, match=r"^--device: is .*\(.+\)$") as caught:
        device_of(name)
    assert "\n" not in str(caught.value)


def test_the_processor_is_always_there():
    assert device_of("cpu") == CPU


@pytest.mark.parametrize(("given", "expected"), [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7")])
def test_threads_do_not_spin_for_long_unless_the_user_wants_it(given, expected):
    code = "import os, sys, greenbatch.learning; print(os.environ['GOMP_SPINCOUNT'], 'torch' in sys.modules)"
    kept = {key: value for key, value in os.environ.items() if key != "GOMP_SPINCOUNT"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**kept, **given}, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{expected} False\n"


def test_settings_are_put_back():
    before = (
        torch.get_num_threads(), torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,
    )  # fmt: skip

    def fail() -> None:
        with prepared(1, CPU):
            assert torch.get_num_threads() == 1
            assert torch.are_deterministic_algorithms_enabled()
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert before == (
        torch.get_num_threads(), torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,
    )  # fmt: skip


def test_products_are_float32_whatever_the_precision_mode():
    random = torch.Generator().manual_seed(5)
    left, right = torch.randn(777, 333, generator=random), torch.randn(333, 55, generator=random)
    exact = left.double() @ right.double()
    with prepared(1, CPU):
        error = ((left @ right).double() - exact).abs().max() / exact.abs().max()
    assert error < LARGEST_ERROR
    coarse = (left.bfloat16() @ right.bfloat16()).double()
    assert (coarse - exact).abs().max() / exact.abs().max() > 100 * LARGEST_ERROR
