"""The search for a ranking: what it sees, how it chooses, the loop, and its models as schedulers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenbatch.engine.simulate import simulate
from greenbatch.envs.batch import BatchEnv, Observation
from greenbatch.errors import InputError
from greenbatch.learning.runs.folder import open_run
from greenbatch.learning.runs.plan import Plan, make_plan
from greenbatch.learning.runs.windows import jobs_of, validation_starts
from greenbatch.learning.search import search
from greenbatch.learning.search.ranking import RankingSearch, begin_of, choose, costs, play
from greenbatch.metrics import evaluate
from greenbatch.models.model import load_model
from greenbatch.presets.preset import Preset, check
from greenbatch.presets.training import HELD_OUT
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler
from greenbatch.storage import hidden


@pytest.fixture(scope="module")
def small() -> Scenario:
    return load_scenario("default", overrides={"workload.generator.jobs": 300})


def raw(**changes: Any) -> Preset:
    """Plain columns, by which features can be computed again."""
    table = {
        "name": "raw", "description": "Plain numbers.", "settings": {"sticky": 1.0},
        "observation": {
            "queue": {"rows": 300, "columns": [
                {"feature": name} for name in ("processors", "until_fits", "idle_until_fits", "requested_time")
            ]},
            "running": {"rows": 300, "columns": [{"feature": "processors"}, {"feature": "remaining_time"}]},
            "state": {"columns": [{"feature": "free_share"}]},
        },
        "reward": {"terms": {"accrued_bounded_slowdown": 1.0, "avg_bounded_slowdown": 0.0}, "form": "dense"},
    }  # fmt: skip
    return check(table | changes)


def by_hand(wanted: float, free: float, running: np.ndarray, total: float) -> tuple[float, float]:
    """Time until a job fits and the idle processor time until then, from the running jobs in order of their ends."""
    ends = [0.0]
    idle = [free]
    for processors, remaining in running:
        ends.append(max(remaining, ends[-1]))
        idle.append(idle[-1] + processors)
    k = next(k for k, each in enumerate(idle) if each >= wanted - 1e-6)
    return ends[k], sum(np.diff(ends[: k + 1]) * idle[:k]) / total


@pytest.mark.parametrize("backfill", ["none", "easy-schedgym"])
def test_how_long_a_job_would_hold_the_line(small: Scenario, backfill: str) -> None:
    env = BatchEnv(small, raw(), environments=3, jobs=100, backfill=backfill)
    seen, total, blocked = env.reset([0, 50, 180]), float(small.cluster.processors), 0
    while len(seen.environment):
        for a in range(len(seen.environment)):
            running = seen.running[seen.running_offsets[a] : seen.running_offsets[a + 1]].astype(float)
            for row in seen.queue[seen.queue_offsets[a] : seen.queue_offsets[a + 1]].astype(float):
                until, idle = by_hand(row[0], seen.state[a, 0] * total, running, total)
                assert row[1:3] == pytest.approx([until, idle], rel=1e-4, abs=1e-2)
                blocked += until > 0
        seen, _, _ = env.step(choose(seen, -seen.queue[:, 3]))
    assert blocked > 50


def test_accrued_slowdown_ends_as_bounded_slowdown_and_is_paid_as_it_grows(small: Scenario) -> None:
    env = BatchEnv(small, raw(), environments=1, jobs=200)
    seen, paid = env.reset([20]), []
    while len(seen.environment):
        seen, rewards, _ = env.step(choose(seen, -seen.queue[:, 3]))
        paid.append(float(rewards[0]))
    accrued, bounded = env.values[0]
    assert accrued == pytest.approx(bounded, rel=1e-12)
    assert min(paid) >= -1e-12  # waiting only ever adds to it
    assert 0.0 < accrued - sum(paid) < 0.05 * accrued  # what there was at the first decision


def test_the_first_of_the_best_rows_is_chosen() -> None:
    offsets, selectable = np.array([0, 3, 4, 8]), np.array([1, 1, 1, 1, 0, 1, 1, 1], dtype=bool)
    seen = Observation(*[np.zeros(0)] * 11)._replace(queue_offsets=offsets, selectable=selectable)
    scores = np.array([1, 2, 2, -5, 9, 0, 3, 3], dtype=np.float32)
    assert choose(seen, scores).tolist() == [[1, 0], [0, 0], [2, 0]]


def test_costs_of_a_window_weigh_as_its_root() -> None:
    rewards = np.array([[-90.0, -1.0], [-110.0, -1.0], [-100.0, -1.0]])
    np.testing.assert_allclose(costs(rewards, 0.5), [(9 + 1) / 11, (11 + 1) / 11, 1.0])


def test_with_ranks_all_windows_weigh_the_same() -> None:
    """The first candidate is the best one by a hundredth in two windows, the last by half in one; ties share a rank."""
    rewards = np.array([[-99.0, -1.00, -5.0], [-100.0, -1.01, -5.0], [-101.0, -0.50, -9.0]])
    np.testing.assert_allclose(costs(rewards, "ranks"), [(1 + 2 + 1.5) / 3, (2 + 3 + 1.5) / 3, (3 + 1 + 3) / 3])


def test_mixed_windows_have_jobs_of_random_shares(small: Scenario) -> None:
    kinds = np.arange(len(small.workload)) % 4
    asked = replace(small, workload=small.workload.with_columns(executable=kinds))
    search = RankingSearch(plan(asked, **{"training.search.mixed": True}))
    rows = search._mixed(200, np.random.default_rng(0))
    assert set(rows.flat) <= set(jobs_of(search.starts, search.settings.jobs))
    shares = np.array([np.bincount(kinds[each], minlength=4) for each in rows]) / rows.shape[1]
    assert rows.shape == (200, search.settings.jobs)
    assert (np.abs(shares.mean(axis=0) - 0.25) < 0.06).all()
    present = (shares > 0).sum(axis=1)
    assert (np.abs(np.bincount(present, minlength=5)[2:] / 200 - 1 / 3) < 0.12).all()  # two, three or four kinds
    assert (present >= 2).all()


def test_candidates_are_played_as_if_alone(small: Scenario) -> None:
    made = make_plan("rlscheduler-plus", small).preset
    points = np.random.default_rng(0).normal(0, 1, (3, 12 + 2 * 14))
    starts = np.array([0, 90])
    together = play(BatchEnv(small, made, environments=6, jobs=80), starts, points)
    for point, row in zip(points, together, strict=True):
        alone = [play(BatchEnv(small, made, environments=1, jobs=80), starts[k : k + 1], point[None]) for k in (0, 1)]
        assert [float(each[0, 0]) for each in alone] == row.tolist()


TINY = {"training.search.population": 6, "training.windows": 2, "training.jobs": 60}


def plan(small: Scenario, epochs: int = 5, **changes: Any) -> Plan:
    return make_plan("rlscheduler-plus", small, overrides={**TINY, **changes}, epochs=epochs, threads=1)


class Stop(Exception):
    """Simulates a power cut."""


def test_an_interrupted_search_ends_with_the_same_bytes(small: Scenario, tmp_path: Path) -> None:
    search(plan(small), tmp_path / "whole", watch=lambda _: None)
    for after in (1, 4):
        seen: list[Any] = []

        def stop(record: Any, seen: list[Any] = seen, after: int = after) -> None:
            seen.append(record)
            if len(seen) == after:
                raise Stop

        with pytest.raises(Stop):
            search(plan(small), tmp_path / f"cut-{after}", watch=stop)
        search(plan(small), tmp_path / f"cut-{after}", watch=lambda _: None)
        files = [tmp_path / name / "model" / "actor.safetensors" for name in (f"cut-{after}", "whole")]
        assert files[0].read_bytes() == files[1].read_bytes()


def point_of(folder: Path) -> np.ndarray:
    """The numbers of a model as a candidate."""
    names = ("rows.0.weight", "hidden.0.weight", "hidden.0.bias", "hidden.1.weight")
    weights = load_model(folder).weights
    return np.concatenate([weights[name].ravel() for name in names if name in weights]).astype(float)


@pytest.mark.parametrize(("backfill", "hidden"), [("none", 0), ("none", 3), ("easy-schedgym", 2)])
def test_the_model_schedules_as_in_the_search(small: Scenario, tmp_path: Path, backfill: str, hidden: int) -> None:
    made = plan(small, epochs=2, **{"network.hidden": hidden})
    search(made, tmp_path / "run", watch=lambda _: None)
    folder = tmp_path / "run" / "model"
    assert len(point_of(folder)) == len(begin_of(made)) == 12 + hidden * 14
    env = BatchEnv(small, made.preset, environments=1, jobs=120, backfill=backfill)
    tried = -play(env, np.array([100]), point_of(folder)[None])[0, 0]
    used = scheduler(f"rlscheduler-plus@{folder}+{backfill}")
    outcome = simulate(small.window(100, 120), small.cluster, small.site, small.rules, used)
    assert evaluate(outcome)["avg_bounded_slowdown"] == pytest.approx(tried, rel=1e-9)


def test_a_search_makes_windows_cheaper(small: Scenario, tmp_path: Path) -> None:
    """From a ranking by chance (weights 0: the first job in the queue) to a better one, on windows not searched on."""
    made = plan(
        small,
        epochs=12,
        **{"network.begin": [0.0] * 12, "network.hidden": 0, "training.jobs": 100, "training.windows": 4},
    )
    search(made, tmp_path / "run", watch=lambda _: None)
    found = point_of(tmp_path / "run" / "model")
    env = BatchEnv(small, made.preset, environments=2, jobs=150)
    before, after = play(env, np.array([150]), np.stack([np.zeros(12), found]))[:, 0]
    assert after > 0.8 * before


def test_the_best_center_on_validation_windows_is_kept_whatever_the_interruptions(tmp_path: Path) -> None:
    large = load_scenario("default", overrides={"workload.generator.jobs": 4_800})
    keep = {"training.keep": "best", "training.validation": {"windows": 3, "jobs": 60, "every": 1}}
    centers = []
    for epochs in (1, 2, 3, 4):
        search(plan(large, epochs=epochs), tmp_path / f"{epochs}", watch=lambda _: None)
        centers.append(point_of(tmp_path / f"{epochs}" / "model"))
    made = plan(large, epochs=4, **keep)
    starts = validation_starts(large, 3, 60)
    assert not set(jobs_of(starts, 60)) & set(HELD_OUT)
    figures = play(BatchEnv(large, made.preset, environments=12, jobs=60), starts, np.array(centers)).mean(axis=1)
    counters = search(made, tmp_path / "best", watch=lambda _: None)
    best = int(np.argmax(figures))
    assert (counters.best_epoch, counters.best_figure) == (best + 1, pytest.approx(figures[best], rel=1e-6))
    np.testing.assert_allclose(point_of(tmp_path / "best" / "model"), centers[best], rtol=1e-6)
    record = load_model(tmp_path / "best" / "model").record
    assert record.training.kept_epoch == best + 1
    assert record.validation.starts == tuple(starts.tolist())
    assert (record.validation.jobs, record.validation.figure) == (60, counters.best_figure)

    def stop(record: Any) -> None:
        if record["epoch"] == 3:
            raise Stop

    with pytest.raises(Stop):
        search(made, tmp_path / "cut", watch=stop)
    search(made, tmp_path / "cut", watch=lambda _: None)
    np.testing.assert_array_equal(point_of(tmp_path / "cut" / "model"), point_of(tmp_path / "best" / "model"))


def test_an_interrupt_leaves_no_hidden_folders(small: Scenario, tmp_path: Path) -> None:
    """It may come while a checkpoint is being replaced."""

    def interrupted() -> None:
        with open_run(tmp_path / "run", plan(small)) as home:
            home.save("epoch-000001", {}, {})
            for part in ("checkpoint", "model"):
                (hidden(home.folder / part) / "new").mkdir(parents=True)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert sorted(each.name for each in (tmp_path / "run").iterdir()) == ["checkpoint", "run.json"]
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network.begin": [1.0, 2.0]}, "does not fit the queue"),
        ({"network.begin": ["a"] * 12}, r"network\.begin\.0: is 'a', the weight of \w+ \(give a finite number\)"),
        ({"network.begin": [0.0] * 11 + [np.nan]}, r"network\.begin\.11: is nan, the weight of"),
        ({"network.width": 3}, "linear has no such key"),
        ({"network.hidden": 100}, "is 100 .give 0 to 16"),
        ({"action.delays": [{"kind": "none"}, {"kind": "releases", "amount": 1}]}, "a ranking chooses no delay"),
        ({"action.delays": [{"kind": "seconds", "amount": 60}]}, "a ranking chooses no delay"),
    ],
)
def test_plans_that_are_not_rankings_are_refused(
    small: Scenario, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        search(plan(small, **changes), tmp_path / "run", watch=lambda _: None)
    assert not (tmp_path / "run").exists()
