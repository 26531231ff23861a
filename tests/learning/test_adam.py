"""Adam by its function: torch's own class, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from greenbatch.learning.adam import Adam


def steps(optimizer: Adam | torch.optim.Adam, layers: torch.nn.Module, seeds: range) -> list[NDArray[np.float32]]:
    """Some steps towards random targets, every other one without a gradient for the first layer's bias."""
    for seed in seeds:
        inputs, targets = torch.randn(2, 8, 3, generator=torch.Generator().manual_seed(seed))
        optimizer.zero_grad()
        (layers(inputs) - targets).square().mean().backward()
        if seed % 2:
            next(iter(layers.parameters())).grad = None
        optimizer.step()
    return [parameter.detach().numpy().copy() for parameter in layers.parameters()]


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))


@pytest.mark.parametrize("fused", [True, False])
def test_it_takes_the_steps_of_torch_also_after_a_restart(fused: bool) -> None:
    ours, theirs = network(), network()
    optimizer = Adam(ours.parameters(), 0.01, 1e-6, (0.5, 0.99), fused=fused)
    other = torch.optim.Adam(theirs.parameters(), lr=0.01, eps=1e-6, betas=(0.5, 0.99), fused=fused)
    for one, two in zip(steps(optimizer, ours, range(1, 6)), steps(other, theirs, range(1, 6)), strict=True):
        np.testing.assert_array_equal(one, two)
    states = other.state_dict()["state"]
    assert {k: {name: value.tolist() for name, value in each.items()} for k, each in optimizer.moments.items()} == {
        k: {name: value.tolist() for name, value in each.items()} for k, each in states.items()
    }
    again = Adam(ours.parameters(), 0.02, 1e-6, (0.5, 0.99), fused=fused)
    again.restore(optimizer.moments)
    other.param_groups[0]["lr"] = 0.02
    for one, two in zip(steps(again, ours, range(6, 9)), steps(other, theirs, range(6, 9)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_moments_of_other_parameters_are_refused() -> None:
    layers = network()
    optimizer = Adam(layers.parameters(), 0.01)
    steps(optimizer, layers, range(1))
    for wrong in (torch.nn.Linear(3, 5), torch.nn.Linear(5, 5)):
        with pytest.raises(ValueError, match="parameter"):
            Adam(wrong.parameters(), 0.01).restore(optimizer.moments)
