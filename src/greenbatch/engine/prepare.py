"""The setup of a simulation: whether its parts fit together, and its state before the first event."""

from __future__ import annotations

import numpy as np

from greenbatch.cluster import Cluster, DvfsLevel
from greenbatch.cluster.cluster import MOST_PROCESSORS
from greenbatch.energy import Site
from greenbatch.engine import codes
from greenbatch.engine.capabilities import refuse_run
from greenbatch.engine.capacity.suspension import next_failure_s
from greenbatch.engine.capacity.varying import CapacityCounts, Varying
from greenbatch.engine.import_limit import ROUNDING
from greenbatch.engine.machine.dvfs import level_of, levels_of, set_level
from greenbatch.engine.machine.idle_nodes import compete_for_power
from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.machine.placement import arrange, span
from greenbatch.engine.outages import downtimes_of
from greenbatch.engine.program import BACKFILLS, Program, charges_by_rank
from greenbatch.engine.reads import may_read
from greenbatch.engine.rules import Rules
from greenbatch.engine.scores import queue_of, scores_of
from greenbatch.engine.settings import SETTINGS
from greenbatch.engine.state import State, in_order, new_state
from greenbatch.errors import InputError
from greenbatch.workload import Workload


def prepare(
    workload: Workload, cluster: Cluster, site: Site | None, rules: Rules, program: Program, *, observed: bool = False
) -> State:  # fmt: skip
    """Check that the parts fit together and set up the state of a simulation; see `state.new_state`.

    Raises:
        InputError: no jobs, a job larger than the cluster, required power missing, a NaN score.
    """
    level = level_of(cluster, rules.dvfs_level, field="rules.dvfs_level")
    _check_parts(workload, cluster, site, rules, program, level)
    settings, score = rule_settings(program), None
    if program.score is not None and program.fixed:
        asked = workload
        if level.speed != 1.0:
            asked = workload.with_columns(requested_time_s=workload.requested_time_s / level.speed)
        score = scores_of(program, queue_of(asked, cluster, program.score), float(workload.submit_s.min()))
        order = in_order(workload.submit_s)
        submit_s, by_arrival = workload.submit_s[order], score[order]
        twins = submit_s[1:] == submit_s[:-1]  # a sticky queue can have them in a different order
        moves = (by_arrival[1:] < by_arrival[:-1]) | (twins & (by_arrival[1:] != by_arrival[:-1]))
        settings["ranking"] = codes.BY_SCORE if moves.any() else codes.BY_ARRIVAL
    ahead_s = 0.0 if program.decider is None else program.decider.ahead_s
    if site is not None:
        slowest = min(each.speed for each in levels_of(cluster))
        check_slots(float(workload.requested_time_s.max()) / slowest + ahead_s, site.step_s, field="site.step_s")
    state = new_state(
        workload, cluster, site, rules, settings, ahead_s, observed=observed or bool(settings["uses_attributes"]),
        downtimes=downtimes_of(program.outages, cluster), predictor=program.predictor or rules.predictor,
        score=score,
    )  # fmt: skip
    if rules.dvfs_level:
        set_level(state, cluster, rules.dvfs_level, field="rules.dvfs_level")
    arrange_nodes(state, cluster, program)
    arrange_pools(state, cluster, rules)
    return state


def _check_parts(
    workload: Workload, cluster: Cluster, site: Site | None, rules: Rules, program: Program, level: DvfsLevel
) -> None:  # fmt: skip
    """Refuse parts that do not fit together.

    Raises:
        InputError: as for `prepare`, or the parts do not go together, see `capabilities`.
    """
    if len(workload) == 0:
        raise InputError("has no jobs", field=workload.name, fix="choose a window with jobs")
    largest = int(np.argmax(workload.processors))
    if (needed := workload.processors[largest]) > cluster.processors:
        problem = f"job {workload.job_id[largest]} needs {needed} processors, the cluster has {cluster.processors}"
        raise InputError(problem, field="processors", fix="give a larger cluster or drop the job")
    if cluster.powered is not None and (more := np.flatnonzero(workload.gpus > cluster.gpus)).size:
        problem = f"job {workload.job_id[more[0]]} needs {workload.gpus[more[0]]} GPUs, the machine has {cluster.gpus}"
        raise InputError(problem, field="gpus", fix="give a machine with more GPUs (cluster.gpus), or drop the job")
    if cluster.processors > MOST_PROCESSORS:
        fix = f"at most {MOST_PROCESSORS:,}"
        raise InputError(f"{cluster.processors} are too many to simulate", field="cluster.processors", fix=fix)
    refuse_run(program, workload, cluster, site, rules)
    beyond = _first_beyond(workload, cluster, rules.power_cap_w, level) if rules.power_cap_w else ""
    if beyond:
        problem = f"is {rules.power_cap_w:g}, but {beyond}"
        raise InputError(problem, field="rules.power_cap_w", fix="raise the cap or drop the job")
    if site is not None and site.held_limit_w < np.inf:
        most_w = float(site.load_limit_w(site.held_limit_w).max())
        if beyond := _first_beyond(workload, cluster, most_w * (1.0 + ROUNDING), level):
            problem = f"is {site.held_limit_w:g}, with which the cluster may draw {most_w:g} W at most, but {beyond}"
            fix = 'raise the limit, drop the job, or use over_limit = "count"'
            raise InputError(problem, field="site.grid.import_limit_w", fix=fix)


def _first_beyond(workload: Workload, cluster: Cluster, most_w: float, level: DvfsLevel) -> str:
    """What the first job draws that can never keep the power of the cluster within a limit; empty if all can."""
    least_w = cluster.first_power_w + np.nan_to_num(workload.power_w) * level.power
    if cluster.machine_processors:
        least_w += np.ceil(workload.processors / cluster.machine_processors) * cluster.machine_power_w
    beyond = np.flatnonzero(least_w > most_w)
    return f"job {workload.job_id[beyond[0]]} and idle nodes draw {least_w[beyond[0]]:g} W" if beyond.size else ""


def check_slots(longest_s: float, step_s: float, *, field: str) -> None:
    """Refuse steps of a supply that are so short that the forecast for the longest job does not fit into memory.

    Raises:
        InputError: it has over `MOST_SLOTS` slots, or the step is not > 0.
    """
    if not 0.0 < step_s < np.inf or not longest_s / step_s <= MOST_SLOTS:
        problem = f"is {step_s:g} s, and the longest job requests {longest_s:g} s"
        raise InputError(problem, field=field, fix=f"give steps > 0, at most {MOST_SLOTS:,} of them in that time")


def arrange_nodes(state: State, cluster: Cluster, program: Program) -> None:
    """Set the placement of a program on the nodes of a state, if it has any."""
    if not isinstance(state.machine, Nodes):
        return
    keeps_list = program.backfill == "easy-irmasim"
    arrange(state.machine, cluster.node_names, program.placement, program.placement_seed, keeps_list=keeps_list)
    if program.spans:
        span(state.machine)
    if state.rules.power_cap_w > 0.0 or state.rules.limited or isinstance(state.capacity, Varying):
        compete_for_power(state.machine)
    state.machine.counts.kill = state.rules.kill


def arrange_pools(state: State, cluster: Cluster, rules: Rules) -> None:
    """Set the pools of a machine whose capacity follows the power."""
    if not isinstance(state.capacity, Varying):
        return
    counts, begin_s = state.capacity.counts, float(state.clock.now_s)
    set_pools(counts, rules, begin_s)
    if counts.failure_rate > 0.0:
        counts.failure_s = next_failure_s(counts, begin_s, cluster.processors)


def set_pools(counts: CapacityCounts, rules: Rules, begin_s: float) -> None:
    """Write the options of the pools, for a run that begins at a time. [s]"""
    for name, value in ({} if rules.pools is None else rules.pools.counts(begin_s)).items():
        setattr(counts, name, value)


def rule_settings(program: Program) -> dict[str, float]:
    """Fields of `RuleSet` that a program sets."""
    wakes = program.decider is not None and program.decider.wakes_at_supply_changes
    changing = None if program.fixed else program.score
    ranking = codes.BY_ARRIVAL if program.score is None else codes.BY_SCORE if program.fixed else codes.BY_RULE
    return {
        "wake_at_supply": program.backfill == "green" or wakes,
        "backfill": BACKFILLS[program.backfill],
        "ranking": ranking,
        **{
            f"uses_{field}": changing is not None and (program.compiled is None or may_read(changing, field))
            for field in ("attributes", "predicted")
        },
        "commands": codes.BY_RANK if charges_by_rank(program) else codes.BY_POLICY * program.charges,
        **{name: SETTINGS[name].default for name in ("threshold_j", "weight_brown", "weight_cost", "weight_carbon")},
        **(program.settings or {}),
    }


MOST_SLOTS = 50_000_000
"""Largest number of supply slots in the requested time of a job."""
