"""Real traces, against counts made from the files by other means (awk and the traces' own headers)."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import numpy as np
import pytest

from greenbatch.workload import SWF_RULES, Workload, read_swf

# file: (job lines, largest job, processors, days, {words of a note: count})
REAL = {
    "swf/HPC2N-2002-2.2-cln": (202871, 200, 240, 1264.37, {"over the requested time": 14817}),
    "swf/SDSC-BLUE-2000-4.2-cln": (
        243306, 1152, 1152, 974.08,
        {"negative run time": 10744, "zero run time": 26, "over the requested time": 23434},
    ),
    "swf/CEA-Curie-2011-2.1-cln": (
        312826, 79808, 93312, 253.74,
        {"without processors": 19, "zero run time": 17267, "over the requested time": 5416},
    ),
    "swf/SDSC-SP2-1998_DERIVED-from-pyss": (53999, 128, 128, 729.35, {}),
    "swf/lublin_256": (10000, 256, 256, 89.2, {"requested time missing": 10000}),
    "swf/lublin_256_new2": (10000, 256, 256, 53.27, {"requested time missing": 10000}),
    "swf/Cirne": (9999, 128, 256, 56.27, {"requested time missing": 9999}),
    "swf/Jann": (10000, 322, 322, 46.88, {"requested time missing": 10000}),
    "swf-extra/LLNL-Thunder-2007-1.1-cln": (
        121039, 3860, 4008, 150.2,
        {"without submit time": 1190, "without processors": 1058, "zero run time": 5178,
         "over the requested time": 1101, "requested time missing": 80197},
    ),
    "swf-pyss-reference/SDSC-SP2_pyss-easy-reqtime": (
        54006, 128, 128, 731.29, {"later submit time": 15537, "later job id": 15545},
    ),
}  # fmt: skip


HPC2N, THUNDER = "swf/HPC2N-2002-2.2-cln", "swf-extra/LLNL-Thunder-2007-1.1-cln"


@pytest.fixture(scope="module")
def read(greenbatch_data) -> Callable[[str], Workload]:
    """A trace by its name; those that two tests look at are read once."""
    kept: dict[str, Workload] = {}

    def once(name: str) -> Workload:
        found = kept[name] if name in kept else read_swf(greenbatch_data(f"{name}.swf.gz"))
        if name in (HPC2N, THUNDER):
            kept[name] = found
        return found

    return once


@pytest.mark.parametrize("name", REAL)
def test_real_trace(read, name):
    lines, largest, machine, days, expected = REAL[name]
    w = read(name)
    assert {words: [n.count for n in w.notes if words in n.what] for words in expected} == {
        words: [count] for words, count in expected.items()
    }
    assert len(w.notes) == len(expected)
    assert len(w) + sum(n.count for n in w.notes if "dropped" in n.what) == lines
    assert (w.processors.max(), w.machine_processors) == (largest, machine)
    if not any("dropped" in n.what for n in w.notes):
        assert np.ptp(w.submit_s) / 86400 == pytest.approx(days, abs=0.005)
    assert (np.diff(w.job_id) > 0).all()


def test_every_row_against_a_plain_reading(greenbatch_data, read):
    path = greenbatch_data(f"{THUNDER}.swf.gz")
    kept = []
    with gzip.open(path, "rt") as file:
        rows = [[float(x) for x in line.split()] for line in file if line.strip() and not line.startswith(";")]
    for k, f in enumerate(rows):
        size = max(f[4], f[7])
        if f[1] >= 0 and f[3] > 0 and 0 < size <= 4008:
            kept.append((f[0], f[1], f[3], f[3] if f[8] == -1 else f[8], size, f[11], k))
    w = read(THUNDER)
    columns = (w.job_id, w.submit_s, w.run_time_s, w.requested_time_s, w.processors, w.user, w.trace_row)
    np.testing.assert_array_equal(np.column_stack(columns), np.array(sorted(kept)))


def test_clocks_of_real_traces(read):
    w = read(HPC2N)
    assert (w.unix_start_s, w.time_zone, w.job_id[:5].tolist()) == (
        1027839845.0,
        "Europe/Stockholm",
        [11, 12, 13, 14, 15],
    )


def test_papers_rules_keep_what_the_default_drops(greenbatch_data):
    w = read_swf(greenbatch_data("swf/SDSC-BLUE-2000-4.2-cln.swf.gz"), repairs=SWF_RULES["papers"])
    assert len(w) == 243306 - 26
    assert (w.run_time_s == 10).sum() >= 10744
