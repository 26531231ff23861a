"""Values of actions: one of several critics, normalization of their targets, and targets that lag behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor, nn

COMBINED: Mapping[str, Callable[[Tensor], Tensor]] = {
    "min": lambda values: values.amin(0),
    "mean": lambda values: values.mean(0),
}
"""How several critics, (k, A, n), become one, (A, n)."""

LOWEST, HIGHEST = 1e-4, 1e6
"""Range of the standard deviation of PopArt."""


class PopArt(nn.Module):
    """Running mean and deviation of the targets; critics learn (target - mean) / deviation.

    Whenever the statistics change, the critics' last layers change such that deviation x output + mean remains the
    same (van Hasselt et al. 2016, Algorithm 1). The rate is corrected for the start, as in Adam: the first batch sets
    the statistics, without preserving outputs that nothing was learned for yet.
    """

    mean: Tensor
    square: Tensor
    updates: Tensor

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.register_buffer("mean", torch.zeros(1, dtype=torch.float64))
        self.register_buffer("square", torch.ones(1, dtype=torch.float64))
        self.register_buffer("updates", torch.zeros(1, dtype=torch.float64))

    @property
    def deviation(self) -> Tensor:
        """Standard deviation of the targets, (1,) float64."""
        return (self.square - self.mean.square()).clamp(min=0.0).sqrt().clamp(LOWEST, HIGHEST)

    def normalized(self, targets: Tensor) -> Tensor:
        """Targets as critics learn them."""
        return ((targets - self.mean) / self.deviation).to(targets.dtype)

    def restored(self, values: Tensor) -> Tensor:
        """Outputs of the critics in the unit of the rewards."""
        return (values * self.deviation + self.mean).to(values.dtype)

    @torch.no_grad()
    def update(self, targets: Tensor, last: Iterable[nn.Linear]) -> None:
        """Follow the targets (M,), preserving what the layers ``last`` of critics and targets say."""
        mean, deviation = self.mean.clone(), self.deviation
        self.updates += 1
        rate = self.rate / (1.0 - (1.0 - self.rate) ** self.updates)
        exact = targets.double()
        self.mean += rate * (exact.mean() - self.mean)
        self.square += rate * (exact.square().mean() - self.square)
        if self.updates == 1:
            return
        now = self.deviation
        factor, shift = (deviation / now).float(), ((mean - self.mean) / now).float()
        for layer in last:
            layer.weight.mul_(factor)
            layer.bias.mul_(factor).add_(shift)


@torch.no_grad()
def follow(targets: nn.Module, source: nn.Module, tau: float) -> None:
    """Move the parameters of targets towards those of their source: target + tau (source - target)."""
    pairs = list(zip(targets.parameters(), source.parameters(), strict=True))
    if pairs:
        ours, theirs = zip(*pairs, strict=True)
        torch._foreach_lerp_(ours, theirs, tau)  # as torch's own optimizers do
