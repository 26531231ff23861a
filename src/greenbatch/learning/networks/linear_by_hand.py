"""Linear layers with ReLU over many rows, with hand-written forward and backward passes for CPUs.

oneDNN compiles a kernel for every new matrix shape (about 3 ms), so row counts are padded to few sizes; unused
gradients of inputs, copies, and ReLUs that are not in place are avoided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

BLOCK = 4096
"""Rows per block that passes through all layers: smaller blocks stay in faster memory, larger ones need fewer calls."""
_relu_backward = torch.ops.aten.threshold_backward.grad_input


class Layer:
    """x W' + b, optionally with a ReLU, and its gradients, which are summed over several uses."""

    def __init__(self, weight: Tensor, bias: Tensor, *, relu: bool = True) -> None:
        self.weight, self.bias, self.relu = weight, bias, relu
        self.gradients: dict[str, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        """(P, in) -> (P, out)."""
        result = torch.addmm(self.bias, x, self.weight.T)
        return result.relu_() if self.relu else result

    def add(self, x: Tensor, gradient: Tensor) -> None:
        """Accumulate the gradients of weight and bias."""
        if not self.gradients:
            self.gradients = {"weight": torch.mm(gradient.T, x), "bias": gradient.sum(0)}
        else:
            self.gradients["weight"].addmm_(gradient.T, x)
            self.gradients["bias"] += gradient.sum(0)


class Chain:
    """A block of rows passed through layers in turn; activations are kept for the backward pass."""

    def __init__(self, x: Tensor, layers: tuple[Layer, ...]) -> None:
        self.layers, self.outputs = layers, [x]
        for layer in layers:
            self.outputs.append(layer.forward(self.outputs[-1]))

    def backward(self, gradient: Tensor, *, to_input: bool = False, onto: Tensor | None = None) -> Tensor:
        """Propagate the gradient of the last output (overwritten); ``to_input``: to the input, added to ``onto``."""
        for number in range(len(self.layers) - 1, -1, -1):
            layer, x = self.layers[number], self.outputs[number]
            if layer.relu:
                _relu_backward(gradient, self.outputs[number + 1], 0, grad_input=gradient)
            layer.add(x, gradient)
            if number:
                gradient = torch.mm(gradient, layer.weight)
            elif to_input:
                gradient = torch.mm(gradient, layer.weight) if onto is None else onto.addmm_(gradient, layer.weight)
        return gradient


class Rows:
    """A table's rows passed through a trunk and one or two heads, in blocks that fit into a core's cache.

    Args:
        x: (P, k).
        trunk: layers that all heads share.
        heads: layers of each head.
    """

    def __init__(self, x: Tensor, trunk: tuple[Layer, ...], *heads: tuple[Layer, ...]) -> None:
        self.blocks = [
            (chain := Chain(block, trunk), [Chain(chain.outputs[-1], head) for head in heads])
            for block in torch.split(x, BLOCK)
        ]
        self.results = [
            torch.cat([chains[number].outputs[-1] for _, chains in self.blocks]) for number in range(len(heads))
        ]

    def backward(self, gradients: list[Tensor | None]) -> None:
        """Propagate the gradients of the heads' results (overwritten); None for an unused head."""
        first = 0
        for trunk, heads in self.blocks:
            here = slice(first, first := first + trunk.outputs[0].shape[0])
            onto = None
            for head, gradient in zip(heads, gradients, strict=True):
                if gradient is not None:
                    onto = head.backward(gradient[here], to_input=True, onto=onto)
            if onto is not None:
                trunk.backward(onto)


class _Function(torch.autograd.Function):
    """A ``Chain`` as an autograd function."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, last: bool, *parameters: Tensor) -> Tensor:
        """(P, in) -> (P, out)."""
        layers = [
            Layer(weight.detach(), bias.detach(), relu=last or number + 2 < len(parameters))
            for number, weight, bias in zip(
                range(0, len(parameters), 2), parameters[::2], parameters[1::2], strict=True
            )
        ]
        ctx.chain, ctx.rows = Chain(filled(x.detach()), tuple(layers)), x.shape[0]
        result: Tensor = ctx.chain.outputs[-1][: ctx.rows]
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the rows, if required, and of the parameters."""
        to_rows: bool = ctx.needs_input_grad[0]
        gradient = gradients[0].new_empty(ctx.chain.outputs[-1].shape)
        gradient[: ctx.rows] = gradients[0]
        gradient[ctx.rows :] = 0.0
        rows = ctx.chain.backward(gradient, to_input=to_rows)
        parameters = [layer.gradients[part] for layer in ctx.chain.layers for part in ("weight", "bias")]
        return (rows[: ctx.rows] if to_rows else None, None, *parameters)


def through(x: Tensor, parameters: Sequence[Tensor], *, last: bool) -> Tensor:
    """Rows (P, in) passed through linear layers with ReLU in between.

    Args:
        x: float32 on a CPU.
        parameters: weight and bias of each layer in turn.
        last: whether the last layer has a ReLU.
    """
    result: Tensor = _Function.apply(x, last, *parameters)  # type: ignore[no-untyped-call]  # torch leaves apply untyped
    return result


def roomy(rows: int) -> int:
    """The next larger of a few sizes, because libraries compile a kernel for every new matrix shape (milliseconds)."""
    step = max(64, min(256, 1 << max(rows.bit_length() - 5, 0)))
    return -(-rows // step) * step


def filled(rows: Tensor) -> Tensor:
    """Rows padded with zeros to a roomy size; unchanged if they already have one."""
    count = rows.shape[0]
    if roomy(count) == count:
        return rows
    result = rows.new_zeros(roomy(count), *rows.shape[1:])
    result[:count] = rows
    return result
