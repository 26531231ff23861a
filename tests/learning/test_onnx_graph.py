"""ONNX graphs of trained actors against the torch networks they are made from."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch

from greenbatch.engine.observe.image import bytes_of, unpacked
from greenbatch.envs.batch import Observation
from greenbatch.errors import InputError
from greenbatch.models.onnx_graph import build, load
from greenbatch.presets.preset import Delay, Preset, preset
from greenbatch.presets.shapes import shapes_of

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "kernel": ("rlscheduler", {"kind": "kernel"}),
    "gas-marl": ("gas-marl", {"kind": "gas-marl"}),
    "maskable-ppo": ("maskable-ppo", {"kind": "maskable-ppo"}),
    "ineps": ("rlscheduler", {"kind": "ineps"}),
    "attention": ("gas-marl", {"kind": "attention", "width": 24, "seeds": 5}),
    "attention-queue-alone": ("rlscheduler", {"kind": "attention"}),
    "context": ("gas-marl", {"kind": "context", "width": 48, "skip": {"wait": 1.0, "requested_time": -2.0}}),
    "context-queue-alone": ("rlscheduler", {"kind": "context"}),
    "context-state": ("state", {"kind": "context"}),
    "attention-state": ("state", {"kind": "attention"}),
    "rare": ("rlscheduler", {"kind": "rare", "layers": 2}),
    "rare-state": ("state", {"kind": "rare", "hidden": 64}),
    "rare-image": ("rare", {"kind": "rare", "hidden": 64}),
    "rare-image-large": ("rare", {"kind": "rare", "size": "large", "hidden": 64}),
    "rare-image-alone": ("rare", {"kind": "rare", "size": "medium", "hidden": 64, "sees": "image"}),
    "rare-jobs-alone": ("rare", {"kind": "rare", "hidden": 64, "sees": "jobs"}),
    "recurrent": ("rare", {"kind": "recurrent", "hidden": 32}),
    "recurrent-image-alone": ("rare", {"kind": "recurrent", "hidden": 32, "layers": 1, "sees": "image"}),
    "recurrent-jobs-alone": ("rare", {"kind": "recurrent", "hidden": 32, "layers": 3, "sees": "jobs"}),
    "recurrent-queue-alone": ("rlscheduler", {"kind": "recurrent", "hidden": 32}),
    "recurrent-state": ("state", {"kind": "recurrent", "hidden": 32}),
}
"""Name -> (preset, network)."""
NUMBER = count()
"""Numbers of the decisions that were made up."""


def made(name: str) -> Preset:
    """A preset; ``state`` is GAS-MARL's with a state, one delay and a row that stands for waiting."""
    if name == "rare":
        raw = preset(name).model_dump()
        raw["observation"]["image"] |= {"gpus": 10, "units": 20}
        return Preset.model_validate(raw)
    if name != "state":
        return preset(name)
    whole = preset("gas-marl")
    state = {"columns": [{"feature": "free_share"}, {"feature": "load", "scale": 19_000.0}, {"feature": "hour_sine"}]}
    raw = whole.model_dump()
    raw["observation"]["state"] = state
    raw["action"] = {"delays": [Delay(kind="none").model_dump()], "wait": True}
    return Preset.model_validate(raw)


def network(case: str, seed: int) -> tuple[Any, Any, Any]:
    """An actor whose biases are not small, its shapes, and its graph's session."""
    from greenbatch.learning.networks import build as build_network

    name, spec = CASES[case]
    shapes = shapes_of(made(name))
    actor, _ = build_network(spec, shapes, seed)
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in actor.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=noise))
    weights = {key: value.numpy() for key, value in actor.state_dict().items()}
    return actor, shapes, load(build(spec, shapes, weights))


def observation(shapes: Any, rng: np.random.Generator, queued: int, running: int) -> Observation:
    """One random decision; its forecast is like no other one's."""
    selectable = rng.random(queued) < 0.7
    selectable[rng.integers(queued)] = True
    delays = rng.random(shapes.delays) < 0.7
    delays[0] = True

    def table(rows: int, columns: int) -> Any:
        return rng.random((rows, columns), dtype=np.float32)

    return Observation(
        environment=np.zeros(1, np.int64), queue=table(queued, len(shapes.queue)),
        queue_offsets=np.array([0, queued]), selectable=selectable, running=table(running, len(shapes.running)),
        running_offsets=np.array([0, running]), supply=table(shapes.forecast, len(shapes.supply))[None],
        slot=np.array([100 * next(NUMBER)]), state=table(1, len(shapes.state)), delays=delays[None],
        image=rng.integers(0, 256, (1, 2, shapes.image[0], bytes_of(shapes.image[1])), dtype=np.uint8),
    )  # fmt: skip


def answer(session: Any, shapes: Any, seen: Observation, **more: Any) -> Any:
    """Logits, row, delay logits and delay by the graph, and what it remembers if it does; zeros are known before."""
    given = {
        "queue": seen.queue, "selectable": seen.selectable, "running": seen.running, "supply": seen.supply[0],
        "state": seen.state[0], "delays": seen.delays[0],
        "image": unpacked(seen.image[0], shapes.image[1]).astype(np.float32),
        "memory": np.zeros(64, np.float32), **more,
    }  # fmt: skip
    found = session.run(None, {each.name: given[each.name] for each in session.get_inputs()})
    logits, row, delay_logits, delay, *memory = found
    return logits, row.item(), delay_logits, delay.item(), *memory


def by_torch(actor: Any, decisions: list[Observation]) -> Any:
    """The same for each decision by the network the graph was made from, all of them packed into one sequence."""
    from greenbatch.learning.networks.observations import stack

    with torch.inference_mode():
        batch = replace(stack(decisions).batch(), sequences=torch.tensor([0, len(decisions)]))
        logits, encoded = actor.encode(batch)
        each = np.split(logits.numpy(), batch.queue_offsets[1:-1].numpy())
        rows = [first_largest(part, seen.selectable) for part, seen in zip(each, decisions, strict=True)]
        delay_logits = actor.delay_logits(batch, encoded, batch.queue_offsets[:-1] + torch.tensor(rows))
    none = [np.zeros(len(seen.delays[0]), np.float32) for seen in decisions]
    delays = none if delay_logits is None else list(delay_logits.numpy())
    chosen = [first_largest(part, seen.delays[0]) for part, seen in zip(delays, decisions, strict=True)]
    return list(zip(each, rows, delays, chosen, strict=True))


def first_largest(logits: Any, allowed: Any) -> int:
    return int(np.argmax(np.where(allowed, logits, -np.inf)))


@pytest.mark.parametrize("case", CASES)
def test_a_graph_decides_as_the_network_it_is_made_from(case: str) -> None:
    rng = np.random.default_rng(7)
    for seed in range(2):
        actor, shapes, session = network(case, seed)
        sizes = [(1, 0), (1, 1), (shapes.queue_rows, max(shapes.running_rows, 1))]
        sizes += [(int(rng.integers(1, 60)), int(rng.integers(0, 40))) for _ in range(100)]
        least, most = max(shapes.extras, 1), shapes.queue_rows
        decisions = [observation(shapes, rng, min(max(queued, least), most), busy) for queued, busy in sizes]
        remembered: dict[str, Any] = {}
        for seen, theirs in zip(decisions, by_torch(actor, decisions), strict=True):
            logits, row, delay_logits, delay, *memory = answer(session, shapes, seen, **remembered)
            remembered = {"memory": memory[0]} if memory else {}
            np.testing.assert_allclose(logits, theirs[0], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(delay_logits, theirs[2], rtol=1e-5, atol=1e-5)
            assert (row, delay) == (theirs[1], theirs[3])


@pytest.mark.parametrize("case", ["kernel", "gas-marl", "ineps", "context", "attention"])
def test_of_equal_rows_the_first_allowed_one_is_chosen(case: str) -> None:
    _, shapes, session = network(case, 1)
    seen = observation(shapes, np.random.default_rng(0), 70, 3)
    seen.queue[:] = seen.queue[0]
    seen.selectable[:] = True
    seen.selectable[:5] = False
    logits, row, _, _ = answer(session, shapes, seen)
    assert np.ptp(logits) == 0.0
    assert row == 5


def test_a_delay_that_is_not_allowed_is_not_chosen() -> None:
    _, shapes, session = network("gas-marl", 3)
    rng = np.random.default_rng(3)
    for _ in range(50):
        seen = observation(shapes, rng, 4, 2)
        seen.delays[:] = False
        seen.delays[0, 9] = True
        assert answer(session, shapes, seen)[3] == 9


def test_with_gumbel_noise_the_choices_are_drawn_from_the_softmax() -> None:
    actor, shapes, _ = network("gas-marl", 2)
    weights = {key: value.numpy() for key, value in actor.state_dict().items()}
    session = load(build({"kind": "gas-marl"}, shapes, weights, noise=True))
    rng = np.random.default_rng(5)
    seen = observation(shapes, rng, 4, 3)
    seen.selectable[:] = True
    logits = answer(session, shapes, seen, row_noise=np.zeros(4, np.float32), delay_noise=np.zeros(13, np.float32))[0]
    wanted = np.exp(logits - logits.max())
    wanted /= wanted.sum()
    draws = 4000
    counts = np.zeros(4)
    for _ in range(draws):
        row_noise, delay_noise = (rng.gumbel(size=n).astype(np.float32) for n in (4, 13))
        counts[answer(session, shapes, seen, row_noise=row_noise, delay_noise=delay_noise)[1]] += 1
    deviation = np.sqrt(wanted * (1 - wanted) / draws)
    assert np.all(np.abs(counts / draws - wanted) < 5 * deviation)


def test_weights_of_another_network_are_refused() -> None:
    actor, shapes, _ = network("gas-marl", 0)
    weights = {key: value.numpy() for key, value in actor.state_dict().items()}
    with pytest.raises(InputError, match=r"rows\.0\.weight: is missing"):
        build({"kind": "kernel"}, shapes, weights)
    kernel, shapes_of_kernel, _ = network("kernel", 0)
    with pytest.raises(InputError, match=r"rows\.4\.weight: is missing"):
        build({"kind": "ineps"}, shapes_of_kernel, {key: value.numpy() for key, value in kernel.state_dict().items()})
    with pytest.raises(InputError, match="maskable-ppo has no parameter chosen"):
        build({"kind": "maskable-ppo"}, shapes, weights)
    with pytest.raises(InputError, match="do not fit the preset"):
        build({"kind": "gas-marl"}, shapes, {**weights, "score.2.weight": np.zeros((1, 17), np.float32)})
    with pytest.raises(InputError, match="no such network: 'lstm'"):
        build({"kind": "lstm"}, shapes, weights)
