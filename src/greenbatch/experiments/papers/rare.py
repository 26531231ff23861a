"""The study ``rare``: who is compared on what, as data.

RARE (dissertation, 2023), chapter 5, claims how much more value its agent earns than four rules. Its figures 5.1 to 5.6
are not in the text at hand, and neither is its code, so the published figures are the *ranges* that sentences state
(``published/rare.csv``). What the paper leaves open is read as in the shipped scenarios ``rare/…``: none of our figures
is comparable digit by digit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from greenbatch.experiments.papers.studies import Agent, Cell, Goal, Study

NAME = "rare"
"""Name of the study and of its published ranges."""
VALUE = "total_job_value"
"""The paper's metric: the value of all finished jobs (§5.4.2)."""
BASE = "qos+none"
"""The rule that all others are compared with: the paper's QoS, which is the best of its four."""
FIRST = 100
"""First draw: lower ones were looked at when the packer's weights were chosen."""
UNTRAINED = "Untrained masked agent"
"""Row of the paper's network with the weights that its training begins with."""
UNTRAINED_DRAWS = 5
"""Draws that it plays: a network takes a second for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A machine and its jobs: the cell of a figure."""

    about: str
    """In words."""
    scenario: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """What is changed in the scenario: dotted key -> value."""
    draws: int = 20
    """Draws that are played: of all jobs and the power, or, of a trace, of GPUs and QoS alone."""
    trace: bool = False
    """Whether the jobs are those of a real trace."""

    def drawn(self, number: int) -> dict[str, Any]:
        """What is changed for a draw of GPUs and QoS of a trace."""
        return {**self.overrides, "workload.to_pool.seed": number}


def _synthetic(size: str, about: str = "", *, draws: int = 20, **overrides: Any) -> Setting:
    number = size.partition("-")[0]
    small = ", requests up to 5" if size.endswith("fixed5") else ""
    changes = {key.replace("__", "."): value for key, value in overrides.items()}
    return Setting(
        about=f"{int(number):,} processors and GPUs{small}{about}",
        scenario=f"rare/{size}",
        overrides=changes,
        draws=draws,
    )


def _powered(size: str, level: float, about: str = "", *, draws: int = 20, **more: Any) -> Setting:
    power = {"kind": "intermittent", "level": level, "seed": 0}
    text = f", power {100 * level:.0f} %{about}"
    return _synthetic(size, text, draws=draws, cluster__capacity=power, **more)


def _trace(about: str, size: int = 10, jobs: int = 2_150, **overrides: Any) -> Setting:
    """A trace on a machine of any size at the same site: the units are as much smaller as there are more of them."""
    sizes = {
        "cluster.processors": size, "cluster.gpus": size, "rules.pools.largest_request": size // 2,
        "workload.power.unit_w": 120_000 / size, "cluster.idle_power_per_machine_w": 160_000 / size,
        "cluster.capacity.full_power_per_unit_w": 200_000 / size, "workload.to_pool.jobs": jobs,
    }  # fmt: skip
    changes = {key.replace("__", "."): value for key, value in overrides.items()}
    if "cluster.capacity" in changes:
        del sizes["cluster.capacity.full_power_per_unit_w"]
    return Setting(about=about, scenario="rare/anl-like", overrides={**sizes, **changes}, draws=10, trace=True)


HPC2N: dict[str, Any] = {"workload__dataset": "swf/HPC2N-2002-2.2-cln.swf.gz", "jobs": 860}
FULL: dict[str, Any] = {"cluster__capacity": {"kind": "constant", "fraction": 1.0}}


def _pool(ready: int) -> dict[str, int]:
    return {"rules__pools__ready": ready, "rules__pools__actions_per_tick": ready + 2}


SETTINGS: dict[str, Setting] = {
    "10": _synthetic("10"),
    "20": _synthetic("20"),
    "50": _synthetic("50"),
    "50-fixed5": _synthetic("50-fixed5"),
    "100": _synthetic("100", draws=5),
    "100-fixed5": _synthetic("100-fixed5"),
    "300": _synthetic("300", draws=5),
    "300-fixed5": _synthetic("300-fixed5", draws=5),
    "1200": _synthetic("1200", draws=5),
    **{f"{size}-power{level}": _powered(size, level / 100) for size in ("10", "20", "50") for level in (90, 80)},
    **{f"300-fixed5-power{level}": _powered("300-fixed5", level / 100, draws=5) for level in (90, 80)},
    "10-power80-suspending": _powered("10", 0.8, ", suspending for lack of power", rules__pools__suspends="power"),
    **{f"10-horizon{ticks}": _synthetic("10", f", horizon of {ticks} ticks", rules__pools__horizon_s=float(ticks))
       for ticks in (36, 60, 72)},
    **{f"10-pool{ready}": _synthetic("10", f", {ready} ready jobs", **_pool(ready)) for ready in (5, 15, 25)},
    "sdsc-blue": _trace("SDSC Blue Horizon on 10 processors and GPUs that follow sun and wind"),
    "sdsc-blue-20": _trace("SDSC Blue Horizon on 20 processors and GPUs that follow sun and wind", 20),
    "sdsc-blue-30": _trace("SDSC Blue Horizon on 30 processors and GPUs that follow sun and wind", 30),
    "hpc2n": _trace("HPC2N on 10 processors and GPUs that follow sun and wind", **HPC2N),
    **{f"sdsc-blue-horizon{ticks}": _trace(f"SDSC Blue Horizon, all powered, horizon of {ticks} ticks",
                                           rules__pools__horizon_s=900.0 * ticks, **FULL) for ticks in (36, 72)},
    **{f"sdsc-blue-pool{ready}": _trace(f"SDSC Blue Horizon, all powered, {ready} ready jobs", **_pool(ready), **FULL)
       for ready in (5, 15, 25)},
}  # fmt: skip
"""Name, as given to ``--traces`` -> setting."""
USUAL = (
    "10", "20", "50", "50-fixed5", "10-power90", "10-power80", "10-power80-suspending", "20-power90", "20-power80",
    "50-power90", "50-power80", "sdsc-blue", "hpc2n",
)  # fmt: skip
"""Settings by default."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row without training."""

    scheduler: str
    reason: str = ""
    """What it is, where the paper has no such row."""


_BACKFILLED = "the rule with first-fit backfilling, which the paper's framework does not support"
ROWS: tuple[Row, ...] = (
    Row("qos+none"),
    Row("sjf+none"),
    Row("hvf+none"),
    Row("fcfs+none"),
    Row("random-action", "any of the agent's actions, uniformly: what an agent does that has learned nothing"),
    Row("qos+first-fit", _BACKFILLED),
    Row("sjf+first-fit", _BACKFILLED),
    Row("hvf+first-fit", _BACKFILLED),
    Row("fcfs+first-fit", _BACKFILLED),
    Row("packer", "our own rule: the ready jobs that fit together and weigh most"),
    Row("rare-plus@10", "the packer with weights found by search on rare/10, shipped"),
)
"""Rules and shipped models, in the order of the tables; a model of any kind is one more line."""
HEURISTICS = {"QoS": "qos+none", "SJF": "sjf+none", "HVF": "hvf+none", "FCFS": "fcfs+none"}
"""The paper's rules, which do not backfill (§5.4.2)."""
RANDOM, SHIPPED = "random-action", "rare-plus@10"
BESIDE = ("packer", "fcfs+first-fit")
"""Rows that stand beside the agent in the table of claims."""

_SIZES = {"100": "medium", "300": "medium", "1200": "large"}
NETWORK = {
    name: {"network.size": _SIZES[units]} for name in SETTINGS for units in [name.partition("-")[0]] if units in _SIZES
}
"""Setting -> the network there, because ``small`` has more weights than a model may have: the more layers of Table A.5
halve an image of the machine, the fewer numbers are left of it. The paper does not state which size it uses when."""

STUDY = Study(
    name=NAME,
    title="RARE, Figs. 5.1 to 5.6",
    traces={name: setting.scenario for name, setting in SETTINGS.items()},
    usual_traces=USUAL,
    agents=(
        Agent(column="RARE plus", preset="rare-plus", backfills=("none",)),
        Agent(column="RARE", preset="rare", backfills=("none",), overrides=NETWORK),
    ),
    goals=(Goal(name="value", metrics={}),),
    usual_goals=("value",),
    backfills=("none",),
    usual_backfills=("none",),
    baseline=BASE,
    rival="fcfs+first-fit",
)
"""The study as far as its trainings are concerned."""
LONG: dict[str, Any] = {
    "workload.generator.ticks": 100_000, "workload.generator.seed": 2_000_000, "rules.pools.end_s": 0.0,
}  # fmt: skip
"""Jobs of a network's training, which no comparison draws; its episodes end by ``training.episode_s``."""


def training_changes(cell: Cell) -> dict[str, Any]:
    """What is changed in the scenario that an agent is trained on; a search draws its jobs itself."""
    changes = dict(SETTINGS[cell.trace].overrides)
    return changes if cell.agent.preset in USUAL_PRESETS else {**changes, **LONG}


USUAL_PRESETS = ("rare-plus",)
"""Trained by default: half a minute each. ``rare`` takes hours."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What we compare a published range with, and whether it can hold."""

    settings: tuple[str, ...]
    holds: str
    """In a word."""
    reason: str


_MEDIUM = ("100", "100-fixed5", "300", "300-fixed5")
_LACKING = "neither ANL's trace nor GLEAMM's record is at hand: other jobs and other weather"
_FLAT = (
    "with all power nothing in the environment depends on a horizon beyond the longest job, 30 ticks: a gain can only"
    " be the network's"
)
READINGS: dict[str, Reading] = {
    "5.1-small": Reading(
        ("10", "20"), "borderline",
        "over the best rule a packer without knowledge of the future gains 17 % at 10 and 19 % at 20, over the "
        "weakest 19 and 21; nothing online reached 25, and clairvoyant bounds of 30 and 37 % do not exclude it. "
        "First-fit backfilling alone gains 13 and 15 %: most of the claim is what rules lose that do not backfill",
    ),
    "5.1-medium": Reading(
        _MEDIUM, "in part",
        "with requests up to 5 a clairvoyant bound at 100 is 5 % above the best rule, so 20 cannot hold there; with "
        "requests of up to half of the machine there is as much room as at 50",
    ),
    "5.1-large": Reading(
        ("50", "50-fixed5"), "yes",
        "with room: the packer gains 5 % with requests up to 5 and 20 % with requests of up to half of the machine",
    ),
    "5.2": Reading((*_MEDIUM, "1200"), "yes", "the packer gains at every size, with requests up to 5 only 1 % at 100"),
    "random-small": Reading(("10", "20"), "yes", "random actions gain 1 to 2 %, because they do not block"),
    "random-larger": Reading(
        ("50", "50-fixed5"), "in part",
        "only with requests up to 5, where random actions lose 5 % at 50 and 10 % at 100; this is probably the "
        "author's setting",
    ),
    "5.3-qos": Reading(("sdsc-blue", "hpc2n"), "unknown", _LACKING),
    "5.3-others": Reading(("sdsc-blue", "hpc2n"), "unknown", _LACKING),
    "5.3-larger": Reading(("sdsc-blue-20", "sdsc-blue-30"), "unknown", _LACKING),
    "5.4-small": Reading(
        ("10", "10-power90", "10-power80", "10-power80-suspending", "20", "20-power90", "20-power80"), "yes",
        "well inside: the packer gains 23 to 28 % at 90 and 80 %. At 100 % the claim contradicts that of Fig. 5.1, 18"
        " to 25",
    ),
    "5.4-50": Reading(
        ("50", "50-fixed5", "50-power90", "50-power80"), "yes",
        "with requests of up to half of the machine; with requests up to 5 the bound is 10 %. At 100 % the claim "
        "contradicts that of Fig. 5.1, 2 to 6",
    ),
    "5.4-qos": Reading(
        ("300-fixed5", "300-fixed5-power90", "300-fixed5-power80"), "unknown", "no bound was computed at 300"
    ),
    "5.4-others": Reading(
        ("300-fixed5", "300-fixed5-power90", "300-fixed5-power80"), "unknown",
        "no bound was computed at 300; in our reading the four rules differ by 1 %, so an agent cannot be 1 % above "
        "one and 20 % above another",
    ),
    "5.5-36": Reading(("10-horizon36",), "by the network only", _FLAT),
    "5.5-72": Reading(("10-horizon72",), "by the network only", _FLAT),
    "5.5-anl-36": Reading(("sdsc-blue-horizon36",), "by the network only", f"{_FLAT}; {_LACKING}"),
    "5.5-anl-72": Reading(("sdsc-blue-horizon72",), "by the network only", f"{_FLAT}; {_LACKING}"),
    "5.6-15": Reading(("10-pool15",), "yes", "the packer gains 20 % over SJF, which is as flat as the paper says"),
    "5.6-25": Reading(
        ("10-pool25",), "by the network only",
        "what can be gained does not fall with larger pools: the packer is 20 % above SJF with 25 ready jobs and 21 %"
        " with 50",
    ),
    "5.6-anl-5": Reading(("sdsc-blue-pool5",), "unknown", _LACKING),
    "5.6-anl-15": Reading(("sdsc-blue-pool15", "sdsc-blue-pool25"), "unknown", _LACKING),
}  # fmt: skip
"""Name of a published range -> our reading of it."""


def selected(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Settings of a selection, in which ``5.4`` stands for all settings of Fig. 5.4; None for the usual ones."""
    if names is None:
        return None
    figures = {claim.partition("-")[0] for claim in READINGS if claim[0].isdigit()}
    found: list[str] = []
    for name in names:
        if name in figures:
            found += [s for claim, r in READINGS.items() if claim.partition("-")[0] == name for s in r.settings]
        else:
            found.append(name)
    return tuple(dict.fromkeys(found))
