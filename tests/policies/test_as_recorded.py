"""As recorded: starts of a dump are repeated exactly; what does not fit starts as soon as it does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import site_dump
from greenbatch.cluster import Cluster
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.metrics import evaluate
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload, read_sacct

pytestmark = pytest.mark.plain


def run(workload: Workload, processors: int, **rules):
    return simulate(workload, Cluster.pooled(processors), None, Rules(**rules), scheduler("as-recorded"))


@pytest.mark.parametrize("event_rule", ["per_event", "per_instant"])
@pytest.mark.parametrize("commitment", ["sticky", "reconsider"])
def test_a_dump_is_repeated_to_the_second(tmp_path, event_rule, commitment):
    (tmp_path / "dump.txt").write_text(site_dump.dump())
    jobs = read_sacct(tmp_path / "dump.txt", time_zone="UTC")
    outcome = run(jobs, site_dump.PROCESSORS, event_rule=event_rule, commitment=commitment)
    assert outcome.start_s.tolist() == (jobs.submit_s + jobs.recorded_wait_s).tolist()
    assert jobs.recorded_wait_s.max() > 3600
    metrics = evaluate(outcome)
    assert [metrics[name] for name in ("median_wait_error_s", "p95_wait_error_s", "late_starts")] == [0, 0, 0]


def jobs_of(*rows) -> Workload:
    submit_s, run_s, processors, wait_s = np.array(rows, dtype=float).T
    return Workload.from_columns(
        "hand", {"submit_s": submit_s, "run_time_s": run_s, "processors": processors, "recorded_wait_s": wait_s}
    )


def test_what_does_not_fit_starts_as_soon_as_it_fits():
    #                    submit run size wait: recorded starts 0, 5, 6 and 30 on 8 processors
    outcome = run(jobs_of((0, 20, 3, 0), (1, 10, 3, 4), (2, 10, 1, 4), (3, 5, 4, 27)), 4)
    assert outcome.start_s.tolist() == [0, 20, 6, 30]  # the third overtakes the second; the fourth is on time
    metrics = evaluate(outcome)
    assert metrics["late_starts"] == 1
    assert metrics["avg_wait_error_s"] == 15 / 4


def test_jobs_without_a_recorded_wait_start_as_soon_as_they_fit():
    outcome = run(jobs_of((0, 20, 4, 5), (1, 10, 2, np.nan), (2, 10, 3, np.nan)), 4)
    assert outcome.start_s.tolist() == [11, 1, 31]
    assert evaluate(outcome)["late_starts"] == 1


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 20), st.integers(1, 6), st.integers(0, 30)),
        min_size=1,
        max_size=15,
    ),
    processors=st.integers(6, 40),
)
def test_no_job_starts_early_and_all_are_on_time_where_the_record_fits(rows, processors):
    jobs = jobs_of(*rows)
    outcome = run(jobs, processors)
    wanted = jobs.submit_s + jobs.recorded_wait_s
    assert (outcome.start_s >= wanted).all()
    used = [jobs.processors[(wanted <= at) & (wanted + jobs.run_time_s > at)].sum() for at in wanted]
    if max(used) <= processors:
        assert outcome.start_s.tolist() == wanted.tolist()


def test_a_trace_without_waits_is_refused():
    jobs = jobs_of((0, 20, 4, np.nan), (1, 10, 2, np.nan))
    with pytest.raises(InputError, match="as-recorded: the trace hand records no waits"):
        run(jobs, 8)


def test_a_record_cannot_be_driven_from_views():
    from greenbatch.engine.views.driver import ViewDriver

    program = scheduler("as-recorded").program(jobs_of((0, 20, 4, 5)))
    with pytest.raises(InputError, match="cannot be driven from views"):
        ViewDriver(program, None, Cluster.pooled(8), Rules())


def test_it_takes_no_backfilling():
    with pytest.raises(InputError, match="does not support backfilling"):
        scheduler("as-recorded+easy")
