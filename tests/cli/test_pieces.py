"""Finished windows on disk while a comparison runs: shown, used after a kill, refused where they are of another one."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars
import pytest
from small import SLOW, SMALL, failing, without_command, without_pictures

from greenbatch.cli import main
from greenbatch.experiments.reports import runs
from greenbatch.experiments.running import pieces as room
from greenbatch.experiments.running.cells import Question

FLAGS = ["--scenario", "small.toml", "--schedulers", "fcfs+easy,f2+green", "--jobs", "15"]
SWEEP = ["--sweep", "forecast.sigma=0,0.4,0.8"]


def compare(*more: str, out: str = "out", starts: str = "0,5,9") -> int:
    return main(["compare", *FLAGS, "--starts", starts, "--out", out, *more])


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every finished window is written at once."""
    monkeypatch.setattr(room, "EVERY_S", 0.0)


def broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison whose last window fails."""
    with monkeypatch.context() as patched:
        failing(patched, 3, RuntimeError("it fails"))
        with pytest.raises(RuntimeError, match="it fails"):
            compare()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a comparison, ``out``, and with what one that broke off has finished, ``broken/out.cells``."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        without_pictures(patch)
        patch.setattr(room, "EVERY_S", 0.0)
        for place in (folder, folder / "broken"):
            place.mkdir(exist_ok=True)
            (place / "small.toml").write_text(SMALL)
        patch.chdir(folder)
        assert compare() == 0
        patch.chdir(folder / "broken")
        broken_off(patch)
    return folder


@pytest.fixture
def compared(small: Path, made: Path) -> Path:
    """The comparison, in the current folder."""
    return Path(shutil.copytree(made / "out", small / "out"))


@pytest.fixture
def begun(small: Path, made: Path) -> Path:
    """What the one that broke off has finished, in the current folder."""
    return Path(shutil.copytree(made / "broken" / "out.cells", small / "out.cells"))


def same(one: Path, other: Path) -> None:
    for file in ("results.parquet", "table.md", "table.tex"):
        assert (one / file).read_bytes() == (other / file).read_bytes(), file


@pytest.mark.parametrize("more", [[], SWEEP], ids=["comparison", "sweep"])
def test_what_was_finished_before_a_failure_is_not_simulated_again(
    small: Path, monkeypatch: pytest.MonkeyPatch, at_once: None, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(*more, out="whole") == 0
    assert not (small / "whole.cells").exists()
    total = 9 if more else 3
    with monkeypatch.context() as patched:
        failing(patched, total, RuntimeError("the machine fails"))
        with pytest.raises(RuntimeError, match="the machine fails"):
            compare(*more)
    assert not (small / "out").exists()
    assert len(list((small / "out.cells").glob("*.parquet"))) == total - 1
    calls = failing(monkeypatch, 0, RuntimeError())
    capsys.readouterr()
    assert compare(*more) == 0
    assert f"note: {total - 1} of {total} windows are finished already, see out.cells" in capsys.readouterr().err
    assert len(calls) == 2, "the first, for the example, and the one that was missing"
    same(small / "out", small / "whole")
    assert not (small / "out.cells").exists()


def test_a_killed_comparison_goes_on_in_several_processes_and_can_be_watched(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIGKILL of the command while it runs; before, its finished windows are shown."""
    (small / "slow.py").write_text("import os\n" + SLOW.replace("SECONDS", "float(os.environ['SECONDS'])"))
    starts = ",".join(str(start) for start in range(8))
    words = ["--scenario", "small.toml", "--schedulers", "slow.py:slow,fcfs", "--jobs", "10", "--baseline", "fcfs",
             "--starts", starts, "--workers", "2"]  # fmt: skip
    command = [sys.executable, "-m", "greenbatch", "compare", *words, "--out"]
    slowly = subprocess.Popen(
        [*command, "out"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={**os.environ, "SECONDS": "0.1"}
    )
    monkeypatch.setenv("SECONDS", "0")
    with slowly as running:
        while not list((small / "out.cells").glob("*.parquet")):
            assert running.poll() is None, "ended before a window was on disk"
            time.sleep(0.02)
        capsys.readouterr()
        assert main(["results", "out", "--where", "scheduler = 'fcfs'", "--json"]) == 0
        running.send_signal(signal.SIGKILL)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert 1 <= len(rows) < 8
    assert {row["scheduler"] for row in rows} == {"fcfs"}
    assert not (small / "out").exists()
    assert main(["compare", *words, "--out", "out", "--resume"]) == 0
    assert "of 8 windows are finished already, see out.cells" in capsys.readouterr().err
    assert main(["compare", *words[:-1], "1", "--out", "whole"]) == 0
    same(small / "out", small / "whole")
    assert without_command(small / "out" / "report.html") == without_command(small / "whole" / "report.html")


def test_ctrl_c_in_the_thread_that_writes_keeps_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """polars raises KeyboardInterrupt in every thread that waits for it."""
    pieces = object.__new__(room.Pieces)
    vars(pieces).update(
        folder=tmp_path / "out.cells", _record={}, _lock=threading.Lock(), _waiting={"cell": "figures"}, _timer=None,
        _error=None, _written=True,
    )  # fmt: skip

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(room, "_setting", interrupted)
    pieces._in_time()
    assert pieces._waiting == {"cell": "figures"}


def test_a_comparison_that_fails_at_once_leaves_no_folder_and_one_that_goes_on_loses_nothing(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finished windows wait for others before they are written; what waits is written where earlier ones are."""
    monkeypatch.setattr(room, "EVERY_S", 1000.0)
    broken_off(monkeypatch)
    assert not (small / "out.cells").exists(), "nothing was written before"
    with monkeypatch.context() as patched:
        patched.setattr(room, "EVERY_S", 0.0)
        broken_off(patched)
    assert finished(small) == {"0": 1, "5": 1}
    with monkeypatch.context() as patched:
        failing(patched, 2, RuntimeError("it fails"))
        with pytest.raises(RuntimeError, match="it fails"):
            compare()
    assert finished(small) == {"0": 2, "5": 1}, "the first window is simulated again, and was waiting"

    def full(file: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(file))

    monkeypatch.setattr(room, "replace_file", full)
    assert compare() == 0, "what is waiting is in the result, and is not written once more"
    assert not (small / "out.cells").exists()


def finished(folder: Path) -> dict[str, int]:
    """Window -> in how many pieces it is."""
    found = [polars.read_parquet(file)["window"].unique() for file in (folder / "out.cells").glob("*.parquet")]
    return dict(sorted(polars.concat(found).value_counts().iter_rows()))


def test_pieces_of_another_comparison_are_refused_or_discarded(
    small: Path, begun: Path, capsys: pytest.CaptureFixture[str], at_once: None
) -> None:
    before = [file.read_bytes() for file in sorted((small / "out.cells").iterdir())]
    for starts, more, told in (
        ("0,5,9", ["--baseline", "f2+green"], "settings.baseline: fcfs+easy there, f2+green here"),
        ("0,5,9", SWEEP, "settings.sweep"),
        ("5,9", [], "settings.starts: 0 there, not here"),
    ):
        assert compare(*more, starts=starts) == 2
        said = capsys.readouterr().err
        assert f"greenbatch: out.cells: --out: has finished windows of a different comparison; {told}" in said
        assert said.count("\n") == 1
    assert [file.read_bytes() for file in sorted((small / "out.cells").iterdir())] == before
    assert compare("--baseline", "f2+green", "--force") == 0
    assert not (small / "out.cells").exists()


def test_a_folder_of_another_is_not_touched(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (small / "out.cells").mkdir()
    (small / "out.cells" / "mine.txt").write_text("mine")
    assert compare("--force") == 2
    assert "out.cells/record.json: is not that of a comparison (move its folder away" in capsys.readouterr().err
    assert (small / "out.cells" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b"PAR1 and then text", None], ids=["other values", "text", "rows missing"])
def test_a_damaged_piece_is_one_line(
    begun: Path, capsys: pytest.CaptureFixture[str], at_once: None, content: bytes | None
) -> None:  # fmt: skip
    piece = sorted(begun.glob("*.parquet"))[1]
    if content is None:
        frame = polars.read_parquet(piece)
        piece.unlink()
        frame.filter(frame["scheduler"] != "f2+green").write_parquet(piece)
        piece = piece.rename(piece.with_stem(f"cells-000002-{hashlib.sha256(piece.read_bytes()).hexdigest()[:16]}"))
    else:
        piece.write_bytes(content or piece.read_bytes().replace(b"f2+green", b"g2+green"))
    assert compare() == 2
    told = capsys.readouterr().err
    assert told == (
        f"greenbatch: out.cells/{piece.name}: --out: is damaged (remove it: its windows are simulated again)\n"
    )
    piece.unlink()
    assert compare() == 0


@pytest.mark.parametrize("every_s", [0.0, 0.01], ids=["at once", "by a timer"])
def test_a_full_disk_is_one_line_and_loses_nothing(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], every_s: float
) -> None:
    monkeypatch.setattr(room, "EVERY_S", every_s)
    real, slow = room.replace_file, Question.simulated

    def full(file: Path, content: bytes) -> None:
        if file.name.startswith("cells-000002"):
            raise OSError(errno.ENOSPC, "No space left on device", str(file))
        real(file, content)

    def simulated(*given: object) -> object:
        time.sleep(0.1)
        return slow(*given)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(room, "replace_file", full)
        patched.setattr(Question, "simulated", simulated)
        assert compare("--workers", "1", starts="0,1,2,3,4,5") == 2
    told = capsys.readouterr().err
    assert "cannot be written: No space left on device" in told
    assert told.count("\n") == 1
    assert not (small / "out").exists()
    assert len(list((small / "out.cells").glob("*.parquet"))) == 1
    assert compare(starts="0,1,2,3,4,5") == 0


def test_single_runs_are_selected_by_a_condition(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(*SWEEP) == 0
    capsys.readouterr()

    def shown(*more: str) -> list[dict[str, object]]:
        assert main(["results", "out", "--json", *more]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    frame = polars.read_parquet(small / "out" / "results.parquet")
    waits = frame.filter(metric="avg_wait_s", scheduler="f2+green")["value"].to_list()
    rows = shown("--where", "scheduler = 'f2+green'", "--columns", "avg_wait_s")
    assert [row["avg_wait_s"] for row in rows] == waits
    assert len(shown("--where", "avg_wait_s >= 0")[0]) == 3 + 3 + 1, "the usual ones, and that of the condition"
    some = shown("--where", "sigma >= 0.4 AND window = 5", "--columns", "makespan_s")
    assert [tuple(row) for row in some] == [("sigma", "window", "scheduler", "makespan_s")] * 4
    assert {row["sigma"] for row in some} == {0.4, 0.8}
    slowest = [row["avg_wait_s"] for row in shown("--sort=-avg_wait_s")]
    assert slowest == sorted(slowest, reverse=True)
    assert len(slowest) == 18
    assert main(["results", "out", "--rows", "2"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 of 18 runs; 9 of 9 windows are finished" in printed
    notes = json.loads((small / "out" / "provenance.json").read_text())["notes"]
    assert f"{len(notes)} note" in printed
    assert f" on the inputs, first: {notes[0]} (see provenance.json)" in printed


def test_results_of_a_version_with_fewer_metrics(
    small: Path, compared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = small / "out" / "results.parquet"
    frame = polars.read_parquet(file)
    frame.filter(polars.col("metric") != "avg_bounded_slowdown").write_parquet(file)
    capsys.readouterr()
    assert main(["results", "out"]) == 2
    assert "results.parquet: was changed since greenbatch wrote it (compare again" in capsys.readouterr().err
    record = small / "out" / "provenance.json"
    before, digest = json.loads(record.read_text()), hashlib.sha256(file.read_bytes()).hexdigest()
    for files in (None, [], {}):
        record.write_text(json.dumps(before | {"files": files}))
        assert main(["results", "out"]) == 2, "a record without checksums"
    record.write_text(json.dumps(before | {"files": {file.name: digest}}))
    capsys.readouterr()
    assert main(["results", "out", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == frame.select("scheduler", "window").unique().height
    assert not {*rows[0]} & {"avg_bounded_slowdown"}
    assert main(["results", "out", "--sort", "avg_bounded_slowdown"]) == 2
    assert "avg_bounded_slowdown" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--where", "avg_wait > 1"], "--where: there is no column 'avg_wait' (did you mean"),
        (
            ["--where", "scheduler = f2"],
            "--where: there is no column 'f2' (columns: window, scheduler and all metrics; t",
        ),
        (["--where", "avg_wait_s >"], "--where: 'avg_wait_s >' is no condition"),
        (["--where", "avg_wait_s"], "--where: 'avg_wait_s' is no condition"),
        (["--where", "scheduler > 3"], "--where: 'scheduler > 3' is no condition"),
        (["--columns", "avg_wait"], "--columns: there is no column 'avg_wait'"),
        (["--sort", "avg_wait"], "--sort: there is no column 'avg_wait'"),
    ],
)
def test_a_bad_condition_is_one_line(
    compared: Path, capsys: pytest.CaptureFixture[str], more: list[str], told: str
) -> None:  # fmt: skip
    assert main(["results", "out", *more]) == 2
    said = capsys.readouterr().err
    assert f"greenbatch: {told}" in said
    assert said.count("\n") == 1


def test_a_result_that_is_delivered_while_its_pieces_are_read_is_shown(
    begun: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], at_once: None
) -> None:
    real = runs.read_piece

    def delivered_first(file: Path) -> polars.DataFrame:
        monkeypatch.setattr(runs, "read_piece", real)
        assert compare() == 0
        return real(file)

    monkeypatch.setattr(runs, "read_piece", delivered_first)
    assert main(["results", "out"]) == 0
    assert "6 runs; 3 of 3 windows are finished" in capsys.readouterr().out


def test_results_of_this_folder_and_of_odd_names(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare("--sweep", "workload.generator.jobs=60,70", out="odd.cells") == 0
    capsys.readouterr()
    assert main(["results", "odd.cells", "--where", '"workload.generator.jobs" = 70']) == 0
    assert "6 runs; 6 of 6 windows are finished" in capsys.readouterr().out
    monkeypatch.chdir(small / "odd.cells")
    assert main(["results", "."]) == 0
    assert "12 runs; 6 of 6 windows are finished" in capsys.readouterr().out
    assert main(["results", "/"]) == 2
    assert capsys.readouterr().err.startswith("greenbatch: /: has no results")


def test_a_folder_without_results_is_one_line(
    small: Path, compared: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    (small / "empty").mkdir()
    for folder in ("empty", "nothing"):
        assert main(["results", folder]) == 2
        assert f"greenbatch: {folder}: has no results (give the --out of" in capsys.readouterr().err
    for content in ("{}", "[" * 100_000):
        (small / "out" / "provenance.json").write_text(content)
        assert main(["results", "out"]) == 2
        assert "provenance.json: is not that of a comparison" in capsys.readouterr().err
