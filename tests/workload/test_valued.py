"""Jobs with value and QoS: the laws of the generator, and traces made into such jobs."""

from __future__ import annotations

import numpy as np
import pytest

from greenbatch.errors import InputError
from greenbatch.workload import Workload, on_pool, rare

MANY = rare(100_000, 2, processors=10)


def test_laws_of_the_generator() -> None:
    n = len(MANY)
    assert abs(float(MANY.processors @ MANY.run_time_s) / (100_000 * 10) - 1.0) < 0.03
    assert abs(np.mean(MANY.run_time_s < 10) - 0.7 * 0.9) < 0.02
    assert (MANY.run_time_s.min(), MANY.run_time_s.max()) == (1.0, 30.0)
    assert abs(MANY.run_time_s.mean() - 9.85) < 0.15
    for sizes in (MANY.processors, MANY.gpus):
        assert np.allclose(np.bincount(sizes)[1:] / n, 0.2, atol=0.02)
    assert abs(np.corrcoef(MANY.processors, MANY.gpus)[0, 1]) < 0.03
    assert abs(np.mean(MANY.qos > 0.6) - 0.6) < 0.02
    assert 0.1 <= MANY.qos.min() < 0.11
    assert 0.99 < MANY.qos.max() <= 1.0
    gaps = np.bincount(MANY.submit_s.astype(int), minlength=100_000)
    assert abs(gaps.var() / gaps.mean() - 1.0) < 0.05  # Poisson


def test_value_of_figure_3_3() -> None:
    """4 + 4 units for 6 ticks at QoS 1 are worth 24."""
    from greenbatch.workload.valued import values

    assert values(np.array([4]), np.array([4]), np.array([6]), np.array([1.0])).tolist() == [24.0]


def test_same_seed_same_jobs_and_load_in_jobs_per_tick() -> None:
    again = rare(100_000, 2, processors=10)
    assert np.array_equal(again.value, MANY.value)
    assert np.array_equal(again.submit_s, MANY.submit_s)
    assert abs(len(rare(10_000, 0, load=2.0, arrivals="jobs")) / 20_000 - 1) < 0.03
    assert abs(len(rare(100_000, 2, gap_factor=2.0)) / len(MANY) - 0.5) < 0.02


def test_largest_request_and_tick() -> None:
    made = rare(2_000, 0, processors=20, largest_request=5, tick_s=60.0)
    assert made.processors.max() == made.gpus.max() == 5
    assert (made.submit_s % 60 == 0).all()
    assert made.run_time_s.max() == 1800.0
    assert np.allclose(made.value, 0.5 * (made.processors + made.gpus) * made.run_time_s / 60 * made.qos)


def _trace(n: int = 500) -> Workload:
    rng = np.random.default_rng(0)
    return Workload.from_columns(
        "log",
        {
            "submit_s": np.cumsum(rng.exponential(500.0, n)), "run_time_s": rng.lognormal(7, 2, n) + 1,
            "processors": 2 ** rng.integers(3, 11, n),
        },
        machine_processors=1152,
    )  # fmt: skip


@pytest.mark.parametrize("load", [0.6, 1.0])
def test_trace_on_a_small_machine(load: float) -> None:
    made = on_pool(_trace(), 0, processors=10, load=load, tick_s=900.0)
    assert (made.processors.min(), made.processors.max()) == (1, 5)
    assert (made.submit_s % 900 == 0).all()
    assert (made.run_time_s % 900 == 0).all()
    assert made.run_time_s.max() <= 30 * 900
    offered = max(made.processors @ made.run_time_s, made.gpus @ made.run_time_s)
    assert offered / (10 * made.submit_s.max()) == pytest.approx(load, rel=0.01)


def test_larger_requests_stay_larger() -> None:
    trace = _trace()
    made = on_pool(trace, 0, processors=20)
    order = np.argsort(trace.processors)
    assert (np.diff(made.processors[order]) >= 0).all()


def test_parts_divide_the_jobs() -> None:
    parts = {part: on_pool(_trace(), 3, processors=10, part=part) for part in ("all", "training", "test")}  # type: ignore[arg-type]
    assert [len(parts[part]) for part in ("training", "test")] == [400, 100]
    both = np.concatenate([parts["training"].value, parts["test"].value])
    assert np.array_equal(both, parts["all"].value)
    assert len(on_pool(_trace(), 3, processors=10, part="test", jobs=40)) == 40


def test_too_few_jobs_are_refused() -> None:
    with pytest.raises(InputError, match="leaves no two jobs"):
        on_pool(_trace(4), 0, processors=10, part="test")
