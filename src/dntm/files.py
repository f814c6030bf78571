"""Writing so that nothing is ever half there, and by one process at a time.

A file or folder gets a temporary name first and is then moved into place. Locks are the system's,
which lifts them when their holder ends, by whatever cause: nothing has to be cleaned up after a
kill -9. What a kill leaves under a temporary name is removed by the next one who writes there.
"""

import ctypes
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

JUST_MADE = 2.0
"""Seconds within which a new temporary file is locked, for certain."""


def resolved(path: Path) -> Path:
    """The path without links; ValueError where they lead in a circle."""
    try:
        return path.resolve()
    except RuntimeError:
        raise ValueError(f"{path} is a link that leads back to itself") from None


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name and move it into place."""
    with new_file(path) as file:
        file.write(text)


@contextmanager
def new_file(path: Path) -> Iterator[TextIO]:
    """A file under a temporary name that takes its place when the block ends well.

    A link stays, and what it points to is replaced; a device or a pipe is written to as it is.
    """
    path = resolved(path)
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, path.name)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    _lock(handle)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            follow_umask(Path(temporary), 0o666)
            Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def new_folder(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder beside `target` that takes its place when the block ends well.

    What stood there before is removed only after the new folder is in place; after an error
    everything is as it was.
    """
    if target.exists() and not overwrite:
        raise ValueError(f"{target} exists already: choose another folder or pass --overwrite")
    target = resolved(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(target.parent, target.name)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    handle = os.open(temporary, os.O_RDONLY)
    _lock(handle)
    try:
        yield temporary
        follow_umask(temporary, 0o777)
        if not target.exists():
            temporary.replace(target)
        elif _exchange(temporary, target):
            shutil.rmtree(temporary)
        else:
            old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.old."))
            target.replace(old / "content")
            try:
                temporary.replace(target)
            except BaseException:
                (old / "content").replace(target)
                raise
            finally:
                shutil.rmtree(old)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:
        os.close(handle)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove what killed processes left under temporary names: of one target, or of all in there.

    Whoever is still writing holds a lock on it, or is about to. The folder that was moved aside
    for a new one is kept where the new one has not come.
    """
    pattern = re.compile(rf"\.{re.escape(name) if name else '.+'}(\.old)?\.[a-z0-9_]{{8}}")
    found = [p for p in folder.iterdir() if pattern.fullmatch(p.name)] if folder.is_dir() else []
    for path in found:
        stem = path.name[1:-9]
        aside = stem.endswith(".old") and not (folder / stem.removesuffix(".old")).exists()
        if aside or path.is_symlink() or not (path.is_file() or path.is_dir()):
            continue
        with suppress(OSError):
            if time.time() - path.stat().st_mtime < JUST_MADE:
                continue
            handle = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            finally:
                os.close(handle)


@contextmanager
def claimed(path: Path, waiting: Callable[[], None]) -> Iterator[int]:
    """Hold the lock file while the block runs; gives its handle.

    Where another process holds it, `waiting` is called once, and then the other waited for. A
    process that is started with the handle holds the lock, too, until it ends. The lock also holds
    between machines that share the folder by NFS.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def is_claimed(path: Path) -> bool:
    """Whether another process holds the lock file right now."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


@contextmanager
def folder_of_one(folder: Path) -> Iterator[None]:
    """Make the folder if need be and let no other process in; ValueError where one is.

    An empty folder goes again at the end. The folder itself is locked, so that no file tells of it
    (on file systems that cannot, such as NFS, nothing is).
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not _lock(handle):
            raise ValueError(
                f"{folder} is in use by another process: wait until it ends, or choose another one"
            )
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()
        os.close(handle)


def _lock(handle: int) -> bool:
    """Lock what is open; False where another process has; True, too, where locks do not exist."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step (Linux); False where the system cannot."""
    here, exchange = -100, 2
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    done: int = rename(here, os.fsencode(one), here, os.fsencode(other), exchange)
    return done == 0


def follow_umask(path: Path, mode: int) -> None:
    """Temporary files are private; what is moved into place follows the user's umask."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(mode & ~mask)
