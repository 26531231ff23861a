"""A scheduler driven from views, one decision at a time, as a live batch system would ask it.

At every view, the state of a simulation at that moment is made from the view and from what the scheduler remembers,
the decisions that are due are made in it, and the jobs that start there are the answers. Policy, backfilling,
commitment and planners are therefore the engine's own code, and starts are the same as in a simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.capabilities import features_of, refuse_program
from greenbatch.engine.capacity.admission import may_act
from greenbatch.engine.codes import (
    BACKFILL,
    BAD_SCORE,
    BY_POLICY,
    BY_SCORE,
    CHARGES_FOREVER,
    NOBODY,
    SLOT,
    SUSPEND,
    WAKE_UP,
)
from greenbatch.engine.entry_points import step, with_decider
from greenbatch.engine.failures import check, refuse_command, refuse_scores, rule_may_fail
from greenbatch.engine.machine.dvfs import levels_of, run_at
from greenbatch.engine.machine.idle_nodes import alike, fit
from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.machine.resources import machine_of
from greenbatch.engine.outages import downtimes_of
from greenbatch.engine.power.protocol import commanded_w
from greenbatch.engine.prepare import arrange_nodes, rule_settings
from greenbatch.engine.program import Program, charges_by_rank, decider_of
from greenbatch.engine.records import table_of
from greenbatch.engine.rules import Rules
from greenbatch.engine.scores import queue_now, scores_of
from greenbatch.engine.state import State, set_rules
from greenbatch.engine.views.check import checked_view
from greenbatch.engine.views.codec import state_of, view_of
from greenbatch.engine.views.decode_capacity import capacity_of_view, jobs_of
from greenbatch.engine.views.decode_nodes import MachineOfViews
from greenbatch.engine.views.interface import CAUSES, Charge, Decision, Policy, Start, Suspend, View, Wait
from greenbatch.engine.views.memory import (
    SUSPENDS,
    Memory,
    Ran,
    Waited,
    known_jobs,
    read_memory,
    workload_of,
    write_memory,
)
from greenbatch.engine.views.session import carry_out
from greenbatch.errors import InputError


class ViewDriver:
    """A scheduler as a policy that answers views, with its own backfilling, commitment and memory.

    The batch system asks after every submission and every end, and at the time of the last `Wait`. It starts a job at
    once when told to, asks again, and does nothing else: in a simulation, that is a `Session` without backfilling under
    ``commitment = reconsider``. If the scheduler commands storage, it also asks while no job waits and at every change
    of supply (``Program.charges``), and passes each `Charge` on to storage.
    """

    def __init__(
        self, program: Program, policy: Policy | None, cluster: Cluster, rules: Rules,
        *, steer: Callable[[View, Any], Any] | None = None,
    ) -> None:  # fmt: skip
        """Prepare the scheduler.

        Args:
            program: its program, see `program.Scheduler`; made for any jobs.
            policy: its Python object, None if the engine decides.
            cluster: the machines.
            rules: how the batch system reacts.
            steer: changes the parameters of the decider, ``(view, decider)``, before the decisions of every instant.

        Raises:
            InputError: the scheduler depends on what a view does not show, see ``capabilities.toml``.
        """
        features = features_of(workload_of(Memory()), cluster, None, rules, outages=bool(program.outages))
        known = {name: value for name, value in features.items() if not name.startswith("no_")}  # not in a view yet
        refuse_program(program, {**known, "views": True})
        self.program, self.policy, self.cluster, self.rules = program, policy, cluster, rules
        self.memory, self._steer = Memory(), steer
        self._decider: Any = None
        self._machines = MachineOfViews(cluster) if cluster.on_nodes else None
        self._downtimes = downtimes_of(program.outages, cluster)
        self._is_plain = program.score is not None and not program.fixed and program.compiled is None
        if policy is None and program.policy is not None:
            self.policy = program.policy(program, workload_of(self.memory), cluster, None, rules)

    def decide(self, view: View) -> Decision:
        """Start the next job that is due at this instant, one per call, or wait until the next event or a time.

        On nodes, a start names the nodes of the job and its processors on each.

        Raises:
            InputError: the view is not possible, a job that was to start at this instant no longer waits, a rule fails,
                or a policy answers what is no decision or chooses a DVFS level.
        """
        memory = self.memory
        if memory.asked_s != view.now_s:
            view = checked_view(view, self.program, memory.seen_s, self.cluster)
            memory.seen_s = float(view.now_s)
        if charges_by_rank(self.program) and (command := self._by_rank(view)) is not None:
            return command
        if memory.asked_s != view.now_s:
            if len(view.job_id) == 0 and not self.program.charges:
                return Wait()
            if view.cause == CAUSES[SLOT] and not self.program.charges:
                return Wait(float(memory.wake_s))
            self._ask(view)
        if not np.isnan(memory.command_w):
            power_w, memory.command_w = memory.command_w, np.nan
            return Charge(power_w)
        if memory.answers:
            return self._next_answer(view)
        memory.asked_s = np.nan
        return Wait(float(memory.wake_s))

    def _next_answer(self, view: View) -> Start | Suspend:
        """What has been decided of this instant and not been answered yet."""
        memory = self.memory
        job, nodes, processors = memory.answers.pop(0)
        if not memory.answers and (memory.rests or len(view.job_id) == (job != SUSPENDS)):
            memory.asked_s = np.nan  # nobody is asked about any more at this instant, unless something happens
        if job == SUSPENDS:
            return Suspend()
        row = np.flatnonzero(view.job_id == job)
        if row.size == 0:
            problem = f"decided to start job {job}, which no longer waits at {view.now_s:g} s"
            raise InputError(problem, field=self.program.name, fix="show the view of the same instant again")
        return Start(int(row[0]), nodes=nodes, processors=processors)

    def _by_rank(self, view: View) -> Charge | None:
        """The command to storage at a view, None if it is in force."""
        if view.storage is None:
            refuse_command(self.program.name, None, field="view.storage")
        state = state_of(view, attributes=False, stored=True, **self._parts(view))
        set_rules(state, self.rules, rule_settings(self.program))
        power_w = step("rank", state)(state)
        return None if power_w == view.storage.command_w else Charge(power_w)

    def _parts(self, view: View) -> dict[str, Any]:
        """The idle machine of a view, and what is powered."""
        made = self._machines
        machine: Any = machine_of(self.cluster, jobs_of(view)) if made is None else made.with_room(view)
        return {"machine": machine, "capacity": capacity_of_view(view, self.cluster, self.rules, machine.totals)}

    def _ask(self, view: View) -> None:
        """Make the decisions of this instant in a state made from the view, and remember what the next one needs."""
        memory, suspended = self.memory, [] if view.capacity is None else [view.capacity.suspended_job_id]
        ids = np.concatenate([view.job_id, *suspended, view.running.job_id])
        self._learn(view)
        if self._steer is not None:
            self._decider = self._steer(view, self._decider)
        of_rows = getattr(self.program.decider, "of_rows", None)
        if of_rows is not None:
            row_of = {job: row for row, job in enumerate(memory.rows)}
            before = np.array([row_of.get(job, -1) for job in ids.tolist()], np.int64)
            self._decider = of_rows(self._decider, jobs_of(view, attributes=True), self.cluster, before)
            memory.rows = ids.tolist()
        memory.longest_s = float(view.queue.requested_time_s.max(initial=memory.longest_s))
        ahead_s = 0.0 if self.program.decider is None else self.program.decider.ahead_s
        more: Any = {"stored": view.storage is not None, "downtimes": self._downtimes}
        state = state_of(view, ahead_s, memory.longest_s, **self._parts(view), **more)
        settings = rule_settings(self.program)
        if charges_by_rank(self.program):  # asked for beside the decisions
            settings["commands"] = NOBODY
        if self._is_plain:
            settings["ranking"] = BY_SCORE
        set_rules(state, self.rules, settings)
        self._recall(state, view)
        if self._machines is not None:
            self._arrange(state, ids)
        memory.wake_s = self._settle(state, ids, view)
        log = state.log[: state.clock.logged]
        acts = log[(log["kind"] <= BACKFILL) | (log["kind"] == SUSPEND)][["job", "kind"]].tolist()
        memory.answers = [_answer(state, ids, job, kind == SUSPEND) for job, kind in acts]
        memory.asked_s, memory.rests = view.now_s, not may_act(state.capacity, view.now_s)
        if view.storage is not None and commanded_w(state.power) != view.storage.command_w:
            memory.command_w = float(commanded_w(state.power))
        if len(view.job_id):
            self._remember(state, ids)

    def _settle(self, state: State, ids: Any, view: View) -> float:
        """Make all decisions that are due; return the next wake-up. [s]"""
        program, clock, due = self.program, state.clock, step("is-due", state)
        if is_compiled := self.policy is None and not self._is_plain:
            with rule_may_fail(program):
                with_decider("settle", state, self._decider)(state, self._decider)
            if clock.status == BAD_SCORE:
                refuse_scores(program.name, float(clock.now_s))
        act = None if self.cluster.powered is None else getattr(self.policy, "act", None)
        while not is_compiled and due(state):
            if act is not None:  # as in `session.run_policy`
                act(state)
                continue
            if self.policy is None:
                state.queue.score[clock.first : clock.last] = scores_of(program, queue_now(state), float(clock.now_s))
                with_decider("decide", state, self._decider)(state, self._decider)
                continue
            decision = self.policy.decide(view_of(state, ids, view.supply, self.cluster, view.partitions))
            if isinstance(decision, Start) and decision.dvfs_level is not None:  # a view does not state levels
                fix = "leave dvfs_level out, or simulate the policy itself"
                raise InputError("chooses a DVFS level, which a ViewDriver cannot pass on", field=program.name, fix=fix)
            carry_out(state, self.cluster, program, decision, ids, storage="view.storage")
            if clock.status == CHARGES_FOREVER:
                check(state, program.name, None)
        return float(step("wake", state)(state))

    def _learn(self, view: View) -> None:
        """Create the decider at the first view, and tell it which jobs have been submitted."""
        learn, memory = self.program.decider and self.program.decider.learn, self.memory
        new = np.flatnonzero(~np.isin(view.job_id, memory.known["job_id"])) if learn else np.zeros(0, np.int64)
        if new.size:
            known = known_jobs(view, new)
            speed = levels_of(self.cluster)[self.rules.dvfs_level].speed
            if speed != 1.0:  # as asked for, to the microsecond
                known["requested_time_s"] = np.round(known["requested_time_s"] * speed, 6)
            memory.known = np.concatenate([memory.known, known])
            memory.partitions |= {str(number): name for number, name in view.partitions.items()}
        if self._decider is None:
            self._decider = decider_of(self.program, workload_of(memory), self.cluster, self.rules)
        elif learn and new.size:
            self._decider = learn(self._decider, workload_of(memory), self.cluster, self.rules)

    def _arrange(self, state: State, ids: Any) -> None:
        """Set the placement, and what a simulation counts or knows of all its jobs.

        Raises:
            InputError: a waiting job fits on no nodes of the cluster.
        """
        machine, memory = cast(Any, state.machine), self.memory
        waiting = machine.demands[: state.clock.last]
        new = np.flatnonzero(~np.isin(ids[: len(waiting)], memory.waited["job_id"]))
        if new.size and not (fits := fit(self.cluster, machine.nodes, waiting[new])).all():
            problem = f"job {ids[new[np.argmin(fits)]]} asks for more than idle nodes of the cluster have"
            raise InputError(problem, field="view.queue", fix="leave the job out")
        plain, uniform = alike(machine.nodes, waiting)
        memory.is_plain &= plain
        machine.counts.is_plain, machine.counts.is_uniform = memory.is_plain, uniform
        arrange_nodes(state, self.cluster, self.program)
        run_at(state, self.cluster, self.rules)
        machine.counts.draws = memory.draws

    def _recall(self, state: State, view: View) -> None:
        """Write what is remembered to a state made from a view."""
        memory, clock, queue, jobs = self.memory, state.clock, state.queue, state.jobs
        count = len(view.job_id)
        clock.event = next((kind for kind, name in CAUSES.items() if name == view.cause), WAKE_UP)
        clock.commanding = state.rules.commands == BY_POLICY
        state.rules.twins = np.unique(view.queue.submit_s).size < count
        if self.program.score is not None and self.program.fixed:
            jobs["score"][:count] = scores_of(self.program, queue_now(state), view.now_s)
        waited = {int(job): k for k, job in enumerate(memory.waited["job_id"])}
        place = np.array([waited.get(int(job), len(waited)) for job in view.job_id], np.int64)
        order = np.argsort(place, kind="stable")  # new jobs come last
        queue.job[:count] = order
        queue.processors[:count], queue.requested_s[:count] = jobs["processors"][order], jobs["requested_s"][order]
        queue.score[:count] = jobs["score"][order]
        known = order[: np.count_nonzero(place < len(waited))]
        for name in ("promised_s", "planned_s"):
            jobs[name][known] = memory.waited[name][place[known]]
        if not self.program.fixed:
            queue.score[: known.size] = memory.waited["score"][place[known]]
        gone = ~np.isin(memory.ran["job_id"], view.running.job_id)
        clock.early = bool((memory.ran["end_s"][gone] != view.now_s).any())
        where = np.flatnonzero(view.job_id == memory.committed_id)
        if where.size:
            last = memory.clock[0]
            for name in ("until_s", "held", "reserved", "wake_at_end", "shadow_s", "spare"):
                setattr(clock, name, last[name])
            clock.committed = int(where[0])
            state.machine.totals.spare_gpus = memory.spare_gpus

    def _remember(self, state: State, ids: Any) -> None:
        """Keep what the next view needs."""
        memory, clock, jobs = self.memory, state.clock, state.jobs
        memory.clock[0], memory.spare_gpus = clock, int(state.machine.totals.spare_gpus)
        memory.committed_id = int(ids[clock.committed]) if clock.committed >= 0 else -1
        if self._machines is not None:
            memory.draws = int(cast(Nodes, state.machine).counts.draws)
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
        write_memory(file, self, self._decider)

    def load(self, file: str | Path) -> None:
        """Continue from what `save` wrote.

        Raises:
            InputError: the file does not belong to this scheduler, or is damaged.
        """
        self.memory, self._decider = read_memory(file, self)


def _answer(state: State, ids: Any, job: int, suspends: bool) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """What `Memory.answers` keeps of a start or a suspension in a state."""
    return (SUSPENDS, (), ()) if suspends else (int(ids[job]), *_placed(state, job))


def _placed(state: State, job: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The nodes of a job that has just been started, each once, and its processors there; none on a pool."""
    machine: Any = state.machine
    if not isinstance(machine, Nodes):
        return (), ()
    rows = machine.placed[: machine.counts.placed]
    taken: dict[int, int] = {}
    for node, processors in rows[rows["job"] == job][["node", "processors"]].tolist():
        taken[node] = taken.get(node, 0) + processors
    return tuple(taken), tuple(taken.values())
