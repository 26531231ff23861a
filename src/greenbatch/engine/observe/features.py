"""Observations of learned policies as named columns: waiting jobs, running jobs, forecast slots and system state.

A column is ``min(max(raw / scale, floor), ceiling)``, or the same of ``log(1 + raw / scale)``; an unknown value (NaN)
is exactly 1, as in the papers' encodings. ``features.toml`` says what each is, and the presets list the columns that
they use. Training, evaluation and a live queue share this implementation.

Sources: GAS-MARL §4.2.1 and its published code; RLScheduler §IV-B and its published code; RARE (dissertation) §3.2.1.
"""

from __future__ import annotations

import numpy as np

from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.engine.capacity.admission import choosable_position, pool_figure
from greenbatch.engine.capacity.levels import ahead_now, ahead_to, look_ahead_s, powered_ahead
from greenbatch.engine.capacity.value import asked_s
from greenbatch.engine.codes import SUPPLY_EXHAUSTED
from greenbatch.engine.feature import features_in
from greenbatch.engine.forecast import project_surplus
from greenbatch.engine.limits import can_be_chosen, can_start
from greenbatch.engine.machine.node_choice import can_take_on, fill_nodes, fill_pairs, node_count, pair_feature
from greenbatch.engine.observe.pair_features import FIRST_PAIR_FEATURE
from greenbatch.engine.power.protocol import BROWN, forecast_w, rates_at
from greenbatch.engine.power.slots import is_inside, next_edge_s, slot_at, slot_start_s, slots_ahead
from greenbatch.engine.prediction.known import predicted_of
from greenbatch.engine.records import Bools, Column, Job, Singles, Table
from greenbatch.engine.state import ATTRIBUTES, State
from greenbatch.machine_code.compile import compiled, compiled_small, whole

(WAIT, REQUESTED_TIME, PROCESSORS, POWER, POWER_PER_PROCESSOR, IS_BROWN, BROWN_RATIO, FITS, REQUESTED_MEMORY, GROUP,
 EXECUTABLE, USER, IS_WAIT, SLOWDOWN, AREA, UNTIL_FITS, IDLE_UNTIL_FITS, SUBMIT_TIME, EXPECTED_TIME, SHORTEST_TIME,
 LONGEST_TIME, MEAN_TIME, SLOWDOWN_PRICE, GPUS, VALUE, QOS, UNTIL_DUE, SLACK, DUE_TIME, FINISH_TIME,
 IS_SUSPEND) = range(31)  # fmt: skip
QUEUE_FEATURES = features_in("queue")
"""Features of waiting jobs, in the order of their codes."""
_OF_QUEUE = list(QUEUE_FEATURES)
FROM_ATTRIBUTES = frozenset(_OF_QUEUE[REQUESTED_MEMORY : EXECUTABLE + 1] + _OF_QUEUE[GPUS : DUE_TIME + 1])
"""Features of waiting jobs that are, or are made of, `interface.Attributes`."""
FROM_PREDICTIONS = frozenset(_OF_QUEUE[EXPECTED_TIME : SLOWDOWN_PRICE + 1])
"""Features of waiting jobs that are predicted, in the order of `records.Prediction`."""

(RUNNING_PROCESSORS, RUNNING_POWER, RUNNING_POWER_PER_PROCESSOR, REMAINING_TIME, RUNNING_GPUS, RUNNING_VALUE,
 RUNNING_QOS, RUNNING_UNTIL_DUE) = range(8)  # fmt: skip
RUNNING_FEATURES = features_in("running")
"""Features of running jobs, in the order of their codes."""

(SLOT_LENGTH, SLOT_POWER, GRID_PRICE, SOURCE_PRICE, EXPORT_PRICE, CARBON, FREE_PROCESSORS, FREE_GPUS,
 POWERED_PROCESSORS, POWERED_GPUS) = range(10)  # fmt: skip
SUPPLY_FEATURES = features_in("supply")
"""Features of forecast slots, the current one first, or of ticks ahead, now first; in the order of their codes."""
OF_TICKS = frozenset(list(SUPPLY_FEATURES)[FREE_PROCESSORS:])
"""Features of ticks ahead; a table has these or those of slots."""

(FREE_SHARE, LOAD, SUPPLY_NOW, QUEUE_LENGTH, QUEUED_WORK, RUNNING_WORK, HOUR_SINE, HOUR_COSINE, SINCE_ARRIVAL,
 RUNNING_LENGTH, FIRST_OF_POOLS) = range(11)  # fmt: skip
STATE_FEATURES = features_in("state")
"""Features of the system state, in the order of their codes."""

DAY_S = 86_400.0
_AS_WAITING = GPUS - RUNNING_GPUS
"""A running job is worth what it was while it waited: from the code of a feature to that of the same one then."""
_RAW, _POWER, _REQUESTED, _BROWN = range(4)
"""Rows of ``scratch.columns`` that are scratch memory here."""


@compiled_small
def encode(column: Column, raw: float) -> float:
    """A raw value as it is observed."""
    if np.isnan(raw):
        return 1.0
    value = raw / column.scale
    if column.log:
        value = np.log1p(value)
    return float(min(max(value, column.floor), column.ceiling))


@compiled_small
def _brown_energy(s: State, rows: int) -> None:
    """Write the extra brown energy of starting each visible waiting job now to scratch memory. [J]"""
    c = s.clock
    power_w, requested_s, brown_j = s.scratch.columns[_POWER], s.scratch.columns[_REQUESTED], s.scratch.columns[_BROWN]
    longest_s = 0.0
    for i in range(rows):
        job = s.jobs[job_in(s, i)]
        power_w[i], requested_s[i] = job.power_w, job.requested_s
        brown_j[i] = 0.0
        longest_s = max(longest_s, requested_s[i])
    project_surplus(s, c.now_s, c.now_s + longest_s, BROWN)
    passed_s = 0.0
    for k in range(c.segments):
        length_s, surplus_w = s.scratch.surplus[k].length_s, s.scratch.surplus[k].surplus_w
        for i in range(rows):
            seconds = min(max(requested_s[i] - passed_s, 0.0), length_s)
            brown_j[i] += max(power_w[i] - surplus_w, 0.0) * seconds
        passed_s += length_s


@compiled_small
def _raw_of_job(s: State, job: Job, feature: int) -> float:  # noqa: PLR0911  (compiled code has no tables of functions)
    """A feature of one waiting job that depends only on the job and the clock."""
    if feature == WAIT:
        return float(s.clock.now_s - job.submit_s)
    if feature == REQUESTED_TIME:
        return float(job.requested_s)
    if feature == PROCESSORS:
        return float(job.processors)
    if feature == POWER:
        return float(job.power_w)
    if feature == POWER_PER_PROCESSOR:
        return float(job.power_w / job.processors)
    if feature == SLOWDOWN:
        return float((s.clock.now_s - job.submit_s + job.requested_s) / max(job.requested_s, 10.0))
    if feature == AREA:
        return float(job.requested_s * job.processors / s.machine.totals.processors)
    if feature == SUBMIT_TIME:
        return float(job.submit_s)
    if feature == FINISH_TIME:
        return float(s.clock.now_s + job.requested_s)
    return float(job.user) if job.user >= 0 else np.nan


_GPUS, _VALUE, _QOS = (ATTRIBUTES.index(name) for name in ("gpus", "value", "qos"))


@compiled_small
def _worth_of_job(s: State, number: int, feature: int) -> float:
    """What a job is worth, and when; NaN if unknown."""
    if feature <= QOS:
        return float(s.attributes[number, _GPUS if feature == GPUS else _VALUE if feature == VALUE else _QOS])
    job = s.jobs[number]
    due_s = job.submit_s + asked_s(s.capacity, number, job.requested_s) / s.attributes[number, _QOS]
    if feature == DUE_TIME:
        return float(due_s)
    return float(due_s - s.clock.now_s - (job.requested_s if feature == SLACK else 0.0))


@compiled_small
def _of_job(s: State, number: int, feature: int) -> float:
    """A feature of one waiting job that depends on no other job."""
    if REQUESTED_MEMORY <= feature <= EXECUTABLE:
        return float(s.attributes[number, feature - REQUESTED_MEMORY])
    if EXPECTED_TIME <= feature <= SLOWDOWN_PRICE:
        return predicted_of(s.predictor, number, s.jobs[number].requested_s)[feature - EXPECTED_TIME]
    if GPUS <= feature <= DUE_TIME:
        return _worth_of_job(s, number, feature)
    return _raw_of_job(s, s.jobs[number], feature)


@compiled_small
def job_in(s: State, row: int) -> int:
    """The waiting job in a row of an observation."""
    return whole(s.queue.job[whole(choosable_position(s.capacity, s.queue.job, s.clock, row))])


@compiled
def _until_fits(s: State, rows: int, idle: bool) -> None:
    """Write the time until each visible waiting job fits, or the free processor time until then, to scratch. [s]"""
    c, raw = s.clock, s.scratch.columns[_RAW]
    for i in range(rows):
        wanted, free, at_s, free_s = s.jobs[job_in(s, i)].processors, s.machine.totals.free, c.now_s, 0.0
        for k in range(c.expected_first, c.expected_first + c.running):
            if free >= wanted:
                break
            entry = s.expected[k]
            free_s += free * max(entry.end_s - at_s, 0.0)
            at_s = max(entry.end_s, at_s)
            free += entry.processors
        raw[i] = free_s / s.machine.totals.processors if idle else at_s - c.now_s


@compiled_small
def raw_of_queue(s: State, feature: int, rows: int) -> None:
    """Write one feature of the visible waiting jobs to scratch memory."""
    columns = s.scratch.columns
    raw = columns[_RAW]
    if feature == IS_BROWN:
        for i in range(rows):
            raw[i] = 0.0 if columns[_BROWN, i] == 0.0 else 1.0
    elif feature == BROWN_RATIO:
        for i in range(rows):
            brown_j, power_w, requested_s = columns[_BROWN, i], columns[_POWER, i], columns[_REQUESTED, i]
            raw[i] = 0.0 if brown_j == 0.0 else brown_j / (power_w * requested_s)
    elif feature == FITS:
        for i in range(rows):
            raw[i] = 1.0 if can_be_chosen(s, job_in(s, i)) else 0.0
    elif feature in (IS_WAIT, IS_SUSPEND):
        raw[:rows] = 0.0
    elif UNTIL_FITS <= feature <= IDLE_UNTIL_FITS:
        _until_fits(s, rows, feature == IDLE_UNTIL_FITS)
    else:
        for i in range(rows):
            raw[i] = _of_job(s, job_in(s, i), feature)


@compiled_small
def fill_extra(columns: Table[Column], action: int, out: Singles, at: int) -> None:
    """Write the row of an action without a job: ``is_wait`` or ``is_suspend`` is 1, everything else is 0."""
    for k in range(columns.shape[0]):
        out[at, k] = 1.0 if columns[k].feature == action else 0.0


@compiled_small
def fill_queue(s: State, columns: Table[Column], rows: int, out: Singles, at: int) -> None:
    """Encode the first waiting jobs in order of submission.

    Args:
        s: the state.
        columns: COLUMN, shape (k,).
        rows: number of jobs, at most the length of the queue.
        out: float32, shape (>= at + rows, k).
        at: first row to write.
    """
    for k in range(columns.shape[0]):
        if columns[k].feature == IS_BROWN or columns[k].feature == BROWN_RATIO:
            _brown_energy(s, rows)
            break
    for k in range(columns.shape[0]):
        column = columns[k]
        raw_of_queue(s, column.feature, rows)
        for i in range(rows):
            out[at + i, k] = encode(column, s.scratch.columns[_RAW, i])


@compiled_small
def fill_running(s: State, columns: Table[Column], rows: int, out: Singles, at: int) -> None:
    """Encode the first running jobs in order of requested end; arguments as for `fill_queue`."""
    c = s.clock
    for i in range(rows):
        entry = s.expected[c.expected_first + i]
        own = float(entry.processors), entry.power_w, entry.power_w / entry.processors, entry.end_s - c.now_s
        for k in range(columns.shape[0]):
            feature = columns[k].feature
            if feature <= REMAINING_TIME:
                raw = own[feature]
            else:
                raw = _worth_of_job(s, whole(entry.job), _AS_WAITING + feature)
            out[at + i, k] = encode(columns[k], raw)


@compiled_small
def _priced(s: State, feature: int, slot: int, current: int) -> float:
    """What a kWh costs or emits in a forecast slot; later slots repeat the window of the forecast."""
    slots = s.power.slots
    if not is_inside(slots, current):
        s.clock.status = SUPPLY_EXHAUSTED
        return 0.0
    rates = rates_at(s.power, (current + slots_ahead(slots, slot, current)) % slots.count)
    each = (rates.grid, rates.renewable, rates.surplus, rates.grid_g)[feature - GRID_PRICE]
    return float(each * JOULES_PER_KWH)


@compiled_small
def fill_supply(s: State, columns: Table[Column], rows: int, out: Singles) -> int:
    """Encode forecast slots to ``out``, float32, shape (rows, k); return the number of the current slot."""
    now_s, slots = s.clock.now_s, s.power.slots
    current = slot_at(slots, now_s)
    for i in range(rows):
        begin_s = max(now_s, slot_start_s(slots, current + i))
        for k in range(columns.shape[0]):
            feature = columns[k].feature
            if feature == SLOT_LENGTH:
                raw = slot_start_s(slots, current + i + 1.0) - begin_s
            elif feature == SLOT_POWER:
                raw = forecast_w(s.power, s.clock, current + i, current)
            else:
                raw = _priced(s, feature, current + i, current)
            out[i, k] = encode(columns[k], raw)
    return current


@compiled_small
def fill_ticks(s: State, columns: Table[Column], rows: int, out: Singles) -> None:
    """Encode ticks ahead to ``out``, float32, shape (rows, k): now, and the beginnings of the ticks that follow."""
    c, ahead = s.clock, ahead_now(s.capacity, s)
    tick_s, _ = look_ahead_s(s.capacity)
    edge_s = next_edge_s(c.now_s, 0.0, tick_s)
    for i in range(rows):
        if i > 0:
            ahead = ahead_to(s.capacity, s, ahead, edge_s + (i - 1) * tick_s)
        processors, gpus = powered_ahead(s.capacity, s.machine.totals, ahead)
        for k in range(columns.shape[0]):
            figures = processors - ahead[2], gpus - ahead[3], processors, gpus
            out[i, k] = encode(columns[k], float(figures[columns[k].feature - FREE_PROCESSORS]))


@compiled
def queued_work_s(s: State) -> float:
    """Requested processor-seconds of the waiting jobs per processor of the cluster. [s]"""
    work_s = 0.0
    for i in range(s.clock.first, s.clock.last):
        work_s += s.queue.requested_s[i] * s.queue.processors[i]
    return float(work_s / s.machine.totals.processors)


@compiled
def running_work_s(s: State) -> float:
    """Processor-seconds that running jobs still hold by requested ends, per processor of the cluster. [s]"""
    c, work_s = s.clock, 0.0
    for i in range(c.expected_first, c.expected_first + c.running):
        work_s += max(0.0, s.expected[i].end_s - c.now_s) * s.expected[i].processors
    return float(work_s / s.machine.totals.processors)


@compiled_small
def fill_state(s: State, columns: Table[Column], out: Singles) -> None:
    """Encode the system state to ``out``, float32, shape (k,)."""
    c = s.clock
    for k in range(columns.shape[0]):
        feature, raw = columns[k].feature, 0.0
        if feature == FREE_SHARE:
            raw = s.machine.totals.free / s.machine.totals.processors
        elif feature == LOAD:
            raw = s.machine.totals.load_w
        elif feature == SUPPLY_NOW:
            current = slot_at(s.power.slots, c.now_s)
            raw = forecast_w(s.power, s.clock, current, current)
        elif feature == QUEUE_LENGTH:
            raw = float(c.last - c.first)
        elif feature == QUEUED_WORK:
            raw = queued_work_s(s)
        elif feature == RUNNING_WORK:
            raw = running_work_s(s)
        elif HOUR_SINE <= feature <= HOUR_COSINE:
            angle = (c.now_s - s.power.slots.origin_s) * (2.0 * np.pi / DAY_S)
            raw = np.sin(angle) if feature == HOUR_SINE else np.cos(angle)
        elif feature == SINCE_ARRIVAL:
            raw = c.now_s - c.arrived_s
        elif feature == RUNNING_LENGTH:
            raw = float(c.running)
        else:
            raw = pool_figure(s.capacity, s.machine.totals, c, feature - FIRST_OF_POOLS)
        out[k] = encode(columns[k], raw)


# ---------------------------------------------------------------- pairs of a job and a node


@compiled
def fill_pair_rows(s: State, columns: Table[Column], jobs: int, out: Singles, at: int) -> None:
    """Encode the pairs of the first waiting jobs and all nodes: the rows of a job are adjacent.

    Args:
        s: the state.
        columns: COLUMN, shape (k,).
        jobs: number of jobs, at most the length of the queue.
        out: float32, shape (>= at + jobs * nodes, k).
        at: first row to write.
    """
    nodes, raw = whole(node_count(s.machine)), s.scratch.columns[0]
    for k in range(columns.shape[0]):
        if columns[k].feature < FIRST_PAIR_FEATURE:
            raw_of_queue(s, columns[k].feature, jobs)
            for i in range(jobs):
                value = encode(columns[k], raw[i])
                for n in range(nodes):
                    out[at + i * nodes + n, k] = value
    last_end_s, queued_s = fill_nodes(s.machine, s.clock.now_s), queued_work_s(s)
    for i in range(jobs):
        fill_pairs(s.machine, job_in(s, i), s.clock.now_s, last_end_s, queued_s)
        for k in range(columns.shape[0]):
            feature = columns[k].feature - FIRST_PAIR_FEATURE
            if feature >= 0:
                for n in range(nodes):
                    out[at + i * nodes + n, k] = encode(columns[k], pair_feature(s.machine, feature, n))


@compiled
def fill_pair_choices(s: State, jobs: int, selectable: Bools, at: int) -> int:
    """Write which pairs can be chosen to ``selectable`` from row ``at`` on; return how many."""
    nodes, found = whole(node_count(s.machine)), 0
    for i in range(jobs):
        job = job_in(s, i)
        fits_now = can_start(s, job, whole(s.jobs[job].processors))
        for n in range(nodes):
            chosen = fits_now and can_take_on(s.machine, job, n)
            selectable[at + i * nodes + n] = chosen
            found += chosen
    return found
