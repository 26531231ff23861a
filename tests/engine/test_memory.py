"""The file of what a driven scheduler remembers: damaged, foreign or of another format, it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import workload
from digests import CLUSTER, SITE, random_jobs
from driven import driver_of

from greenbatch.cluster import Cluster
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.views.interface import Decision, View, Wait
from greenbatch.engine.views.session import Session
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler


def test_a_memory_of_other_rules_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "memory.npz"
    saved("fcfs+easy", file)
    other = driver_of(scheduler("fcfs+easy"), workload(random_jobs(2)), CLUSTER, Rules(commitment="sticky"))
    with pytest.raises(InputError, match=r"memory\.npz: was saved with commitment = 'reconsider'"):
        other.load(file)


def test_a_memory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    driver = driver_of(scheduler("fcfs+easy"), workload(random_jobs(2)), CLUSTER, Rules())
    (tmp_path / "folder").mkdir()
    for file in (tmp_path / "missing" / "memory.npz", tmp_path / "folder"):
        with pytest.raises(InputError, match="cannot be written"):
            driver.save(file)


def test_a_policy_whose_memory_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    class Keeps:
        kept: Any = float

        def decide(self, view: View) -> Decision:
            return Wait()

        def memory(self) -> Any:
            return self.kept

        def recall(self, memory: Any) -> None:
            raise KeyError("seed")

    driver = driver_of(scheduler(Keeps), workload(random_jobs(2)), CLUSTER, Rules())
    with pytest.raises(InputError, match=r"memory\(\) returned what is not JSON"):
        driver.save(tmp_path / "memory.npz")
    Keeps.kept = 1
    driver.save(tmp_path / "memory.npz")
    with pytest.raises(InputError, match="KeyError: 'seed'"):
        driver.load(tmp_path / "memory.npz")


def saved(name: str, file: Path) -> Any:
    """A driver in the middle of a run, saved."""
    how, jobs = scheduler(name), workload(random_jobs(2))
    session = Session(jobs, CLUSTER, SITE, Rules(), Program(name="batch system"))
    driver = driver_of(how, jobs, CLUSTER, Rules())
    for _ in range(15):
        view = session.view()
        assert view is not None
        session.apply(driver.decide(view))
    driver.save(file)
    return driver_of(how, jobs, CLUSTER, Rules())


@pytest.mark.parametrize("name", ["fcfs+easy", "lptpn-published", "gas-marl-plus@default"])
def test_a_damaged_memory_is_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "memory.npz"
    fresh = saved(name, file)
    whole = file.read_bytes()
    fresh.load(file)  # so it can be read
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes(255 - each for each in whole[middle : middle + 40]) + whole[middle + 40 :]
    for damaged in (b"", b"no memory", whole[:middle], whole[:-30], flipped):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=r"memory\.npz.*cannot be read") as refused:
            driver_of(scheduler(name), workload(random_jobs(2)), CLUSTER, Rules()).load(file)
        assert "\n" not in str(refused.value)
    file.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        fresh.load(file)


def test_a_memory_without_a_part_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "memory.npz"
    fresh = saved("lptpn-published", file)
    with np.load(file) as found:
        parts = dict(found)
    for name in parts:
        np.savez(file, **{each: content for each, content in parts.items() if each != name})
        with pytest.raises(InputError, match=r"memory\.npz: (cannot be read|does not fit)"):
            fresh.load(file)


@pytest.mark.parametrize(
    "wrong", [{"seen_s": "a"}, {"draws": "a"}, {"is_plain": None}, {"partitions": [1]}, {"answers": [5]}]
)
def test_a_memory_with_values_of_another_type_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    file = tmp_path / "memory.npz"
    fresh = saved("fcfs+easy", file)
    with np.load(file) as found:
        parts = dict(found)
    parts["plain"] = np.array(json.dumps({**json.loads(str(parts["plain"])), **wrong}))
    np.savez(file, **parts)
    with pytest.raises(InputError, match=r"memory\.npz: cannot be read") as refused:
        fresh.load(file)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("unknown", [{}, {"of_tomorrow": 1}])
def test_the_format_of_a_memory_has_a_number(tmp_path: Path, unknown: dict[str, int]) -> None:
    """One without a number is of an older version, and is read; a newer one is refused, whatever it holds."""
    file = tmp_path / "memory.npz"
    fresh = saved("lptpn-published", file)
    with np.load(file) as found:
        parts = dict(found)
    plain = json.loads(str(parts["plain"]))
    newer = {**plain, **unknown, "format": plain["format"] + 1}
    np.savez(file, **{**parts, "plain": np.array(json.dumps(newer))})
    with pytest.raises(InputError, match=r"memory\.npz: has format 3 of a newer version"):
        fresh.load(file)
    del plain["format"]
    np.savez(file, **{**parts, "plain": np.array(json.dumps(plain))})
    fresh.load(file)


def test_a_memory_saved_before_the_first_decision(tmp_path: Path) -> None:
    for name in ("lptpn-published", "gas-marl-plus@default"):
        how, jobs = scheduler(name), workload(random_jobs(2)[:1])
        driver_of(how, jobs, CLUSTER, Rules()).save(tmp_path / "memory.npz")
        driver = driver_of(how, jobs, CLUSTER, Rules())
        driver.load(tmp_path / "memory.npz")
        view = Session(jobs, CLUSTER, SITE, Rules(), Program(name="batch system")).view()
        assert view is not None
        driver.decide(view)


def test_the_memory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    file, name = tmp_path / "memory.npz", "gas-marl-plus@default"
    saved(name, file)
    with pytest.raises(InputError, match=r"memory\.npz: was saved with another cluster"):
        driver_of(scheduler(name), workload(random_jobs(2)), Cluster.pooled(9), Rules()).load(file)


def test_the_memory_of_another_scheduler_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "memory.npz"
    saved("f2+easy", file)
    for other in ("f2+green", "gas-marl-plus@default"):
        driver = driver_of(scheduler(other), workload(random_jobs(2)), CLUSTER, Rules())
        with pytest.raises(InputError, match=r"is the memory of f2\+easy \(load it with f2\+easy\)"):
            driver.load(file)
