"""Atomic writes and locks, and the folder of the bundled model.

A file or folder is written under a temporary name and then moved into place, so a reader never sees
half of it. The temporary name contains the writer's host and process id; the next writer removes
the temporary files of processes that no longer exist. Locks are advisory file locks (`filelock`),
which the system releases when the holder ends.
"""

import itertools
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from filelock import FileLock, Timeout

BUNDLED = Path(__file__).parent / "pretrained"
"""The folder of the bundled model."""
DEFAULT = "default"
"""The name of the bundled model in commands."""
_LOCK = ".lock"
_counter = itertools.count()


def folder_of(model: Path | str | None) -> Path:
    """The folder of a model; None and "default" stand for the bundled model."""
    if model is not None and str(model) != DEFAULT:
        return Path(model)
    if not (BUNDLED / "config.json").is_file():
        raise ValueError(
            "no model given, and this installation has no bundled model: "
            "pass the folder of a run or a checkpoint"
        )
    return BUNDLED


def resolved(path: Path) -> Path:
    """The path without symbolic links; ValueError if they form a loop."""
    try:
        return path.resolve()
    except RuntimeError:
        raise ValueError(f"{path} is a symbolic link that points to itself") from None


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name and move it into place."""
    with new_file(path) as file:
        file.write(text)


@contextmanager
def new_file(path: Path) -> Iterator[TextIO]:
    """Open a temporary file that replaces `path` when the block ends without an error.

    The target of a symbolic link is replaced, not the link. Devices and pipes are written directly.
    """
    path = resolved(path)
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_files(path.parent, path.name)
    temporary = _temporary(path)
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def new_folder(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Make a temporary folder that replaces `target` when the block ends without an error."""
    if target.exists() and not overwrite:
        raise ValueError(f"{target} exists already: choose another folder or pass --overwrite")
    target = resolved(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_files(target.parent, target.name)
    temporary = _temporary(target)
    temporary.mkdir()
    try:
        yield temporary
        if target.exists():  # os.replace cannot replace a folder that has content
            previous = _temporary(target, ".old")
            target.replace(previous)  # if this process dies now, the next writer moves it back
            temporary.replace(target)
            shutil.rmtree(previous)
        else:
            temporary.replace(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _temporary(path: Path, suffix: str = "") -> Path:
    """A new name next to `path`; `.old` marks a folder that is being replaced."""
    writer = f"{platform.node()}-{os.getpid()}-{next(_counter)}"
    return path.with_name(f".{path.name}.{writer}.tmp{suffix}")


def remove_stale_files(folder: Path, name: str | None = None) -> None:
    """Remove temporary files of dead processes: those of the target `name`, or all in the folder.

    If a process died while it replaced a folder, the previous folder is moved back.
    """
    target = re.escape(name) if name else "(?P<any>.+)"
    host = re.escape(platform.node())
    pattern = re.compile(rf"\.{target}\.{host}-(?P<process>\d+)-\d+\.tmp(?P<old>\.old)?")
    for path in list(folder.iterdir()) if folder.is_dir() else []:
        match = pattern.fullmatch(path.name)
        if match is None or _is_running(int(match["process"])):
            continue
        final = folder / (name or match["any"])
        with suppress(OSError):
            if match["old"] and not final.exists():
                path.replace(final)
            elif path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock file while the block runs; `waiting` is called if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_locked(path):
        waiting()
    with FileLock(path):
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file now."""
    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True


@contextmanager
def exclusive_folder(folder: Path) -> Iterator[None]:
    """Make the folder and lock it for this process; ValueError if another process uses it.

    The folder is removed at the end if nothing was written to it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    held = FileLock(folder / _LOCK, timeout=0)
    try:
        held.acquire()
    except Timeout:
        raise ValueError(
            f"{folder} is in use by another process: wait until it ends or choose another folder"
        ) from None
    try:
        yield
    finally:
        if [path.name for path in folder.iterdir()] == [_LOCK]:
            shutil.rmtree(folder)
        held.release()
