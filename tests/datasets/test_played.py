"""Which windows are played, and in which turn, beyond what is played at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from by_files import scenario
from greenbatch import datasets
from greenbatch.datasets.recording import LOAD_WINDOWS

pytestmark = pytest.mark.plain

JOBS = "submit_s run_time_s processors\n" + "\n".join(f"{10 * k} 5 1" for k in range(2 * LOAD_WINDOWS))


def test_each_window_is_played_once_and_schedulers_take_turns_across_batches(tmp_path: Path) -> None:
    """More windows than are played at once; of four, one is the first scheduler's."""
    made = scenario(tmp_path, JOBS, "[cluster]\nprocessors = 2\n")
    starts = np.arange(LOAD_WINDOWS + 16)
    played = [*datasets.play(datasets.recording(
        made, "rlscheduler", "fcfs,sjf", shares=[1, 3], starts=starts, jobs=2, threads=1
    ))]  # fmt: skip
    assert len(played) == 2
    assert np.concatenate([each.start for each in played]).tolist() == starts.tolist()
    assert np.concatenate([each.episode for each in played]).tolist() == starts.tolist()
    turns = np.concatenate([each.scheduler for each in played])
    for count in range(1, len(turns) + 1):
        assert abs(np.count_nonzero(turns[:count] == 0) - count / 4) <= 1
    assert np.count_nonzero(turns == 0) == len(turns) / 4
