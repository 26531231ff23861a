"""Files and folders are replaced as a whole, and what is the user's stays."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from greenbatch import storage
from greenbatch.errors import InputError
from greenbatch.storage import alone, check_folder, hidden, replace_file, replacement, restore, sweep


def ours(folder: Path) -> list[str]:
    """Files of a result are those with an *r* in front, at any depth."""
    return [file.relative_to(folder).as_posix() for file in folder.rglob("r*") if file.is_file()]


def write(target: Path, files: dict[str, str]) -> None:
    with replacement(target, ours) as made:
        for name, text in files.items():
            (made.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (made.folder / name).write_text(text)
        made.deliver()


def tree(folder: Path) -> dict[str, str]:
    """Everything in a folder: files with their text, links with their goal, folders with their mode."""
    return {
        path.relative_to(folder).as_posix(): f"-> {path.readlink()}" if path.is_symlink()
        else f"{stat.S_IMODE(path.stat().st_mode):o}" if path.is_dir() else path.read_text()
        for path in folder.rglob("*")
    }  # fmt: skip


@pytest.fixture(params=["exchange", "two renames", "no links"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file system that can do everything, and others that cannot exchange names or link files."""

    def no_link(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if request.param == "two renames":
        monkeypatch.setattr(storage, "exchange", lambda *_: False)
    elif request.param == "no links":
        monkeypatch.setattr(os, "link", no_link)
    return str(request.param)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """An earlier result among things of the user's."""
    target = tmp_path / "around" / "out"
    write(target, {"r1": "old", "sub/r2": "old", "gone/r3": "old"})
    (target / "notes.txt").write_text("mine")
    (target / "sub" / "mine").write_text("mine")
    (target / "deep" / "er").mkdir(parents=True)
    (target / "deep" / "er").chmod(0o750)
    (target / "deep" / "closed").mkdir()
    (target / "deep" / "closed" / "x").write_text("mine")
    (target / "deep" / "closed").chmod(0o555)
    (target / "link").symlink_to("notes.txt")
    (target / "nowhere").symlink_to("/no/such/place")
    (target / "folder-link").symlink_to("deep")
    target.chmod(0o750)
    return target


MINE = {
    "notes.txt": "mine", "sub/mine": "mine", "deep/er": "750", "deep/closed": "555", "deep/closed/x": "mine",
    "link": "-> notes.txt", "nowhere": "-> /no/such/place", "folder-link": "-> deep",
}  # fmt: skip


def test_a_folder_is_replaced_and_all_that_is_not_ours_stays(target: Path, way: str) -> None:
    notes = (target / "notes.txt").stat()
    write(target, {"r1": "new", "more/r4": "new"})
    found = tree(target)
    assert {name: found[name] for name in MINE} == MINE
    assert found.keys() - MINE.keys() == {"r1", "more", "more/r4", "sub", "deep"}
    assert found["r1"] == found["more/r4"] == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o750
    assert os.path.samestat(notes, (target / "notes.txt").stat()) == (way != "no links")
    assert os.listdir(target.parent) == ["out"]


def test_what_a_user_adds_meanwhile_is_moved_over(target: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the last look at the old folder and the exchange; names that are taken get another."""
    carry_over = storage._carry_over

    def late(old: Path, new: Path, ours: storage.Ours) -> None:
        carry_over(old, new, ours)
        (target / "late" / "empty").mkdir(parents=True)
        (target / "late" / "file").write_text("late")
        (target / "notes.txt").unlink()
        (target / "notes.txt").write_text("late")

    monkeypatch.setattr(storage, "_carry_over", late)
    write(target, {"r1": "new"})
    found = tree(target)
    assert (found["late/file"], found["r1"]) == ("late", "new")
    assert "late/empty" in found
    assert {found["notes.txt"], found["notes.txt.kept"]} == {"mine", "late"}
    assert os.listdir(target.parent) == ["out"]


@pytest.mark.parametrize("name", ["notes.txt", "sub/mine", "link", "deep", "notes.txt/x", "deep/er"])
def test_a_name_of_the_users_is_never_taken(target: Path, way: str, name: str) -> None:
    before = tree(target)
    with pytest.raises(InputError, match="exists and was not written by greenbatch"):
        write(target, {"r1": "new", name: "new"})
    assert tree(target) == before
    assert os.listdir(target.parent) == ["out"]


def test_a_failure_leaves_the_old_folder_and_no_new_parents(target: Path, tmp_path: Path) -> None:
    before = tree(target)

    def fail(target: Path) -> None:
        with replacement(target, ours) as made:
            (made.folder / "r1").write_text("half")
            raise KeyboardInterrupt

    for place in (target, tmp_path / "a" / "b" / "c"):
        with pytest.raises(KeyboardInterrupt):
            fail(place)
    assert tree(target) == before
    assert os.listdir(target.parent) == ["out"]
    assert os.listdir(tmp_path) == ["around"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "f"
    replace_file(file, b"old")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2, limit[1]))
    try:
        with pytest.raises(OSError, match="too large") as caught:
            replace_file(file, b"newer")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert caught.value.filename == str(file)
    assert tree(tmp_path) == {"f": "old"}


def test_links_are_followed_and_stay(target: Path, tmp_path: Path) -> None:
    (tmp_path / "to-out").symlink_to(target)
    write(tmp_path / "to-out", {"r1": "new"})
    assert (tmp_path / "to-out").readlink() == target
    assert (target / "r1").read_text() == "new"
    (tmp_path / "file").write_text("old")
    (tmp_path / "to-file").symlink_to("file")
    replace_file(tmp_path / "to-file", b"new")
    assert (tmp_path / "to-file").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_one_writer_at_a_time(target: Path) -> None:
    before = tree(target)
    with replacement(target, ours), pytest.raises(InputError, match=r"--out: another run writes here \(wait for it"):
        write(target, {"r1": "second"})
    with alone(target), pytest.raises(InputError, match="another run writes here"):
        write(target, {"r1": "second"})
    assert tree(target) == before
    write(target, {"r1": "third"})


def test_without_locks_a_leftover_is_refused_with_its_name(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_lock", lambda _: None)
    write(target, {"r1": "new"})
    hidden(target).mkdir()
    with pytest.raises(InputError, match=rf"or was killed \(if none runs, remove .*{hidden(target).name}\)"):
        write(target, {"r1": "newer"})
    assert (target / "r1").read_text() == "new"


def leave(target: Path, **parts: dict[str, str]) -> None:
    """What a killed writer leaves beside a target."""
    for part, files in parts.items():
        for name, text in files.items():
            place = hidden(target) / part / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)


def test_the_next_writer_removes_what_a_killed_one_left(target: Path) -> None:
    leave(target, new={"r1": "half"}, ready={"r1": "old", "notes.txt": "mine", "late/one": "late"})
    sweep(target, ours)
    assert tree(target)["late/one"] == "late"
    assert tree(target)["r1"] == "old"
    assert os.listdir(target.parent) == ["out"]


def test_a_late_file_takes_a_name_that_is_free(target: Path) -> None:
    (target / "late").write_text("mine")
    (target / "late.kept").write_text("mine too")
    leave(target, new={"r1": "half"}, ready={"r1": "old", "late": "later"})
    sweep(target, ours)
    found = tree(target)
    assert (found["late"], found["late.kept"], found["late.kept.kept"]) == ("mine", "mine too", "later")


def test_an_old_folder_that_was_set_aside_is_restored(target: Path) -> None:
    for back in (restore, lambda target: sweep(target, ours)):
        before = tree(target)
        leave(target, ready={"r1": "new"})
        target.rename(hidden(target) / "old")
        back(target)
        assert tree(target) == before
    assert os.listdir(target.parent) == ["out"]
    with replacement(target, ours) as made:  # a reader waits for a writer that lives, and then gives up
        target.rename(hidden(target) / "old")
        restore(target)
        assert not target.exists()
        (hidden(target) / "old").rename(target)
        assert not made.delivered


def test_other_hidden_folders_are_left_alone(target: Path) -> None:
    strange = target.with_name(".greenbatch-01234567")
    strange.mkdir()
    (strange / "precious").write_text("mine")
    write(target, {"r1": "new"})
    assert (strange / "precious").read_text() == "mine"


def as_nobody(check: Callable[[], None]) -> int:
    """Call something in a process that is not the superuser; 0 if it returns."""
    if (pid := os.fork()) == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            check()
            code = 0
        except BaseException as error:  # noqa: BLE001 - the parent must hear of it
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_what_cannot_be_replaced_as_a_whole_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here" / "below")
    for folder in (Path(), Path.cwd(), Path("..")):
        with pytest.raises(InputError, match=r"and is the current folder or holds it \(give a folder inside it\)"):
            check_folder(folder, ours)
    with pytest.raises(InputError, match=r"file system is mounted there \(give a folder inside it\)"):
        check_folder(Path("/proc"), ours)
    assert not check_folder(tmp_path / "here" / "new", ours)


def test_a_folder_whose_parent_may_not_be_written_is_refused() -> None:
    done = subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True)
    place = Path(done.stdout.strip())
    try:
        (place / "closed" / "out").mkdir(parents=True)
        (place / "closed" / "out").chmod(0o777)
        place.chmod(0o755)
        (place / "closed").chmod(0o555)

        def check() -> None:
            with pytest.raises(InputError, match=r"around it may not be written \(give a folder inside it\)"):
                check_folder(place / "closed" / "out", ours)
            write(place / "closed" / "out" / "inside", {"r1": "new"})

        assert as_nobody(check) == 0
    finally:
        (place / "closed").chmod(0o755)
        subprocess.run(["rm", "-r", str(place)], check=True)
