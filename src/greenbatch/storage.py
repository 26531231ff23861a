"""Atomic replacement of files and folders: old or new, never a mix, and on disk when the call returns.

The new content is written to a hidden folder next to its target. The name of that folder is derived from the target's
name, and its owner holds a lock on it: a second writer to the same target is refused, and leftovers of a killed writer
are removed by the next one, because a lock ends with its process. Files are replaced by a rename, folders by exchanging
two names in one step, or by two renames if the system cannot exchange (`restore` handles a kill between them).
"""

from __future__ import annotations

import ctypes
import errno
import filecmp
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

from greenbatch.errors import InputError

Ours = Callable[[Path], Collection[str]]
"""Relative paths of the files in a folder that may be replaced and removed; all others belong to the user."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of errors that a full disk causes."""
PREFIX = ".greenbatch-"
"""What names of hidden folders begin with."""
_NEW, _READY, _OLD = "new", "ready", "old"
"""In the hidden folder: new content in progress; complete, or the old one after the exchange; the old one set aside."""


def hidden(target: Path) -> Path:
    """The hidden folder next to a file or folder."""
    return target.parent / f"{PREFIX}{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]}"


def user_cache(part: str) -> Path:
    """A folder of the user's own: ``$XDG_CACHE_HOME/greenbatch/PART``, by default under ``~/.cache``.

    Without a home, a folder that cannot be: nothing is found there, and nothing can be written.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    except RuntimeError:
        root = Path(os.devnull)
    return root / "greenbatch" / part


# ---------------------------------------------------------------- one writer at a time


@contextmanager
def alone(folder: Path, shown: Path | None = None) -> Iterator[None]:
    """Lock a folder; the operating system releases the lock when the process ends.

    Args:
        folder: the folder.
        shown: its name in messages.

    Raises:
        InputError: another process holds the lock.
        OSError: the folder cannot be opened.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        if _lock(handle) is False or not _is(folder, handle):
            raise _busy(shown or folder)
        yield
    finally:
        os.close(handle)


@contextmanager
def _beside(target: Path, ours: Ours) -> Iterator[Path]:
    """The hidden folder next to a target, locked, and emptied before and after use."""
    place = hidden(target)
    with _owned(place, target):
        _sweep(place, target, ours)
        try:
            yield place
        finally:
            with suppress(OSError):  # the next writer tries again
                _sweep(place, target, ours)
                place.rmdir()


@contextmanager
def _owned(place: Path, target: Path) -> Iterator[None]:
    """Create and lock a hidden folder, or take over that of a killed writer."""
    while True:
        try:
            place.mkdir(mode=0o700)
            made = True
        except FileExistsError:
            made = False
        try:
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:  # its owner has just removed it
            continue
        except OSError:
            raise _foreign(place) from None
        try:
            strange = not made and os.fstat(handle).st_uid != os.geteuid()
            if strange or any((place / name).is_symlink() for name in (_NEW, _READY, _OLD)):
                raise _foreign(place)
            lock = _lock(handle)
            if lock is None and not made:
                fix = f"if none runs, remove {place}"
                raise InputError("another run writes here, or was killed", file=target, field="--out", fix=fix)
            if lock is False:
                raise _busy(target)
            if _is(place, handle):
                yield
                return
        finally:
            os.close(handle)


def _lock(handle: int) -> bool | None:
    """Lock an open folder; False if another process holds the lock, None if folders cannot be locked."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def _is(folder: Path, handle: int) -> bool:
    """Whether a handle still refers to the folder of that name."""
    try:
        return os.path.samestat(folder.stat(), os.fstat(handle))
    except OSError:
        return False


def _foreign(place: Path) -> InputError:
    fix = "remove it, or give another folder"
    return InputError("is a link, contains one, or is not ours", file=place, field="--out", fix=fix)


def _busy(folder: Path) -> InputError:
    fix = "wait for it to end, or give another folder"
    return InputError("another run writes here", file=folder, field="--out", fix=fix)


def check_own(folder: Path, names: Collection[str]) -> None:
    """Refuse to write into a folder in which somebody put links, or files of another owner, in the place of ours.

    Args:
        folder: the folder.
        names: relative paths of our files and folders in it, which may be missing.

    Raises:
        InputError: names the link or file.
    """
    owners = {folder.stat().st_uid, os.geteuid()}
    for name in sorted(names):
        try:
            found = (folder / name).lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISLNK(found.st_mode) or found.st_uid not in owners:
            problem = "is a link" if stat.S_ISLNK(found.st_mode) else "belongs to another user"
            fix = "remove it and copy the folder again, or give another folder"
            raise InputError(problem, file=folder / name, field="--out", fix=fix)


# ---------------------------------------------------------------- one file


def replace_file(file: Path, content: bytes) -> None:
    """Write a file, replacing an earlier one atomically; links are followed.

    Raises:
        InputError: another process is writing this file.
        OSError: it cannot be written; names the file. An earlier file is untouched.
    """
    real = Path(os.path.realpath(file))
    try:
        with _beside(real, lambda _: ()) as place:
            new = place / _NEW
            with new.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(real)
            _sync_folder(real.parent)
    except OSError as error:
        error.filename, error.filename2 = str(file), None
        raise


# ---------------------------------------------------------------- a whole folder


class Replacement:
    """The replacement of a folder.

    Attributes:
        folder: hidden folder for the new content.
    """

    def __init__(self, target: Path, ours: Ours) -> None:
        self._target, self._ours, self._place = target, ours, hidden(target)
        self.folder = self._place / _NEW
        self.folder.mkdir()
        self._made = self.folder.stat()

    @property
    def delivered(self) -> bool:
        """Whether the new folder has replaced the target."""
        try:
            return os.path.samestat(self._target.stat(), self._made)
        except OSError:
            return False

    def deliver(self) -> None:
        """Replace the old folder with the new one, keeping the user's files.

        Raises:
            InputError: a file of the user has the name of a new one; the old folder is untouched.
            OSError: the folder cannot be replaced; the old folder is untouched.
        """
        target, ready = self._target, self._place / _READY
        if not target.exists():
            _sync(self.folder)
            self.folder.rename(target)
        else:
            _carry_over(target, self.folder, self._ours)
            shutil.copymode(target, self.folder)
            _sync(self.folder)
            self.folder.rename(ready)  # marks it as complete for `sweep`
            if not exchange(ready, target):
                target.rename(self._place / _OLD)
                ready.rename(target)
        _sync_folder(self._place)
        _sync_folder(target.parent)


@contextmanager
def replacement(target: Path, ours: Ours) -> Iterator[Replacement]:
    """Prepare a new folder for a target. The old one is untouched until the new one is delivered.

    Args:
        target: absent, or a folder; links are followed. Missing parents are created; empty ones are removed.
        ours: files of an old folder that are not carried over into the new one.

    Raises:
        InputError: another process writes to the target.
        OSError: the folder around the target is not writable.
    """
    real = Path(os.path.realpath(target))
    with _parents(real.parent), _beside(real, ours), alone(real, target) if real.exists() else nullcontext():
        yield Replacement(real, ours)


def sweep(target: Path, ours: Ours = lambda _: ()) -> None:
    """Remove leftovers of a killed writer next to a file or folder.

    Raises:
        InputError: a writer is active.
        OSError: they cannot be removed.
    """
    real = Path(os.path.realpath(target))
    if hidden(real).exists():
        with _beside(real, ours):
            pass


def restore(target: Path) -> None:
    """Restore the old folder if a writer was killed between setting it aside and renaming the new one."""
    real = Path(os.path.realpath(target))
    place = hidden(real)
    for _ in range(100):
        if real.exists() or not (place / _OLD).exists():
            return
        try:
            with _owned(place, real):
                (place / _OLD).rename(real)
        except (InputError, OSError):  # the writer is alive: its second rename follows
            time.sleep(0.01)


def check_folder(folder: Path, ours: Ours | None, *, fix: str | None = None) -> bool:
    """Check that a folder can be replaced before doing any work; True if it is not empty.

    Args:
        folder: the folder given by the user.
        ours: as for `replacement`, to remove leftovers of a killed writer; None if the caller has locked the folder.
        fix: remedy for a folder that is not empty; None to accept it.

    Raises:
        InputError: it cannot be replaced; states the reason.
    """

    def refuse(problem: str, fix: str) -> InputError:
        return InputError(problem, file=folder, field="--out", fix=fix)

    if not str(folder) or "\0" in str(folder):
        raise refuse("is not a folder name", "give the name of a folder")
    try:
        if folder.is_symlink() and not folder.exists():
            raise refuse("is a link to nowhere", "give another folder")
        if ours is not None:
            sweep(folder, ours)
        if not folder.exists():
            return False
        if not folder.is_dir():
            raise refuse("exists and is not a folder", "give another folder")
        filled = any(folder.iterdir())
        problem = _irreplaceable(folder.resolve())
    except OSError as error:
        raise refuse(f"cannot be used: {error.strerror}", "choose a folder you may write to") from None
    if filled and fix:
        raise refuse("exists and is not empty", fix)
    if problem:
        raise refuse(f"is replaced as a whole, and {problem}", "give a folder inside it")
    return filled


def _irreplaceable(folder: Path) -> str:
    """The reason why a folder cannot be replaced; empty if it can."""
    if Path.cwd().is_relative_to(folder):
        return "is the current folder or holds it"
    if folder.is_mount():
        return "a file system is mounted there"
    if not os.access(folder, os.W_OK | os.X_OK):
        return "may not be written"
    return "" if os.access(folder.parent, os.W_OK | os.X_OK) else "the folder around it may not be written"


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False if the system does not support it.

    Raises:
        OSError: these two cannot be exchanged.
    """
    at_cwd, exchange_flag = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    if call(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), exchange_flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}:
        return False
    raise OSError(number, os.strerror(number), str(other))


# ---------------------------------------------------------------- what is the user's


def _carry_over(old: Path, new: Path, ours: Ours) -> None:
    """Link or, if that is not possible, copy the user's files of the old folder into the new one."""
    replaced, device = set(ours(old)), old.stat().st_dev
    entries = list(_walk(old))
    filled = {name.parent for name, _ in entries}
    folders: list[Path] = []

    def make(name: Path) -> None:
        if name != Path() and not (new / name).is_dir():
            make(name.parent)
            (new / name).mkdir()
            folders.append(name)

    for name, is_folder in entries:
        if (old / name).lstat().st_dev != device:
            raise InputError("is on another file system", file=old / name, field="--out", fix="give another folder")
        try:
            if is_folder and name not in filled:
                make(name)
            elif not is_folder and name.as_posix() not in replaced:
                make(name.parent)
                _link(old / name, new / name)
        except (FileExistsError, NotADirectoryError):
            problem, fix = "exists and was not written by greenbatch", "move it away, or give another folder"
            raise InputError(problem, file=old / name, field="--out", fix=fix) from None
    for name in reversed(folders):
        shutil.copystat(old / name, new / name)


def _link(source: Path, name: Path) -> None:
    if os.path.lexists(name):
        raise FileExistsError
    try:
        os.link(source, name, follow_symlinks=False)
    except OSError:  # links are unsupported, or not permitted for files of others
        shutil.copy2(source, name, follow_symlinks=False)


def _sweep(place: Path, target: Path, ours: Ours) -> None:
    """Empty a hidden folder; the user's files in it are moved back to the target."""
    if (place / _OLD).exists() and not target.exists():
        (place / _OLD).rename(target)
    for name, is_folder in _walk(place):
        if is_folder and not os.access(place / name, os.R_OK | os.W_OK | os.X_OK):
            (place / name).chmod(0o700)  # the user's folders, which are empty by now or contain links
    new = place / _NEW
    _remove(new)
    for left in (place / _OLD, place / _READY):
        if left.exists():
            if target.is_dir():
                _give_back(left, target, ours)
            left.rename(new)  # it contains no user files any more, so a partial removal is harmless
            _remove(new)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _give_back(left: Path, target: Path, ours: Ours) -> None:
    """Move files that a user added after the new folder was made to the target, without overwriting any."""
    replaced = set(ours(left))
    entries = list(_walk(left))
    filled = {name.parent for name, _ in entries}
    for name, is_folder in entries:
        if is_folder:
            if name not in filled and not os.path.lexists(target / name):
                (target / name).mkdir(parents=True)
        elif name.as_posix() not in replaced and not _same(left / name, target / name):
            place = target / name
            while os.path.lexists(place):
                place = place.with_name(place.name + ".kept")
            place.parent.mkdir(parents=True, exist_ok=True)
            (left / name).rename(place)


def _same(one: Path, other: Path) -> bool:
    try:
        first, second = one.lstat(), other.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    if os.path.samestat(first, second):
        return True
    if stat.S_ISLNK(first.st_mode) and stat.S_ISLNK(second.st_mode):
        return one.readlink() == other.readlink()
    return stat.S_ISREG(first.st_mode) and stat.S_ISREG(second.st_mode) and filecmp.cmp(one, other, shallow=False)


def _walk(folder: Path, below: Path = Path()) -> Iterator[tuple[Path, bool]]:
    """Relative paths in a folder, and whether each is a folder; parents come first."""
    with os.scandir(folder / below) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        yield below / entry.name, is_folder
        if is_folder:
            yield from _walk(folder, below / entry.name)


# ---------------------------------------------------------------- on disk


def _sync(folder: Path) -> None:
    """Flush a folder and its files to disk; files with other links are on disk already."""
    for name, is_folder in reversed(list(_walk(folder))):
        path = folder / name
        if is_folder:
            _sync_folder(path)
        elif stat.S_ISREG((found := path.lstat()).st_mode) and found.st_nlink == 1:
            _sync_file(path)
    _sync_folder(folder)


def _sync_file(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    try:
        _sync_file(folder)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # not supported for folders on some systems
            raise


@contextmanager
def _parents(folder: Path) -> Iterator[None]:
    """Create a folder and its parents; those that are still empty at the end are removed."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    with ExitStack() as made:
        for parent in reversed(missing):
            parent.mkdir(exist_ok=True)
            made.callback(_remove_empty, parent)
            _sync_folder(parent.parent)
        yield


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
