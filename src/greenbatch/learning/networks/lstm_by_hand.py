"""An LSTM over packed sequences with a hand-written backward pass.

Autograd's pass through ``nn.LSTM`` on packed sequences fills a table of all decisions with zeros at every step, so its
time grows with the square of the steps: 264 steps of 100 simulations take ten times as long. Here the gradients of the
weights are one matrix product each, after all steps.

Rows are step by step: within a step, those of longer sequences first, so that the ones that go on are the first rows.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn


def through_lstm(
    lstm: nn.LSTM, rows: Tensor, sizes: list[int], hidden: Tensor, cell: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs of all rows, and output and cell of every sequence after its last one, as `nn.LSTM` has them.

    Args:
        lstm: one layer, whose parameters are used.
        rows: (A, in), step by step.
        sizes: rows of each step, descending.
        hidden: (S, units), output before the first step of each sequence, longer ones first.
        cell: (S, units), the same of the cell.

    Returns:
        (A, units), (S, units) and (S, units).
    """
    read, recall, *biases = lstm.parameters()
    found: tuple[Tensor, Tensor, Tensor] = _Steps.apply(rows, hidden, cell, read, recall, biases[0] + biases[1], sizes)  # type: ignore[no-untyped-call]  # torch leaves apply untyped
    return found


class _Steps(torch.autograd.Function):
    """Gates are in the order of torch: input, forget, cell, output."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, hidden: Tensor, cell: Tensor, read: Tensor, recall: Tensor, bias: Tensor,
        sizes: list[int],
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """One matrix product over all rows for what is read, then a small one per step for what is recalled."""
        units = recall.shape[1]
        gates = torch.addmm(bias, rows, read.T)
        before, cells_before = rows.new_empty(len(rows), units), rows.new_empty(len(rows), units)
        outputs, hidden, cell = rows.new_empty(len(rows), units), hidden.clone(), cell.clone()
        for begin, end in pairwise(accumulate(sizes, initial=0)):
            active, step = slice(0, end - begin), slice(begin, end)
            before[step], cells_before[step] = hidden[active], cell[active]
            now = gates[step].addmm_(before[step], recall.T)
            now[:, : 2 * units].sigmoid_()
            now[:, 2 * units : 3 * units].tanh_()
            now[:, 3 * units :].sigmoid_()
            enter, keep, new, leave = now.chunk(4, 1)
            cell[active] = torch.addcmul(enter * new, keep, cells_before[step])
            outputs[step] = hidden[active] = leave * cell[active].tanh()
        ctx.save_for_backward(rows, gates, before, cells_before, read, recall)
        ctx.sizes = sizes
        return outputs, hidden, cell

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """From the last step to the first; gradients of the gates replace the gates."""
        rows, gates, before, cells_before, read, recall = ctx.saved_tensors
        gates, (outputs, hidden, cell) = gates.clone(), gradients
        hidden, cell = hidden.clone(), cell.clone()
        edges = list(accumulate(ctx.sizes, initial=0))
        for begin, end in zip(reversed(edges[:-1]), reversed(edges[1:]), strict=True):
            active, step = slice(0, end - begin), slice(begin, end)
            enter, keep, new, leave = now = gates[step].chunk(4, 1)
            bent = torch.addcmul(enter * new, keep, cells_before[step]).tanh_()
            of_output = hidden[active] + outputs[step]
            of_cell = torch.addcmul(cell[active], of_output * leave, 1.0 - bent * bent)
            cell[active] = of_cell * keep
            of_gates = (
                of_cell * new * enter * (1.0 - enter), of_cell * cells_before[step] * keep * (1.0 - keep),
                of_cell * enter * (1.0 - new * new), of_output * bent * leave * (1.0 - leave),
            )  # fmt: skip
            for gate, gradient in zip(now, of_gates, strict=True):
                gate.copy_(gradient)
            hidden[active] = gates[step] @ recall
        of_rows = gates @ read if ctx.needs_input_grad[0] else None
        return of_rows, hidden, cell, gates.T @ rows, gates.T @ before, gates.sum(0), None
