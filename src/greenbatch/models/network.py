"""Trained networks as schedulers: observation, scores and decision at each view of the engine, without torch.

The compiled functions of `envs.batch.BatchEnv` fill the observation tables and the network is the ONNX graph of the
trained one, so a model decides as it did in training.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.capabilities import refuse
from greenbatch.engine.entry_points import step
from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.observe.image import unpacked
from greenbatch.engine.program import Program
from greenbatch.engine.settings import A_YEAR_S, SEED, Parameter
from greenbatch.engine.step import wait_until
from greenbatch.engine.views.decode_nodes import MachineOfViews
from greenbatch.engine.views.interface import Decision, Start, View, Wait
from greenbatch.errors import InputError
from greenbatch.models.model import Model
from greenbatch.models.onnx_builder import MEMORY
from greenbatch.models.onnx_graph import build, load
from greenbatch.presets.shapes import shapes_of

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from greenbatch.engine.observe.batch import Seen
    from greenbatch.engine.state import State
    from greenbatch.workload import Workload

PARAMETERS: Mapping[str, Parameter] = {
    "sample": Parameter(
        default=0.0, lowest=0.0, highest=1.0, whole=True,
        meaning="1 draws from the policy, as the papers' evaluations do; 0 takes the best action",
    ),
    "seed": SEED,
    "eager": Parameter(default=0.0, lowest=0.0, highest=1e6, meaning="subtracted from the score of waiting"),
    "hold": Parameter(
        default=604_800.0, lowest=0.0, highest=A_YEAR_S, unit="s",
        meaning="longest wait of a job that fits before waiting is ruled out",
    ),
}  # fmt: skip
"""Options accepted after the model's folder. ``eager`` and ``hold`` are for models that may wait; both trade renewables
for makespan. The default of ``hold`` is the preset's ``longest_hold_s``."""

_OF_WAITING = ("eager", "hold")


class Answer(NamedTuple):
    """Scores and choice of a model at one view."""

    logits: NDArray[np.float32]
    """One per row: the observed waiting jobs in order of submission, or each of them on every node; then waiting if
    that is an action."""
    row: int
    """-1 if there is no choice."""
    delay_logits: NDArray[np.float32]
    """One per delay, for the chosen row."""
    delay: int
    selectable: NDArray[np.bool_]
    """Whether a row may be chosen."""
    delays: NDArray[np.bool_]
    """Whether a delay may be chosen."""


_NONE, _NO_ROWS = np.zeros(0, np.float32), np.zeros(0, np.bool_)
NOTHING_FITS = Answer(_NONE, -1, _NONE, 0, _NO_ROWS, _NO_ROWS)
"""The answer of a model that chooses nodes if no job can be started on any: there is no choice."""


class NetworkPolicy:
    """The policy of a model in one simulation or on one live queue."""

    def __init__(self, model: Model, session: InferenceSession, *, seed: int | None = None, eager: float = 0.0) -> None:
        """Prepare the policy.

        Args:
            model: the model.
            session: its graph, with noise inputs if it samples or ``eager`` is not 0.
            seed: seed for sampling; None to take the best action.
            eager: subtracted from the score of waiting.
        """
        from greenbatch.presets.layout import layout_of

        self.model, self.layout = model, layout_of(model.preset)
        self._session, self._inputs = session, {each.name: each.shape for each in session.get_inputs()}
        self._memory = np.zeros(self._inputs.get(MEMORY, 0), np.float32)
        self._machines: MachineOfViews | None = None
        self._random, self._eager = None if seed is None else np.random.default_rng(seed), eager

    def answer(self, view: View) -> Answer:
        """Scores of a view's rows and delays, and the choice; a network with a memory takes note of the view.

        Raises:
            InputError: the machine is larger than in training, or the scores are not finite.
        """
        from greenbatch.engine.observe.batch import observe_view

        self._check_size(int(view.nodes.processors.sum()))
        return self._answer(observe_view(view, self.layout, self._machine(view)))

    def act(self, state: State) -> None:
        """Choose and carry out the choice in the state of a simulation, where a view does not suffice (`run_policy`).

        Raises:
            InputError: the machine is not the one of the training, or the scores are not finite.
        """
        from greenbatch.engine.observe.batch import carry_out, observe_state

        self._check_size(int(state.machine.totals.processors))
        self._check_image(state)
        answer = self._answer(observe_state(state, self.layout))
        if answer.row < 0:
            step("apply", state)(state, *wait_until(np.inf))
        else:
            carry_out(state, self.layout, answer.row, answer.delay)

    def _answer(self, seen: Seen) -> Answer:
        """Scores and choice for an observation."""
        given: dict[str, Any] = {
            "queue": seen.queue, "selectable": seen.selectable, "running": seen.running, "supply": seen.supply[0],
            "state": seen.state[0], "delays": seen.delays[0], MEMORY: self._memory,
        }  # fmt: skip
        if "image" in self._inputs:
            given["image"] = unpacked(seen.image[0], self.model.preset.observation.image.units).astype(np.float32)
        if self.layout.per_node and not seen.selectable[: len(seen.selectable) - int(self.layout.wait)].any():
            return NOTHING_FITS
        given["row_noise"], given["delay_noise"] = (
            self._noise(len(seen.selectable)),
            self._noise(seen.delays.shape[1]),
        )
        if self._eager:
            given["row_noise"][-1] -= self._eager
        made = self._session.run(None, {name: given[name] for name in self._inputs})
        logits, row, delay_logits, delay, *memory = made
        if not np.isfinite(logits[seen.selectable]).all():
            problem = "scores of the waiting jobs are not finite: the weights are damaged or much too large"
            raise InputError(problem, file=self.model.folder, fix="train the model again")
        self._memory = memory[0] if memory else self._memory
        return Answer(logits, int(row[0]), delay_logits, int(delay[0]), seen.selectable, seen.delays[0])

    def decide(self, view: View) -> Decision:
        """Start the chosen job, possibly after the chosen delay, or wait."""
        answer = self.answer(view)
        if answer.row < 0 or (self.layout.wait and answer.row == len(answer.logits) - 1):
            return Wait()
        if self.layout.per_node:
            row, node = divmod(answer.row, len(view.nodes.processors))
            return Start(row, nodes=(node,))
        delay = self.layout.delays[answer.delay]
        return Start(answer.row, int(delay.kind), float(delay.amount))

    def _machine(self, view: View) -> Nodes | None:
        """The machine of a view, if the model chooses nodes.

        Raises:
            InputError: the view's cluster has no nodes.
        """
        if not self.layout.per_node:
            return None
        cluster = view.cluster
        if self._machines is None or self._machines.cluster is not cluster:
            refuse(self.model.preset.name, [("preset", "pairs")], {"pool": cluster is None or not cluster.on_nodes})
            assert cluster is not None  # noqa: S101  (refused above)
            self._machines = MachineOfViews(cluster)
        return self._machines(view)

    def memory(self) -> dict[str, Any]:
        """What `recall` takes, as plain JSON: what the network remembers, and the random numbers to come."""
        random = None if self._random is None else dict(self._random.bit_generator.state)
        return {"network": self._memory.tolist(), "random": random}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Resume from what `memory` gave.

        Raises:
            InputError: it is the memory of another network.
        """
        known = np.array(memory["network"], np.float32)
        if known.shape != self._memory.shape:
            problem = f"has {known.size} numbers to remember, the network has {self._memory.size}"
            raise InputError(problem, field="memory", fix="load it with the model it was saved for")
        self._memory = known
        if self._random is not None and memory["random"] is not None:
            self._random.bit_generator.state = memory["random"]

    def _noise(self, count: int) -> NDArray[np.float32]:
        """Noise added to logits before taking the largest; Gumbel noise samples from the policy."""
        drawn = np.zeros(count) if self._random is None else self._random.gumbel(size=count)
        return drawn.astype(np.float32)

    def _check_image(self, state: State) -> None:
        """Refuse a machine with other units than those of the image that the network was trained with."""
        image, machine = self.model.preset.observation.image, state.machine
        units = {
            "processors": (image.units - image.gpus, int(machine.totals.processors)),
            "GPUs": (image.gpus, int(machine.totals.gpus)),
        }
        for name, (seen, there) in units.items() if image.ticks else ():
            if seen != there:
                problem = f"sees an image of {seen} {name}, the cluster has {there}"
                fix = f"greenbatch train {self.model.preset.name} for this cluster"
                raise InputError(problem, file=self.model.folder, fix=fix)

    def _check_size(self, there: int) -> None:
        largest = self.model.normalizers.get("processors")
        if largest is not None and there > largest:
            problem = f"was trained for {largest:g} processors, the cluster has {there}"
            fix = f"greenbatch train {self.model.preset.name} for this cluster"
            raise InputError(problem, file=self.model.folder, fix=fix)


@dataclass(frozen=True, slots=True)
class NetworkScheduler:
    """A model with its backfilling, ``gas-marl@runs/a/model+green``."""

    name: str
    model: Model
    backfill: str
    settings: Mapping[str, float]
    """Engine settings from the backfilling's parameters."""
    placement: str
    """Which nodes a job takes; if the network chooses nodes, which it takes beside them."""
    placement_seed: int
    session: InferenceSession
    seed: int | None = None
    """Seed for sampling actions; None to take the best ones."""
    eager: float = 0.0
    """Subtracted from the score of waiting."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the session, which another process creates again."""
        placed = self.placement, self.placement_seed
        return _ready, (self.name, self.model, self.backfill, self.settings, *placed, self.seed, self.eager)

    def program(self, workload: Workload) -> Program:  # noqa: ARG002  (the protocol's)
        """The engine's program for a window of jobs."""
        from greenbatch.presets.layout import program_of

        made = program_of(self.model.preset, self.backfill)
        return replace(
            made, name=self.name, settings={**(made.settings or {}), **self.settings}, placement=self.placement,
            placement_seed=self.placement_seed,
        )  # fmt: skip

    def policy(self) -> NetworkPolicy:
        """A new policy for one simulation."""
        return NetworkPolicy(self.model, self.session, seed=self.seed, eager=self.eager)


def network_scheduler(
    name: str, model: Model, parameters: Mapping[str, float], backfill: str, settings: Mapping[str, float],
    placement: str, placement_seed: int,
) -> NetworkScheduler:  # fmt: skip
    """The scheduler of a network's model.

    Args:
        name: name of the scheduler in reports.
        model: the model.
        parameters: the given ones of `PARAMETERS`.
        backfill: the backfilling.
        settings: engine settings from the backfilling's parameters.
        placement: which nodes a job takes; ``first`` if empty.
        placement_seed: of random placements.

    Raises:
        InputError: a parameter is of waiting and the model never waits, or the weights do not fit the network.
    """
    preset = model.preset
    for parameter in _OF_WAITING:
        if parameter in parameters and not preset.action.wait:
            problem = f"{preset.name} never waits, so it has no parameter {parameter!r}"
            raise InputError(problem, field=name, fix="leave it out")
    if "hold" in parameters:
        action = preset.action.model_copy(update={"longest_hold_s": parameters["hold"]})
        model = replace(model, preset=preset.model_copy(update={"action": action}))
    seed = int(parameters.get("seed", 0.0)) if parameters.get("sample") else None
    placed = placement or "first", placement_seed
    return _ready(name, model, backfill, settings, *placed, seed, parameters.get("eager", 0.0))


def _ready(
    name: str, model: Model, backfill: str, settings: Mapping[str, float], placement: str, placement_seed: int,
    seed: int | None, eager: float,
) -> NetworkScheduler:  # fmt: skip
    session = load(graph_of(model, noise=seed is not None or eager > 0.0))
    return NetworkScheduler(name, model, backfill, settings, placement, placement_seed, session, seed, eager)


def graph_of(model: Model, *, noise: bool = False) -> bytes:
    """The ONNX graph of a model, with its columns, delays and the checksum of its weights as metadata.

    Raises:
        InputError: the model is a planner, or the weights do not fit the preset's network.
    """
    preset, seen = model.preset, model.preset.observation
    if preset.is_planner or preset.is_policy:
        what = "weights of the look-ahead planner" if preset.is_planner else "parameters of a policy"
        problem = f"is a model of {preset.name}: {what} rather than a network"
        raise InputError(problem, file=model.folder, fix="export a model of another preset")
    tables = {"queue": seen.queue.columns, "running": seen.running.columns, "supply": seen.supply.columns,
              "state": seen.state.columns}  # fmt: skip
    columns = {name: [column.model_dump(mode="json") for column in each] for name, each in tables.items()}
    facts = {
        "preset": preset.name,
        "weights_sha256": model.record.weights.sha256,
        "columns": json.dumps(columns),
        "delays": json.dumps([delay.model_dump(mode="json") for delay in preset.action.delays]),
        "wait": json.dumps(preset.action.wait),
    }
    return build(preset.network, shapes_of(preset), model.weights, noise=noise, metadata=facts)
