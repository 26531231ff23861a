"""Missing job power estimated from measured jobs: by hand, and on a dump whose true power is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import site_dump
from greenbatch.errors import InputError
from greenbatch.scenarios.scenario import load_scenario
from greenbatch.workload import Workload, measured_power, read_sacct


def workload(power_w, user, processors, run_s=None) -> Workload:
    n = len(power_w)
    return Workload.from_columns(
        "site", {"submit_s": np.arange(n), "run_time_s": np.full(n, 100.0) if run_s is None else run_s,
                 "processors": processors, "power_w": power_w, "user": user},
    )  # fmt: skip


def test_of_the_user_else_of_the_size_else_of_all():
    nan = np.nan
    jobs = workload(
        power_w=[10, 20, 30, nan, 40, 40, nan, nan, nan],
        user=[1, 1, 1, 1, 2, 2, 2, -1, 3],
        processors=[1, 2, 3, 2, 8, 9, 8, 1, 2],
    )
    filled = measured_power(jobs)
    everyone = 140 / 23  # user 2 has two measured jobs, sizes 1 and 8-15 have one and two
    per_user, of_size = 10.0, 50 / 5  # sizes 2 and 3: 20 + 30 W on 5 processors, only two jobs
    assert of_size == per_user
    assert filled.power_w.tolist() == pytest.approx(
        [10, 20, 30, 2 * per_user, 40, 40, 8 * everyone, everyone, 2 * everyone]
    )
    counts = {note.what: note.count for note in filled.notes}
    assert counts["missing power filled in from measured jobs of the same user"] == 1
    assert counts["missing power filled in from measured jobs of the whole trace"] == 3
    assert not any("size" in what for what in counts)


def test_of_about_the_same_size_where_the_user_has_too_few():
    nan = np.nan
    jobs = workload(power_w=[40, 56, 60, 1, 2, 1, nan, nan], user=[1, 2, 3, 4, 5, 6, 1, 7],
                    processors=[8, 8, 15, 1, 1, 1, 12, 1])  # fmt: skip
    filled = measured_power(jobs)
    assert filled.power_w[6:].tolist() == pytest.approx([12 * 156 / 31, 4 / 3])
    assert {note.what: note.count for note in filled.notes}[
        "missing power filled in from measured jobs of about the same size"
    ] == 2


def test_short_jobs_weigh_little_and_the_energy_of_the_measured_jobs_is_kept():
    jobs = workload([100, 1, 1, np.nan], [1, 1, 1, 1], [1, 1, 1, 1], run_s=[1e-2, 1e4, 1e4, 10])
    assert measured_power(jobs).power_w[3] == pytest.approx((1 + 2e4) / (2e4 + 1e-2))


def test_the_error_is_that_of_jobs_left_out():
    # Equal power per processor, except for one job: leaving it out, it is estimated at 1/3 of its power.
    power = np.full(20, 10.0)
    power[7] = 30.0
    filled = measured_power(workload([*power, np.nan], np.ones(21), np.ones(21, int)))
    (note,) = [note for note in filled.notes if note.what.startswith("error")]
    assert note.count == 20
    # 18 jobs are estimated with the odd one among the other 18 (20 W too much in 18), one fold holds the odd one.
    assert "median 11%" in note.what
    exact = measured_power(workload([*np.full(20, 10.0), np.nan], np.ones(21), np.ones(21, int)))
    assert any("median 0%, 95th percentile 0%" in note.what for note in exact.notes)


def test_a_complete_trace_stays_as_it_is():
    jobs = workload([1.0, 2.0, 3.0], [1, 1, 1], [1, 1, 1])
    filled = measured_power(jobs)
    assert filled.notes == ()
    assert filled.power_w.tolist() == [1, 2, 3]


@pytest.mark.parametrize("power", [[np.nan] * 3, [5.0, np.nan, np.nan], [0.0, 0.0, np.nan]])
def test_nothing_to_estimate_from(power):
    with pytest.raises(InputError, match="of 3 jobs have a measured power"):
        measured_power(workload(power, [1, 1, 1], [1, 1, 1]))


def test_a_dump_whose_power_depends_on_the_user(tmp_path):
    whole, part = (
        read_sacct(_written(tmp_path, measured), time_zone="UTC") for measured in (1.0, 0.5)
    )  # fmt: skip
    known = np.isfinite(part.power_w)
    assert 0.3 < known.mean() < 0.7
    filled = measured_power(part)
    many = np.isin(part.user, [user for user in np.unique(part.user) if np.sum(known & (part.user == user)) >= 3])
    # Energies are whole joules, so powers are not exact.
    assert filled.power_w[many] == pytest.approx(whole.power_w[many], rel=1e-2)
    assert filled.power_w[known].tolist() == part.power_w[known].tolist()


def _written(folder, measured):
    path = folder / f"{measured}.txt"
    path.write_text(site_dump.dump(measured=measured, seed=4))
    return path


def test_in_a_scenario(tmp_path):
    (tmp_path / "dump.txt").write_text(site_dump.dump(measured=0.5))
    scenario = load_scenario(
        "default", trace=tmp_path / "dump.txt", processors=site_dump.PROCESSORS,
        overrides={"workload.power": {"kind": "measured"}},
    )  # fmt: skip
    assert np.isfinite(scenario.workload.power_w).all()
    notes = "\n".join(map(str, scenario.notes))
    assert "missing power filled in from measured jobs of the same user: " in notes
    assert "error of power estimated from other jobs: median " in notes
    assert "power from measured energy, idle power of the job's nodes included" in notes


def test_idle_power_that_counts_twice_is_told(tmp_path: Path) -> None:
    """Measured power includes that of idle nodes, which a machine with idle power counts as well."""
    (tmp_path / "dump.txt").write_text(
        "JobID|Submit|Start|End|ElapsedRaw|State|AllocCPUS|AllocNodes|ConsumedEnergyRaw|TimelimitRaw\n"
        "1|2024-06-10T00:00:00|2024-06-10T00:00:00|2024-06-10T01:00:00|3600|COMPLETED|4|1|360000|120\n"
        "2|2024-06-10T00:10:00|2024-06-10T00:10:00|2024-06-10T01:10:00|3600|COMPLETED|4|1|720000|120\n"
    )
    scenario = '[workload]\nfile = "dump.txt"\n[workload.power]\nkind = "{}"\n[cluster]\nprocessors = 8\n'
    scenario += 'processors_per_machine = 4\nidle_power_per_machine_w = {}\n[evaluation]\njobs = "all"\n'
    told = {}
    for kind, idle_w in (("trace", 50), ("trace", 0), ("per-processor", 50)):
        (tmp_path / "s.toml").write_text(f'name = "s"\n{scenario.format(kind, idle_w)}schedulers = ["fcfs"]\n')
        notes = load_scenario(tmp_path / "s.toml").notes
        told[kind, idle_w] = [note for note in notes if "counts twice" in note.what]
    assert [len(found) for found in told.values()] == [1, 0, 0]
    (note,) = told["trace", 50]
    assert (note.level, note.count, note.share) == ("warning", 2, 1.0)
    assert "100 W of the idle machine" in note.what
