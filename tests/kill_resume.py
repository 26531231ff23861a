"""Kill trainings at random moments and resume them: the final weights must be those of an uninterrupted one.

Usage: ``python tests/kill_resume.py [--kills 20] [--seed 0] [--epochs 8]``; exits with 1 where a byte differs. Every
training is a forked child that is ended with SIGKILL wherever it happens to be: playing, learning, validating, writing.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "learning"))

from tiny import tiny_plan, weights_of

from greenbatch.learning.runs.checkpoint import load_checkpoint
from greenbatch.learning.runs.folder import CHECKPOINT, LOG
from greenbatch.learning.runs.log import read_log
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.training import train

TIMES = {"elapsed_s", "decisions_per_s"}


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


def main() -> int:
    """Kill and resume until there were enough kills; 1 where a run differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    given = parser.parse_args()
    moments = random.Random(given.seed)  # noqa: S311  (no secret)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        plan = tiny_plan(place, epochs=given.epochs, overrides={"training.swa.start": 0.5, "training.actor_lr": 0.01})
        train(plan, place / "warm")  # loads the compiled engine
        begun = time.perf_counter()
        train(plan, place / "reference")
        whole_s = time.perf_counter() - begun
        kills = runs = different = 0
        reached: list[int] = []
        while kills < given.kills:
            run, runs, finished = place / f"run-{runs}", runs + 1, False
            while not finished:
                pid = child(plan, run)
                if kills < given.kills:
                    time.sleep(moments.uniform(0, 0.6 * whole_s))
                    os.kill(pid, signal.SIGKILL)
                _, status = os.waitpid(pid, 0)
                if os.WIFEXITED(status):
                    if os.WEXITSTATUS(status):
                        return 1
                    finished = True
                else:
                    kills += 1
                    log = run / LOG
                    reached.append(len(read_log(log)) if log.exists() else 0)
            different += not same(place / "reference", run)
        print(f"{kills} kills of {runs} trainings of {whole_s:.1f} s, with so many lines in the log: {reached}")
        print("all final weights are those of the uninterrupted training" if not different else f"{different} differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
