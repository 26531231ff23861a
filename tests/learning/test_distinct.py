"""Rows that recur are encoded once, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_env import GAS, observation
from torch import Tensor

from greenbatch.learning.networks import build, gasmarl_by_hand
from greenbatch.learning.networks.distinct import WORTH, distinct
from greenbatch.learning.networks.gasmarl import GasMarlActor
from greenbatch.learning.networks.layers import Actor, Critic
from greenbatch.learning.networks.observations import Batch, as_batch


@given(st.integers(0, 300), st.integers(1, 40), st.integers(1, 9), st.integers(0, 10_000))
@settings(deadline=None, max_examples=60)
def test_each_row_is_found_once_and_in_order(count: int, pool: int, columns: int, seed: int) -> None:
    g = np.random.default_rng(seed)
    some = g.integers(0, 2, (pool, columns)).astype(np.float32) * g.choice([1.0, 1e-5, -3.0], (pool, columns))
    rows = torch.from_numpy(some.astype(np.float32)[g.integers(0, pool, count)])
    expected = list(dict.fromkeys(row.tobytes() for row in rows.numpy()))
    found = distinct(rows)
    if found is None:
        assert len(expected) > WORTH * count
        return
    assert len(expected) <= WORTH * count
    assert [row.tobytes() for row in found[0].numpy()] == expected
    assert found[0][found[1]].numpy().tobytes() == rows.numpy().tobytes()


def test_rows_differ_by_their_bits() -> None:
    """Zeros of either sign differ, and a value that is not a number equals itself."""
    rows = torch.tensor([[0.0, 1.0], [-0.0, 1.0], [torch.nan, 1.0], [torch.nan, 1.0], [0.0, 1.0]])
    found = distinct(rows)
    assert found is not None
    assert found[1].tolist() == [0, 1, 2, 2, 0]


def test_rows_that_do_not_recur_are_left_alone() -> None:
    assert distinct(torch.arange(40.0).reshape(20, 2)) is None


def _recurring(count: int, seed: int, pool: int) -> Batch:
    """Decisions whose queues show few different jobs."""
    shown = observation(GAS, count, seed)
    g = np.random.default_rng(seed)
    few = g.random((pool, len(GAS.queue))).astype(np.float32)
    few[0] = GAS.empty  # a job that looks like an empty row
    return as_batch(shown._replace(queue=few[g.integers(0, pool, len(shown.queue))]))


def _in_float64(batch: Batch) -> Batch:
    """The same batch; hand-written passes leave it to autograd."""
    return replace(
        batch, queue=batch.queue.double(), running=batch.running.double(), supply=batch.supply.double(), shared={}
    )  # fmt: skip


def _passes(actor: Actor, critic: Critic, batch: Batch, chosen: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Logits and values, and the gradients of a weighed sum of them, parameter by parameter."""
    rows, delays = actor.evaluate(batch, chosen)
    made, g = [rows, *([] if delays is None else [delays]), critic(batch)], torch.Generator().manual_seed(7)
    total = torch.stack([(part * torch.randn(part.shape, generator=g).to(part.dtype)).sum() for part in made]).sum()
    return made, list(torch.autograd.grad(total, [*actor.parameters(), *critic.parameters()]))


@pytest.mark.parametrize("kind", ["gas-marl", "maskable-ppo"])
@pytest.mark.parametrize(("count", "seed", "pool"), [(1, 0, 2), (40, 1, 5), (300, 2, 40), (300, 3, 1)])
def test_networks_with_recurring_rows_are_those_of_autograd(
    kind: str, count: int, seed: int, pool: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs within 1e-5, and gradients within 1e-5 of the largest of their parameter, of torch's own in float64."""
    monkeypatch.setattr(gasmarl_by_hand, "MANY", 1)
    nets = build({"kind": kind}, GAS, seed)
    batch = _recurring(count, seed, pool)
    chosen = batch.queue_offsets[1:] - 1
    ours = _passes(*nets, batch, chosen)
    exact = _passes(*(net.double() for net in nets), _in_float64(batch), chosen)
    for mine, expected in zip(ours[0], exact[0], strict=True):
        torch.testing.assert_close(mine.double(), expected, atol=1e-5, rtol=0)
    most = max(float(value.abs().max()) for value in exact[1])
    for mine, expected in zip(ours[1], exact[1], strict=True):
        scale = max(float(expected.abs().max()), 0.1 * most)
        assert (mine.double() - expected).abs().max() <= 1e-5 * scale


def test_rows_are_looked_up_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows, once as they are and once each distinct row alone."""
    nets = build({"kind": "gas-marl"}, GAS, 0)
    assert isinstance(nets[0], GasMarlActor)
    batch = _recurring(40, 1, 5)
    assert nets[0].padded(batch).queue.number is None
    monkeypatch.setattr(gasmarl_by_hand, "MANY", len(batch.queue))
    batch = _recurring(40, 1, 5)
    assert nets[0].padded(batch).queue.found == 5
