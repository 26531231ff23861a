"""The profile of a scenario against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.scenarios.profile import profile
from greenbatch.workload import Workload


def made(site: Site | None = None, power_w: tuple[float, ...] = (40.0, 20.0, 10.0)) -> Scenario:
    """Three jobs on 4 processors of 100 W idle: 400, 200 and 1000 processor-seconds, submitted within 1000 s."""
    jobs = Workload.from_columns(
        "three", {"submit_s": [0.0, 500.0, 1000.0], "run_time_s": [100.0, 200.0, 1000.0], "processors": [4, 1, 1],
                  "requested_time_s": [100.0, 300.0, 4000.0], "power_w": list(power_w)},
    )  # fmt: skip
    cluster = Cluster.pooled(4, processors_per_machine=4, idle_power_per_machine_w=100.0)
    return replace(load_scenario("default"), workload=jobs, cluster=cluster, site=site)


def test_every_number() -> None:
    site = Site(name="here", step_s=60.0, sources_w={"sun": np.array([0.0, 141.0, 282.0]), "wind": np.zeros(3)})
    found = profile(made(site))
    assert (found.processors, found.jobs) == (4, 3)
    assert found.load == pytest.approx(1600 / (4 * 1000))
    assert found.median_run_time_s == 200.0
    assert found.short_jobs == pytest.approx(2 / 3, abs=1e-6)
    assert found.median_request == 1.5
    peak_w = 100 + 4 * (40 * 100 + 20 * 200 + 10 * 1000) / 1600
    assert found.supply
    assert found.mean_supply == pytest.approx(141 / peak_w, rel=1e-5)
    assert found.peak_supply == pytest.approx(282 / peak_w, rel=1e-5)


def test_what_is_not_known_is_null() -> None:
    without = profile(made())
    assert (without.supply, without.mean_supply, without.peak_supply) == (False, None, None)
    site = Site(name="here", step_s=60.0, sources_w={"sun": np.ones(3)})
    unknown = profile(made(site, power_w=(float("nan"), 1.0, 1.0)))
    assert (unknown.supply, unknown.mean_supply, unknown.peak_supply) == (True, None, None)
    dark = profile(made(Site(name="here", step_s=60.0, sources_w={"sun": np.zeros(3)})))
    assert (dark.supply, dark.mean_supply) == (False, 0.0)
    one = made()
    assert profile(replace(one, workload=one.workload.take(slice(0, 1)))).load is None


def test_the_embedded_scenario_has_exact_requests_and_a_supply() -> None:
    found = profile(load_scenario("default"))
    assert found.median_request == 1.0
    assert found.supply
    assert 0.7 < (found.load or 0) < 0.9
