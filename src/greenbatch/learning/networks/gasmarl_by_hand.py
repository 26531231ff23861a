"""GAS-MARL's row networks with hand-written forward and backward passes: equal to `gasmarl` and faster.

``python benchmarks/by_hand.py`` measures the gain over autograd on padded rows and over plain torch.

What makes an update slow on a CPU, and the remedies:

* oneDNN compiles a kernel for every new matrix shape (about 3 ms): row counts are padded to few sizes (``roomy``);
* rows that recur in several decisions are encoded once (`distinct`);
* encoded rows feed two heads: their first layers are one matrix product, and gradients are summed in one buffer;
* unused gradients of inputs, copies by ``cat`` and ``split``, and saved tensors are avoided;
* the flattened layer reads tables no wider than the longest queue of a group of decisions (`Cells`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from greenbatch.learning.networks.distinct import distinct
from greenbatch.learning.networks.linear_by_hand import Layer, Rows, filled, roomy
from greenbatch.learning.networks.observations import Batch

_GROUP = 256
"""Decisions whose tables share a width."""
MANY = 16_384
"""Rows of a batch's queues from which equal ones are looked for."""
_LINEAR = ("score.2", "chosen")
"""Layers without a ReLU."""


class Cells(NamedTuple):
    """Positions of the rows of a group of decisions in its padded table (n, width)."""

    decisions: slice
    """Including the padding that follows them."""
    rows: slice
    """Their packed rows."""
    width: int
    row: Tensor
    """int64 (roomy(n) * width,): which row every cell holds; the padding row's number if the cell is empty."""
    cell: Tensor
    """int64 (rows,): cell of every packed row."""


def cells(offsets: Tensor, owner: Tensor, slots: int, number: Tensor | None = None, last: int = -1) -> list[Cells]:
    """Tables of up to 256 decisions each, as wide as the longest one requires; none if there are no rows.

    Args:
        offsets: int64 (A + 1,), where the packed rows of each decision begin.
        owner: int64 (Q,), decision of every packed row.
        slots: rows of the padded table.
        number: int64 (Q,), which of the distinct rows each packed row is; None if they are not told apart.
        last: number of the padding row; by default Q.
    """
    count, rows = offsets.shape[0] - 1, owner.shape[0]
    last = rows if number is None else last
    slot = torch.arange(rows) - offsets[owner]
    lengths = offsets[1:] - offsets[:-1]
    result = []
    for first in range(0, count, _GROUP):
        end = min(first + _GROUP, count)
        width = min(_width(int(lengths[first:end].max())), slots)
        here = slice(int(offsets[first]), int(offsets[end]))
        if here.start == here.stop:
            continue
        cell = (owner[here] - first) * width + slot[here]
        padded = roomy(end - first)
        row = torch.full((padded * width,), last)
        row[cell] = torch.arange(here.start, here.stop) if number is None else number[here]
        result.append(Cells(slice(first, first + padded), here, width, row, cell))
    return result


def _width(rows: int) -> int:
    """The next larger of a few table widths."""
    step = max(4, 1 << max(rows.bit_length() - 4, 0))
    return -(-rows // step) * step


class Table(NamedTuple):
    """The rows of a table of many decisions, equal ones once, padded to few sizes."""

    rows: Tensor
    found: int
    """Number of rows; the one after them is the padding row."""
    number: Tensor | None
    """int64 (Q,): which of them each packed row is; None if they are the packed rows themselves."""
    cells: list[Cells]
    slots: int
    """Rows of the padded table."""

    def packed(self, values: Tensor) -> Tensor:
        """Values of all packed rows (Q, ...), from those of `rows` (P, ...)."""
        return values[: self.found] if self.number is None else values.index_select(0, self.number)

    def summed(self, gradients: Tensor) -> Tensor:
        """Gradients of `rows` (P, ...), from those of all packed rows (Q, ...)."""
        result = gradients.new_zeros(self.rows.shape[0], *gradients.shape[1:])
        if self.number is None:
            result[: self.found] = gradients
            return result
        return result.index_add_(0, self.number, gradients)


class Padded(NamedTuple):
    """A batch's rows, padded to few sizes, and their positions; shared by actor and critic."""

    queue: Table
    running: Table
    supply: Tensor
    supply_row: Tensor
    """int64 (roomy(A), f)."""
    decisions: int


def pad(batch: Batch, empty_queue: Tensor, slots: tuple[int, int]) -> Padded:
    """Pad a batch's rows; ``slots`` are the padded tables' rows of queue and running."""
    return Padded(
        _table(batch.queue, batch.queue_offsets, batch.queue_owner, empty_queue, slots[0]),
        _table(batch.running, batch.running_offsets, batch.running_owner, None, slots[1]),
        _with_room(batch.supply, None),
        filled(batch.supply_row),
        batch.supply_row.shape[0],
    )


def _table(rows: Tensor, offsets: Tensor, owner: Tensor, last: Tensor | None, slots: int) -> Table:
    """A table; the padding row is ``last``, or zeros."""
    found = distinct(rows) if rows.shape[0] >= MANY else None
    rows, number = (rows, None) if found is None else found
    count = rows.shape[0]
    return Table(_with_room(rows, last), count, number, cells(offsets, owner, slots, number, count), slots)


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
        self.queue = Rows(padded.queue.rows, self._layers("encode_queue.0", "encode_queue.1"), squeeze, *heads)

    def _layers(self, *names: str) -> tuple[Layer, ...]:
        for name in names:
            if name not in self.made:
                weight, bias = self.parameters[f"{name}.weight"], self.parameters[f"{name}.bias"]
                self.made[name] = Layer(weight, bias, relu=name not in _LINEAR)
        return tuple(self.made[name] for name in names)

    def scores(self) -> Tensor:
        """The job head: logits (Q,)."""
        return self.padded.queue.packed(self.queue.results[1][:, 0])

    def hidden(self, chosen: Tensor | None) -> Tensor:
        """The flattened layer before its ReLU (A, 64); ``chosen``: raw rows (A, kq), None for the critic."""
        padded, squeeze = self.padded, self._layers("squeeze.0", "squeeze.1")
        self.running = Rows(padded.running.rows, self._layers("encode_running.0", "encode_running.1"), squeeze)
        self.supply = Rows(padded.supply, self._layers("encode_supply.0", "encode_supply.1"), squeeze)
        self.chosen = None if chosen is None else Rows(filled(chosen), self._layers("chosen"), squeeze)
        weight, bias = self.parameters[f"{self.flat}.weight"], self.parameters[f"{self.flat}.bias"]
        self.parts = self._parts(weight)
        result = bias.expand(padded.supply_row.shape[0], -1).clone()
        self.tables: list[list[Tensor]] = []
        for chain, table, part in self._packed():
            empty = chain.results[0][table.found]
            squeezed = chain.results[0][: table.found + 1] - empty
            result += part.reshape(len(part), -1, squeezed.shape[1]).sum(1) @ empty
            wide = [
                squeezed.index_select(0, group.row).reshape(-1, group.width * squeezed.shape[1])
                for group in table.cells
            ]
            for group, each in zip(table.cells, wide, strict=True):
                result[group.decisions].addmm_(each, part[:, : each.shape[1]].T)
            self.tables.append(wide)
        flat = self.supply.results[0].index_select(0, padded.supply_row.reshape(-1)).reshape(len(result), -1)
        self.tables.append([flat])
        result.addmm_(flat, self.parts[2].T)
        if self.chosen is not None:
            result.addmm_(self.chosen.results[0], self.parts[3].T)
        return result[: padded.decisions]

    def _packed(self) -> tuple[tuple[Rows, Table, Tensor], ...]:
        return (self.queue, self.padded.queue, self.parts[0]), (self.running, self.padded.running, self.parts[1])

    def _parts(self, weight: Tensor) -> tuple[Tensor, ...]:
        """Columns of the flattened layer for queue, running, supply and chosen row."""
        columns = self.queue.results[0].shape[1]
        supply = self.padded.supply_row.shape[1] * columns
        chosen = 0 if self.chosen is None else columns
        queue = self.padded.queue.slots * columns
        running = weight.shape[1] - queue - supply - chosen
        return torch.split(weight, [queue, running, supply, chosen], dim=1)

    def backward(self, scores: Tensor | None, hidden: Tensor | None) -> dict[str, Tensor]:
        """Gradients of all parameters, from those of ``scores`` (Q,) and ``hidden`` (A, 64)."""
        result: dict[str, Tensor] = {}
        gradients: list[Tensor | None] = [None for _ in self.queue.results]
        if scores is not None:
            gradients[1] = self.padded.queue.summed(scores).unsqueeze(1)
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
        for number, (chain, table, part) in enumerate(self._packed()):
            empty, columns = chain.results[0][table.found], chain.results[0].shape[1]
            slots = part.shape[1] // columns
            into[number].reshape(len(part), slots, columns).copy_(
                (total[:, None] * empty)[:, None, :].expand(-1, slots, -1)
            )
            packed = [empty.new_empty(0, columns)]
            for group, wide in zip(table.cells, self.tables[number], strict=True):
                mine, width = hidden[group.decisions], wide.shape[1]
                into[number][:, :width].addmm_(mine.T, wide)
                cell = torch.mm(mine, part[:, :width]).reshape(-1, columns)
                packed.append(cell.index_select(0, group.cell))
            back = table.summed(torch.cat(packed))
            back[table.found] = part.reshape(len(part), slots, columns).sum(1).T @ total - back[: table.found].sum(0)
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
        scores = work.scores() if scored else padded.supply.new_zeros(0)
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
