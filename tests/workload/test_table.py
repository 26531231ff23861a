"""A `Workload`: its columns cannot be changed in place."""

from __future__ import annotations

import numpy as np
import pytest

from greenbatch.errors import InputError
from greenbatch.workload import Workload
from greenbatch.workload.table import COLUMNS


@pytest.fixture
def jobs() -> Workload:
    return Workload.from_columns("jobs", {"submit_s": [0.0, 1, 2], "run_time_s": [5.0, 6, 7], "processors": [1, 2, 3]})


@pytest.mark.parametrize("rows", [slice(None), slice(1, 3), np.array([2, 0]), np.array([True, False, True])])
def test_columns_of_copies_and_windows_are_read_only(jobs: Workload, rows: np.ndarray | slice) -> None:
    for part in (jobs, jobs.take(rows), jobs.take(rows).take(slice(1)), jobs.with_columns(power_w=np.ones(3))):
        for column in COLUMNS:
            with pytest.raises(ValueError, match="read-only"):
                getattr(part, column)[0] = 9


def test_a_given_array_stays_writable_and_apart(jobs: Workload) -> None:
    power_w = np.ones(3)
    powered = jobs.with_columns(power_w=power_w)
    power_w[0] = 7.0
    assert powered.power_w.tolist() == [1.0, 1.0, 1.0]


def test_a_window_shares_the_memory_of_its_workload(jobs: Workload) -> None:
    assert np.shares_memory(jobs.take(slice(1, 3)).submit_s, jobs.submit_s)


@pytest.mark.parametrize("value", [1e20, -1e300, 2.0**54])
def test_a_number_beyond_whole_numbers_is_refused(value: float) -> None:
    columns = {"submit_s": [0.0], "run_time_s": [5.0], "processors": [1], "gpus": [value]}
    with pytest.raises(InputError, match=r"gpus: holds .* \(use numbers up to 9007199254740992\)"):
        Workload.from_columns("jobs", columns)


@pytest.mark.parametrize("run_time_s", [1.1e9, 1e11])
def test_a_run_time_of_decades_is_refused(run_time_s: float) -> None:
    """A site would have a slot for each of its hours."""
    columns = {"submit_s": [0.0, 9.0], "run_time_s": [5.0, run_time_s], "requested_time_s": [1e10, 1e10]}
    with pytest.raises(InputError, match=r"run_time_s: job 2 has 1(\.1)?e\+\d+ \(give at most 1e\+09 s, or leave"):
        Workload.from_columns("jobs", {**columns, "processors": [1, 1]})
