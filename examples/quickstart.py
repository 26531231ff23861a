"""A tour of greenbatch: simulate, evaluate, inspect, compare, and try a rule of your own.

It requires no data and runs in a few seconds. Lines that begin with %% are cells for editors that support them.
"""

# %% A scenario: jobs, machine, power supply and rules. This one is embedded and generated from a seed.
import numpy as np
import polars as pl

import greenbatch as gb

scenario = gb.load_scenario("default")
print(f"{scenario.name}: {len(scenario.workload):,} jobs on {scenario.cluster.processors} processors")
print(f"power: {', '.join(scenario.site.sources_w)}, {scenario.site.renewable_w.mean() / 1e3:.1f} kW on average")

# %% One scheduler on one window of jobs. A scheduler is a policy and a backfilling.
outcome = gb.simulate(scenario, "f2+green", start=5000, jobs=256)
metrics = gb.evaluate(outcome)
for name in ("avg_wait_s", "avg_bounded_slowdown", "makespan_s", "brown_kwh", "renewable_utilization"):
    print(f"{name:24} {metrics[name]:,.4g}")

# %% An outcome consists of arrays: the start and end of every job, and the load over time.
longest = int(np.argmax(outcome.start_s - outcome.workload.submit_s))
waited_h = (outcome.start_s[longest] - outcome.workload.submit_s[longest]) / 3600
print(f"job {outcome.workload.job_id[longest]} waited longest, {waited_h:.1f} h")
print(f"the load changed {outcome.profile_time_s.size} times, peak {outcome.profile_load_w.max() / 1e3:.2f} kW")


# %% A rule of your own: one number per waiting job, the lowest goes first. Numba compiles it.
@gb.rule("aging")
def aging(queue):
    """Small and short jobs first, but every hour of waiting makes a job look smaller."""
    return queue.requested_time_s * queue.processors / (1.0 + queue.wait_s / 3600.0) ** 2


# %% Compare schedulers on the same four windows.
schedulers = ["fcfs+easy", "f2+green", "aging+easy", "cheapest-start:psi=2"]
comparison = gb.compare(scenario, schedulers, windows=4, jobs=256, seed=1)
shown = ["avg_bounded_slowdown", "renewable_utilization", "horizon_brown_kwh", "makespan_ratio"]
means = (
    comparison.frame.filter(pl.col("metric").is_in(shown))
    .pivot(on="metric", index="scheduler", values="value", aggregate_function="mean")
    .select("scheduler", *shown)
)
for name, slowdown, renewable, brown_kwh, makespan in means.iter_rows():
    print(f"{name:21} slowdown {slowdown:5.2f}, renewable {renewable:.3f}, brown {brown_kwh:5.1f} kWh, x{makespan:.2f}")
