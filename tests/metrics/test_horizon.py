"""Energy over the scenario's own horizon: by hand, and the same whoever is compared."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import outcome_of

import greenbatch as gb
from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.rules import Rules
from greenbatch.errors import InputError
from greenbatch.metrics import Horizon, evaluate, evaluate_window, horizon_of, json_ready
from greenbatch.metrics.registry import METRICS

FOUR = Cluster.pooled(4, processors_per_machine=4, idle_power_per_machine_w=100.0)
JOBS = {"submit_s": [0.0, 0.0], "processors": [4, 4], "power_w": [300.0, 200.0]}
SITE = Site(name="dim", step_s=1000.0, sources_w={"sun": np.array([150.0, 50.0])}, repeat=True)
# fcfs+easy runs one after the other: 0..1000 and 1000..3000, so the horizon is 0..6000.
SOON = ([0.0, 1000.0], [1000.0, 3000.0])
LATE = ([0.0, 5000.0], [1000.0, 7000.0])
HORIZON = Horizon(start_s=0.0, end_s=6000.0, reference_makespan_s=3000.0)
NAMES = [name for name, m in METRICS.items() if m.scope == "horizon"]


def test_horizon_of_a_window_by_hand() -> None:
    outcome = outcome_of(JOBS, *SOON, FOUR, SITE)
    assert horizon_of(outcome.workload, FOUR, SITE, Rules()) == HORIZON
    assert horizon_of(outcome.workload, FOUR, None, Rules(), 0.5).end_s == 1500.0
    with pytest.raises(InputError, match="number > 0"):
        horizon_of(outcome.workload, FOUR, SITE, Rules(), 0.0)


def test_a_horizon_that_covers_the_record() -> None:
    """The second job was recorded to start after 5000 s and run 2000 s; the first has no record."""
    jobs = outcome_of(JOBS, *SOON, FOUR, SITE).workload.with_columns(recorded_wait_s=np.array([np.nan, 5000.0]))
    for factor, end_s in ((1.1, 7000.0), (3.0, 9000.0)):
        assert horizon_of(jobs, FOUR, SITE, Rules(), factor, cover_record=True).end_s == end_s
    assert horizon_of(jobs, FOUR, SITE, Rules(), 2.0).end_s == 6000.0


def test_a_supply_that_ends_ends_the_horizon() -> None:
    site = Site(name="short", step_s=1000.0, sources_w={"sun": np.full(4, 100.0)}, origin_s=500.0)
    outcome = outcome_of(JOBS, *SOON, FOUR, SITE)
    assert horizon_of(outcome.workload, FOUR, site, Rules()).end_s == 4500.0


def test_figures_over_the_horizon_by_hand() -> None:
    soon = evaluate(outcome_of(JOBS, *SOON, FOUR, SITE), horizon=HORIZON)
    late = evaluate(outcome_of(JOBS, *LATE, FOUR, SITE), horizon=HORIZON)
    # Idle 100 W; job 1 adds 300 W, job 2 adds 200 W; supply is 150 W and 50 W in turn.
    assert soon["horizon_energy_kwh"] * 3.6e6 == pytest.approx(6000 * 100 + 1000 * 300 + 2000 * 200)
    assert soon["horizon_brown_kwh"] * 3.6e6 == pytest.approx(1e3 * (250 + 250 + 150 + 50 + 0 + 50))
    assert late["horizon_energy_kwh"] * 3.6e6 == pytest.approx(6000 * 100 + 1000 * 300 + 1000 * 200)
    assert late["horizon_brown_kwh"] * 3.6e6 == pytest.approx(1e3 * (250 + 50 + 0 + 50 + 0 + 250))
    assert [soon["horizon_makespan_ratio"], late["horizon_makespan_ratio"]] == [1.0, 7 / 3]
    assert [soon["horizon_unfinished_jobs"], late["horizon_unfinished_jobs"]] == [0, 1]
    # Of 4 * 3000 processor seconds job 2 runs 4 * 1000 after the horizon.
    assert [soon["horizon_unfinished_share"], late["horizon_unfinished_share"]] == [0.0, pytest.approx(1 / 3)]
    assert soon["horizon_s"] == late["horizon_s"] == 6000.0
    assert json_ready(late)["horizon_unfinished_jobs"] == 1


def test_a_job_that_starts_after_the_horizon_is_unfinished_once() -> None:
    after = evaluate(outcome_of(JOBS, [6500.0, 8000.0], [7500.0, 10_000.0], FOUR, SITE), horizon=HORIZON)
    assert (after["horizon_unfinished_share"], after["horizon_unfinished_jobs"]) == (1.0, 2)
    one = evaluate(outcome_of(JOBS, [0.0, 8000.0], [1000.0, 10_000.0], FOUR, SITE), horizon=HORIZON)
    assert one["horizon_unfinished_share"] == pytest.approx(2 / 3)  # its 2000 s of 3000 s, not the 4000 s to its end


def test_without_a_horizon_its_figures_are_left_out_and_the_others_keep_their_values() -> None:
    outcome = outcome_of(JOBS, *LATE, FOUR, SITE)
    plain, more = evaluate(outcome), evaluate(outcome, horizon=HORIZON)
    assert set(more) - set(plain) == set(NAMES)
    assert {name: more[name] for name in plain} == plain
    assert not set(NAMES) & set(evaluate_window({"late": outcome}, baseline="late")["late"])


def test_without_power_energy_over_the_horizon_is_undefined() -> None:
    got = evaluate(outcome_of(JOBS, *LATE, FOUR), horizon=HORIZON)
    assert np.isnan([got["horizon_energy_kwh"], got["horizon_brown_kwh"]]).all()
    assert got["horizon_unfinished_jobs"] == 1


@pytest.fixture(scope="module")
def comparisons() -> list[dict[str, float]]:
    """Figures of fcfs+easy on one window, compared to three different sets of schedulers."""
    sets = (["fcfs+easy"], ["f2+easy", "fcfs+easy"], ["fcfs+easy", "cheapest-start:psi=2+none", "lptpn+none"])
    made = []
    for names in sets:
        frame = gb.compare("default", names, starts=[5000], jobs=1024).frame
        rows = frame.filter(frame["scheduler"] == "fcfs+easy")
        made.append(dict(zip(rows["metric"], rows["value"], strict=True)))
    return made


def test_horizon_figures_do_not_depend_on_compared_schedulers(comparisons: list[dict[str, float]]) -> None:
    assert len({values["common_horizon_brown_kwh"] for values in comparisons}) == 3, "the comparisons must differ"
    for name in NAMES:
        assert len({values[name] for values in comparisons}) == 1, name
    assert comparisons[0]["horizon_brown_kwh"] > comparisons[0]["brown_kwh"] > 0
    assert comparisons[0]["horizon_makespan_ratio"] == 1.0


def test_the_factor_is_the_scenarios() -> None:
    def figures(horizon: float) -> dict[str, float]:
        question = gb.load_scenario("default", overrides={"evaluation.horizon": horizon})
        frame = gb.compare(question, ["fcfs+easy", "lptpn+none"], starts=[5000], jobs=1024).frame
        rows = frame.filter(frame["scheduler"] == "lptpn+none")
        return dict(zip(rows["metric"], rows["value"], strict=True))

    short, long = figures(0.5), figures(2.0)
    assert long["horizon_s"] == 4 * short["horizon_s"]
    assert short["horizon_unfinished_jobs"] > 0 == long["horizon_unfinished_jobs"]
    assert short["makespan_s"] == long["makespan_s"]


def test_the_reference_is_fcfs_with_easy_as_it_is_compared() -> None:
    question = gb.load_scenario("default")
    outcome = gb.simulate(question, "fcfs+easy", start=5000, jobs=1024)
    horizon = horizon_of(outcome.workload, question.cluster, question.site, question.rules)
    assert horizon.reference_makespan_s == evaluate(outcome)["makespan_s"]
