"""Operations on packed rows: the valid rows of many tables, concatenated without padding.

``values`` has shape (Q, ...) and ``offsets`` (A + 1,): segment *a* is ``values[offsets[a]:offsets[a + 1]]``. Every
function and its gradients equal the padded counterpart (checked by a property test).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

NEVER = -1.0e9
"""Logit of a masked row. It is finite, so that no gradient becomes NaN; its probability is exactly 0 in float32."""


def owners(offsets: Tensor) -> Tensor:
    """Segment of every row: int64 (Q,) from offsets (A + 1,)."""
    lengths = offsets[1:] - offsets[:-1]
    segments = torch.arange(lengths.shape[0], device=offsets.device)
    return torch.repeat_interleave(segments, lengths)


def rows_of(offsets: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Packed rows of a selection of segments.

    Args:
        offsets: int64 (A + 1,).
        chosen: segments, int64 (M,), in any order; repeats are allowed.

    Returns:
        Numbers of the rows (Q',), segment by segment, and the offsets (M + 1,) of the gathered rows.
    """
    first = offsets[chosen]
    lengths = offsets[chosen + 1] - first
    packed = torch.zeros(chosen.shape[0] + 1, dtype=torch.int64, device=offsets.device)
    torch.cumsum(lengths, 0, out=packed[1:])
    total = int(packed[-1])
    shift = torch.repeat_interleave(first - packed[:-1], lengths, output_size=total)
    return shift + torch.arange(total, device=offsets.device), packed


class _Max(torch.autograd.Function):
    """Maximum of every segment; autograd's backward pass through ``scatter_reduce`` is ten times slower."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, count: int, owner: Tensor, empty: float) -> Tensor:
        """(Q, ...) -> (count, ...)."""
        result = torch.full((count, *values.shape[1:]), empty, dtype=values.dtype, device=values.device)
        index = owner.reshape(-1, *([1] * (values.dim() - 1))).expand_as(values)
        result.scatter_reduce_(0, index, values, "amax", include_self=False)
        ctx.save_for_backward(values, result, owner)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        """(count, ...) -> (Q, ...)."""
        values, result, owner = ctx.saved_tensors
        largest = (values == result.index_select(0, owner)).to(values.dtype)
        ties = torch.zeros_like(result).index_add_(0, owner, largest).clamp_(min=1.0)
        return largest.mul_((gradients[0] / ties).index_select(0, owner)), None, None, None


def segment_max(values: Tensor, offsets: Tensor, empty: float = 0.0, owner: Tensor | None = None) -> Tensor:
    """Maximum of every segment: (A, ...). Ties share the gradient; an empty segment gives ``empty``."""
    owner = owners(offsets) if owner is None else owner
    result: Tensor = _Max.apply(values, offsets.shape[0] - 1, owner, empty)  # type: ignore[no-untyped-call]  # torch leaves apply untyped
    return result


def segment_sum(values: Tensor, offsets: Tensor, owner: Tensor | None = None) -> Tensor:
    """Sum of every segment: (A, ...); 0 for an empty one."""
    shape = (offsets.shape[0] - 1, *values.shape[1:])
    start = torch.zeros(shape, dtype=values.dtype, device=values.device)
    return start.index_add(0, owners(offsets) if owner is None else owner, values)


def segment_mean(values: Tensor, offsets: Tensor, owner: Tensor | None = None) -> Tensor:
    """Mean of every segment: (A, ...); 0 for an empty one."""
    lengths = (offsets[1:] - offsets[:-1]).clamp(min=1).to(values.dtype)
    return segment_sum(values, offsets, owner) / lengths.reshape(-1, *([1] * (values.dim() - 1)))


class _LogSoftmax(torch.autograd.Function):
    """x - logsumexp(x) with a hand-written gradient: g - softmax(x) * (sum of g over the segment)."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, count: int, owner: Tensor) -> Tensor:
        """(Q,) -> (Q,)."""
        top = torch.full((count,), -torch.inf, dtype=logits.dtype, device=logits.device)
        top.scatter_reduce_(0, owner, logits, "amax")
        shifted = logits - top.index_select(0, owner)
        total = torch.zeros(count, dtype=logits.dtype, device=logits.device).index_add_(0, owner, shifted.exp())
        result = shifted.sub_(total.log_().index_select(0, owner))
        ctx.save_for_backward(result, owner)
        ctx.count = count
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """(Q,) -> (Q,)."""
        (gradient,) = gradients
        result, owner = ctx.saved_tensors
        total = torch.zeros(ctx.count, dtype=gradient.dtype, device=gradient.device).index_add_(0, owner, gradient)
        return gradient - result.exp().mul_(total.index_select(0, owner)), None, None


def log_softmax(logits: Tensor, offsets: Tensor, mask: Tensor | None = None, owner: Tensor | None = None) -> Tensor:
    """Log-probabilities of the rows within their segments.

    Args:
        logits: float (Q,).
        offsets: int64 (A + 1,); segments may be empty.
        mask: bool (Q,), True for rows that may be chosen (at least one per segment); others get about ``NEVER``.
        owner: ``owners(offsets)`` if already computed.
    """
    if mask is not None:
        logits = logits.masked_fill(~mask, NEVER)
    owner = owners(offsets) if owner is None else owner
    result: Tensor = _LogSoftmax.apply(logits, offsets.shape[0] - 1, owner)  # type: ignore[no-untyped-call]  # torch leaves apply untyped
    return result


def entropy(log_probabilities: Tensor, offsets: Tensor, owner: Tensor | None = None) -> Tensor:
    """Entropy [nat] of every segment's distribution, (A,), from the result of ``log_softmax``."""
    each = -(log_probabilities.exp() * log_probabilities)
    start = torch.zeros(offsets.shape[0] - 1, dtype=each.dtype, device=each.device)
    return start.index_add(0, owners(offsets) if owner is None else owner, each)


def arg_max(values: Tensor, offsets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Row of the largest value within each (non-empty) segment: int64 (A,); the first row wins ties."""
    if mask is not None:
        values = values.masked_fill(~mask, NEVER)
    owner = owners(offsets)
    count = offsets.shape[0] - 1
    top = torch.full((count,), -torch.inf, dtype=values.dtype, device=values.device)
    top = top.scatter_reduce(0, owner, values, "amax")
    rows = torch.arange(values.shape[0], device=values.device)
    rows = torch.where(values == top[owner], rows, values.shape[0])
    first = torch.full((count,), values.shape[0], dtype=torch.int64, device=values.device)
    return first.scatter_reduce(0, owner, rows, "amin") - offsets[:-1]


def sample(log_probabilities: Tensor, offsets: Tensor, generator: torch.Generator) -> Tensor:
    """Sample one row of each (non-empty) segment: int64 (A,), numbered within the segment.

    One uniform number per segment is looked up in the cumulative probabilities (float64), so the same generator state
    gives the same rows. Rows of probability 0 are never chosen.
    """
    probabilities = log_probabilities.detach().double().exp()
    upto = torch.cumsum(probabilities, 0)
    last = upto[offsets[1:] - 1]
    before = torch.cat([last.new_zeros(1), last[:-1]])
    uniform = torch.rand(last.shape[0], generator=generator, dtype=torch.float64, device=last.device)
    target = before + uniform * (last - before)
    rows = torch.searchsorted(upto, target, right=True)
    # rounding may leave the segment at either end, so clamp to its rows of positive probability
    end = torch.searchsorted(upto, last, right=False)
    return torch.minimum(torch.maximum(rows, offsets[:-1]), end) - offsets[:-1]
