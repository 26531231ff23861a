"""A facility with a PUE and a base load: its energy against that of its cluster, and what schedulers see of it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from cases import clusters, job_lists, site, supplies, workload
from driven import run_from_views
from hypothesis import given, settings
from plain import Job

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.accounts import books, power_segments
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.metrics import evaluate
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

REL = 1e-9
GREEN = ["fcfs+easy", "f2+green", "cheapest-start:horizon=60:tick=7:short=6:hold=900"]


@st.composite
def facilities(draw: st.DrawFn) -> tuple[Site, Site]:
    """A site without overhead, and the same one with a PUE (one number, or one per slot) and a base load."""
    plain = site(draw(supplies()))
    pue = st.sampled_from([1.0, 1.25, 1.7, 3.0])
    chosen = draw(st.one_of(pue, st.lists(pue, min_size=plain.slots, max_size=plain.slots).map(np.array)))
    return plain, replace(plain, pue=chosen, base_load_w=draw(st.sampled_from([0.0, 20.0, 77.7])))


class World(NamedTuple):
    """What is simulated, at a facility and at the same site without overhead."""

    jobs: Workload
    cluster: Cluster
    plain: Site
    facility: Site
    scheduler: str

    def run(self, site: Site) -> Outcome:
        return simulate(self.jobs, self.cluster, site, Rules(), scheduler(self.scheduler))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A few jobs at a facility."""
    cluster = draw(clusters())
    jobs = workload(draw(job_lists(cluster.processors)))
    return World(jobs, cluster, *draw(facilities()), draw(st.sampled_from(GREEN)))


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_the_facility_draws_pue_times_the_cluster_and_the_base_load(world: World) -> None:
    """Recounted from the segments of the cluster alone; brown and renewable energy together are the facility's."""
    outcome, facility = world.run(world.facility), world.facility
    plain = replace(outcome, site=world.plain)
    found, segments = books(outcome), power_segments(plain)
    seconds = segments.end_s - segments.start_s
    slot = np.array([facility.slot((a + b) / 2) for a, b in zip(segments.start_s, segments.end_s, strict=True)])
    pue = np.broadcast_to(facility.pue, facility.slots)[slot]
    load_w = pue * segments.load_w + facility.base_load_w
    used_w = np.minimum(load_w, segments.renewable_w)
    assert found.load_j == pytest.approx(float(load_w @ seconds), rel=REL)
    assert found.renewable_used_j == pytest.approx(float(used_w @ seconds), rel=REL)
    assert found.renewable_used_j + found.grid_j == pytest.approx(found.load_j, rel=REL)
    assert found.renewable_used_j + found.curtailed_j == pytest.approx(books(plain).renewable_j, rel=REL)


@settings(max_examples=20, deadline=None)
@given(worlds())
def test_the_metrics_are_those_of_the_facility_and_say_what_the_cluster_used(world: World) -> None:
    outcome = world.run(world.facility)
    got, alone = evaluate(outcome), evaluate(replace(outcome, site=world.plain))
    assert got["brown_kwh"] + got["renewable_used_kwh"] == pytest.approx(got["energy_kwh"], rel=REL)
    assert got["it_energy_kwh"] == pytest.approx(alone["energy_kwh"], rel=REL)
    assert got["jobs_energy_kwh"] + got["idle_energy_kwh"] == pytest.approx(got["it_energy_kwh"], rel=REL)
    uses_energy = got["it_energy_kwh"] > 0
    assert not uses_energy or got["pue"] * got["it_energy_kwh"] == pytest.approx(got["energy_kwh"], rel=REL)
    assert got["edp_js"] == pytest.approx(got["energy_kwh"] * 3.6e6 * got["makespan_s"], rel=REL)
    assert alone["it_energy_kwh"] == alone["energy_kwh"]
    assert alone["pue"] == 1.0 or not uses_energy
    assert {name: got[name] for name in ("avg_edp_js", "peak_power_w")} == {
        name: alone[name] for name in ("avg_edp_js", "peak_power_w")
    }


@settings(max_examples=20, deadline=None)
@given(worlds())
def test_a_pue_of_one_and_no_base_load_change_nothing(world: World) -> None:
    """Also for the engine's supply of a facility, which a base load that is nearly nothing gets."""
    expected = world.run(world.plain)
    ones = world.run(replace(world.plain, pue=np.ones(world.plain.slots), base_load_w=0.0))
    almost = world.run(replace(world.plain, base_load_w=1e-300))
    assert ones.start_s.tolist() == almost.start_s.tolist() == expected.start_s.tolist()
    assert books(ones) == books(expected)
    assert list(books(almost)) == pytest.approx(list(books(expected)), rel=0, abs=1e-200)


@settings(max_examples=20, deadline=None)
@given(worlds(), st.sampled_from([1.5, 2.0, 4.0]))
def test_a_constant_pue_scales(world: World, pue: float) -> None:
    """With a supply that is larger by the PUE, schedules are the same and all energies are larger by it."""
    sources_w = {name: pue * power_w for name, power_w in world.plain.sources_w.items()}
    one, other = world.run(world.plain), world.run(replace(world.plain, sources_w=sources_w, pue=pue))
    assert one.start_s.tolist() == other.start_s.tolist()
    assert [pue * energy for energy in books(one)] == pytest.approx(list(books(other)), rel=REL)


@pytest.mark.parametrize("name", ["fcfs+easy", "f2+green", "cheapest-start"])
def test_views_show_what_is_left_for_the_cluster(name: str) -> None:
    """A base load leaves too little sun in the first slots; a scheduler driven from views waits as the engine does."""
    sun_w = np.array([900.0] * 4 + [2000.0] * 4)
    plain = Site(name="s", step_s=1800.0, sources_w={"sun": sun_w}, repeat=True, forecast_horizon_s=8 * 1800.0)
    facility = replace(plain, pue=np.array([2.0] * 4 + [1.25] * 4), base_load_w=500.0)
    assert facility.available_w.tolist() == [200.0] * 4 + [1200.0] * 4
    assert facility.forecast(3600.0)[2].tolist() == [200.0] * 2 + [1200.0] * 4 + [200.0] * 2
    jobs = workload([Job(60.0 * k, 1200.0, 1500.0, 1 + k % 3, 300.0) for k in range(12)])
    how, cluster = scheduler(name), Cluster.pooled(8, idle_power_per_machine_w=10.0)
    expected = simulate(jobs, cluster, facility, Rules(), how).start_s.tolist()
    assert run_from_views(how, jobs, cluster, facility, Rules()).start_s.tolist() == expected
    if name == "cheapest-start":
        assert expected != simulate(jobs, cluster, plain, Rules(), how).start_s.tolist()


def test_by_hand() -> None:
    """100 W for 100 s, half of it at a PUE of 1.2 and half at 1.5, beside a base load of 30 W under 165 W of sun."""
    facility = Site(
        name="s", step_s=50.0, sources_w={"sun": np.array([165.0, 165.0])}, pue=np.array([1.2, 1.5]), base_load_w=30.0
    )
    jobs = workload([Job(0.0, 100.0, 100.0, 1, 100.0)])
    outcome = simulate(jobs, Cluster.pooled(1, idle_power_per_machine_w=0.0), facility, Rules(), scheduler("fcfs"))
    found = books(outcome)
    assert (found.load_j, found.grid_j, found.curtailed_j) == pytest.approx((16_500, 15 * 50, 15 * 50))
    assert evaluate(outcome)["pue"] == pytest.approx(1.65)
