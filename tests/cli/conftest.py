"""Command lines are tested with a compiled engine: on a new machine it reports once that it compiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from small import SMALL, without_pictures

from greenbatch.cluster import Cluster
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.session import Session
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload


@pytest.fixture(scope="session", autouse=True)
def _compiled_engine() -> None:
    jobs = Workload.from_columns("one", {"submit_s": [0], "run_time_s": [1], "processors": [1]})
    for name in ("fcfs+easy", "wfp3+easy", "fcfs+conservative"):
        simulate(jobs, Cluster.pooled(1), None, Rules(), scheduler(name))
    Session(jobs, Cluster.pooled(1), None, Rules(), Program(name="one"))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, entered, with the scenario small.toml."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path


@pytest.fixture(autouse=True)
def _not_drawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take longer than a small comparison; tests/experiments and what is marked ``drawn`` test them."""
    if not request.node.get_closest_marker("drawn"):
        without_pictures(monkeypatch)
