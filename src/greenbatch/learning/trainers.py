"""The choice of the trainer for a plan: training of a network by PPO or off-policy, or a search."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from greenbatch.errors import InputError
from greenbatch.learning.runs.counters import Counters
from greenbatch.learning.runs.plan import Plan
from greenbatch.workers import Workers, checked


def train_or_search(
    plan: Plan,
    folder: Path,
    *,
    watch: Callable[[dict[str, Any]], None],
    tell: Callable[[str, int, int], None] | None = None,
    started: Callable[[], None] | None = None,
    tensorboard: bool = False,
    replace_earlier: bool = False,
    workers: Workers | None = None,
) -> Counters:
    """Train a network, or search if the preset says so, which requires no torch; arguments as for `training.train`.

    The workers evaluate the candidates of a search; the result does not depend on them.

    Raises:
        InputError: training requires torch and it is not installed, or has workers and is no search; else as
            `training.loop.train`.
    """
    if plan.settings.search is not None:
        from greenbatch.learning.search import search

        if tensorboard:
            raise InputError("a search writes no events", field="--tensorboard", fix="leave it out; see log.jsonl")
        return search(
            plan, folder, watch=watch, started=started, replace_earlier=replace_earlier, workers=checked(workers) or 1
        )
    if workers is not None:
        problem = f"distribute the candidates of a search, and {plan.preset.name} is trained by gradients"
        fix = "give --threads, or several --seeds"
        raise InputError(problem, field="--workers and --ray", fix=fix)
    need_torch()
    if plan.settings.off_policy is not None:
        from greenbatch.learning.offpolicy import train
    else:
        from greenbatch.learning.training import train

    return train(
        plan,
        folder,
        watch=watch,
        tell=tell,
        started=started,
        tensorboard=tensorboard,
        replace_earlier=replace_earlier,
    ).counters


def need_torch(what: str = "training") -> None:
    """Check that torch is installed, for what is named in the message.

    Raises:
        InputError: it is not.
    """
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise InputError(f"{what} requires torch, which is not installed", fix='pip install "greenbatch[learn]"')
