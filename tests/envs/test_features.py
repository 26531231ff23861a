"""Features and terms that no paper's figures check: against their formulas, worked out from the jobs alone."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from greenbatch.envs.batch import BatchEnv
from greenbatch.presets.preset import check, preset
from greenbatch.scenarios import load_scenario

STATE = ("free_share", "queue_length", "queued_work", "running_work", "hour_sine", "hour_cosine", "since_arrival")
DAY_S = 86_400.0


def looking() -> Any:
    """A preset that sees plain features, one of them as a logarithm, one that no job has."""
    raw: Any = copy.deepcopy(preset("gas-marl").model_dump(mode="json"))
    raw["observation"]["queue"] |= {
        "columns": [
            {"feature": "area"}, {"feature": "slowdown"}, {"feature": "wait", "scale": 600, "log": True},
            {"feature": "executable", "ceiling": 0.5},
        ], "empty": [],
    }  # fmt: skip
    raw["observation"]["state"] = {"columns": [{"feature": name} for name in STATE]}
    raw["action"]["delays"] = [{"kind": "none"}]
    terms = ("makespan_area_ratio", "brown_energy_ratio", "utilization", "renewable_utilization")
    raw["reward"] = {"terms": dict.fromkeys(terms, 1.0)}
    return check(raw)


def test_features_and_terms_are_their_formulas() -> None:
    question, first, count = load_scenario("default", overrides={"workload.generator.jobs": 120}), 30, 60
    site, processors = question.site, question.cluster.processors
    assert site is not None
    known = question.workload  # users ask for three times what their jobs need; no executables
    question = replace(
        question,
        workload=known.with_columns(
            requested_time_s=3.0 * known.requested_time_s, executable=np.full_like(known.executable, -1)
        ),
    )
    jobs = question.window(first, count)
    env = BatchEnv(question, looking(), environments=1, jobs=count, backfill="none")
    seen, agent, steps = env.reset([first]), np.random.default_rng(0), 0
    while len(seen.environment):
        now_s, started_s = env.now_s[0], env.starts_s[0]
        here = jobs.submit_s <= now_s
        waiting = here & np.isnan(started_s)
        left_s = np.maximum(started_s + jobs.requested_time_s - now_s, 0.0)
        running = started_s + np.minimum(jobs.run_time_s, jobs.requested_time_s) > now_s
        angle = 2 * np.pi * (now_s - site.origin_s) / DAY_S
        area = jobs.requested_time_s * jobs.processors / processors
        wait_s = now_s - jobs.submit_s
        expected = [
            1 - jobs.processors[running].sum() / processors, waiting.sum(), area[waiting].sum(),
            (left_s * jobs.processors)[running].sum() / processors, np.sin(angle), np.cos(angle), wait_s[here].min(),
        ]  # fmt: skip
        np.testing.assert_allclose(seen.state[0], expected, rtol=1e-5, atol=1e-5)
        slowdown = (wait_s + jobs.requested_time_s) / np.maximum(jobs.requested_time_s, 10.0)
        rows = np.stack([area, slowdown, np.log1p(np.maximum(wait_s, 0.0) / 600), np.ones(count)], axis=1)[waiting]
        np.testing.assert_allclose(seen.queue, rows, rtol=1e-5, atol=1e-5)
        steps += bool(running.any() and waiting.sum() > 1)
        seen, _, _ = env.step(np.array([[agent.integers(len(seen.queue)), 0]]))
    assert steps > 5
    run_s = np.minimum(jobs.run_time_s, jobs.requested_time_s)
    end_s, begin_s = float((env.starts_s[0] + run_s).max()), float(jobs.submit_s.min())
    work_s = float((run_s * jobs.processors).sum()) / processors
    terms = dict(zip(env.terms, env.values[0], strict=True))
    assert terms["makespan_area_ratio"] == pytest.approx((end_s - begin_s) / work_s)
    assert terms["utilization"] == pytest.approx(work_s / (end_s - begin_s))
    span_s = end_s - float(env.starts_s[0].min())
    load_j = question.cluster.idle_power_w * span_s + float((jobs.power_w * run_s).sum())
    brown_j = load_j * (1 - terms["renewable_utilization"])
    assert terms["brown_energy_ratio"] == pytest.approx(brown_j / float((jobs.power_w * run_s).sum()))
