"""Build an ONNX graph, operator by operator, from the weights of a trained network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.presets.shapes import Shapes

Weights = Mapping[str, NDArray[np.float32]]
"""Name of a parameter, as in the network's ``state_dict`` -> value; the weight of a Linear has shape (out, in)."""

MEMORY, NEXT_MEMORY = "memory", "next_memory"
"""Input and output of a network with a memory."""

MASKED = np.float32(-3e38)
"""Logit of a row or delay that may not be chosen."""


class GraphBuilder:
    """A graph under construction: operators in order, constants, and the inputs used so far.

    Tensors are referred to by name; rows are float32 tables with one row per job or slot. ``spec`` is the preset's
    ``[network]`` table.
    """

    def __init__(self, weights: Weights, spec: Mapping[str, Any]) -> None:
        self.weights, self.spec, self.used = weights, spec, set[str]()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: dict[str, Sequence[str | int]] = {}
        self.outputs: dict[str, Sequence[str | int]] = {}
        """Outputs beside the choice."""

    def input(self, name: str, *shape: str | int) -> str:
        """Add an input of the graph; a name in its shape is a variable length."""
        self.inputs[name] = shape
        return name

    def take(self, name: str) -> NDArray[np.float32]:
        """A parameter by name.

        Raises:
            InputError: there is no such parameter.
        """
        if name not in self.weights:
            raise InputError("is missing", field=f"weights.{name}", fix="the weights belong to another network")
        self.used.add(name)
        return self.weights[name]

    def weight(self, layer: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Weight (out, in) and bias (out,) of a linear layer."""
        return self.take(f"{layer}.weight"), self.take(f"{layer}.bias")

    def constant(self, value: Any, kind: Any = np.float32, name: str | None = None) -> str:
        """Add a constant tensor."""
        from onnx import numpy_helper

        name = name or f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype=kind), name))
        return name

    def integers(self, *values: int) -> str:
        """Add a constant vector of integers."""
        return self.constant(values, np.int64)

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add an operator with one output and return the output's name."""
        from onnx import helper

        output = name or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def product(self, rows: str, weight: NDArray[Any], added: str) -> str:
        """``rows @ weight.T + added``; ``added`` is a tensor of the same shape or a single row."""
        return self.add("Gemm", rows, self.constant(weight.T), added)

    def affine(self, rows: str, weight: NDArray[Any], bias: NDArray[Any], *, relu: bool) -> str:
        """``rows @ weight.T + bias``, followed by a ReLU."""
        result = self.product(rows, weight, self.constant(bias))
        return self.add("Relu", result) if relu else result

    def linear(self, rows: str, layer: str, *, relu: bool) -> str:
        """A linear layer by name, followed by a ReLU if ``relu``."""
        return self.affine(rows, *self.weight(layer), relu=relu)

    def stack(self, rows: str, prefix: str, layers: int, *, last: bool, activation: str = "Relu") -> str:
        """Linear layers ``prefix.0``, ``prefix.1``, ... with an activation in between.

        Args:
            rows: the table.
            prefix: name of the stack.
            layers: number of layers.
            last: whether the last layer has the activation as well.
            activation: an operator.
        """
        for number in range(layers):
            rows = self.linear(rows, f"{prefix}.{number}", relu=False)
            if last or number < layers - 1:
                rows = self.add(activation, rows)
        return rows

    def normalized(self, rows: str, layer: str) -> str:
        """A layer normalization by name."""
        weights = [self.constant(self.take(f"{layer}.{name}")) for name in ("weight", "bias")]
        return self.add("LayerNormalization", rows, *weights, axis=-1, epsilon=1e-5)

    def lstm(self, row: str, hidden: str, cell: str, layer: str) -> tuple[str, str]:
        """One step of an LSTM by name: its new output and cell, (1, u) each, from a row (1, k) and the last ones.

        The four gates are in the order of torch: input, forget, cell, output.
        """
        (read, bias), (recall, other) = (
            (self.take(f"{layer}.weight_{part}_l0"), self.take(f"{layer}.bias_{part}_l0")) for part in ("ih", "hh")
        )
        units = recall.shape[1]
        gates = self.product(hidden, recall, self.product(row, read, self.constant(bias + other)))
        enter, keep, new, leave = (
            self.add(function, self.columns(gates, k * units, (k + 1) * units))
            for k, function in enumerate(("Sigmoid", "Sigmoid", "Tanh", "Sigmoid"))
        )
        cell = self.add("Add", self.add("Mul", keep, cell), self.add("Mul", enter, new))
        return self.add("Mul", leave, self.add("Tanh", cell)), cell

    def columns(self, rows: str, first: int, stop: int) -> str:
        """Columns ``first`` to ``stop`` (exclusive) of a table."""
        return self.add("Slice", rows, self.integers(first), self.integers(stop), self.integers(1))

    def count(self, rows: str) -> str:
        """Number of rows of a table, shape (1,)."""
        return self.add("Shape", rows, start=0, end=1)

    def mean(self, rows: str) -> str:
        """Mean of all rows, shape (1, k); 0 if there are none."""
        from onnx import TensorProto

        count = self.add("Max", self.count(rows), self.integers(1))
        total = self.add("ReduceSum", rows, self.integers(0), keepdims=1)
        return self.add("Div", total, self.add("Cast", count, to=TensorProto.FLOAT))

    def largest(self, rows: str, columns: int | None = None) -> str:
        """Maximum of each column, shape (1, k).

        Args:
            rows: the table.
            columns: k, if the table may be empty and has no negative entries; an empty table then gives 0.
        """
        if columns is not None:
            rows = self.add("Concat", rows, self.constant(np.zeros((1, columns))), axis=0)
        return self.add("ReduceMax", rows, self.integers(0), keepdims=1)

    def choose(self, name: str, logits: str, allowed: str, noise: str | None) -> str:
        """Index of the largest allowed logit, shape (1,); the first one wins ties."""
        if noise is not None:
            logits = self.add("Add", logits, noise)
        masked = self.add("Where", allowed, logits, self.constant(MASKED))
        return self.add("ArgMax", masked, axis=0, keepdims=1, name=name)


def queue_of(g: GraphBuilder, shapes: Shapes) -> str:
    """The rows of the queue, (q, kq)."""
    return g.input("queue", "q", len(shapes.queue))


def state_of(g: GraphBuilder, shapes: Shapes) -> str | None:
    """The state as a row, (1, kg); None if there is none."""
    return g.add("Unsqueeze", g.input("state", len(shapes.state)), g.integers(0)) if shapes.state else None
