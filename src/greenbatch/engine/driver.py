"""A scheduler driven from views, one decision at a time, as a live batch system would ask it.

At every view, the state of a simulation at that moment is made from the view and from what the scheduler remembers,
the decisions that are due are made in it, and the jobs that start there are the answers. Policy, backfilling,
commitment and planners are therefore the engine's own code, and starts are the same as in a simulation.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.answers import action_of
from greenbatch.engine.checked_view import checked_view
from greenbatch.engine.codes import BACKFILL, BAD_SCORE, BY_SCORE, WAKE_UP
from greenbatch.engine.entry_points import step, with_decider
from greenbatch.engine.from_view import state_of
from greenbatch.engine.interface import CAUSES, Decision, Policy, Start, View, Wait
from greenbatch.engine.machine.protocol import machine_of
from greenbatch.engine.prepare import rule_settings
from greenbatch.engine.program import Program, decider_of, queue_now, refuse_scores, rule_may_fail, scores_of
from greenbatch.engine.records import Clock, dtype_of, table_of
from greenbatch.engine.rules import Rules
from greenbatch.engine.session import view_of
from greenbatch.engine.stacked import leaves
from greenbatch.engine.state import State, set_rules
from greenbatch.errors import InputError
from greenbatch.storage import replace_file
from greenbatch.workload import Workload


class Waited:
    """What is remembered of a waiting job."""

    job_id: int
    promised_s: float
    planned_s: float
    score: float


class Ran:
    """What is remembered of a running job."""

    job_id: int
    end_s: float
    """Requested end."""


class Known:
    """A job submitted so far."""

    job_id: int
    submit_s: float
    requested_time_s: float
    processors: int


@dataclass
class Memory:
    """What a scheduler remembers from one view to the next."""

    clock: Any = field(default_factory=lambda: table_of(Clock, 1))
    """The clock at the last view: the committed job and its reservation."""
    committed_id: int = -1
    waited: Any = field(default_factory=lambda: table_of(Waited, 0))
    """The waiting jobs, in the order of the queue."""
    ran: Any = field(default_factory=lambda: table_of(Ran, 0))
    known: Any = field(default_factory=lambda: table_of(Known, 0))
    """All jobs so far, if the policy learns from them."""
    answers: list[int] = field(default_factory=list)
    """Jobs that start at this instant and have not been started yet."""
    wake_s: float = np.inf
    """When to be asked again."""
    longest_s: float = 0.0
    """Longest requested time so far."""
    seen_s: float = -np.inf
    """Time of the last view."""
    asked_s: float = np.nan
    """Instant whose decisions have been made, NaN if they have all been given as answers."""


class ViewDriver:
    """A scheduler as a policy that answers views, with its own backfilling, commitment and memory.

    The batch system asks after every submission and every end, and at the time of the last `Wait`. It starts a job at
    once when told to, asks again, and does nothing else: in a simulation, that is a `Session` without backfilling under
    ``commitment = reconsider``.
    """

    def __init__(self, program: Program, policy: Policy | None, cluster: Cluster, rules: Rules) -> None:
        """Prepare the scheduler.

        Args:
            program: its program, see `program.Scheduler`; made for any jobs.
            policy: its Python object, None if the engine decides.
            cluster: the machines.
            rules: how the batch system reacts.
        """
        self.program, self.policy, self.cluster, self.rules = program, policy, cluster, rules
        self.memory = Memory()
        self._decider: Any = None

    def decide(self, view: View) -> Decision:
        """Start the next job that is due at this instant, one per call, or wait until the next event or a time.

        Raises:
            InputError: the view is not possible, a job that was to start at this instant no longer waits, a rule fails,
                or a policy answers what is no decision or chooses a DVFS level or nodes.
        """
        memory = self.memory
        if memory.asked_s != view.now_s:
            view = checked_view(view, self.program, memory.seen_s)
            memory.seen_s = float(view.now_s)
            if len(view.job_id) == 0:
                return Wait()
            self._ask(view)
        if memory.answers:
            job = memory.answers.pop(0)
            row = np.flatnonzero(view.job_id == job)
            if row.size == 0:
                problem = f"decided to start job {job}, which no longer waits at {view.now_s:g} s"
                raise InputError(problem, field=self.program.name, fix="show the view of the same instant again")
            if not memory.answers and len(view.job_id) == 1:
                memory.asked_s = np.nan  # nobody is left to ask about
            return Start(int(row[0]))
        memory.asked_s = np.nan
        return Wait(float(memory.wake_s))

    def _ask(self, view: View) -> None:
        """Make the decisions of this instant in a state made from the view, and remember what the next one needs."""
        memory, ids = self.memory, np.concatenate([view.job_id, view.running.job_id])
        self._learn(view)
        memory.longest_s = float(view.queue.requested_time_s.max(initial=memory.longest_s))
        ahead_s = 0.0 if self.program.decider is None else self.program.decider.ahead_s
        state = state_of(view, ahead_s, memory.longest_s, machine_of(self.cluster, _workload_of(view)))
        settings = rule_settings(self.program)
        if self.program.score is not None and not self.program.fixed and self.program.compiled is None:
            settings["ranking"] = BY_SCORE
        set_rules(state, self.rules, settings)
        self._recall(state, view)
        memory.wake_s = self._settle(state, ids, view)
        log = state.log[: state.clock.logged]
        memory.answers = ids[log["job"][log["kind"] <= BACKFILL]].tolist()
        memory.asked_s = view.now_s
        self._remember(state, ids)

    def _settle(self, state: State, ids: Any, view: View) -> float:
        """Make all decisions that are due; return the next wake-up. [s]"""
        program, clock = self.program, state.clock
        plain = program.score is not None and not program.fixed and program.compiled is None
        if self.policy is None and not plain:
            with rule_may_fail(program):
                wake_s = float(with_decider("settle", state, self._decider)(state, self._decider))
            if clock.status == BAD_SCORE:
                refuse_scores(program.name, float(clock.now_s))
            return wake_s
        due, apply = step("is-due", state), step("apply", state)
        while due(state):
            if self.policy is None:
                now_s = float(clock.now_s)
                state.queue.score[clock.first : clock.last] = scores_of(program, queue_now(state), now_s)
                with_decider("decide", state, self._decider)(state, self._decider)
                continue
            decision = self.policy.decide(view_of(state, ids, view.supply))
            if isinstance(decision, Start) and decision.dvfs_level is not None:  # a view does not state levels
                fix = "leave dvfs_level out, or simulate the policy itself"
                raise InputError("chooses a DVFS level, which a ViewDriver cannot pass on", field=program.name, fix=fix)
            if isinstance(decision, Start) and decision.nodes:
                fix = "leave nodes out, or ask the policy itself"
                raise InputError("chooses nodes, which a ViewDriver cannot pass on", field=program.name, fix=fix)
            apply(state, *action_of(decision, clock, program.name))
        return float(step("wake", state)(state))

    def _learn(self, view: View) -> None:
        """Create the decider at the first view, and tell it which jobs have been submitted."""
        program = self.program
        learns = program.decider is not None and program.decider.learn is not None
        new = np.flatnonzero(~np.isin(view.job_id, self.memory.known["job_id"])) if learns else np.zeros(0, np.int64)
        if new.size:
            rows = table_of(Known, new.size)
            rows["job_id"], rows["submit_s"] = view.job_id[new], view.queue.submit_s[new]
            rows["requested_time_s"], rows["processors"] = view.queue.requested_time_s[new], view.queue.processors[new]
            self.memory.known = np.concatenate([self.memory.known, rows])
        known = self.memory.known
        if self._decider is None:
            jobs = _workload(known) if learns else _workload(table_of(Known, 0))
            self._decider = decider_of(program, jobs, self.cluster, self.rules)
        elif new.size and program.decider is not None and program.decider.learn is not None:
            self._decider = program.decider.learn(self._decider, _workload(known), self.cluster, self.rules)

    def _recall(self, state: State, view: View) -> None:
        """Write what is remembered to a state made from a view."""
        memory, clock, queue, jobs = self.memory, state.clock, state.queue, state.jobs
        count = len(view.job_id)
        clock.event = next((kind for kind, name in CAUSES.items() if name == view.cause), WAKE_UP)
        state.rules.twins = np.unique(view.queue.submit_s).size < count
        if self.program.score is not None and self.program.fixed:
            jobs["score"][:count] = scores_of(self.program, queue_now(state), view.now_s)
        rank = {int(job): k for k, job in enumerate(memory.waited["job_id"])}
        order = sorted(range(count), key=lambda row: rank.get(int(view.job_id[row]), count))
        queue.job[:count] = order
        queue.processors[:count], queue.requested_s[:count] = jobs["processors"][order], jobs["requested_s"][order]
        queue.score[:count] = jobs["score"][order]
        for position, row in enumerate(order):
            at = rank.get(int(view.job_id[row]))
            if at is not None:
                for name in ("promised_s", "planned_s"):
                    jobs[name][row] = memory.waited[name][at]
                if not self.program.fixed:
                    queue.score[position] = memory.waited["score"][at]
        gone = ~np.isin(memory.ran["job_id"], view.running.job_id)
        clock.early = bool((memory.ran["end_s"][gone] != view.now_s).any())
        where = np.flatnonzero(view.job_id == memory.committed_id)
        if where.size:
            last = memory.clock[0]
            for name in ("until_s", "held", "reserved", "wake_at_end", "shadow_s", "spare"):
                setattr(clock, name, last[name])
            clock.committed = int(where[0])

    def _remember(self, state: State, ids: Any) -> None:
        """Keep what the next view needs."""
        memory, clock, jobs = self.memory, state.clock, state.jobs
        memory.clock[0] = clock
        memory.committed_id = int(ids[clock.committed]) if clock.committed >= 0 else -1
        rows = state.queue.job[clock.first : clock.last]
        memory.waited = table_of(Waited, rows.size)
        memory.waited["job_id"], memory.waited["score"] = ids[rows], state.queue.score[clock.first : clock.last]
        memory.waited["promised_s"], memory.waited["planned_s"] = jobs["promised_s"][rows], jobs["planned_s"][rows]
        running = state.expected[clock.expected_first : clock.expected_first + clock.running]
        memory.ran = table_of(Ran, running.shape[0])
        memory.ran["job_id"], memory.ran["end_s"] = ids[running["job"]], running["end_s"]

    def save(self, file: str | Path) -> None:
        """Save what the scheduler remembers, so that another process can resume with `load`.

        Args:
            file: the file, ``.npz``.

        Raises:
            InputError: the file cannot be written, or the policy's ``memory()`` is not JSON.
        """
        memory = self.memory
        plain = {"committed_id": memory.committed_id, "answers": memory.answers, "wake_s": memory.wake_s,
                 "asked_s": memory.asked_s, "longest_s": memory.longest_s, "seen_s": memory.seen_s,
                 "program": self.program.name, "cluster": repr(self.cluster), "rules": asdict(self.rules)}  # fmt: skip
        plain["begun"] = self._decider is not None
        plain["policy"] = cast(Any, self.policy).memory() if hasattr(self.policy, "memory") else None
        arrays = {name: np.asarray(getattr(memory, name)) for name in ("clock", "waited", "ran", "known")}
        decider = {f"decider.{name}": each for name, each in leaves(self._decider) if isinstance(each, np.ndarray)}
        packed = io.BytesIO()
        try:
            text = json.dumps(plain)
        except (TypeError, ValueError) as error:
            problem, fix = (
                f"memory() returned what is not JSON: {error}",
                "return numbers, texts, lists and dictionaries",
            )
            raise InputError(problem, field=self.program.name, fix=fix) from None
        cast(Any, np.savez)(packed, plain=np.array(text), **arrays, **decider)
        try:
            replace_file(Path(file), packed.getvalue())
        except OSError as error:
            fix = "give a file in a folder that exists and can be written to"
            raise InputError(f"cannot be written: {error.strerror}", file=str(file), fix=fix) from None

    def load(self, file: str | Path) -> None:
        """Continue from what `save` wrote.

        Raises:
            InputError: the file does not belong to this scheduler, or is damaged.
        """
        try:
            with np.load(io.BytesIO(Path(file).read_bytes()), allow_pickle=False) as found:
                arrays = dict(found)
            plain = json.loads(str(arrays.pop("plain")))
            program, policy, begun = (plain.pop(name) for name in ("program", "policy", "begun"))
            cluster, rules = plain.pop("cluster"), plain.pop("rules")
            layouts = {"clock": Clock, "waited": Waited, "ran": Ran, "known": Known}
            memory = Memory(**{name: arrays[name].astype(dtype_of(each)) for name, each in layouts.items()}, **plain)
        except Exception as error:  # noqa: BLE001  (a damaged archive raises anything)
            problem = f"cannot be read, {type(error).__name__}: {error}"
            raise InputError(problem, file=str(file), fix="use another copy, or start without a memory") from None
        if program != self.program.name:
            raise InputError(f"is the memory of {program}", file=str(file), fix=f"load it with {program}")
        if cluster != repr(self.cluster):
            raise InputError("was saved with another cluster", file=str(file), fix="load it with that cluster")
        if differ := [name for name, value in asdict(self.rules).items() if rules.get(name) != value]:
            problem = "was saved with " + ", ".join(f"{name} = {rules.get(name)!r}" for name in differ)
            raise InputError(problem, file=str(file), fix="load it with those rules")
        decider = decider_of(self.program, _workload(memory.known), self.cluster, self.rules) if begun else None
        for name, each in leaves(decider):
            if isinstance(each, np.ndarray):
                kept = arrays.get(f"decider.{name}")
                if kept is None or kept.shape != each.shape:
                    problem = f"does not fit {program} on {self.cluster.processors} processors"
                    raise InputError(problem, file=str(file), fix="load it with the cluster it was saved for")
                each[...] = kept
        if hasattr(self.policy, "recall"):
            try:
                cast(Any, self.policy).recall(policy)
            except InputError:
                raise
            except Exception as error:
                problem = f"recall failed, {type(error).__name__}: {error}"
                raise InputError(problem, field=self.program.name, fix="take back what memory() returned") from error
        self.memory, self._decider = memory, decider


def _workload_of(view: View) -> Workload:
    """The waiting and the running jobs of a view, for a machine that has to know what they ask for."""
    queue, running = view.queue, view.running
    requested_s = np.concatenate([queue.requested_time_s, running.expected_end_s - running.start_s])
    return Workload.from_columns("view", {
        "job_id": np.concatenate([view.job_id, running.job_id]), "requested_time_s": requested_s,
        "submit_s": np.concatenate([queue.submit_s, running.start_s]), "run_time_s": requested_s,
        "processors": np.concatenate([queue.processors, running.processors]),
        "power_w": np.concatenate([queue.power_w, running.power_w]),
    })  # fmt: skip


def _workload(known: Any) -> Workload:
    """The jobs so far, as far as they are known: requested times stand for run times."""
    columns = {name: np.array(known[name]) for name in ("job_id", "submit_s", "requested_time_s", "processors")}
    return Workload.from_columns("known", {**columns, "run_time_s": columns["requested_time_s"]})
