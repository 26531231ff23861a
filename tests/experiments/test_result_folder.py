"""Result folders: all or nothing, and files of other programs are never touched."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from greenbatch.errors import InputError
from greenbatch.experiments.reports.result_folder import RECORD, _own_files, result_folder, write_record
from greenbatch.files import write_bytes


def write(out: Path, files: dict[str, str], *, force: bool = False) -> None:
    with result_folder(out, force=force) as folder:
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        write_record(folder, {"seed": 1})


def content(out: Path) -> dict[str, str]:
    return {f.relative_to(out).as_posix(): f.read_text() for f in out.rglob("*") if f.is_file() and f.name != RECORD}


def test_a_new_folder_appears_with_a_record_of_its_files(tmp_path: Path):
    write(tmp_path / "deep" / "out", {"a.csv": "1", "pictures/b.svg": "2"})
    record = json.loads((tmp_path / "deep" / "out" / RECORD).read_text())
    assert set(record["files"]) == {"a.csv", "pictures/b.svg"}
    assert record["seed"] == 1
    assert [f.name for f in (tmp_path / "deep").iterdir()] == ["out"]


def test_an_empty_folder_is_filled(tmp_path: Path):
    (tmp_path / "out").mkdir()
    write(tmp_path / "out", {"a": "1"})
    assert content(tmp_path / "out") == {"a": "1"}


def test_a_failed_run_leaves_nothing(tmp_path: Path):
    def fail(out: Path) -> None:
        with result_folder(out) as folder:
            (folder / "half").write_text("x")
            raise KeyboardInterrupt

    for out in (tmp_path / "new", tmp_path / "deep" / "er" / "new"):
        with pytest.raises(KeyboardInterrupt):
            fail(out)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty").mkdir()
    with pytest.raises(KeyboardInterrupt):
        fail(tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_filled_folder_needs_force(tmp_path: Path):
    write(tmp_path / "out", {"a": "1"})
    with pytest.raises(InputError, match="not empty"):
        write(tmp_path / "out", {"a": "2"})
    assert content(tmp_path / "out") == {"a": "1"}


def test_force_replaces_an_earlier_result_and_keeps_other_files(tmp_path: Path):
    out = tmp_path / "out"
    write(out, {"a": "1", "old": "1"})
    (out / "notes.txt").write_text("mine")
    write(out, {"a": "2", "new": "2"}, force=True)
    assert content(out) == {"a": "2", "new": "2", "notes.txt": "mine"}
    assert set(json.loads((out / RECORD).read_text())["files"]) == {"a", "new"}


def test_force_adds_to_a_foreign_folder_without_replacing_files(tmp_path: Path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    write(out, {"a": "1"}, force=True)
    assert content(out) == {"a": "1", "notes.txt": "mine"}
    (out / "b").write_text("mine")
    with pytest.raises(InputError, match="not written by greenbatch"):
        write(out, {"a": "2", "b": "2"}, force=True)
    assert content(out) == {"a": "1", "b": "mine", "notes.txt": "mine"}


def test_force_does_not_replace_a_result_that_was_changed(tmp_path: Path):
    out = tmp_path / "out"
    write(out, {"a": "1"})
    (out / "a").write_text("edited")
    with pytest.raises(InputError, match="changed since"):
        write(out, {"a": "2"}, force=True)
    assert content(out) == {"a": "edited"}


def test_a_result_that_is_changed_while_the_run_works_is_kept(tmp_path: Path):
    out = tmp_path / "out"
    write(out, {"a": "1"})

    def run() -> None:
        with result_folder(out, force=True) as folder:
            (folder / "a").write_text("2")
            (out / "a").write_text("edited")
            write_record(folder, {})

    assert set(_own_files(out)) == {"a", RECORD}
    with pytest.raises(InputError, match="changed since"):
        run()
    assert content(out) == {"a": "edited"}
    assert set(_own_files(out)) == {RECORD}, "a changed file is the user's"


def test_force_with_a_failing_run_keeps_the_earlier_result(tmp_path: Path):
    out = tmp_path / "out"
    write(out, {"a": "1"})

    def fail() -> None:
        with result_folder(out, force=True) as folder:
            (folder / "a").write_text("2")
            raise MemoryError

    with pytest.raises(MemoryError):
        fail()
    assert content(out) == {"a": "1"}
    assert sorted(f.name for f in out.iterdir()) == ["a", RECORD]


@pytest.mark.parametrize(
    "record",
    [
        "",
        "[]",
        "{}",
        '{"tool": "greenbatch", "files": {"../../secret": ""}}',
        '{"tool": "other", "files": {}}',
        "[" * 99999,
    ],
)
def test_force_refuses_a_record_that_is_not_ours(tmp_path: Path, record: str):
    (tmp_path / RECORD).write_text(record)
    with pytest.raises(InputError, match="was not written by greenbatch"):
        write(tmp_path, {"a": "1"}, force=True)


def test_a_file_as_output_folder_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for out, problem in (
        (tmp_path / "file", "not a folder"),
        (tmp_path / "file" / "below", "not a folder|cannot be"),
        (tmp_path / "link", "link to nowhere"),
        (Path("a\0b"), "not a folder name"),
        (tmp_path / ("n" * 300), "cannot be"),
    ):
        with pytest.raises(InputError, match=problem):
            write(out, {"a": "1"})
    assert sorted(f.name for f in tmp_path.iterdir()) == ["file", "link"]


def full(error: Exception, folder: Path) -> None:
    (folder / "half").write_text("1")
    raise error


def test_a_full_disk_names_the_folder_that_was_given(tmp_path: Path):
    with pytest.raises(InputError) as caught, result_folder(tmp_path / "out") as folder:
        full(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "elsewhere"), folder)
    problem = "cannot be written: No space left on device (free some space, or give another folder)"
    assert str(caught.value) == f"{tmp_path / 'out'}: --out: {problem}"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_told_as_the_folder(tmp_path: Path):
    with pytest.raises(InputError) as caught, result_folder(tmp_path / "out") as folder:
        write_bytes(folder / "nowhere" / "report.html", b"")
    assert str(caught.value).startswith(f"{tmp_path / 'out'}: --out: cannot be written: No such file or directory")


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOENT, "missing", "data.csv"), ValueError("no"), InputError("is bad")]
)
def test_other_errors_pass(tmp_path: Path, error: Exception):
    with pytest.raises(type(error)) as caught, result_folder(tmp_path / "out") as folder:
        full(error, folder)
    assert caught.value is error
