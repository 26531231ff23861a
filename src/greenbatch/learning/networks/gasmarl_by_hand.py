"""GAS-MARL's row networks with hand-written forward and backward passes: equal to `gasmarl`, 1.5 times as fast.

``python benchmarks/by_hand.py`` measures the gain over autograd on padded rows and over plain torch.

What makes an update slow on a CPU, and the remedies:

* oneDNN compiles a kernel for every new matrix shape (about 3 ms): row counts are padded to few sizes (``roomy``);
* encoded rows feed two heads: their first layers are one matrix product, and gradients are summed in one buffer;
* unused gradients of inputs, copies by ``cat`` and ``split``, and saved tensors are avoided;
* the flattened layer reads tables no wider than the longest queue of a group of decisions (`Cells`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from greenbatch.learning.networks.linear_by_hand import Layer, Rows, filled, roomy
from greenbatch.learning.networks.observations import Batch

_GROUP = 256
"""Decisions whose tables share a width."""
_LINEAR = ("score.2", "chosen")
"""Layers without a ReLU."""


class Cells(NamedTuple):
    """Positions of the packed rows of a group of decisions in its padded table (n, width)."""

    decisions: slice
    """Including the padding that follows them."""
    rows: slice
    width: int
    row: Tensor
    """int64 (roomy(n) * width,): packed row of every cell; the padding row's number if the cell is empty."""
    cell: Tensor
    """int64 (rows,): cell of every packed row."""


def cells(offsets: Tensor, owner: Tensor, slots: int) -> list[Cells]:
    """Tables of up to 256 decisions each, as wide as the longest one requires; none if there are no rows."""
    count, rows = offsets.shape[0] - 1, owner.shape[0]
    slot = torch.arange(rows) - offsets[owner]
    lengths = offsets[1:] - offsets[:-1]
    result = []
    for first in range(0, count, _GROUP):
        last = min(first + _GROUP, count)
        width = min(_width(int(lengths[first:last].max())), slots)
        here = slice(int(offsets[first]), int(offsets[last]))
        if here.start == here.stop:
            continue
        cell = (owner[here] - first) * width + slot[here]
        padded = roomy(last - first)
        row = torch.full((padded * width,), rows)
        row[cell] = torch.arange(here.start, here.stop)
        result.append(Cells(slice(first, first + padded), here, width, row, cell))
    return result


def _width(rows: int) -> int:
    """The next larger of a few table widths."""
    step = max(4, 1 << max(rows.bit_length() - 4, 0))
    return -(-rows // step) * step


class Padded(NamedTuple):
    """A batch's rows, padded to few sizes, and their positions; shared by actor and critic."""

    queue: Tensor
    running: Tensor
    supply: Tensor
    queue_rows: int
    """Number of valid rows; the row after them is the table's padding row. Likewise for running."""
    running_rows: int
    queue_cells: list[Cells]
    running_cells: list[Cells]
    supply_row: Tensor
    """int64 (roomy(A), f)."""
    decisions: int
    slots: tuple[int, int]
    """Rows of the padded queue and running tables."""


def pad(batch: Batch, empty_queue: Tensor, slots: tuple[int, int]) -> Padded:
    """Pad a batch's rows; ``slots`` are the padded tables' rows of queue and running."""
    return Padded(
        _with_room(batch.queue, empty_queue),
        _with_room(batch.running, None),
        _with_room(batch.supply, None),
        batch.queue.shape[0],
        batch.running.shape[0],
        cells(batch.queue_offsets, batch.queue_owner, slots[0]),
        cells(batch.running_offsets, batch.running_owner, slots[1]),
        filled(batch.supply_row),
        batch.supply_row.shape[0],
        slots,
    )


def _with_room(rows: Tensor, last: Tensor | None) -> Tensor:
    """Rows padded by at least one more row: ``last``, or zeros."""
    count = rows.shape[0]
    result = rows.new_zeros(roomy(count + 1), rows.shape[1])
    result[:count] = rows
    if last is not None:
        result[count] = last
    return result


class Pass:
    """Forward and backward pass of one network over padded rows.

    Args:
        padded: rows, shared by actor and critic.
        parameters: named as in the module; ``flat`` is the flattened layer.
    """

    def __init__(self, padded: Padded, parameters: dict[str, Any], flat: str) -> None:
        self.padded, self.flat = padded, flat
        self.parameters: dict[str, Tensor] = {name: value.detach() for name, value in parameters.items()}
        self.made: dict[str, Layer] = {}
        squeeze = self._layers("squeeze.0", "squeeze.1")
        heads = [self._layers("score.0", "score.1", "score.2")] if "score.0.weight" in parameters else []
        self.queue = Rows(padded.queue, self._layers("encode_queue.0", "encode_queue.1"), squeeze, *heads)

    def _layers(self, *names: str) -> tuple[Layer, ...]:
        for name in names:
            if name not in self.made:
                weight, bias = self.parameters[f"{name}.weight"], self.parameters[f"{name}.bias"]
                self.made[name] = Layer(weight, bias, relu=name not in _LINEAR)
        return tuple(self.made[name] for name in names)

    def scores(self) -> Tensor:
        """The job head: logits (Q,)."""
        return self.queue.results[1][: self.padded.queue_rows, 0]

    def hidden(self, chosen: Tensor | None) -> Tensor:
        """The flattened layer before its ReLU (A, 64); ``chosen``: raw rows (A, kq), None for the critic."""
        padded, squeeze = self.padded, self._layers("squeeze.0", "squeeze.1")
        self.running = Rows(padded.running, self._layers("encode_running.0", "encode_running.1"), squeeze)
        self.supply = Rows(padded.supply, self._layers("encode_supply.0", "encode_supply.1"), squeeze)
        self.chosen = None if chosen is None else Rows(filled(chosen), self._layers("chosen"), squeeze)
        weight, bias = self.parameters[f"{self.flat}.weight"], self.parameters[f"{self.flat}.bias"]
        self.parts = self._parts(weight)
        result = bias.expand(padded.supply_row.shape[0], -1).clone()
        self.tables: list[list[Tensor]] = []
        for chain, rows, groups, part in self._packed():
            squeezed = chain.results[0][: rows + 1] - chain.results[0][rows]
            result += part.reshape(len(part), -1, squeezed.shape[1]).sum(1) @ chain.results[0][rows]
            tables = [
                squeezed.index_select(0, group.row).reshape(-1, group.width * squeezed.shape[1]) for group in groups
            ]
            for group, table in zip(groups, tables, strict=True):
                result[group.decisions].addmm_(table, part[:, : table.shape[1]].T)
            self.tables.append(tables)
        flat = self.supply.results[0].index_select(0, padded.supply_row.reshape(-1)).reshape(len(result), -1)
        self.tables.append([flat])
        result.addmm_(flat, self.parts[2].T)
        if self.chosen is not None:
            result.addmm_(self.chosen.results[0], self.parts[3].T)
        return result[: padded.decisions]

    def _packed(self) -> list[tuple[Rows, int, list[Cells], Tensor]]:
        padded = self.padded
        return [
            (self.queue, padded.queue_rows, padded.queue_cells, self.parts[0]),
            (self.running, padded.running_rows, padded.running_cells, self.parts[1]),
        ]

    def _parts(self, weight: Tensor) -> tuple[Tensor, ...]:
        """Columns of the flattened layer for queue, running, supply and chosen row."""
        columns = self.queue.results[0].shape[1]
        supply = self.padded.supply_row.shape[1] * columns
        chosen = 0 if self.chosen is None else columns
        queue = self.padded.slots[0] * columns
        running = weight.shape[1] - queue - supply - chosen
        return torch.split(weight, [queue, running, supply, chosen], dim=1)

    def backward(self, scores: Tensor | None, hidden: Tensor | None) -> dict[str, Tensor]:
        """Gradients of all parameters, from those of ``scores`` (Q,) and ``hidden`` (A, 64)."""
        result: dict[str, Tensor] = {}
        gradients: list[Tensor | None] = [None for _ in self.queue.results]
        if scores is not None:
            wide = scores.new_zeros(self.padded.queue.shape[0], 1)
            wide[: self.padded.queue_rows, 0] = scores
            gradients[1] = wide
        if hidden is not None:
            result, gradients[0] = self._flat_backward(filled(hidden))
        self.queue.backward(gradients)
        for name, layer in self.made.items():
            result |= {f"{name}.{part}": each for part, each in layer.gradients.items()}
        return result

    def _flat_backward(self, hidden: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Gradients of the flattened layer and of the queue's squeezed rows; other tables are propagated to the end."""
        total = hidden.sum(0)
        gradient = torch.empty_like(self.parameters[f"{self.flat}.weight"])
        into = self._parts(gradient)
        squeezed = []
        for number, (chain, rows, groups, part) in enumerate(self._packed()):
            columns = chain.results[0].shape[1]
            slots = part.shape[1] // columns
            into[number].reshape(len(part), slots, columns).copy_(
                (total[:, None] * chain.results[0][rows])[:, None, :].expand(-1, slots, -1)
            )
            back = torch.zeros_like(chain.results[0])
            for group, table in zip(groups, self.tables[number], strict=True):
                mine, width = hidden[group.decisions], table.shape[1]
                into[number][:, :width].addmm_(mine.T, table)
                cell = torch.mm(mine, part[:, :width]).reshape(-1, columns)
                torch.index_select(cell, 0, group.cell, out=back[group.rows])
            back[rows] = part.reshape(len(part), slots, columns).sum(1).T @ total - back[:rows].sum(0)
            squeezed.append(back)
        self.running.backward([squeezed[1]])
        into[2].copy_(torch.mm(hidden.T, self.tables[2][0]))
        cell = torch.mm(hidden, self.parts[2]).reshape(-1, self.supply.results[0].shape[1])
        back = torch.zeros_like(self.supply.results[0])
        back.index_add_(0, self.padded.supply_row.reshape(-1), cell)
        self.supply.backward([back])
        if self.chosen is not None:
            into[3].copy_(torch.mm(hidden.T, self.chosen.results[0]))
            self.chosen.backward([torch.mm(hidden, self.parts[3])])
        return {f"{self.flat}.weight": gradient, f"{self.flat}.bias": total}, squeezed[0]


class _Function(torch.autograd.Function):
    """``Pass`` as an autograd function; later operations (softmax, losses) use autograd."""

    @staticmethod
    def forward(
        ctx: Any,
        padded: Padded,
        chosen: Tensor | None,
        flat: str,
        scored: bool,
        names: tuple[str, ...],
        *parameters: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Logits (Q,) (empty unless ``scored``) and the hidden layer (A, 64)."""
        work = Pass(padded, dict(zip(names, parameters, strict=True)), flat)
        scores = work.scores() if scored else padded.queue.new_zeros(0)
        hidden = work.hidden(chosen)
        ctx.work, ctx.names, ctx.scored = work, names, scored
        return scores, hidden

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        """Gradients of the parameters."""
        scores, hidden = gradients
        result = ctx.work.backward(scores if ctx.scored else None, hidden.contiguous())
        ctx.work = None
        return (None, None, None, None, None, *(result[name] for name in ctx.names))


def run(
    padded: Padded, chosen: Tensor | None, flat: str, parameters: dict[str, Any], *, scored: bool
) -> tuple[Tensor, Tensor]:
    """Row logits (Q,) and the flattened layer before its ReLU (A, 64), differentiable in all ``parameters``."""
    result: tuple[Tensor, Tensor] = _Function.apply(  # type: ignore[no-untyped-call]  # torch leaves apply untyped
        padded, chosen, flat, scored, tuple(parameters), *parameters.values()
    )
    return result
