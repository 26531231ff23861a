"""Why a simulation failed, in one line: what the scheduler, the supply or the machine did not allow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, cast

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine import codes
from greenbatch.engine.capabilities import no_commands
from greenbatch.engine.capacity.varying import FINISHED, REJECTED, Varying
from greenbatch.engine.program import Program
from greenbatch.engine.state import State
from greenbatch.engine.step import MOST_CHARGES
from greenbatch.errors import GreenbatchError, InputError, SupplyExhausted
from greenbatch.workload import Workload


@contextmanager
def rule_may_fail(program: Program) -> Iterator[None]:
    """Turn the error of a compiled rule into one line: nothing else can raise in compiled code.

    Raises:
        InputError: the rule failed.
    """
    try:
        yield
    except Exception as error:
        if program.compiled is None:
            raise
        raise InputError(f"{type(error).__name__}: {error}", field=program.name, fix="fix the rule") from error


def refuse_scores(name: str, now_s: float) -> NoReturn:
    """Raise the error for a rule that did not score every job.

    Raises:
        InputError: always.
    """
    problem = f"returned NaN, or not one score per waiting job, at {now_s:g} s"
    raise InputError(problem, field=name, fix="return one number per waiting job")


_START_ONE = "when nothing runs and no job will arrive, a policy must start one that waits"
"""What to do about jobs that wait forever."""


def waits_forever(
    state: State, name: str, workload: Workload | None = None, cluster: Cluster | None = None
) -> GreenbatchError:  # fmt: skip
    """The error for a policy that starts none of the waiting jobs.

    Raises:
        InputError: the machine is too small for one of them for ever.
    """
    refuse_shortage(state, workload, cluster)
    waiting, why = int(state.clock.last - state.clock.first), f"{state.rules.patience} decisions changed nothing"
    if not waiting:
        return GreenbatchError(_suspended_forever(state, name))
    return GreenbatchError(f"{name} left {waiting} jobs waiting forever: {why} ({_START_ONE})")


def _suspended_forever(state: State, name: str) -> str:
    count, fix = int(cast(Varying, state.capacity).counts.suspended), "give more power or capacity, or end the run"
    return f"{name} left {count} jobs suspended forever, for which there is no room any more ({fix}: rules.pools.end_s)"


def refuse_command(name: str, site: Site | None, *, field: str = "site.storage") -> NoReturn:
    """Raise the error for a command without storage that the scheduler commands.

    Raises:
        InputError: always.
    """
    fix = 'give storage with dispatch = "scheduler"'
    raise InputError(f"{no_commands(site)}, and {name} commands storage", field=field, fix=fix)


def check(
    state: State, name: str, site: Site | None, workload: Workload | None = None, cluster: Cluster | None = None
) -> None:  # fmt: skip
    """Raise the error of a failed run, if any; with jobs and machine it can name those that are too large.

    Raises:
        SupplyExhausted: the clock left the power series.
        InputError: a rule returned NaN, there is no storage to command, or the run outlasts its known capacity.
        GreenbatchError: the policy left jobs waiting, or never stopped to command storage.
    """
    powered = None if cluster is None else cluster.powered
    if powered is not None and state.clock.now_s > powered.until_s:
        problem = f"is known until {powered.until_s:,.0f} s only, and jobs are left then"
        raise InputError(problem, field="cluster.capacity", fix="end the run before: rules.pools.end_s")
    if state.clock.status == codes.STUCK and state.rules.limited and not state.clock.running:
        refuse_draw(state, name)
    if state.clock.status == codes.STUCK:
        raise waits_forever(state, name, workload, cluster)
    if state.clock.status == codes.NOT_COMMANDED:
        refuse_command(name, site)
    if state.clock.status == codes.CHARGES_FOREVER:
        problem = f"{name} commanded storage over {MOST_CHARGES} times in a row at {state.clock.now_s:g} s"
        raise GreenbatchError(f"{problem} (after a Charge, start a job or wait)")
    if state.clock.status == codes.BAD_SCORE:
        refuse_scores(name, float(state.clock.now_s))
    if state.clock.status == codes.SUPPLY_EXHAUSTED and site is not None:
        site.slot(float(state.clock.now_s))
        raise SupplyExhausted(f"the forecast of site {site.name!r} ends before {state.clock.now_s:g} s")
    left, suspended = state.jobs.shape[0] - int(state.clock.started), 0
    if isinstance(state.capacity, Varying):
        counts, ended = state.capacity.counts, np.isfinite(state.capacity.counts.end_s)
        left, suspended = (0, 0) if ended else (left - int(counts.rejected), int(counts.suspended))
    if left and state.rules.power_cap_w > 0.0:
        refuse_draw(state, name)
    if left or suspended:
        refuse_shortage(state, workload, cluster)
        waiting = f"{name} left {left} jobs waiting forever ({_START_ONE})"
        raise GreenbatchError(waiting if left else _suspended_forever(state, name))


def refuse_draw(state: State, name: str) -> NoReturn:
    """Raise the error for jobs whose power is never allowed on the nodes that they get.

    Raises:
        InputError: always.
    """
    rules, left = state.rules, state.jobs.shape[0] - int(state.clock.started)
    limits = {"rules.power_cap_w": rules.power_cap_w > 0.0, "site.grid.import_limit_w": rules.limited}
    field, *others = [name for name, holds in limits.items() if holds]
    problem = f"leaves {left} jobs waiting forever, because those nodes that {name} gives them draw too much"
    fix = " and ".join([f"raise {'it' if others else 'the limit'}", *others])
    other = "" if "low-power" in name else ", or use a placement such as low-power"
    raise InputError(problem, field=field, fix=fix + other)


def refuse_shortage(state: State, workload: Workload | None, cluster: Cluster | None) -> None:
    """Name the first unfinished job that never fits again, and the row of the capacity from which on it does not.

    Where capacity follows the power, the machine can be too small for a job from some time on for ever.

    Args:
        state: a simulation that came to a halt with unfinished jobs.
        workload: its jobs, if they are known.
        cluster: its machine.

    Raises:
        InputError: there is such a job.
    """
    if not isinstance(state.capacity, Varying) or workload is None or cluster is None:
        return
    levels, jobs = cluster.capacity_levels, state.capacity.jobs
    for job in np.flatnonzero(~np.isin(jobs["place"], (FINISHED, REJECTED))):
        processors, gpus = int(jobs["processors"][job]), int(jobs["gpus"][job])
        large = np.flatnonzero((levels.processors >= processors) & (levels.gpus >= gpus))
        row = int(large[-1]) + 1 if large.size else 0
        if row == len(levels.time_s):
            continue
        problem = (
            f"is too small for job {workload.job_id[job]} from {levels.time_s[row]:g} s on: it needs {processors} "
            f"processors and {gpus} GPUs, and no row has both (the one of {levels.time_s[row]:g} s has "
            f"{levels.processors[row]} and {levels.gpus[row]})"
        )
        fix = "add a row of higher capacity, drop the job, or end the run: rules.pools.end_s"
        raise InputError(problem, file=next(map(Path, cluster.sources), None), field="cluster.capacity", fix=fix)
