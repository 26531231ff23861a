"""Networks with fixed slots as ONNX graphs: jobs in the slots from the first one on, further rows in the last ones.

`learning.networks.rare` and `learning.networks.recurrent` are the same networks for training.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.observe.image import CHANNELS
from greenbatch.models.onnx_builder import MEMORY, NEXT_MEMORY, GraphBuilder, queue_of, state_of
from greenbatch.presets.shapes import Shapes, seen_by


def rare(g: GraphBuilder, shapes: Shapes) -> tuple[str, None]:
    """RARE: an encoder of the image and of the jobs, then a head."""
    queue = queue_of(g, shapes)
    parts = [_features(g, shapes)] if "encoder.image.0.weight" in g.weights else []
    if "encoder.jobs.0.weight" in g.weights:
        jobs = g.stack(_side_by_side(g, shapes, queue), "encoder.jobs", 1, last=True)
        parts.append(g.normalized(jobs, "encoder.jobs_norm"))
    encoded = g.stack(g.add("Concat", *parts, axis=1), "encoder.both", 2, last=False)
    return _of_rows(g, shapes, queue, g.stack(encoded, "head", _layers(g, "head"), last=False)), None


def recurrent(g: GraphBuilder, shapes: Shapes) -> tuple[str, None]:
    """CoCoRL: tanh layers over all that is seen, then one step of an LSTM."""
    queue, seen = queue_of(g, shapes), seen_by(shapes, g.spec.get("sees", "both"))
    parts = [] if seen.image is None else [g.add("Flatten", _image(g, shapes), axis=1)]
    parts += [_side_by_side(g, shapes, queue)] if seen.jobs else []
    layers, units = _layers(g, "body.hidden"), g.take("body.lstm.weight_hh_l0").shape[1]
    hidden = g.stack(g.add("Concat", *parts, axis=1), "body.hidden", layers, last=True, activation="Tanh")
    known = g.add("Unsqueeze", g.input(MEMORY, 2 * units), g.integers(0))
    remembered = g.lstm(hidden, g.columns(known, 0, units), g.columns(known, units, 2 * units), "body.lstm")
    both = g.add("Concat", *remembered, axis=1)
    g.outputs[g.add("Squeeze", both, g.integers(0), name=NEXT_MEMORY)] = (2 * units,)
    scores = g.linear(g.add("Add", hidden, remembered[0]), "head", relu=False)
    return _of_rows(g, shapes, queue, scores), None


def _layers(g: GraphBuilder, stack: str) -> int:
    return sum(name.startswith(f"{stack}.") and name.endswith(".weight") for name in g.weights)


def _jobs(g: GraphBuilder, shapes: Shapes, queue: str) -> str:
    """Number of jobs among the rows, shape (1,)."""
    return g.add("Sub", g.count(queue), g.integers(shapes.extras))


def _side_by_side(g: GraphBuilder, shapes: Shapes, queue: str) -> str:
    """Jobs and the state as one row; empty slots are zeros."""
    slots, state = shapes.queue_rows - shapes.extras, state_of(g, shapes)
    rows = g.add("Slice", queue, g.integers(0), _jobs(g, shapes, queue), g.integers(0))
    padded = g.add("Concat", rows, g.constant(np.zeros((slots, len(shapes.queue)))), axis=0)
    flat = g.add("Flatten", g.add("Slice", padded, g.integers(0), g.integers(slots), g.integers(0)), axis=0)
    return flat if state is None else g.add("Concat", flat, state, axis=1)


def _of_rows(g: GraphBuilder, shapes: Shapes, queue: str, scores: str) -> str:
    """Scores of the slots (1, slots) as those of the rows (q, 1)."""
    slots, jobs = shapes.queue_rows - shapes.extras, _jobs(g, shapes, queue)
    scores = g.add("Transpose", scores, perm=[1, 0])
    if not shapes.extras:
        return g.add("Slice", scores, g.integers(0), jobs, g.integers(0))
    ends = (g.integers(0), jobs), (g.integers(slots), g.integers(shapes.queue_rows))
    return g.add("Concat", *(g.add("Slice", scores, *end, g.integers(0)) for end in ends), axis=0)


def _image(g: GraphBuilder, shapes: Shapes) -> str:
    """The resource image, (1, channels, ticks, units)."""
    return g.add("Unsqueeze", g.input("image", len(CHANNELS), *shapes.image), g.integers(0))


def _features(g: GraphBuilder, shapes: Shapes) -> str:
    """Features of the resource image: convolutions, then one layer."""
    image, number = _image(g, shapes), 0
    while f"encoder.image.{number}.weight" in g.weights:
        layer = [g.constant(part) for part in g.weight(f"encoder.image.{number}")]
        image = g.add("Relu", g.add("Conv", image, *layer, strides=[2, 2], pads=[1] * 4))
        number += 2
    hidden = g.linear(g.add("Flatten", image, axis=1), f"encoder.image.{number + 1}", relu=True)
    return g.normalized(hidden, "encoder.image_norm")
