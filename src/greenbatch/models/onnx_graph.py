"""A trained actor as an ONNX graph, which runs without torch.

The input of a graph is the observation of one simulation or one live queue: packed valid rows without padding. Its
outputs are the logits and the arg-max of both actions. `learning.networks` has the same networks for training, with the
same parameter names; both implementations are equal up to rounding.

::

    inputs    queue (q, kq), selectable (q,), and those of the following that the network reads:
              running (r, kr), supply (f, ks), state (kg,), delays (D,), image (channels, ticks, units)
    outputs   logits (q,), row (1,), delay_logits (D,), delay (1,)

``delay_logits`` are those of the chosen row. A graph with ``noise`` has the additional inputs ``row_noise`` (q,) and
``delay_noise`` (D,), which are added to the logits before the arg-max: with Gumbel noise the result is a sample.

A network with a memory has the additional input ``memory`` (m,) and output ``next_memory`` (m,): what it gives at a
decision is what it reads at the next one of the same simulation or queue. At the first one it reads zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.models import onnx_slots
from greenbatch.models.onnx_builder import MEMORY, GraphBuilder, Weights, queue_of, state_of
from greenbatch.presets.shapes import Shapes

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

OPSET, FORMAT = 20, 10
"""Versions of ONNX's operators and file format, from 2024, so that many tools can read them."""

OUTPUTS = ("logits", "row", "delay_logits", "delay")
REMEMBERS = "next_memory of a decision is memory of the next one of the same simulation; zeros at the first one"
"""The metadata of a graph with a memory."""

Head = Callable[[str], str]
"""Function from the chosen row, shape (1,), to the logits of the delays, shape (1, D)."""


def build(
    spec: Mapping[str, Any],
    shapes: Shapes,
    weights: Weights,
    *,
    noise: bool = False,
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """The graph of a trained actor, as the content of an ONNX file.

    Args:
        spec: the preset's ``[network]`` table.
        shapes: the preset's tables.
        weights: the actor's parameters.
        noise: add noise inputs to the logits before the arg-max.
        metadata: texts to store in the file.

    Raises:
        InputError: there is no such network, or the weights belong to another one.
    """
    from onnx import TensorProto, helper
    from onnx.checker import check_model

    kind = spec.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputError(f"no such network: {kind!r}", field="network.kind", fix="one of " + ", ".join(_KINDS))
    g = GraphBuilder(weights, spec)
    try:
        _outputs(g, shapes, *_KINDS[kind](g, shapes), noise=noise)
    except (ValueError, IndexError) as error:  # of numpy: arrays that do not fit together
        raise _misfit(str(error)) from None
    if unused := sorted(set(weights) - g.used):
        raise _misfit(f"{kind} has no parameter {unused[0]}")
    tensor, floats = helper.make_tensor_value_info, TensorProto.FLOAT
    kinds = dict.fromkeys(("selectable", "delays"), TensorProto.BOOL)
    outputs = [
        tensor("logits", floats, ["q"]), tensor("row", TensorProto.INT64, [1]),
        tensor("delay_logits", floats, [shapes.delays]), tensor("delay", TensorProto.INT64, [1]),
        *(tensor(name, floats, shape) for name, shape in g.outputs.items()),
    ]  # fmt: skip
    inputs = [tensor(name, kinds.get(name, floats), shape) for name, shape in g.inputs.items()]
    graph = helper.make_graph(g.nodes, str(kind), inputs, outputs, g.constants)
    model = helper.make_model(
        graph, producer_name="greenbatch", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=FORMAT
    )
    helper.set_model_props(model, {**(metadata or {}), **({MEMORY: REMEMBERS} if MEMORY in g.inputs else {})})
    try:
        check_model(model, full_check=True)
    except Exception as error:  # noqa: BLE001  (the checker has several kinds of errors, some of C++)
        raise _misfit(str(error)) from None
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def load(content: bytes) -> InferenceSession:
    """A session that runs a graph on one thread.

    ``session.run(None, {input: array})`` returns `OUTPUTS`, and then the next memory of a graph that has one.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _misfit(reason: str) -> InputError:
    return InputError(f"do not fit the preset: {reason}", field="weights", fix="use the preset they were trained with")


def _outputs(g: GraphBuilder, shapes: Shapes, logits: str, head: Head | None, *, noise: bool) -> None:
    """Add both actions, from the rows' logits (q, 1) and the delay head."""
    flat = g.add("Squeeze", logits, g.integers(1), name="logits")
    row = g.choose("row", flat, g.input("selectable", "q"), g.input("row_noise", "q") if noise else None)
    if head is None or shapes.delays == 1:
        g.add("Identity", g.constant(np.zeros(shapes.delays)), name="delay_logits")
        g.add("Identity", g.integers(0), name="delay")
        return
    delays = g.add("Squeeze", head(row), g.integers(0), name="delay_logits")
    allowed = g.input("delays", shapes.delays)
    g.choose("delay", delays, allowed, g.input("delay_noise", shapes.delays) if noise else None)


def _running(g: GraphBuilder, shapes: Shapes) -> str:
    return g.input("running", "r", len(shapes.running))


def _supply(g: GraphBuilder, shapes: Shapes) -> str:
    return g.input("supply", shapes.forecast, len(shapes.supply))


def _kernel(g: GraphBuilder, shapes: Shapes) -> tuple[str, None]:
    return g.stack(queue_of(g, shapes), "rows", 4, last=False), None


def _ineps(g: GraphBuilder, shapes: Shapes) -> tuple[str, None]:
    return g.stack(queue_of(g, shapes), "rows", 7, last=False, activation="Selu"), None


def _linear(g: GraphBuilder, shapes: Shapes) -> tuple[str, None]:
    queue = queue_of(g, shapes)
    scores = g.stack(queue, "rows", 1, last=False)
    if "hidden.0.weight" in g.weights:
        scores = g.add("Add", scores, g.stack(queue, "hidden", 2, last=False))
    return scores, None


def _maskable_ppo(g: GraphBuilder, shapes: Shapes) -> tuple[str, None]:
    return g.stack(g.stack(queue_of(g, shapes), "encode_queue", 2, last=True), "score", 3, last=False), None


def _gas_marl(g: GraphBuilder, shapes: Shapes) -> tuple[str, Head]:
    """The job head and the squeeze read the same rows, so their layers are stacked and each row is read once.

    128 -> 64 and 128 -> 32 become 128 -> 96; 64 -> 16 and 32 -> 8 become 96 -> 24, with zeros between the two.
    """
    queue = queue_of(g, shapes)
    encoded = g.stack(queue, "encode_queue", 2, last=True)
    score, squeeze = ([g.weight(f"{head}.{number}") for number in (0, 1)] for head in ("score", "squeeze"))
    for combine, number in ((np.concatenate, 0), (_diagonal, 1)):
        weight = combine([score[number][0], squeeze[number][0]])
        encoded = g.affine(encoded, weight, np.append(score[number][1], squeeze[number][1]), relu=True)
    width, parting = squeeze[1][1].size, score[1][1].size
    last, bias = g.weight("score.2")
    logits = g.affine(encoded, np.pad(last, ((0, 0), (0, width))), bias, relu=False)

    def head(chosen: str) -> str:
        running = _running(g, shapes)
        tables = (
            g.stack(_supply(g, shapes), "encode_supply", 2, last=True),
            g.linear(g.add("Gather", queue, chosen, axis=0), "chosen", relu=False),
            g.stack(running, "encode_running", 2, last=True),
        )
        others = g.stack(g.add("Concat", *tables, axis=0), "squeeze", 2, last=True)
        squeezed = g.columns(encoded, parting, parting + width)
        flat = g.add("Flatten", _all_slots(g, shapes, squeezed, queue, others, running), axis=0)
        return g.linear(g.affine(flat, *_reordered(g, shapes), relu=True), "delay.1", relu=False)

    return logits, head


def _all_slots(g: GraphBuilder, shapes: Shapes, squeezed: str, queue: str, others: str, running: str) -> str:
    """Squeezed rows of all slots, including empty ones, as tables: queue, supply, chosen job, running jobs."""
    parts = [squeezed, others]
    for place, table, rows, slots, row in (
        (1, "queue", queue, shapes.queue_rows, shapes.empty),
        (3, "running", running, shapes.running_rows, (0.0,) * len(shapes.running)),
    ):
        empty = _through(g, (f"encode_{table}.0", f"encode_{table}.1", "squeeze.0", "squeeze.1"), row)
        whole = g.constant(np.tile(empty, (slots, 1)))
        rest = g.add("Slice", whole, g.count(rows), g.integers(slots), g.integers(0))
        parts.insert(place, rest)
    return g.add("Concat", *parts, axis=0)


def _reordered(g: GraphBuilder, shapes: Shapes) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The layer over all slots in the order of `_all_slots`; the network's order is queue, running, supply, chosen."""
    weight, bias = g.weight("delay.0")
    sizes = np.array([shapes.queue_rows, shapes.running_rows, shapes.forecast, 1]) * (
        weight.shape[1] // (shapes.queue_rows + shapes.running_rows + shapes.forecast + 1)
    )
    queue, running, supply, chosen = np.split(weight, np.cumsum(sizes)[:-1], axis=1)
    return np.concatenate([queue, supply, chosen, running], axis=1), bias


def _through(g: GraphBuilder, layers: Sequence[str], row: Sequence[float]) -> NDArray[np.float64]:
    """One row passed through layers, each with a ReLU."""
    value = np.asarray(row, dtype=np.float64)
    for layer in layers:
        weight, bias = g.weight(layer)
        value = np.maximum(weight.astype(np.float64) @ value + bias, 0.0)
    return value


def _diagonal(matrices: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Block-diagonal matrix of two matrices."""
    (a, b), (c, e) = matrices[0].shape, matrices[1].shape
    whole = np.zeros((a + c, b + e), np.float32)
    whole[:a, :b], whole[a:, b:] = matrices
    return whole


def _encoded(g: GraphBuilder, shapes: Shapes, queue: str, state: str | None) -> str:
    """Rows of the queue, each with the state appended, through ``encode_queue``; the shared part is computed once."""
    first, bias = g.weight("encode_queue.0")
    own = len(shapes.queue)
    shared = g.constant(bias) if state is None else g.affine(state, first[:, own:], bias, relu=False)
    return g.linear(g.add("Relu", g.product(queue, first[:, :own], shared)), "encode_queue.1", relu=True)


def _context(g: GraphBuilder, shapes: Shapes) -> tuple[str, Head]:
    queue, state = queue_of(g, shapes), state_of(g, shapes)
    encoded = _encoded(g, shapes, queue, state)
    parts = [g.mean(encoded), g.largest(encoded)]
    if shapes.running:
        running = g.stack(_running(g, shapes), "encode_running", 1, last=True)
        parts += [g.mean(running), g.largest(running, g.take("encode_running.0.bias").size)]
    parts += [g.add("Flatten", _supply(g, shapes), axis=0)] if shapes.forecast else []
    parts += [] if state is None else [state]
    context = g.stack(g.add("Concat", *parts, axis=1), "context", 1, last=True)
    first, bias = g.weight("score.0")
    own = g.take("encode_queue.1.bias").size
    shared = g.affine(context, first[:, own:], bias, relu=False)
    logits = g.linear(g.add("Relu", g.product(encoded, first[:, :own], shared)), "score.1", relu=False)
    if "skip" in g.weights:
        logits = g.product(queue, g.take("skip")[None, :], logits)

    def head(chosen: str) -> str:
        return g.stack(
            g.add("Concat", g.add("Gather", encoded, chosen, axis=0), context, axis=1), "delay", 2, last=False
        )

    return logits, head


def _attention(g: GraphBuilder, shapes: Shapes) -> tuple[str, Head]:
    """A seed's answer is linear in the rows, so the rows are averaged before the linear layer."""
    queue, state = queue_of(g, shapes), state_of(g, shapes)
    encoded = _encoded(g, shapes, queue, state)
    width = g.take("encode_queue.1.bias").size
    scale = np.float32(1.0 / np.sqrt(width))
    scores = g.affine(encoded, *(part * scale for part in g.weight("key")), relu=False)
    mixed = g.add("Gemm", g.add("Softmax", scores, axis=0), encoded, transA=1)
    answers = g.add("Add", g.linear(mixed, "read", relu=False), _others(g, shapes, state))
    query = g.affine(encoded, *(part * scale for part in g.weight("query")), relu=False)
    read = g.add("MatMul", g.add("Softmax", g.add("Gemm", query, answers, transB=1), axis=1), answers)
    first, bias = g.weight("score.0")
    both = g.product(read, first[:, width:], g.affine(encoded, first[:, :width], bias, relu=False))
    logits = g.linear(g.add("Relu", both), "score.1", relu=False)

    def head(chosen: str) -> str:
        mine = [g.add("Gather", rows, chosen, axis=0) for rows in (encoded, read)]
        return g.stack(g.add("Concat", *mine, axis=1), "delay", 2, last=False)

    return logits, head


def _others(g: GraphBuilder, shapes: Shapes, state: str | None) -> str:
    """Everything except the queue, as one row of answers."""
    parts = [] if state is None else [state]
    if shapes.running:
        parts.append(g.mean(g.stack(_running(g, shapes), "encode_running", 1, last=True)))
    if shapes.forecast:
        parts.append(g.add("Flatten", _supply(g, shapes), axis=0))
    row = g.add("Concat", *parts, axis=1) if parts else g.constant(np.ones((1, 1)))
    return g.stack(row, "globals", 1, last=True)


_KINDS: dict[Any, Callable[[GraphBuilder, Shapes], tuple[str, Head | None]]] = {
    "kernel": _kernel,
    "linear": _linear,
    "gas-marl": _gas_marl,
    "maskable-ppo": _maskable_ppo,
    "ineps": _ineps,
    "attention": _attention,
    "context": _context,
    "rare": onnx_slots.rare,
    "recurrent": onnx_slots.recurrent,
}
