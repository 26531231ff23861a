"""The energy of nodes that jobs shared: by hand, against a sum over seconds, and the whole is the sum of its parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.workload import read_sacct
from greenbatch.workload.shared_nodes import are_of_nodes, parts_of_nodes

HEADER = "JobIDRaw|State|Submit|Start|ElapsedRaw|AllocCPUS|NodeList|ConsumedEnergyRaw"


def parts(*jobs: tuple[str, float, float, int]) -> list[float]:
    """Parts of jobs (nodes separated by blanks, start, run time, processors)."""
    names, start_s, run_s, processors = zip(*jobs, strict=True)
    columns = (np.array(each, dtype=np.float64) for each in (start_s, run_s, processors))
    return parts_of_nodes([each.split() for each in names], *columns).tolist()


def test_by_hand():
    assert parts(("a", 0, 100, 4), ("b", 0, 100, 4)) == [1, 1]
    assert parts(("a", 0, 100, 4), ("a", 100, 100, 4)) == [1, 1], "one after the other"
    assert parts(("a", 0, 100, 4), ("a", 0, 100, 12)) == [0.25, 0.75]
    assert parts(("a", 0, 100, 4), ("a", 50, 50, 12)) == [0.5 + 0.5 * 0.25, 0.75]
    assert parts(("a b", 0, 100, 8), ("b", 0, 100, 12)) == [(1 + 0.25) / 2, 0.75], "four of its processors on each"
    assert parts(("", 0, 100, 8), ("a", np.nan, 100, 8), ("a", 0, 100, 1)) == [1, 1, 1], "not known, never ran"


JOB = st.tuples(st.sampled_from(["a", "b", "a b"]), st.integers(0, 20), st.integers(1, 20), st.integers(1, 8))


@settings(max_examples=100, deadline=None)
@given(st.lists(JOB, min_size=1, max_size=6))
def test_against_a_sum_over_seconds(jobs):
    names = [each.split() for each, _, _, _ in jobs]
    held = [processors / len(of) for of, (_, _, _, processors) in zip(names, jobs, strict=True)]
    runs = [range(start, start + length) for _, start, length, _ in jobs]

    def part(job: int, node: str) -> float:
        each = (
            sum(h for h, of, run in zip(held, names, runs, strict=True) if node in of and s in run) for s in runs[job]
        )
        return sum(held[job] / busy for busy in each) / len(runs[job])

    wanted = [np.mean([part(job, node) for node in names[job]]) for job in range(len(jobs))]
    assert parts(*jobs) == pytest.approx(wanted)


def rows(energies: list[int]) -> str:
    """Jobs of 1, 2, 4, ... processors on one node, each started after and ended before the one before it."""
    runs = [1000 - 100 * k for k in range(len(energies))]
    lines = [f"{k + 1}|COMPLETED|900|{1000 + 50 * k}|{runs[k]}|{2**k}|n1|{energy}" for k, energy in enumerate(energies)]
    return "\n".join([HEADER, *lines]) + "\n"


def test_energies_of_jobs_are_kept_and_those_of_nodes_split(tmp_path):
    path = tmp_path / "sacct.txt"
    of_node = [800 * (1000 - 100 * k) for k in range(4)]  # 800 W all the time
    of_jobs = [10 * 2**k * (1000 - 100 * k) for k in range(4)]  # 10 W a processor
    path.write_text(rows(of_node))
    w = read_sacct(path)
    assert w.power_w @ w.run_time_s == pytest.approx(800 * 1000), "the node's"
    assert "energy of shared nodes split by processors" in [n.what for n in w.notes]
    path.write_text(rows(of_jobs))
    w = read_sacct(path)
    assert w.power_w.tolist() == [10, 20, 40, 80]
    assert "measured jobs shared nodes, and their energies are not those of nodes: kept" in [n.what for n in w.notes]
    assert read_sacct(path, shared_nodes="split").power_w.sum() < 150


def test_a_few_contradictions_are_noise():
    n = 40
    start_s, run_s = np.arange(n) * 1.0, 1000.0 - 2 * np.arange(n)
    energy_j = run_s * 800
    energy_j[20] *= 1.3
    columns = [["a"]] * n, start_s, run_s, np.ones(n)
    assert are_of_nodes(*columns, energy_j, np.full(n, 0.1))
    assert not are_of_nodes(*columns, energy_j * np.linspace(1, 4, n), np.full(n, 0.1))


@pytest.mark.parametrize(("joules", "kwh"), [(2_880_000, 0.8), (360_000, 0.8)])
def test_equal_jobs_on_a_full_node(tmp_path, joules, kwh):
    """Eight jobs of 16 processors: 800 W of the node on each, or 100 W of each; a node of 128 draws more than 100 W."""
    rows = [f"{k}|COMPLETED|900|1000|3600|16|n1|{joules}" for k in range(8)]
    (tmp_path / "sacct.txt").write_text("\n".join([HEADER, *rows]) + "\n")
    w = read_sacct(tmp_path / "sacct.txt")
    assert w.power_w @ w.run_time_s / 3.6e6 == pytest.approx(kwh)


def test_jobs_that_may_have_shared_nodes_are_named_where_no_list_tells(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text(
        "JobIDRaw|State|Submit|Start|ElapsedRaw|AllocCPUS|AllocNodes|ConsumedEnergyRaw\n"
        "1|COMPLETED|900|1000|100|64|1|50000\n2|COMPLETED|900|1000|100|16|1|50000\n"
    )
    (note,) = (each for each in read_sacct(path).notes if "shared" in each.what)
    assert (note.count, note.first_line, note.level) == (1, 3, "warning")


def test_a_node_that_is_named_twice_is_one_node(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text(f"{HEADER}\n1|COMPLETED|900|1000|100|8|n1,n1|80000\n2|COMPLETED|900|5000|100|8|n[1-2],n1|80000\n")
    w = read_sacct(path)
    assert w.power_w.tolist() == [800, 800]
    assert not any("shared" in note.what for note in w.notes)


def test_lists_of_more_nodes_than_memory_holds_split_nothing(tmp_path):
    path = tmp_path / "sacct.txt"
    jobs = (f"{k}|COMPLETED|900|1000|100|8|{chr(97 + k)}[1-1000000]|80000" for k in range(12))
    path.write_text("\n".join([HEADER, *jobs]) + "\n")
    w = read_sacct(path)
    (note,) = (each for each in w.notes if "shared" in each.what)
    assert w.power_w.tolist() == [800] * 12
    assert (note.count, note.level) == (12, "warning")
    assert "(NodeLists name more than 10,000,000 in all): each has the energy of its whole nodes" in note.what
