"""Functions for other processes, which import nothing else to run them."""

from __future__ import annotations

import os

from greenbatch.errors import InputError


def square(number: int) -> tuple[int, int]:
    if number < 0:
        raise InputError(f"is {number}", field="number", file="numbers.txt", line=3, fix="give 0 or more")
    return number**2, os.getpid()


def killed(main: int, number: int) -> int:
    if os.getpid() != main:
        os.kill(os.getpid(), 9)
    return number**2
