"""Learned distributions of run times: experts that count the run times of like jobs, mixed by learned weights.

Each expert is a histogram of the run times of earlier jobs that share something with a job: its request, its user,
both, or both and its size. Two count how far below the request jobs ended, which finds exact requests and jobs that
are ended at their wall limit. Recent jobs count more. Experts with few jobs lean on the next more general one. Their
logarithms are added with weights that are learned while jobs end (gradient steps on the logarithmic loss), one set of
weights for each number of jobs that the most special expert has seen. Like jobs that have been running for long make
short run times unlikely.

Everything is learned from jobs that have ended, so that a prediction never uses the future.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.engine.records import SHORT_S, Floats, Int32s, Ints, Prediction, per_group, per_job
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.workload import Workload

BINS = 24
"""Bins of run times."""
SHORTEST_S, LONGEST_S = 10.0, 432_000.0
"""Upper edge of the first and lower edge of the last bin. [s]"""
LEVELS = 9
"""Experts: all jobs; the request; the user; user and request; user, request and size; the last jobs of the two last;
relative to the request: all jobs; the user."""
DECAY = (0.999, 0.98, 0.97, 0.95, 0.9, 0.5, 0.4, 0.999, 0.97)
"""What is left of the weight of a job in an expert after one more job."""
PRIOR = (1.0, 4.0, 4.0, 2.0, 1.0, 0.5, 0.5, 1.0, 4.0)
"""Weight of the more general expert in each, in jobs."""
PARENT = (-1, 0, 0, 2, 3, 2, 4, -1, 7)
RELATIVE = 7
"""Experts from here on count run times relative to the request: in how many bins below it."""
SPREAD = 0.05
"""Share of a job that counts in each of the neighbouring bins."""
RATE = 0.02
"""Step of the weights' learning."""
UNLIKELY = 0.15
"""Likelihood of a run time that is shorter than a like job has been running."""
KEPT = 256
"""Distributions of waiting jobs that are kept."""
SEEN = (0.5, 2.5, 6.0)
"""Weights of the most special expert, in jobs, from which on another set of mixing weights is used."""


@per_job("group")
@per_group("counts", "since_s")
class Mixture(NamedTuple):
    """What has been learned."""

    group: Int32s
    """Row of ``counts`` of each job and expert, shape (n, LEVELS); (0, LEVELS) if another predicts."""
    counts: Floats
    """Decayed number of jobs in each bin, and in all, shape (groups, BINS + 1)."""
    weights: Floats
    """Mixing weights, shape (len(SEEN) + 1, LEVELS)."""
    bins: Floats
    """Upper edge [s], weight, mean run time [s] and mean of 1 / max(run time, 10 s) [1/s] of each bin, (4, BINS)."""
    logs: Floats
    """Logarithm of each expert's probabilities for the job in question, shape (LEVELS, BINS)."""
    mass: Floats
    """Distribution of the job in question, shape (BINS,)."""
    kept_keys: Ints
    """What the distributions depended on that are kept for waiting jobs, see `_key`, shape (KEPT + 1, LEVELS + 4)."""
    kept: Floats
    """These distributions, shape (KEPT, BINS)."""
    since_s: Floats
    """While jobs are predicted: start of the first running job of each group of like ones, infinite for none. [s]"""


@compiled_small
def bin_of(run_s: float) -> int:
    """The bin of a run time."""
    if run_s <= SHORTEST_S:
        return 0
    step = np.log(LONGEST_S / SHORTEST_S) / (BINS - 2)
    return min(BINS - 1, int(np.ceil(np.log(run_s / SHORTEST_S) / step - 1e-9)))


@compiled_small
def lower_edge_s(b: int) -> float:
    """Lower edge of a bin. [s]"""
    return SHORTEST_S * np.exp((b - 1) * np.log(LONGEST_S / SHORTEST_S) / (BINS - 2)) if b > 0 else 0.0


@compiled_small
def _bucket(p: Mixture, number: int) -> int:
    seen, k = p.counts[p.group[number, 4], BINS], 0
    while k < len(SEEN) and seen >= SEEN[k]:
        k += 1
    return k


@compiled_small
def _counted(level: int, b: int, last: int) -> int:
    """The bin of an expert that stands for the bin ``b`` of run times, if the request is in bin ``last``."""
    return b if level < RELATIVE else abs(last - b)


@compiled
def fill_logs(p: Mixture, number: int, last: int) -> None:
    """The experts' distributions for a job whose request is in bin ``last``, as logarithms."""
    for level in range(LEVELS):
        row = p.group[number, level]
        total = p.counts[row, BINS] + PRIOR[level]
        for b in range(BINS):
            parent = np.exp(p.logs[PARENT[level], b]) if PARENT[level] >= 0 else 1.0 / BINS
            counted = _counted(level, b, last)
            p.logs[level, b] = np.log((p.counts[row, counted] + PRIOR[level] * parent) / total)


@compiled_small
def _share_left(p: Mixture, b: int, requested_s: float, elapsed_s: float) -> float:
    """Share of a bin beyond a time, in the logarithm as `quantile_s` interpolates; at least a thousandth."""
    upper_s = max(1.0, min(p.bins[0, b], requested_s))
    lower_s = min(max(lower_edge_s(b), 1.0), upper_s)
    if lower_s >= upper_s or elapsed_s <= lower_s:
        return 1.0
    return float(max(1e-3, np.log(upper_s / elapsed_s) / np.log(upper_s / lower_s)))


@compiled
def predict(p: Mixture, number: int, requested_s: float, elapsed_s: float, siblings_s: float) -> None:
    """Fill ``mass`` with the distribution of a job's run time.

    Args:
        p: what has been learned.
        number: row of the job.
        requested_s: its requested time, which it cannot exceed. [s]
        elapsed_s: for how long it has been running. [s]
        siblings_s: for how long a like job has been running. [s]
    """
    bucket, last = _bucket(p, number), bin_of(requested_s)
    fill_logs(p, number, last)
    first = bin_of(elapsed_s * 1.0001) if elapsed_s > SHORTEST_S else 0
    first = min(first, last)
    above, most = bin_of(siblings_s) if siblings_s > SHORTEST_S else 0, -np.inf
    for b in range(BINS):
        p.mass[b] = -np.inf
    for b in range(first, last + 1):
        value = 0.0
        for level in range(LEVELS):
            value += p.weights[bucket, level] * p.logs[level, b]
        if b < above:
            value += np.log(UNLIKELY)
        if b == first and elapsed_s > 0.0:
            value += np.log(_share_left(p, b, requested_s, elapsed_s))
        p.mass[b] = value
        most = max(most, value)
    total = 0.0
    for b in range(BINS):
        p.mass[b] = np.exp(p.mass[b] - most)
        total += p.mass[b]
    for b in range(BINS):
        p.mass[b] /= total


@compiled_small
def _key(p: Mixture, number: int, requested_s: float, siblings_s: float) -> int:
    """Write what the distribution of a waiting job depends on to the last row of ``kept_keys``; return its place.

    That is the rows of the experts that have seen jobs, the mixing weights, the bins of request and like jobs, and how
    many jobs have been learned from. An expert that has seen none says what the more general one does.
    """
    last = p.kept_keys.shape[0] - 1
    key, mixed = p.kept_keys[last], 0
    for level in range(LEVELS):
        row = p.group[number, level]
        key[level] = row if p.counts[row, BINS] > 0.0 else -1
        mixed = (31 * mixed + key[level]) & 0xFFFFFF
    key[LEVELS], key[LEVELS + 1] = _bucket(p, number), bin_of(requested_s)
    key[LEVELS + 2] = bin_of(siblings_s) if siblings_s > SHORTEST_S else 0
    return whole((31 * (31 * mixed + key[LEVELS + 1]) + key[LEVELS + 2]) % last)


@compiled
def predict_waiting(p: Mixture, number: int, requested_s: float, siblings_s: float) -> None:
    """As `predict` for a job that waits: many have the same distribution, which is kept until a job has ended."""
    at, last, same = _key(p, number, requested_s, siblings_s), p.kept_keys.shape[0] - 1, True
    for k in range(LEVELS + 4):
        same = same and p.kept_keys[at, k] == p.kept_keys[last, k]
    if not same:
        predict(p, number, requested_s, 0.0, siblings_s)
        for b in range(BINS):
            p.kept[at, b] = p.mass[b]
        for k in range(LEVELS + 4):
            p.kept_keys[at, k] = p.kept_keys[last, k]
        return
    for b in range(BINS):
        p.mass[b] = p.kept[at, b]


@compiled
def quantile_s(p: Mixture, share: float, requested_s: float, elapsed_s: float) -> float:
    """A quantile of the run time of the job in question, interpolated in the logarithm. [s]"""
    below = 0.0
    for b in range(BINS):
        if p.mass[b] > 0.0 and below + p.mass[b] >= share:
            upper_s = min(p.bins[0, b], requested_s)
            lower_s = min(max(lower_edge_s(b), elapsed_s, 1.0), upper_s)
            part = (share - below) / p.mass[b]
            return float(min(upper_s, lower_s * (upper_s / lower_s) ** part))
        below += p.mass[b]
    return requested_s


@compiled
def learn_run_time(p: Mixture, number: int, requested_s: float, run_s: float) -> None:
    """Learn the run time of a job that has ended."""
    b = bin_of(run_s)
    predict(p, number, requested_s, 0.0, 0.0)
    if p.mass[b] > 0.0:
        bucket = _bucket(p, number)
        for level in range(LEVELS):
            expected = 0.0
            for k in range(BINS):
                expected += p.mass[k] * p.logs[level, k]
            step = max(-1.0, min(1.0, p.logs[level, b] - expected))
            p.weights[bucket, level] = max(0.0, p.weights[bucket, level] + RATE * step)
    last = bin_of(requested_s)
    for level in range(LEVELS):
        row, counted = p.group[number, level], _counted(level, b, last)
        for k in range(BINS + 1):
            p.counts[row, k] *= DECAY[level]
        beside = SPREAD * (1 if counted == 0 or counted == BINS - 1 else 2)
        p.counts[row, counted] += 1.0 - beside
        if counted > 0:
            p.counts[row, counted - 1] += SPREAD
        if counted < BINS - 1:
            p.counts[row, counted + 1] += SPREAD
        p.counts[row, BINS] += 1.0
    p.kept_keys[p.kept_keys.shape[0] - 1, LEVELS + 3] += 1  # what is kept is out of date
    weight = p.bins[1, b] = min(p.bins[1, b] + 1.0, 1000.0)
    p.bins[2, b] += (run_s - p.bins[2, b]) / weight
    p.bins[3, b] += (1.0 / max(run_s, SHORT_S) - p.bins[3, b]) / weight


@compiled
def fill_from_mixture(
    p: Mixture, job: Prediction, number: int, requested_s: float, now_s: float, elapsed_s: float
) -> None:  # fmt: skip
    """Median, 10 % and 90 % quantiles, mean, and E[1 / max(run time, 10 s)]."""
    since_s = p.since_s[p.group[number, 4]]
    if elapsed_s > 0.0:
        predict(p, number, requested_s, elapsed_s, max(0.0, now_s - since_s))
    else:
        predict_waiting(p, number, requested_s, max(0.0, now_s - since_s))
    job.expected_time_s = quantile_s(p, 0.5, requested_s, elapsed_s)
    job.shortest_time_s = quantile_s(p, 0.1, requested_s, elapsed_s)
    job.longest_time_s = quantile_s(p, 0.9, requested_s, elapsed_s)
    mean_s, price, least = 0.0, 0.0, 1.0 / max(requested_s, SHORT_S)
    for b in range(BINS):
        mean_s += p.mass[b] * min(p.bins[2, b], requested_s)
        price += p.mass[b] * max(p.bins[3, b], least)
    job.mean_time_s, job.slowdown_price = mean_s, price


def no_mixture() -> Mixture:
    """Another predicts."""
    none = np.zeros((0, 0))
    no_keys = np.zeros((0, LEVELS + 4), np.int64)
    return Mixture(np.zeros((0, LEVELS), np.int32), none, none, none, none, np.zeros(0), no_keys, none, np.zeros(0))


def new_mixture(workload: Workload) -> Mixture:
    """Nothing learned yet from the jobs."""
    user, requested_s, processors = workload.user, workload.requested_time_s, workload.processors
    like = np.column_stack([user, requested_s, processors])
    everyone = np.zeros(len(user))
    columns = [everyone, requested_s, user, like[:, :2], like, user, like, everyone, user]
    group, rows = np.zeros((len(user), LEVELS), np.int32), 0
    for level, column in enumerate(columns):
        _, number = np.unique(column, axis=0, return_inverse=True)
        group[:, level] = rows + number.reshape(-1)
        rows += int(number.max(initial=-1)) + 1
    upper_s = np.array([lower_edge_s(b + 1) for b in range(BINS)])
    upper_s[-1] = np.inf
    lower_s = np.maximum(1.0, np.array([lower_edge_s(b) for b in range(BINS)]))
    middle_s = np.sqrt(lower_s * np.minimum(upper_s, 864_000.0))
    bins = np.array([upper_s, np.zeros(BINS), middle_s, 1.0 / np.maximum(middle_s, SHORT_S)])
    weights = np.full((len(SEEN) + 1, LEVELS), 1.0 / LEVELS)
    counts, logs, since_s = np.zeros((rows, BINS + 1)), np.zeros((LEVELS, BINS)), np.full(rows, np.inf)
    keys, kept = np.full((KEPT + 1, LEVELS + 4), -1), np.zeros((KEPT, BINS))
    return Mixture(group, counts, weights, bins, logs, np.zeros(BINS), keys, kept, since_s)
