"""Measured power that no machine draws is left out, told with its share of the energy, and never spread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.errors import InputError
from greenbatch.workload import measured_power, read_table
from greenbatch.workload.plausible_power import MOST_NODE_W, implausible

UNKNOWN = -1.0
CASES = {
    # name: (W, processors, nodes, GPUs) of each job, and which are implausible
    "a counter that is not set": ([(500, 64, 1, 0), (500, 64, 1, 0), (5e12, 64, 1, 0)], [2]),
    "alone": ([(5e12, 64, 1, 0)], [0]),
    "16 bits on one node": ([(65_535, 48, 1, UNKNOWN)], [0]),
    "16 bits, nodes unknown": (
        [(500, 64, UNKNOWN, 0), (400, 48, UNKNOWN, 0), (65_535, 64, UNKNOWN, 0)], [2],
    ),
    "two of three": ([(500, 64, 1, 0), (65_535, 64, 1, 0), (65_535, 64, 1, 0)], [1, 2]),
    "two of three, nodes unknown": (
        [(500, 64, UNKNOWN, 0), (65_535, 64, UNKNOWN, 0), (65_535, 64, UNKNOWN, 0)], [1, 2],
    ),
    "a counter that runs too fast": ([(500, 64, 1, 0)] * 4 + [(12_000, 64, 1, 0)], [4]),
    "the same beside one other": ([(500, 64, 1, 0), (12_000, 64, 1, 0)], [1]),
    "16 bits beside one other, nodes unknown": ([(500, 64, UNKNOWN, 0), (65_535, 64, UNKNOWN, 0)], [1]),
    "eight GPUs beside nodes without": ([(300, 64, 1, 0)] * 9 + [(10_200, 112, 1, 8)] * 3, []),
    "a small job on a whole node": ([(800, 128, 1, 0)] * 5 + [(800, 1, 1, 0)], []),
    "a small job on a whole node, nodes unknown": ([(800, 128, UNKNOWN, 0)] * 5 + [(800, 1, UNKNOWN, 0)], []),
    "a processor stands for a node": ([(2_500 * n, n, UNKNOWN, UNKNOWN) for n in (1, 4, 512)], []),
    "a thousand nodes": ([(2.5e6, 48_000, 1_000, 0), (2_000, 48, 1, 0), (1_500, 48, 1, 0)], []),
    "not measured": ([(np.nan, 64, 1, 0), (500, 64, 1, 0)], []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_which_powers_no_machine_draws(case):
    jobs, wrong = CASES[case]
    columns = np.array(jobs, dtype=np.float64).T
    assert np.flatnonzero(implausible(*columns)).tolist() == wrong


def test_a_stated_highest_power_replaces_the_rule():
    columns = np.array([(500, 64, 1, 0)] * 4 + [(12_000, 64, 1, 0), (30_000, 64, 1, 0)], dtype=np.float64).T
    assert np.flatnonzero(implausible(*columns, most_node_w=25_000)).tolist() == [5]
    assert np.flatnonzero(implausible(*columns, most_node_w=400)).tolist() == [0, 1, 2, 3, 4, 5]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1, 2_500), st.integers(1, 16), st.sampled_from([1, 8, 128])), min_size=1, max_size=30),
    st.booleans(),
)
def test_powers_of_real_nodes_are_never_left_out(jobs, known):
    each_w, nodes, per_node = np.array(jobs, dtype=np.float64).T
    none = np.full(len(jobs), UNKNOWN)
    power_w = np.minimum(each_w * nodes, MOST_NODE_W if not known else np.inf)
    assert not implausible(power_w, nodes * per_node, nodes if known else none, none).any()


TABLE = "submit_s,run_time_s,processors,power_w,user\n" + "".join(f"{k},100,10,200,1\n" for k in range(8))


def test_a_table_and_what_is_filled_in_from_it(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(TABLE + "8,100,10,9e9,1\n9,100,10,,1\n")
    w = read_table(path)
    assert np.isnan(w.power_w).tolist() == [False] * 8 + [True] * 2
    (left_out,) = (note for note in w.notes if "plausible" in note.what)
    shares = dict(map(reversed, left_out.shares))
    assert (left_out.count, left_out.first_line, left_out.level) == (1, 10, "warning")
    assert shares == {"processor-hours": 0.1, "jobs": 0.1, "energy": pytest.approx(9e9 / (9e9 + 1600))}
    assert measured_power(w).power_w == pytest.approx(200), "not spread"
    assert w.with_columns(power_w=np.ones(10)).notes == tuple(n for n in w.notes if n.about != "power_w")
    path.write_text(path.read_text().replace("power_w", "watts"))
    rule = "implausible job power .over 20 kW per node, or per processor where nodes are unknown, or 20 times"
    with pytest.raises(InputError, match=rf"line 10: watts: {rule} .*clear the value"):
        read_table(path, {"watts": "power_w"}, strict=True)
