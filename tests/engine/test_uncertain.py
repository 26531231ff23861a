"""Schedulers see the forecast, energies follow from the truth; a forecast is one number on every path."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numba
import numpy as np
import pytest
from cases import clusters, job_lists, workload
from driven import run_from_views
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from plain import Job

from greenbatch.cluster import Cluster
from greenbatch.energy import ForecastModel, Site
from greenbatch.engine.accounts import books
from greenbatch.engine.power.protocol import forecast_w, power_of
from greenbatch.engine.records import Clock, dtype_of, record_of
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.envs.batch import BatchEnv
from greenbatch.errors import GreenbatchError
from greenbatch.machine_code.compile import entry
from greenbatch.metrics import evaluate
from greenbatch.presets.preset import preset
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler

HOUR_S, DAY_S = 3600.0, 86_400.0
KINDS = (
    ForecastModel(kind="persistence"),
    ForecastModel(kind="climatology", days=2),
    ForecastModel(sigma=0.5, bias=-0.2, correlation_h=8.0, seed=3),
)
NAMES = [str(model.kind) for model in KINDS]
GREEN = (
    "f2+green:sigma=300000", "lptpn:sigma=300000", "cheapest-start", "cheapest-start:psi=2:horizon=200000",
    "gas-marl-plus@lublin-256",
)  # fmt: skip


def ahead_w(power: Any, clock: Any, current: int, out: Any) -> None:
    for ahead in range(out.shape[0]):
        out[ahead] = forecast_w(power, clock, current + ahead, current)


@cache
def compiled(power: Any) -> Any:
    """`ahead_w`, compiled for a type of supply."""
    types: Any = numba.types
    clock = numba.from_dtype(dtype_of(Clock))
    return entry("ahead", ahead_w, types.void(power, clock, types.int64, types.float64[::1]), told=False)


@st.composite
def sites(draw: st.DrawFn, model: ForecastModel | None = None) -> Site:
    """A few days of sun, with and without an end, a PUE and a base load."""
    step_s = draw(st.sampled_from([HOUR_S, 3 * HOUR_S, DAY_S / 4]))
    power_w = draw(st.lists(st.integers(0, 300), min_size=2, max_size=30))
    overhead: dict[str, Any] = {"pue": 1.5, "base_load_w": 40.0} if draw(st.booleans()) else {}
    if overhead and draw(st.booleans()):
        overhead["pue"] = np.linspace(1.0, 2.0, len(power_w))
    return Site(
        name="random", step_s=step_s, sources_w={"sun": np.array(power_w, float)}, repeat=draw(st.booleans()),
        origin_s=step_s * draw(st.integers(-9, 9)) / 4, forecast_horizon_s=step_s * draw(st.integers(1, 40)),
        forecast_model=draw(st.sampled_from(KINDS)) if model is None else model, **overhead,
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(sites(), st.data())
def test_the_engine_and_the_site_forecast_the_same_numbers(where: Site, data: st.DataObject) -> None:
    """To the last bit, also before the series and where the forecast repeats its window."""
    current = data.draw(st.integers(-40, 60) if where.repeat else st.integers(0, where.slots - 1))
    shown_w = where.forecast(where.origin_s + (current + 0.5) * where.step_s)[2]
    out = np.zeros(3 * shown_w.size)
    power = power_of(where)
    compiled(numba.typeof(power))(power, record_of(Clock), current, out)
    assert out.tolist() == np.tile(shown_w, 3).tolist()
    assert out[0] == where.available_w[current % where.slots]


@pytest.mark.parametrize("model", KINDS, ids=NAMES)
def test_outside_a_series_that_does_not_repeat_there_is_no_forecast(model: ForecastModel) -> None:
    where = Site(name="s", step_s=HOUR_S, sources_w={"sun": np.ones(30)}, forecast_model=model)
    for current, is_outside in ((-1, True), (30, True), (29, False)):
        clock = record_of(Clock)
        forecast_w(power_of(where), clock, current, current)
        assert (clock.status != 0) == is_outside


def hourly_jobs(data: st.DataObject, processors: int) -> Any:
    return workload(data.draw(job_lists(processors, unit_s=HOUR_S)))


@pytest.mark.parametrize("name", GREEN)
@pytest.mark.parametrize("model", KINDS, ids=NAMES)
@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_views_show_the_forecast_that_the_engine_uses(name: str, model: ForecastModel, data: st.DataObject) -> None:
    """A scheduler that is driven from views starts every job when a compiled simulation does."""
    cluster, where = data.draw(clusters()), replace(data.draw(sites(model)), repeat=True)
    jobs, how = hourly_jobs(data, cluster.processors), scheduler(name)
    try:
        wanted = simulate(jobs, cluster, where, Rules(), how).start_s
    except GreenbatchError:  # told again and again that the next day is better, in the same few days: it waits forever
        reject()
    np.testing.assert_array_equal(run_from_views(how, jobs, cluster, where, Rules()).start_s, wanted)


@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_no_error_is_a_perfect_forecast_to_the_last_bit(data: st.DataObject) -> None:
    cluster, where = data.draw(clusters()), replace(data.draw(sites(KINDS[2])), repeat=True)
    jobs, how = hourly_jobs(data, cluster.processors), scheduler(data.draw(st.sampled_from(GREEN)))
    try:
        one, other = (
            simulate(jobs, cluster, replace(where, forecast_model=model), Rules(), how)
            for model in (ForecastModel(), ForecastModel(kind="error"))
        )
    except GreenbatchError:
        reject()
    assert one.start_s.tolist() == other.start_s.tolist()
    assert books(one) == books(other)


def thirty() -> Scenario:
    """Thirty jobs of the default scenario."""
    return load_scenario("default", overrides={"workload.generator.jobs": 30})


@pytest.fixture(scope="module")
def perfect_starts() -> Any:
    """Starts of the jobs of `thirty` with a perfect forecast."""
    question = thirty()
    how = scheduler("cheapest-start")
    return simulate(question.window(0, 30), question.cluster, question.site, question.rules, how).start_s


@pytest.mark.parametrize("model", KINDS, ids=NAMES)
def test_energies_are_those_of_the_truth(model: ForecastModel, perfect_starts: Any) -> None:
    """The schedule may be another one; its energies are counted from the power that comes, also by metrics."""
    question = thirty()
    assert question.site is not None
    told = replace(question.site, forecast_model=model)
    given = question.window(0, 30), question.cluster
    for name in ("f2+green", "cheapest-start"):
        outcome = simulate(*given, told, question.rules, scheduler(name))
        truly = replace(outcome, site=question.site)
        assert books(outcome) == books(truly)
        assert books(outcome, 0.0, 5 * DAY_S) == books(truly, 0.0, 5 * DAY_S)
        assert evaluate(outcome) == evaluate(truly)
    assert perfect_starts.tolist() != outcome.start_s.tolist()


@pytest.mark.compiled  # plans over long horizons take minutes as plain Python
@pytest.mark.parametrize("name", GREEN[2:])
@pytest.mark.parametrize("model", KINDS[:2], ids=NAMES[:2])
def test_what_comes_later_changes_no_earlier_start(name: str, model: ForecastModel) -> None:
    """Forecasts from the past are causal: another weather from some instant on changes no start before it.

    A perfect forecast, which does know, fails the same test.
    """
    random = np.random.default_rng(4)
    sun_w = np.maximum(np.sin(np.arange(24 * 20) / 24 * 2 * np.pi), 0) * random.uniform(100, 900, 24 * 20)
    jobs = workload(
        [Job(1800.0 * k, 3000.0 + 900 * (k % 7), 7200.0, 1 + k % 4, 90.0 + 20 * (k % 5)) for k in range(150)]
    )
    cluster, how, cut = Cluster.pooled(8, idle_power_per_machine_w=10.0), scheduler(name), 40
    other_w = sun_w.copy()
    other_w[cut:] = random.permutation(other_w[cut:])

    def starts(power_w: Any, model: ForecastModel) -> Any:
        where = Site(name="s", step_s=HOUR_S, sources_w={"sun": power_w}, forecast_model=model)
        return simulate(jobs, cluster, where, Rules(), how).start_s

    one, other = starts(sun_w, model), starts(other_w, model)
    early = np.minimum(one, other) < cut * HOUR_S
    assert early.sum() > 20
    assert one[early].tolist() == other[early].tolist()
    assert one.tolist() != other.tolist()
    knowing, changed = starts(sun_w, ForecastModel()), starts(other_w, ForecastModel())
    early = np.minimum(knowing, changed) < cut * HOUR_S
    assert knowing[early].tolist() != changed[early].tolist()


@pytest.mark.parametrize("model", KINDS, ids=NAMES)
def test_agents_see_the_forecast(model: ForecastModel) -> None:
    """The first decision of every environment of a batch shows what the site forecasts then."""
    question, starts = load_scenario("default", overrides={"workload.generator.jobs": 400}), [0, 90, 200]
    assert question.site is not None
    raw = preset("gas-marl").model_dump(mode="json")["observation"]["supply"]["columns"]
    (column,) = (each for each in raw if each["feature"] == "power")
    place = [each["feature"] for each in raw].index("power")
    told = replace(question.site, forecast_model=model)
    env = BatchEnv(replace(question, site=told), preset("gas-marl"), environments=3, jobs=20)
    shown = env.reset(starts).supply[:, :, place]
    assert not column.get("log")
    for row, start in zip(shown, starts, strict=True):
        expected_w = told.forecast(float(question.window(start, 20).submit_s.min()))[2][: row.size]
        ratio = row[(row > 0) & (row < row.max())] / expected_w[(row > 0) & (row < row.max())]
        assert ratio.size > 3
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)


@pytest.mark.parametrize("model", [*KINDS[:2], ForecastModel(sigma=0.05)], ids=NAMES)
def test_by_hand(model: ForecastModel) -> None:
    """A job of an hour waits for the sun of which it is told, and starts in the dark if it does not come.

    Yesterday the sun shone in the third quarter, today it shines in the fourth. When it did not come in the third, the
    mean of two days promises half of it a day later; while the job waits for that, the sun comes.
    """
    sun_w = np.array([0.0, 0, 100, 0, 0, 0, 0, 100, 0, 0, 0, 0])
    where = Site(
        name="s", step_s=DAY_S / 4, sources_w={"sun": sun_w}, forecast_model=model, forecast_horizon_s=1.25 * DAY_S
    )
    jobs = workload([Job(3 * DAY_S / 4 + 60, 3600.0, 3600.0, 1, 100.0)])
    how, cluster = scheduler("cheapest-start:hold=1:reserve=0"), Cluster.pooled(1, idle_power_per_machine_w=0.0)
    outcome = simulate(jobs, cluster, where, Rules(), how)
    quarter = {"persistence": 6, "climatology": 7, "error": 7}[str(model.kind)]
    assert outcome.start_s.tolist() == [quarter * DAY_S / 4]
    assert books(outcome).renewable_used_j == (100 * 3600.0 if quarter == 7 else 0.0)
