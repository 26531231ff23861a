"""Kill trainings at random moments and resume them: the final weights must be those of an uninterrupted one.

Usage: ``python tests/kill_resume.py [PRESET ...] [--kills 20] [--seed 0] [--epochs 8]``, by default for every preset of
`TRAININGS`; exits with 1 where a byte differs. Every training is a forked child that is ended with SIGKILL wherever it
happens to be: playing, learning, averaging weights, validating, writing.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "learning"))

from off_policy import off_policy_plan
from tiny import tiny_plan, weights_of

from greenbatch.learning.runs.checkpoint import load_checkpoint
from greenbatch.learning.runs.folder import CHECKPOINT, LOG
from greenbatch.learning.runs.log import read_log
from greenbatch.learning.runs.plan import Plan, make_plan
from greenbatch.learning.trainers import train_or_search
from greenbatch.scenarios import load_scenario

TIMES = {"elapsed_s", "decisions_per_s", "jobs_per_s", "steps_per_minute"}
train = partial(train_or_search, watch=lambda _: None)


def of_rlscheduler(place: Path, epochs: int) -> Plan:
    """Networks on a pool, selected on validation windows."""
    return tiny_plan(place, epochs=epochs, overrides={"training.swa.start": 0.5, "training.actor_lr": 0.01})


def with_memory(place: Path, epochs: int) -> Plan:
    """A network with a memory, whole trajectories in minibatches."""
    sizes = {"network": {"kind": "recurrent", "hidden": 16}, "training.minibatch": 40}
    return tiny_plan(place, epochs=epochs, overrides=sizes)


def on_nodes(preset: str, sizes: dict[str, Any], place: Path, epochs: int) -> Plan:
    """A preset that chooses nodes, on InEPS's platform."""
    del place
    overrides = {"training.windows": 3, "training.jobs": 30, **sizes}
    return make_plan(
        preset, load_scenario("ineps/adaptability-mixed"), overrides=overrides, epochs=epochs, threads=1
    )  # fmt: skip


PRICED = {
    "workload.generator.jobs": 300, "site.grid.price": {"kind": "constant", "value": 0.3, "unit": "EUR/kWh"},
    "site.grid.carbon": {"kind": "constant", "value": 400, "unit": "g/kWh"},
}  # fmt: skip


def with_prices(preset: str, sizes: dict[str, Any], place: Path, epochs: int) -> Plan:
    """A preset that weighs cost, on a pool."""
    del place
    return make_plan(preset, load_scenario("default", overrides=PRICED), overrides=sizes, epochs=epochs, threads=1)


def off_policy(place: Path, epochs: int) -> Plan:
    """Off-policy with a buffer that overflows, begun from a rule's decisions."""
    return off_policy_plan(place, epochs=epochs)


PASSES = {"training.passes": 2, "training.critic_passes": 2, "training.swa.start": 0.5}
TRAININGS: dict[str, Callable[[Path, int], Plan]] = {
    "rlscheduler": of_rlscheduler,
    "off-policy": off_policy,
    "memory": with_memory,
    "ineps": partial(on_nodes, "ineps", PASSES),
    "ineps-plus": partial(on_nodes, "ineps-plus", {}),
    "ineps-plus-edp": partial(on_nodes, "ineps-plus-edp", {}),
    **{
        name: partial(
            with_prices,
            name,
            {
                "training.windows": 2,
                "training.jobs": 30,
                "training.passes": 2,
                "training.validation.windows": 2,
                "training.validation.jobs": 30,
                "training.validation.every": 2,
            },
        )
        for name in ("cost-aware", "one-action", "no-cost-signal")
    },
    "cost-aware-plus": partial(
        with_prices, "cost-aware-plus", {"training.windows": 2, "training.jobs": 60, "training.search.begin": ""}
    ),
}
"""Preset -> a small training in a folder, of some epochs. Presets with averaged weights average half of the epochs."""


def child(plan: Plan, folder: Path) -> int:
    """Start or resume a training in a process of its own; its id."""
    if (pid := os.fork()) == 0:
        try:
            train(plan, folder)
            os._exit(0)
        except BaseException as error:  # noqa: BLE001  (the parent must hear of it)
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
    return pid


def same(reference: Path, run: Path) -> bool:
    """Whether a run ended with the reference's weights, optimizers and figures."""
    ours, theirs = (load_checkpoint(folder / CHECKPOINT) for folder in (reference, run))
    tensors = ours.tensors.keys() == theirs.tensors.keys() and all(
        value.tobytes() == theirs.tensors[name].tobytes() for name, value in ours.tensors.items()
    )
    figures = [
        [{key: value for key, value in record.items() if key not in TIMES} for record in read_log(folder / LOG)]
        for folder in (reference, run)
    ]
    return tensors and weights_of(reference) == weights_of(run) and figures[0] == figures[1]


def killed(name: str, plan: Plan, place: Path, kills: int, moments: random.Random) -> bool:
    """Kill trainings and resume them until there were enough kills; whether all ended as an uninterrupted one."""
    train(plan, place / "warm")  # loads the compiled engine
    begun = time.perf_counter()
    train(plan, place / "reference")
    whole_s = time.perf_counter() - begun
    done = runs = different = 0
    reached: list[int] = []
    while done < kills:
        run, runs, finished = place / f"run-{runs}", runs + 1, False
        while not finished:
            pid = child(plan, run)
            if done < kills:
                time.sleep(moments.uniform(0, 0.6 * whole_s))
                os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            if os.WIFEXITED(status):
                if os.WEXITSTATUS(status):
                    return False
                finished = True
            else:
                done += 1
                log = run / LOG
                reached.append(len(read_log(log)) if log.exists() else 0)
        different += not same(place / "reference", run)
    print(f"{name}: {done} kills of {runs} trainings of {whole_s:.1f} s, with so many lines in the log: {reached}")
    equal = "all final weights are those of the uninterrupted training"
    print(f"{name}: {equal}" if not different else f"{name}: {different} differ", flush=True)
    return not different


def main() -> int:
    """Kill and resume trainings of some presets; 1 where a run differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("presets", nargs="*", metavar="PRESET", help=", ".join(TRAININGS))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    given = parser.parse_args()
    equal = True
    for name in given.presets or TRAININGS:
        with tempfile.TemporaryDirectory() as scratch:
            plan = TRAININGS[name](Path(scratch), given.epochs)
            moments = random.Random(given.seed)  # noqa: S311  (no secret)
            equal &= killed(name, plan, Path(scratch), given.kills, moments)
    return int(not equal)


if __name__ == "__main__":
    sys.exit(main())
