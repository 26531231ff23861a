"""Tables of jobs: filled in blocks, in order of submission."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.engine.records import Expected, fill, table_of
from greenbatch.engine.state import in_order


@pytest.mark.parametrize("count", [0, 1, 4095, 4096, 4097, 8193])
def test_every_row_is_filled_in_blocks(count: int) -> None:
    table = table_of(Expected, count)
    fill(table, {"end_s": np.arange(count) + 0.5, "job": np.arange(count), "power_w": 7.0})
    assert table["end_s"].tolist() == [k + 0.5 for k in range(count)]
    assert table["job"].tolist() == list(range(count))
    assert table["power_w"].tolist() == [7.0] * count
    assert not table["processors"].any()


@given(submit_s=st.lists(st.integers(0, 5), max_size=12))
def test_jobs_are_in_order_of_submission_and_ties_by_row(submit_s: list[int]) -> None:
    expected = sorted(range(len(submit_s)), key=lambda row: (submit_s[row], row))
    assert in_order(np.array(submit_s, np.float64)).tolist() == expected
