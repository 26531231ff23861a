"""An SWF trace whose jobs follow others (``field/50-swf-dependencies.swf``): said, and obeyed if asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenbatch.bounds.problem import problem_of
from greenbatch.engine.capabilities import refuse_run
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler

TRACE = Path(__file__).with_name("field") / "50-swf-dependencies.swf"
OBEY = {"rules.dependencies": "obey"}
GREEN = {"site": {"kind": "synthetic", "days": 2}, "workload.power": {"kind": "per-processor"}}


def scenario(**overrides: object) -> Scenario:
    return load_scenario("plain", trace=TRACE, overrides=overrides)


@pytest.mark.plain
def test_50_ignored_with_a_warning() -> None:
    """Job 2 follows job 1 after 50 s: one of three jobs, and a third of the processor-hours."""
    plain = scenario()
    (note,) = (each for each in plain.notes if "preceding" in each.what)
    assert str(note) == (
        'preceding job and think time ignored, jobs submitted as recorded (to obey: rules.dependencies = "obey"): 1 '
        "(33% of the processor-hours and 33% of the jobs)"
    )
    assert note.level == "warning"
    outcome = simulate(plain.workload, plain.cluster, None, plain.rules, scheduler("fcfs+easy"))
    assert outcome.start_s.tolist() == [0, 1, 100]


@pytest.mark.plain
def test_50_obeyed() -> None:
    """Job 1 runs from 0 to 100 s, so job 2 is submitted at 150 s and job 3 runs from 2 s."""
    obeys = scenario(**OBEY)
    (note,) = (each for each in obeys.notes if "preceding" in each.what)
    assert note.level == "change"
    outcome = simulate(obeys.workload, obeys.cluster, None, obeys.rules, scheduler("fcfs+easy"))
    assert outcome.start_s.tolist() == [0, 150, 2]
    assert outcome.workload.submit_s.tolist() == [0, 150, 2]
    assert obeys.workload.submit_s.tolist() == [0, 1, 2]


@pytest.mark.plain
@pytest.mark.parametrize("who", ["a bound", "rolling:knowledge=perfect"])
def test_50_refused_where_submissions_must_be_known(who: str) -> None:
    """With the fix of the message, each goes on."""

    def tried(question: Scenario) -> None:
        jobs, site, rules = question.workload, question.site, question.rules
        assert site is not None
        if who == "a bound":
            problem_of(jobs, question.cluster, site, rules, 1e5)
        else:
            refuse_run(scheduler(who).program(jobs), jobs, question.cluster, site, rules)

    with pytest.raises(InputError, match=r"rules\.dependencies: is obey, and 1 job follows another, but") as refused:
        tried(scenario(**GREEN, **OBEY))
    assert str(refused.value).endswith('must know all submissions (use dependencies = "ignore")')
    tried(scenario(**GREEN, **{"rules.dependencies": "ignore"}))
