"""Alea's SWF with 21 columns."""

from __future__ import annotations

import numpy as np
import pytest

from greenbatch.errors import InputError
from greenbatch.workload import read_workload

HEAD = "{k} {k}0 0 60 {p} 1 1024 {p} 100 {m} 1 7 1 1 -1 1 1 1"


def line(k: int, processors: float, request: str, queue: str = "q_1d", memory: int = 8_000_000) -> str:
    return f"{HEAD.format(k=k, p=processors, m=memory)} {{5,5}} {queue} {request}\n"


JOBS = (
    line(1, 16, "2:ppn=8:x86_64:cl_zegox") + "\n" + line(2, 64, "1:ppn=64:cl_zewura#excl", "q_2h", 64_000_000_000)
    + line(3, 5, "1:ppn=1+2:ppn=2", memory=-1) + line(4, 1, "1:ppn=1.5") + line(5, 12, "host.example:ppn=12", "q_2h")
    + line(6, 2, "2") + line(7, 4, "2:ppn=2:gpu=1") + line(8, 1, "3:ppn=1")
)  # fmt: skip


def test_the_columns_are_used(tmp_path):
    path = tmp_path / "alea.swf"
    path.write_text(JOBS)
    jobs = read_workload(path)
    assert jobs.nodes.tolist() == [2, 1, 3, 1, 1, 2, 2, -1]
    assert jobs.processors.tolist() == [16, 64, 5, 1, 12, 2, 4, 1]
    assert jobs.exclusive.tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert jobs.gpus.tolist() == [0, 0, 0, 0, 0, 0, 2, 0]
    assert [jobs.names["queue"][k] for k in jobs.queue.tolist()] == [
        "q_1d",
        "q_2h",
        "q_1d",
        "q_1d",
        "q_2h",
        *["q_1d"] * 3,
    ]
    assert jobs.requested_memory_kb[[0, 1, 4]].tolist() == [1000.0, 1_000_000.0, 8000 / 12]
    assert np.isnan(jobs.requested_memory_kb[2])
    assert [str(note) for note in jobs.notes if "header" not in str(note)] == [
        "nodes x ppn is not the number of processors (kept): 1, first at line 9",
        "more nodes than processors, number of nodes ignored: 1, first at line 9",
        "node properties ignored: 3, first at line 1",
    ]


def test_lines_that_are_dropped_take_their_columns_with_them(tmp_path):
    path = tmp_path / "alea.swf"
    path.write_text(line(1, 4, "4").replace("0 60 4", "0 0 4", 1) + line(2, 6, "3:ppn=2") + line(3, 8, "2:ppn=4"))
    assert read_workload(path).nodes.tolist() == [3, 2]
    assert read_workload(path, limit=2).nodes.tolist() == [3]
    assert read_workload(path, processors=6).nodes.tolist() == [3]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            line(1, 4, "4") + line(2, 4, "4").rsplit(" ", 1)[0] + "\n",
            "line 2: job line: 20 columns (the first job line",
        ),
        (line(1, 4, "4") + line(2, 4, "4 5"), "line 2: job line: 22 columns"),
        (line(1, 4, "4") + line(2, 4, "1::ppn=4"), "line 2: column 21: '1::ppn=4' is not a request"),
        (line(1, 4, "4") + line(2, 4, "+"), "line 2: column 21: '+' is not a request"),
        (line(1, 4, "0:ppn=4"), "line 1: column 21: '0:ppn=4' asks for nothing"),
        (line(1, 4, "1:ppn=0"), "line 1: column 21: '1:ppn=0' asks for nothing"),
        (line(1, 4, "4", queue="q\x07"), "line 1: column 20: 'q\\\\x07' is not the name of a queue"),
        (line(1, 4, "4").replace("1 10 0", "x 10 0", 1), "line 1: field 1 (job number): 'x' is not a number"),
    ],
)
def test_bad_lines_are_refused(tmp_path, text, says):
    path = tmp_path / "alea.swf"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_workload(path)
    assert says.replace("\\\\", "\\") in str(refused.value)


def test_wagap(greenbatch_data):
    jobs = read_workload(greenbatch_data("swf-extra/alea-wagap-2013.swf.gz"))
    assert len(jobs) == 17_898
    assert "job with negative run time dropped: 2" in " ".join(map(str, jobs.notes))
    assert jobs.nodes.min() == 1
    assert int((jobs.exclusive == 1).sum()) == 231
    first = jobs.job_id.tolist().index(0)
    assert jobs.requested_memory_kb[first] * 64 == pytest.approx(64 * 1024**3 / 1000)
    assert set(jobs.names["queue"].values()) >= {"q_1d", "q_2h", "q_1w", "backfill"}
    notes = " ".join(map(str, jobs.notes))
    assert "nodes x ppn is not the number of processors" not in notes
    assert "node properties ignored" in notes
