"""Wrong descriptions of nodes, and workloads of IRMaSim, through the real command line: one line that helps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from greenbatch.cli import main
from platform_json import ABSENT, PLATFORM, changed

JOBS: dict[str, Any] = {"jobs": [{"id": "a", "subtime": 0, "res": 4, "req_ops": 3e9}]}
GROUP = '[[groups]]\nname = "a"\ncount = 2\nprocessors = 4\nstatic_power_w = 10\n'
RUN = ("--scenario", "plain", "--trace", "jobs.json", "--scheduler", "fcfs+none", "--out", "out")

CLUSTERS = [
    ("c.json", "", "c.json: is empty"),
    ("c.json", '{"platform": ', "c.json, line 1: is not JSON"),
    ("c.json", changed(PLATFORM, "processor.p.static_power", ABSENT), "processor.p.static_power: is missing (add it)"),
    ("c.json", changed(PLATFORM, "processor.p.cores", 0), "c.json: processor.p.cores: is 0"),
    ("c.json", changed(PLATFORM, "node.fast.processors.0.type", "x"), "there is no processor type 'x'"),
    ("c.json", JOBS, "c.json: platform: is missing"),
    ("slurm.conf", "NodeName=a[1-2 CPUs=4\n", "slurm.conf, line 1: NodeName: 'a[1-2'"),
    ("slurm.conf", "NodeName=a CPUs=4\nPartitionName=p Nodes=b\n", "line 2: Nodes: there is no node 'b'"),
    ("slurm.conf", "NodeName=a CPUs=4\nNodeName=a CPUs=4\n", "line 2: NodeName: 'a' is on line 1 too"),
    ("c.toml", GROUP.replace("processors = 4", "processors = 0"), "c.toml, line 4: groups[0].processors: is 0"),
    ("c.toml", GROUP + GROUP, "c.toml: groups: group 'a' is listed twice"),
    ("c.toml", GROUP + 'type = "x"\n', "c.toml, line 6: groups.type: there is no node type 'x'"),
    ("c.toml", GROUP + "speed = nan\n", "c.toml, line 6: groups[0].speed: is nan (give a finite number)"),
    ("c.toml", "\n[cluster]\nprocessors = 3\n", "c.toml, line 2: is a scenario, not a cluster (give it as --scenario"),
    ("c.toml", "groups = 3\n", "c.toml, line 1: groups: is 3 (give an array"),
    ("c.toml", "[[groups]\n", "c.toml, line 1: is not TOML"),
    ("c.txt", "hello\n", "c.txt, line 1: is not a known description of a cluster"),
]
WORKLOADS = [
    ("[{}]", "t.json: is an array (give an object)"),
    (JOBS | {"jobs": {}}, "t.json: jobs: is an object (give an array)"),
    (changed(JOBS, "jobs.0.res", "4"), 't.json: jobs[0].res: is "4" (give a number, without quotes)'),
    (changed(JOBS, "jobs.0.profile", "A"), "t.json: jobs[0].profile: there is no profile 'A'"),
    (changed(JOBS, "jobs.0.req_ops", ABSENT), "t.json: jobs[0].req_ops: is missing"),
]


def refused(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    before = sorted(folder.rglob("*"))
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("greenbatch: ")
    assert err.count("\n") == 1, err
    assert sorted(folder.rglob("*")) == before, "something was left behind"
    return err


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.json").write_text(json.dumps(JOBS))
    return tmp_path


def put(folder: Path, name: str, content: Any) -> None:
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.mark.parametrize(("name", "content", "says"), CLUSTERS)
def test_clusters(folder, capsys, name, content, says):
    put(folder, name, content)
    assert says in refused(folder, capsys, "simulate", *RUN, "--cluster", name)
    assert says in refused(folder, capsys, "cluster", "show", name)


@pytest.mark.parametrize(("content", "says"), WORKLOADS)
def test_workloads(folder, capsys, content, says):
    put(folder, "t.json", content)
    flags = [flag if flag != "jobs.json" else "t.json" for flag in RUN]
    assert says in refused(folder, capsys, "simulate", *flags, "--processors", "8")


def test_flags(folder, capsys):
    put(folder, "c.toml", GROUP)
    flags = ("simulate", *RUN, "--cluster", "c.toml")
    assert "--processors: is for a pool (leave it out" in refused(folder, capsys, *flags, "--processors", "4")
    assert "no.toml: no such file (check the path)" in refused(folder, capsys, "simulate", *RUN, "--cluster", "no.toml")
    assert "--cluster: is '' (give a string" in refused(folder, capsys, "simulate", *RUN, "--cluster", "")


def test_show(folder, capsys):
    put(folder, "c.toml", GROUP + 'partitions = ["short"]\nmemory_gb = 64\ngpus = 1\n')
    assert main(("cluster", "show", "c.toml")) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("2 nodes, 8 processors, 20 W idle a 2 x 4 processors; 1 GPUs; 64 GB; speed 1; 10 W idle")
    assert out.endswith("partitions short")


def test_list(capsys):
    assert main(("cluster", "list")) == 0
    assert "SPECpower_ssj2008 20190409-00952" in " ".join(capsys.readouterr().out.split())
