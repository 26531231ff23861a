"""The scenarios of cost-aware scheduling: trained on one year of jobs and prices, tested on the next."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from greenbatch.scenarios import load_scenario

TRACES = {"hpc2n": (240, -6), "sdsc-blue": (1152, -8)}  # processors, hours from UTC
YEAR_S = 365 * 86_400.0
HOUR_S = 3600.0


@pytest.fixture(scope="module", params=TRACES)
def pair(request, greenbatch_data):
    greenbatch_data("price/sustaincluster_US-TEX-ERCO_2023_price_local_hourly.csv.gz")
    return load_scenario(f"cost-aware/{request.param}"), load_scenario(f"cost-aware/{request.param}-training")


def test_training_ends_before_the_first_test_window(pair):
    test, training = pair
    assert training.workload.unix_start_s == test.workload.unix_start_s
    first = int(test.workload.job_id[min(test.evaluation.starts)])
    assert int(training.workload.job_id.max()) < first
    assert training.workload.submit_s.max() < test.workload.submit_s[min(test.evaluation.starts)] - 30 * 86_400


def first_s(site):
    """The first instant of the dates that all series state. [s]"""
    return site.origin_s + site.step_s * (site.stated or (0, 0))[0]


def test_prices_of_training_and_test_are_different_years(pair):
    test, training = pair
    years = [datetime.fromtimestamp(s.site.unix_start_s + first_s(s.site) + 10 * HOUR_S, UTC).year for s in pair]
    assert years == [2023, 2022]
    assert test.site.grid.import_price.mean() != training.site.grid.import_price.mean()


def test_test_windows_lie_in_the_year_of_their_prices_with_their_horizon(pair):
    test, _ = pair
    own, jobs = test.evaluation, test.workload
    assert (len(own.starts), own.jobs, own.horizon) == (10, 1240, 3)
    assert (np.diff(own.starts) >= own.jobs).all()  # no job twice
    submitted_s = jobs.submit_s[np.array(own.starts)]
    last_s = jobs.submit_s[np.array(own.starts) + own.jobs - 1]
    assert (submitted_s >= first_s(test.site)).all()
    assert (submitted_s + own.horizon * 1.25 * (last_s - submitted_s) < first_s(test.site) + YEAR_S).all()


def test_jobs_keep_the_hour_of_their_day_at_the_site(pair):
    test, _ = pair
    name = test.name.split("/")[1]
    logged = load_scenario(f"logs/{name}", overrides={"workload.limit": 1000}).workload  # its first job counts
    moved_s = (test.workload.unix_start_s + test.workload.submit_s[0]) - (logged.unix_start_s + logged.submit_s[0])
    summer = {"hpc2n": 2, "sdsc-blue": -7}[name]  # the log's own hours from UTC on its first day
    assert (moved_s + (TRACES[name][1] - summer) * HOUR_S) % (7 * 86_400) == 0  # whole weeks by the clock on the wall


def test_the_site_is_neither_always_green_nor_always_brown(pair):
    test, _ = pair
    processors = TRACES[test.name.split("/")[1]][0]
    assert test.cluster.processors == processors
    supply_w, mean_load_w = test.site.renewable_w, {240: 4139, 1152: 27_926}[processors]  # measured under fcfs+easy
    assert supply_w.mean() / mean_load_w == pytest.approx(0.63, abs=0.005)
    assert 0.25 < (supply_w > mean_load_w).mean() < 0.31
    assert 0.3 < (supply_w < 0.05 * mean_load_w).mean() < 0.45


def test_the_sun_of_the_site_is_highest_at_the_noon_of_its_prices(pair):
    """The files state their times differently: local with an offset, UTC, and local standard time of a typical year."""
    test, _ = pair
    site, offset_h = test.site, TRACES[test.name.split("/")[1]][1]
    first_s = site.unix_start_s + site.origin_s + offset_h * HOUR_S
    hour = ((first_s + np.arange(site.slots) * site.step_s) / HOUR_S).astype(int) % 24
    sun = [site.sources_w["solar"][hour == h].mean() for h in range(24)]
    assert int(np.argmax(sun)) in {11, 12}
    assert max(sun[h] for h in (0, 1, 2, 3, 22, 23)) == 0
    price = [site.grid.import_price[hour == h].mean() for h in range(24)]
    assert int(np.argmax(price)) in {16, 17, 18, 19}  # the evening ramp of both markets
