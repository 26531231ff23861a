"""A small off-policy training, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiny import SCENARIO

import greenbatch as gb
from greenbatch.learning.runs.plan import Plan, make_plan

PRESET = """\
name = "small-off-policy"
description = "A small off-policy training on a pool."
[settings]
sticky = 0
tick_s = 600
[observation.queue]
rows = 5
columns = [
  {feature = "wait", scale = 43_200, ceiling = 1},
  {feature = "requested_time", scale = "longest_run_time", ceiling = 1},
  {feature = "processors", scale = "processors"},
  {feature = "fits"},
  {feature = "is_wait"},
]
[observation.running]
rows = 4
columns = [
  {feature = "processors", scale = "processors"},
  {feature = "remaining_time", scale = "longest_run_time", floor = -1, ceiling = 1},
]
[observation.state]
columns = [{feature = "free_share"}]
[action]
wait = true
only_fitting = true
[reward]
terms = {accrued_bounded_slowdown = -1.0}
form = "dense"
[network]
kind = "context"
width = 16
context = 8
[training]
epochs = 4
windows = 3
jobs = 12
gamma = 0.99
actor_lr = 1e-3
critic_lr = 1e-3
grad_clip = 40
validation = {windows = 2, jobs = 12, every = 2}
[training.off_policy]
steps = 6
batch = 32
buffer = 120
fill_windows = 4
schedulers = ["sjf+first-fit", "fcfs+first-fit"]
warm_up_steps = 4
critics = 2
epsilon_decisions = 200
"""


def off_policy_plan(folder: Path, *, overrides: dict[str, Any] | None = None, **given: Any) -> Plan:
    """A training of a second; the buffer of 120 transitions overflows in it."""
    (folder / "tiny.toml").write_text(SCENARIO)
    (folder / "off-policy.toml").write_text(PRESET)
    given = {"threads": 1, **given}
    return make_plan(
        folder / "off-policy.toml", gb.load_scenario(folder / "tiny.toml"), overrides=overrides or {}, **given
    )
