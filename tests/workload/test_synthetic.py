"""The generators against their models' own statistics and against traces made with those models."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.errors import InputError
from greenbatch.workload import LUBLIN_TYPES, Workload, cirne, for_machine, jann, lublin, read_swf
from greenbatch.workload.synthetic import daily_weights
from greenbatch.workload.synthetic_fitted import CIRNE_RATE, JANN_CLASSES


def statistics(w: Workload, machine: int) -> dict[str, float]:
    size, run_s, gap_s = w.processors, w.run_time_s, np.diff(w.submit_s)
    span_s = np.ptp(w.submit_s)
    power_of_two = (size > 1) & ((size & (size - 1)) == 0)
    return {
        "mean size": size.mean(), "serial": (size == 1).mean(), "power of two": power_of_two.mean(),
        "mean run": run_s.mean(), "median run": np.median(run_s), "short": (run_s < 60).mean(),
        "long": (run_s > 4 * 3600).mean(), "node-seconds": (size * run_s).mean(), "jobs a day": len(w) / span_s * 86400,
        "median gap": np.median(gap_s), "gap CV": gap_s.std() / gap_s.mean(), "span": span_s / 86400,
        "load": (size * run_s).sum() / span_s / machine, "correlation": np.corrcoef(np.log(size), np.log(run_s))[0, 1],
        "batch": (w.queue == 1).mean(),
    }  # fmt: skip


def thirty_runs(model, machine: int) -> dict[str, tuple[float, float]]:
    """Mean and spread of each statistic over thirty seeds of 10,000 jobs."""
    runs = [statistics(model(seed), machine) for seed in range(30)]
    return {name: (np.mean(values), np.std(values)) for name in runs[0] for values in [[run[name] for run in runs]]}


def distance(a, b) -> float:
    """Kolmogorov-Smirnov distance of two samples."""
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    return np.abs(np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b)).max()


# Mean of 30 runs of the authors' model at UHI 8, UMED 5.5, and the spread of one run.
LUBLIN_256 = {
    "mean size": (22.28, 0.39), "serial": (0.244, 0.004), "power of two": (0.617, 0.004), "mean run": (4873, 96),
    "median run": (144, 8), "short": (0.398, 0.004), "long": (0.117, 0.004), "node-seconds": (202759, 6936),
    "jobs a day": (95.6, 7.5), "median gap": (117, 3), "span": (104, 8.2), "load": (0.876, 0.07),
    "correlation": (0.26, 0.011),
}  # fmt: skip


def test_lublin_has_the_models_own_statistics():
    ours = thirty_runs(lambda seed: lublin(10_000, seed), 256)
    for name, (mean, spread) in LUBLIN_256.items():
        # Both means are of 30 runs: four standard errors of their difference.
        assert ours[name][0] == pytest.approx(mean, abs=4 * spread * np.sqrt(2 / 30)), name
        assert ours[name][1] == pytest.approx(spread, rel=0.6), name
    assert 6 < ours["gap CV"][0] < 7.5
    assert ours["batch"] == (0, 0)


def test_two_types_have_the_models_own_statistics():
    types = for_machine(256, "batch", "interactive")
    types["interactive"] = replace(types["interactive"], size_medium=6.0, size_low_share=0.75)
    ours = thirty_runs(lambda seed: lublin(10_000, seed, types=types), 256)
    # One run of the authors' model; bands of one run.
    one_run = {
        "mean size": 39.01, "serial": 0.172, "power of two": 0.665, "mean run": 1966, "median run": 33, "short": 0.596,
        "long": 0.056, "node-seconds": 80535, "jobs a day": 164, "median gap": 51, "gap CV": 7.0, "load": 0.597,
        "correlation": 0.20, "batch": 0.151,
    }  # fmt: skip
    for name, value in one_run.items():
        assert ours[name][0] == pytest.approx(value, abs=3 * ours[name][1]), name
    # The mean run time and the batch share are the mixture's; batch jobs are few and long.
    assert ours["batch"][0] < 0.2


@pytest.mark.parametrize(
    ("name", "size", "run_s", "per_day"),
    [("combined", 12.2, 4327, 98.7), ("batch", 14.0, 9569, 25.2), ("interactive", 8.0, 245, 140)],
)
def test_lublin_defaults_for_128_processors(name, size, run_s, per_day):
    w = lublin(100_000, 5, processors=128, types={name: LUBLIN_TYPES[name]})
    got = statistics(w, 128)
    assert got["mean size"] == pytest.approx(size, rel=0.02)
    assert got["mean run"] == pytest.approx(run_s, rel=0.1 if name == "interactive" else 0.02)
    assert got["jobs a day"] == pytest.approx(per_day, rel=0.15)


@pytest.mark.parametrize(
    ("exponent", "size", "run_s"), [(9, 41, 5492), (10, 79, 6250), (11, 150, 6876), (12, 289, 7367)]
)
def test_lublin_on_larger_machines(exponent, size, run_s):
    got = statistics(lublin(100_000, 1, processors=2**exponent), 2**exponent)
    assert got["mean size"] == pytest.approx(size, rel=0.02)
    assert got["mean run"] == pytest.approx(run_s, rel=0.02)


def test_the_shared_trace_looks_like_lublin_and_unlike_its_neighbors(greenbatch_data):
    trace = read_swf(greenbatch_data("swf/lublin_256.swf.gz"))
    right = lublin(100_000, 11)
    types = for_machine(256)
    medium = lublin(100_000, 11, types={"c": replace(types["combined"], size_medium=5.0)})
    hours = lublin(100_000, 11, types={"c": replace(types["combined"], all_hours=1.0)})
    critical = 1.63 * np.sqrt(1 / 10_000 + 1 / 100_000)  # 1 % level
    assert distance(trace.processors, right.processors) < critical
    assert distance(trace.run_time_s, right.run_time_s) < critical
    assert distance(np.diff(trace.submit_s), np.diff(right.submit_s)) < critical
    assert distance(trace.processors, medium.processors) > 2 * critical
    assert distance(np.diff(trace.submit_s), np.diff(hours.submit_s)) > critical


COMBINED_WEIGHTS = (
    ".508 .456 .409 .365 .325 .289 .256 .226 .200 .176 .165 .239 .329 .435 .554 .684 .821 .961 1.100 1.235 1.362 1.477 "
    "1.579 1.664 1.733 1.784 1.817 1.833 1.832 1.815 1.785 1.741 1.687 1.624 1.554 1.478 1.398 1.315 1.231 1.147 1.064 "
    ".983 .904 .828 .756 .688 .624 .564"
)


def test_daily_weights():
    got = daily_weights(LUBLIN_TYPES["combined"])
    np.testing.assert_allclose(got, np.array(COMBINED_WEIGHTS.split(), dtype=float), atol=0.00051)
    for kind in LUBLIN_TYPES.values():
        assert daily_weights(kind).mean() == pytest.approx(1, rel=1e-12)


def test_arrivals_follow_the_daily_weights():
    w = lublin(400_000, 3)
    counts = np.bincount((w.submit_s % 86400 // 1800).astype(int), minlength=48)
    np.testing.assert_allclose(counts / counts.mean(), daily_weights(LUBLIN_TYPES["combined"]), atol=0.12)


def test_gap_factor_changes_the_load_alone():
    once, twice = lublin(20_000, 7), lublin(20_000, 7, gap_factor=0.5)
    np.testing.assert_array_equal(once.run_time_s, twice.run_time_s)
    np.testing.assert_array_equal(once.processors, twice.processors)
    assert np.ptp(once.submit_s) / np.ptp(twice.submit_s) == pytest.approx(2, rel=0.02)
    for model in (cirne, jann):
        assert np.ptp(model(5000, 7).submit_s) / np.ptp(model(5000, 7, gap_factor=0.5).submit_s) == pytest.approx(
            2, rel=0.02
        )


MODELS = {"lublin": lublin, "cirne": cirne, "jann": jann}
HASH = """
import hashlib
from greenbatch.workload import cirne, for_machine, jann, lublin

hashed = hashlib.sha256()
for w in (lublin(500, 4), cirne(500, 4), jann(500, 4), lublin(500, 4, types=for_machine(64, "batch", "interactive"))):
    for column in (w.submit_s, w.run_time_s, w.processors, w.queue):
        hashed.update(column.tobytes())
print(hashed.hexdigest())
"""


def test_same_seed_same_bytes_in_another_process():
    runs = {
        subprocess.run([sys.executable, "-c", HASH], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 1
    for model in MODELS.values():
        assert (model(500, 4).submit_s != model(500, 5).submit_s).any()


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["lublin", "both", "cirne", "jann"]), st.integers(1, 300), st.integers(0, 2**63),
    st.integers(1, 5000), st.floats(1e-3, 1e3),
)  # fmt: skip
def test_any_arguments_give_a_valid_workload(name, jobs, seed, processors, gap_factor):
    if name == "jann":
        w = jann(jobs, seed, gap_factor=gap_factor)
    elif name == "both":
        types = for_machine(processors, "batch", "interactive")
        w = lublin(jobs, seed, processors=processors, types=types, gap_factor=gap_factor)
    else:
        w = MODELS[name](jobs, seed, processors=processors, gap_factor=gap_factor)
    assert len(w) == jobs
    assert (np.diff(w.submit_s) >= 0).all()
    assert w.processors.min() >= 1
    assert w.processors.max() <= w.machine_processors
    assert (w.run_time_s >= 1).all()
    assert (w.run_time_s <= 2e6).all()
    np.testing.assert_array_equal(w.requested_time_s, w.run_time_s)


@pytest.mark.parametrize("model", MODELS.values())
@pytest.mark.parametrize("options", [{"jobs": 0}, {"seed": -1}, {"gap_factor": 0}, {"gap_factor": float("nan")}])
def test_arguments_out_of_range(model, options):
    with pytest.raises(InputError, match=next(iter(options))):
        model(**{"jobs": 10, "seed": 0, **options})


def test_unknown_types_and_machines():
    with pytest.raises(InputError, match="processors"):
        lublin(10, 0, processors=0)
    with pytest.raises(InputError, match="'night' is not a job type"):
        for_machine(256, "night")
    with pytest.raises(InputError, match="no job type"):
        lublin(10, 0, types={})


def test_cirne_curve():
    u = (np.arange(24) - 12) / 12
    relative = np.polyval(CIRNE_RATE, u) / (208.0 / 24)
    expected = (
        ".292 .913 .780 .804 .755 .597 .519 .670 1.011 1.360 1.532 1.468 1.269 1.125 1.177 1.412 1.650 1.654 1.313 "
        ".789 .459 .595 .914 .672"
    )
    np.testing.assert_allclose(relative, np.array(expected.split(), dtype=float), atol=0.007)
    integral = np.polyint(np.array(CIRNE_RATE)) * 12
    assert np.polyval(integral, 1) - np.polyval(integral, -1) == pytest.approx(208.0, abs=0.1)


def test_cirne_recipe_resembles_its_trace(greenbatch_data):
    trace = read_swf(greenbatch_data("swf/Cirne.swf.gz"))
    w = cirne(100_000, 2)
    assert distance(trace.processors, w.processors) < 0.025
    assert distance(trace.run_time_s, w.run_time_s) < 0.02
    assert distance(np.diff(trace.submit_s), np.diff(w.submit_s)) < 0.02
    got, expected = statistics(cirne(10_000, 2), 256), statistics(trace, 256)
    for name, tolerance in (("jobs a day", 0.02), ("median gap", 0.04), ("gap CV", 0.05), ("load", 0.12)):
        assert got[name] == pytest.approx(expected[name], rel=tolerance), name
    assert abs(got["correlation"]) < 0.04
    assert w.processors.max() == 128


def test_cirne_estimates_are_never_below_the_run_time():
    w = cirne(5000, 1, user_estimates=True)
    assert (w.requested_time_s >= w.run_time_s).all()
    np.testing.assert_array_equal(w.run_time_s, cirne(5000, 1).run_time_s)
    assert np.median(w.run_time_s / w.requested_time_s) < 0.4


# Mean run time and mean gap of each size class of Jann.swf. [s]
JANN_MEANS = [
    (15216, 958), (17304, 6653), (9301, 3417), (5349, 3633), (9733, 3020), (5592, 4799), (10797, 8384), (11731, 31252),
    (216, 72756), (6528, 146698),
]  # fmt: skip


@pytest.mark.parametrize(("row", "means"), list(zip(JANN_CLASSES, JANN_MEANS, strict=True)))
def test_jann_classes_have_the_traces_means(row, means):
    for law, mean in zip(row[2:], means, strict=True):
        assert law.n * (law.p * law.first_s + (1 - law.p) * law.second_s) == pytest.approx(mean, rel=0.015)


def test_jann_recipe_resembles_its_trace(greenbatch_data):
    trace = read_swf(greenbatch_data("swf/Jann.swf.gz"))
    ours = thirty_runs(lambda seed: jann(10_000, seed), 322)
    expected = statistics(trace, 322)
    for name in ("mean size", "serial", "power of two", "mean run", "median run", "short", "long", "jobs a day",
                 "median gap", "gap CV", "load", "correlation"):  # fmt: skip
        assert expected[name] == pytest.approx(ours[name][0], abs=3 * ours[name][1]), name
    w = jann(100_000, 2)
    assert distance(trace.processors, w.processors) < 0.02
    assert distance(trace.run_time_s, w.run_time_s) < 0.025
    shares = [((w.processors >= low) & (w.processors <= high)).mean() for low, high, *_ in JANN_CLASSES]
    assert shares == pytest.approx(
        [0.4225, 0.06, 0.1183, 0.1113, 0.1342, 0.0845, 0.0482, 0.0128, 0.0054, 0.0028], abs=0.012
    )


def test_jann_jobs_do_not_depend_on_how_many_are_asked_for():
    np.testing.assert_array_equal(jann(300, 5).submit_s, jann(900, 5).submit_s[:300])
