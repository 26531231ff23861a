"""Presets: files that list an agent's observations, actions and rewards by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Field, ValidationError, model_validator

from greenbatch.engine import settings as engine_settings
from greenbatch.engine.pools import Pools
from greenbatch.engine.settings import Parameter, plain
from greenbatch.errors import InputError, did_you_mean
from greenbatch.presets.scales import Normalizer, scales_of
from greenbatch.presets.term_names import in_preset
from greenbatch.scenarios.check import problems
from greenbatch.scenarios.section import Section
from greenbatch.scenarios.toml import Place, line_of, read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from greenbatch.scenarios import Scenario

SHIPPED = Path(__file__).with_name("shipped")
"""Folder of the shipped presets."""

PRICES_KIND, NODE_PRICES_KIND, LINEAR_KIND, POLICY_KIND = "prices", "node-prices", "linear", "policy"
"""Kinds of network that are found by search: the weights of the look-ahead planner (`lookahead.plan`) and a ranking."""
VALUE = "total_job_value"
"""Term of the reward of a search for parameters of a policy: the value of the jobs that finish."""
FOUND_KINDS = (PRICES_KIND, NODE_PRICES_KIND, LINEAR_KIND, POLICY_KIND)
"""All of them."""

JOULE = {"brown": 1.0, "cost": 0.0, "carbon": 0.0}
"""Keys of a planner's ``[network]``: what a joule weighs by default."""

SETTINGS: dict[str, Parameter] = {
    name: engine_settings.SETTINGS[name]
    for name in ("sticky", "per_instant", "completion_first", "tick_s", "threshold_j")
}
"""Engine settings of a scenario that a preset may override. Machine, supply and forecast cannot be overridden: the
engine's arrays are sized for them, and compiled code checks no bounds."""

_SIGNED = ("remaining_time", "hour_sine", "hour_cosine", "grid_price", "source_price", "until_due", "slack",
           "free_processors", "free_gpus")  # fmt: skip
"""Features that may be negative and therefore have no logarithm."""

Bound = Annotated[float, Field(ge=-1e30, le=1e30)]
Weight = Annotated[float, Field(ge=-1e12, le=1e12)]
Scale = Annotated[float, Field(gt=1e-12, le=1e12)]


class Column(Section):
    """A feature and its normalizer: ``min(max(feature / scale, floor), ceiling)``."""

    feature: str
    """Name of a feature, see ``engine.observe.features``."""
    scale: Scale | Normalizer = 1.0
    """Divisor in the feature's unit, > 0, or the name of a scale that depends on the scenario, see `resolve`."""
    floor: Bound = -1e30
    """Lowest value, after scaling."""
    ceiling: Bound = 1e30
    """Highest value, after scaling."""
    log: bool = False
    """Use ``log(1 + feature / scale)`` instead of ``feature / scale``."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Column:
        if self.floor > self.ceiling:
            raise ValueError(f"the floor {self.floor:g} is above the ceiling {self.ceiling:g}; give a lower one")
        if self.log and self.feature in _SIGNED:
            raise ValueError(f"{self.feature} may be negative, so it has no logarithm; leave out log")
        return self


POWERED = {"power", "power_per_processor", "is_brown", "brown_ratio"}
"""Features that require the power of jobs."""


class Table(Section):
    """A table of an observation."""

    rows: int = Field(default=0, ge=0, le=100_000)
    """Maximum number of rows; further rows are not seen."""
    columns: tuple[Column, ...] = Field(default=(), max_length=256, strict=False)
    empty: tuple[Bound, ...] = Field(default=(), strict=False)
    """Row that pads tables; by default zeros."""


class Queue(Table):
    """The table of the waiting jobs, whose rows are the actions."""

    per_node: bool = False
    """One row for each visible job on each node of the cluster: an action is a pair of a job and a node.

    Only pairs can be chosen in which the job fits on the node now, and decisions are due only if there is one."""
    nodes: int = Field(default=0, ge=0)
    """Number of nodes, filled in by `resolve`."""


class State(Section):
    """Columns of the system as a whole."""

    columns: tuple[Column, ...] = Field(default=(), max_length=256, strict=False)


class Image(Section):
    """The picture of the ticks ahead of a machine whose capacity follows the power, see ``engine.observe.image``."""

    ticks: int = Field(default=0, ge=0, le=10_000)
    """Ticks that are seen, the present one included; 0 for no image."""
    gpus: int = Field(default=0, ge=0)
    """GPUs of the machine, filled in by `resolve`."""
    units: int = Field(default=0, ge=0)
    """Its processors and GPUs, filled in by `resolve`."""


class Observation(Section):
    """What an agent sees."""

    queue: Queue = Queue()
    running: Table = Table()
    supply: Table = Table()
    state: State = State()
    image: Image = Image()
    padded_width: int = Field(default=0, ge=0, le=256)
    """Columns of the padded tables of a single environment; 0: as many as the widest table has."""


class Delay(Section):
    """A delay that may be chosen together with a job (GAS-MARL §4.2.1)."""

    kind: Literal["none", "releases", "seconds"]
    """``none``: now; ``releases``: after ``amount`` running jobs should have ended; ``seconds``: after ``amount`` s."""
    amount: float = Field(default=0.0, ge=0, le=31_622_400.0)
    """Number of jobs or seconds; at most 366 days."""


class Action(Section):
    """What an agent may do."""

    delays: tuple[Delay, ...] = Field(default=(Delay(kind="none"),), max_length=1024, strict=False)
    wait: bool = False
    """Waiting until the next event is an additional action, shown as one more row."""
    suspend: bool = False
    """Suspending a running job is another, shown as the row before it, where the scenario's policies may suspend."""
    only_fitting: bool = False
    """Only jobs that fit now may be chosen."""
    longest_hold_s: float = Field(default=604_800.0, gt=0, le=31_622_400.0)
    """With ``wait``: waiting is not allowed while a job that fits has waited longer than this. [s]"""


class Reward(Section):
    """A weighted sum of terms, see `engine.observe.reward_terms`."""

    terms: dict[str, Weight]
    """Name of a term -> its weight; negative weights make it a cost."""
    form: Literal["sparse", "dense"] = "sparse"
    """``sparse``: all at the end, as published; ``dense``: as it accrues. The sums are equal."""


class Preset(Section):
    """Observations, actions, rewards, network and training of an agent."""

    name: str = Field(pattern=r"^[\w.-]+$", max_length=100)
    """Name of the preset and of its models: letters, digits, underscores, dots and hyphens."""
    description: str
    needs_site: bool = False
    """Whether it is refused without a power supply."""
    backfill: str = "none"
    """Default backfilling during training; a placement may follow it, as in ``easy+worst-fit``."""
    settings: dict[str, float] = Field(default_factory=dict)
    """Keys of `SETTINGS`; they override the scenario's rules."""
    observation: Observation = Observation()
    """Empty for the look-ahead planner; its inputs are listed in ``lookahead.plan``."""
    action: Action = Action()
    reward: Reward
    network: dict[str, Any] = Field(default_factory=dict)
    """See ``learning.networks``."""
    training: dict[str, Any] = Field(default_factory=dict)
    """See ``presets.training``."""

    @property
    def chooses_delays(self) -> bool:
        """Whether an action has a delay other than none."""
        return [delay.kind for delay in self.action.delays] != ["none"]

    @property
    def is_planner(self) -> bool:
        """Whether its model is weights of the look-ahead planner rather than a network."""
        return self.network.get("kind") in (PRICES_KIND, NODE_PRICES_KIND)  # a kind may be unhashable

    @property
    def chooses_nodes(self) -> bool:
        """Whether it is a planner that chooses nodes itself, instead of leaving that to a placement."""
        return self.network.get("kind") == NODE_PRICES_KIND

    @property
    def fill(self) -> float:
        """Of a planner: largest brown share of the energy of a job that fills idle processors; 0 for no filling."""
        return float(self.network.get("fill", 0.0))

    @property
    def joule(self) -> tuple[float, float, float]:
        """Of a planner: what a joule weighs by default: brown energy, cost and carbon (`power.protocol.Weights`)."""
        brown, cost, carbon = (float(self.network.get(name, usual)) for name, usual in JOULE.items())
        return brown, cost, carbon

    @property
    def is_ranking(self) -> bool:
        """Whether its model is a linear ranking, found by search."""
        return self.network.get("kind") == LINEAR_KIND

    @property
    def is_policy(self) -> bool:
        """Whether its model is parameters of a built-in policy, found by search."""
        return self.network.get("kind") == POLICY_KIND

    @property
    def sees_power(self) -> bool:
        """Whether it observes the power of jobs."""
        seen = self.observation
        return any(c.feature in POWERED for c in (*seen.queue.columns, *seen.running.columns, *seen.state.columns))


def shipped_names() -> tuple[str, ...]:
    """Names of the shipped presets."""
    return tuple(sorted(file.stem for file in SHIPPED.glob("*.toml")))


def preset(name_or_path: str | Path) -> Preset:
    """A preset by name, or from a TOML file.

    A file with ``extends = "NAME"`` overrides keys of the preset of that name; a name that ends in .toml is a file in
    the same folder.

    Raises:
        InputError: there is no such preset, or it is not valid.
    """
    raw, file, lines = _read(name_or_path)
    return check(raw, file=file, lines=lines)


def _read(name_or_path: str | Path, extended: tuple[Path, ...] = ()) -> tuple[dict[str, Any], Path, dict[Place, int]]:
    """Values of a preset, merged with those of the preset it extends; its file; and the line of each key in it."""
    text = str(name_or_path)
    file = SHIPPED / f"{text}.toml" if text in shipped_names() else Path(text)
    if file.suffix != ".toml":
        known = ", ".join(shipped_names())
        fix = did_you_mean(text, shipped_names(), then=f"known: {known}; or give a file NAME.toml")
        raise InputError(f"there is no preset {text!r}", field="preset", fix=fix)
    raw, lines = read_toml(file)
    raw = _with_current_names(raw, file)
    base = raw.pop("extends", None)
    if base is None:
        return raw, file, lines
    if not isinstance(base, str) or file in extended:
        problem = "extends itself" if file in extended else f"is {base!r}"
        raise InputError(problem, file=file, line=lines.get(("extends",)), field="extends", fix="name another preset")
    parent = base if base in shipped_names() or not base.endswith(".toml") else file.parent / base
    values, origin, origin_lines = _read(parent, (*extended, file))
    check(values, file=origin, lines=origin_lines)
    return _merged(values, raw), file, lines


def _merged(values: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Values with overrides: tables are merged key by key, everything else is replaced."""
    merged = dict(values)
    for key, value in overrides.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def check(raw: dict[str, Any], *, file: str | Path | None = None, lines: dict[Any, int] | None = None) -> Preset:
    """A preset from plain values.

    Raises:
        InputError: a key is unknown, missing or wrong, or there is no such feature or term.
    """
    raw = _with_current_names(raw, file)
    try:
        made = Preset.model_validate(raw)
    except ValidationError as error:
        raise problems(error, raw, Preset, file=file, lines=lines or {})[0] from None
    _check_settings(made, file, lines or {})
    _check_names(made, file)
    return made


def _with_current_names(raw: dict[str, Any], file: str | Path | None) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", in_preset(raw))
    except ValueError as error:
        problem, _, fix = str(error).partition("; ")
        raise InputError(problem, file=file, fix=fix) from None


def _check_settings(made: Preset, file: str | Path | None, lines: Mapping[Any, int]) -> None:
    for name, value in made.settings.items():
        field, line = f"settings.{name}", line_of(("settings", name), lines)
        if name not in SETTINGS:
            fix = did_you_mean(name, SETTINGS, then="known: " + ", ".join(SETTINGS))
            raise InputError("is not a setting that a preset may override", file=file, line=line, field=field, fix=fix)
        if not SETTINGS[name].takes(value):
            fix = f"give {SETTINGS[name].span}"
            raise InputError(f"is {plain(value)}", file=file, line=line, field=field, fix=fix)


def queue_codes(*, per_node: bool) -> dict[str, int]:
    """Name of a feature of the queue's rows -> its code in compiled code; features of pairs only with nodes.

    Those of brown energy are not known for pairs: they are of the job's own power, whatever its node draws.
    """
    from greenbatch.engine.observe.features import QUEUE_FEATURES
    from greenbatch.engine.observe.pair_features import FIRST_PAIR_FEATURE, PAIR_FEATURES

    unknown = {"is_brown", "brown_ratio"} if per_node else set()
    codes = {name: code for code, name in enumerate(QUEUE_FEATURES) if name not in unknown}
    return codes | ({name: FIRST_PAIR_FEATURE + k for k, name in enumerate(PAIR_FEATURES)} if per_node else {})


def _check_names(made: Preset, file: str | Path | None) -> None:
    from greenbatch.engine.machine.placement import PLACEMENTS
    from greenbatch.engine.observe import features
    from greenbatch.engine.observe.reward_terms import TERMS
    from greenbatch.engine.program import BACKFILLS, beside

    seen, (backfill, placement) = made.observation, beside(made.backfill)
    for field, names, known in (
        (
            "observation.queue.columns",
            [c.feature for c in seen.queue.columns],
            queue_codes(per_node=seen.queue.per_node),
        ),
        ("observation.running.columns", [c.feature for c in seen.running.columns], features.RUNNING_FEATURES),
        ("observation.supply.columns", [c.feature for c in seen.supply.columns], features.SUPPLY_FEATURES),
        ("observation.state.columns", [c.feature for c in seen.state.columns], features.STATE_FEATURES),
        ("reward.terms", list(made.reward.terms), {VALUE} if made.is_policy else TERMS),
        ("backfill", [backfill], BACKFILLS),
        ("backfill", [placement] if placement else [], PLACEMENTS),
    ):
        for name in names:
            if name not in known:
                if field == "observation.queue.columns" and name in queue_codes(per_node=True):
                    problem, fix = f"{name} is a feature of pairs", "set observation.queue.per_node = true"
                    raise InputError(f"{problem}: it needs per_node = true", file=file, field=field, fix=fix)
                fix = did_you_mean(name, known, then="known: " + ", ".join(known))
                raise InputError(f"{name!r} is not known", file=file, field=field, fix=fix)
    ticks = [column.feature in features.OF_TICKS for column in seen.supply.columns]
    if any(ticks) and not all(ticks):
        problem, fix = "are of slots of the supply and of ticks ahead", "give columns of one kind"
        raise InputError(problem, file=file, field="observation.supply.columns", fix=fix)
    kind = made.network.get("kind")
    if made.training.get("search") is not None and kind not in FOUND_KINDS:
        wrong = f"is {kind!r:.40}" + ("" if kind is None or isinstance(kind, str) else ", not a word")
        fix = f"leave out training.search: it finds networks of kind {', '.join(FOUND_KINDS[:-1])} or {FOUND_KINDS[-1]}"
        raise InputError(wrong, file=file, field="network.kind", fix=fix)
    fill = made.network.get("fill", 0.0) if made.is_planner else 0.0
    if isinstance(fill, bool) or not isinstance(fill, int | float) or not 0.0 <= fill <= 1.0:
        fix = "give a share from 0 to 1; 0 for no filling"
        raise InputError(f"is {fill!r:.40}", file=file, field="network.fill", fix=fix)
    for name in JOULE if made.is_planner else ():
        weight = made.network.get(name, 0.0)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0.0 <= weight <= 1e6:
            problem, fix = f"is {weight!r:.40}", "give a number from 0 to 1e6"
            raise InputError(problem, file=file, field=f"network.{name}", fix=fix)
    sees_itself = made.is_planner or made.is_policy
    needed = {
        "observation.queue.columns": (sees_itself or seen.queue.columns, "give at least one column"),
        "observation.queue.rows": (sees_itself or seen.queue.rows, "give the number of jobs that are seen, >= 1"),
        "reward.terms": (made.reward.terms, "give at least one term"),
        "action.delays": (made.action.delays, 'give at least {kind = "none"}'),
    }
    for field, (given, fix) in needed.items():
        if not given:
            raise InputError("is 0" if field.endswith("rows") else "is empty", file=file, field=field, fix=fix)


def resolve(made: Preset, scenario: Scenario) -> Preset:
    """The preset with every normalizer as a number; some depend on the scenario.

    Raises:
        InputError: it does not go with the scenario, see ``capabilities.toml``, or may wait without ticks.
    """
    refuse_preset(made, scenario)
    rules = scenario.rules
    made = _with_pools(made, scenario)
    if not made.observation.queue.per_node and made.action.wait and not made.settings.get("tick_s", rules.tick_s) > 0:
        problem = f"{made.name} may wait and therefore requires decisions between events"
        raise InputError(problem, field="settings.tick_s", fix="set it, for example to 1800")
    scales = scales_of(scenario)

    def number(column: Column) -> Column:
        if not isinstance(column.scale, str):
            return column
        if column.scale not in scales:
            problem = f"{column.scale} is a scale of nodes, and {scenario.name} has a pool of processors"
            raise InputError(problem, field=column.feature, fix="use a cluster with [[cluster.groups]]")
        return column.model_copy(update={"scale": scales[column.scale]})

    seen = made.observation
    tables = {
        kind: table.model_copy(update={"columns": tuple(number(column) for column in table.columns)})
        for kind, table in (("queue", seen.queue), ("running", seen.running), ("supply", seen.supply),
                            ("state", seen.state))
    }  # fmt: skip
    if scenario.cluster.on_nodes and seen.queue.per_node:
        tables["queue"] = tables["queue"].model_copy(update={"nodes": len(scenario.cluster.node_names)})
    return made.model_copy(update={"observation": seen.model_copy(update=tables)})


def refuse_preset(made: Preset, scenario: Scenario) -> None:
    """Refuse an agent that does not go with a scenario, see ``capabilities.toml``.

    Raises:
        InputError: it does not.
    """
    from greenbatch.engine.capabilities import asked, refuse, with_settings
    from greenbatch.engine.program import beside

    features = {
        **with_settings(scenario.features, made.settings),
        **asked(*beside(made.backfill)),
        "delays": made.chooses_delays,
    }
    refuse(made.name, kinds_of(made), features)


def kinds_of(made: Preset) -> list[tuple[str, str]]:
    """What a preset shows to its agent, as parts of the table of what works with what."""
    from greenbatch.engine.observe.features import OF_TICKS
    from greenbatch.policies.registry import ENTRIES

    seen = made.observation
    shown = {
        "jobs": not seen.queue.per_node, "pairs": seen.queue.per_node, "image": seen.image.ticks > 0,
        "ticks": any(column.feature in OF_TICKS for column in seen.supply.columns),
        "supply": made.needs_site or any(column.feature not in OF_TICKS for column in seen.supply.columns),
        "power": made.sees_power, "delays": made.chooses_delays, "node-prices": made.chooses_nodes,
        "network": not (made.is_planner or made.is_policy), "searched": made.is_policy,
    }  # fmt: skip
    policy = "lookahead" if made.is_planner else "agent"
    if made.is_policy and (entry := ENTRIES.get(str(made.network.get("policy")))) is not None:
        policy = entry.row
    return [("policy", policy), *(("preset", name) for name, holds in shown.items() if holds)]


def _with_pools(made: Preset, scenario: Scenario) -> Preset:
    """The preset with what depends on whether the capacity of the machine follows the power.

    There, an agent that may wait is asked again at every tick, and suspends if policies may.
    """
    cluster, seen = scenario.cluster, made.observation
    if cluster.powered is None:
        return made.model_copy(update={"action": made.action.model_copy(update={"suspend": False})})
    pools = scenario.rules.pools or Pools()
    settings = {**made.settings, "tick_s": pools.tick_s} if made.action.wait else made.settings
    action = made.action.model_copy(update={"suspend": made.action.suspend and pools.suspends == "swap"})
    if seen.image.ticks:
        units = {"gpus": cluster.gpus, "units": cluster.processors + cluster.gpus}
        seen = seen.model_copy(update={"image": seen.image.model_copy(update=units)})
    return made.model_copy(update={"settings": settings, "action": action, "observation": seen})
