"""Job power from a draw and from a list."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from greenbatch.errors import InputError
from greenbatch.workload import Workload, per_processor_power, power_list, read_swf


@pytest.fixture
def many():
    n = 46_000
    size = np.arange(n) % 7 + 1
    return Workload.from_columns("many", {"submit_s": np.arange(n), "run_time_s": np.ones(n), "processors": size})


def test_draw_is_uniform_over_whole_watts(many):
    per_processor = per_processor_power(many, seed=3).power_w / many.processors
    values, counts = np.unique(per_processor, return_counts=True)
    assert values.tolist() == list(range(5, 51))
    # chi-square of 46 equal classes: mean 45, sd 9.5
    assert ((counts - 1000) ** 2 / 1000).sum() < 45 + 4 * 9.5


def test_draw_depends_on_the_seed_alone(many):
    first, again, other = (per_processor_power(many, seed=s).power_w for s in (1, 1, 2))
    assert first.tobytes() == again.tobytes()
    assert (first != other).any()


def test_a_jobs_power_does_not_depend_on_the_jobs_around_it(many):
    part = many.take(np.arange(0, len(many), 3))
    np.testing.assert_array_equal(per_processor_power(part, 1).power_w, per_processor_power(many, 1).power_w[::3])


@pytest.mark.parametrize("options", [{"seed": -1}, {"seed": 0, "low_w": 9, "high_w": 8}, {"seed": 0, "low_w": -1}])
def test_draw_refused(many, options):
    with pytest.raises(InputError, match=r"seed|power per processor"):
        per_processor_power(many, **options)


@pytest.fixture
def trace(tmp_path):
    """Three job lines, the second of which is dropped, out of id order."""
    lines = [
        f"{job} {k} -1 {run} {size}" + " -1" * 13
        for k, (job, run, size) in enumerate([(9, 10, 2), (1, 0, 1), (4, 10, 3)])
    ]
    path = tmp_path / "t.swf"
    path.write_text("\n".join(lines))
    return read_swf(path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_list_is_read_by_job_line(tmp_path, trace, end):
    path = tmp_path / "power.csv.gz"
    path.write_bytes(gzip.compress(end.join(["0", "20", "30.5", "40", ""]).encode()))
    w = power_list(trace, path)
    assert w.job_id.tolist() == [4, 9]
    assert w.power_w.tolist() == [3 * 30.5, 0]
    assert set(w.sources) == {"t.swf", "power.csv.gz"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("10\n20", 2, "has 2 lines for 3 job lines of t"),
        ("10\nx\n30", 2, "'x' is not a power"),
        ("10\n\n30", 2, "'' is not a power"),
        ("10\n20\n-3", 3, "'-3' is not a power"),
        ("10\nnan\n30", 2, "'nan' is not a power"),
        ("10\n65535\n30", 2, "'65535' is not a power (write one number from 0 to 20000 [W] per line)"),
        ("10\ninf\n30", 2, "'inf' is not a power"),
        ("10,20,30", 1, "'10,20,30' is not a power"),
        ("", None, "is empty"),
    ],
)
def test_list_refused(tmp_path, trace, text, line, words):
    path = tmp_path / "power.csv"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        power_list(trace, path)
    assert words in str(refused.value)
    assert refused.value.line == line


def test_the_published_list(greenbatch_data):
    w = read_swf(greenbatch_data("swf/Cirne.swf.gz"))
    w = power_list(w, greenbatch_data("power/gasmarl_power_per_proc_synthetic.csv.gz"))
    assert (w.power_w[:4] / w.processors[:4]).tolist() == [22, 39, 19, 42]
    assert (w.power_w / w.processors).mean() == pytest.approx(27.5, abs=0.3)
