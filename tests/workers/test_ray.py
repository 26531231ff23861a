"""Work on a Ray cluster of two nodes on this machine: the same results, also if processes and nodes are lost."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster

from greenbatch.cli import main
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.experiments.reports import drawing
from greenbatch.workers import RayCluster, ray_cluster, spread

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # no node can import this file

STORE = 100_000_000
"""Memory of a node's object store. [byte]"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Two nodes with a processor each, and a disk that takes nothing from a full object store."""
    full = {"local_fs_capacity_threshold": 0.0}
    head = {"num_cpus": 1, "object_store_memory": STORE, "_system_config": full, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    cluster.add_node(num_cpus=1, object_store_memory=STORE)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def workers(nodes: Cluster) -> RayCluster:
    return RayCluster(nodes.address)


def squared(number: int) -> int:
    raise AssertionError("not in this process")


def wait_for(place: Path, count: int) -> None:
    """Until there are so many files; three minutes at most."""
    until_s = time.monotonic() + 180
    while len(list(place.iterdir())) < count:
        if time.monotonic() > until_s:
            raise TimeoutError(f"fewer than {count} files")
        time.sleep(0.01)


def test_items_come_back_from_both_nodes(workers: RayCluster, tmp_path: Path) -> None:
    def there(number: int) -> tuple[int, str]:
        (tmp_path / str(number)).touch()
        wait_for(tmp_path, 2)  # each node has one processor
        return number**2, ray.get_runtime_context().get_node_id()

    found = dict(spread(range(6), squared, there, workers))
    assert {number: value for number, (value, _) in found.items()} == {n: n**2 for n in range(6)}
    assert len({found[0][1], found[1][1]}) == 2


def test_the_first_error_counts_and_is_that_of_this_process(workers: RayCluster) -> None:
    def there(number: int) -> int:
        if number in {3, 5}:
            raise InputError(f"is {number}", field="number", file="numbers.txt", line=3, fix="give 0 or more")
        return number

    done = []
    with pytest.raises(InputError, match=r"^numbers\.txt, line 3: number: is 3 \(give 0 or more\)$"):
        done.extend(spread(range(50), squared, there, workers))
    assert len(done) < 10


def test_what_a_killed_process_had_in_hand_is_done_again(workers: RayCluster, tmp_path: Path) -> None:
    flag = tmp_path / "killed"

    def there(number: int) -> int:
        if number == 2 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number**2

    assert dict(spread(range(6), squared, there, workers)) == {n: n**2 for n in range(6)}
    assert flag.exists()


def test_a_node_that_joins_is_used_and_what_it_has_when_it_is_lost_is_done_again(
    nodes: Cluster, workers: RayCluster, tmp_path: Path
) -> None:
    dict(spread(range(2), squared, abs, workers))  # connects
    first = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
    holds, removed = tmp_path / "holds", tmp_path / "removed"
    holds.mkdir()

    def there(number: int) -> str:
        node = ray.get_runtime_context().get_node_id()
        if number >= 2 and not removed.exists():
            if node not in first:
                (holds / str(number)).touch()
                time.sleep(600)  # until the node is lost
            wait_for(holds, 1)
        return str(node)

    found: dict[int, str] = {}
    third = None
    for item, node in spread(range(12), squared, there, workers):
        if third is None:
            third = nodes.add_node(num_cpus=1, object_store_memory=STORE)
        if item >= 2 and not removed.exists():
            nodes.remove_node(third, allow_graceful=False)
            removed.touch()
        found[item] = node
    assert sorted(found) == list(range(12))
    (held,) = holds.iterdir()
    assert found[int(held.name)] in first


def test_a_comparison_has_the_same_bytes(workers: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its tables; pictures are drawn in this process, from the same results."""
    monkeypatch.setattr(drawing, "_svg", lambda *_: "<svg></svg>")
    words = ["compare", "--schedulers", "fcfs+easy,f2+green,gas-marl-plus@default", "--windows", "4", "--jobs", "48"]
    for name, more in {"one": ["--workers", "1"], "ray": ["--ray", workers.address]}.items():
        assert main([*words, *more, "--out", str(tmp_path / name)]) == 0
    for file in ("results.parquet", "table.md", "table.tex"):
        assert (tmp_path / "ray" / file).read_bytes() == (tmp_path / "one" / file).read_bytes()


def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, *words: str) -> str:
    """The line of a comparison that is refused, and writes nothing."""
    out = tmp_path / "refused"
    given = ["compare", "--schedulers", "fcfs+easy", "--windows", "3", "--jobs", "16", "--out", str(out), *words]
    assert main(given) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert not out.exists()
    return error


def test_other_versions_are_refused(
    workers: RayCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ours = ray_cluster.fingerprint()
    monkeypatch.setattr(ray_cluster, "fingerprint", lambda: {**ours, "numpy": "0.1"})
    said = refused(capsys, tmp_path, "--ray", workers.address)
    assert f"--ray: a machine of the cluster has numpy {ours['numpy']}, this one 0.1 (install the same" in said


def test_more_than_the_object_store_holds_is_refused(workers: RayCluster) -> None:
    large = np.zeros(STORE // 4)

    def there(number: int) -> Any:
        return large[number]

    with pytest.raises(GreenbatchError, match=r"^--ray: the object store and the disk behind it are full \(free"):
        list(spread(range(3), squared, there, workers))


def test_an_address_that_nobody_answers_at_is_refused_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        assert f"--ray: no cluster answers at {address}" in refused(capsys, tmp_path, "--ray", address)
    assert "--ray: no usable cluster at nonsense" in refused(capsys, tmp_path, "--ray", "nonsense")


def test_without_ray_the_flag_says_what_to_install(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "find_spec", lambda _: None)
    said = refused(capsys, tmp_path, "--ray", "local")
    assert '--ray: requires Ray, which is not installed (pip install "greenbatch[scale]")' in said
    assert "--workers and --ray: say in two ways" in refused(capsys, tmp_path, "--ray", "local", "--workers", "2")
