"""The search of the queue for candidates, in groups of jobs, against one job after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.engine.backfill import next_candidate


def one_by_one(
    processors: list[int], requested_s: list[float], first: int, last: int, now_s: float, latest_s: float, free: int,
    spare: int,
) -> int:  # fmt: skip
    for i in range(first, last):
        if processors[i] <= free and (now_s + requested_s[i] <= latest_s or processors[i] <= spare):
            return i
    return last


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[int], list[float]]:
    """Mostly jobs that cannot start, so that the search is long."""
    length = draw(st.integers(0, 150))
    some = draw(st.sets(st.integers(0, 149), max_size=3))
    jobs = [
        (draw(st.integers(0, 4)), 10.0 * draw(st.integers(1, 4))) if i in some else (9, 90.0) for i in range(length)
    ]
    return [need for need, _ in jobs], [asked_s for _, asked_s in jobs]


@pytest.mark.parametrize("how", ["plain", pytest.param("compiled", marks=pytest.mark.compiled)])
@settings(max_examples=300, deadline=None)
@given(
    queue=queues(), first=st.integers(0, 40), free=st.integers(0, 9), spare=st.integers(-1, 9),
    latest_s=st.sampled_from([0.0, 15.0, 25.0, 35.0, 95.0, np.inf]),
)  # fmt: skip
def test_groups_of_jobs(
    how: str, queue: tuple[list[int], list[float]], first: int, free: int, spare: int, latest_s: float
) -> None:
    processors, requested_s = queue
    last = len(processors)
    given: tuple[int, int, float, float, int, int] = (min(first, last), last, 5.0, latest_s, free, spare)
    found = next_candidate(np.array(processors, np.int32), np.array(requested_s, np.float64), *given)
    assert found == one_by_one(processors, requested_s, *given)
