"""Notes on how far figures can be trusted: killed jobs, stretched schedules, poor bargains, windows, recorded waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.experiments.reports.findings import BROWN, COLUMNS, NOTABLE, listed, poor_bargains
from greenbatch.experiments.reports.rivals import means_of, rivals
from greenbatch.experiments.reports.tables import STRETCH_LIMIT, is_record
from greenbatch.experiments.running.statistics import differences, intervals
from greenbatch.metrics.record import PUNCTUAL_S
from greenbatch.notes import LITTLE, Note, percent

if TYPE_CHECKING:
    import polars

    from greenbatch.engine.outcome import Outcome
    from greenbatch.scenarios import Scenario


WAIT, COST = "avg_wait_s", "horizon_cost"
DAY_S, MONTH_S = 86_400.0, 28 * 86_400.0
NO_QUEUE, BRIEF_S = 1.2, 60.0
"""Mean bounded slowdown up to which a machine has no queue, and mean wait up to which it has none. [s]"""
SEVERAL = 3.0
"""Ratio of mean waits, simulated and recorded, from which neither is reliable; differences of a minute do not count."""
MANY_KILLED = 0.25
"""Share of killed jobs above which a warning is due."""
UNEQUAL_KILLED = 0.05
"""Difference of the shares of two schedulers, or of two speeds, from which their figures cannot be compared."""


def cautions(frame: polars.DataFrame, baseline: str, cluster: Cluster | None = None, currency: str = "") -> list[Note]:
    """Notes that follow from the figures: killed jobs, no queue, stretched schedules, poor bargains, demand charges.

    Args:
        frame: tidy results.
        baseline: what the schedulers are compared with.
        cluster: what they ran on, if known: its slow nodes are named.
        currency: name of the currency of the site's prices.
    """
    return [
        *killed_notes(_killed_shares(frame, baseline), cluster), *_without_queue(frame, baseline),
        *_stretched(frame, baseline), *map(_warning, poor_bargains(frame, baseline, currency)),
        *_demand_charge(frame, baseline, currency),
    ]  # fmt: skip


def _warning(text: str) -> Note:
    return Note(text, level="warning")


def _demand_charge(frame: polars.DataFrame, baseline: str, currency: str) -> list[Note]:
    """A note where much of the bill of some days is the demand charge, which is that of whole months."""
    charge, cost, length_s = (
        means_of(frame, metric).get(baseline, np.nan) for metric in ("horizon_demand_charge", COST, "horizon_s")
    )
    if not (length_s < MONTH_S and charge > LITTLE * abs(cost)):
        return []
    what = (
        f"of the {cost:,.2f} {currency} of {baseline}, {charge:,.2f} are demand charges of whole months, although a "
        f"window lasts {length_s / DAY_S:.1f} days: costs of windows do not add up to those of a month or a year"
    )
    return [Note(what, about="horizon_cost", level="change")]


def _without_queue(frame: polars.DataFrame, baseline: str) -> list[Note]:
    """A warning that names the schedulers whose jobs wait where the baseline's hardly do: they are held."""
    frame = rivals(frame, baseline)
    slowdowns, waits_s = means_of(frame, "avg_bounded_slowdown"), means_of(frame, WAIT)
    if is_record(baseline):
        slowdowns.pop(baseline, None)
        baseline = min(slowdowns, key=slowdowns.__getitem__, default="")
    known = [name for name in slowdowns if name in waits_s]
    if baseline not in known or (slowdowns[baseline] > NO_QUEUE and waits_s[baseline] > BRIEF_S):
        return []
    held = tuple(
        name for name in known
        if waits_s[name] - waits_s[baseline] > BRIEF_S and slowdowns[name] > NOTABLE * slowdowns[baseline]
    )  # fmt: skip
    wait = COLUMNS[WAIT].fitted([waits_s[baseline]])
    what = (
        f"no queue under {baseline} (mean wait {wait.number(waits_s[baseline])} {wait.unit}, bounded slowdown "
        f"{slowdowns[baseline]:.2f}), so jobs wait because they are held, and no shorter wait of others makes up for it"
    )
    return [Note(what, level="warning", of=held)] if held else []


def _killed_shares(frame: polars.DataFrame, baseline: str) -> dict[str, float]:
    """Scheduler, the baseline first -> share of its jobs that are killed, where that is known."""
    shares = {}
    for name in sorted(frame["scheduler"].unique(maintain_order=True), key=lambda each: each != baseline):
        rows = frame.filter(frame["scheduler"] == name)
        killed, jobs = (float(rows.filter(rows["metric"] == each)["value"].sum()) for each in ("killed", "jobs"))
        if jobs > 0:
            shares[str(name)] = killed / jobs
    return shares


def killed_notes(shares: Mapping[str, float], cluster: Cluster | None = None) -> list[Note]:
    """A warning if a scheduler has many jobs killed at their requested time, or many more than another; else none.

    Args:
        shares: scheduler -> share of its jobs that are killed.
        cluster: what they ran on, if known.
    """
    most, least = (pick(shares, key=shares.__getitem__, default="") for pick in (max, min))
    if not most or not (shares[most] > MANY_KILLED or shares[most] - shares[least] > UNEQUAL_KILLED):
        return []
    unequal = shares[most] - shares[least] > UNEQUAL_KILLED
    whose = f" under {most}" + f" and {shares[least]:.0%} under {least}" * unequal if len(shares) > 1 else ""
    what = "waits, slowdowns and energies are those of shorter jobs" + " and cannot be compared" * unequal
    slow = [] if cluster is None else slow_groups(cluster)
    cause = f"; {_slow_nodes(slow)}, and requested times do not grow with them" if slow else ""
    remedy = "request more" if slow else "check requested_time_s"
    return [_warning(
        f"{shares[most]:.0%} of the jobs are killed at their requested time{whose}, so {what}{cause}; {remedy}, or set "
        'rules.overrun = "extend".'
    )]  # fmt: skip


def slow_groups(cluster: Cluster) -> list[NodeGroup]:
    """The node groups on which a job may exceed the time that it needs at speed 1; none on a pool."""
    return [group for group in cluster.groups if group.speed < 1] if cluster.on_nodes else []


def _slow_nodes(groups: Sequence[NodeGroup]) -> str:
    """Names and speeds of node groups, the end of a sentence."""
    return "nodes of " + listed([f"group {group.name} run at speed {group.speed:g}" for group in groups])


def slow_node_notes(scenario: Scenario) -> list[Note]:
    """A warning if many jobs would be killed on the slowest nodes although they end in time at speed 1; else none."""
    slow, jobs = slow_groups(scenario.cluster), scenario.workload
    if not slow or scenario.rules.overrun != "kill" or not len(jobs):
        return []
    lowest = min(group.speed for group in slow)
    killed = (jobs.run_time_s / lowest > jobs.requested_time_s) & (jobs.run_time_s <= jobs.requested_time_s)
    if killed.mean() <= UNEQUAL_KILLED:
        return []
    return [_warning(
        f"{killed.mean():.0%} of the jobs would be killed at their requested time on the slowest nodes but not at "
        f"speed 1: {_slow_nodes(slow)}, and requested times do not grow with them. A schedule may then use less energy "
        'because it does less work; request more, or set rules.overrun = "extend".'
    )]  # fmt: skip


def _stretched(frame: polars.DataFrame, baseline: str) -> list[Note]:
    """One warning for all schedulers that gain renewable utilization with a makespan stretched by more than 5 %.

    A gain counts if its interval over the windows excludes zero. An idle cluster runs mostly on renewable power, so
    stretching the schedule alone raises the ratio; brown energy over the scenario's horizon shows the actual gain.
    """
    ratio = intervals(frame, "makespan_ratio")
    names = []
    for name, got in differences(frame, "renewable_utilization", baseline).items():
        gained = got.difference.low if got.difference.count > 1 else got.difference.mean
        if gained > 0 and ratio[name].mean > STRETCH_LIMIT:
            names.append(name)
    if not names:
        return []
    shown = names if len(names) < 4 else [*names[:2], f"{len(names) - 2} others"]
    many, stretch = len(names) > 1, [ratio[name].mean for name in names]
    line = (
        f"{listed(shown)} {'stretch' if many else 'stretches'} the makespan to {_span(stretch, '.2f')} times that of "
        f"{baseline}; that alone raises the renewable share."
    )
    brown = differences(frame, BROWN, baseline)
    saved = [brown[name].relative for name in names if np.isfinite(brown[name].relative)]
    if saved:
        line += f" Over the scenario's horizon {'they draw' if many else 'it draws'} {_saving(saved)} brown energy."
    return [_warning(line)]


def _saving(relative: Sequence[float]) -> str:
    """Relative differences as ``7 to 64% less``."""
    low, high = min(relative), max(relative)
    if high - low < 0.01 and abs(low) < 0.005:
        return "as much"
    if high <= 0 or low >= 0:
        sizes = [100 * abs(value) for value in relative]
        return f"{_span(sizes, '.0f')}% {'less' if high <= 0 else 'more'}"
    return f"between {-low:.0%} less and {high:.0%} more"


def _span(values: Sequence[float], form: str) -> str:
    ends = [f"{min(values):{form}}", f"{max(values):{form}}"]
    return " to ".join(dict.fromkeys(ends))


def overlap_notes(starts: Sequence[int], jobs: int, total: int) -> list[Note]:
    """A warning where windows share jobs, so that they are not independent samples; none where they do not.

    Args:
        starts: first job of each window.
        jobs: length of the windows.
        total: jobs of the trace.
    """
    gaps = np.diff(np.sort(starts))
    if not len(gaps) or gaps.min() >= jobs:
        return []
    every = jobs - (max(starts) - min(starts))
    lead = f"{len(starts)} windows of {jobs:,} jobs out of {total:,}"
    if every > 0:
        return [_warning(f"{lead}: any two share at least {every:,} jobs, so intervals are too narrow.")]
    different = jobs + int(np.minimum(gaps, jobs).sum())
    return [_warning(
        f"{lead} overlap: together they hold {different:,} different jobs instead of {len(starts) * jobs:,}, so "
        "intervals are somewhat too narrow."
    )]  # fmt: skip


def recorded_wait_notes(outcome: Outcome, *, first: bool = False) -> list[Note]:
    """A note that compares recorded waits with the simulated ones of the same jobs; none without records.

    Args:
        outcome: of the scheduler that the recorded waits are compared with.
        first: the outcome is that of the first of several windows.
    """
    jobs = outcome.workload
    known = np.isfinite(jobs.recorded_wait_s)
    if not known.any() or not jobs.recorded_wait_s[known].any():
        return []

    count = f"{len(jobs):,}" if known.all() else f"{known.sum():,} of {len(jobs):,}"
    text = (
        f"Waits recorded for {count} jobs{' of the first window' if first else ''}: "
        f"{_waits(jobs.recorded_wait_s[known])}; simulated with {named(outcome)} for the same jobs: "
        f"{_waits((outcome.start_s - jobs.submit_s)[known])}. "
        "The difference shows how far this simulation is from what the site runs."
    )
    return [Note(text, level="change")]


def record_notes(outcomes: Iterable[Outcome], *, first: bool = False) -> list[Note]:
    """Notes on an ``as-recorded`` run that is not quite the recorded schedule; none without such a run.

    Args:
        outcomes: the outcomes of one window.
        first: it is the first of several windows.
    """
    notes, of = [], " of the first window" if first else ""
    for outcome in filter(lambda each: is_record(each.scheduler), outcomes):
        name, jobs = named(outcome), outcome.workload
        unknown, late_s = unknown_starts(outcome), late_starts(outcome)
        if unknown:
            told = f"{unknown:,} of {len(jobs):,} jobs{of} have no recorded start and start as soon as they fit"
            notes.append(Note(f"{told}.", level="change", of=(name,)))
        if late_s.size:
            told = (
                f"{late_s.size:,} of {len(jobs):,} jobs{of} do not fit at their recorded start and "
                f"start {_hours(late_s.mean())} h later on average, {_hours(late_s.max())} h at most: the recorded "
                "schedule does not fit on the cluster described."
            )
            notes.append(Note(told, level="change", of=(name,)))
    return notes


def depth_notes(outcomes: Iterable[Outcome], *, first: bool = False) -> list[Note]:
    """A note on runs in which more jobs waited than the scheduler looks at, ``rules.backfill_depth``.

    Args:
        outcomes: the outcomes of one window.
        first: it is the first of several windows.
    """
    notes, of = [], " of the first window" if first else ""
    for outcome in filter(lambda each: each.rules.backfill_depth > 0, outcomes):
        depth, started = outcome.rules.backfill_depth, np.isfinite(outcome.start_s)
        at_s = np.concatenate([outcome.workload.submit_s[started], outcome.start_s[started]])
        order = np.argsort(at_s, kind="stable")  # submissions before starts of the same instant
        waiting = np.cumsum(np.repeat([1, -1], len(at_s) // 2)[order])
        held_s = np.diff(at_s[order], append=at_s.max(initial=0.0))
        beyond = waiting > depth
        if held_s[beyond].sum() > 0.0:
            share = percent(held_s[beyond].sum() / held_s.sum())
            what = (
                f"{named(outcome)} looked at {depth:,} of up to {waiting.max():,} waiting jobs{of}, those submitted "
                f"first (rules.backfill_depth), in {share} of the time: with all of them, it would start others"
            )
            notes.append(Note(what, level="change", of=(named(outcome),)))
    return notes


def unknown_starts(outcome: Outcome) -> int:
    """Number of jobs without a recorded start."""
    return int(np.isnan(outcome.workload.recorded_wait_s).sum())


def late_starts(outcome: Outcome) -> NDArray[np.float64]:
    """By how much jobs start after their recorded start, of those that do, in order of the jobs. [s]"""
    late_s = outcome.start_s - outcome.workload.submit_s - outcome.workload.recorded_wait_s
    return np.asarray(late_s[late_s > PUNCTUAL_S], np.float64)


def named(outcome: Outcome) -> str:
    """The scheduler of an outcome as users write it: without the backfilling that does nothing to a record."""
    return outcome.scheduler.removesuffix("+none") if is_record(outcome.scheduler) else outcome.scheduler


def _hours(time_s: float) -> str:
    return f"{time_s / 3600:,.2f}"


def mismatch_notes(outcome: Outcome | None) -> list[Note]:
    """A warning where recorded and simulated mean waits differ several-fold; none without records.

    Args:
        outcome: of the scheduler that the recorded waits are compared with.
    """
    if outcome is None or not recorded_wait_notes(outcome):
        return []
    known = np.isfinite(outcome.workload.recorded_wait_s)
    recorded_s = float(outcome.workload.recorded_wait_s[known].mean())
    simulated_s = float((outcome.start_s - outcome.workload.submit_s)[known].mean())
    low_s, high_s = sorted((recorded_s, simulated_s))
    if high_s < SEVERAL * max(low_s, 60.0):
        return []
    text = (
        f"recorded mean wait {recorded_s / 3600:.2f} h, simulated with {named(outcome)} {simulated_s / 3600:.2f} h: "
        "the simulated machine differs from the real one, so neither hours nor ranking are reliable"
    )
    return [Note(text, level="warning", shares=((float(known.mean()), "jobs"),))]  # before warnings on less


def _waits(waits_s: NDArray[np.float64]) -> str:
    high_s = float(np.percentile(waits_s, 95))
    mean, p95 = (COLUMNS[metric].fitted([high_s]) for metric in ("avg_wait_s", "p95_wait_s"))
    return (
        f"{mean.number(float(waits_s.mean()))} {mean.unit} on average, 95th percentile {p95.number(high_s)} {p95.unit}"
    )
