"""Two custom schedulers: a one-line rule, and a policy that uses the forecast of renewable power.

Use them by file and name, wherever a scheduler is expected::

    greenbatch compare --schedulers fcfs+easy,examples/my_rules.py:my_rule+easy --out out/mine
"""

import numpy as np

import greenbatch as gb


@gb.rule("my_rule")
def my_rule(queue):
    """Small and short jobs first, but every hour of waiting makes a job look smaller."""
    return queue.requested_time_s * queue.processors / (1.0 + queue.wait_s / 3600.0) ** 2


@gb.policy("sun_first")
class SunFirst:
    """Start jobs when there is enough renewable power; the longer a job has waited, the less it requires."""

    def decide(self, view: gb.View) -> gb.Start | gb.Wait:
        """Start the smallest job that fits and whose brown share is at most wait / (10 x requested time)."""
        queue, sun = view.queue, view.supply
        if queue.wait_s[0] > 4 * 86_400.0 or not view.running.job_id.size:
            return gb.Start(0)  # if it does not fit, processors are reserved for it
        surplus_w = np.maximum(sun.renewable_w - view.load_w, 0.0)
        brown = np.maximum(1.0 - surplus_w / queue.power_w[:, None], 0.0)
        ahead_s = np.clip(queue.requested_time_s[:, None] - (sun.start_s - view.now_s), 0.0, sun.end_s - sun.start_s)
        share = (brown * ahead_s).sum(axis=1) / ahead_s.sum(axis=1)
        ready = (share <= queue.wait_s / (10.0 * queue.requested_time_s)) | (queue.requested_time_s < 600.0)
        rows = np.flatnonzero(ready & (queue.processors <= queue.free_processors))
        area = queue.requested_time_s[rows] ** 2 * queue.processors[rows]
        return gb.Start(int(rows[np.argmin(area)])) if rows.size else gb.Wait()
