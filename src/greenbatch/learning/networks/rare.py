"""RARE's networks: an encoder of the image of resources and of the vectors of jobs, heads with one output per action.

Source: dissertation, section 5.3 and Table A.5. "The two representations are then normalized for stability and
concatenated together before a final sequence of layers condenses them to a vector in R^128"; kernels 4 wide, horizontal
stride 2, 32 filters, hidden layers of 256 after the image; small, medium and large encoders have 1, 2 and 3 extra
convolutional layers and hidden layers of 128, 300 and 400 for the jobs; heads have 512 hidden units (Table A.2). Not
stated, so ours: kernels are square and the vertical stride is 2 as well, with one pixel of padding, so that every layer
halves the image; normalization is that of layers; the final sequence is 256-128; heads have one hidden layer, the
library of the author's coauthor (super_sac) has two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from greenbatch.errors import InputError
from greenbatch.learning.networks.layers import Actor, Critic, Stack
from greenbatch.learning.networks.observations import Batch
from greenbatch.learning.networks.slots import Slots, unpacked
from greenbatch.presets.shapes import Sees, Shapes, seen_by

_FILTERS, _KERNEL, _STRIDE, _PADDING = 32, 4, 2, 1
_IMAGE_HIDDEN, FEATURES = 256, 128


class Size(NamedTuple):
    """A size of Table A.5."""

    extra: int
    """Convolutional layers after the first."""
    jobs: int
    """Hidden units of the layer over the jobs."""


SIZES = {"small": Size(1, 128), "medium": Size(2, 300), "large": Size(3, 400)}


@dataclass(frozen=True)
class RareOptions:
    """Keys of ``[network]`` for ``kind = "rare"``."""

    size: str = "small"
    """``small``, ``medium`` or ``large``."""
    hidden: int = 512
    """Hidden units of the heads."""
    layers: int = 1
    """Hidden layers of the heads."""
    sees: Sees = "both"
    """The resource ``image``, vectors of ``jobs`` and of the system, or ``both``."""


class Encoder(nn.Module):
    """128 features of an image, of vectors of jobs, or of both."""

    def __init__(self, size: Size, image: tuple[int, int, int] | None, jobs: int) -> None:
        """Create the layers.

        Args:
            size: depth and width.
            image: channels, ticks and units of the image; None without one.
            jobs: numbers of the vectors of all jobs (and of the system) together; 0 without them.

        Raises:
            InputError: the image is too small for so many layers.
        """
        super().__init__()
        width, self.units = 0, 0 if image is None else image[2]
        if image is not None:
            channels, *pixels = image
            if min(pixels) < 2 ** (1 + size.extra):
                problem = f"halves an image of {pixels[0]} x {pixels[1]} {1 + size.extra} times"
                raise InputError(problem, field="network.size", fix="take a smaller size")
            layers: list[nn.Module] = []
            for _ in range(1 + size.extra):
                layers += [nn.Conv2d(channels, _FILTERS, _KERNEL, _STRIDE, _PADDING), nn.ReLU()]
                channels, pixels = _FILTERS, [pixel // 2 for pixel in pixels]
            flat = _FILTERS * pixels[0] * pixels[1]
            self.image = nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, _IMAGE_HIDDEN), nn.ReLU())
            self.image_norm = nn.LayerNorm(_IMAGE_HIDDEN)
            width += _IMAGE_HIDDEN
        if jobs:
            self.jobs = Stack(jobs, size.jobs, last=True)
            self.jobs_norm = nn.LayerNorm(size.jobs)
            width += size.jobs
        self.both = Stack(width, _IMAGE_HIDDEN, FEATURES)

    def forward(self, image: Tensor, jobs: Tensor) -> Tensor:
        """Features (A, 128) of packed images, uint8 (A, channels, ticks, bytes), and of numbers of jobs (A, n)."""
        parts = []
        if self.units:
            parts.append(self.image_norm(self.image(unpacked(image, self.units))))
        if hasattr(self, "jobs"):
            parts.append(self.jobs_norm(self.jobs(jobs)))
        features: Tensor = self.both(torch.cat(parts, dim=1))
        return features


class RareActor(Actor):
    """Logits, or values, of the actions from the features of the encoder."""

    def __init__(self, shapes: Shapes, options: RareOptions) -> None:
        super().__init__()
        self.slots = Slots(shapes)
        self.encoder = _encoder(shapes, options)
        self.head = Stack(FEATURES, *[options.hidden] * options.layers, shapes.queue_rows)

    def features(self, batch: Batch, encoder: nn.Module | None = None) -> Tensor:
        """(A, 128), by another encoder if one is given."""
        return _features(self.encoder if encoder is None else encoder, self.slots, batch)

    def of_features(self, features: Tensor, batch: Batch) -> Tensor:
        """One number per row, (Q,)."""
        return self.slots.rows(self.head(features), batch)

    def encode(self, batch: Batch) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Row logits (Q,)."""
        return self.of_features(self.features(batch), batch), ()


class RareCritic(Critic):
    """Value of every decision, for a training by policy gradients."""

    def __init__(self, shapes: Shapes, options: RareOptions) -> None:
        super().__init__()
        self.slots = Slots(shapes)
        self.encoder = _encoder(shapes, options)
        self.value = Stack(FEATURES, *[options.hidden] * options.layers, 1)

    def forward(self, batch: Batch) -> Tensor:
        """(A,)."""
        value: Tensor = self.value(_features(self.encoder, self.slots, batch)).squeeze(1)
        return value


def _encoder(shapes: Shapes, options: RareOptions) -> Encoder:
    if options.size not in SIZES:
        raise InputError(f"is {options.size!r}", field="network.size", fix="one of " + ", ".join(SIZES))
    return Encoder(SIZES[options.size], *seen_by(shapes, options.sees))


def _features(encoder: nn.Module, slots: Slots, batch: Batch) -> Tensor:
    features: Tensor = encoder(batch.image, slots.jobs(batch))
    return features
