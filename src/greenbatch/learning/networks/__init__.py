"""Networks by name: ``build(spec, shapes, seed)`` returns actor and critic of a preset's ``[network]`` table.

======================  ==========================================================  =======================
Kind                    Network                                                     Options
======================  ==========================================================  =======================
``kernel``              RLScheduler: one small network over every row               none
``gas-marl``            GAS-MARL: one encoder per table, job head, delay head       none
``maskable-ppo``        GAS-MARL's baseline: job head only, same critic             none
``ineps``               InEPS: SELU over every pair of a job and a node            none
``attention``           rows attend to learned summaries of their decision          width, seeds
``context``             rows and one pooled context; may start from a rule          width, context, skip, zero_last
``rare``                RARE: encoder of fixed slots of jobs, one output each       size, hidden, layers, sees
``recurrent``           CoCoRL: fixed slots, tanh layers, then an LSTM              hidden, layers, sees
======================  ==========================================================  =======================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import torch

from greenbatch.errors import InputError, did_you_mean
from greenbatch.learning.networks.attention import AttentionActor, AttentionCritic, AttentionOptions
from greenbatch.learning.networks.context import ContextActor, ContextCritic, ContextOptions
from greenbatch.learning.networks.gasmarl import GasMarlActor, GasMarlCritic
from greenbatch.learning.networks.ineps import InepsActor, InepsCritic
from greenbatch.learning.networks.kernel import KernelActor, KernelCritic
from greenbatch.learning.networks.layers import Actor, Critic
from greenbatch.learning.networks.rare import SIZES, RareActor, RareCritic, RareOptions
from greenbatch.learning.networks.recurrent import RecurrentActor, RecurrentCritic, RecurrentOptions
from greenbatch.presets.preset import LINEAR_KIND, NODE_PRICES_KIND, PRICES_KIND
from greenbatch.presets.shapes import Shapes

__all__ = ["Actor", "Critic", "Shapes", "build", "bytes_of", "fitting"]


def _kernel(shapes: Shapes, _: Mapping[str, Any]) -> tuple[Actor, Critic]:
    return KernelActor(shapes), KernelCritic(shapes)


def _gas_marl(shapes: Shapes, _: Mapping[str, Any]) -> tuple[Actor, Critic]:
    _need_tables(shapes, "gas-marl")
    if shapes.delays == 1:
        raise InputError(
            "gas-marl chooses a delay", field="network.kind", fix="list delays in [action] or use maskable-ppo"
        )
    return GasMarlActor(shapes), GasMarlCritic(shapes)


def _maskable_ppo(shapes: Shapes, _: Mapping[str, Any]) -> tuple[Actor, Critic]:
    _need_tables(shapes, "maskable-ppo")
    return GasMarlActor(replace(shapes, delays=1)), GasMarlCritic(shapes)


def _ineps(shapes: Shapes, _: Mapping[str, Any]) -> tuple[Actor, Critic]:
    return InepsActor(shapes), InepsCritic(shapes)


def _need_tables(shapes: Shapes, kind: str) -> None:
    if not (shapes.running and shapes.supply and shapes.forecast):
        raise InputError(
            f"{kind} reads queue, running and supply tables", field="network.kind", fix="name columns for all three"
        )


def _attention(shapes: Shapes, spec: Mapping[str, Any]) -> tuple[Actor, Critic]:
    options = AttentionOptions(**spec)
    return AttentionActor(shapes, options), AttentionCritic(shapes, options)


def _context(shapes: Shapes, spec: Mapping[str, Any]) -> tuple[Actor, Critic]:
    options = ContextOptions(**spec)
    for name in options.skip or {}:
        if name not in shapes.queue:
            raise InputError(
                f"no such column of the queue: {name}", field="network.skip", fix="one of " + ", ".join(shapes.queue)
            )
    return ContextActor(shapes, options), ContextCritic(shapes, options)


def _rare(shapes: Shapes, spec: Mapping[str, Any]) -> tuple[Actor, Critic]:
    _no_delays(shapes, "rare")
    options = RareOptions(**spec)
    return RareActor(shapes, options), RareCritic(shapes, options)


def _recurrent(shapes: Shapes, spec: Mapping[str, Any]) -> tuple[Actor, Critic]:
    _no_delays(shapes, "recurrent")
    options = RecurrentOptions(**spec)
    return RecurrentActor(shapes, options), RecurrentCritic(shapes, options)


def _no_delays(shapes: Shapes, kind: str) -> None:
    if shapes.delays > 1:
        raise InputError(f"{kind} chooses no delay", field="action.delays", fix='list {kind = "none"} alone')


_Builder = Callable[[Shapes, Mapping[str, Any]], tuple[Actor, Critic]]
_KINDS: dict[str, tuple[_Builder, type | None]] = {
    "kernel": (_kernel, None),
    "gas-marl": (_gas_marl, None),
    "maskable-ppo": (_maskable_ppo, None),
    "ineps": (_ineps, None),
    "attention": (_attention, AttentionOptions),
    "context": (_context, ContextOptions),
    "rare": (_rare, RareOptions),
    "recurrent": (_recurrent, RecurrentOptions),
}


def build(spec: Mapping[str, Any], shapes: Shapes, seed: int) -> tuple[Actor, Critic]:
    """Actor and critic of a preset's ``[network]`` table, initialized from ``seed``.

    Raises:
        InputError: a kind or key is unknown, a value is of the wrong type, or the network cannot read the tables.
    """
    kind = spec.get("kind")
    if kind in (LINEAR_KIND, PRICES_KIND, NODE_PRICES_KIND):  # it may be unhashable
        raise InputError(f"{kind} is found by a search", field="training.search", fix="add the table [training.search]")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputError(f"no such network: {kind!r}", field="network.kind", fix="one of " + ", ".join(_KINDS))
    make, options = _KINDS[kind]
    rest = {key: value for key, value in spec.items() if key != "kind"}
    _check(rest, {} if options is None else {each.name: each.default for each in fields(options)}, kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(shapes, rest)


_NARROWER = tuple(2**k for k in range(9, 3, -1))
_SMALLER: dict[str, tuple[tuple[str, tuple[Any, ...]], ...]] = {
    "attention": (("width", _NARROWER),),
    "context": (("width", _NARROWER),),
    "rare": (("size", tuple(SIZES)), ("hidden", _NARROWER), ("sees", ("jobs",))),
    "recurrent": (("hidden", _NARROWER), ("sees", ("jobs",))),
}
"""Options that may give a network fewer weights, and their values in the order of preference."""


def bytes_of(actor: torch.nn.Module) -> int:
    """Bytes of the weights of an actor."""
    return 4 * int(sum(value.numel() for value in actor.state_dict().values()))


def fitting(spec: Mapping[str, Any], shapes: Shapes, largest: int) -> str:
    """What to change in a ``[network]`` table so that the actor has at most so many bytes of weights, in words.

    The network that looks smaller need not be: the more layers an encoder halves an image with, the fewer numbers are
    left of it, so RARE's ``small`` has the most weights on a large machine.
    """
    for key, values in _SMALLER.get(str(spec.get("kind")), ()):
        fit = [value for value in values if _fits({**spec, key: value}, shapes, largest)]
        if fit and isinstance(fit[0], int):
            return f"give network.{key} of at most {fit[0]}"
        if fit:
            return f"give network.{key} = " + " or ".join(f'"{value}"' for value in fit)
    return "give fewer columns or rows in [observation]"


def _fits(spec: Mapping[str, Any], shapes: Shapes, largest: int) -> bool:
    try:
        with torch.device("meta"):  # sizes without numbers
            return bytes_of(build(spec, shapes, 0)[0]) <= largest
    except InputError:
        return False


def _check(given: Mapping[str, Any], known: Mapping[str, Any], kind: str) -> None:
    """Refuse unknown keys and values of the wrong type."""
    for key, value in given.items():
        field = f"network.{key}"
        if key not in known:
            fix = did_you_mean(key, known, otherwise="known: " + (", ".join(known) or "none except kind"))
            raise InputError(f"{kind} has no such key", field=field, fix=fix)
        default = known[key]
        if default is None:
            good = isinstance(value, Mapping) and all(_number(each) for each in value.values())
            expected = "a table of column = weight"
        elif isinstance(default, str):
            good, expected = isinstance(value, str), "a word"
        elif isinstance(default, bool):
            good, expected = isinstance(value, bool), "true or false"
        else:
            good, expected = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1024, "1 to 1024"
        if not good:
            raise InputError(f"{value!r} does not fit", field=field, fix=f"give {expected}")


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9
