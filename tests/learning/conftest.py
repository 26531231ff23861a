"""Torch on one thread: the tests' networks are so small that a second one only waits, and bytes do not depend on it."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("torch") is not None:
    import torch

    torch.set_num_threads(1)
