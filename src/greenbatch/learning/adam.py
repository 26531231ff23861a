"""Adam by torch's function for it: torch's class first loads torch's compiler, three seconds of every training."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam

MOMENTS = ("exp_avg", "exp_avg_sq", "step")
"""What is kept of each parameter, by torch's names."""


class Adam:
    """The optimizer `torch.optim.Adam`, bit by bit, without its weight decay and variants."""

    def __init__(
        self, parameters: Iterable[torch.nn.Parameter], rate: float, epsilon: float = 1e-8,
        betas: tuple[float, float] = (0.9, 0.999), *, fused: bool = True,
    ) -> None:  # fmt: skip
        """Prepare the first step.

        Args:
            parameters: what is learned.
            rate: learning rate, may be changed between steps.
            epsilon: is added to the root of the second moment.
            betas: how much of the first and of the second moment is kept at each step.
            fused: all of a step in one kernel, which rounds differently.
        """
        self.parameters = list(parameters)
        self.rate, self.epsilon, self.betas, self.fused = rate, epsilon, betas, fused
        self.moments: dict[int, dict[str, Tensor]] = {}
        """Number of a parameter -> `MOMENTS`; empty before its first gradient."""

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Follow the gradients; a parameter without one stays as it is."""
        moved = {k: parameter.grad for k, parameter in enumerate(self.parameters) if parameter.grad is not None}
        for k in moved.keys() - self.moments.keys():
            self._begin(k)
        first, second, steps = ([self.moments[k][name] for k in moved] for name in MOMENTS)
        adam(
            [self.parameters[k] for k in moved], [*moved.values()], first, second, [], steps,
            fused=self.fused or None, amsgrad=False, beta1=self.betas[0], beta2=self.betas[1], lr=self.rate,
            weight_decay=0.0, eps=self.epsilon, maximize=False,
        )  # fmt: skip

    def clip(self, limit: float | None) -> Tensor:
        """Scale the gradients so that their joint norm is at most ``limit``; return the norm before."""
        return torch.nn.utils.clip_grad_norm_(self.parameters, math.inf if limit is None else limit)

    def restore(self, moments: dict[int, dict[str, Tensor]]) -> None:
        """Continue with the moments of a checkpoint.

        Raises:
            ValueError: they are those of other parameters.
        """
        for k, each in moments.items():
            fits = k < len(self.parameters) and set(each) == set(MOMENTS)
            if not fits or any(each[name].shape != self.parameters[k].shape for name in MOMENTS[:2]):
                raise ValueError(f"parameter {k} has other moments")
        self.moments = {
            k: {name: value.to(self._device(k, name)) for name, value in each.items()} for k, each in moments.items()
        }

    def _begin(self, k: int) -> None:
        made = {name: torch.zeros_like(self.parameters[k]) for name in MOMENTS[:2]}
        self.moments[k] = {**made, "step": torch.zeros((), device=self._device(k, "step"))}

    def _device(self, k: int, name: str) -> torch.device:
        """Where a moment lies: steps are counted on the CPU unless one kernel does all."""
        return self.parameters[k].device if self.fused or name != "step" else torch.device("cpu")
