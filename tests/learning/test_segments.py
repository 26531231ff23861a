"""Operations over packed rows against the same operations over padded tables."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from greenbatch.learning.networks import segments

LENGTHS = st.lists(st.integers(0, 6), min_size=1, max_size=8)
FULL = st.lists(st.integers(1, 6), min_size=1, max_size=8)


def _case(lengths: list[int], seed: int, *shape: int) -> tuple[Tensor, Tensor, Tensor]:
    """Random float64 rows (leaves of autograd), offsets, and a padded index (A, longest), -1 where empty."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(sum(lengths), *shape, generator=generator, dtype=torch.float64).requires_grad_()
    offsets = torch.tensor([0, *np.cumsum(lengths)])
    where = torch.full((len(lengths), max(*lengths, 1)), -1)
    for segment, (first, last) in enumerate(itertools.pairwise(offsets)):
        where[segment, : int(last - first)] = torch.arange(int(first), int(last))
    return values, offsets, where


def _padded(values: Tensor, where: Tensor, fill: float) -> Tensor:
    """(A, longest, ...) with ``fill`` in empty places."""
    more = values.new_full((1, *values.shape[1:]), fill)
    return torch.cat([values, more])[where]


def _same(got: Tensor, expected: Tensor, values: Tensor) -> None:
    """Equal, with equal gradients under random weights."""
    torch.testing.assert_close(got, expected)
    weights = torch.randn(got.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (mine,) = torch.autograd.grad((got * weights).sum(), values, retain_graph=True)
    (theirs,) = torch.autograd.grad((expected * weights).sum(), values, retain_graph=True)
    torch.testing.assert_close(mine, theirs)


def _allowed(lengths: list[int], seed: int) -> Tensor:
    """A random mask with at least one True a segment."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(sum(lengths), generator=generator) < 0.6
    for first, length in zip(np.cumsum([0, *lengths]), lengths, strict=False):
        mask[first + int(torch.randint(length, (1,), generator=generator))] = True
    return mask


@given(LENGTHS, st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_sum_and_mean_are_those_of_padded_tables(lengths: list[int], seed: int) -> None:
    values, offsets, where = _case(lengths, seed, 3)
    table = _padded(values, where, 0.0)
    _same(segments.segment_sum(values, offsets), table.sum(1), values)
    size = torch.tensor(lengths).clamp(min=1).unsqueeze(1)
    _same(segments.segment_mean(values, offsets), table.sum(1) / size, values)


@given(LENGTHS, st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_max_is_that_of_padded_tables_and_0_where_empty(lengths: list[int], seed: int) -> None:
    values, offsets, where = _case(lengths, seed, 3)
    some = torch.tensor(lengths) > 0
    got = segments.segment_max(values, offsets)
    assert (got[~some] == 0).all()
    if some.any():
        _same(got[some], _padded(values, where, -torch.inf)[some].amax(1), values)


@given(FULL, st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_log_softmax_is_that_of_padded_tables(lengths: list[int], seed: int) -> None:
    values, offsets, where = _case(lengths, seed)
    expected = torch.log_softmax(_padded(values, where, -torch.inf), 1)[where >= 0]
    got = segments.log_softmax(values, offsets)
    weights = torch.randn(got.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.testing.assert_close(got, expected)
    (mine,) = torch.autograd.grad((got * weights).sum(), values)
    # autograd of the padded table meets 0 * inf: the closed form instead
    share = expected.detach().exp()
    owner = segments.owners(offsets)
    total = torch.stack([weights[owner == segment].sum() for segment in range(len(lengths))])
    torch.testing.assert_close(mine, weights - share * total[owner])


@given(FULL, st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_masked_rows_have_no_probability_and_no_gradient(lengths: list[int], seed: int) -> None:
    values, offsets, _ = _case(lengths, seed)
    mask = _allowed(lengths, seed)
    scores = segments.log_softmax(values, offsets, mask)
    assert (scores[~mask].exp() == 0).all()
    totals = segments.segment_sum(scores.exp(), offsets)
    torch.testing.assert_close(totals, torch.ones(len(lengths), dtype=torch.float64))
    (gradient,) = torch.autograd.grad(segments.entropy(scores, offsets).sum(), values, retain_graph=True)
    assert gradient.isfinite().all()
    assert (gradient[~mask] == 0).all()
    kept = [scores[mask & (segments.owners(offsets) == segment)] for segment in range(len(lengths))]
    entropies = torch.stack([-(part.exp() * part).sum() for part in kept])
    torch.testing.assert_close(segments.entropy(scores, offsets), entropies)


@given(FULL, st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_arg_max_is_the_first_largest_allowed_row(lengths: list[int], seed: int) -> None:
    values, offsets, where = _case(lengths, seed)
    values = values.detach().round(decimals=0)
    mask = _allowed(lengths, seed)
    table = _padded(values.masked_fill(~mask, -1e30), where, -torch.inf)
    expected = torch.tensor([int(np.argmax(row)) for row in table.numpy()])
    assert segments.arg_max(values, offsets, mask).equal(expected)


@given(FULL, st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_samples_are_allowed_and_repeatable(lengths: list[int], seed: int) -> None:
    values, offsets, _ = _case(lengths, seed)
    mask = _allowed(lengths, seed)
    scores = segments.log_softmax(10 * values, offsets, mask).float()
    first = segments.sample(scores, offsets, torch.Generator().manual_seed(seed))
    again = segments.sample(scores, offsets, torch.Generator().manual_seed(seed))
    assert first.equal(again)
    assert (first >= 0).all()
    assert (first < torch.tensor(lengths)).all()
    assert mask[offsets[:-1] + first].all()


def test_samples_follow_the_probabilities() -> None:
    """20,000 draws per segment: within 5 standard deviations of a binomial count."""
    draws = 20_000
    shares = torch.tensor([0.1, 0.0, 0.6, 0.3])
    scores = shares.log().clamp(min=segments.NEVER).repeat(draws)
    rows = segments.sample(scores, torch.arange(draws + 1) * 4, torch.Generator().manual_seed(0))
    counts = torch.bincount(rows, minlength=4)
    assert counts[1] == 0
    assert ((counts - draws * shares).abs() <= 5 * (draws * shares * (1 - shares)).sqrt()).all()


@given(LENGTHS, st.lists(st.integers(0, 7), max_size=9))
@settings(deadline=None, max_examples=40)
def test_rows_of_a_selection(lengths: list[int], chosen: list[int]) -> None:
    chosen = [segment for segment in chosen if segment < len(lengths)]
    offsets = torch.tensor([0, *np.cumsum(lengths)])
    rows, gathered = segments.rows_of(offsets, torch.tensor(chosen, dtype=torch.int64))
    expected = [list(range(int(offsets[segment]), int(offsets[segment + 1]))) for segment in chosen]
    assert rows.tolist() == [row for part in expected for row in part]
    assert gathered.tolist() == [0, *np.cumsum([len(part) for part in expected])]


def test_extreme_logits_stay_finite() -> None:
    logits = torch.tensor([1e30, -1e30, 0.0, 88.0, -700.0]).requires_grad_()
    offsets = torch.tensor([0, 3, 5])
    scores = segments.log_softmax(logits, offsets)
    assert scores.isfinite().all()
    assert scores[0] == 0
    segments.entropy(scores, offsets).sum().backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
