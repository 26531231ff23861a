"""Folders and files of strangers: no code of theirs runs, nothing outside is touched, no name reaches a terminal raw.

Whole folders of a stranger are tried by ``tests/attack.py``.
"""

from __future__ import annotations

import ast
import gzip
import io
import json
import os
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import greenbatch as gb
from greenbatch import errors, files, schedulers
from greenbatch.cli import app, main
from greenbatch.datasets.dataset import read_record as read_dataset
from greenbatch.energy.columns import read_columns
from greenbatch.engine.views.memory import read_memory
from greenbatch.errors import InputError
from greenbatch.experiments.reports.outputs import for_spreadsheets
from greenbatch.experiments.reports.result_folder import result_folder
from greenbatch.experiments.reports.tables import Cell, Table, to_latex, to_markdown
from greenbatch.experiments.running import pieces
from greenbatch.learning.runs.checkpoint import save_checkpoint
from greenbatch.learning.runs.folder import read_run, tidy
from greenbatch.learning.runs.log import read_log, written_events
from greenbatch.models.model import read_record
from greenbatch.presets.preset import preset
from greenbatch.scenarios.toml import read_toml
from greenbatch.schedulers import allowed
from greenbatch.storage import hidden, replacement
from greenbatch.workload import read_workload

SRC = Path(gb.__file__).parent
EVIL = "open('ran', 'w').close()\n"
TRACE = "job_id,submit_s,run_time_s,processors,group\n1,0,100,1,NAME\n2,10,100,2,b\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder; nothing is allowed to run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(allowed, "_ALLOWED", set())
    yield tmp_path
    assert not (tmp_path / "ran").exists(), "the stranger's code has run"


# ---------------------------------------------------------------- code


SCENARIO = """\
name = "theirs"
[workload.generator]
model = "lublin"
jobs = 20
seed = 1
processors = 32
[cluster]
processors = 32
[evaluation]
starts = [0]
jobs = 20
schedulers = ["evil.py:rule"]
"""


def test_a_scenario_names_code(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "evil.py").write_text(EVIL)
    (here / "s.toml").write_text(SCENARIO)
    assert main(["compare", "--scenario", "s.toml", "--json"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("greenbatch: evil.py: is code that another file names, so it is not run (read it first; ")
    assert "--allow evil.py" in said
    assert said.count("\n") == 1
    with pytest.raises(InputError, match=r"schedulers\.allow\('evil\.py'\)"):
        gb.compare("s.toml")


@pytest.mark.parametrize("name", ["evil.py:rule", "evil.py:rule:x=1+easy", " evil.py:rule+easy", "./evil.py:rule"])
def test_names_from_files_run_no_code(here: Path, name: str) -> None:
    """Scenarios, presets, datasets and models pass their names to this function."""
    (here / "evil.py").write_text(EVIL)
    with pytest.raises(InputError, match="is code that another file names"):
        schedulers.scheduler_table([name])
    with pytest.raises(InputError, match="is code that another file names"):
        schedulers.scheduler_table({"mine": name})


def test_only_constants_are_scheduled_as_if_the_user_had_typed_them() -> None:
    """`schedulers.scheduler` lets a file run: inside, it gets texts of this program and models alone."""
    typed = {"cli/simulate.py", "schedulers/build.py"}
    papers = {f"experiments/papers/{name}.py" for name in ("study_results", "order_results", "in_turn")}
    ours = papers | {"experiments/running/bounds.py"}
    found = set()
    for file in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            named = getattr(called, "id", getattr(called, "attr", ""))
            if isinstance(node, ast.Call) and named == "scheduler" and node.args:
                constant = isinstance(node.args[0], ast.Constant) or getattr(node.args[0], "id", "").isupper()
                found |= set() if constant else {file.relative_to(SRC).as_posix()}
    assert found == typed | ours


RULE = """
import greenbatch as gb

@gb.policy("waits")
class Waits:
    def decide(self, view):
        return gb.Start(0)
"""


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "--schedulers", "fcfs+easy,mine.py:waits+easy"], ["compare", "--schedulers=mine.py:waits"],
        ["compare", "--allow", "mine.py"], ["--allow=./mine.py", "compare"],
        ["train", "rare-offline", "--set", 'training.off_policy.schedulers=["mine.py:waits"]'],
        ["bound", "--reference", "mine.py:waits"],
    ],
)  # fmt: skip
def test_what_the_user_types_runs(here: Path, words: list[str]) -> None:
    (here / "mine.py").write_text(RULE)
    (here / "evil.py").write_text(EVIL)
    left = app._allowing(words)
    assert not any("--allow" in word or word == "./mine.py" for word in left)
    assert list(schedulers.scheduler_table(["mine.py:waits"])) == ["mine.py:waits"]
    with pytest.raises(InputError, match="is code that another file names"):
        schedulers.scheduler_table(["evil.py:rule"])
    assert not (here / "__pycache__").exists()


def test_what_is_allowed_in_python_runs(here: Path) -> None:
    (here / "mine.py").write_text(RULE)
    schedulers.allow("mine.py")
    assert list(schedulers.scheduler_table(["mine.py:waits"])) == ["mine.py:waits"]
    assert gb.scheduler("mine.py:waits") is not None


@pytest.mark.parametrize(
    "words", [["compare", "--allow"], ["compare", "--allow", "mine.txt"], ["--allow=mine.txt", "compare"]]
)
def test_allow_takes_a_python_file(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "--allow: is '" in capsys.readouterr().err


# ---------------------------------------------------------------- readers


READERS: dict[str, Callable[[Path], object]] = {
    "scenario.toml": read_toml, "preset.toml": preset, "run.json": lambda file: read_run(file.parent),
    "model.json": lambda file: read_record(file.parent), "dataset.json": lambda file: read_dataset(file.parent),
    "log.jsonl": read_log, "trace.swf": read_workload, "prices.csv": lambda file: read_columns(file, ["a"]),
    "record.json": pieces.read_record, "cells-000001-0123456789abcdef.parquet": pieces.read_piece,
    "memory.npz": lambda file: read_memory(file, None),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_a_device_is_refused(here: Path, name: str) -> None:
    """A link to /dev/zero took all of the machine's memory."""
    (here / name).symlink_to("/dev/zero")
    with pytest.raises(InputError) as refused:
        READERS[name](here / name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["scenario.toml", "run.json", "model.json", "log.jsonl", "record.json"])
def test_a_record_is_no_pipe(here: Path, name: str) -> None:
    os.mkfifo(here / name)
    with pytest.raises(InputError, match=r"pipe|not written by"):
        READERS[name](here / name)


def test_a_folder_is_refused_by_its_name_and_leaves_nothing_open(here: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(IsADirectoryError) as refused:
            files.stored_bytes(here)
        assert refused.value.filename == str(here)
        del refused  # an open file may be closed with its error
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_beyond_its_size_is_refused(here: Path) -> None:
    with (here / "scenario.toml").open("wb") as stream:
        stream.truncate(2_000_000)
    with pytest.raises(InputError, match="has 2,000,000 bytes, more than 1,000,000"):
        read_toml(here / "scenario.toml")
    with (here / "trace.swf").open("wb") as stream:
        stream.truncate(2**40)
    with pytest.raises(InputError, match="more than 8,589,934,592"):
        read_workload(here / "trace.swf")


def test_a_pipe_can_be_a_trace(here: Path) -> None:
    """Any reader opens a trace several times."""
    os.mkfifo(here / "pipe")
    plain = here / "jobs.csv"
    plain.write_text(TRACE)
    written = io.BytesIO()
    pl.read_csv(plain).drop("group").write_parquet(written)
    for content in (TRACE.encode(), gzip.compress(TRACE.encode()), written.getvalue()):
        writer = threading.Thread(target=(here / "pipe").write_bytes, args=(content,))
        writer.start()
        assert read_workload(here / "pipe").submit_s.tolist() == [0.0, 10.0]
        writer.join()


def test_a_writer_may_take_its_time_and_must_come(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_WRITER_S", 1.0)
    os.mkfifo(here / "pipe")
    with pytest.raises(InputError, match="is a pipe that nobody writes to within 1 s"):
        read_workload(here / "pipe")

    def write() -> None:
        with (here / "pipe").open("w") as stream:
            time.sleep(1.5)
            stream.write(TRACE)

    writer = threading.Thread(target=write)
    writer.start()
    assert len(read_workload(here / "pipe")) == 2
    writer.join()


def test_few_bytes_that_unpack_to_many_are_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_UNPACKED_BYTES", 2**20)
    (here / "a.swf.gz").write_bytes(gzip.compress(b"\n" * 2**23))
    with pytest.raises(InputError, match=r"unpacks [\d,]+ bytes to more than [\d,]+ \(check where it is from"):
        read_workload(here / "a.swf.gz")
    table = pl.DataFrame({name: pl.Series([1.0]).new_from_index(0, 10**6) for name in ("submit_s", "a")})
    table.write_parquet(here / "a.parquet")
    for read in (read_workload, lambda file: read_columns(file, ["a"]), pieces.read_piece):
        with pytest.raises(InputError, match=r"unpacks .* bytes to more than"):
            read(here / "a.parquet")
    with zipfile.ZipFile(here / "memory.npz", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("plain.npy", b"\0" * 2**23)
    with pytest.raises(InputError, match=r"unpacks .* bytes to more than"):
        READERS["memory.npz"](here / "memory.npz")


def test_text_that_packs_well_is_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_UNPACKED_BYTES", 2**16)
    lines = "".join(f"{k},{10 * k},100,1,b\n" for k in range(1, 10_000))
    (here / "jobs.csv.gz").write_bytes(gzip.compress((TRACE.partition("\n")[0] + "\n" + lines).encode()))
    assert len(read_workload(here / "jobs.csv.gz")) == 9999


# ---------------------------------------------------------------- names


HOSTILE = "a\x1b[2J\u202eb\x9b0m\x07"
SHOWN = r"a\x1b[2J\u202eb\x9b0m\x07"


def test_names_are_shown_with_escapes(here: Path) -> None:
    (here / "jobs.csv").write_text(TRACE.replace("NAME", HOSTILE))
    jobs = read_workload(here / "jobs.csv")
    assert SHOWN in jobs.names["group"].values()
    table = Table(HOSTILE, ((HOSTILE, "", HOSTILE),), ((HOSTILE, (Cell(HOSTILE),)),), notes=(HOSTILE,))
    for text in (to_markdown(table), to_latex(table), table.title, table.rows[0][0], table.rows[0][1][0].text):
        assert text.isprintable() or text.replace("\n", "").isprintable()
    (group,) = gb.NodeGroup(name="a", count=1, processors=4, static_power_w=100.0, node_names=(HOSTILE,)).node_names
    assert group == SHOWN
    assert errors.visible("Größe 1 m²\u00a0±") == "Größe 1 m²\u00a0±"


def test_the_folder_that_was_written_is_shown_without_control_characters(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name with a carriage return would write over the line."""
    words = ["simulate", "--scenario", "default", "--scheduler", "fcfs", "--jobs", "20", "--out", "a\rb\x1b[2J"]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == r"written to a\rb\x1b[2J"


@pytest.mark.parametrize("bad", ["\x1b[2J", "\u202e", "\x9b0m", "\u2028"])
def test_a_scenario_with_such_a_name_is_refused(here: Path, bad: str) -> None:
    text = SCENARIO.replace('"theirs"', json.dumps(f"x{bad}")).replace('["evil.py:rule"]', '["fcfs"]')
    (here / "s.toml").write_text(text)
    with pytest.raises(InputError, match="leave out line breaks and other control characters") as refused:
        gb.load_scenario("s.toml")
    assert str(refused.value).isprintable()


def test_no_cell_is_a_formula() -> None:
    texts = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "-5", "+4.5", "ok", "a=1", None]
    shown = for_spreadsheets(pl.DataFrame({"text": texts, "number": range(9)}))
    assert shown["text"].to_list() == [
        "'=1+1",
        "'+cmd|' /C calc'!A0",
        "'-2+3",
        "'@SUM(A1)",
        "-5",
        "+4.5",
        "ok",
        "a=1",
        None,
    ]
    assert shown["number"].to_list() == list(range(9))


# ---------------------------------------------------------------- links, and what is ours


def victim(here: Path) -> Path:
    """A folder outside, with a file."""
    (here / "outside").mkdir()
    (here / "outside" / "kept").write_text("kept")
    return here / "outside"


@pytest.mark.parametrize(
    "name", ["log.jsonl", "checkpoint", "model", "run.json", "checkpoint/state.json", "model/model.json"]
)
def test_a_training_with_a_link_is_not_resumed(here: Path, name: str) -> None:
    outside = victim(here)
    run = here / "run"
    for part in ("checkpoint", "model"):
        (run / part).mkdir(parents=True)
    (run / "run.json").write_text('{"tool": "greenbatch train"}')
    if (run / name).is_dir():
        (run / name).rmdir()
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(outside if "." not in name else outside / "kept")
    with pytest.raises(InputError, match="is a link"):
        tidy(run)
    assert (outside / "kept").read_text() == "kept"


@pytest.mark.parametrize("part", ["", "new", "old", "ready"])
def test_a_prepared_hidden_folder_is_refused(here: Path, part: str) -> None:
    outside, out = victim(here), here / "out"
    place = hidden(out)
    if part:
        place.mkdir()
    (place / part if part else place).symlink_to(outside)
    with pytest.raises(InputError, match="is a link, contains one, or is not ours"), result_folder(out):
        pass
    assert (outside / "kept").read_text() == "kept"


def test_prepared_pieces_are_refused(here: Path) -> None:
    outside = victim(here)
    (outside / "cells-000001-0123456789abcdef.parquet").write_text("kept")
    (here / "out.cells").symlink_to(outside)
    wanted = {key: {} for key in pieces.DECIDE}
    with pytest.raises(InputError, match="is a link"):
        pieces.Pieces(here / "out", wanted, force=True)
    assert (outside / "cells-000001-0123456789abcdef.parquet").read_text() == "kept"


def test_copies_of_our_files_are_the_user_s(here: Path) -> None:
    """Every *.safetensors was deleted."""
    folder = here / "checkpoint"
    for epoch in range(2):
        save_checkpoint(folder, f"epoch-{epoch}", {"w": np.zeros(3)}, {"epoch": epoch})
        if not epoch:
            (folder / "mine.safetensors").write_text("mine")
    assert {file.name for file in folder.iterdir()} == {"epoch-1.safetensors", "mine.safetensors", "state.json"}
    (here / "cells-copy.parquet").touch()
    assert pieces.pieces_in(here) == []


def test_events_are_ours_by_their_record(here: Path) -> None:
    from greenbatch.learning.runs.log import Scalars

    scalars = Scalars()
    scalars.open(here / "events")
    scalars.close()
    (here / "events" / "events.out.tfevents.copy").write_text("mine")
    names = written_events(here / "events")
    assert "events.out.tfevents.copy" not in names
    assert {*names, "events.out.tfevents.copy"} == {file.name for file in (here / "events").iterdir()}


def test_a_link_of_the_user_s_is_carried_over(here: Path) -> None:
    out = here / "out"
    out.mkdir()
    (out / "mine").symlink_to("nowhere")
    with replacement(out, lambda _: ()) as made:
        (made.folder / "new").touch()
        made.deliver()
    assert (out / "mine").is_symlink()
